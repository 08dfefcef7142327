//! Out of memory: a program is chosen to be killed, so that the system goes on.
//!
//! Memory for programs ends while the kernel still has a reserve (`frame::mm::set_reserve`), from which it serves what is under way, and
//! the end of the chosen program.

use core::sync::atomic::Ordering;

use frame::Cx;
use frame::mm::PAGE_SIZE;
use refs::{SpinLock, WeakRc, reclaim};

use super::oom_group::{self, full_group};
use super::{INIT, Life, PROCESSES, Process};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::memory::{self, BadAccess};
use crate::signal::{self, Signal};
use crate::step::{Caller, Interruption};

/// The `oom_score_adj` of programs that are never chosen: see proc_pid_oom_score_adj(5).
const NEVER: i32 = -1000;

/// So many programs are looked at before others have their turn.
pub(super) const LOOKED_AT_A_TIME: usize = 64;

/// So many descriptors of a program are looked at.
const SAMPLE: usize = 256;

/// For how long, in nanoseconds, nobody is chosen because other cores free something: there may be no end of that.
const FREEING_TAKES: u64 = 100_000_000;

/// How far the search for the program with the most memory is. It is locked until somebody was chosen, so that no two cores choose at the same time.
struct Search {
    /// Who was chosen last.
    chosen: Option<WeakRc<Process>>,
    /// Since when somebody waits for what is dead and not yet freed, on whichever core; 0: nobody does.
    waits_since: u64,
    /// When other cores were last asked for what they keep of the heap.
    asked_at: u64,
    /// All with lower numbers were looked at.
    at: u32,
    /// The one of them of which most would be won.
    worst: Option<(i64, WeakRc<Process>)>,
}

static SEARCH: SpinLock<Search> =
    SpinLock::new(Search { chosen: None, waits_since: 0, asked_at: 0, at: 0, worst: None });

impl Search {
    /// From the beginning.
    fn begin_again(&mut self) {
        (self.at, self.worst) = (0, None);
    }

    /// Whether other cores have given back what they keep of the heap, not long ago. Once they have, the access is tried again first.
    fn has_asked_others(&mut self) -> bool {
        let now = frame::time::now();
        if frame::cpu::count() == 1 {
            return true;
        }
        if now - self.asked_at > FREEING_TAKES {
            frame::mm::ask_for_slots();
            self.asked_at = now;
            return false;
        }
        frame::mm::slots_have_come()
    }
}

/// Whether nothing that is dead will give memory back: who has just ended held much, and another core may be freeing it. Once that is done the
/// access is tried again first. `waits_since` is kept by whoever asks: 0 at first.
pub(super) fn waited_for_dead(waits_since: &mut u64) -> bool {
    let now = frame::time::now();
    if !reclaim::waits_anywhere_since_before(reclaim::begin_epoch()) {
        return core::mem::take(waits_since) == 0;
    }
    if *waits_since == 0 {
        *waits_since = now;
        // What cores keep at hand they do not look at otherwise.
        crate::fs::look_for_closed();
    }
    now - *waits_since > FREEING_TAKES
}

/// Chooses the program with the most memory and ends it, unless one that was chosen is still on its way or what is dead anyway is not all
/// freed. The caller's access is tried
/// again once others have run.
///
/// # Errors
/// [`BadAccess::NoMemory`] if it is the caller that ends, or if nobody can be chosen.
#[cold]
pub fn make_room(me: &Current, cx: &Cx) -> core::result::Result<(), BadAccess> {
    if is_charged(me, cx) {
        if let Some(group) = full_group(me, cx) {
            return oom_group::make_room_in(&group, Some(me.process), cx);
        }
        if memory::has_memory() {
            // Its group had too much, and has less by now.
            return Ok(());
        }
    }
    if tasks::has_dead(cx) || memory::remains::end_objects() {
        return Ok(());
    }
    // With many programs that all wait for room, to look at all of them each time would take longer than the end of the chosen one.
    let mut search = SEARCH.lock(cx);
    if let Some(chosen) = search.chosen
        && chosen != me.process
        && chosen.upgrade(cx).is_ok_and(|chosen| chosen.life() == Life::Alive)
    {
        return Ok(());
    }
    if !waited_for_dead(&mut search.waits_since) {
        return Ok(());
    }
    if memory::teardown::is_under_way() {
        return Ok(());
    }
    // What cores have at hand is nobody's.
    if memory::gather() || !search.has_asked_others() {
        return Ok(());
    }
    // Before anybody ends.
    if memory::ask_for_more(cx) {
        return Ok(());
    }
    let mut looked_at = 0;
    // No list of them: there is no memory.
    while let Some((id, process)) = PROCESSES.next(search.at, cx) {
        looked_at += 1;
        if looked_at > LOOKED_AT_A_TIME {
            // Others have their turn, and the next who finds no memory goes on with it.
            return Ok(());
        }
        search.at = id + 1;
        let Ok(process) = process.upgrade(cx) else { continue };
        if process.life() != Life::Alive {
            continue;
        }
        if process.is_exiting() {
            search.begin_again();
            if process.downgrade() == me.process {
                return Err(BadAccess::NoMemory);
            }
            return Ok(());
        }
        if let Some(badness) = badness(&process, frame::mm::frame_count(), cx)
            && search.worst.is_none_or(|(most, _)| badness > most)
        {
            search.worst = Some((badness, process.downgrade()));
        }
    }
    let worst = search.worst;
    search.begin_again();
    let Some((_, victim)) = worst else { return Err(BadAccess::NoMemory) };
    // It may have ended since it was looked at; then there is memory.
    let Ok(victim) = victim.upgrade(cx) else { return Ok(()) };
    let resident = resident_pages(&victim, cx);
    if let Some(thread) = victim.first_thread(cx) {
        crate::log!("out of memory: {}[{}] with {} KiB is killed", thread.name(cx), victim.pid, resident * 4);
    }
    search.chosen = Some(victim.downgrade());
    signal::send::end_process(&victim, Signal::KILL.number(), cx);
    if victim.downgrade() == me.process { Err(BadAccess::NoMemory) } else { Ok(()) }
}

/// Whether some group pays for the caller's memory.
fn is_charged(me: &Current, cx: &Cx) -> bool {
    me.process(cx).is_ok_and(|process| process.control_group(cx).is_some_and(|group| group.memory_payer() != 0))
}

/// Whether the caller's group, or one above it, may not have more memory.
pub fn is_group_full(me: &Current, cx: &Cx) -> bool {
    full_group(me, cx).is_some()
}

/// As [`make_room`], where it was only the caller's group that had too much.
///
/// # Errors
/// [`BadAccess::NoMemory`] if there is no memory for other reasons, and as for [`make_room`].
#[cold]
pub fn make_room_in_group(me: &Current, cx: &Cx) -> core::result::Result<(), BadAccess> {
    if is_charged(me, cx) && (memory::has_memory() || is_group_full(me, cx)) {
        make_room(me, cx)
    } else {
        Err(BadAccess::NoMemory)
    }
}

/// Lets others run until there is memory again, after choosing a program that ends.
///
/// # Errors
/// ENOMEM if the caller is the one that ends, or there still is none after a while.
#[cold]
pub fn recover_async(cx: &mut Cx, me: &mut Current) -> Result<()> {
    const PATIENCE: usize = 1000;
    tasks::free_everything_async(cx);
    frame::mm::trim();
    for _ in 0..PATIENCE {
        if !memory::is_exhausted() {
            return Ok(());
        }
        match make_room(me, cx) {
            Ok(()) => tasks::yield_async(cx),
            Err(bad) => return Err(bad.errno()),
        }
        if let Some(error) = me.interrupted(Interruption::KillOnly, cx) {
            return Err(error);
        }
    }
    Err(Errno::ENOMEM)
}

/// How much would be won by ending it, in pages, of `total` that there are; `None` if it must not be. Unlike Linux's, it counts what the kernel holds for it: who takes
/// all memory by pipes is ended, and not the next who needs a page.
pub(super) fn badness(process: &Process, total: usize, cx: &Cx) -> Option<i64> {
    if is_never_chosen(process) {
        return None;
    }
    let adjust = process.oom_score_adjust.load(Ordering::Relaxed);
    let size = resident_pages(process, cx) + kernel_bytes(process, cx) / PAGE_SIZE;
    Some(size as i64 + i64::from(adjust) * total as i64 / 1000)
}

pub(super) fn is_never_chosen(process: &Process) -> bool {
    process.pid == INIT || process.oom_score_adjust.load(Ordering::Relaxed) <= NEVER
}

/// About how much of the kernel's memory its descriptors, timers, threads and page tables take.
fn kernel_bytes(process: &Process, cx: &Cx) -> usize {
    let Some(thread) = process.first_thread(cx) else { return 0 };
    let descriptors: usize = thread.files.lock(cx).as_ref().map_or(0, |files| {
        let files = files.get(cx);
        let handles = files.handles.lock(cx);
        let (mut bytes, mut behind) = (0, 0);
        for fd in handles.indices().take(SAMPLE) {
            bytes += handles.get(fd, cx).map_or(0, |file| file.file.kernel_bytes(cx));
            behind = fd + 1;
        }
        // The others are taken to be like the first.
        if behind < SAMPLE { bytes } else { bytes.saturating_mul(handles.len()) / behind }
    });
    let tables = thread.space.lock(cx).as_ref().map_or(0, |space| space.get(cx).vm().leaf_tables(cx) * PAGE_SIZE);
    let timers = process.timers.kernel_bytes(cx);
    descriptors + tables + timers + process.thread_count(cx) * frame::KERNEL_STACK_BYTES
}

pub(super) fn resident_pages(process: &Process, cx: &Cx) -> usize {
    let Some(thread) = process.first_thread(cx) else { return 0 };
    thread.space.lock(cx).as_ref().map_or(0, |space| space.get(cx).vm().mapped_pages())
}
