//! [`Part`]: how a task that waits comes to what it waits at, each time anew.

use core::convert::Infallible;
use core::fmt;

use refs::{Cx, Gone, WeakRc};

use crate::rt::Canceled;

/// Where a primitive is: borrowed, or part of an object that may be destroyed while a task waits.
pub(super) trait Reach<T> {
    /// Why it cannot be reached.
    type Lost;

    fn with<R>(&self, cx: &Cx, use_it: impl FnOnce(&T) -> R) -> Result<R, Self::Lost>;
}

impl<T> Reach<T> for &T {
    type Lost = Infallible;

    fn with<R>(&self, _cx: &Cx, use_it: impl FnOnce(&T) -> R) -> Result<R, Infallible> {
        Ok(use_it(self))
    }
}

/// A part of an object that may be destroyed: the object's name, and which part.
pub struct Part<O: 'static, T> {
    object: WeakRc<O>,
    part: fn(&O) -> &T,
}

impl<O, T> Part<O, T> {
    /// The part of `object` to which `part` leads.
    pub fn new(object: WeakRc<O>, part: fn(&O) -> &T) -> Self {
        Part { object, part }
    }
}

impl<O, T> fmt::Debug for Part<O, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Part<{}, {}>", core::any::type_name::<O>(), core::any::type_name::<T>())
    }
}

impl<O, T> Clone for Part<O, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<O, T> Copy for Part<O, T> {}

impl<O, T> Reach<T> for Part<O, T> {
    type Lost = Gone;

    fn with<R>(&self, cx: &Cx, use_it: impl FnOnce(&T) -> R) -> Result<R, Gone> {
        Ok(use_it((self.part)(&*self.object.upgrade(cx)?)))
    }
}

/// Why a wait at a [`Part`] ended without what it was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotDone {
    /// The object was destroyed.
    Gone,
    /// The block was asked to end.
    Canceled,
}

impl From<Gone> for NotDone {
    fn from(_: Gone) -> Self {
        NotDone::Gone
    }
}

impl From<Canceled> for NotDone {
    fn from(_: Canceled) -> Self {
        NotDone::Canceled
    }
}

impl From<Infallible> for NotDone {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl fmt::Display for NotDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotDone::Gone => Gone.fmt(f),
            NotDone::Canceled => Canceled.fmt(f),
        }
    }
}

impl core::error::Error for NotDone {}
