//! Real-time tasks that any core may run: one queue for all cores, by priority.

use alloc::collections::VecDeque;
use core::cmp::Reverse;

use refs::SpinLock;
use tasks::Ready;

use super::ABOVE_ALL;
use super::atomic::{AtomicU64, Ordering};
use super::run_queue::{FairTurn, Turn};

const LEVELS: usize = ABOVE_ALL as usize + 1;

/// The real-time tasks that wait for whichever core.
#[repr(align(128))]
pub(super) struct RealTime {
    /// The priority of the most urgent one; 0 if there is none. Written with the lock held, read by all cores.
    highest: AtomicU64,
    levels: SpinLock<Levels>,
}

struct Levels {
    /// Bit p is set while `levels[p]` is not empty.
    occupied: u128,
    /// Each with its [`Turn`]'s order.
    levels: [VecDeque<(i64, Ready)>; LEVELS],
}

impl Levels {
    fn highest(&self) -> u64 {
        self.occupied.checked_ilog2().unwrap_or(0).into()
    }
}

/// Which end of its priority's queue a task enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Front,
    Back,
}

impl RealTime {
    pub const fn new() -> Self {
        let levels = Levels { occupied: 0, levels: [const { VecDeque::new() }; LEVELS] };
        RealTime { highest: AtomicU64::new(0), levels: SpinLock::new(levels) }
    }

    /// The priority of the most urgent task that waits; 0 if none does.
    #[inline(always)]
    pub fn highest(&self) -> u8 {
        self.highest.load(Ordering::SeqCst) as u8
    }

    pub fn push(&self, ready: Ready, turn: Turn, end: End) {
        self.levels.with(|all| {
            let level = usize::from(turn.priority.0).min(LEVELS - 1);
            all.occupied |= 1 << level;
            match end {
                End::Front => all.levels[level].push_front((turn.fair.order, ready)),
                End::Back => all.levels[level].push_back((turn.fair.order, ready)),
            }
            self.highest.store(all.highest(), Ordering::SeqCst);
        });
    }

    /// The first task, if its turn comes before `other`'s.
    pub fn pop_before(&self, other: Option<Turn>) -> Option<Ready> {
        self.levels.with(|all| {
            let level = all.occupied.checked_ilog2()? as usize;
            let (order, _) = all.levels[level].front()?;
            let fair = FairTurn { virtual_time: 0, order: *order };
            if other.is_some_and(|other| other < Turn { priority: Reverse(level as u8), fair }) {
                return None;
            }
            let ready = all.levels[level].pop_front();
            if all.levels[level].is_empty() {
                all.occupied &= !(1 << level);
                self.highest.store(all.highest(), Ordering::SeqCst);
            }
            ready.map(|(_, ready)| ready)
        })
    }

    /// Whether a task of this priority waits.
    pub fn has(&self, priority: u8) -> bool {
        self.highest() != 0 && self.levels.with(|all| all.occupied & 1 << usize::from(priority).min(LEVELS - 1) != 0)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        if self.highest() == 0 { 0 } else { self.levels.with(|all| all.levels.iter().map(VecDeque::len).sum()) }
    }
}
