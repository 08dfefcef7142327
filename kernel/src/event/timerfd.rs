//! timerfd_create(2): a timer that can be waited for.

use frame::Cx;
use frame::mm::Writer;
use refs::{SpinLock, Waker};

use super::relay::{Key, OwnedBell, OwnedRelay, Sharing};
use crate::error::Errno;
use crate::fs::{Events, File, Lseek, VfsCaller};
use crate::step::{Step, Stop};
use crate::time::{self, Alarm};

/// When a timer expires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// First, in nanoseconds since boot (below 0: before it); `None`: never.
    pub deadline: Option<i64>,
    /// And then every so many nanoseconds; 0: not again.
    pub interval: u64,
}

impl Setting {
    /// How often it has expired by `now`, and what it is from there on.
    fn expire(self, now: u64) -> (u64, Setting) {
        let now = now.cast_signed();
        match self.deadline {
            Some(deadline) if deadline <= now => {
                if self.interval == 0 {
                    return (1, Setting::default());
                }
                let times = 1 + now.abs_diff(deadline) / self.interval;
                let next = deadline.saturating_add_unsigned(times.saturating_mul(self.interval));
                (times, Setting { deadline: Some(next), ..self })
            }
            _ => (0, self),
        }
    }
}

/// A timer.
pub struct TimerFd {
    /// The clock it was made for (`CLOCK_*`).
    pub clock: u32,
    state: SpinLock<Armed>,
    /// Rings the bell when the alarm goes off. It goes before the bell.
    relay: OwnedRelay,
    bell: OwnedBell,
}

#[derive(Default)]
struct Armed {
    setting: Setting,
    alarm: Option<Alarm>,
}

impl TimerFd {
    /// A timer that never expires.
    pub fn new(clock: u32) -> Self {
        let bell = OwnedBell::new();
        let relay = OwnedRelay::new(&bell, Key::default(), Sharing::All);
        TimerFd { clock, state: SpinLock::new(Armed::default()), relay, bell }
    }

    /// When it expires next. What has expired unread counts as expired.
    pub fn setting(&self, cx: &Cx) -> Setting {
        self.state.lock(cx).setting.expire(frame::time::now()).1
    }

    /// Sets it anew; what it was.
    pub fn set(&self, setting: Setting, cx: &Cx) -> Setting {
        let mut state = self.state.lock(cx);
        let (_, old) = state.setting.expire(frame::time::now());
        state.setting = setting;
        self.set_alarm(&mut state, cx);
        drop(state);
        self.bell.get().waiters.wake_all();
        old
    }

    fn set_alarm(&self, state: &mut Armed, cx: &Cx) {
        state.alarm = None;
        let relay = self.relay.get();
        relay.finish();
        if let Some(deadline) = state.setting.deadline {
            let waker = relay.prepare();
            // Nobody has the waker yet, so it is not woken.
            relay.commit();
            state.alarm = Some(time::wake_at(deadline.max(0).cast_unsigned(), waker, cx));
        }
    }
}

impl File for TimerFd {
    fn seek(&self, _to: Lseek, now: u64, _cx: &Cx) -> Step<u64> {
        // It has no offset, and Linux does not say so.
        Ok(now)
    }

    fn read(&self, _offset: u64, to: &mut Writer<'_>, _me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        if to.remaining() < 8 {
            return Err(Errno::EINVAL.into());
        }
        let mut state = self.state.lock(cx);
        let (times, next) = state.setting.expire(frame::time::now());
        if times == 0 {
            return Err(Stop::Block);
        }
        to.write(&times.to_ne_bytes())?;
        state.setting = next;
        self.set_alarm(&mut state, cx);
        drop(state);
        self.bell.get().rung.with(|rung| rung.clear());
        self.relay.take_out();
        Ok(8)
    }

    fn poll(&self, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        if let Some(waker) = waker {
            self.bell.get().waiters.register(waker, cx);
        }
        let (times, _) = self.state.lock(cx).setting.expire(frame::time::now());
        if times > 0 { interest & (Events::IN | Events::READ_NORMAL) } else { Events::empty() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_that_repeats_counts_what_was_missed() {
        let setting = Setting { deadline: Some(100), interval: 10 };
        assert_eq!(setting.expire(99), (0, setting));
        assert_eq!(setting.expire(100), (1, Setting { deadline: Some(110), interval: 10 }));
        assert_eq!(setting.expire(135), (4, Setting { deadline: Some(140), interval: 10 }));
    }

    #[test]
    fn a_timer_counts_what_was_before_boot() {
        let setting = Setting { deadline: Some(-25), interval: 10 };
        assert_eq!(setting.expire(0), (3, Setting { deadline: Some(5), interval: 10 }));
    }

    #[test]
    fn a_timer_that_does_not_repeat_expires_once() {
        let setting = Setting { deadline: Some(100), interval: 0 };
        assert_eq!(setting.expire(500), (1, Setting::default()));
    }
}
