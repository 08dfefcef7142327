//! fcntl(2) and ioctl(2) about the signals of an open file: whom they go to, which they are, and what they tell of.

use frame::Cx;
use linux_raw_sys::general as abi;
use linux_raw_sys::ioctl::{FIOGETOWN, FIOSETOWN, SIOCGPGRP, SIOCSPGRP};
use refs::{StrongRc, TempRc};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::notify::dnotify;
use crate::fs::{LockKind, OpenFile, fasync, leases};
use crate::net::socket_of;
use crate::process::{self, FileOwner, Recipient};
use crate::step::Step;
use crate::user_memory::Argument;

/// `struct f_owner_ex`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct OwnerArgument {
    kind: u32,
    id: i32,
}

/// F_SETOWN, F_GETOWN and their relatives, F_SETSIG, F_GETSIG, F_NOTIFY, F_SETLEASE, F_GETLEASE.
///
/// # Errors
/// Those of fcntl(2). A fault.
pub fn control(
    open: &TempRc<'_, OpenFile>,
    fd: i32,
    command: u32,
    argument: Argument,
    me: &Current,
    cx: &Cx,
) -> Step<usize> {
    match command {
        abi::F_SETOWN => set_owner(open, argument.value() as i32, me, cx)?,
        abi::F_GETOWN => return Ok(owner_number(open, cx) as isize as usize),
        abi::F_SETOWN_EX => {
            let OwnerArgument { kind, id } = me.memory(cx)?.read(argument.input::<OwnerArgument>())?;
            open.set_owner(find(kind, id, me, cx)?, cx);
        }
        abi::F_GETOWN_EX => {
            let (kind, id) = owner(open, cx);
            me.memory(cx)?.write(argument.output::<OwnerArgument>(), &OwnerArgument { kind, id })?;
        }
        abi::F_SETSIG => open.set_io_signal(argument.value() as i32)?,
        abi::F_GETSIG => return Ok(open.io_signal().into()),
        abi::F_NOTIFY => notify(open, fd, argument.value() as u32, me, cx)?,
        abi::F_SETLEASE => {
            let kind = match argument.value() as u32 {
                abi::F_RDLCK => Some(LockKind::Shared),
                abi::F_WRLCK => Some(LockKind::Exclusive),
                abi::F_UNLCK => None,
                _ => return Err(Errno::EINVAL.into()),
            };
            leases::set(open, fd, kind, || made(Recipient::Process(me.process), me, cx), me, cx)?;
        }
        abi::F_GETLEASE => {
            let kind = match open.inode(cx)?.leases.of(open.downgrade(), cx)? {
                Some(LockKind::Shared) => abi::F_RDLCK,
                Some(LockKind::Exclusive) => abi::F_WRLCK,
                None => abi::F_UNLCK,
            };
            return Ok(kind as usize);
        }
        _ => return Err(Errno::EINVAL.into()),
    }
    Ok(0)
}

/// FIOSETOWN and its relatives, of a socket; `None` for other requests and files.
pub fn ioctl(
    open: &TempRc<'_, OpenFile>,
    request: u32,
    argument: Argument,
    me: &Current,
    cx: &Cx,
) -> Step<Option<usize>> {
    match request {
        FIOSETOWN | SIOCSPGRP if socket_of(open).is_ok() => {
            let number = me.memory(cx)?.read(argument.input::<i32>())?;
            set_owner(open, number, me, cx)?;
        }
        FIOGETOWN | SIOCGPGRP if socket_of(open).is_ok() => {
            me.memory(cx)?.write(argument.output::<i32>(), &owner_number(open, cx))?;
        }
        _ => return Ok(None),
    }
    Ok(Some(0))
}

/// FIOASYNC.
///
/// # Errors
/// ENOTTY: the file is of a kind that sends no signals. ENOMEM.
pub fn set_signal_driven(open: &TempRc<'_, OpenFile>, fd: i32, on: bool, me: &Current, cx: &Cx) -> Result<()> {
    if fasync::set_signal_driven(open, fd, on, me, cx)? { Ok(()) } else { Err(Errno::ENOTTY) }
}

/// The owner of that kind and number; nobody for number 0.
fn find(kind: u32, id: i32, me: &Current, cx: &Cx) -> Result<Option<StrongRc<dyn fasync::SignalTarget>>> {
    if kind > abi::F_OWNER_PGRP {
        return Err(Errno::EINVAL);
    }
    if id == 0 {
        return Ok(None);
    }
    let id = u32::try_from(id).map_err(|_| Errno::ESRCH)?;
    let recipient = match kind {
        abi::F_OWNER_TID => process::THREADS.weak(id, cx).map(Recipient::Thread),
        abi::F_OWNER_PID => process::PROCESSES.weak(id, cx).map(Recipient::Process),
        _ => process::group_session(id, cx).map(|_| Recipient::Group(id)),
    };
    Ok(Some(made(recipient.ok_or(Errno::ESRCH)?, me, cx)?))
}

fn made(recipient: Recipient, me: &Current, cx: &Cx) -> Result<StrongRc<dyn fasync::SignalTarget>> {
    crate::memory::admit()?;
    let owner = FileOwner::new(recipient, &me.thread(cx)?.credentials.lock(cx));
    Ok(StrongRc::new(owner).unsize(|owner| owner))
}

/// F_SETOWN: a process, a group if negative, nobody if 0.
fn set_owner(open: &OpenFile, number: i32, me: &Current, cx: &Cx) -> Result<()> {
    let kind = if number < 0 { abi::F_OWNER_PGRP } else { abi::F_OWNER_PID };
    let id = number.checked_abs().ok_or(Errno::EINVAL)?;
    open.set_owner(find(kind, id, me, cx)?, cx);
    Ok(())
}

/// The owner's kind and number, as F_GETOWN_EX tells them; number 0 if there is none any more.
fn owner(open: &OpenFile, cx: &Cx) -> (u32, i32) {
    let Some(target) = open.owner(cx) else { return (abi::F_OWNER_TID, 0) };
    let any: &dyn core::any::Any = &*target;
    let Some(owner) = any.downcast_ref::<FileOwner>() else { return (abi::F_OWNER_TID, 0) };
    match owner.recipient {
        Recipient::Thread(thread) => {
            (abi::F_OWNER_TID, thread.upgrade(cx).map_or(0, |thread| thread.tid().cast_signed()))
        }
        Recipient::Process(process) => {
            (abi::F_OWNER_PID, process.upgrade(cx).map_or(0, |process| process.pid.cast_signed()))
        }
        Recipient::Group(group) => {
            let is_there = process::group_session(group, cx).is_some();
            (abi::F_OWNER_PGRP, if is_there { group.cast_signed() } else { 0 })
        }
    }
}

/// The owner as F_GETOWN tells it: a group's number is negative.
fn owner_number(open: &OpenFile, cx: &Cx) -> i32 {
    match owner(open, cx) {
        (abi::F_OWNER_PGRP, id) => -id,
        (_, id) => id,
    }
}

/// F_NOTIFY.
fn notify(open: &TempRc<'_, OpenFile>, fd: i32, events: u32, me: &Current, cx: &Cx) -> Result<()> {
    if events & !abi::DN_MULTISHOT == 0 {
        dnotify::unwatch(open, &*me.files(cx)?);
        return Ok(());
    }
    dnotify::watch(open, &me.files(cx)?, fd, events, cx)?;
    if open.owner(cx).is_none() {
        let recipient = Recipient::Process(me.process(cx)?.downgrade());
        open.set_owner(Some(made(recipient, me, cx)?), cx);
    }
    Ok(())
}
