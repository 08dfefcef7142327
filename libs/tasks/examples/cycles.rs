//! What the hot paths cost, in cycles of the time-stamp counter: `cargo run --release -p ebb-tasks --features std --example cycles`.
//!
//! Each figure is the median of many batches of 1000 operations.

use std::arch::x86_64::_rdtsc;
use std::cell::Cell;

use tasks::rt::{self, AweRef, Cx, Id};

const OPERATIONS: usize = 1000;
const BATCHES: usize = 1000;

fn now() -> u64 {
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { _rdtsc() }
}

/// The median cost of one of `operations`, of which each call of `batch` does all.
fn measure(operations: usize, batches: usize, mut batch: impl FnMut()) -> f64 {
    let mut figures: Vec<u64> = (0..batches)
        .map(|_| {
            let start = now();
            batch();
            now() - start
        })
        .collect();
    figures.sort_unstable();
    figures[batches / 2] as f64 / operations as f64
}

fn show(what: &str, cycles: f64, target: &str) {
    println!("{what:<44} {cycles:>8.2}   {target}");
}

fn yields(cx: &mut Cx, tasks: usize) -> f64 {
    let done = Cell::new(false);
    let mut cycles = 0.0;
    rt::finish_async(cx, |scope, cx| {
        for _ in 1..tasks {
            scope.spawn_async(cx, |cx| {
                while !done.get() {
                    rt::yield_async(cx);
                }
            });
        }
        let rounds = (OPERATIONS / tasks).max(4);
        cycles = measure(rounds * tasks, BATCHES, || {
            for _ in 0..rounds {
                rt::yield_async(cx);
            }
        });
        done.set(true);
    });
    cycles
}

fn hand_overs(cx: &mut Cx) -> f64 {
    let partner: Cell<Option<AweRef>> = Cell::new(None);
    let done = Cell::new(false);
    let mut cycles = 0.0;
    let main = rt::current(cx);
    rt::finish_async(cx, |scope, cx| {
        let (done, partner) = (&done, &partner);
        scope.spawn_async(cx, move |cx| {
            rt::suspend_then_async(cx, |me| partner.set(Some(me)));
            while !done.get() {
                let _ = rt::hand_over_async(cx, main);
            }
            main.schedule().expect("main is suspended");
        });
        let other = partner.get().expect("it has run");
        cycles = measure(OPERATIONS, BATCHES, || {
            for _ in 0..OPERATIONS / 2 {
                let _ = rt::hand_over_async(cx, other);
            }
        });
        done.set(true);
        let _ = rt::hand_over_async(cx, other);
    });
    cycles
}

fn by_id(cx: &mut Cx) -> f64 {
    let done = Cell::new(false);
    let mut cycles = 0.0;
    let (mine, other) = (Id::create(cx).expect("an id"), Id::create(cx).expect("an id"));
    rt::finish_async(cx, |scope, cx| {
        let done = &done;
        scope.spawn_async(cx, move |cx| {
            let _ = rt::yield_and_save_no_dispatch_async(cx, other);
            while !done.get() {
                let _ = rt::yield_to_id_and_save_no_dispatch_async(cx, mine, other);
            }
            mine.get(cx).expect("main is saved").schedule().expect("main is suspended");
        });
        cycles = measure(OPERATIONS, BATCHES, || {
            let (other, mine) = (other, mine);
            for _ in 0..OPERATIONS / 2 {
                let _ = rt::yield_to_id_and_save_no_dispatch_async(cx, other, mine);
            }
        });
        done.set(true);
        let _ = rt::yield_to_id_and_save_no_dispatch_async(cx, other, mine);
    });
    cycles
}

fn by_id_queued(cx: &mut Cx) -> f64 {
    let done = Cell::new(false);
    let mut cycles = 0.0;
    let (mine, other) = (Id::create(cx).expect("an id"), Id::create(cx).expect("an id"));
    rt::finish_async(cx, |scope, cx| {
        let done = &done;
        scope.spawn_async(cx, move |cx| {
            let _ = rt::yield_and_save_async(cx, other);
            while !done.get() {
                let _ = rt::yield_to_id_and_save_async(cx, mine, other);
            }
        });
        cycles = measure(OPERATIONS, BATCHES, || {
            let (other, mine) = (other, mine);
            for _ in 0..OPERATIONS / 2 {
                let _ = rt::yield_to_id_and_save_async(cx, other, mine);
            }
        });
        done.set(true);
    });
    cycles
}

#[inline(never)]
fn nested(cx: &mut Cx, depth: usize) {
    fn inner<'scope>(scope: &'scope rt::Scope<'scope, '_>, cx: &mut Cx, depth: usize) {
        if depth > 0 {
            scope.spawn_async(cx, move |cx| inner(scope, cx, depth - 1));
        }
    }
    rt::finish_async(cx, |scope, cx| inner(scope, cx, depth));
}

fn main() {
    println!("{:<44} {:>8}   target", "", "cycles");
    rt::run(|cx| {
        for (tasks, target) in [(2, "5"), (8, ""), (64, "7"), (512, "9")] {
            show(&format!("yield, {tasks} tasks"), yields(cx, tasks), target);
        }
        show("hand over, by reference", hand_overs(cx), "3.2");
        show("hand over, by id, saved under an id", by_id(cx), "6");
        show("yield to id and save, queued", by_id_queued(cx), "");
        rt::finish_async(cx, |scope, cx| {
            let single = measure(1, 20_000, || scope.spawn_async(cx, |_| ()));
            let nothing = measure(1, 20_000, || ());
            show("ASYNC(empty), single shot (timer subtracted)", single - nothing, "8");
            let empty = measure(OPERATIONS, BATCHES, || {
                for _ in 0..OPERATIONS {
                    scope.spawn_async(cx, |_| ());
                }
            });
            show("ASYNC(empty)", empty, "5");
            let eager = measure(OPERATIONS, BATCHES, || {
                for _ in 0..OPERATIONS {
                    scope.spawn_eager_async(cx, |_| ());
                }
            });
            show("ASYNC(empty), eager", eager, "");
            let blocked = measure(OPERATIONS, BATCHES, || {
                for _ in 0..OPERATIONS {
                    scope.spawn_async(cx, rt::yield_async);
                    rt::yield_async(cx);
                }
            });
            show("ASYNC(yield); yield", blocked, "22");
        });
        let nest = measure(64, BATCHES, || nested(cx, 64));
        show("64 nested ASYNC(empty), each", nest, "20");
        let block = measure(OPERATIONS, BATCHES, || {
            for _ in 0..OPERATIONS {
                rt::finish_async(cx, |_, _| ());
            }
        });
        show("finish({})", block, "1");
        let id = measure(OPERATIONS, BATCHES, || {
            for _ in 0..OPERATIONS {
                let id = Id::create(cx).expect("an id");
                let _ = id.remove(cx);
            }
        });
        show("create id + remove id", id, "");
    });
}
