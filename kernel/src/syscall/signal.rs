//! Signals.

use frame::Cx;
use linux_raw_sys::general as abi;
use refs::{TempRc, WeakRc};

use super::{Args, Call, Entry};
use crate::arch;
use crate::arch::signal_frame::StackT;
use crate::credentials::Uid;
use crate::current::{Current, Restart};
use crate::error::{Errno, Result};
use crate::process::{self, Cursor, INIT, PidFd, Process, Thread};
use crate::signal::send::{send_to_process, send_to_thread};
use crate::signal::{self, Action, AltStack, Info, SigInfo, Signal, SignalSet};
use crate::step::{Patience, Step, Stop, TimeSlice, complete_async};
use crate::time::clock::TimeSpec;

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[
    Entry::new(abi::__NR_rt_sigaction, "rt_sigaction", Call::Step(rt_sigaction)),
    Entry::new(abi::__NR_rt_sigprocmask, "rt_sigprocmask", Call::Step(rt_sigprocmask)),
    Entry::new(abi::__NR_rt_sigpending, "rt_sigpending", Call::Step(rt_sigpending)),
    Entry::new(abi::__NR_rt_sigsuspend, "rt_sigsuspend", Call::Async(rt_sigsuspend_async)),
    Entry::new(abi::__NR_rt_sigtimedwait, "rt_sigtimedwait", Call::Async(rt_sigtimedwait_async)),
    Entry::new(abi::__NR_rt_sigqueueinfo, "rt_sigqueueinfo", Call::Step(rt_sigqueueinfo)),
    Entry::new(abi::__NR_rt_tgsigqueueinfo, "rt_tgsigqueueinfo", Call::Step(rt_tgsigqueueinfo)),
    Entry::new(abi::__NR_rt_sigreturn, "rt_sigreturn", Call::Async(rt_sigreturn_async)),
    Entry::new(abi::__NR_sigaltstack, "sigaltstack", Call::Step(sigaltstack)),
    Entry::new(abi::__NR_kill, "kill", Call::Async(kill)),
    Entry::new(abi::__NR_tkill, "tkill", Call::Step(tkill)),
    Entry::new(abi::__NR_tgkill, "tgkill", Call::Step(tgkill)),
    Entry::new(abi::__NR_pause, "pause", Call::Async(pause_async)),
    Entry::new(abi::__NR_restart_syscall, "restart_syscall", Call::Async(restart_syscall_async)),
];

const SET_SIZE: usize = size_of::<u64>();
/// SA_RESTORER and the flags that sigaction(2) names: others are cleared, so that a program can find out what is there.
const ACTION_FLAGS: u32 = abi::SA_NOCLDSTOP
    | abi::SA_NOCLDWAIT
    | abi::SA_SIGINFO
    | abi::SA_ONSTACK
    | abi::SA_RESTART
    | abi::SA_NODEFER
    | abi::SA_RESETHAND
    | abi::SA_EXPOSE_TAGBITS
    | abi::SA_RESTORER;

fn check_size(size: usize) -> Result<()> {
    if size == SET_SIZE { Ok(()) } else { Err(Errno::EINVAL) }
}

fn rt_sigaction(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let (new, old) = (args.input::<Action>(1), args.output::<Action>(2));
    check_size(args.long(3))?;
    let (memory, process) = (me.memory(cx)?, me.process(cx)?);
    let action = new.non_null().map(|new| memory.read(new)).transpose()?;
    let signal = Signal::new(args.int(0))?;
    if action.is_some() && SignalSet::UNBLOCKABLE.contains(signal) {
        return Err(Errno::EINVAL.into());
    }
    if !old.is_null() {
        memory.write(old, &process.action(signal, cx))?;
    }
    if let Some(mut action) = action {
        action.flags &= u64::from(ACTION_FLAGS);
        process.set_action(signal, action, cx);
        if action.ignores(signal) {
            signal::send::discard(&process, signal.set(), cx);
        }
    }
    Ok(0)
}

fn rt_sigprocmask(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let (how, new, old) = (args.int(0) as u32, args.input::<u64>(1), args.output::<u64>(2));
    check_size(args.long(3))?;
    let (memory, thread) = (me.memory(cx)?, me.thread(cx)?);
    let blocked = thread.signals.blocked();
    let mut wanted = None;
    if !new.is_null() {
        let set = SignalSet(memory.read(new)?);
        wanted = Some(match how {
            abi::SIG_BLOCK => blocked.union(set),
            abi::SIG_UNBLOCK => blocked.without(set),
            abi::SIG_SETMASK => set,
            _ => return Err(Errno::EINVAL.into()),
        });
    }
    if !old.is_null() {
        memory.write(old, &blocked.0)?;
    }
    if let Some(wanted) = wanted {
        signal::deliver::set_mask(me, wanted, cx);
    }
    Ok(0)
}

fn rt_sigpending(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    if args.long(1) > SET_SIZE {
        return Err(Errno::EINVAL.into());
    }
    let thread = me.thread(cx)?;
    let pending = thread.signals.pending.set().union(me.process(cx)?.pending.set());
    let raw = pending.intersection(thread.signals.blocked()).0.to_le_bytes();
    me.memory(cx)?.write_slice(args.output::<u8>(0).slice(args.long(1)), &raw)?;
    Ok(0)
}

fn rt_sigsuspend_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    check_size(args.long(1))?;
    let mask = SignalSet(me.read_async(cx, args.input::<u64>(0))?);
    signal::deliver::set_temporary_mask(me, mask, cx);
    wait_for_signal_async(cx, me)
}

fn pause_async(cx: &mut Cx, me: &mut Current, _args: &Args) -> Result<usize> {
    wait_for_signal_async(cx, me)
}

fn wait_for_signal_async(cx: &mut Cx, me: &mut Current) -> Result<usize> {
    match complete_async(cx, me, Patience::Forever, |_, _, _| Err(Stop::Block)) {
        Err(Errno::RESTART_SYS) => Err(Errno::RESTART_NO_HANDLER),
        other => other,
    }
}

fn rt_sigtimedwait_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let (set, info_to) = (args.input::<u64>(0), args.output::<SigInfo>(1));
    check_size(args.long(3))?;
    let wanted = SignalSet(me.read_async(cx, set)?).without(SignalSet::UNBLOCKABLE);
    let patience = match args.input::<TimeSpec>(2).non_null() {
        None => Patience::Forever,
        Some(timeout) => match me.read_async(cx, timeout)?.nanoseconds()? {
            0 => Patience::None,
            time => Patience::Until(frame::time::now().saturating_add(time)),
        },
    };
    me.thread(cx)?.signals.set_waited(wanted);
    let taken = complete_async(cx, me, patience, |cx, me, _| {
        let (thread, process) = (me.thread(cx)?, me.process(cx)?);
        let info = thread.signals.pending.take(wanted, cx).or_else(|| process.pending.take(wanted, cx));
        thread.signals.look_again(&process.pending);
        info.ok_or(Stop::Block)
    });
    signal::deliver::end_waiting_for(me, wanted, cx)?;
    let info = match taken {
        Err(Errno::ETIMEDOUT) => return Err(Errno::EAGAIN),
        Err(Errno::RESTART_SYS) => return Err(Errno::EINTR),
        other => other?,
    };
    if !info_to.is_null() {
        me.write_async(cx, info_to, &info.encode())?;
    }
    Ok(info.signal.number() as usize)
}

fn rt_sigreturn_async(cx: &mut Cx, me: &mut Current, _args: &Args) -> Result<usize> {
    signal::handler::return_from_handler_async(cx, me).or_else(|_| {
        signal::send::force(me, Info::kernel(Signal::SEGV), cx);
        Ok(0)
    })
}

fn sigaltstack(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let (new, old) = (args.input::<StackT>(0), args.output::<StackT>(1));
    let (memory, thread) = (me.memory(cx)?, me.thread(cx)?);
    let sp = arch::stack_pointer(&me.context.registers);
    let current = *thread.signals.alt_stack.lock(cx);
    let wanted = new.non_null().map(|new| memory.read(new)).transpose()?;
    let decoded = match wanted {
        Some(_) if current.contains(sp) => return Err(Errno::EPERM.into()),
        Some(wanted) => Some(AltStack::decode(&wanted)?),
        None => None,
    };
    if !old.is_null() {
        memory.write(old, &current.encode(sp))?;
    }
    if let Some(decoded) = decoded {
        *thread.signals.alt_stack.lock(cx) = decoded;
    }
    Ok(0)
}

/// Who sends: pid and real user.
fn sender(me: &Current, cx: &Cx) -> Result<(u32, u32)> {
    Ok((me.process(cx)?.pid, me.thread(cx)?.credentials.lock(cx).users().real.number()))
}

/// Whether the caller may send the signal to the process.
fn check_right(target: &Process, signal: Option<Signal>, me: &Current, cx: &Cx) -> Result<()> {
    let caller = me.process(cx)?;
    if caller.pid == target.pid {
        return Ok(());
    }
    if signal == Some(Signal::CONT) && caller.session() == target.session() {
        return Ok(());
    }
    let own = me.thread(cx)?.credentials.lock(cx).clone();
    let allowed = match target.first_thread(cx) {
        Some(thread) => own.may_signal(&thread.credentials.lock(cx)),
        None => own.may_signal_user(Uid::new(target.uid(cx))),
    };
    if allowed { Ok(()) } else { Err(Errno::EPERM) }
}

/// Signal 0 asks only whether one could be sent.
fn signal_or_none(number: i32) -> Result<Option<Signal>> {
    if number == 0 { Ok(None) } else { Signal::new(number).map(Some) }
}

/// Sends the signal of that number, if it is one. It is judged behind the target: who signals nobody gets ESRCH.
fn send_if_any(target: &Process, number: i32, me: &Current, cx: &Cx) -> Result<()> {
    let signal = signal_or_none(number)?;
    check_right(target, signal, me, cx)?;
    let Some(signal) = signal else { return Ok(()) };
    let (pid, uid) = sender(me, cx)?;
    send_to_process(target, Info::from_process(signal, abi::SI_USER as i32, pid, uid), cx)
}

/// The process of that id, or of the thread of that id.
fn process_of_id<'cx>(id: u32, cx: &'cx Cx) -> Result<TempRc<'cx, Process>> {
    match process::find(id, cx) {
        Some(process) => Ok(process),
        None => Ok(process::find_thread(id, cx).ok_or(Errno::ESRCH)?.process(cx)?),
    }
}

#[cfg_attr(false, ebb_lint::never_suspends)]
fn kill(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let (pid, signal) = (args.int(0), args.int(1));
    let own_group = me.process(cx)?.group();
    match pid {
        1.. => send_if_any(&*process_of_id(pid as u32, cx)?, signal, me, cx)?,
        0 => kill_many(cx, me, Targets::Group(own_group, Cursor::default()), signal)?,
        -1 => kill_many(cx, me, Targets::AllAbove(INIT), signal)?,
        i32::MIN => return Err(Errno::ESRCH),
        _ => kill_many(cx, me, Targets::Group(pid.unsigned_abs(), Cursor::default()), signal)?,
    }
    Ok(0)
}

/// The processes that kill(2) still has to look at.
enum Targets {
    /// The members of a group.
    Group(u32, Cursor),
    /// All processes with a higher id but the caller.
    AllAbove(u32),
}

impl Targets {
    fn next(&mut self, cx: &Cx) -> Option<WeakRc<Process>> {
        match self {
            Targets::Group(group, cursor) => process::next_member(*group, cursor, cx),
            Targets::AllAbove(last) => {
                let (pid, process) = process::PROCESSES.next(last.checked_add(1)?, cx)?;
                *last = pid;
                Some(process)
            }
        }
    }
}

/// Sends a signal to many. It is a success if one could be sent to. Interrupts are let in now and then, but nobody else has a turn. Members that others make on other cores are
/// entered behind all others, or their maker had its signal before that and makes none.
#[cfg_attr(false, ebb_lint::never_suspends)]
fn kill_many(cx: &mut Cx, me: &Current, mut targets: Targets, signal: i32) -> Result<()> {
    let own = me.process(cx)?.pid;
    let mut outcome = Err(Errno::ESRCH);
    let mut time_slice = TimeSlice::default();
    let mut sent = 0_u32;
    while let Some(target) = targets.next(cx) {
        if let Ok(target) = target.upgrade(cx)
            && !(matches!(targets, Targets::AllAbove(_)) && target.pid == own)
        {
            match send_if_any(&target, signal, me, cx) {
                Ok(()) => outcome = Ok(()),
                Err(error) if outcome.is_err() => outcome = Err(error),
                Err(_) => {}
            }
        }
        sent += 1;
        if sent.is_multiple_of(16) && time_slice.is_over() {
            frame::irq::poll(cx);
            time_slice = TimeSlice::default();
        }
    }
    outcome
}

fn send_to_one_thread(
    thread: &Thread,
    number: i32,
    info: impl Fn(Signal) -> Result<Info>,
    me: &Current,
    cx: &Cx,
) -> Step<usize> {
    let signal = signal_or_none(number)?;
    let process = thread.process(cx)?;
    check_right(&process, signal, me, cx)?;
    if let Some(signal) = signal {
        send_to_thread(&process, thread, info(signal)?, cx)?;
    }
    Ok(0)
}

fn tkill(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let tid = u32::try_from(args.int(0)).ok().filter(|&tid| tid > 0).ok_or(Errno::EINVAL)?;
    let thread = process::find_thread(tid, cx).ok_or(Errno::ESRCH)?;
    let (pid, uid) = sender(me, cx)?;
    send_to_one_thread(&thread, args.int(1), |signal| Ok(Info::from_process(signal, abi::SI_TKILL, pid, uid)), me, cx)
}

fn thread_of_group<'cx>(pid: i32, tid: i32, cx: &'cx Cx) -> Result<TempRc<'cx, Thread>> {
    let positive = |id: i32| u32::try_from(id).ok().filter(|&id| id > 0).ok_or(Errno::EINVAL);
    let (pid, tid) = (positive(pid)?, positive(tid)?);
    let thread = process::find_thread(tid, cx).ok_or(Errno::ESRCH)?;
    if thread.process(cx)?.pid == pid { Ok(thread) } else { Err(Errno::ESRCH) }
}

fn tgkill(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let thread = thread_of_group(args.int(0), args.int(1), cx)?;
    let (pid, uid) = sender(me, cx)?;
    send_to_one_thread(&thread, args.int(2), |signal| Ok(Info::from_process(signal, abi::SI_TKILL, pid, uid)), me, cx)
}

/// Checks what a program tells of a signal that it sends: it may not say that the kernel or kill(2) sent it, except to itself.
///
/// # Errors
/// EPERM.
fn check_info(raw: &SigInfo, to_itself: bool) -> Result<()> {
    if (raw.code >= 0 || raw.code == abi::SI_TKILL) && !to_itself { Err(Errno::EPERM) } else { Ok(()) }
}

fn rt_sigqueueinfo(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let pid = u32::try_from(args.int(0)).map_err(|_| Errno::ESRCH)?;
    let raw = me.memory(cx)?.read(args.input::<SigInfo>(2))?;
    check_info(&raw, me.thread(cx)?.tid() == pid)?;
    let target = process_of_id(pid, cx)?;
    let signal = signal_or_none(args.int(1))?;
    check_right(&target, signal, me, cx)?;
    if let Some(signal) = signal {
        send_to_process(&target, Info::decode(signal, &raw), cx)?;
    }
    Ok(0)
}

fn rt_tgsigqueueinfo(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let raw = me.memory(cx)?.read(args.input::<SigInfo>(3))?;
    let thread = thread_of_group(args.int(0), args.int(1), cx)?;
    check_info(&raw, me.thread(cx)?.tid() == thread.tid())?;
    send_to_one_thread(&thread, args.int(2), |signal| Ok(Info::decode(signal, &raw)), me, cx)
}

pub(super) fn pidfd_send_signal(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let (fd, number, info, flags) = (args.int(0), args.int(1), args.input::<SigInfo>(2), args.int(3));
    if flags != 0 {
        return Err(Errno::EINVAL.into());
    }
    let file = me.files(cx)?.get(fd, cx)?;
    let target = match file.kind::<PidFd>() {
        Some(pidfd) => pidfd.process(cx)?,
        None => crate::fs::proc::process_of_directory(&file, cx).ok_or(Errno::EBADF)??,
    };
    if info.is_null() {
        send_if_any(&target, number, me, cx)?;
        return Ok(0);
    }
    let raw = me.memory(cx)?.read(info)?;
    if raw.signo != number {
        return Err(Errno::EINVAL.into());
    }
    let signal = signal_or_none(number)?;
    check_right(&target, signal, me, cx)?;
    if let Some(signal) = signal {
        check_info(&raw, target.pid == me.thread(cx)?.tid())?;
        send_to_process(&target, Info::decode(signal, &raw), cx)?;
    }
    Ok(0)
}

fn restart_syscall_async(cx: &mut Cx, me: &mut Current, _args: &Args) -> Result<usize> {
    match me.restart.take() {
        Some(Restart::Sleep { until, remainder }) => {
            crate::time::sleep::sleep_rest_async(cx, me, until, remainder).map(|()| 0)
        }
        Some(Restart::Poll { fds, until }) => super::poll::resume_poll_async(cx, me, fds, until),
        Some(rest @ Restart::Futex { .. }) => super::futex::wait_rest_async(cx, me, rest).map(|()| 0),
        None => Err(Errno::EINTR),
    }
}
