//! Scheduling: policies, priorities, affinity.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use frame::Cx;
use linux_raw_sys::general as abi;
use refs::TempRc;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Args, Call, Entry};
use crate::credentials::{Capability, Uid};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::process::{self, IO_PRIORITY, Thread};
use crate::sched::{self, Class, MAX_PRIORITY, Parameters};
use crate::step::Step;
use crate::time::clock::TimeSpec;
use crate::user_memory::UserIn;

/// The calls of this file.
pub const CALLS: &[Entry] = &[
    Entry::new(abi::__NR_sched_yield, "sched_yield", Call::Step(sched_yield)),
    Entry::new(abi::__NR_sched_setscheduler, "sched_setscheduler", Call::Step(sched_setscheduler)),
    Entry::new(abi::__NR_sched_getscheduler, "sched_getscheduler", Call::Step(sched_getscheduler)),
    Entry::new(abi::__NR_sched_setparam, "sched_setparam", Call::Step(sched_setparam)),
    Entry::new(abi::__NR_sched_getparam, "sched_getparam", Call::Step(sched_getparam)),
    Entry::new(abi::__NR_sched_get_priority_max, "sched_get_priority_max", Call::Step(sched_get_priority_max)),
    Entry::new(abi::__NR_sched_get_priority_min, "sched_get_priority_min", Call::Step(sched_get_priority_min)),
    Entry::new(abi::__NR_sched_rr_get_interval, "sched_rr_get_interval", Call::Step(sched_rr_get_interval)),
    Entry::new(abi::__NR_sched_setaffinity, "sched_setaffinity", Call::Step(sched_setaffinity)),
    Entry::new(abi::__NR_sched_getaffinity, "sched_getaffinity", Call::Step(sched_getaffinity)),
    Entry::new(abi::__NR_getpriority, "getpriority", Call::Step(getpriority)),
    Entry::new(abi::__NR_setpriority, "setpriority", Call::Step(setpriority)),
    Entry::new(abi::__NR_getcpu, "getcpu", Call::Step(getcpu)),
    Entry::partial(abi::__NR_ioprio_get, "ioprio_get", Call::Step(ioprio_get), "it has no effect"),
    Entry::partial(abi::__NR_ioprio_set, "ioprio_set", Call::Step(ioprio_set), "it has no effect"),
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
fn thread<'cx>(tid: i32, me: &Current, cx: &'cx Cx) -> Result<TempRc<'cx, Thread>> {
    match u32::try_from(tid) {
        Ok(0) => Ok(me.thread(cx)?),
        Ok(tid) => process::find_thread(tid, cx).ok_or(Errno::ESRCH),
        Err(_) => Err(Errno::EINVAL),
    }
}

fn parameters(thread: &Thread, cx: &Cx) -> Parameters {
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

fn class_number(class: Class) -> u32 {
    match class {
        Class::Other => abi::SCHED_NORMAL,
        Class::Fifo => abi::SCHED_FIFO,
        Class::RoundRobin => abi::SCHED_RR,
        Class::Batch => abi::SCHED_BATCH,
        Class::Idle => abi::SCHED_IDLE,
    }
}

fn class(number: u32) -> Result<Class> {
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

fn change(thread: &Thread, class: Class, reset_on_fork: bool, param: Param, me: &Current, cx: &Cx) -> Step<usize> {
    let real_time = matches!(class, Class::Fifo | Class::RoundRobin);
    let valid = if real_time { 1..=i32::from(MAX_PRIORITY) } else { 0..=0 };
    if !valid.contains(&param.priority) {
        return Err(Errno::EINVAL.into());
    }
    let old = parameters(thread, cx);
    let new = Parameters { class, priority: param.priority as u8, reset_on_fork, ..old };
    check_right(thread, me, cx)?;
    if needs_privilege(thread, old, new, cx) {
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
    change(&thread, class(policy as u32)?, policy as u32 & RESET_ON_FORK != 0, param, me, cx)
}

fn sched_setparam(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    if args.int(0) < 0 {
        return Err(Errno::EINVAL.into());
    }
    let param = param(args.input::<Param>(1), me, cx)?;
    let thread = thread(args.int(0), me, cx)?;
    let old = parameters(&thread, cx);
    change(&thread, old.class, old.reset_on_fork, param, me, cx)
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

fn sched_setaffinity(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let mut mask = [0_u8; 8];
    me.memory(cx)?.read_into(args.input::<u8>(2).slice(args.long(1)), &mut mask)?;
    check_right(&*thread_of_affinity(args.int(0), me, cx)?, me, cx)?;
    // Every core that is there may be chosen, and at least one must be.
    let there = (1_u64 << frame::cpu::count()) - 1;
    if u64::from_le_bytes(mask) & there == 0 {
        return Err(Errno::EINVAL.into());
    }
    Ok(0)
}

fn sched_getaffinity(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    if args.long(1) < 8 || !args.long(1).is_multiple_of(8) {
        return Err(Errno::EINVAL.into());
    }
    thread_of_affinity(args.int(0), me, cx)?;
    let there = (1_u64 << frame::cpu::count()) - 1;
    me.memory(cx)?.write(args.output::<u64>(2), &there)?;
    Ok(8)
}

/// The threads that `which` and `who` mean: see getpriority(2).
fn chosen<'cx>(which: i32, who: i32, me: &Current, cx: &'cx Cx) -> Result<Vec<TempRc<'cx, Thread>>> {
    let who = u32::try_from(who).map_err(|_| Errno::ESRCH)?;
    let all = |choose: &dyn Fn(&process::Process, &Thread) -> bool| -> Vec<TempRc<'cx, Thread>> {
        process::THREADS
            .all(cx)
            .filter_map(|thread| thread.upgrade(cx).ok())
            .filter(|thread| thread.process(cx).is_ok_and(|process| choose(&process, thread)))
            .collect()
    };
    let found = match which as u32 {
        abi::PRIO_PROCESS => alloc::vec![thread(who as i32, me, cx)?],
        abi::PRIO_PGRP => {
            let group = if who == 0 { me.process(cx)?.group() } else { who };
            all(&|process, _| process.group() == group)
        }
        abi::PRIO_USER => {
            let user = if who == 0 { me.thread(cx)?.credentials.lock(cx).users().real } else { Uid::new(who) };
            all(&|_, thread| thread.credentials.lock(cx).users().real == user)
        }
        _ => return Err(Errno::EINVAL),
    };
    if found.is_empty() { Err(Errno::ESRCH) } else { Ok(found) }
}

/// The best priority of those chosen, as 20 minus the nice value, so that it is never negative.
fn getpriority(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let best = chosen(args.int(0), args.int(1), me, cx)?.iter().map(|thread| parameters(thread, cx).nice).min();
    Ok((20 - isize::from(best.unwrap_or(0))) as usize)
}

fn setpriority(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let nice = args.int(2).clamp(-20, 19) as i8;
    for thread in chosen(args.int(0), args.int(1), me, cx)? {
        check_right(&thread, me, cx)?;
        let old = parameters(&thread, cx);
        if nice < old.nice && !may_reach(&thread, nice, cx) && !me.has(Capability::SysNice, cx) {
            return Err(Errno::EACCES.into());
        }
        if let Some(task) = thread.task(cx) {
            sched::set_parameters(task, Parameters { nice, ..old }, cx);
        }
    }
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

/// Whom ioprio_get and ioprio_set mean: as getpriority, but counted from 1.
fn chosen_for_io<'cx>(args: &Args, me: &Current, cx: &'cx Cx) -> Result<Vec<TempRc<'cx, Thread>>> {
    chosen(args.int(0).wrapping_sub(1), args.int(1), me, cx)
}

/// The best of those chosen.
fn ioprio_get(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let best = chosen_for_io(args, me, cx)?.iter().map(|thread| thread.io_priority.load(Ordering::Relaxed)).min();
    Ok(best.unwrap_or(IO_PRIORITY) as usize)
}

fn ioprio_set(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
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
        _ => return Err(Errno::EINVAL.into()),
    }
    if matches!(class, REAL_TIME | BEST_EFFORT) && data >= LEVELS {
        return Err(Errno::EINVAL.into());
    }
    let own = me.thread(cx)?.credentials.lock(cx).clone();
    for thread in chosen_for_io(args, me, cx)? {
        if !own.may_schedule_io(&thread.credentials.lock(cx)) {
            return Err(Errno::EPERM.into());
        }
        thread.io_priority.store(raw, Ordering::Relaxed);
    }
    Ok(0)
}
