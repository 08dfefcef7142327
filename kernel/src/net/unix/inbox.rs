//! [`Inbox`]: what was sent to an endpoint and not read yet.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use frame::mm::Fault;
use refs::StrongRc;

use super::{Address, garbage};
use crate::error::{Errno, Result};
use crate::fs::in_flight::InFlight;
use crate::fs::{CountedMessages, UnseenContents};
use crate::net::{AtFault, Credentials, Files};
use crate::reclaim::{Held, OfInbox, Payer};

/// Open files in a message: SCM_RIGHTS.
pub type Rights = Vec<InFlight>;

/// The most bytes in an inbox.
pub const CAPACITY: usize = 212_992;
/// The most messages in the inbox of a socket of messages: each has a cost, also an empty one.
const MAX_PACKETS: usize = 278;
/// Pieces of a stream are joined up to this size.
const JOINED: usize = 4096;

/// One message, or a piece of a stream.
pub struct Packet {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// How many were read already (of a stream).
    pub read: usize,
    /// Descriptions that come with its first byte.
    pub rights: Rights,
    /// Who sent it.
    pub credentials: Credentials,
    /// From which address.
    pub from: Option<Address>,
}

impl Packet {
    /// The bytes that were not read yet.
    pub fn rest(&self) -> &[u8] {
        &self.bytes[self.read..]
    }

    /// Its sender's address; empty if that has no name.
    pub fn sender(&self) -> Vec<u8> {
        self.from.as_ref().map_or(Vec::new(), |from| Address::encode(Some(from)))
    }

    /// The open files that came with it: taken out, or (`peek`) shared.
    pub fn files(&mut self, peek: bool) -> Files {
        if self.rights.is_empty() {
            return Files::new();
        }
        let _transfer = garbage::Transfer::begin();
        if peek {
            self.rights.iter().filter_map(InFlight::share).collect()
        } else {
            core::mem::take(&mut self.rights).into_iter().filter_map(InFlight::land).collect()
        }
    }
}

/// What was sent and not read yet, in order.
#[derive(Default)]
pub struct Inbox {
    packets: VecDeque<Packet>,
    /// Bytes not read yet.
    bytes: usize,
    /// How many messages are about to come, and how many bytes they have together.
    reserved: (usize, usize),
    /// Nobody reads it any more, and nothing comes into it.
    is_closed: bool,
    /// What waits here, or is about to come, and who is charged for its end: messages, descriptors in them, and (a listener's) connections.
    held: Charges,
}

/// With what else the messages of an inbox are counted and charged.
enum Charges {
    /// With nothing.
    Alone(OfInbox),
    /// With what is in the other files of a table that nobody else sees.
    Together(CountedMessages),
}

impl Default for Charges {
    fn default() -> Self {
        Charges::Alone(OfInbox::default())
    }
}

impl Charges {
    fn payer(&self) -> Payer {
        match self {
            Charges::Alone(held) => held.payer().share(),
            Charges::Together(messages) => messages.payer(),
        }
    }

    #[inline(always)]
    fn count(&self, class: Held) -> u32 {
        match self {
            Charges::Alone(held) => held.count(class),
            Charges::Together(messages) => messages.count(class),
        }
    }

    #[inline(always)]
    fn add(&mut self, class: Held, more: u32) -> Result<()> {
        match self {
            Charges::Alone(held) => held.add(class, more),
            Charges::Together(messages) => messages.add(class, more),
        }
    }

    #[inline(always)]
    fn remove(&mut self, class: Held, less: u32) {
        match self {
            Charges::Alone(held) => held.remove(class, less),
            Charges::Together(messages) => messages.remove(class, less),
        }
    }
}

impl Inbox {
    /// An empty one, whose messages are charged to `payer`.
    pub fn new(payer: &Payer) -> Self {
        Inbox { held: Charges::Alone(OfInbox::of(payer)), ..Inbox::default() }
    }

    /// Who is charged for what waits here.
    pub fn payer(&self) -> Payer {
        self.held.payer()
    }

    /// It is empty, and what comes is counted with what else is in the table's unseen files.
    pub fn join_contents(&mut self, contents: &StrongRc<UnseenContents>) {
        self.held = Charges::Together(CountedMessages::new(contents));
    }

    /// What is in it is counted by itself from now on.
    pub fn leave_contents(&mut self) {
        match core::mem::take(&mut self.held) {
            Charges::Together(messages) => self.held = Charges::Alone(messages.leave()),
            alone => self.held = alone,
        }
    }

    /// Whether the table that its socket is in has ended, and nobody sees it.
    pub fn is_left(&self) -> bool {
        matches!(&self.held, Charges::Together(messages) if messages.memory.is_left())
    }

    /// How many bytes of it are counted, which are not from now on.
    pub fn take_counted(&mut self) -> usize {
        let Charges::Together(messages) = &mut self.held else { return 0 };
        let counted = messages.memory.bytes();
        messages.memory.set_bytes(0);
        counted
    }

    /// It has become more, or less.
    #[inline(always)]
    fn count_memory(&mut self) {
        if let Charges::Together(messages) = &mut self.held {
            messages.memory.set_bytes(self.bytes + self.packets.capacity() * size_of::<Packet>());
        }
    }

    /// A connection is to wait for being accepted.
    ///
    /// # Errors
    /// ENOMEM: the budget has no room.
    pub fn charge_connection(&mut self) -> Result<()> {
        self.held.add(Held::Socket, 1)
    }

    /// So many connections wait no more.
    pub fn end_connections(&mut self, count: u32) {
        self.held.remove(Held::Socket, count);
    }

    /// A connection waits again, whatever the budget.
    pub fn put_connection_back(&mut self) {
        match &mut self.held {
            Charges::Alone(held) => held.add_always(Held::Socket),
            Charges::Together(messages) => messages.add_always(Held::Socket),
        }
    }

    /// Nothing comes into it from now on; whether something was not read.
    pub fn close(&mut self) -> bool {
        self.is_closed = true;
        !self.is_empty()
    }

    /// Whether nothing comes into it any more.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Bytes not read yet.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many bytes fit beside those for which room is reserved.
    pub fn room(&self) -> usize {
        let (packets, bytes) = self.reserved;
        if self.packets.len() + packets >= MAX_PACKETS { 0 } else { CAPACITY.saturating_sub(self.bytes + bytes) }
    }

    /// Keeps room for a message of `len` bytes with so many descriptors until it is given back or [cancelled](Self::cancel).
    ///
    /// # Errors
    /// ENOBUFS, ETOOMANYREFS: the budget has no room.
    pub fn reserve(&mut self, len: usize, rights: u32) -> Result<()> {
        let refused = if rights > 0 { Errno::ETOOMANYREFS } else { Errno::ENOBUFS };
        self.held.add(Held::Message, 1).map_err(|_| refused)?;
        if rights > 0 && self.held.add(Held::InFlight, rights).is_err() {
            self.held.remove(Held::Message, 1);
            return Err(refused);
        }
        self.reserved.0 += 1;
        self.reserved.1 += len;
        Ok(())
    }

    /// The message for which room was reserved does not come.
    pub fn cancel(&mut self, len: usize, rights: u32) {
        self.give_back(len);
        self.held.remove(Held::Message, 1);
        self.held.remove(Held::InFlight, rights);
    }

    /// Gives back room that was reserved for `len` bytes: the message comes.
    pub fn give_back(&mut self, len: usize) {
        self.reserved.0 -= 1;
        self.reserved.1 -= len;
    }

    /// The oldest message.
    pub fn front(&mut self) -> Option<&mut Packet> {
        self.packets.front_mut()
    }

    /// Appends a message.
    pub fn push(&mut self, packet: Packet) {
        self.bytes += packet.bytes.len();
        self.packets.push_back(packet);
        self.count_memory();
    }

    /// Appends a piece of a stream, to the last one where nothing tells them apart.
    pub fn push_stream(&mut self, packet: Packet) {
        if let Some(last) = self.packets.back_mut()
            && packet.rights.is_empty()
            && last.rights.is_empty()
            && last.credentials == packet.credentials
            && last.bytes.len() + packet.bytes.len() <= JOINED
        {
            self.bytes += packet.bytes.len();
            last.bytes.extend_from_slice(&packet.bytes);
            self.held.remove(Held::Message, 1);
            self.count_memory();
            return;
        }
        self.push(packet);
    }

    /// Takes the oldest message out.
    pub fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.bytes -= packet.bytes.len() - packet.read;
        self.held.remove(Held::Message, 1);
        self.held.remove(Held::InFlight, packet.rights.len() as u32);
        self.count_memory();
        Some(packet)
    }

    /// Takes all messages out.
    pub fn take_all(&mut self) -> Inbox {
        let mut all = Inbox {
            packets: core::mem::take(&mut self.packets),
            bytes: core::mem::take(&mut self.bytes),
            ..Inbox::default()
        };
        // They count there as they did here, and are charged to nobody any more.
        let counts = [
            (Held::Message, all.packets.len()),
            (Held::InFlight, all.packets.iter().map(|packet| packet.rights.len()).sum()),
        ];
        for (class, count) in counts {
            self.held.remove(class, count as u32);
            let _ = all.held.add(class, count as u32);
        }
        self.count_memory();
        all
    }

    /// Takes all messages out of one that is closed, if there are open files in them and nobody is charged for those.
    pub fn give_up(&mut self) -> Option<Inbox> {
        if self.held.count(Held::InFlight) == 0 || !self.payer().is_nobody() {
            return None;
        }
        Some(self.take_all())
    }

    /// How many open files there are in all messages, those that are about to come included.
    pub fn rights_count(&self) -> u32 {
        self.held.count(Held::InFlight)
    }

    /// The open files in all messages.
    pub fn rights(&self) -> impl Iterator<Item = &InFlight> {
        self.packets.iter().flat_map(|packet| &packet.rights)
    }

    /// Gives the bytes of a stream to `take`, which says how many it took, until it takes less than it got, open files have come along, or
    /// (`tells_senders`) the next bytes have another sender. Those taken are gone unless `peek`.
    ///
    /// # Errors
    /// `take` faulted, in the first piece or with [`AtFault::Undo`]: nothing was taken.
    pub fn take_stream(
        &mut self,
        peek: bool,
        tells_senders: bool,
        at_fault: AtFault,
        mut take: impl FnMut(&[u8]) -> (usize, Option<Fault>),
    ) -> core::result::Result<Taken, Fault> {
        let mut taken = Taken::default();
        // How many pieces were taken to their ends, and how much of the next one.
        let (mut whole, mut of_next) = (0, 0);
        while let Some(packet) = self.packets.get(whole) {
            if tells_senders && taken.credentials.is_some_and(|sender| sender != packet.credentials) {
                break;
            }
            let (took, fault) = take(packet.rest());
            // What faults is read anew, all of the piece: one that has no room stays whole, as on Linux.
            match fault {
                Some(fault) if taken.len == 0 || at_fault == AtFault::Undo => return Err(fault),
                Some(_) => break,
                None if took == 0 => break,
                None => {}
            }
            taken.len += took;
            if taken.credentials.is_none() {
                taken.credentials = Some(packet.credentials);
                taken.from = packet.sender();
            }
            if took < packet.rest().len() {
                of_next = took;
                break;
            }
            whole += 1;
            if !packet.rights.is_empty() {
                break;
            }
        }
        let last = if of_next > 0 { Some(whole) } else { whole.checked_sub(1) };
        if let Some(packet) = last.and_then(|last| self.packets.get_mut(last)) {
            let rights = packet.rights.len();
            taken.files = packet.files(peek);
            self.held.remove(Held::InFlight, (rights - packet.rights.len()) as u32);
        }
        if !peek {
            self.bytes -= taken.len;
            self.packets.drain(..whole);
            self.held.remove(Held::Message, whole as u32);
            if let Some(packet) = self.packets.front_mut() {
                packet.read += of_next;
            }
            self.count_memory();
        }
        Ok(taken)
    }
}

/// What was taken from a stream.
#[derive(Default)]
pub struct Taken {
    /// How many bytes.
    pub len: usize,
    /// What came along.
    pub files: Files,
    /// Who sent the first of them.
    pub credentials: Option<Credentials>,
    /// And from which address; empty if that has no name.
    pub from: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(bytes: &[u8], pid: u32) -> Packet {
        Packet {
            bytes: bytes.to_vec(),
            read: 0,
            rights: Rights::new(),
            credentials: Credentials { pid, uid: 0, gid: 0 },
            from: None,
        }
    }

    /// A message comes, as a sender has it.
    fn send(inbox: &mut Inbox, packet: Packet, is_stream: bool) {
        let len = packet.bytes.len();
        inbox.reserve(len, 0).unwrap();
        inbox.give_back(len);
        if is_stream { inbox.push_stream(packet) } else { inbox.push(packet) }
    }

    fn take(inbox: &mut Inbox, most: usize, peek: bool) -> Vec<u8> {
        let mut taken = Vec::new();
        inbox
            .take_stream(peek, true, AtFault::Keep, |bytes| {
                let count = bytes.len().min(most - taken.len());
                taken.extend_from_slice(&bytes[..count]);
                (count, None)
            })
            .unwrap();
        taken
    }

    #[test]
    fn a_stream_has_no_boundaries_between_pieces_of_one_sender() {
        let mut inbox = Inbox::default();
        send(&mut inbox, packet(b"abc", 1), true);
        send(&mut inbox, packet(&[b'x'; 5000], 1), true);
        assert_eq!(take(&mut inbox, 4, true), b"abcx");
        assert_eq!(take(&mut inbox, 4, false), b"abcx");
        assert_eq!(take(&mut inbox, 9999, false).len(), 4999);
        assert!(inbox.is_empty() && inbox.bytes() == 0 && inbox.held.count(Held::Message) == 0);
    }

    #[test]
    fn a_fault_behind_the_first_piece_leaves_everything_or_what_was_taken() {
        let mut inbox = Inbox::default();
        let fault = Fault { address: 4096, access: frame::mm::Access::Write };
        let full = [b'x'; JOINED];
        (0..3).for_each(|_| send(&mut inbox, packet(&full, 1), true));
        let mut pieces = 0;
        let mut second_faults = |bytes: &[u8]| {
            pieces += 1;
            if pieces % 2 == 0 { (96, Some(fault)) } else { (bytes.len(), None) }
        };
        assert_eq!(inbox.take_stream(false, false, AtFault::Undo, &mut second_faults).err(), Some(fault));
        assert_eq!(inbox.bytes(), 3 * JOINED);
        let taken = inbox.take_stream(false, false, AtFault::Keep, &mut second_faults).unwrap();
        assert_eq!((taken.len, inbox.bytes()), (JOINED, 2 * JOINED));
        assert_eq!(take(&mut inbox, 99_999, false).len(), 2 * JOINED);
        assert!(inbox.held.count(Held::Message) == 0);
    }

    #[test]
    fn pieces_of_different_senders_are_read_apart() {
        let mut inbox = Inbox::default();
        send(&mut inbox, packet(b"abc", 1), true);
        send(&mut inbox, packet(b"def", 2), true);
        assert_eq!(take(&mut inbox, 99, false), b"abc");
        assert_eq!(take(&mut inbox, 99, false), b"def");
    }

    #[test]
    fn a_full_inbox_has_no_room() {
        let mut inbox = Inbox::default();
        send(&mut inbox, packet(&vec![0; CAPACITY], 1), false);
        assert_eq!(inbox.room(), 0);
        inbox.pop();
        assert_eq!(inbox.room(), CAPACITY);
    }

    #[test]
    fn nobody_finds_room_that_is_reserved() {
        let mut inbox = Inbox::default();
        inbox.reserve(CAPACITY - 1, 0).unwrap();
        assert_eq!(inbox.room(), 1);
        inbox.give_back(CAPACITY - 1);
        assert_eq!(inbox.room(), CAPACITY);
        for _ in 0..MAX_PACKETS {
            inbox.reserve(0, 0).unwrap();
        }
        assert_eq!(inbox.room(), 0);
        assert!(inbox.take_all().is_empty());
        assert_eq!(inbox.room(), 0);
        let mut inbox = Inbox::default();
        send(&mut inbox, packet(b"abc", 1), false);
        let mut all = inbox.take_all();
        assert_eq!((inbox.bytes(), inbox.held.count(Held::Message), all.bytes()), (0, 0, 3));
        assert!(all.pop().is_some() && all.bytes() == 0 && all.pop().is_none());
    }

    use alloc::vec;
}
