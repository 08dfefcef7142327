//! Waiting for children: wait4(2), waitid(2).

use bitflags::bitflags;
use frame::Cx;
use linux_raw_sys::general as abi;
use refs::TempRc;

use super::exit::remove;
use super::trace::Found;
use super::{JobState, Life, Process, Status, Usage};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::signal::Signal;
use crate::step::{Patience, Step, Stop, complete_async};

/// Which children are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// All.
    Any,
    /// The one with this pid.
    Process(u32),
    /// Those in this group.
    Group(u32),
}

bitflags! {
    /// The options of waitid(2).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct WaitOptions: u32 {
        /// It does not wait.
        const NO_HANG = abi::WNOHANG;
        /// Children that were stopped count.
        const STOPPED = abi::WSTOPPED;
        /// Children that have ended count.
        const EXITED = abi::WEXITED;
        /// Children that were continued count.
        const CONTINUED = abi::WCONTINUED;
        /// The child stays as it is, to be waited for again.
        const NO_WAIT = abi::WNOWAIT;
        /// Accepted: all children are the process', none a single thread's.
        const NO_THREAD = abi::__WNOTHREAD;
        /// All children, whatever signal tells of their end.
        const ALL = abi::__WALL;
        /// Only those whose end is told by another signal than SIGCHLD, or by none.
        const CLONE = abi::__WCLONE;
    }
}

/// What a wait found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Which child.
    pub pid: u32,
    /// Its real user.
    pub uid: u32,
    /// What happened: `CLD_*`.
    pub code: u32,
    /// The exit code or the signal.
    pub value: u32,
    /// The same as wait4(2) tells it.
    pub status: u32,
    /// What it and the children that it has waited for have used.
    pub usage: Usage,
}

/// Waits until one of the chosen children has changed as `options` say. `tell` writes the result to the caller's memory, and may fault;
/// only then the child is gone. `None` if nothing has changed and NO_HANG is set.
///
/// # Errors
/// ECHILD if there is no such child; what `tell` says; a signal.
pub fn wait_async(
    cx: &mut Cx,
    me: &mut Current,
    choice: Choice,
    options: WaitOptions,
    mut tell: impl FnMut(&Cx, &Current, &Report) -> Step<()>,
) -> Result<Option<Report>> {
    complete_async(cx, me, Patience::Forever, |cx, me, waker| {
        let parent = me.process(cx)?;
        if let Some(waker) = waker {
            parent.child_changed.register(waker, cx);
        }
        loop {
            let (found, has_candidate) = find(&parent, choice, options, cx);
            let Some((child, change)) = found else {
                let mut is_tracer = false;
                if parent.tracing.has_tracees() {
                    match look_at_tracees(&parent, choice, options, &mut |report| tell(cx, me, report), cx)? {
                        Ok(report) => return Ok(Some(report)),
                        Err(is_there) => is_tracer = is_there,
                    }
                }
                return match () {
                    () if !has_candidate && !is_tracer => Err(Errno::ECHILD.into()),
                    () if options.contains(WaitOptions::NO_HANG) => Ok(None),
                    () => Err(Stop::Block),
                };
            };
            let report = report(&child, change, cx);
            tell(cx, me, &report)?;
            // Another thread may have been told meanwhile: then there is something else, or nothing.
            if options.contains(WaitOptions::NO_WAIT) || take(&parent, &child, &report, cx) {
                return Ok(Some(report));
            }
        }
    })
}

/// Tells of a tracee of the process of which there is something to tell; if there is none, whether any was chosen. By which signal its end is told makes no difference.
#[cold]
#[inline(never)]
fn look_at_tracees(
    parent: &Process,
    choice: Choice,
    options: WaitOptions,
    tell: &mut dyn FnMut(&Report) -> Step<()>,
    cx: &Cx,
) -> Step<core::result::Result<Report, bool>> {
    let only = if let Choice::Process(id) = choice { Some(id) } else { None };
    let is_chosen = |id: u32, group: u32| match choice {
        Choice::Any => true,
        Choice::Process(chosen) => id == chosen,
        Choice::Group(chosen) => group == chosen,
    };
    loop {
        let found = match parent.find_changed_tracee(only, is_chosen, options.contains(WaitOptions::EXITED), cx) {
            Ok(found) => found,
            Err(is_there) => return Ok(Err(is_there)),
        };
        let report = report_of_tracee(&found, cx);
        tell(&report)?;
        // Another thread may have been told meanwhile.
        if options.contains(WaitOptions::NO_WAIT) || parent.take_tracee_news(&found, cx) {
            return Ok(Ok(report));
        }
    }
}

/// What wait(2) tells of a tracee.
#[cold]
fn report_of_tracee(found: &Found<'_>, cx: &Cx) -> Report {
    match found {
        Found::Stands(thread, code) => {
            let uid = thread.credentials.lock(cx).users().real.number();
            let (pid, value, status) = (thread.tid(), *code, code << 8 | 0x7f);
            Report { pid, uid, code: abi::CLD_TRAPPED, value, status, usage: thread.usage(cx) }
        }
        Found::Ended(id, uid, status, usage) => {
            let (code, value) = Status(*status).si_code_and_status();
            Report { pid: *id, uid: *uid, code, value, status: *status, usage: *usage }
        }
    }
}

/// What has become of a child.
struct Change {
    code: u32,
    value: u32,
    status: u32,
}

/// A child of which there is something to tell, and what; and whether there is any child that was chosen.
fn find<'cx>(
    parent: &Process,
    choice: Choice,
    options: WaitOptions,
    cx: &'cx Cx,
) -> (Option<(TempRc<'cx, Process>, Change)>, bool) {
    let is_candidate = |child: &Process| is_chosen(child, choice, options) && child.life() != Life::Reaped;
    if let Choice::Process(pid) = choice {
        let looked = parent.find_child(pid, cx, |child| {
            is_candidate(&child).then(|| look(parent, &child, options, cx).map(|change| (child, change)))
        });
        return match looked.flatten() {
            Some(found) => (found, true),
            None => (None, false),
        };
    }
    let found = parent.find_changed_child(
        cx,
        |child| {
            let change = if is_candidate(&child) { look(parent, &child, options, cx) } else { None };
            change.map(|change| (child, change))
        },
        is_candidate,
    );
    match found {
        Ok(found) => (Some(found), true),
        Err(is_there) => (None, is_there),
    }
}

fn is_chosen(child: &Process, choice: Choice, options: WaitOptions) -> bool {
    let by_number = match choice {
        Choice::Any => true,
        Choice::Process(pid) => child.pid == pid,
        Choice::Group(group) => child.group() == group,
    };
    let is_clone = child.exit_signal() != Some(Signal::CHLD);
    by_number && (options.contains(WaitOptions::ALL) || is_clone == options.contains(WaitOptions::CLONE))
}

/// What there is to tell of a child.
fn look(parent: &Process, child: &Process, options: WaitOptions, cx: &Cx) -> Option<Change> {
    if child.life() == Life::Zombie {
        if !options.contains(WaitOptions::EXITED) {
            return None;
        }
        let (code, value) = child.exit_status().si_code_and_status();
        return Some(Change { code, value, status: child.exit_status().0 });
    }
    let (stopped, continued) = {
        let job = child.job.lock(cx);
        let stopped = match job.state {
            JobState::Stopped(signal) if job.stop_to_report => Some(signal),
            _ => None,
        };
        (stopped, job.continue_to_report)
    };
    // Of a tracee of the parent its own stop is told.
    let is_tracee = || parent.tracing.has_tracees() && child.tracing.is_traced();
    if let (Some(signal), true) = (stopped, options.contains(WaitOptions::STOPPED))
        && !is_tracee()
    {
        let value = signal.number();
        return Some(Change { code: abi::CLD_STOPPED, value, status: value << 8 | 0x7f });
    }
    if continued && options.contains(WaitOptions::CONTINUED) {
        return Some(Change { code: abi::CLD_CONTINUED, value: Signal::CONT.number(), status: 0xffff });
    }
    None
}

/// Made when the parent's children are unlocked: it is long, and what a child that has ended has used does not change.
#[inline(never)]
fn report(child: &Process, change: Change, cx: &Cx) -> Report {
    let Change { code, value, status } = change;
    let mut usage = child.usage(cx);
    usage.add(&child.children_usage(cx));
    Report { pid: child.pid, uid: child.uid(cx), code, value, status, usage }
}

/// What was told is not told again; a zombie goes. False if another thread of the parent was first.
fn take(parent: &Process, child: &TempRc<'_, Process>, report: &Report, cx: &Cx) -> bool {
    if !matches!(report.code, abi::CLD_STOPPED | abi::CLD_CONTINUED) {
        let is_first = child.claim_reaping();
        if is_first {
            parent.children_usage.lock(cx).add(&report.usage);
            remove(child, cx);
        }
        return is_first;
    }
    // The child may stop, go on or end meanwhile: it says so with the parent's children locked.
    parent.with_children(cx, |children| {
        let mut job = child.job.lock(cx);
        let to_report =
            if report.code == abi::CLD_STOPPED { &mut job.stop_to_report } else { &mut job.continue_to_report };
        let is_first = core::mem::take(to_report);
        if !job.stop_to_report && !job.continue_to_report && child.life() == Life::Alive {
            children.is_reported(child);
        }
        is_first
    })
}
