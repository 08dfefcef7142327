//! Where values are kept: the same store three times, with Ebb's references, with counted ones, and with a reclamation group for each session.
//!
//! A value belongs to the session of the client that put it, and goes with it. Others may watch it meanwhile; what becomes of a
//! value's memory when its session ends and somebody still watches is the difference between the two.

mod counted;
mod grouped;
mod immediate;

use std::sync::atomic::{AtomicUsize, Ordering};

use refs::Cx;

pub use counted::Counted;
pub use grouped::{Grouped, thread_time};
pub use immediate::Immediate;

/// How a watch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// The value was changed.
    Changed,
    /// There is no such value, or not any more.
    Gone,
    /// The session of the watcher ended: nobody wants to know any more.
    Unwanted,
    /// The watcher's session, or the value's, may have no more watches.
    Refused,
}

/// What became of a value that somebody put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// It is there.
    Done,
    /// There is no memory for it, or the session has ended.
    Refused,
}

/// A store of values by key.
pub trait Store: Default {
    /// What belongs to one client: its name, which can be kept across suspensions.
    type Session: Clone;

    /// Begins a session.
    fn open(&self, cx: &Cx) -> Self::Session;

    /// Ends a session: its values are gone, and whoever waits on its behalf is woken.
    #[cfg_attr(false, ebb_lint::never_suspends)]
    fn close(&self, session: Self::Session, cx: &mut Cx);

    /// Stores a value for a session, or changes the one that is there.
    fn put(&self, session: &Self::Session, key: u64, bytes: Payload, cx: &Cx) -> Stored;

    /// The size of a value in bytes.
    fn get(&self, key: u64, cx: &Cx) -> Option<usize>;

    /// Waits until a value is changed or gone, on behalf of a session.
    fn watch_async(&self, session: &Self::Session, key: u64, cx: &mut Cx) -> Watched;
}

static HELD: AtomicUsize = AtomicUsize::new(0);

/// How many bytes all values hold at this moment.
pub fn held_bytes() -> usize {
    HELD.load(Ordering::Relaxed)
}

/// The bytes of a value, counted as long as they are in memory.
pub struct Payload(Box<[u8]>);

impl Payload {
    /// So many bytes.
    pub fn new(len: usize) -> Self {
        HELD.fetch_add(len, Ordering::Relaxed);
        Payload(vec![0xeb; len].into())
    }

    /// They.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        HELD.fetch_sub(self.0.len(), Ordering::Relaxed);
    }
}
