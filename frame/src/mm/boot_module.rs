//! Memory that the boot loader filled: the initial ram disk.

use super::metadata::FrameNumber;
use super::{PAGE_SIZE, machine, supply};

/// What the boot loader put into memory beside the kernel. It is read from front to back, and the frames that were read become memory like any
/// other; so what is unpacked from it takes the place of what was packed. Dropping it gives back the rest.
pub struct BootModule {
    /// Its frames, of kind `Reserved` as far as they were not given back.
    first: FrameNumber,
    frames: usize,
    /// How many of them were given back, from the front.
    given_back: usize,
    /// Where the rest begins and ends, in bytes from the first frame on.
    at: usize,
    end: usize,
}

impl BootModule {
    /// From the physical addresses of its bytes.
    ///
    /// # Safety
    /// They are memory that was not handed to `mm::init` as usable but is known to it, holds what the loader put there, and is used by nobody
    /// else; the rest of its first and last page neither.
    #[cfg(any(target_os = "none", test))]
    pub(crate) unsafe fn new(start: usize, len: usize) -> Self {
        let (first, at) = (start / PAGE_SIZE, start % PAGE_SIZE);
        let end = at + len;
        BootModule { first: FrameNumber(first as u32), frames: end.div_ceil(PAGE_SIZE), given_back: 0, at, end }
    }

    /// What was not passed yet.
    pub fn rest(&self) -> &[u8] {
        if self.at == self.end {
            return &[];
        }
        let first = FrameNumber(self.first.0 + self.given_back as u32);
        let within = self.at - self.given_back * PAGE_SIZE;
        // SAFETY: the bytes from `at` on are in frames that were not given back, the first of which is `first`, and nobody writes them.
        unsafe { core::slice::from_raw_parts(machine::frame_pointer(first).add(within), self.end - self.at) }
    }

    /// Passes `len` bytes (or all there are), and gives back the frames that no more bytes are in.
    pub fn advance(&mut self, len: usize) {
        self.at = self.end.min(self.at.saturating_add(len));
        let passed = if self.at == self.end { self.frames } else { self.at / PAGE_SIZE };
        let first = FrameNumber(self.first.0 + self.given_back as u32);
        // SAFETY: the frames are this one's, and `rest` does not reach them any more.
        unsafe { supply::give_reserved(first, passed - self.given_back) };
        self.given_back = passed;
    }
}

impl Drop for BootModule {
    fn drop(&mut self) {
        self.advance(usize::MAX);
    }
}
