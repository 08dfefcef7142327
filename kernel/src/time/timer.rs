//! [`Timer`]: expires once or at intervals, counts how often, and tells its owner.

use alloc::boxed::Box;

use refs::{NoSuspend, SpinLock, StrongRc, WeakRc};

use super::alarm::{Alarm, cancel, expire_at};

/// When a timer expires: nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// The next time, since boot (when set) or from now (when asked for); `None` if it is disarmed.
    pub next: Option<u64>,
    /// The interval after that; 0 if it expires once.
    pub interval: u64,
}

/// A timer. It belongs to a process, a table of POSIX timers or an open file, and stops when it is destroyed.
pub struct Timer {
    name: WeakRc<Timer>,
    state: SpinLock<State>,
    /// Told of each expiration that follows one that was looked at: how many there were. Runs in the timer's interrupt.
    notify: Box<dyn Fn(u64) + Send + Sync>,
}

#[derive(Default)]
struct State {
    setting: Setting,
    alarm: Option<Alarm>,
    expirations: u64,
}

impl Timer {
    /// A disarmed timer.
    pub fn new(notify: Box<dyn Fn(u64) + Send + Sync>) -> StrongRc<Timer> {
        StrongRc::new_cyclic(|name| Timer { name, state: SpinLock::default(), notify })
    }

    /// Arms or disarms it; forgets expirations that were not looked at. What it was set to, with the time left.
    pub fn set(&self, setting: Setting, cx: &impl NoSuspend) -> Setting {
        let old = self.remaining(cx);
        let alarm = self.state.lock(cx).alarm.take();
        if let Some(alarm) = alarm {
            cancel(alarm, cx);
        }
        let alarm = setting.next.map(|next| expire_at(next, self.name, cx));
        *self.state.lock(cx) = State { setting, alarm, expirations: 0 };
        old
    }

    /// The time left until the next expiration, and the interval.
    pub fn remaining(&self, cx: &impl NoSuspend) -> Setting {
        let setting = self.state.lock(cx).setting;
        // An armed timer whose time has come but whose interrupt has not is about to expire, not disarmed.
        Setting { next: setting.next.map(|next| next.saturating_sub(frame::time::now()).max(1)), ..setting }
    }

    /// How often it has expired since this was last asked.
    pub fn take_expirations(&self, cx: &impl NoSuspend) -> u64 {
        core::mem::take(&mut self.state.lock(cx).expirations)
    }

    /// Whether it has expired since that was last asked.
    pub fn has_expired(&self, cx: &impl NoSuspend) -> bool {
        self.state.lock(cx).expirations > 0
    }

    /// Its time has come.
    pub(super) fn expire(&self, now: u64, cx: &impl NoSuspend) {
        let expirations = {
            let mut state = self.state.lock(cx);
            let Some(due) = state.setting.next.filter(|&next| next <= now) else { return };
            let times = match state.setting.interval {
                0 => 1,
                interval => (now - due) / interval + 1,
            };
            state.expirations = state.expirations.saturating_add(times);
            state.setting.next = match state.setting.interval {
                0 => None,
                interval => Some(due.saturating_add(times.saturating_mul(interval))),
            };
            state.alarm = state.setting.next.map(|next| expire_at(next, self.name, cx));
            state.expirations
        };
        (self.notify)(expirations);
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // The queue's entry leads nowhere now: it is thrown out when its time comes.
        self.state.with(|state| state.alarm = None);
    }
}
