//! Cancellation: who hears of a request, what is done on it, and what it races against.
#![cfg(feature = "std")]

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use refs::WaitList;
use tasks::rt::sync::{Condvar, EventCount, Lock, Queue, Semaphore};
use tasks::rt::{self, AweRef, Canceled, Cx};

mod log;
use log::Log;

/// Something that waits until it is canceled or may go on, and says which.
type Wait<'a> = &'a dyn Fn(&mut Cx) -> Result<(), Canceled>;

/// What a wait in a block gives if the block is canceled when all tasks wait, and if `release` is called instead; twice each.
fn canceled_and_released(wait: Wait<'_>, release: &dyn Fn()) {
    for fires in [false, true, false, true] {
        rt::run(|cx| {
            let results = RefCell::new(Vec::new());
            rt::finish_async(cx, |scope, cx| {
                for _ in 0..2 {
                    scope.spawn_async(cx, |cx| {
                        let result = wait(cx);
                        results.borrow_mut().push(result);
                    });
                }
                rt::yield_async(cx);
                assert!(results.borrow().is_empty(), "both wait");
                if fires {
                    scope.cancel_async(cx);
                } else {
                    release();
                    release();
                }
                assert_eq!(scope.is_cancel_requested(), fires);
            });
            let expected = if fires { Err(Canceled) } else { Ok(()) };
            assert_eq!(results.into_inner(), [expected, expected]);
        });
    }
}

#[test]
fn a_wait_at_a_semaphore_ends_when_its_block_is_canceled() {
    let semaphore = Semaphore::new(0);
    canceled_and_released(&|cx| semaphore.p_x_async(cx), &|| semaphore.v());
    assert_eq!(semaphore.units(), 0);
    semaphore.v();
    assert_eq!(semaphore.units(), 1, "nobody waits any more");
}

#[test]
fn a_wait_at_a_condition_variable_ends_when_its_block_is_canceled() {
    let (lock, condvar) = (Lock::new(0), Condvar::new());
    let wait = |cx: &mut Cx| {
        let mut guard = lock.lock_async(cx);
        let result = condvar.wait_x_async(cx, &mut guard);
        // It has the lock in both cases.
        assert!(lock.try_lock().is_none());
        *guard += 1;
        result
    };
    canceled_and_released(&wait, &|| assert!(condvar.signal()));
    assert!(!condvar.signal());
    assert_eq!(lock.into_inner(), 8);
}

#[test]
fn every_other_wait_ends_when_its_block_is_canceled() {
    let events = EventCount::new();
    let wait = |cx: &mut Cx| events.await_x_async(cx, events.read() + 1).map(|_| ());
    canceled_and_released(&wait, &|| events.advance(1));

    let list = WaitList::default();
    let wait = |cx: &mut Cx| {
        list.register(rt::prepare(cx), cx);
        rt::park_x_async(cx)
    };
    canceled_and_released(&wait, &|| assert!(list.wake_one()));
    assert!(list.is_empty());

    let names = RefCell::new(Vec::<AweRef>::new());
    let wait = |cx: &mut Cx| rt::suspend_then_x_async(cx, |me| names.borrow_mut().insert(0, me));
    canceled_and_released(&wait, &|| {
        // Those that were canceled in the round before have ended.
        names.borrow_mut().retain(|name| name.is_alive());
        names.borrow_mut().pop().expect("it waits").schedule().expect("it is suspended");
    });

    let lock = Lock::new(());
    rt::run(|cx| {
        let held = lock.lock_async(cx);
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, |cx| assert!(lock.lock_x_async(cx).is_err()));
            scope.cancel_async(cx);
        });
        drop(held);
        assert!(lock.try_lock().is_some());
    });
}

#[test]
fn a_canceled_operation_does_nothing_even_if_it_could_proceed() {
    let (semaphore, lock, condvar, events, queue) =
        (Semaphore::new(1), Lock::new(()), Condvar::new(), EventCount::new(), Queue::new());
    rt::run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            assert_eq!(rt::yield_x_async(cx), Ok(()));
            assert_eq!(rt::check_canceled(cx), Ok(()));
            scope.cancel_async(cx);
            // For ever.
            for _ in 0..2 {
                assert!(rt::is_cancel_requested(cx));
                assert_eq!(rt::check_canceled(cx), Err(Canceled));
                assert_eq!(semaphore.p_x_async(cx), Err(Canceled));
                assert_eq!(semaphore.units(), 1);
                assert!(lock.lock_x_async(cx).is_err());
                let mut guard = lock.try_lock().expect("nobody has it");
                assert_eq!(condvar.wait_x_async(cx, &mut guard), Err(Canceled));
                assert_eq!(events.await_x_async(cx, 0), Err(Canceled));
                assert_eq!(queue.enter().await_x_async(cx), Err(Canceled));
                assert_eq!(rt::yield_x_async(cx), Err(Canceled));
                assert_eq!(rt::suspend_then_x_async(cx, |_| panic!("not suspended")), Err(Canceled));
                rt::prepare(cx);
                assert_eq!(rt::park_x_async(cx), Err(Canceled));
            }
            // A wake-up that came before is not lost.
            rt::prepare(cx).wake();
            assert_eq!(rt::park_x_async(cx), Ok(()));
            // Nothing is forced.
            semaphore.p_async(cx);
            rt::yield_async(cx);
        });
        assert!(!rt::is_cancel_requested(cx));
    });
}

#[test]
fn a_request_holds_for_inner_blocks_and_stops_at_shields() {
    let log = Log::default();
    let semaphore = Semaphore::new(0);
    rt::run(|cx| {
        rt::finish_async(cx, |outer, cx| {
            outer.spawn_async(cx, |cx| {
                rt::finish_async(cx, |_, cx| {
                    rt::finish_async(cx, |_, cx| log.say(format!("inner:{:?}", semaphore.p_x_async(cx))));
                    // A block that is made later.
                    rt::finish_async(cx, |_, cx| log.say(format!("new:{:?}", rt::yield_x_async(cx))));
                    rt::finish_shielded_async(cx, |_, cx| log.say(format!("shield:{:?}", rt::yield_x_async(cx))));
                });
            });
            outer.spawn_async(cx, |cx| {
                rt::finish_shielded_async(cx, |shield, cx| {
                    rt::finish_async(cx, |_, cx| log.say(format!("shielded:{:?}", semaphore.p_x_async(cx))));
                    shield.cancel_async(cx);
                    rt::finish_async(cx, |_, cx| log.say(format!("from inside:{:?}", semaphore.p_x_async(cx))));
                });
            });
            outer.cancel_async(cx);
            // A neighbour is not asked, nor is a block that begins after this one.
            assert!(outer.is_cancel_requested());
            rt::yield_async(cx);
            rt::yield_async(cx);
            semaphore.v();
        });
        rt::finish_async(cx, |_, cx| assert!(!rt::is_cancel_requested(cx)));
    });
    assert_eq!(
        log.text(),
        "inner:Err(Canceled) new:Err(Canceled) shield:Ok(()) shielded:Ok(()) from inside:Err(Canceled)"
    );
}

#[test]
fn cancel_items_run_inner_before_outer_and_the_latest_first() {
    let log = Log::default();
    rt::run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            let (log, scope) = (&log, scope);
            let hold = |name: &'static str, cx: &mut Cx, inside: &mut dyn FnMut(&mut Cx)| {
                rt::on_cancel_async(cx, |_| log.say(name), |_, cx| inside(cx));
            };
            hold("outer1", cx, &mut |cx| {
                hold("outer2", cx, &mut |cx| {
                    rt::finish_async(cx, |_, cx| {
                        hold("inner1", cx, &mut |cx| {
                            hold("inner2", cx, &mut |cx| {
                                rt::finish_shielded_async(cx, |_, cx| {
                                    hold("shielded", cx, &mut |cx| {
                                        scope.cancel_async(cx);
                                        log.say("|");
                                        // All have run.
                                        scope.cancel_async(cx);
                                    });
                                });
                            });
                        });
                    });
                });
            });
            log.say("end");
        });
    });
    assert_eq!(log.text(), "inner2 inner1 outer2 outer1 | end");
}

#[test]
fn a_cancel_item_is_removed_from_its_own_block_wherever_its_task_is() {
    // AC's looked in the task's current block.
    let log = Log::default();
    rt::run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            rt::on_cancel_async(
                cx,
                |_| log.say("removed"),
                |removed, cx| {
                    rt::on_cancel_async(
                        cx,
                        |_| log.say("kept"),
                        |kept, cx| {
                            rt::finish_async(cx, |_, cx| {
                                rt::on_cancel_async(
                                    cx,
                                    |_| log.say("inner"),
                                    |_, cx| {
                                        assert!(removed.remove());
                                        assert!(!removed.remove(), "once");
                                        scope.cancel_async(cx);
                                        assert!(kept.has_begun() && !removed.has_begun());
                                        assert!(!kept.remove(), "it has run");
                                    },
                                );
                            });
                        },
                    );
                },
            );
        });
    });
    assert_eq!(log.text(), "inner kept");
}

#[test]
fn an_item_does_not_run_after_its_body_or_before_a_request() {
    let log = Log::default();
    rt::run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            rt::on_cancel_async(cx, |_| log.say("too late"), |_, cx| rt::yield_async(cx));
            scope.cancel_async(cx);
            rt::on_cancel_async(
                cx,
                |_| log.say("at once"),
                |item, cx| {
                    assert!(item.has_begun() && !item.remove());
                    scope.cancel_async(cx);
                    log.say("body");
                },
            );
        });
    });
    assert_eq!(log.text(), "at once body");
}

#[test]
fn a_task_that_is_woken_while_its_cancel_action_yields_waits_for_the_action() {
    // AC asserted.
    let log = Log::default();
    let semaphore = Semaphore::new(0);
    rt::run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, |cx| {
                let local = String::from("the task's own");
                rt::on_cancel_async(
                    cx,
                    |cx| {
                        log.say("action");
                        semaphore.v();
                        for _ in 0..3 {
                            rt::yield_async(cx);
                        }
                        log.say(&*local);
                    },
                    |item, cx| {
                        semaphore.p_async(cx);
                        assert!(item.has_begun());
                        log.say("woken");
                    },
                );
                log.say("ended");
            });
            scope.cancel_async(cx);
            log.say("asked");
        });
    });
    assert_eq!(log.text(), "action woken the task's own asked ended");
}

#[test]
fn a_task_that_is_aborted_does_not_leave_its_running_cancel_action_behind() {
    let log = Log::default();
    let target: Cell<Option<AweRef>> = Cell::new(None);
    rt::run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, |cx| {
                target.set(Some(rt::current(cx)));
                let local = String::from("still there");
                rt::on_cancel_async(
                    cx,
                    |cx| {
                        for _ in 0..6 {
                            rt::yield_async(cx);
                        }
                        log.say(&*local);
                    },
                    |_, cx| rt::suspend_async(cx),
                );
                unreachable!("it was aborted");
            });
            scope.spawn_async(cx, |cx| {
                rt::yield_async(cx);
                // In its body, and then in the wait for the action.
                rt::abort_async(cx, target.get().expect("it runs")).expect("it is suspended");
                rt::yield_async(cx);
                rt::abort_async(cx, target.get().expect("it runs")).expect("it is suspended");
                log.say("aborted");
            });
            scope.cancel_async(cx);
        });
    });
    assert!(!target.get().expect("it ran").is_alive());
    assert_eq!(log.text(), "aborted still there");
}

#[test]
fn blocks_and_items_come_and_go_while_an_action_is_suspended() {
    let log = Log::default();
    let gate = Semaphore::new(0);
    rt::run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            for number in 0..4 {
                let (log, gate) = (&log, &gate);
                scope.spawn_async(cx, move |cx| {
                    rt::finish_async(cx, |_, cx| {
                        rt::on_cancel_async(
                            cx,
                            |cx| {
                                log.say(number.to_string());
                                gate.v();
                                gate.v();
                                rt::yield_async(cx);
                                rt::yield_async(cx);
                            },
                            |_, cx| gate.p_async(cx),
                        );
                    });
                });
            }
            scope.cancel_async(cx);
        });
    });
    // The action of 3 lets 0 and 1 go on, whose actions are not begun any more; that of 2 lets 2 and 3 go.
    assert_eq!(log.text(), "3 2");
}

#[test]
fn a_panic_in_an_action_is_the_askers_and_stops_no_other_item() {
    let log = Log::default();
    let semaphore = Semaphore::new(0);
    let result = catch_unwind(AssertUnwindSafe(|| {
        rt::run(|cx| {
            rt::finish_async(cx, |scope, cx| {
                scope.spawn_async(cx, |cx| log.say(format!("{:?}", semaphore.p_x_async(cx))));
                scope.spawn_async(cx, |cx| {
                    rt::on_cancel_async(cx, |_| panic!("in the action"), |_, cx| semaphore.p_x_async(cx))
                        .expect_err("canceled");
                    log.say("owner");
                });
                scope.cancel_async(cx);
            });
        });
    }));
    assert_eq!(*result.expect_err("the action's panic").downcast::<&str>().expect("a text"), "in the action");
    assert_eq!(log.text(), "owner Err(Canceled)");
}

#[test]
fn what_came_first_decides_between_a_wake_up_and_a_request() {
    for wake_first in [true, false] {
        let semaphore = Semaphore::new(0);
        let result = Cell::new(None);
        rt::run(|cx| {
            rt::finish_async(cx, |scope, cx| {
                scope.spawn_async(cx, |cx| result.set(Some(semaphore.p_x_async(cx))));
                if wake_first {
                    semaphore.v();
                }
                scope.cancel_async(cx);
                if !wake_first {
                    semaphore.v();
                }
            });
        });
        assert_eq!(result.get(), Some(if wake_first { Ok(()) } else { Err(Canceled) }));
        assert_eq!(semaphore.units(), usize::from(!wake_first), "the unit is with one of the two");
    }
}

#[test]
fn units_that_another_thread_gives_while_64_waits_are_canceled_are_neither_lost_nor_doubled() {
    const ROUNDS: usize = 300;
    const WAITS: usize = 64;
    let semaphore = Semaphore::new(0);
    let (round, taken) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for now in 0..ROUNDS {
                while round.load(Ordering::Acquire) <= now {
                    std::thread::yield_now();
                }
                for _ in 0..WAITS / 2 {
                    semaphore.v();
                }
            }
        });
        rt::run(|cx| {
            for now in 0..ROUNDS {
                let canceled = Cell::new(0);
                rt::finish_async(cx, |scope, cx| {
                    for _ in 0..WAITS {
                        scope.spawn_async(cx, |cx| match semaphore.p_x_async(cx) {
                            Ok(()) => _ = taken.fetch_add(1, Ordering::Relaxed),
                            Err(Canceled) => canceled.set(canceled.get() + 1),
                        });
                    }
                    round.store(now + 1, Ordering::Release);
                    for _ in 0..now % 7 {
                        rt::yield_async(cx);
                    }
                    scope.cancel_async(cx);
                });
                assert!(canceled.get() <= WAITS);
            }
        });
    });
    let left = semaphore.units();
    assert_eq!(taken.into_inner() + left, ROUNDS * WAITS / 2);
}

#[test]
fn cancels_of_64_places_in_a_line_keep_the_sequence_of_the_others() {
    for seed in 0..20_u64 {
        let queue = Queue::new();
        let served = RefCell::new(Vec::new());
        let bailed = Cell::new(0);
        let is_canceled = |number: u64| (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % 64 < 3 * seed;
        rt::run(|cx| {
            let first = queue.enter();
            rt::finish_async(cx, |scope, cx| {
                for number in 0..64 {
                    let (queue, served, bailed) = (&queue, &served, &bailed);
                    scope.spawn_async(cx, move |cx| {
                        let result = rt::finish_async(cx, |own, cx| {
                            if is_canceled(number) {
                                own.spawn_async(cx, |cx| {
                                    rt::yield_async(cx);
                                    own.cancel_async(cx);
                                });
                            }
                            let mut turn = queue.enter();
                            let result = turn.await_x_async(cx);
                            if result.is_ok() {
                                served.borrow_mut().push(number);
                                rt::yield_async(cx);
                            }
                            bailed.set(bailed.get() + turn.leave());
                            result
                        });
                        assert_eq!(result.is_err(), is_canceled(number));
                    });
                }
                rt::yield_async(cx);
                rt::yield_async(cx);
                rt::yield_async(cx);
                bailed.set(bailed.get() + first.leave());
            });
        });
        let expected: Vec<u64> = (0..64).filter(|&number| !is_canceled(number)).collect();
        assert_eq!(*served.borrow(), expected);
        // The place in front never had its turn either.
        assert_eq!(bailed.get(), 64 - expected.len() + 1);
    }
}

#[test]
fn thousands_of_blocks_with_waits_are_canceled_at_once() {
    const BLOCKS: usize = 5000;
    let semaphore = Semaphore::new(0);
    let canceled = Cell::new(0);
    rt::Config { stack_size_bytes: 16 * 1024, ..rt::Config::default() }.run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            for _ in 0..BLOCKS {
                scope.spawn_async(cx, |cx| {
                    rt::finish_async(cx, |inner, cx| {
                        inner.spawn_async(cx, |cx| {
                            semaphore.p_x_async(cx).expect_err("nobody gives a unit");
                            canceled.set(canceled.get() + 1);
                        });
                    });
                });
            }
            scope.cancel_async(cx);
        });
    });
    assert_eq!(canceled.get(), BLOCKS);
}

#[test]
fn waits_between_threads_that_are_canceled_or_aborted_leave_everything_in_order() {
    let (lock, condvar, units) = (Lock::new(0_usize), Condvar::new(), Semaphore::new(2));
    let worked = AtomicUsize::new(0);
    let work_async = |cx: &mut Cx| -> Result<(), Canceled> {
        for round in 0.. {
            units.p_x_async(cx)?;
            let mut inside = match lock.lock_x_async(cx) {
                Ok(inside) => inside,
                Err(canceled) => {
                    units.v();
                    return Err(canceled);
                }
            };
            *inside += 1;
            worked.fetch_add(1, Ordering::Relaxed);
            let waited = if round % 8 == 7 { condvar.wait_x_async(cx, &mut inside) } else { rt::yield_x_async(cx) };
            condvar.signal();
            drop(inside);
            units.v();
            waited?;
        }
        Ok(())
    };
    /// Gives the unit back when its task is aborted: nobody else would.
    struct Held<'a>(&'a Semaphore);
    impl Drop for Held<'_> {
        fn drop(&mut self) {
            self.0.v();
        }
    }
    let be_aborted_async = |cx: &mut Cx| {
        loop {
            units.p_async(cx);
            let _unit = Held(&units);
            let mut inside = lock.lock_async(cx);
            *inside += 1;
            worked.fetch_add(1, Ordering::Relaxed);
            rt::yield_async(cx);
        }
    };
    std::thread::scope(|threads| {
        for _ in 0..3 {
            threads.spawn(|| {
                rt::run(|cx| {
                    for round in 0..500 {
                        let victim: Cell<Option<AweRef>> = Cell::new(None);
                        rt::finish_async(cx, |scope, cx| {
                            for _ in 0..4 {
                                scope.spawn_async(cx, |cx| assert_eq!(work_async(cx), Err(Canceled)));
                            }
                            scope.spawn_async(cx, |cx| {
                                victim.set(Some(rt::current(cx)));
                                be_aborted_async(cx);
                            });
                            for _ in 0..round % 5 + 1 {
                                rt::yield_async(cx);
                            }
                            rt::abort_async(cx, victim.get().expect("it has begun")).expect("it is suspended");
                            scope.cancel_async(cx);
                        });
                    }
                });
            });
        }
    });
    assert_eq!(units.units(), 2);
    assert_eq!(lock.into_inner(), worked.into_inner());
}
