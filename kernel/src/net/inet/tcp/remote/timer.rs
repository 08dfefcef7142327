//! When connections are looked at: the timers of all, and the task that goes by them.
//!
//! A connection has one timer. It is never set later: what is due moves with each segment, and a timer that goes off too early only sets itself again. So most segments cost no change here.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;

use frame::Cx;
use refs::{SpinLock, WaitList};
use tasks::{Body, Next};

use super::{AT_ONCE, Ends, Remote, find};
use crate::net::interface::now;
use crate::sched::{self, Parameters};
use crate::time::{self, Timeline};

static TIMERS: SpinLock<Timers> = SpinLock::new(Timers { due: BTreeSet::new(), sleeps_until: 0 });
/// Where the task of timers waits.
static TIMER_NEWS: WaitList = WaitList::new();

struct Timers {
    /// When connections are to be looked at.
    due: BTreeSet<(u64, Ends)>,
    /// The task looks again by itself at this time; 0: as soon as it has done what it does.
    sleeps_until: u64,
}

impl Remote {
    /// Has the timer look when the protocol wants it.
    pub(super) fn arm(&self, cx: &Cx) {
        let deadline = self.state.lock(cx).connection.deadline();
        if let Some(deadline) = deadline {
            self.arm_at(deadline.nanos(), cx);
        }
    }

    /// Has the timer look at that time or sooner, and go on with what is left to do.
    pub(super) fn go_on_at(&self, time: u64, cx: &Cx) {
        self.state.lock(cx).is_unfinished = true;
        self.arm_at(time, cx);
    }

    fn arm_at(&self, deadline: u64, cx: &Cx) {
        let is_sooner = {
            let mut state = self.state.lock(cx);
            if state.is_forgotten || state.armed.is_some_and(|armed| armed <= deadline) {
                return;
            }
            let mut timers = TIMERS.lock(cx);
            if let Some(before) = state.armed.replace(deadline) {
                timers.due.remove(&(before, self.ends));
            }
            timers.due.insert((deadline, self.ends));
            deadline < timers.sleeps_until
        };
        if is_sooner {
            TIMER_NEWS.wake_all();
        }
    }

    /// The timer looks at it no more.
    pub(super) fn disarm(&self, cx: &Cx) {
        let mut state = self.state.lock(cx);
        state.is_forgotten = true;
        if let Some(armed) = state.armed.take() {
            TIMERS.lock(cx).due.remove(&(armed, self.ends));
        }
    }

    /// Its timer has gone off.
    fn timer_is_due(&self, cx: &Cx) {
        let is_due = {
            let mut state = self.state.lock(cx);
            state.armed = None;
            let is_due = state.connection.deadline().is_some_and(|deadline| deadline <= now());
            if is_due {
                state.connection.on_deadline(now());
            }
            is_due | core::mem::take(&mut state.is_unfinished)
        };
        if is_due { self.go_on(cx) } else { self.arm(cx) }
    }
}

/// The task that looks at connections when they are due.
struct TimerTask;

/// Starts the timers of connections with other machines.
pub(in crate::net::inet) fn start() {
    tasks::spawn(&sched::SCHEDULER, Box::new(TimerTask), |words, _| {
        sched::initialise(words, Parameters::default(), None);
    });
}

/// Takes out the next connection that is due; if none is, when one will be, which the task sleeps until.
fn next(cx: &Cx) -> Result<Ends, Option<u64>> {
    let mut timers = TIMERS.lock(cx);
    match timers.due.first().copied() {
        Some((deadline, ends)) if deadline <= frame::time::now() => {
            timers.due.pop_first();
            timers.sleeps_until = 0;
            Ok(ends)
        }
        next => {
            let next = next.map(|(deadline, _)| deadline);
            timers.sleeps_until = next.unwrap_or(u64::MAX);
            Err(next)
        }
    }
}

impl Body for TimerTask {
    fn run_async(&mut self, cx: &mut Cx) -> Next {
        let waker = tasks::prepare(cx);
        TIMER_NEWS.register(waker, cx);
        for _ in 0..AT_ONCE {
            match next(cx) {
                Ok(due) => {
                    if let Some(Ok(remote)) = find(&due, cx).map(|remote| remote.upgrade(cx)) {
                        remote.timer_is_due(cx);
                    }
                }
                Err(next) => {
                    let alarm = next.map(|next| time::wake_at(Timeline::Boot, next, waker, cx));
                    tasks::park_async(cx);
                    drop(alarm);
                    return Next::Again;
                }
            }
        }
        tasks::finish_wait(cx);
        Next::Again
    }
}
