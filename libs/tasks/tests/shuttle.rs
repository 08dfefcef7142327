//! The whole run-time between threads, in interleavings chosen at random: lost wake-ups, deadlocks, orders of locks.
//! `RUSTFLAGS="--cfg ebb_shuttle --cfg ebb_threads" cargo test --release -p ebb-tasks --test shuttle`.
//!
//! Where loom tries everything that short programs can do, shuttle tries some of what longer ones can, one instruction after the other.
//! A wake-up that is lost shows as a deadlock: nobody can run any more.
#![cfg(ebb_shuttle)]

use std::cell::Cell;
use std::collections::VecDeque;

use refs::{Gone, StrongRc, WaitList, WeakRc};
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::sync::{Arc, Mutex};
use shuttle::thread;
use tasks::interleavings::explore;
use tasks::rt::sync::{Condvar, EventCount, Lock, Queue, Semaphore};
use tasks::rt::{self, AweRef, Canceled, Canceler, Waker};

#[test]
fn a_task_that_another_thread_schedules_goes_on() {
    explore(8_000, || {
        let names = Arc::new(Mutex::new(VecDeque::<AweRef>::new()));
        let to_wake = names.clone();
        let waker = thread::spawn(move || {
            let mut woken = 0;
            while woken < 4 {
                let name = to_wake.lock().expect("not poisoned").pop_front();
                match name {
                    Some(name) => {
                        name.schedule().expect("it lives until it is resumed");
                        woken += 1;
                    }
                    None => thread::yield_now(),
                }
            }
        });
        rt::run(|cx| {
            rt::finish_async(cx, |scope, cx| {
                for _ in 0..2 {
                    let names = &names;
                    scope.spawn_async(cx, move |cx| {
                        for _ in 0..2 {
                            rt::suspend_then_async(cx, |name| names.lock().expect("not poisoned").push_back(name));
                        }
                    });
                }
            });
        });
        waker.join().expect("no panic");
    });
}

#[test]
fn requests_of_one_thread_are_served_in_their_order() {
    explore(8_000, || {
        let names = Mutex::new(Vec::<AweRef>::new());
        let order = Mutex::new(Vec::new());
        thread::scope(|threads| {
            threads.spawn(|| {
                while names.lock().expect("not poisoned").len() < 3 {
                    thread::yield_now();
                }
                let names = names.lock().expect("not poisoned").clone();
                for name in names.into_iter().rev() {
                    name.schedule().expect("it waits for this");
                }
            });
            threads.spawn(|| {
                rt::run(|cx| {
                    rt::finish_async(cx, |scope, cx| {
                        for number in 0..3 {
                            let (names, order) = (&names, &order);
                            scope.spawn_async(cx, move |cx| {
                                rt::suspend_then_async(cx, |name| names.lock().expect("not poisoned").push(name));
                                order.lock().expect("not poisoned").push(number);
                            });
                        }
                    });
                });
            });
        });
        assert_eq!(order.into_inner().expect("not poisoned"), [2, 1, 0]);
    });
}

#[test]
fn a_wait_is_ended_by_exactly_one_of_its_wakers_also_when_the_run_time_ends_at_once() {
    explore(8_000, || {
        let wakers = Arc::new(Mutex::new(VecDeque::<Waker>::new()));
        let ended = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (wakers, ended) = (wakers.clone(), ended.clone());
                thread::spawn(move || {
                    let mut tried = 0;
                    while tried < 3 {
                        let waker = wakers.lock().expect("not poisoned").pop_front();
                        match waker {
                            Some(waker) => {
                                ended.fetch_add(usize::from(waker.wake()), Ordering::SeqCst);
                                tried += 1;
                            }
                            None => thread::yield_now(),
                        }
                    }
                })
            })
            .collect();
        // Three run-times one after the other, in the same memory; who wakes the task of one may be late for its thread's sleep.
        for _ in 0..3 {
            rt::run(|cx| {
                let waker = rt::prepare(cx);
                wakers.lock().expect("not poisoned").extend([waker, waker]);
                assert!(rt::park_async(cx));
            });
        }
        for thread in threads {
            thread.join().expect("no panic");
        }
        assert_eq!(ended.load(Ordering::SeqCst), 3);
    });
}

#[test]
fn units_that_another_thread_gives_are_neither_lost_nor_doubled_when_waits_are_canceled() {
    explore(8_000, || {
        const GIVEN: usize = 2;
        let semaphore = Semaphore::new(0);
        let taken = AtomicUsize::new(0);
        thread::scope(|threads| {
            threads.spawn(|| (0..GIVEN).for_each(|_| semaphore.v()));
            threads.spawn(|| {
                rt::run(|cx| {
                    rt::finish_async(cx, |scope, cx| {
                        for _ in 0..3 {
                            scope.spawn_async(cx, |cx| {
                                if semaphore.p_x_async(cx) != Err(Canceled) {
                                    taken.fetch_add(1, Ordering::SeqCst);
                                }
                            });
                        }
                        rt::yield_async(cx);
                        scope.cancel_async(cx);
                    });
                });
            });
        });
        assert_eq!(taken.load(Ordering::SeqCst) + semaphore.units(), GIVEN);
    });
}

#[test]
fn a_bounded_buffer_between_two_run_times_passes_everything_on() {
    explore(4_000, || {
        const ITEMS: usize = 4;
        let buffer = Lock::new(Vec::<usize>::new());
        let (changed, sum) = (Condvar::new(), AtomicUsize::new(0));
        let (buffer, changed, sum) = (&buffer, &changed, &sum);
        thread::scope(|threads| {
            threads.spawn(move || {
                rt::run(|cx| {
                    rt::finish_async(cx, |scope, cx| {
                        for producer in 0..2 {
                            scope.spawn_async(cx, move |cx| {
                                for item in 0..ITEMS / 2 {
                                    let mut inside = buffer.lock_async(cx);
                                    while !inside.is_empty() {
                                        changed.wait_async(cx, &mut inside);
                                    }
                                    inside.push(producer * 10 + item);
                                    changed.broadcast();
                                }
                            });
                        }
                    });
                });
            });
            threads.spawn(move || {
                rt::run(|cx| {
                    for _ in 0..ITEMS {
                        let mut inside = buffer.lock_async(cx);
                        let item = loop {
                            match inside.pop() {
                                Some(item) => break item,
                                None => changed.wait_async(cx, &mut inside),
                            }
                        };
                        sum.fetch_add(item, Ordering::SeqCst);
                        changed.broadcast();
                    }
                });
            });
        });
        assert_eq!(sum.load(Ordering::SeqCst), 10 + 1 + 11);
    });
}

/// An object whose end is counted.
struct Counted<'a>(&'a AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn who_waits_on_one_thread_hears_of_an_end_on_another_and_the_memory_returns_once() {
    explore(4_000, || {
        // The object may die after this program's variables: it needs something that does not end.
        let freed: &'static AtomicUsize = Box::leak(Box::new(AtomicUsize::new(0)));
        let object = StrongRc::new(Counted(freed));
        let name: WeakRc<_> = object.downgrade();
        let (never, heard) = (WaitList::new(), AtomicUsize::new(0));
        thread::scope(|threads| {
            for _ in 0..2 {
                let (never, heard) = (&never, &heard);
                threads.spawn(move || {
                    rt::run(|cx| {
                        let waited: Result<(), Gone> = rt::wait_async(
                            cx,
                            |cx, waker| {
                                never.register(waker, cx);
                                // Borrowed, and given back before the suspension.
                                let _ = name.upgrade(cx).map(|object| assert_eq!(object.0.load(Ordering::SeqCst), 0));
                                None
                            },
                            &[&name],
                        );
                        assert_eq!(waited, Err(Gone));
                        heard.fetch_add(1, Ordering::SeqCst);
                    });
                });
            }
            threads.spawn(move || {
                rt::run(|cx| {
                    rt::yield_async(cx);
                    object.destroy(cx);
                });
            });
        });
        assert_eq!((heard.load(Ordering::SeqCst), freed.load(Ordering::SeqCst)), (2, 1));
    });
}

#[test]
fn a_block_waits_for_tasks_that_only_other_threads_let_go_on() {
    explore(4_000, || {
        let (gate, back) = (Semaphore::new(0), Semaphore::new(0));
        let (gate, back) = (&gate, &back);
        thread::scope(|threads| {
            threads.spawn(move || {
                rt::run(|cx| {
                    rt::finish_async(cx, |scope, cx| {
                        for _ in 0..2 {
                            scope.spawn_async(cx, |cx| {
                                back.p_async(cx);
                                gate.v();
                            });
                        }
                    });
                });
            });
            threads.spawn(move || {
                rt::run(|cx| {
                    let ended = Cell::new(0);
                    rt::finish_async(cx, |scope, cx| {
                        for _ in 0..2 {
                            let ended = &ended;
                            scope.spawn_async(cx, move |cx| {
                                rt::finish_async(cx, |inner, cx| {
                                    inner.spawn_async(cx, |cx| {
                                        back.v();
                                        gate.p_async(cx);
                                    });
                                });
                                ended.set(ended.get() + 1);
                            });
                        }
                    });
                    assert_eq!(ended.get(), 2);
                })
            });
        });
    });
}

#[test]
fn a_task_is_resumed_once_when_a_late_request_and_its_own_thread_wake_it() {
    explore(8_000, || {
        let (first, second) = (Arc::new(WaitList::new()), WaitList::new());
        let from_outside = first.clone();
        let other = thread::spawn(move || {
            while !from_outside.wake_one() {
                thread::yield_now();
            }
        });
        let runs = thread::spawn(move || {
            let (round, runs) = (Cell::new(0), Cell::new(0));
            rt::run(|cx| {
                rt::finish_async(cx, |scope, cx| {
                    scope.spawn_async(cx, |cx| {
                        // From here on its block's owner is in the queue whenever this task runs.
                        rt::yield_async(cx);
                        for list in [&*first, &second] {
                            let waker = rt::prepare(cx);
                            list.register(waker, cx);
                            round.set(round.get() + 1);
                            assert!(rt::park_async(cx));
                        }
                        runs.set(runs.get() + 1);
                    });
                    while round.get() < 2 {
                        rt::yield_async(cx);
                        thread::yield_now();
                    }
                    // Maybe what the other thread asked for came so late that it has put the task, which waits again, into the queue.
                    second.wake_all();
                    rt::yield_async(cx);
                });
            });
            runs.get()
        });
        other.join().expect("no panic");
        assert_eq!(runs.join().expect("no panic"), 1);
    });
}

#[test]
fn blocks_end_whenever_another_thread_asks_them_to_or_by_themselves() {
    explore(4_000, || {
        let (canceler, one) = (Canceler::new(), Semaphore::new(0));
        let (canceler, one) = (&canceler, &one);
        thread::scope(|threads| {
            threads.spawn(move || canceler.cancel());
            threads.spawn(move || one.v());
            threads.spawn(move || {
                rt::run(|cx| {
                    let taken = Cell::new(0);
                    canceler.finish_async(cx, |scope, cx| {
                        for _ in 0..2 {
                            scope.spawn_async(cx, |cx| taken.set(taken.get() + usize::from(one.p_x_async(cx).is_ok())));
                        }
                    });
                    assert_eq!(rt::count(cx), 1);
                    assert!(taken.get() <= 1);
                });
            });
        });
    });
}

#[test]
fn a_unit_given_to_a_task_that_is_aborted_meanwhile_stays() {
    explore(8_000, || {
        let semaphore = Semaphore::new(0);
        let semaphore = &semaphore;
        let taken = &AtomicUsize::new(0);
        thread::scope(|threads| {
            threads.spawn(move || semaphore.v());
            threads.spawn(move || {
                rt::run(|cx| {
                    let waiting = Cell::new(None);
                    rt::finish_async(cx, |scope, cx| {
                        for is_aborted in [true, false] {
                            let waiting = &waiting;
                            scope.spawn_async(cx, move |cx| {
                                if is_aborted {
                                    waiting.set(Some(rt::current(cx)));
                                }
                                semaphore.p_async(cx);
                                taken.fetch_add(1, Ordering::SeqCst);
                                if is_aborted {
                                    // It was not aborted in time; the other one needs a unit too.
                                    semaphore.v();
                                }
                            });
                        }
                        rt::yield_async(cx);
                        let waiting = waiting.get().expect("entered when it began");
                        if let Err(rt::NotSuspended) = rt::abort_async(cx, waiting) {
                            assert!(!waiting.is_alive());
                        }
                    });
                });
            });
        });
        assert!((1..=2).contains(&taken.load(Ordering::SeqCst)));
        assert_eq!(semaphore.units(), 0);
    });
}

#[test]
fn turns_in_a_line_across_threads_come_in_its_order_whoever_is_canceled() {
    explore(4_000, || {
        let (line, served) = (Queue::new(), Mutex::new(Vec::new()));
        let (line, served) = (&line, &served);
        thread::scope(|threads| {
            for thread in 0..2 {
                threads.spawn(move || {
                    rt::run(|cx| {
                        rt::finish_async(cx, |scope, cx| {
                            for place in 0..2 {
                                scope.spawn_async(cx, move |cx| {
                                    let mut turn = line.enter();
                                    if turn.await_x_async(cx).is_ok() {
                                        served.lock().expect("not poisoned").push((thread, place));
                                        rt::yield_async(cx);
                                    }
                                    turn.leave();
                                });
                            }
                            if thread == 0 {
                                scope.cancel_async(cx);
                            }
                        });
                    });
                });
            }
        });
        let served = served.lock().expect("not poisoned");
        let of_the_other: Vec<_> = served.iter().filter(|(thread, _)| *thread == 1).collect();
        assert_eq!(of_the_other, [&(1, 0), &(1, 1)]);
    });
}

#[test]
fn who_awaits_an_event_on_another_thread_is_told_of_it() {
    explore(4_000, || {
        let events = EventCount::new();
        let events = &events;
        thread::scope(|threads| {
            for more in [1, 2] {
                threads.spawn(move || events.advance(more));
            }
            threads.spawn(move || {
                rt::run(|cx| {
                    rt::finish_async(cx, |scope, cx| {
                        for value in [3, 1, 2] {
                            scope.spawn_async(cx, move |cx| assert!(events.await_async(cx, value) >= value));
                        }
                    });
                });
            });
        });
        assert_eq!(events.read(), 3);
    });
}

#[test]
fn a_task_is_resumed_or_ended_once_when_its_name_is_scheduled_while_it_is_aborted() {
    explore(8_000, || {
        let name = Arc::new(Mutex::new(None::<AweRef>));
        let seen = name.clone();
        let other = thread::spawn(move || {
            let name = loop {
                if let Some(name) = *seen.lock().expect("not poisoned") {
                    break name;
                }
                thread::yield_now();
            };
            // Refused if it has ended already; then whoever has its memory next is left alone.
            let _ = name.schedule();
        });
        let tasks = thread::spawn(move || {
            rt::run(|cx| {
                let (went_on, next) = (Cell::new(0), Cell::new(None));
                rt::finish_async(cx, |scope, cx| {
                    scope.spawn_async(cx, |cx| {
                        rt::suspend_then_async(cx, |me| *name.lock().expect("not poisoned") = Some(me));
                        went_on.set(went_on.get() + 1);
                    });
                    rt::yield_async(cx);
                    let task = name.lock().expect("not poisoned").expect("it is suspended");
                    let aborted = rt::abort_async(cx, task);
                    assert_eq!(went_on.get(), usize::from(aborted.is_err()));
                    // The same memory, with another name.
                    scope.spawn_async(cx, |cx| {
                        rt::suspend_then_async(cx, |me| next.set(Some(me)));
                        went_on.set(went_on.get() + 10);
                    });
                    rt::yield_async(cx);
                    rt::yield_async(cx);
                    assert!(went_on.get() < 10, "nobody has named it");
                    next.get().expect("it is suspended").schedule().expect("it is suspended");
                });
            });
        });
        other.join().expect("no panic");
        tasks.join().expect("no panic");
    });
}
