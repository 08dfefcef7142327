//! Out of memory in a control group: one of its members is chosen to be ended, or all.
//!
//! Who is refused a page because a group is full comes by here, with nothing held, and tries again once others have run. Each time a bit is done: what dead programs have left is given back,
//! then so many members are looked at, then one is ended. As long as that one is on its way nobody else is. So no member waits for another one: those that sleep are woken by the signal, and
//! who wants memory goes on asking.

use core::sync::atomic::Ordering;

use frame::Cx;
use refs::{TempRc, WeakRc};

use super::oom::{LOOKED_AT_A_TIME, badness, is_never_chosen, resident_pages, waited_for_dead};
use super::{GroupWalk, Life, Met, Process};
use crate::cgroup::Cgroup;
use crate::current::Current;
use crate::memory::account::AccountEvent;
use crate::memory::{BadAccess, remains};
use crate::signal::{self, Signal};

/// How far the search in one group is.
#[derive(Default)]
struct Search {
    /// Who was chosen last.
    chosen: Option<WeakRc<Process>>,
    /// Since when somebody waits for what is dead and not yet freed; 0: nobody does.
    waits_since: u64,
    /// The members are gone through.
    walk: Option<GroupWalk>,
    /// The one of them of which most would be won.
    worst: Option<(i64, WeakRc<Process>)>,
}

/// The group of the caller, or the nearest above it, that may not have more memory.
pub(super) fn full_group<'cx>(me: &Current, cx: &'cx Cx) -> Option<TempRc<'cx, Cgroup>> {
    let mut at = me.process(cx).ok()?.control_group(cx);
    while let Some(group) = at {
        if group.is_full_of_memory() {
            return Some(group);
        }
        at = group.parent(cx);
    }
    None
}

/// Sees to it that a group has less memory: gives back what dead members have left, or ends one. The caller looks again once others have run.
///
/// # Errors
/// [`BadAccess::NoMemory`] if it is `me` that ends, or if nobody can be chosen.
#[cold]
pub fn make_room_in(
    group: &TempRc<'_, Cgroup>,
    me: Option<WeakRc<Process>>,
    cx: &Cx,
) -> core::result::Result<(), BadAccess> {
    let outcome = make_room_untold(group, me, cx);
    group.tell_memory_events(cx);
    outcome
}

fn make_room_untold(
    group: &TempRc<'_, Cgroup>,
    me: Option<WeakRc<Process>>,
    cx: &Cx,
) -> core::result::Result<(), BadAccess> {
    if me.is_some_and(|me| me.upgrade(cx).is_ok_and(|me| me.is_exiting())) {
        return Err(BadAccess::NoMemory);
    }
    if tasks::has_dead(cx) || remains::settle_some() {
        return Ok(());
    }
    if group.memory.is_searched.swap(true, Ordering::Acquire) {
        // By another core.
        return Ok(());
    }
    // No lock is held meanwhile: whoever writes `memory.max` comes here with one of a file's.
    let kept = group.memory.search.lock(cx).take();
    let mut search = kept.and_then(|kept| kept.downcast::<Search>().ok()).unwrap_or_default();
    let outcome = go_on(&mut search, group, me, cx);
    *group.memory.search.lock(cx) = Some(search);
    group.memory.is_searched.store(false, Ordering::Release);
    outcome
}

/// Goes on with a search.
fn go_on(
    search: &mut Search,
    group: &TempRc<'_, Cgroup>,
    me: Option<WeakRc<Process>>,
    cx: &Cx,
) -> core::result::Result<(), BadAccess> {
    if let Some(chosen) = search.chosen
        && chosen.upgrade(cx).is_ok_and(|chosen| chosen.life() == Life::Alive)
    {
        return Ok(());
    }
    if !waited_for_dead(&mut search.waits_since) || search.chosen.take().is_some() {
        // What the one that was chosen had is free by now, or soon.
        return Ok(());
    }
    if !has_too_much(group, me) {
        return Ok(());
    }
    let walk = search.walk.get_or_insert_with(|| GroupWalk::new(group, true));
    let mut looked_at = 0;
    while let Some(met) = walk.next_process(cx) {
        looked_at += 1;
        if looked_at > LOOKED_AT_A_TIME {
            // Others have their turn, and the next who finds no memory goes on with it.
            return Ok(());
        }
        let Met::One(process) = met else { continue };
        let Ok(process) = process.upgrade(cx) else { continue };
        if process.life() != Life::Alive {
            continue;
        }
        if process.is_exiting() {
            (search.walk, search.worst) = (None, None);
            return Ok(());
        }
        if let Some(badness) = badness(&process, group_size(group), cx)
            && search.worst.is_none_or(|(most, _)| badness > most)
        {
            search.worst = Some((badness, process.downgrade()));
        }
    }
    let worst = search.worst.take();
    search.walk = None;
    group.count_memory_event(AccountEvent::OutOfMemory);
    let Some((_, victim)) = worst else { return Err(BadAccess::NoMemory) };
    // It may have ended since it was looked at; then there is memory.
    let Ok(victim) = victim.upgrade(cx) else { return Ok(()) };
    search.chosen = Some(victim.downgrade());
    end(&victim, group, cx);
    let is_mine = me.is_some_and(|me| me.upgrade(cx).is_ok_and(|me| me.is_exiting()));
    if is_mine { Err(BadAccess::NoMemory) } else { Ok(()) }
}

/// Whether it still has too much: for `me`, who wants more, or in itself.
fn has_too_much(group: &Cgroup, me: Option<WeakRc<Process>>) -> bool {
    let is_excess = |group: &Cgroup| group.memory.account().is_some_and(|account| account.excess() > 0);
    if me.is_some() { group.is_full_of_memory() } else { is_excess(group) }
}

/// How many frames the group may have: a thousandth of that is what `oom_score_adj` counts.
fn group_size(group: &Cgroup) -> usize {
    let limit = group.memory.account().map_or(usize::MAX, |account| account.max.load(Ordering::Relaxed));
    limit.min(frame::mm::frame_count())
}

/// Ends a member of a group or of one below, with all that are in the highest group of its own that is ended as a whole (`memory.oom.group`), up to that one.
fn end(victim: &TempRc<'_, Process>, group: &TempRc<'_, Cgroup>, cx: &Cx) {
    let mut at = victim.control_group(cx);
    let mut whole = None;
    while let Some(now) = at {
        let is_top = now.id == group.id;
        at = now.parent(cx);
        if now.memory.kills_all.load(Ordering::Relaxed) {
            whole = Some(now);
        }
        if is_top {
            break;
        }
    }
    let Some(whole) = whole else { return end_one(victim, cx) };
    whole.count_memory_event(AccountEvent::GroupKill);
    let mut walk = GroupWalk::new(&whole, true);
    while let Some(met) = walk.next_process(cx) {
        if let Met::One(process) = met
            && let Ok(process) = process.upgrade(cx)
            && !process.is_exiting()
            && !is_never_chosen(&process)
        {
            end_one(&process, cx);
        }
    }
    whole.tell_memory_events(cx);
}

fn end_one(victim: &TempRc<'_, Process>, cx: &Cx) {
    if let Some(thread) = victim.first_thread(cx) {
        let resident = resident_pages(victim, cx);
        crate::log!(
            "a control group is out of memory: {}[{}] with {} KiB is killed",
            thread.name(cx),
            victim.pid,
            resident * 4
        );
    }
    signal::send::end_process(victim, Signal::KILL.number(), cx);
    if let Some(group) = victim.control_group(cx) {
        group.count_memory_event(AccountEvent::Kill);
        group.tell_memory_events(cx);
    }
}
