//! [`Queue`]: the events that one open file has not read yet.
//!
//! Owner: the open file's entry at its device. It has room for as many as it was made with; its destruction frees one allocation.

use alloc::collections::VecDeque;

use usb::Event;
use usb::codes::{EV_SYN, SYN_DROPPED, SYN_REPORT};

use crate::error::{Errno, Result};

/// When something was reported, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time {
    /// Since boot.
    pub boot: u64,
    /// By the wall clock.
    pub wall: u64,
}

/// An event, and when it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamped {
    /// When.
    pub time: Time,
    /// What.
    pub event: Event,
}

fn is_report(event: Event) -> bool {
    (event.kind, event.code) == (EV_SYN, SYN_REPORT)
}

/// Events, oldest first. Those behind the last SYN_REPORT are not shown yet.
#[derive(Debug)]
pub struct Queue {
    events: VecDeque<Stamped>,
    most: usize,
    /// So many are shown.
    complete: usize,
    /// How often events were lost.
    losses: u64,
}

impl Queue {
    /// An empty one for so many events, 4 at least.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn new(most: usize) -> Result<Self> {
        let mut events = VecDeque::new();
        events.try_reserve_exact(most).map_err(|_| Errno::ENOMEM)?;
        Ok(Queue { events, most, complete: 0, losses: 0 })
    }

    /// Whether something can be read.
    pub fn is_readable(&self) -> bool {
        self.complete > 0
    }

    /// How often events were lost.
    pub fn losses(&self) -> u64 {
        self.losses
    }

    /// Enters an event. Where there is no room all are forgotten but this one, with SYN_DROPPED before it. Whether more can be read now.
    pub fn push(&mut self, stamped: Stamped) -> bool {
        if is_report(stamped.event) && self.events.len() == self.complete {
            return false;
        }
        if self.events.len() + 1 == self.most {
            self.events.clear();
            self.complete = 0;
            self.losses += 1;
            self.events.push_back(dropped(stamped.time));
        }
        self.events.push_back(stamped);
        if is_report(stamped.event) {
            self.complete = self.events.len();
        }
        is_report(stamped.event)
    }

    /// Takes the oldest event that can be read.
    pub fn pop(&mut self) -> Option<Stamped> {
        self.complete = self.complete.checked_sub(1)?;
        self.events.pop_front()
    }

    /// Puts an event back that was taken before any other, if there were no losses since. Where there is no room for it any more all are lost.
    pub fn put_back(&mut self, stamped: Stamped, losses: u64) {
        if losses != self.losses {
            return;
        }
        if self.events.len() + 1 == self.most {
            return self.forget_all(stamped.time);
        }
        self.events.push_front(stamped);
        self.complete += 1;
    }

    /// Forgets events of one type, and ends of reports that have nothing in them then: the state that they led to is told in another way.
    pub fn forget(&mut self, kind: u16) {
        let (mut shown, mut left, mut at) = (self.complete, 0, 0);
        // As on Linux, the first end of a report stays in any case.
        let mut has_any = true;
        let complete = &mut self.complete;
        self.events.retain(|stamped| {
            let is_end = is_report(stamped.event);
            let stays = if is_end { has_any } else { stamped.event.kind != kind };
            has_any = if is_end { false } else { has_any || stays };
            left += usize::from(stays);
            at += 1;
            if at <= *complete {
                shown = left;
            }
            stays
        });
        *complete = if at == 0 { 0 } else { shown };
    }

    /// Forgets all; who reads is told that something was lost, if there was anything.
    pub fn forget_all(&mut self, now: Time) {
        if !self.events.is_empty() {
            self.events.clear();
            self.losses += 1;
            self.complete = 0;
            self.events.push_back(dropped(now));
        }
    }
}

fn dropped(time: Time) -> Stamped {
    Stamped { time, event: Event { kind: EV_SYN, code: SYN_DROPPED, value: 0 } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const KEY: u16 = 1;
    const MOVE: u16 = 2;

    fn event(kind: u16, value: i32) -> Stamped {
        Stamped { time: Time::default(), event: Event { kind, code: 0, value } }
    }

    fn push(queue: &mut Queue, all: &[(u16, i32)]) {
        all.iter().for_each(|&(kind, value)| _ = queue.push(event(kind, value)));
    }

    fn pop_all(queue: &mut Queue) -> Vec<(u16, u16, i32)> {
        core::iter::from_fn(|| queue.pop()).map(|Stamped { event, .. }| (event.kind, event.code, event.value)).collect()
    }

    #[test]
    fn events_are_shown_when_their_report_is_over_and_empty_reports_never() {
        let mut queue = Queue::new(64).unwrap();
        push(&mut queue, &[(EV_SYN, 0), (KEY, 1)]);
        assert_eq!((queue.is_readable(), queue.pop()), (false, None));
        push(&mut queue, &[(EV_SYN, 0), (KEY, 2)]);
        assert_eq!(pop_all(&mut queue), [(KEY, 0, 1), (EV_SYN, 0, 0)]);
        push(&mut queue, &[(EV_SYN, 0)]);
        assert_eq!(pop_all(&mut queue), [(KEY, 0, 2), (EV_SYN, 0, 0)]);
    }

    #[test]
    fn who_does_not_read_is_told_that_events_were_lost() {
        let mut queue = Queue::new(8).unwrap();
        for value in 0..4 {
            push(&mut queue, &[(KEY, value), (EV_SYN, 0)]);
        }
        assert_eq!(pop_all(&mut queue), [(EV_SYN, SYN_DROPPED, 0), (EV_SYN, 0, 0)]);
        for value in 0..100 {
            push(&mut queue, &[(KEY, value)]);
            assert!(queue.events.len() < 8 && !queue.is_readable());
        }
    }

    #[test]
    fn what_is_put_back_comes_again_unless_all_was_lost() {
        let mut queue = Queue::new(8).unwrap();
        push(&mut queue, &[(KEY, 1), (EV_SYN, 0)]);
        let (losses, first) = (queue.losses(), queue.pop().unwrap());
        queue.put_back(first, losses);
        assert_eq!(pop_all(&mut queue).len(), 2);
        push(&mut queue, &[(KEY, 2), (EV_SYN, 0), (KEY, 3), (EV_SYN, 0), (KEY, 4), (EV_SYN, 0), (KEY, 5), (EV_SYN, 0)]);
        queue.put_back(first, losses);
        assert_eq!(pop_all(&mut queue)[0], (EV_SYN, SYN_DROPPED, 0));
    }

    #[test]
    fn who_finds_no_room_to_put_back_says_that_events_were_lost() {
        let mut queue = Queue::new(8).unwrap();
        push(&mut queue, &[(KEY, 1), (EV_SYN, 0)]);
        let losses = queue.losses();
        let taken = [queue.pop().unwrap(), queue.pop().unwrap()];
        push(&mut queue, &[(KEY, 2), (KEY, 3), (KEY, 4), (KEY, 5), (KEY, 6), (EV_SYN, 0)]);
        taken.iter().rev().for_each(|&stamped| queue.put_back(stamped, losses));
        push(&mut queue, &[(KEY, 7), (EV_SYN, 0)]);
        assert_eq!(pop_all(&mut queue), [(EV_SYN, SYN_DROPPED, 0), (KEY, 0, 7), (EV_SYN, 0, 0)]);
    }

    #[test]
    fn one_type_is_forgotten_with_the_reports_that_had_nothing_else() {
        let mut queue = Queue::new(64).unwrap();
        push(&mut queue, &[(KEY, 1), (EV_SYN, 0), (MOVE, 1), (KEY, 0), (EV_SYN, 0), (MOVE, 2), (KEY, 1)]);
        queue.forget(KEY);
        assert_eq!(pop_all(&mut queue), [(EV_SYN, 0, 0), (MOVE, 0, 1), (EV_SYN, 0, 0)]);
        push(&mut queue, &[(EV_SYN, 0), (KEY, 0), (EV_SYN, 0)]);
        queue.forget(KEY);
        assert_eq!(pop_all(&mut queue), [(MOVE, 0, 2), (EV_SYN, 0, 0)]);
        queue.forget(KEY);
        queue.forget_all(Time::default());
        assert_eq!(pop_all(&mut queue), []);
    }
}
