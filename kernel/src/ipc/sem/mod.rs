//! Sets of semaphores: semget(2), semop(2), semctl(2).
//!
//! | file | what it holds |
//! | --- | --- |
//! | here | a set, and what semctl(2) does with it |
//! | `operations` | what the operations of a call do to values |
//! | `state` | what a set holds, and how those who wait are let on |
//! | `waiting` | a call of semop(2) |
//! | `left` | what those leave to do who end |
//!
//! What a process has changed with SEM_UNDO is remembered in the set, by the process, and is taken back when that ends; the process names the sets to look at, and is charged for each.
//!
//! The set is *settled* when all who can go on have been let on. That may take several pieces; `settled` and [`Begun`] say `Pause` in between.

pub mod left;
mod operations;
mod state;
mod waiting;

use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use frame::Cx;
use refs::{NoSuspend, SpinGuard, SpinLock, StrongRc, WeakRc};

pub use self::operations::{MOST, Operation, Semaphore, check_values};
use self::state::{State, Woken};
pub use self::waiting::Operations;
use super::{Object, Objects, Permissions, READ, WRITE, now};
use crate::credentials::Credentials;
use crate::error::{Errno, Result};
use crate::step::{Interruption, Step, Stop, TimeSlice};
use crate::sysctl::Tunable;

/// All sets; the last number of `/proc/sys/kernel/sem`.
pub static SETS: Objects<Set> = Objects::new(32_000);
/// So many semaphores a set has at most: the first number there.
pub static MOST_IN_SET: Tunable = Tunable::new(32_000, 0..=65_536);
/// So many there are at most in all sets: the second number.
pub static MOST_IN_ALL: Tunable = Tunable::new(1_024_000_000, 0..=i32::MAX as u64);
/// So many operations are done at once at most: the third number.
pub static MOST_AT_ONCE: Tunable = Tunable::new(500, 0..=4096);
/// How many there are in all sets.
static ALL: AtomicUsize = AtomicUsize::new(0);

/// A set. Its owner is the table, until IPC_RMID; then the call that ends all waits.
pub struct Set {
    permissions: SpinLock<Permissions>,
    state: SpinLock<State>,
    /// How many semaphores it has.
    pub len: usize,
}

/// When what was done to a set, in seconds since 1970; 0: never.
#[derive(Clone, Copy, Debug, Default)]
pub struct Past {
    /// An operation.
    pub operated: i64,
    /// It was made, given to another owner, or had a value set.
    pub changed: i64,
}

impl Object for Set {
    fn permissions(&self) -> &SpinLock<Permissions> {
        &self.permissions
    }

    fn table() -> &'static Objects<Self> {
        &SETS
    }
}

/// The set of a key, or a new one of so many semaphores, all 0: semget(2).
///
/// # Errors
/// Those of [`Objects::get`]; EINVAL: a bad number of semaphores; ENOSPC; ENOMEM.
pub fn get((key, flags): (i32, u32), len: i32, who: &Credentials, cx: &Cx) -> Result<i32> {
    let len = u64::try_from(len).ok().filter(|len| *len <= MOST_IN_SET.get()).ok_or(Errno::EINVAL)? as usize;
    let check = |set: &Set| if len > set.len { Err(Errno::EINVAL) } else { Ok(()) };
    SETS.get((key, flags), who, cx, check, |permissions, _| {
        if len == 0 {
            return Err(Errno::EINVAL);
        }
        // Sets are made one at a time.
        if (ALL.load(Relaxed) + len) as u64 > MOST_IN_ALL.get() {
            return Err(Errno::ENOSPC);
        }
        let mut semaphores = Vec::new();
        semaphores.try_reserve_exact(len).map_err(|_| Errno::ENOMEM)?;
        semaphores.resize(len, Semaphore::default());
        ALL.fetch_add(len, Relaxed);
        let state = SpinLock::new(State::new(semaphores));
        Ok(Set { permissions: SpinLock::new(permissions), state, len })
    })
}

impl Drop for Set {
    fn drop(&mut self) {
        ALL.fetch_sub(self.len, Relaxed);
    }
}

/// A change that may have more to do: who can go on is let on before the call returns. Those who wait count on it: whoever is to end and does not go on with it [leaves](left::leave) it.
#[derive(Clone, Copy)]
pub struct Begun {
    set: WeakRc<Set>,
    change: u64,
}

impl Begun {
    /// Goes on with it.
    ///
    /// # Errors
    /// `Pause`.
    pub fn step(&self, cx: &impl NoSuspend) -> Step<()> {
        self.go_on(&mut TimeSlice::default(), cx)
    }

    /// As [`step`](Self::step), in a time slice.
    ///
    /// # Errors
    /// Those.
    pub fn go_on(&self, time_slice: &mut TimeSlice, cx: &impl NoSuspend) -> Step<()> {
        // Only a set that is settled is removed.
        let Ok(set) = self.set.upgrade(cx) else { return Ok(()) };
        while !set.settle_some(|state| state.is_done(self.change), time_slice, cx) {
            if time_slice.is_over() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
        }
        Ok(())
    }
}

impl Set {
    /// All that was begun before the call.
    fn all_begun(&self, name: WeakRc<Set>, cx: &impl NoSuspend) -> Begun {
        Begun { set: name, change: self.state.lock(cx).last_change() }
    }

    /// Its state, with nothing left of what others have changed.
    ///
    /// # Errors
    /// EIDRM. `Pause`.
    fn settled<'a>(&'a self, time_slice: &mut TimeSlice, cx: &'a impl NoSuspend) -> Step<SpinGuard<'a, State>> {
        loop {
            let state = self.state.lock(cx);
            if state.is_removed {
                return Err(Errno::EIDRM.into());
            }
            if state.is_settled() {
                return Ok(state);
            }
            drop(state);
            self.settle_some(State::is_settled, time_slice, cx);
            if time_slice.is_over() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
        }
    }

    /// Lets on some of those who can go on; whether all was done that `is_done` asks for.
    fn settle_some(&self, is_done: impl Fn(&State) -> bool, time_slice: &mut TimeSlice, cx: &impl NoSuspend) -> bool {
        let mut woken = Woken::default();
        let mut state = self.state.lock(cx);
        state.settle(&is_done, &mut woken, time_slice, cx);
        let is_done = is_done(&state);
        drop(state);
        woken.wake();
        is_done
    }

    /// Whose it is, and when what was done.
    pub fn status(&self, cx: &Cx) -> (Permissions, Past) {
        let permissions = *self.permissions.lock(cx);
        (permissions, self.state.lock(cx).past)
    }

    /// One of its semaphores.
    ///
    /// # Errors
    /// EACCES; EINVAL: there is none of that number; EIDRM. `Pause`.
    pub fn semaphore(&self, number: i32, who: &Credentials, cx: &Cx) -> Step<Semaphore> {
        let number = usize::try_from(number).ok().filter(|number| *number < self.len);
        self.permissions.lock(cx).check(READ, who)?;
        let number = number.ok_or(Errno::EINVAL)?;
        Ok(self.settled(&mut TimeSlice::default(), cx)?.semaphores()[number])
    }

    /// The values of all: GETALL.
    ///
    /// # Errors
    /// EACCES; ENOMEM; EIDRM. `Pause`.
    pub fn values(&self, who: &Credentials, cx: &Cx) -> Step<Vec<u16>> {
        self.permissions.lock(cx).check(READ, who)?;
        let mut values = Vec::new();
        values.try_reserve_exact(self.len).map_err(|_| Errno::ENOMEM)?;
        values
            .extend(self.settled(&mut TimeSlice::default(), cx)?.semaphores().iter().map(|semaphore| semaphore.value));
        Ok(values)
    }

    /// Checks that somebody may set its values.
    ///
    /// # Errors
    /// EACCES.
    pub fn check_write(&self, who: &Credentials, cx: &Cx) -> Result<()> {
        self.permissions.lock(cx).check(WRITE, who)
    }

    /// Makes room for what the end of a process gives back; false if there is some.
    ///
    /// # Errors
    /// ENOMEM; EIDRM.
    pub fn begin_undo(&self, process: u32, cx: &Cx) -> Result<bool> {
        let mut state = self.state.lock(cx);
        if state.is_removed { Err(Errno::EIDRM) } else { state.begin_undo(process) }
    }

    /// Gives it to another owner: IPC_SET.
    ///
    /// # Errors
    /// EPERM.
    pub fn set(&self, owner: (u32, u32, u32), who: &Credentials, cx: &Cx) -> Result<()> {
        self.give(owner, who, cx)?;
        self.state.lock(cx).past.changed = now();
        Ok(())
    }
}

/// Sets a value, and forgets what was to be undone there: SETVAL. `by`: the calling process.
///
/// # Errors
/// EACCES; EINVAL: there is no such set, or none of that number in it; ERANGE; EIDRM. `Pause`.
pub fn set_value(id: i32, number: i32, value: i32, by: u32, who: &Credentials, cx: &Cx) -> Step<Option<Begun>> {
    let value = u16::try_from(value).map_err(|_| Errno::ERANGE)?;
    check_values(&[value])?;
    let set = SETS.find(id, cx)?;
    let number = usize::try_from(number).ok().filter(|number| *number < set.len).ok_or(Errno::EINVAL)?;
    set.check_write(who, cx)?;
    let change = set.settled(&mut TimeSlice::default(), cx)?.set_value(number, value, by);
    Ok(change.map(|change| Begun { set: set.downgrade(), change }))
}

/// Sets all values that [`check_values`] has let pass, and forgets what was to be undone: SETALL.
///
/// # Errors
/// EIDRM. `Pause`; then the values are still there.
pub fn set_all(name: WeakRc<Set>, values: &mut Vec<u16>, by: u32, cx: &Cx) -> Step<Option<Begun>> {
    let set = name.upgrade(cx).map_err(|_| Errno::EIDRM)?;
    let change = set.settled(&mut TimeSlice::default(), cx)?.set_all(core::mem::take(values), by);
    Ok(change.map(|change| Begun { set: name, change }))
}

/// What a process's operations have changed with SEM_UNDO is taken back: that is begun, or gone on with; false if there is more to do. Who can go on then is [let on by others](left): nobody
/// knows how many these are, and how long that takes.
pub fn undo(
    name: WeakRc<Set>,
    begun: &mut Option<Begun>,
    process: u32,
    time_slice: &mut TimeSlice,
    cx: &impl NoSuspend,
) -> bool {
    let Ok(set) = name.upgrade(cx) else { return true };
    let mut state = set.state.lock(cx);
    if begun.is_none() {
        *begun = state.undo(process).map(|change| Begun { set: name, change });
    }
    let Some(begun) = *begun else { return true };
    while state.change_some(begun.change) {
        if time_slice.is_over() {
            return false;
        }
    }
    let is_done = state.is_done(begun.change);
    drop(state);
    if !is_done {
        left::leave(begun, cx);
    }
    true
}

/// A set that is removed, whose waits are to be ended. Whoever is to end and does not do that [leaves](left::leave_removed) it.
pub struct Removed(StrongRc<Set>);

/// Removes a set: IPC_RMID.
///
/// # Errors
/// EINVAL: there is none; EPERM; EIDRM. `Pause`.
pub fn remove(id: i32, who: &Credentials, cx: &Cx) -> Step<Removed> {
    let set = SETS.find(id, cx)?;
    set.permissions.lock(cx).check_owner(who)?;
    set.settled(&mut TimeSlice::default(), cx)?.is_removed = true;
    Ok(Removed(SETS.remove(id, cx)?))
}

impl Removed {
    /// Ends waits, and forgets what was to be undone.
    ///
    /// # Errors
    /// `Pause`.
    pub fn step(&self, cx: &Cx) -> Step<()> {
        self.go_on(&mut TimeSlice::default(), cx)
    }

    /// As [`step`](Self::step), in a time slice.
    ///
    /// # Errors
    /// Those.
    fn go_on(&self, time_slice: &mut TimeSlice, cx: &Cx) -> Step<()> {
        let set = self.0.get(cx);
        while !time_slice.is_over() {
            let mut woken = Woken::default();
            let is_empty = set.state.lock(cx).empty(&mut woken, time_slice, cx);
            woken.wake();
            if is_empty {
                return Ok(());
            }
        }
        Err(Stop::Pause(Interruption::KillOnly))
    }
}

/// How many semaphores all sets have: SEM_INFO.
pub fn all_semaphores() -> usize {
    ALL.load(Relaxed)
}
