//! Whether two processes have the same thing: kcmp(2).

use frame::Cx;
use linux_raw_sys::general as abi;
use refs::{StrongRc, TempRc, WeakRc};

use super::{Args, Call, Entry};
use crate::credentials::TraceAs;
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::{FileTable, OpenFile};
use crate::process::{self, Thread};
use crate::step::Step;

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[Entry::partial(abi::__NR_kcmp, "kcmp", Call::Step(kcmp), "KCMP_EPOLL_TFD")];

/// KCMP_*: `enum kcmp_type` of Linux's `kcmp.h`.
const FILE: u32 = 0;
const MEMORY: u32 = 1;
const FILES: u32 = 2;
const PLACES: u32 = 3;
const ACTIONS: u32 = 4;
const IO_CONTEXT: u32 = 5;
const UNDO_LIST: u32 = 6;

/// What kcmp(2) says of two things.
const SAME: usize = 0;
/// They are not the same, and have no order.
const DIFFERENT: usize = 3;

fn kcmp(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let (one, other) = (thread(args.int(0), cx)?, thread(args.int(1), cx)?);
    let check = || {
        let may_be_seen = me.may_trace(&one, TraceAs::Real, cx)? && me.may_trace(&other, TraceAs::Real, cx)?;
        if may_be_seen { Ok(()) } else { Err(Errno::EPERM) }
    };
    check()?;
    let is_same = match args.int(2) as u32 {
        FILE => file(&one, args.int(3), cx)? == file(&other, args.int(4), cx)?,
        MEMORY => of_both(&one, &other, |thread| thread.space.lock(cx).as_ref().map(StrongRc::downgrade)),
        FILES => of_both(&one, &other, |thread| thread.files.lock(cx).as_ref().map(StrongRc::downgrade)),
        PLACES => of_both(&one, &other, |thread| thread.fs.lock(cx).as_ref().map(StrongRc::downgrade)),
        ACTIONS => {
            let actions = |thread: &Thread| Ok(thread.process(cx)?.with_actions(cx, StrongRc::downgrade));
            let (one, other): (Result<_>, Result<_>) = (actions(&one), actions(&other));
            one? == other?
        }
        // Nobody has any of these.
        IO_CONTEXT | UNDO_LIST => true,
        _ => return Err(Errno::EINVAL.into()),
    };
    // Once more: by execve(2) one of them may have got more rights, and other things, in between.
    check()?;
    Ok(if is_same { SAME } else { DIFFERENT })
}

fn thread(tid: i32, cx: &Cx) -> Result<TempRc<'_, Thread>> {
    u32::try_from(tid).ok().and_then(|tid| process::find_thread(tid, cx)).ok_or(Errno::ESRCH)
}

/// Whether what `of` says of both threads is equal.
fn of_both<T: PartialEq>(one: &Thread, other: &Thread, of: impl Fn(&Thread) -> Option<T>) -> bool {
    of(one) == of(other)
}

/// The open file that a thread has under a descriptor.
///
/// # Errors
/// EBADF.
fn file(thread: &Thread, fd: i32, cx: &Cx) -> Result<WeakRc<OpenFile>> {
    Ok(files(thread, cx)?.get_even_path(fd, cx)?.downgrade())
}

/// One more owner of the open file that a thread has under a descriptor. Others may see its end from now on.
///
/// # Errors
/// EBADF.
pub(super) fn share_file(thread: &Thread, fd: i32, cx: &Cx) -> Result<StrongRc<OpenFile>> {
    files(thread, cx)?.get_exported_even_path(fd, cx)?.share().ok_or(Errno::EBADF)
}

fn files<'cx>(thread: &Thread, cx: &'cx Cx) -> Result<TempRc<'cx, FileTable>> {
    let table = thread.files.lock(cx).as_ref().map(StrongRc::downgrade);
    table.and_then(|table| table.upgrade(cx).ok()).ok_or(Errno::EBADF)
}
