//! [`Registry`]: the open sockets of a family, by the numbers of their inodes, for those who list them. And [`Counted`], where only their number is told.
//!
//! Owner: an entry belongs to its socket and ends with it, in some hundred instructions; its charge is a part of the socket's. Nobody waits for one. Locks: a table's, with nothing else
//! locked behind it.

use core::sync::atomic::{AtomicUsize, Ordering};

use refs::{SpinLock, WeakRc};

use super::cursor::Cursor;
use crate::slots::Slots;

/// How many tables there are.
const TABLES: usize = 64;

/// A socket, with the number of its inode.
type Socket<T> = (u64, WeakRc<T>);

/// Sockets.
pub struct Registry<T: 'static> {
    tables: [SpinLock<Slots<Socket<T>>>; TABLES],
    count: AtomicUsize,
}

impl<T: Send + Sync + 'static> Default for Registry<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Send + Sync + 'static> Registry<T> {
    /// So many bytes a socket's entry takes at least.
    pub const ENTRY_BYTES: usize = Slots::<Socket<T>>::ENTRY_BYTES;

    /// An empty one.
    pub const fn new() -> Self {
        Registry { tables: [const { SpinLock::new(Slots::new()) }; TABLES], count: AtomicUsize::new(0) }
    }

    /// Enters a socket.
    pub fn enter(&'static self, inode: u64, name: WeakRc<T>) -> Entered<T> {
        let table = inode as usize % TABLES;
        let number = self.tables[table].with(|entries| entries.insert((inode, name)));
        self.count.fetch_add(1, Ordering::Relaxed);
        Entered { registry: self, table: table as u32, number }
    }

    /// The next socket for one who lists them.
    pub fn next(&self, cursor: &mut Cursor<u64>) -> Option<WeakRc<T>> {
        cursor.next(TABLES, |table, last| {
            let start = last.map_or(0, |last| last as u32 + 1);
            self.tables[table].with(|entries| entries.next(start).map(|(number, (_, name))| (number.into(), *name)))
        })
    }

    /// The socket with that inode.
    pub fn find(&self, inode: u64) -> Option<WeakRc<T>> {
        self.tables[inode as usize % TABLES].with(|entries| {
            let mut all = core::iter::successors(entries.next(0), |(number, _)| entries.next(number + 1));
            all.find_map(|(_, (number, name))| (*number == inode).then_some(*name))
        })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}

/// A socket's entry. Dropping it ends it.
pub struct Entered<T: Send + Sync + 'static> {
    registry: &'static Registry<T>,
    table: u32,
    number: u32,
}

impl<T: Send + Sync> Drop for Entered<T> {
    fn drop(&mut self) {
        self.registry.tables[self.table as usize].with(|entries| entries.remove(self.number));
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
