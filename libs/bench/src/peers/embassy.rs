//! embassy-executor: static tasks in one intrusive queue, polled by a loop of ours, as its own thread executor does.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use embassy_executor::raw::{Executor, TaskStorage};

use crate::line::{BATCH, Samples};

/// Called by the executor when something became ready: our loop polls anyway.
// SAFETY: no other symbol of this program has the name; the signature is the one that embassy-executor declares.
#[unsafe(export_name = "__pender")]
fn pender(_context: *mut ()) {}

static STOP: AtomicBool = AtomicBool::new(false);

struct YieldForever;

impl Future for YieldForever {
    type Output = ();
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if STOP.load(Ordering::Relaxed) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Suspends as often as its number says, then ends.
struct Suspend(u32);

impl Future for Suspend {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.0 == 0 {
            return Poll::Ready(());
        }
        self.0 -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

thread_local! {
    static EXECUTOR: &'static Executor = Box::leak(Box::new(Executor::new(core::ptr::null_mut())));
    static RING: &'static [TaskStorage<YieldForever>] = Vec::leak((0..512).map(|_| TaskStorage::new()).collect());
    static ONE: &'static TaskStorage<Suspend> = Box::leak(Box::new(TaskStorage::new()));
}

#[inline(always)]
fn poll(executor: &'static Executor) {
    // SAFETY: the executor is this thread's, and neither a task of it nor `pender` calls this.
    unsafe { executor.poll() };
}

/// Tasks that yield for ever; per yield.
pub fn ring(s: &mut Samples, tasks: usize) {
    let (executor, ring) = (EXECUTOR.with(|e| *e), RING.with(|r| *r));
    STOP.store(false, Ordering::Relaxed);
    for task in &ring[..tasks] {
        executor.spawner().spawn(task.spawn(|| YieldForever).expect("the last run ended all of them"));
    }
    let rounds = super::rounds(tasks);
    s.batches(rounds * tasks, || (0..rounds).for_each(|_| poll(executor)));
    STOP.store(true, Ordering::Relaxed);
    poll(executor);
}

/// A task that suspends so often, from a static slot.
pub fn create(s: &mut Samples, suspensions: u32) {
    let (executor, slot) = (EXECUTOR.with(|e| *e), ONE.with(|o| *o));
    s.batches(BATCH, || {
        for _ in 0..BATCH {
            executor.spawner().spawn(slot.spawn(|| Suspend(suspensions)).expect("the last one ended"));
            (0..=suspensions).for_each(|_| poll(executor));
        }
    });
}
