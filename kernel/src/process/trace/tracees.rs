//! [`OfProcess`]: whom a process traces, and who learns of its end.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use frame::Cx;
use refs::{NoSuspend, SpinLock, TempRc, WeakRc};

use super::relation::{Relation, Traced, is_of};
use crate::error::{Errno, Result};
use crate::process::members::{Cursor, Members, TicketSet};
use crate::process::{Process, THREADS, Thread, Usage, stop};
use crate::reclaim::Held;
use crate::signal::{Signal, Work};

/// Of so many tracees that have ended at most is known that they have: who traces more and does not wait learns nothing of the first ones.
const ENDED_MAX: usize = 4096;

/// What a process has of tracing: nearly all have nothing, and know that without a lock.
#[derive(Default)]
pub struct OfProcess {
    /// How many of its threads are traced.
    traced_threads: AtomicU32,
    /// Whether its threads trace any, or ever did.
    has_tracees: AtomicBool,
    /// It was killed while it ended: those that stand at their end do no more.
    is_killed: AtomicBool,
    /// Whether somebody else than its parent is to learn of its end.
    is_watched: AtomicBool,
    tracees: SpinLock<Option<Box<Tracees>>>,
}

/// Whom the threads of a process trace.
#[derive(Default)]
struct Tracees {
    all: Members<Thread>,
    /// Those that stand, and of whom wait(2) may have something to tell.
    changed: TicketSet,
    ended: VecDeque<Ended>,
    /// Who is to learn of the end of the process itself, beside its parent.
    watcher: Option<WeakRc<Process>>,
}

/// A tracee that has ended: a thread that was not the first of its process, or a process that is no child of its tracer's.
#[derive(Clone, Copy)]
pub(super) struct Ended {
    pub id: u32,
    pub group: u32,
    pub uid: u32,
    pub status: u32,
    pub usage: Usage,
}

/// What wait(2) can tell of a tracee.
pub enum Found<'cx> {
    /// It stands, for that: a signal, and what happened above it.
    Stands(TempRc<'cx, Thread>, u32),
    /// It has ended: its id, its user, its status, and what it has used.
    Ended(u32, u32, u32, Usage),
}

impl OfProcess {
    /// Whether its threads trace any, or ever did.
    #[inline(always)]
    pub fn has_tracees(&self) -> bool {
        self.has_tracees.load(Ordering::SeqCst)
    }

    /// Whether somebody traces one of its threads.
    #[inline(always)]
    pub fn is_traced(&self) -> bool {
        self.traced_threads.load(Ordering::Relaxed) > 0
    }

    pub(super) fn is_killed(&self) -> bool {
        self.is_killed.load(Ordering::Acquire)
    }

    /// It is killed while it ends: its threads are to be woken.
    pub fn note_kill(&self) {
        self.is_killed.store(true, Ordering::Release);
    }

    /// Whether somebody else than its parent is to learn of its end.
    #[inline(always)]
    pub fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::Acquire)
    }

    /// That one is to learn of its end.
    pub(super) fn set_watcher(&self, tracer: WeakRc<Process>, cx: &impl NoSuspend) {
        self.tracees.lock(cx).get_or_insert_default().watcher = Some(tracer);
        self.is_watched.store(true, Ordering::Release);
    }

    /// Who is to learn of its end.
    pub(super) fn watcher(&self, cx: &impl NoSuspend) -> Option<WeakRc<Process>> {
        self.tracees.lock(cx).as_ref()?.watcher
    }
}

impl Process {
    /// Its thread `relation.tracer` traces another from now on. `made` is what the thread is to it, if it was made before.
    ///
    /// # Errors
    /// EPERM if somebody traces it already; ESRCH if the tracer ends; ENOMEM or EAGAIN if its group may not have more.
    pub(super) fn begin_tracing(
        &self,
        thread: &TempRc<'_, Thread>,
        relation: Relation,
        made: Option<Box<Traced>>,
        cx: &impl NoSuspend,
    ) -> Result<()> {
        self.tracing.has_tracees.store(true, Ordering::SeqCst);
        let mut spare = Some(made.unwrap_or_else(|| Traced::new(relation)));
        let outcome = {
            let mut list = self.tracing.tracees.lock(cx);
            let list = list.get_or_insert_default();
            let mut traced = thread.tracing.traced.lock(cx);
            let is_traced = traced.as_ref().is_some_and(|traced| traced.relation.is_some());
            let is_closed = relation.tracer.is_some_and(|tracer| {
                tracer.upgrade(cx).map_or(true, |tracer| tracer.tracing.is_closed.load(Ordering::SeqCst))
            });
            if is_traced {
                Err(Errno::EPERM)
            } else if is_closed || self.is_exiting() {
                Err(Errno::ESRCH)
            } else {
                list.all.reserve_one().map(|()| {
                    let ticket = list.all.enter(thread.downgrade());
                    // One that was let go may stand still.
                    if traced.is_none() {
                        *traced = spare.take();
                    }
                    if let Some(traced) = traced.as_mut() {
                        (traced.relation, traced.as_tracee) = (Some(relation), ticket);
                    }
                    thread.tracing.set_traced(true);
                })
            }
        };
        if outcome.is_ok()
            && let Ok(process) = thread.process(cx)
        {
            process.tracing.traced_threads.fetch_add(1, Ordering::Relaxed);
        }
        outcome
    }

    /// It lets a tracee go, if that is `tracer`'s (of whichever of its threads, if that is `None`), which goes on with a signal. What it was to it.
    pub(super) fn part(
        &self,
        thread: &Thread,
        tracer: Option<WeakRc<Thread>>,
        signal: Option<Signal>,
        cx: &impl NoSuspend,
    ) -> Option<Relation> {
        let (mut left, embryo);
        left = None;
        let relation = {
            let mut list = self.tracing.tracees.lock(cx);
            let list = list.as_mut()?;
            let mut place = thread.tracing.traced.lock(cx);
            let traced = place.as_mut()?;
            let is_own = |relation: &Relation| {
                relation.process.upgrade(cx).is_ok_and(|process| core::ptr::eq(&*process, self))
                    && is_of(relation, tracer)
            };
            let relation = traced.relation.take_if(|relation| is_own(relation))?;
            list.all.leave(traced.as_tracee);
            list.changed.remove(traced.as_tracee);
            embryo = traced.embryo.take();
            thread.tracing.set_traced(false);
            traced.traps = false;
            match &mut traced.stand {
                Some(stand) => _ = stand.resumed.get_or_insert(signal),
                None => left = place.take(),
            }
            relation
        };
        drop(left);
        self.let_go(Held::Timer, 1 + u32::from(embryo.is_some()), cx);
        drop(embryo);
        if let Ok(process) = thread.process(cx) {
            process.tracing.traced_threads.fetch_sub(1, Ordering::Relaxed);
            // It may have gone on while its process was stopped.
            stop::stop_with_others(&process, thread, cx);
        }
        thread.signals.remove_work(Work::TRAP);
        thread.wake(cx);
        Some(relation)
    }

    /// The next of a walk through its tracees.
    pub(super) fn next_tracee(&self, last: &mut Cursor, cx: &impl NoSuspend) -> Option<WeakRc<Thread>> {
        self.tracing.tracees.lock(cx).as_ref()?.all.next(last)
    }

    /// Whether a thread of it is the tracer still: another process may have become that meanwhile, and the ticket is of its list then.
    fn is_tracer_of(&self, traced: &Traced, cx: &impl NoSuspend) -> bool {
        let process = traced.relation.and_then(|relation| relation.process.upgrade(cx).ok());
        process.is_some_and(|process| core::ptr::eq(&*process, self))
    }

    /// wait(2) may have something to tell of a tracee.
    pub(super) fn tracee_stands(&self, thread: &Thread, cx: &impl NoSuspend) {
        if let Some(list) = &mut *self.tracing.tracees.lock(cx)
            && let Some(traced) = &*thread.tracing.traced.lock(cx)
            && self.is_tracer_of(traced, cx)
        {
            list.changed.insert(traced.as_tracee);
        }
    }

    /// wait(2) has nothing to tell of a tracee any more.
    pub(super) fn tracee_is_told(&self, thread: &Thread, cx: &impl NoSuspend) {
        if let Some(list) = &mut *self.tracing.tracees.lock(cx)
            && let Some(traced) = &*thread.tracing.traced.lock(cx)
            && self.is_tracer_of(traced, cx)
        {
            list.changed.remove(traced.as_tracee);
        }
    }

    /// A tracee has ended.
    pub(super) fn tracee_has_ended(&self, ended: Ended, cx: &impl NoSuspend) {
        if let Some(list) = &mut *self.tracing.tracees.lock(cx) {
            if list.ended.len() == ENDED_MAX {
                list.ended.pop_front();
            }
            if list.ended.try_reserve(1).is_ok() {
                list.ended.push_back(ended);
            }
        }
    }

    /// A tracee that is chosen, by its id and its process group, of which wait(2) has something to tell; if there is none, whether any is chosen.
    pub fn find_changed_tracee<'cx>(
        &self,
        id: Option<u32>,
        is_chosen: impl Fn(u32, u32) -> bool,
        ends_count: bool,
        cx: &'cx Cx,
    ) -> core::result::Result<Found<'cx>, bool> {
        if !self.tracing.has_tracees() {
            return Err(false);
        }
        // Looked up: they may be many.
        let only = id.map(|id| THREADS.get(id, cx).filter(|thread| self.traces(thread, cx)));
        let list = self.tracing.tracees.lock(cx);
        let Some(list) = list.as_ref() else { return Err(false) };
        let is_chosen_thread = |name: WeakRc<Thread>| {
            let thread = name.upgrade(cx).ok()?;
            let group = thread.process(cx).map_or(0, |process| process.group());
            is_chosen(thread.tid(), group).then_some(thread)
        };
        let stands = |thread: &TempRc<'cx, Thread>| {
            let traced = thread.tracing.traced.lock(cx);
            let stand = traced.as_ref()?.stand.as_ref()?;
            (stand.is_news && stand.resumed.is_none()).then_some(stand.code)
        };
        let found = |thread: TempRc<'cx, Thread>| stands(&thread).map(|code| Found::Stands(thread, code));
        let standing = match &only {
            Some(only) => only.clone().and_then(found),
            None => list.changed.iter().find_map(|ticket| found(is_chosen_thread(list.all.get(ticket)?)?)),
        };
        if let Some(found) = standing {
            return Ok(found);
        }
        let ended = list.ended.iter().find(|ended| is_chosen(ended.id, ended.group));
        match ended {
            Some(ended) if ends_count => Ok(Found::Ended(ended.id, ended.uid, ended.status, ended.usage)),
            Some(_) => Err(true),
            None => Err(match only {
                Some(only) => only.is_some(),
                None => list.all.any(|name| is_chosen_thread(name).is_some()),
            }),
        }
    }

    /// Whether a thread is a tracee of one of its threads.
    fn traces(&self, thread: &Thread, cx: &impl NoSuspend) -> bool {
        let relation = super::relation::relation(thread, cx);
        relation
            .is_some_and(|relation| relation.process.upgrade(cx).is_ok_and(|process| core::ptr::eq(&*process, self)))
    }

    /// wait(2) has told that; false if another thread was first.
    pub fn take_tracee_news(&self, found: &Found<'_>, cx: &Cx) -> bool {
        let mut list = self.tracing.tracees.lock(cx);
        let Some(list) = list.as_mut() else { return false };
        match found {
            Found::Stands(thread, code) => {
                let mut traced = thread.tracing.traced.lock(cx);
                let Some(traced) = traced.as_mut() else { return false };
                list.changed.remove(traced.as_tracee);
                traced.stand.as_mut().is_some_and(|stand| stand.code == *code && core::mem::take(&mut stand.is_news))
            }
            Found::Ended(id, ..) => {
                let at = list.ended.iter().position(|ended| ended.id == *id);
                at.and_then(|at| list.ended.remove(at)).is_some()
            }
        }
    }
}
