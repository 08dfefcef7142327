#![doc = include_str!("../README.md")]
//!
//! # How it is made
//!
//! | file | what is in it |
//! | --- | --- |
//! | `cx` | [`Cx`], the right to suspend, and [`NoSuspend`], what a borrow needs |
//! | `object`, `temp`, `weak` | the references |
//! | `mode`, `local`, `group` | one thread or many; groups of objects |
//! | `link` | what a name looks at; generations; the queue of the dead |
//! | `link_pages` | the memory of links, which goes back after a peak |
//! | [`reclaim`] | when the memory of a dead object returns |
//! | `processor` | what a kernel says of its processor |
//! | `stable` | names that end with the next modification |
//! | `map`, `ids`, `handles`, `list`, `slab` | collections |
//! | `shared_slice` | what tables that are copies of each other have in common |
//! | `unsize` | trait objects |
//! | [`wait`], `spin`, `waiting` | wakers and wait lists, spin locks, which of them cores wait for |
//! | `lock_order` (a feature) | in which order locks are taken |
//! | `stalls` (a feature) | cores that stand still now and then, to make races frequent |
//! | `dynamic` (a feature), `ledger` | the same under any executor, checked at run time |
//!
//! # Panics
//!
//! - What *makes* an object may panic ([`StrongRc::new_cyclic`], [`Slab::insert_cyclic`]): its memory is given back, its name leads nowhere for
//!   ever, and the panic goes on to the caller. So may a *teardown* ([`StrongRc::destroy_async`]): the object is freed as if it had returned.
//! - An object's *destructor* must not: it runs at the suspension of some task, which has nothing to do with it and can neither go on nor be
//!   left. A destructor that panics ends the program, with its message and one that says so. The same holds for what makes a
//!   woken task ready ([`WakeSlot`]).
//! - Nothing of the caller's runs while a lock of this crate is held, except what is given to [`SpinLock::with`] and [`IdTable::retain`] (the lock
//!   is given back if it panics), and keys that are compared and cloned ([`IdTable`]). What a table lets go of ends when its lock is free again.
#![no_std]
#![warn(missing_debug_implementations)]
extern crate alloc;
#[cfg(any(test, ebb_shuttle))]
extern crate std;

mod cx;
#[cfg(feature = "dynamic")]
pub mod dynamic;
mod group;
mod handles;
mod ids;
#[cfg(any(feature = "dynamic", feature = "check-temps"))]
mod ledger;
mod link;
#[cfg(not(any(ebb_loom, ebb_shuttle)))]
mod link_pages;
mod list;
mod local;
#[cfg(all(feature = "check-locks", not(any(ebb_loom, ebb_shuttle))))]
pub mod lock_order;
mod map;
mod mode;
mod object;
mod pooled_slot;
mod processor;
pub mod reclaim;
mod shared_slice;
mod slab;
#[cfg(not(any(ebb_loom, ebb_shuttle)))]
mod spare_links;
mod spin;
mod stable;
#[cfg(feature = "stalls")]
mod stalls;
mod sync;
mod temp;
mod unsize;
pub mod wait;
mod wait_queue;
#[cfg(not(any(ebb_loom, ebb_shuttle)))]
mod waiting;
mod wake_later;
mod weak;

pub use cx::{Cx, NoSuspend};
pub use group::{Group, GroupName, Grouped};
pub use handles::{Handle, HandleEnd, HandleTable};
pub use ids::IdTable;
#[cfg(feature = "dynamic")]
pub use ledger::Held;
#[cfg(not(any(ebb_loom, ebb_shuttle)))]
pub use link::set_link_pages;
#[cfg(not(any(ebb_loom, ebb_shuttle)))]
pub use link_pages::{LINK_PAGE, LinkPages};
pub use list::{List, Position};
pub use local::{InUse, Local, Realm};
pub use map::Map;
pub use mode::{Home, Mode, Shared};
pub use object::{Dying, StrongRc, UnseenRc};
pub use pooled_slot::{Pooled, PooledSlot, WORDS};
#[cfg(not(any(ebb_loom, ebb_shuttle)))]
pub use processor::set_processor;
pub use processor::{Processor, Wait, spin_loop};
pub use slab::Slab;
pub use spin::{RawSpin, SpinGuard, SpinLock};
pub use stable::{Lost, ReadGuard, StableRc, Versioned, WriteGuard};
pub use temp::TempRc;
pub use wait::{WaitList, WakeSlot, Waker};
#[cfg(not(ebb_loom))]
pub use wake_later::LATER;
pub use wake_later::{IsFor, WakeLater};
pub use weak::{Gone, Mortal, WeakRc};
