//! What a set holds: its semaphores, the calls that wait, and what the end of each process gives back.
//!
//! Who changes a value also does the operations of all who wait and can go on now, in their place, before anybody else sees or changes the set. So a value that was there for a moment is missed by
//! nobody, and nobody takes what another was given. The order is Linux's (`do_smart_update`): who waits for zeros, after each change that leaves one; then who wants to change values, the first that came first. If
//! none of these has several operations, only those of the semaphores that changed are looked at; else all, again from the first after each that could be done. (Who is looked at can be seen: GETNCNT and GETZCNT count a call
//! where it was refused last.)
//!
//! That can be long. What is left of it stands in the set ([`Work`]) and is done in pieces. Nobody does anything else with the set before it is settled: who comes meanwhile goes on with it first, and who began it
//! does not leave before it is done ([`State::is_done`]). Whoever is to end leaves it to a task ([`super::left`]), and what its end gives back comes behind all that is left ([`State::undo`]).

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use refs::{NoSuspend, StrongRc, Waker, WeakRc};

use super::operations::{MOST, Operation, Refused, Request, Semaphore, try_all};
use super::waiting::Waiter;
use super::{Past, now};
use crate::error::{Errno, Result};
use crate::step::TimeSlice;

/// So many values are set, or given back, in one piece.
const VALUES_AT_ONCE: usize = 2048;
/// So many processes forget what they are to give back in one piece.
const UNDOS_AT_ONCE: usize = 128;
/// So many calls are completed before they are woken, which is done with nothing locked.
const WOKEN_AT_ONCE: usize = 16;
/// Stands for the number of a semaphore, for those who wait for several to be 0.
const SEVERAL: usize = usize::MAX;

/// What a set holds.
pub struct State {
    semaphores: Vec<Semaphore>,
    pub(super) past: Past,
    /// IPC_RMID was called: nobody uses it any more.
    pub(super) is_removed: bool,
    /// What the end of each process adds.
    undos: BTreeMap<u32, Undo>,
    /// How many times all values were set, and what was to be given back was forgotten.
    generation: u64,
    /// Who would change values, by when they came.
    alterers: BTreeMap<u64, Waiting>,
    /// Those of them that have one operation, by its semaphore.
    single: BTreeSet<(usize, u64)>,
    /// Who waits for zeros only, by semaphore.
    zeros: BTreeMap<(usize, u64), Waiting>,
    /// How many calls have waited.
    arrived: u64,
    work: Work,
    /// What the ends of processes give back as soon as all before it is done, by the number of the change that this is to be.
    ended: BTreeMap<u64, Ended>,
    /// How many times there was work.
    begun: u64,
}

/// What the end of a process gives back.
struct Ended {
    adjust: Box<[i16]>,
    by: u32,
}

/// What a process's end adds to each semaphore, if that was not forgotten meanwhile.
struct Undo {
    generation: u64,
    adjust: Box<[i16]>,
}

/// A call that waits.
#[derive(Clone, Copy)]
struct Waiting {
    waiter: WeakRc<Waiter>,
    waker: Waker,
    /// What it waits for, as which it is counted.
    waits_for: Operation,
}

/// Where a waiting call stands.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// Among those who wait for zeros.
    Zero(usize, u64),
    /// Among the others.
    Alter(u64),
}

/// What is left to do of a change, in this order.
#[derive(Default)]
struct Work {
    change: Option<Change>,
    /// From where on those who wait for zeros are looked at, and the last semaphore.
    zeros: Option<((usize, u64), usize)>,
    alterers: Option<Alterers>,
}

/// A change of many values.
enum Change {
    /// Processes, from this one on, forget what they are to give to a semaphore.
    Forget { from: u32, number: usize },
    /// Values from a number on are set.
    Set { values: Vec<u16>, at: usize, by: u32 },
    /// What a process was to give back is given, from a number on.
    Undo { what: Ended, at: usize },
}

/// Who is looked at next of those who would change values.
#[derive(Clone, Copy)]
enum Alterers {
    /// Those of single semaphores, up to the last.
    Single { next: (usize, u64), last: usize },
    /// All.
    All { next: u64 },
}

/// Who is to be woken.
#[derive(Default)]
pub struct Woken {
    wakers: [Option<Waker>; WOKEN_AT_ONCE],
    count: usize,
}

impl Woken {
    fn push(&mut self, waker: Waker) {
        self.wakers[self.count] = Some(waker);
        self.count += 1;
    }

    fn is_full(&self) -> bool {
        self.count == WOKEN_AT_ONCE
    }

    /// Wakes them, with nothing locked.
    pub fn wake(self) {
        self.wakers.into_iter().flatten().for_each(|waker| _ = waker.wake());
    }
}

impl State {
    pub(super) fn new(semaphores: Vec<Semaphore>) -> Self {
        State {
            semaphores,
            past: Past { operated: 0, changed: now() },
            is_removed: false,
            undos: BTreeMap::new(),
            generation: 0,
            alterers: BTreeMap::new(),
            single: BTreeSet::new(),
            zeros: BTreeMap::new(),
            arrived: 0,
            work: Work::default(),
            ended: BTreeMap::new(),
            begun: 0,
        }
    }

    pub(super) fn semaphores(&self) -> &[Semaphore] {
        &self.semaphores
    }

    /// Whether nothing is left of a change.
    pub fn is_settled(&self) -> bool {
        self.has_no_work() && self.ended.is_empty()
    }

    fn has_no_work(&self) -> bool {
        let Work { change, zeros, alterers } = &self.work;
        change.is_none() && zeros.is_none() && alterers.is_none()
    }

    /// The last change, or the last one that is to come.
    pub fn last_change(&self) -> u64 {
        self.begun + self.ended.len() as u64
    }

    /// Whether nothing is left of a certain one.
    pub fn is_done(&self, change: u64) -> bool {
        self.begun > change || self.begun == change && self.has_no_work()
    }

    /// Goes on with what is left, until all is done that `is_done` asks for, the time slice is over or there are enough to wake.
    pub fn settle(
        &mut self,
        is_done: impl Fn(&State) -> bool,
        woken: &mut Woken,
        time_slice: &mut TimeSlice,
        cx: &impl NoSuspend,
    ) {
        while !is_done(self) && !woken.is_full() && !time_slice.is_over() {
            if let Some(change) = self.work.change.take() {
                self.go_on_changing(change);
            } else if let Some((next, last)) = self.work.zeros {
                self.look_at_zeros(next, last, woken, cx);
            } else if let Some(alterers) = self.work.alterers {
                self.look_at_alterers(alterers, woken, cx);
            } else if let Some((_, what)) = self.ended.pop_first() {
                self.begin(Change::Undo { what, at: 0 });
            }
        }
    }

    /// Changes some values, if it is a certain change for which that is left; whether it was. Who waits is not looked at.
    pub fn change_some(&mut self, change: u64) -> bool {
        let change = if self.begun == change { self.work.change.take() } else { None };
        let is_left = change.is_some();
        change.into_iter().for_each(|change| self.go_on_changing(change));
        is_left
    }

    /// Does what a call wants, if that can be done now. What is left to do then, if anything, has the number.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn operate(&mut self, request: &Request) -> core::result::Result<Option<u64>, Refused> {
        let undo = if request.undoes() { undo_of(&mut self.undos, request.by, self.generation) } else { None };
        try_all(&mut self.semaphores, undo, request)?;
        self.past.operated = now();
        let nobody_waits = self.zeros.is_empty() && self.alterers.is_empty();
        if nobody_waits || !request.alters() {
            return Ok(None);
        }
        let raises = request.all.iter().any(|operation| operation.add > 0);
        self.look_again(request.range(), raises, |semaphores| request.finds_zero(semaphores));
        Ok(self.number_of_work())
    }

    /// Values between two have changed: who waits is to be looked at. `raises`: one may have become larger; `has_zero`: one is 0 of those that Linux looks at.
    fn look_again(&mut self, (first, last): (usize, usize), raises: bool, has_zero: impl FnOnce(&[Semaphore]) -> bool) {
        self.look_for_zeros((first, last), has_zero);
        if self.alterers.len() > self.single.len() {
            self.work.alterers = Some(Alterers::All { next: 0 });
        } else if raises && !self.single.is_empty() {
            self.work.alterers = Some(Alterers::Single { next: (first, 0), last });
        }
    }

    fn look_for_zeros(&mut self, (first, last): (usize, usize), has_zero: impl FnOnce(&[Semaphore]) -> bool) {
        if !self.zeros.is_empty() && has_zero(&self.semaphores) {
            self.work.zeros = Some(((first, 0), last));
        }
    }

    fn number_of_work(&mut self) -> Option<u64> {
        if self.has_no_work() {
            return None;
        }
        self.begun += 1;
        Some(self.begun)
    }

    fn look_at_zeros(&mut self, next: (usize, u64), last: usize, woken: &mut Woken, cx: &impl NoSuspend) {
        let end = (last, u64::MAX);
        let found = if next <= end { self.zeros.range(next..=end).next() } else { None };
        let Some((&(number, came), &waiting)) = found else {
            // Behind those of one semaphore come those of several.
            self.work.zeros = (last != SEVERAL).then_some(((SEVERAL, 0), SEVERAL));
            return;
        };
        if number != SEVERAL && self.semaphores[number].value != 0 {
            self.work.zeros = Some(((number + 1, 0), last));
            return;
        }
        self.work.zeros = Some(((number, came + 1), last));
        self.try_again(Place::Zero(number, came), waiting, woken, cx);
    }

    fn look_at_alterers(&mut self, alterers: Alterers, woken: &mut Woken, cx: &impl NoSuspend) {
        let (came, next) = match alterers {
            Alterers::Single { next: (number, _), last } if number > last => (None, None),
            Alterers::Single { next, last } => match self.single.range(next..=(last, u64::MAX)).next() {
                // All who wait here would lower it.
                Some(&(number, _)) if self.semaphores[number].value == 0 => {
                    (None, Some(Alterers::Single { next: (number + 1, 0), last }))
                }
                Some(&(number, came)) => (Some(came), Some(Alterers::Single { next: (number, came + 1), last })),
                None => (None, None),
            },
            Alterers::All { next } => match self.alterers.range(next..).next() {
                Some((&came, _)) => (Some(came), Some(Alterers::All { next: came + 1 })),
                None => (None, None),
            },
        };
        self.work.alterers = next;
        let Some((came, &waiting)) = came.and_then(|came| Some((came, self.alterers.get(&came)?))) else { return };
        if self.try_again(Place::Alter(came), waiting, woken, cx) && matches!(alterers, Alterers::All { .. }) {
            self.work.alterers = Some(Alterers::All { next: 0 });
        }
    }

    /// Does what a call that waits wants, if that can be done now, or ends its wait with an error. Whether it was done.
    fn try_again(&mut self, place: Place, waiting: Waiting, woken: &mut Woken, cx: &impl NoSuspend) -> bool {
        let Ok(waiter) = waiting.waiter.upgrade(cx) else {
            self.leave(place);
            return false;
        };
        let request = &waiter.request;
        let undo = if request.undoes() { undo_of(&mut self.undos, request.by, self.generation) } else { None };
        let outcome = match try_all(&mut self.semaphores, undo, request) {
            Err(Refused::Wait(operation)) => {
                self.wait_for(place, operation);
                return false;
            }
            Err(Refused::Errno(error)) => Err(error),
            Ok(()) => {
                self.past.operated = now();
                Ok(())
            }
        };
        self.leave(place);
        if outcome.is_ok() && matches!(place, Place::Alter(_)) {
            self.look_for_zeros(request.range(), |semaphores| request.finds_zero(semaphores));
        }
        waiter.complete(outcome);
        woken.push(waiting.waker);
        outcome.is_ok()
    }

    /// Enters a call that must wait.
    pub fn enter(
        &mut self,
        waiter: &StrongRc<Waiter>,
        waits_for: Operation,
        waker: Waker,
        cx: &impl NoSuspend,
    ) -> Place {
        let request = &waiter.get(cx).request;
        let came = self.arrived;
        self.arrived += 1;
        *self.semaphores[usize::from(waits_for.number)].waiting(&waits_for) += 1;
        let waiting = Waiting { waiter: waiter.downgrade(), waker, waits_for };
        let number = if request.all.len() == 1 { usize::from(waits_for.number) } else { SEVERAL };
        if !request.alters() {
            self.zeros.insert((number, came), waiting);
            return Place::Zero(number, came);
        }
        self.alterers.insert(came, waiting);
        if number != SEVERAL {
            self.single.insert((number, came));
        }
        Place::Alter(came)
    }

    fn waiting(&mut self, place: Place) -> Option<&mut Waiting> {
        match place {
            Place::Zero(number, came) => self.zeros.get_mut(&(number, came)),
            Place::Alter(came) => self.alterers.get_mut(&came),
        }
    }

    /// Has another waker of a call that waits woken; false if it waits no more.
    pub fn set_waker(&mut self, place: Place, waker: Waker) -> bool {
        let waiting = self.waiting(place);
        waiting.map(|waiting| waiting.waker = waker).is_some()
    }

    /// A call waits for something else than before.
    fn wait_for(&mut self, place: Place, operation: Operation) {
        let Some(waiting) = self.waiting(place) else { return };
        let before = core::mem::replace(&mut waiting.waits_for, operation);
        if before != operation {
            *self.semaphores[usize::from(before.number)].waiting(&before) -= 1;
            *self.semaphores[usize::from(operation.number)].waiting(&operation) += 1;
        }
    }

    /// A call waits no more, if it did.
    pub fn leave(&mut self, place: Place) -> Option<Waker> {
        let Waiting { waits_for, waker, .. } = match place {
            Place::Zero(number, came) => self.zeros.remove(&(number, came))?,
            Place::Alter(came) => {
                self.single.remove(&(usize::from(self.alterers.get(&came)?.waits_for.number), came));
                self.alterers.remove(&came)?
            }
        };
        *self.semaphores[usize::from(waits_for.number)].waiting(&waits_for) -= 1;
        Some(waker)
    }

    /// The set is removed: ends waits with EIDRM, and forgets what was to be given back. False if there may be more.
    pub fn empty(&mut self, woken: &mut Woken, time_slice: &mut TimeSlice, cx: &impl NoSuspend) -> bool {
        while !woken.is_full() && !time_slice.is_over() {
            let zero =
                self.zeros.first_key_value().map(|(&(number, came), waiting)| (Place::Zero(number, came), waiting));
            let alterer = || self.alterers.first_key_value().map(|(&came, waiting)| (Place::Alter(came), waiting));
            if let Some((place, &Waiting { waiter, waker, .. })) = zero.or_else(alterer) {
                self.leave(place);
                if let Ok(waiter) = waiter.upgrade(cx) {
                    waiter.complete(Err(Errno::EIDRM));
                }
                woken.push(waker);
            } else if self.undos.pop_first().is_none() {
                return true;
            }
        }
        false
    }

    /// Sets a value, and forgets what was to be given to it.
    pub fn set_value(&mut self, number: usize, value: u16, by: u32) -> Option<u64> {
        let semaphore = &mut self.semaphores[number];
        (semaphore.value, semaphore.last) = (value, by);
        self.past.changed = now();
        self.begin(Change::Forget { from: 0, number })
    }

    /// Sets all values, and forgets what was to be given back.
    pub fn set_all(&mut self, values: Vec<u16>, by: u32) -> Option<u64> {
        self.generation += 1;
        self.begin(Change::Set { values, at: 0, by })
    }

    fn begin(&mut self, change: Change) -> Option<u64> {
        self.work.change = Some(change);
        self.number_of_work()
    }

    /// Makes room for what a process's end gives back; false if there is some.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn begin_undo(&mut self, process: u32) -> Result<bool> {
        if self.undos.contains_key(&process) {
            return Ok(false);
        }
        let mut adjust = Vec::new();
        adjust.try_reserve_exact(self.semaphores.len()).map_err(|_| Errno::ENOMEM)?;
        adjust.resize(self.semaphores.len(), 0);
        let undo = Undo { generation: self.generation, adjust: adjust.into_boxed_slice() };
        Ok(self.undos.insert(process, undo).is_none())
    }

    /// Whether a process's end gives something back.
    pub fn has_undo(&self, process: u32) -> bool {
        self.undos.contains_key(&process)
    }

    /// What a process is to give back is given, as soon as all that is left is done. A value stays within its bounds. Linux: `exit_sem`.
    pub fn undo(&mut self, process: u32) -> Option<u64> {
        let Undo { mut adjust, generation } = self.undos.remove(&process)?;
        if generation != self.generation || self.is_removed {
            return None;
        }
        if let Some(Change::Forget { number, .. }) = self.work.change {
            adjust[number] = 0;
        }
        let what = Ended { adjust, by: process };
        if self.is_settled() {
            return self.begin(Change::Undo { what, at: 0 });
        }
        let change = self.last_change() + 1;
        self.ended.insert(change, what);
        Some(change)
    }

    /// Does one piece of a change, and leaves the rest as work.
    fn go_on_changing(&mut self, change: Change) {
        self.work.change = match change {
            Change::Forget { from, number } => self.forget_some(from, number),
            Change::Set { values, at, by } => self.set_some(values, at, by),
            Change::Undo { what, at } => self.undo_some(what, at),
        };
    }

    fn forget_some(&mut self, from: u32, number: usize) -> Option<Change> {
        let mut last = None;
        for (process, undo) in self.undos.range_mut(from..).take(UNDOS_AT_ONCE) {
            undo.adjust[number] = 0;
            last = Some(*process);
        }
        if let Some(last) = last {
            return Some(Change::Forget { from: last + 1, number });
        }
        self.look_again((number, number), true, has_zero);
        None
    }

    fn set_some(&mut self, values: Vec<u16>, at: usize, by: u32) -> Option<Change> {
        let end = values.len().min(at + VALUES_AT_ONCE);
        for (semaphore, value) in self.semaphores[at..end].iter_mut().zip(&values[at..end]) {
            (semaphore.value, semaphore.last) = (*value, by);
        }
        if end < values.len() {
            return Some(Change::Set { values, at: end, by });
        }
        self.past.changed = now();
        self.look_again((0, end - 1), true, has_zero);
        None
    }

    fn undo_some(&mut self, what: Ended, at: usize) -> Option<Change> {
        let Ended { adjust, by } = &what;
        let end = adjust.len().min(at + VALUES_AT_ONCE);
        for (semaphore, add) in self.semaphores[at..end].iter_mut().zip(&adjust[at..end]) {
            if *add != 0 {
                semaphore.value = (i32::from(semaphore.value) + i32::from(*add)).clamp(0, MOST) as u16;
                semaphore.last = *by;
            }
        }
        if end < adjust.len() {
            return Some(Change::Undo { what, at: end });
        }
        self.past.operated = now();
        self.look_again((0, end - 1), true, has_zero);
        None
    }
}

fn has_zero(semaphores: &[Semaphore]) -> bool {
    semaphores.iter().any(|semaphore| semaphore.value == 0)
}

fn undo_of(undos: &mut BTreeMap<u32, Undo>, process: u32, generation: u64) -> Option<&mut [i16]> {
    let undo = undos.get_mut(&process)?;
    if undo.generation != generation {
        undo.generation = generation;
        undo.adjust.fill(0);
    }
    Some(&mut undo.adjust)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_end_gives_back_stands_behind_a_change_under_way_and_is_forgotten_by_it() {
        let mut state = State::new(alloc::vec![Semaphore::default(); 2]);
        assert_eq!(state.begin_undo(5), Ok(true));
        let raise = |number, add| Operation { number, add, waits: true, undo: true };
        let request = Request { all: alloc::vec![raise(0, 3), raise(1, 4)], by: 5 };
        assert_eq!(state.operate(&request), Ok(None));
        assert_eq!(state.set_value(0, 9, 1), Some(1));
        assert_eq!((state.undo(5), state.last_change()), (Some(2), 2));
        assert_eq!(*state.ended[&2].adjust, [0, -4]);
        assert!(!state.change_some(2) && !state.is_done(1));
        while state.change_some(1) {}
        assert!(state.is_done(1) && !state.is_done(2) && !state.is_settled());
        assert_eq!([0, 1].map(|number: usize| state.semaphores()[number].value), [9, 4]);
    }

    #[test]
    fn what_an_end_gives_back_to_a_settled_set_is_given_at_once() {
        let mut state = State::new(alloc::vec![Semaphore::default(); VALUES_AT_ONCE + 1]);
        assert_eq!(state.begin_undo(5), Ok(true));
        let last = Operation { number: VALUES_AT_ONCE as u16, add: 3, waits: true, undo: true };
        assert_eq!(state.operate(&Request { all: alloc::vec![last], by: 5 }), Ok(None));
        assert_eq!(state.undo(5), Some(1));
        assert!(state.change_some(1) && state.change_some(1) && !state.change_some(1));
        assert!(state.is_done(1) && state.is_settled());
        assert_eq!(state.semaphores()[VALUES_AT_ONCE].value, 0);
    }
}
