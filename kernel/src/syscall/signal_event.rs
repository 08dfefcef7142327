//! `struct sigevent`: how a program is told of a timer or a message.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// What is looked at of it.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SignalEvent {
    /// `sigev_value`.
    pub value: u64,
    /// `sigev_signo`.
    pub signal: i32,
    /// `sigev_notify`.
    pub notify: i32,
    /// `sigev_notify_thread_id`.
    pub thread: i32,
    padding: i32,
}
