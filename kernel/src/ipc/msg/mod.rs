//! Queues of messages: msgget(2), msgop(2), msgctl(2).
//!
//! | file | what it holds |
//! | --- | --- |
//! | here | queues: sending, receiving, IPC_SET and IPC_RMID |
//! | `messages` | the messages in a queue, and how the one that is wanted is found |
//! | `text` | what a message says |
//! | `receivers` | who waits for a message |
//!
//! A receiver that waits stands in the queue, and a sender hands it the message before it returns ([`receivers`]). A sender that waits holds its message, and all of them look again when there is
//! more room. Nobody waits for a queue that is removed, or that it may not use any more: who waits has entered a wait list first, and then looked at what IPC_SET and IPC_RMID change before they
//! wake those in it. What IPC_SET changes has a number (`allowed_in`), so nobody is given a message by leave of an owner or a mode that are no more.

mod messages;
mod receivers;
mod text;

use alloc::sync::Arc;
use core::mem::take;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering, Ordering::Relaxed};

use frame::Cx;
use refs::{SpinLock, WaitList, Waker, WeakRc};

pub use self::messages::{Message, Wanted};
use self::messages::{Messages, Search};
use self::receivers::{Receiver, Receivers};
pub use self::text::Text;
use super::place::Place;
use super::{Object, Objects, Permissions, READ, WRITE, now};
use crate::credentials::{Capability, Credentials};
use crate::error::{Errno, Result};
use crate::pieces::free_in_pieces;
use crate::step::{Interruption, Step, Stop, TimeSlice};
use crate::sysctl::Tunable;

/// All queues; `/proc/sys/kernel/msgmni`.
pub static QUEUES: Objects<Queue> = Objects::new(32_000);
/// The longest message, in bytes: `/proc/sys/kernel/msgmax`.
pub static MOST_BYTES: Tunable = Tunable::new(8192, 0..=i32::MAX as u64);
/// So many bytes a new queue holds at most: `/proc/sys/kernel/msgmnb`.
pub static MOST_IN_QUEUE: Tunable = Tunable::new(16_384, 0..=i32::MAX as u64);

/// How many messages there are in all queues, and how many bytes they have.
static COUNT: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// A queue. Its owner is the table, until IPC_RMID; the messages in it go with it.
pub struct Queue {
    permissions: SpinLock<Permissions>,
    /// How often its owner and mode may have changed. Counted after they have, read before they are.
    allowed_in: AtomicU64,
    state: SpinLock<State>,
    /// Who has a message and waits for room: woken when there may be more, and when the queue is changed or removed.
    senders: WaitList,
    /// Who stands among the receivers: woken when the queue is changed or removed. Each has a waker there for what it is given.
    receivers: WaitList,
}

#[derive(Default)]
struct State {
    messages: Messages,
    receivers: Receivers,
    status: Past,
    /// IPC_RMID took everything out.
    is_removed: bool,
}

/// What a queue holds and what was done to it; times in seconds since 1970, 0 if it was never done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Past {
    /// When a message was sent.
    pub sent: i64,
    /// When one was received.
    pub received: i64,
    /// When it was made, or given to another owner.
    pub changed: i64,
    /// How many bytes its messages have.
    pub bytes: usize,
    /// How many messages are in it.
    pub count: usize,
    /// How many bytes it holds at most.
    pub most_bytes: usize,
    /// The process that sent last.
    pub sender: u32,
    /// The process that received last.
    pub receiver: u32,
}

impl Object for Queue {
    fn permissions(&self) -> &SpinLock<Permissions> {
        &self.permissions
    }

    fn table() -> &'static Objects<Self> {
        &QUEUES
    }
}

/// The queue of a key, or a new one: msgget(2).
///
/// # Errors
/// Those of [`Objects::get`].
pub fn get((key, flags): (i32, u32), who: &Credentials, cx: &Cx) -> Result<i32> {
    QUEUES.get(
        (key, flags),
        who,
        cx,
        |_| Ok(()),
        |permissions, _| {
            let status = Past { changed: now(), most_bytes: MOST_IN_QUEUE.get() as usize, ..Past::default() };
            Ok(Queue {
                permissions: SpinLock::new(permissions),
                allowed_in: AtomicU64::new(0),
                state: SpinLock::new(State { status, ..State::default() }),
                senders: WaitList::new(),
                receivers: WaitList::new(),
            })
        },
    )
}

/// A queue that a call is about to use.
pub fn find(id: i32, cx: &Cx) -> Result<WeakRc<Queue>> {
    Ok(QUEUES.find(id, cx)?.downgrade())
}

/// A call that sends a message, however often its step is run.
pub struct Sending {
    /// `None`: it was sent.
    message: Option<Message>,
    by: u32,
    /// No receiver up to this number takes it.
    passed: u64,
}

impl Sending {
    /// A call of the process `by`.
    pub fn new(message: Message, by: u32) -> Self {
        Sending { message: Some(message), by, passed: 0 }
    }

    /// Gives the message to the first receiver that waits for it, or puts it into the queue. A receiver that wants it and has too little room is told so (E2BIG), and the next is asked.
    ///
    /// # Errors
    /// EACCES; EIDRM: the queue is removed. `Block`: it is full, with the waker entered; `Pause`.
    pub fn step(&mut self, queue: WeakRc<Queue>, who: &Credentials, waker: Option<Waker>, cx: &Cx) -> Step<()> {
        let queue = queue.upgrade(cx).map_err(|_| Errno::EIDRM)?;
        if let Some(waker) = waker {
            queue.senders.register(waker, cx);
        }
        queue.permissions.lock(cx).check(WRITE, who)?;
        let mut time_slice = TimeSlice::default();
        while let Some(message) = &self.message {
            let bytes = message.text.bytes();
            let mut state = queue.state.lock(cx);
            let State { messages, receivers, status, is_removed } = &mut *state;
            if *is_removed {
                return Err(Errno::EIDRM.into());
            }
            if status.bytes.saturating_add(bytes) > status.most_bytes || status.count + 1 > status.most_bytes {
                return Err(Stop::Block);
            }
            let allowed_in = queue.allowed_in.load(Ordering::Acquire);
            let taker = receivers.take_first(message.kind, allowed_in, &mut self.passed, &mut time_slice)?;
            let Some(taker) = taker else {
                if let Some(message) = self.message.take() {
                    messages.push(message);
                }
                status.bytes += bytes;
                status.count += 1;
                BYTES.fetch_add(bytes, Relaxed);
                COUNT.fetch_add(1, Relaxed);
                (status.sent, status.sender) = (now(), self.by);
                return Ok(());
            };
            let is_too_long = taker.most.is_some_and(|most| bytes > most);
            let given = if is_too_long { Err(Errno::E2BIG) } else { self.message.take().ok_or(Errno::ENOMSG) };
            if given.is_ok() {
                (status.sent, status.sender) = (now(), self.by);
                (status.received, status.receiver) = (now(), taker.by);
            }
            taker.place.give(given, cx);
            drop(state);
            taker.waker.wake();
            if self.message.is_some() && time_slice.is_over() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
        }
        Ok(())
    }
}

/// A call that receives a message, however often its step is run. It must [`end`](Self::end).
pub struct Receiving {
    wanted: Wanted,
    /// The longest message, if it does not want the rest to be cut off.
    most: Option<usize>,
    by: u32,
    search: Search,
    /// It stands, or stood, among the receivers that wait.
    entered: Option<(u64, Arc<Place<Result<Message>>>)>,
}

impl Receiving {
    /// A call of the process `by`. `most`: how many bytes the caller has room for, if it does not want the rest to be cut off.
    pub fn new(wanted: Wanted, most: Option<usize>, by: u32) -> Self {
        Receiving { wanted, most, by, search: Search::new(wanted), entered: None }
    }

    /// Takes a message out of the queue, or copies it.
    ///
    /// # Errors
    /// EACCES; EIDRM: the queue is removed; E2BIG: the message is longer, and stays; ENOMSG: there is none to be copied; ENOMEM. `Block`: there is none, and the
    /// call stands among the receivers if it has a waker; `Pause`.
    pub fn step(&mut self, queue: WeakRc<Queue>, who: &Credentials, waker: Option<Waker>, cx: &Cx) -> Step<Message> {
        if let Some(given) = self.end(queue, cx) {
            return Ok(given?);
        }
        let queue = queue.upgrade(cx).map_err(|_| Errno::EIDRM)?;
        if let Some(waker) = waker {
            // For its place among the receivers; while nothing is locked.
            crate::memory::admit()?;
            queue.receivers.register(waker, cx);
        }
        let allowed_in = queue.allowed_in.load(Ordering::Acquire);
        queue.permissions.lock(cx).check(READ, who)?;
        let mut state = queue.state.lock(cx);
        if state.is_removed {
            return Err(Errno::EIDRM.into());
        }
        let is_copy = matches!(self.wanted, Wanted::Copy(_));
        let State { messages, receivers, status, .. } = &mut *state;
        let Some(number) = messages.find(&mut self.search)? else {
            if is_copy {
                return Err(Errno::ENOMSG.into());
            }
            if let Some(waker) = waker {
                let place = Arc::new(Place::default());
                let &mut Receiving { wanted, most, by, .. } = self;
                let receiver = Receiver { wanted, most, by, allowed_in, waker, place: place.clone() };
                self.entered = Some((receivers.enter(receiver), place));
            }
            return Err(Stop::Block);
        };
        let len = messages.get(number).map_or(0, |message| message.text.bytes());
        if self.most.is_some_and(|most| len > most) {
            return Err(Errno::E2BIG.into());
        }
        if is_copy {
            return Ok(messages.get(number).cloned().ok_or(Errno::ENOMSG)?);
        }
        let message = messages.remove(number).ok_or(Errno::ENOMSG)?;
        status.bytes -= len;
        status.count -= 1;
        BYTES.fetch_sub(len, Relaxed);
        COUNT.fetch_sub(1, Relaxed);
        (status.received, status.receiver) = (now(), self.by);
        drop(state);
        queue.senders.wake();
        Ok(message)
    }

    /// It stands among those who wait no longer; what it was given, whatever else ended the wait. The queue may be gone: then nobody gives anything any more, and what was given
    /// before is there.
    pub fn end(&mut self, queue: WeakRc<Queue>, cx: &Cx) -> Option<Result<Message>> {
        let (number, place) = self.entered.take()?;
        if let Ok(queue) = queue.upgrade(cx) {
            queue.state.lock(cx).receivers.remove(number);
        }
        place.take(cx)
    }
}

impl Queue {
    /// Whose it is, and what is in it.
    pub fn status(&self, cx: &Cx) -> (Permissions, Past) {
        let permissions = *self.permissions.lock(cx);
        (permissions, self.state.lock(cx).status)
    }

    /// Gives it to another owner, and has it hold so many bytes: IPC_SET.
    ///
    /// # Errors
    /// EPERM.
    pub fn set(&self, owner: (u32, u32, u32), most_bytes: usize, who: &Credentials, cx: &Cx) -> Result<()> {
        if most_bytes as u64 > MOST_IN_QUEUE.get() && !who.has(Capability::SysResource) {
            return Err(Errno::EPERM);
        }
        self.give(owner, who, cx)?;
        self.allowed_in.fetch_add(1, Ordering::Release);
        let mut state = self.state.lock(cx);
        (state.status.most_bytes, state.status.changed) = (most_bytes, now());
        drop(state);
        // There may be room now, or somebody may not use it any more.
        self.senders.wake();
        self.receivers.wake();
        Ok(())
    }
}

/// Removes a queue with its messages: IPC_RMID.
///
/// # Errors
/// EINVAL: there is none; EPERM; EIDRM.
pub fn remove(id: i32, who: &Credentials, cx: &Cx) -> Result<()> {
    let queue = QUEUES.find(id, cx)?;
    queue.permissions.lock(cx).check_owner(who)?;
    let owned = QUEUES.remove(id, cx)?;
    let mut state = queue.state.lock(cx);
    state.is_removed = true;
    let (messages, receivers) = (take(&mut state.messages), take(&mut state.receivers));
    let Past { bytes, count, .. } = take(&mut state.status);
    drop(state);
    BYTES.fetch_sub(bytes, Relaxed);
    COUNT.fetch_sub(count, Relaxed);
    drop(owned);
    queue.senders.wake();
    queue.receivers.wake();
    free_in_pieces(messages);
    free_in_pieces(receivers);
    Ok(())
}

/// How many messages and bytes there are in all queues: MSG_INFO.
pub fn totals() -> (usize, usize) {
    (COUNT.load(Relaxed), BYTES.load(Relaxed))
}
