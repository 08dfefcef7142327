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
//! | `task` | what is due: questions that are asked again, addresses that end |
//!
//! The protocols themselves are `formats/tcpip`'s: pure state machines. Here are their locks, their clock and their cards.
//!
//! An [`Interface`] is a card with addresses. Owner: both live for ever. What waits in it are packets whose neighbour is not known yet, a bounded number, which are lost when nobody answers. Its task is woken when there may be
//! something due earlier than before.
//!
//! Locks: an interface's `state`; after it none. Frames are given to the card, and packets to the sockets, with nothing locked.

mod link;
mod outgoing;
mod receive;
mod send;
mod task;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::net::IpAddr;

use frame::Cx;
use refs::{SpinLock, WaitList};
use tasks::StaticRef;
use tcpip::dhcp;
use tcpip::ethernet::HardwareAddress;
use tcpip::ip::{Addresses, Packet, Prefix, Reassembler, ReassemblyLimits, Route, RouteTable};
use tcpip::neighbour::{Autoconfiguration, NeighbourCache, NeighbourLimits};
use tcpip::{Checksum, Instant, Key};

use crate::drivers::random;

pub use link::{Abilities, CardAddress, Cut, LeftChecksum, Link, Offload, Receiver, Refused, Traffic};
pub use outgoing::Outgoing;
pub use send::{Unsent, Way, send, way_to};

/// The number of the first interface: 1 is the loopback device's.
const FIRST_INDEX: u32 = 2;
/// No more cards are used.
const MOST_INTERFACES: usize = 8;

static INTERFACES: [StaticRef<Interface>; MOST_INTERFACES] = [const { StaticRef::none() }; MOST_INTERFACES];

/// The routes of all interfaces, but for those to their own neighbours.
static ROUTES: SpinLock<Routes> = SpinLock::new(Routes(None));

/// `None` until there is a first.
struct Routes(Option<RouteTable>);

/// Who gets what has come for this machine.
static ABOVE: StaticRef<AbovePlace> = StaticRef::none();

/// On the heap: a name for it has two words, and it is found by one.
struct AbovePlace(&'static dyn Above);

/// What is above all interfaces.
pub trait Above: Sync {
    /// A packet has come for this machine, or for all: whether somebody takes it. `whole` is its bytes, or those of its first fragment; `checksum` says whether that of TCP or UDP must be looked at.
    fn receive(&self, packet: &Packet<'_>, whole: &[u8], checksum: Checksum, from: &'static Interface, cx: &Cx)
    -> bool;

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
    autoconfiguration: Autoconfiguration,
    dhcp: dhcp::Client,
    lease: Option<dhcp::Lease>,
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
    all().any(|interface| interface.state.with(|state| state.addresses.has(address)))
}

/// All routes beside those to the interfaces' own neighbours.
pub fn routes(cx: &Cx) -> Vec<Route> {
    ROUTES.lock(cx).0.iter().flat_map(RouteTable::iter).copied().collect()
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
            state: SpinLock::new(State {
                addresses,
                neighbours: NeighbourCache::new(NeighbourLimits::default()),
                reassembler: Reassembler::new(ReassemblyLimits::default()),
                autoconfiguration,
                dhcp: dhcp::Client::new(now(), hardware, key(cx)),
                lease: None,
            }),
            news: WaitList::new(),
            // One that is there where there is no memory any more.
            spare: SpinLock::new(vec![outgoing::memory().unwrap_or_default()]),
        }
    }

    /// Its address on the link.
    pub fn hardware(&self) -> HardwareAddress {
        HardwareAddress(self.card.address())
    }

    /// Its card.
    pub fn card(&self) -> &'static dyn Link {
        self.card
    }

    /// Its addresses, each with the prefix of its neighbours.
    pub fn addresses(&self, cx: &Cx) -> Vec<Prefix> {
        self.state.lock(cx).addresses.iter().map(|address| address.prefix).collect()
    }

    /// The servers of names that its network has told of.
    pub fn name_servers(&self, cx: &Cx) -> Vec<IpAddr> {
        let lease = self.state.lock(cx).lease;
        lease.into_iter().flat_map(|lease| lease.dns).flatten().map(IpAddr::V4).collect()
    }

    /// Adds a route over it.
    fn add_route(&self, prefix: Prefix, gateway: IpAddr, cx: &Cx) {
        let route = Route { prefix, gateway: Some(gateway), interface: self.index, metric: 0, source: None };
        // Without memory it is not reached.
        let _ = ROUTES.lock(cx).0.get_or_insert_default().add(route);
    }

    /// Forgets routes over it of one version.
    fn forget_routes(&self, is_v4: bool, cx: &Cx) {
        if let Some(routes) = &mut ROUTES.lock(cx).0 {
            routes.remove(|route| route.interface == self.index && route.prefix.address().is_ipv4() == is_v4);
        }
    }
}
