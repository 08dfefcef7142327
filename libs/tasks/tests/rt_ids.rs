//! The id table: what an id finds, and what it does not.

use std::cell::{Cell, RefCell};

use tasks::rt::{self, AweRef, BadId, Id, IdsExhausted, NotSaved, NotSuspended};

#[test]
fn a_task_that_is_saved_is_found_and_resumed_by_its_id() {
    let order = RefCell::new(Vec::new());
    rt::run(|cx| {
        let id = Id::create(cx).expect("an id");
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, |cx| {
                rt::yield_and_save_async(cx, id).expect("a fresh id");
                order.borrow_mut().push("saved");
            });
            scope.spawn_async(cx, |cx| {
                rt::yield_async(cx);
                order.borrow_mut().push("other");
            });
            assert_eq!(rt::yield_to_id_async(cx, id), Ok(()));
            order.borrow_mut().push("main");
        });
        assert_eq!(id.remove(cx), Ok(None));
    });
    assert_eq!(*order.borrow(), ["saved", "other", "main"]);
}

#[test]
fn an_entry_is_empty_as_soon_as_its_task_goes_on() {
    rt::run(|cx| {
        let id = Id::create(cx).expect("an id");
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, |cx| {
                rt::yield_and_save_async(cx, id).expect("a fresh id");
                rt::yield_async(cx);
            });
            assert!(id.get(cx).is_ok());
            // It is resumed by its turn, not by its id.
            rt::yield_async(cx);
            assert_eq!(id.get(cx), Err(NotSaved::Empty));
            assert_eq!(rt::yield_to_id_async(cx, id), Err(NotSaved::Empty));
        });
        assert_eq!(id.get(cx), Err(NotSaved::Empty));
    });
}

#[test]
fn removed_forged_and_stale_ids_find_nothing() {
    rt::run(|cx| {
        let first = Id::create(cx).expect("an id");
        assert_eq!(first.remove(cx), Ok(None));
        assert_eq!(first.remove(cx), Err(BadId));
        let second = Id::create(cx).expect("an id");
        assert_ne!(first, second, "the same entry has another number");
        assert_eq!(rt::yield_to_id_async(cx, first), Err(NotSaved::BadId));
        assert_eq!(rt::yield_and_save_async(cx, first), Err(NotSaved::BadId));
        for bits in [0, 1, 0xffff_ffff, 0xdead_beef, second.to_bits() + 1, second.to_bits() ^ 0x0001_0000] {
            assert_eq!(Id::from_bits(bits).get(cx), Err(NotSaved::BadId), "{bits:#x}");
            assert_eq!(Id::from_bits(bits).remove(cx), Err(BadId), "{bits:#x}");
        }
        assert_eq!(Id::from_bits(second.to_bits()).get(cx), Err(NotSaved::Empty));
    });
}

#[test]
fn a_removed_id_does_not_find_the_task_that_was_saved_under_it() {
    rt::run(|cx| {
        let id = Id::create(cx).expect("an id");
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, |cx| rt::yield_and_save_no_dispatch_async(cx, id).expect("a fresh id"));
            let task = id.remove(cx).expect("it exists").expect("a task is saved");
            // Another id in the same entry: the task that goes on leaves it alone.
            let next = Id::create(cx).expect("an id");
            next.set(cx, Some(rt::current(cx))).expect("it lives");
            task.schedule().expect("it is suspended");
            rt::yield_async(cx);
            assert_eq!(next.get(cx), Ok(rt::current(cx)));
            assert_eq!(rt::yield_to_id_async(cx, next), Err(NotSaved::NotSuspended), "it is the running task");
        });
    });
}

#[test]
fn a_task_that_was_aborted_while_it_was_saved_is_found_no_more() {
    rt::run(|cx| {
        let id = Id::create(cx).expect("an id");
        let task: Cell<Option<AweRef>> = Cell::new(None);
        let next: Cell<Option<AweRef>> = Cell::new(None);
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, |cx| {
                task.set(Some(rt::current(cx)));
                let _ = rt::yield_and_save_no_dispatch_async(cx, id);
            });
            rt::abort_async(cx, task.get().expect("it has run")).expect("it is suspended");
            // Another task in the same memory.
            scope.spawn_async(cx, |cx| rt::suspend_then_async(cx, |me| next.set(Some(me))));
            assert_eq!(rt::yield_to_id_async(cx, id), Err(NotSaved::Empty));
            assert_eq!(rt::yield_and_save_async(cx, id), Ok(()));
            assert_eq!(id.get(cx), Err(NotSaved::Empty));
            next.get().expect("it has run").schedule().expect("it is suspended");
        });
    });
}

#[test]
fn two_tasks_cannot_be_saved_under_one_id() {
    rt::run(|cx| {
        let id = Id::create(cx).expect("an id");
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, |cx| rt::yield_and_save_async(cx, id).expect("a fresh id"));
            assert_eq!(rt::yield_and_save_async(cx, id), Err(NotSaved::Taken));
        });
    });
}

#[test]
fn a_task_with_two_requests_outstanding_gets_both_answers_in_any_order() {
    // The existing implementation crashed: one task saved under two ids, the second answered first.
    let answers = RefCell::new(Vec::new());
    rt::run(|cx| {
        let (first, second) = (Id::create(cx).expect("an id"), Id::create(cx).expect("an id"));
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, |cx| {
                for id in [first, second] {
                    id.set(cx, Some(rt::current(cx))).expect("it lives");
                }
                for _ in 0..2 {
                    rt::suspend_async(cx);
                    answers.borrow_mut().push(());
                }
            });
            assert_eq!(rt::yield_to_id_async(cx, second), Ok(()));
            assert_eq!(rt::yield_to_id_async(cx, first), Ok(()));
            // The task has ended: both ids know.
            assert_eq!(rt::yield_to_id_async(cx, second), Err(NotSaved::NotSuspended));
            assert_eq!(first.set(cx, first.get(cx).ok()), Err(NotSaved::NotSuspended));
        });
    });
    assert_eq!(answers.borrow().len(), 2);
}

#[test]
fn tasks_hand_over_to_each_other_by_id_without_the_queue() {
    let order = RefCell::new(Vec::new());
    rt::run(|cx| {
        let (ping, pong) = (Id::create(cx).expect("an id"), Id::create(cx).expect("an id"));
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, |cx| {
                rt::yield_async(cx);
                order.borrow_mut().push("queued, last");
            });
            scope.spawn_async(cx, |cx| {
                rt::yield_and_save_no_dispatch_async(cx, pong).expect("a fresh id");
                order.borrow_mut().push("pong");
                rt::yield_to_id_and_save_no_dispatch_async(cx, ping, pong).expect("ping is saved");
                order.borrow_mut().push("pong again");
                rt::yield_to_id_async(cx, ping).expect("ping is saved");
            });
            rt::yield_to_id_and_save_no_dispatch_async(cx, pong, ping).expect("pong is saved");
            order.borrow_mut().push("ping");
            rt::yield_to_id_and_save_no_dispatch_async(cx, pong, ping).expect("pong is saved");
            order.borrow_mut().push("ping again");
        });
    });
    assert_eq!(*order.borrow(), ["pong", "ping", "pong again", "ping again", "queued, last"]);
}

#[test]
fn a_failed_yield_to_an_id_saves_nothing() {
    rt::run(|cx| {
        let (mine, other) = (Id::create(cx).expect("an id"), Id::create(cx).expect("an id"));
        assert_eq!(rt::yield_to_id_and_save_async(cx, other, mine), Err(NotSaved::Empty));
        other.set(cx, Some(rt::current(cx))).expect("it lives");
        assert_eq!(rt::yield_to_id_and_save_async(cx, other, mine), Err(NotSaved::NotSuspended));
        assert_eq!(mine.get(cx), Err(NotSaved::Empty));
    });
}

#[test]
fn a_task_of_another_thread_cannot_be_entered() {
    let (send, receive) = std::sync::mpsc::channel::<AweRef>();
    let other = std::thread::spawn(move || rt::run(|cx| rt::suspend_then_async(cx, |me| send.send(me).expect("sent"))));
    let task = receive.recv().expect("a task");
    rt::run(|cx| {
        let id = Id::create(cx).expect("an id");
        assert_eq!(id.set(cx, Some(task)), Err(NotSaved::NotSuspended));
    });
    assert_eq!(task.schedule(), Ok(()));
    other.join().expect("no panic");
    assert_eq!(task.schedule(), Err(NotSuspended));
}

#[test]
fn ids_end_at_65536_and_come_back() {
    rt::run(|cx| {
        let ids: Vec<Id> = (0..1 << 16).map(|_| Id::create(cx).expect("an id")).collect();
        assert_eq!(Id::create(cx), Err(IdsExhausted));
        let different: std::collections::HashSet<u32> = ids.iter().map(|id| id.to_bits()).collect();
        assert_eq!(different.len(), ids.len());
        assert_eq!(ids[40_000].remove(cx), Ok(None));
        let again = Id::create(cx).expect("the one that was given back");
        assert_ne!(again, ids[40_000]);
        assert_eq!(Id::create(cx), Err(IdsExhausted));
    });
    rt::run(|cx| assert!(Id::create(cx).is_ok(), "another run-time begins with no ids"));
}

#[test]
fn an_id_works_after_the_table_has_grown_meanwhile() {
    let went_on = Cell::new(false);
    rt::run(|cx| {
        let id = Id::create(cx).expect("an id");
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, |cx| {
                rt::yield_and_save_no_dispatch_async(cx, id).expect("a fresh id");
                went_on.set(true);
            });
            for _ in 0..1000 {
                Id::create(cx).expect("an id");
            }
            rt::yield_to_id_async(cx, id).expect("it is saved");
            assert!(went_on.get());
            assert_eq!(id.get(cx), Err(NotSaved::Empty));
        });
    });
}
