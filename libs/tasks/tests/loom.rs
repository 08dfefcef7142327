//! The synchronisation primitives in every interleaving of a few threads that the memory model allows:
//! `RUSTFLAGS="--cfg ebb_loom" cargo test --release -p ebb-tasks --test loom`.
//!
//! The primitives' own files, over a run-time in which each task is a thread. A task that is to be canceled is so as soon as it waits: as
//! in the real one, its own thread ends its wait, if no other did before.
#![cfg(ebb_loom)]

extern crate alloc;

#[path = "../src/rt/sync/mod.rs"]
#[allow(dead_code, unused_imports, reason = "not all of it is tried here")]
mod sync;

#[path = "../src/rt/remote.rs"]
mod remote;

/// What the crate has under this name, but loom's.
mod atomic {
    pub use loom::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

    pub fn between_sequentially_consistent() {
        loom::sync::atomic::fence(Ordering::SeqCst);
    }
}

mod rt {
    use core::ptr::with_exposed_provenance;

    use loom::sync::Notify;
    use refs::{Cx, WakeSlot, Waker};

    /// The operation did not take place.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Canceled;

    impl core::fmt::Display for Canceled {
        fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
            f.write_str("canceled")
        }
    }

    /// A thread as a task.
    struct Task {
        slot: WakeSlot,
        ready: Notify,
        is_canceled: bool,
    }

    /// Runs `f` as a task of the calling thread; its first wait with an `x` is canceled, if so said.
    pub fn run<R>(is_canceled: bool, f: impl FnOnce(&mut Cx) -> R) -> R {
        let memory = Box::leak(Box::<Task>::new_uninit());
        let address = memory.as_mut_ptr().expose_provenance();
        let slot = WakeSlot::with_token(make_ready, address);
        let task: &'static Task = memory.write(Task { slot, ready: Notify::new(), is_canceled });
        // SAFETY: the only context of this thread, whose stack is never switched; nothing here is reclaimed.
        f(&mut unsafe { Cx::new(core::ptr::from_ref(task).cast()) })
    }

    fn task(cx: &Cx) -> &'static Task {
        // SAFETY: made by `run`, never freed.
        unsafe { &*cx.worker().cast() }
    }

    fn make_ready(slot: &'static WakeSlot) {
        // SAFETY: the token is the exposed address of a task, which is never freed.
        unsafe { &*with_exposed_provenance::<Task>(slot.token()) }.ready.notify();
    }

    pub fn prepare(cx: &Cx) -> Waker {
        task(cx).slot.prepare()
    }

    pub fn finish_wait(cx: &Cx) -> bool {
        task(cx).slot.finish()
    }

    pub fn check_canceled(_cx: &Cx) -> Result<(), Canceled> {
        Ok(())
    }

    pub mod finish {
        pub fn value_or_resume<R>(result: Result<R, core::convert::Infallible>) -> R {
            match result {
                Ok(value) => value,
                Err(never) => match never {},
            }
        }
    }

    pub mod wait {
        pub fn park_caught_async(cx: &mut refs::Cx, _what: &str) -> Result<bool, core::convert::Infallible> {
            let task = super::task(cx);
            if task.slot.commit() {
                while task.slot.is_parked() {
                    task.ready.wait();
                }
            }
            Ok(task.slot.finish())
        }
    }

    pub mod cancel {
        pub fn wait_x_async(
            cx: &mut refs::Cx,
            _what: &str,
            _give_back: impl FnOnce(&mut refs::Cx),
        ) -> Result<(), super::Canceled> {
            let task = super::task(cx);
            // Parked or not, as the thread that cancels it may find it.
            let canceled = task.slot.commit() && task.is_canceled && task.slot.withdraw();
            while task.slot.is_parked() {
                task.ready.wait();
            }
            task.slot.finish();
            if canceled { Err(super::Canceled) } else { Ok(()) }
        }
    }
}

use atomic::{AtomicPtr, AtomicU64, Ordering};
use loom::cell::UnsafeCell;
use loom::sync::{Arc, Condvar as Woken, Mutex};
use loom::thread;
use remote::{RemoteList, Requested};
use sync::{Condvar, EventCount, Lock, Queue, Semaphore};

/// Explores `program` with at most that many preemptions, of which few suffice to show nearly all races.
fn explore(preemptions: usize, program: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(program);
}

#[test]
fn units_given_by_one_thread_reach_tasks_on_two_others() {
    explore(3, || {
        let semaphore = Arc::new(Semaphore::new(0));
        let tasks: Vec<_> = (0..2)
            .map(|_| {
                let semaphore = semaphore.clone();
                thread::spawn(move || rt::run(false, |cx| semaphore.p_async(cx)))
            })
            .collect();
        semaphore.v();
        semaphore.v();
        for task in tasks {
            task.join().expect("no panic");
        }
        assert_eq!(semaphore.units(), 0);
    });
}

#[test]
fn a_unit_is_taken_or_kept_when_its_taker_is_canceled() {
    explore(4, || {
        let semaphore = Arc::new(Semaphore::new(0));
        let task = {
            let semaphore = semaphore.clone();
            thread::spawn(move || rt::run(true, |cx| semaphore.p_x_async(cx)))
        };
        semaphore.v();
        let took = task.join().expect("no panic").is_ok();
        assert_eq!(semaphore.units(), usize::from(!took));
    });
}

#[test]
fn a_unit_that_a_canceled_task_did_not_take_reaches_the_next() {
    explore(2, || {
        let semaphore = Arc::new(Semaphore::new(0));
        let tasks: Vec<_> = [true, false]
            .map(|is_canceled| {
                let semaphore = semaphore.clone();
                thread::spawn(move || {
                    rt::run(is_canceled, |cx| {
                        if semaphore.p_x_async(cx).is_ok() {
                            // Passed on, so that the other one ends in any case.
                            semaphore.v();
                        }
                    });
                })
            })
            .into();
        semaphore.v();
        for task in tasks {
            task.join().expect("no panic");
        }
        assert_eq!(semaphore.units(), 1);
    });
}

#[test]
fn a_lock_admits_one_at_a_time_and_shows_what_the_one_before_wrote() {
    explore(3, || {
        let lock = Arc::new(Lock::new(UnsafeCell::new(0)));
        let add = |lock: &Lock<UnsafeCell<u32>>| {
            rt::run(false, |cx| {
                let value = lock.lock_async(cx);
                // SAFETY: loom checks that nobody else has it.
                value.with_mut(|value| unsafe { *value += 1 });
            });
        };
        let task = {
            let lock = lock.clone();
            thread::spawn(move || add(&lock))
        };
        add(&lock);
        task.join().expect("no panic");
        let value = lock.try_lock().expect("nobody has it");
        // SAFETY: as above.
        assert_eq!(value.with(|value| unsafe { *value }), 2);
    });
}

#[test]
fn a_signal_after_the_change_is_not_missed() {
    explore(3, || {
        let shared = Arc::new((Lock::new(false), Condvar::new()));
        let task = {
            let shared = shared.clone();
            thread::spawn(move || {
                rt::run(false, |cx| {
                    let mut is_done = shared.0.lock_async(cx);
                    while !*is_done {
                        shared.1.wait_async(cx, &mut is_done);
                    }
                });
            })
        };
        rt::run(false, |cx| *shared.0.lock_async(cx) = true);
        shared.1.signal();
        task.join().expect("no panic");
    });
}

#[test]
fn an_event_that_is_counted_is_not_missed() {
    explore(4, || {
        let events = Arc::new(EventCount::new());
        let tasks: Vec<_> = [1, 2]
            .map(|value| {
                let events = events.clone();
                thread::spawn(move || rt::run(false, |cx| assert!(events.await_async(cx, value) >= value)))
            })
            .into();
        events.advance(1);
        events.advance(1);
        for task in tasks {
            task.join().expect("no panic");
        }
    });
}

#[test]
fn a_turn_comes_when_the_one_before_leaves_served_or_not() {
    explore(3, || {
        let queue = Arc::new(Queue::new());
        let tasks: Vec<_> = [false, true]
            .map(|is_canceled| {
                let queue = queue.clone();
                thread::spawn(move || {
                    rt::run(is_canceled, |cx| {
                        let mut turn = queue.enter();
                        let unserved = usize::from(turn.await_x_async(cx).is_err());
                        (unserved, turn.leave())
                    })
                })
            })
            .into();
        let (unserved, counted) = tasks
            .into_iter()
            .map(|task| task.join().expect("no panic"))
            .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        assert_eq!(unserved, counted, "each that left unserved is counted once");
        assert!(queue.is_empty());
    });
}

/// What is asked for in the tests of the list of requests.
struct Item {
    next: AtomicPtr<Item>,
    request: AtomicU64,
    /// Written by who asks for bit 0, before it does.
    reason: UnsafeCell<u64>,
}

impl Item {
    fn new() -> &'static Item {
        Box::leak(Box::new(Item { next: AtomicPtr::default(), request: AtomicU64::new(0), reason: UnsafeCell::new(0) }))
    }
}

// SAFETY: loom checks who touches the cell.
unsafe impl Sync for Item {}

impl Requested for Item {
    fn next(&self) -> &AtomicPtr<Item> {
        &self.next
    }

    fn request(&self) -> &AtomicU64 {
        &self.request
    }
}

/// A thread's list, and how it sleeps.
struct Owner {
    list: RemoteList<Item>,
    /// The kernel's side of the futex.
    futex: Mutex<()>,
    woken: Woken,
}

impl Owner {
    fn new() -> Arc<Owner> {
        Arc::new(Owner { list: RemoteList::new(), futex: Mutex::new(()), woken: Woken::new() })
    }

    /// Asks for some bits of `item`, from any thread.
    fn request(&self, item: &'static Item, bits: u64) {
        if self.list.request(item, |old| old | bits) && self.list.sleeping.swap(0, Ordering::SeqCst) == 1 {
            let _futex = self.futex.lock().expect("not poisoned");
            self.woken.notify_one();
        }
    }

    /// As `rt::Sleep` does.
    fn wait(&self) {
        let futex = self.futex.lock().expect("not poisoned");
        if self.list.sleeping.load(Ordering::SeqCst) == 1 {
            drop(self.woken.wait(futex).expect("not poisoned"));
        }
    }

    /// Sleeps and takes in by turns until `serve` has had enough.
    fn serve_until(&self, mut serve: impl FnMut(&'static Item, u64) -> bool) {
        let mut enough = false;
        while !enough {
            self.list.sleep_if_empty(|| self.wait());
            self.list.take_in(|item, request| enough |= serve(item, request));
        }
    }
}

#[test]
fn what_two_threads_ask_of_one_item_reaches_its_owner_with_what_they_did_before() {
    explore(3, || {
        let (owner, item) = (Owner::new(), Item::new());
        let threads = [1, 8].map(|bits| {
            let owner = owner.clone();
            thread::spawn(move || {
                if bits == 1 {
                    // SAFETY: loom checks that nobody else has it.
                    item.reason.with_mut(|reason| unsafe { *reason = 7 });
                }
                owner.request(item, bits);
            })
        });
        let mut asked = 0;
        owner.serve_until(|item, request| {
            assert_ne!(request, 0);
            asked |= request;
            if request & 1 != 0 {
                // SAFETY: as above.
                assert_eq!(item.reason.with(|reason| unsafe { *reason }), 7);
            }
            asked == 9
        });
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    });
}

#[test]
fn requests_of_one_thread_come_in_their_order_and_none_is_lost_beside_those_of_another() {
    explore(3, || {
        let (owner, items) = (Owner::new(), [Item::new(), Item::new(), Item::new()]);
        let (first, second) = (owner.clone(), owner.clone());
        let threads = [
            thread::spawn(move || {
                first.request(items[0], 1);
                first.request(items[1], 1);
            }),
            thread::spawn(move || second.request(items[2], 1)),
        ];
        let mut served = Vec::new();
        owner.serve_until(|item, _| {
            served.extend(items.iter().position(|other| core::ptr::eq(*other, item)));
            served.len() == 3
        });
        let at = |index| served.iter().position(|served| *served == index).expect("served once");
        assert!(at(0) < at(1) && at(2) < 3, "{served:?}");
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    });
}

#[test]
fn an_item_that_is_asked_for_again_while_it_is_served_is_served_again_and_loses_no_other() {
    explore(3, || {
        let (owner, item, other) = (Owner::new(), Item::new(), Item::new());
        let again = Arc::new(AtomicU64::new(0));
        let thread = {
            let (owner, again) = (owner.clone(), again.clone());
            thread::spawn(move || {
                owner.request(item, 1);
                owner.request(other, 1);
                again.store(1, Ordering::Relaxed);
                owner.request(item, 1);
            })
        };
        // Who is served after the second request sees what came before it.
        let (mut last, mut others) = (0, 0);
        owner.serve_until(|served, _| {
            if core::ptr::eq(served, item) {
                last = again.load(Ordering::Relaxed);
            } else {
                others += 1;
            }
            (last, others) == (1, 1)
        });
        thread.join().expect("no panic");
    });
}

/// The mistake that [`RemoteList::sleep_if_empty`] avoids.
#[test]
#[should_panic(expected = "deadlock")]
fn an_owner_that_looks_before_it_says_that_it_sleeps_misses_a_request() {
    explore(3, || {
        let (owner, item) = (Owner::new(), Item::new());
        let thread = {
            let owner = owner.clone();
            thread::spawn(move || owner.request(item, 1))
        };
        let mut is_served = false;
        while !is_served {
            if owner.list.is_empty() {
                owner.list.sleeping.swap(1, Ordering::SeqCst);
                owner.wait();
            }
            owner.list.take_in(|_, _| is_served = true);
        }
        thread.join().expect("no panic");
    });
}
