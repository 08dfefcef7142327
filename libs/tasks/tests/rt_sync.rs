//! Semaphore, lock, condition variable, event count, sequencer, queue: on one thread and on several.
#![cfg(feature = "std")]

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use refs::{Gone, StrongRc};
use tasks::rt::sync::{Condvar, EventCount, Lock, NotDone, Part, Queue, RawLock, Semaphore, Sequencer};
use tasks::rt::{self, AweRef, Cx};

mod log;
use log::Log;

#[test]
fn a_unit_goes_to_the_task_that_has_waited_longest() {
    // AC's semaphores served the latest first.
    let log = Log::default();
    let semaphore = Semaphore::new(1);
    rt::run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            for name in ["a", "b", "c", "d"] {
                let (log, semaphore) = (&log, &semaphore);
                scope.spawn_async(cx, move |cx| {
                    semaphore.p_async(cx);
                    log.say(name);
                });
            }
            log.say("|");
            for _ in 0..3 {
                semaphore.v();
                // It is handed over already: nobody takes it on the way.
                assert!(!semaphore.try_p());
            }
            semaphore.v();
            assert_eq!(semaphore.units(), 1);
            assert!(semaphore.try_p() && !semaphore.try_p());
        });
    });
    assert_eq!(log.text(), "a | b c d");
}

#[test]
fn a_lock_is_held_across_suspensions_and_passed_on_in_order() {
    let log = Log::default();
    let lock = Lock::new(Vec::new());
    rt::run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            for number in 0..5 {
                let (log, lock) = (&log, &lock);
                scope.spawn_async(cx, move |cx| {
                    let mut list = lock.lock_async(cx);
                    list.push(number);
                    rt::yield_async(cx);
                    assert!(lock.try_lock().is_none());
                    list.push(number);
                    log.say(number.to_string());
                });
            }
        });
    });
    assert_eq!(log.text(), "0 1 2 3 4");
    assert_eq!(lock.into_inner(), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
}

#[test]
fn a_lock_is_given_back_by_a_task_that_panics() {
    let lock = Lock::new(0);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        rt::run(|cx| {
            rt::finish_async(cx, |scope, cx| {
                scope.spawn_async(cx, |cx| {
                    let _held = lock.lock_async(cx);
                    rt::yield_async(cx);
                    panic!("with the lock");
                });
                *lock.lock_async(cx) += 1;
            });
        });
    }));
    assert!(result.is_err());
    assert_eq!(lock.into_inner(), 1);
}

#[test]
fn two_signals_by_the_holder_of_the_lock_wake_two_in_order() {
    // In AC the one that was woken first took the lock while it held the variable's latch, and the second signal deadlocked.
    let log = Log::default();
    let (lock, condvar) = (Lock::new(0), Condvar::new());
    rt::run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            for name in ["a", "b", "c"] {
                let (log, lock, condvar) = (&log, &lock, &condvar);
                scope.spawn_async(cx, move |cx| {
                    let mut guard = lock.lock_async(cx);
                    condvar.wait_async(cx, &mut guard);
                    log.say(format!("{name}{}", *guard));
                });
            }
            let mut guard = lock.lock_async(cx);
            *guard = 1;
            assert!(condvar.signal());
            rt::yield_async(cx);
            // The first one waits for the lock now.
            assert!(condvar.signal());
            rt::yield_async(cx);
            log.say("unlock");
            drop(guard);
            for _ in 0..4 {
                rt::yield_async(cx);
            }
            log.say("no more");
            assert_eq!(condvar.broadcast(), 1);
        });
        assert!(!condvar.signal());
    });
    assert_eq!(log.text(), "unlock a1 b1 no more c1");
}

#[test]
fn a_broadcast_wakes_all_that_wait_and_no_later_one() {
    let (lock, condvar) = (RawLock::new(), Condvar::new());
    let woken = Cell::new(0);
    rt::run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            let wait = |cx: &mut Cx| {
                lock.lock_async(cx);
                condvar.wait_raw_async(cx, &lock);
                assert!(!lock.try_lock());
                woken.set(woken.get() + 1);
                lock.unlock();
            };
            for _ in 0..10 {
                scope.spawn_async(cx, wait);
            }
            assert_eq!(condvar.broadcast(), 10);
            scope.spawn_async(cx, wait);
            for _ in 0..30 {
                rt::yield_async(cx);
            }
            assert_eq!(woken.get(), 10);
            assert!(condvar.signal());
        });
    });
    assert_eq!(woken.get(), 11);
}

#[test]
fn an_event_count_wakes_those_whose_value_is_reached() {
    let log = Log::default();
    let events = EventCount::new();
    rt::run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            for (name, value) in [("five", 5), ("two", 2), ("two again", 2), ("nine", 9), ("none", 0)] {
                let (log, events) = (&log, &events);
                scope.spawn_async(cx, move |cx| {
                    let count = events.await_async(cx, value);
                    log.say(format!("{name}:{count}"));
                });
            }
            events.advance(1);
            rt::yield_async(cx);
            log.say("|");
            events.advance(4);
            rt::yield_async(cx);
            log.say("|");
            events.advance(4);
            assert_eq!(events.read(), 9);
        });
    });
    assert_eq!(log.text(), "none:0 | two:5 two again:5 five:5 | nine:9");
}

#[test]
fn an_event_count_ends_at_the_largest_number() {
    let events = EventCount::new();
    events.advance(u64::MAX);
    events.advance(2);
    assert_eq!(events.read(), u64::MAX);
    assert_eq!(rt::run(|cx| events.await_async(cx, u64::MAX)), u64::MAX);
}

#[test]
fn whoever_leaves_a_line_from_its_front_learns_how_many_left_unserved() {
    rt::run(|cx| {
        let queue = Queue::new();
        // Served, then left.
        let mut turn = queue.enter();
        turn.await_async(cx);
        turn.await_async(cx);
        assert_eq!(turn.leave(), 0);
        // Left without having been served.
        assert_eq!(queue.enter().leave(), 1);
        // The second leaves first.
        let (first, second) = (queue.enter(), queue.enter());
        assert_eq!(second.leave(), 0);
        assert_eq!(first.leave(), 2);
        // The same, but the first was served.
        let (mut first, second, third) = (queue.enter(), queue.enter(), queue.enter());
        first.await_async(cx);
        assert_eq!(third.leave(), 0);
        assert_eq!(second.leave(), 0);
        assert_eq!(first.leave(), 2);
        // Those behind one that stays are counted for that one.
        let (mut first, second, mut third, fourth) = (queue.enter(), queue.enter(), queue.enter(), queue.enter());
        assert_eq!(second.leave(), 0);
        assert_eq!(fourth.leave(), 0);
        first.await_async(cx);
        assert_eq!(first.leave(), 1);
        assert_eq!(queue.len(), 1);
        third.await_async(cx);
        assert_eq!(third.leave(), 1);
        drop(queue.enter());
        assert!(queue.is_empty());
    });
}

#[test]
fn those_in_a_line_have_their_turns_in_its_order() {
    let log = Log::default();
    rt::run(|cx| {
        let queue = Queue::new();
        let mut turns: Vec<_> = (0..5).map(|number| (number, queue.enter())).collect();
        turns.reverse();
        rt::finish_async(cx, |scope, cx| {
            for (number, mut turn) in turns {
                let log = &log;
                scope.spawn_async(cx, move |cx| {
                    turn.await_async(cx);
                    log.say(number.to_string());
                    rt::yield_async(cx);
                    assert_eq!(turn.leave(), 0);
                });
            }
        });
    });
    assert_eq!(log.text(), "0 1 2 3 4");
}

/// Ends the task by force.
fn abort(task: &Cell<Option<AweRef>>, cx: &mut Cx) {
    rt::abort_async(cx, task.get().expect("it has begun")).expect("it is suspended");
}

#[test]
fn a_unit_that_was_handed_to_an_aborted_task_goes_to_the_next() {
    for handed in [false, true] {
        let log = Log::default();
        let semaphore = Semaphore::new(0);
        let task = Cell::new(None);
        rt::run(|cx| {
            rt::finish_async(cx, |scope, cx| {
                scope.spawn_async(cx, |cx| {
                    task.set(Some(rt::current(cx)));
                    semaphore.p_async(cx);
                    unreachable!("it is aborted before it runs again");
                });
                scope.spawn_async(cx, |cx| {
                    semaphore.p_async(cx);
                    log.say("next");
                });
                if handed {
                    semaphore.v();
                }
                abort(&task, cx);
                log.say("aborted");
                if !handed {
                    semaphore.v();
                }
            });
        });
        assert_eq!(log.text(), "aborted next");
        assert_eq!(semaphore.units(), 0);
    }
}

#[test]
fn a_signal_or_a_lock_that_an_aborted_task_got_goes_to_the_next() {
    let log = Log::default();
    let (lock, condvar) = (Lock::new(0), Condvar::new());
    let (waiter, locker) = (Cell::new(None), Cell::new(None));
    rt::run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, |cx| {
                waiter.set(Some(rt::current(cx)));
                let mut guard = lock.lock_async(cx);
                condvar.wait_async(cx, &mut guard);
                unreachable!("it is aborted");
            });
            scope.spawn_async(cx, |cx| {
                let mut guard = lock.lock_async(cx);
                condvar.wait_async(cx, &mut guard);
                log.say("signal");
            });
            assert!(condvar.signal());
            abort(&waiter, cx);

            let held = lock.lock_async(cx);
            scope.spawn_async(cx, |cx| {
                locker.set(Some(rt::current(cx)));
                let _guard = lock.lock_async(cx);
                unreachable!("it is aborted");
            });
            scope.spawn_async(cx, |cx| {
                let _guard = lock.lock_async(cx);
                log.say("lock");
            });
            drop(held);
            abort(&locker, cx);
        });
    });
    assert_eq!(log.text(), "lock signal");
    assert!(lock.try_lock().is_some());
}

#[test]
fn a_report_says_at_what_a_task_waits() {
    let semaphore = Semaphore::new(0);
    let (lock, condvar, events, queue) = (Lock::new(()), Condvar::new(), EventCount::new(), Queue::new());
    let mut text = String::new();
    rt::run(|cx| {
        let first = queue.enter();
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, |cx| {
                rt::set_name(cx, "counter");
                semaphore.p_async(cx);
                rt::set_name(cx, "went on");
                rt::suspend_x_async(cx).expect_err("canceled");
            });
            scope.spawn_async(cx, |cx| {
                rt::set_name(cx, "signalled");
                let mut guard = lock.lock_async(cx);
                condvar.wait_x_async(cx, &mut guard).expect_err("canceled");
            });
            scope.spawn_async(cx, |cx| {
                rt::set_name(cx, "awaiting");
                events.await_x_async(cx, 1).expect_err("canceled");
            });
            scope.spawn_async(cx, |cx| {
                rt::set_name(cx, "second");
                queue.enter().await_x_async(cx).expect_err("canceled");
            });
            rt::dump(cx, &mut text).expect("a string takes everything");
            semaphore.v();
            rt::yield_async(cx);
            rt::dump(cx, &mut text).expect("a string takes everything");
            scope.cancel_async(cx);
        });
        assert_eq!(first.leave(), 2);
    });
    for line in [
        "\"counter\": waits for a semaphore or lock;",
        "\"signalled\": waits for a condition variable;",
        "\"awaiting\": waits for an event count;",
        "\"second\": waits for its turn in a line;",
        "\"went on\": waits for its name;",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

/// An object with something to wait at.
struct Service {
    requests: Semaphore,
    replies: EventCount,
}

#[test]
fn those_who_wait_at_what_is_destroyed_are_woken() {
    let log = Log::default();
    rt::run(|cx| {
        let service = StrongRc::new(Service { requests: Semaphore::new(1), replies: EventCount::new() });
        let requests = Part::new(service.downgrade(), |service: &Service| &service.requests);
        let replies = Part::new(service.downgrade(), |service: &Service| &service.replies);
        assert_eq!(requests.p_async(cx), Ok(()));
        assert_eq!(replies.await_async(cx, 0), Ok(0));
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, |cx| log.say(format!("1:{:?}", requests.p_async(cx))));
            scope.spawn_async(cx, |cx| log.say(format!("2:{:?}", requests.p_x_async(cx))));
            scope.spawn_async(cx, |cx| log.say(format!("3:{:?}", replies.await_async(cx, 7))));
            scope.spawn_async(cx, |cx| log.say(format!("4:{:?}", replies.await_x_async(cx, 7))));
            rt::finish_async(cx, |inner, cx| {
                inner.spawn_async(cx, |cx| log.say(format!("5:{:?}", requests.p_x_async(cx))));
                inner.spawn_async(cx, |cx| log.say(format!("6:{:?}", replies.await_x_async(cx, 7))));
                inner.cancel_async(cx);
            });
            service.get(cx).requests.v();
            rt::yield_async(cx);
            log.say("destroy");
            service.destroy(cx);
        });
        assert_eq!(requests.p_async(cx), Err(Gone));
        assert_eq!(replies.await_x_async(cx, 0), Err(NotDone::Gone));
    });
    assert_eq!(log.text(), "6:Err(Canceled) 5:Err(Canceled) 1:Ok(()) destroy 2:Err(Gone) 3:Err(Gone) 4:Err(Gone)");
}

/// Runs `task` in `tasks` tasks on each of `threads` threads.
fn on_threads(threads: usize, tasks: usize, task: &(dyn Fn(&mut Cx) + Sync)) {
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                rt::run(|cx| {
                    rt::finish_async(cx, |block, cx| {
                        for _ in 0..tasks {
                            block.spawn_async(cx, task);
                        }
                    });
                });
            });
        }
    });
}

#[test]
fn a_lock_between_threads_admits_one_task_at_a_time() {
    let lock = Lock::new(0_u64);
    on_threads(3, 8, &|cx| {
        for round in 0..200 {
            let mut value = lock.lock_async(cx);
            let before = *value;
            if round % 4 == 0 {
                rt::yield_async(cx);
            }
            *value = before + 1;
        }
    });
    assert_eq!(lock.into_inner(), 3 * 8 * 200);
}

#[test]
fn a_bounded_buffer_between_threads_loses_and_doubles_nothing() {
    const ITEMS: usize = 2000;
    let buffer = Lock::new(Vec::new());
    let (places, items) = (Semaphore::new(4), Semaphore::new(0));
    let (sum, made) = (AtomicUsize::new(0), AtomicUsize::new(0));
    on_threads(2, 4, &|cx| {
        // As many consume as produce, on both threads.
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, |cx| {
                loop {
                    let item = made.fetch_add(1, Ordering::Relaxed);
                    if item >= ITEMS {
                        break;
                    }
                    places.p_async(cx);
                    buffer.lock_async(cx).push(item);
                    items.v();
                }
            });
            for _ in 0..ITEMS / 8 {
                items.p_async(cx);
                let item = buffer.lock_async(cx).pop().expect("there are as many as units");
                places.v();
                sum.fetch_add(item, Ordering::Relaxed);
            }
        });
    });
    assert_eq!(sum.into_inner(), ITEMS * (ITEMS - 1) / 2);
    assert_eq!((places.units(), items.units()), (4, 0));
}

#[test]
fn a_condition_variable_between_threads_wakes_each_that_it_is_to_wake() {
    let (turn, condvar) = (Lock::new(0_usize), Condvar::new());
    let next = AtomicUsize::new(0);
    on_threads(3, 3, &|cx| {
        let me = next.fetch_add(1, Ordering::Relaxed);
        for round in 0..30 {
            let mut turn = turn.lock_async(cx);
            while *turn != round * 9 + me {
                condvar.wait_async(cx, &mut turn);
            }
            *turn += 1;
            condvar.broadcast();
        }
    });
    assert_eq!(turn.into_inner(), 270);
}

#[test]
fn tickets_and_an_event_count_make_a_lock_between_threads() {
    let (tickets, served) = (Sequencer::new(), EventCount::new());
    let inside = AtomicUsize::new(0);
    on_threads(3, 4, &|cx| {
        for _ in 0..100 {
            served.await_async(cx, tickets.ticket());
            assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
            rt::yield_async(cx);
            assert_eq!(inside.fetch_sub(1, Ordering::Relaxed), 1);
            served.advance(1);
        }
    });
    assert_eq!((tickets.read(), served.read()), (1200, 1200));
}

#[test]
fn a_line_across_threads_has_one_turn_at_a_time() {
    let queue = Queue::new();
    let (inside, bailed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    on_threads(3, 4, &|cx| {
        for round in 0..100 {
            let mut turn = queue.enter();
            if round % 5 == 4 {
                bailed.fetch_add(turn.leave(), Ordering::Relaxed);
                continue;
            }
            turn.await_async(cx);
            assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
            rt::yield_async(cx);
            assert_eq!(inside.fetch_sub(1, Ordering::Relaxed), 1);
            bailed.fetch_add(turn.leave(), Ordering::Relaxed);
        }
    });
    assert!(queue.is_empty());
    assert_eq!(bailed.into_inner(), 3 * 4 * 20);
}

#[test]
fn a_semaphore_that_has_all_the_units_there_can_be_keeps_them() {
    let semaphore = Semaphore::new(usize::MAX);
    semaphore.v();
    assert!(semaphore.units() == usize::MAX && semaphore.try_p());
}
