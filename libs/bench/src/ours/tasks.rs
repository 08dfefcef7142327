//! `ebb-tasks`.

use std::cell::Cell;
use std::hint::black_box;

use tasks::rt::{self, AweRef, Config, Cx, Id};

use crate::line::{BATCH, Samples};
use crate::machine;
use crate::peers::rounds;

/// Tasks that yield for ever; per yield.
pub fn ring(s: &mut Samples, tasks: usize) {
    rt::run(|cx| {
        let done = Cell::new(false);
        rt::finish_async(cx, |scope, cx| {
            for _ in 1..tasks {
                scope.spawn_async(cx, |cx| {
                    while !done.get() {
                        rt::yield_async(cx);
                    }
                });
            }
            let rounds = rounds(tasks);
            s.batches(rounds * tasks, || (0..rounds).for_each(|_| rt::yield_async(cx)));
            done.set(true);
        });
    });
}

/// Two tasks that hand over to each other by reference; per switch.
pub fn hand_over(s: &mut Samples) {
    rt::run(|cx| {
        let (partner, done): (Cell<Option<AweRef>>, _) = (Cell::new(None), Cell::new(false));
        let main = rt::current(cx);
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, |cx| {
                rt::suspend_then_async(cx, |me| partner.set(Some(me)));
                while !done.get() {
                    let _ = rt::hand_over_async(cx, main);
                }
                main.schedule().expect("the first task is suspended: it handed over to this one");
            });
            let other = partner.get().expect("a lazy task runs at once");
            s.batches(2 * BATCH, || (0..BATCH).for_each(|_| _ = rt::hand_over_async(cx, other)));
            done.set(true);
            let _ = rt::hand_over_async(cx, other);
        });
    });
}

/// Two tasks that hand over to each other by ids under which they save themselves; per switch.
pub fn hand_over_by_id(s: &mut Samples) {
    rt::run(|cx| {
        let done = Cell::new(false);
        let mine = Id::create(cx).expect("two ids are free");
        let other = Id::create(cx).expect("two ids are free");
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, |cx| {
                let _ = rt::yield_and_save_no_dispatch_async(cx, other);
                while !done.get() {
                    let _ = rt::yield_to_id_and_save_no_dispatch_async(cx, mine, other);
                }
                let main = mine.get(cx).expect("the first task saved itself when it handed over");
                main.schedule().expect("and is suspended");
            });
            s.batches(2 * BATCH, || {
                (0..BATCH).for_each(|_| _ = rt::yield_to_id_and_save_no_dispatch_async(cx, other, mine));
            });
            done.set(true);
            let _ = rt::yield_to_id_and_save_no_dispatch_async(cx, other, mine);
        });
        let _ = (mine.remove(cx), other.remove(cx));
    });
}

/// Empty tasks by optimistic call, one at a time.
pub fn create_single(s: &mut Samples) {
    rt::run(|cx| rt::finish_async(cx, |scope, cx| s.single(|| scope.spawn_async(cx, |_| ()))));
}

/// The same, with the bare counter.
pub fn create_single_unordered(s: &mut Samples) {
    rt::run(|cx| rt::finish_async(cx, |scope, cx| s.single_unordered(|| scope.spawn_async(cx, |_| ()))));
}

/// Empty tasks by optimistic call.
pub fn create_empty(s: &mut Samples) {
    rt::run(|cx| rt::finish_async(cx, |scope, cx| s.each(|| scope.spawn_async(cx, |_| ()))));
}

/// Empty tasks that are detached before they start.
pub fn create_empty_eager(s: &mut Samples) {
    rt::run(|cx| rt::finish_async(cx, |scope, cx| s.each(|| scope.spawn_eager_async(cx, |_| ()))));
}

/// Tasks made inside each other, `depth` deep; per task.
pub fn create_nested(s: &mut Samples, depth: usize) {
    fn nest<'scope>(scope: &'scope rt::Scope<'scope, '_>, cx: &mut Cx, depth: usize) {
        if depth > 0 {
            scope.spawn_async(cx, move |cx| nest(scope, cx, depth - 1));
        }
    }
    let repeats = rounds(depth);
    rt::run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            s.batches(repeats * depth, || {
                (0..repeats).for_each(|_| nest(scope, cx, black_box(depth)));
            });
        });
    });
}

/// Tasks that yield once, and are resumed by a yield of the one that made them.
pub fn create_suspend(s: &mut Samples) {
    rt::run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            s.each(|| {
                scope.spawn_async(cx, rt::yield_async);
                rt::yield_async(cx);
            });
        });
    });
}

/// Empty blocks.
pub fn finish(s: &mut Samples) {
    rt::run(|cx| s.each(|| rt::finish_async(cx, |_, _| ())));
}

/// An id made and given back.
pub fn ids(s: &mut Samples) {
    rt::run(|cx| {
        s.each(|| {
            let id = black_box(Id::create(cx).expect("an id is free"));
            let _ = id.remove(cx);
        });
    });
}

/// The name of a living task, checked.
pub fn check_name(s: &mut Samples) {
    rt::run(|cx| {
        let name = rt::current(cx);
        s.each(|| _ = black_box(black_box(name).is_alive()));
    });
}

/// The task under an id, looked up.
pub fn check_id(s: &mut Samples) {
    rt::run(|cx| {
        let id = Id::create(cx).expect("an id is free");
        let name = rt::current(cx);
        id.set(cx, Some(name)).expect("the running task lives on this thread");
        s.each(|| _ = black_box(black_box(id).get(cx).is_ok()));
        let _ = id.remove(cx);
    });
}

/// How much more memory this process has when `tasks` tasks are parked on stacks of one page.
pub fn parked_bytes(tasks: usize) -> anyhow::Result<f64> {
    Config { stack_size_bytes: 4096, keep_stacks: 0 }.run(|cx| {
        // Their names are kept outside: what is measured is the tasks.
        let mut parked: Vec<AweRef> = vec![rt::current(cx); tasks];
        let names = Cell::from_mut(&mut parked[..]).as_slice_of_cells();
        let before = machine::memory_bytes()?;
        let mut after = Ok(before);
        rt::finish_async(cx, |scope, cx| {
            for name in names {
                scope.spawn_async(cx, |cx| rt::suspend_then_async(cx, |me| name.set(me)));
            }
            after = machine::memory_bytes();
            for name in names {
                let _ = name.get().schedule();
            }
        });
        Ok(after? - before)
    })
}
