//! corosensei: asymmetric coroutines on stacks of their own. It has no scheduler, so a ring is a loop that resumes one after
//! the other.

use std::cell::RefCell;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use slotmap::{DefaultKey, SlotMap};

use crate::line::{BATCH, Samples};

thread_local! {
    static POOL: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

fn take() -> DefaultStack {
    let pooled = POOL.with(|pool| pool.borrow_mut().pop());
    pooled.unwrap_or_else(|| DefaultStack::new(64 * 1024).expect("64 KiB can be mapped"))
}

fn give(stack: DefaultStack) {
    POOL.with(|pool| pool.borrow_mut().push(stack));
}

fn forever(yielder: &Yielder<bool, ()>, mut stop: bool) {
    while !stop {
        stop = yielder.suspend(());
    }
}

/// Coroutines resumed in turn; per coroutine resumed (there and back).
pub fn ring(s: &mut Samples, tasks: usize) {
    let mut ring: Vec<Coroutine<bool, (), ()>> = (0..tasks).map(|_| Coroutine::with_stack(take(), forever)).collect();
    let rounds = super::rounds(tasks);
    s.batches(rounds * tasks, || {
        for _ in 0..rounds {
            for coroutine in &mut ring {
                coroutine.resume(false);
            }
        }
    });
    for mut coroutine in ring {
        coroutine.resume(true);
        give(coroutine.into_stack());
    }
}

/// One switch: half of there and back.
pub fn switch(s: &mut Samples) {
    let mut coroutine: Coroutine<bool, (), ()> = Coroutine::with_stack(take(), forever);
    s.batches(2 * BATCH, || {
        for _ in 0..BATCH {
            coroutine.resume(false);
        }
    });
    coroutine.resume(true);
    give(coroutine.into_stack());
}

/// The same for a coroutine that is found by its key.
pub fn switch_by_key(s: &mut Samples) {
    let mut map: SlotMap<DefaultKey, Coroutine<bool, (), ()>> = SlotMap::new();
    let key = map.insert(Coroutine::with_stack(take(), forever));
    s.batches(2 * BATCH, || {
        for _ in 0..BATCH {
            if let Some(coroutine) = map.get_mut(std::hint::black_box(key)) {
                coroutine.resume(false);
            }
        }
    });
    for (_, mut coroutine) in map.drain() {
        coroutine.resume(true);
        give(coroutine.into_stack());
    }
}

#[inline(always)]
fn create() {
    let mut coroutine: Coroutine<(), (), ()> = Coroutine::with_stack(take(), |_, ()| ());
    coroutine.resume(());
    give(coroutine.into_stack());
}

/// A coroutine on a pooled stack that returns at once.
pub fn create_empty(s: &mut Samples) {
    s.each(create);
}

/// The same, one at a time.
pub fn create_single(s: &mut Samples) {
    s.single(create);
}

/// The same, with the bare counter.
pub fn create_single_unordered(s: &mut Samples) {
    s.single_unordered(create);
}

/// A coroutine on a pooled stack that suspends once.
pub fn create_suspend(s: &mut Samples) {
    s.each(|| {
        let mut coroutine: Coroutine<(), (), ()> = Coroutine::with_stack(take(), |yielder, ()| yielder.suspend(()));
        if let CoroutineResult::Yield(()) = coroutine.resume(()) {
            coroutine.resume(());
        }
        give(coroutine.into_stack());
    });
}

fn nest(depth: usize) {
    if depth > 0 {
        let mut coroutine: Coroutine<(), (), ()> = Coroutine::with_stack(take(), move |_, ()| nest(depth - 1));
        coroutine.resume(());
        give(coroutine.into_stack());
    }
}

/// Coroutines made inside each other, `depth` deep; per coroutine.
pub fn create_nested(s: &mut Samples, depth: usize) {
    let repeats = super::rounds(depth);
    s.batches(repeats * depth, || (0..repeats).for_each(|_| nest(std::hint::black_box(depth))));
}
