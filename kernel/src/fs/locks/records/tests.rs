//! Record locks against a model of single bytes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::vec::Vec;

use super::*;

const OWNERS: usize = 4;
const BYTES: usize = 600;

/// A process by number; whether it is gone.
static GONE: [AtomicBool; OWNERS] = [const { AtomicBool::new(false) }; OWNERS];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Process(usize);

impl Owner for Process {
    fn is_gone(&self) -> bool {
        GONE[self.0].load(Ordering::Relaxed)
    }
}

fn settle(records: &mut Records<Process>) {
    while !records.pending.is_empty() {
        records.settle_piece();
    }
}

/// Each lock's owner, kind, and bytes, by the model: neighbours of one kind are one.
fn told(model: &[[Option<LockKind>; OWNERS]]) -> Vec<(usize, LockKind, u64, u64)> {
    let mut locks: Vec<(usize, LockKind, u64, u64)> = Vec::new();
    for owner in 0..OWNERS {
        for (byte, kinds) in model.iter().enumerate() {
            let Some(kind) = kinds[owner] else { continue };
            match locks.last_mut() {
                Some(last) if last.0 == owner && last.1 == kind && last.3 + 1 == byte as u64 => last.3 = byte as u64,
                _ => locks.push((owner, kind, byte as u64, byte as u64)),
            }
        }
    }
    locks.sort_by_key(|lock| (lock.0, lock.2));
    locks
}

#[test]
fn changes_in_pieces_agree_with_a_byte_by_byte_model() {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random as usize % below
    };
    let mut records = Records::default();
    let mut model = [[None; OWNERS]; BYTES];
    let mut changes_in_pieces = 0;
    for round in 0..20_000 {
        let owner = Process(next(OWNERS));
        let first = next(BYTES);
        // Mostly single bytes, so that there are many; now and then nearly all.
        let last = if next(200) == 0 { BYTES - 1 } else { (first + next(2)).min(BYTES - 1) };
        let first = if last == BYTES - 1 { first / 4 } else { first };
        let kind = if next(2) == 0 { LockKind::Shared } else { LockKind::Exclusive };
        let (from, to) = (first as u64, last as u64);
        match next(300) {
            0 => {
                // It ends; another one begins with its number once its locks are thrown out.
                GONE[owner.0].store(true, Ordering::Relaxed);
                records.pending.push_back(Change { what: Replacement::Purge, at: (0, 0, 0) });
                settle(&mut records);
                GONE[owner.0].store(false, Ordering::Relaxed);
                model.iter_mut().for_each(|kinds| kinds[owner.0] = None);
            }
            1 => {
                let had_some = model.iter().any(|kinds| kinds[owner.0].is_some());
                let is_known = records.pending.is_empty();
                let reported = records.replace(owner, 0, u64::MAX, None, next(2) == 0);
                assert!(!is_known || reported == had_some, "round {round}");
                model.iter_mut().for_each(|kinds| kinds[owner.0] = None);
            }
            2..60 => {
                records.replace(owner, from, to, None, next(2) == 0);
                model[first..=last].iter_mut().for_each(|kinds| kinds[owner.0] = None);
            }
            _ => {
                settle(&mut records);
                let wanted = RecordLock { owner, pid: 0, kind, first: from, last: to };
                let rules_out = |(byte, kinds): (usize, &[Option<LockKind>; OWNERS])| {
                    let excludes = |other: &Option<LockKind>| {
                        other.is_some_and(|other| other == LockKind::Exclusive || kind == LockKind::Exclusive)
                    };
                    let others = kinds.iter().enumerate().filter(|&(other, _)| other != owner.0);
                    let mut others = others.filter(|(_, other)| excludes(other));
                    others.next().map(|_| byte as u64)
                };
                let expected = model.iter().enumerate().take(last + 1).skip(first).find_map(rules_out);
                let found = records.conflict(&wanted);
                assert_eq!(found.map(|lock| lock.first.max(from)), expected, "round {round}");
                if found.is_none() {
                    records.replace(owner, from, to, Some(wanted), next(2) == 0);
                    model[first..=last].iter_mut().for_each(|kinds| kinds[owner.0] = Some(kind));
                }
            }
        }
        changes_in_pieces += usize::from(!records.pending.is_empty());
        records.settle_piece();
        if next(4) == 0 {
            settle(&mut records);
            let mut locks: Vec<_> =
                records.locks.values().map(|lock| (lock.owner.0, lock.kind, lock.first, lock.last)).collect();
            locks.sort_by_key(|lock| (lock.0, lock.2));
            assert_eq!(locks, told(&model), "round {round}");
            assert_eq!(records.classes.values().sum::<usize>(), locks.len());
            assert_eq!(records.owners.values().map(|own| own.locks).sum::<usize>(), locks.len());
        }
    }
    assert!(changes_in_pieces > 100, "{changes_in_pieces} changes in pieces");
}

#[test]
fn once_all_owners_have_ended_the_locks_can_be_left_as_a_whole() {
    let mut records = Records::default();
    let lock = |owner, first| RecordLock { owner, pid: 1, kind: LockKind::Shared, first, last: first };
    let [one, other] = [Process(0), Process(1)];
    for first in [0, 2, 4] {
        for owner in [one, other] {
            records.replace(owner, first, first, Some(lock(owner, first)), false);
        }
    }
    assert!(!records.end_owner(&one) && !records.end_owner(&one));
    // Who has given up all of its locks counts no more.
    let mut others = Records::default();
    others.replace(one, 0, 0, Some(lock(one, 0)), false);
    others.replace(other, 0, 0, Some(lock(other, 0)), false);
    others.replace(other, 0, 9, None, false);
    assert!(others.end_owner(&one));
    // What is to be set is not lost.
    records.pending.push_back(Change { what: Replacement::Purge, at: (0, 0, 0) });
    assert!(!records.end_owner(&other));
    settle(&mut records);
    assert!(records.end_owner(&other));
}
