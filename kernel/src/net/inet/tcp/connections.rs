//! [`Entry`]: a connection in the table of all, by its two addresses: no two are alike, and procfs lists them.
//!
//! Owner: the endpoint, with which it ends; its charge is a part of the endpoint's.

use alloc::collections::BTreeMap;
use core::ops::Bound;

use refs::{SpinLock, WeakRc};

use super::Endpoint;
use crate::error::{Errno, Result};
use crate::net::cursor::Cursor;
use crate::net::inet::address::Address;

/// How many tables there are.
const TABLES: usize = 64;

type Table = SpinLock<BTreeMap<(Address, Address), WeakRc<Endpoint>>>;

static CONNECTIONS: [Table; TABLES] = [const { SpinLock::new(BTreeMap::new()) }; TABLES];

/// That of a connection's local and remote address. Dropping it ends the entry.
pub struct Entry {
    addresses: (Address, Address),
}

fn table((local, remote): &(Address, Address)) -> &'static Table {
    let hash = u32::from(local.port).wrapping_mul(0x9e37_79b1) ^ u32::from(remote.port).wrapping_mul(0x85eb_ca6b);
    &CONNECTIONS[(hash >> 20) as usize % TABLES]
}

impl Entry {
    /// Enters a connection.
    ///
    /// # Errors
    /// EADDRNOTAVAIL: there is one with these addresses.
    pub fn new(local: Address, remote: Address, endpoint: WeakRc<Endpoint>) -> Result<Entry> {
        let addresses = (local, remote);
        table(&addresses).with(|table| {
            if table.contains_key(&addresses) {
                return Err(Errno::EADDRNOTAVAIL);
            }
            table.insert(addresses, endpoint);
            Ok(Entry { addresses })
        })
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        table(&self.addresses).with(|table| table.remove(&self.addresses));
    }
}

/// The connection with these addresses.
pub fn find(local: Address, remote: Address) -> Option<WeakRc<Endpoint>> {
    let addresses = (local, remote);
    table(&addresses).with(|table| table.get(&addresses).copied())
}

/// The next connection for one who lists them.
pub fn next(cursor: &mut Cursor<(Address, Address)>) -> Option<WeakRc<Endpoint>> {
    cursor.next(TABLES, |table, last| {
        let start = last.map_or(Bound::Unbounded, Bound::Excluded);
        CONNECTIONS[table]
            .with(|table| table.range((start, Bound::Unbounded)).next().map(|(addresses, name)| (*addresses, *name)))
    })
}
