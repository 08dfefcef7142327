//! Another process's memory: process_vm_readv(2), process_vm_writev(2).

use alloc::vec;
use alloc::vec::Vec;

use frame::Cx;
use frame::mm::PAGE_SIZE;
use linux_raw_sys::general as abi;

use super::{Args, Call, Entry};
use crate::credentials::TraceAs;
use crate::current::Current;
use crate::error::Errno;
use crate::memory::{AddressSpace, WriteRight};
use crate::process::THREADS;
use crate::step::Step;

/// The calls of this file.
pub const CALLS: &[Entry] = &[
    Entry::new(abi::__NR_process_vm_readv, "process_vm_readv", Call::Step(process_vm_readv)),
    Entry::new(abi::__NR_process_vm_writev, "process_vm_writev", Call::Step(process_vm_writev)),
];

/// The most ranges of each side.
const MAX_RANGES: usize = 1024;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    FromRemote,
    ToRemote,
}

fn process_vm_readv(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    transfer(cx, me, args, Direction::FromRemote)
}

fn process_vm_writev(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    transfer(cx, me, args, Direction::ToRemote)
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

fn transfer(cx: &Cx, me: &Current, args: &Args, direction: Direction) -> Step<usize> {
    let Args([_, local, local_count, remote, remote_count, flags]) = *args;
    if flags != 0 {
        return Err(Errno::EINVAL.into());
    }
    let mut local = ranges(cx, me, local, local_count)?.into_iter();
    let remote = ranges(cx, me, remote, remote_count)?;
    let target = u32::try_from(args.int(0)).ok().and_then(|tid| THREADS.get(tid, cx)).ok_or(Errno::ESRCH)?;
    if !me.may_trace(&target, TraceAs::Real, cx)? {
        return Err(Errno::EPERM.into());
    }
    let name = target.space.lock(cx).as_ref().map(|space| space.downgrade()).ok_or(Errno::ESRCH)?;
    let space = name.upgrade(cx)?;
    let mut done = 0;
    let mut here = [0, 0];
    let mut buffer = vec![0; PAGE_SIZE];
    for [mut there, mut left] in remote {
        while left > 0 {
            while here[1] == 0 {
                let Some(next) = local.next() else { return Ok(done) };
                here = next;
            }
            let len = left.min(here[1]).min(PAGE_SIZE);
            let copied = copy(cx, me, &space, there, here[0], &mut buffer[..len], direction)?;
            done += copied;
            if copied < len {
                return if done == 0 { Err(Errno::EFAULT.into()) } else { Ok(done) };
            }
            there = there.wrapping_add(len);
            left -= len;
            here = [here[0].wrapping_add(len), here[1] - len];
        }
    }
    Ok(done)
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
