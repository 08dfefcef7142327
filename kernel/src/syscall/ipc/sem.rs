//! semget(2), semop(2), semtimedop(2), semctl(2).

use alloc::vec::Vec;

use frame::Cx;
use linux_raw_sys::general as abi;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::super::{Args, Call, Entry};
use super::{IPC_INFO, IPC_NOWAIT, IPC_RMID, IPC_SET, IPC_STAT, IpcPerm, asked, pid, who};
use crate::credentials::Credentials;
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::ipc::READ;
use crate::ipc::sem::{
    self, Begun, MOST, MOST_AT_ONCE, MOST_IN_ALL, MOST_IN_SET, Operation, Operations, SETS, Set, left,
};
use crate::process;
use crate::step::{Caller, Interruption, Patience, Step, complete_async, complete_in_turn_async};
use crate::time::clock::TimeSpec;
use crate::user_memory::UserIn;

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[
    Entry::new(abi::__NR_semget, "semget", Call::Step(semget)),
    Entry::new(abi::__NR_semop, "semop", Call::Async(semop_async)),
    Entry::new(abi::__NR_semtimedop, "semtimedop", Call::Async(semtimedop_async)),
    Entry::new(abi::__NR_semctl, "semctl", Call::Async(semctl_async)),
];

/// Of semop(2).
const SEM_UNDO: u32 = 0x1000;
/// Of semctl(2).
const GETPID: i32 = 11;
const GETVAL: i32 = 12;
const GETALL: i32 = 13;
const GETNCNT: i32 = 14;
const GETZCNT: i32 = 15;
const SETVAL: i32 = 16;
const SETALL: i32 = 17;
const SEM_STAT: i32 = 18;
const SEM_INFO: i32 = 19;
const SEM_STAT_ANY: i32 = 20;

/// What Linux says, whatever the limits are, that has no meaning any more: SEMMAP and SEMMNU, SEMUME.
const LINUX_MOST_IN_ALL: i32 = 1_024_000_000;
const LINUX_MOST_AT_ONCE: i32 = 500;

/// So many values are checked before interrupts are let in.
const VALUES_AT_ONCE: usize = 8192;

/// `struct sembuf`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct SemBuf {
    number: u16,
    add: i16,
    flags: u16,
}

/// `struct semid64_ds`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct SemIdDs {
    permissions: IpcPerm,
    operated_at: i64,
    unused_1: u64,
    changed_at: i64,
    unused_2: u64,
    len: u64,
    unused_3: [u64; 2],
}

/// `struct seminfo`.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct SemInfo {
    map: i32,
    most: i32,
    most_in_all: i32,
    most_undos: i32,
    most_in_set: i32,
    most_at_once: i32,
    most_undos_each: i32,
    undo_bytes: i32,
    most_value: i32,
    most_adjusted: i32,
}

fn semget(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    crate::memory::admit()?;
    Ok(sem::get((args.int(0), args.int(2) as u32), args.int(1), &who(me, cx)?, cx)? as usize)
}

fn semop_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    operate_async(cx, me, args, None)
}

fn semtimedop_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let time = match args.input::<TimeSpec>(3).non_null() {
        Some(time) => Some(me.read_async(cx, time)?),
        None => None,
    };
    operate_async(cx, me, args, time)
}

fn operate_async(cx: &mut Cx, me: &mut Current, args: &Args, time: Option<TimeSpec>) -> Result<usize> {
    let (id, count) = (args.int(0), args.int(2) as u32 as u64);
    if count > MOST_AT_ONCE.get() {
        return Err(Errno::E2BIG);
    }
    let all = read_async(cx, me, args.input::<SemBuf>(1), count as usize)?;
    if count == 0 || id < 0 {
        return Err(Errno::EINVAL);
    }
    let patience = match time {
        Some(time) => Patience::Until(frame::time::now().saturating_add(time.nanoseconds()?)),
        None => Patience::Forever,
    };
    let by = pid(me, cx)?;
    let mut operations = Operations::new(id, all, by, cx)?;
    let who = who(me, cx)?;
    operations.check(&who, cx)?;
    if let Some(set) = operations.begins_undo(cx) {
        crate::memory::admit()?;
        process::note_undo(cx, me, set)?;
    }
    let outcome = complete_async(cx, me, patience, |cx, _, waker| operations.step(&who, waker, cx));
    if outcome.is_err()
        && me.interrupted(Interruption::KillOnly, cx).is_none()
        && let Some(begun) = operations.catch_up(cx)
    {
        // What was done before a signal came, or before the time was up, counts.
        let _ = complete_in_turn_async(cx, me, |cx, _, _| begun.step(cx));
    }
    operations.end(outcome, cx).map(|()| 0).map_err(|error| match error {
        Errno::ETIMEDOUT => Errno::EAGAIN,
        // A semop(2) is never begun again.
        Errno::RESTART_SYS => Errno::EINTR,
        error => error,
    })
}

fn read_async(cx: &mut Cx, me: &mut Current, from: UserIn<SemBuf>, count: usize) -> Result<Vec<Operation>> {
    let raw = complete_async(cx, me, Patience::Forever, |cx, me, _| me.memory(cx)?.read_slice(from.slice(count)))?;
    let of_raw = |raw: &SemBuf| {
        let flags = u32::from(raw.flags);
        Operation { number: raw.number, add: raw.add, waits: flags & IPC_NOWAIT == 0, undo: flags & SEM_UNDO != 0 }
    };
    Ok(raw.iter().map(of_raw).collect())
}

fn semctl_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let (id, number, command) = (args.int(0), args.int(1), args.int(2));
    if id < 0 {
        return Err(Errno::EINVAL);
    }
    let who = who(me, cx)?;
    let by = pid(me, cx)?;
    match command {
        IPC_RMID => {
            let removed = complete_in_turn_async(cx, me, |cx, _, _| sem::remove(id, &who, cx))?;
            if let Err(killed) = complete_in_turn_async(cx, me, |cx, _, _| removed.step(cx)) {
                left::leave_removed(removed, cx);
                return Err(killed);
            }
        }
        SETVAL => {
            let set = |cx: &Cx, _: &Current, _| sem::set_value(id, number, args.int(3), by, &who, cx);
            let begun = complete_in_turn_async(cx, me, set)?;
            finish_async(cx, me, begun)?;
        }
        SETALL => {
            let (set, mut values) = complete_in_turn_async(cx, me, |cx, me, _| {
                let set = SETS.find(id, cx)?;
                set.check_write(&who, cx)?;
                Ok((set.downgrade(), me.memory(cx)?.read_slice(args.input::<u16>(3).slice(set.len))?))
            })?;
            for some in values.chunks(VALUES_AT_ONCE) {
                sem::check_values(some)?;
                frame::irq::poll(cx);
            }
            let begun = complete_in_turn_async(cx, me, |cx, _, _| sem::set_all(set, &mut values, by, cx))?;
            finish_async(cx, me, begun)?;
        }
        _ => return complete_in_turn_async(cx, me, |cx, me, _| ask(cx, me, args, &who)),
    }
    Ok(0)
}

/// Lets on who can go on after a change, or leaves that to others if the caller is killed.
fn finish_async(cx: &mut Cx, me: &mut Current, begun: Option<Begun>) -> Result<()> {
    let Some(begun) = begun else { return Ok(()) };
    let outcome = complete_in_turn_async(cx, me, |cx, _, _| begun.step(cx));
    outcome.inspect_err(|_| left::leave(begun, cx))
}

/// What semctl(2) does in one step.
fn ask(cx: &Cx, me: &Current, args: &Args, who: &Credentials) -> Step<usize> {
    let (id, number, command) = (args.int(0), args.int(1), args.int(2));
    let memory = me.memory(cx)?;
    match command {
        IPC_SET => {
            let new = memory.read(args.input::<SemIdDs>(3))?;
            SETS.find(id, cx)?.set(new.permissions.owner()?, who, cx)?;
        }
        IPC_STAT | SEM_STAT | SEM_STAT_ANY => {
            let (id, set, result) = asked::<Set>(id, command, cx)?;
            let (permissions, past) = set.status(cx);
            if command != SEM_STAT_ANY {
                permissions.check(READ, who)?;
            }
            let answer = SemIdDs {
                permissions: IpcPerm::new(id, &permissions),
                operated_at: past.operated,
                unused_1: 0,
                changed_at: past.changed,
                unused_2: 0,
                len: set.len as u64,
                unused_3: [0; 2],
            };
            memory.write(args.output::<SemIdDs>(3), &answer)?;
            return Ok(result);
        }
        IPC_INFO | SEM_INFO => {
            let [most, in_set, in_all, at_once] =
                [SETS.most.get(), MOST_IN_SET.get(), MOST_IN_ALL.get(), MOST_AT_ONCE.get()].map(|most| most as i32);
            let mut answer = SemInfo {
                map: LINUX_MOST_IN_ALL,
                most,
                most_in_all: in_all,
                most_undos: LINUX_MOST_IN_ALL,
                most_in_set: in_set,
                most_at_once: at_once,
                most_undos_each: LINUX_MOST_AT_ONCE,
                undo_bytes: 20,
                most_value: MOST,
                most_adjusted: MOST,
            };
            if command == SEM_INFO {
                (answer.undo_bytes, answer.most_adjusted) = (SETS.count(cx) as i32, sem::all_semaphores() as i32);
            }
            memory.write(args.output::<SemInfo>(3), &answer)?;
            return Ok(SETS.last_place(cx)? as usize);
        }
        GETALL => {
            let values = SETS.find(id, cx)?.values(who, cx)?;
            memory.write_slice(args.output::<u16>(3).slice(values.len()), &values)?;
        }
        GETVAL | GETPID | GETNCNT | GETZCNT => {
            let semaphore = SETS.find(id, cx)?.semaphore(number, who, cx)?;
            let value = match command {
                GETVAL => semaphore.value.into(),
                GETPID => semaphore.last,
                GETNCNT => semaphore.waiting_for_more,
                _ => semaphore.waiting_for_zero,
            };
            return Ok(value as usize);
        }
        _ => return Err(Errno::EINVAL.into()),
    }
    Ok(0)
}
