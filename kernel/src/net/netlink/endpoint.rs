//! [`Endpoint`]: a netlink socket's end: its port, what it listens to, and what waits in it.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use frame::Cx;
use refs::{SpinLock, StrongRc, WaitList, Waker, WeakRc};
use tasks::TaskRef;

use super::Protocol;
use super::dump::Dumping;
use super::message::Manner;
use crate::error::{Errno, Result};
use crate::fs::Events;
use crate::net::cookie::Cookie;
use crate::net::registry::{Entered, Registry};
use crate::net::{Receiving, Sink, Type};
use crate::reclaim::{Held, OfInbox, Payer};
use crate::step::{Interruption, Step, Stop};

/// So many messages wait at most.
pub const MOST_MESSAGES: usize = 1024;
/// How many bytes of them, where nobody said (SO_RCVBUF).
pub const DEFAULT_BUFFER: u32 = 212_992;
/// What a message takes beside its bytes, as Linux counts it.
const OVERHEAD: usize = 768;
/// So many sockets of the machine listen to groups at most: each notice is given to all of them in one go.
const MOST_LISTENERS: usize = 1024;
/// The ports of sockets that are not the first of their process.
const FIRST_OTHER_PORT: u32 = 0x8000_0000;

/// All open sockets, by their inodes.
pub static SOCKETS: Registry<Endpoint> = Registry::new();
/// Who has which port of a protocol.
static PORTS: SpinLock<BTreeMap<(u32, u32), WeakRc<Endpoint>>> = SpinLock::new(BTreeMap::new());
/// Who listens to any group.
static LISTENERS: SpinLock<Vec<WeakRc<Endpoint>>> = SpinLock::new(Vec::new());
static LISTENER_COUNT: AtomicUsize = AtomicUsize::new(0);

/// Options that are on or off, a bit each.
pub const PACKET_INFO: u32 = 1 << 3;
/// Nobody is told of what is lost.
pub const NO_ENOBUFS: u32 = 1 << 5;
/// NETLINK_CAP_ACK.
pub const CAP_ACK: u32 = 1 << 10;
/// NETLINK_EXT_ACK.
pub const EXT_ACK: u32 = 1 << 11;
/// NETLINK_GET_STRICT_CHK.
pub const STRICT: u32 = 1 << 12;
/// SO_PASSCRED.
pub const CREDENTIALS: u32 = 1 << 31;

/// A socket's end. Owner: its socket; others know it by name. Its destruction frees what waits in it, [`MOST_MESSAGES`] at most; it is closed before, and who waits at it is woken by its end.
pub struct Endpoint {
    name: WeakRc<Endpoint>,
    /// What it talks to.
    pub protocol: &'static dyn Protocol,
    /// SOCK_RAW or SOCK_DGRAM.
    pub kind: Type,
    /// Who opened it had CAP_NET_ADMIN.
    pub is_administrators: bool,
    /// Its number among all sockets.
    pub cookie: Cookie,
    /// The number of its inode.
    pub inode: AtomicU64,
    /// Options.
    pub options: AtomicU32,
    /// SO_RCVBUF.
    pub buffer: AtomicU32,
    readable: WaitList,
    state: SpinLock<State>,
    asking: SpinLock<Vec<Asking>>,
}

/// Requests of a task of which some are done: they are done in turn with what others do.
pub struct Asking {
    /// Who asks.
    pub by: TaskRef,
    /// All requests.
    pub bytes: Vec<u8>,
    /// How many are done.
    pub done: usize,
}

/// The use of a port. It ends with its socket, however that ends.
struct Port {
    protocol: u32,
    number: u32,
}

impl Drop for Port {
    fn drop(&mut self) {
        PORTS.with(|ports| ports.remove(&(self.protocol, self.number)));
    }
}

/// A socket's place among those who listen. Likewise.
struct Listening(WeakRc<Endpoint>);

impl Drop for Listening {
    fn drop(&mut self) {
        LISTENERS.with(|listeners| {
            listeners.retain(|one| *one != self.0);
            LISTENER_COUNT.store(listeners.len(), Ordering::Relaxed);
        });
    }
}

/// A message that waits.
struct Waiting {
    bytes: Vec<u8>,
    /// To which group it was sent; 0: it is an answer.
    group: u32,
}

struct State {
    port: Option<Port>,
    /// A bit for each group that it listens to, the lowest for group 1.
    groups: u64,
    listening: Option<Listening>,
    messages: VecDeque<Waiting>,
    used: usize,
    dump: Dump,
    held: OfInbox,
    /// What was lost, and was not told yet.
    error: Option<Errno>,
    drops: u32,
    entered: Option<Entered<Endpoint>>,
}

/// The dump that goes on.
enum Dump {
    None,
    /// It waits for the next receiver.
    Ready(Dumping),
    /// Somebody makes its next piece.
    Busy,
}

/// What is told of a socket to those who list them.
pub struct Told {
    /// Its port.
    pub port: u32,
    /// Its groups.
    pub groups: u64,
    /// How much waits in it.
    pub used: usize,
    /// How much was lost.
    pub drops: u32,
    /// Whether a dump goes on.
    pub is_dumping: bool,
}

/// What was received.
pub struct Message {
    /// How many bytes were copied, of how many.
    pub copied: usize,
    /// Likewise.
    pub len: usize,
    /// To which group it was sent.
    pub group: u32,
}

impl Endpoint {
    /// A new one. What waits in it is charged to `payer`.
    pub fn new(
        protocol: &'static dyn Protocol,
        kind: Type,
        is_administrators: bool,
        payer: &Payer,
    ) -> StrongRc<Endpoint> {
        StrongRc::new_cyclic(|name| Endpoint {
            name,
            protocol,
            kind,
            is_administrators,
            cookie: Cookie::default(),
            inode: AtomicU64::new(0),
            options: AtomicU32::new(0),
            buffer: AtomicU32::new(DEFAULT_BUFFER),
            readable: WaitList::new(),
            asking: SpinLock::new(Vec::new()),
            state: SpinLock::new(State {
                port: None,
                groups: 0,
                listening: None,
                messages: VecDeque::new(),
                used: 0,
                dump: Dump::None,
                held: OfInbox::of(payer),
                error: None,
                drops: 0,
                entered: None,
            }),
        })
    }

    /// It is a file with this number from now on.
    pub fn note_inode(&self, number: u64) {
        self.inode.store(number, Ordering::Relaxed);
        let entered = SOCKETS.enter(number, self.name);
        self.state.with(|state| state.entered = Some(entered));
    }

    /// Whether an option is on.
    pub fn is_on(&self, option: u32) -> bool {
        self.options.load(Ordering::Relaxed) & option != 0
    }

    /// How its program wants to hear of errors.
    pub fn manner(&self) -> Manner {
        Manner { is_capped: self.is_on(CAP_ACK), has_words: self.is_on(EXT_ACK) }
    }

    /// What is told of it.
    pub fn told(&self, cx: &Cx) -> Told {
        let state = self.state.lock(cx);
        let is_dumping = !matches!(state.dump, Dump::None);
        Told { port: state.port(), groups: state.groups, used: state.used, drops: state.drops, is_dumping }
    }

    /// Takes that port.
    ///
    /// # Errors
    /// EINVAL: it has another. EADDRINUSE.
    pub fn take_port(&self, port: u32, cx: &Cx) -> Result<()> {
        let mut state = self.state.lock(cx);
        if state.port() == port {
            return Ok(());
        }
        if state.port.is_some() {
            return Err(Errno::EINVAL);
        }
        let mut ports = PORTS.lock(cx);
        let key = (self.protocol.number(), port);
        if ports.contains_key(&key) {
            return Err(Errno::EADDRINUSE);
        }
        ports.insert(key, self.name);
        drop(ports);
        state.port = Some(Port { protocol: key.0, number: port });
        Ok(())
    }

    /// Its port: it gets one if it has none. The first of a process has the number of the process.
    pub fn port(&self, own: u32, cx: &Cx) -> Result<u32> {
        static OTHER_PORTS: AtomicU32 = AtomicU32::new(FIRST_OTHER_PORT);
        let mut port = own;
        loop {
            let has = self.state.lock(cx).port();
            if has != 0 {
                return Ok(has);
            }
            match self.take_port(port, cx) {
                // Another thread has given it one, or somebody has this one.
                Err(Errno::EADDRINUSE | Errno::EINVAL) => {
                    port = OTHER_PORTS.fetch_add(1, Ordering::Relaxed) | FIRST_OTHER_PORT;
                }
                outcome => return outcome.map(|()| port),
            }
        }
    }

    /// Listens to those of the groups in `mask` that are in `groups`, and to no others of them.
    ///
    /// # Errors
    /// ENOBUFS: too many sockets listen.
    pub fn listen_to(&self, groups: u64, mask: u64, cx: &Cx) -> Result<()> {
        let mut state = self.state.lock(cx);
        let new = state.groups & !mask | groups & mask;
        if new != 0 && state.listening.is_none() {
            let mut listeners = LISTENERS.lock(cx);
            if listeners.len() >= MOST_LISTENERS || listeners.try_reserve(1).is_err() {
                return Err(Errno::ENOBUFS);
            }
            listeners.push(self.name);
            LISTENER_COUNT.store(listeners.len(), Ordering::Relaxed);
            drop(listeners);
            state.listening = Some(Listening(self.name));
        }
        state.groups = new;
        let over = if new == 0 { state.listening.take() } else { None };
        drop(state);
        drop(over);
        Ok(())
    }

    /// Gives it an answer; one that finds no room is lost, and it is told so.
    pub fn answer(&self, bytes: Vec<u8>, cx: &Cx) {
        self.put(Waiting { bytes, group: 0 }, cx);
    }

    fn put(&self, message: Waiting, cx: &Cx) {
        {
            let mut state = self.state.lock(cx);
            if !state.put(message, self.buffer.load(Ordering::Relaxed)) {
                self.lose(&mut state);
            }
        }
        self.readable.wake_all();
    }

    /// Gives it a copy of a notice; one for which there is no memory is lost.
    fn put_copy(&self, bytes: &[u8], group: u32, cx: &Cx) {
        let mut copy = Vec::new();
        if copy.try_reserve_exact(bytes.len()).is_err() {
            self.lose(&mut self.state.lock(cx));
            self.readable.wake_all();
        } else {
            copy.extend_from_slice(bytes);
            self.put(Waiting { bytes: copy, group }, cx);
        }
    }

    fn lose(&self, state: &mut State) {
        state.drops = state.drops.wrapping_add(1);
        if !self.is_on(NO_ENOBUFS) {
            state.error = Some(Errno::ENOBUFS);
        }
    }

    /// What the running task has asked and is not all done.
    pub fn take_asking(&self, cx: &Cx) -> Option<Asking> {
        let me = tasks::current(cx);
        let mut asking = self.asking.lock(cx);
        let at = asking.iter().position(|one| one.by == me)?;
        Some(asking.swap_remove(at))
    }

    /// It goes on later.
    pub fn keep_asking(&self, asking: Asking, cx: &Cx) {
        self.asking.lock(cx).push(asking);
    }

    /// Has a dump made as it is received.
    ///
    /// # Errors
    /// EBUSY: another goes on.
    pub fn begin(&self, dumping: Dumping, cx: &Cx) -> Result<()> {
        {
            let mut state = self.state.lock(cx);
            if !matches!(state.dump, Dump::None) {
                drop(state);
                return Err(Errno::EBUSY);
            }
            state.dump = Dump::Ready(dumping);
        }
        self.readable.wake_all();
        Ok(())
    }

    /// Makes the next piece of the dump that goes on, if nothing else waits.
    fn go_on(&self, cx: &Cx) -> Step<()> {
        let mut dumping = {
            let mut state = self.state.lock(cx);
            if !state.messages.is_empty() {
                return Ok(());
            }
            match core::mem::replace(&mut state.dump, Dump::Busy) {
                Dump::Ready(dumping) => dumping,
                other => {
                    state.dump = other;
                    return Ok(());
                }
            }
        };
        // With nothing locked: it looks at other sockets.
        let (bytes, is_last) = dumping.piece(cx);
        let found_nothing = bytes.is_empty();
        let (is_kept, over) = {
            let mut state = self.state.lock(cx);
            let is_kept = found_nothing || state.put(Waiting { bytes, group: 0 }, u32::MAX);
            let mut over = None;
            if is_last || !is_kept {
                state.dump = Dump::None;
                over = Some(dumping);
            } else {
                state.dump = Dump::Ready(dumping);
            }
            (is_kept, over)
        };
        drop(over);
        self.readable.wake_all();
        if !is_kept {
            return Err(Errno::ENOBUFS.into());
        }
        if found_nothing { Err(Stop::Pause(Interruption::Signals)) } else { Ok(()) }
    }

    /// Receives the next message.
    ///
    /// # Errors
    /// ENOBUFS: some were lost. `Block`; `Pause` where a dump has looked at much and found nothing. A fault.
    pub fn receive(&self, sink: &mut Sink<'_>, receiving: &Receiving, waker: Option<Waker>, cx: &Cx) -> Step<Message> {
        if let Some(waker) = waker {
            self.readable.register(waker, cx);
        }
        if let Some(error) = self.take_error(cx) {
            return Err(error.into());
        }
        self.go_on(cx)?;
        let mut state = self.state.lock(cx);
        let first = state.messages.front().ok_or(Stop::Block)?;
        let (copied, fault) = sink(&first.bytes);
        if let Some(fault) = fault {
            return Err(fault.into());
        }
        let message = Message { copied, len: first.bytes.len(), group: first.group };
        if !receiving.peeks() {
            state.pop();
        }
        Ok(message)
    }

    /// What was lost and was not told yet.
    pub fn take_error(&self, cx: &Cx) -> Option<Errno> {
        self.state.lock(cx).error.take()
    }

    /// What is ready.
    pub fn poll(&self, waker: Option<Waker>, cx: &Cx) -> Events {
        if let Some(waker) = waker {
            self.readable.register(waker, cx);
        }
        let state = self.state.lock(cx);
        let mut events = Events::OUT | Events::WRITE_NORMAL;
        events.set(
            Events::IN | Events::READ_NORMAL,
            !state.messages.is_empty() || matches!(state.dump, Dump::Ready(_)) || state.error.is_some(),
        );
        events.set(Events::ERROR, state.error.is_some());
        events
    }

    /// It is about to be closed: nobody finds it any more.
    pub fn close(&self, cx: &Cx) {
        // It leaves the listeners; that never fails.
        let _ = self.listen_to(0, u64::MAX, cx);
        let over = {
            let mut state = self.state.lock(cx);
            (state.port.take(), state.entered.take())
        };
        drop(over);
        self.readable.wake_all();
    }
}

impl State {
    /// Its port; 0: none yet.
    fn port(&self) -> u32 {
        self.port.as_ref().map_or(0, |port| port.number)
    }

    /// Whether there was room.
    fn put(&mut self, message: Waiting, buffer: u32) -> bool {
        let is_full = self.messages.len() >= MOST_MESSAGES || self.used > buffer as usize;
        if is_full || self.messages.try_reserve(1).is_err() || self.held.add(Held::Message, 1).is_err() {
            return false;
        }
        self.used += message.bytes.len() + OVERHEAD;
        self.messages.push_back(message);
        true
    }

    fn pop(&mut self) {
        if let Some(message) = self.messages.pop_front() {
            self.used -= message.bytes.len() + OVERHEAD;
            self.held.remove(Held::Message, 1);
        }
    }
}

/// Whether anybody listens to any group.
pub fn has_listeners() -> bool {
    LISTENER_COUNT.load(Ordering::Relaxed) > 0
}

/// Tells all who listen to a group of a protocol.
pub fn tell(protocol: u32, group: u32, bytes: &[u8], cx: &Cx) {
    if !has_listeners() {
        return;
    }
    // Those who come meanwhile hear of the next one; where one leaves, the last takes its place.
    let at = |index: usize| LISTENERS.lock(cx).get(index).copied();
    for listener in (0..MOST_LISTENERS).map_while(at).filter_map(|name| name.upgrade(cx).ok()) {
        let listens = {
            let state = listener.state.lock(cx);
            // As on Linux, one without a port hears nothing.
            state.port.is_some() && state.groups & 1_u64.checked_shl(group - 1).unwrap_or(0) != 0
        };
        if listens && listener.protocol.number() == protocol {
            listener.put_copy(bytes, group, cx);
        }
    }
}
