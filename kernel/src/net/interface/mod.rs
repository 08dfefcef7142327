//! Interfaces: what lies between network cards and the sockets of the internet protocols.
//!
//! ```text
//!   card --frame--> receive --> neighbours (ARP, neighbour discovery)
//!                      |------> configuration (DHCP, router advertisements)
//!                      `------> echo requests, and all else to Above (the sockets)
//!   sockets --packet--> send --> route --> neighbours --frame--> card
//! ```
//!
//! | file | what it is |
//! | --- | --- |
//! | `link` | what a driver makes of a card |
//! | `receive` | a frame has come |
//! | `outgoing` | a packet that is written where it goes out from |
//! | `send` | a packet goes out: its route, its neighbour, its frame |
//! | `routes` | the ways to the addresses that are not on a link of this machine's |
//! | `loopback` | addresses of the loopback device that programs have added |
//! | `change` | what programs change |
//! | `task` | what is due: questions that are asked again, addresses that end |
//!
//! The protocols themselves are `formats/tcpip`'s: pure state machines. Here are their locks, their clock and their cards.
//!
//! An [`Interface`] is a card with addresses. Owner: both live for ever. What waits in it are packets whose neighbour is not known yet, a bounded number, which are lost when nobody answers. Its task is woken when there may be
//! something due earlier than before.
//!
//! Locks: an interface's `state`; after it none. Frames are given to the card, and packets to the sockets, with nothing locked.

mod change;
mod link;
pub mod loopback;
mod outgoing;
mod receive;
pub mod routes;
mod send;
mod task;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};

use frame::Cx;
use refs::{SpinLock, WaitList};
use tasks::StaticRef;
use tcpip::dhcp;
use tcpip::ethernet::HardwareAddress;
use tcpip::ip::{Address, Addresses, Audience, ErrorLimit, Packet, Prefix, Reassembler, ReassemblyLimits};
use tcpip::neighbour::{Autoconfiguration, NeighbourCache, NeighbourLimits};
use tcpip::{Checksum, Instant, Key};

use crate::drivers::random;

pub use change::Lifetimes;
pub use link::{Abilities, CardAddress, Cut, LeftChecksum, Link, Offload, Receiver, Refused, Traffic};
pub use outgoing::Outgoing;
pub use send::{Unsent, Way, send, way_to};

/// The number of the first interface: 1 is the loopback device's.
const FIRST_INDEX: u32 = 2;
/// No more cards are used.
pub const MOST_INTERFACES: usize = 8;

static INTERFACES: [StaticRef<Interface>; MOST_INTERFACES] = [const { StaticRef::none() }; MOST_INTERFACES];

/// Who gets what has come for this machine.
static ABOVE: StaticRef<AbovePlace> = StaticRef::none();

/// On the heap: a name for it has two words, and it is found by one.
struct AbovePlace(&'static dyn Above);

/// What is above all interfaces.
pub trait Above: Sync {
    /// A packet has come for this machine, or for all, as `audience` says: whether somebody takes it. `checksum` says whether that of TCP or UDP must be looked at.
    fn receive(
        &self,
        packet: &Packet<'_>,
        audience: Audience,
        checksum: Checksum,
        from: &'static Interface,
        cx: &Cx,
    ) -> bool;

    /// A card that had no room has some again.
    fn has_room(&self, cx: &Cx);
}

/// A network card with addresses.
pub struct Interface {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    card: &'static dyn Link,
    /// Bytes of the largest packet, where a program has chosen; 0: as many as the card takes.
    mtu: AtomicU16,
    /// Its address on the link, where a program has chosen one; 0: the card's.
    hardware: AtomicU64,
    is_up: AtomicBool,
    state: SpinLock<State>,
    /// Where its task waits.
    news: WaitList,
    /// Memory for packets in the making that nobody uses just now.
    spare: SpinLock<Vec<Vec<u8>>>,
}

struct State {
    addresses: Addresses,
    neighbours: NeighbourCache<Vec<u8>>,
    reassembler: Reassembler,
    /// `None`: it is down, or is to have no addresses of IPv6.
    autoconfiguration: Option<Autoconfiguration>,
    /// `None`: it is down, or programs choose its addresses of IPv4.
    dhcp: Option<dhcp::Client>,
    lease: Option<dhcp::Lease>,
    /// For errors that it answers with.
    error_limit: ErrorLimit,
    /// No program has chosen an address of IPv4.
    is_automatic: bool,
    /// It is to have no addresses of IPv6 (`net.ipv6.conf.NAME.disable_ipv6`).
    has_no_v6: bool,
    /// The addresses that were told to those who listen to changes.
    told: Vec<Prefix>,
}

/// Makes interfaces of cards, and has them find their addresses.
pub fn start(cards: Vec<&'static dyn Link>, above: &'static dyn Above, cx: &Cx) {
    ABOVE.set(Some(Box::leak(Box::new(AbovePlace(above)))));
    for (number, (card, place)) in cards.into_iter().zip(&INTERFACES).enumerate() {
        let interface: &'static Interface = Box::leak(Box::new(Interface::new(number as u32, card, cx)));
        place.set(Some(interface));
        card.lead_to(interface);
        task::start(interface);
    }
}

/// All interfaces but the loopback device.
pub fn all() -> impl Iterator<Item = &'static Interface> {
    INTERFACES.iter().map_while(StaticRef::get)
}

/// Whether an address is one of an interface's.
pub fn is_own(address: IpAddr) -> bool {
    loopback::has(address) || all().any(|interface| interface.state.with(|state| state.addresses.has(address)))
}

/// The present, as the protocols have it.
pub fn now() -> Instant {
    Instant::from_nanos(frame::time::now())
}

/// A key that nobody can guess.
pub fn key(cx: &Cx) -> Key {
    let bytes = random::bytes::<16>(cx);
    let half = |at: usize| bytes[at..at + 8].iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
    Key([half(0), half(8)])
}

impl Interface {
    fn new(number: u32, card: &'static dyn Link, cx: &Cx) -> Self {
        let hardware = HardwareAddress(card.address());
        let mut addresses = Addresses::default();
        let autoconfiguration = Autoconfiguration::new(now(), hardware, &mut addresses);
        Interface {
            index: FIRST_INDEX + number,
            name: format!("eth{number}"),
            card,
            mtu: AtomicU16::new(0),
            hardware: AtomicU64::new(0),
            is_up: AtomicBool::new(true),
            state: SpinLock::new(State {
                addresses,
                neighbours: NeighbourCache::new(NeighbourLimits::default()),
                reassembler: Reassembler::new(ReassemblyLimits::default()),
                autoconfiguration: Some(autoconfiguration),
                dhcp: Some(dhcp::Client::new(now(), hardware, key(cx))),
                lease: None,
                error_limit: ErrorLimit::new(now()),
                is_automatic: true,
                has_no_v6: false,
                told: Vec::new(),
            }),
            news: WaitList::new(),
            // One that is there where there is no memory any more.
            spare: SpinLock::new(vec![outgoing::memory().unwrap_or_default()]),
        }
    }

    /// Its address on the link.
    pub fn hardware(&self) -> HardwareAddress {
        match self.hardware.load(Ordering::Relaxed) {
            0 => HardwareAddress(self.card.address()),
            chosen => {
                let [_, _, a, b, c, d, e, f] = chosen.to_be_bytes();
                HardwareAddress([a, b, c, d, e, f])
            }
        }
    }

    /// Bytes of the largest packet.
    pub fn mtu(&self) -> u16 {
        match self.mtu.load(Ordering::Relaxed) {
            0 => self.card.mtu(),
            chosen => chosen,
        }
    }

    /// Whether anything goes through it.
    pub fn is_up(&self) -> bool {
        self.is_up.load(Ordering::Relaxed)
    }

    /// Its card.
    pub fn card(&self) -> &'static dyn Link {
        self.card
    }

    /// Its addresses, each with the prefix of its neighbours.
    pub fn addresses(&self, cx: &Cx) -> Vec<Address> {
        self.state.lock(cx).addresses.iter().copied().collect()
    }

    /// The servers of names that its network has told of.
    pub fn name_servers(&self, cx: &Cx) -> Vec<IpAddr> {
        let lease = self.state.lock(cx).lease;
        lease.into_iter().flat_map(|lease| lease.dns).flatten().map(IpAddr::V4).collect()
    }
}
