//! Clocks and sleeping.

use frame::Cx;
use linux_raw_sys::general as abi;
use refs::SpinLock;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Args, Call, Entry};
use crate::credentials::Capability;
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::step::{Patience, Step};
use crate::time::clock::{self, Clock, TimeSpec, TimeVal};
use crate::time::ntp::Timex;
use crate::time::sleep;
use crate::user_memory::UserInOut;

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[
    Entry::new(abi::__NR_clock_gettime, "clock_gettime", Call::Step(clock_gettime)),
    Entry::new(abi::__NR_clock_getres, "clock_getres", Call::Step(clock_getres)),
    Entry::new(abi::__NR_clock_settime, "clock_settime", Call::Step(clock_settime)),
    Entry::new(abi::__NR_gettimeofday, "gettimeofday", Call::Step(gettimeofday)),
    Entry::partial(
        abi::__NR_settimeofday,
        "settimeofday",
        Call::Step(settimeofday),
        "a time zone is kept and told; the first one does not move the clock",
    ),
    Entry::new(abi::__NR_time, "time", Call::Step(time)),
    Entry::new(abi::__NR_nanosleep, "nanosleep", Call::Async(nanosleep_async)),
    Entry::partial(
        abi::__NR_clock_nanosleep,
        "clock_nanosleep",
        Call::Async(clock_nanosleep_async),
        "sleeping by a processor-time clock",
    ),
    Entry::partial(abi::__NR_clock_adjtime, "clock_adjtime", Call::Step(clock_adjtime), NOT_STEERED),
    Entry::partial(abi::__NR_adjtimex, "adjtimex", Call::Step(adjtimex), NOT_STEERED),
];

const NOT_STEERED: &str = "only the wall clock is steered, not CLOCK_MONOTONIC; timers by CLOCK_TAI do not follow ADJ_TAI; no pulse per second";

/// `struct timezone`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct TimeZone {
    minutes_west: i32,
    daylight_saving: i32,
}

/// What settimeofday(2) said; nothing goes by it.
static TIME_ZONE: SpinLock<TimeZone> = SpinLock::new(TimeZone { minutes_west: 0, daylight_saving: 0 });

fn clock_gettime(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let now = Clock::new(args.int(0))?.now(me, cx)?;
    me.memory(cx)?.write(args.output::<TimeSpec>(1), &TimeSpec::from_nanoseconds(now))?;
    Ok(0)
}

fn clock_getres(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    Clock::new(args.int(0))?.now(me, cx)?;
    let raw = args.output::<TimeSpec>(1);
    if !raw.is_null() {
        let coarse = [abi::CLOCK_REALTIME_COARSE, abi::CLOCK_MONOTONIC_COARSE].contains(&(args.int(0) as u32));
        me.memory(cx)?.write(raw, &TimeSpec::from_nanoseconds(if coarse { 4_000_000 } else { 1 }))?;
    }
    Ok(0)
}

fn clock_settime(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    if args.int(0) as u32 != abi::CLOCK_REALTIME {
        return Err(Errno::EINVAL.into());
    }
    let time = me.memory(cx)?.read(args.input::<TimeSpec>(1))?.nanoseconds()?;
    set_real_time(time, me, cx)
}

fn set_real_time(time: u64, me: &Current, cx: &Cx) -> Step<usize> {
    me.require(Capability::SysTime, cx)?;
    clock::set_real_time(time, cx)?;
    Ok(0)
}

fn gettimeofday(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let memory = me.memory(cx)?;
    if let Some(time) = args.output::<TimeVal>(0).non_null() {
        memory.write(time, &TimeVal::from_nanoseconds(clock::real_time()))?;
    }
    if let Some(zone) = args.output::<TimeZone>(1).non_null() {
        let told = *TIME_ZONE.lock(cx);
        memory.write(zone, &told)?;
    }
    Ok(0)
}

fn settimeofday(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    const FARTHEST: core::ops::RangeInclusive<i32> = -15 * 60..=15 * 60;
    let memory = me.memory(cx)?;
    let time = args.input::<TimeVal>(0).non_null().map(|time| memory.read(time)).transpose()?;
    let zone = args.input::<TimeZone>(1).non_null().map(|zone| memory.read(zone)).transpose()?;
    let time = time.map(TimeVal::nanoseconds).transpose()?;
    me.require(Capability::SysTime, cx)?;
    if let Some(zone) = zone {
        if !FARTHEST.contains(&zone.minutes_west) {
            return Err(Errno::EINVAL.into());
        }
        *TIME_ZONE.lock(cx) = zone;
        clock::show_time_zone(zone.minutes_west, zone.daylight_saving, cx);
    }
    if let Some(time) = time {
        clock::set_real_time(time, cx)?;
    }
    Ok(0)
}

fn time(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let seconds = TimeSpec::from_nanoseconds(clock::real_time()).seconds;
    if let Some(time) = args.output::<i64>(0).non_null() {
        me.memory(cx)?.write(time, &seconds)?;
    }
    Ok(seconds as usize)
}

fn nanosleep_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let time = me.read_async(cx, args.input::<TimeSpec>(0))?.nanoseconds()?;
    let until = frame::time::now().saturating_add(time);
    sleep::sleep_rest_async(cx, me, until, args.output::<TimeSpec>(1)).map(|()| 0)
}

fn clock_nanosleep_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let which = Clock::new(args.int(0))?;
    if which == Clock::Thread(0) {
        // By the name that all threads have for their clock it is only not there.
        let by_name = args.int(0) == abi::CLOCK_THREAD_CPUTIME_ID as i32;
        return Err(if by_name { Errno::EOPNOTSUPP } else { Errno::EINVAL });
    }
    let time = me.read_async(cx, args.input::<TimeSpec>(2))?.nanoseconds()?;
    if args.int(1) as u32 & abi::TIMER_ABSTIME != 0 {
        let until = match which {
            Clock::RealTime => Patience::UntilWall(time),
            Clock::Atomic => Patience::UntilWall(clock::real_time_of_atomic(time, cx)),
            Clock::Monotonic => Patience::Until(time),
            Clock::Process(_) | Clock::Thread(_) => return Err(Errno::EOPNOTSUPP),
        };
        return match sleep::sleep_until_async(cx, me, until) {
            Err(Errno::RESTART_SYS) => Err(Errno::RESTART_NO_HANDLER),
            other => other.map(|()| 0),
        };
    }
    if matches!(which, Clock::Process(_) | Clock::Thread(_)) {
        return Err(Errno::EOPNOTSUPP);
    }
    let until = frame::time::now().saturating_add(time);
    sleep::sleep_rest_async(cx, me, until, args.output::<TimeSpec>(3)).map(|()| 0)
}

fn clock_adjtime(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let at = args.in_out::<Timex>(1);
    let timex = me.memory(cx)?.read(at)?;
    let id = args.int(0);
    if id as u32 == abi::CLOCK_REALTIME {
        return adjust(timex, at, me, cx);
    }
    // Processor-time clocks, of whom and of what kind does not matter, have negative numbers; so have those of descriptors (CLOCKFD).
    let is_processor_time = id < 0 && id & 7 != 3;
    if !is_processor_time {
        Clock::new(id)?;
    }
    Err(Errno::EOPNOTSUPP.into())
}

fn adjtimex(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let at = args.in_out::<Timex>(0);
    adjust(me.memory(cx)?.read(at)?, at, me, cx)
}

fn adjust(mut timex: Timex, at: UserInOut<Timex>, me: &Current, cx: &Cx) -> Step<usize> {
    let memory = me.memory(cx)?;
    // What cannot be written there is found out before anything is changed.
    memory.write(at, &timex)?;
    let state = clock::adjust(&mut timex, me.has(Capability::SysTime, cx), cx)?;
    memory.write(at, &timex)?;
    Ok(state)
}
