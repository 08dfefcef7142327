//! [`Turn`]: whose write it is.

use refs::WeakRc;

use crate::process::Thread;
use crate::step::{Step, Stop};

/// Which thread's write goes through in pieces. It lasts as long as the call: the driver of write(2) ends it, however the call ends.
#[derive(Default)]
pub(super) struct Turn(Option<WeakRc<Thread>>);

impl Turn {
    /// The thread has the turn from now on.
    ///
    /// # Errors
    /// `Block` while another has it.
    pub(super) fn begin(&mut self, thread: WeakRc<Thread>) -> Step<()> {
        self.check(thread)?;
        self.0 = Some(thread);
        Ok(())
    }

    /// That the thread may write something.
    ///
    /// # Errors
    /// `Block` while another has the turn.
    pub(super) fn check(&self, thread: WeakRc<Thread>) -> Step<()> {
        match self.0 {
            Some(other) if other != thread => Err(Stop::Block),
            _ => Ok(()),
        }
    }

    /// Ends the turn of the thread; false if it has none.
    pub(super) fn end(&mut self, thread: WeakRc<Thread>) -> bool {
        self.0.take_if(|other| *other == thread).is_some()
    }
}
