//! Sockets.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use frame::Cx;
use linux_raw_sys::{general as abi, net};
use refs::{StrongRc, TempRc, Waker, WeakRc};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::read_write::{IoVec, pieces};
use super::{Args, Call, Entry};
use crate::credentials::{Gid, Uid};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::{FdFlags, FileTable, OpenFile, OpenFlags, reserve_fd};
use crate::net::unix::{
    Address, Credentials, Endpoint, Files, Gather, Kind, Received, Scatter, Sending, Shutdown, Socket,
};
use crate::signal::{self, Signal};
use crate::step::{Patience, Step, Stop, complete_async};
use crate::user_memory::{In, Out, UserIn, UserInOut, UserOut, UserSlice};

const ONLY_UNIX: &str = "only AF_UNIX";

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[
    Entry::partial(abi::__NR_socket, "socket", Call::Step(socket), ONLY_UNIX),
    Entry::partial(abi::__NR_socketpair, "socketpair", Call::Step(socketpair), ONLY_UNIX),
    Entry::partial(abi::__NR_bind, "bind", Call::Step(bind), ONLY_UNIX),
    Entry::partial(abi::__NR_listen, "listen", Call::Step(listen), ONLY_UNIX),
    Entry::partial(abi::__NR_connect, "connect", Call::Async(connect_async), ONLY_UNIX),
    Entry::partial(abi::__NR_accept, "accept", Call::Async(|cx, me, args| accept_async(cx, me, args, 0)), ONLY_UNIX),
    Entry::partial(
        abi::__NR_accept4,
        "accept4",
        Call::Async(|cx, me, args| accept_async(cx, me, args, args.int(3) as u32)),
        ONLY_UNIX,
    ),
    Entry::partial(abi::__NR_getsockname, "getsockname", Call::Step(getsockname), ONLY_UNIX),
    Entry::partial(abi::__NR_getpeername, "getpeername", Call::Step(getpeername), ONLY_UNIX),
    Entry::partial(abi::__NR_sendto, "sendto", Call::Async(sendto_async), ONLY_UNIX),
    Entry::partial(abi::__NR_recvfrom, "recvfrom", Call::Async(recvfrom_async), "only AF_UNIX; MSG_WAITALL"),
    Entry::partial(abi::__NR_sendmsg, "sendmsg", Call::Async(sendmsg_async), ONLY_UNIX),
    Entry::partial(abi::__NR_recvmsg, "recvmsg", Call::Async(recvmsg_async), "only AF_UNIX; MSG_WAITALL"),
    Entry::partial(abi::__NR_shutdown, "shutdown", Call::Step(shutdown), ONLY_UNIX),
    Entry::partial(
        abi::__NR_setsockopt,
        "setsockopt",
        Call::Step(setsockopt),
        "only SO_PASSCRED has an effect; buffer sizes are accepted",
    ),
    Entry::partial(abi::__NR_getsockopt, "getsockopt", Call::Step(getsockopt), "what unix(7) has"),
];

/// The most bytes of ancillary data that are looked at.
const MAX_CONTROL_BYTES: usize = 4096;
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

/// `struct cmsghdr`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct ControlHeader {
    len: usize,
    level: u32,
    kind: u32,
}

const CONTROL_HEADER_BYTES: usize = size_of::<ControlHeader>();

/// The socket of a descriptor.
///
/// # Errors
/// EBADF, ENOTSOCK.
fn with_socket<R>(fd: i32, me: &Current, cx: &Cx, f: impl FnOnce(&OpenFile, TempRc<'_, Endpoint>) -> R) -> Result<R> {
    let open = me.files(cx)?.get(fd, cx)?;
    let socket = open.kind::<Socket>().ok_or(Errno::ENOTSOCK)?;
    Ok(f(&open, socket.endpoint(cx)))
}

/// Runs a step on the socket of a descriptor until it is done. Closing the descriptor ends it with EBADF.
fn socket_async<T>(
    cx: &mut Cx,
    me: &mut Current,
    fd: i32,
    dont_wait: bool,
    mut step: impl FnMut(&Cx, &Current, &Endpoint, Option<Waker>) -> Step<T>,
) -> Result<T> {
    let name = me.files(cx)?.weak(fd, cx)?;
    complete_async(cx, me, Patience::Forever, |cx, me, waker| {
        let open = name.upgrade(cx).map_err(|_| Errno::EBADF)?;
        let socket = open.kind::<Socket>().ok_or(Errno::ENOTSOCK)?;
        if let Some(waker) = waker {
            name.watch(waker, cx);
        }
        match step(cx, me, &socket.endpoint(cx), waker) {
            Err(Stop::Block) if dont_wait || open.flags().contains(OpenFlags::NONBLOCK) => Err(Errno::EAGAIN.into()),
            step => step,
        }
    })
}

/// The largest type of socket that has a meaning in any family (SOCK_PACKET).
const LAST_TYPE: u32 = 10;

fn kind(family: i32, kind: i32, protocol: i32) -> Result<(Kind, OpenFlags, FdFlags)> {
    let flags = OpenFlags::from_bits_retain(kind as u32) & (OpenFlags::NONBLOCK | OpenFlags::CLOSE_ON_EXEC);
    let kind = match (kind as u32) & !flags.bits() {
        net::SOCK_STREAM => Kind::Stream,
        net::SOCK_DGRAM | net::SOCK_RAW => Kind::Datagram,
        net::SOCK_SEQPACKET => Kind::SequencedPacket,
        net::SOCK_RDM..=LAST_TYPE => return Err(Errno::ESOCKTNOSUPPORT),
        _ => return Err(Errno::EINVAL),
    };
    if family as u32 != net::AF_UNIX {
        return Err(Errno::EAFNOSUPPORT);
    }
    if protocol != 0 && protocol as u32 != net::AF_UNIX {
        return Err(Errno::EPROTONOSUPPORT);
    }
    Ok((kind, (flags & OpenFlags::NONBLOCK) | OpenFlags::READ_WRITE, FdFlags::of(flags)))
}

fn open(endpoint: StrongRc<Endpoint>, flags: OpenFlags) -> Result<OpenFile> {
    use crate::fs::anonymous::{self, Nameless};
    use crate::fs::{FileKind, Metadata};
    let metadata = Metadata::new(FileKind::Socket, 0o777);
    let location = anonymous::new_location(metadata, |_| Ok(Box::new(Nameless { prefix: "socket" })))?;
    Ok(OpenFile::at(Box::new(Socket::new(endpoint)), flags, location))
}

fn socket(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let (kind, flags, fd_flags) = kind(args.int(0), args.int(1), args.int(2))?;
    crate::memory::admit()?;
    let reserved = reserve_fd(me, cx)?;
    let endpoint = Endpoint::new(kind, Credentials::of(me, cx)?);
    Ok(reserved.fill(open(endpoint, flags)?, fd_flags, cx))
}

fn socketpair(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let (kind, flags, fd_flags) = kind(args.int(0), args.int(1), args.int(2))?;
    crate::memory::admit()?;
    let reserved = [reserve_fd(me, cx)?, reserve_fd(me, cx)?];
    me.memory(cx)?.write(args.output::<[i32; 2]>(3), &[reserved[0].fd() as i32, reserved[1].fd() as i32])?;
    let [first, second] = Endpoint::pair(kind, Credentials::of(me, cx)?, cx);
    let files = [open(first, flags)?, open(second, flags)?];
    for (reserved, file) in reserved.into_iter().zip(files) {
        reserved.fill(file, fd_flags, cx);
    }
    Ok(0)
}

/// The address and its length of bind(2) and connect(2).
fn address_argument(args: &Args) -> UserSlice<u8, In> {
    args.input::<u8>(1).slice(args.int(2) as u32 as usize)
}

fn bind(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let address = Address::read(address_argument(args), me, cx)?;
    // Binding to no name asks for one: there are enough of five digits.
    with_socket(args.int(0), me, cx, |_, endpoint| match address {
        Some(address) => endpoint.bind(address, me, cx),
        None => (0..0x10_0000_u32)
            .map(|number| endpoint.bind(Address::Abstract(alloc::format!("{number:05x}").into_bytes()), me, cx))
            .find(|outcome| *outcome != Err(Errno::EADDRINUSE))
            .unwrap_or(Err(Errno::ENOSPC)),
    })??;
    Ok(0)
}

fn listen(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let backlog = usize::try_from(args.int(1)).unwrap_or(4096).min(4096);
    let own = Credentials::of(me, cx)?;
    with_socket(args.int(0), me, cx, |_, endpoint| endpoint.listen(backlog, own, cx))??;
    Ok(0)
}

fn connect_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    socket_async(cx, me, args.int(0), false, |cx, me, endpoint, waker| {
        let address = Address::read(address_argument(args), me, cx)?.ok_or(Errno::EINVAL)?;
        endpoint.connect(address.find(me, cx)?, Credentials::of(me, cx)?, waker, cx)
    })?;
    Ok(0)
}

fn accept_async(cx: &mut Cx, me: &mut Current, args: &Args, flags: u32) -> Result<usize> {
    let flags = OpenFlags::from_bits_retain(flags);
    if !(OpenFlags::NONBLOCK | OpenFlags::CLOSE_ON_EXEC).contains(flags) {
        return Err(Errno::EINVAL);
    }
    let file_flags = (flags & OpenFlags::NONBLOCK) | OpenFlags::READ_WRITE;
    socket_async(cx, me, args.int(0), false, |cx, me, listener, waker| {
        let reserved = reserve_fd(me, cx)?;
        let accepted = listener.accept(waker, cx)?;
        let address = accepted.get(cx).peer_address(cx).unwrap_or(None);
        let told = match args.output::<u8>(1).non_null() {
            None => Ok(()),
            Some(at) => write_address(address.as_ref(), at, args.in_out::<i32>(2), me, cx),
        };
        if let Err(stop) = told {
            listener.put_back(accepted, cx);
            return Err(stop);
        }
        Ok(reserved.fill(open(accepted, file_flags)?, FdFlags::of(flags), cx))
    })
}

/// Writes an address where the caller wants it, cut to the length it gave there; and how long it is.
fn write_address(
    address: Option<&Address>,
    at: UserOut<u8>,
    len_at: UserInOut<i32>,
    me: &Current,
    cx: &Cx,
) -> Step<()> {
    write_name(&Address::encode(address), at, len_at, me, cx)
}

/// The same for an encoded address; where there is none at all its length is 0.
fn write_name(name: &[u8], at: UserOut<u8>, len_at: UserInOut<i32>, me: &Current, cx: &Cx) -> Step<()> {
    let memory = me.memory(cx)?;
    let room = usize::try_from(memory.read(len_at)?).map_err(|_| Errno::EINVAL)?;
    memory.write_slice(at.slice(room), name)?;
    memory.write(len_at, &(name.len() as i32))?;
    Ok(())
}

fn getsockname(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let address = with_socket(args.int(0), me, cx, |_, endpoint| endpoint.address(cx))?;
    write_address(address.as_ref(), args.output::<u8>(1), args.in_out::<i32>(2), me, cx)?;
    Ok(0)
}

fn getpeername(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let address = with_socket(args.int(0), me, cx, |_, endpoint| endpoint.peer_address(cx))??;
    write_address(address.as_ref(), args.output::<u8>(1), args.in_out::<i32>(2), me, cx)?;
    Ok(0)
}

fn shutdown(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let what = match args.int(1) {
        0 => Shutdown { reading: true, writing: false },
        1 => Shutdown { reading: false, writing: true },
        2 => Shutdown { reading: true, writing: true },
        _ => return Err(Errno::EINVAL.into()),
    };
    with_socket(args.int(0), me, cx, |_, endpoint| endpoint.shut_down(what, cx))?;
    Ok(0)
}

/// What a sending call was given.
struct Outgoing {
    pieces: Vec<UserSlice<u8, In>>,
    target: Option<WeakRc<Endpoint>>,
    files: Files,
    credentials: Credentials,
}

/// Sends all of it (a stream may take several turns).
fn send_async(cx: &mut Cx, me: &mut Current, fd: i32, flags: u32, outgoing: &Outgoing) -> Result<usize> {
    if flags & net::MSG_OOB != 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    let mut done = 0;
    let outcome = socket_async(cx, me, fd, flags & net::MSG_DONTWAIT != 0, |cx, me, endpoint, waker| {
        let memory = me.memory(cx)?;
        loop {
            let files = if done == 0 { &outgoing.files[..] } else { &[] };
            let sending = Sending { files, credentials: outgoing.credentials };
            let mut from = Gather::new(&outgoing.pieces, done, &memory);
            let target = outgoing.target;
            done += endpoint.send(&mut from, &sending, target, waker, cx)?;
            if crate::net::unix::Source::remaining(&from) == 0 {
                return Ok(());
            }
        }
    });
    match outcome {
        Err(error) if done == 0 => {
            if error == Errno::EPIPE && flags & net::MSG_NOSIGNAL == 0 {
                signal::send::raise(me, Signal::PIPE, cx);
            }
            Err(error)
        }
        _ => Ok(done),
    }
}

fn sendto_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let outgoing = complete_async(cx, me, Patience::Forever, |cx, me, _| {
        let target = match args.input::<u8>(4).non_null() {
            None => None,
            Some(at) => Address::read(at.slice(args.int(5) as u32 as usize), me, cx)?,
        };
        Ok(Outgoing {
            pieces: vec![args.input::<u8>(1).slice(args.long(2).min(isize::MAX as usize))],
            target: target.map(|address| address.find(me, cx)).transpose()?,
            files: Files::new(),
            credentials: Credentials::of(me, cx)?,
        })
    })?;
    send_async(cx, me, args.int(0), args.int(3) as u32, &outgoing)
}

fn sendmsg_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let outgoing = complete_async(cx, me, Patience::Forever, |cx, me, _| {
        let header = me.memory(cx)?.read(args.input::<MessageHeader>(1))?;
        let target = match header.name.as_input().non_null() {
            None => None,
            Some(at) => Address::read(at.slice(header.name_len as usize), me, cx)?,
        };
        let (files, credentials) = read_control(&header, me, cx)?;
        Ok(Outgoing {
            pieces: pieces(cx, me, header.pieces.slice(header.piece_count))?,
            target: target.map(|address| address.find(me, cx)).transpose()?,
            files,
            credentials,
        })
    })?;
    send_async(cx, me, args.int(0), args.int(2) as u32, &outgoing)
}

/// The descriptors and credentials in a message's ancillary data.
fn read_control(header: &MessageHeader, me: &Current, cx: &Cx) -> Step<(Files, Credentials)> {
    let own = Credentials::of(me, cx)?;
    let (mut sent, mut credentials) = (Files::new(), own);
    if header.control.is_null() || header.control_len == 0 {
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
    let pieces = [args.output::<u8>(1).slice(args.long(2).min(isize::MAX as usize))];
    let received = socket_async(cx, me, args.int(0), flags & net::MSG_DONTWAIT != 0, |cx, me, endpoint, waker| {
        let received = receive(endpoint, &pieces, flags, waker, me, cx)?;
        Ok((told(&received, flags), received.from))
    });
    let (count, from) = received?;
    if let Some(at) = args.output::<u8>(4).non_null() {
        let sender = from.map_or(Vec::new(), |from| Address::encode(Some(&from)));
        // Behind the receipt, which is not undone: where the address cannot be written the message is lost, as on Linux.
        complete_async(cx, me, Patience::Forever, |cx, me, _| write_name(&sender, at, args.in_out::<i32>(5), me, cx))?;
    }
    Ok(count)
}

fn receive(
    endpoint: &Endpoint,
    pieces: &[UserSlice<u8, Out>],
    flags: u32,
    waker: Option<Waker>,
    me: &Current,
    cx: &Cx,
) -> Step<Received> {
    let memory = me.memory(cx)?;
    let mut scatter = Scatter::new(pieces);
    let mut sink = |bytes: &[u8]| scatter.write(bytes, &memory);
    endpoint.receive(&mut sink, flags & net::MSG_PEEK != 0, waker, cx)
}

/// What the call returns: of a message its true length with MSG_TRUNC.
fn told(received: &Received, flags: u32) -> usize {
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
    let answer = socket_async(cx, me, args.int(0), flags & net::MSG_DONTWAIT != 0, |cx, me, endpoint, waker| {
        let header = me.memory(cx)?.read(at)?;
        let pieces = pieces(cx, me, header.pieces.slice(header.piece_count))?;
        let received = receive(endpoint, &pieces, flags, waker, me, cx)?;
        let mut header = MessageHeader { flags: flags & net::MSG_CMSG_CLOEXEC, ..header };
        if received.copied < received.len {
            header.flags |= net::MSG_TRUNC;
        }
        let count = told(&received, flags);
        let name = received.from.as_ref().map_or(Vec::new(), |from| Address::encode(Some(from)));
        let control_room = if header.control.is_null() { 0 } else { header.control_len.min(MAX_CONTROL_BYTES) };
        let (control, truncated) = control(received, control_room, endpoint, flags, me, cx)?;
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
fn control(
    received: Received,
    room: usize,
    endpoint: &Endpoint,
    flags: u32,
    me: &Current,
    cx: &Cx,
) -> Result<(Vec<u8>, bool)> {
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
    if endpoint.passes_credentials(cx)
        && let Some(credentials) = received.credentials
    {
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

fn setsockopt(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    if args.int(1) as u32 != net::SOL_SOCKET {
        return Err(Errno::EOPNOTSUPP.into());
    }
    if args.int(4) < 4 {
        return Err(Errno::EINVAL.into());
    }
    let value = me.memory(cx)?.read(args.input::<i32>(3))?;
    with_socket(args.int(0), me, cx, |_, endpoint| match args.int(2) as u32 {
        net::SO_PASSCRED => {
            endpoint.set_passes_credentials(value != 0, cx);
            Ok(0)
        }
        net::SO_SNDBUF
        | net::SO_RCVBUF
        | net::SO_SNDBUFFORCE
        | net::SO_RCVBUFFORCE
        | net::SO_REUSEADDR
        | net::SO_KEEPALIVE
        | net::SO_LINGER
        | net::SO_BROADCAST
        | net::SO_PRIORITY
        | net::SO_RCVTIMEO_OLD
        | net::SO_SNDTIMEO_OLD => Ok(0),
        _ => Err(Errno::ENOPROTOOPT),
    })?
    .map_err(Stop::from)
}

fn getsockopt(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    if args.int(1) as u32 != net::SOL_SOCKET {
        return Err(Errno::EOPNOTSUPP.into());
    }
    let value: Vec<u8> = with_socket(args.int(0), me, cx, |_, endpoint| {
        let number = match args.int(2) as u32 {
            net::SO_TYPE => match endpoint.kind {
                Kind::Stream => net::SOCK_STREAM,
                Kind::Datagram => net::SOCK_DGRAM,
                Kind::SequencedPacket => net::SOCK_SEQPACKET,
            },
            net::SO_DOMAIN => net::AF_UNIX,
            net::SO_ACCEPTCONN => u32::from(endpoint.is_listening(cx)),
            net::SO_PASSCRED => u32::from(endpoint.passes_credentials(cx)),
            net::SO_SNDBUF | net::SO_RCVBUF => 212_992,
            net::SO_ERROR | net::SO_PROTOCOL | net::SO_REUSEADDR | net::SO_KEEPALIVE | net::SO_BROADCAST => 0,
            net::SO_PEERCRED => return Ok(endpoint.peer_credentials(cx).as_bytes().to_vec()),
            _ => return Err(Errno::ENOPROTOOPT),
        };
        Ok(number.to_le_bytes().to_vec())
    })??;
    let memory = me.memory(cx)?;
    let len_at = args.in_out::<i32>(4);
    let room = usize::try_from(memory.read(len_at)?).map_err(|_| Errno::EINVAL)?;
    memory.write_slice(args.output::<u8>(3).slice(room), &value)?;
    memory.write(len_at, &(value.len().min(room) as i32))?;
    Ok(0)
}
