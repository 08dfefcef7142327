//! In which control group a process is. See [`crate::cgroup`].
//!
//! The root's members keep no share in a group, and are counted nowhere. Each other process has a share in its group until it was waited for, and stands in the group's list of members
//! until its last thread has ended. Its threads are where it is.
//!
//! Locks: the tree, where a process comes into a group that its maker is not in; then the process's `membership`, around every change of what it counts for; then the group's list.
//! So a group that has a member with its membership locked is not removed, and what a process counts for moves with it.

use alloc::boxed::Box;
use core::any::Any;
use core::sync::atomic::Ordering;

use frame::Cx;
use refs::{NoSuspend, SpinLock, StrongRc, TempRc, WeakRc};

use super::members::{Cursor, Members, Ticket};
use super::{Process, Thread, freezer};
use crate::cgroup::{self, Cgroup, MemberEnd, Moved};
use crate::error::{Errno, Result};
use crate::fs::FileTable;
use crate::memory::AddressSpace;
use crate::reclaim::{Held, OfProcess, Payer};
use crate::sched;
use crate::signal::{Signal, Work, send};

/// What a process is and counts for in its group.
#[derive(Default)]
pub struct Membership {
    /// Its group; `None` for the root.
    group: Option<StrongRc<Cgroup>>,
    /// Where it stands in the group's list.
    place: Option<Ticket>,
    /// How many of its threads have not ended.
    threads: u32,
    /// How many of those stand still because the group is frozen.
    pub(super) frozen: u32,
    /// The numbers that it has: its own and one for each thread but the first that has not ended.
    pids: u32,
    /// What it had used in user mode and in the kernel when it came, in nanoseconds.
    before: (u64, u64),
    /// The [bits](Cgroup::told_bit) of the groups whose kills have told it to end.
    told: u64,
    /// What is charged for it, its threads and its timers.
    held: OfProcess,
}

/// The members of one group. It is kept in the group.
struct GroupMembers(SpinLock<Members<Process>>);

/// An empty list of members, for a new group.
pub fn new_members() -> Box<dyn Any + Send + Sync> {
    Box::new(GroupMembers(SpinLock::new(Members::new())))
}

fn members(group: &Cgroup) -> Option<&SpinLock<Members<Process>>> {
    let kept: &dyn Any = &*group.members;
    Some(&kept.downcast_ref::<GroupMembers>()?.0)
}

/// The next of a walk through the members of a group that is not the root.
pub(super) fn next_member(group: &Cgroup, cursor: &mut Cursor, cx: &impl NoSuspend) -> Option<WeakRc<Process>> {
    members(group)?.lock(cx).next(cursor)
}

/// What a new process is in its group, where it counts for one thread.
pub(super) struct NewMember {
    /// `None` is the root.
    group: Option<StrongRc<Cgroup>>,
    held: OfProcess,
}

impl NewMember {
    /// Of the root.
    #[inline(always)]
    pub(super) fn of_root() -> Self {
        NewMember { group: None, held: own_holdings() }
    }

    /// The process is not made after all.
    fn undo(self, cx: &Cx) {
        if let Some(group) = &self.group {
            group.get(cx).release_pids(1, cx);
            group.get(cx).end_thread(cx);
        }
    }

    /// Whether it is in another group than the root.
    #[inline(always)]
    pub(super) fn is_in_group(&self) -> bool {
        self.group.is_some()
    }
}

/// A process with one thread.
#[inline(always)]
fn own_holdings() -> OfProcess {
    // No timer.
    OfProcess::of_nobody([1, 1, 0])
}

/// What a new process has for itself of what its maker has: its end is charged to the group of the new one.
pub(super) struct NewContainers<'a> {
    /// `None`: it shares its maker's.
    pub files: Option<&'a FileTable>,
    /// `None`: it shares its maker's.
    pub space: Option<&'a AddressSpace>,
}

impl Membership {
    /// That of a new process, which counts for its first thread.
    #[inline(always)]
    pub(super) fn new(NewMember { group, held }: NewMember) -> Self {
        Membership { group, place: None, threads: 1, frozen: 0, pids: 1, before: (0, 0), told: 0, held }
    }
}

/// Where a process is to be that `maker` makes: `into` a group, or where the maker is. It is counted there and charged, with what it has for itself; nothing may fail behind this until it is the
/// process's.
///
/// # Errors
/// EAGAIN: too many processes, or the budget of the group has no room for one more; ENOMEM. Those of [`Tree::check_destination`](cgroup::Tree::check_destination) for a group. RESTART_ALWAYS: the maker is
/// being killed.
#[inline(always)]
pub(super) fn begin_child(
    maker: &Process,
    into: Option<WeakRc<Cgroup>>,
    own: &NewContainers<'_>,
    cx: &Cx,
) -> Result<NewMember> {
    // Where another core moves the maker just now, it has made the child before that.
    if into.is_none() && !maker.is_in_group.load(Ordering::Relaxed) {
        return Ok(NewMember::of_root());
    }
    begin_child_in_group(maker, into, own, cx)
}

#[inline(never)]
fn begin_child_in_group(
    maker: &Process,
    into: Option<WeakRc<Cgroup>>,
    own: &NewContainers<'_>,
    cx: &Cx,
) -> Result<NewMember> {
    if cgroup::any_is_killed() {
        maker.end_if_group_is_killed(cx)?;
    }
    let member = match into {
        None => {
            let maker = maker.membership.lock(cx);
            match &maker.group {
                // Whoever is charged for the maker: that is brought up to date for both if it is about to change.
                Some(group) => begin(&group.get(cx), maker.held.payer(), cx)?,
                None => return Ok(NewMember::of_root()),
            }
        }
        Some(into) => {
            let into = into.upgrade(cx).map_err(|_| Errno::ENODEV)?;
            let tree = cgroup::lock_tree(cx);
            tree.check_destination(&into, cx)?;
            if into.is_root() {
                return Ok(NewMember::of_root());
            }
            begin(&into, &into.payer(cx), cx)?
        }
    };
    // With nothing locked: descriptors and memory come before groups.
    if own.begin_charge(member.held.payer(), cx).is_err() {
        member.undo(cx);
        return Err(Errno::EAGAIN);
    }
    Ok(member)
}

#[inline(always)]
fn begin(group: &TempRc<'_, Cgroup>, payer: &Payer, cx: &Cx) -> Result<NewMember> {
    let share = group.share().ok_or(Errno::ENODEV)?;
    members(group).ok_or(Errno::ENODEV)?.lock(cx).reserve_one()?;
    group.begin_thread(cx)?;
    let mut member = NewMember { group: Some(share), held: own_holdings() };
    match member.held.begin(payer) {
        Ok(()) => Ok(member),
        Err(_) => {
            member.undo(cx);
            Err(Errno::EAGAIN)
        }
    }
}

impl NewContainers<'_> {
    /// Charges somebody for them. What is charged is given back with what the child would have had.
    fn begin_charge(&self, payer: &Payer, cx: &Cx) -> Result<()> {
        if payer.is_nobody() {
            return Ok(());
        }
        self.files.map_or(Ok(()), |files| files.handles.lock(cx).begin_charge(payer))?;
        self.space.map_or(Ok(()), |space| space.begin_charge(payer, cx))
    }
}

impl Process {
    /// Its control group, zombies' too; `None` for the root.
    pub fn control_group<'cx>(&self, cx: &'cx impl NoSuspend) -> Option<TempRc<'cx, Cgroup>> {
        self.membership.lock(cx).group.as_ref().map(|group| group.get(cx))
    }

    /// A new process, which can be found, enters its group's list, unless it was moved to another group since.
    pub(super) fn enter_group(&self, name: WeakRc<Process>, cx: &impl NoSuspend) {
        let mut own = self.membership.lock(cx);
        let Membership { group: Some(group), place: place @ None, .. } = &mut *own else { return };
        let group = group.get(cx);
        *place = members(&group).map(|members| members.lock(cx).enter(name));
        // Behind that: who changes whom the members are charged to goes through the list then.
        self.charge_to(Some(&group));
    }

    /// Whom it is charged to may have changed: the controllers of a group.
    pub fn renew_account(&self, cx: &Cx) {
        let mut own = self.membership.lock(cx);
        let group = own.group.as_ref().map(|group| group.get(cx));
        self.charge_to(group.as_deref());
        let payer = group.as_ref().map_or(Payer::NOBODY, |group| group.payer(cx));
        let has_changed = *own.held.payer() != payer;
        own.held.move_to(&payer);
        drop(own);
        if has_changed {
            self.charge_containers(cx);
        }
    }

    /// Who is charged for its end.
    pub fn payer(&self, cx: &impl NoSuspend) -> Payer {
        if self.is_in_group.load(Ordering::Relaxed) {
            self.membership.lock(cx).held.payer().share()
        } else {
            Payer::NOBODY
        }
    }

    /// It is to have so many more of what goes with it.
    ///
    /// # Errors
    /// ENOMEM: the budget of its group has no room.
    pub fn hold(&self, class: Held, more: u32, cx: &impl NoSuspend) -> Result<()> {
        self.membership.lock(cx).held.add(class, more)
    }

    /// So many of that are gone.
    pub fn let_go(&self, class: Held, less: u32, cx: &impl NoSuspend) {
        self.membership.lock(cx).held.remove(class, less);
    }

    /// Has whoever is charged for its end be charged for those of its first thread's descriptors and memory as well. (Where threads have descriptors of their own, the others stay charged to whom they
    /// were; and so does what threads of several processes have.)
    pub(super) fn charge_containers(&self, cx: &Cx) {
        loop {
            let payer = self.payer(cx);
            let Some(thread) = self.first_thread(cx) else { return };
            // What others have as well stays charged to whom it was.
            let threads = self.unfinished_threads();
            let files = {
                let files = thread.files.lock(cx);
                files.as_ref().filter(|files| files.owners() as usize <= threads).map(|files| files.get(cx))
            };
            if let Some(files) = files {
                files.handles.lock(cx).charge_to(&payer);
            }
            let space = {
                let space = thread.space.lock(cx);
                space.as_ref().filter(|space| space.owners() as usize <= threads).map(|space| space.get(cx))
            };
            if let Some(space) = space {
                space.charge_to(&payer, cx);
            }
            // Another core may have moved the process meanwhile, and have been here before.
            if self.payer(cx) == payer {
                return;
            }
        }
    }

    /// Its memory is charged to a group from now on, and its tasks share the processor as that one's.
    fn charge_to(&self, group: Option<&Cgroup>) {
        self.account.set_payer(group.map_or(0, Cgroup::memory_payer));
        self.account.set_group(group.map_or(0, Cgroup::cpu_group));
    }

    /// It is about to have one more thread, which is counted. Nothing may fail behind this.
    ///
    /// # Errors
    /// EAGAIN: too many, or the budget has no room for it. RESTART_ALWAYS: it is being killed.
    pub(super) fn begin_thread(&self, cx: &Cx) -> Result<()> {
        if cgroup::any_is_killed() {
            self.end_if_group_is_killed(cx)?;
        }
        let mut own = self.membership.lock(cx);
        own.held.add(Held::Thread, 1).map_err(|_| Errno::EAGAIN)?;
        if let Some(group) = &own.group
            && let Err(error) = group.get(cx).begin_thread(cx)
        {
            own.held.remove(Held::Thread, 1);
            return Err(error);
        }
        own.threads += 1;
        own.pids += 1;
        Ok(())
    }

    /// A thread has let go of all that it had. `is_first`: the number stays with the process until that is waited for.
    pub(super) fn end_thread(&self, is_first: bool, cx: &Cx) {
        let mut own = self.membership.lock(cx);
        own.threads -= 1;
        own.held.remove(Held::Thread, 1);
        let pids = u32::from(!is_first);
        own.pids -= pids;
        if own.group.is_some() {
            self.end_thread_in_group(&mut own, pids, cx);
        }
    }

    #[inline(never)]
    fn end_thread_in_group(&self, own: &mut Membership, pids: u32, cx: &Cx) {
        let Some(group) = &own.group else { return };
        let group = group.get(cx);
        if own.threads == 0 {
            let end = MemberEnd { told: own.told, worked: self.time_since_exit() };
            group.add_past(time_beyond(self.times_at_end(cx), own.before), end, cx);
            if let (Some(place), Some(members)) = (own.place.take(), members(&group)) {
                members.lock(cx).leave(place);
            }
        }
        group.release_pids(pids as usize, cx);
        group.end_thread(cx);
    }

    fn times_since(&self, before: (u64, u64), cx: &impl NoSuspend) -> (u64, u64) {
        time_beyond(self.times(cx), before)
    }

    /// A thread that is not the first takes that one's number, and has one less.
    pub(super) fn give_number_up(&self, cx: &impl NoSuspend) {
        let mut own = self.membership.lock(cx);
        own.pids -= 1;
        if let Some(group) = &own.group {
            group.get(cx).release_pids(1, cx);
        }
    }

    /// It is gone: it has no threads, and was waited for.
    #[inline(always)]
    pub(super) fn leave_group(&self, cx: &impl NoSuspend) {
        if self.is_in_group.load(Ordering::Acquire) {
            self.end_membership(cx);
        }
    }

    #[inline(never)]
    fn end_membership(&self, cx: &impl NoSuspend) {
        let mut own = self.membership.lock(cx);
        let (group, place, pids) = (own.group.take(), own.place.take(), core::mem::take(&mut own.pids));
        own.held.end();
        drop(own);
        let Some(group) = group else { return };
        let at = group.get(cx);
        if let (Some(place), Some(members)) = (place, members(&at)) {
            members.lock(cx).leave(place);
        }
        at.release_pids(pids as usize, cx);
    }

    /// It is to go without ever having run, though others may have found it: nobody moves it from here on.
    pub(super) fn was_never_begun(&self, cx: &impl NoSuspend) {
        let mut own = self.membership.lock(cx);
        let threads = core::mem::take(&mut own.threads);
        if let Some(group) = &own.group {
            (0..threads).for_each(|_| group.get(cx).end_thread(cx));
        }
    }

    /// What it has used in user mode and in the kernel since it is in its group, in nanoseconds; nothing once it has ended.
    pub fn times_in_group(&self, cx: &impl NoSuspend) -> (u64, u64) {
        let own = self.membership.lock(cx);
        if own.threads == 0 { (0, 0) } else { self.times_since(own.before, cx) }
    }

    /// A kill of a group in which it is tells it to end, which counts from here on.
    pub fn note_told(&self, by: &Cgroup, cx: &impl NoSuspend) {
        let mut own = self.membership.lock(cx);
        if own.threads != 0 && own.told & by.told_bit() == 0 {
            own.told |= by.told_bit();
            let (user, system) = self.times_since(own.before, cx);
            by.told_to_end(user + system, cx);
        }
    }

    /// Whether a kill of a group in which it is has told it to end.
    pub fn was_told(&self, cx: &impl NoSuspend) -> bool {
        self.membership.lock(cx).told != 0
    }

    /// Whether its group, or one above that, freezes.
    pub(super) fn is_to_freeze(&self, cx: &impl NoSuspend) -> bool {
        cgroup::any_freezes() && self.control_group(cx).is_some_and(|group| group.is_to_freeze(cx))
    }

    /// If its group is being killed it ends, whether it was its turn or not: so those who make processes do not outrun those who kill them.
    #[cold]
    fn end_if_group_is_killed(&self, cx: &Cx) -> Result<()> {
        if self.pid != super::INIT && self.control_group(cx).is_some_and(|group| group.is_being_killed(cx)) {
            send::end_process(self, Signal::KILL.number(), cx);
            return Err(Errno::RESTART_ALWAYS);
        }
        Ok(())
    }

    /// How much of what the group counts for this thread stands still changes.
    pub(super) fn change_frozen(&self, thread: &Thread, is_frozen: bool, cx: &impl NoSuspend) {
        let mut own = self.membership.lock(cx);
        if thread.is_frozen.swap(is_frozen, Ordering::Relaxed) == is_frozen {
            return;
        }
        let by = if is_frozen { 1 } else { -1 };
        own.frozen = own.frozen.saturating_add_signed(by);
        if let Some(group) = &own.group {
            group.get(cx).change_frozen(by as isize, cx);
        }
    }
}

/// How much more user and system time that is than before.
fn time_beyond((user, system): (u64, u64), before: (u64, u64)) -> (u64, u64) {
    (user.saturating_sub(before.0), system.saturating_sub(before.1))
}

/// Moves a process from a group (its number), out of which the caller may move it, to another one; whether it has moved: its threads are to be told by the caller then ([`tell_moved`]). Nothing for a process
/// that has ended.
///
/// # Errors
/// ESTALE: another core has moved it meanwhile. Those of [`Tree::check_destination`](cgroup::Tree::check_destination); ENOMEM.
pub fn migrate(process: &TempRc<'_, Process>, from: u64, to: &TempRc<'_, Cgroup>, cx: &Cx) -> Result<bool> {
    let tree = cgroup::lock_tree(cx);
    tree.check_destination(to, cx)?;
    let mut own = process.membership.lock(cx);
    let is_in = own.group.as_ref().map_or(0, |group| group.get(cx).id);
    if own.threads == 0 || is_in == to.id {
        return Ok(false);
    }
    if is_in != from {
        return Err(Errno::ESTALE);
    }
    let target = if to.is_root() { None } else { Some(to) };
    let share = match target {
        Some(group) => {
            members(group).ok_or(Errno::ENODEV)?.lock(cx).reserve_one()?;
            Some(group.share().ok_or(Errno::ENODEV)?)
        }
        None => None,
    };
    let now = process.times(cx);
    let times = time_beyond(now, own.before);
    let moved = Moved { threads: own.threads as usize, frozen: own.frozen as usize, pids: own.pids as usize };
    process.is_in_group.store(share.is_some(), Ordering::Release);
    let old = core::mem::replace(&mut own.group, share);
    own.before = now;
    let end = MemberEnd { told: core::mem::take(&mut own.told), worked: 0 };
    let place = own.place.take();
    let from = old.as_ref().map(|group| group.get(cx));
    if let Some(from) = &from {
        from.add_past(times, end, cx);
        if let (Some(place), Some(members)) = (place, members(from)) {
            members.lock(cx).leave(place);
        }
    }
    own.place = target.and_then(|group| members(group)).map(|members| members.lock(cx).enter(process.downgrade()));
    // What memory it has stays charged where it is; its end is charged to where it goes, whatever the bound.
    process.charge_to(target.map(|group| &**group));
    let payer = target.map_or(Payer::NOBODY, |group| group.payer(cx));
    let is_paid_by_another = *own.held.payer() != payer;
    own.held.move_to(&payer);
    Cgroup::move_between(from.as_deref(), target.map(|group| &**group), &moved, cx);
    let is_killed = from.as_ref().is_some_and(|from| from.is_being_killed(cx));
    drop(own);
    drop(tree);
    if is_paid_by_another {
        process.charge_containers(cx);
    }
    if is_killed {
        // Whoever goes through the members may have passed where it is now.
        send::send_to_process(process, crate::signal::Info::kernel(Signal::KILL), cx)?;
    }
    Ok(true)
}

/// Tells a thread that its process has come into another group, or that the group has other controllers or another weight.
pub fn tell_moved(thread: &Thread, cx: &impl NoSuspend) {
    if let Ok(process) = thread.process(cx)
        && freezer::may_concern(&process, cx)
    {
        freezer::tell(thread, true, cx);
    }
    if thread.signals.work().contains(Work::THROTTLE) {
        thread.wake(cx);
    }
    if let Some(task) = thread.task(cx) {
        sched::enter_anew(task);
    }
}
