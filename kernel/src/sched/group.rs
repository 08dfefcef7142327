//! [`Group`]: programs that share the processor with others as one: `cpu.weight` and `cpu.max` of a control group.
//!
//! Groups form a tree; a process's account says by a number which group it is in (0: none, its tasks share with the groups at the top). All fair tasks of a core wait in one
//! queue, by virtual time. That of a task in a group goes the faster the less of the processor it is to have: its *part* is, on each level, its weight among all that is ready there, and the
//! virtual time that passes while it runs is divided by that ([`passed`]). So a group gets what its weight is worth however many tasks it has.
//!
//! | what | how |
//! | --- | --- |
//! | all that is ready in a group | one sum of weights, of tasks and of groups. A task is in it while it waits in a queue or runs, by what it was [counted](Counted) as; a group is in that of the one above as long as there is anything in its own |
//! | a group that has the machine's only core to itself | its tasks are treated as ones of no group, and are not in its sum until others come (`RunQueue::plain`) |
//! | who begins tasks that end soon after | a new task begins where its group is on that core, not where the core is: what those before it had is not forgotten |
//! | a quota | each level is charged for what ran, and says for how long a task may run on (`Bandwidth`). What has to wait is asked to give way; the thread then waits by itself, on its way back to user mode |
//!
//! With several cores there is one sum for all of them: a task has its part of the core on which it is. Cores are balanced by how many tasks they have, so who gets how much of all of them is approximate.
//!
//! Owner: [`Owned`], the controller of a control group. Its end takes some hundred instructions and wakes who waits for the next period. The memory of groups is used again for others and never freed; whoever is
//! late and still names one counts in another's sum for a moment, and takes the same out of it.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};

use refs::{NoSuspend, SpinLock, WaitList, Waker};
use tasks::StaticRef;

use super::bandwidth::{Bandwidth, Quota, Throttling, UNLIMITED};
use crate::error::{Errno, Result};

/// The weight of a group of `cpu.weight` 100, as that of a task of nice value 0.
pub const SHARES: u64 = 1024;
/// How far beyond the others a new task may begin, in weighted nanoseconds.
const FARTHEST_BEGINNING: u64 = 1_000_000_000;
/// No virtual time that passes at once is longer, in weighted nanoseconds.
const LONGEST: u64 = 1 << 50;
/// What the sum of a group has less as long as it is nobody's: so nothing is ready in it.
const NOBODYS: i64 = 1 << 62;

/// As what a task that is ready was entered in the sum of its group: the group's number and the weight; nothing for those that are in none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted(pub u64);

impl Counted {
    pub const NOTHING: Counted = Counted(0);

    fn new(number: u32, weight: u64) -> Self {
        Counted(u64::from(number) << u32::BITS | weight)
    }

    fn number(self) -> u32 {
        (self.0 >> u32::BITS) as u32
    }

    fn weight(self) -> u64 {
        self.0 & u64::from(u32::MAX)
    }

    /// Whether it is in the group of that number.
    pub fn is_of(self, number: u32) -> bool {
        self.number() == number
    }

    #[inline(always)]
    pub fn is_nothing(self) -> bool {
        self.0 == 0
    }
}

/// What shares the processor with others as one.
struct Group {
    /// The group above, if there is one.
    parent: StaticRef<Group>,
    is_in_use: AtomicBool,
    /// Its weight.
    shares: AtomicU64,
    /// The weights of what is ready in it, on all cores.
    sum: AtomicI64,
    /// By how much it is in the sum of the group above.
    in_parent: AtomicU64,
    /// Whether it has a quota.
    is_limited: AtomicBool,
    bandwidth: SpinLock<Bandwidth>,
    /// It is a reason to look for threads that were preempted. Changed with the bandwidth locked.
    is_used_up: AtomicBool,
    /// Threads that wait for the next period, each with an alarm of its own. Woken when there is another quota, or none.
    waiters: WaitList,
    /// Where it is on each core, by the virtual time of that one's queue: what its new tasks begin at.
    reached: Box<[AtomicU64]>,
}

impl Group {
    fn unused(cores: usize) -> Option<Self> {
        let mut reached = Vec::new();
        reached.try_reserve_exact(cores).ok()?;
        reached.resize_with(cores, || AtomicU64::new(0));
        Some(Group {
            parent: StaticRef::none(),
            is_in_use: AtomicBool::new(false),
            shares: AtomicU64::new(SHARES),
            sum: AtomicI64::new(-NOBODYS),
            in_parent: AtomicU64::new(0),
            is_limited: AtomicBool::new(false),
            bandwidth: SpinLock::new(Bandwidth::default()),
            is_used_up: AtomicBool::new(false),
            waiters: WaitList::new(),
            reached: reached.into_boxed_slice(),
        })
    }

    /// Brings up to date by how much it is in the sum of the group above; by how much that changes. Several cores may do that at the same time: each has what it has changed, and the last one has
    /// seen the last state.
    fn update(&self) -> i64 {
        let wanted = || if self.sum.load(Ordering::SeqCst) > 0 { self.shares.load(Ordering::SeqCst) } else { 0 };
        let mut change = 0;
        let mut now = wanted();
        loop {
            change += now as i64 - self.in_parent.swap(now, Ordering::SeqCst) as i64;
            let then = wanted();
            if then == now {
                return change;
            }
            now = then;
        }
    }

    /// Its own sum has changed from or to nothing, or its weight has: so do those above, as far as that matters.
    fn update_above(&self) {
        let mut group = self;
        // Before its own part is brought up to date: as long as it counts there it is no other.
        while let Some(parent) = group.parent.get() {
            if !parent.change_sum(group.update()) {
                return;
            }
            group = parent;
        }
    }

    /// Says whether it has a quota.
    fn limit(&self, does: bool) {
        if self.is_limited.swap(does, Ordering::SeqCst) != does {
            if does {
                LIMITED.fetch_add(1, Ordering::SeqCst);
            } else {
                LIMITED.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }

    /// So much more or less is ready in it; whether that is from or to nothing.
    fn change_sum(&self, by: i64) -> bool {
        let before = self.sum.fetch_add(by, Ordering::SeqCst);
        (before > 0) != (before + by > 0)
    }

    /// All that is ready in it, one part of which has this weight.
    fn all_beside(&self, weight: u64) -> u64 {
        u64::try_from(self.sum.load(Ordering::Relaxed)).unwrap_or(0).max(weight)
    }

    /// Runs `f` on what it may run.
    fn with_bandwidth<R: Send>(&self, f: impl FnOnce(&mut Bandwidth) -> R + Send) -> R {
        self.bandwidth.with(|bandwidth| {
            let result = f(bandwidth);
            let is_used_up = bandwidth.is_used_up();
            if self.is_used_up.swap(is_used_up, Ordering::Relaxed) != is_used_up {
                if is_used_up {
                    super::add_reason_to_look();
                } else {
                    super::remove_reason_to_look();
                }
            }
            result
        })
    }

    fn is_limited(&self) -> bool {
        self.is_limited.load(Ordering::Relaxed)
    }

    /// Makes one that is nobody's one below `parent`; whether it was nobody's, and nobody counts in it.
    fn begin(&self, parent: u32) -> bool {
        if self.is_in_use.load(Ordering::SeqCst) || self.sum.load(Ordering::SeqCst) != -NOBODYS {
            return false;
        }
        self.is_in_use.store(true, Ordering::SeqCst);
        self.parent.set(find(parent));
        self.shares.store(SHARES, Ordering::SeqCst);
        self.limit(false);
        self.with_bandwidth(|bandwidth| *bandwidth = Bandwidth::default());
        self.reached.iter().for_each(|reached| reached.store(0, Ordering::Relaxed));
        self.sum.fetch_add(NOBODYS, Ordering::SeqCst);
        self.update_above();
        true
    }

    fn end(&self) {
        self.sum.fetch_sub(NOBODYS, Ordering::SeqCst);
        self.update_above();
        self.limit(false);
        self.with_bandwidth(|bandwidth| *bandwidth = Bandwidth::default());
        self.waiters.wake_all();
        self.is_in_use.store(false, Ordering::SeqCst);
    }
}

/// Groups in a piece of the table.
const PIECE: usize = 64;
/// Pieces: there are no more groups at the same time than this times [`PIECE`].
const PIECES: usize = 1024;

/// All groups, by their numbers. Number 0 is none.
static TABLE: [StaticRef<Vec<Group>>; PIECES] = [const { StaticRef::none() }; PIECES];
/// Held while a group is made.
static MADE: SpinLock<Made> = SpinLock::new(Made { len: 0, next: 1 });

struct Made {
    /// How many groups there are, in use or not.
    len: usize,
    /// Where one that is nobody's is looked for first.
    next: usize,
}

/// The group of a number, if there is or was one.
fn find(number: u32) -> Option<&'static Group> {
    if number == 0 {
        return None;
    }
    TABLE.get(number as usize / PIECE)?.get()?.get(number as usize % PIECE)
}

/// A group and all above it.
fn up(number: u32) -> impl Iterator<Item = &'static Group> {
    core::iter::successors(find(number), |group| group.parent.get())
}

/// How many groups have quotas.
static LIMITED: AtomicUsize = AtomicUsize::new(0);

#[inline(always)]
pub(super) fn is_any_limited() -> bool {
    LIMITED.load(Ordering::Relaxed) > 0
}

/// A group that is in use.
#[derive(Debug)]
pub struct Owned(u32);

impl Owned {
    /// A group below the one of number `parent` (0: at the top).
    ///
    /// # Errors
    /// ENOMEM: no memory, or too many.
    pub fn new(parent: u32) -> Result<Self> {
        MADE.with(|made| {
            let mut numbers = (made.next..made.len).chain(1..made.next.min(made.len));
            let unused = numbers.find(|&number| find(number as u32).is_some_and(|group| group.begin(parent)));
            let number = match unused {
                Some(number) => number,
                None => made.add_piece(parent)?,
            };
            made.next = number + 1;
            Ok(Owned(number as u32))
        })
    }

    /// Its number, never 0.
    pub fn number(&self) -> u32 {
        self.0
    }

    /// Changes its weight, in the unit of [`SHARES`]. Who waits keeps its turn.
    pub fn set_shares(&self, shares: u64) {
        if let Some(group) = find(self.0) {
            group.shares.store(shares.max(1), Ordering::SeqCst);
            group.update_above();
        }
    }

    /// What it may run.
    pub fn quota(&self) -> Quota {
        find(self.0).map_or(Quota::default(), |group| group.with_bandwidth(|bandwidth| bandwidth.quota()))
    }

    /// Changes that, from now on. Others are to be told of it with nothing locked.
    pub fn set_quota(&self, quota: Quota) -> NewQuota {
        if let Some(group) = find(self.0) {
            let now = frame::time::now();
            group.with_bandwidth(|bandwidth| bandwidth.set(quota, now));
            group.limit(quota.runtime != UNLIMITED);
        }
        NewQuota(self.0)
    }

    /// How often and how long it had to wait.
    pub fn throttling(&self) -> Throttling {
        let now = frame::time::now();
        find(self.0).map_or(Throttling::default(), |group| group.with_bandwidth(|bandwidth| bandwidth.throttling(now)))
    }
}

/// A group has another quota, and nobody knows.
#[must_use = "who waits goes on waiting until it is told"]
pub struct NewQuota(u32);

impl NewQuota {
    /// Has all look again who wait for the next period or run just now.
    pub fn tell(self) {
        if let Some(group) = find(self.0) {
            group.waiters.wake_all();
            super::look_again_at(self.0);
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(group) = find(self.0) {
            group.end();
        }
    }
}

impl Made {
    /// Makes more groups; the first of them is in use.
    #[cold]
    fn add_piece(&mut self, parent: u32) -> Result<usize> {
        let place = TABLE.get(self.len / PIECE).ok_or(Errno::ENOMEM)?;
        let cores = frame::cpu::count();
        let mut groups = Vec::new();
        groups.try_reserve_exact(PIECE).map_err(|_| Errno::ENOMEM)?;
        for _ in 0..PIECE {
            groups.push(Group::unused(cores).ok_or(Errno::ENOMEM)?);
        }
        // Number 0 is none.
        let first = self.len.max(1);
        groups[first % PIECE].begin(parent);
        let mut kept = Vec::new();
        kept.try_reserve_exact(1).map_err(|_| Errno::ENOMEM)?;
        kept.push(groups);
        place.set(Some(&Box::leak(kept.into_boxed_slice())[0]));
        self.len += PIECE;
        Ok(first)
    }
}

/// A task of this weight is ready in a group.
#[inline(never)]
pub(super) fn count(number: u32, weight: u64) -> Counted {
    let Some(group) = find(number) else { return Counted::NOTHING };
    if group.change_sum(weight as i64) {
        group.update_above();
    }
    Counted::new(number, weight)
}

/// What was counted is ready no more.
#[inline(never)]
pub(super) fn discount(counted: Counted) {
    if let Some(group) = find(counted.number())
        && group.change_sum(-(counted.weight() as i64))
    {
        group.update_above();
    }
}

/// How much virtual time passes for the group itself when one of its tasks runs for so long, as if it ran on one core only.
#[inline(always)]
fn passed_for_group(group: &Group, ran: u64) -> u64 {
    let mut passed = ran;
    let mut shares = group.shares.load(Ordering::Relaxed);
    for above in core::iter::successors(group.parent.get(), |above| above.parent.get()) {
        passed = scale(passed, above.all_beside(shares), shares);
        shares = above.shares.load(Ordering::Relaxed);
    }
    scale(passed, SHARES, shares)
}

/// `time * by / through`, within bounds.
#[inline(always)]
fn scale(time: u64, by: u64, through: u64) -> u64 {
    // What is alone, or has the weight that most have.
    if by == through {
        return time.min(LONGEST);
    }
    scale_otherwise(time, by, through)
}

#[inline(never)]
fn scale_otherwise(time: u64, by: u64, through: u64) -> u64 {
    let through = through.max(1);
    match time.checked_mul(by) {
        Some(product) => (product / through).min(LONGEST),
        None => (u128::from(time) * u128::from(by) / u128::from(through)).min(LONGEST.into()) as u64,
    }
}

/// How much virtual time passes for a task that runs for so long.
#[inline(never)]
pub(super) fn passed(counted: Counted, ran: u64) -> u64 {
    let Some(group) = find(counted.number()) else { return ran };
    scale(passed_for_group(group, ran), group.all_beside(counted.weight()), counted.weight())
}

/// Whom a core charges for what it runs.
#[derive(Clone, Copy)]
pub(super) struct Charged {
    group: &'static Group,
    counted: Counted,
    /// Where the group is on that core.
    reached: &'static AtomicU64,
}

/// Whom a core charges that runs a task which was counted so.
#[inline(never)]
pub(super) fn charged(counted: Counted, core: usize) -> Option<Charged> {
    let group = find(counted.number())?;
    Some(Charged { group, counted, reached: group.reached.get(core)? })
}

impl Charged {
    /// As what the task was counted.
    #[inline(always)]
    pub fn counted(&self) -> Counted {
        self.counted
    }

    /// A task of this weight is ready in the group.
    #[inline(always)]
    pub fn count(&self, weight: u64) -> Counted {
        self.change_sum(weight as i64);
        Counted::new(self.counted.number(), weight)
    }

    /// The task is ready no more.
    #[inline(always)]
    pub fn discount(&self) {
        self.change_sum(-(self.counted.weight() as i64));
    }

    #[inline(always)]
    fn change_sum(&self, by: i64) {
        if self.group.change_sum(by) && self.group.parent.get().is_some() {
            self.update_above();
        }
    }

    #[inline(never)]
    fn update_above(&self) {
        self.group.update_above();
    }

    /// The task has run for so long, until now, where nothing is entitled to less virtual time than `floor`: charges its groups. The virtual time that has passed for it.
    #[inline(always)]
    pub fn charge(&self, ran: u64, floor: u64, now: u64) -> u64 {
        self.charge_plainly(ran, floor).unwrap_or_else(|| self.charge_otherwise(ran, floor, now))
    }

    /// As [`charge`](Self::charge), where the group is as most are.
    #[inline(always)]
    fn charge_plainly(&self, ran: u64, floor: u64) -> Option<u64> {
        let passed = self.passed_plainly(ran)?;
        let reached = self.reached;
        reached.store(reached.load(Ordering::Relaxed).max(floor).saturating_add(ran), Ordering::Relaxed);
        Some(passed)
    }

    /// How much virtual time passes for the task if it runs for so long.
    #[inline(always)]
    pub fn passed(&self, ran: u64) -> u64 {
        self.passed_plainly(ran).unwrap_or_else(|| passed(self.counted, ran))
    }

    /// As [`passed`](Self::passed), where the group is as most are: of the usual weight, at the top, and no group has a quota. For the group itself as much time passes then as it runs.
    #[inline(always)]
    fn passed_plainly(&self, ran: u64) -> Option<u64> {
        let Charged { group, counted, .. } = *self;
        let all = group.sum.load(Ordering::Relaxed) as u64;
        let is_plain = group.parent.get().is_none() && group.shares.load(Ordering::Relaxed) == SHARES;
        // No product is too large then, and the sum is none that is below 0.
        if !is_plain || is_any_limited() || (ran | all) >> u32::BITS != 0 {
            return None;
        }
        let weight = counted.weight();
        Some(if all <= weight { ran } else { (ran * all / weight.max(1)).min(LONGEST) })
    }

    #[inline(never)]
    fn charge_otherwise(&self, ran: u64, floor: u64, now: u64) -> u64 {
        let Charged { group, counted, reached } = *self;
        let of_group = passed_for_group(group, ran);
        let before = reached.load(Ordering::Relaxed).max(floor);
        reached.store(before.saturating_add(of_group), Ordering::Relaxed);
        if is_any_limited() {
            charge_quotas(counted, ran, now);
        }
        scale(of_group, group.all_beside(counted.weight()), counted.weight())
    }
}

#[inline(never)]
fn charge_quotas(counted: Counted, ran: u64, now: u64) {
    up(counted.number())
        .filter(|group| group.is_limited())
        .for_each(|group| group.with_bandwidth(|bandwidth| bandwidth.charge(ran, now)));
}

/// Where a new task of a group begins on a core, where others begin at `beginning` and nothing is entitled to less than `floor`.
#[cold]
#[inline(never)]
pub(super) fn beginning(number: u32, core: usize, beginning: u64, floor: u64) -> u64 {
    let reached = find(number).and_then(|group| group.reached.get(core)).map_or(0, |at| at.load(Ordering::Relaxed));
    reached.clamp(beginning, beginning.max(floor.saturating_add(FARTHEST_BEGINNING)))
}

/// For how long a task that was counted so may run on; `None`: for as long as it likes.
#[inline(always)]
pub(super) fn piece(counted: Counted, now: u64) -> Option<u64> {
    if is_any_limited() { piece_of_quotas(counted, now) } else { None }
}

#[inline(never)]
fn piece_of_quotas(counted: Counted, now: u64) -> Option<u64> {
    let cores = frame::cpu::count();
    let limited = up(counted.number()).filter(|group| group.is_limited());
    limited.map(|group| group.with_bandwidth(|bandwidth| bandwidth.piece(cores, now))).min()
}

/// Whether something that was counted so is in a group or below it.
pub(super) fn is_within(counted: Counted, top: u32) -> bool {
    find(top).is_some_and(|top| up(counted.number()).any(|group| core::ptr::eq(group, top)))
}

/// Until when a thread of a group has to wait that is about to go on in user mode, if it has to. `waker` is woken if that changes.
pub(super) fn waits_until(number: u32, waker: Option<Waker>, cx: &impl NoSuspend) -> Option<u64> {
    let now = frame::time::now();
    let looks = |group: &Group| group.with_bandwidth(|bandwidth| bandwidth.waits_until(now));
    let used_up = up(number).find(|group| group.is_limited() && looks(group).is_some())?;
    if let Some(waker) = waker {
        used_up.waiters.register(waker, cx);
    }
    // Who has changed the quota before it was entered has not woken it.
    looks(used_up)
}

/// The weights of all that is ready in a group.
#[cfg(all(test, not(ebb_shuttle)))]
pub(super) fn ready(number: u32) -> i64 {
    find(number).map_or(0, |group| group.sum.load(Ordering::SeqCst))
}

/// Whether a group has nothing left for this period.
#[cfg(all(test, not(ebb_shuttle)))]
pub(super) fn is_used_up(number: u32) -> bool {
    find(number).is_some_and(|group| group.is_used_up.load(Ordering::SeqCst))
}
