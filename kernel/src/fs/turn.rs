//! [`Turn`]: calls on one description that wait in between and must not mix come one after the other.

use frame::Cx;
use refs::{SpinLock, WaitList, Waker};
use tasks::TaskRef;

use crate::step::{Step, Stop};

/// Whose call goes through just now. Who comes meanwhile waits until it has [ended](Self::end), or its task is gone.
pub(super) struct Turn {
    whose: SpinLock<Option<TaskRef>>,
    ended: WaitList,
}

impl Turn {
    /// Nobody's.
    pub const fn new() -> Self {
        Turn { whose: SpinLock::new(None), ended: WaitList::new() }
    }

    /// It is the caller's from now on, or still.
    ///
    /// # Errors
    /// `BlockOnDevice`: it is another's. That ends soon, so O_NONBLOCK does not count.
    pub fn begin(&self, cx: &Cx) -> Step<()> {
        let me = tasks::current(cx);
        let mut whose = self.whose.lock(cx);
        if whose.is_some_and(|other| other != me && other.is_alive()) {
            return Err(Stop::BlockOnDevice);
        }
        *whose = Some(me);
        Ok(())
    }

    /// It is not the caller's any more.
    pub fn end(&self, cx: &Cx) {
        let me = tasks::current(cx);
        if self.whose.lock(cx).take_if(|whose| *whose == me).is_some() {
            self.ended.wake_all();
        }
    }

    /// Has `waker` woken when it ends.
    pub fn watch(&self, waker: Waker, cx: &Cx) {
        self.ended.register(waker, cx);
    }
}
