//! `/proc/PID/mem` and `/proc/PID/pagemap`: see proc(5).
//!
//! Both stand for the address space that the process had when they were opened. Once that is gone, reads are at the end of the file.

use alloc::vec;

use frame::Cx;
use frame::mm::{PAGE_SIZE, Reader, USER_END, Writer};
use refs::WeakRc;

use super::Target;
use crate::error::Errno;
use crate::fs::{File, FileEnd, Lseek, VfsCaller};
use crate::memory::{AddressSpace, RemoteRight, Resident};
use crate::reclaim::Held;
use crate::step::Step;

/// A process' memory, at offsets that are addresses.
pub struct MemoryFile {
    space: Option<WeakRc<AddressSpace>>,
}

fn space_of(target: &Target, cx: &Cx) -> Option<WeakRc<AddressSpace>> {
    target.space(cx).ok().map(|space| space.downgrade())
}

impl MemoryFile {
    /// The memory of a process; nothing, if it is a zombie.
    pub fn new(target: &Target, cx: &Cx) -> Self {
        MemoryFile { space: space_of(target, cx) }
    }
}

/// Addresses may be any: only sums that wrap around are refused.
fn seek(to: Lseek, now: u64) -> Step<u64> {
    match to {
        Lseek::Set(offset) => Ok(offset as u64),
        Lseek::Current(offset) => Ok(now.wrapping_add_signed(offset)),
        _ => Err(Errno::EINVAL.into()),
    }
}

impl File for MemoryFile {
    fn end(&self) -> FileEnd {
        FileEnd::Seen
    }

    fn class(&self) -> Held {
        Held::File
    }

    fn read(&self, offset: u64, to: &mut Writer<'_>, _me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let Some(space) = self.space.and_then(|space| space.upgrade(cx).ok()) else { return Ok(0) };
        let mut buffer = vec![0; PAGE_SIZE];
        let mut done = 0;
        while to.remaining() > 0 {
            let address = (offset as usize).saturating_add(done);
            let len = to.remaining().min(PAGE_SIZE - address % PAGE_SIZE);
            if space.read_remote(address, &mut buffer[..len], RemoteRight::Forced, cx)? < len {
                return if done > 0 { Ok(done) } else { Err(Errno::EIO.into()) };
            }
            match to.write(&buffer[..len]) {
                Ok(written) => done += written,
                Err(fault) if done == 0 => return Err(fault.into()),
                Err(_) => return Ok(done),
            }
        }
        Ok(done)
    }

    fn write(&self, offset: u64, from: &mut Reader<'_>, _me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let Some(space) = self.space.and_then(|space| space.upgrade(cx).ok()) else { return Ok(0) };
        let mut buffer = vec![0; PAGE_SIZE];
        let mut done = 0;
        while from.remaining() > 0 {
            let address = (offset as usize).saturating_add(done);
            let len = from.remaining().min(PAGE_SIZE - address % PAGE_SIZE);
            let read = match from.read(&mut buffer[..len]) {
                Ok(read) => read,
                Err(fault) if done == 0 => return Err(fault.into()),
                Err(_) => return Ok(done),
            };
            let written = space.write_remote(address, &buffer[..read], RemoteRight::Forced, cx)?;
            done += written;
            if written < read {
                return if done > 0 { Ok(done) } else { Err(Errno::EIO.into()) };
            }
        }
        Ok(done)
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn reads_slowly(&self) -> bool {
        true
    }

    fn seek(&self, to: Lseek, now: u64, _cx: &Cx) -> Step<u64> {
        seek(to, now)
    }
}

/// Eight bytes for each page of a process' memory.
pub struct PageMapFile {
    space: Option<WeakRc<AddressSpace>>,
}

impl PageMapFile {
    /// What is behind the pages of a process; nothing, if it is a zombie.
    pub fn new(target: &Target, cx: &Cx) -> Self {
        PageMapFile { space: space_of(target, cx) }
    }
}

/// Bytes of an entry.
const ENTRY: usize = size_of::<u64>();
/// The bits of an entry: it is in memory; it shows a file or shared memory; it is in no other page table. Numbers of frames are told to nobody.
const PRESENT: u64 = 1 << 63;
const OF_OBJECT: u64 = 1 << 61;
const EXCLUSIVE: u64 = 1 << 56;

impl File for PageMapFile {
    fn end(&self) -> FileEnd {
        FileEnd::Seen
    }

    fn class(&self) -> Held {
        Held::File
    }

    fn read(&self, offset: u64, to: &mut Writer<'_>, _me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let Some(space) = self.space.and_then(|space| space.upgrade(cx).ok()) else { return Ok(0) };
        if !offset.is_multiple_of(ENTRY as u64) || !to.remaining().is_multiple_of(ENTRY) {
            return Err(Errno::EINVAL.into());
        }
        let mut done = 0;
        let mut index = offset as usize / ENTRY;
        while to.remaining() > 0 && index < USER_END.div_ceil(PAGE_SIZE) {
            let entry = match space.resident(index * PAGE_SIZE, cx) {
                None => 0,
                Some(Resident { of_object, is_exclusive }) => {
                    let bit = |is_set, bit| if is_set { bit } else { 0 };
                    PRESENT | bit(of_object, OF_OBJECT) | bit(is_exclusive, EXCLUSIVE)
                }
            };
            match to.write(&entry.to_ne_bytes()) {
                Ok(ENTRY) => done += ENTRY,
                Err(fault) if done == 0 => return Err(fault.into()),
                _ => return Ok(done),
            }
            index += 1;
        }
        Ok(done)
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn reads_slowly(&self) -> bool {
        true
    }

    fn seek(&self, to: Lseek, now: u64, _cx: &Cx) -> Step<u64> {
        seek(to, now)
    }
}
