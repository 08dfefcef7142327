//! What the programs in `examples/` have in common.

use std::ops::ControlFlow;

use tasks::{Body, Cx, Fifo, HeapStacks, Hooks, Next, Worker};

struct Stay;

impl Hooks for Stay {
    fn idle(&self, _: &Worker) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

struct Run<F>(F);

impl<F: FnMut(&mut Cx) + Send> Body for Run<F> {
    fn run_async(&mut self, cx: &mut Cx) -> Next {
        (self.0)(cx);
        Next::End
    }
}

/// Runs `body` as `frame` runs the kernel's first task: one worker, on one core.
pub fn boot(body: impl FnMut(&mut Cx) + Send + 'static) {
    static FIFO: Fifo = Fifo::new();
    static STACKS: HeapStacks = HeapStacks::new(1 << 18);
    static WORKER: Worker = Worker::new(0, &FIFO, &STACKS, &Stay);
    tasks::spawn(&FIFO, Box::new(Run(body)), |_, _| ());
    // SAFETY: the only call, and no context is on this stack.
    unsafe { WORKER.run() };
}
