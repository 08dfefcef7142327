//! What is sent and received by sockets: send(2), recv(2), cmsg(3).

use alloc::vec;
use alloc::vec::Vec;

use frame::Cx;
use linux_raw_sys::{general as abi, net};
use refs::Waker;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::read_write::{IoVec, pieces};
use super::sockets::{ONLY_UNIX, SocketAddress, check_socket, socket_async, write_address};
use super::{Args, Call, Entry};
use crate::credentials::{Gid, Uid};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::read_write::{MOST_BYTES, Wait};
use crate::fs::{Events, FdFlags, FileTable, in_flight};
use crate::net::{Credentials, Files, Gather, Received, Scatter, Sending, Socket, Source, receive_all};
use crate::signal::{self, Signal};
use crate::step::{Patience, Step, complete_async};
use crate::user_memory::{In, InOut, Out, UserBuffer, UserIn, UserInOut, UserSlice};

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[
    Entry::partial(abi::__NR_sendto, "sendto", Call::Async(sendto_async), ONLY_UNIX),
    Entry::partial(abi::__NR_recvfrom, "recvfrom", Call::Async(recvfrom_async), "only AF_UNIX; MSG_WAITALL"),
    Entry::partial(abi::__NR_sendmsg, "sendmsg", Call::Async(sendmsg_async), ONLY_UNIX),
    Entry::partial(abi::__NR_recvmsg, "recvmsg", Call::Async(recvmsg_async), "only AF_UNIX; MSG_WAITALL"),
];

/// The most bytes of ancillary data that are looked at.
const MAX_CONTROL_BYTES: usize = 20_480;
/// The most descriptors in one message (SCM_MAX_FD).
const MAX_RIGHTS: usize = 253;

/// `struct msghdr`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct MessageHeader {
    name: UserInOut<u8>,
    name_len: u32,
    padding: u32,
    pieces: UserIn<IoVec>,
    piece_count: usize,
    control: UserInOut<u8>,
    control_len: usize,
    flags: u32,
    padding_2: u32,
}

impl MessageHeader {
    /// Where the name is, if there is one.
    ///
    /// # Errors
    /// EINVAL: its length is negative.
    fn name(&self) -> Result<Option<UserSlice<u8, InOut>>> {
        match self.name.non_null() {
            Some(_) if (self.name_len as i32) < 0 => Err(Errno::EINVAL),
            name => Ok(name.map(|at| at.slice(self.name_len as usize))),
        }
    }

    /// Where the pieces are described.
    ///
    /// # Errors
    /// EMSGSIZE: too many.
    fn pieces(&self) -> Result<UserSlice<IoVec, In>> {
        if self.piece_count > abi::UIO_MAXIOV as usize {
            return Err(Errno::EMSGSIZE);
        }
        Ok(self.pieces.slice(self.piece_count))
    }
}

/// `struct cmsghdr`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct ControlHeader {
    len: usize,
    level: u32,
    kind: u32,
}

const CONTROL_HEADER_BYTES: usize = size_of::<ControlHeader>();

/// What a sending call was given.
struct Outgoing {
    pieces: Vec<UserBuffer<u8, In>>,
    to: Option<SocketAddress>,
    files: Files,
    credentials: Credentials,
}

/// Sends all of it (a stream may take several turns).
fn send_async(cx: &mut Cx, me: &mut Current, fd: i32, flags: u32, outgoing: &Outgoing) -> Result<usize> {
    if flags & net::MSG_OOB != 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    if !outgoing.files.is_empty() {
        crate::net::unix::garbage::make_room_async(cx, outgoing.files.len());
    }
    let mut done = 0;
    let mut signals = flags & net::MSG_NOSIGNAL == 0;
    let wait = Wait::new(Events::OUT, flags & net::MSG_DONTWAIT != 0);
    let outcome = socket_async(cx, me, fd, &wait, |cx, me, socket, waker| {
        signals = signals && socket.signals_broken_pipe(cx);
        let memory = me.memory(cx)?;
        let to = outgoing.to.as_ref().map(SocketAddress::bytes);
        loop {
            let files = if done == 0 { &outgoing.files[..] } else { &[] };
            let sending = Sending { files, credentials: outgoing.credentials };
            let mut from = Gather::new(&outgoing.pieces, done, &memory);
            done += socket.send(&mut from, to, &sending, waker, me, cx)?;
            wait.restart();
            if Source::remaining(&from) == 0 {
                return Ok(());
            }
        }
    });
    match outcome {
        Err(error) if done == 0 => {
            if error == Errno::EPIPE && signals && !wait.is_silent() {
                signal::send::raise(me, Signal::PIPE, cx);
            }
            Err(error)
        }
        _ => Ok(done),
    }
}

fn sendto_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let piece = args.input::<u8>(1).buffer(args.long(2).min(MOST_BYTES))?;
    let outgoing = complete_async(cx, me, Patience::Forever, |cx, me, _| {
        let to = match args.input::<u8>(4).non_null() {
            None => None,
            Some(at) => {
                check_socket(args.int(0), me, cx)?;
                SocketAddress::read(at.slice(args.int(5) as u32 as usize), me, cx)?.some()
            }
        };
        if to.is_some() {
            me.files(cx)?.export(args.int(0), cx);
        }
        Ok(Outgoing { pieces: vec![piece], to, files: Files::new(), credentials: Credentials::of(me, cx)? })
    })?;
    send_async(cx, me, args.int(0), args.int(3) as u32, &outgoing)
}

fn sendmsg_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let outgoing = complete_async(cx, me, Patience::Forever, |cx, me, _| {
        check_socket(args.int(0), me, cx)?;
        let header = me.memory(cx)?.read(args.input::<MessageHeader>(1))?;
        let to = match header.name()? {
            None => None,
            Some(name) => SocketAddress::read(name, me, cx)?.some(),
        };
        let pieces = pieces(cx, me, header.pieces()?)?;
        let (files, credentials) = read_control(&header, me, cx)?;
        if to.is_some() || !files.is_empty() {
            // Another socket hears of this one, or what is in it is to come to its end at once.
            me.files(cx)?.export(args.int(0), cx);
        }
        Ok(Outgoing { pieces, to, files, credentials })
    })?;
    let sent = send_async(cx, me, args.int(0), args.int(2) as u32, &outgoing);
    in_flight::end_sending(outgoing.files, cx);
    sent
}

/// The descriptors and credentials in a message's ancillary data.
fn read_control(header: &MessageHeader, me: &Current, cx: &Cx) -> Step<(Files, Credentials)> {
    let own = Credentials::of(me, cx)?;
    let (mut sent, mut credentials) = (Files::new(), own);
    if header.control_len == 0 {
        return Ok((sent, credentials));
    }
    if header.control_len > MAX_CONTROL_BYTES {
        return Err(Errno::ENOBUFS.into());
    }
    let memory = me.memory(cx)?;
    let control = memory.read_slice(header.control.slice(header.control_len))?;
    let mut rest = &control[..];
    while let Ok((head, _)) = ControlHeader::read_from_prefix(rest) {
        if head.len < CONTROL_HEADER_BYTES || head.len > rest.len() {
            return Err(Errno::EINVAL.into());
        }
        let data = &rest[CONTROL_HEADER_BYTES..head.len];
        if head.level == net::SOL_SOCKET && head.kind == net::SCM_RIGHTS {
            if data.len() / 4 > MAX_RIGHTS {
                return Err(Errno::EINVAL.into());
            }
            let files = me.files(cx)?;
            for fd in data.chunks_exact(4) {
                let fd = i32::from_le_bytes([fd[0], fd[1], fd[2], fd[3]]);
                files.export(fd, cx);
                sent.push(files.get_even_path(fd, cx)?.share().ok_or(Errno::EBADF)?);
            }
        } else if head.level == net::SOL_SOCKET && head.kind == net::SCM_CREDENTIALS {
            credentials = Credentials::read_from_bytes(data).map_err(|_| Errno::EINVAL)?;
            let (user, group) = (Uid::new(credentials.uid), Gid::new(credentials.gid));
            let caller = me.thread(cx)?;
            if !caller.credentials.lock(cx).may_claim(credentials.pid == own.pid, user, group) {
                return Err(Errno::EPERM.into());
            }
        } else {
            return Err(Errno::EINVAL.into());
        }
        rest = rest.get(head.len.next_multiple_of(8)..).unwrap_or(&[]);
    }
    Ok((sent, credentials))
}

fn recvfrom_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let flags = args.int(3) as u32;
    if flags & net::MSG_OOB != 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    let pieces = [args.output::<u8>(1).buffer(args.long(2).min(MOST_BYTES))?];
    let wait = Wait::new(Events::IN, flags & net::MSG_DONTWAIT != 0);
    let received = socket_async(cx, me, args.int(0), &wait, |cx, me, socket, waker| {
        let received = receive(socket, &pieces, flags, waker, me, cx)?;
        Ok((returned_len(&received, flags), received.from))
    });
    let (count, from) = received?;
    if let Some(at) = args.output::<u8>(4).non_null() {
        // Behind the receipt, which is not undone: where the address cannot be written the message is lost, as on Linux.
        complete_async(cx, me, Patience::Forever, |cx, me, _| write_address(&from, at, args.in_out::<i32>(5), me, cx))?;
    }
    Ok(count)
}

fn receive(
    socket: &dyn Socket,
    pieces: &[UserBuffer<u8, Out>],
    flags: u32,
    waker: Option<Waker>,
    me: &Current,
    cx: &Cx,
) -> Step<Received> {
    let memory = me.memory(cx)?;
    receive_all(&memory, |at_fault| {
        let mut scatter = Scatter::new(pieces);
        let mut sink = |bytes: &[u8]| scatter.write(bytes, &memory);
        socket.receive(&mut sink, at_fault, flags & net::MSG_PEEK != 0, waker, cx)
    })
}

/// What the call returns: of a message its true length with MSG_TRUNC.
fn returned_len(received: &Received, flags: u32) -> usize {
    if flags & net::MSG_TRUNC != 0 { received.len } else { received.copied }
}

/// What recvmsg(2) writes behind the receipt.
struct Answer {
    header: MessageHeader,
    name: Vec<u8>,
    control: Vec<u8>,
    count: usize,
}

fn recvmsg_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let flags = args.int(2) as u32;
    if flags & net::MSG_OOB != 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    let at = args.in_out::<MessageHeader>(1);
    let wait = Wait::new(Events::IN, flags & net::MSG_DONTWAIT != 0);
    let answer = socket_async(cx, me, args.int(0), &wait, |cx, me, socket, waker| {
        let header = me.memory(cx)?.read(at)?;
        header.name()?;
        let pieces = pieces(cx, me, header.pieces()?)?;
        let received = receive(socket, &pieces, flags, waker, me, cx)?;
        let mut header = MessageHeader { flags: flags & net::MSG_CMSG_CLOEXEC, ..header };
        if received.copied < received.len {
            header.flags |= net::MSG_TRUNC;
        }
        let count = returned_len(&received, flags);
        let control_room = if header.control.is_null() { 0 } else { header.control_len.min(MAX_CONTROL_BYTES) };
        let (name, (control, truncated)) = {
            let mut received = received;
            let name = core::mem::take(&mut received.from);
            (name, control(received, control_room, flags, me, cx)?)
        };
        if truncated {
            header.flags |= net::MSG_CTRUNC;
        }
        Ok(Answer { header, name, control, count })
    })?;
    complete_async(cx, me, Patience::Forever, |cx, me, _| {
        let memory = me.memory(cx)?;
        let mut header = answer.header;
        if !header.name.is_null() {
            memory.write_slice(header.name.slice(header.name_len as usize), &answer.name)?;
            header.name_len = answer.name.len() as u32;
        }
        memory.write_slice(header.control.slice(header.control_len), &answer.control)?;
        header.control_len = answer.control.len();
        Ok(memory.write(at, &header)?)
    })?;
    Ok(answer.count)
}

/// The ancillary data of a received message, in at most `room` bytes; whether something did not fit. Descriptors are entered in the caller's table.
fn control(received: Received, room: usize, flags: u32, me: &Current, cx: &Cx) -> Result<(Vec<u8>, bool)> {
    let mut control = Vec::new();
    let mut truncated = false;
    let mut add = |kind: u32, data: &[u8]| {
        let head = ControlHeader { len: CONTROL_HEADER_BYTES + data.len(), level: net::SOL_SOCKET, kind };
        control.extend_from_slice(head.as_bytes());
        control.extend_from_slice(data);
        control.resize(control.len().next_multiple_of(8).min(room), 0);
        control.len()
    };
    let mut used = 0;
    if let Some(credentials) = received.credentials {
        if CONTROL_HEADER_BYTES + size_of::<Credentials>() <= room {
            used = add(net::SCM_CREDENTIALS, credentials.as_bytes());
        } else {
            truncated = true;
        }
    }
    if !received.files.is_empty() {
        let fits = room.saturating_sub(used + CONTROL_HEADER_BYTES) / 4;
        truncated |= received.files.len() > fits;
        let fd_flags = if flags & net::MSG_CMSG_CLOEXEC != 0 { FdFlags::CLOSE_ON_EXEC } else { FdFlags::empty() };
        let files = me.files(cx)?;
        let mut fds: Vec<u8> = Vec::new();
        for file in received.files.into_iter().take(fits) {
            let Ok(reserved) = FileTable::reserve(&files, me, cx) else {
                truncated = true;
                break;
            };
            let fd = reserved.fill_shared(file, fd_flags, cx);
            fds.extend_from_slice(&(fd as i32).to_le_bytes());
        }
        if !fds.is_empty() {
            add(net::SCM_RIGHTS, &fds);
        }
    }
    Ok((control, truncated))
}
