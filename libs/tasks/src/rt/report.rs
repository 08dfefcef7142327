//! What all tasks of a thread do just now.

use core::fmt::{Result, Write};

use refs::Cx;

use super::layout::{Awe, Runtime, awe_flags, states};
use super::runtime::runtime;

/// Writes one line for each task of this thread: its name, what it does or waits for, and how much of its stack it uses. Allocates
/// nothing.
///
/// ```text
/// task 0x7f0c2bfe1000 "main": running
/// task 0x7f0c2bfe10c0 "reader": waits for its waker; 312 of 65280 bytes of stack
/// ```
///
/// # Errors
/// Those of `out`.
pub fn dump(cx: &Cx, out: &mut dyn Write) -> Result {
    dump_runtime(runtime(cx), out)
}

/// Does what [`dump`] does, on the thread whose run-time it is.
pub(crate) fn dump_runtime(runtime: &Runtime, out: &mut dyn Write) -> Result {
    let _marks = Marks::new(runtime);
    runtime.tasks().try_for_each(|awe| runtime.describe(awe, out))
}

/// How many tasks of this thread have not ended.
pub fn count(cx: &Cx) -> usize {
    let runtime = runtime(cx);
    let _marks = Marks::new(runtime);
    runtime.tasks().count()
}

/// What is in the pools is marked as long as this lives, also if whoever is written to panics.
struct Marks<'a>(&'a Runtime);

impl<'a> Marks<'a> {
    fn new(runtime: &'a Runtime) -> Self {
        runtime.mark_unused(true);
        Marks(runtime)
    }
}

impl Drop for Marks<'_> {
    fn drop(&mut self) {
        self.0.mark_unused(false);
    }
}

impl Runtime {
    /// Marks what is in the pools.
    fn mark_unused(&self, unused: bool) {
        for pool in [&self.free, &self.bare] {
            let mut next = pool.get();
            while let Some(awe) = next {
                let flags = awe.flags.get() & !awe_flags::UNUSED;
                awe.flags.set(if unused { flags | awe_flags::UNUSED } else { flags });
                next = awe.next.get();
            }
        }
    }

    /// All tasks that are not marked.
    fn tasks(&self) -> impl Iterator<Item = &'static Awe> {
        core::iter::successors(self.all.get(), |awe| awe.all_next.get())
            .filter(|awe| awe.flags.get() & awe_flags::UNUSED == 0)
    }

    fn describe(&self, awe: &'static Awe, out: &mut dyn Write) -> Result {
        write!(out, "task {awe:p} {:?}: ", awe.name.get())?;
        let running = core::ptr::eq(self.running(), awe);
        match awe.state() {
            states::ACTIVE if running => out.write_str("running")?,
            states::ACTIVE if self.is_queued(awe) => out.write_str("queued")?,
            states::ACTIVE => out.write_str("has called a task that has not suspended yet")?,
            states::FINISHING => out.write_str("waits for the tasks of a block")?,
            _ if !awe.waits_for.get().is_empty() => write!(out, "waits for {}", awe.waits_for.get())?,
            states::PARKED => out.write_str("waits for its name")?,
            _ => out.write_str("waits for its waker")?,
        }
        let (bottom, top) = (awe.stack.get().0, awe.stack_top.get());
        if bottom != 0 && !running {
            write!(out, "; {} of {} bytes of stack", awe.context.used_bytes(top), top - bottom)?;
        }
        out.write_char('\n')
    }
}
