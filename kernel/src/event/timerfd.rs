//! timerfd_create(2): a timer that can be waited for.

use frame::Cx;
use frame::mm::Writer;
use refs::{SpinLock, StrongRc, Waker};

use super::relay::{Key, OwnedBell, OwnedRelay, Sharing};
use crate::error::Errno;
use crate::fs::{Counted, Events, File, FileEnd, Lseek, UnseenContents, VfsCaller};
use crate::heap::slot_bytes;
use crate::reclaim::Held;
use crate::step::{Step, Stop};
use crate::time::clock::{sets, watch_sets};
use crate::time::{self, Alarm, Timeline};

/// When a timer expires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// What times are times of.
    pub timeline: Timeline,
    /// First; `None`: never.
    pub deadline: Option<u64>,
    /// And then every so many nanoseconds; 0: not again.
    pub interval: u64,
}

impl Setting {
    /// How often it has expired by now, and what it is from there on.
    #[inline]
    fn expire_now(self) -> (u64, Setting) {
        if self.deadline.is_none() { (0, self) } else { self.expire(self.timeline.now()) }
    }

    /// How often it has expired by `now`, and what it is from there on.
    fn expire(self, now: u64) -> (u64, Setting) {
        match self.deadline {
            Some(deadline) if deadline <= now => {
                if self.interval == 0 {
                    return (1, Setting { deadline: None, ..self });
                }
                let times = 1 + (now - deadline) / self.interval;
                let next = deadline.saturating_add(times.saturating_mul(self.interval));
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
    /// What the alarm takes, as long as nobody sees the timer's end.
    counted: Option<Counted>,
    /// Reading it fails once the wall clock was set more often than that (TFD_TIMER_CANCEL_ON_SET).
    sets: Option<u64>,
}

impl Armed {
    /// Whether the wall clock was set since somebody wanted to know.
    fn is_canceled(&self) -> bool {
        self.sets.is_some_and(|noted| noted != sets())
    }
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
        self.state.lock(cx).setting.expire_now().1
    }

    /// Sets it anew. `cancels_on_set`: reading it fails when the wall clock is set.
    pub fn set(&self, setting: Setting, cancels_on_set: bool, cx: &Cx) {
        let mut state = self.state.lock(cx);
        state.setting = setting;
        state.sets = cancels_on_set.then(sets);
        self.set_alarm(&mut state, cx);
        drop(state);
        self.bell.get().waiters.wake_all();
    }

    fn set_alarm(&self, state: &mut Armed, cx: &Cx) {
        state.alarm = None;
        let relay = self.relay.get();
        relay.finish();
        if let Some(deadline) = state.setting.deadline {
            let waker = relay.prepare();
            // Nobody has the waker yet, so it is not woken.
            relay.commit();
            state.alarm = Some(time::wake_at(state.setting.timeline, deadline, waker, cx));
        }
        if let Some(counted) = &mut state.counted {
            counted.set_exactly(if state.alarm.is_some() { Alarm::BYTES } else { 0 });
        }
    }
}

impl File for TimerFd {
    fn end(&self) -> FileEnd {
        FileEnd::Unseen { bytes: slot_bytes(size_of::<Self>()) + OwnedBell::BYTES + OwnedRelay::BYTES }
    }

    fn class(&self) -> Held {
        Held::Event
    }

    fn join_contents(&self, contents: &StrongRc<UnseenContents>) -> bool {
        self.state.with(|state| state.counted = Some(Counted::new(contents)));
        true
    }

    fn leave_contents(&self) {
        drop(self.state.with(|state| state.counted.take()));
    }

    fn take_counted(&self) -> usize {
        self.state.with(|state| state.counted.take()).map_or(0, |counted| counted.bytes())
    }

    fn seek(&self, _to: Lseek, now: u64, _cx: &Cx) -> Step<u64> {
        // It has no offset, and Linux does not say so.
        Ok(now)
    }

    fn read(&self, _offset: u64, to: &mut Writer<'_>, _me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        if to.remaining() < 8 {
            return Err(Errno::EINVAL.into());
        }
        let mut state = self.state.lock(cx);
        if state.is_canceled() {
            state.sets = Some(sets());
            // As on Linux, what has expired is forgotten.
            state.setting = state.setting.expire_now().1;
            self.set_alarm(&mut state, cx);
            return Err(Errno::ECANCELED.into());
        }
        let (times, next) = state.setting.expire_now();
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
        if let Some(waker) = waker
            && self.state.lock(cx).sets.is_some()
        {
            watch_sets(waker, cx);
        }
        let is_ready = {
            let state = self.state.lock(cx);
            state.is_canceled() || state.setting.expire_now().0 > 0
        };
        if is_ready { interest & (Events::IN | Events::READ_NORMAL) } else { Events::empty() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_that_repeats_counts_what_was_missed() {
        let setting = Setting { deadline: Some(100), interval: 10, ..Setting::default() };
        assert_eq!(setting.expire(99), (0, setting));
        assert_eq!(setting.expire(100), (1, Setting { deadline: Some(110), ..setting }));
        assert_eq!(setting.expire(135), (4, Setting { deadline: Some(140), ..setting }));
    }

    #[test]
    fn a_timer_that_does_not_repeat_expires_once() {
        let setting = Setting { deadline: Some(100), ..Setting::default() };
        assert_eq!(setting.expire(500), (1, Setting::default()));
    }
}
