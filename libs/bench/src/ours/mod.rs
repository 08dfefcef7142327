//! Ours, behind the same functions as the [peers](crate::peers).

pub mod c;
pub mod ipc;
pub mod tasks;
