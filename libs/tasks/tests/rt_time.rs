//! Waiting for a time, and no longer than until a time; ending a block from another thread.
#![cfg(feature = "std")]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use tasks::rt::sync::Semaphore;
use tasks::rt::{self, Canceled, Canceler, time};

mod log;
use log::Log;

/// Longer than any test lasts.
const FAR: Duration = Duration::from_secs(3600);

#[test]
fn a_task_that_sleeps_lets_others_run_and_does_not_wake_early() {
    let log = Log::default();
    let until = Instant::now() + Duration::from_millis(10);
    rt::run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, |cx| {
                time::sleep_until_async(cx, until);
                assert!(Instant::now() >= until);
                log.say("slept");
            });
            log.say("meanwhile");
        });
    });
    assert_eq!(log.text(), "meanwhile slept");
}

#[test]
fn many_sleep_at_once_each_as_long_as_it_wants() {
    let slept = Cell::new(0);
    rt::run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            for number in 0..200 {
                let slept = &slept;
                scope.spawn_async(cx, move |cx| {
                    let time = Duration::from_micros(number * 7919 % 20_000);
                    let start = Instant::now();
                    time::sleep_async(cx, time);
                    assert!(start.elapsed() >= time);
                    slept.set(slept.get() + 1);
                });
            }
        });
    });
    assert_eq!(slept.get(), 200);
}

#[test]
fn a_block_with_a_deadline_is_asked_to_end_at_it_and_not_waited_for_longer_than_it_lasts() {
    let (never, given) = (Semaphore::new(0), Semaphore::new(0));
    rt::run(|cx| {
        let deadline = Instant::now() + Duration::from_millis(5);
        let waited = time::finish_until_async(cx, deadline, |scope, cx| {
            scope.spawn_async(cx, |cx| assert_eq!(never.p_x_async(cx), Err(Canceled)));
            time::sleep_until_x_async(cx, Instant::now() + FAR)
        });
        assert_eq!(waited, Err(Canceled));
        assert!(Instant::now() >= deadline);
        assert!(!rt::is_cancel_requested(cx), "only what is inside was asked");
        let result = time::finish_until_async(cx, Instant::now() + FAR, |scope, cx| {
            scope.spawn_async(cx, |cx| {
                rt::yield_async(cx);
                given.v();
            });
            given.p_x_async(cx)
        });
        assert_eq!(result, Ok(()));
        // One that is past counts at once.
        assert_eq!(time::finish_until_async(cx, deadline, |_, cx| rt::yield_x_async(cx)), Err(Canceled));
    });
}

#[test]
fn a_wait_with_a_deadline_of_its_own_ends_by_what_comes_first() {
    rt::run(|cx| {
        let waker = rt::prepare(cx);
        time::wake_at(Instant::now() + Duration::from_millis(2), waker);
        assert!(rt::park_async(cx));
        assert!(!waker.wake(), "the deadline has ended it");
        let waker = rt::prepare(cx);
        time::wake_at(Instant::now() + FAR, waker);
        assert!(waker.wake());
        assert!(rt::park_async(cx));
    });
}

#[test]
fn a_thread_ends_blocks_of_other_threads() {
    let canceler = Canceler::new();
    let (waiting, is_waiting) = mpsc::channel();
    thread::scope(|threads| {
        for _ in 0..2 {
            let (canceler, waiting) = (&canceler, waiting.clone());
            threads.spawn(move || {
                let never = Semaphore::new(0);
                rt::run(|cx| {
                    let ended = Cell::new(0);
                    canceler.finish_async(cx, |scope, cx| {
                        for _ in 0..3 {
                            scope.spawn_async(cx, |cx| {
                                assert_eq!(never.p_x_async(cx), Err(Canceled));
                                ended.set(ended.get() + 1);
                            });
                        }
                        waiting.send(()).expect("somebody listens");
                    });
                    assert_eq!(ended.get(), 3);
                    assert!(!rt::is_cancel_requested(cx));
                    // It was asked for good.
                    assert_eq!(canceler.finish_async(cx, |_, cx| rt::yield_x_async(cx)), Err(Canceled));
                });
            });
        }
        (0..2).for_each(|_| is_waiting.recv().expect("two blocks"));
        assert!(!canceler.is_cancel_requested());
        canceler.cancel();
    });
}

#[test]
fn a_block_that_may_be_ended_ends_without_it_too_also_by_a_panic() {
    let canceler = Canceler::new();
    rt::run(|cx| {
        assert_eq!(canceler.finish_async(cx, |_, _| 1), 1);
        assert_eq!(canceler.finish_async(cx, |_, cx| rt::yield_x_async(cx)), Ok(()));
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            canceler.finish_async(cx, |scope, cx| {
                scope.spawn_async(cx, rt::yield_async);
                panic!("as the test wants it");
            });
        }));
        let message = outcome.expect_err("it panics");
        assert_eq!(message.downcast_ref(), Some(&"as the test wants it"));
        assert_eq!(rt::count(cx), 1, "nobody watches any more");
    });
}
