//! [`Registry`]: the open sockets of a family, by the numbers of their inodes, for those who list them. And [`Counted`], where only their number is told.
//!
//! Owner: an entry belongs to its socket and ends with it, in some hundred instructions; its charge is a part of the socket's. Nobody waits for one. Locks: a table's, with nothing else
//! locked behind it.

use alloc::collections::BTreeMap;
use core::ops::Bound;
use core::sync::atomic::{AtomicUsize, Ordering};

use refs::{SpinLock, WeakRc};

use super::cursor::Cursor;
use crate::memory::slot_bytes;

/// How many tables there are.
const TABLES: usize = 64;

/// Sockets.
pub struct Registry<T: 'static> {
    tables: [SpinLock<BTreeMap<u64, WeakRc<T>>>; TABLES],
    count: AtomicUsize,
}

impl<T: Send + Sync + 'static> Default for Registry<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Send + Sync + 'static> Registry<T> {
    /// So many bytes a socket's entry takes at least: its part of a node of the map that is full.
    pub const ENTRY_BYTES: usize = slot_bytes(size_of::<(u64, WeakRc<T>)>() * 11) / 11;

    /// An empty one.
    pub const fn new() -> Self {
        Registry { tables: [const { SpinLock::new(BTreeMap::new()) }; TABLES], count: AtomicUsize::new(0) }
    }

    /// Enters a socket.
    pub fn enter(&'static self, inode: u64, name: WeakRc<T>) -> Entered<T> {
        self.tables[inode as usize % TABLES].with(|table| table.insert(inode, name));
        self.count.fetch_add(1, Ordering::Relaxed);
        Entered { registry: self, inode }
    }

    /// The next socket for one who lists them.
    pub fn next(&self, cursor: &mut Cursor<u64>) -> Option<WeakRc<T>> {
        cursor.next(TABLES, |table, last| {
            let start = last.map_or(Bound::Unbounded, Bound::Excluded);
            self.tables[table]
                .with(|table| table.range((start, Bound::Unbounded)).next().map(|(inode, name)| (*inode, *name)))
        })
    }

    /// The socket with that inode.
    pub fn find(&self, inode: u64) -> Option<WeakRc<T>> {
        self.tables[inode as usize % TABLES].with(|table| table.get(&inode).copied())
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}

/// A socket's entry. Dropping it ends it.
pub struct Entered<T: Send + Sync + 'static> {
    registry: &'static Registry<T>,
    inode: u64,
}

impl<T: Send + Sync> Drop for Entered<T> {
    fn drop(&mut self) {
        self.registry.tables[self.inode as usize % TABLES].with(|table| table.remove(&self.inode));
        self.registry.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One of those that a number counts, while it exists.
pub struct Counted(&'static AtomicUsize);

impl Counted {
    /// One more.
    pub fn new(count: &'static AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Counted(count)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
