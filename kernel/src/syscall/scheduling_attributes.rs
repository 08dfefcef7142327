//! How a thread is scheduled, in one structure: sched_getattr(2), sched_setattr(2).

use alloc::vec::Vec;

use frame::Cx;
use frame::mm::PAGE_SIZE;
use linux_raw_sys::general as abi;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use super::scheduling::{change, class, class_number, parameters, thread};
use super::{Args, Call, Entry};
use crate::current::Current;
use crate::error::Errno;
use crate::sched::{Class, Parameters};
use crate::step::Step;

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[
    Entry::new(abi::__NR_sched_getattr, "sched_getattr", Call::Step(sched_getattr)),
    Entry::partial(
        abi::__NR_sched_setattr,
        "sched_setattr",
        Call::Step(sched_setattr),
        "SCHED_DEADLINE, bounds of utilization",
    ),
];

/// `struct sched_attr`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
    least_utilization: u32,
    most_utilization: u32,
}

/// Its size in the first version.
const FIRST_SIZE: usize = 48;

/// SCHED_FLAG_*.
const RESET_ON_FORK: u64 = 1;
const KEEP_POLICY: u64 = 8;
const KEEP_PARAMETERS: u64 = 0x10;
const UTILIZATION: u64 = 0x60;
const KNOWN_FLAGS: u64 = 0x7f;

fn is_real_time(class: Class) -> bool {
    matches!(class, Class::Fifo | Class::RoundRobin)
}

fn sched_getattr(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let to = args.output::<u8>(1).non_null().ok_or(Errno::EINVAL)?;
    let size = args.int(2) as u32 as usize;
    if !(FIRST_SIZE..=PAGE_SIZE).contains(&size) || args.int(3) != 0 || args.int(0) < 0 {
        return Err(Errno::EINVAL.into());
    }
    let Parameters { class, nice, priority, reset_on_fork, .. } = parameters(&*thread(args.int(0), me, cx)?, cx);
    let size = size.min(size_of::<Attributes>());
    let raw = Attributes {
        size: size as u32,
        policy: class_number(class),
        flags: if reset_on_fork { RESET_ON_FORK } else { 0 },
        nice: if is_real_time(class) { 0 } else { nice.into() },
        priority: priority.into(),
        ..Attributes::new_zeroed()
    };
    me.memory(cx)?.write_slice(to.slice(size), &raw.as_bytes()[..size])?;
    Ok(0)
}

fn sched_setattr(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    if args.input::<u8>(1).is_null() || args.int(0) < 0 || args.int(2) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let raw = read(me, args, cx)?;
    if raw.policy > i32::MAX as u32 || raw.flags & !KNOWN_FLAGS != 0 {
        return Err(Errno::EINVAL.into());
    }
    if raw.flags & UTILIZATION != 0 {
        return Err(Errno::EOPNOTSUPP.into());
    }
    let thread = thread(args.int(0), me, cx)?;
    let old = parameters(&thread, cx);
    let asked = if raw.flags & KEEP_POLICY != 0 { old.class } else { class(raw.policy)? };
    // As on Linux: who keeps the parameters keeps the policy too.
    let class = if raw.flags & KEEP_PARAMETERS != 0 { old.class } else { asked };
    let (nice, priority) = match raw.flags & KEEP_PARAMETERS {
        0 => (raw.nice.clamp(-20, 19) as i8, i32::try_from(raw.priority).map_err(|_| Errno::EINVAL)?),
        _ => (old.nice, old.priority.into()),
    };
    let nice = if is_real_time(class) { old.nice } else { nice };
    change(&thread, class, raw.flags & RESET_ON_FORK != 0, (priority, nice), me, cx)
}

/// Reads a structure of any version.
///
/// # Errors
/// E2BIG: it is of no version, which the known size is told for, or has something behind what is known.
fn read(me: &Current, args: &Args, cx: &Cx) -> Step<Attributes> {
    let memory = me.memory(cx)?;
    let size = match memory.read(args.input::<u32>(1))? as usize {
        0 => FIRST_SIZE,
        size => size,
    };
    let too_big = || -> Step<Attributes> {
        memory.write(args.output::<u32>(1), &(size_of::<Attributes>() as u32))?;
        Err(Errno::E2BIG.into())
    };
    if !(FIRST_SIZE..=PAGE_SIZE).contains(&size) {
        return too_big();
    }
    let bytes: Vec<u8> = memory.read_slice(args.input::<u8>(1).slice(size))?;
    let mut raw = Attributes::new_zeroed();
    let (known, rest) = bytes.split_at(size.min(size_of::<Attributes>()));
    if rest.iter().any(|byte| *byte != 0) {
        return too_big();
    }
    raw.as_mut_bytes()[..known.len()].copy_from_slice(known);
    Ok(raw)
}
