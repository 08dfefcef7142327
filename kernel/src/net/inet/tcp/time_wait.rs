//! What is left of a connection at the end that closed first, when its socket is gone: its two addresses, and the use of its port.
//!
//! Until the peer sends nothing more either that is FIN_WAIT2, and then TIME_WAIT: of each a minute at most, as on Linux. Within the machine no old segments come, so this is kept for what programs know of it: the port is not free, and
//! `/proc/net/tcp` and sock_diag(7) tell of it. The same connection may be made again, from either end, as its time stamps tell old segments from new ones (RFC 6191).
//!
//! ```text
//!   ALL -- 4,096 buckets by a hash of the two addresses --> a chain of remnants, the last that came first
//! ```
//!
//! Owner: its bucket. It is nobody's memory, some hundred bytes each, so there are [`MOST`] at most, and [`MOST_IN_BUCKET`] in one bucket whatever the addresses are: of one more nothing is kept, and its port is free. One ends when its time is over and
//! somebody leaves another in its bucket or finds no port, when its peer resets the connection or sends something, or when the connection is made again, in some hundred instructions. The end of a killed group resets its connections, and so leaves none. Nobody waits for one.
//! Locks: a bucket's, after which none is taken.

use alloc::boxed::Box;
use core::iter::successors;
use core::net::IpAddr;
use core::sync::atomic::{AtomicUsize, Ordering};

use refs::SpinLock;

use super::endpoint::TcpState;
use super::{Endpoint, PORTS};
use crate::net::cursor::Cursor;
use crate::net::inet::address::{Address, Version};
use crate::net::inet::ports::{Bound, Remnant};
use crate::net::registry::Counted;
use crate::sysctl::Tunable;

/// How long each of the two states lasts, in nanoseconds.
const MINUTE: u64 = 60_000_000_000;
/// How many bits of a hash say which bucket.
const BUCKET_BITS: u32 = 12;
/// So many are in one bucket at most: whoever looks for one looks at no more.
const MOST_IN_BUCKET: usize = 64;

/// How many there are at most (`net.ipv4.tcp_max_tw_buckets`).
pub static MOST: Tunable = Tunable::new(16_384, 0..=65_536);
/// The address of the end that closed first, and the other's.
pub type Ends = (Address, Address);

/// Those of a bucket. Each goes on at least as long as all behind it.
#[derive(Default)]
struct Chain(Option<Box<TimeWait>>);

static ALL: [SpinLock<Chain>; 1 << BUCKET_BITS] = [const { SpinLock::new(Chain(None)) }; 1 << BUCKET_BITS];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// What is kept of one.
struct TimeWait {
    next: Option<Box<TimeWait>>,
    /// Its number in the bucket, for those who list them: the later it came, the higher.
    serial: u64,
    ends: Ends,
    version: Version,
    peer_has_finished: bool,
    /// Whether it is told of. Of a connection with another machine that itself is, as long as segments of it may come.
    is_told: bool,
    until: u64,
    port: Remnant<Endpoint>,
    _counted: Counted,
}

/// What is told of one.
pub struct Told {
    /// How its program wrote down addresses.
    pub version: Version,
    /// The address of its end, and the other's.
    pub ends: Ends,
    /// FIN_WAIT2 or TIME_WAIT.
    pub state: TcpState,
    /// For how long it goes on, in nanoseconds.
    pub left: u64,
}

fn bucket((local, remote): &Ends) -> &'static SpinLock<Chain> {
    let ip = match remote.ip {
        IpAddr::V4(ip) => u32::from(ip),
        // The last four bytes tell hosts of a network apart.
        IpAddr::V6(ip) => u128::from(ip) as u32,
    };
    let hash = (u32::from(local.port) << 16 ^ u32::from(remote.port) ^ ip).wrapping_mul(0x9e37_79b1);
    &ALL[(hash >> (u32::BITS - BUCKET_BITS)) as usize]
}

impl Chain {
    fn iter(&self) -> impl Iterator<Item = &TimeWait> {
        successors(self.0.as_deref(), |one| one.next.as_deref())
    }

    /// Enters one, which goes on as long as the first at least.
    fn push(&mut self, mut one: Box<TimeWait>) {
        one.next = self.0.take();
        let (serial, until) = one.next.as_ref().map_or((0, 0), |next| (next.serial, next.until));
        (one.serial, one.until) = (serial + 1, one.until.max(until));
        self.0 = Some(one);
    }

    /// Takes one out.
    fn remove(&mut self, is_it: impl Fn(&TimeWait) -> bool) -> Option<Box<TimeWait>> {
        let mut at = &mut self.0;
        while !is_it(at.as_ref()?) {
            at = &mut at.as_mut()?.next;
        }
        let mut found = at.take()?;
        *at = found.next.take();
        Some(found)
    }

    /// Takes all out that are over. And how many are not.
    fn take_over(&mut self, now: u64) -> (Chain, usize) {
        let mut at = &mut self.0;
        let mut count = 0;
        while at.as_ref().is_some_and(|one| one.until > now) {
            let Some(one) = at else { break };
            at = &mut one.next;
            count += 1;
        }
        (Chain(at.take()), count)
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        // One after another, with no more of the stack the more there are.
        let mut first = self.0.take();
        while let Some(mut one) = first {
            first = one.next.take();
        }
    }
}

impl TimeWait {
    fn is(&self, ends: &Ends) -> bool {
        // Ports tell most apart.
        (self.ends.0.port, self.ends.1.port) == (ends.0.port, ends.1.port) && self.ends == *ends
    }

    fn told(&self, now: u64) -> Told {
        let state = if self.peer_has_finished { TcpState::TimeWait } else { TcpState::FinWait2 };
        Told { version: self.version, ends: self.ends, state, left: self.until.saturating_sub(now) }
    }
}

/// How many there are.
pub fn count() -> usize {
    let now = frame::time::now();
    let of_bucket = |bucket: &SpinLock<Chain>| {
        bucket.with(|chain| chain.iter().filter(|one| one.is_told && one.until > now).count())
    };
    if COUNT.load(Ordering::Relaxed) == 0 { 0 } else { ALL.iter().map(of_bucket).sum() }
}

/// A connection has ended here first: its port is used for a while yet.
pub(super) fn leave(ends: Ends, version: Version, peer_has_finished: bool, is_told: bool, bound: Bound<Endpoint>) {
    let now = frame::time::now();
    if COUNT.load(Ordering::Relaxed) as u64 >= MOST.get() {
        // The next one finds fewer.
        drop(bucket(&ends).with(|chain| chain.take_over(now)));
        return;
    }
    let until = now.saturating_add(MINUTE);
    let one = Box::new(TimeWait {
        next: None,
        serial: 0,
        ends,
        version,
        // Who is its own peer has finished when he has.
        peer_has_finished: peer_has_finished || ends.0 == ends.1,
        is_told,
        until,
        port: bound.leave(until),
        _counted: Counted::new(&COUNT),
    });
    let gone = bucket(&ends).with(|chain| {
        let (over, count) = chain.take_over(now);
        let refused = if count < MOST_IN_BUCKET {
            chain.push(one);
            None
        } else {
            Some(one)
        };
        (over, refused)
    });
    drop(gone);
}

/// The peer of one sends nothing more either.
pub(super) fn peer_finished(ends: &Ends) {
    /// A port whose use ended so much early would be free while the connection is told of.
    const SLACK: u64 = 1_000_000_000;
    if COUNT.load(Ordering::Relaxed) == 0 {
        return;
    }
    let used = bucket(ends).with(|chain| {
        let mut one = chain.remove(|one| one.is(ends) && !one.peer_has_finished)?;
        let until = frame::time::now().saturating_add(MINUTE);
        let used = (until - one.until.min(until) > SLACK).then(|| one.port.used());
        (one.peer_has_finished, one.until) = (true, until);
        chain.push(one);
        Some((used?, until))
    });
    if let Some(((port, key), until)) = used {
        PORTS.extend(port, &key, until);
    }
}

/// Nothing is left of a connection from now on, if something was: it is made again, reset, or its peer sends something.
pub(super) fn end(ends: &Ends) {
    if COUNT.load(Ordering::Relaxed) > 0 {
        drop(bucket(ends).with(|chain| chain.remove(|one| one.is(ends))));
    }
}

/// So many buckets are looked at together for those that are over, where there are no ports; all are in so many pieces.
const AT_A_TIME: usize = 64;
pub(super) const PIECES: usize = ALL.len() / AT_A_TIME;

/// Ends those of some buckets that are over, of all in turn; whether there were any.
pub(super) fn end_some() -> bool {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    if COUNT.load(Ordering::Relaxed) == 0 {
        return false;
    }
    let (now, first) = (frame::time::now(), NEXT.fetch_add(AT_A_TIME, Ordering::Relaxed) % ALL.len());
    let over = |bucket: &SpinLock<Chain>| bucket.with(|chain| chain.take_over(now).0).0.is_some();
    ALL[first..first + AT_A_TIME].iter().filter(|bucket| over(bucket)).count() > 0
}

/// What is left of that connection.
pub fn find(ends: &Ends) -> Option<Told> {
    let now = frame::time::now();
    bucket(ends)
        .with(|chain| Some(chain.iter().find(|one| one.is_told && one.is(ends))?.told(now)))
        .filter(|told| told.left > 0)
}

/// The next one for one who lists them.
pub fn next(cursor: &mut Cursor<u64>) -> Option<Ends> {
    cursor.next(ALL.len(), |bucket, last| {
        ALL[bucket].with(|chain| {
            let one = chain.iter().find(|one| one.is_told && last.is_none_or(|last| one.serial < last))?;
            Some((one.serial, one.ends))
        })
    })
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use core::net::Ipv4Addr;

    use super::*;
    use crate::net::inet::ports::Key;

    fn one(port: u16, until: u64) -> Box<TimeWait> {
        let ip = IpAddr::from(Ipv4Addr::LOCALHOST);
        let key = Key { ip, only_v6: false, reuses: false, shares: false, user: 0, listens: false };
        let ends = (Address { ip, port }, Address { ip, port: 1 });
        let port = PORTS.join(port, key).unwrap().leave(until);
        let (next, version, _counted) = (None, Version::V4, Counted::new(&COUNT));
        Box::new(TimeWait {
            next,
            serial: 0,
            ends,
            version,
            peer_has_finished: false,
            is_told: true,
            until,
            port,
            _counted,
        })
    }

    fn chain(those: &[(u16, u64)]) -> Chain {
        let mut chain = Chain::default();
        those.iter().for_each(|&(port, until)| chain.push(one(port, until)));
        chain
    }

    fn ports(chain: &Chain) -> Vec<u16> {
        chain.iter().map(|one| one.ends.0.port).collect()
    }

    #[test]
    fn those_that_are_over_are_taken_out() {
        let mut chain = chain(&[(7, 10), (8, 20), (9, 15)]);
        assert_eq!(ports(&chain), [9, 8, 7]);
        let (over, count) = chain.take_over(10);
        assert_eq!((ports(&over), count, ports(&chain)), (Vec::from([7]), 2, Vec::from([9, 8])));
        // The last that came goes on as long as those that came before.
        assert_eq!(chain.take_over(19).1, 2);
        assert_eq!(chain.take_over(20).1, 0);
        assert!(chain.0.is_none());
    }

    #[test]
    fn one_is_taken_out_from_anywhere() {
        let mut chain = chain(&[(7, 10), (8, 20), (9, 30)]);
        let mut remove = |port| chain.remove(|one| one.ends.0.port == port).is_some();
        assert!(remove(8) && !remove(8) && remove(7) && remove(9) && !remove(9));
        assert!(ports(&chain).is_empty());
    }

    #[test]
    fn serial_numbers_fall_from_the_first_on() {
        let mut chain = chain(&[(7, 10), (8, 20), (9, 30)]);
        chain.remove(|one| one.ends.0.port == 9);
        chain.push(one(6, 40));
        let serials: Vec<u64> = chain.iter().map(|one| one.serial).collect();
        assert_eq!((ports(&chain), serials), (Vec::from([6, 8, 7]), Vec::from([3, 2, 1])));
    }
}
