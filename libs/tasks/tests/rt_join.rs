//! Handles of tasks: values, panics, aborts, cancellation.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use tasks::rt::{self, Canceled};

#[test]
fn a_value_is_there_at_once_or_waited_for() {
    rt::run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            let at_once = scope.spawn_with_handle_async(cx, |_| String::from("at once"));
            let later = scope.spawn_with_handle_async(cx, |cx| {
                rt::yield_async(cx);
                rt::yield_async(cx);
                String::from("later")
            });
            assert!(at_once.is_finished() && !later.is_finished());
            assert_eq!(format!("{later:?}").split(' ').next(), Some("JoinHandle"));
            assert_eq!(later.join_async(cx).expect("no panic"), "later");
            assert_eq!(at_once.join_async(cx).expect("no panic"), "at once");
        });
    });
}

#[test]
fn a_task_may_join_one_that_was_started_elsewhere_in_the_block() {
    let sum = Cell::new(0);
    rt::run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            let first = scope.spawn_with_handle_async(cx, |cx| {
                rt::yield_async(cx);
                20
            });
            let second = scope.spawn_with_handle_async(cx, move |cx| first.join_async(cx).expect("no panic") + 1);
            let sum = &sum;
            scope.spawn_async(cx, move |cx| sum.set(second.join_async(cx).expect("no panic")));
        });
    });
    assert_eq!(sum.get(), 21);
}

#[test]
fn a_panic_is_the_joiner_s_or_else_the_block_s() {
    let joined = rt::run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            let fails = scope.spawn_with_handle_async(cx, |cx| {
                rt::yield_async(cx);
                panic!("joined");
            });
            let error: rt::JoinError = fails.join_async(cx).expect_err("it panics");
            assert!(!error.is_aborted() && error.to_string() == "the task panicked");
            *error.into_panic().downcast::<&str>().expect("a message")
        })
    });
    assert_eq!(joined, "joined");
    // Dropped before and after the task's end.
    for end_first in [false, true] {
        let raised = catch_unwind(AssertUnwindSafe(|| {
            rt::run(|cx| {
                rt::finish_async(cx, |scope, cx| {
                    let fails = scope.spawn_with_handle_async(cx, |cx| {
                        rt::yield_async(cx);
                        panic!("not joined");
                    });
                    if end_first {
                        rt::yield_async(cx);
                        rt::yield_async(cx);
                        assert!(fails.is_finished());
                    }
                    drop::<rt::JoinHandle<'_, ()>>(fails);
                });
            });
        }));
        assert_eq!(raised.expect_err("the block raises it").downcast_ref(), Some(&"not joined"));
    }
}

#[test]
fn an_aborted_task_has_no_value_and_its_block_no_panic() {
    rt::run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            let task = scope.spawn_with_handle_async(cx, rt::suspend_async);
            rt::abort_async(cx, task.task()).expect("it lives");
            let error = task.join_async(cx).expect_err("it was aborted");
            assert!(error.is_aborted() && error.to_string() == "the task was aborted");
            drop(scope.spawn_with_handle_async(cx, |_| ()));
        });
    });
}

#[test]
fn a_value_that_nobody_takes_is_dropped_once() {
    let value = Rc::new(());
    rt::run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            let at_once = scope.spawn_with_handle_async(cx, |_| value.clone());
            assert_eq!(Rc::strong_count(&value), 2);
            drop(at_once);
            assert_eq!(Rc::strong_count(&value), 1);
            drop(scope.spawn_with_handle_async(cx, |cx| {
                rt::yield_async(cx);
                value.clone()
            }));
        });
    });
    assert_eq!(Rc::strong_count(&value), 1);
}

#[test]
fn a_canceled_wait_leaves_the_handle_as_it_was() {
    rt::run(|cx| {
        rt::finish_async(cx, |tasks, cx| {
            let mut handle = tasks.spawn_with_handle_async(cx, |cx| {
                rt::suspend_async(cx);
                7
            });
            let name = handle.task();
            rt::finish_async(cx, |scope, cx| {
                let handle = &mut handle;
                scope.spawn_async(cx, move |cx| {
                    assert!(matches!(handle.join_x_async(cx), Err(Canceled)));
                });
                scope.cancel_async(cx);
            });
            name.schedule().expect("it is suspended");
            assert_eq!(handle.join_x_async(cx).expect("not canceled").expect("no panic"), 7);
        });
    });
}
