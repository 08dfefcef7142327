//! [`GroupWalk`]: going through the processes or threads of a control group, also of all below it, however many they are and whoever comes and leaves meanwhile.

use refs::{NoSuspend, StrongRc, TempRc, WeakRc};

use super::membership::next_member;
use super::{Cursor, PROCESSES, Process, Thread};
use crate::cgroup::{self, Cgroup};

/// How far a walk is. It keeps the group at which it is, which may be removed meanwhile.
///
/// Each that is there all the time is met; who comes into a group that was passed is not.
pub struct GroupWalk {
    /// The group that the walk ends with, and whether those below it are gone through, too.
    top: u64,
    goes_down: bool,
    at: Option<StrongRc<Cgroup>>,
    cursor: Cursor,
    /// In the root: the next id.
    next_id: u32,
    /// Whose threads are gone through.
    threads: Option<(WeakRc<Process>, Cursor)>,
}

/// What a walk has met.
pub enum Met<T: Send + Sync + 'static> {
    /// One.
    One(WeakRc<T>),
    /// None yet, but it is further than it was.
    Nobody,
}

impl GroupWalk {
    /// Through the members of a group, or of all that are below it as well.
    pub fn new(group: &TempRc<'_, Cgroup>, goes_down: bool) -> Self {
        GroupWalk { top: group.id, goes_down, at: group.share(), cursor: Cursor::default(), next_id: 0, threads: None }
    }

    /// Through the threads of one process.
    pub fn of_process(process: &TempRc<'_, Process>) -> Self {
        GroupWalk {
            top: 0,
            goes_down: false,
            at: None,
            cursor: Cursor::default(),
            next_id: 0,
            threads: Some((process.downgrade(), Cursor::default())),
        }
    }

    /// The next process; `None` at the end. Each takes some hundred instructions.
    pub fn next_process(&mut self, cx: &impl NoSuspend) -> Option<Met<Process>> {
        let group = self.at.as_ref()?.get(cx);
        if group.is_root() {
            if let Some((id, process)) = PROCESSES.next(self.next_id, cx) {
                self.next_id = id.saturating_add(1);
                let is_member = process
                    .upgrade(cx)
                    .is_ok_and(|process| process.control_group(cx).is_none() && process.has_threads());
                return Some(if is_member { Met::One(process) } else { Met::Nobody });
            }
        } else if let Some(process) = next_member(&group, &mut self.cursor, cx) {
            return Some(Met::One(process));
        }
        // Of one without members nobody else says that it is frozen, or is not any more.
        group.say(cx);
        self.at = if self.goes_down { cgroup::next_below(&group, self.top, cx) } else { None };
        self.cursor = Cursor::default();
        self.at.is_some().then_some(Met::Nobody)
    }

    /// The next thread; `None` at the end.
    pub fn next_thread(&mut self, cx: &impl NoSuspend) -> Option<Met<Thread>> {
        if let Some((process, cursor)) = &mut self.threads {
            let next = process.upgrade(cx).ok().and_then(|process| process.next_thread(cursor, cx));
            if let Some(thread) = next {
                return Some(Met::One(thread));
            }
            self.threads = None;
        }
        if let Met::One(process) = self.next_process(cx)? {
            self.threads = Some((process, Cursor::default()));
        }
        Some(Met::Nobody)
    }

    /// Adds the times in user mode and in the kernel of the next process, which it had while it was in its group; false at the end.
    pub fn add_times(&mut self, times: &mut (u64, u64), cx: &impl NoSuspend) -> bool {
        let Some(met) = self.next_process(cx) else { return false };
        if let Met::One(process) = met
            && let Ok(process) = process.upgrade(cx)
        {
            let (user, system) = process.times_in_group(cx);
            *times = (times.0 + user, times.1 + system);
        }
        true
    }
}
