//! smol, its executor for one thread.

use std::cell::Cell;
use std::rc::Rc;

use smol::LocalExecutor;
use smol::future::{block_on, yield_now};

use crate::clock;
use crate::line::{BATCH, Samples};

/// Tasks that yield for ever; per yield.
pub fn ring(s: &mut Samples, tasks: usize) {
    let stop = Rc::new(Cell::new(false));
    let rounds = super::rounds(tasks);
    let executor = LocalExecutor::new();
    for _ in 1..tasks {
        let stop = stop.clone();
        executor
            .spawn(async move {
                while !stop.get() {
                    yield_now().await;
                }
            })
            .detach();
    }
    let measuring = executor.spawn(async {
        while s.more() {
            let start = clock::now();
            for _ in 0..rounds {
                yield_now().await;
            }
            let ticks = clock::now() - start;
            s.push(rounds * tasks, ticks);
        }
        stop.set(true);
    });
    block_on(executor.run(measuring));
}

/// Tasks that end at once, each awaited by the one that made it.
pub fn create_empty(s: &mut Samples) {
    let executor = LocalExecutor::new();
    block_on(executor.run(async {
        while s.more() {
            let start = clock::now();
            for _ in 0..BATCH {
                executor.spawn(async {}).await;
            }
            let ticks = clock::now() - start;
            s.push(BATCH, ticks);
        }
    }));
}

/// Tasks that yield once, each awaited by the one that made it.
pub fn create_suspend(s: &mut Samples) {
    let executor = LocalExecutor::new();
    block_on(executor.run(async {
        while s.more() {
            let start = clock::now();
            for _ in 0..BATCH {
                executor.spawn(yield_now()).await;
            }
            let ticks = clock::now() - start;
            s.push(BATCH, ticks);
        }
    }));
}

/// Calls made by so many tasks at once, each of which lets the others run while no response is there; per call.
pub fn callers(s: &mut Samples, tasks: usize, batch: usize, send: &dyn Fn(), received: &dyn Fn() -> bool) {
    let left = Cell::new(0);
    let (left, executor) = (&left, LocalExecutor::new());
    s.batches(batch, || {
        left.set(batch);
        let callers: Vec<_> = (0..tasks)
            .map(|_| {
                executor.spawn(async {
                    while left.get() > 0 {
                        left.set(left.get() - 1);
                        send();
                        while !received() {
                            yield_now().await;
                        }
                    }
                })
            })
            .collect();
        block_on(executor.run(async {
            for caller in callers {
                caller.await;
            }
        }));
    });
}
