//! [`Ports`]: who has which port of a protocol, and who is reached there.
//!
//! ```text
//!   Ports -- 64 tables by port --> Port -- users: how many sockets have it in the same way (Key), and how many remnants
//!                                      `-- reachable: the sockets that are found there
//!   socket --> Bound: its use of a port; dropping it gives the port back
//!   what is left of a connection --> Remnant: a use that goes on for a while without the socket
//! ```
//!
//! A port has as many entries in `users` as there are different ways in which it is used, however many sockets use it: a server's
//! connections are one entry with a count.
//!
//! Owner: a use belongs to its socket, and ends with it in some hundred instructions; its charge is a part of the socket's. Nobody waits for a port. Locks: a table's, with nothing else locked behind it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::mem;
use core::net::IpAddr;
use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use frame::Cx;
use refs::{SpinLock, WeakRc};

use super::address::Address;
use crate::drivers::random;
use crate::error::{Errno, Result};
use crate::net::cursor::Cursor;
use crate::sysctl::Tunable;
use crate::table::Table;

/// The first and the last of the ports that sockets get which ask for none, in one word.
static EPHEMERAL: AtomicU32 = AtomicU32::new(32_768 << 16 | 60_999);
/// The first port that needs no privilege (`net.ipv4.ip_unprivileged_port_start`).
pub static FIRST_UNPRIVILEGED: Tunable = Tunable::new(1024, 0..=65_535);
/// How many tables there are.
const TABLES: usize = 64;
const WORDS: usize = 1024;

/// The ports that sockets get which ask for none (`net.ipv4.ip_local_port_range`).
pub fn ephemeral() -> RangeInclusive<u16> {
    let word = EPHEMERAL.load(Ordering::Relaxed);
    (word >> 16) as u16..=word as u16
}

/// Changes which these are.
///
/// # Errors
/// EINVAL: there are none, or some of them need a privilege.
pub fn set_ephemeral(first: u16, last: u16) -> Result<()> {
    if first == 0 || first > last || u64::from(first) < FIRST_UNPRIVILEGED.get() {
        return Err(Errno::EINVAL);
    }
    EPHEMERAL.store(u32::from(first) << 16 | u32::from(last), Ordering::Relaxed);
    Ok(())
}

/// In which way a socket uses a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its address, or any.
    pub ip: IpAddr,
    /// Any address means those of IPv6 only.
    pub only_v6: bool,
    /// SO_REUSEADDR.
    pub reuses: bool,
    /// SO_REUSEPORT.
    pub shares: bool,
    /// Whose it is.
    pub user: u32,
    /// It accepts connections.
    pub listens: bool,
}

impl Key {
    /// Whether it is reached by what is sent to an address.
    fn accepts(&self, ip: IpAddr) -> bool {
        match self.ip {
            IpAddr::V6(own) if own.is_unspecified() => ip.is_ipv6() || !self.only_v6,
            own if own.is_unspecified() => ip.is_ipv4(),
            own => own == ip,
        }
    }

    /// Whether some address leads to both.
    fn overlaps(&self, other: &Key) -> bool {
        match (self.ip.is_unspecified(), other.ip.is_unspecified()) {
            (true, true) => {
                let only = |one: &Key, other: &Key| one.ip.is_ipv6() && one.only_v6 && other.ip.is_ipv4();
                !only(self, other) && !only(other, self)
            }
            (true, false) => self.accepts(other.ip),
            (false, true) => other.accepts(self.ip),
            (false, false) => self.ip == other.ip,
        }
    }

    /// Whether it cannot have the port of `other`.
    fn conflicts(&self, other: &Key) -> bool {
        let both_reuse = self.reuses && other.reuses && !other.listens;
        let both_share = self.shares && other.shares && self.user == other.user;
        !both_reuse && !both_share && self.overlaps(other)
    }
}

/// Those who use a port in the same way.
struct Users {
    key: Key,
    sockets: usize,
    /// How many have only left their use behind, and when the last of these is over.
    remnants: usize,
    last_end: u64,
}

impl Users {
    fn is_empty(&self) -> bool {
        self.sockets == 0 && self.remnants == 0
    }

    /// Whether all are over.
    fn is_over(&self, now: u64) -> bool {
        self.sockets == 0 && (self.remnants == 0 || self.last_end <= now)
    }
}

/// A socket that is found at a port.
struct Reachable<T: 'static> {
    /// Its number among those of the port, for those who list them: the later it came, the higher.
    serial: u64,
    key: Key,
    /// It is reached from there only.
    remote: Option<Address>,
    owner: WeakRc<T>,
}

impl<T: 'static> Reachable<T> {
    /// How well what is sent from one address to another fits; `None`: not at all.
    fn score(&self, to: IpAddr, from: Address) -> Option<u32> {
        if !self.key.accepts(to) || self.owner.is_gone() || self.remote.is_some_and(|remote| remote != from) {
            return None;
        }
        let is_exact = !self.key.ip.is_unspecified();
        let is_of_family = self.key.ip.is_ipv4() == to.is_ipv4();
        Some(4 * u32::from(self.remote.is_some()) + 2 * u32::from(is_exact) + u32::from(is_of_family))
    }
}

struct Port<T: 'static> {
    users: Table<Users>,
    /// The last that came is the first.
    reachable: Vec<Reachable<T>>,
}

impl<T: 'static> Port<T> {
    const EMPTY: Self = Port { users: Table::new(), reachable: Vec::new() };

    fn check(&mut self, key: &Key) -> Result<()> {
        let is_used = self.users.iter().any(|users| key.conflicts(&users.key) && !users.is_over(frame::time::now()));
        if is_used { Err(Errno::EADDRINUSE) } else { Ok(()) }
    }

    fn users(&mut self, key: Key) -> &mut Users {
        let at = self.users.iter().position(|users| users.key == key);
        let at = at.unwrap_or_else(|| self.users.push(Users { key, sockets: 0, remnants: 0, last_end: 0 }));
        &mut self.users[at]
    }

    fn leave(&mut self, key: &Key) {
        self.end(key, |users| users.sockets -= 1);
    }

    fn end(&mut self, key: &Key, end: impl FnOnce(&mut Users)) {
        let at = self.users.iter().position(|users| users.key == *key);
        if let Some(at) = at {
            end(&mut self.users[at]);
            if self.users[at].is_empty() {
                self.users.swap_remove(at);
            }
        }
    }
}

/// How far those were listed who are found at ports: up to a port, and a number among those of it.
pub type PortCursor = Cursor<(u16, u64)>;

type PortTable<T> = SpinLock<BTreeMap<u16, Port<T>>>;

/// The ports of a protocol.
pub struct Ports<T: 'static> {
    /// A bit for each port that has users.
    used: [AtomicU64; WORDS],
    tables: [PortTable<T>; TABLES],
}

impl<T: Send + Sync> Ports<T> {
    /// All of them are free.
    pub(super) const fn new() -> Self {
        Ports { used: [const { AtomicU64::new(0) }; WORDS], tables: [const { SpinLock::new(BTreeMap::new()) }; TABLES] }
    }

    fn table(&self, port: u16) -> &PortTable<T> {
        &self.tables[usize::from(port) % TABLES]
    }

    fn note_used(&self, port: u16, is_used: bool) {
        let (word, bit) = (&self.used[usize::from(port) / 64], 1 << (port % 64));
        if is_used {
            word.fetch_or(bit, Ordering::Relaxed);
        } else {
            word.fetch_and(!bit, Ordering::Relaxed);
        }
    }

    /// Takes a port.
    ///
    /// # Errors
    /// EADDRINUSE.
    pub fn claim(&'static self, port: u16, key: Key) -> Result<Bound<T>> {
        self.enter(port, key, Port::check)
    }

    /// Takes a port beside those who have it: for a connection, which nobody mistakes for another.
    pub fn join(&'static self, port: u16, key: Key) -> Result<Bound<T>> {
        self.enter(port, key, |_, _| Ok(()))
    }

    fn enter(
        &'static self,
        port: u16,
        key: Key,
        check: impl FnOnce(&mut Port<T>, &Key) -> Result<()> + Send,
    ) -> Result<Bound<T>> {
        self.table(port).with(|table| {
            let entry = table.entry(port).or_insert(Port::EMPTY);
            let outcome = check(entry, &key);
            if outcome.is_ok() {
                entry.users(key).sockets += 1;
                self.note_used(port, true);
            } else if entry.users.is_empty() {
                table.remove(&port);
                self.note_used(port, false);
            }
            outcome
        })?;
        Ok(Bound { ports: self, port, key })
    }

    /// Takes a port that nobody has, from a random one on.
    ///
    /// # Errors
    /// EADDRINUSE: there is none.
    pub fn claim_any(&'static self, key: Key, cx: &Cx) -> Result<Bound<T>> {
        let (first, last) = ephemeral().into_inner();
        let count = u32::from(last - first) + 1;
        let start = u32::from_le_bytes(random::bytes(cx)) % count;
        let mut at = 0;
        while at < count {
            let port = first + ((start + at) % count) as u16;
            let word = self.used[usize::from(port) / 64].load(Ordering::Relaxed);
            if word == u64::MAX && port.is_multiple_of(64) && last - port >= 64 {
                at += 64;
                continue;
            }
            at += 1;
            if word & (1 << (port % 64)) == 0
                && let Ok(bound) = self.claim(port, key)
            {
                return Ok(bound);
            }
        }
        Err(Errno::EADDRINUSE)
    }

    /// A remnant goes on until then.
    pub fn extend(&self, port: u16, key: &Key, until: u64) {
        self.table(port).with(|table| {
            let Some(port) = table.get_mut(&port) else { return };
            let at = port.users.iter().position(|users| users.key == *key);
            if let Some(users) = at.and_then(|at| port.users.get_mut(at)) {
                users.last_end = users.last_end.max(until);
            }
        });
    }

    /// One of the uses of a port ends.
    fn end(&self, port: u16, key: &Key, end: impl FnOnce(&mut Users) + Send) {
        self.table(port).with(|table| {
            let Some(entry) = table.get_mut(&port) else { return };
            entry.end(key, end);
            if entry.users.is_empty() {
                table.remove(&port);
                self.note_used(port, false);
            }
        });
    }

    /// Who is reached by what is sent from one address to another. Of several who share the port, the sender's address decides.
    pub fn find(&self, to: Address, from: Address) -> Option<WeakRc<T>> {
        self.table(to.port).with(|table| {
            let reachable = &table.get(&to.port)?.reachable;
            if let [one] = &reachable[..] {
                return one.score(to.ip, from).map(|_| one.owner);
            }
            let best = reachable.iter().filter_map(|one| one.score(to.ip, from)).max()?;
            let mut equals = reachable.iter().filter(|one| one.score(to.ip, from) == Some(best));
            let first = equals.next()?;
            if !first.key.shares {
                return Some(first.owner);
            }
            let count = 1 + equals.count();
            let chosen = usize::from(from.port).wrapping_mul(0x9e37_79b1) >> 7;
            let mut equals = reachable.iter().filter(|one| one.score(to.ip, from) == Some(best));
            equals.nth(chosen % count).map(|one| one.owner)
        })
    }

    /// All who are reached by what is sent to many.
    pub fn find_all(&self, port: u16, from: Address, accepts: impl Fn(&Key) -> bool + Send + Sync) -> Vec<WeakRc<T>> {
        self.table(port).with(|table| {
            let reachable = table.get(&port).map_or(&[][..], |port| &port.reachable);
            let mut found = Vec::new();
            for one in reachable {
                if accepts(&one.key) && one.remote.is_none_or(|remote| remote == from) && found.try_reserve(1).is_ok() {
                    found.push(one.owner);
                }
            }
            found
        })
    }

    /// The next socket that is found at a port, for one who lists them.
    pub fn next(&self, cursor: &mut PortCursor) -> Option<WeakRc<T>> {
        cursor.next(TABLES, |table, last| {
            self.tables[table].with(|table| {
                let start = last.map_or(0, |(port, _)| port);
                table.range(start..).find_map(|(port, entry)| {
                    let told = last.filter(|(told, _)| told == port);
                    let at = told.map_or(0, |(_, serial)| entry.reachable.partition_point(|one| one.serial >= serial));
                    entry.reachable.get(at).map(|one| ((*port, one.serial), one.owner))
                })
            })
        })
    }
}

/// The use of a port. Dropping it gives the port back.
pub struct Bound<T: Send + Sync + 'static> {
    ports: &'static Ports<T>,
    port: u16,
    key: Key,
}

impl<T: Send + Sync> Bound<T> {
    /// Which one.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// In which way.
    pub fn key(&self) -> Key {
        self.key
    }

    /// Uses it in another way from now on.
    pub fn change(&mut self, key: Key) {
        let (port, old) = (self.port, self.key);
        self.ports.table(port).with(|table| {
            let entry = table.entry(port).or_insert(Port::EMPTY);
            entry.leave(&old);
            entry.users(key).sockets += 1;
        });
        self.key = key;
    }

    /// The same, where no other use is in the way.
    ///
    /// # Errors
    /// EADDRINUSE: it is used as before.
    pub fn change_if_free(&mut self, key: Key) -> Result<()> {
        let (port, old) = (self.port, self.key);
        self.ports.table(port).with(|table| {
            let entry = table.entry(port).or_insert(Port::EMPTY);
            entry.leave(&old);
            let outcome = entry.check(&key);
            entry.users(if outcome.is_ok() { key } else { old }).sockets += 1;
            outcome
        })?;
        self.key = key;
        Ok(())
    }

    /// Has `owner` found at the port by what comes from `remote`, or from anybody.
    ///
    /// # Errors
    /// ENOMEM: it is not found there. One that was found there before always is.
    pub fn reach(&self, owner: WeakRc<T>, remote: Option<Address>) -> Result<()> {
        self.ports.table(self.port).with(|table| {
            let reachable = &mut table.entry(self.port).or_insert(Port::EMPTY).reachable;
            reachable.retain(|one| one.owner != owner);
            reachable.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
            // Of several who reuse an address the last one is reached.
            let serial = reachable.first().map_or(0, |one| one.serial) + 1;
            reachable.insert(0, Reachable { serial, key: self.key, remote, owner });
            Ok(())
        })
    }

    /// Has it not found any more.
    pub fn hide(&self, owner: WeakRc<T>) {
        self.ports.table(self.port).with(|table| {
            if let Some(port) = table.get_mut(&self.port) {
                port.reachable.retain(|one| one.owner != owner);
            }
        });
    }

    /// The use goes on until then, without the socket.
    pub fn leave(self, until: u64) -> Remnant<T> {
        let (ports, port, key) = (self.ports, self.port, self.key);
        ports.table(port).with(|table| {
            let users = table.entry(port).or_insert(Port::EMPTY).users(key);
            (users.sockets, users.remnants) = (users.sockets - 1, users.remnants + 1);
            users.last_end = users.last_end.max(until);
        });
        // The use is the remnant's by now, which gives the port back.
        mem::forget(self);
        Remnant { ports, port, key }
    }
}

impl<T: Send + Sync> Drop for Bound<T> {
    fn drop(&mut self) {
        self.ports.end(self.port, &self.key, |users| users.sockets -= 1);
    }
}

/// A use of a port that goes on for a while without a socket. When its time is over it is in nobody's way. Dropping it gives the port back.
pub struct Remnant<T: Send + Sync + 'static> {
    ports: &'static Ports<T>,
    port: u16,
    key: Key,
}

impl<T: Send + Sync> Remnant<T> {
    /// Which port it is a use of, and in which way.
    pub fn used(&self) -> (u16, Key) {
        (self.port, self.key)
    }
}

impl<T: Send + Sync> Drop for Remnant<T> {
    fn drop(&mut self) {
        self.ports.end(self.port, &self.key, |users| users.remnants -= 1);
    }
}

#[cfg(test)]
mod tests {
    use core::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    fn key(ip: IpAddr) -> Key {
        Key { ip, only_v6: false, reuses: false, shares: false, user: 0, listens: false }
    }

    #[test]
    fn any_address_is_in_the_way_of_each_unless_it_is_of_ipv6_only() {
        let (any_v4, any_v6) = (key(Ipv4Addr::UNSPECIFIED.into()), key(Ipv6Addr::UNSPECIFIED.into()));
        let (one, other) = (key(Ipv4Addr::LOCALHOST.into()), key(Ipv4Addr::new(127, 0, 0, 2).into()));
        assert!(
            any_v4.conflicts(&one) && one.conflicts(&any_v4) && one.conflicts(&any_v6) && any_v6.conflicts(&any_v4)
        );
        assert!(!one.conflicts(&other));
        let only_v6 = Key { only_v6: true, ..any_v6 };
        assert!(!only_v6.conflicts(&any_v4) && !any_v4.conflicts(&only_v6) && !one.conflicts(&only_v6));
    }

    #[test]
    fn an_address_is_reused_beside_those_who_reuse_it_and_do_not_listen() {
        let reuses = Key { reuses: true, ..key(Ipv4Addr::LOCALHOST.into()) };
        let listens = Key { listens: true, ..reuses };
        assert!(!reuses.conflicts(&reuses) && !listens.conflicts(&reuses) && reuses.conflicts(&listens));
        let shares = Key { shares: true, listens: true, ..key(Ipv4Addr::LOCALHOST.into()) };
        assert!(!shares.conflicts(&shares) && shares.conflicts(&Key { user: 1, ..shares }));
    }
}
