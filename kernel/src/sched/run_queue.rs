//! The queues of ready tasks: of those that any core may run, and for each core of those that it has to run, because what they do lies on a stack
//! there ([`Ready::worker`]). With one core all are of the first kind.

use alloc::collections::{BinaryHeap, VecDeque};
use core::cmp::{Ordering, Reverse};

use refs::reclaim::MAX_CORES;
use tasks::Ready;

use super::MAX_PRIORITY;

const LEVELS: usize = MAX_PRIORITY as usize + 1;

/// All ready tasks: real-time ones by priority, fair ones by virtual run time.
pub(super) struct Queues {
    /// Bit p is set while `real_time[p]` is not empty.
    occupied: u128,
    real_time: [VecDeque<(i64, Ready)>; LEVELS],
    /// Fair tasks on a machine with one core.
    fair: BinaryHeap<Reverse<Entry<FairTurn>>>,
    /// Fair tasks that any of several cores may run. (A queue of its own, so that the code for one core stays what it would be without.)
    shared: BinaryHeap<Reverse<Entry<Turn>>>,
    /// Those that one core has to run.
    pinned: [BinaryHeap<Reverse<Entry<Turn>>>; MAX_CORES],
    /// How many there are in `pinned`.
    all_pinned: usize,
    /// How many of those are fair, and those in `shared`.
    other_fair: usize,
    /// Tells tasks of equal rank apart: first come, first served.
    entered: i64,
}

/// When a fair task's turn comes among others: the least is first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FairTurn {
    virtual_time: u64,
    /// When it was entered.
    order: i64,
}

/// When a task's turn comes among all: the least is first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    /// The priority; 0 for fair tasks.
    priority: Reverse<u8>,
    /// Of a real-time task the virtual time is 0, and the order below 0, and the later the less, if it was entered before all others of its
    /// priority.
    fair: FairTurn,
}

impl Turn {
    fn of_fair(fair: FairTurn) -> Self {
        Turn { priority: Reverse(0), fair }
    }

    fn of_real_time(priority: u8, order: i64) -> Self {
        Turn { priority: Reverse(priority.min(MAX_PRIORITY)), fair: FairTurn { virtual_time: 0, order } }
    }
}

struct Entry<T> {
    turn: T,
    ready: Ready,
}

impl<T: Ord> Ord for Entry<T> {
    #[inline(always)]
    fn cmp(&self, other: &Self) -> Ordering {
        self.turn.cmp(&other.turn)
    }
}

impl<T: Ord> PartialOrd for Entry<T> {
    #[inline(always)]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ord> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T: Ord> Eq for Entry<T> {}

impl Queues {
    pub const fn new() -> Self {
        Queues {
            occupied: 0,
            real_time: [const { VecDeque::new() }; LEVELS],
            fair: BinaryHeap::new(),
            shared: BinaryHeap::new(),
            pinned: [const { BinaryHeap::new() }; MAX_CORES],
            all_pinned: 0,
            other_fair: 0,
            entered: 0,
        }
    }

    /// Makes room for `count` ready tasks of the fair class, so that waking them needs no memory; false if there is none.
    pub fn reserve_fair(&mut self, count: usize) -> bool {
        fn reserve<T: Ord>(queue: &mut BinaryHeap<T>, count: usize) -> bool {
            count <= queue.capacity() || queue.try_reserve(count - queue.len().min(count)).is_ok()
        }
        let cores = frame::cpu::count();
        if cores == 1 {
            return reserve(&mut self.fair, count);
        }
        reserve(&mut self.shared, count) && (self.pinned.iter_mut().take(cores).all(|queue| reserve(queue, count)))
    }

    /// Enters a fair task, for one core or for all.
    #[inline(always)]
    pub fn push_fair<const ALONE: bool>(&mut self, ready: Ready, virtual_time: u64, pinned_to: Option<usize>) {
        self.entered += 1;
        let turn = FairTurn { virtual_time, order: self.entered };
        match pinned_to {
            None if ALONE => self.fair.push(Reverse(Entry { turn, ready })),
            None => {
                self.other_fair += 1;
                self.shared.push(Reverse(Entry { turn: Turn::of_fair(turn), ready }));
            }
            Some(core) => {
                self.other_fair += 1;
                self.pin(core, Turn::of_fair(turn), ready);
            }
        }
    }

    #[inline(never)]
    fn pin(&mut self, core: usize, turn: Turn, ready: Ready) {
        self.all_pinned += 1;
        self.pinned[core].push(Reverse(Entry { turn, ready }));
    }

    /// Enters a task behind those of its priority.
    pub fn push_real_time(&mut self, ready: Ready, priority: u8, pinned_to: Option<usize>) {
        self.entered += 1;
        let order = self.entered;
        match pinned_to {
            None => self.level(priority).push_back((order, ready)),
            Some(core) => self.pin(core, Turn::of_real_time(priority, order), ready),
        }
    }

    /// Enters a task before those of its priority.
    pub fn push_real_time_front(&mut self, ready: Ready, priority: u8, pinned_to: Option<usize>) {
        self.entered += 1;
        let order = -self.entered;
        match pinned_to {
            None => self.level(priority).push_front((order, ready)),
            Some(core) => self.pin(core, Turn::of_real_time(priority, order), ready),
        }
    }

    fn level(&mut self, priority: u8) -> &mut VecDeque<(i64, Ready)> {
        let level = usize::from(priority).min(LEVELS - 1);
        self.occupied |= 1 << level;
        &mut self.real_time[level]
    }

    /// The task that `core`, one of several, is to run next.
    pub fn pop(&mut self, core: usize) -> Option<Ready> {
        if self.all_pinned != 0
            && let Some(ready) = self.pop_pinned(core)
        {
            return Some(ready);
        }
        if let Some(ready) = self.pop_real_time() {
            return Some(ready);
        }
        let Reverse(fair) = self.shared.pop()?;
        self.other_fair -= 1;
        Some(fair.ready)
    }

    /// The task that the only core is to run next.
    #[inline(always)]
    pub fn pop_alone(&mut self) -> Option<Ready> {
        if self.occupied != 0 { self.pop_real_time() } else { self.fair.pop().map(|Reverse(fair)| fair.ready) }
    }

    /// The first real-time task that any core may run.
    #[inline(always)]
    fn pop_real_time(&mut self) -> Option<Ready> {
        if self.occupied == 0 {
            return None;
        }
        let level = self.occupied.ilog2() as usize;
        let ready = self.real_time[level].pop_front();
        if self.real_time[level].is_empty() {
            self.occupied &= !(1 << level);
        }
        ready.map(|(_, ready)| ready)
    }

    /// The first of the tasks that `core` has to run, if its turn comes before that of all tasks that any core may run.
    fn pop_pinned(&mut self, core: usize) -> Option<Ready> {
        let turn = self.pinned[core].peek()?.0.turn;
        if self.first_anywhere().is_some_and(|first| first < turn) {
            return None;
        }
        self.all_pinned -= 1;
        self.other_fair -= usize::from(turn.priority == Reverse(0));
        self.pinned[core].pop().map(|Reverse(entry)| entry.ready)
    }

    /// When the turn of those comes that any core may run.
    fn first_anywhere(&self) -> Option<Turn> {
        if self.occupied == 0 {
            return self.shared.peek().map(|fair| fair.0.turn);
        }
        let level = self.occupied.ilog2() as usize;
        let (order, _) = self.real_time[level].front()?;
        Some(Turn::of_real_time(level as u8, *order))
    }

    /// Whether any fair task is ready.
    pub fn has_fair(&self) -> bool {
        !self.fair.is_empty() || self.other_fair != 0
    }

    /// Whether a task is ready that `core` has to run itself.
    pub fn has_pinned(&self, core: usize) -> bool {
        self.all_pinned != 0 && !self.pinned[core].is_empty()
    }

    /// Whether a fair task, which `core` runs, keeps it from others.
    pub fn has_fair_for(&self, core: usize) -> bool {
        !self.fair.is_empty() || self.other_fair != 0 && !self.shared.is_empty() || self.has_pinned(core)
    }

    /// Whether a task of a real-time priority, which `core` runs, keeps it from others of the same.
    pub fn has_real_time_for(&self, core: usize, priority: u8) -> bool {
        self.occupied & (1 << usize::from(priority).min(LEVELS - 1)) != 0
            || self.has_pinned(core)
                && self.pinned[core].peek().is_some_and(|first| first.0.turn.priority.0 >= priority)
    }

    /// Whether there is nothing that `core` may run.
    pub fn is_empty_for(&self, core: usize) -> bool {
        self.occupied == 0 && !self.has_fair_for(core)
    }

    /// How many tasks are ready that any core may run.
    pub fn len_anywhere(&self) -> usize {
        let real_time = || self.real_time.iter().map(VecDeque::len).sum::<usize>();
        self.fair.len() + self.shared.len() + if self.occupied == 0 { 0 } else { real_time() }
    }

    /// How many tasks wait that a core has to run itself.
    pub fn pinned_len(&self, core: usize) -> usize {
        self.pinned[core].len()
    }

    /// How many tasks are ready.
    pub fn len(&self) -> usize {
        self.len_anywhere() + self.all_pinned
    }
}
