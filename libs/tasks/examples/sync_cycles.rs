//! What synchronisation and cancellation cost, in cycles of the time-stamp counter:
//! `cargo run --release -p ebb-tasks --example sync_cycles`.
//!
//! Each figure is the median of many batches.

use std::arch::x86_64::_rdtsc;
use std::cell::Cell;

use tasks::rt::sync::{Lock, Semaphore};
use tasks::rt::{self, Cx};

const OPERATIONS: usize = 1000;
const BATCHES: usize = 500;

fn now() -> u64 {
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { _rdtsc() }
}

/// Shows the median cost of one of `OPERATIONS`, of which each call of `batch` does all.
fn show(what: &str, mut batch: impl FnMut()) {
    let mut figures: Vec<u64> = (0..BATCHES)
        .map(|_| {
            let start = now();
            batch();
            now() - start
        })
        .collect();
    figures.sort_unstable();
    println!("{what:<60} {:>8.1}", figures[BATCHES / 2] as f64 / OPERATIONS as f64);
}

fn uncontended(cx: &mut Cx) {
    let (semaphore, lock) = (Semaphore::new(1), Lock::new(0_u64));
    show("take and give a unit", || {
        for _ in 0..OPERATIONS {
            semaphore.p_async(cx);
            semaphore.v();
        }
    });
    show("the same, cancellable", || {
        for _ in 0..OPERATIONS {
            semaphore.p_x_async(cx).expect("nobody cancels");
            semaphore.v();
        }
    });
    show("lock, add, unlock", || {
        for _ in 0..OPERATIONS {
            *lock.lock_async(cx) += 1;
        }
    });
}

/// Two tasks pass a unit to and fro by two semaphores; each operation is one way.
fn handed_over(cx: &mut Cx, what: &str, wait: impl Fn(&Semaphore, &mut Cx)) {
    let (there, back) = (Semaphore::new(0), Semaphore::new(0));
    let done = Cell::new(false);
    rt::finish_async(cx, |scope, cx| {
        scope.spawn_async(cx, |cx| {
            loop {
                wait(&there, cx);
                if done.get() {
                    break;
                }
                back.v();
            }
        });
        show(what, || {
            for _ in 0..OPERATIONS / 2 {
                there.v();
                wait(&back, cx);
            }
        });
        done.set(true);
        there.v();
    });
}

fn canceled(cx: &mut Cx) {
    let semaphore = Semaphore::new(0);
    show("start a task, let it wait, cancel its wait, end it", || {
        rt::finish_async(cx, |scope, cx| {
            for _ in 0..OPERATIONS {
                scope.spawn_async(cx, |cx| assert!(semaphore.p_x_async(cx).is_err()));
            }
            scope.cancel_async(cx);
        });
    });
}

fn main() {
    rt::run(|cx| {
        uncontended(cx);
        handed_over(cx, "hand a unit to a task that waits for it, switch", |semaphore, cx| semaphore.p_async(cx));
        handed_over(cx, "the same, cancellable", |semaphore, cx| semaphore.p_x_async(cx).expect("nobody cancels"));
        canceled(cx);
    });
}
