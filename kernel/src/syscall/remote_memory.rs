//! Another process's memory: process_vm_readv(2), process_vm_writev(2).

use alloc::vec;
use alloc::vec::{IntoIter, Vec};

use frame::Cx;
use frame::mm::PAGE_SIZE;
use linux_raw_sys::general as abi;
use refs::{StrongRc, WeakRc};

use super::read_write::IoVec;
use super::{Args, Call, Entry};
use crate::credentials::TraceAs;
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::memory::{AddressSpace, RemoteRight};
use crate::process::THREADS;
use crate::step::{Interruption, Patience, Step, Stop, TimeSlice, complete_async};
use crate::user_memory::{In, InOut, UserInOut, UserSlice};

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[
    Entry::new(abi::__NR_process_vm_readv, "process_vm_readv", Call::Async(process_vm_readv_async)),
    Entry::new(abi::__NR_process_vm_writev, "process_vm_writev", Call::Async(process_vm_writev_async)),
];

/// The most ranges of each side.
const MAX_RANGES: usize = 1024;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    FromRemote,
    ToRemote,
}

fn process_vm_readv_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    transfer_async(cx, me, args, Direction::FromRemote)
}

fn process_vm_writev_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    transfer_async(cx, me, args, Direction::ToRemote)
}

/// The ranges.
fn ranges(cx: &Cx, me: &Current, vectors: UserSlice<IoVec, In>) -> Step<Vec<UserSlice<u8, InOut>>> {
    if vectors.len() > MAX_RANGES {
        return Err(Errno::EINVAL.into());
    }
    let vectors = me.memory(cx)?.read_slice(vectors)?;
    let total = vectors.iter().try_fold(0_usize, |total, vector| total.checked_add(vector.len));
    match total {
        Some(total) if total <= isize::MAX as usize => {
            Ok(vectors.into_iter().map(|vector| UserInOut::<u8>::new(vector.base).slice(vector.len)).collect())
        }
        _ => Err(Errno::EINVAL.into()),
    }
}

fn transfer_async(cx: &mut Cx, me: &mut Current, args: &Args, direction: Direction) -> Result<usize> {
    let local = args.input::<IoVec>(1).slice(args.long(2));
    let remote = args.input::<IoVec>(3).slice(args.long(4));
    if args.long(5) != 0 {
        return Err(Errno::EINVAL);
    }
    let local = complete_async(cx, me, Patience::Forever, |cx, me, _| ranges(cx, me, local))?;
    for range in &local {
        range.checked()?;
    }
    let remote = complete_async(cx, me, Patience::Forever, |cx, me, _| ranges(cx, me, remote))?;
    let space = space_of(args.int(0), me, cx)?;
    let nothing = UserInOut::<u8>::new(0).slice(0);
    let mut transfer =
        Transfer { local: local.into_iter(), remote: remote.into_iter(), here: nothing, there: nothing, done: 0 };
    match complete_async(cx, me, Patience::Forever, |cx, me, _| transfer.step(&*space.upgrade(cx)?, me, direction, cx))
    {
        // What was copied counts more than why it stopped.
        Err(_) if transfer.done > 0 => Ok(transfer.done),
        result => result.map(|()| transfer.done),
    }
}

/// The memory of another thread, which the caller may look into.
fn space_of(tid: i32, me: &Current, cx: &Cx) -> Result<WeakRc<AddressSpace>> {
    let target = u32::try_from(tid).ok().and_then(|tid| THREADS.get(tid, cx)).ok_or(Errno::ESRCH)?;
    // Before the caller's right to it is looked at: execve(2) may give the target more rights and another address space in between.
    let space = target.space.lock(cx).as_ref().map(StrongRc::downgrade);
    if !me.may_trace(&target, TraceAs::Real, cx)? {
        return Err(Errno::EPERM);
    }
    space.ok_or(Errno::ESRCH)
}

/// How far a transfer is.
struct Transfer {
    /// The ranges that were not begun.
    local: IntoIter<UserSlice<u8, InOut>>,
    remote: IntoIter<UserSlice<u8, InOut>>,
    /// What is left of the range that was begun.
    here: UserSlice<u8, InOut>,
    there: UserSlice<u8, InOut>,
    done: usize,
}

impl Transfer {
    /// Copies page by page, until all is copied or a stretch is over.
    ///
    /// # Errors
    /// EFAULT where a page cannot be accessed.
    fn step(&mut self, space: &AddressSpace, me: &Current, direction: Direction, cx: &Cx) -> Step<()> {
        let mut time_slice = TimeSlice::default();
        let mut buffer = vec![0; PAGE_SIZE];
        loop {
            while self.here.is_empty() {
                let Some(next) = self.local.next() else { return Ok(()) };
                self.here = next;
            }
            while self.there.is_empty() {
                let Some(next) = self.remote.next() else { return Ok(()) };
                self.there = next;
            }
            let len = self.here.len().min(self.there.len()).min(PAGE_SIZE);
            let copied = copy(cx, me, space, self.there, self.here, &mut buffer[..len], direction)?;
            for range in [&mut self.here, &mut self.there] {
                *range = range.behind(copied);
            }
            self.done += copied;
            if copied < len {
                return Err(Errno::EFAULT.into());
            }
            if time_slice.is_over() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
        }
    }
}

/// Copies as many bytes as `buffer` has, or fewer if the remote side ends before.
fn copy(
    cx: &Cx,
    me: &Current,
    space: &AddressSpace,
    there: UserSlice<u8, InOut>,
    here: UserSlice<u8, InOut>,
    buffer: &mut [u8],
    direction: Direction,
) -> Step<usize> {
    let memory = me.memory(cx)?;
    match direction {
        Direction::FromRemote => {
            let len = space.read_remote(there.start().address(), buffer, RemoteRight::Own, cx)?;
            memory.write_slice(here, &buffer[..len])?;
            Ok(len)
        }
        Direction::ToRemote => {
            memory.read_into(here, buffer)?;
            space.write_remote(there.start().address(), buffer, RemoteRight::Own, cx)
        }
    }
}
