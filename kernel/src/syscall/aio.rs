//! Asynchronous input and output: io_setup(2), io_submit(2), io_getevents(2), io_cancel(2), io_destroy(2).

use alloc::vec;
use alloc::vec::Vec;
use core::any::Any;

use frame::Cx;
use frame::mm::Prot;
use linux_raw_sys::general as abi;
use refs::{StrongRc, WeakRc};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::memory::{limits, map_async, unmap_async};
use super::poll::{patience_of_timespec_async, set_mask_async};
use super::read_write::{Direction, IoVec, pieces, transfer_flags};
use super::{Args, Call, Entry};
use crate::block::Depth;
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::event::EventFd;
use crate::event::aio::{Context, Done};
use crate::fs::read_write::{MOST_BYTES, Position, TransferFlags, check, read_async, sync_async, write_async};
use crate::fs::{FileKind, OpenFile};
use crate::memory::{Backing, BackingObject, Map, Mapping, Placement, VmaFlags, VmaName};
use crate::step::{Interruption, Patience, Stop, TimeSlice, complete_async};
use crate::time::clock::TimeSpec;
use crate::user_memory::{In, Out, UserBuffer, UserIn, UserOut, UserPtr};

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[
    Entry::new(abi::__NR_io_setup, "io_setup", Call::Async(io_setup_async)),
    Entry::new(abi::__NR_io_destroy, "io_destroy", Call::Async(io_destroy_async)),
    Entry::partial(abi::__NR_io_submit, "io_submit", Call::Async(io_submit_async), "IOCB_CMD_POLL"),
    Entry::new(abi::__NR_io_cancel, "io_cancel", Call::Async(io_cancel_async)),
    Entry::new(abi::__NR_io_getevents, "io_getevents", Call::Async(io_getevents_async)),
    Entry::new(abi::__NR_io_pgetevents, "io_pgetevents", Call::Async(io_pgetevents_async)),
];

const IOCB_CMD_PREAD: u16 = 0;
const IOCB_CMD_PWRITE: u16 = 1;
const IOCB_CMD_FSYNC: u16 = 2;
const IOCB_CMD_FDSYNC: u16 = 3;
const IOCB_CMD_PREADV: u16 = 7;
const IOCB_CMD_PWRITEV: u16 = 8;
/// Flags of a request: an eventfd is told; a priority is given.
const IOCB_FLAG_RESFD: u32 = 1;
const IOCB_FLAG_IOPRIO: u32 = 2;
/// What the kernel writes into `aio_key` of what was submitted.
const KEY: u32 = 0;

/// `struct iocb`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Iocb {
    data: u64,
    key: u32,
    rw_flags: u32,
    opcode: u16,
    priority: i16,
    fd: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_fd: u32,
}

/// So many events are taken out at a time.
const TAKEN_AT_ONCE: usize = 128;
/// Where `aio_key` is.
const KEY_AT: usize = 8;

/// `struct __aio_sigset`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct AioSigset {
    mask: usize,
    size: usize,
}

/// The object of the VMA at an address, if that is a context.
fn find(address: usize, me: &Current, cx: &Cx) -> Result<WeakRc<dyn BackingObject>> {
    let vma = me.space(cx)?.report(address, cx).filter(|vma| vma.range.start == address).ok_or(Errno::EINVAL)?;
    let VmaName::Special(_, object) = vma.name else { return Err(Errno::EINVAL) };
    if with(&object, cx, |context| context.is_of(me.space))? { Ok(object) } else { Err(Errno::EINVAL) }
}

/// Does something with a context.
fn with<R>(object: &WeakRc<dyn BackingObject>, cx: &Cx, f: impl FnOnce(&Context) -> R) -> Result<R> {
    let object = object.upgrade(cx).map_err(|_| Errno::EINVAL)?;
    let object: &dyn Any = &*object;
    object.downcast_ref::<Context>().map(f).ok_or(Errno::EINVAL)
}

fn io_setup_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let at = args.in_out::<u64>(1);
    if me.read_async(cx, at)? != 0 {
        return Err(Errno::EINVAL);
    }
    crate::memory::admit()?;
    let context = StrongRc::new(Context::new(args.int(0) as u32, me.space)?);
    let backing = Backing::Object { object: context.unsize(|context| context), first: 0 };
    let mapping = Mapping {
        place: Placement::Hint(0),
        len: Context::BYTES,
        prot: Prot::READ | Prot::WRITE,
        limit: Prot::READ | Prot::WRITE,
        flags: VmaFlags::SHARED | VmaFlags::DONT_FORK | VmaFlags::DONT_EXPAND,
        backing,
    };
    let map = Map::new(mapping, limits(me, cx)?)?;
    let start = map_async(cx, me, map, Context::BYTES, 0)?;
    if let Err(error) = me.write_async(cx, at, &(start as u64)) {
        let _ = unmap_async(cx, me, start..start + Context::BYTES);
        return Err(error);
    }
    Ok(0)
}

fn io_destroy_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let address = args.long(0);
    with(&find(address, me, cx)?, cx, |context| context.destroy(cx))??;
    unmap_async(cx, me, address..address + Context::BYTES)
}

fn io_submit_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let count = args.long(1) as i64;
    if count < 0 {
        return Err(Errno::EINVAL);
    }
    let context = find(args.long(0), me, cx)?;
    let count = (count as usize).min(with(&context, cx, Context::most_at_once)?);
    let list = args.input::<u64>(2);
    for done in 0..count {
        if let Err(error) = submit_async(cx, me, &context, list.add(done)) {
            // Those before are on their way.
            return if done > 0 { Ok(done) } else { Err(error) };
        }
    }
    Ok(count)
}

/// Does the request whose address is at an address.
///
/// # Errors
/// What is wrong with the request. What comes of it is told otherwise.
fn submit_async(cx: &mut Cx, me: &mut Current, context: &WeakRc<dyn BackingObject>, at: UserIn<u64>) -> Result<()> {
    let address = me.read_async(cx, at)? as usize;
    let request = me.read_async(cx, UserIn::<Iocb>::new(address))?;
    if request.reserved != 0 || request.bytes as i64 <= -1 {
        return Err(Errno::EINVAL);
    }
    with(context, cx, |context| context.promise(cx))??;
    let begun = begin_async(cx, me, &request, address);
    let result = match begun {
        Ok(begun) => begun.run_async(cx, me),
        Err(error) => {
            let _ = with(context, cx, |context| context.take_back(cx));
            return Err(error);
        }
    };
    let result = match result {
        Ok(bytes) => bytes as i64,
        Err(error) => -i64::from(error.number()),
    };
    let done = Done { data: request.data, request: address as u64, result, second: 0 };
    let _ = with(context, cx, |context| context.complete(done, cx));
    if request.flags & IOCB_FLAG_RESFD != 0
        && let Ok(open) = me.files(cx)?.get(request.event_fd as i32, cx)
        && let Some(counter) = open.kind::<EventFd>()
    {
        counter.add(1, cx);
    }
    Ok(())
}

/// A request that can be done.
struct Begun {
    file: WeakRc<OpenFile>,
    what: What,
}

enum What {
    Read(Vec<UserBuffer<u8, Out>>, Position, TransferFlags),
    Write(Vec<UserBuffer<u8, In>>, Position, TransferFlags, bool),
    Sync,
}

fn begin_async(cx: &mut Cx, me: &mut Current, request: &Iocb, address: usize) -> Result<Begun> {
    let (file, is_seekable) = {
        let open = me.files(cx)?.get(request.fd as i32, cx)?;
        (open.downgrade(), open.is_seekable)
    };
    if request.flags & IOCB_FLAG_RESFD != 0 {
        let counter = me.files(cx)?.get(request.event_fd as i32, cx)?;
        counter.kind::<EventFd>().ok_or(Errno::EINVAL)?;
    }
    me.write_async(cx, UserOut::<u32>::new(address + KEY_AT), &KEY)?;
    let (direction, is_vector) = match request.opcode {
        IOCB_CMD_PREAD => (Direction::Read, false),
        IOCB_CMD_PWRITE => (Direction::Write, false),
        IOCB_CMD_PREADV => (Direction::Read, true),
        IOCB_CMD_PWRITEV => (Direction::Write, true),
        IOCB_CMD_FSYNC | IOCB_CMD_FDSYNC => {
            // Nothing else is said of it.
            if request.buffer != 0 || request.offset != 0 || request.bytes != 0 || request.rw_flags != 0 {
                return Err(Errno::EINVAL);
            }
            return Ok(Begun { file, what: What::Sync });
        }
        _ => return Err(Errno::EINVAL),
    };
    let (how, syncs) = transfer_flags(request.rw_flags, direction)?;
    if request.flags & IOCB_FLAG_IOPRIO != 0 {
        check_priority(request.priority)?;
    }
    // What has no offset ignores it.
    let position = if is_seekable {
        Position::At(u64::try_from(request.offset).map_err(|_| Errno::EINVAL)?)
    } else {
        Position::Current
    };
    let open = file.upgrade(cx).map_err(|_| Errno::EBADF)?;
    check(&open, direction.allowed(), position)?;
    if open.inode(cx)?.kind == FileKind::Directory {
        return Err(Errno::EINVAL);
    }
    drop(open);
    let what = match direction {
        Direction::Read => What::Read(buffers_async(cx, me, request, is_vector)?, position, how),
        Direction::Write => What::Write(buffers_async(cx, me, request, is_vector)?, position, how, syncs),
    };
    Ok(Begun { file, what })
}

/// Where the bytes of a request are.
fn buffers_async<D>(cx: &mut Cx, me: &mut Current, request: &Iocb, is_vector: bool) -> Result<Vec<UserBuffer<u8, D>>> {
    let (address, len) = (request.buffer as usize, request.bytes as usize);
    if !is_vector {
        return Ok(vec![UserPtr::<u8, D>::new(address).buffer(len)?.first(MOST_BYTES)]);
    }
    let vectors = UserIn::<IoVec>::new(address).slice(len);
    complete_async(cx, me, Patience::Forever, |cx, me, _| pieces(cx, me, vectors))
}

/// EINVAL: there is no such priority.
fn check_priority(priority: i16) -> Result<()> {
    let class = priority as u16 >> 13;
    if class <= 3 { Ok(()) } else { Err(Errno::EINVAL) }
}

impl Begun {
    fn run_async(self, cx: &mut Cx, me: &mut Current) -> Result<usize> {
        let file = self.file;
        let result = match self.what {
            What::Read(buffers, position, how) => read_async(cx, me, file, &buffers, position, how),
            What::Write(buffers, position, how, syncs) => {
                let written = write_async(cx, me, file, &buffers, position, how);
                match written {
                    Ok(bytes) if syncs => sync_async(cx, me, file, 0..u64::MAX, Depth::Kept).map(|()| bytes),
                    written => written,
                }
            }
            What::Sync => sync_async(cx, me, file, 0..u64::MAX, Depth::Kept).map(|()| 0),
        };
        // Nothing of it is restarted.
        result.map_err(|error| if error == Errno::RESTART_SYS { Errno::EINTR } else { error })
    }
}

fn io_cancel_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let key = me.read_async(cx, UserIn::<u32>::new(args.long(1).wrapping_add(KEY_AT)))?;
    if key == KEY {
        find(args.long(0), me, cx)?;
    }
    // Whatever was submitted is done.
    Err(Errno::EINVAL)
}

fn io_getevents_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let patience = patience_of_timespec_async(cx, me, args.input::<TimeSpec>(4))?;
    get_events_async(cx, me, args, patience)
}

fn io_pgetevents_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let patience = patience_of_timespec_async(cx, me, args.input::<TimeSpec>(4))?;
    if let Some(set) = args.input::<AioSigset>(5).non_null() {
        let AioSigset { mask, size } = me.read_async(cx, set)?;
        set_mask_async(cx, me, UserIn::<u64>::new(mask), size)?;
    }
    get_events_async(cx, me, args, patience)
}

fn get_events_async(cx: &mut Cx, me: &mut Current, args: &Args, patience: Patience) -> Result<usize> {
    let (least, most) = (args.long(1) as i64, args.long(2) as i64);
    let context = find(args.long(0), me, cx)?;
    if least < 0 || least > most {
        return Err(Errno::EINVAL);
    }
    let (least, most, to) = (least as usize, most as usize, args.output::<Done>(3));
    let mut taken = 0;
    let waited = complete_async(cx, me, patience, |cx, me, waker| {
        let memory = me.memory(cx)?;
        let mut time_slice = TimeSlice::default();
        with(&context, cx, |context| {
            if let Some(waker) = waker {
                context.wait(waker, cx);
            }
            loop {
                let count = context.take(cx, |events| {
                    let events = &events[..events.len().min(most - taken).min(TAKEN_AT_ONCE)];
                    memory.write_slice(to.add(taken).slice(events.len()), events)?;
                    Ok::<usize, Stop>(events.len())
                })?;
                taken += count;
                if count == 0 || taken == most {
                    return if taken >= least { Ok(()) } else { Err(Stop::Block) };
                }
                if time_slice.is_over() {
                    return Err(Stop::Pause(Interruption::KillOnly));
                }
            }
        })?
    });
    match waited {
        // What was taken is told, whatever ended the wait.
        _ if taken > 0 => Ok(taken),
        Ok(()) | Err(Errno::ETIMEDOUT | Errno::EAGAIN) => Ok(0),
        Err(error) if error == Errno::RESTART_SYS => Err(Errno::EINTR),
        Err(error) => Err(error),
    }
}
