//! The wall clock, CLOCK_REALTIME: the time since boot and an offset, which can be set (settimeofday(2)) and steered (adjtimex(2)).
//!
//! As long as nobody steers it, it is the time since boot and [`AHEAD`]. Steered, it is a [`Line`], which begins anew whenever what steers it changes:
//! at most once a second. CLOCK_MONOTONIC is not steered.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use frame::Cx;
use frame::irq::IrqCx;
use frame::mm::UFrame;
use refs::{NoSuspend, SpinLock, WaitList, Waker};
use vdso::page::Line;

use super::SECOND;
use super::alarm::{self, Alarm};
use super::ntp::{Discipline, Modes, SCALE, Timex};
use super::vdso::VdsoPage;
use crate::error::{Errno, Result};

/// By how much it is ahead of the time since boot, in nanoseconds; where it is steered, by how much it was at the last change.
static AHEAD: AtomicU64 = AtomicU64::new(0);
/// Whether its seconds have another length than those since boot.
static IS_STEERED: AtomicBool = AtomicBool::new(false);
static STEERING: SpinLock<Steering> = SpinLock::new(Steering {
    line: Line { boot: 0, real: 0, rate: 0 },
    discipline: Discipline::UNTOUCHED,
    next_second: None,
    page: None,
});
/// How often it was set.
static SETS: AtomicU64 = AtomicU64::new(0);
/// Who wants to know when it is set.
static WATCHERS: WaitList = WaitList::new();

struct Steering {
    line: Line,
    discipline: Discipline,
    /// Goes off at its next second, if something is to be done then.
    next_second: Option<Alarm>,
    /// Where programs see the line. There from the boot on.
    page: Option<VdsoPage>,
}

impl Steering {
    /// The clock goes on from `real`, at `boot`, as the discipline says.
    fn begin(&mut self, boot: u64, real: u64) {
        self.line = Line { boot, real, rate: rate(self.discipline.excess()) };
        AHEAD.store(real.wrapping_sub(boot), Ordering::Relaxed);
        IS_STEERED.store(self.line.rate != 0, Ordering::Relaxed);
        if let Some(page) = &mut self.page {
            page.set_line(&self.line, self.discipline.tai());
        }
        self.show_second(boot);
    }

    /// Programs see from now on which second it is.
    fn show_second(&self, now: u64) {
        let second = self.line.real_at(now) / SECOND;
        if let Some(page) = &self.page {
            page.set_seconds(second);
        }
        SECOND_ENDS.store(self.line.boot_at((second + 1) * SECOND), Ordering::Relaxed);
    }
}

/// What a line gains in a nanosecond whose seconds are longer by `excess`, in units of 2^-[`SCALE`] nanoseconds.
fn rate(excess: i64) -> i64 {
    // At most a tenth.
    ((i128::from(excess) << (63 - SCALE)) / i128::from(SECOND)) as i64
}

/// Sets the wall clock from the machine's. Called once at boot. The frame of the page from which programs compute the clocks.
pub fn start() -> UFrame {
    let real = frame::time::boot_wall_seconds().saturating_mul(SECOND);
    let page = VdsoPage::new().expect("at boot there is memory for a page");
    let frame = page.frame();
    STEERING.with(|steering| {
        steering.page = Some(page);
        steering.begin(0, real);
    });
    frame
}

/// Tells programs the time zone: minutes west of Greenwich, and the kind of daylight saving. Nothing in the kernel goes by it.
pub fn show_time_zone(minutes_west: i32, daylight_saving: i32, cx: &Cx) {
    if let Some(page) = &STEERING.lock(cx).page {
        page.set_zone(minutes_west, daylight_saving);
    }
}

/// The wall clock: nanoseconds since 1970-01-01 UTC.
#[inline]
pub fn real_time() -> u64 {
    real_time_at(frame::time::now())
}

/// What it shows at a time since boot that is about now.
#[inline]
fn real_time_at(boot: u64) -> u64 {
    if IS_STEERED.load(Ordering::Relaxed) {
        return steered_time_at(boot);
    }
    AHEAD.load(Ordering::Relaxed).wrapping_add(boot)
}

#[cold]
fn steered_time_at(boot: u64) -> u64 {
    STEERING.with(|steering| steering.line.real_at(boot))
}

/// Atomic time (CLOCK_TAI), which leap seconds do not move: the wall clock and what adjtimex(2) has said.
pub fn atomic_time(cx: &Cx) -> u64 {
    let steering = STEERING.lock(cx);
    steering.line.real_at(frame::time::now()).saturating_add_signed(ahead_by(&steering.discipline))
}

/// What the wall clock shows when atomic time is `atomic`, as far as is known now.
pub fn real_time_of_atomic(atomic: u64, cx: &Cx) -> u64 {
    atomic.saturating_add_signed(-ahead_by(&STEERING.lock(cx).discipline))
}

/// By how many nanoseconds atomic time is ahead.
fn ahead_by(discipline: &Discipline) -> i64 {
    i64::from(discipline.tai()) * SECOND as i64
}

/// The time since boot at which it shows `real`, as far as is known now.
#[inline]
pub(super) fn boot_time_at(real: u64) -> u64 {
    if IS_STEERED.load(Ordering::Relaxed) {
        return steered_boot_time_at(real);
    }
    real.saturating_sub(AHEAD.load(Ordering::Relaxed))
}

#[cold]
fn steered_boot_time_at(real: u64) -> u64 {
    STEERING.with(|steering| steering.line.boot_at(real))
}

/// A moment since boot that is not long ago: see [`note_time`].
static RECENT: AtomicU64 = AtomicU64::new(0);

/// The time since boot at which the second ends that programs see.
static SECOND_ENDS: AtomicU64 = AtomicU64::new(0);

/// The scheduler or the timer has looked at the clock.
#[inline(always)]
pub fn note_time(now: u64) {
    RECENT.store(now, Ordering::Relaxed);
}

/// As [`note_time`], for what each of several cores does often: nothing is written where the last look was a moment ago.
#[inline(always)]
pub fn note_time_now_and_then(now: u64) {
    const MOMENT: u64 = 1_000_000;
    if now.wrapping_sub(RECENT.load(Ordering::Relaxed)) > MOMENT {
        note_time(now);
    }
}

/// Programs see from now on which second it is.
pub(super) fn show_second() {
    if frame::time::now() >= second_ends() {
        STEERING.with(|steering| steering.show_second(frame::time::now()));
    }
}

/// When the second ends that programs see: whoever runs one has [`show_second`] called then. Nobody does while nobody looks.
#[inline(always)]
pub(super) fn second_ends() -> u64 {
    SECOND_ENDS.load(Ordering::Relaxed)
}

/// The wall clock when the scheduler last looked at the clock: when the running task was picked (with several cores, a millisecond before), or at one of its last 96 system calls. For those who
/// are not interested in seconds.
#[inline(always)]
pub fn recent_real_time() -> u64 {
    real_time_at(RECENT.load(Ordering::Relaxed))
}

/// When the machine was started, by what the clock shows now: nanoseconds since 1970-01-01 UTC.
pub fn boot_time() -> u64 {
    let now = frame::time::now();
    real_time_at(now).wrapping_sub(now)
}

/// The latest time that it can be set to, in seconds: thirty years before the last that 64 bits of nanoseconds can say.
const LAST_SECOND: u64 = i64::MAX as u64 / SECOND - 30 * 365 * 24 * 3600;

/// Whether it can be set to that time, in nanoseconds, at a time since boot: the machine was not started before 1970.
fn can_be_set(real: u64, now: u64) -> bool {
    real >= now && real / SECOND < LAST_SECOND
}

/// Sets it. Who waits for a time that it shows now goes on; who wants to know is told.
///
/// # Errors
/// EINVAL: it cannot show that.
pub fn set_real_time(real: u64, cx: &Cx) -> Result<()> {
    {
        let mut steering = STEERING.lock(cx);
        let now = frame::time::now();
        if !can_be_set(real, now) {
            return Err(Errno::EINVAL);
        }
        steering.discipline.clear();
        steering.begin(now, real);
    }
    was_set(cx);
    Ok(())
}

/// Steers it as adjtimex(2) does, which tells there how things stand; what that returns. `may_set`: CAP_SYS_TIME.
///
/// # Errors
/// EINVAL; EPERM.
pub fn adjust(timex: &mut Timex, may_set: bool, cx: &Cx) -> Result<usize> {
    Discipline::check(timex, may_set)?;
    let modes = Modes::from_bits_retain(timex.modes);
    let steps = modes.contains(Modes::SET_OFFSET) && !modes.contains(Modes::ADJTIME);
    let state = {
        let mut steering = STEERING.lock(cx);
        let now = frame::time::now();
        let mut real = steering.line.real_at(now);
        if steps {
            let fraction = timex.fraction * if modes.contains(Modes::NANO) { 1 } else { 1000 };
            let step = timex.seconds.checked_mul(SECOND as i64).and_then(|step| step.checked_add(fraction));
            let moved = step.and_then(|step| real.checked_add_signed(step)).filter(|&moved| can_be_set(moved, now));
            real = moved.ok_or(Errno::EINVAL)?;
        }
        let state = steering.discipline.adjust(timex, real);
        if !modes.is_empty() {
            steering.begin(now, real);
        }
        state
    };
    if steps {
        was_set(cx);
    } else if !modes.is_empty() {
        has_changed(cx);
    }
    Ok(state)
}

/// How often it was set, and adjtimex(2) has moved it: who has noted another number has missed that.
pub fn sets() -> u64 {
    SETS.load(Ordering::Acquire)
}

/// Has a waker woken when it is set.
pub fn watch_sets(waker: Waker, cx: &Cx) {
    WATCHERS.register(waker, cx);
}

/// It shows another time than it would have.
fn was_set(cx: &impl NoSuspend) {
    SETS.fetch_add(1, Ordering::AcqRel);
    has_changed(cx);
    WATCHERS.wake_all();
}

/// What goes by it goes off at another time since boot than was thought.
fn has_changed(cx: &impl NoSuspend) {
    let next = {
        let steering = STEERING.lock(cx);
        let second = steering.line.real_at(frame::time::now()) / SECOND + 1;
        steering.discipline.is_busy().then_some(second * SECOND)
    };
    let alarm = next.map(|second| alarm::call_at_wall(second, next_second, cx));
    let old = core::mem::replace(&mut STEERING.lock(cx).next_second, alarm);
    drop(old);
    alarm::wall_clock_has_changed(cx);
}

/// A second begins.
fn next_second(cx: &IrqCx) {
    let step = {
        let mut steering = STEERING.lock(cx);
        let now = frame::time::now();
        let real = steering.line.real_at(now);
        let step = steering.discipline.next_second(real / SECOND);
        steering.begin(now, real.saturating_add_signed(step * SECOND as i64));
        step
    };
    if step == 0 { has_changed(cx) } else { was_set(cx) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_that_is_longer_makes_a_line_steeper() {
        let gain = |excess| Line { boot: 0, real: 1 << 60, rate: rate(excess) }.real_at(10 * SECOND) - (1 << 60);
        assert_eq!(gain(0), 10 * SECOND);
        // The division may have cut off a nanosecond.
        assert!(gain((SECOND as i64 / 10) << SCALE).abs_diff(11 * SECOND) <= 1);
        assert!(gain(-(500_000 << SCALE)).abs_diff(10 * SECOND - 5_000_000) <= 1);
        assert!(rate(1) != 0, "no line that is steered looks as if it were not");
    }
}
