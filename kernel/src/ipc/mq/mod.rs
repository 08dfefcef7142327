//! Message queues of POSIX: mq_overview(7).
//!
//! | file | what it holds |
//! | --- | --- |
//! | here | a queue: sending, receiving, and being told |
//! | `limits` | how many queues there may be, and how large |
//!
//! A queue is the content of a file ([`fs::mqueue`](crate::fs::mqueue)). Those who wait stand in it: receivers only while it is empty, senders only while it is full. A sender gives its message to the
//! first receiver; a receiver lets in the message of the first sender. So they have their turns in the order in which they came, and nobody is told of a message that a receiver waited for.
//!
//! Owners: its inode and the descriptions of it. Its end frees what is in it in pieces. Who waits knows the description by which it came, and waits no longer when that ends (EBADF). What a workload has in
//! queues outlives it, as on Linux; RLIMIT_MSGQUEUE and `/proc/sys/fs/mqueue` bound it. A caller that ends takes itself out, which takes one look into a tree.

pub mod limits;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::cmp::Reverse;
use core::mem::take;

use frame::Cx;
use refs::{SpinLock, WaitList, Waker, WeakRc};

use self::limits::{Share, Size};
use super::msg::Text;
use super::place::Place;
use crate::error::{Errno, Result};
use crate::fs::{Events, FileTable};
use crate::pieces::{Pieces, free_in_pieces};
use crate::step::{Step, Stop};

/// Priorities are below this (MQ_PRIO_MAX).
pub const PRIORITIES: u32 = 32_768;

/// So many are freed at a time.
const FREED_AT_ONCE: usize = 16;

/// A message.
pub struct Message {
    /// The higher, the sooner it is received.
    pub priority: u32,
    /// What it says.
    pub text: Text,
}

/// Who is told when a message comes to an empty queue for which nobody waits: mq_notify(3). One process at a time asks for it, and is told once.
///
/// The queue owns it, and it owns nothing of the process. It is known by the table of descriptors of the process: closing any descriptor of the queue ends it, and so does the end of the table.
pub trait Told: Send + Sync {
    /// Whether the process has this table.
    fn is_of(&self, table: &WeakRc<FileTable>) -> bool;
    /// Whether the table is still there.
    fn is_alive(&self, cx: &Cx) -> bool;
    /// `sigev_notify`, the signal, and the process, as the file of the queue shows them.
    fn shown(&self) -> (u32, u32, u32);
    /// A message came, from a process of a user.
    fn tell(&self, by: (u32, u32), cx: &Cx);
    /// Nobody will be told.
    fn end(&self, cx: &Cx);
}

/// A queue.
pub struct Queue {
    /// How much it holds.
    pub size: Size,
    state: SpinLock<State>,
    /// Who polls it: woken when there is a message, or room.
    readable: WaitList,
    writable: WaitList,
    _share: Share,
}

#[derive(Default)]
struct State {
    messages: Messages,
    /// How many bytes their texts have.
    bytes: usize,
    receivers: BTreeMap<u64, Receiver>,
    senders: BTreeMap<u64, Sender>,
    /// The number of the message, or of the one who waits, that came last.
    last: u64,
    told: Option<Box<dyn Told>>,
}

/// Texts by priority, those of one priority in the order in which they came.
#[derive(Default)]
struct Messages(BTreeMap<(Reverse<u32>, u64), Text>);

struct Receiver {
    waker: Waker,
    place: Arc<Place<Message>>,
}

struct Sender {
    message: Message,
    waker: Waker,
    /// Something is in it once the message is in the queue.
    place: Arc<Place<()>>,
}

impl State {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn push(&mut self, Message { priority, text }: Message) {
        let number = self.next();
        self.bytes += text.bytes();
        self.messages.0.insert((Reverse(priority), number), text);
    }

    fn pop(&mut self) -> Option<Message> {
        let ((Reverse(priority), _), text) = self.messages.0.pop_first()?;
        self.bytes -= text.bytes();
        Some(Message { priority, text })
    }
}

/// What was in a queue that has ended.
struct Rest {
    messages: Messages,
    senders: BTreeMap<u64, Sender>,
    receivers: BTreeMap<u64, Receiver>,
}

impl Pieces for Rest {
    fn free_piece(&mut self) -> bool {
        (0..FREED_AT_ONCE).all(|_| {
            let some = (self.messages.0.pop_first(), self.senders.pop_first(), self.receivers.pop_first());
            some.0.is_some() || some.1.is_some() || some.2.is_some()
        })
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let State { messages, senders, receivers, .. } = take(self.state.get_mut());
        if !(messages.0.is_empty() && senders.is_empty() && receivers.is_empty()) {
            free_in_pieces(Rest { messages, senders, receivers });
        }
    }
}

/// A call that sends a message, however often its step is run. It must [`end`](Self::end).
pub struct Sending {
    /// `None`: it was sent, or stands in the queue with who waits.
    message: Option<Message>,
    /// The process, and its real user.
    by: (u32, u32),
    entered: Option<(u64, Arc<Place<()>>)>,
}

impl Sending {
    /// A call of a process and its real user.
    pub fn new(message: Message, by: (u32, u32)) -> Self {
        Sending { message: Some(message), by, entered: None }
    }

    /// Sends it.
    ///
    /// # Errors
    /// ENOMEM. `Block`: the queue is full, and the call stands in it if it has a waker.
    pub fn step(&mut self, queue: &Queue, waker: Option<Waker>, cx: &Cx) -> Step<()> {
        if self.end(Some(queue), cx) {
            return Ok(());
        }
        crate::memory::admit()?;
        let mut state = queue.state.lock(cx);
        let Some(message) = self.message.take() else { return Ok(()) };
        if state.messages.0.len() >= queue.size.messages {
            match waker {
                None => self.message = Some(message),
                Some(waker) => {
                    let place = Arc::new(Place::default());
                    let number = state.next();
                    state.senders.insert(number, Sender { message, waker, place: place.clone() });
                    self.entered = Some((number, place));
                }
            }
            return Err(Stop::Block);
        }
        if let Some((_, receiver)) = state.receivers.pop_first() {
            receiver.place.give(message, cx);
            drop(state);
            receiver.waker.wake();
            return Ok(());
        }
        let was_empty = state.messages.0.is_empty();
        state.push(message);
        let told = if was_empty { state.told.take() } else { None };
        drop(state);
        queue.readable.wake();
        if let Some(told) = told {
            told.tell(self.by, cx);
        }
        Ok(())
    }

    /// It stands in the queue no longer; whether its message was let in, whatever else ended the wait. `None`: the queue is gone.
    pub fn end(&mut self, queue: Option<&Queue>, cx: &Cx) -> bool {
        let Some((number, place)) = self.entered.take() else { return false };
        if let Some(queue) = queue {
            self.message = queue.state.lock(cx).senders.remove(&number).map(|sender| sender.message);
        }
        place.take(cx).is_some()
    }
}

/// A call that receives a message, however often its step is run. It must [`end`](Self::end).
#[derive(Default)]
pub struct Receiving {
    entered: Option<(u64, Arc<Place<Message>>)>,
}

impl Receiving {
    /// Takes the first message of the highest priority out of the queue.
    ///
    /// # Errors
    /// ENOMEM. `Block`: there is none, and the call stands in the queue if it has a waker.
    pub fn step(&mut self, queue: &Queue, waker: Option<Waker>, cx: &Cx) -> Step<Message> {
        if let Some(message) = self.end(Some(queue), cx) {
            return Ok(message);
        }
        crate::memory::admit()?;
        let mut state = queue.state.lock(cx);
        let Some(message) = state.pop() else {
            if let Some(waker) = waker {
                let place = Arc::new(Place::default());
                let number = state.next();
                state.receivers.insert(number, Receiver { waker, place: place.clone() });
                self.entered = Some((number, place));
            }
            return Err(Stop::Block);
        };
        match state.senders.pop_first() {
            None => {
                drop(state);
                queue.writable.wake();
            }
            Some((_, sender)) => {
                state.push(sender.message);
                sender.place.give((), cx);
                drop(state);
                sender.waker.wake();
                queue.readable.wake();
            }
        }
        Ok(message)
    }

    /// It stands in the queue no longer; what it was given, whatever else ended the wait. `None`: the queue is gone.
    pub fn end(&mut self, queue: Option<&Queue>, cx: &Cx) -> Option<Message> {
        let (number, place) = self.entered.take()?;
        if let Some(queue) = queue {
            queue.state.lock(cx).receivers.remove(&number);
        }
        place.take(cx)
    }
}

impl Queue {
    /// An empty queue.
    pub fn new(size: Size, share: Share) -> Self {
        Queue {
            size,
            state: SpinLock::new(State::default()),
            readable: WaitList::new(),
            writable: WaitList::new(),
            _share: share,
        }
    }

    /// How many messages are in it.
    pub fn count(&self, cx: &Cx) -> usize {
        self.state.lock(cx).messages.0.len()
    }

    /// How many bytes they have; and how the one who asked to be told is, by which signal, and which process that is.
    pub fn shown(&self, cx: &Cx) -> (usize, (u32, u32, u32)) {
        let state = self.state.lock(cx);
        let told = state.told.as_ref().filter(|told| told.is_alive(cx));
        (state.bytes, told.map_or((0, 0, 0), |told| told.shown()))
    }

    /// Asks for somebody to be told.
    ///
    /// # Errors
    /// EBUSY: somebody is already.
    pub fn tell(&self, told: Box<dyn Told>, cx: &Cx) -> Result<()> {
        let mut state = self.state.lock(cx);
        if state.told.as_ref().is_some_and(|other| other.is_alive(cx)) {
            return Err(Errno::EBUSY);
        }
        state.told = Some(told);
        Ok(())
    }

    /// The process with this table is not to be told any more.
    pub fn forget(&self, table: &WeakRc<FileTable>, cx: &Cx) {
        let ended = self.state.lock(cx).told.take_if(|told| told.is_of(table));
        if let Some(told) = ended {
            told.end(cx);
        }
    }

    /// What is ready: see [`File::poll`](crate::fs::File::poll).
    pub fn poll(&self, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        if let Some(waker) = waker {
            if interest.contains(Events::IN) {
                self.readable.register(waker, cx);
            }
            if interest.contains(Events::OUT) {
                self.writable.register(waker, cx);
            }
        }
        let count = self.count(cx);
        let mut events = Events::empty();
        if count > 0 {
            events |= Events::IN | Events::READ_NORMAL;
        }
        if count < self.size.messages {
            events |= Events::OUT | Events::WRITE_NORMAL;
        }
        events & interest
    }
}
