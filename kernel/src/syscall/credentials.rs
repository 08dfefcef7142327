//! Who a thread acts for.

use frame::Cx;
use linux_raw_sys::general as abi;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Args, Call, Entry};
use crate::credentials::{Capability, CapabilitySet, Credentials, Gid, Uid};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::process;
use crate::step::Step;
use crate::user_memory::UserOut;

/// The calls of this file.
pub const CALLS: &[Entry] = &[
    Entry::new(abi::__NR_getuid, "getuid", Call::Step(|cx, me, _| get(cx, me, |who| who.users().real.number()))),
    Entry::new(abi::__NR_geteuid, "geteuid", Call::Step(|cx, me, _| get(cx, me, |who| who.users().effective.number()))),
    Entry::new(abi::__NR_getgid, "getgid", Call::Step(|cx, me, _| get(cx, me, |who| who.groups().real.number()))),
    Entry::new(
        abi::__NR_getegid,
        "getegid",
        Call::Step(|cx, me, _| get(cx, me, |who| who.groups().effective.number())),
    ),
    Entry::new(abi::__NR_setuid, "setuid", Call::Step(|cx, me, args| set(cx, me, |who| who.set_uid(id(args, 0))))),
    Entry::new(abi::__NR_setgid, "setgid", Call::Step(|cx, me, args| set(cx, me, |who| who.set_gid(id(args, 0))))),
    Entry::new(
        abi::__NR_setreuid,
        "setreuid",
        Call::Step(|cx, me, args| set(cx, me, |who| who.set_re_uid([id(args, 0), id(args, 1)]))),
    ),
    Entry::new(
        abi::__NR_setregid,
        "setregid",
        Call::Step(|cx, me, args| set(cx, me, |who| who.set_re_gid([id(args, 0), id(args, 1)]))),
    ),
    Entry::new(
        abi::__NR_setresuid,
        "setresuid",
        Call::Step(|cx, me, args| set(cx, me, |who| who.set_res_uid([id(args, 0), id(args, 1), id(args, 2)]))),
    ),
    Entry::new(
        abi::__NR_setresgid,
        "setresgid",
        Call::Step(|cx, me, args| set(cx, me, |who| who.set_res_gid([id(args, 0), id(args, 1), id(args, 2)]))),
    ),
    Entry::new(
        abi::__NR_getresuid,
        "getresuid",
        Call::Step(|cx, me, args| {
            get_three(cx, me, args, |who| {
                let users = who.users();
                [users.real, users.effective, users.saved].map(Uid::number)
            })
        }),
    ),
    Entry::new(
        abi::__NR_getresgid,
        "getresgid",
        Call::Step(|cx, me, args| {
            get_three(cx, me, args, |who| {
                let groups = who.groups();
                [groups.real, groups.effective, groups.saved].map(Gid::number)
            })
        }),
    ),
    Entry::new(
        abi::__NR_setfsuid,
        "setfsuid",
        Call::Step(|cx, me, args| {
            let old = me.thread(cx)?.change_credentials(cx, |who| Ok(who.set_fs_uid(id(args, 0))))?;
            Ok(old.number() as usize)
        }),
    ),
    Entry::new(
        abi::__NR_setfsgid,
        "setfsgid",
        Call::Step(|cx, me, args| {
            let old = me.thread(cx)?.change_credentials(cx, |who| Ok(who.set_fs_gid(id(args, 0))))?;
            Ok(old.number() as usize)
        }),
    ),
    Entry::new(abi::__NR_getgroups, "getgroups", Call::Step(getgroups)),
    Entry::new(abi::__NR_setgroups, "setgroups", Call::Step(setgroups)),
    Entry::new(abi::__NR_capget, "capget", Call::Step(capget)),
    Entry::new(abi::__NR_capset, "capset", Call::Step(capset)),
];

/// NGROUPS_MAX.
const MAX_GROUPS: usize = 65536;

fn id(args: &Args, index: usize) -> u32 {
    args.int(index) as u32
}

#[inline(always)]
fn get(cx: &Cx, me: &Current, which: impl Fn(&Credentials) -> u32) -> Step<usize> {
    Ok(which(&me.thread(cx)?.credentials.lock(cx)) as usize)
}

fn set(cx: &Cx, me: &Current, change: impl FnOnce(&mut Credentials) -> Result<()>) -> Step<usize> {
    me.thread(cx)?.change_credentials(cx, change)?;
    Ok(0)
}

fn get_three(cx: &Cx, me: &Current, args: &Args, which: impl Fn(&Credentials) -> [u32; 3]) -> Step<usize> {
    let ids = which(&me.thread(cx)?.credentials.lock(cx));
    for (index, id) in ids.iter().enumerate() {
        me.memory(cx)?.write(args.output::<u32>(index), id)?;
    }
    Ok(0)
}

fn getgroups(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let size = usize::try_from(args.int(0)).map_err(|_| Errno::EINVAL)?;
    let groups = me.thread(cx)?.credentials.lock(cx).supplementary().to_vec();
    if size != 0 {
        if size < groups.len() {
            return Err(Errno::EINVAL.into());
        }
        me.memory(cx)?.write_slice(args.output::<u32>(1).slice(size), &groups)?;
    }
    Ok(groups.len())
}

fn setgroups(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let size = usize::try_from(args.int(0)).ok().filter(|&size| size <= MAX_GROUPS).ok_or(Errno::EINVAL)?;
    me.require(Capability::Setgid, cx)?;
    let groups = me.memory(cx)?.read_slice(args.input::<u32>(1).slice(size))?;
    me.thread(cx)?.change_credentials(cx, |who| who.set_supplementary(groups))?;
    Ok(0)
}

/// `struct __user_cap_header_struct`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct CapHeader {
    version: u32,
    pid: i32,
}

/// `struct __user_cap_data_struct`: 32 capabilities.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct CapData {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// How many [`CapData`] the version of the header has. Writes the version that is liked best where there is no such version.
fn cap_words(header: &CapHeader, version: UserOut<u32>, me: &Current, cx: &Cx) -> Step<usize> {
    match header.version {
        abi::_LINUX_CAPABILITY_VERSION_1 => Ok(1),
        abi::_LINUX_CAPABILITY_VERSION_2 | abi::_LINUX_CAPABILITY_VERSION_3 => Ok(2),
        _ => {
            me.memory(cx)?.write(version, &abi::_LINUX_CAPABILITY_VERSION_3)?;
            Err(Errno::EINVAL.into())
        }
    }
}

fn capget(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let memory = me.memory(cx)?;
    let header = memory.read(args.input::<CapHeader>(0))?;
    let words = match cap_words(&header, args.output::<u32>(0), me, cx) {
        // To ask for the version is no error.
        Err(crate::step::Stop::Error(Errno::EINVAL)) if args.output::<CapData>(1).is_null() => return Ok(0),
        other => other?,
    };
    let who = match header.pid {
        0 => me.thread(cx)?.credentials.lock(cx).clone(),
        pid if pid < 0 => return Err(Errno::EINVAL.into()),
        pid => process::find_thread(pid as u32, cx).ok_or(Errno::ESRCH)?.credentials.lock(cx).clone(),
    };
    let Some(raw) = args.output::<CapData>(1).non_null() else { return Ok(0) };
    let sets = who.capabilities();
    let part = |shift: usize| CapData {
        effective: (sets.effective.bits() >> shift) as u32,
        permitted: (sets.permitted.bits() >> shift) as u32,
        inheritable: (sets.inheritable.bits() >> shift) as u32,
    };
    let data = [part(0), part(32)];
    memory.write_slice(raw.slice(words), &data)?;
    Ok(0)
}

fn capset(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let memory = me.memory(cx)?;
    let header = memory.read(args.input::<CapHeader>(0))?;
    let words = cap_words(&header, args.output::<u32>(0), me, cx)?;
    let thread = me.thread(cx)?;
    if header.pid != 0 && header.pid != thread.tid() as i32 {
        return Err(Errno::EPERM.into());
    }
    let data = memory.read_slice(args.input::<CapData>(1).slice(words))?;
    let join = |part: fn(&CapData) -> u32| {
        let bits = data.iter().enumerate().fold(0, |all, (index, data)| all | u64::from(part(data)) << (32 * index));
        CapabilitySet::from_bits(bits)
    };
    let (effective, permitted) = (join(|data| data.effective), join(|data| data.permitted));
    let inheritable = join(|data| data.inheritable);
    thread.change_credentials(cx, |who| who.set_capabilities(effective, permitted, inheritable))?;
    Ok(0)
}
