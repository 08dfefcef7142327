//! Sockets, as far as they are there: connected local pairs.

use alloc::boxed::Box;
use alloc::vec::Vec;

use frame::Cx;
use frame::mm::Reader;
use linux_raw_sys::general as abi;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Args, Call, Entry};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::anonymous::{self, Nameless};
use crate::fs::socket_pair::{Framing, Receive, Shutdown, SocketEnd};
use crate::fs::{Events, FdFlags, File, FileKind, Metadata, OpenFile, OpenFlags};
use crate::signal::{self, Signal};
use crate::step::{Patience, Step, Stop, complete_async};

// socket(2), send(2), recv(2).
const AF_UNIX: i32 = 1;
const SOCK_STREAM: u32 = 1;
const SOCK_DGRAM: u32 = 2;
const SOCK_SEQPACKET: u32 = 5;
const SOCK_TYPE_MASK: u32 = 0xf;
const MSG_PEEK: u32 = 0x2;
const MSG_TRUNC: u32 = 0x20;
const MSG_DONTWAIT: u32 = 0x40;
const MSG_NOSIGNAL: u32 = 0x4000;
const MSG_CMSG_CLOEXEC: u32 = 0x4000_0000;

/// The most bytes that one message call moves.
const MOST_BYTES: usize = 1 << 18;

/// The calls of this file.
pub const CALLS: &[Entry] = &[
    Entry::partial(abi::__NR_socketpair, "socketpair", Call::Step(socketpair), "families other than AF_UNIX"),
    Entry::partial(abi::__NR_sendto, "sendto", Call::Async(sendto_async), "sockets other than pairs"),
    Entry::partial(abi::__NR_recvfrom, "recvfrom", Call::Async(recvfrom_async), "sockets other than pairs"),
    Entry::partial(abi::__NR_sendmsg, "sendmsg", Call::Async(sendmsg_async), "ancillary data"),
    Entry::partial(abi::__NR_recvmsg, "recvmsg", Call::Async(recvmsg_async), "ancillary data"),
    Entry::partial(abi::__NR_shutdown, "shutdown", Call::Step(shutdown), "sockets other than pairs"),
];

fn socketpair(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    if args.int(0) != AF_UNIX {
        return Err(Errno::EAFNOSUPPORT.into());
    }
    let kind = args.int(1) as u32;
    let flags = OpenFlags::from_bits_retain(kind & !SOCK_TYPE_MASK);
    if !(OpenFlags::NONBLOCK | OpenFlags::CLOSE_ON_EXEC).contains(flags) {
        return Err(Errno::EINVAL.into());
    }
    let framing = match kind & SOCK_TYPE_MASK {
        SOCK_STREAM => Framing::Stream,
        SOCK_DGRAM | SOCK_SEQPACKET => Framing::Packets,
        _ => return Err(Errno::ESOCKTNOSUPPORT.into()),
    };
    if !matches!(args.int(2), 0 | AF_UNIX) {
        return Err(Errno::EPROTONOSUPPORT.into());
    }
    crate::memory::admit()?;
    let files = me.files(cx)?;
    let status = flags & OpenFlags::NONBLOCK | OpenFlags::READ_WRITE;
    let describe = |end: SocketEnd| -> Result<OpenFile> {
        let metadata = Metadata::new(FileKind::Socket, 0o777);
        let location = anonymous::new_location(metadata, |_| Ok(Box::new(Nameless { prefix: "socket" })))?;
        Ok(OpenFile::at(Box::new(end), status, location))
    };
    let (one, other) = SocketEnd::pair(framing);
    let (one, other) = (describe(one)?, describe(other)?);
    let first = files.install(one, FdFlags::of(flags), me, cx)?;
    let second = match files.install(other, FdFlags::of(flags), me, cx) {
        Ok(second) => second,
        Err(error) => {
            files.uninstall(first, cx);
            return Err(error.into());
        }
    };
    if let Err(fault) = me.memory(cx)?.write(args.long(3), &[first as i32, second as i32]) {
        files.uninstall(first, cx);
        files.uninstall(second, cx);
        return Err(fault.into());
    }
    Ok(0)
}

/// The socket behind a description.
fn socket(open: &OpenFile) -> Result<&SocketEnd> {
    if open.flags().contains(OpenFlags::PATH) {
        return Err(Errno::EBADF);
    }
    open.kind::<SocketEnd>().ok_or(Errno::ENOTSOCK)
}

/// Runs a step on the socket of a descriptor until it is done; `flags` are those of send(2) and recv(2).
fn drive_async<T>(
    cx: &mut Cx,
    me: &mut Current,
    fd: i32,
    interest: Events,
    flags: u32,
    mut step: impl FnMut(&SocketEnd, &Cx, &Current) -> Step<T>,
) -> Result<T> {
    let name = me.files(cx)?.weak(fd, cx)?;
    complete_async(cx, me, Patience::Forever, |cx, me, waker| {
        let open = name.upgrade(cx).map_err(|_| Errno::EBADF)?;
        let socket = socket(&open)?;
        if let Some(waker) = waker {
            name.watch(waker, cx);
            socket.poll(interest, Some(waker), cx);
        }
        match step(socket, cx, me) {
            Err(Stop::Block) if flags & MSG_DONTWAIT != 0 || open.flags().contains(OpenFlags::NONBLOCK) => {
                Err(Errno::EAGAIN.into())
            }
            outcome => outcome,
        }
    })
}

fn sendto_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let (buffer, len, flags) = (args.long(1), args.long(2).min(isize::MAX as usize), args.int(3) as u32);
    if args.long(4) != 0 && args.int(5) != 0 {
        check_socket(cx, me, args.int(0))?;
        return Err(Errno::EISCONN);
    }
    let mut done = 0;
    let outcome = drive_async(cx, me, args.int(0), Events::OUT, flags, |socket, cx, me| {
        loop {
            let memory = me.memory(cx)?;
            let mut from = memory.reader(buffer.wrapping_add(done), len - done);
            done += socket.write(0, &mut from, me, cx)?;
            if done >= len {
                return Ok(done);
            }
        }
    });
    finish_sending(cx, me, outcome, done, flags)
}

fn check_socket(cx: &Cx, me: &Current, fd: i32) -> Result<()> {
    let open = me.files(cx)?.get(fd, cx)?;
    socket(&open).map(|_| ())
}

fn finish_sending(cx: &mut Cx, me: &mut Current, outcome: Result<usize>, done: usize, flags: u32) -> Result<usize> {
    if outcome == Err(Errno::EPIPE) && flags & MSG_NOSIGNAL == 0 {
        signal::raise(me, Signal::PIPE, cx);
    }
    if done > 0 { Ok(done) } else { outcome }
}

fn receive_flags(flags: u32) -> Receive {
    if flags & MSG_PEEK != 0 { Receive::Peek } else { Receive::Take }
}

fn recvfrom_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let (buffer, len, flags) = (args.long(1), args.long(2).min(MOST_BYTES), args.int(3) as u32);
    let (count, whole) = drive_async(cx, me, args.int(0), Events::IN, flags, |socket, cx, me| {
        socket.receive(len, receive_flags(flags), cx, |bytes| Ok(me.memory(cx)?.write_bytes(buffer, bytes)?))
    })?;
    if args.long(4) != 0 && args.long(5) != 0 {
        // The other end has no name.
        me.write_async(cx, args.long(5), &0u32)?;
    }
    Ok(if flags & MSG_TRUNC != 0 { whole } else { count })
}

/// `struct msghdr`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct MessageHeader {
    name: u64,
    name_len: u64,
    pieces: u64,
    piece_count: u64,
    control: u64,
    control_len: u64,
    flags: u64,
}

/// Reads a message's header and its pieces: address and length.
fn header_async(cx: &mut Cx, me: &mut Current, address: usize) -> Result<(MessageHeader, Vec<[usize; 2]>)> {
    let header: MessageHeader = me.read_async(cx, address)?;
    if header.piece_count > u64::from(abi::UIO_MAXIOV) {
        return Err(Errno::EMSGSIZE);
    }
    let pieces = complete_async(cx, me, Patience::Forever, |cx, me, _| {
        Ok(me.memory(cx)?.read_array::<[usize; 2]>(header.pieces as usize, header.piece_count as usize)?)
    })?;
    Ok((header, pieces))
}

fn sendmsg_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let flags = args.int(2) as u32;
    check_socket(cx, me, args.int(0))?;
    let (header, pieces) = header_async(cx, me, args.long(1))?;
    if header.name != 0 && header.name_len as u32 != 0 {
        return Err(Errno::EISCONN);
    }
    if header.control != 0 && header.control_len != 0 {
        return Err(Errno::EINVAL);
    }
    let total = pieces.iter().fold(0usize, |sum, piece| sum.saturating_add(piece[1]));
    if total > MOST_BYTES {
        return Err(Errno::EMSGSIZE);
    }
    let bytes = complete_async(cx, me, Patience::Forever, |cx, me, _| {
        let mut bytes = alloc::vec![0; total];
        let mut at = 0;
        for &[address, len] in &pieces {
            let target = bytes.get_mut(at..at + len).unwrap_or_default();
            me.memory(cx)?.reader(address, len).read(target)?;
            at += len;
        }
        Ok(bytes)
    })?;
    let mut done = 0;
    let outcome = drive_async(cx, me, args.int(0), Events::OUT, flags, |socket, cx, me| {
        loop {
            let mut from = Reader::from(bytes.get(done..).unwrap_or_default());
            done += socket.write(0, &mut from, me, cx)?;
            if done >= total {
                return Ok(done);
            }
        }
    });
    finish_sending(cx, me, outcome, done, flags)
}

fn recvmsg_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let flags = args.int(2) as u32;
    check_socket(cx, me, args.int(0))?;
    let (mut header, pieces) = header_async(cx, me, args.long(1))?;
    let total = pieces.iter().fold(0usize, |sum, piece| sum.saturating_add(piece[1])).min(MOST_BYTES);
    let (count, whole) = drive_async(cx, me, args.int(0), Events::IN, flags, |socket, cx, me| {
        socket.receive(total, receive_flags(flags), cx, |bytes| {
            let memory = me.memory(cx)?;
            let mut left = bytes;
            for &[address, len] in &pieces {
                let (now, later) = left.split_at(len.min(left.len()));
                memory.write_bytes(address, now)?;
                left = later;
            }
            Ok(())
        })
    })?;
    header.name_len &= !0xffff_ffff;
    header.control_len = 0;
    header.flags = u64::from(flags & MSG_CMSG_CLOEXEC | if whole > count { MSG_TRUNC } else { 0 });
    me.write_async(cx, args.long(1), &header)?;
    Ok(if flags & MSG_TRUNC != 0 { whole } else { count })
}

fn shutdown(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let open = me.files(cx)?.get(args.int(0), cx)?;
    let what = match args.int(1) {
        0 => Shutdown { receiving: true, sending: false },
        1 => Shutdown { receiving: false, sending: true },
        2 => Shutdown { receiving: true, sending: true },
        _ => return Err(Errno::EINVAL.into()),
    };
    socket(&open)?.shut_down(what, cx);
    Ok(0)
}
