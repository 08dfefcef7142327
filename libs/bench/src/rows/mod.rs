//! The lines of each library's table: what is measured, beside whom, and what ours is to reach.

pub mod ipc;
pub mod memory;
pub mod refs;
pub mod tasks;
