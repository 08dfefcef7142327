//! [`Turn`]: whose write it is.

use refs::WeakRc;

use crate::process::Thread;
use crate::step::{Step, Stop};

/// An open terminal: it owns this, and a turn that was begun by it is over when it ends, which wakes who watches this.
pub(super) struct Presence;

/// Which thread's write goes through in pieces. It lasts as long as the call: the driver of write(2) ends it; or until what was written to is closed, for then the driver finds nothing
/// that it could end the turn of.
#[derive(Default)]
pub(super) struct Turn(Option<Holder>);

#[derive(Clone, Copy)]
struct Holder {
    thread: WeakRc<Thread>,
    /// By which it writes; `None`: the terminal ends with it.
    opened: Option<WeakRc<Presence>>,
}

impl Holder {
    fn is_there(&self) -> bool {
        !self.thread.is_gone() && !self.opened.is_some_and(|opened| opened.is_gone())
    }
}

impl Turn {
    /// The thread has the turn from now on.
    ///
    /// # Errors
    /// `Block` while another has it.
    pub(super) fn begin(&mut self, thread: WeakRc<Thread>, opened: Option<WeakRc<Presence>>) -> Step<()> {
        self.check(thread)?;
        self.0 = Some(Holder { thread, opened });
        Ok(())
    }

    /// That the thread may write something.
    ///
    /// # Errors
    /// `Block` while another has the turn.
    pub(super) fn check(&self, thread: WeakRc<Thread>) -> Step<()> {
        match self.0 {
            Some(other) if other.thread != thread && other.is_there() => Err(Stop::Block),
            _ => Ok(()),
        }
    }

    /// With whose end the turn is over at the latest: who waits for it watches that.
    pub(super) fn opened(&self) -> Option<WeakRc<Presence>> {
        self.0.and_then(|holder| holder.opened)
    }

    /// Ends the turn of the thread; false if it has none.
    pub(super) fn end(&mut self, thread: WeakRc<Thread>) -> bool {
        self.0.take_if(|other| other.thread == thread).is_some()
    }
}
