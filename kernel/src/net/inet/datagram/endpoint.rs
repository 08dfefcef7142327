//! [`Endpoint`]: a socket's end.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use frame::Cx;
use linux_raw_sys::net;
use refs::{SpinLock, StrongRc, WaitList, Waker, WeakRc};

use super::errors::Failure;
use super::{ECHO, RAW, UDP};
use crate::error::{Errno, Result};
use crate::fs::Events;
use crate::fs::fasync::{Band, FasyncList};
use crate::net::inet::address::{Address, Version};
use crate::net::inet::options::MOST_BUFFER;
use crate::net::inet::ports::{Bound, Key, Ports};
use crate::net::inet::settings::{Protocol, Settings};
use crate::net::registry::Counted;
use crate::net::{Cookie, Shutdown, counters};
use crate::reclaim::{Held, OfInbox, Payer};
use crate::time::clock;

/// What a message takes beside its bytes, as Linux counts it.
const OVERHEAD: usize = 768;

/// What kind of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// UDP.
    Udp,
    /// Echo requests and their answers.
    Echo,
    /// All messages of ICMP or ICMPv6.
    Raw,
}

impl Kind {
    pub(super) fn ports(self) -> &'static Ports<Endpoint> {
        match self {
            Kind::Udp => &UDP,
            Kind::Echo => &ECHO,
            Kind::Raw => &RAW,
        }
    }

    /// Whose options it has.
    pub(super) fn protocol(self) -> Protocol {
        if self == Kind::Udp { Protocol::Udp } else { Protocol::Icmp }
    }
}

/// A message.
#[derive(Clone)]
pub(super) struct Datagram {
    pub(super) bytes: Vec<u8>,
    pub(super) from: Address,
    /// To which address it was sent.
    pub(super) to: IpAddr,
    /// Through how many hosts it might have gone (IP_TTL), and how (IP_TOS).
    pub(super) hops: u8,
    pub(super) class: u8,
    /// When it came, in nanoseconds since 1970; 0: nobody wanted to know.
    pub(super) time: u64,
    /// The number of the device that it came over.
    pub(super) device: i32,
}

/// How many there are.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// How many there are.
pub fn count() -> usize {
    COUNT.load(Ordering::Relaxed)
}

/// A socket's end. It belongs to its socket; others know it by name. Its destruction takes as long as freeing the messages that wait in it: some 500 at most.
pub struct Endpoint {
    pub(super) name: WeakRc<Endpoint>,
    pub(in crate::net::inet) kind: Kind,
    /// How its program writes down addresses.
    pub version: Version,
    /// The number of its socket's inode; 0: no program has opened it yet.
    pub inode: AtomicU64,
    /// Its number among all sockets.
    pub cookie: Cookie,
    _counted: Counted,
    /// Who waits for a message.
    pub(super) readable: WaitList,
    /// Its socket, if that asks for signals.
    pub(super) fasync: FasyncList,
    pub(in crate::net::inet) settings: SpinLock<Settings>,
    pub(super) state: SpinLock<State>,
}

/// What changes in an endpoint's life.
pub(super) struct State {
    pub(super) bound: Option<Bound<Endpoint>>,
    /// The program has chosen its address, or its port.
    pub(super) is_chosen: bool,
    pub(super) local: Address,
    pub(super) remote: Option<Address>,
    pub(super) queue: VecDeque<Datagram>,
    /// Of what it sent, what did not arrive.
    pub(super) failures: VecDeque<Failure>,
    /// How much the messages in both queues take.
    used: usize,
    pub(super) held: OfInbox,
    pub(super) error: Option<Errno>,
    pub(super) shutdown: Shutdown,
    /// Of which groups it gets messages.
    pub(super) groups: Vec<IpAddr>,
    /// Of all messages: a bit for each type that it does not get.
    pub(super) filter: [u32; 8],
}

impl Endpoint {
    /// A new one. What waits in it is charged to `payer`.
    pub fn new(kind: Kind, version: Version, payer: &Payer) -> StrongRc<Endpoint> {
        StrongRc::new_cyclic(|name| Endpoint {
            name,
            kind,
            version,
            inode: AtomicU64::new(0),
            cookie: Cookie::default(),
            _counted: Counted::new(&COUNT),
            readable: WaitList::new(),
            fasync: FasyncList::default(),
            settings: SpinLock::default(),
            state: SpinLock::new(State {
                bound: None,
                is_chosen: false,
                local: version.unbound(),
                remote: None,
                queue: VecDeque::new(),
                failures: VecDeque::new(),
                used: 0,
                held: OfInbox::of(payer),
                error: None,
                shutdown: Shutdown { reading: false, writing: false },
                groups: Vec::new(),
                filter: [0; 8],
            }),
        })
    }

    /// Its own address.
    pub fn address(&self, cx: &Cx) -> Address {
        self.state.lock(cx).local
    }

    /// Its own address and its peer's, and how many bytes wait.
    pub fn addresses(&self, cx: &Cx) -> (Address, Option<Address>, usize) {
        let state = self.state.lock(cx);
        (state.local, state.remote, state.used)
    }

    /// Whose it is.
    pub fn user(&self, cx: &Cx) -> u32 {
        self.state.lock(cx).bound.as_ref().map_or(0, |bound| bound.key().user)
    }

    /// Which directions are ended, whether its program has chosen its port, and which one it has.
    pub fn chosen(&self, cx: &Cx) -> (Shutdown, bool, u16) {
        let state = self.state.lock(cx);
        (state.shutdown, state.is_chosen, state.bound.as_ref().map_or(0, Bound::port))
    }

    /// Puts a message into its queue; it is lost where there is no room.
    pub(super) fn deliver(&self, mut datagram: Datagram, cx: &Cx) {
        let capacity = self.settings.with(|settings| {
            let wants = |option| settings.is_on(net::SOL_SOCKET, option);
            if !settings.are_default() && (wants(net::SO_TIMESTAMP_OLD) || wants(net::SO_TIMESTAMPNS_OLD)) {
                datagram.time = clock::real_time();
            }
            capacity(settings)
        });
        let counters = counters::udp(datagram.to);
        {
            let mut state = self.state.lock(cx);
            if state.shutdown.reading || !state.admit(datagram.bytes.len(), capacity) {
                drop(state);
                if self.kind == Kind::Udp {
                    counters.no_room.count();
                }
                return;
            }
            if state.queue.try_reserve(1).is_err() {
                state.dismiss(datagram.bytes.len());
                return;
            }
            state.queue.push_back(datagram);
        }
        if self.kind == Kind::Udp {
            counters.received.count();
        }
        self.readable.wake();
        self.fasync.signal(Events::IN, Band::In, cx);
    }

    /// How much may wait in it before what comes is lost.
    pub(super) fn capacity(&self) -> usize {
        self.settings.with(|settings| capacity(settings))
    }

    /// What is ready.
    pub fn poll(&self, waker: Option<Waker>, cx: &Cx) -> Events {
        const IN: Events = Events::IN.union(Events::READ_NORMAL);
        if let Some(waker) = waker {
            self.readable.register(waker, cx);
        }
        let state = self.state.lock(cx);
        let mut events = Events::OUT | Events::WRITE_NORMAL;
        events.set(Events::ERROR, state.error.is_some() || !state.failures.is_empty());
        if state.shutdown.reading {
            events |= IN | Events::READ_HANG_UP;
        }
        events.set(Events::HANG_UP, state.shutdown.reading && state.shutdown.writing);
        if !state.queue.is_empty() {
            events |= IN;
        }
        events
    }

    /// Ends one or both directions.
    ///
    /// # Errors
    /// ENOTCONN.
    pub fn shut_down(&self, what: Shutdown, cx: &Cx) -> Result<()> {
        {
            let mut state = self.state.lock(cx);
            state.shutdown.reading |= what.reading;
            state.shutdown.writing |= what.writing;
            if state.remote.is_none() {
                drop(state);
                self.readable.wake_all();
                return Err(Errno::ENOTCONN);
            }
        }
        self.readable.wake_all();
        Ok(())
    }

    /// How long the next message is (FIONREAD).
    pub fn waiting_bytes(&self, cx: &Cx) -> usize {
        self.state.lock(cx).queue.front().map_or(0, |datagram| datagram.bytes.len())
    }

    /// It is about to be closed: nobody finds it any more.
    pub(super) fn close(&self, cx: &Cx) {
        let bound = self.state.lock(cx).bound.take();
        if let Some(bound) = &bound {
            bound.hide(self.name);
        }
        self.readable.wake_all();
    }
}

fn capacity(settings: &Settings) -> usize {
    settings.set_value(net::SOL_SOCKET, net::SO_RCVBUF).map_or(MOST_BUFFER as usize, |bytes| bytes as usize)
}

impl State {
    /// Takes the next message out.
    pub(super) fn pop(&mut self) -> Option<Datagram> {
        let datagram = self.queue.pop_front()?;
        self.dismiss(datagram.bytes.len());
        Some(datagram)
    }

    /// Takes room for a message that waits, if there is any.
    pub(super) fn admit(&mut self, len: usize, capacity: usize) -> bool {
        if self.used > capacity || self.held.add(Held::Message, 1).is_err() {
            return false;
        }
        self.used += OVERHEAD + len;
        true
    }

    /// Gives that room back.
    pub(super) fn dismiss(&mut self, len: usize) {
        self.used -= OVERHEAD + len;
        self.held.remove(Held::Message, 1);
    }

    /// In which way it uses its port, or would.
    pub(super) fn key(&self, settings: &Settings, user: u32) -> Key {
        Key {
            ip: self.bound.as_ref().map_or(self.local.ip, |bound| bound.key().ip),
            only_v6: settings.is_on(net::SOL_IPV6, net::IPV6_V6ONLY),
            reuses: settings.is_on(net::SOL_SOCKET, net::SO_REUSEADDR),
            shares: settings.is_on(net::SOL_SOCKET, net::SO_REUSEPORT),
            user: self.bound.as_ref().map_or(user, |bound| bound.key().user),
            listens: false,
        }
    }
}
