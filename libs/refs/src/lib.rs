#![doc = include_str!("../README.md")]
//!
//! # How it is made
//!
//! | file | what is in it |
//! | --- | --- |
//! | `cx` | [`Cx`], the right to suspend, and [`NoSuspend`], what a borrow needs |
//! | `object`, `temp`, `weak` | the references |
//! | `mode`, `local`, `group` | one thread or many; groups of objects |
//! | `link` | what a name looks at; generations |
//! | [`reclaim`] | when the memory of a dead object returns |
//! | `stable` | names that end with the next modification |
//! | `map`, `ids`, `handles`, `list`, `slab` | collections |
//! | `unsize` | trait objects |
//! | [`wait`], `spin` | wakers and wait lists, spin locks |
//! | [`dynamic`], `ledger` | the same under any executor, checked at run time |
#![no_std]
extern crate alloc;
#[cfg(any(test, ebb_shuttle))]
extern crate std;

mod cx;
pub mod dynamic;
mod group;
mod handles;
mod ids;
mod ledger;
mod link;
mod list;
mod local;
mod map;
mod mode;
mod object;
pub mod reclaim;
mod slab;
mod spin;
mod stable;
mod sync;
mod temp;
mod unsize;
pub mod wait;
mod weak;

pub use cx::{Cx, NoSuspend};
pub use group::{Group, GroupName, Grouped};
pub use handles::{Handle, HandleTable};
pub use ids::IdTable;
pub use ledger::Held;
pub use list::{List, Place};
pub use local::{InUse, Local, Realm};
pub use map::Map;
pub use mode::{Home, Mode, Shared};
pub use object::{Dying, StrongRc};
pub use slab::Slab;
pub use spin::{RawSpin, SpinGuard, SpinLock};
pub use stable::{Lost, ReadGuard, StableRc, Versioned, WriteGuard};
pub use temp::TempRc;
pub use wait::{WaitList, WakeSlot, Waker};
pub use weak::{Gone, Mortal, WeakRc};
