//! Pairs of connected local sockets (unix(7), socketpair(2)): two-way pipes, of bytes or of packets.
//!
//! ```text
//!   SocketEnd --outgoing--> Channel --incoming--> SocketEnd
//!        ^-----incoming---- Channel <--outgoing------'
//! ```
//!
//! Both ends own both channels; an end that is closed says so in them. A packet is in a channel as its length (4 bytes) and its bytes, so packets
//! go in and come out whole.
//!
//! Locks: a channel's state is locked alone; waiters are woken after it is unlocked.

use alloc::vec;

use frame::Cx;
use frame::mm::{Reader, Writer};
use linux_raw_sys::ioctl::FIONREAD;
use refs::{SpinLock, StrongRc, WaitList, Waker};

use super::ring::Ring;
use super::{Events, File};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::step::{Step, Stop};

/// How much one direction holds.
const CAPACITY: usize = 1 << 17;
const HEADER: usize = 4;
/// The largest packet. Beyond what the ring appends at once, so it goes through a buffer of the kernel.
const MOST_IN_PACKET: usize = CAPACITY - HEADER;
/// From so much room on a stream is ready to be written.
const ROOM_TO_WRITE: usize = 4096;

/// What the bytes in a pair mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// SOCK_STREAM: a stream of bytes.
    Stream,
    /// SOCK_SEQPACKET, SOCK_DGRAM: packets, in order.
    Packets,
}

/// Whether what is received stays to be received again (MSG_PEEK).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receive {
    /// It is taken.
    Take,
    /// It stays.
    Peek,
}

/// Which directions shutdown(2) ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shutdown {
    /// Nothing more will be received.
    pub receiving: bool,
    /// Nothing more will be sent.
    pub sending: bool,
}

/// One direction.
struct Channel {
    state: SpinLock<State>,
    readable: WaitList,
    writable: WaitList,
}

struct State {
    ring: Ring,
    /// Nobody will receive any more.
    is_deaf: bool,
    /// Nobody will send any more.
    is_mute: bool,
}

/// One end of a pair.
pub struct SocketEnd {
    incoming: StrongRc<Channel>,
    outgoing: StrongRc<Channel>,
    framing: Framing,
}

impl Channel {
    fn new() -> StrongRc<Channel> {
        StrongRc::new(Channel {
            state: SpinLock::new(State { ring: Ring::new(CAPACITY), is_deaf: false, is_mute: false }),
            readable: WaitList::new(),
            writable: WaitList::new(),
        })
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        self.state.with(change);
        self.readable.wake_all();
        self.writable.wake_all();
    }
}

impl State {
    /// The length of the first packet. (A header is always there with its packet: they are appended at once.)
    fn first_packet(&self) -> Result<usize> {
        let mut header = [0; HEADER];
        self.ring.copy(&mut Writer::from(&mut header[..])).map_err(|_| Errno::EIO)?;
        Ok(u32::from_ne_bytes(header) as usize)
    }

    fn forget(&mut self, count: usize) -> Result<()> {
        let mut bytes = vec![0; count];
        self.ring.pop(&mut Writer::from(&mut bytes[..])).map_err(|_| Errno::EIO)?;
        Ok(())
    }
}

impl SocketEnd {
    /// Two connected ends.
    pub fn pair(framing: Framing) -> (SocketEnd, SocketEnd) {
        let (there, back) = (Channel::new(), Channel::new());
        let other = SocketEnd { incoming: there.share(), outgoing: back.share(), framing };
        (SocketEnd { incoming: back, outgoing: there, framing }, other)
    }

    /// What its bytes mean.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Receives at most `most` bytes of the stream, or of one packet, whose rest is lost: hands them to `deliver` and takes them only if that
    /// goes well. How many were delivered, and how long the packet was.
    ///
    /// # Errors
    /// Those of `deliver`. Says `Block` where nothing is there; 0 bytes where nothing will come.
    pub fn receive(
        &self,
        most: usize,
        how: Receive,
        cx: &Cx,
        deliver: impl FnOnce(&[u8]) -> Step<()>,
    ) -> Step<(usize, usize)> {
        let channel = self.incoming.get(cx);
        let mut state = channel.state.lock(cx);
        if state.ring.is_empty() {
            return if state.is_mute || state.is_deaf { Ok((0, 0)) } else { Err(Stop::Block) };
        }
        let (skip, whole) = match self.framing {
            Framing::Stream => (0, state.ring.len().min(most)),
            Framing::Packets => (HEADER, state.first_packet()?),
        };
        let count = whole.min(most);
        let mut bytes = vec![0; skip + count];
        state.ring.copy(&mut Writer::from(&mut bytes[..]))?;
        deliver(bytes.get(skip..).unwrap_or_default())?;
        if how == Receive::Take {
            state.forget(skip + whole)?;
        }
        drop(state);
        channel.writable.wake_all();
        Ok((count, whole))
    }

    /// Sends the bytes: as many of a stream's as there is room for, all of a packet's. How many.
    ///
    /// # Errors
    /// EPIPE: nobody will receive them. EMSGSIZE: a packet that is too long. Says `Block` where there is no room.
    fn send(&self, from: &mut Reader<'_>, cx: &Cx) -> Step<usize> {
        let len = from.remaining();
        let channel = self.outgoing.get(cx);
        let mut state = channel.state.lock(cx);
        if state.is_deaf || state.is_mute {
            return Err(Errno::EPIPE.into());
        }
        let count = match self.framing {
            Framing::Stream if len == 0 => return Ok(0),
            Framing::Stream if state.ring.room() == 0 => return Err(Stop::Block),
            Framing::Stream => state.ring.push(from)?,
            Framing::Packets if len > MOST_IN_PACKET => return Err(Errno::EMSGSIZE.into()),
            Framing::Packets if state.ring.room() < HEADER + len => return Err(Stop::Block),
            Framing::Packets => {
                let mut packet = vec![0; HEADER + len];
                let (header, bytes) = packet.split_at_mut(HEADER);
                header.copy_from_slice(&(len as u32).to_ne_bytes());
                from.read(bytes)?;
                state.ring.push(&mut Reader::from(&packet[..]))?;
                len
            }
        };
        drop(state);
        channel.readable.wake_all();
        Ok(count)
    }

    /// Ends directions (shutdown(2)); what was sent before can still be received.
    pub fn shut_down(&self, what: Shutdown, cx: &Cx) {
        if what.receiving {
            self.incoming.get(cx).change(|state| state.is_deaf = true);
        }
        if what.sending {
            self.outgoing.get(cx).change(|state| state.is_mute = true);
        }
    }
}

impl Drop for SocketEnd {
    fn drop(&mut self) {
        self.incoming.with(|channel| channel.change(|state| state.is_deaf = true));
        self.outgoing.with(|channel| channel.change(|state| state.is_mute = true));
    }
}

impl File for SocketEnd {
    fn read(&self, _offset: u64, to: &mut Writer<'_>, _me: &Current, cx: &Cx) -> Step<usize> {
        let most = to.remaining();
        if most == 0 && self.framing == Framing::Stream {
            return Ok(0);
        }
        let (count, _) = self.receive(most, Receive::Take, cx, |bytes| Ok(to.write(bytes).map(|_| ())?))?;
        Ok(count)
    }

    fn write(&self, _offset: u64, from: &mut Reader<'_>, _me: &Current, cx: &Cx) -> Step<usize> {
        self.send(from, cx)
    }

    fn poll(&self, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        let (incoming, outgoing) = (self.incoming.get(cx), self.outgoing.get(cx));
        if let Some(waker) = waker {
            // Hanging up is told by the lists of both directions, whatever is asked for.
            incoming.readable.register(waker, cx);
            outgoing.writable.register(waker, cx);
        }
        let mut events = Events::empty();
        let nothing_will_come = {
            let state = incoming.state.lock(cx);
            if !state.ring.is_empty() {
                events |= Events::IN | Events::READ_NORMAL;
            }
            state.is_mute || state.is_deaf
        };
        if nothing_will_come {
            events |= Events::IN | Events::READ_NORMAL | Events::READ_HANG_UP;
        }
        let state = outgoing.state.lock(cx);
        if state.is_deaf || state.is_mute {
            events |= Events::OUT | Events::WRITE_NORMAL;
            if nothing_will_come {
                events |= Events::HANG_UP;
            }
        } else if state.ring.room() >= ROOM_TO_WRITE {
            events |= Events::OUT | Events::WRITE_NORMAL;
        }
        events & (interest | Events::ERROR | Events::HANG_UP)
    }

    fn ioctl(&self, request: u32, argument: usize, me: &Current, cx: &Cx) -> Step<usize> {
        if request != FIONREAD {
            return Err(Errno::ENOTTY.into());
        }
        let waiting = {
            let channel = self.incoming.get(cx);
            let state = channel.state.lock(cx);
            match self.framing {
                Framing::Packets if !state.ring.is_empty() => state.first_packet()?,
                _ => state.ring.len(),
            }
        };
        me.memory(cx)?.write(argument, &(waiting as i32))?;
        Ok(0)
    }
}
