#![doc = include_str!("../README.md")]
//!
//! # How it is made
//!
//! | file | what is in it |
//! | --- | --- |
//! | `class`, `calibrate` | classes of objects and what reclaiming one costs |
//! | `budget`, `charge`, `bundle` | nested budgets, and the values that say that something is paid for |
//! | `tree` | their arithmetic, with its invariants |
//! | `stock` | charges at hand, without atomic instructions |
//! | `scrub` | the tables of what leads out of a group and into it |
//! | `arena`, `chunk` | plain objects, and the pool of their chunks (all `unsafe` of the crate) |
//! | `mortuary`, `slots`, `chunked` | objects with destructors, which run after the kill, in steps |
//! | `group` | all of that for one client, and its death |
//!
//! # Panics
//!
//! A closure that makes an object or a link may panic: its charge is given back and the table is as before. A destructor may panic where the
//! caller drops what it was given, and in [`Mortuary::step`] and [`Group::kill`], which it leaves: what was not yet destroyed is destroyed on the way out, and the
//! budget then is not ended but closed. Nothing of the caller's runs while a lock of this crate is held.
#![no_std]
#![warn(missing_debug_implementations)]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod arena;
mod budget;
mod bundle;
mod calibrate;
mod charge;
mod chunk;
mod chunked;
mod class;
mod group;
mod mortuary;
mod scrub;
mod slots;
mod stock;
mod sync;
mod tree;

pub use arena::{Arena, Name, NoMemory};
pub use budget::{Budget, Denied, Limits, OwnedBudget, Usage};
pub use bundle::Bundle;
pub use calibrate::{Clock, Rounds, Samples, calibrate};
pub use charge::Charge;
pub use chunk::{CHUNK_ALIGN, CHUNK_BYTES, Chunks};
pub use class::{Class, Cost};
pub use group::{Group, Report};
pub use mortuary::{Contents, Mortuary, Objects};
pub use scrub::{ChargeFrom, Exports, Imports, Scrub};
pub use slots::Slot;
pub use stock::Stock;
pub use tree::{DEEPEST, Tree};
