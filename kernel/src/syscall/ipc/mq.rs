//! mq_open(2), mq_unlink(2), mq_timedsend(2), mq_timedreceive(2), mq_notify(2), mq_getsetattr(2).

use alloc::boxed::Box;

use frame::Cx;
use linux_raw_sys::general as abi;
use refs::{TempRc, WeakRc};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::super::signal_event::SignalEvent;
use super::super::{Args, Call, Entry};
use super::pid;
use super::texts::{read_text_async, write_text_async};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::event::mq_notify::{COOKIE_BYTES, Notification, Tell, check_socket};
use crate::fs::mqueue::{self, QueueFile};
use crate::fs::walk::PathName;
use crate::fs::{FdFlags, OpenFile, OpenFlags, Timestamp, reserve_fd};
use crate::ipc::mq::{Message, PRIORITIES, Queue, Receiving, Sending};
use crate::signal::Signal;
use crate::step::{Patience, Step, complete_async};
use crate::time::clock::TimeSpec;
use crate::user_memory::UserIn;

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[
    Entry::new(abi::__NR_mq_open, "mq_open", Call::Step(mq_open)),
    Entry::new(abi::__NR_mq_unlink, "mq_unlink", Call::Step(mq_unlink)),
    Entry::new(abi::__NR_mq_timedsend, "mq_timedsend", Call::Async(mq_timedsend_async)),
    Entry::new(abi::__NR_mq_timedreceive, "mq_timedreceive", Call::Async(mq_timedreceive_async)),
    Entry::new(abi::__NR_mq_notify, "mq_notify", Call::Step(mq_notify)),
    Entry::new(abi::__NR_mq_getsetattr, "mq_getsetattr", Call::Step(mq_getsetattr)),
];

/// `struct mq_attr`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct MqAttr {
    flags: i64,
    most_messages: i64,
    most_bytes: i64,
    messages: i64,
    reserved: [i64; 4],
}

fn mq_open(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let asked = match args.input::<MqAttr>(3).non_null() {
        Some(attributes) => {
            let MqAttr { most_messages, most_bytes, .. } = me.memory(cx)?.read(attributes)?;
            Some((most_messages, most_bytes))
        }
        None => None,
    };
    let name = PathName::read(args.string(0), me, cx)?;
    crate::memory::admit()?;
    let reserved = reserve_fd(me, cx)?;
    let flags = OpenFlags::from_bits_retain(args.int(1) as u32);
    let file = mqueue::open_step(name.bytes(), flags, args.int(2) as u32, asked, me, cx)?;
    Ok(reserved.fill_shared(file, FdFlags::CLOSE_ON_EXEC, cx))
}

fn mq_unlink(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let name = PathName::read(args.string(0), me, cx)?;
    mqueue::unlink(name.bytes(), me, cx)?;
    Ok(0)
}

/// Until when a call waits.
fn patience_async(cx: &mut Cx, me: &mut Current, until: UserIn<TimeSpec>) -> Result<Patience> {
    match until.non_null() {
        None => Ok(Patience::Forever),
        Some(until) => Ok(Patience::UntilWall(me.read_async(cx, until)?.nanoseconds()?)),
    }
}

/// A queue that a call uses, by which description, and how it waits.
struct Used {
    open: WeakRc<OpenFile>,
    /// It may outlive the description: who stood in it takes himself out.
    queue: WeakRc<Queue>,
    /// How long messages may be.
    longest: usize,
    patience: Patience,
}

/// The queue of a descriptor that a call uses. The call waits no longer where the description says so.
fn used(fd: i32, may: fn(OpenFlags) -> bool, patience: Patience, me: &Current, cx: &Cx) -> Result<Used> {
    let open = me.files(cx)?.get(fd, cx)?;
    let file = open.kind::<QueueFile>().filter(|_| may(open.flags())).ok_or(Errno::EBADF)?;
    let patience = if open.flags().contains(OpenFlags::NONBLOCK) { Patience::None } else { patience };
    let queue = file.queue(cx);
    Ok(Used { open: open.downgrade(), queue: queue.downgrade(), longest: queue.size.bytes, patience })
}

/// The queue of a description.
fn queue_of<'cx>(open: &OpenFile, cx: &'cx Cx) -> Result<TempRc<'cx, Queue>> {
    Ok(open.kind::<QueueFile>().ok_or(Errno::EBADF)?.queue(cx))
}

/// A message came or went: the times of the file are now.
fn touch(open: &OpenFile, cx: &Cx) {
    let now = Timestamp::now();
    open.location.inode.get(cx).change(cx, |metadata| {
        (metadata.accessed, metadata.modified, metadata.changed) = (now, now, now);
    });
}

fn mq_timedsend_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let (len, priority) = (args.long(2), args.int(3) as u32);
    let patience = patience_async(cx, me, args.input::<TimeSpec>(4))?;
    if priority >= PRIORITIES {
        return Err(Errno::EINVAL);
    }
    let Used { open, queue, longest, patience } = used(args.int(0), OpenFlags::can_write, patience, me, cx)?;
    if len > longest {
        return Err(Errno::EMSGSIZE);
    }
    crate::memory::admit()?;
    let text = read_text_async(cx, me, args.input::<u8>(1), len)?;
    let uid = me.thread(cx)?.credentials.lock(cx).users().real.number();
    let mut sending = Sending::new(Message { priority, text }, (pid(me, cx)?, uid));
    let sent = complete_async(cx, me, patience, |cx, _, waker| {
        let file = open.upgrade(cx).map_err(|_| Errno::EBADF)?;
        if let Some(waker) = waker {
            open.watch(waker, cx);
        }
        sending.step(&*queue_of(&file, cx)?, waker, cx)?;
        touch(&file, cx);
        Ok(())
    });
    // It may have been let in while something else ended the wait.
    let was_let_in = sending.end(queue.upgrade(cx).ok().as_deref(), cx);
    if was_let_in { Ok(0) } else { sent.map(|()| 0) }
}

fn mq_timedreceive_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let room = args.long(2);
    let patience = patience_async(cx, me, args.input::<TimeSpec>(4))?;
    let Used { open, queue, longest, patience } = used(args.int(0), OpenFlags::can_read, patience, me, cx)?;
    if room < longest {
        return Err(Errno::EMSGSIZE);
    }
    let mut receiving = Receiving::default();
    let received = complete_async(cx, me, patience, |cx, _, waker| {
        let file = open.upgrade(cx).map_err(|_| Errno::EBADF)?;
        if let Some(waker) = waker {
            open.watch(waker, cx);
        }
        let message = receiving.step(&*queue_of(&file, cx)?, waker, cx)?;
        touch(&file, cx);
        Ok(message)
    });
    // What it was given while something else ended the wait is not lost.
    let given = receiving.end(queue.upgrade(cx).ok().as_deref(), cx);
    let Message { priority, text } = match given {
        Some(message) => message,
        None => received?,
    };
    if let Some(to) = args.output::<u32>(3).non_null() {
        me.write_async(cx, to, &priority)?;
    }
    let len = text.bytes();
    write_text_async(cx, me, args.output::<u8>(1), &text, len)?;
    Ok(len)
}

fn mq_notify(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let memory = me.memory(cx)?;
    let files = me.files(cx)?;
    let tell = match args.input::<SignalEvent>(1).non_null() {
        None => None,
        Some(event) => {
            let SignalEvent { value, signal, notify, .. } = memory.read(event)?;
            Some(match notify as u32 {
                abi::SIGEV_NONE => Tell::Nothing,
                abi::SIGEV_SIGNAL if signal == 0 => Tell::Signal(None, value),
                abi::SIGEV_SIGNAL => Tell::Signal(Some(Signal::new(signal)?), value),
                abi::SIGEV_THREAD => {
                    let cookie = memory.read(UserIn::<[u8; COOKIE_BYTES]>::new(value as usize))?;
                    let socket = files.get_exported(signal, cx)?;
                    check_socket(&socket)?;
                    Tell::Thread(socket.downgrade(), cookie)
                }
                _ => return Err(Errno::EINVAL.into()),
            })
        }
    };
    let open = files.get(args.int(0), cx)?;
    let queue = queue_of(&open, cx)?;
    match tell {
        None => queue.forget(&files.downgrade(), cx),
        Some(tell) => {
            let process = me.process(cx)?;
            let notification = Notification::new(process.downgrade(), process.pid, files.downgrade(), tell);
            queue.tell(Box::new(notification), cx)?;
        }
    }
    Ok(0)
}

fn mq_getsetattr(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let memory = me.memory(cx)?;
    let nonblock = OpenFlags::NONBLOCK.bits();
    let new = match args.input::<MqAttr>(1).non_null() {
        None => None,
        Some(new) => {
            let flags = memory.read(new)?.flags;
            if flags & !i64::from(nonblock) != 0 {
                return Err(Errno::EINVAL.into());
            }
            Some(flags)
        }
    };
    let open = me.files(cx)?.get(args.int(0), cx)?;
    let queue = queue_of(&open, cx)?;
    if let Some(old) = args.output::<MqAttr>(2).non_null() {
        let answer = MqAttr {
            flags: i64::from(open.flags().bits() & nonblock),
            most_messages: queue.size.messages as i64,
            most_bytes: queue.size.bytes as i64,
            messages: queue.count(cx) as i64,
            reserved: [0; 4],
        };
        memory.write(old, &answer)?;
    }
    if let Some(flags) = new {
        let mut kept = open.flags();
        kept.set(OpenFlags::NONBLOCK, flags != 0);
        open.set_flags(kept);
        touch(&open, cx);
    }
    Ok(0)
}
