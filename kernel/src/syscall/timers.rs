//! Interval timers and POSIX timers.

use frame::Cx;
use linux_raw_sys::general as abi;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::signal_event::SignalEvent;
use super::{Args, Call, Entry};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::process::{self, Process, Thread};
use crate::signal::Signal;
use crate::step::Step;
use crate::time::clock::{Clock, TimeSpec, TimeVal};
use crate::time::posix_timers::{Interval, PosixClock, Target};
use crate::time::{SECOND, Setting, Timeline, TimerClock};

/// The calls of this file.
pub const CALLS: &[Entry] = &[
    Entry::partial(
        abi::__NR_setitimer,
        "setitimer",
        Call::Step(setitimer),
        "ITIMER_VIRTUAL counts time in the kernel too",
    ),
    Entry::new(abi::__NR_getitimer, "getitimer", Call::Step(getitimer)),
    Entry::new(abi::__NR_alarm, "alarm", Call::Step(alarm)),
    Entry::new(abi::__NR_timer_create, "timer_create", Call::Step(timer_create)),
    Entry::new(abi::__NR_timer_settime, "timer_settime", Call::Step(timer_settime)),
    Entry::new(abi::__NR_timer_gettime, "timer_gettime", Call::Step(timer_gettime)),
    Entry::new(abi::__NR_timer_getoverrun, "timer_getoverrun", Call::Step(timer_getoverrun)),
    Entry::new(abi::__NR_timer_delete, "timer_delete", Call::Step(timer_delete)),
];

/// `struct itimerval`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct IntervalValue {
    interval: TimeVal,
    value: TimeVal,
}

/// `struct itimerspec`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct IntervalSpec {
    interval: TimeSpec,
    value: TimeSpec,
}

impl IntervalValue {
    fn new(setting: Setting) -> Self {
        // A timer that is armed never shows 0.
        let left = setting.next.map_or(0, |next| next.max(1000));
        IntervalValue { interval: TimeVal::from_nanoseconds(setting.interval), value: TimeVal::from_nanoseconds(left) }
    }

    fn setting(self) -> Result<Setting> {
        let next = self.value.nanoseconds()?;
        Ok(Setting { next: (next > 0).then_some(next), interval: self.interval.nanoseconds()? })
    }
}

impl IntervalSpec {
    fn new(setting: Setting) -> Self {
        IntervalSpec {
            interval: TimeSpec::from_nanoseconds(setting.interval),
            value: TimeSpec::from_nanoseconds(setting.next.unwrap_or(0)),
        }
    }
}

fn which(number: i32) -> Result<Interval> {
    match number {
        0 => Ok(Interval::Real),
        1 => Ok(Interval::Virtual),
        2 => Ok(Interval::Profiling),
        _ => Err(Errno::EINVAL),
    }
}

fn setitimer(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let memory = me.memory(cx)?;
    let setting = match args.input::<IntervalValue>(1).non_null() {
        None => Setting::default(),
        Some(new) => memory.read(new)?.setting()?,
    };
    let which = which(args.int(0))?;
    let process = me.process(cx)?;
    if let Some(old) = args.output::<IntervalValue>(2).non_null() {
        memory.write(old, &IntervalValue::new(process.timers.interval(which, cx)))?;
    }
    process.timers.set_interval(which, &process, setting, cx);
    Ok(0)
}

fn getitimer(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let setting = me.process(cx)?.timers.interval(which(args.int(0))?, cx);
    me.memory(cx)?.write(args.output::<IntervalValue>(1), &IntervalValue::new(setting))?;
    Ok(0)
}

fn alarm(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let seconds = u64::from(args.int(0) as u32);
    let setting = Setting { next: (seconds > 0).then_some(seconds * SECOND), interval: 0 };
    let process = me.process(cx)?;
    let old = process.timers.set_interval(Interval::Real, &process, setting, cx);
    // Rounded to the nearest second, but an alarm that is to come is never told as none.
    Ok(old.next.map_or(0, |left| ((left + SECOND / 2) / SECOND).max(1)) as usize)
}

fn timer_create(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let memory = me.memory(cx)?;
    let event = args.input::<SignalEvent>(1).non_null().map(|event| memory.read(event)).transpose()?;
    let clock = match Clock::new(args.int(0))? {
        Clock::RealTime | Clock::Atomic => PosixClock::Wall,
        Clock::Monotonic => PosixClock::Timer(TimerClock::Clock(Timeline::Boot)),
        Clock::Process(0) => PosixClock::Timer(Process::cpu_clock(&me.process(cx)?, cx)),
        Clock::Thread(0) => PosixClock::Timer(Thread::cpu_clock(&me.thread(cx)?, cx)),
        Clock::Process(pid) => PosixClock::Timer(Process::cpu_clock(&process::find(pid, cx).ok_or(Errno::EINVAL)?, cx)),
        Clock::Thread(tid) => {
            PosixClock::Timer(Thread::cpu_clock(&process::find_thread(tid, cx).ok_or(Errno::EINVAL)?, cx))
        }
    };
    let target = event.map(|event| target(event, me, cx)).transpose()?;
    let process = me.process(cx)?;
    // Without an event: SIGALRM, with the timer's id as its value.
    let or_default = |id| target.unwrap_or(Target::Process(Signal::ALRM, u64::from(id)));
    let user = me.thread(cx)?.credentials.lock(cx).users().real;
    let id = process.timers.create(me.process, clock, or_default, user, cx)?;
    if let Err(fault) = memory.write(args.output::<u32>(2), &id) {
        process.timers.delete(&process, id, cx)?;
        return Err(fault.into());
    }
    Ok(0)
}

fn target(event: SignalEvent, me: &Current, cx: &Cx) -> Result<Target> {
    match event.notify as u32 {
        abi::SIGEV_NONE => Ok(Target::Nobody),
        abi::SIGEV_SIGNAL | abi::SIGEV_THREAD => Ok(Target::Process(Signal::new(event.signal)?, event.value)),
        abi::SIGEV_THREAD_ID => {
            let tid = u32::try_from(event.thread).map_err(|_| Errno::EINVAL)?;
            let thread = process::find_thread(tid, cx).filter(|thread| thread.process == me.process);
            let thread = thread.ok_or(Errno::EINVAL)?.downgrade();
            Ok(Target::Thread(thread, Signal::new(event.signal)?, event.value))
        }
        _ => Err(Errno::EINVAL),
    }
}

fn timer_settime(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let spec = args.input::<IntervalSpec>(2).non_null().ok_or(Errno::EINVAL)?;
    let memory = me.memory(cx)?;
    let spec = memory.read(spec)?;
    let (interval, value) = (spec.interval.nanoseconds()?, spec.value.nanoseconds()?);
    let absolute = args.int(1) as u32 & abi::TIMER_ABSTIME != 0;
    let process = me.process(cx)?;
    let id = args.int(0) as u32;
    let old = process.timers.with(id, cx, |timer| timer.remaining(cx))?;
    if let Some(raw) = args.output::<IntervalSpec>(3).non_null() {
        memory.write(raw, &IntervalSpec::new(old))?;
    }
    process.timers.with(id, cx, |timer| {
        let (clock, next) = timer.clock.resolve(value, absolute, cx);
        timer.set(clock, Setting { next: (value > 0).then_some(next), interval }, cx);
    })?;
    Ok(0)
}

fn timer_gettime(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let setting = me.process(cx)?.timers.with(args.int(0) as u32, cx, |timer| timer.remaining(cx))?;
    me.memory(cx)?.write(args.output::<IntervalSpec>(1), &IntervalSpec::new(setting))?;
    Ok(0)
}

fn timer_getoverrun(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    Ok(me.process(cx)?.timers.with(args.int(0) as u32, cx, |timer| timer.overrun(cx))? as usize)
}

fn timer_delete(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let process = me.process(cx)?;
    process.timers.delete(&process, args.int(0) as u32, cx)?;
    Ok(0)
}
