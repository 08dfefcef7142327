//! What it takes until a client that vanished is gone: against how many values it has, and how many of them others watch.

use anyhow::{Result, ensure};
use std::cell::Cell;
use tasks::rt::{self, Cx};

use crate::store::{Counted, Grouped, Immediate, Payload, Store, Watched, thread_time};

/// Values of each client.
const VALUES: [u64; 3] = [1, 1_000, 1_000_000];
/// How many of them are watched.
const WATCHED: [u64; 3] = [0, 1, 1_000];
/// Bytes of a value.
const SIZE: usize = 32;

/// The end of a client.
#[derive(Clone, Copy)]
struct Ended {
    /// Processor time, in nanoseconds.
    took: u64,
    /// Watchers who were told.
    told: u64,
}

/// Prints the table, as far as clients with `most` values.
pub fn table(most: u64) -> Result<()> {
    println!("{:>9} {:>9} {:>14} {:>14} {:>14}", "values", "watched", "group", "references", "Rc");
    for values in VALUES.into_iter().filter(|&values| values <= most) {
        for watched in WATCHED.into_iter().filter(|&watched| watched <= values) {
            let rounds = if values > 10_000 { 5 } else { 100 };
            let grouped = median::<Grouped>(values, watched, rounds);
            let immediate = median::<Immediate>(values, watched, rounds);
            let counted = median::<Counted>(values, watched, rounds);
            ensure!(grouped.told == watched && immediate.told == watched, "a watcher was not told");
            let [grouped, immediate, counted] = [grouped, immediate, counted].map(|ended| ended.took);
            println!("{values:>9} {watched:>9} {grouped:>11} ns {immediate:>11} ns {counted:>11} ns");
        }
    }
    Ok(())
}

fn median<S: Store>(values: u64, watched: u64, rounds: usize) -> Ended {
    let mut ended: Vec<Ended> = (0..rounds).map(|_| end::<S>(values, watched)).collect();
    ended.sort_unstable_by_key(|ended| ended.took);
    ended[rounds / 2]
}

/// Makes a client, and others that watch its values; ends it.
fn end<S: Store>(values: u64, watched: u64) -> Ended {
    let store = S::default();
    rt::run(|cx: &mut Cx| {
        let (client, other) = (store.open(cx), store.open(cx));
        for key in 0..values {
            store.put(&client, key, Payload::new(SIZE), cx);
        }
        let (told, took) = (Cell::new(0), Cell::new(0));
        rt::finish_async(cx, |scope, cx| {
            for key in 0..watched {
                let (store, other, told) = (&store, other.clone(), &told);
                scope.spawn_async(cx, move |cx| {
                    if store.watch_async(&other, key, cx) == Watched::Gone {
                        told.set(told.get() + 1);
                    }
                });
            }
            rt::yield_async(cx);
            let start = thread_time();
            store.close(client.clone(), cx);
            took.set(thread_time() - start);
            rt::yield_async(cx);
            store.close(other.clone(), cx);
        });
        Ended { took: took.get(), told: told.get() }
    })
}
