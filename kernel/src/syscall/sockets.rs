//! Sockets: making, naming and connecting them, and their options. What is sent and received is in [`messages`](super::messages).

use alloc::boxed::Box;

use frame::Cx;
use linux_raw_sys::{general as abi, net};
use refs::{Waker, WeakRc};

use super::{Args, Call, Entry};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::read_write::Wait;
use crate::fs::{Events, FdFlags, File, OpenFile, OpenFlags, ReservedFd, reserve_fd};
use crate::net::{Family, SOMAXCONN, Shutdown, Socket, Type, family, socket_of};
use crate::step::{Patience, Step, complete_async};
use crate::user_memory::{Readable, UserInOut, UserOut, UserSlice};

/// What is missing of nearly all of them.
pub(super) const FAMILIES: &str = "only AF_UNIX, AF_INET and AF_INET6";

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[
    Entry::partial(abi::__NR_socket, "socket", Call::Step(socket), FAMILIES),
    Entry::partial(abi::__NR_socketpair, "socketpair", Call::Step(socketpair), FAMILIES),
    Entry::partial(abi::__NR_bind, "bind", Call::Step(bind), FAMILIES),
    Entry::partial(abi::__NR_listen, "listen", Call::Step(listen), FAMILIES),
    Entry::partial(abi::__NR_connect, "connect", Call::Async(connect_async), FAMILIES),
    Entry::partial(abi::__NR_accept, "accept", Call::Async(|cx, me, args| accept_async(cx, me, args, 0)), FAMILIES),
    Entry::partial(
        abi::__NR_accept4,
        "accept4",
        Call::Async(|cx, me, args| accept_async(cx, me, args, args.int(3) as u32)),
        FAMILIES,
    ),
    Entry::partial(abi::__NR_getsockname, "getsockname", Call::Step(getsockname), FAMILIES),
    Entry::partial(abi::__NR_getpeername, "getpeername", Call::Step(getpeername), FAMILIES),
    Entry::partial(abi::__NR_shutdown, "shutdown", Call::Step(shutdown), FAMILIES),
    Entry::partial(
        abi::__NR_setsockopt,
        "setsockopt",
        Call::Step(setsockopt),
        "of AF_UNIX only SO_PASSCRED, SO_RCVTIMEO and SO_SNDTIMEO have an effect; of AF_INET some are only kept",
    ),
    Entry::partial(
        abi::__NR_getsockopt,
        "getsockopt",
        Call::Step(getsockopt),
        "what unix(7), ip(7), ipv6(7), tcp(7), udp(7), netlink(7) and packet(7) have",
    ),
];

/// The longest address of any family (`struct sockaddr_storage`).
const MAX_ADDRESS_BYTES: usize = 128;

/// An address that a program gave.
pub(super) struct SocketAddress {
    bytes: [u8; MAX_ADDRESS_BYTES],
    len: usize,
}

impl SocketAddress {
    /// Reads one.
    ///
    /// # Errors
    /// EINVAL: longer than any is. A fault.
    pub fn read(from: UserSlice<u8, impl Readable>, me: &Current, cx: &Cx) -> Step<Self> {
        let mut address = SocketAddress { bytes: [0; MAX_ADDRESS_BYTES], len: from.len() };
        if address.len > MAX_ADDRESS_BYTES {
            return Err(Errno::EINVAL.into());
        }
        me.memory(cx)?.read_into(from, &mut address.bytes)?;
        Ok(address)
    }

    /// Itself, if it has any bytes: to send to none is to name nobody.
    pub fn some(self) -> Option<Self> {
        (self.len > 0).then_some(self)
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Calls `f` with the socket of a descriptor.
///
/// # Errors
/// EBADF, ENOTSOCK; those of `f`.
fn with_socket<R>(fd: i32, me: &Current, cx: &Cx, f: impl FnOnce(&dyn Socket) -> Step<R>) -> Step<R> {
    let open = me.files(cx)?.get(fd, cx)?;
    f(socket_of(&open)?)
}

/// Checks that a descriptor is a socket.
///
/// # Errors
/// EBADF, ENOTSOCK.
pub(super) fn check_socket(fd: i32, me: &Current, cx: &Cx) -> Result<()> {
    socket_of(&*me.files(cx)?.get(fd, cx)?).map(|_| ())
}

/// Runs a step on the socket of a descriptor until it is done. Closing the descriptor ends it with EBADF.
pub(super) fn socket_async<T>(
    cx: &mut Cx,
    me: &mut Current,
    fd: i32,
    wait: &Wait,
    step: impl FnMut(&Cx, &Current, &dyn Socket, Option<Waker>) -> Step<T>,
) -> Result<T> {
    let name = me.files(cx)?.weak(fd, cx)?;
    named_socket_async(cx, me, name, wait, step)
}

/// As [`socket_async`], of what was looked up before.
pub(super) fn named_socket_async<T>(
    cx: &mut Cx,
    me: &mut Current,
    name: WeakRc<OpenFile>,
    wait: &Wait,
    mut step: impl FnMut(&Cx, &Current, &dyn Socket, Option<Waker>) -> Step<T>,
) -> Result<T> {
    complete_async(cx, me, Patience::Forever, |cx, me, waker| {
        let open = name.upgrade(cx).map_err(|_| Errno::EBADF)?;
        let socket = socket_of(&open)?;
        if let Some(waker) = waker {
            name.watch(waker, cx);
        }
        wait.apply(step(cx, me, socket, waker), &open, cx)
    })
}

/// The largest type of socket that has a meaning in any family (SOCK_PACKET).
const LAST_TYPE: u32 = 10;

/// What socket(2) and socketpair(2) ask for.
struct Wanted {
    family: &'static dyn Family,
    kind: Type,
    protocol: u32,
    flags: OpenFlags,
    fd_flags: FdFlags,
}

impl Wanted {
    fn new(args: &Args) -> Result<Self> {
        let kind = args.int(1) as u32;
        let flags = OpenFlags::from_bits_retain(kind) & (OpenFlags::NONBLOCK | OpenFlags::CLOSE_ON_EXEC);
        let kind = match kind & !flags.bits() {
            net::SOCK_STREAM => Type::Stream,
            net::SOCK_DGRAM => Type::Datagram,
            net::SOCK_RAW => Type::Raw,
            net::SOCK_SEQPACKET => Type::SequencedPacket,
            net::SOCK_RDM..=LAST_TYPE => return Err(Errno::ESOCKTNOSUPPORT),
            _ => return Err(Errno::EINVAL),
        };
        Ok(Wanted {
            family: family(args.int(0) as u32)?,
            kind,
            protocol: args.int(2) as u32,
            flags: (flags & OpenFlags::NONBLOCK) | OpenFlags::READ_WRITE,
            fd_flags: FdFlags::of(flags),
        })
    }
}

fn open(socket: Box<dyn File>, flags: OpenFlags) -> Result<OpenFile> {
    use crate::fs::anonymous::{self, Nameless};
    use crate::fs::{FileKind, Metadata};
    let metadata = Metadata::new(FileKind::Socket, 0o777);
    let location = anonymous::new_location(metadata, |_| Ok(Box::new(Nameless { prefix: "socket" })))?;
    let number = location.inode.with(|inode| inode.number);
    let open = OpenFile::at(socket, flags, location);
    socket_of(&open)?.note_inode(number);
    Ok(open)
}

fn socket(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let wanted = Wanted::new(args)?;
    crate::memory::admit()?;
    let reserved = reserve_fd(me, cx)?;
    let socket = wanted.family.create(wanted.kind, wanted.protocol, me, cx)?;
    Ok(reserved.fill(open(socket, wanted.flags)?, wanted.fd_flags, cx))
}

fn socketpair(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let wanted = Wanted::new(args)?;
    crate::memory::admit()?;
    let reserved = [reserve_fd(me, cx)?, reserve_fd(me, cx)?];
    let [first, second] = wanted.family.pair(wanted.kind, wanted.protocol, me, cx)?;
    me.memory(cx)?.write(args.output::<[i32; 2]>(3), &[reserved[0].fd() as i32, reserved[1].fd() as i32])?;
    let ends = [open(first, wanted.flags)?, open(second, wanted.flags)?];
    ReservedFd::fill_pair(reserved, ends, wanted.fd_flags, cx);
    Ok(0)
}

/// The address and its length of bind(2) and connect(2).
fn address_argument(args: &Args, me: &Current, cx: &Cx) -> Step<SocketAddress> {
    SocketAddress::read(args.input::<u8>(1).slice(args.int(2) as u32 as usize), me, cx)
}

fn bind(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    check_socket(args.int(0), me, cx)?;
    let address = address_argument(args, me, cx)?;
    let open = me.files(cx)?.get_exported(args.int(0), cx)?;
    socket_of(&open)?.bind(address.bytes(), me, cx)?;
    Ok(0)
}

fn listen(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let open = me.files(cx)?.get_exported(args.int(0), cx)?;
    let most = SOMAXCONN.get() as usize;
    let backlog = usize::try_from(args.int(1)).unwrap_or(most).min(most);
    socket_of(&open)?.listen(backlog, me, cx)?;
    Ok(0)
}

fn connect_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    // As on Linux: that the descriptor is no socket is found out behind the address.
    me.files(cx)?.get(args.int(0), cx)?;
    let address = complete_async(cx, me, Patience::Forever, |cx, me, _| address_argument(args, me, cx))?;
    let name = me.files(cx)?.get_exported(args.int(0), cx)?.downgrade();
    let wait = Wait::new(Events::OUT, false);
    let connected =
        named_socket_async(cx, me, name, &wait, |cx, me, socket, waker| socket.connect(address.bytes(), waker, me, cx));
    if connected == Err(Errno::EAGAIN) {
        // It did not wait.
        let open = me.files(cx)?.get(args.int(0), cx)?;
        return Err(socket_of(&open)?.unfinished_connect(cx));
    }
    connected.map(|()| 0)
}

fn accept_async(cx: &mut Cx, me: &mut Current, args: &Args, flags: u32) -> Result<usize> {
    let flags = OpenFlags::from_bits_retain(flags);
    me.files(cx)?.get(args.int(0), cx)?;
    if !(OpenFlags::NONBLOCK | OpenFlags::CLOSE_ON_EXEC).contains(flags) {
        return Err(Errno::EINVAL);
    }
    let file_flags = (flags & OpenFlags::NONBLOCK) | OpenFlags::READ_WRITE;
    let wait = Wait::new(Events::IN, false);
    socket_async(cx, me, args.int(0), &wait, |cx, me, listener, waker| {
        let reserved = reserve_fd(me, cx)?;
        let mut tell = |address: &[u8]| match args.output::<u8>(1).non_null() {
            None => Ok(()),
            Some(at) => write_address(address, at, args.in_out::<i32>(2), me, cx),
        };
        let accepted = listener.accept(waker, &mut tell, cx)?;
        Ok(reserved.fill(open(accepted, file_flags)?, FdFlags::of(flags), cx))
    })
}

/// Writes an address where the caller wants it, cut to the length it gave there; and how long it is. Where there is none at all its length is 0.
pub(super) fn write_address(
    address: &[u8],
    at: UserOut<u8>,
    len_at: UserInOut<i32>,
    me: &Current,
    cx: &Cx,
) -> Step<()> {
    let memory = me.memory(cx)?;
    let room = usize::try_from(memory.read(len_at)?).map_err(|_| Errno::EINVAL)?;
    memory.write_slice(at.slice(room), address)?;
    memory.write(len_at, &(address.len() as i32))?;
    Ok(())
}

fn getsockname(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let address = with_socket(args.int(0), me, cx, |socket| Ok(socket.address(cx)))?;
    write_address(&address, args.output::<u8>(1), args.in_out::<i32>(2), me, cx)?;
    Ok(0)
}

fn getpeername(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let address = with_socket(args.int(0), me, cx, |socket| Ok(socket.peer_address(cx)?))?;
    write_address(&address, args.output::<u8>(1), args.in_out::<i32>(2), me, cx)?;
    Ok(0)
}

fn shutdown(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    check_socket(args.int(0), me, cx)?;
    let what = match args.int(1) {
        0 => Shutdown { reading: true, writing: false },
        1 => Shutdown { reading: false, writing: true },
        2 => Shutdown { reading: true, writing: true },
        _ => return Err(Errno::EINVAL.into()),
    };
    with_socket(args.int(0), me, cx, |socket| socket.shut_down(what, cx))?;
    Ok(0)
}

fn setsockopt(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let (level, name) = (args.int(1) as u32, args.int(2) as u32);
    let len = usize::try_from(args.int(4)).map_err(|_| Errno::EINVAL)?;
    let (value, memory) = (args.input::<u8>(3).slice(len), me.memory(cx)?);
    with_socket(args.int(0), me, cx, |socket| socket.set_option(level, name, value, &memory, cx))?;
    Ok(0)
}

fn getsockopt(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let (level, name) = (args.int(1) as u32, args.int(2) as u32);
    let memory = me.memory(cx)?;
    let value = with_socket(args.int(0), me, cx, |socket| match socket.option_with(level, name) {
        Some(answer) => Ok(answer(memory.read(args.in_out::<u32>(3))?)?),
        None => Ok(socket.option(level, name, cx)?),
    })?;
    let len_at = args.in_out::<i32>(4);
    let room = usize::try_from(memory.read(len_at)?).map_err(|_| Errno::EINVAL)?;
    memory.write_slice(args.output::<u8>(3).slice(room), &value)?;
    memory.write(len_at, &(value.len().min(room) as i32))?;
    Ok(0)
}
