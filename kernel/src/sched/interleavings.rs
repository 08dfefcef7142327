//! The scheduler on two workers, in interleavings chosen at random:
//! `RUSTFLAGS="--cfg ebb_shuttle --cfg ebb_threads" cargo test --release -p ebb-kernel --lib sched::interleavings`.
//!
//! A task that is ready and never chosen shows as a deadlock, since an idle worker sleeps until a task is entered; so does one that is not asked
//! to give way, since it goes on until it is. Each look at the clock takes half a millisecond.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use refs::WaitList;
use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use shuttle::thread;
use tasks::interleavings::{Machine, Run, explore};
use tasks::{Next, Policy, Ready, SchedWords, Waker, Why, Worker};

use super::{Class, Parameters, Scheduler, initialise};

fn class(class: Class, priority: u8) -> Parameters {
    Parameters { class, priority, ..Parameters::default() }
}

fn nice(nice: i8) -> Parameters {
    Parameters { nice, ..Parameters::default() }
}

fn run<P: Policy + Send>(machine: &'static Machine<P>, tasks: impl IntoIterator<Item = (Run, Parameters)>) {
    let with_words = |(run, parameters)| (run, move |words: &SchedWords| initialise(words, parameters, None));
    machine.run(tasks.into_iter().map(with_words).collect());
}

fn shared<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// Takes `count` tokens, one after the other, and waits where there is none.
fn taker(tokens: &'static (Mutex<usize>, WaitList), count: usize) -> Run {
    Box::new(move |cx| {
        for _ in 0..count {
            loop {
                let waker = tasks::prepare(cx);
                tokens.1.register(waker, cx);
                let mut left = tokens.0.lock().expect("not poisoned");
                if *left > 0 {
                    *left -= 1;
                    drop(left);
                    tasks::finish_wait(cx);
                    break;
                }
                drop(left);
                let before = (tasks::worker(cx).number(), tasks::current(cx));
                tasks::park_async(cx);
                assert_eq!(before, (tasks::worker(cx).number(), tasks::current(cx)));
            }
        }
        Next::End
    })
}

/// Gives a token each time it is run, `count` times, and gives way in the middle of the second time.
fn giver(tokens: &'static (Mutex<usize>, WaitList), count: usize) -> Run {
    let mut given = 0;
    Box::new(move |cx| {
        *tokens.0.lock().expect("not poisoned") += 1;
        tokens.1.wake_all();
        given += 1;
        if given == 2 {
            tasks::yield_async(cx);
        }
        if given == count { Next::End } else { Next::Again }
    })
}

fn tokens_are_passed_under<P: Policy + Send + 'static>(policy: fn() -> P, interleavings: usize) {
    explore(interleavings, move || {
        let tokens = shared((Mutex::new(0), WaitList::new()));
        run(
            Machine::new(policy()),
            [
                (taker(tokens, 2), nice(0)),
                (giver(tokens, 4), nice(5)),
                (taker(tokens, 1), class(Class::RoundRobin, 7)),
                (taker(tokens, 1), class(Class::Idle, 0)),
            ],
        );
    });
}

#[test]
fn no_wake_up_between_tasks_of_all_classes_is_lost() {
    tokens_are_passed_under(Scheduler::new, 4_000);
}

/// The scheduler, but for one task in four that is woken.
struct Forgetful(Scheduler, AtomicUsize);

impl Policy for Forgetful {
    fn enqueue(&self, ready: Ready, why: Why) {
        if why == Why::Woken && self.1.fetch_add(1, Ordering::SeqCst) % 4 == 3 {
            core::mem::forget(ready);
        } else {
            self.0.enqueue(ready, why);
        }
    }

    fn next(&self, worker: &'static Worker) -> Option<Ready> {
        self.0.next(worker)
    }
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_scheduler_that_loses_a_task_is_found_out() {
    tokens_are_passed_under(|| Forgetful(Scheduler::new(), AtomicUsize::new(0)), 4_000);
}

#[test]
fn a_task_runs_on_one_worker_at_a_time_and_keeps_its_worker_while_it_keeps_a_stack() {
    explore(4_000, || {
        let parameters =
            [nice(-5), nice(5), class(Class::Fifo, 3), class(Class::RoundRobin, 3), class(Class::Batch, 0)];
        let tasks = parameters.map(|parameters| {
            let (inside, mut runs) = (AtomicBool::new(false), 0);
            let body: Run = Box::new(move |cx| {
                assert!(!inside.swap(true, Ordering::SeqCst));
                let before = (tasks::worker(cx).number(), tasks::current(cx));
                tasks::yield_async(cx);
                assert_eq!(before, (tasks::worker(cx).number(), tasks::current(cx)));
                runs += 1;
                inside.store(false, Ordering::SeqCst);
                if runs == 2 { Next::End } else { Next::Again }
            });
            (body, parameters)
        });
        run(Machine::new(Scheduler::new()), tasks);
    });
}

/// Runs, as user code does, until it is asked to give way, so many times; stops early once `enough`.
fn spinner(turns: usize, on_a_stack: bool, enough: &'static AtomicBool) -> Run {
    let mut given_way = 0;
    Box::new(move |cx| {
        while given_way < turns && !enough.load(Ordering::SeqCst) {
            if tasks::must_yield(cx) {
                given_way += 1;
                if !on_a_stack {
                    return Next::Again;
                }
                tasks::yield_async(cx);
            } else {
                thread::yield_now();
            }
        }
        Next::End
    })
}

#[test]
fn a_woken_real_time_task_gets_a_core_that_runs_another() {
    explore(4_000, || {
        let wakers = shared(Mutex::new(VecDeque::<Waker>::new()));
        let enough = shared(AtomicBool::new(false));
        let device = thread::spawn(move || {
            let mut woken = 0;
            while woken < 2 {
                let waker = wakers.lock().expect("not poisoned").pop_front();
                match waker {
                    Some(waker) => woken += usize::from(waker.wake()),
                    None => thread::yield_now(),
                }
            }
        });
        let real_time: Run = Box::new(move |cx| {
            for _ in 0..2 {
                let waker = tasks::prepare(cx);
                wakers.lock().expect("not poisoned").push_back(waker);
                tasks::park_async(cx);
            }
            enough.store(true, Ordering::SeqCst);
            Next::End
        });
        // They end only once the real-time task has.
        let (first, second) = (spinner(usize::MAX, true, enough), spinner(usize::MAX, false, enough));
        run(
            Machine::new(Scheduler::new()),
            [(real_time, class(Class::Fifo, 50)), (first, nice(0)), (second, class(Class::RoundRobin, 1))],
        );
        device.join().expect("no panic");
    });
}

#[test]
fn the_end_of_a_slice_gives_others_their_turn() {
    explore(3_000, || {
        let machine = Machine::new(Scheduler::new());
        let timer = thread::spawn(move || {
            let mut core = 0;
            while !machine.is_off() {
                machine.policy().slice_ended(core);
                core = 1 - core;
                thread::yield_now();
            }
        });
        let never = shared(AtomicBool::new(false));
        let mut tasks: Vec<_> = (0..3).map(|task| (spinner(2, task == 0, never), nice(task))).collect();
        // Whoever is left alone is not interrupted: this one keeps the others company.
        let others = shared(AtomicUsize::new(tasks.len()));
        for (body, _) in &mut tasks {
            let mut inner = core::mem::replace(body, Box::new(|_| Next::End));
            *body = Box::new(move |cx| {
                let next = inner(cx);
                if next == Next::End {
                    others.fetch_sub(1, Ordering::SeqCst);
                }
                next
            });
        }
        let company = || -> Run {
            Box::new(move |_| {
                thread::yield_now();
                if others.load(Ordering::SeqCst) == 0 { Next::End } else { Next::Again }
            })
        };
        tasks.push((company(), nice(0)));
        tasks.push((company(), nice(0)));
        run(machine, tasks);
        timer.join().expect("no panic");
    });
}
