//! [`Place`]: where what one who waits is given comes to.
//!
//! Whoever changes an object gives to those who stand in it, in their order, before the call returns; so nobody else gets it, and nothing is missed that was there for a moment only. The place is
//! owned by the object and by the call that waits, together: what was given is not lost when the object ends. Who has left the object, for whatever reason, looks into its place and is
//! given nothing any more: leaving and giving are done with the object locked.

use frame::Cx;
use refs::SpinLock;

/// A place for one thing.
pub struct Place<T>(SpinLock<Option<T>>);

impl<T> Default for Place<T> {
    fn default() -> Self {
        Place(SpinLock::new(None))
    }
}

impl<T: Send> Place<T> {
    /// Gives to who waits, and stands in the object no more.
    pub fn give(&self, given: T, cx: &Cx) {
        *self.0.lock(cx) = Some(given);
    }

    /// What was given, once.
    pub fn take(&self, cx: &Cx) -> Option<T> {
        self.0.lock(cx).take()
    }
}
