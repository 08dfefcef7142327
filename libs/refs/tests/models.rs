//! Collections beside simple models of themselves, under random operations from fixed seeds.
#![cfg(not(ebb_loom))]

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use refs::{Cx, HandleEnd, HandleTable, List, Position, Realm, Slab, StrongRc, WeakRc};

/// Objects are freed by whoever is quiescent next: tests that count them must not overlap.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
static DROPPED: AtomicUsize = AtomicUsize::new(0);

struct Noted(u64);

impl Drop for Noted {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Numbers without pattern (a multiplicative generator, its upper half).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit
    }
}

/// Runs `steps` with several seeds, each to its end, where all objects that it says it made must be freed.
fn with_seeds(steps: impl Fn(&mut Random, &mut Cx) -> usize) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    // SAFETY: the context ends before it.
    let _core = unsafe { refs::reclaim::Core::register() };
    // SAFETY: this thread has no other Cx, and it is registered.
    let mut cx = unsafe { Cx::new(core::ptr::null()) };
    for seed in 1..=20 {
        DROPPED.store(0, Ordering::Relaxed);
        let made = steps(&mut Random(seed), &mut cx);
        refs::reclaim::reclaim(&mut cx);
        assert_eq!((DROPPED.load(Ordering::Relaxed), refs::reclaim::waiting()), (made, 0), "seed {seed}");
    }
}

#[test]
fn a_list_does_what_a_deque_does() {
    with_seeds(|random, cx| {
        let mut list: List<Noted> = List::new();
        let mut model: VecDeque<(Position, u64)> = VecDeque::new();
        let mut old: Vec<Position> = Vec::new();
        let mut made = 0;
        for step in 0..2000u64 {
            let mut object = || {
                made += 1;
                StrongRc::new(Noted(step))
            };
            match random.below(7) {
                0 => model.push_back((list.push_back(object()), step)),
                1 => model.push_front((list.push_front(object()), step)),
                2 if !model.is_empty() => {
                    let at = random.below(model.len());
                    let place = list.insert_after(model[at].0, object()).ok().unwrap();
                    model.insert(at + 1, (place, step));
                }
                3 => {
                    let taken = list.pop_front();
                    assert_eq!(taken.as_ref().map(|taken| taken.get(cx).0), model.front().map(|entry| entry.1));
                    old.extend(model.pop_front().map(|entry| entry.0));
                }
                4 => {
                    let taken = list.pop_back();
                    assert_eq!(taken.map(|taken| taken.get(cx).0), model.back().map(|entry| entry.1));
                    old.extend(model.pop_back().map(|entry| entry.0));
                }
                _ if !model.is_empty() => {
                    let (place, number) = model.remove(random.below(model.len())).unwrap();
                    let taken = list.remove(place).unwrap();
                    assert_eq!(taken.get(cx).0, number);
                    taken.destroy(cx);
                    old.push(place);
                }
                _ => assert!(list.is_empty()),
            }
            assert_eq!(list.len(), model.len());
            assert!(list.iter().map(|name| name.upgrade(cx).unwrap().0).eq(model.iter().map(|entry| entry.1)));
            assert!(old.iter().rev().take(20).all(|&place| list.weak(place).is_none()));
        }
        made
    });
}

#[test]
fn a_slab_does_what_a_map_does() {
    with_seeds(|random, cx| {
        let realm = Realm::new();
        let mut shared: Slab<Noted> = Slab::new();
        let mut local = Slab::new_in(&realm);
        let mut model: BTreeMap<usize, (u64, WeakRc<Noted>, usize)> = BTreeMap::new();
        let mut old: Vec<WeakRc<Noted>> = Vec::new();
        let mut made = 0;
        for step in 0..3000u64 {
            if random.below(100) < 48 + (step / 1000) as usize {
                let number = shared.insert(Noted(step));
                let entry = (step, shared.weak(number).unwrap(), local.insert(Noted(step)));
                assert!(model.insert(number, entry).is_none());
                made += 2;
            } else if !model.is_empty() {
                let number = *model.keys().nth(random.below(model.len())).unwrap();
                let (value, name, in_local) = model.remove(&number).unwrap();
                assert_eq!(name.upgrade(cx).map(|object| object.0), Ok(value));
                let (one, two) = (shared.remove(number).unwrap(), local.remove(in_local).unwrap());
                if random.below(2) == 0 {
                    one.destroy(cx);
                    two.destroy(cx);
                } else {
                    drop((one, two));
                }
                assert!(name.is_gone() && shared.get(number, cx).is_none());
                old.push(name);
            }
            if random.below(10) == 0 {
                refs::reclaim::reclaim(cx);
                realm.quiescent(cx);
            }
        }
        assert_eq!(
            shared.iter().map(|(number, _)| number).collect::<Vec<_>>(),
            model.keys().copied().collect::<Vec<_>>()
        );
        for (number, (value, name, in_local)) in &model {
            assert_eq!((shared.get(*number, cx).unwrap().0, name.upgrade(cx).unwrap().0), (*value, *value));
            assert_eq!(local.get(*in_local, cx).unwrap().0, *value);
        }
        assert!(old.iter().all(WeakRc::is_gone));
        drop((shared, local));
        realm.close(cx).unwrap();
        made
    });
}

#[test]
fn a_handle_table_gives_the_lowest_free_number_as_a_set_would() {
    with_seeds(|random, cx| {
        let mut table: HandleTable<Noted, u64> = HandleTable::default();
        let mut model: BTreeMap<usize, u64> = BTreeMap::new();
        let mut made = 0;
        for step in 0..2000u64 {
            let from = random.below(4) * 50;
            if random.below(2) == 0 {
                made += 1;
                let number = table.insert(StrongRc::new(Noted(step)), step, HandleEnd::Seen, from, 200);
                let expected = (from..200).find(|number| !model.contains_key(number));
                assert_eq!(number.as_ref().ok(), expected.as_ref());
                match number {
                    Ok(number) => drop(model.insert(number, step)),
                    Err(refused) => refused.destroy(cx),
                }
            } else {
                let number = random.below(200);
                let taken = table.remove(number);
                assert_eq!(taken.as_ref().map(|taken| taken.get(cx).0), model.remove(&number));
                drop(taken);
            }
            assert!(table.indices().eq(model.keys().copied()));
            assert_eq!(table.next(from), model.range(from..).next().map(|(number, _)| *number));
        }
        drop(table);
        made
    });
}
