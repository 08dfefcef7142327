//! Another process's memory: process_vm_readv(2), process_vm_writev(2).

use alloc::vec;
use alloc::vec::{IntoIter, Vec};

use frame::Cx;
use frame::mm::PAGE_SIZE;
use linux_raw_sys::general as abi;
use refs::{StrongRc, WeakRc};

use super::{Args, Call, Entry};
use crate::credentials::TraceAs;
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::memory::{AddressSpace, WriteRight};
use crate::process::THREADS;
use crate::step::{Interruption, Patience, Step, Stop, Stretch, complete_async};

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

/// Address and length of each range.
fn ranges(cx: &Cx, me: &Current, address: usize, count: usize) -> Step<Vec<[usize; 2]>> {
    if count > MAX_RANGES {
        return Err(Errno::EINVAL.into());
    }
    let ranges: Vec<[usize; 2]> = me.memory(cx)?.read_array(address, count)?;
    let total = ranges.iter().try_fold(0_usize, |total, [_, len]| total.checked_add(*len));
    match total {
        Some(total) if total <= isize::MAX as usize => Ok(ranges),
        _ => Err(Errno::EINVAL.into()),
    }
}

fn transfer_async(cx: &mut Cx, me: &mut Current, args: &Args, direction: Direction) -> Result<usize> {
    let Args([_, local, local_count, remote, remote_count, flags]) = *args;
    if flags != 0 {
        return Err(Errno::EINVAL);
    }
    let local = complete_async(cx, me, Patience::Forever, |cx, me, _| ranges(cx, me, local, local_count))?;
    let remote = complete_async(cx, me, Patience::Forever, |cx, me, _| ranges(cx, me, remote, remote_count))?;
    let space = space_of(args.int(0), me, cx)?;
    let mut transfer =
        Transfer { local: local.into_iter(), remote: remote.into_iter(), here: [0; 2], there: [0; 2], done: 0 };
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
    if !me.may_trace(&target, TraceAs::Real, cx)? {
        return Err(Errno::EPERM);
    }
    let space = target.space.lock(cx).as_ref().map(StrongRc::downgrade);
    space.ok_or(Errno::ESRCH)
}

/// How far a transfer is.
struct Transfer {
    /// The ranges that were not begun.
    local: IntoIter<[usize; 2]>,
    remote: IntoIter<[usize; 2]>,
    /// What is left of the range that was begun: address and length.
    here: [usize; 2],
    there: [usize; 2],
    done: usize,
}

impl Transfer {
    /// Copies page by page, until all is copied or a stretch is over.
    ///
    /// # Errors
    /// EFAULT where a page cannot be accessed.
    fn step(&mut self, space: &AddressSpace, me: &Current, direction: Direction, cx: &Cx) -> Step<()> {
        let mut stretch = Stretch::default();
        let mut buffer = vec![0; PAGE_SIZE];
        loop {
            while self.here[1] == 0 {
                let Some(next) = self.local.next() else { return Ok(()) };
                self.here = next;
            }
            while self.there[1] == 0 {
                let Some(next) = self.remote.next() else { return Ok(()) };
                self.there = next;
            }
            let len = self.here[1].min(self.there[1]).min(PAGE_SIZE);
            let copied = copy(cx, me, space, self.there[0], self.here[0], &mut buffer[..len], direction)?;
            for range in [&mut self.here, &mut self.there] {
                *range = [range[0].wrapping_add(copied), range[1] - copied];
            }
            self.done += copied;
            if copied < len {
                return Err(Errno::EFAULT.into());
            }
            if stretch.is_over() {
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
    there: usize,
    here: usize,
    buffer: &mut [u8],
    direction: Direction,
) -> Step<usize> {
    let memory = me.memory(cx)?;
    match direction {
        Direction::FromRemote => {
            let len = space.read_remote(there, buffer, cx);
            memory.write_bytes(here, &buffer[..len])?;
            Ok(len)
        }
        Direction::ToRemote => {
            memory.reader(here, buffer.len()).read(buffer)?;
            Ok(space.write_remote(there, buffer, WriteRight::Own, cx))
        }
    }
}
