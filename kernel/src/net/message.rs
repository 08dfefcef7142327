//! What passes between a call and a socket of any family: [`Sending`] and [`Received`].

use alloc::vec::Vec;

use frame::Cx;
use frame::mm::{Fault, Reader, Writer};
use linux_raw_sys::net;
use refs::StrongRc;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::error::Errno;
use crate::fs::{OpenFile, VfsCaller};
use crate::ring::Ring;
use crate::step::{Step, Stop};
use crate::user_memory::{In, Out, UserBuffer, UserMemory};

/// Open files that are received.
pub type Files = Vec<StrongRc<OpenFile>>;

/// `struct ucred`: who is at an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Credentials {
    /// The process.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
}

impl Credentials {
    /// Those of the calling process.
    pub fn of(me: &(impl VfsCaller + ?Sized), cx: &Cx) -> Result<Self, Errno> {
        let credentials = me.credentials(cx)?.lock(cx);
        Ok(Credentials {
            pid: me.pid(cx)?,
            uid: credentials.users().effective.number(),
            gid: credentials.groups().effective.number(),
        })
    }
}

/// A part of a message's ancillary data: cmsg(3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// `SOL_*`.
    pub level: u32,
    /// What it is.
    pub kind: u32,
    /// Its bytes.
    pub data: Vec<u8>,
}

/// How something is to be received.
#[derive(Clone, Copy, Debug)]
pub struct Receiving {
    /// `MSG_*`.
    pub flags: u32,
    /// For how many bytes the receiver has room.
    pub room: usize,
}

impl Receiving {
    /// Whether what is received stays there.
    pub fn peeks(&self) -> bool {
        self.flags & net::MSG_PEEK != 0
    }

    /// Whether fewer bytes than there is room for are not enough.
    pub fn waits_for_all(&self) -> bool {
        self.flags & net::MSG_WAITALL != 0
    }
}

/// What is to be sent beside the bytes.
pub struct Sending<'a> {
    /// `MSG_*`.
    pub flags: u32,
    /// What is said of the message to the protocol.
    pub control: &'a [Control],
    /// Open files that go along.
    pub files: &'a [StrongRc<OpenFile>],
    /// Who it says has sent it.
    pub credentials: Credentials,
}

/// Where bytes to be sent come from.
pub trait Source {
    /// How many there are.
    fn remaining(&self) -> usize;

    /// Takes up to `most` of them.
    ///
    /// # Errors
    /// A fault on the first; ENOBUFS.
    fn take(&mut self, most: usize) -> Step<Vec<u8>>;

    /// Takes as many of them as there are and fit: how many.
    ///
    /// # Errors
    /// A fault on the first.
    fn fill(&mut self, bytes: &mut [u8]) -> Step<usize>;

    /// Moves up to `most` of them into a queue that has memory for so many: how many.
    ///
    /// # Errors
    /// A fault on the first.
    fn push_to(&mut self, ring: &mut Ring, most: usize) -> Step<usize>;
}

/// Where received bytes go: takes as many as fit and says how many, and which fault ended it.
pub type Sink<'a> = dyn FnMut(&[u8]) -> (usize, Option<Fault>) + 'a;

/// What becomes of the pieces of a stream that were taken where memory faults at a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtFault {
    /// They are taken: nothing can be done about the memory.
    Keep,
    /// Nothing is taken: the call is run again when the memory is accessible.
    Undo,
}

/// Has a call receive, which writes from the start of the caller's memory each time. What was received before a fault counts only where the memory is none that could be made accessible.
///
/// # Errors
/// Those of `attempt`.
pub fn receive_all<T>(memory: &UserMemory<'_>, mut attempt: impl FnMut(AtFault) -> Step<T>) -> Step<T> {
    match attempt(AtFault::Undo) {
        Err(Stop::Fault { address, access }) if !memory.permits(Fault { address, access }) => attempt(AtFault::Keep),
        outcome => outcome,
    }
}

/// An empty list with room for `len` bytes.
fn room_for(len: usize) -> Result<Vec<u8>, Errno> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|_| Errno::ENOBUFS)?;
    Ok(bytes)
}

impl Source for Reader<'_> {
    fn remaining(&self) -> usize {
        Reader::remaining(self)
    }

    fn take(&mut self, most: usize) -> Step<Vec<u8>> {
        let mut bytes = room_for(most.min(Reader::remaining(self)))?;
        bytes.resize(most.min(Reader::remaining(self)), 0);
        let copied = self.fill(&mut bytes)?;
        bytes.truncate(copied);
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Step<usize> {
        let before = Reader::remaining(self);
        let outcome = self.read(bytes);
        match (outcome, before - Reader::remaining(self)) {
            (Err(fault), 0) => Err(fault.into()),
            (_, copied) => Ok(copied),
        }
    }

    fn push_to(&mut self, ring: &mut Ring, most: usize) -> Step<usize> {
        Ok(ring.push_at_most(self, most)?)
    }
}

/// Bytes to be sent, from pieces of the caller's memory one behind the other.
pub struct Gather<'a> {
    pieces: &'a [UserBuffer<u8, In>],
    done: usize,
    len: usize,
    memory: &'a UserMemory<'a>,
}

impl<'a> Gather<'a> {
    /// Those behind the first `done`.
    pub fn new(pieces: &'a [UserBuffer<u8, In>], done: usize, memory: &'a UserMemory<'a>) -> Self {
        Gather { pieces, done, len: pieces.iter().map(|piece| piece.len()).sum(), memory }
    }
}

impl Source for Gather<'_> {
    fn remaining(&self) -> usize {
        self.len - self.done
    }

    fn take(&mut self, most: usize) -> Step<Vec<u8>> {
        let most = most.min(self.remaining());
        let mut bytes = room_for(most)?;
        bytes.resize(most, 0);
        let taken = self.fill(&mut bytes)?;
        bytes.truncate(taken);
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Step<usize> {
        let most = bytes.len().min(self.remaining());
        let mut taken = 0;
        let mut skip = self.done;
        for &piece in self.pieces {
            let skipped = skip.min(piece.len());
            skip -= skipped;
            let piece = piece.behind(skipped).first(most - taken);
            let count = piece.len();
            if count == 0 {
                continue;
            }
            let mut reader = self.memory.reader(piece.slice());
            let outcome = reader.read(&mut bytes[taken..taken + count]);
            taken += count - Reader::remaining(&reader);
            match outcome {
                Ok(_) => {}
                Err(fault) if taken == 0 => return Err(fault.into()),
                Err(_) => break,
            }
        }
        self.done += taken;
        Ok(taken)
    }

    fn push_to(&mut self, ring: &mut Ring, most: usize) -> Step<usize> {
        let mut pushed = 0;
        let mut skip = self.done;
        for &piece in self.pieces {
            let skipped = skip.min(piece.len());
            skip -= skipped;
            let piece = piece.behind(skipped).first(most - pushed);
            if piece.is_empty() {
                continue;
            }
            match ring.push(&mut self.memory.reader(piece.slice())) {
                Ok(count) => pushed += count,
                Err(fault) if pushed == 0 => return Err(fault.into()),
                Err(_) => break,
            }
        }
        self.done += pushed;
        Ok(pushed)
    }
}

/// What was received, beside its bytes.
#[derive(Default)]
pub struct Received {
    /// How many bytes were copied.
    pub copied: usize,
    /// How long the message was.
    pub len: usize,
    /// From which address; empty if that has no name.
    pub from: Vec<u8>,
    /// Open files that came along.
    pub files: Files,
    /// Who sent it, where the receiver wants to know.
    pub credentials: Option<Credentials>,
    /// What else is told of it.
    pub control: Vec<Control>,
    /// Of `MSG_*`, what recvmsg(2) tells.
    pub flags: u32,
}

/// Has read(2) receive from a socket.
///
/// # Errors
/// Those of `receive`.
pub fn read_into(
    to: &mut Writer<'_>,
    me: &dyn VfsCaller,
    cx: &Cx,
    mut receive: impl FnMut(&mut Sink<'_>, AtFault) -> Step<Received>,
) -> Step<usize> {
    let received = receive_all(&me.memory(cx)?, |at_fault| {
        let mut to = to.reborrow();
        let mut sink = |bytes: &[u8]| {
            let before = to.remaining();
            let fault = to.write(bytes).err();
            (before - to.remaining(), fault)
        };
        receive(&mut sink, at_fault)
    })?;
    to.skip(received.copied);
    Ok(received.copied)
}

/// Has write(2) send as much as there is room for: how many bytes.
///
/// # Errors
/// Those of `send` where nothing was sent, and those that come with a signal.
pub fn send_all(from: &mut Reader<'_>, mut send: impl FnMut(&mut Reader<'_>) -> Step<usize>) -> Step<usize> {
    let mut sent = 0;
    loop {
        match send(from) {
            Ok(count) => sent += count,
            // What was sent counts more than why it stopped.
            Err(Stop::Block | Stop::Fault { .. }) if sent > 0 => break,
            Err(stop) => return Err(stop),
        }
        if from.remaining() == 0 {
            break;
        }
    }
    Ok(sent)
}

/// Where received bytes go in the caller's memory, one piece behind the other.
pub struct Scatter<'a> {
    pieces: &'a [UserBuffer<u8, Out>],
    /// How many bytes were written.
    done: usize,
}

impl<'a> Scatter<'a> {
    /// From byte number `done` of the pieces on.
    pub fn new(pieces: &'a [UserBuffer<u8, Out>], done: usize) -> Self {
        Scatter { pieces, done }
    }

    /// Writes as many bytes as fit; how many, and the fault that ended it.
    pub fn write(&mut self, bytes: &[u8], memory: &UserMemory<'_>) -> (usize, Option<Fault>) {
        let mut written = 0;
        let mut skip = self.done;
        for &piece in self.pieces {
            let skipped = skip.min(piece.len());
            skip -= skipped;
            let piece = piece.behind(skipped).first(bytes.len() - written);
            let count = piece.len();
            if count == 0 {
                continue;
            }
            let mut writer = memory.writer(piece.slice());
            let outcome = writer.write(&bytes[written..written + count]);
            let copied = count - writer.remaining();
            written += copied;
            self.done += copied;
            if let Err(fault) = outcome {
                return (written, Some(fault));
            }
        }
        (written, None)
    }
}
