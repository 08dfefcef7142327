//! Processes and threads: making, ending, waiting, groups and sessions, limits and usage.

use alloc::boxed::Box;
use core::sync::atomic::Ordering;

use frame::Cx;
use linux_raw_sys::general as abi;
use refs::TempRc;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use super::{Args, Call, Entry};
use crate::arch::{self, CloneArguments, Prctl};
use crate::credentials::{Capability, TraceAs};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::{self, FdFlags, OpenFile, OpenFlags, reserve_fd};
use crate::process::{
    self, Choice, CloneArgs, Limit, PidFd, Process, RUsage, Report, RseqRegistration, Status, Usage, WaitOptions,
    create_session, set_group,
};
use crate::signal::{Info, Signal, Work, send::end_process};
use crate::step::Step;
use crate::user_memory::UserOut;

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[
    Entry::new(abi::__NR_fork, "fork", Call::Async(fork_async)),
    Entry::new(abi::__NR_vfork, "vfork", Call::Async(vfork_async)),
    Entry::partial(abi::__NR_clone, "clone", Call::Async(clone_async), "namespaces"),
    Entry::partial(abi::__NR_clone3, "clone3", Call::Async(clone3_async), "namespaces, set_tid"),
    Entry::new(abi::__NR_exit, "exit", Call::Step(exit)),
    Entry::new(abi::__NR_exit_group, "exit_group", Call::Step(exit_group)),
    Entry::new(abi::__NR_wait4, "wait4", Call::Async(wait4_async)),
    Entry::new(abi::__NR_waitid, "waitid", Call::Async(waitid_async)),
    Entry::partial(abi::__NR_pidfd_open, "pidfd_open", Call::Step(pidfd_open), "PIDFD_THREAD"),
    Entry::new(abi::__NR_pidfd_getfd, "pidfd_getfd", Call::Step(pidfd_getfd)),
    Entry::new(abi::__NR_pidfd_send_signal, "pidfd_send_signal", Call::Step(super::signal::pidfd_send_signal)),
    Entry::new(abi::__NR_getpid, "getpid", Call::Step(getpid)),
    Entry::new(abi::__NR_gettid, "gettid", Call::Step(gettid)),
    Entry::new(abi::__NR_getppid, "getppid", Call::Step(getppid)),
    Entry::new(abi::__NR_setpgid, "setpgid", Call::Step(setpgid)),
    Entry::new(abi::__NR_getpgid, "getpgid", Call::Step(getpgid)),
    Entry::new(abi::__NR_getpgrp, "getpgrp", Call::Step(getpgrp)),
    Entry::new(abi::__NR_setsid, "setsid", Call::Step(setsid)),
    Entry::new(abi::__NR_getsid, "getsid", Call::Step(getsid)),
    Entry::new(abi::__NR_set_tid_address, "set_tid_address", Call::Step(set_tid_address)),
    Entry::new(abi::__NR_getrlimit, "getrlimit", Call::Step(getrlimit)),
    Entry::new(abi::__NR_setrlimit, "setrlimit", Call::Step(setrlimit)),
    Entry::new(abi::__NR_prlimit64, "prlimit64", Call::Async(prlimit64_async)),
    Entry::new(abi::__NR_getrusage, "getrusage", Call::Step(getrusage)),
    Entry::new(abi::__NR_times, "times", Call::Step(times)),
    Entry::new(abi::__NR_rseq, "rseq", Call::Async(rseq_async)),
    Entry::partial(
        abi::__NR_unshare,
        "unshare",
        Call::Async(unshare_async),
        "only CLONE_FILES, CLONE_FS and CLONE_SYSVSEM",
    ),
    Entry::partial(abi::__NR_arch_prctl, "arch_prctl", Call::Async(arch_prctl_async), "CPUID faulting, shadow stacks"),
];

fn fork_async(cx: &mut Cx, me: &mut Current, _args: &Args) -> Result<usize> {
    process::clone_async(cx, me, &CloneArgs { exit_signal: abi::SIGCHLD, ..CloneArgs::default() })
}

fn vfork_async(cx: &mut Cx, me: &mut Current, _args: &Args) -> Result<usize> {
    let flags = u64::from(abi::CLONE_VFORK | abi::CLONE_VM);
    process::clone_async(cx, me, &CloneArgs { flags, exit_signal: abi::SIGCHLD, ..CloneArgs::default() })
}

fn clone_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let word = args.long(0) as u64;
    let CloneArguments { stack, parent_tid, child_tid, tls } = arch::clone_arguments(&args.0);
    let args = CloneArgs {
        flags: word & 0xffff_ff00,
        exit_signal: (word & 0xff) as u32,
        stack,
        parent_tid,
        child_tid,
        pidfd: parent_tid,
        tls,
        cgroup: None,
    };
    let both = u64::from(abi::CLONE_PIDFD | abi::CLONE_PARENT_SETTID);
    if args.flags & both == both {
        // Both would be written to the same place.
        return Err(Errno::EINVAL);
    }
    process::clone_async(cx, me, &args)
}

/// `struct clone_args`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Clone3Args {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

fn clone3_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let size = args.long(1);
    if size < abi::CLONE_ARGS_SIZE_VER0 as usize {
        return Err(Errno::EINVAL);
    }
    if size > 4096 {
        return Err(Errno::E2BIG);
    }
    let mut raw = Clone3Args::new_zeroed();
    let known = size.min(size_of::<Clone3Args>());
    let newer = crate::step::complete_async(cx, me, crate::step::Patience::Forever, |cx, me, _| {
        let memory = me.memory(cx)?;
        let given = args.input::<u8>(0).slice(size);
        memory.read_into(given, &mut raw.as_mut_bytes()[..known])?;
        memory.read_slice(given.behind(known))
    })?;
    if newer.iter().any(|&byte| byte != 0) {
        return Err(Errno::E2BIG);
    }
    if raw.set_tid != 0 || raw.set_tid_size != 0 || raw.flags & 0xff != 0 || raw.exit_signal > 0xff {
        return Err(Errno::EINVAL);
    }
    if (raw.stack == 0) != (raw.stack_size == 0) {
        return Err(Errno::EINVAL);
    }
    let both = u64::from(abi::CLONE_THREAD | abi::CLONE_PARENT);
    if raw.flags & both != 0 && raw.exit_signal != 0 {
        return Err(Errno::EINVAL);
    }
    let into_group = raw.flags & abi::CLONE_INTO_CGROUP != 0;
    if into_group && (raw.cgroup > i32::MAX as u64 || size < abi::CLONE_ARGS_SIZE_VER2 as usize) {
        return Err(Errno::EINVAL);
    }
    let is_thread = raw.flags & u64::from(abi::CLONE_THREAD) != 0;
    let args = CloneArgs {
        cgroup: if into_group { Some(fs::cgroup::group_for_child(raw.cgroup, is_thread, me, cx)?) } else { None },
        flags: raw.flags,
        exit_signal: raw.exit_signal as u32,
        stack: raw.stack.wrapping_add(raw.stack_size) as usize,
        parent_tid: UserOut::<u32>::new(raw.parent_tid as usize),
        child_tid: UserOut::<u32>::new(raw.child_tid as usize),
        pidfd: UserOut::<u32>::new(raw.pidfd as usize),
        tls: raw.tls as usize,
    };
    process::clone_async(cx, me, &args)
}

fn exit(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let thread = me.thread(cx)?;
    thread.set_exit_status(Status::exited(args.int(0)));
    thread.signals.add_work(Work::EXIT);
    Ok(0)
}

fn exit_group(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    end_process(&*me.process(cx)?, Status::exited(args.int(0)).0, cx);
    me.thread(cx)?.signals.add_work(Work::EXIT);
    Ok(0)
}

fn wait4_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let (pid, status, usage) = (args.int(0), args.output::<u32>(1), args.output::<RUsage>(3));
    let options = WaitOptions::from_bits(args.int(2) as u32).ok_or(Errno::EINVAL)?;
    if options.intersects(WaitOptions::EXITED | WaitOptions::NO_WAIT) {
        return Err(Errno::EINVAL);
    }
    let choice = match pid {
        -1 => Choice::Any,
        0 => Choice::Group(me.process(cx)?.group()),
        i32::MIN => return Err(Errno::ESRCH),
        _ if pid < 0 => Choice::Group(pid.unsigned_abs()),
        _ => Choice::Process(pid as u32),
    };
    let found = process::wait_async(cx, me, choice, options | WaitOptions::EXITED, |cx, me, report| {
        let memory = me.memory(cx)?;
        if !status.is_null() {
            memory.write(status, &report.status)?;
        }
        if !usage.is_null() {
            memory.write(usage, &report.usage.encode())?;
        }
        Ok(())
    })?;
    Ok(found.map_or(0, |report| report.pid as usize))
}

/// The part of `siginfo_t` that waitid(2) writes.
const WAITID_INFO_LEN: usize = 28;

fn waitid_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let outcome = wait_for_id_async(cx, me, args);
    // As on Linux, where there is nothing to tell that is told, also with an error.
    let info = args.output::<u8>(2).slice(WAITID_INFO_LEN);
    if !matches!(outcome, Ok(true) | Err(Errno::RESTART_SYS)) && !info.start().is_null() {
        me.write_bytes_async(cx, info, &[0; WAITID_INFO_LEN])?;
    }
    outcome.map(|_| 0)
}

/// Waits as waitid(2) says, and tells of the child that was found, if there was one; whether there was.
fn wait_for_id_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<bool> {
    let (kind, id) = (args.int(0) as u32, args.int(1));
    let (info, usage) = (args.output::<u8>(2).slice(WAITID_INFO_LEN), args.output::<RUsage>(4));
    let options = WaitOptions::from_bits(args.int(3) as u32).ok_or(Errno::EINVAL)?;
    if !options.intersects(WaitOptions::EXITED | WaitOptions::STOPPED | WaitOptions::CONTINUED) {
        return Err(Errno::EINVAL);
    }
    let mut must_not_wait = false;
    let choice = match kind {
        abi::P_ALL => Choice::Any,
        abi::P_PID if id > 0 => Choice::Process(id as u32),
        abi::P_PGID if id > 0 => Choice::Group(id as u32),
        abi::P_PGID if id == 0 => Choice::Group(me.process(cx)?.group()),
        abi::P_PIDFD if id >= 0 => {
            let file = me.files(cx)?.get(id, cx)?;
            must_not_wait = file.flags().contains(OpenFlags::NONBLOCK) && !options.contains(WaitOptions::NO_HANG);
            Choice::Process(file.kind::<PidFd>().ok_or(Errno::EBADF)?.process(cx).map_err(|_| Errno::ECHILD)?.pid)
        }
        _ => return Err(Errno::EINVAL),
    };
    let hang = if must_not_wait { options | WaitOptions::NO_HANG } else { options };
    let found = process::wait_async(cx, me, choice, hang, |cx, me, report: &Report| {
        let memory = me.memory(cx)?;
        if !info.start().is_null() {
            let raw = Info::child(Signal::CHLD, report.code, report.pid, report.uid, report.value, 0, 0).encode();
            memory.write_slice(info, raw.as_bytes())?;
        }
        if !usage.is_null() {
            memory.write(usage, &report.usage.encode())?;
        }
        Ok(())
    })?;
    if found.is_none() && must_not_wait {
        return Err(Errno::EAGAIN);
    }
    Ok(found.is_some())
}

fn pidfd_open(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let flags = args.int(1) as u32;
    let pid = u32::try_from(args.int(0)).ok().filter(|&pid| pid > 0).ok_or(Errno::EINVAL)?;
    if flags & !abi::O_NONBLOCK != 0 {
        return Err(Errno::EINVAL.into());
    }
    crate::memory::admit()?;
    let process = match process::find(pid, cx) {
        Some(process) => process.downgrade(),
        // A thread that is not the first of its process.
        None if process::find_thread(pid, cx).is_some() => return Err(Errno::ENOENT.into()),
        None => return Err(Errno::ESRCH.into()),
    };
    let status = OpenFlags::from_bits_retain(flags) & OpenFlags::NONBLOCK | OpenFlags::READ_WRITE;
    let file = OpenFile::new(Box::new(PidFd::new(process)), status);
    Ok(reserve_fd(me, cx)?.fill(file, FdFlags::CLOSE_ON_EXEC, cx))
}

/// A descriptor for what another process has open.
fn pidfd_getfd(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    if args.int(2) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let file = me.files(cx)?.get(args.int(0), cx)?;
    let pid = file.kind::<PidFd>().ok_or(Errno::EBADF)?.process(cx)?.pid;
    let thread = process::find_thread(pid, cx).ok_or(Errno::ESRCH)?;
    if thread.files.lock(cx).is_none() {
        return Err(Errno::ESRCH.into());
    }
    let check = || if me.may_trace(&thread, TraceAs::Real, cx)? { Ok(()) } else { Err(Errno::EPERM) };
    check()?;
    let file = super::compare::share_file(&thread, args.int(1), cx)?;
    // Once more: by execve(2) it may have got more rights in between, and opened with them what it is.
    check()?;
    Ok(reserve_fd(me, cx)?.fill_shared(file, FdFlags::CLOSE_ON_EXEC, cx))
}

fn getpid(cx: &Cx, me: &Current, _args: &Args) -> Step<usize> {
    Ok(me.process(cx)?.pid as usize)
}

fn gettid(cx: &Cx, me: &Current, _args: &Args) -> Step<usize> {
    Ok(me.thread(cx)?.tid() as usize)
}

fn getppid(cx: &Cx, me: &Current, _args: &Args) -> Step<usize> {
    Ok(me.process(cx)?.parent_pid() as usize)
}

/// The process of a pid argument, 0 being the caller.
fn process_of<'cx>(pid: i32, me: &Current, cx: &'cx Cx) -> Result<TempRc<'cx, Process>> {
    if pid == 0 {
        return Ok(me.process(cx)?);
    }
    u32::try_from(pid).ok().and_then(|pid| process::find(pid, cx)).ok_or(Errno::ESRCH)
}

fn setpgid(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let (pid, group) = (args.int(0), args.int(1));
    let caller = me.process(cx)?;
    if group < 0 {
        return Err(Errno::EINVAL.into());
    }
    let target = process_of(pid, me, cx)?;
    if target.pid != caller.pid {
        if target.parent_pid() != caller.pid {
            return Err(Errno::ESRCH.into());
        }
        if target.session() != caller.session() {
            return Err(Errno::EPERM.into());
        }
        if target.has_executed.load(Ordering::Relaxed) {
            return Err(Errno::EACCES.into());
        }
    }
    let group = if group == 0 { target.pid } else { group as u32 };
    set_group(&target, group, cx)?;
    Ok(0)
}

fn getpgid(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    Ok(process_of(args.int(0), me, cx)?.group() as usize)
}

fn getpgrp(cx: &Cx, me: &Current, _args: &Args) -> Step<usize> {
    Ok(me.process(cx)?.group() as usize)
}

fn setsid(cx: &Cx, me: &Current, _args: &Args) -> Step<usize> {
    Ok(create_session(&me.process(cx)?, cx)? as usize)
}

fn getsid(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    Ok(process_of(args.int(0), me, cx)?.session() as usize)
}

fn set_tid_address(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let thread = me.thread(cx)?;
    thread.clear_tid.store(args.long(0), Ordering::Relaxed);
    Ok(thread.tid() as usize)
}

fn getrlimit(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let limit = me.process(cx)?.limits.lock(cx).get(args.int(0) as u32)?;
    me.memory(cx)?.write(args.output::<Limit>(1), &limit)?;
    Ok(0)
}

fn setrlimit(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let new = me.memory(cx)?.read(args.input::<Limit>(1))?;
    let privileged = me.has(Capability::SysResource, cx);
    exchange_limit(&me.process(cx)?, args.int(0) as u32, Some(new), privileged, cx)?;
    Ok(0)
}

/// Changes a limit unless `new` is `None`; what it was. Nobody changes it between.
fn exchange_limit(
    process: &TempRc<'_, Process>,
    resource: u32,
    new: Option<Limit>,
    privileged: bool,
    cx: &Cx,
) -> Result<Limit> {
    let mut limits = process.limits.lock(cx);
    let old = limits.get(resource)?;
    let Some(new) = new else { return Ok(old) };
    limits.set(resource, new, privileged)?;
    drop(limits);
    if resource == abi::RLIMIT_CPU {
        process.timers.watch_limit(process, cx);
    }
    Ok(old)
}

fn prlimit64_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let (pid, resource) = (args.int(0), args.int(1) as u32);
    let (new, old) = (args.input::<Limit>(2), args.output::<Limit>(3));
    let new = match new.non_null() {
        Some(new) => Some(me.read_async(cx, new)?),
        None => None,
    };
    let before = prlimit(pid, resource, new, me, cx)?;
    if !old.is_null() {
        // As on Linux, a bad address is found when the limit has been changed.
        me.write_async(cx, old, &before)?;
    }
    Ok(0)
}

fn prlimit(pid: i32, resource: u32, new: Option<Limit>, me: &Current, cx: &Cx) -> Result<Limit> {
    let target = process_of(pid, me, cx)?;
    let own = me.thread(cx)?.credentials.lock(cx).clone();
    if target.pid != me.process(cx)?.pid {
        let other = target.first_thread(cx).ok_or(Errno::ESRCH)?;
        if !own.may_limit(&other.credentials.lock(cx)) {
            return Err(Errno::EPERM);
        }
    }
    exchange_limit(&target, resource, new, own.has(Capability::SysResource), cx)
}

fn getrusage(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let process = me.process(cx)?;
    let usage: RUsage = match args.int(0) {
        abi::RUSAGE_CHILDREN => process.children_usage(cx),
        0 => {
            let max_resident = me.space(cx).map_or(0, |space| space.peak_resident_pages() as u64 * 4);
            Usage { max_resident, ..process.usage(cx) }
        }
        1 => me.thread(cx)?.usage(cx),
        _ => return Err(Errno::EINVAL.into()),
    }
    .encode();
    me.memory(cx)?.write(args.output::<RUsage>(1), &usage)?;
    Ok(0)
}

/// USER_HZ is 100.
const NANOSECONDS_PER_TICK: u64 = 10_000_000;

fn times(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let process = me.process(cx)?;
    let ((user, system), children) = (process.times(cx), process.children_usage(cx));
    if let Some(to) = args.output::<[u64; 4]>(0).non_null() {
        let ticks = [user, system, children.user, children.system].map(|time| time / NANOSECONDS_PER_TICK);
        me.memory(cx)?.write(to, &ticks)?;
    }
    Ok((frame::time::now() / NANOSECONDS_PER_TICK) as usize)
}

fn rseq_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    const UNREGISTER: i32 = 1;
    let raw = RseqRegistration { address: args.long(0), len: args.int(1) as u32, signature: args.int(3) as u32 };
    match args.int(2) {
        0 => me.register_rseq_async(cx, raw),
        UNREGISTER => me.unregister_rseq_async(cx, raw),
        _ => Err(Errno::EINVAL),
    }
    .map(|()| 0)
}

fn unshare_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let flags = args.int(0) as u32;
    process::unshare(me, flags, cx)?;
    if flags & abi::CLONE_SYSVSEM != 0 {
        process::undo_now_async(cx, me)?;
    }
    Ok(0)
}

fn arch_prctl_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let argument = args.either(1);
    match arch::prctl(&mut me.context, args.int(0), argument.value(), cx)? {
        Prctl::Done => Ok(0),
        Prctl::Store(value) => me.write_async(cx, argument.output::<usize>(), &value).map(|()| 0),
        Prctl::Return(value) => Ok(value),
    }
}
