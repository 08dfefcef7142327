//! [`Queue`]: the events that nobody has read yet.
//!
//! They stand in chunks, so that no large piece of memory is asked for. Each is charged as [`Held::Unread`] while it is there; an event that begins one which may not be is lost, and only that is told. What is left of a long queue when its instance ends is handed over as a whole ([`crate::memory::remains`]), so that the end takes no
//! longer for it.

use alloc::boxed::Box;
use alloc::collections::{LinkedList, VecDeque};

use linux_raw_sys::general as abi;
use zerocopy::{Immutable, IntoBytes};

use crate::memory::remains::{self, Remainder};
use crate::reclaim::{Held, OfInotify};

/// So many events stand together.
const CHUNK: usize = 64;

/// An event.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Queued {
    /// Of which watch.
    pub wd: i32,
    /// What it is.
    pub mask: u32,
    /// What the halves of a renaming have in common.
    pub cookie: u32,
    /// To which name; empty for the file itself.
    pub name: Box<[u8]>,
}

/// `struct inotify_event`, without the name.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct Header {
    wd: i32,
    mask: u32,
    cookie: u32,
    len: u32,
}

const HEADER: usize = size_of::<Header>();
/// The longest event: with a name of 255 bytes.
pub(super) const LONGEST: usize = HEADER + 256;

impl Queued {
    /// How many bytes it takes for a program.
    pub(super) fn len(&self) -> usize {
        HEADER + self.name_len()
    }

    /// A name ends with at least one zero and takes a multiple of what an event does.
    fn name_len(&self) -> usize {
        if self.name.is_empty() { 0 } else { (self.name.len() + 1).next_multiple_of(HEADER) }
    }

    /// What a program reads, in front of `buffer`, which is zeros.
    pub(super) fn encode<'a>(&self, buffer: &'a mut [u8; LONGEST]) -> &'a [u8] {
        let header = Header { wd: self.wd, mask: self.mask, cookie: self.cookie, len: self.name_len() as u32 };
        buffer[..HEADER].copy_from_slice(header.as_bytes());
        let name = self.name.get(..LONGEST - HEADER - 1).unwrap_or(&self.name);
        buffer[HEADER..HEADER + name.len()].copy_from_slice(name);
        &buffer[..self.len().min(LONGEST)]
    }

    fn is_same(&self, other: &Self) -> bool {
        (self.wd, self.mask, &self.name) == (other.wd, other.mask, &other.name)
    }
}

/// Events in the order in which they came.
pub(super) struct Queue {
    chunks: LinkedList<VecDeque<Queued>>,
    /// So many chunks are charged: all, but for one that has nothing but that something was lost.
    charged: usize,
    count: usize,
    bytes: usize,
    /// So many it takes.
    most: usize,
    /// One of them says that something was lost.
    has_overflowed: bool,
}

impl Queue {
    /// An empty one that takes so many.
    pub(super) fn new(most: usize) -> Self {
        Queue { chunks: LinkedList::new(), charged: 0, count: 0, bytes: 0, most, has_overflowed: false }
    }

    /// Enters an event, unless the last one is the same and not read yet; whether there is something new to read. It is lost where there is no memory for it, or `held` has no room.
    pub(super) fn push(&mut self, event: Queued, is_memory: bool, held: &mut OfInotify) -> bool {
        if self.count >= self.most || !is_memory {
            return self.overflow();
        }
        if self.last().is_some_and(|last| last.mask != abi::IN_IGNORED && last.is_same(&event)) {
            return false;
        }
        if self.begins_chunk() || self.charged < self.chunks.len() {
            if held.add(Held::Unread, 1).is_err() {
                return self.overflow();
            }
            self.charged += 1;
        }
        self.enter(event);
        true
    }

    /// Says that something was lost, unless that is to be read already.
    fn overflow(&mut self) -> bool {
        if self.has_overflowed {
            return false;
        }
        let event = Queued { wd: -1, mask: abi::IN_Q_OVERFLOW, cookie: 0, name: Box::default() };
        match self.chunks.back_mut() {
            // There is room for this one in any case.
            Some(last) => {
                self.count += 1;
                self.bytes += event.len();
                last.push_back(event);
            }
            None => self.enter(event),
        }
        self.has_overflowed = true;
        true
    }

    /// Whether the next event stands in a new chunk.
    fn begins_chunk(&self) -> bool {
        self.chunks.back().is_none_or(|chunk| chunk.len() >= CHUNK)
    }

    fn last(&self) -> Option<&Queued> {
        self.chunks.back()?.back()
    }

    fn enter(&mut self, event: Queued) {
        self.count += 1;
        self.bytes += event.len();
        match self.chunks.back_mut().filter(|chunk| chunk.len() < CHUNK) {
            Some(chunk) => chunk.push_back(event),
            None => self.chunks.push_back(VecDeque::from([event])),
        }
    }

    /// The event that is read next.
    pub(super) fn first(&self) -> Option<&Queued> {
        self.chunks.front()?.front()
    }

    /// That one was read.
    pub(super) fn pop(&mut self, held: &mut OfInotify) {
        let Some(chunk) = self.chunks.front_mut() else { return };
        if let Some(event) = chunk.pop_front() {
            self.count -= 1;
            self.bytes -= event.len();
            self.has_overflowed &= event.mask != abi::IN_Q_OVERFLOW;
        }
        if chunk.is_empty() {
            self.chunks.pop_front();
            if self.charged > self.chunks.len() {
                self.charged -= 1;
                held.remove(Held::Unread, 1);
            }
        }
    }

    /// Whether there is nothing to read.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many bytes there are to read.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if self.count > CHUNK {
            let names = self.bytes - self.count * HEADER;
            remains::leave_heap(Rest(core::mem::take(&mut self.chunks)), names + self.count * size_of::<Queued>());
        }
    }
}

/// What is left of a long queue.
struct Rest(LinkedList<VecDeque<Queued>>);

impl Remainder for Rest {
    fn give_back(&mut self) -> Option<usize> {
        None
    }

    fn free_piece(&mut self) -> Option<usize> {
        let chunk = self.0.pop_front()?;
        Some(chunk.iter().map(|event| size_of::<Queued>() + event.name_len()).sum())
    }
}

#[cfg(test)]
mod tests {
    use groups::{Limits, Tree};

    use super::*;
    use crate::reclaim::{self, Payer};

    fn event(wd: i32, mask: u32, name: &[u8]) -> Queued {
        Queued { wd, mask, cookie: 0, name: name.into() }
    }

    #[test]
    fn names_are_padded_to_the_length_of_an_event_with_a_zero_at_least() {
        let lengths = [0, 1, 15, 16, 31, 32].map(|len| event(1, 1, &[b'n'; 32][..len]).len());
        assert_eq!(lengths, [16, 32, 32, 48, 48, 64]);
        let mut buffer = [0; LONGEST];
        let bytes = event(7, 2, b"name").encode(&mut buffer);
        assert_eq!((bytes.len(), &bytes[..4], &bytes[12..22]), (32, &[7, 0, 0, 0][..], &b"\x10\0\0\0name\0\0"[..]));
    }

    #[test]
    fn what_is_too_much_is_lost_and_that_is_told_once_until_it_is_read() {
        let (mut queue, mut held) = (Queue::new(100), OfInotify::default());
        let entered = (0..200).filter(|&number| queue.push(event(number, 1, b""), true, &mut held)).count();
        assert_eq!((entered, queue.bytes()), (101, 101 * 16));
        for number in 0..100 {
            assert_eq!(queue.first().map(|event| event.wd), Some(number));
            queue.pop(&mut held);
        }
        assert!(queue.push(event(7, 1, b""), true, &mut held));
        assert_eq!(queue.first().map(|event| event.mask), Some(abi::IN_Q_OVERFLOW));
        queue.pop(&mut held);
        assert!(queue.push(event(8, 1, b""), false, &mut held), "the next loss is told anew");
        queue.pop(&mut held);
        queue.pop(&mut held);
        assert!(queue.is_empty() && queue.bytes() == 0);
    }

    #[test]
    fn equal_neighbours_are_one() {
        let (mut queue, mut held) = (Queue::new(100), OfInotify::default());
        let new = [b"a", b"a", b"b", b"a"].map(|name| queue.push(event(1, 2, name), true, &mut held));
        assert_eq!(new, [true, false, true, true]);
    }

    #[test]
    fn each_chunk_is_charged_and_what_may_not_be_is_lost() {
        let tree: &'static Tree<Held> = Box::leak(Box::new(Tree::new()));
        let budget = tree.root().child(Limits::bound(3 * reclaim::assumed(Held::Unread))).expect("a budget");
        let (mut queue, mut held) = (Queue::new(16384), OfInotify::of(&Payer::new(*budget, Payer::NOBODY)));
        let entered = (0..1000).filter(|&number| queue.push(event(number, 1, b""), true, &mut held)).count();
        assert_eq!((entered, held.count(Held::Unread)), (3 * CHUNK + 1, 3));
        while !queue.is_empty() {
            queue.pop(&mut held);
        }
        assert_eq!(held.count(Held::Unread), 0);
        assert!(queue.push(event(7, 1, b""), true, &mut held));
        assert_eq!(queue.first().map(|event| event.wd), Some(7));
    }

    #[test]
    fn that_something_was_lost_is_told_even_where_nothing_may_be_kept() {
        let tree: &'static Tree<Held> = Box::leak(Box::new(Tree::new()));
        let budget = tree.root().child(Limits::bound(1)).expect("a budget");
        let (mut queue, mut held) = (Queue::new(16384), OfInotify::of(&Payer::new(*budget, Payer::NOBODY)));
        assert!(queue.push(event(1, 1, b""), true, &mut held));
        assert!(!queue.push(event(2, 1, b""), true, &mut held));
        assert_eq!(queue.first().map(|event| event.mask), Some(abi::IN_Q_OVERFLOW));
        queue.pop(&mut held);
        assert!(queue.is_empty() && held.count(Held::Unread) == 0);
    }
}
