//! Clocks and sleeping.

use frame::Cx;
use linux_raw_sys::general as abi;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Args, Call, Entry};
use crate::credentials::Capability;
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::step::Step;
use crate::time::clock::{self, Clock, TimeSpec, TimeVal};
use crate::time::sleep;
use crate::user_memory::UserInOut;

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[
    Entry::new(abi::__NR_clock_gettime, "clock_gettime", Call::Step(clock_gettime)),
    Entry::new(abi::__NR_clock_getres, "clock_getres", Call::Step(clock_getres)),
    Entry::partial(
        abi::__NR_clock_settime,
        "clock_settime",
        Call::Step(clock_settime),
        "timers set for a wall-clock time keep the moment they had",
    ),
    Entry::new(abi::__NR_gettimeofday, "gettimeofday", Call::Step(gettimeofday)),
    Entry::partial(abi::__NR_settimeofday, "settimeofday", Call::Step(settimeofday), "the time zone is ignored"),
    Entry::new(abi::__NR_time, "time", Call::Step(time)),
    Entry::new(abi::__NR_nanosleep, "nanosleep", Call::Async(nanosleep_async)),
    Entry::partial(
        abi::__NR_clock_nanosleep,
        "clock_nanosleep",
        Call::Async(clock_nanosleep_async),
        "sleeping by a processor-time clock",
    ),
    Entry::partial(
        abi::__NR_clock_adjtime,
        "clock_adjtime",
        Call::Step(clock_adjtime),
        "the clock cannot be adjusted, only read",
    ),
    Entry::partial(abi::__NR_adjtimex, "adjtimex", Call::Step(adjtimex), "the clock cannot be adjusted, only read"),
];

/// `struct timezone`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct TimeZone {
    minutes_west: i32,
    daylight_saving: i32,
}

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
    clock::set_real_time(time);
    Ok(0)
}

fn gettimeofday(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let memory = me.memory(cx)?;
    if let Some(time) = args.output::<TimeVal>(0).non_null() {
        memory.write(time, &TimeVal::from_nanoseconds(clock::real_time()))?;
    }
    if let Some(zone) = args.output::<TimeZone>(1).non_null() {
        memory.write(zone, &TimeZone { minutes_west: 0, daylight_saving: 0 })?;
    }
    Ok(0)
}

fn settimeofday(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let Some(time) = args.input::<TimeVal>(0).non_null() else { return Ok(0) };
    let time = me.memory(cx)?.read(time)?.nanoseconds()?;
    set_real_time(time, me, cx)
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
    let clock = Clock::new(args.int(0))?;
    if clock == Clock::Thread(0) {
        // By the name that all threads have for their clock it is only not there.
        let by_name = args.int(0) == abi::CLOCK_THREAD_CPUTIME_ID as i32;
        return Err(if by_name { Errno::EOPNOTSUPP } else { Errno::EINVAL });
    }
    let time = me.read_async(cx, args.input::<TimeSpec>(2))?.nanoseconds()?;
    if args.int(1) as u32 & abi::TIMER_ABSTIME != 0 {
        let until = clock.deadline(time).ok_or(Errno::EOPNOTSUPP)?;
        return match sleep::sleep_until_async(cx, me, until) {
            Err(Errno::RESTART_SYS) => Err(Errno::RESTART_NO_HANDLER),
            other => other.map(|()| 0),
        };
    }
    clock.deadline(0).ok_or(Errno::EOPNOTSUPP)?;
    let until = frame::time::now().saturating_add(time);
    sleep::sleep_rest_async(cx, me, until, args.output::<TimeSpec>(3)).map(|()| 0)
}

/// Modes of adjtimex(2).
const ADJ_OFFSET_SINGLESHOT: u32 = 0x0001;
const ADJ_OFFSET_READONLY: u32 = 0x2000;
const ADJ_TICK: u32 = 0x4000;
const ADJ_ADJTIME: u32 = 0x8000;
/// The microseconds that a tick of 10 ms can be told to be.
const TICKS: core::ops::RangeInclusive<i64> = 9_000..=11_000;

/// `struct timex`, as far as it is told: `modes`, then the fields as 64-bit words.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Timex {
    modes: u32,
    padding: u32,
    offset: i64,
    frequency: i64,
    max_error: i64,
    estimated_error: i64,
    status: i32,
    padding_2: i32,
    constant: i64,
    precision: i64,
    tolerance: i64,
    seconds: i64,
    microseconds: i64,
    tick: i64,
    rest: [i64; 14],
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

/// Checks what is to be adjusted.
///
/// # Errors
/// EINVAL; EPERM, also for those who might: the clock cannot be adjusted.
fn check_adjustment(timex: &Timex, me: &Current, cx: &Cx) -> Result<()> {
    let has = |mode: u32| timex.modes & mode != 0;
    if has(ADJ_ADJTIME) {
        if !has(ADJ_OFFSET_SINGLESHOT) {
            return Err(Errno::EINVAL);
        }
        return if has(ADJ_OFFSET_READONLY) { Ok(()) } else { Err(Errno::EPERM) };
    }
    if timex.modes == 0 {
        return Ok(());
    }
    me.require(Capability::SysTime, cx)?;
    if has(ADJ_TICK) && !TICKS.contains(&timex.tick) {
        return Err(Errno::EINVAL);
    }
    Err(Errno::EPERM)
}

/// Tells how the real-time clock is adjusted: not at all. Its state is that of a clock that nobody synchronises: `TIME_ERROR`, with `STA_UNSYNC`.
fn adjust(mut timex: Timex, at: UserInOut<Timex>, me: &Current, cx: &Cx) -> Step<usize> {
    const STATUS_UNSYNCHRONISED: i32 = 0x40;
    const TIME_ERROR: usize = 5;
    check_adjustment(&timex, me, cx)?;
    let now = TimeVal::from_nanoseconds(clock::real_time());
    timex = Timex {
        modes: timex.modes,
        padding: 0,
        offset: 0,
        frequency: 0,
        max_error: 16_000_000,
        estimated_error: 16_000_000,
        status: STATUS_UNSYNCHRONISED,
        padding_2: 0,
        constant: 2,
        precision: 1,
        tolerance: 32_768_000,
        seconds: now.seconds,
        microseconds: now.microseconds,
        tick: 10_000,
        rest: [0; 14],
    };
    me.memory(cx)?.write(at, &timex)?;
    Ok(TIME_ERROR)
}
