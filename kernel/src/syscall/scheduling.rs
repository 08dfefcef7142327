//! Scheduling: policies, priorities, affinity.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use frame::Cx;
use linux_raw_sys::general as abi;
use refs::TempRc;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Args, Call, Entry};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::process::{self, IO_PRIORITY, Thread};
use crate::sched::{self, Class, MAX_PRIORITY, Parameters};
use crate::step::Step;
use crate::time::clock::TimeSpec;

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

/// SCHED_RESET_ON_FORK, which is accepted and has no effect.
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

/// Whether the caller may change what the thread is: it is its own user's, or the caller is root.
fn may_change(thread: &Thread, me: &Current, cx: &Cx) -> Result<bool> {
    let (own, is_root) = {
        let caller = me.thread(cx)?;
        let credentials = caller.credentials.lock(cx);
        (credentials.euid, credentials.euid == 0)
    };
    let target = thread.credentials.lock(cx);
    Ok(is_root || own == target.uid || own == target.euid)
}

fn is_root(me: &Current, cx: &Cx) -> Result<bool> {
    Ok(me.thread(cx)?.credentials.lock(cx).euid == 0)
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

fn change(thread: &Thread, class: Class, param: Param, me: &Current, cx: &Cx) -> Step<usize> {
    let real_time = matches!(class, Class::Fifo | Class::RoundRobin);
    let valid = if real_time { 1..=i32::from(MAX_PRIORITY) } else { 0..=0 };
    if !valid.contains(&param.priority) {
        return Err(Errno::EINVAL.into());
    }
    if !may_change(thread, me, cx)? {
        return Err(Errno::EPERM.into());
    }
    if real_time && !is_root(me, cx)? && param.priority as u64 > thread.limit(abi::RLIMIT_RTPRIO, cx).0 {
        return Err(Errno::EPERM.into());
    }
    if let Some(task) = thread.task(cx) {
        let Parameters { nice, .. } = sched::parameters(task);
        sched::set_parameters(task, Parameters { class, nice, priority: param.priority as u8 }, cx);
    }
    Ok(0)
}

fn sched_setscheduler(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let param = me.memory(cx)?.read(args.long(2))?;
    let class = class(args.int(1) as u32)?;
    change(&*thread(args.int(0), me, cx)?, class, param, me, cx)
}

fn sched_setparam(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let param = me.memory(cx)?.read(args.long(1))?;
    let thread = thread(args.int(0), me, cx)?;
    change(&thread, parameters(&thread, cx).class, param, me, cx)
}

fn sched_getscheduler(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    Ok(class_number(parameters(&*thread(args.int(0), me, cx)?, cx).class) as usize)
}

fn sched_getparam(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let priority = i32::from(parameters(&*thread(args.int(0), me, cx)?, cx).priority);
    me.memory(cx)?.write(args.long(1), &Param { priority })?;
    Ok(0)
}

fn sched_get_priority_max(_: &Cx, _: &Current, args: &Args) -> Step<usize> {
    Ok(match class(args.int(0) as u32)? {
        Class::Fifo | Class::RoundRobin => usize::from(MAX_PRIORITY),
        _ => 0,
    })
}

fn sched_get_priority_min(_: &Cx, _: &Current, args: &Args) -> Step<usize> {
    Ok(usize::from(matches!(class(args.int(0) as u32)?, Class::Fifo | Class::RoundRobin)))
}

fn sched_rr_get_interval(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let slice = match parameters(&*thread(args.int(0), me, cx)?, cx).class {
        Class::Fifo => 0,
        Class::RoundRobin => sched::ROUND_ROBIN_SLICE,
        _ => sched::FAIR_SLICE,
    };
    me.memory(cx)?.write(args.long(1), &TimeSpec::from_nanoseconds(slice))?;
    Ok(0)
}

fn sched_setaffinity(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let mut mask = [0_u8; 8];
    let len = args.long(1).min(mask.len());
    me.memory(cx)?.reader(args.long(2), len).read(&mut mask[..len])?;
    let thread = thread(args.int(0), me, cx)?;
    if !may_change(&thread, me, cx)? {
        return Err(Errno::EPERM.into());
    }
    // Every core that is there may be chosen, and at least one must be.
    let there = (1_u64 << frame::cpu::count()) - 1;
    if u64::from_le_bytes(mask) & there == 0 {
        return Err(Errno::EINVAL.into());
    }
    Ok(0)
}

fn sched_getaffinity(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    thread(args.int(0), me, cx)?;
    if args.long(1) < 8 || !args.long(1).is_multiple_of(8) {
        return Err(Errno::EINVAL.into());
    }
    let there = (1_u64 << frame::cpu::count()) - 1;
    me.memory(cx)?.write(args.long(2), &there)?;
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
            let user = if who == 0 { me.thread(cx)?.credentials.lock(cx).uid } else { who };
            all(&|_, thread| thread.credentials.lock(cx).uid == user)
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
    let root = is_root(me, cx)?;
    for thread in chosen(args.int(0), args.int(1), me, cx)? {
        if !may_change(&thread, me, cx)? {
            return Err(Errno::EPERM.into());
        }
        let old = parameters(&thread, cx);
        // RLIMIT_NICE counts from 20 minus the nice value that may be reached.
        let least = 20 - thread.limit(abi::RLIMIT_NICE, cx).0.min(40) as i64;
        if nice < old.nice && !root && i64::from(nice) < least {
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
    if args.long(0) != 0 {
        memory.write(args.long(0), &core)?;
    }
    if args.long(1) != 0 {
        memory.write(args.long(1), &0_u32)?;
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
    let told = args.int(2) as u32;
    let (class, level) = (told >> 13, told & 7);
    let told = match class {
        0 if told == 0 => IO_PRIORITY,
        1..=3 => class << 13 | level,
        _ => return Err(Errno::EINVAL.into()),
    };
    if class == REAL_TIME && !is_root(me, cx)? {
        return Err(Errno::EPERM.into());
    }
    for thread in chosen_for_io(args, me, cx)? {
        if !may_change(&thread, me, cx)? {
            return Err(Errno::EPERM.into());
        }
        thread.io_priority.store(told, Ordering::Relaxed);
    }
    Ok(0)
}
