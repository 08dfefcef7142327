//! msgget(2), msgsnd(2), msgrcv(2), msgctl(2).

use alloc::sync::Arc;

use frame::Cx;
use linux_raw_sys::general as abi;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::super::{Args, Call, Entry};
use super::texts::{read_text_async, write_text_async};
use super::{IPC_INFO, IPC_NOWAIT, IPC_RMID, IPC_SET, IPC_STAT, IpcPerm, asked, pid, who};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::ipc::READ;
use crate::ipc::msg::{self, MOST_BYTES, MOST_IN_QUEUE, Message, QUEUES, Queue, Receiving, Sending, Wanted};
use crate::step::{Patience, Step, complete_async};

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[
    Entry::new(abi::__NR_msgget, "msgget", Call::Step(msgget)),
    Entry::new(abi::__NR_msgsnd, "msgsnd", Call::Async(msgsnd_async)),
    Entry::new(abi::__NR_msgrcv, "msgrcv", Call::Async(msgrcv_async)),
    Entry::new(abi::__NR_msgctl, "msgctl", Call::Step(msgctl)),
];

/// Of msgrcv(2).
const MSG_NOERROR: u32 = 0o10000;
const MSG_EXCEPT: u32 = 0o20000;
const MSG_COPY: u32 = 0o40000;
/// Of msgctl(2).
const MSG_STAT: i32 = 11;
const MSG_INFO: i32 = 12;
const MSG_STAT_ANY: i32 = 13;

/// What Linux says, whatever the limits are, that has no meaning any more: MSGMAP and MSGTQL, MSGPOOL.
const LINUX_MOST_IN_QUEUE: i32 = 16_384;
const LINUX_POOL: i32 = 512_000;

/// Where the text of a message begins, behind its type.
const TEXT: usize = size_of::<i64>();

/// `struct msqid64_ds`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct MsqIdDs {
    permissions: IpcPerm,
    sent_at: i64,
    received_at: i64,
    changed_at: i64,
    bytes: u64,
    count: u64,
    most_bytes: u64,
    sender: u32,
    receiver: u32,
    unused: [u64; 2],
}

/// `struct msginfo`.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct MsgInfo {
    pool: i32,
    map: i32,
    most_bytes: i32,
    most_in_queue: i32,
    most: i32,
    segment_bytes: i32,
    most_messages: i32,
    segments: u16,
    padding: u16,
}

fn msgget(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    crate::memory::admit()?;
    Ok(msg::get((args.int(0), args.int(1) as u32), &who(me, cx)?, cx)? as usize)
}

/// A call that does not wait if it must not.
fn patience(flags: u32) -> Patience {
    if flags & IPC_NOWAIT != 0 { Patience::None } else { Patience::Forever }
}

/// A wait that a signal ended begins again if no handler ran, whatever SA_RESTART says: see signal(7).
fn restarted_without_handler(error: Errno) -> Errno {
    if error == Errno::RESTART_SYS { Errno::RESTART_NO_HANDLER } else { error }
}

fn msgsnd_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let (id, len, flags) = (args.int(0), args.long(2), args.int(3) as u32);
    let (kind, text) = (args.input::<i64>(1), args.input::<u8>(1).add(TEXT));
    let kind = me.read_async(cx, kind)?;
    if id < 0 || len as u64 > MOST_BYTES.get() || kind < 1 {
        return Err(Errno::EINVAL);
    }
    crate::memory::admit()?;
    let text = Arc::new(read_text_async(cx, me, text, len)?);
    let queue = msg::find(id, cx)?;
    let who = who(me, cx)?;
    let mut sending = Sending::new(Message { kind, text }, pid(me, cx)?);
    let sent = complete_async(cx, me, patience(flags), |cx, _, waker| sending.step(queue, &who, waker, cx));
    sent.map(|()| 0).map_err(restarted_without_handler)
}

fn msgrcv_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let (id, room, kind, flags) = (args.int(0), args.long(2), args.long(3) as i64, args.int(4) as u32);
    if id < 0 || room > isize::MAX as usize {
        return Err(Errno::EINVAL);
    }
    // Of a copy: no message may be longer, even where the rest would be cut off.
    let mut longest = usize::MAX;
    let wanted = match kind {
        _ if flags & MSG_COPY != 0 => {
            if flags & MSG_EXCEPT != 0 || flags & IPC_NOWAIT == 0 {
                return Err(Errno::EINVAL);
            }
            longest = room.min(MOST_BYTES.get() as usize);
            // Linux makes the copy's room out of what the caller's memory has, and fails where that is not there.
            drop(read_text_async(cx, me, args.input::<u8>(1), longest)?);
            Wanted::Copy(usize::try_from(kind).unwrap_or(usize::MAX))
        }
        0 => Wanted::Any,
        ..0 => Wanted::Lowest(kind.checked_neg().unwrap_or(i64::MAX)),
        _ if flags & MSG_EXCEPT != 0 => Wanted::Other(kind),
        _ => Wanted::Kind(kind),
    };
    let queue = msg::find(id, cx)?;
    let who = who(me, cx)?;
    let most = (flags & MSG_NOERROR == 0).then_some(room);
    let mut receiving = Receiving::new(wanted, most, pid(me, cx)?);
    let received = complete_async(cx, me, patience(flags), |cx, _, waker| receiving.step(queue, &who, waker, cx));
    // What it was given while a signal ended its wait is not lost.
    let message = receiving.end(queue, cx).unwrap_or(received).map_err(|error| match error {
        Errno::EAGAIN => Errno::ENOMSG,
        error => restarted_without_handler(error),
    })?;
    if message.text.bytes() > longest {
        return Err(Errno::EINVAL);
    }
    // Whoever has no memory for it has lost it, as on Linux.
    me.write_async(cx, args.output::<i64>(1), &message.kind)?;
    let len = message.text.bytes().min(room);
    write_text_async(cx, me, args.output::<u8>(1).add(TEXT), &message.text, len)?;
    Ok(len)
}

fn msgctl(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let (id, command) = (args.int(0), args.int(1));
    if id < 0 || command < 0 {
        return Err(Errno::EINVAL.into());
    }
    let memory = me.memory(cx)?;
    let who = who(me, cx)?;
    match command {
        IPC_RMID => msg::remove(id, &who, cx)?,
        IPC_SET => {
            let new = memory.read(args.input::<MsqIdDs>(2))?;
            let queue = QUEUES.find(id, cx)?;
            queue.set(new.permissions.owner()?, new.most_bytes as usize, &who, cx)?;
        }
        IPC_STAT | MSG_STAT | MSG_STAT_ANY => {
            let (id, queue, result) = asked::<Queue>(id, command, cx)?;
            let (permissions, past) = queue.status(cx);
            if command != MSG_STAT_ANY {
                permissions.check(READ, &who)?;
            }
            let answer = MsqIdDs {
                permissions: IpcPerm::new(id, &permissions),
                sent_at: past.sent,
                received_at: past.received,
                changed_at: past.changed,
                bytes: past.bytes as u64,
                count: past.count as u64,
                most_bytes: past.most_bytes as u64,
                sender: past.sender,
                receiver: past.receiver,
                unused: [0; 2],
            };
            memory.write(args.output::<MsqIdDs>(2), &answer)?;
            return Ok(result);
        }
        IPC_INFO | MSG_INFO => {
            let [most_bytes, most_in_queue, most] =
                [MOST_BYTES.get(), MOST_IN_QUEUE.get(), QUEUES.most.get()].map(|most| most as i32);
            let mut answer = MsgInfo {
                pool: LINUX_POOL,
                map: LINUX_MOST_IN_QUEUE,
                most_bytes,
                most_in_queue,
                most,
                segment_bytes: 16,
                most_messages: LINUX_MOST_IN_QUEUE,
                segments: 0xffff,
                padding: 0,
            };
            if command == MSG_INFO {
                let (count, bytes) = msg::totals();
                (answer.pool, answer.map, answer.most_messages) = (QUEUES.count(cx) as i32, count as i32, bytes as i32);
            }
            memory.write(args.output::<MsgInfo>(2), &answer)?;
            return Ok(QUEUES.last_place(cx)? as usize);
        }
        _ => return Err(Errno::EINVAL.into()),
    }
    Ok(0)
}
