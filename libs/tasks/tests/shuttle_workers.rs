//! The scheduler of the crate's root on two workers, in interleavings chosen at random: `Worker`, tasks with and without a stack, wake-ups, waiting,
//! yielding, moving between the workers. (The kernel's tests do the same with the kernel's policy.)
//! `RUSTFLAGS="--cfg ebb_shuttle --cfg ebb_threads" cargo test --release -p ebb-tasks --test shuttle_workers`.
//!
//! A wake-up that is lost shows as a deadlock, since an idle worker sleeps until its policy is told of a task.
#![cfg(ebb_shuttle)]

use std::collections::VecDeque;

use refs::{StrongRc, WaitList};
use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicBool, Ordering};
use shuttle::thread;
use tasks::interleavings::{Machine, Run, Wake, explore};
use tasks::{Cx, Fifo, Next, SchedWords};

/// Runs `tasks` on a machine of two cores, first come first served.
fn run(tasks: impl IntoIterator<Item = Run>) {
    Machine::new(Fifo::new(), 2, Wake::All).run(tasks.into_iter().map(|run| (run, |_: &SchedWords| ())).collect());
}

fn shared<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// Suspends, and finds itself where it was.
fn stays_async(cx: &mut Cx, suspend_async: fn(&mut Cx)) {
    let (number, task) = (tasks::worker(cx).number(), tasks::current(cx));
    suspend_async(cx);
    assert_eq!((tasks::worker(cx).number(), tasks::current(cx)), (number, task));
}

#[test]
fn a_task_runs_on_one_worker_at_a_time_and_moves_between_runs() {
    static MOVED: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    explore(3_000, || {
        let bodies = (0..3).map(|_| {
            let (inside, mut runs, mut before) = (AtomicBool::new(false), 0, None);
            let body = move |cx: &mut Cx| {
                assert!(!inside.swap(true, Ordering::SeqCst));
                let here = tasks::worker(cx).number();
                if before.replace(here).is_some_and(|before| before != here) {
                    MOVED.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                }
                stays_async(cx, tasks::yield_async);
                runs += 1;
                inside.store(false, Ordering::SeqCst);
                if runs == 3 { Next::End } else { Next::Again }
            };
            Box::new(body) as Run
        });
        run(bodies);
    });
    assert!(MOVED.load(std::sync::atomic::Ordering::Relaxed) > 0, "no body ever moved");
}

#[test]
fn no_wake_up_between_tasks_of_two_workers_is_lost() {
    explore(4_000, || {
        let tokens = shared((Mutex::new(0_usize), WaitList::new()));
        let take = move |cx: &mut Cx| {
            for _ in 0..2 {
                loop {
                    let waker = tasks::prepare(cx);
                    tokens.1.register(waker, cx);
                    let mut count = tokens.0.lock().expect("not poisoned");
                    if *count > 0 {
                        *count -= 1;
                        drop(count);
                        tasks::finish_wait(cx);
                        break;
                    }
                    drop(count);
                    stays_async(cx, |cx| _ = tasks::park_async(cx));
                }
            }
            Next::End
        };
        let mut given = 0;
        let give = move |cx: &mut Cx| {
            *tokens.0.lock().expect("not poisoned") += 1;
            tokens.1.wake_all();
            given += 1;
            if given == 2 {
                stays_async(cx, tasks::yield_async);
            }
            if given == 4 { Next::End } else { Next::Again }
        };
        run([Box::new(take) as Run, Box::new(give), Box::new(take)]);
    });
}

#[test]
fn a_task_that_an_interrupt_wakes_goes_on_where_it_was_parked() {
    explore(4_000, || {
        let wakers = shared(Mutex::new(VecDeque::new()));
        let device = thread::spawn(move || {
            let mut woken = 0;
            while woken < 4 {
                let waker: Option<tasks::Waker> = wakers.lock().expect("not poisoned").pop_front();
                match waker {
                    Some(waker) => {
                        assert!(waker.wake());
                        woken += 1;
                    }
                    None => thread::yield_now(),
                }
            }
        });
        let wait = move |cx: &mut Cx| {
            for _ in 0..2 {
                let waker = tasks::prepare(cx);
                wakers.lock().expect("not poisoned").push_back(waker);
                stays_async(cx, |cx| _ = tasks::park_async(cx));
            }
            Next::End
        };
        run([Box::new(wait) as Run, Box::new(wait)]);
        device.join().expect("no panic");
    });
}

#[test]
fn an_object_that_one_worker_destroys_is_not_freed_while_a_task_of_the_other_borrows_it() {
    struct Flag(&'static AtomicBool);
    impl Drop for Flag {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    explore(3_000, || {
        let freed = shared(AtomicBool::new(false));
        let owner = shared(Mutex::new(Some(StrongRc::new(Flag(freed)))));
        let name = owner.lock().expect("not poisoned").as_ref().map(StrongRc::downgrade).expect("it is there");
        let mut looks = 0;
        let borrow = move |cx: &mut Cx| {
            if let Ok(_flag) = name.upgrade(cx) {
                thread::yield_now();
                assert!(!freed.load(Ordering::SeqCst), "it was freed while it was borrowed");
            }
            stays_async(cx, tasks::yield_async);
            looks += 1;
            if looks == 3 { Next::End } else { Next::Again }
        };
        let destroy = move |cx: &mut Cx| {
            drop(owner.lock().expect("not poisoned").take());
            stays_async(cx, tasks::yield_async);
            Next::End
        };
        run([Box::new(borrow) as Run, Box::new(destroy)]);
    });
}
