//! [`Timer`]: expires once or at intervals, counts how often, and tells its owner.

use alloc::boxed::Box;

use frame::Cx;
use frame::irq::IrqCx;
use refs::{NoSuspend, SpinLock, StrongRc, WeakRc};

use super::alarm::{Alarm, expire_at};

/// Something whose time on the processor is a clock: a process, a thread.
pub trait CpuClock: Send + Sync {
    /// How long it has run, in nanoseconds.
    fn cpu_time(&self, cx: &Cx) -> u64;

    /// The same, for the timer's interrupt.
    fn cpu_time_in_interrupt(&self, cx: &IrqCx) -> u64;
}

/// By which clock a timer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerClock {
    /// Time since boot.
    Boot,
    /// Time on the processor. It stands at 0 once what it belongs to is gone.
    Cpu(WeakRc<dyn CpuClock>),
}

impl TimerClock {
    /// What it shows, in nanoseconds.
    pub fn now(self, cx: &Cx) -> i64 {
        let now = match self {
            TimerClock::Boot => frame::time::now(),
            TimerClock::Cpu(clock) => clock.upgrade(cx).map_or(0, |clock| clock.cpu_time(cx)),
        };
        now.cast_signed()
    }

    fn now_in_interrupt(self, cx: &IrqCx) -> i64 {
        let now = match self {
            TimerClock::Boot => frame::time::now(),
            TimerClock::Cpu(clock) => clock.upgrade(cx).map_or(0, |clock| clock.cpu_time_in_interrupt(cx)),
        };
        now.cast_signed()
    }

    /// The earliest time since boot at which it can show `time`, if it shows `now`.
    fn earliest(self, time: i64, now: i64) -> u64 {
        /// A clock of a process that sleeps is looked at no more often than this.
        const GRAIN: i64 = 100_000;
        match self {
            TimerClock::Boot => time.max(0).cast_unsigned(),
            TimerClock::Cpu(_) => frame::time::now().saturating_add_signed(time.saturating_sub(now).max(GRAIN)),
        }
    }
}

/// When a timer expires: nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// The next time: by its clock (when set; below 0 where it should have expired before its clock began), or from now (when asked for); `None` if it is
    /// disarmed.
    pub next: Option<i64>,
    /// The interval after that; 0 if it expires once.
    pub interval: u64,
}

/// Told of expirations: how many there were since the last call. Runs in the timer's interrupt.
pub type Notify = Box<dyn Fn(u64, &IrqCx) + Send + Sync>;

/// A timer. It belongs to a process or an open file, and stops when it is destroyed.
pub struct Timer {
    name: WeakRc<Timer>,
    clock: TimerClock,
    state: SpinLock<TimerState>,
    notify: Notify,
}

/// A timer goes off at most once in so many nanoseconds, however short its interval is: the machine has more to do than that.
const SHORTEST_INTERVAL: i64 = 10_000;

#[derive(Default)]
struct TimerState {
    setting: Setting,
    alarm: Option<Alarm>,
    expirations: u64,
}

impl Timer {
    /// A disarmed timer.
    pub fn new(clock: TimerClock, notify: Notify) -> StrongRc<Timer> {
        StrongRc::new_cyclic(|name| Timer { name, clock, state: SpinLock::default(), notify })
    }

    /// By which clock it goes.
    pub fn clock(&self) -> TimerClock {
        self.clock
    }

    /// Arms or disarms it; forgets expirations that were not taken. What it was set to, with the time left.
    pub fn set(&self, setting: Setting, cx: &Cx) -> Setting {
        let now = self.clock.now(cx);
        let old = self.remaining_at(now, cx);
        drop(self.state.lock(cx).alarm.take());
        let alarm = self.arm(setting, now, cx);
        *self.state.lock(cx) = TimerState { setting, alarm, expirations: 0 };
        old
    }

    fn arm(&self, setting: Setting, now: i64, cx: &impl NoSuspend) -> Option<Alarm> {
        setting.next.map(|next| expire_at(self.clock.earliest(next, now), self.name, cx))
    }

    /// The time left until the next expiration, and the interval.
    pub fn remaining(&self, cx: &Cx) -> Setting {
        self.remaining_at(self.clock.now(cx), cx)
    }

    fn remaining_at(&self, now: i64, cx: &Cx) -> Setting {
        let setting = self.state.lock(cx).setting;
        // An armed timer whose time has come but whose interrupt has not is about to expire, not disarmed.
        Setting { next: setting.next.map(|next| next.saturating_sub(now).max(1)), ..setting }
    }

    /// How often it has expired since this was last asked.
    pub fn take_expirations(&self, cx: &impl NoSuspend) -> u64 {
        core::mem::take(&mut self.state.lock(cx).expirations)
    }

    /// Whether it has expired since that was last asked.
    pub fn has_expired(&self, cx: &impl NoSuspend) -> bool {
        self.state.lock(cx).expirations > 0
    }

    /// Its time may have come.
    pub(super) fn expire(&self, cx: &IrqCx) {
        let now = self.clock.now_in_interrupt(cx);
        let mut setting = self.state.lock(cx).setting;
        let Some(due) = setting.next else { return };
        if due > now {
            let alarm = self.arm(setting, now, cx);
            self.state.lock(cx).alarm = alarm;
            return;
        }
        let times = now.abs_diff(due).checked_div(setting.interval).map_or(1, |missed| missed + 1);
        setting.next =
            (setting.interval > 0).then(|| due.saturating_add_unsigned(times.saturating_mul(setting.interval)));
        // Expirations that come quicker are counted together.
        let next = setting.next.map(|next| next.max(now.saturating_add(SHORTEST_INTERVAL)));
        let alarm = self.arm(Setting { next, ..setting }, now, cx);
        {
            let mut state = self.state.lock(cx);
            state.setting = setting;
            state.alarm = alarm;
            state.expirations = state.expirations.saturating_add(times);
        }
        (self.notify)(times, cx);
    }
}
