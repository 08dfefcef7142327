//! Programs of safe code that once broke the library, or that break the rule for panics: each ends in the way that is written down. Each
//! runs in a process of its own, since some of these ends are the program's.

use std::cell::Cell;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};

use refs::StrongRc;
use tasks::rt::{self, AweRef, Id, Runtime};
use tasks::{Body, Cx, Fifo, HeapStacks, Hooks, Next, Policy, Ready, Why, Worker};

/// Runs this test program again, for one test, as the program itself.
fn run_alone(test: &str) -> Output {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(CHILD, "1").output().expect("it runs")
}

const CHILD: &str = "EBB_TASKS_TEST_IS_THE_PROGRAM";

fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// The test `name` is a program that aborts with `message`, and does not come to where it says that it went on.
fn aborts(name: &str, message: &str, program: fn()) {
    if is_child() {
        program();
        went_on();
        return;
    }
    let output = run_alone(name);
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!output.status.success() && stderr.contains(message), "{:?}\n{stdout}\n{stderr}", output.status);
    assert!(!stdout.contains(WENT_ON), "{stdout}\n{stderr}");
}

const WENT_ON: &str = "the program went on";

fn went_on() {
    writeln!(io::stdout(), "{WENT_ON}").expect("a standard output");
}

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("in a destructor");
    }
}

#[test]
fn a_destructor_that_panics_where_a_block_waits_for_its_tasks_ends_the_program() {
    aborts(
        "a_destructor_that_panics_where_a_block_waits_for_its_tasks_ends_the_program",
        "panicked, which ends the program",
        || {
            rt::run(|cx| {
                let _ = catch_unwind(AssertUnwindSafe(|| {
                    let local = Box::new([0x41_u8; 100]);
                    rt::finish_async(cx, |scope, cx| {
                        scope.spawn_async(cx, |cx| {
                            rt::suspend_async(cx);
                            assert_eq!(local[0], 0x41);
                        });
                        drop(StrongRc::new(Bomb));
                    });
                }));
                went_on();
            });
        },
    );
}

#[test]
fn a_destructor_that_panics_where_a_task_saves_itself_under_an_id_ends_the_program() {
    aborts(
        "a_destructor_that_panics_where_a_task_saves_itself_under_an_id_ends_the_program",
        "panicked, which ends the program",
        || {
            rt::run(|cx| {
                let id = Id::create(cx).expect("an id");
                rt::finish_async(cx, |scope, cx| {
                    scope.spawn_async(cx, |cx| {
                        rt::yield_async(cx);
                        drop(StrongRc::new(Bomb));
                        let _ = catch_unwind(AssertUnwindSafe(|| rt::yield_and_save_async(cx, id)));
                        went_on();
                    });
                });
            });
        },
    );
}

#[test]
fn a_destructor_that_panics_where_a_task_ends_ends_the_program() {
    aborts("a_destructor_that_panics_where_a_task_ends_ends_the_program", "panicked, which ends the program", || {
        rt::run(|cx| {
            rt::finish_async(cx, |scope, cx| {
                scope.spawn_async(cx, |cx| {
                    rt::yield_async(cx);
                    // It is freed when the task has ended, on what was its stack.
                    drop(StrongRc::new(Bomb));
                });
            });
        });
    });
}

#[test]
fn a_second_panic_whose_payload_panics_in_its_destructor_ends_the_program() {
    aborts(
        "a_second_panic_whose_payload_panics_in_its_destructor_ends_the_program",
        "the destructor of what a task panicked with can be passed on to nobody",
        || {
            rt::run(|cx| {
                rt::finish_async(cx, |scope, cx| {
                    for _ in 0..2 {
                        scope.spawn_async(cx, |_| std::panic::panic_any(Bomb));
                    }
                    // The first is raised here, at the end of the block.
                });
            });
        },
    );
}

#[test]
fn a_destructor_that_panics_in_a_task_is_that_task_s_panic() {
    let ended = Cell::new(false);
    let raised = catch_unwind(AssertUnwindSafe(|| {
        rt::run(|cx| {
            rt::finish_async(cx, |scope, cx| {
                scope.spawn_async(cx, |cx| {
                    rt::yield_async(cx);
                    drop(Bomb);
                });
                scope.spawn_async(cx, |cx| {
                    for _ in 0..3 {
                        rt::yield_async(cx);
                    }
                    ended.set(true);
                });
            });
        });
    }));
    let payload = raised.expect_err("the block raises it");
    assert_eq!((payload.downcast_ref(), ended.get()), (Some(&"in a destructor"), true));
}

struct Panicky;

impl rt::Idle for Panicky {
    fn wait(&self, _: &'static Runtime) {
        panic!("nothing to do");
    }

    fn wake(&self, _: &'static Runtime) {}
}

#[test]
fn an_idle_hook_that_panics_where_a_task_has_ended_ends_the_program() {
    let name = "an_idle_hook_that_panics_where_a_task_has_ended_ends_the_program";
    aborts(name, "`Idle::wait` can be passed on to nobody", || {
        let never = rt::sync::Semaphore::new(0);
        rt::Config::default().run_with_idle(&Panicky, |cx| {
            rt::finish_async(cx, |scope, cx| {
                scope.spawn_async(cx, rt::yield_async);
                never.p_async(cx);
            });
        });
    });
}

#[test]
fn an_idle_hook_that_panics_ends_the_program() {
    aborts("an_idle_hook_that_panics_ends_the_program", "`Idle::wait` can be passed on to nobody", || {
        rt::Config::default().run_with_idle(&Panicky, |cx| {
            let _ = catch_unwind(AssertUnwindSafe(|| {
                rt::finish_async(cx, |scope, cx| scope.spawn_async(cx, rt::suspend_async));
            }));
            went_on();
        });
    });
}

#[test]
fn what_is_called_before_a_suspension_and_panics_leaves_a_task_that_has_not_suspended() {
    let child: Cell<Option<AweRef>> = Cell::new(None);
    rt::run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, |cx| {
                let result = catch_unwind(AssertUnwindSafe(|| {
                    rt::suspend_then_async(cx, |me| {
                        child.set(Some(me));
                        me.schedule().expect("it is suspended");
                        panic!("before the suspension");
                    });
                }));
                assert!(result.is_err());
                rt::yield_async(cx);
            });
            assert_eq!(child.get().expect("it ran").schedule(), Err(rt::NotSuspended));
        });
    });
}

#[test]
fn a_task_that_was_attached_spawns_eagerly_and_its_callers_go_on_once() {
    let order = std::cell::RefCell::new(Vec::new());
    let say = |what: &'static str| order.borrow_mut().push(what);
    rt::run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, move |cx| {
                let caller = rt::current(cx);
                let canary = [0x41_u64; 16];
                let boxed = Box::new(7);
                scope.spawn_async(cx, move |cx| {
                    scope.spawn_eager_async(cx, move |cx| {
                        say("the eager task");
                        assert_eq!(rt::yield_to_async(cx, caller), Ok(rt::Yielded::Switched));
                        say("the eager task again");
                    });
                    say("who spawned it");
                });
                assert_eq!((canary, *boxed), ([0x41; 16], 7));
                say("who called that one");
            });
            say("the block's body");
        });
    });
    let expected =
        ["the eager task", "who called that one", "who spawned it", "the block's body", "the eager task again"];
    assert_eq!(order.take(), expected);
}

#[test]
fn stacks_of_a_size_that_nothing_has_room_for_are_refused() {
    for stack_size_bytes in [1 << 46, (1 << 60) - 4096, 1 << 60, isize::MAX as usize, usize::MAX - 4095, usize::MAX] {
        let config = rt::Config { stack_size_bytes, ..rt::Config::default() };
        config.run(|cx| {
            rt::finish_async(cx, |scope, cx| {
                assert!(scope.try_spawn_async(cx, |_| unreachable!("it has no stack")).is_err());
            });
        });
    }
    assert!(catch_unwind(|| HeapStacks::new(usize::MAX & !15)).is_err());
}

static STOP: AtomicBool = AtomicBool::new(false);

/// Looks again and again, until all is done.
struct Spin;

impl Hooks for Spin {
    fn idle(&self, worker: &Worker) -> ControlFlow<()> {
        if STOP.load(Ordering::SeqCst) || worker.tasks() == 0 {
            return ControlFlow::Break(());
        }
        std::thread::yield_now();
        ControlFlow::Continue(())
    }
}

struct Run<F>(Option<F>);

impl<F: FnOnce(&mut Cx) + Send> Body for Run<F> {
    fn run_async(&mut self, cx: &mut Cx) -> Next {
        self.0.take().expect("it runs once")(cx);
        Next::End
    }
}

static STACKS: HeapStacks = HeapStacks::new(1 << 18);

/// Two workers of the crate's root, on two threads, until all tasks of `policy` have ended.
fn run_two_workers(policy: &'static dyn Policy) {
    std::thread::scope(|threads| {
        for number in 0..2 {
            threads.spawn(move || {
                let worker: &'static Worker = Box::leak(Box::new(Worker::new(number, policy, &STACKS, &Spin)));
                // SAFETY: this thread has no other context.
                unsafe { worker.run() };
            });
        }
    });
}

#[test]
fn what_is_on_a_suspended_stack_stays_on_its_thread() {
    thread_local!(static MINE: Cell<u64> = const { Cell::new(0) });
    static FIFO: Fifo = Fifo::new();
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    if !is_child() {
        return assert!(run_alone("what_is_on_a_suspended_stack_stays_on_its_thread").status.success());
    }
    for _ in 0..8 {
        let body = |cx: &mut Cx| {
            for _ in 0..5_000 {
                MINE.with(|mine| {
                    let before = std::thread::current().id();
                    tasks::yield_async(cx);
                    assert_eq!(std::thread::current().id(), before);
                    mine.set(mine.get() + 1);
                });
            }
            RUNS.fetch_add(1, Ordering::SeqCst);
        };
        tasks::spawn(&FIFO, Box::new(Run(Some(body))), |_, _| ());
    }
    run_two_workers(&FIFO);
    assert_eq!(RUNS.load(Ordering::SeqCst), 8);
}

#[test]
fn a_worker_that_idles_on_the_stack_of_a_parked_task_is_who_goes_on_with_it() {
    static FIFO: Fifo = Fifo::new();
    static WAKER: (Mutex<Option<tasks::Waker>>, Condvar) = (Mutex::new(None), Condvar::new());
    const ROUNDS: usize = 300;
    if !is_child() {
        let output = run_alone("a_worker_that_idles_on_the_stack_of_a_parked_task_is_who_goes_on_with_it");
        return assert!(output.status.success());
    }
    let body = |cx: &mut Cx| {
        for _ in 0..ROUNDS {
            let waker = tasks::prepare(cx);
            *WAKER.0.lock().unwrap() = Some(waker);
            WAKER.1.notify_one();
            tasks::park_async(cx);
        }
    };
    tasks::spawn(&FIFO, Box::new(Run(Some(body))), |_, _| ());
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for round in 0..ROUNDS {
                let waiting = WAKER.1.wait_while(WAKER.0.lock().unwrap(), |waker| waker.is_none());
                let waker = waiting.unwrap().take().expect("a waker");
                if round % 4 == 0 {
                    std::thread::sleep(std::time::Duration::from_micros(200));
                }
                waker.wake();
            }
        });
        run_two_workers(&FIFO);
    });
}

#[test]
fn a_policy_that_gives_a_suspended_task_to_another_worker_ends_the_program() {
    /// Gives to each what is there, whoever has to run it.
    struct Careless(Mutex<std::collections::VecDeque<Ready>>);
    impl Policy for Careless {
        fn enqueue(&self, ready: Ready, _: Why) {
            self.0.lock().unwrap().push_back(ready);
        }

        fn next(&self, _: &'static Worker) -> Option<Ready> {
            self.0.lock().unwrap().pop_front()
        }
    }
    static CARELESS: Careless = Careless(Mutex::new(std::collections::VecDeque::new()));
    aborts("a_policy_that_gives_a_suspended_task_to_another_worker_ends_the_program", "see `Ready::worker`", || {
        for _ in 0..8 {
            let body = |cx: &mut Cx| {
                for _ in 0..1_000_000 {
                    tasks::yield_async(cx);
                }
            };
            tasks::spawn(&CARELESS, Box::new(Run(Some(body))), |_, _| ());
        }
        run_two_workers(&CARELESS);
    });
}

#[test]
fn a_body_that_panics_ends_the_program() {
    static FIFO: Fifo = Fifo::new();
    aborts("a_body_that_panics_ends_the_program", "the body of a task, or in its scheduler", || {
        for _ in 0..2 {
            let body = |cx: &mut Cx| {
                tasks::yield_async(cx);
                panic!("in a body");
            };
            tasks::spawn(&FIFO, Box::new(Run(Some(body))), |_, _| ());
        }
        let _ = catch_unwind(|| run_two_workers(&FIFO));
    });
}

#[test]
fn a_hook_that_panics_does_not_unwind_the_task_that_suspends() {
    struct Fails;
    impl Hooks for Fails {
        fn idle(&self, _: &Worker) -> ControlFlow<()> {
            panic!("in a hook");
        }
    }
    static FIFO: Fifo = Fifo::new();
    aborts("a_hook_that_panics_does_not_unwind_the_task_that_suspends", "while a task suspends", || {
        let body = |cx: &mut Cx| {
            let _ = catch_unwind(AssertUnwindSafe(|| {
                tasks::prepare(cx);
                tasks::park_async(cx);
            }));
            went_on();
        };
        tasks::spawn(&FIFO, Box::new(Run(Some(body))), |_, _| ());
        let worker: &'static Worker = Box::leak(Box::new(Worker::new(0, &FIFO, &STACKS, &Fails)));
        // SAFETY: this thread has no other context.
        unsafe { worker.run() };
    });
}

#[test]
fn a_context_of_one_scheduler_is_refused_by_the_other() {
    static FIFO: Fifo = Fifo::new();
    static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
    if !is_child() {
        return assert!(run_alone("a_context_of_one_scheduler_is_refused_by_the_other").status.success());
    }
    fn said(result: std::thread::Result<()>) {
        let payload = result.expect_err("it is refused");
        SAID.lock().unwrap().push(payload.downcast_ref::<&str>().expect("a message").to_string());
    }
    let body = |cx: &mut Cx| {
        said(catch_unwind(AssertUnwindSafe(|| rt::yield_async(cx))));
        said(catch_unwind(AssertUnwindSafe(|| rt::run(|_| ()))));
    };
    tasks::spawn(&FIFO, Box::new(Run(Some(body))), |_, _| ());
    run_two_workers(&FIFO);
    rt::run(|cx| said(catch_unwind(AssertUnwindSafe(|| tasks::yield_async(cx)))));
    let said = SAID.lock().unwrap();
    assert!(said[0].contains("not made by `tasks::rt`") && said[1].contains("runs tasks already"), "{said:?}");
    assert!(said[2].contains("made by `tasks::rt`"), "{said:?}");
}
