//! What is sent and received by sockets: send(2), recv(2), cmsg(3).

use alloc::vec;
use alloc::vec::Vec;

use frame::Cx;
use linux_raw_sys::{general as abi, net};
use refs::{Waker, WeakRc};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::read_write::{IoVec, pieces};
use super::sockets::{FAMILIES, SocketAddress, check_socket, named_socket_async, socket_async, write_address};
use super::{Args, Call, Entry};
use crate::credentials::{Gid, Uid};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::read_write::{MOST_BYTES, Wait};
use crate::fs::{Events, FdFlags, FileTable, OpenFile, in_flight};
use crate::net::{
    Control, Credentials, Files, Gather, Received, Receiving, Scatter, Sending, Socket, Source, receive_all,
};
use crate::signal::{self, Signal};
use crate::step::{Interruption, Patience, Step, Stop, TimeSlice, access_async, complete_async};
use crate::user_memory::{In, InOut, Out, UserBuffer, UserIn, UserInOut, UserSlice};

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[
    Entry::partial(abi::__NR_sendto, "sendto", Call::Async(sendto_async), FAMILIES),
    Entry::partial(abi::__NR_recvfrom, "recvfrom", Call::Async(recvfrom_async), FAMILIES),
    Entry::partial(abi::__NR_sendmsg, "sendmsg", Call::Async(sendmsg_async), FAMILIES),
    Entry::partial(abi::__NR_recvmsg, "recvmsg", Call::Async(recvmsg_async), FAMILIES),
];

/// The most bytes of ancillary data that are looked at.
const MAX_CONTROL_BYTES: usize = 20_480;
/// The most descriptors in one message (SCM_MAX_FD).
const MAX_RIGHTS: usize = 253;

/// `struct msghdr`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct MessageHeader {
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
    control: Vec<Control>,
}

/// Sends all of it (a stream may take several turns).
fn send_async(cx: &mut Cx, me: &mut Current, name: WeakRc<OpenFile>, flags: u32, outgoing: &Outgoing) -> Result<usize> {
    if !outgoing.files.is_empty() {
        crate::net::unix::garbage::make_room_async(cx, outgoing.files.len());
    }
    let mut done = 0;
    let mut signals = flags & net::MSG_NOSIGNAL == 0;
    let wait = Wait::new(Events::OUT, flags & net::MSG_DONTWAIT != 0);
    let outcome = named_socket_async(cx, me, name, &wait, |cx, me, socket, waker| {
        signals = signals && socket.signals_broken_pipe(cx);
        let memory = me.memory(cx)?;
        let to = outgoing.to.as_ref().map(SocketAddress::bytes);
        loop {
            let files = if done == 0 { &outgoing.files[..] } else { &[] };
            let sending = Sending { flags, control: &outgoing.control, files, credentials: outgoing.credentials };
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
        Ok(Outgoing {
            pieces: vec![piece],
            to,
            files: Files::new(),
            credentials: Credentials::of(me, cx)?,
            control: Vec::new(),
        })
    })?;
    let name = sender(args.int(0), &outgoing, me, cx)?;
    send_async(cx, me, name, args.int(3) as u32, &outgoing)
}

/// Who sends that.
///
/// # Errors
/// EBADF.
fn sender(fd: i32, outgoing: &Outgoing, me: &Current, cx: &Cx) -> Result<WeakRc<OpenFile>> {
    let files = me.files(cx)?;
    if outgoing.to.is_none() && outgoing.files.is_empty() {
        return files.weak(fd, cx);
    }
    // Another socket hears of this one, or what is in it is to come to its end at once.
    Ok(files.get_exported(fd, cx)?.downgrade())
}

pub(super) fn sendmsg_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let outgoing = complete_async(cx, me, Patience::Forever, |cx, me, _| {
        check_socket(args.int(0), me, cx)?;
        let header = me.memory(cx)?.read(args.input::<MessageHeader>(1))?;
        let to = match header.name()? {
            None => None,
            Some(name) => SocketAddress::read(name, me, cx)?.some(),
        };
        let pieces = pieces(cx, me, header.pieces()?)?;
        let (files, credentials, control) = read_control(&header, me, cx)?;
        Ok(Outgoing { pieces, to, files, credentials, control })
    })?;
    let sent = match sender(args.int(0), &outgoing, me, cx) {
        Ok(name) => send_async(cx, me, name, args.int(2) as u32, &outgoing),
        Err(error) => Err(error),
    };
    in_flight::end_sending(outgoing.files, cx);
    sent
}

/// The descriptors and credentials in a message's ancillary data, and what is for the protocol.
fn read_control(header: &MessageHeader, me: &Current, cx: &Cx) -> Step<(Files, Credentials, Vec<Control>)> {
    let own = Credentials::of(me, cx)?;
    let (mut sent, mut credentials, mut others) = (Files::new(), own, Vec::new());
    if header.control_len == 0 {
        return Ok((sent, credentials, others));
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
                sent.push(files.get_exported_even_path(fd, cx)?.share().ok_or(Errno::EBADF)?);
            }
        } else if head.level == net::SOL_SOCKET && head.kind == net::SCM_CREDENTIALS {
            credentials = Credentials::read_from_bytes(data).map_err(|_| Errno::EINVAL)?;
            let (user, group) = (Uid::new(credentials.uid), Gid::new(credentials.gid));
            let caller = me.thread(cx)?;
            if !caller.credentials.lock(cx).may_claim(credentials.pid == own.pid, user, group) {
                return Err(Errno::EPERM.into());
            }
        } else if head.level == net::SOL_SOCKET {
            return Err(Errno::EINVAL.into());
        } else {
            others.push(Control { level: head.level, kind: head.kind, data: data.to_vec() });
        }
        rest = rest.get(head.len.next_multiple_of(8)..).unwrap_or(&[]);
    }
    Ok((sent, credentials, others))
}

fn recvfrom_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let flags = args.int(3) as u32;
    let pieces = [args.output::<u8>(1).buffer(args.long(2).min(MOST_BYTES))?];
    let wait = Wait::new(Events::IN, flags & net::MSG_DONTWAIT != 0);
    let mut reception = Reception::new(flags);
    let received = socket_async(cx, me, args.int(0), &wait, |cx, me, socket, waker| {
        let received = reception.step(socket, &pieces, waker, me, cx)?;
        Ok((returned_len(&received, flags), received.from))
    });
    let (count, from) = received.or_else(|error| reception.end(error).map(|count| (count, Vec::new())))?;
    if let Some(at) = args.output::<u8>(4).non_null() {
        // Behind the receipt, which is not undone: where the address cannot be written the message is lost, as on Linux.
        complete_async(cx, me, Patience::Forever, |cx, me, _| write_address(&from, at, args.in_out::<i32>(5), me, cx))?;
    }
    Ok(count)
}

/// What a call has received so far that waits for more than there is.
struct Reception {
    flags: u32,
    done: usize,
}

impl Reception {
    fn new(flags: u32) -> Self {
        Reception { flags, done: 0 }
    }

    /// Receives, until it has what it waits for.
    fn step(
        &mut self,
        socket: &dyn Socket,
        pieces: &[UserBuffer<u8, Out>],
        waker: Option<Waker>,
        me: &Current,
        cx: &Cx,
    ) -> Step<Received> {
        let memory = me.memory(cx)?;
        let len = pieces.iter().fold(0_usize, |sum, piece| sum.saturating_add(piece.len()));
        let drops = self.flags & net::MSG_TRUNC != 0 && socket.drops_truncated();
        let mut slice = TimeSlice::default();
        loop {
            let done = self.done;
            let receiving = Receiving { flags: self.flags, room: len.saturating_sub(done) };
            let received = receive_all(&memory, |at_fault| {
                let mut scatter = Scatter::new(pieces, done);
                let mut room = receiving.room;
                let mut sink = |bytes: &[u8]| {
                    if drops {
                        let count = bytes.len().min(room);
                        room -= count;
                        return (count, None);
                    }
                    scatter.write(bytes, &memory)
                };
                socket.receive(&mut sink, at_fault, &receiving, waker, cx)
            });
            let mut received = received?;
            let is_last =
                received.copied == 0 || receiving.peeks() || !received.files.is_empty() || received.flags != 0;
            let wanted = socket.wanted(&receiving, cx);
            received.copied += done;
            received.len += done;
            if is_last || received.copied - done >= wanted {
                return Ok(received);
            }
            self.done = received.copied;
            if slice.is_over() {
                return Err(Stop::Pause(Interruption::Signals));
            }
        }
    }

    /// What was received counts more than why no more was.
    fn end(&self, error: Errno) -> Result<usize> {
        if self.done > 0 { Ok(self.done) } else { Err(error) }
    }
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

pub(super) fn recvmsg_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let flags = args.int(2) as u32;
    let at = args.in_out::<MessageHeader>(1);
    let wait = Wait::new(Events::IN, flags & net::MSG_DONTWAIT != 0);
    let mut reception = Reception::new(flags);
    let answer = socket_async(cx, me, args.int(0), &wait, |cx, me, socket, waker| {
        let header = me.memory(cx)?.read(at)?;
        header.name()?;
        let pieces = pieces(cx, me, header.pieces()?)?;
        let received = reception.step(socket, &pieces, waker, me, cx)?;
        Answer::new(header, received, flags, me, cx)
    });
    let answer = match answer {
        Err(error) => {
            let count = reception.end(error)?;
            let header = access_async(cx, me, |cx, me| Ok(me.memory(cx)?.read(at)?))?;
            Answer { header: MessageHeader { flags: 0, ..header }, name: Vec::new(), control: Vec::new(), count }
        }
        Ok(answer) => answer,
    };
    complete_async(cx, me, Patience::Forever, |cx, me, _| answer.write(at, me, cx))?;
    Ok(answer.count)
}

impl Answer {
    /// What is to be written of what was `received`; its descriptors are entered in the caller's table.
    fn new(header: MessageHeader, mut received: Received, flags: u32, me: &Current, cx: &Cx) -> Step<Self> {
        let mut header = MessageHeader { flags: flags & net::MSG_CMSG_CLOEXEC | received.flags, ..header };
        if received.copied < received.len {
            header.flags |= net::MSG_TRUNC;
        }
        let count = returned_len(&received, flags);
        let control_room = if header.control.is_null() { 0 } else { header.control_len.min(MAX_CONTROL_BYTES) };
        let name = core::mem::take(&mut received.from);
        let (control, truncated) = control(received, control_room, flags, me, cx)?;
        if truncated {
            header.flags |= net::MSG_CTRUNC;
        }
        Ok(Answer { header, name, control, count })
    }

    fn write(&self, at: UserInOut<MessageHeader>, me: &Current, cx: &Cx) -> Step<()> {
        let memory = me.memory(cx)?;
        let mut header = self.header;
        if !header.name.is_null() {
            memory.write_slice(header.name.slice(header.name_len as usize), &self.name)?;
            header.name_len = self.name.len() as u32;
        }
        memory.write_slice(header.control.slice(header.control_len), &self.control)?;
        header.control_len = self.control.len();
        Ok(memory.write(at, &header)?)
    }
}

/// The ancillary data of a received message, in at most `room` bytes; whether something did not fit. Descriptors are entered in the caller's table.
fn control(received: Received, room: usize, flags: u32, me: &Current, cx: &Cx) -> Result<(Vec<u8>, bool)> {
    let mut control = Vec::new();
    let mut truncated = false;
    let mut add = |level: u32, kind: u32, data: &[u8]| {
        let head = ControlHeader { len: CONTROL_HEADER_BYTES + data.len(), level, kind };
        control.extend_from_slice(head.as_bytes());
        control.extend_from_slice(data);
        control.resize(control.len().next_multiple_of(8).min(room), 0);
        control.len()
    };
    let mut used = 0;
    if let Some(credentials) = received.credentials {
        if CONTROL_HEADER_BYTES + size_of::<Credentials>() <= room {
            used = add(net::SOL_SOCKET, net::SCM_CREDENTIALS, credentials.as_bytes());
        } else {
            truncated = true;
        }
    }
    for part in &received.control {
        let len = CONTROL_HEADER_BYTES + part.data.len();
        if used + len <= room {
            used = add(part.level, part.kind, &part.data);
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
            add(net::SOL_SOCKET, net::SCM_RIGHTS, &fds);
        }
    }
    Ok((control, truncated))
}
