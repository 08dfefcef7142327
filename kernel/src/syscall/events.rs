//! Descriptors that are events: eventfd, timerfd, signalfd.

use alloc::boxed::Box;

use frame::Cx;
use linux_raw_sys::general as abi;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Args, Call, Entry};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::event::signalfd::SignalFd;
use crate::event::{EventFd, Setting, TimerFd};
use crate::fs::{FdFlags, File, OpenFile, OpenFlags, reserve_fd};
use crate::signal::SignalSet;
use crate::step::Step;
use crate::time::Timeline;
use crate::time::clock::TimeSpec;

/// The calls of this file.
pub const CALLS: &[Entry] = &[
    Entry::new(abi::__NR_eventfd, "eventfd", Call::Step(|cx, me, args| eventfd(args.int(0) as u32, 0, me, cx))),
    Entry::new(
        abi::__NR_eventfd2,
        "eventfd2",
        Call::Step(|cx, me, args| eventfd(args.int(0) as u32, args.int(1) as u32, me, cx)),
    ),
    Entry::new(abi::__NR_timerfd_create, "timerfd_create", Call::Step(timerfd_create)),
    Entry::new(abi::__NR_timerfd_settime, "timerfd_settime", Call::Step(timerfd_settime)),
    Entry::new(abi::__NR_timerfd_gettime, "timerfd_gettime", Call::Step(timerfd_gettime)),
    Entry::partial(
        abi::__NR_signalfd,
        "signalfd",
        Call::Step(|cx, me, args| signalfd(args, 0, me, cx)),
        "polled by another process than its maker it still looks at the maker's signals",
    ),
    Entry::partial(
        abi::__NR_signalfd4,
        "signalfd4",
        Call::Step(|cx, me, args| signalfd(args, args.int(3) as u32, me, cx)),
        "polled by another process than its maker it still looks at the maker's signals",
    ),
];

/// Enters a description with the flags that all of these calls share with open(2).
fn install(file: Box<dyn File>, flags: u32, me: &Current, cx: &Cx) -> Step<usize> {
    crate::memory::admit()?;
    let flags = OpenFlags::from_bits_retain(flags);
    let file = OpenFile::new(file, flags & OpenFlags::NONBLOCK | OpenFlags::READ_WRITE);
    Ok(reserve_fd(me, cx)?.fill(file, FdFlags::of(flags), cx))
}

fn eventfd(count: u32, flags: u32, me: &Current, cx: &Cx) -> Step<usize> {
    if flags & !(abi::EFD_SEMAPHORE | abi::EFD_CLOEXEC | abi::EFD_NONBLOCK) != 0 {
        return Err(Errno::EINVAL.into());
    }
    install(Box::new(EventFd::new(count, flags & abi::EFD_SEMAPHORE != 0)), flags, me, cx)
}

fn timerfd_create(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let (clock, flags) = (args.int(0) as u32, args.int(1) as u32);
    let is_known = matches!(
        clock,
        abi::CLOCK_REALTIME
            | abi::CLOCK_MONOTONIC
            | abi::CLOCK_BOOTTIME
            | abi::CLOCK_REALTIME_ALARM
            | abi::CLOCK_BOOTTIME_ALARM
    );
    if !is_known || flags & !(abi::TFD_CLOEXEC | abi::TFD_NONBLOCK) != 0 {
        return Err(Errno::EINVAL.into());
    }
    crate::memory::admit()?;
    let flags = OpenFlags::from_bits_retain(flags);
    let file = OpenFile::new(Box::new(TimerFd::new(clock)), flags & OpenFlags::NONBLOCK | OpenFlags::READ_WRITE);
    Ok(reserve_fd(me, cx)?.fill_counted(file, FdFlags::of(flags), cx))
}

/// `struct itimerspec`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct TimerSpec {
    interval: TimeSpec,
    value: TimeSpec,
}

impl TimerSpec {
    fn new(setting: Setting) -> Self {
        let value = setting.deadline.map_or(0, |deadline| deadline.saturating_sub(setting.timeline.now()).max(1));
        TimerSpec { interval: TimeSpec::from_nanoseconds(setting.interval), value: TimeSpec::from_nanoseconds(value) }
    }

    fn setting(self, clock: u32, is_absolute: bool) -> Result<Setting> {
        let (value, interval) = (self.value.nanoseconds()?, self.interval.nanoseconds()?);
        let is_wall = is_absolute && is_wall_clock(clock);
        let timeline = if is_wall { Timeline::Wall } else { Timeline::Boot };
        let deadline = || if is_absolute { value } else { frame::time::now().saturating_add(value) };
        Ok(Setting { timeline, deadline: (value != 0).then(deadline), interval })
    }
}

/// Whether a clock can be set.
fn is_wall_clock(clock: u32) -> bool {
    matches!(clock, abi::CLOCK_REALTIME | abi::CLOCK_REALTIME_ALARM)
}

fn timerfd_settime(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let flags = args.int(1) as u32;
    if flags & !(abi::TFD_TIMER_ABSTIME | abi::TFD_TIMER_CANCEL_ON_SET) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let memory = me.memory(cx)?;
    let spec = memory.read(args.input::<TimerSpec>(2))?;
    let open = me.files(cx)?.get(args.int(0), cx)?;
    let timer = open.kind::<TimerFd>().ok_or(Errno::EINVAL)?;
    let setting = spec.setting(timer.clock, flags & abi::TFD_TIMER_ABSTIME != 0)?;
    // Written first: a fault leaves the timer as it was.
    if let Some(old) = args.output::<TimerSpec>(3).non_null() {
        memory.write(old, &TimerSpec::new(timer.setting(cx)))?;
    }
    let both = abi::TFD_TIMER_ABSTIME | abi::TFD_TIMER_CANCEL_ON_SET;
    timer.set(setting, flags & both == both && is_wall_clock(timer.clock), cx);
    Ok(0)
}

fn timerfd_gettime(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let open = me.files(cx)?.get(args.int(0), cx)?;
    let timer = open.kind::<TimerFd>().ok_or(Errno::EINVAL)?;
    me.memory(cx)?.write(args.output::<TimerSpec>(1), &TimerSpec::new(timer.setting(cx)))?;
    Ok(0)
}

fn signalfd(args: &Args, flags: u32, me: &Current, cx: &Cx) -> Step<usize> {
    if args.long(2) != size_of::<u64>() || flags & !(abi::O_CLOEXEC | abi::O_NONBLOCK) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let set = SignalSet(me.memory(cx)?.read(args.input::<u64>(1))?);
    let fd = args.int(0);
    if fd == -1 {
        return install(Box::new(SignalFd::new(set, me.process)), flags, me, cx);
    }
    let open = me.files(cx)?.get(fd, cx)?;
    open.kind::<SignalFd>().ok_or(Errno::EINVAL)?.change(set);
    me.process(cx)?.signal_arrived.wake_all();
    Ok(fd as usize)
}
