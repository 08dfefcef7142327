//! The end of threads and processes.

use core::sync::atomic::Ordering;

use frame::Cx;
use linux_raw_sys::general as abi;
use refs::{NoSuspend, StrongRc, TempRc};

use super::thread_group::{CHILDREN_AT_A_TIME, Notable};
use super::{
    Continuation, Cursor, INIT, Life, PROCESSES, Process, Status, THREADS, Thread, freezer, semaphores, session, stop,
    trace,
};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::{FileTable, FsContext, Leaving};
use crate::futex;
use crate::memory::AddressSpace;
use crate::reboot;
use crate::sched;
use crate::signal::{self, Action, Info, Signal, Work};
use crate::step::{Caller, Interruption, TimeSlice};
use crate::user_memory::{UserIn, UserInOut};

/// USER_HZ is 100: in this unit SIGCHLD tells CPU times.
const NANOSECONDS_PER_TICK: u64 = 10_000_000;

/// Tells those who see the memory that the calling thread leaves: releases its robust futexes and clears the word of CLONE_CHILD_CLEARTID.
pub(super) fn release_futexes_async(cx: &mut Cx, me: &mut Current) {
    let Ok(owed) = take_owed(me, cx) else { return };
    if owed.robust_list != 0 {
        // What cannot be read is the program's own fault and concerns nobody else.
        let list = UserIn::<futex::Head>::new(owed.robust_list);
        let _ = futex::release_robust_async(cx, me, list, owed.tid, owed.is_charged);
    }
    if let Some(word) = owed.word {
        // A bad address is the program's loss.
        let _ = me.write_async(cx, word, &0);
        futex::wake_at(me, word, cx);
    }
}

/// What a thread owes to those who see its memory.
struct Owed {
    tid: u32,
    /// Where its list of robust futexes is; 0: nowhere.
    robust_list: usize,
    /// A group's budget is charged for it.
    is_charged: bool,
    /// Where 0 is to be written, and who waits there (pthread_join) to be woken.
    word: Option<UserInOut<u32>>,
}

fn take_owed(me: &Current, cx: &Cx) -> Result<Owed> {
    let (thread, process, space) = (me.thread(cx)?, me.process(cx)?, me.space(cx)?);
    let robust_list = thread.robust_list.swap(0, Ordering::Relaxed);
    if process.is_exiting() && !space.is_seen_by_others(cx) {
        // Whoever waits for one of its futexes, or for its end, ends as well.
        return Ok(Owed { tid: thread.tid(), robust_list: 0, is_charged: false, word: None });
    }
    let is_charged = robust_list != 0 && !process.payer(cx).is_nobody();
    let address = thread.clear_tid.swap(0, Ordering::Relaxed);
    let word = sees_cleared_tid(address, &thread, &process, &space, cx).then(|| UserInOut::<u32>::new(address));
    Ok(Owed { tid: thread.tid(), robust_list, is_charged, word })
}

/// Ends the calling thread, and its process if it was the last one. All that it held is gone when this returns: only its task is left.
pub fn exit_thread_async(cx: &mut Cx, me: &mut Current) {
    if me.thread(cx).is_ok_and(|thread| thread.tracing.is_traced() || thread.tracing.is_tracer()) {
        trace::thread_ends_async(cx, me);
    }
    // What one thread leaves behind, no other is to see that runs on. And for one thread of several others may wait until it has let go of what they share.
    while me.process(cx).is_ok_and(|process| process.is_exiting() && is_to_tell_others(&process, cx)) {
        sched::pause_in_end_async(cx);
    }
    release_futexes_async(cx, me);
    let Ok(held) = let_go(me, cx) else { return };
    sched::work_at_ends(tasks::current(cx));
    // In Linux's order: who sees the end of a pipe finds segments detached and semaphores given back.
    if let Some(space) = held.space {
        AddressSpace::give_up_async(space, cx);
    }
    if held.was_last {
        semaphores::undo_at_end_async(cx, me);
    }
    // Descriptors are closed before the parent learns of the end: a pipe's reader sees its end no later than wait(2) returns.
    if let Some(files) = held.files {
        let process = &me.process;
        let is_killed = |cx: &Cx| process.upgrade(cx).is_ok_and(|process| process.was_told(cx));
        FileTable::leave_async(cx, files, |cx| if is_killed(cx) { Leaving::InKill } else { Leaving::InOrder });
    }
    if let Some(fs) = held.fs {
        fs.end_unseen_if(FsContext::end_is_unseen);
    }
    if held.was_last && me.process(cx).is_ok_and(|process| process.tracing.has_tracees()) {
        trace::release_all_async(cx, me);
    }
    tasks::free_all_async(cx);
    // Before anybody may look for it, or give its number to another.
    if let Some(thread) = THREADS.remove(held.tid, cx) {
        let gone = thread.get(cx);
        gone.count.end();
        if gone.tracing.is_traced() {
            trace::end_of_tracee(&gone, cx);
        }
        drop(gone);
        thread.destroy_unseen(cx, |_| true);
    }
    let threads = THREADS.len();
    if threads.is_multiple_of(crate::memory::STACKS_AT_A_TIME) {
        crate::memory::keep_stacks(threads);
    }
    // What ends with the thread was its process's and its group's work. Behind that the process may go, and its account with it.
    sched::leave_account(cx);
    let is_last = me.process(cx).is_ok_and(|process| {
        process.end_thread(held.tid == process.pid, cx);
        process.thread_is_finished()
    });
    if is_last {
        if let Ok(process) = me.process(cx) {
            begin_end_of_process(&process, cx);
        }
        if me.process(cx).is_ok_and(|process| !process.close_children(cx)) {
            give_children_away_async(cx, me);
        }
        if let Ok(process) = me.process(cx) {
            end_process(&process, cx);
        }
    }
    // Many may end one after the other, none of which goes back to user mode.
    frame::irq::poll(cx);
}

/// How many threads of a process that ends are told so before others may have their turn.
const TOLD_AT_A_TIME: usize = 256;

/// The calling thread works at an end, and tells some more threads that their process ends; whether there may be others. While one of them writes a core file, that one is not told.
fn is_to_tell_others(process: &Process, cx: &Cx) -> bool {
    sched::work_at_ends(tasks::current(cx));
    !process.is_dumping() && !process.tell_ending(TOLD_AT_A_TIME, cx)
}

/// What a thread had shares in.
struct Held {
    tid: u32,
    /// It was the last thread of its process that had not left it.
    was_last: bool,
    space: Option<StrongRc<AddressSpace>>,
    files: Option<StrongRc<FileTable>>,
    fs: Option<StrongRc<FsContext>>,
}

/// The thread leaves its process, and lets go of what it has shares in.
fn let_go(me: &Current, cx: &Cx) -> Result<Held> {
    let (thread, process) = (me.thread(cx)?, me.process(cx)?);
    freezer::note_end(&process, &thread, cx);
    let counts = thread.counts_of(tasks::current(cx));
    process.usage.lock(cx).add(&counts);
    if thread.tid() == process.pid {
        process.leader_status.store(thread.exit_status.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    let was_last = process.remove_thread(&thread, cx) == 0;
    if was_last {
        process.begin_exit(process.leader_status.load(Ordering::Relaxed));
        let peak = me.space(cx).map_or(0, |space| space.peak_resident_pages() as u64 * 4);
        process.usage.lock(cx).max_resident = peak;
    } else if process.is_exiting() {
        process.wake_ending(cx);
    } else {
        // What it was to take others may take.
        signal::send::offer_all(&process, process.pending.set(), cx);
    }
    thread.release_vfork();
    // One after the other: in one expression all three would be locked until its end.
    let space = thread.space.lock(cx).take();
    let files = thread.files.lock(cx).take();
    let fs = thread.fs.lock(cx).take();
    Ok(Held { tid: thread.tid(), was_last, space, files, fs })
}

/// Whether the calling thread has a word to clear for others, who see its memory.
pub(super) fn owes_clear_tid(me: &Current, cx: &Cx) -> bool {
    let (Ok(thread), Ok(process), Ok(space)) = (me.thread(cx), me.process(cx), me.space(cx)) else { return false };
    sees_cleared_tid(thread.clear_tid.load(Ordering::Relaxed), &thread, &process, &space, cx)
}

/// Whether anybody sees that the word of CLONE_CHILD_CLEARTID of the calling thread, which is at `address`, is cleared. Where the process ends, nobody of it does.
fn sees_cleared_tid(address: usize, thread: &Thread, process: &Process, space: &AddressSpace, cx: &Cx) -> bool {
    let may_have_others = process.unfinished_threads() > 1 || space.is_lent();
    let do_others_see = || space.is_lent() || matches!(space.shared_object(address, cx), Ok(Some(_)));
    let has_others = || thread.space.lock(cx).as_ref().is_some_and(|space| space.owners() > 1);
    address != 0 && may_have_others && (!process.is_exiting() || do_others_see()) && has_others()
}

/// The process has no threads any more.
fn begin_end_of_process(process: &Process, cx: &Cx) {
    if process.pid == INIT {
        end_of_init(process.exit_status(), cx);
    }
    if process.session() == process.pid {
        end_of_session_leader(process, cx);
    }
    stop::forget(process, cx);
}

/// The process has neither threads nor children any more: its parent learns of it.
fn end_process(process: &TempRc<'_, Process>, cx: &Cx) {
    let parent = process.parent(cx);
    let connects =
        |parent: &TempRc<'_, Process>| parent.group() != process.group() && parent.session() == process.session();
    let may_orphan = parent.as_ref().is_some_and(connects);
    if may_orphan {
        hang_up_if_orphaned(process.group(), Some(process), cx);
    }
    process.timers.stop(process, cx);
    process.account.end();
    let (code, value) = process.exit_status().si_code_and_status();
    let told = process.with_parent_as_known(parent, cx, |parent, children| {
        let abandoned =
            process.exit_signal() == Some(Signal::CHLD) && parent.action(Signal::CHLD, cx).abandons_children();
        // Whom nobody waits for is never seen as a zombie: wait(2) on another core would find it.
        process.set_life(if abandoned { Life::Reaped } else { Life::Zombie });
        children.has_changed(process);
        (abandoned, Told::new(parent, process, code, value, cx))
    });
    let (abandoned, parent) = match told {
        Some((abandoned, told)) => (abandoned, Some(told.finish(cx))),
        None => {
            process.set_life(Life::Reaped);
            (true, None)
        }
    };
    process.ended.wake_all();
    if process.tracing.is_watched() {
        trace::end_of_process(process, cx);
    }
    if may_orphan {
        // Two that end at the same time both still saw the other.
        hang_up_if_orphaned(process.group(), Some(process), cx);
    }
    if abandoned {
        remove(process, cx);
    }
    if let Some(parent) = parent {
        // Who has taken it in since then was woken for that.
        parent.child_changed.wake_all();
    }
}

/// Process 1 has ended. Linux panics then; here it is how a machine that runs one program ends.
fn end_of_init(status: Status, cx: &Cx) -> ! {
    match status.signal() {
        Some(signal) => crate::log!("process 1 was ended by signal {signal}: power off"),
        None => crate::log!("process 1 has exited with code {}: power off", status.code()),
    }
    reboot::power_off(cx)
}

/// The terminal is taken from the session, and its foreground group is told; also that of one that was hung up before.
fn end_of_session_leader(process: &Process, cx: &Cx) {
    let Some(session) = session::session(process.session(), cx) else { return };
    let terminal = session.terminal.swap(0, Ordering::Relaxed);
    let of = if terminal != 0 { &session.foreground } else { &session.hung_up };
    let foreground = of.swap(0, Ordering::Relaxed);
    if foreground != 0 {
        signal::broadcast::send_to_group(foreground, Info::kernel(Signal::HUP), cx);
        signal::broadcast::send_to_group(foreground, Info::kernel(Signal::CONT), cx);
    }
}

/// All children go to the nearest ancestor that takes in orphans, or to process 1. They may be many: others have their turn in between, and a child that
/// has not been given away yet may end meanwhile.
#[inline(never)]
fn give_children_away_async(cx: &mut Cx, me: &mut Current) {
    // Its end so far has woken others, who wait for no more.
    sched::pause_in_end_async(cx);
    let mut time_slice = TimeSlice::of_end();
    time_slice.is_over();
    let mut groups = Groups::default();
    let mut notable = [const { None }; CHILDREN_AT_A_TIME];
    while let Some(count) = give_some_away(me, &mut groups, &mut notable, cx) {
        have_others_turn_async(cx, &mut time_slice, &mut groups);
        // What a child costs has no common bound: others may have their turn after each.
        for given in notable[..count].iter().flatten() {
            let mut told = Cursor::default();
            loop {
                let is_done = was_given_away(given, &mut told, me, &mut groups, cx);
                have_others_turn_async(cx, &mut time_slice, &mut groups);
                if is_done {
                    break;
                }
            }
        }
        have_others_turn_async(cx, &mut time_slice, &mut groups);
    }
}

/// If the time slice is over. What was known of groups is not, then.
#[inline(always)]
fn have_others_turn_async(cx: &mut Cx, time_slice: &mut TimeSlice, groups: &mut Groups) {
    if time_slice.is_over() {
        sched::pause_in_end_async(cx);
        (*time_slice, *groups) = (TimeSlice::of_end(), Groups::default());
    }
}

/// No process group has this number.
const NO_GROUP: u32 = 0;

/// What is known of groups as long as others do not have their turn.
struct Groups {
    /// It has no stopped member.
    calm: u32,
    /// Whether it is orphaned was looked at after the children of this round were given away.
    judged: u32,
}

impl Default for Groups {
    fn default() -> Self {
        Groups { calm: NO_GROUP, judged: NO_GROUP }
    }
}

/// Gives some children away: how many of them stand in `notable` now; `None` if there are no more.
fn give_some_away(
    me: &Current,
    groups: &mut Groups,
    notable: &mut [Option<Notable>; CHILDREN_AT_A_TIME],
    cx: &Cx,
) -> Option<usize> {
    let process = me.process(cx).ok()?;
    if process.close_children(cx) {
        return None;
    }
    groups.judged = NO_GROUP;
    loop {
        let taker = taker_of_orphans(&process, cx)?;
        // One that has ended meanwhile is no candidate any more.
        if let Some((_, count)) = process.give_children(&taker, groups.calm, notable, cx) {
            return Some(count);
        }
    }
}

/// Does what else must be done for a child that was given away; false if that was not all, as it has very many threads. Meanwhile it may have changed, and
/// may have been given away once more. `told`: which of its threads have been told that its parent has died.
fn was_given_away(given: &Notable, told: &mut Cursor, me: &Current, groups: &mut Groups, cx: &Cx) -> bool {
    let (Ok(from), Ok(child)) = (me.process(cx), given.child.upgrade(cx)) else { return true };
    let wants_signals = child.has_parent_death_signal.load(Ordering::Relaxed);
    if wants_signals && send_parent_death_signal(&child, &from, told, cx) {
        return false;
    }
    if child.life() != Life::Alive {
        // Whoever ended later has told its new parent itself.
        if given.was_zombie && child.life() == Life::Zombie {
            let (code, value) = child.exit_status().si_code_and_status();
            if let Some(told) = child.with_parent(cx, |parent, _| Told::new(parent, &child, code, value, cx)) {
                told.finish(cx);
            }
            if let Some(parent) = child.parent(cx) {
                parent.child_changed.wake_all();
            }
            let abandons = |taker: TempRc<'_, Process>| taker.action(Signal::CHLD, cx).abandons_children();
            if child.parent(cx).is_some_and(abandons) && child.claim_reaping() {
                remove(&child, cx);
            }
        }
        return true;
    }
    let group = child.group();
    let is_known = group == groups.calm || group == groups.judged;
    if group != from.group() && child.session() == from.session() && !is_known {
        hang_up_if_orphaned(group, None, cx);
        groups.judged = group;
        if !session::has_stopped_member(group, cx) {
            groups.calm = group;
        }
    }
    true
}

/// So many threads are looked at, at most.
const THREADS_AT_A_TIME: usize = 64;

/// Tells the next thread of a child that wants to know, behind `told`, that its parent has died; whether there may be more. Where all threads block the signal,
/// each is looked at for it.
fn send_parent_death_signal(child: &Process, parent: &Process, told: &mut Cursor, cx: &Cx) -> bool {
    for _ in 0..THREADS_AT_A_TIME {
        let Some(thread) = child.next_thread(told, cx) else { return false };
        let Ok(thread) = thread.upgrade(cx) else { continue };
        let wanted = thread.parent_death_signal.load(Ordering::Relaxed);
        if let Ok(wanted) = Signal::new(wanted as i32) {
            let info = Info::from_process(wanted, abi::SI_USER as i32, parent.pid, 0);
            // Nothing can be done about a full queue of a child.
            let _ = signal::send::send_to_process(child, info, cx);
            break;
        }
    }
    true
}

fn taker_of_orphans<'cx>(process: &Process, cx: &'cx Cx) -> Option<TempRc<'cx, Process>> {
    let mut ancestor = process.parent(cx);
    while let Some(candidate) = ancestor {
        if candidate.is_subreaper.load(Ordering::Relaxed) && !candidate.is_exiting() {
            return Some(candidate);
        }
        ancestor = candidate.parent(cx);
    }
    PROCESSES.get(INIT, cx)
}

/// A group that became orphaned while a member is stopped would stay so for ever: it is hung up and continued.
fn hang_up_if_orphaned(group: u32, leaving: Option<&Process>, cx: &Cx) {
    // Looked for first, because it is counted: whether a group is orphaned depends on each of its members.
    if group != 0 && session::has_stopped_member(group, cx) && session::is_orphaned_without(group, leaving, cx) {
        signal::broadcast::send_to_group(group, Info::kernel(Signal::HUP), cx);
        signal::broadcast::send_to_group(group, Info::kernel(Signal::CONT), cx);
    }
}

/// Tells the parent that a child has stopped or been continued (`CLD_*`) if that is still so: by its signal, and by waking who waits.
pub(super) fn tell_parent(child: &Process, code: u32, value: u32, is_so: impl FnOnce() -> bool, cx: &impl NoSuspend) {
    let told = child.with_parent(cx, |parent, children| {
        is_so().then(|| {
            children.has_changed(child);
            Told::new(parent, child, code, value, cx)
        })
    });
    if let Some(Some(told)) = told {
        told.finish(cx);
    }
    if let Some(parent) = child.parent(cx) {
        parent.child_changed.wake_all();
    }
}

/// A parent was sent the signal of a child.
struct Told<'cx> {
    parent: TempRc<'cx, Process>,
    /// It was stopped, and that signal is SIGCONT.
    continuation: Option<Continuation>,
}

impl<'cx> Told<'cx> {
    /// Sends the parent the signal of a child that has ended, stopped or been continued. The parent's children are locked: who waits sees the child only when the signal is sent,
    /// and who gets the signal finds something to wait for.
    fn new(parent: &TempRc<'cx, Process>, child: &Process, code: u32, value: u32, cx: &impl NoSuspend) -> Self {
        let ended = !matches!(code, abi::CLD_STOPPED | abi::CLD_CONTINUED);
        let signal = if ended { child.exit_signal() } else { Some(Signal::CHLD) };
        let mut continuation = None;
        if let Some(signal) = signal {
            let action: Action = parent.action(signal, cx);
            if ended || !action.has(abi::SA_NOCLDSTOP) {
                let uid = child.uid(cx);
                let (user, system) = if ended { child.times_at_end(cx) } else { child.times(cx) };
                let ticks = |nanos: u64| nanos / NANOSECONDS_PER_TICK;
                let info = Info::child(signal, code, child.pid, uid, value, ticks(user), ticks(system));
                // SIGCHLD coalesces, and a full queue of another signal is the parent's own.
                continuation = signal::send::send_to_parent(parent, info, cx).unwrap_or(None);
            }
        }
        Told { parent: parent.clone(), continuation }
    }

    /// Once the parent's children are unlocked: a parent that goes on tells its own parent of that. Gives the parent back.
    #[inline(always)]
    fn finish(self, cx: &impl NoSuspend) -> TempRc<'cx, Process> {
        if let Some(continuation) = self.continuation {
            continuation.finish(&self.parent, cx);
        }
        self.parent
    }
}

/// Takes a reaped process out of all tables. The caller has made it [`Life::Reaped`].
pub(super) fn remove(process: &TempRc<'_, Process>, cx: &impl NoSuspend) {
    process.with_parent(cx, |_, children| children.leave(process));
    session::leave(process, cx);
    process.count.end();
    process.leave_group(cx);
    if let Some(process) = PROCESSES.remove(process.pid, cx) {
        process.end_unseen();
    }
}

/// All other threads of the process exit; the caller becomes its only one and takes over its id. For execve(2).
///
/// # Errors
/// EAGAIN if the process ends or another thread does the same; EINTR if the process ends meanwhile.
pub fn de_thread_async(cx: &mut Cx, me: &mut Current) -> Result<()> {
    if me.process(cx)?.is_exiting() || !me.process(cx)?.begin_execution() {
        return Err(Errno::EAGAIN);
    }
    let alone = end_others_async(cx, me);
    let (thread, process) = (me.thread(cx)?, me.process(cx)?);
    process.end_execution();
    alone?;
    let old = thread.tid();
    if old != process.pid {
        let share = thread.share().ok_or(Errno::EAGAIN)?;
        thread.count_as_first(&process, cx);
        process.give_number_up(cx);
        thread.set_tid(process.pid);
        drop(THREADS.insert(process.pid, share, cx));
        drop(THREADS.remove(old, cx));
    }
    Ok(())
}

/// Has all other threads of the process exit, those too that they make meanwhile, and waits until nothing of them is left.
fn end_others_async(cx: &mut Cx, me: &mut Current) -> Result<()> {
    let mut told = Cursor::default();
    let mut time_slice = TimeSlice::default();
    loop {
        let other = me.process(cx)?.next_thread(&mut told, cx);
        let Some(other) = other else { break };
        if other != me.thread
            && let Ok(other) = other.upgrade(cx)
        {
            other.signals.add_work(Work::EXIT);
            other.wake(cx);
        }
        if time_slice.is_over() {
            me.pause_async(cx, Interruption::KillOnly)?;
            time_slice = TimeSlice::default();
        }
    }
    crate::step::complete_unless_killed_async(cx, me, |cx, me, waker| {
        let process = me.process(cx)?;
        if let Some(waker) = waker {
            process.watch_others(waker, cx);
        }
        if process.has_one_thread() { Ok(()) } else { Err(crate::step::Stop::Block) }
    })
}
