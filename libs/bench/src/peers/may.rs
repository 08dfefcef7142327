//! may: stackful coroutines that move between worker threads; here it gets one worker, on the core that is measured.

use std::sync::Arc;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use may::coroutine::yield_now;
use may::go;

use crate::clock;
use crate::line::{BATCH, Samples};

fn configure() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        may::config().set_worker_pin(false);
        may::config().set_workers(1).set_pool_capacity(1024);
    });
}

/// Coroutines that yield for ever; per yield.
pub fn ring(s: &mut Samples, tasks: usize) {
    configure();
    let stop = Arc::new(AtomicBool::new(false));
    let others: Vec<_> = (1..tasks)
        .map(|_| {
            let stop = stop.clone();
            go!(move || {
                while !stop.load(Ordering::Relaxed) {
                    yield_now();
                }
            })
        })
        .collect();
    let mut samples = std::mem::take(s);
    let rounds = super::rounds(tasks);
    let measuring = go!(move || {
        samples.batches(rounds * tasks, || (0..rounds).for_each(|_| yield_now()));
        stop.store(true, Ordering::Relaxed);
        samples
    });
    *s = measuring.join().expect("nothing in it panics");
    others.into_iter().for_each(|other| other.join().expect("nothing in it panics"));
}

/// Coroutines that yield so often, each awaited by the one that made it.
pub fn create(s: &mut Samples, suspensions: usize) {
    configure();
    let mut samples = std::mem::take(s);
    let measuring = go!(move || {
        while samples.more() {
            let start = clock::now();
            for _ in 0..BATCH / 10 {
                go!(move || (0..suspensions).for_each(|_| yield_now())).join().expect("nothing in it panics");
            }
            let ticks = clock::now() - start;
            samples.push(BATCH / 10, ticks);
        }
        samples
    });
    *s = measuring.join().expect("nothing in it panics");
}
