//! Queues of messages: msgget(2), msgop(2), msgctl(2).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use frame::Cx;
use refs::{SpinLock, WaitList, Waker, WeakRc};

use super::{Object, Permissions, READ, Table, WRITE, now};
use crate::credentials::{Capability, Credentials};
use crate::error::{Errno, Result};
use crate::heap::copied;
use crate::step::{Step, Stop};
use crate::sysctl::Tunable;

/// All queues; `/proc/sys/kernel/msgmni`.
pub static QUEUES: Table<Queue> = Table::new(32_000);
/// The longest message, in bytes: `/proc/sys/kernel/msgmax`.
pub static MOST_BYTES: Tunable = Tunable::new(8192, 0..=i32::MAX as u64);
/// So many bytes a new queue holds at most: `/proc/sys/kernel/msgmnb`.
pub static MOST_IN_QUEUE: Tunable = Tunable::new(16_384, 0..=i32::MAX as u64);

/// How many messages there are in all queues, and how many bytes they have.
static COUNT: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// A queue. Its owner is the table, until IPC_RMID; the messages in it go with it. Who waits on it is woken when a message comes or goes, when it can hold more or less, and when it is removed.
pub struct Queue {
    permissions: SpinLock<Permissions>,
    state: SpinLock<State>,
    /// Who has a message and waits for room.
    senders: WaitList,
    /// Who waits for a message.
    receivers: WaitList,
}

#[derive(Default)]
struct State {
    /// In the order in which they came. (A tree needs no large piece of memory.)
    messages: BTreeMap<u64, Message>,
    sent: u64,
    status: Past,
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

/// A message.
pub struct Message {
    /// Above 0.
    pub kind: i64,
    /// What it says.
    pub text: Vec<u8>,
}

/// Which message is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The first.
    Any,
    /// The first of a type.
    Kind(i64),
    /// The first of another type.
    Other(i64),
    /// The first of the lowest type, if that is no more than this.
    Lowest(i64),
    /// The one behind so many others, which stays (MSG_COPY).
    Copy(usize),
}

impl Object for Queue {
    fn permissions(&self) -> &SpinLock<Permissions> {
        &self.permissions
    }

    fn table() -> &'static Table<Self> {
        &QUEUES
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let left = self.state.get_mut().status;
        BYTES.fetch_sub(left.bytes, Relaxed);
        COUNT.fetch_sub(left.count, Relaxed);
    }
}

/// The queue of a key, or a new one: msgget(2).
///
/// # Errors
/// Those of [`Table::get`].
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

/// Puts a message into a queue, out of its place; `by`: the calling process.
///
/// # Errors
/// EACCES; EIDRM: the queue is removed. `Block`: it is full, with the waker entered.
pub fn send(
    queue: WeakRc<Queue>,
    message: &mut Option<Message>,
    by: u32,
    who: &Credentials,
    waker: Option<Waker>,
    cx: &Cx,
) -> Step<()> {
    let queue = queue.upgrade(cx).map_err(|_| Errno::EIDRM)?;
    queue.permissions.lock(cx).check(WRITE, who)?;
    if let Some(waker) = waker {
        queue.senders.register(waker, cx);
    }
    let mut state = queue.state.lock(cx);
    let State { messages, sent: number, status } = &mut *state;
    let bytes = message.as_ref().map_or(0, |message| message.text.len());
    if status.bytes + bytes > status.most_bytes || status.count + 1 > status.most_bytes {
        return Err(Stop::Block);
    }
    let Some(message) = message.take() else { return Ok(()) };
    *number += 1;
    messages.insert(*number, message);
    status.bytes += bytes;
    status.count += 1;
    BYTES.fetch_add(bytes, Relaxed);
    COUNT.fetch_add(1, Relaxed);
    (status.sent, status.sender) = (now(), by);
    drop(state);
    // Each may wait for another type.
    queue.receivers.wake();
    Ok(())
}

/// Takes a message out of a queue, or copies it. `most`: how many bytes the caller has room for, if it does not want the rest to be cut off.
///
/// # Errors
/// EACCES; EIDRM: the queue is removed; E2BIG: the message is longer, and stays; ENOMSG: there is none to be copied; ENOMEM. `Block`: there is none, with the waker entered.
pub fn receive(
    queue: WeakRc<Queue>,
    wanted: Wanted,
    most: Option<usize>,
    by: u32,
    who: &Credentials,
    waker: Option<Waker>,
    cx: &Cx,
) -> Step<Message> {
    let queue = queue.upgrade(cx).map_err(|_| Errno::EIDRM)?;
    queue.permissions.lock(cx).check(READ, who)?;
    if let Some(waker) = waker {
        queue.receivers.register(waker, cx);
    }
    let mut state = queue.state.lock(cx);
    let State { messages, status, .. } = &mut *state;
    let found = match wanted {
        Wanted::Copy(behind) => messages.iter().nth(behind),
        Wanted::Lowest(most) => {
            messages.iter().filter(|(_, message)| message.kind <= most).min_by_key(|(_, message)| message.kind)
        }
        _ => messages.iter().find(|(_, message)| match wanted {
            Wanted::Kind(kind) => message.kind == kind,
            Wanted::Other(kind) => message.kind != kind,
            _ => true,
        }),
    };
    let Some((number, message)) = found else {
        return Err(if matches!(wanted, Wanted::Copy(_)) { Errno::ENOMSG.into() } else { Stop::Block });
    };
    if most.is_some_and(|most| message.text.len() > most) {
        return Err(Errno::E2BIG.into());
    }
    if matches!(wanted, Wanted::Copy(_)) {
        return Ok(Message { kind: message.kind, text: copied(&message.text)? });
    }
    let number = *number;
    let message = messages.remove(&number).ok_or(Errno::ENOMSG)?;
    status.bytes -= message.text.len();
    status.count -= 1;
    BYTES.fetch_sub(message.text.len(), Relaxed);
    COUNT.fetch_sub(1, Relaxed);
    (status.received, status.receiver) = (now(), by);
    drop(state);
    queue.senders.wake();
    Ok(message)
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
    let owned = QUEUES.remove(id, false, cx)?;
    drop(owned);
    queue.senders.wake();
    queue.receivers.wake();
    Ok(())
}

/// How many messages and bytes there are in all queues: MSG_INFO.
pub fn totals() -> (usize, usize) {
    (COUNT.load(Relaxed), BYTES.load(Relaxed))
}
