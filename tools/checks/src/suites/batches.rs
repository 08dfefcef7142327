//! Running tests in machines, some tests a boot.
//!
//! A test that does not end within its limit, or that takes the system down, costs only itself: the next runs in a machine that was booted anew.

use super::verdict::{Kept, Verdict};
use crate::SystemArguments;
use anyhow::{Context, Result};
use ebb_guest::{Error, Exit, Guest, Input, Kernel, Machine, Program};
use indicatif::ProgressBar;
use std::sync::Mutex;
use std::sync::mpsc::Sender;
use std::time::Duration;
use tempfile::TempDir;

/// A test suite, and how its tests run in a machine.
pub trait Suite: Sync {
    /// So many tests run in a machine before the next is booted.
    const TESTS_A_BOOT: usize;
    /// Far more than any test needs that ends by itself.
    const LIMIT: Duration;
    /// Whether a test may run where another one has failed.
    const AFTER_A_FAILURE: Reuse;

    /// The names of all tests.
    fn tests(&self) -> Vec<String>;

    /// What all machines have.
    fn machine(&self, kernel: Kernel, arguments: &SystemArguments) -> Machine;

    /// Boots such a machine for these tests; the directory has what goes with it.
    ///
    /// # Errors
    /// It does not boot, or what it needs cannot be made.
    fn boot(&self, machine: Machine, tests: &[String]) -> Result<(Guest, TempDir)>;

    /// What runs a test.
    fn program(&self, test: &str) -> Program;

    /// What the end and the output of a test say.
    fn verdict(exit: Exit, output: &str) -> Verdict;
}

/// What becomes of a machine in which a test has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// It runs the next test.
    Kept,
    /// The next test has a new one.
    Anew,
}

/// Runs tests of a suite on a kernel.
pub struct Worker<'a, S> {
    pub suite: &'a S,
    pub machine: Machine,
    /// Where results go.
    pub kept: &'a Kept,
    pub progress: &'a ProgressBar,
    /// Is told each test's name and verdict.
    pub done: Sender<(String, Verdict)>,
}

impl<S: Suite> Worker<'_, S> {
    /// Runs these tests on so many machines at a time.
    pub fn run(&self, tests: &[String], jobs: usize) -> Result<()> {
        let batches = Mutex::new(tests.chunks(S::TESTS_A_BOOT));
        let next = || batches.lock().ok().and_then(|mut batches| batches.next());
        let work = |done: Sender<(String, Verdict)>| -> Result<()> {
            while let Some(batch) = next() {
                self.run_batch(batch, &done)?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let start = |_| {
                let done = self.done.clone();
                scope.spawn(|| work(done))
            };
            let workers: Vec<_> = (0..jobs.max(1)).map(start).collect();
            workers
                .into_iter()
                .try_for_each(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }

    fn run_batch(&self, tests: &[String], done: &Sender<(String, Verdict)>) -> Result<()> {
        let mut running = None;
        for test in tests {
            self.progress.set_message(format!("{test} on {}", self.machine.kernel.name()));
            let (guest, directory) = match running.take() {
                Some(running) => running,
                None => self.suite.boot(self.machine.clone(), tests)?,
            };
            let (verdict, output, guest) = self.run_test(test, guest)?;
            let is_reused = S::AFTER_A_FAILURE == Reuse::Kept || verdict.leaves_nothing();
            running = guest.filter(|_| is_reused).map(|guest| (guest, directory));
            self.kept.put(test, verdict, &output)?;
            // Nobody may listen any more.
            let _ = done.send((test.clone(), verdict));
            self.progress.inc(1);
        }
        Ok(())
    }

    /// Runs a test; the machine is given back if it can be used further.
    fn run_test(&self, test: &str, mut guest: Guest) -> Result<(Verdict, String, Option<Guest>)> {
        let mut output = Vec::new();
        let ended = guest.stream(&self.suite.program(test), Input::Null, Some(S::LIMIT), |_, bytes| {
            output.extend_from_slice(bytes);
            Ok(())
        });
        let mut output = String::from_utf8_lossy(&output).into_owned();
        Ok(match ended {
            Ok(exit) => (S::verdict(exit, &output), output, Some(guest)),
            Err(error @ (Error::TimedOut(_) | Error::Panicked(_) | Error::Died { .. })) => {
                let verdict = if matches!(error, Error::TimedOut(_)) { Verdict::TimedOut } else { Verdict::SystemLost };
                output.push_str(&format!("\n{error}\n"));
                (verdict, output, None)
            }
            Err(error) => return Err(error).with_context(|| format!("running {test}")),
        })
    }
}
