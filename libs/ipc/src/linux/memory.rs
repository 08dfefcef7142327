//! Memory that two processes share: a memfd whose size is sealed.
//!
//! A mapping beyond a file's end faults. So memory from somebody else is only used if its size can never change again: the seals
//! against shrinking, growing and further seals must be on, *before* the size is read. Who made it can still take its pages away
//! (`FALLOC_FL_PUNCH_HOLE`). They come back as zeros, which is a breach of the protocol and handled so, as long as the system has
//! memory. Huge pages come from a pool that may be empty then, and touching one that was taken away is a SIGBUS: so memory of huge
//! pages, which can be sealed alike, is refused by the kind of its file system.

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use super::check;
use crate::{Line, Region};

const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

// linux/fcntl.h
const F_SEAL_FUTURE_WRITE: libc::c_int = 0x10;

/// Makes shared memory of that many lines, all zeros. Its descriptor is for the peer: passed over a socket, or inherited
/// (after clearing its close-on-exec flag).
///
/// # Errors
/// What `memfd_create`, `ftruncate`, `fcntl` or `mmap` say.
pub fn create_memory(len_lines: usize) -> io::Result<(Region, OwnedFd)> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is a C string; the call touches no other memory.
    let fd = check(unsafe { libc::memfd_create(c"ipc".as_ptr(), flags) })?;
    // SAFETY: the system just gave us this descriptor and nobody else has it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let len = len_lines.checked_mul(size_of::<Line>()).and_then(|len| libc::off_t::try_from(len).ok());
    let len = len.ok_or(io::ErrorKind::InvalidInput)?;
    // SAFETY: a system call on our own descriptor that touches no memory.
    check(unsafe { libc::ftruncate(fd.as_raw_fd(), len) })?;
    // SAFETY: as above.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, SEALS) })?;
    Ok((map_memory(fd.as_fd())?, fd))
}

/// Maps shared memory that somebody else made.
///
/// # Errors
/// `InvalidData` when it is not a memfd of ordinary pages whose size is sealed, or not at least one line long; else what the system
/// says.
pub fn map_memory(fd: BorrowedFd<'_>) -> io::Result<Region> {
    let invalid = |what| io::Error::new(io::ErrorKind::InvalidData, what);
    // SAFETY: a system call that touches no memory.
    let seals = check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GET_SEALS) })
        .map_err(|_| invalid("not memory that can be sealed"))?;
    if seals & SEALS != SEALS || seals & (libc::F_SEAL_WRITE | F_SEAL_FUTURE_WRITE) != 0 {
        return Err(invalid("the memory's seals are not those of a channel"));
    }
    // SAFETY: `statfs` is plain numbers, for which zeros are valid.
    let mut system: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: `system` is valid for writing.
    check(unsafe { libc::fstatfs(fd.as_raw_fd(), &mut system) })?;
    if system.f_type != libc::TMPFS_MAGIC {
        return Err(invalid("memory whose pages may not come back"));
    }
    // SAFETY: `stat` is plain numbers, for which zeros are valid.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `stat` is valid for writing.
    check(unsafe { libc::fstat(fd.as_raw_fd(), &mut stat) })?;
    let len = usize::try_from(stat.st_size).map_err(|_| invalid("size"))? / size_of::<Line>() * size_of::<Line>();
    if len == 0 {
        return Err(invalid("no memory"));
    }
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address of the system's choice disturbs nothing.
    let base = unsafe { libc::mmap(null_mut(), len, access, libc::MAP_SHARED, fd.as_raw_fd(), 0) };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let base = NonNull::new(base).ok_or(io::ErrorKind::OutOfMemory)?;
    let mapping = Arc::new(Mapping { base, len });
    // SAFETY: `len` bytes from the page-aligned `base` are mapped until `mapping` is dropped; the file below them is at least
    // that long for ever, because its size is sealed; nobody but the region knows the address.
    Ok(unsafe { Region::foreign(base.cast(), len / size_of::<Line>(), mapping) })
}

struct Mapping {
    base: NonNull<c_void>,
    len: usize,
}

// SAFETY: it only remembers what to unmap.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this mapping is ours, and the last region in it is gone.
        unsafe { libc::munmap(self.base.as_ptr(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Endpoint, Error, Geometry, Kind, Message, Packet};

    #[test]
    fn memory_without_seals_is_refused() {
        // SAFETY: as in `create_memory`.
        let fd = unsafe {
            let fd = check(libc::memfd_create(c"bad".as_ptr(), libc::MFD_ALLOW_SEALING)).expect("a memfd");
            libc::ftruncate(fd, 4096);
            OwnedFd::from_raw_fd(fd)
        };
        assert_eq!(map_memory(fd.as_fd()).err().map(|e| e.kind()), Some(io::ErrorKind::InvalidData));
        // Sealed against shrinking only: it could still grow, which is harmless, or get more seals, which is not.
        // SAFETY: a system call that touches no memory.
        unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) };
        assert_eq!(map_memory(fd.as_fd()).err().map(|e| e.kind()), Some(io::ErrorKind::InvalidData));
    }

    fn is_refused(fd: &OwnedFd) -> bool {
        map_memory(fd.as_fd()).err().map(|e| e.kind()) == Some(io::ErrorKind::InvalidData)
    }

    /// A memfd with these flags, size and seals, if the system has such.
    fn memfd(flags: libc::c_uint, len: libc::off_t, seals: libc::c_int) -> Option<OwnedFd> {
        // SAFETY: as in `create_memory`.
        unsafe {
            let fd = check(libc::memfd_create(c"test".as_ptr(), libc::MFD_ALLOW_SEALING | flags)).ok()?;
            let fd = OwnedFd::from_raw_fd(fd);
            check(libc::ftruncate(fd.as_raw_fd(), len)).expect("a size");
            check(libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, seals)).expect("seals");
            Some(fd)
        }
    }

    #[test]
    fn huge_pages_are_refused_with_all_the_right_seals() {
        // Where there are none, there is nothing to refuse.
        if let Some(fd) = memfd(libc::MFD_HUGETLB, 2 << 20, SEALS) {
            assert!(is_refused(&fd));
        }
        assert!(!is_refused(&memfd(0, 2 << 20, SEALS).expect("a memfd")), "ordinary pages are taken");
    }

    #[test]
    fn memory_that_cannot_be_written_is_refused() {
        assert!(is_refused(&memfd(0, 4096, SEALS | libc::F_SEAL_WRITE).expect("a memfd")));
        // Linux has it from 5.1 on.
        assert!(is_refused(&memfd(0, 4096, SEALS | F_SEAL_FUTURE_WRITE).expect("a memfd")));
    }

    #[test]
    fn pages_that_the_peer_takes_away_come_back_as_zeros_and_break_the_channel() {
        let geometry = Geometry::new(16, 256).expect("fits");
        let (memory, fd) = create_memory(geometry.len_lines()).expect("memory");
        let mut a = Endpoint::create(&memory, geometry).expect("a channel");
        let mut b = Endpoint::open(&map_memory(fd.as_fd()).expect("sealed")).expect("a channel");
        let packet = Packet { kind: Kind::Plain, cookie: 0, message: Message::default() };
        for _ in 0..300 {
            a.sender.send(&packet).expect("room");
            assert_eq!(b.receiver.poll(), Ok(Some(packet)));
        }
        let call = a.caller.post(&Message::default()).expect("room");
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let len = libc::off_t::try_from(memory.len_lines() * size_of::<Line>()).expect("small");
        // SAFETY: a system call on our own descriptor; the memory is touched atomically only, and any content is valid.
        check(unsafe { libc::fallocate(fd.as_raw_fd(), mode, 0, len) }).expect("a hole");
        assert_eq!(memory.word(0).load(std::sync::atomic::Ordering::Relaxed), 0);
        assert_eq!(b.receiver.poll(), Err(Error::Corrupt));
        assert_eq!(a.caller.poll(&call), Err(Error::Corrupt));
        assert!(Endpoint::open(&memory).is_err());
    }

    #[test]
    fn a_descriptor_that_is_no_memory_is_refused() {
        let file = std::fs::File::open("/proc/self/exe").expect("this program");
        assert_eq!(map_memory(file.as_fd()).err().map(|e| e.kind()), Some(io::ErrorKind::InvalidData));
    }

    #[test]
    fn a_channel_larger_than_its_memory_is_refused() {
        let geometry = Geometry::new(16, 16).expect("fits");
        let (memory, fd) = create_memory(geometry.len_lines()).expect("memory");
        let _a = Endpoint::create(&memory, geometry).expect("a channel");
        let same = map_memory(fd.as_fd()).expect("sealed");
        assert!(Endpoint::open(&same).is_ok());
        for (word, value) in [(1, 1024), (1, 1), (1, u64::MAX), (2, 1 << 20), (2, 3), (0, 7)] {
            let before = memory.word(word).swap(value, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(Endpoint::open(&same).err(), Some(Error::BadRegion), "{word} {value}");
            memory.word(word).store(before, std::sync::atomic::Ordering::Relaxed);
        }
    }
}
