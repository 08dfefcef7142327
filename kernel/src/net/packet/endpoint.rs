//! [`Endpoint`]: a packet socket's end: which frames it wants, and what waits in it.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use frame::Cx;
use refs::{SpinLock, StrongRc, WaitList, Waker, WeakRc};
use tcpip::ethernet::HEADER_BYTES;

use super::ring::{self, Ring, Shape};
use super::seen::{Checksum, Direction, Seen};
use super::{Tap, Tapping};
use crate::error::{Errno, Result};
use crate::fs::Events;
use crate::net::filter::{self, Filter};
use crate::net::interface::{self, Interface};
use crate::net::registry::{Entered, Registry};
use crate::net::{Cookie, Receiving, Sink, Type};
use crate::reclaim::{Held, OfInbox, Payer};
use crate::step::{Step, Stop};
use crate::time::clock;

/// How much waits at most, where nobody said (SO_RCVBUF).
pub const DEFAULT_BUFFER: u32 = 212_992;
/// So many frames wait at most.
const MOST_FRAMES: usize = 1024;
/// What a frame takes beside its bytes, as Linux counts it.
const OVERHEAD: usize = 768;
/// All frames (ETH_P_ALL).
pub const ALL: u16 = 3;
/// The size of `struct sockaddr_ll`.
pub const ADDRESS_BYTES: usize = 20;
/// AF_PACKET.
pub const AF_PACKET: u16 = 17;

/// All open sockets, by their inodes.
pub static SOCKETS: Registry<Endpoint> = Registry::new();

/// A socket's end. Owner: its socket; others know it by name. Its destruction frees what waits in it, [`MOST_FRAMES`] at most, and its ring's pages; it is closed before, and who waits at it is woken by its end.
pub struct Endpoint {
    name: WeakRc<Endpoint>,
    /// SOCK_RAW: with the link's header; SOCK_DGRAM: without.
    pub kind: Type,
    /// Its number among all sockets.
    pub cookie: Cookie,
    /// The number of its inode.
    pub inode: AtomicU64,
    /// SO_RCVBUF.
    pub buffer: AtomicU32,
    /// Its ring, if it has one.
    pub ring: Ring,
    readable: WaitList,
    state: SpinLock<State>,
}

/// A frame that waits.
pub struct Waiting {
    /// What is received of it.
    bytes: Vec<u8>,
    /// How long it was.
    pub len: usize,
    /// When it was seen, in nanoseconds since 1970.
    pub time: u64,
    /// `struct sockaddr_ll`.
    pub address: [u8; ADDRESS_BYTES],
    /// Whether its checksum is there.
    pub checksum: Checksum,
}

/// What was received.
pub struct Message {
    /// How many bytes were copied, of how many.
    pub copied: usize,
    /// Likewise.
    pub len: usize,
    /// How long the frame was.
    pub frame_len: usize,
    /// When it was seen, in nanoseconds since 1970.
    pub time: u64,
    /// `struct sockaddr_ll`: from whom it came.
    pub address: [u8; ADDRESS_BYTES],
    /// Whether its checksum is there.
    pub checksum: Checksum,
}

struct State {
    protocol: u16,
    /// 0: all devices.
    device: u32,
    /// While it has a protocol.
    tapping: Option<Tapping>,
    frames: VecDeque<Waiting>,
    used: usize,
    held: OfInbox,
    filter: Option<Filter>,
    /// SO_LOCK_FILTER.
    is_filter_locked: bool,
    ignores_outgoing: bool,
    user: u32,
    /// How many frames were seen and lost since somebody asked (PACKET_STATISTICS).
    seen: u32,
    lost: u32,
    /// Somebody gives it a ring, or has.
    claims_ring: bool,
    /// The ring's shape, and the next slot; the one before was lost.
    shape: Option<Shape>,
    slot: u32,
    some_were_lost: bool,
    entered: Option<Entered<Endpoint>>,
}

/// What is told of a socket to those who list them.
pub struct Told {
    /// What it receives.
    pub protocol: u16,
    /// On which device; 0: on all.
    pub device: u32,
    /// How much waits.
    pub used: usize,
    /// Whose it is.
    pub user: u32,
    /// How many frames were lost.
    pub lost: u32,
}

impl Endpoint {
    /// A new one. What waits in it is charged to `payer`.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn new(kind: Type, user: u32, payer: &Payer) -> Result<StrongRc<Endpoint>> {
        let ring = Ring::new()?;
        Ok(StrongRc::new_cyclic(|name| Endpoint {
            name,
            kind,
            cookie: Cookie::default(),
            inode: AtomicU64::new(0),
            buffer: AtomicU32::new(DEFAULT_BUFFER),
            ring,
            readable: WaitList::new(),
            state: SpinLock::new(State {
                protocol: 0,
                device: 0,
                tapping: None,
                frames: VecDeque::new(),
                used: 0,
                held: OfInbox::of(payer),
                filter: None,
                is_filter_locked: false,
                ignores_outgoing: false,
                user,
                seen: 0,
                lost: 0,
                claims_ring: false,
                shape: None,
                slot: 0,
                some_were_lost: false,
                entered: None,
            }),
        }))
    }

    /// It is a file with this number from now on.
    pub fn note_inode(&self, number: u64) {
        self.inode.store(number, Ordering::Relaxed);
        let entered = SOCKETS.enter(number, self.name);
        self.state.with(|state| state.entered = Some(entered));
    }

    /// What is told of it.
    pub fn told(&self, cx: &Cx) -> Told {
        let state = self.state.lock(cx);
        Told { protocol: state.protocol, device: state.device, used: state.used, user: state.user, lost: state.lost }
    }

    /// About how many bytes come back when it is closed.
    pub fn kernel_bytes(&self, cx: &Cx) -> usize {
        let state = self.state.lock(cx);
        1024 + state.used + state.filter.as_ref().map_or(0, Filter::bytes) + self.ring.bytes()
    }

    /// Receives frames of a protocol, 0: of none; from one device, 0: from all.
    ///
    /// # Errors
    /// ENOBUFS: too many sockets receive frames, or their filters are too long.
    pub fn bind(&self, protocol: u16, device: u32, cx: &Cx) -> Result<()> {
        let mut state = self.state.lock(cx);
        let tap = self.tap(device, state.filter.as_ref());
        match &state.tapping {
            _ if protocol == 0 => state.tapping = None,
            Some(tapping) => tapping.change(tap, cx)?,
            None => state.tapping = Some(Tapping::new(tap, cx)?),
        }
        (state.protocol, state.device) = (protocol, device);
        Ok(())
    }

    fn tap(&self, device: u32, filter: Option<&Filter>) -> Tap {
        Tap { endpoint: self.name, device, instructions: filter.map_or(0, Filter::instructions) }
    }

    /// Has it receive only what a program wants; without one, all again.
    ///
    /// # Errors
    /// EPERM: that was locked. ENOENT: it has no program. ENOMEM: it is too long. ENOBUFS: those of all sockets are.
    pub fn set_filter(&self, filter: Option<Filter>, cx: &Cx) -> Result<()> {
        let old = {
            let mut state = self.state.lock(cx);
            if state.is_filter_locked {
                return Err(Errno::EPERM);
            }
            if filter.is_none() && state.filter.is_none() {
                return Err(Errno::ENOENT);
            }
            if filter.as_ref().is_some_and(|filter| filter.bytes() > filter::MOST_BYTES) {
                return Err(Errno::ENOMEM);
            }
            if let Some(tapping) = &state.tapping {
                tapping.change(self.tap(state.device, filter.as_ref()), cx)?;
            }
            core::mem::replace(&mut state.filter, filter)
        };
        drop(old);
        Ok(())
    }

    /// Whether it keeps its program for ever (SO_LOCK_FILTER).
    pub fn is_filter_locked(&self, cx: &Cx) -> bool {
        self.state.lock(cx).is_filter_locked
    }

    /// It keeps its program for ever.
    pub fn lock_filter(&self, cx: &Cx) {
        self.state.lock(cx).is_filter_locked = true;
    }

    /// Whether frames that go are not for it (PACKET_IGNORE_OUTGOING).
    pub fn ignore_outgoing(&self, ignores: bool, cx: &Cx) {
        self.state.lock(cx).ignores_outgoing = ignores;
    }

    /// Has frames go into a ring of that shape; without slots it has none again.
    ///
    /// # Errors
    /// EBUSY: it has one. EINVAL, ENOMEM: it cannot be so.
    pub fn set_ring(&self, shape: Shape, cx: &Cx) -> Result<()> {
        if self.ring.is_there() {
            // It may be mapped, and stays until the socket is closed.
            return Err(Errno::EBUSY);
        }
        if shape.blocks == 0 {
            return if shape.slots == 0 { Ok(()) } else { Err(Errno::EINVAL) };
        }
        shape.check()?;
        if core::mem::replace(&mut self.state.lock(cx).claims_ring, true) {
            return Err(Errno::EBUSY);
        }
        let outcome = self.ring.shape(&shape, cx);
        let mut state = self.state.lock(cx);
        match outcome {
            Ok(()) => (state.shape, state.slot) = (Some(shape), 0),
            Err(_) => state.claims_ring = false,
        }
        outcome
    }

    /// How many frames it has seen and how many were lost, since that was asked last.
    pub fn take_statistics(&self, cx: &Cx) -> [u32; 2] {
        let mut state = self.state.lock(cx);
        [core::mem::take(&mut state.seen), core::mem::take(&mut state.lost)]
    }

    /// Whether it wants a frame, and puts it where it is received.
    pub(super) fn show(&self, seen: &Seen<'_>, cx: &Cx) {
        let Some(kind) = seen.kind() else { return };
        let frame = seen.frame;
        {
            let mut state = self.state.lock(cx);
            let is_of_kind = state.protocol == ALL || state.protocol == kind && seen.direction == Direction::In;
            let is_of_device = state.device == 0 || state.device == seen.device;
            let is_ignored = state.ignores_outgoing && seen.direction == Direction::Out;
            if !is_of_kind || !is_of_device || is_ignored {
                return;
            }
            let start = if self.kind == Type::Raw { 0 } else { HEADER_BYTES };
            let packet = filter::Packet {
                frame,
                start,
                network: HEADER_BYTES,
                protocol: kind,
                audience: seen.audience(),
                device: seen.device,
                hardware: seen.hardware,
            };
            let wanted = state.filter.as_ref().map_or(u32::MAX, |filter| filter.run(&packet));
            if wanted == 0 {
                return;
            }
            state.seen = state.seen.wrapping_add(1);
            let whole = &frame[start..];
            let bytes = &whole[..whole.len().min(wanted as usize)];
            let address = seen.address();
            let is_kept = match state.shape {
                Some(shape) => {
                    let entry = ring::Entry {
                        bytes,
                        len: whole.len(),
                        link_bytes: HEADER_BYTES - start,
                        time: clock::real_time(),
                        address,
                        some_were_lost: state.some_were_lost,
                        checksum: seen.checksum,
                    };
                    let is_entered = self.ring.enter(&shape, state.slot, &entry, cx).is_some();
                    if is_entered {
                        state.slot = (state.slot + 1) % shape.slots;
                    }
                    state.some_were_lost = !is_entered;
                    is_entered
                }
                None => {
                    let frame = Waiting {
                        bytes: Vec::new(),
                        len: whole.len(),
                        time: clock::real_time(),
                        address,
                        checksum: seen.checksum,
                    };
                    state.put(frame, bytes, self.buffer.load(Ordering::Relaxed))
                }
            };
            if !is_kept {
                state.lost = state.lost.wrapping_add(1);
                return;
            }
        }
        self.readable.wake();
    }

    /// Receives the next frame.
    ///
    /// # Errors
    /// `Block` while there is none. A fault.
    pub fn receive(&self, sink: &mut Sink<'_>, receiving: &Receiving, waker: Option<Waker>, cx: &Cx) -> Step<Message> {
        if let Some(waker) = waker {
            self.readable.register(waker, cx);
        }
        let mut state = self.state.lock(cx);
        let first = state.frames.front().ok_or(Stop::Block)?;
        let (copied, fault) = sink(&first.bytes);
        if let Some(fault) = fault {
            return Err(fault.into());
        }
        let message = Message {
            copied,
            len: first.bytes.len(),
            frame_len: first.len,
            time: first.time,
            address: first.address,
            checksum: first.checksum,
        };
        if !receiving.peeks()
            && let Some(frame) = state.frames.pop_front()
        {
            state.used -= frame.bytes.len() + OVERHEAD;
            state.held.remove(Held::Message, 1);
        }
        Ok(message)
    }

    /// How long the next frame is (FIONREAD).
    pub fn waiting_bytes(&self, cx: &Cx) -> usize {
        self.state.lock(cx).frames.front().map_or(0, |frame| frame.bytes.len())
    }

    /// What is ready.
    pub fn poll(&self, waker: Option<Waker>, cx: &Cx) -> Events {
        if let Some(waker) = waker {
            self.readable.register(waker, cx);
        }
        let state = self.state.lock(cx);
        let in_ring = state.shape.is_some_and(|shape| {
            let last = (state.slot + shape.slots - 1) % shape.slots;
            !self.ring.is_free(&shape, last, cx)
        });
        let mut events = Events::OUT | Events::WRITE_NORMAL;
        events.set(Events::IN | Events::READ_NORMAL, in_ring || !state.frames.is_empty());
        events
    }

    /// It is about to be closed: it is shown nothing any more.
    pub fn close(&self, cx: &Cx) {
        let over = {
            let mut state = self.state.lock(cx);
            (state.tapping.take(), state.entered.take())
        };
        drop(over);
        self.readable.wake_all();
    }
}

/// The interface with that number.
///
/// # Errors
/// ENXIO: there is none, or it is the loopback device, over which no frames can be sent.
pub fn interface_of(index: u32) -> Result<&'static Interface> {
    interface::all().find(|interface| interface.index == index).ok_or(Errno::ENXIO)
}

/// `struct sockaddr_ll` with the fields that a socket's own address has.
pub fn encode(kind: u16, device: u32, hardware: Option<u16>) -> [u8; ADDRESS_BYTES] {
    let mut address = [0; ADDRESS_BYTES];
    address[..2].copy_from_slice(&AF_PACKET.to_le_bytes());
    address[2..4].copy_from_slice(&kind.to_be_bytes());
    address[4..8].copy_from_slice(&device.to_le_bytes());
    if let Some(hardware) = hardware {
        address[8..10].copy_from_slice(&hardware.to_le_bytes());
        address[11] = 6;
    }
    address
}

impl State {
    /// Whether there was room.
    fn put(&mut self, mut frame: Waiting, bytes: &[u8], buffer: u32) -> bool {
        let is_full = self.frames.len() >= MOST_FRAMES || self.used > buffer as usize;
        if is_full
            || frame.bytes.try_reserve_exact(bytes.len()).is_err()
            || self.frames.try_reserve(1).is_err()
            || self.held.add(Held::Message, 1).is_err()
        {
            return false;
        }
        frame.bytes.extend_from_slice(bytes);
        self.used += bytes.len() + OVERHEAD;
        self.frames.push_back(frame);
        true
    }
}
