//! Scheduling: policies, priorities, affinity.

use core::sync::atomic::Ordering;

use frame::Cx;
use frame::core_set::{CoreSet, LIMIT};
use linux_raw_sys::general as abi;
use refs::TempRc;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Args, Call, Entry};
use crate::credentials::{Capability, Uid};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::process::{self, Thread};
use crate::sched::{self, Called, Class, MAX_PRIORITY, Parameters};
use crate::signal::Work;
use crate::step::{Interruption, Patience, Step, Stop, TimeSlice, complete_async};
use crate::time::clock::TimeSpec;
use crate::user_memory::UserIn;

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[
    Entry::new(abi::__NR_sched_yield, "sched_yield", Call::Step(sched_yield)),
    Entry::new(abi::__NR_sched_setscheduler, "sched_setscheduler", Call::Step(sched_setscheduler)),
    Entry::new(abi::__NR_sched_getscheduler, "sched_getscheduler", Call::Step(sched_getscheduler)),
    Entry::new(abi::__NR_sched_setparam, "sched_setparam", Call::Step(sched_setparam)),
    Entry::new(abi::__NR_sched_getparam, "sched_getparam", Call::Step(sched_getparam)),
    Entry::new(abi::__NR_sched_get_priority_max, "sched_get_priority_max", Call::Step(sched_get_priority_max)),
    Entry::new(abi::__NR_sched_get_priority_min, "sched_get_priority_min", Call::Step(sched_get_priority_min)),
    Entry::new(abi::__NR_sched_rr_get_interval, "sched_rr_get_interval", Call::Step(sched_rr_get_interval)),
    Entry::new(abi::__NR_sched_setaffinity, "sched_setaffinity", Call::Async(sched_setaffinity_async)),
    Entry::new(abi::__NR_sched_getaffinity, "sched_getaffinity", Call::Step(sched_getaffinity)),
    Entry::new(abi::__NR_getpriority, "getpriority", Call::Async(getpriority_async)),
    Entry::new(abi::__NR_setpriority, "setpriority", Call::Async(setpriority_async)),
    Entry::new(abi::__NR_getcpu, "getcpu", Call::Step(getcpu)),
    Entry::partial(abi::__NR_ioprio_get, "ioprio_get", Call::Async(ioprio_get_async), "it has no effect"),
    Entry::partial(abi::__NR_ioprio_set, "ioprio_set", Call::Async(ioprio_set_async), "it has no effect"),
];

/// SCHED_RESET_ON_FORK.
const RESET_ON_FORK: u32 = 0x4000_0000;

/// `struct sched_param`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Param {
    priority: i32,
}

/// A thread by its id; 0 is the caller.
pub(super) fn thread<'cx>(tid: i32, me: &Current, cx: &'cx Cx) -> Result<TempRc<'cx, Thread>> {
    match u32::try_from(tid) {
        Ok(0) => Ok(me.thread(cx)?),
        Ok(tid) => process::find_thread(tid, cx).ok_or(Errno::ESRCH),
        Err(_) => Err(Errno::EINVAL),
    }
}

pub(super) fn parameters(thread: &Thread, cx: &Cx) -> Parameters {
    thread.task(cx).map(sched::parameters).unwrap_or_default()
}

/// Checks that the caller may change how the thread is scheduled.
///
/// # Errors
/// EPERM.
fn check_right(thread: &Thread, me: &Current, cx: &Cx) -> Result<()> {
    let own = me.thread(cx)?.credentials.lock(cx).clone();
    if own.may_schedule(&thread.credentials.lock(cx)) { Ok(()) } else { Err(Errno::EPERM) }
}

/// Whether RLIMIT_NICE lets the thread have that nice value. The limit counts from 20 minus the nice value that may be reached.
fn may_reach(thread: &Thread, nice: i8, cx: &Cx) -> bool {
    let least = 20 - thread.limit(abi::RLIMIT_NICE, cx).0.min(40) as i64;
    i64::from(nice) >= least
}

fn sched_yield(cx: &Cx, _: &Current, _: &Args) -> Step<usize> {
    sched::step_back(tasks::current(cx), cx);
    Ok(0)
}

pub(super) fn class_number(class: Class) -> u32 {
    match class {
        Class::Other => abi::SCHED_NORMAL,
        Class::Fifo => abi::SCHED_FIFO,
        Class::RoundRobin => abi::SCHED_RR,
        Class::Batch => abi::SCHED_BATCH,
        Class::Idle => abi::SCHED_IDLE,
    }
}

pub(super) fn class(number: u32) -> Result<Class> {
    match number & !RESET_ON_FORK {
        abi::SCHED_NORMAL => Ok(Class::Other),
        abi::SCHED_FIFO => Ok(Class::Fifo),
        abi::SCHED_RR => Ok(Class::RoundRobin),
        abi::SCHED_BATCH => Ok(Class::Batch),
        abi::SCHED_IDLE => Ok(Class::Idle),
        _ => Err(Errno::EINVAL),
    }
}

/// Whether a thread with CAP_SYS_NICE only may change `old` into `new`: see sched(7), "Privileges and resource limits".
fn needs_privilege(thread: &Thread, old: Parameters, new: Parameters, cx: &Cx) -> bool {
    let is_real_time = |class| matches!(class, Class::Fifo | Class::RoundRobin);
    let highest = thread.limit(abi::RLIMIT_RTPRIO, cx).0;
    let gains_real_time = is_real_time(new.class)
        && ((new.class != old.class && highest == 0)
            || (new.priority > old.priority && u64::from(new.priority) > highest));
    let leaves_idle = old.class == Class::Idle && new.class != Class::Idle && !may_reach(thread, old.nice, cx);
    gains_real_time || leaves_idle || (old.reset_on_fork && !new.reset_on_fork)
}

/// Reads a `struct sched_param`.
fn param(from: UserIn<Param>, me: &Current, cx: &Cx) -> Step<Param> {
    Ok(me.memory(cx)?.read(from.non_null().ok_or(Errno::EINVAL)?)?)
}

/// Has a thread scheduled otherwise: with another policy, priority and nice value.
///
/// # Errors
/// EINVAL: a priority that the policy does not have. EPERM.
pub(super) fn change(
    thread: &Thread,
    class: Class,
    reset_on_fork: bool,
    (priority, nice): (i32, i8),
    me: &Current,
    cx: &Cx,
) -> Step<usize> {
    let real_time = matches!(class, Class::Fifo | Class::RoundRobin);
    let valid = if real_time { 1..=i32::from(MAX_PRIORITY) } else { 0..=0 };
    if !valid.contains(&priority) {
        return Err(Errno::EINVAL.into());
    }
    let old = parameters(thread, cx);
    let new = Parameters { class, priority: priority as u8, nice, reset_on_fork, ..old };
    check_right(thread, me, cx)?;
    if needs_privilege(thread, old, new, cx) || (nice < old.nice && !may_reach(thread, nice, cx)) {
        me.require(Capability::SysNice, cx)?;
    }
    if let Some(task) = thread.task(cx) {
        sched::set_parameters(task, new, cx);
    }
    Ok(0)
}

fn sched_setscheduler(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let policy = args.int(1);
    if policy < 0 || args.int(0) < 0 {
        return Err(Errno::EINVAL.into());
    }
    let param = param(args.input::<Param>(2), me, cx)?;
    let thread = thread(args.int(0), me, cx)?;
    let rest = (param.priority, parameters(&thread, cx).nice);
    change(&thread, class(policy as u32)?, policy as u32 & RESET_ON_FORK != 0, rest, me, cx)
}

fn sched_setparam(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    if args.int(0) < 0 {
        return Err(Errno::EINVAL.into());
    }
    let param = param(args.input::<Param>(1), me, cx)?;
    let thread = thread(args.int(0), me, cx)?;
    let old = parameters(&thread, cx);
    change(&thread, old.class, old.reset_on_fork, (param.priority, old.nice), me, cx)
}

fn sched_getscheduler(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let parameters = parameters(&*thread(args.int(0), me, cx)?, cx);
    let flag = if parameters.reset_on_fork { RESET_ON_FORK } else { 0 };
    Ok((class_number(parameters.class) | flag) as usize)
}

fn sched_getparam(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let to = args.output::<Param>(1).non_null().ok_or(Errno::EINVAL)?;
    let priority = i32::from(parameters(&*thread(args.int(0), me, cx)?, cx).priority);
    me.memory(cx)?.write(to, &Param { priority })?;
    Ok(0)
}

/// The static priorities of a policy. SCHED_DEADLINE is not there, but has none on Linux either.
fn priorities(policy: i32) -> Result<core::ops::RangeInclusive<usize>> {
    match policy as u32 {
        abi::SCHED_FIFO | abi::SCHED_RR => Ok(1..=usize::from(MAX_PRIORITY)),
        abi::SCHED_NORMAL | abi::SCHED_BATCH | abi::SCHED_IDLE | abi::SCHED_DEADLINE => Ok(0..=0),
        _ => Err(Errno::EINVAL),
    }
}

fn sched_get_priority_max(_: &Cx, _: &Current, args: &Args) -> Step<usize> {
    Ok(*priorities(args.int(0))?.end())
}

fn sched_get_priority_min(_: &Cx, _: &Current, args: &Args) -> Step<usize> {
    Ok(*priorities(args.int(0))?.start())
}

fn sched_rr_get_interval(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let slice = match parameters(&*thread(args.int(0), me, cx)?, cx).class {
        Class::Fifo => 0,
        Class::RoundRobin => sched::ROUND_ROBIN_SLICE,
        _ => sched::FAIR_SLICE,
    };
    me.memory(cx)?.write(args.output::<TimeSpec>(1), &TimeSpec::from_nanoseconds(slice))?;
    Ok(0)
}

/// The calls about affinity say ESRCH, not EINVAL, for a number that no thread can have.
fn thread_of_affinity<'cx>(tid: i32, me: &Current, cx: &'cx Cx) -> Result<TempRc<'cx, Thread>> {
    if tid < 0 { Err(Errno::ESRCH) } else { thread(tid, me, cx) }
}

fn sched_setaffinity_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let called = complete_async(cx, me, Patience::Forever, |cx, me, _| set_affinity(cx, me, args))?;
    if let Some(called) = called {
        called.wait_async(cx);
    }
    Ok(0)
}

/// Changes where a thread may run. The core that runs it and that it has to leave was called: it goes on elsewhere before it runs user code again.
fn set_affinity(cx: &Cx, me: &Current, args: &Args) -> Step<Option<Called>> {
    let mut mask = [0_u8; LIMIT / 8];
    // What is behind the kernel's own mask is not looked at.
    let bytes = &mut mask[..mask_bytes()];
    me.memory(cx)?.read_into(args.input::<u8>(2).slice(args.long(1)), bytes)?;
    let thread = thread_of_affinity(args.int(0), me, cx)?;
    check_right(&thread, me, cx)?;
    // Every core that is there may be chosen, and at least one must be.
    let chosen =
        CoreSet::from_words(mask.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word))).and(sched::all_cores());
    if chosen.is_empty() {
        return Err(Errno::EINVAL.into());
    }
    let Some(task) = thread.task(cx) else { return Ok(None) };
    sched::set_cores(task, chosen, cx);
    // Where it is just now it may have to leave, before it goes on in user mode.
    thread.signals.add_work(Work::MOVE);
    Ok(sched::leave_user_code(task))
}

fn sched_getaffinity(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let len = args.long(1);
    if len.saturating_mul(8) < frame::cpu::count() || !len.is_multiple_of(size_of::<u64>()) {
        return Err(Errno::EINVAL.into());
    }
    let cores = thread_of_affinity(args.int(0), me, cx)?.task(cx).map_or_else(sched::all_cores, sched::cores);
    let words = cores.words();
    let words = &words[..len.min(mask_bytes()) / size_of::<u64>()];
    me.memory(cx)?.write_slice(args.output::<u64>(2).slice(words.len()), words)?;
    Ok(size_of_val(words))
}

/// The size of the kernel's own masks of cores: whole words, as many as the cores need that there are.
fn mask_bytes() -> usize {
    frame::cpu::count().div_ceil(u64::BITS as usize) * size_of::<u64>()
}

/// So many threads are looked at between two looks at the clock.
const AT_ONCE: usize = 64;

/// Runs `each` on the threads that `which` and `who` mean: see getpriority(2).
///
/// # Errors
/// ESRCH: there is none. EINVAL. The first of `each`.
fn each_chosen_async(
    cx: &mut Cx,
    me: &mut Current,
    which: i32,
    who: i32,
    mut each: impl FnMut(&Thread, &Current, &Cx) -> Result<()>,
) -> Result<()> {
    let who = u32::try_from(who).map_err(|_| Errno::ESRCH)?;
    let (group, user) = match which as u32 {
        abi::PRIO_PROCESS => return each(&*thread(who as i32, me, cx)?, me, cx),
        abi::PRIO_PGRP if who == 0 => (Some(me.process(cx)?.group()), None),
        abi::PRIO_PGRP => (Some(who), None),
        abi::PRIO_USER if who == 0 => (None, Some(me.thread(cx)?.credentials.lock(cx).users().real)),
        abi::PRIO_USER => (None, Some(Uid::new(who))),
        _ => return Err(Errno::EINVAL),
    };
    let is_chosen = |thread: &Thread, cx: &Cx| {
        group.is_none_or(|group| thread.process(cx).is_ok_and(|process| process.group() == group))
            && user.is_none_or(|user| thread.credentials.lock(cx).users().real == user)
    };
    let (mut from, mut any) = (Some(0), false);
    complete_async(cx, me, Patience::Forever, |cx, me, _| {
        let (mut time_slice, mut looked_at) = (TimeSlice::default(), 0);
        while let Some((tid, name)) = from.and_then(|from| process::THREADS.next(from, cx)) {
            from = tid.checked_add(1);
            if let Some(thread) = name.upgrade(cx).ok().filter(|thread| is_chosen(thread, cx)) {
                any = true;
                each(&thread, me, cx)?;
            }
            looked_at += 1;
            if looked_at % AT_ONCE == 0 && time_slice.is_over() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
        }
        Ok(())
    })?;
    if any { Ok(()) } else { Err(Errno::ESRCH) }
}

/// The best priority of those chosen, as 20 minus the nice value, so that it is never negative.
fn getpriority_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let mut best = i8::MAX;
    each_chosen_async(cx, me, args.int(0), args.int(1), |thread, _, cx| {
        best = best.min(parameters(thread, cx).nice);
        Ok(())
    })?;
    Ok((20 - isize::from(best)) as usize)
}

fn setpriority_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let nice = args.int(2).clamp(-20, 19) as i8;
    each_chosen_async(cx, me, args.int(0), args.int(1), |thread, me, cx| {
        check_right(thread, me, cx)?;
        let old = parameters(thread, cx);
        if nice < old.nice && !may_reach(thread, nice, cx) && !me.has(Capability::SysNice, cx) {
            return Err(Errno::EACCES);
        }
        if let Some(task) = thread.task(cx) {
            sched::set_parameters(task, Parameters { nice, ..old }, cx);
        }
        Ok(())
    })?;
    Ok(0)
}

fn getcpu(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let memory = me.memory(cx)?;
    let core = frame::cpu::current(cx) as u32;
    if let Some(raw) = args.output::<u32>(0).non_null() {
        memory.write(raw, &core)?;
    }
    if let Some(node) = args.output::<u32>(1).non_null() {
        memory.write(node, &0)?;
    }
    Ok(0)
}

/// The best of those chosen, who are meant as with getpriority, but counted from 1.
fn ioprio_get_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let mut best = u32::MAX;
    each_chosen_async(cx, me, args.int(0).wrapping_sub(1), args.int(1), |thread, _, _| {
        best = best.min(thread.io_priority.load(Ordering::Relaxed));
        Ok(())
    })?;
    Ok(best as usize)
}

fn ioprio_set_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    const REAL_TIME: u32 = 1;
    let raw = args.int(2) as u32;
    const BEST_EFFORT: u32 = 2;
    const IDLE: u32 = 3;
    const LEVELS: u32 = 8;
    let (class, data) = (raw >> 13, raw & 0x1fff);
    match class {
        REAL_TIME if !me.has(Capability::SysAdmin, cx) => me.require(Capability::SysNice, cx)?,
        REAL_TIME | BEST_EFFORT | IDLE => {}
        0 if data == 0 => {}
        _ => return Err(Errno::EINVAL),
    }
    if matches!(class, REAL_TIME | BEST_EFFORT) && data >= LEVELS {
        return Err(Errno::EINVAL);
    }
    let own = me.thread(cx)?.credentials.lock(cx).clone();
    each_chosen_async(cx, me, args.int(0).wrapping_sub(1), args.int(1), |thread, _, cx| {
        if !own.may_schedule_io(&thread.credentials.lock(cx)) {
            return Err(Errno::EPERM);
        }
        thread.io_priority.store(raw, Ordering::Relaxed);
        Ok(())
    })?;
    Ok(0)
}
