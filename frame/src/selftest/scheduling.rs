//! Tasks that take turns, wait for each other, and keep stacks only while they wait.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicUsize, Ordering};

use refs::{Cx, WaitList};
use tasks::{Body, Next};

use super::{Outcome, Test, yield_until_async};
use crate::check;

pub(super) const TESTS: &[Test] = &[
    ("tasks that yield take turns", tasks_take_turns),
    ("a hundred tasks wait and are woken", a_hundred_wait),
    ("a task that returns is run again", run_again),
];

struct Job<F>(F);

impl<F: FnMut(&mut Cx) -> Next + Send> Body for Job<F> {
    fn run_async(&mut self, cx: &mut Cx) -> Next {
        (self.0)(cx)
    }
}

fn spawn(job: impl FnMut(&mut Cx) -> Next + Send + 'static) {
    tasks::spawn(&super::POLICY, Box::new(Job(job)), |_, _| ());
}

fn tasks_take_turns(cx: &mut Cx) -> Outcome {
    static ROUNDS: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];
    for rounds in &ROUNDS {
        spawn(move |cx| {
            for _ in 0..100 {
                rounds.fetch_add(1, Ordering::Relaxed);
                tasks::yield_async(cx);
            }
            Next::End
        });
    }
    yield_until_async(cx, || ROUNDS.iter().all(|rounds| rounds.load(Ordering::Relaxed) == 100))
}

fn a_hundred_wait(cx: &mut Cx) -> Outcome {
    static WAITING: AtomicUsize = AtomicUsize::new(0);
    static WOKEN: AtomicUsize = AtomicUsize::new(0);
    static EVENT: WaitList = WaitList::new();
    for _ in 0..100 {
        spawn(|cx| {
            let waker = tasks::prepare(cx);
            EVENT.register(waker, cx);
            WAITING.fetch_add(1, Ordering::Relaxed);
            tasks::park_async(cx);
            WOKEN.fetch_add(1, Ordering::Relaxed);
            Next::End
        });
    }
    yield_until_async(cx, || WAITING.load(Ordering::Relaxed) == 100)?;
    check!(WOKEN.load(Ordering::Relaxed) == 0, "woken too early");
    check!(EVENT.wake_all() == 100, "not all were waiting");
    yield_until_async(cx, || WOKEN.load(Ordering::Relaxed) == 100)
}

fn run_again(cx: &mut Cx) -> Outcome {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    spawn(|_| if RUNS.fetch_add(1, Ordering::Relaxed) == 9 { Next::End } else { Next::Again });
    yield_until_async(cx, || RUNS.load(Ordering::Relaxed) == 10)
}
