//! Who holds a lock again and again lets those have it that wait. Alone in its program: it says what the processor is like.
#![cfg(not(any(ebb_loom, ebb_shuttle)))]

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use refs::{Cx, Processor, SpinLock};

thread_local! {
    static CORE: Cell<usize> = const { Cell::new(0) };
}

/// How often a core has looked whether it gets a lock.
static LOOKS: AtomicUsize = AtomicUsize::new(0);

static PROCESSOR: Processor = Processor {
    current_core: || CORE.get(),
    relax: || {
        LOOKS.fetch_add(1, Ordering::Relaxed);
        std::thread::yield_now();
    },
    nanoseconds: || 0,
    stuck: |_| {},
};

fn wait_until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::yield_now();
    }
}

#[test]
fn who_gives_way_goes_behind_those_that_wait() {
    const ROUNDS: usize = 200;
    refs::set_processor(&PROCESSOR);
    let (lock, round) = (SpinLock::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            CORE.set(1);
            for this in 1..=ROUNDS {
                wait_until(|| round.load(Ordering::Acquire) == this);
                lock.with(|last| *last = this);
            }
        });
        // SAFETY: the only one on this stack, which neither suspends nor frees.
        let cx = unsafe { Cx::new(core::ptr::null()) };
        for this in 1..=ROUNDS {
            let guard = lock.lock(&cx);
            let looks = LOOKS.load(Ordering::Relaxed);
            round.store(this, Ordering::Release);
            wait_until(|| LOOKS.load(Ordering::Relaxed) > looks);
            drop(guard);
            lock.give_way();
            assert_eq!(*lock.lock(&cx), this, "the other one waited");
        }
    });
    // Nobody waits any more.
    lock.give_way();
}
