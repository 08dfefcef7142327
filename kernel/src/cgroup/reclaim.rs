//! [`Reclaim`]: what the controller reclaim keeps of a group: how long its end may take, and how long it took.
//!
//! A group whose controller is enabled has a budget of time, below that of the nearest group above that has one. All that its members hold is charged to that when it is made
//! ([`crate::reclaim`] has the classes), so that what a kill takes is known before: `reclaim.current` is that time, and never more than `reclaim.max` but for what was moved into the group, or a bound
//! that was set lower.
//!
//! Each kill is measured against what was charged when it began. What counts is time of processors: that of the killer in the call, and that of the members from the moment at which each was told to end, or began to end by itself before that, but not from before the kill. It ends
//! when the group is empty. One that took longer than was charged is an *overrun*: an event of the group and of those above, and an error of a cost in [`Held`].
//!
//! The budget belongs to the group until the controller is disabled or the group removed; what is charged then stays so for those above until it is gone. Its end takes some hundred instructions. Who
//! waits for `reclaim.events` is woken by whatever any budget refuses, and by each kill that has ended.

use core::sync::atomic::{AtomicU64, Ordering};

use groups::{Budget, Bundle, Limits, OwnedBudget, Usage};
use refs::{NoSuspend, SpinLock};

use super::{Cgroup, Event, Limit};
use crate::error::{Errno, Result};
use crate::reclaim::{self, Held, Keeper, Payer};

/// What the controller reclaim keeps of a group.
pub struct Reclaim {
    budget: SpinLock<Option<Owned>>,
    /// What the group itself is charged for to those above, whether the controller is enabled for it or not.
    place: SpinLock<Option<OfGroup>>,
    /// `reclaim.max`, in nanoseconds.
    max: Limit,
    kill: SpinLock<Option<Measurement>>,
    last: SpinLock<Option<Measured>>,
    overruns: AtomicU64,
    /// `reclaim.events`, but for what was denied.
    pub event: Event,
}

/// What groups themselves are charged for: kills of groups, and groups below one.
type OfGroup = Bundle<'static, Held, { Held::Group as usize }, 2>;

/// Charges a budget for kills of groups and for groups, also if that needs what others keep of charges.
///
/// # Errors
/// ENOMEM: there is no room.
fn charge_group(budget: Budget<'static, Held>, counts: [u32; 2]) -> Result<OfGroup> {
    let charge = || Bundle::charge(budget, counts);
    let charged = charge().or_else(|denied| if reclaim::give_all_kept_back() { charge() } else { Err(denied) });
    charged.map_err(|denied| {
        reclaim::note_denied(Some(budget), denied);
        Errno::ENOMEM
    })
}

/// A budget, and in it what the kill of an empty group takes.
struct Owned {
    budget: OwnedBudget<'static, Held>,
    /// Who is charged for what its members hold.
    keeper: Keeper,
    _kill: OfGroup,
}

/// A kill that is under way.
#[derive(Clone, Copy, Default)]
struct Measurement {
    charged: u64,
    began: u64,
    /// What the members had used when they were told to end, those included that had left before; and what the killer had used.
    before: u64,
    /// What the killer has used in the call.
    killer: u64,
    /// The killer has told all of them.
    all_told: bool,
}

/// How a member has come to its end.
#[derive(Clone, Copy, Default)]
pub struct MemberEnd {
    /// The [bits](Cgroup::told_bit) of the groups whose kills have told it to end.
    pub told: u64,
    /// How long it has worked at its end, in nanoseconds.
    pub worked: u64,
}

/// A kill that has ended, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// What was charged when it began.
    pub charged: u64,
    /// How long processors worked for it.
    pub worked: u64,
    /// From the write to the moment at which the group was empty.
    pub elapsed: u64,
}

// Not derived: each lock is made at a place of its own, by which it is known where the order of locks is checked.
impl Default for Reclaim {
    fn default() -> Self {
        Reclaim {
            budget: SpinLock::new(None),
            place: SpinLock::new(None),
            max: Limit::default(),
            kill: SpinLock::new(None),
            last: SpinLock::new(None),
            overruns: AtomicU64::new(0),
            event: Event::default(),
        }
    }
}

impl Reclaim {
    /// The controller is enabled for the group.
    ///
    /// # Errors
    /// ENOMEM: the budget above has no room for one more group, or there are too many levels of them.
    pub(super) fn begin(group: &Cgroup) -> Result<()> {
        let tree = reclaim::tree().ok_or(Errno::ENODEV)?;
        let above = group.payer_above();
        let budget_above = above.budget().unwrap_or_else(|| tree.root());
        let budget = budget_above.child(Limits::bound(Limits::UNBOUNDED)).map_err(|_| Errno::ENOMEM)?;
        // Groups that are below it already are charged as long as it is.
        let below = u32::try_from(group.descendants()).unwrap_or(u32::MAX);
        let kill = charge_group(*budget, [1, below])?;
        let keeper = Keeper::new(Payer::new(*budget, above));
        keeper.payer.keep_if(|| group.population.is_populated());
        group.reclaim.budget.with(|own| *own = Some(Owned { budget, keeper, _kill: kill }));
        Ok(())
    }

    /// The controller is disabled.
    pub(super) fn end(&self) {
        let own = self.budget.with(Option::take);
        drop(own);
        self.max.lift();
        self.overruns.store(0, Ordering::Relaxed);
        self.last.with(|last| *last = None);
    }

    /// `reclaim.max`, in nanoseconds.
    pub fn max(&self) -> Option<u64> {
        let max = self.max.get();
        (max != usize::MAX).then_some(max as u64)
    }

    /// Changes `reclaim.max`; `None`: there is no bound.
    ///
    /// # Errors
    /// ENODEV: the controller is not enabled any more.
    pub fn set_max(&self, max: Option<u64>, cx: &impl NoSuspend) -> Result<()> {
        let own = self.budget.lock(cx);
        let own = own.as_ref().ok_or(Errno::ENODEV)?;
        own.budget.set_bound(max.unwrap_or(Limits::UNBOUNDED));
        self.max.set(max.map_or(usize::MAX, |max| max as usize));
        Ok(())
    }

    /// Who is charged for what members hold, if that is the group itself.
    fn own_payer(&self, cx: &impl NoSuspend) -> Payer {
        self.budget.lock(cx).as_ref().map(|own| own.keeper.payer.share()).unwrap_or_default()
    }

    /// What is charged, if the controller is enabled.
    pub fn usage(&self, cx: &impl NoSuspend) -> Option<Usage<Held>> {
        self.own_payer(cx).give_kept_back();
        self.budget.lock(cx).as_ref()?.budget.usage()
    }

    /// The last kill that has ended.
    pub fn last(&self, cx: &impl NoSuspend) -> Option<Measured> {
        *self.last.lock(cx)
    }

    /// How many kills of the group, or of one below it, took longer than was charged.
    pub fn overruns(&self) -> u64 {
        self.overruns.load(Ordering::Relaxed)
    }

    /// The measurement ends if all were told and nobody is left; what it was, which nobody is told of yet.
    fn end_kill(&self, used: u64, is_populated: bool, cx: &impl NoSuspend) -> Option<Measured> {
        let mut kill = self.kill.lock(cx);
        let done = kill.filter(|kill| kill.all_told && !is_populated)?;
        *kill = None;
        let worked = used.saturating_sub(done.before) + done.killer;
        Some(Measured { charged: done.charged, worked, elapsed: frame::time::now() - done.began })
    }
}

impl Cgroup {
    /// Whose budget its members are charged to.
    pub fn payer(&self, cx: &impl NoSuspend) -> Payer {
        let own = |group: &Cgroup| group.reclaim.budget.lock(cx).as_ref().map(|own| own.keeper.payer.share());
        self.up(cx).find_map(own).unwrap_or_default()
    }

    /// Whose budget it is charged to itself.
    fn payer_above(&self) -> Payer {
        // The parent keeps those above it.
        let above = self.parent.as_ref().map(|parent| {
            parent.with(|parent| {
                let own = parent.reclaim.budget.with(|own| own.as_ref().map(|own| own.keeper.payer.share()));
                own.unwrap_or_else(|| parent.payer_above())
            })
        });
        above.unwrap_or_default()
    }

    /// It is about to stand in the tree, which is charged to those above.
    ///
    /// # Errors
    /// ENOMEM: they have no room.
    pub(super) fn charge_place(&self) -> Result<()> {
        let Some(budget) = self.payer_above().budget() else { return Ok(()) };
        let bundle = charge_group(budget, [0, 1])?;
        self.reclaim.place.with(|place| *place = Some(bundle));
        Ok(())
    }

    /// Somebody has come into it, or the last one has left: whether some of what is charged for those who end is kept for those who come.
    pub(super) fn keep_charges(&self, cx: &impl NoSuspend) {
        self.reclaim.own_payer(cx).keep_if(|| self.population.is_populated());
    }

    /// It stands in the tree no more.
    pub(super) fn give_place_back(&self) {
        let bundle = self.reclaim.place.with(Option::take);
        drop(bundle);
    }

    /// A kill of all who are in it begins, which is measured.
    pub(super) fn begin_measuring(&self, cx: &impl NoSuspend) {
        let Some(usage) = self.reclaim.usage(cx) else { return };
        let mut kill = self.reclaim.kill.lock(cx);
        // One that another kill has begun goes on.
        if kill.is_none() {
            let ((user, system), began) = (self.cpu.past(), frame::time::now());
            let before = user + system;
            *kill = Some(Measurement { charged: usage.current, began, before, ..Measurement::default() });
        }
    }

    /// A member that has used so much is told to end.
    pub fn told_to_end(&self, used: u64, cx: &impl NoSuspend) {
        if let Some(kill) = &mut *self.reclaim.kill.lock(cx) {
            kill.before += used;
        }
    }

    /// Its bit among those of the groups by which a member was told to end. (Groups with the same are 64 levels apart: of such only one can have the controller.)
    pub fn told_bit(&self) -> u64 {
        1 << (self.depth % u64::BITS)
    }

    /// A member that had so much time in user mode and in the kernel is none any more.
    pub fn add_past(&self, times: (u64, u64), end: MemberEnd, cx: &impl NoSuspend) {
        for group in self.up(cx) {
            let mut kill = group.reclaim.kill.lock(cx);
            group.cpu.add_past(times);
            if let Some(kill) = &mut *kill
                && end.told & group.told_bit() == 0
            {
                // It can have worked on each core since.
                let since = (frame::time::now() - kill.began).saturating_mul(frame::cpu::count() as u64);
                kill.before += (times.0 + times.1).saturating_sub(end.worked.min(since));
            }
        }
    }

    /// The killer, which has used so much for it, has told all of them.
    pub fn all_are_told(&self, used: u64, cx: &impl NoSuspend) {
        if let Some(kill) = &mut *self.reclaim.kill.lock(cx) {
            kill.killer += used;
            kill.all_told = true;
        }
        self.may_have_ended(cx);
    }

    /// Looks whether a kill has come to its end: when all are told, and when the last member has left.
    pub(super) fn may_have_ended(&self, cx: &impl NoSuspend) {
        let (user, system) = self.cpu.past();
        let Some(measured) = self.reclaim.end_kill(user + system, self.population.is_populated(), cx) else { return };
        if measured.worked > measured.charged {
            for group in self.up(cx) {
                group.reclaim.overruns.fetch_add(1, Ordering::Relaxed);
                group.reclaim.event.notify();
            }
        }
        // Behind that: who sees what the kill took sees whether it was too long.
        *self.reclaim.last.lock(cx) = Some(measured);
        self.reclaim.event.notify();
    }
}
