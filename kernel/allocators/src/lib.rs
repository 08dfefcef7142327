//! Which frame and which slab is used next: the policies that [`frame::mm`] asks.
//!
//! They are a crate of their own because two images need them: the kernel, and the one whose tests run inside the framework, which is
//! built without the rest of the kernel. They decide only: what is free, and that nobody has a frame twice, is the framework's to know.
#![no_std]
#![forbid(unsafe_code)]

pub mod buddy;
pub mod slab;
