//! [`Timer`]: expires once or at intervals, counts how often, and tells its owner.

use alloc::boxed::Box;
use core::ops::ControlFlow;

use frame::Cx;
use frame::irq::IrqCx;
use refs::{NoSuspend, SpinLock, StrongRc, WeakRc};

use super::alarm::{Alarm, Timeline, expire_at};

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
    /// Time since boot, or the wall clock.
    Clock(Timeline),
    /// Time on the processor. It stands at 0 once what it belongs to is gone.
    Cpu(WeakRc<dyn CpuClock>),
}

impl TimerClock {
    /// What it shows, in nanoseconds.
    pub fn now(self, cx: &Cx) -> u64 {
        match self {
            TimerClock::Clock(timeline) => timeline.now(),
            TimerClock::Cpu(clock) => clock.upgrade(cx).map_or(0, |clock| clock.cpu_time(cx)),
        }
    }

    fn now_in_interrupt(self, cx: &IrqCx) -> u64 {
        match self {
            TimerClock::Clock(timeline) => timeline.now(),
            TimerClock::Cpu(clock) => clock.upgrade(cx).map_or(0, |clock| clock.cpu_time_in_interrupt(cx)),
        }
    }

    /// The earliest time at which it can show `time`, if it shows `now()`.
    fn earliest(self, time: u64, now: impl FnOnce() -> u64) -> (Timeline, u64) {
        /// A clock of a process that sleeps is looked at no more often than this.
        const GRAIN: u64 = 100_000;
        match self {
            TimerClock::Clock(timeline) => (timeline, time),
            TimerClock::Cpu(_) => {
                (Timeline::Boot, frame::time::now().saturating_add(time.saturating_sub(now()).max(GRAIN)))
            }
        }
    }
}

/// When a timer expires: nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// The next time: by its clock (when set), or from now (when asked for); `None` if it is disarmed.
    pub next: Option<u64>,
    /// The interval after that; 0 if it expires once.
    pub interval: u64,
}

/// Told of expirations. On `Break` there are no more. Runs in the timer's interrupt, with the timer locked: it asks the timer nothing.
pub type Notify = Box<dyn Fn(Expired, &IrqCx) -> ControlFlow<()> + Send + Sync>;

/// What the owner of a timer is told.
#[derive(Clone, Copy, Debug)]
pub struct Expired {
    /// How often it has expired since the last call; 0 where the time has only been looked at.
    pub times: u64,
    /// Whether that was all: it is disarmed.
    pub is_last: bool,
}

/// A timer. It belongs to a process or an open file, and stops when it is destroyed.
///
/// Its state is locked while it is set, and from the moment in which its time has come until its owner was told: once it was set anew nobody is told of what it was set to before.
pub struct Timer {
    name: WeakRc<Timer>,
    state: SpinLock<TimerState>,
    notify: Notify,
}

/// A timer goes off at most once in so many nanoseconds, however short its interval is: the machine has more to do than that.
const SHORTEST_INTERVAL: u64 = 10_000;

struct TimerState {
    clock: TimerClock,
    setting: Setting,
    alarm: Option<Alarm>,
    expirations: u64,
}

impl Timer {
    /// A disarmed timer.
    pub fn new(clock: TimerClock, notify: Notify) -> StrongRc<Timer> {
        let state = TimerState { clock, setting: Setting::default(), alarm: None, expirations: 0 };
        StrongRc::new_cyclic(|name| Timer { name, state: SpinLock::new(state), notify })
    }

    /// By which clock it goes.
    pub fn clock(&self, cx: &impl NoSuspend) -> TimerClock {
        self.state.lock(cx).clock
    }

    /// Arms or disarms it; as [`set_by`](Self::set_by), by the clock that it goes by.
    pub fn set(&self, setting: Setting, cx: &Cx) -> Setting {
        self.set_by(self.clock(cx), setting, cx)
    }

    /// Arms or disarms it, by a clock; forgets expirations that were not taken. What it was set to, with the time left.
    pub fn set_by(&self, clock: TimerClock, setting: Setting, cx: &Cx) -> Setting {
        let mut state = self.state.lock(cx);
        let old = state.remaining(cx);
        let alarm = self.arm(clock, setting, || clock.now(cx), cx);
        *state = TimerState { clock, setting, alarm, expirations: 0 };
        old
    }

    #[inline(always)]
    fn arm(
        &self,
        clock: TimerClock,
        setting: Setting,
        now: impl FnOnce() -> u64,
        cx: &impl NoSuspend,
    ) -> Option<Alarm> {
        setting.next.map(|next| {
            let (timeline, at) = clock.earliest(next, now);
            expire_at(timeline, at, self.name, cx)
        })
    }

    /// The time left until the next expiration, and the interval.
    pub fn remaining(&self, cx: &Cx) -> Setting {
        self.state.lock(cx).remaining(cx)
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
        let mut state = self.state.lock(cx);
        let (clock, mut setting) = (state.clock, state.setting);
        let now = clock.now_in_interrupt(cx);
        let Some(due) = setting.next else { return };
        if due > now {
            // A clock of a process stands still where that sleeps; or the timer was set anew since it was found to be due.
            let goes_on = (self.notify)(Expired { times: 0, is_last: false }, cx).is_continue();
            state.alarm = if goes_on { self.arm(clock, setting, || now, cx) } else { None };
            return;
        }
        let times = (now - due).checked_div(setting.interval).map_or(1, |missed| missed + 1);
        setting.next = (setting.interval > 0).then(|| due.saturating_add(times.saturating_mul(setting.interval)));
        state.setting = setting;
        state.expirations = state.expirations.saturating_add(times);
        if (self.notify)(Expired { times, is_last: setting.next.is_none() }, cx).is_break() {
            state.alarm = None;
            return;
        }
        // Expirations that come quicker are counted together.
        let next = setting.next.map(|next| next.max(now.saturating_add(SHORTEST_INTERVAL)));
        state.alarm = self.arm(clock, Setting { next, ..setting }, || now, cx);
    }
}

impl TimerState {
    fn remaining(&self, cx: &Cx) -> Setting {
        let now = || self.clock.now(cx);
        // An armed timer whose time has come but whose interrupt has not is about to expire, not disarmed.
        Setting { next: self.setting.next.map(|next| next.saturating_sub(now()).max(1)), ..self.setting }
    }
}
