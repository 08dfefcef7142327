//! References to shared objects that cannot outlive a suspension.
//!
//! The running task owns exactly one [`Cx`], "the right to suspend". Whatever *may suspend* takes `&mut Cx`; whatever is
//! *borrowed from shared state* (a [`TempRc`], a [`SpinGuard`]) carries a lifetime taken from `&Cx`. So the borrow checker
//! rejects each program that holds such a thing across a suspension, at no cost at run time:
//!
//! - [`StrongRc`] owns an object (with others, where the object is entered in several collections). It stays in collections
//!   and in the fields of other objects: it has neither `Clone` nor `Deref`.
//! - [`TempRc`] is the object for now: one pointer, free to take and to drop.
//! - [`WeakRc`] is the object's name across suspensions: `Copy`, free to drop, and it fails to upgrade from the moment the
//!   object is destroyed.
//! - [`Dying`] is what a collection gives back on removal: ownership that can only be ended.
//!
//! Destruction has two halves. *Logically* an object is dead at once: its link's generation moves on, so each upgrade fails
//! from here on, and who waits for its death ([`WeakRc::watch`]) is woken. Its *memory* is freed at once where the caller
//! shows `&mut Cx`, else at the next suspension ([`reclaim`]), because only then no `TempRc` can be left.
//!
//! Waiting is here too ([`wait`]), because the death of an object is something one waits for.
#![no_std]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod cx;
mod handles;
mod ids;
mod link;
mod object;
pub mod reclaim;
mod spin;
pub mod wait;

pub use cx::{Cx, NoSuspend};
pub use handles::{Handle, HandleTable};
pub use ids::IdTable;
pub use object::{Dying, Gone, StrongRc, TempRc, WeakRc};
pub use spin::{RawSpin, SpinGuard, SpinLock};
pub use wait::{WaitList, WakeSlot, Waker};
