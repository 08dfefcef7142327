//! Tests over simulated memory, one at a time. Each checks, at its end, that all memory has come back.

mod buddy;
mod detached;
mod dma;
mod frames;
mod heap;
mod io;
mod owner;
mod policies;
mod slab;
mod vm_space;

use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use refs::Cx;

use super::*;

/// The right to use the simulated machine, and the number of free frames when it began.
struct Machine {
    free: usize,
    cx: Cx,
    _alone: MutexGuard<'static, ()>,
}

impl Machine {
    fn new() -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        static ONCE: Once = Once::new();
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        ONCE.call_once(|| simulate(8192, &policies::buddy::FRAMES, &policies::slab::SLABS));
        // SAFETY: the test's only context; nothing suspends here.
        let cx = unsafe { Cx::new(std::ptr::null()) };
        machine::speculate(true);
        machine::set_has_contexts(true);
        set_reserve(0);
        trim();
        Machine { free: free_frames(), cx, _alone: alone }
    }

    /// How many frames are in use since the test began.
    fn used(&self) -> usize {
        trim();
        self.free - free_frames()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.used(), 0, "frames that did not come back");
        }
    }
}

/// A frame that contains a byte, many times.
fn frame_of(byte: u8) -> UFrame {
    let frame = UFrame::for_overwrite().expect("there is memory");
    assert_eq!(frame.writer(0..PAGE_SIZE).write(&[byte; PAGE_SIZE]), Ok(PAGE_SIZE));
    frame
}

/// The first byte of a frame.
fn first_byte(frame: &UFrame) -> u8 {
    let mut byte = [0];
    assert_eq!(frame.reader(0..1).read(&mut byte), Ok(1));
    byte[0]
}
