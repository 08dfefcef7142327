//! [`Discipline`]: how adjtimex(2) steers the wall clock. It only computes; [`super::wall_clock`] has the clock.
//!
//! The model is that of RFC 5905 and RFC 1589, with Linux's constants: for each second of the clock it says by how much it is to be longer or shorter than a
//! second since boot, and whether a leap second comes before it.

use bitflags::bitflags;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::SECOND;
use crate::error::{Errno, Result};

/// `struct timex`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Timex {
    pub modes: u32,
    pub padding: u32,
    pub offset: i64,
    pub frequency: i64,
    pub max_error: i64,
    pub estimated_error: i64,
    pub status: u32,
    pub padding_2: u32,
    pub constant: i64,
    pub precision: i64,
    pub tolerance: i64,
    pub seconds: i64,
    pub fraction: i64,
    pub tick: i64,
    pub pulse_per_second: [i64; 8],
    pub tai: i32,
    pub padding_3: [u32; 11],
}

bitflags! {
    /// What of a [`Timex`] is to be set: `ADJ_*`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Modes: u32 {
        /// The offset that is left to be made up for.
        const OFFSET = 0x1;
        /// The frequency.
        const FREQUENCY = 0x2;
        /// The greatest error.
        const MAX_ERROR = 0x4;
        /// The estimated error.
        const ESTIMATED_ERROR = 0x8;
        /// The status.
        const STATUS = 0x10;
        /// The time constant of the phase-locked loop.
        const TIME_CONSTANT = 0x20;
        /// The offset of atomic time.
        const TAI = 0x80;
        /// A step, by `seconds` and `fraction`.
        const SET_OFFSET = 0x100;
        /// Fractions are microseconds.
        const MICRO = 0x1000;
        /// Fractions are nanoseconds; with [`ADJTIME`](Self::ADJTIME): it is only asked.
        const NANO = 0x2000;
        /// The length of a tick.
        const TICK = 0x4000;
        /// adjtime(3), which needs [`OFFSET`](Self::OFFSET) too.
        const ADJTIME = 0x8000;
        const _ = !0;
    }

    /// `STA_*`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Status: u32 {
        /// Offsets are made up for by a phase-locked loop.
        const PLL = 0x1;
        /// Rather by a frequency-locked loop.
        const FLL = 0x8;
        /// The last minute of the day has a second more.
        const INSERT = 0x10;
        /// The last minute of the day has a second less.
        const DELETE = 0x20;
        /// Nobody synchronises the clock.
        const UNSYNCHRONISED = 0x40;
        /// Offsets do not change the frequency.
        const HOLD = 0x80;
        /// The clock has failed.
        const CLOCK_ERROR = 0x1000;
        /// Fractions are nanoseconds.
        const NANO = 0x2000;
        /// The frequency-locked loop is at work.
        const MODE = 0x4000;
        /// What programs cannot set.
        const READ_ONLY = 0xff00;
        const _ = !0;
    }
}

/// What adjtimex(2) returns: how the clock stands to leap seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leap {
    None = 0,
    Insert = 1,
    Delete = 2,
    InProgress = 3,
    Occurred = 4,
}

/// What adjtimex(2) returns where the time cannot be relied on.
const TIME_ERROR: usize = 5;

/// The unit of a [`Discipline`]'s rates and offsets is so small a part of a nanosecond, as a power of two.
pub(super) const SCALE: u32 = 32;
/// Frequencies are told in 2^-16 parts per million: this is one, in scaled nanoseconds a second.
const FREQUENCY_UNIT: i64 = 1000 << (SCALE - 16);
/// 500 parts per million.
const MAX_FREQUENCY: i64 = 500_000 << SCALE;
/// Nanoseconds.
const MAX_OFFSET: i64 = 500_000_000;
/// Microseconds; from there on the clock counts as not synchronised.
const MAX_ERROR: i64 = 16_000_000;
/// By so many microseconds a clock may drift in a second.
const DRIFT: i64 = 500;
/// So many microseconds are made up for in a second by adjtime(3).
const MAX_ADJUST: i64 = 500;
const MAX_TIME_CONSTANT: i64 = 10;
/// The gain of the phase-locked loop, and of the frequency-locked one, as powers of two.
const PLL_GAIN: i64 = 2;
const FLL_GAIN: i64 = 2;
/// Updates at longer intervals (seconds) use the frequency-locked loop: if asked to, and always.
const FLL_FROM: i64 = 256;
const FLL_ALWAYS_FROM: i64 = 2048;
const TICKS_A_SECOND: i64 = 100;
const TICK: i64 = 10_000;
/// The microseconds that a tick can be told to be: a tenth less, a tenth more.
const TICKS: core::ops::RangeInclusive<i64> = 9_000..=11_000;
const MAX_TAI: i64 = 100_000;
const DAY: u64 = 86_400;

/// How the wall clock is steered.
#[derive(Debug)]
pub struct Discipline {
    status: Status,
    leap: Leap,
    /// The second that will be the leap second, or would have been.
    leap_second: Option<u64>,
    /// Scaled nanoseconds that are left to be made up for.
    offset: i64,
    /// Scaled nanoseconds a second.
    frequency: i64,
    constant: i64,
    max_error: i64,
    estimated_error: i64,
    tick: i64,
    /// Microseconds that are left of what adjtime(3) asked for.
    adjust: i64,
    tai: i32,
    /// The second of the last offset.
    reference: i64,
    /// What offsets add to this second: scaled nanoseconds.
    slew: i64,
}

impl Discipline {
    /// That of a clock that nobody has touched.
    pub const UNTOUCHED: Discipline = Discipline {
        status: Status::UNSYNCHRONISED,
        leap: Leap::None,
        leap_second: None,
        offset: 0,
        frequency: 0,
        constant: 2,
        max_error: MAX_ERROR,
        estimated_error: MAX_ERROR,
        tick: TICK,
        adjust: 0,
        tai: 0,
        reference: 0,
        slew: 0,
    };

    /// The clock was set: what was known of its error holds no more.
    pub fn clear(&mut self) {
        self.adjust = 0;
        self.offset = 0;
        self.slew = 0;
        self.status |= Status::UNSYNCHRONISED;
        self.max_error = MAX_ERROR;
        self.estimated_error = MAX_ERROR;
        self.leap_second = None;
    }

    /// How much longer than a second since boot this second of the clock is: scaled nanoseconds.
    pub fn excess(&self) -> i64 {
        (((self.tick - TICK) * 1000 * TICKS_A_SECOND) << SCALE) + self.frequency + self.slew
    }

    /// By how many seconds atomic time is ahead of the clock.
    pub fn tai(&self) -> i32 {
        self.tai
    }

    /// Whether [`next_second`](Self::next_second) has anything to do.
    pub fn is_busy(&self) -> bool {
        self.offset != 0
            || self.adjust != 0
            || self.slew != 0
            || self.leap != Leap::None
            || self.status.intersects(Status::INSERT | Status::DELETE)
            || self.max_error < MAX_ERROR
    }

    /// A second of the clock begins, `second`; by how many seconds the clock is to be moved.
    pub fn next_second(&mut self, second: u64) -> i64 {
        let mut step = 0;
        match self.leap {
            Leap::None if self.status.contains(Status::INSERT) => {
                self.leap = Leap::Insert;
                self.leap_second = Some((second / DAY + 1) * DAY);
            }
            Leap::None if self.status.contains(Status::DELETE) => {
                self.leap = Leap::Delete;
                self.leap_second = Some(((second + 1) / DAY + 1) * DAY - 1);
            }
            Leap::None => {}
            Leap::Insert if !self.status.contains(Status::INSERT) => self.end_leap(Leap::None),
            Leap::Insert if self.leap_second == Some(second) => {
                step = -1;
                self.tai += 1;
                self.leap = Leap::InProgress;
            }
            Leap::Delete if !self.status.contains(Status::DELETE) => self.end_leap(Leap::None),
            Leap::Delete if self.leap_second == Some(second) => {
                step = 1;
                self.tai -= 1;
                self.end_leap(Leap::Occurred);
            }
            Leap::Insert | Leap::Delete => {}
            Leap::InProgress => self.end_leap(Leap::Occurred),
            Leap::Occurred if !self.status.intersects(Status::INSERT | Status::DELETE) => self.leap = Leap::None,
            Leap::Occurred => {}
        }
        self.max_error += DRIFT;
        if self.max_error > MAX_ERROR {
            self.max_error = MAX_ERROR;
            self.status |= Status::UNSYNCHRONISED;
        }
        // A part of the offset that is left each second, rounded towards 0.
        let part = self.offset / (1 << (PLL_GAIN + self.constant));
        // What is less than a nanosecond is forgotten.
        let part = if part.unsigned_abs() >> SCALE == 0 { self.offset.clamp(-1 << SCALE, 1 << SCALE) } else { part };
        self.offset -= part;
        let now = self.adjust.clamp(-MAX_ADJUST, MAX_ADJUST);
        self.adjust -= now;
        self.slew = part + ((now * 1000) << SCALE);
        step
    }

    fn end_leap(&mut self, next: Leap) {
        self.leap = next;
        self.leap_second = None;
    }

    /// Checks what is to be set. `may_set`: CAP_SYS_TIME.
    ///
    /// # Errors
    /// EINVAL; EPERM.
    pub fn check(timex: &Timex, may_set: bool) -> Result<()> {
        let modes = Modes::from_bits_retain(timex.modes);
        if modes.contains(Modes::ADJTIME) {
            if !modes.contains(Modes::OFFSET) {
                return Err(Errno::EINVAL);
            }
            return if may_set || modes.contains(Modes::NANO) { Ok(()) } else { Err(Errno::EPERM) };
        }
        if !modes.is_empty() && !may_set {
            return Err(Errno::EPERM);
        }
        let fractions = if modes.contains(Modes::NANO) { SECOND as i64 } else { 1_000_000 };
        let is_bad = (modes.contains(Modes::TICK) && !TICKS.contains(&timex.tick))
            || (modes.contains(Modes::SET_OFFSET) && !(0..fractions).contains(&timex.fraction))
            || (modes.contains(Modes::FREQUENCY) && timex.frequency.checked_mul(FREQUENCY_UNIT).is_none());
        if is_bad { Err(Errno::EINVAL) } else { Ok(()) }
    }

    /// Sets what `timex` says, which was checked, and tells there how things stand. `now` is the clock, in nanoseconds; what adjtimex(2) returns.
    pub fn adjust(&mut self, timex: &mut Timex, now: u64) -> usize {
        let modes = Modes::from_bits_retain(timex.modes);
        let second = (now / SECOND) as i64;
        if modes.contains(Modes::ADJTIME) {
            let left = self.adjust;
            if !modes.contains(Modes::NANO) {
                self.adjust = timex.offset;
            }
            timex.offset = left;
        } else {
            self.set(modes, timex, second);
            let nanoseconds = self.offset >> SCALE;
            timex.offset = if self.status.contains(Status::NANO) { nanoseconds } else { nanoseconds / 1000 };
        }
        let is_error = self.status.intersects(Status::UNSYNCHRONISED | Status::CLOCK_ERROR);
        let fraction = (now % SECOND) as i64;
        *timex = Timex {
            modes: timex.modes,
            offset: timex.offset,
            frequency: self.frequency / FREQUENCY_UNIT,
            max_error: self.max_error,
            estimated_error: self.estimated_error,
            status: self.status.bits(),
            constant: self.constant,
            precision: 1,
            tolerance: MAX_FREQUENCY / FREQUENCY_UNIT,
            seconds: second,
            fraction: if self.status.contains(Status::NANO) { fraction } else { fraction / 1000 },
            tick: self.tick,
            tai: self.tai,
            ..Timex::default()
        };
        if is_error { TIME_ERROR } else { self.leap as usize }
    }

    fn set(&mut self, modes: Modes, timex: &Timex, second: i64) {
        if modes.contains(Modes::STATUS) {
            self.set_status(Status::from_bits_retain(timex.status), second);
        }
        if modes.contains(Modes::NANO) {
            self.status |= Status::NANO;
        }
        if modes.contains(Modes::MICRO) {
            self.status -= Status::NANO;
        }
        let has_nanoseconds = self.status.contains(Status::NANO);
        if modes.contains(Modes::FREQUENCY) {
            let frequency = timex.frequency.saturating_mul(FREQUENCY_UNIT);
            self.frequency = frequency.clamp(-MAX_FREQUENCY, MAX_FREQUENCY);
        }
        if modes.contains(Modes::MAX_ERROR) {
            self.max_error = timex.max_error.clamp(0, MAX_ERROR);
        }
        if modes.contains(Modes::ESTIMATED_ERROR) {
            self.estimated_error = timex.estimated_error.clamp(0, MAX_ERROR);
        }
        if modes.contains(Modes::TIME_CONSTANT) {
            let constant = timex.constant.clamp(0, MAX_TIME_CONSTANT);
            self.constant = if has_nanoseconds { constant } else { (constant + 4).min(MAX_TIME_CONSTANT) };
        }
        if modes.contains(Modes::TAI) && (0..=MAX_TAI).contains(&timex.constant) {
            self.tai = timex.constant as i32;
        }
        if modes.contains(Modes::OFFSET) && self.status.contains(Status::PLL) {
            let offset = if has_nanoseconds { timex.offset } else { timex.offset.clamp(-1_000_000, 1_000_000) * 1000 };
            self.set_offset(offset.clamp(-MAX_OFFSET, MAX_OFFSET), second);
        }
        if modes.contains(Modes::TICK) {
            self.tick = timex.tick;
        }
    }

    fn set_status(&mut self, status: Status, second: i64) {
        let (was, is) = (self.status.contains(Status::PLL), status.contains(Status::PLL));
        if was && !is {
            self.end_leap(Leap::None);
            self.status = Status::UNSYNCHRONISED;
        }
        if !was && is {
            self.reference = second;
        }
        self.status = (self.status & Status::READ_ONLY) | (status - Status::READ_ONLY);
    }

    /// An offset (nanoseconds) is to be made up for, and the frequency is changed by what it shows.
    fn set_offset(&mut self, offset: i64, second: i64) {
        let interval = if self.status.contains(Status::HOLD) { 0 } else { (second - self.reference).max(0) };
        self.reference = second;
        let scaled = i128::from(offset) << SCALE;
        let uses_fll = interval >= FLL_FROM && (self.status.contains(Status::FLL) || interval > FLL_ALWAYS_FROM);
        self.status.set(Status::MODE, uses_fll);
        let mut frequency = i128::from(self.frequency);
        if uses_fll {
            frequency += (scaled >> FLL_GAIN) / i128::from(interval);
        }
        let most = 1 << (PLL_GAIN + 1 + self.constant);
        frequency += (scaled * i128::from(interval.min(most))) >> (2 * (PLL_GAIN + 2 + self.constant));
        self.frequency = frequency.clamp((-MAX_FREQUENCY).into(), MAX_FREQUENCY.into()) as i64;
        self.offset = scaled as i64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(discipline: &mut Discipline, modes: Modes, timex: Timex, second: u64) -> (usize, Timex) {
        let mut timex = Timex { modes: modes.bits(), ..timex };
        Discipline::check(&timex, true).unwrap();
        (discipline.adjust(&mut timex, second * SECOND), timex)
    }

    #[test]
    fn the_structure_is_that_of_linux() {
        assert_eq!(size_of::<Timex>(), 208);
        assert_eq!(core::mem::offset_of!(Timex, tai), 160);
    }

    #[test]
    fn what_is_set_is_told() {
        let mut discipline = Discipline::UNTOUCHED;
        let modes = Modes::FREQUENCY | Modes::TICK | Modes::MAX_ERROR | Modes::TIME_CONSTANT;
        let timex = Timex { frequency: 12345, tick: 9999, max_error: 7, constant: 3, ..Timex::default() };
        let (result, told) = set(&mut discipline, modes, timex, 5);
        assert_eq!((result, told.frequency, told.tick, told.max_error, told.constant), (5, 12345, 9999, 7, 7));
        assert_eq!(discipline.excess() >> SCALE, -100_000 + 12345 * 1000 / 65536);
    }

    #[test]
    fn an_offset_is_made_up_for() {
        let mut discipline = Discipline::UNTOUCHED;
        set(&mut discipline, Modes::STATUS, Timex { status: 1, ..Timex::default() }, 5);
        set(&mut discipline, Modes::OFFSET, Timex { offset: 1000, ..Timex::default() }, 5);
        let mut sum = 0;
        for second in 6..400 {
            discipline.next_second(second);
            sum += discipline.slew;
        }
        assert_eq!((sum >> SCALE, discipline.offset), (1_000_000, 0));
    }

    #[test]
    fn adjtime_takes_half_a_millisecond_a_second() {
        let mut discipline = Discipline::UNTOUCHED;
        let modes = Modes::ADJTIME | Modes::OFFSET;
        set(&mut discipline, modes, Timex { offset: -700, ..Timex::default() }, 5);
        discipline.next_second(6);
        assert_eq!(discipline.excess() >> SCALE, -500_000);
        let (_, told) = set(&mut discipline, modes | Modes::NANO, Timex::default(), 6);
        assert_eq!(told.offset, -200);
        discipline.next_second(7);
        assert_eq!(discipline.excess() >> SCALE, -200_000);
        discipline.next_second(8);
        assert_eq!((discipline.excess(), discipline.is_busy()), (0, false));
    }

    #[test]
    fn a_leap_second_is_inserted_at_the_end_of_the_day() {
        let mut discipline = Discipline::UNTOUCHED;
        set(&mut discipline, Modes::STATUS | Modes::MAX_ERROR, Timex { status: 0x10, ..Timex::default() }, DAY - 3);
        assert_eq!(discipline.next_second(DAY - 2), 0);
        assert_eq!(discipline.next_second(DAY - 1), 0);
        assert_eq!(discipline.next_second(DAY), -1);
        let (result, told) = set(&mut discipline, Modes::empty(), Timex::default(), DAY - 1);
        assert_eq!((result, told.tai), (Leap::InProgress as usize, 1));
        assert_eq!(discipline.next_second(DAY), 0);
        assert_eq!(discipline.leap, Leap::Occurred);
        set(&mut discipline, Modes::STATUS, Timex { status: 0x40, ..Timex::default() }, DAY);
        discipline.next_second(DAY + 1);
        assert_eq!(discipline.leap, Leap::None);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let check = |modes: Modes, timex: Timex, may| Discipline::check(&Timex { modes: modes.bits(), ..timex }, may);
        assert_eq!(check(Modes::TICK, Timex { tick: 8999, ..Timex::default() }, true), Err(Errno::EINVAL));
        assert_eq!(check(Modes::TICK, Timex { tick: 10_000, ..Timex::default() }, false), Err(Errno::EPERM));
        assert_eq!(check(Modes::ADJTIME, Timex::default(), true), Err(Errno::EINVAL));
        assert_eq!(
            check(Modes::FREQUENCY, Timex { frequency: i64::MAX, ..Timex::default() }, true),
            Err(Errno::EINVAL)
        );
        assert_eq!(check(Modes::empty(), Timex::default(), false), Ok(()));
    }
}
