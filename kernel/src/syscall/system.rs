//! The machine as a whole.

use core::sync::atomic::Ordering;

use alloc::vec::Vec;

use frame::Cx;
use linux_raw_sys::general as abi;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Args, Call, Entry};
use crate::credentials::Capability;
use crate::current::Current;
use crate::error::Errno;
use crate::process::THREADS;
use crate::sched::load_average;
use crate::step::Step;
use crate::{arch, reboot, utsname};

/// The calls of this file.
pub const CALLS: &[Entry] = &[
    Entry::new(abi::__NR_uname, "uname", Call::Step(uname)),
    Entry::new(abi::__NR_sethostname, "sethostname", Call::Step(sethostname)),
    Entry::new(abi::__NR_setdomainname, "setdomainname", Call::Step(setdomainname)),
    Entry::new(abi::__NR_sysinfo, "sysinfo", Call::Step(sysinfo)),
    Entry::partial(abi::__NR_reboot, "reboot", Call::Step(reboot), "kexec, suspending"),
    Entry::partial(
        abi::__NR_personality,
        "personality",
        Call::Step(personality),
        "only PER_LINUX32, ADDR_NO_RANDOMIZE, STICKY_TIMEOUTS and UNAME26 have an effect",
    ),
    Entry::partial(
        abi::__NR_membarrier,
        "membarrier",
        Call::Step(membarrier),
        "rseq barriers; on one running core the others have nothing to do",
    ),
];

const NAME_LEN: usize = 65;

fn uname(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let personality = me.thread(cx)?.personality.load(Ordering::Relaxed);
    let is_32 = personality & PERSONALITY_KIND == PER_LINUX32;
    let machine = if is_32 { arch::MACHINE_32 } else { arch::MACHINE };
    let release = if personality & UNAME26 != 0 { utsname::RELEASE_26 } else { utsname::RELEASE };
    let names: [&[u8]; 6] = [
        utsname::NAME.as_bytes(),
        &utsname::host_name(cx),
        release.as_bytes(),
        utsname::VERSION.as_bytes(),
        machine.as_bytes(),
        &utsname::domain_name(cx),
    ];
    let mut raw = [0; 6 * NAME_LEN];
    for (to, name) in raw.chunks_exact_mut(NAME_LEN).zip(names) {
        let len = name.len().min(NAME_LEN - 1);
        to[..len].copy_from_slice(&name[..len]);
    }
    me.memory(cx)?.write(args.output::<[u8; 6 * NAME_LEN]>(0), &raw)?;
    Ok(0)
}

/// A name that a privileged program gives.
fn told_name(me: &Current, cx: &Cx, args: &Args) -> Step<Vec<u8>> {
    me.require(Capability::SysAdmin, cx)?;
    let len = usize::try_from(args.int(1)).map_err(|_| Errno::EINVAL)?;
    utsname::check_length(len)?;
    me.memory(cx)?.read_slice(args.input::<u8>(0).slice(len))
}

fn sethostname(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    utsname::set_host_name(&told_name(me, cx, args)?, cx)?;
    Ok(0)
}

fn setdomainname(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    utsname::set_domain_name(&told_name(me, cx, args)?, cx)?;
    Ok(0)
}

/// `struct sysinfo`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct SysInfo {
    uptime: i64,
    loads: [u64; 3],
    total_memory: u64,
    free_memory: u64,
    shared_memory: u64,
    buffers: u64,
    total_swap: u64,
    free_swap: u64,
    processes: u16,
    padding: [u16; 3],
    total_high: u64,
    free_high: u64,
    unit: u32,
    padding_2: u32,
}

const PAGE_SIZE: u64 = 4096;
/// SI_LOAD_SHIFT: the bits behind the point in a load average.
const SYSINFO_SHIFT: u32 = 16;

fn sysinfo(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let raw = SysInfo {
        uptime: (frame::time::now() / crate::time::SECOND) as i64,
        loads: load_average::averages().map(|average| average << (SYSINFO_SHIFT - load_average::SHIFT)),
        total_memory: frame::mm::frame_count() as u64 * PAGE_SIZE,
        free_memory: frame::mm::free_frames() as u64 * PAGE_SIZE,
        shared_memory: 0,
        buffers: 0,
        total_swap: 0,
        free_swap: 0,
        processes: THREADS.len().min(usize::from(u16::MAX)) as u16,
        padding: [0; 3],
        total_high: 0,
        free_high: 0,
        unit: 1,
        padding_2: 0,
    };
    me.memory(cx)?.write(args.output::<SysInfo>(0), &raw)?;
    Ok(0)
}

fn reboot(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    const MAGIC: u32 = 0xfee1_dead;
    const MAGIC2: [u32; 4] = [672_274_793, 85_072_278, 369_367_448, 537_993_216];
    const RESTART: u32 = 0x0123_4567;
    const HALT: u32 = 0xcdef_0123;
    const POWER_OFF: u32 = 0x4321_fedc;
    const CTRL_ALT_DEL: [u32; 2] = [0, 0x89ab_cdef];
    me.require(Capability::SysBoot, cx)?;
    let [magic, magic2, command] = [0, 1, 2].map(|index| args.int(index) as u32);
    if magic != MAGIC || !MAGIC2.contains(&magic2) {
        return Err(Errno::EINVAL.into());
    }
    match command {
        POWER_OFF | HALT => {
            crate::log!("power off");
            reboot::power_off(cx)
        }
        RESTART => {
            crate::log!("restart");
            reboot::restart(cx)
        }
        _ if CTRL_ALT_DEL.contains(&command) => Ok(0),
        _ => Err(Errno::EINVAL.into()),
    }
}

const PERSONALITY_KIND: u32 = 0xff;
const PER_LINUX32: u32 = 8;
const UNAME26: u32 = 0x2_0000;

fn personality(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    const ASK: u32 = 0xffff_ffff;
    let thread = me.thread(cx)?;
    let old = thread.personality.load(Ordering::Relaxed);
    let raw = args.int(0) as u32;
    if raw != ASK {
        thread.personality.store(raw, Ordering::Relaxed);
    }
    Ok(old as usize)
}

/// On one running core every barrier holds; only the registrations are kept.
fn membarrier(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    const QUERY: i32 = 0;
    const GLOBAL: i32 = 1;
    const GLOBAL_EXPEDITED: i32 = 2;
    const REGISTER_GLOBAL_EXPEDITED: i32 = 4;
    const PRIVATE_EXPEDITED: i32 = 8;
    const REGISTER_PRIVATE_EXPEDITED: i32 = 16;
    const PRIVATE_EXPEDITED_SYNC_CORE: i32 = 32;
    const REGISTER_PRIVATE_EXPEDITED_SYNC_CORE: i32 = 64;
    const ALL: i32 = GLOBAL
        | GLOBAL_EXPEDITED
        | REGISTER_GLOBAL_EXPEDITED
        | PRIVATE_EXPEDITED
        | REGISTER_PRIVATE_EXPEDITED
        | PRIVATE_EXPEDITED_SYNC_CORE
        | REGISTER_PRIVATE_EXPEDITED_SYNC_CORE;
    if args.int(1) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let registered = &me.process(cx)?.barriers;
    match args.int(0) {
        QUERY => return Ok(ALL as usize),
        GLOBAL | GLOBAL_EXPEDITED => {}
        register @ (REGISTER_GLOBAL_EXPEDITED | REGISTER_PRIVATE_EXPEDITED | REGISTER_PRIVATE_EXPEDITED_SYNC_CORE) => {
            registered.fetch_or(register as u32, Ordering::Relaxed);
        }
        // The registration of each is the next bit.
        command @ (PRIVATE_EXPEDITED | PRIVATE_EXPEDITED_SYNC_CORE) => {
            if registered.load(Ordering::Relaxed) & (command as u32) << 1 == 0 {
                return Err(Errno::EPERM.into());
            }
        }
        _ => return Err(Errno::EINVAL.into()),
    }
    Ok(0)
}
