//! tokio, its executor for one thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;

use crate::clock;
use crate::line::{BATCH, Samples};

fn runtime() -> Runtime {
    Builder::new_current_thread().build().expect("a runtime without drivers needs only memory")
}

/// Tasks that yield for ever; per yield.
pub fn ring(s: &mut Samples, tasks: usize) {
    let stop = Arc::new(AtomicBool::new(false));
    let runtime = runtime();
    for _ in 1..tasks {
        let stop = stop.clone();
        runtime.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                yield_now().await;
            }
        });
    }
    let mut samples = std::mem::take(s);
    let rounds = super::rounds(tasks);
    let measuring = runtime.spawn(async move {
        while samples.more() {
            let start = clock::now();
            for _ in 0..rounds {
                yield_now().await;
            }
            let ticks = clock::now() - start;
            samples.push(rounds * tasks, ticks);
        }
        stop.store(true, Ordering::Relaxed);
        samples
    });
    *s = runtime.block_on(measuring).expect("nothing in it panics");
}

/// Tasks that end at once, each awaited by the one that made it.
pub fn create_empty(s: &mut Samples) {
    let mut samples = std::mem::take(s);
    let runtime = runtime();
    let measuring = runtime.spawn(async move {
        while samples.more() {
            let start = clock::now();
            for _ in 0..BATCH {
                tokio::spawn(async {}).await.expect("nothing in it panics");
            }
            let ticks = clock::now() - start;
            samples.push(BATCH, ticks);
        }
        samples
    });
    *s = runtime.block_on(measuring).expect("nothing in it panics");
}

/// Tasks that yield once, each awaited by the one that made it.
pub fn create_suspend(s: &mut Samples) {
    let mut samples = std::mem::take(s);
    let runtime = runtime();
    let measuring = runtime.spawn(async move {
        while samples.more() {
            let start = clock::now();
            for _ in 0..BATCH {
                tokio::spawn(yield_now()).await.expect("nothing in it panics");
            }
            let ticks = clock::now() - start;
            samples.push(BATCH, ticks);
        }
        samples
    });
    *s = runtime.block_on(measuring).expect("nothing in it panics");
}

/// A set of tasks that stays empty, awaited.
pub fn empty_set(s: &mut Samples) {
    let mut samples = std::mem::take(s);
    *s = runtime().block_on(async move {
        while samples.more() {
            let start = clock::now();
            for _ in 0..BATCH {
                let mut set = tokio::task::JoinSet::<()>::new();
                while set.join_next().await.is_some() {}
            }
            let ticks = clock::now() - start;
            samples.push(BATCH, ticks);
        }
        samples
    });
}
