//! epoll.

use alloc::boxed::Box;

use frame::Cx;
use linux_raw_sys::general as abi;

use super::poll::{nothing_in_time, patience_of_milliseconds, patience_of_timespec_async, set_mask_async};
use super::{Args, Call, Entry};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::event::{Change, Epoll, EpollEvent, late_wakes};
use crate::fs::{FdFlags, OpenFile, OpenFlags, reserve_fd};
use crate::step::{Patience, Step, Stop, complete_async};
use crate::time::clock::TimeSpec;

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[
    Entry::new(abi::__NR_epoll_create, "epoll_create", Call::Step(epoll_create)),
    Entry::new(abi::__NR_epoll_create1, "epoll_create1", Call::Step(epoll_create1)),
    Entry::new(abi::__NR_epoll_ctl, "epoll_ctl", Call::Step(epoll_ctl)),
    Entry::new(abi::__NR_epoll_wait, "epoll_wait", Call::Async(epoll_wait_async)),
    Entry::new(abi::__NR_epoll_pwait, "epoll_pwait", Call::Async(epoll_pwait_async)),
    Entry::new(abi::__NR_epoll_pwait2, "epoll_pwait2", Call::Async(epoll_pwait2_async)),
];

fn epoll_create(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    if args.int(0) <= 0 {
        return Err(Errno::EINVAL.into());
    }
    create(OpenFlags::empty(), me, cx)
}

fn epoll_create1(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let flags = OpenFlags::from_bits_retain(args.int(0) as u32);
    if !OpenFlags::CLOSE_ON_EXEC.contains(flags) {
        return Err(Errno::EINVAL.into());
    }
    create(flags, me, cx)
}

fn create(flags: OpenFlags, me: &Current, cx: &Cx) -> Step<usize> {
    crate::memory::admit()?;
    let file = OpenFile::new(Box::new(Epoll::new(&me.process(cx)?.payer(cx))), OpenFlags::READ_WRITE);
    Ok(reserve_fd(me, cx)?.fill(file, FdFlags::of(flags), cx))
}

fn epoll_ctl(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let change = match args.int(1) as u32 {
        abi::EPOLL_CTL_ADD => Some(Change::Add),
        abi::EPOLL_CTL_MOD => Some(Change::Modify),
        abi::EPOLL_CTL_DEL => Some(Change::Delete),
        _ => None,
    };
    let event = match change {
        Some(Change::Delete) => EpollEvent::default(),
        _ => me.memory(cx)?.read(args.input::<EpollEvent>(3))?,
    };
    let files = me.files(cx)?;
    let (set, file) = match change {
        Some(Change::Add) => files.watch(args.int(0), args.int(2), cx)?,
        _ => (files.weak(args.int(0), cx)?, files.weak(args.int(2), cx)?),
    };
    let open = set.upgrade(cx).map_err(|_| Errno::EBADF)?;
    let epoll = open.kind::<Epoll>().filter(|_| set != file).ok_or(Errno::EINVAL)?;
    epoll.control(set, change.ok_or(Errno::EINVAL)?, (args.int(2), file), event, me, cx)?;
    Ok(0)
}

fn epoll_wait_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    wait_async(cx, me, args, patience_of_milliseconds(args.int(3)))
}

fn epoll_pwait_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    set_mask_async(cx, me, args.input::<u64>(4), args.long(5))?;
    wait_async(cx, me, args, patience_of_milliseconds(args.int(3)))
}

fn epoll_pwait2_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let patience = patience_of_timespec_async(cx, me, args.input::<TimeSpec>(3))?;
    set_mask_async(cx, me, args.input::<u64>(4), args.long(5))?;
    wait_async(cx, me, args, patience)
}

fn wait_async(cx: &mut Cx, me: &mut Current, args: &Args, patience: Patience) -> Result<usize> {
    let max = usize::try_from(args.int(2)).map_err(|_| Errno::EINVAL)?;
    if max == 0 || max > i32::MAX as usize / size_of::<EpollEvent>() {
        return Err(Errno::EINVAL);
    }
    let events_at = args.output::<EpollEvent>(1).buffer(max)?;
    let set = me.files(cx)?.weak(args.int(0), cx)?;
    let result = complete_async(cx, me, patience, |cx, me, waker| {
        late_wakes::catch_up()?;
        let open = set.upgrade(cx).map_err(|_| Errno::EBADF)?;
        let epoll = open.kind::<Epoll>().ok_or(Errno::EINVAL)?;
        if let Some(waker) = waker {
            epoll.register(waker, cx);
            set.watch(waker, cx);
        }
        let memory = me.memory(cx)?;
        let mut left = events_at.slice();
        let reported = epoll.scan(max, me, cx, |events| {
            memory.write_slice(left, events)?;
            left = left.behind(events.len());
            Ok(())
        })?;
        if reported == 0 { Err(Stop::Block) } else { Ok(reported) }
    });
    nothing_in_time(result).map_err(|error| if error == Errno::RESTART_SYS { Errno::RESTART_NEVER } else { error })
}
