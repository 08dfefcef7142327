//! Sets of semaphores: semget(2), semop(2), semctl(2).
//!
//! An operation on several semaphores of a set is done whole or not at all. What a process has changed with SEM_UNDO is remembered in the set, by the process, and is taken back when that ends;
//! the process names the sets to look at, and is charged for each.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use frame::Cx;
use refs::{NoSuspend, SpinLock, WaitList, Waker, WeakRc};

use super::{Object, Permissions, READ, Table, WRITE, now};
use crate::credentials::Credentials;
use crate::error::{Errno, Result};
use crate::step::{Step, Stop};
use crate::sysctl::Tunable;

/// All sets; the last number of `/proc/sys/kernel/sem`.
pub static SETS: Table<Set> = Table::new(32_000);
/// So many semaphores a set has at most: the first number there.
pub static MOST_IN_SET: Tunable = Tunable::new(32_000, 0..=65_536);
/// So many there are at most in all sets: the second number.
pub static MOST_IN_ALL: Tunable = Tunable::new(1_024_000_000, 0..=i32::MAX as u64);
/// So many operations are done at once at most: the third number.
pub static MOST_AT_ONCE: Tunable = Tunable::new(500, 0..=4096);
/// How many there are in all sets.
static ALL: AtomicUsize = AtomicUsize::new(0);
/// The highest value of a semaphore, and the most by which one is set back.
pub const MOST: i32 = 32_767;

/// A set. Its owner is the table, until IPC_RMID. Who waits on it is woken when a value in it changes, and when it is removed.
pub struct Set {
    permissions: SpinLock<Permissions>,
    state: SpinLock<State>,
    /// How many semaphores it has.
    pub len: usize,
    changed: WaitList,
}

struct State {
    semaphores: Vec<Semaphore>,
    /// What the end of each process adds to each semaphore.
    undos: BTreeMap<u32, Box<[i16]>>,
    past: Past,
}

/// When what was done to a set, in seconds since 1970; 0: never.
#[derive(Clone, Copy, Debug, Default)]
pub struct Past {
    /// An operation.
    pub operated: i64,
    /// It was made, given to another owner, or had a value set.
    pub changed: i64,
}

/// One semaphore.
#[derive(Clone, Copy, Debug, Default)]
pub struct Semaphore {
    /// Its value.
    pub value: u16,
    /// The process that changed it last, or found it as it wanted it.
    pub last: u32,
    /// How many threads wait for it to be larger.
    pub waiting_for_more: u32,
    /// How many threads wait for it to be 0.
    pub waiting_for_zero: u32,
}

/// One of the operations of semop(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Which semaphore.
    pub number: u16,
    /// What is added; 0: it must be 0.
    pub add: i16,
    /// IPC_NOWAIT.
    pub waits: bool,
    /// SEM_UNDO.
    pub undo: bool,
}

/// Why operations cannot be done: the first one that cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    /// It must wait.
    Wait(Operation),
    Errno(Errno),
}

impl Object for Set {
    fn permissions(&self) -> &SpinLock<Permissions> {
        &self.permissions
    }

    fn table() -> &'static Table<Self> {
        &SETS
    }
}

/// The set of a key, or a new one of so many semaphores, all 0: semget(2).
///
/// # Errors
/// Those of [`Table::get`]; EINVAL: a bad number of semaphores; ENOSPC; ENOMEM.
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
        let past = Past { operated: 0, changed: now() };
        Ok(Set {
            permissions: SpinLock::new(permissions),
            state: SpinLock::new(State { semaphores, undos: BTreeMap::new(), past }),
            len,
            changed: WaitList::new(),
        })
    })
}

impl Drop for Set {
    fn drop(&mut self) {
        ALL.fetch_sub(self.len, Relaxed);
    }
}

/// Does all of the operations, or none.
fn try_all(
    semaphores: &mut [Semaphore],
    mut undo: Option<&mut [i16]>,
    all: &[Operation],
    by: u32,
) -> core::result::Result<(), Refused> {
    let mut outcome = Ok(());
    let mut done = 0;
    for operation in all {
        let semaphore = &mut semaphores[usize::from(operation.number)];
        let value = i32::from(semaphore.value) + i32::from(operation.add);
        let refused = if (operation.add == 0 && value != 0) || value < 0 {
            Some(Refused::Wait(*operation))
        } else if value > MOST {
            Some(Refused::Errno(Errno::ERANGE))
        } else if operation.undo
            && let Some(undo) = &mut undo
        {
            let adjust = i32::from(undo[usize::from(operation.number)]) - i32::from(operation.add);
            match i16::try_from(adjust) {
                Ok(adjust) if adjust != i16::MIN => {
                    undo[usize::from(operation.number)] = adjust;
                    None
                }
                _ => Some(Refused::Errno(Errno::ERANGE)),
            }
        } else {
            None
        };
        if let Some(refused) = refused {
            outcome = Err(refused);
            break;
        }
        semaphore.value = value as u16;
        done += 1;
    }
    if outcome.is_err() {
        for operation in all[..done].iter().rev() {
            let semaphore = &mut semaphores[usize::from(operation.number)];
            semaphore.value = (i32::from(semaphore.value) - i32::from(operation.add)) as u16;
            if operation.undo
                && let Some(undo) = &mut undo
            {
                undo[usize::from(operation.number)] += operation.add;
            }
        }
    } else {
        all.iter().for_each(|operation| semaphores[usize::from(operation.number)].last = by);
    }
    outcome
}

impl Semaphore {
    /// How many threads wait for what an operation waits for.
    fn waiting(&mut self, operation: &Operation) -> &mut u32 {
        if operation.add == 0 { &mut self.waiting_for_zero } else { &mut self.waiting_for_more }
    }
}

/// A semop(2) that is under way. Whoever ends it, whatever came of it, calls [`Operations::end`].
pub struct Operations {
    set: WeakRc<Set>,
    all: Vec<Operation>,
    by: u32,
    /// What it waits for, as which it is counted.
    waits_for: Option<Operation>,
}

impl Operations {
    /// Nothing is done yet.
    ///
    /// # Errors
    /// EINVAL: there is no such set.
    pub fn new(id: i32, all: Vec<Operation>, by: u32, cx: &Cx) -> Result<Self> {
        Ok(Operations { set: SETS.find(id, cx)?.downgrade(), all, by, waits_for: None })
    }

    /// Checks them.
    ///
    /// # Errors
    /// EFBIG: there is no such semaphore; EACCES; EIDRM.
    pub fn check(&self, who: &Credentials, cx: &Cx) -> Result<()> {
        let set = self.set.upgrade(cx).map_err(|_| Errno::EIDRM)?;
        if self.all.iter().any(|operation| usize::from(operation.number) >= set.len) {
            return Err(Errno::EFBIG);
        }
        let wanted = if self.all.iter().any(|operation| operation.add != 0) { WRITE } else { READ };
        set.permissions.lock(cx).check(wanted, who)
    }

    /// The set, if something is to be undone there at the process's end for the first time.
    pub fn begins_undo(&self, cx: &Cx) -> Option<WeakRc<Set>> {
        let undoes = self.all.iter().any(|operation| operation.undo);
        let set = self.set.upgrade(cx).ok().filter(|_| undoes)?;
        let begins = !set.state.lock(cx).undos.contains_key(&self.by);
        begins.then_some(self.set)
    }

    /// Makes room for what is to be undone at the process's end.
    ///
    /// # Errors
    /// ENOMEM; EIDRM.
    pub fn begin_undo(&self, cx: &Cx) -> Result<()> {
        let set = self.set.upgrade(cx).map_err(|_| Errno::EIDRM)?;
        let mut undo = Vec::new();
        undo.try_reserve_exact(set.len).map_err(|_| Errno::ENOMEM)?;
        undo.resize(set.len, 0);
        set.state.lock(cx).undos.entry(self.by).or_insert(undo.into_boxed_slice());
        Ok(())
    }

    /// Does them, if that can be done now.
    ///
    /// # Errors
    /// EAGAIN: it would wait and must not; ERANGE; EIDRM. `Block`, with the waker entered.
    pub fn step(&mut self, waker: Option<Waker>, cx: &Cx) -> Step<()> {
        let set = self.set.upgrade(cx).map_err(|_| Errno::EIDRM)?;
        if let Some(waker) = waker {
            set.changed.register(waker, cx);
        }
        let mut state = set.state.lock(cx);
        let State { semaphores, undos, past } = &mut *state;
        if let Some(before) = self.waits_for.take() {
            *semaphores[usize::from(before.number)].waiting(&before) -= 1;
        }
        let undo = undos.get_mut(&self.by).map(|undo| &mut **undo);
        match try_all(semaphores, undo, &self.all, self.by) {
            Ok(()) => {
                past.operated = now();
                drop(state);
                if self.all.iter().any(|operation| operation.add != 0) {
                    set.changed.wake();
                }
                Ok(())
            }
            Err(Refused::Errno(error)) => Err(error.into()),
            Err(Refused::Wait(operation)) if !operation.waits => Err(Errno::EAGAIN.into()),
            Err(Refused::Wait(operation)) => {
                *semaphores[usize::from(operation.number)].waiting(&operation) += 1;
                self.waits_for = Some(operation);
                Err(Stop::Block)
            }
        }
    }

    /// Nobody waits any more.
    pub fn end(self, cx: &Cx) {
        if let Some(before) = self.waits_for
            && let Ok(set) = self.set.upgrade(cx)
        {
            *set.state.lock(cx).semaphores[usize::from(before.number)].waiting(&before) -= 1;
        }
    }
}

impl Set {
    /// Whose it is, and when what was done.
    pub fn status(&self, cx: &Cx) -> (Permissions, Past) {
        let permissions = *self.permissions.lock(cx);
        (permissions, self.state.lock(cx).past)
    }

    /// One of its semaphores.
    ///
    /// # Errors
    /// EACCES; EINVAL: there is none of that number.
    pub fn semaphore(&self, number: i32, who: &Credentials, cx: &Cx) -> Result<Semaphore> {
        let number = usize::try_from(number).ok().filter(|number| *number < self.len);
        self.permissions.lock(cx).check(READ, who)?;
        Ok(self.state.lock(cx).semaphores[number.ok_or(Errno::EINVAL)?])
    }

    /// The values of all: GETALL.
    ///
    /// # Errors
    /// EACCES; ENOMEM.
    pub fn values(&self, who: &Credentials, cx: &Cx) -> Result<Vec<u16>> {
        self.permissions.lock(cx).check(READ, who)?;
        let mut values = Vec::new();
        values.try_reserve_exact(self.len).map_err(|_| Errno::ENOMEM)?;
        values.extend(self.state.lock(cx).semaphores.iter().map(|semaphore| semaphore.value));
        Ok(values)
    }

    /// Checks that somebody may set its values.
    ///
    /// # Errors
    /// EACCES.
    pub fn check_write(&self, who: &Credentials, cx: &Cx) -> Result<()> {
        self.permissions.lock(cx).check(WRITE, who)
    }

    /// Sets values from a number on, and forgets what was to be undone there: SETVAL, SETALL. `by`: the calling process.
    ///
    /// # Errors
    /// EACCES; EINVAL: there is none of that number; ERANGE.
    pub fn set_values(&self, from: i32, values: &[i32], by: u32, who: &Credentials, cx: &Cx) -> Result<()> {
        if values.iter().any(|value| !(0..=MOST).contains(value)) {
            return Err(Errno::ERANGE);
        }
        let from = usize::try_from(from).map_err(|_| Errno::EINVAL)?;
        let end = from.checked_add(values.len()).filter(|end| *end <= self.len).ok_or(Errno::EINVAL)?;
        self.permissions.lock(cx).check(WRITE, who)?;
        let mut state = self.state.lock(cx);
        for (semaphore, value) in state.semaphores[from..end].iter_mut().zip(values) {
            (semaphore.value, semaphore.last) = (*value as u16, by);
        }
        state.undos.values_mut().for_each(|undo| undo[from..end].fill(0));
        state.past.changed = now();
        drop(state);
        self.changed.wake();
        Ok(())
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

    /// A process has ended: what is to be undone of its operations is. A value stays within its bounds. Linux: `exit_sem`.
    pub fn undo(&self, process: u32, cx: &impl NoSuspend) {
        let mut state = self.state.lock(cx);
        let State { semaphores, undos, past } = &mut *state;
        let Some(undo) = undos.remove(&process) else { return };
        for (semaphore, add) in semaphores.iter_mut().zip(&undo).filter(|(_, add)| **add != 0) {
            semaphore.value = (i32::from(semaphore.value) + i32::from(*add)).clamp(0, MOST) as u16;
            semaphore.last = process;
        }
        past.operated = now();
        drop(state);
        self.changed.wake();
    }
}

/// Removes a set: IPC_RMID.
///
/// # Errors
/// EINVAL: there is none; EPERM; EIDRM.
pub fn remove(id: i32, who: &Credentials, cx: &Cx) -> Result<()> {
    let set = SETS.find(id, cx)?;
    set.permissions.lock(cx).check_owner(who)?;
    drop(SETS.remove(id, false, cx)?);
    set.changed.wake();
    Ok(())
}

/// How many semaphores all sets have: SEM_INFO.
pub fn all_semaphores() -> usize {
    ALL.load(Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(number: u16, add: i16, undo: bool) -> Operation {
        Operation { number, add, waits: true, undo }
    }

    fn of(values: &[u16]) -> Vec<Semaphore> {
        values.iter().map(|value| Semaphore { value: *value, ..Semaphore::default() }).collect()
    }

    fn values(semaphores: &[Semaphore]) -> Vec<u16> {
        semaphores.iter().map(|semaphore| semaphore.value).collect()
    }

    #[test]
    fn operations_are_done_whole_or_not_at_all() {
        let mut semaphores = of(&[1, 0, 5]);
        let mut undo = [0; 3];
        let all = [operation(0, -1, true), operation(2, -3, true), operation(1, -1, true)];
        let outcome = try_all(&mut semaphores, Some(&mut undo), &all, 7);
        assert_eq!(outcome, Err(Refused::Wait(all[2])));
        assert_eq!((values(&semaphores), undo), (alloc::vec![1, 0, 5], [0; 3]));
        assert_eq!(try_all(&mut semaphores, Some(&mut undo), &all[..2], 7), Ok(()));
        assert_eq!((values(&semaphores), undo), (alloc::vec![0, 0, 2], [1, 0, 3]));
        assert_eq!(semaphores[2].last, 7);
    }

    #[test]
    fn each_sees_what_those_before_it_did() {
        let mut semaphores = of(&[0]);
        assert_eq!(
            try_all(
                &mut semaphores,
                None,
                &[operation(0, 2, false), operation(0, -2, false), operation(0, 0, false)],
                1
            ),
            Ok(())
        );
        assert_eq!(values(&semaphores), [0]);
    }

    #[test]
    fn values_and_what_is_undone_have_bounds() {
        let mut semaphores = of(&[MOST as u16]);
        assert_eq!(try_all(&mut semaphores, None, &[operation(0, 1, false)], 1), Err(Refused::Errno(Errno::ERANGE)));
        let mut undo = [i16::MAX];
        let outcome = try_all(&mut semaphores, Some(&mut undo), &[operation(0, -1, true)], 1);
        assert_eq!((outcome, values(&semaphores)), (Err(Refused::Errno(Errno::ERANGE)), alloc::vec![MOST as u16]));
    }
}
