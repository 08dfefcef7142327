//! The scheduler on two and three workers, in interleavings chosen at random:
//! `RUSTFLAGS="--cfg ebb_shuttle --cfg ebb_threads" cargo test --release -p ebb-kernel --lib sched::interleavings`.
//!
//! A task that is ready and never chosen shows as a deadlock, since an idle worker sleeps until the scheduler interrupts it; so does one that is not asked
//! to give way, since it goes on until it is. Each look at the clock takes half a millisecond.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use frame::core_set::CoreSet;

use refs::WaitList;
use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use shuttle::thread;
use tasks::interleavings::{Machine, Run, Wake, explore};
use tasks::{Next, Policy, Ready, SchedWords, TaskRef, Waker, Why, Worker};

use super::task::Words;
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

fn words(task: TaskRef) -> Words<'static> {
    Words(task.sched().expect("it is alive"))
}

/// A machine of so many cores, which sleep until the scheduler interrupts them.
fn machine(cores: usize) -> &'static Machine<Scheduler> {
    Machine::new(scheduler(cores), cores, Wake::ByPolicy)
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

fn scheduler(cores: usize) -> Scheduler {
    let scheduler = Scheduler::new();
    scheduler.prepare(cores);
    scheduler
}

fn tokens_are_passed_under<P: Policy + Send + 'static>(policy: fn(usize) -> P, cores: usize, interleavings: usize) {
    explore(interleavings, move || {
        let tokens = shared((Mutex::new(0), WaitList::new()));
        run(
            Machine::new(policy(cores), cores, Wake::ByPolicy),
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
    tokens_are_passed_under(scheduler, 2, 4_000);
    tokens_are_passed_under(scheduler, 3, 4_000);
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
    tokens_are_passed_under(|cores| Forgetful(scheduler(cores), AtomicUsize::new(0)), 2, 4_000);
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
        run(machine(2), tasks);
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
        run(machine(2), [(real_time, class(Class::Fifo, 50)), (first, nice(0)), (second, class(Class::RoundRobin, 1))]);
        device.join().expect("no panic");
    });
}

#[test]
fn the_end_of_a_slice_gives_others_their_turn() {
    explore(3_000, || {
        let machine = machine(2);
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

/// Tells itself each time where it may run from then on, gives way in the middle of something, and next time is where it may be.
fn wanderer(scheduler: &'static Scheduler, masks: &'static [u64]) -> Run {
    let mut told = 0..masks.len();
    let mut mask = u64::MAX;
    Box::new(move |cx| {
        let core = tasks::worker(cx).number();
        assert!(mask >> core & 1 == 1, "it runs on core {core}");
        let Some(turn) = told.next() else { return Next::End };
        mask = masks[turn];
        scheduler.set_cores(words(tasks::current(cx)), set(mask));
        tasks::yield_async(cx);
        Next::Again
    })
}

#[test]
fn a_task_runs_only_where_it_may() {
    explore(4_000, || {
        let machine = machine(3);
        let wanderers =
            [&[1, 2, 4][..], &[6, 5, 3], &[4, 7, 1], &[2, 1]].map(|masks| wanderer(machine.policy(), masks));
        run(machine, wanderers.into_iter().zip([nice(0), nice(3), class(Class::Fifo, 4), class(Class::RoundRobin, 2)]));
    });
}

fn set(cores: u64) -> CoreSet {
    CoreSet::from_words([cores])
}

fn only(cores: u64) -> Parameters {
    Parameters { cores: set(cores), ..nice(0) }
}

/// Goes on, whoever asks it to give way, until `done`.
fn until(done: &'static AtomicBool) -> Run {
    Box::new(|_| {
        while !done.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        Next::End
    })
}

/// One that waits for its turn, on a core that never ends what it does, is told to run where another core sleeps.
#[test]
fn a_task_that_waits_goes_where_it_may_from_then_on() {
    for cores in [2, 3] {
        explore(4_000, move || {
            let machine = machine(cores);
            let done = shared(AtomicBool::new(false));
            let name = shared(Mutex::new(None::<TaskRef>));
            let mut goes_on = until(done);
            let first: Run = Box::new(move |cx| {
                if name.lock().expect("not poisoned").is_some() {
                    return goes_on(cx);
                }
                thread::yield_now();
                Next::Again
            });
            let second: Run = Box::new(move |cx| {
                *name.lock().expect("not poisoned") = Some(tasks::current(cx));
                if tasks::worker(cx).number() == cores - 1 {
                    done.store(true, Ordering::SeqCst);
                    return Next::End;
                }
                thread::yield_now();
                Next::Again
            });
            let teller = thread::spawn(move || {
                loop {
                    if let Some(words) = name.lock().expect("not poisoned").and_then(TaskRef::sched) {
                        return machine.policy().set_cores(Words(words), set(1 << (cores - 1)));
                    }
                    thread::yield_now();
                }
            });
            // The last core has nothing to do.
            run(machine, [(first, only(1)), (second, only(1))]);
            teller.join().expect("no panic");
        });
    }
}

/// Who has nothing left to do takes what waits where somebody goes on for ever.
#[test]
fn a_core_takes_what_waits_elsewhere_before_it_sleeps() {
    for cores in [2, 3] {
        explore(3_000, move || {
            let done = shared(AtomicBool::new(false));
            let short = || -> Run { Box::new(|_| Next::End) };
            let last: Run = Box::new(|_| {
                done.store(true, Ordering::SeqCst);
                Next::End
            });
            // All have something to do where the last one enters.
            let mut all = vec![(until(done), only(1))];
            all.extend((1..cores).map(|core| (short(), only(1 << core))));
            all.push((last, if cores == 2 { nice(0) } else { only(0b101) }));
            run(machine(cores), all);
        });
    }
}

/// A task starts another one while a core begins to idle, and goes on until that has run.
#[test]
fn a_new_task_does_not_wait_while_a_core_sleeps() {
    for cores in [2, 3] {
        explore(4_000, move || {
            let machine = machine(cores);
            let done = shared(AtomicBool::new(false));
            let mut goes_on = until(done);
            let parent: Run = Box::new(move |cx| {
                let child: Run = Box::new(|_| {
                    done.store(true, Ordering::SeqCst);
                    Next::End
                });
                machine.spawn(child, |words| initialise(words, nice(0), None));
                goes_on(cx)
            });
            let short = || -> Run { Box::new(|_| Next::End) };
            let mut all = vec![(parent, only(1))];
            all.extend((1..cores).map(|core| (short(), only(1 << core))));
            run(machine, all);
        });
    }
}

/// As many tasks as there are cores, none of which ends before all run at the same time: nobody waits while a core sleeps.
#[test]
fn all_cores_run_what_there_is() {
    for (cores, class_of) in [(2, Class::Other), (3, Class::Other), (2, Class::Fifo), (3, Class::Fifo)] {
        explore(3_000, move || {
            let inside = shared(AtomicUsize::new(0));
            let tasks = (0..cores).map(|task| {
                let body: Run = Box::new(move |_| {
                    inside.fetch_add(1, Ordering::SeqCst);
                    while inside.load(Ordering::SeqCst) < cores {
                        thread::yield_now();
                    }
                    Next::End
                });
                (body, class(class_of, if class_of == Class::Fifo { task as u8 + 1 } else { 0 }))
            });
            run(machine(cores), tasks);
        });
    }
}

/// The same, where tasks wake each other: each waits for a token once, which the one before it gives.
#[test]
fn all_cores_run_what_is_woken() {
    for cores in [2, 3] {
        explore(4_000, move || {
            let inside = shared(AtomicUsize::new(0));
            let tokens = shared((Mutex::new(0), WaitList::new()));
            let tasks = (0..cores).map(|task| {
                let mut wait = taker(tokens, 1);
                let body: Run = Box::new(move |cx| {
                    if task != 0 {
                        wait(cx);
                    }
                    *tokens.0.lock().expect("not poisoned") += 1;
                    tokens.1.wake_all();
                    inside.fetch_add(1, Ordering::SeqCst);
                    while inside.load(Ordering::SeqCst) < cores {
                        if tasks::must_yield(cx) {
                            tasks::yield_async(cx);
                        }
                        thread::yield_now();
                    }
                    Next::End
                });
                (body, nice(0))
            });
            run(machine(cores), tasks);
        });
    }
}

/// The N most urgent real-time tasks run on the N cores: those that spin end only once they do so at the same time.
#[test]
fn the_most_urgent_real_time_tasks_run() {
    for cores in [2, 3] {
        explore(4_000, move || {
            let inside = shared(AtomicUsize::new(0));
            let urgent = |priority: u8| -> (Run, Parameters) {
                let body: Run = Box::new(move |_| {
                    inside.fetch_add(1, Ordering::SeqCst);
                    while inside.load(Ordering::SeqCst) < cores {
                        thread::yield_now();
                    }
                    Next::End
                });
                (body, class(Class::Fifo, priority))
            };
            // These go on until they are asked to give way, and come back.
            let other = |parameters| -> (Run, Parameters) {
                let body: Run = Box::new(move |cx| {
                    while inside.load(Ordering::SeqCst) < cores {
                        if tasks::must_yield(cx) {
                            return Next::Again;
                        }
                        thread::yield_now();
                    }
                    Next::End
                });
                (body, parameters)
            };
            let mut all: Vec<_> =
                (0..cores).map(|task| other(if task == 0 { nice(0) } else { class(Class::RoundRobin, 1) })).collect();
            all.extend((0..cores).map(|task| urgent(50 + task as u8)));
            run(machine(cores), all);
        });
    }
}
