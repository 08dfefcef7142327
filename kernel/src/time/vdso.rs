//! The vDSO's page of data: what programs compute the clocks from by themselves (`user/vdso`).
//!
//! One frame, made at boot and never given back, that all processes map to be read. It is written by whoever changes the wall clock, with
//! that clock's lock held.

use frame::mm::{PAGE_SIZE, UFrame};
use vdso::page::{Line, SECOND, STEERED, WORDS, Word};

/// The page's writer.
pub struct VdsoPage {
    frame: UFrame,
    sequence: u64,
}

const _: () = assert!(WORDS * size_of::<u64>() <= PAGE_SIZE);

impl VdsoPage {
    /// A page that says how time since boot is computed; `None` without memory.
    pub fn new() -> Option<Self> {
        let page = VdsoPage { frame: UFrame::zeroed()?, sequence: 0 };
        let (start, rate) = frame::time::tsc_scale();
        page.set(Word::Start, start);
        page.set(Word::Rate, rate);
        Some(page)
    }

    /// The frame, to be mapped.
    pub fn frame(&self) -> UFrame {
        self.frame.clone()
    }

    fn set(&self, word: Word, value: u64) {
        self.frame.store(word as usize, value);
    }

    /// The wall clock goes along another line, and atomic time is so many seconds ahead of it. Who reads them meanwhile waits, or sees the old ones.
    pub fn set_line(&mut self, line: &Line, tai: i32) {
        self.set(Word::Sequence, self.sequence + 1);
        self.set(Word::LineBoot, line.boot);
        self.set(Word::LineReal, line.real);
        self.set(Word::LineRate, line.rate as u64);
        self.set(Word::Tai, (i64::from(tai) * SECOND as i64) as u64);
        self.set(Word::Ahead, if line.rate == 0 { line.real.wrapping_sub(line.boot) } else { STEERED });
        self.sequence += 2;
        self.set(Word::Sequence, self.sequence);
    }

    /// What time(2) says.
    pub fn set_seconds(&self, seconds: u64) {
        self.set(Word::Seconds, seconds);
    }

    /// What gettimeofday(2) says of the time zone.
    pub fn set_zone(&self, minutes_west: i32, daylight_saving: i32) {
        self.set(Word::Zone, u64::from(minutes_west as u32) | u64::from(daylight_saving as u32) << 32);
    }
}
