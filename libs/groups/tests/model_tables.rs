//! Random programs on arenas and tables, against maps: an object is found by its name as long as it is there, and by no other name; all chunks come
//! back; every destructor runs once.

mod random;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use groups::{Arena, Chunks, Cost, Exports, Imports, Name, Objects, Scrub, Slot, Stock, Tree, classes};
use random::{Random, seeds};

classes! {
    enum Held { Link = Cost::eager(10), Object = Cost::deferred(5) }
}

const STEPS: usize = if cfg!(miri) { 300 } else { 3_000 };

/// A value that knows whether it is whole, in places of a size and alignment that do not divide a chunk.
#[derive(Clone, Copy, PartialEq, Debug)]
#[repr(align(32))]
struct Wide([u64; 21]);

fn wide(n: u64) -> Wide {
    Wide(std::array::from_fn(|i| n ^ i as u64))
}

#[test]
fn an_arena_does_what_a_map_does() {
    for seed in seeds(0..20) {
        let random = Random::new(seed);
        let pool = Chunks::new(12);
        let mut arenas = [Arena::with_most(&pool, 4), Arena::new(&pool)];
        let mut models: [HashMap<Name<Wide>, u64>; 2] = Default::default();
        let mut dead: Vec<Name<Wide>> = Vec::new();
        for step in 0..STEPS as u64 {
            let which = random.below(2);
            let (arena, model) = (&mut arenas[which], &mut models[which]);
            let some = model.keys().next().copied();
            match random.below(100) {
                0..=69 => match arena.insert(wide(step)) {
                    Ok(name) => assert!(model.insert(name, step).is_none() && !dead.contains(&name)),
                    Err(_) => assert!(arena.chunks() == 4 && which == 0 || pool.lens() == (0, 12)),
                },
                70..=97 => {
                    if let Some(name) = some {
                        let n = model.remove(&name).expect("it is there");
                        assert_eq!(arena.remove(name), Some(wide(n)));
                        dead.push(name);
                    }
                }
                98 if random.below(6) == 0 => {
                    let mut scrub = Scrub::default();
                    let chunks = arena.chunks();
                    arena.scrub(&mut scrub);
                    assert_eq!((scrub.chunks, arena.len(), arena.chunks()), (chunks as u64, 0, 0));
                    dead.extend(model.drain().map(|(name, _)| name).take(50));
                }
                _ => {
                    if let Some(name) = some {
                        *arena.get_mut(name).expect("it is there") = wide(step);
                        model.insert(name, step);
                    }
                }
            }
            assert_eq!(arenas[which].len(), models[which].len());
            if step % 500 == 0 {
                for (arena, model) in arenas.iter().zip(&models) {
                    assert!(model.iter().all(|(&name, &n)| arena.get(name) == Some(&wide(n))));
                    assert!(dead.iter().all(|&name| arena.get(name).is_none()));
                }
                assert!(models[1].keys().all(|&name| arenas[0].get(name).is_none()), "a name of another arena");
                dead.drain(..dead.len().saturating_sub(100));
            }
        }
        drop(arenas);
        assert_eq!(pool.lens().1, 0);
    }
}

#[test]
fn chunks_serve_objects_of_other_types_afterwards() {
    let pool = Chunks::new(3);
    for round in 0..20u64 {
        let mut bytes = Arena::with_most(&pool, 1);
        let byte = bytes.insert(round as u8).unwrap();
        let mut wides = Arena::new(&pool);
        let names: Vec<_> = std::iter::from_fn(|| wides.insert(wide(round)).ok()).collect();
        assert!(names.iter().all(|&name| wides.get(name) == Some(&wide(round))));
        assert_eq!(bytes.get(byte), Some(&(round as u8)));
        let mut nothing = Arena::new(&pool);
        assert!(nothing.insert(()).is_err() && pool.lens() == (0, 3));
        if round % 2 == 0 {
            wides.scrub(&mut Scrub::default());
            let unit = nothing.insert(()).unwrap();
            assert_eq!(nothing.get(unit), Some(&()));
        }
    }
    assert_eq!((pool.trim(2), pool.lens()), (2, (1, 0)));
}

static DROPPED: AtomicUsize = AtomicUsize::new(0);

struct Counted(u64);

impl Drop for Counted {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn tables_do_what_maps_do_and_every_destructor_runs_once() {
    let mut made = 0;
    for seed in seeds(0..20) {
        let random = Random::new(seed);
        let tree = Tree::new();
        let mut budget = tree.root();
        let mut stock = Stock::new(budget, 16);
        let mut imports = Imports::new(budget, Held::Link);
        let mut exports = Exports::new(budget, Held::Link);
        let mut objects = Objects::new(budget, Held::Object);
        let mut held: HashMap<u64, (Slot<Counted>, u32)> = HashMap::new();
        let mut exported: Vec<(u64, Slot<Counted>, u32)> = Vec::new();
        let mut there: Vec<(u64, Slot<Counted>)> = Vec::new();
        for n in 0..STEPS as u64 {
            let counted = || {
                made += 1;
                Counted(n)
            };
            match random.below(9) {
                0 | 1 => {
                    let key = random.below(40) as u64;
                    let keyed = || {
                        made += 1;
                        Counted(key)
                    };
                    let slot = imports.acquire(&mut stock, key, keyed).unwrap();
                    let (known, uses) = held.entry(key).or_insert((slot, 0));
                    assert_eq!(*known, slot);
                    *uses += 1;
                    assert_eq!(imports.get(slot).map(|link| link.0), Some(key));
                }
                2 | 3 => {
                    if let Some((&key, &mut (slot, ref mut uses))) = held.iter_mut().next() {
                        *uses -= 1;
                        let (is_last, link) = (*uses == 0, imports.release(&mut budget, slot));
                        assert_eq!(link.map(|link| link.0), is_last.then_some(key));
                        if is_last {
                            held.remove(&key);
                            assert!(imports.get(slot).is_none() && imports.find(&key).is_none());
                        }
                    }
                }
                4 => exported.push((n, exports.export(&mut stock, counted).unwrap(), 1)),
                5 => {
                    if exported.is_empty() {
                        continue;
                    }
                    let at = random.below(exported.len());
                    if random.below(2) == 0 {
                        assert!(exports.hold(exported[at].1));
                        exported[at].2 += 1;
                    } else {
                        exported[at].2 -= 1;
                        let (n, slot, uses) = exported[at];
                        assert_eq!(exports.release(&mut stock, slot).map(|link| link.0), (uses == 0).then_some(n));
                        if uses == 0 {
                            exported.swap_remove(at);
                            assert!(exports.get(slot).is_none() && !exports.hold(slot));
                        }
                    }
                }
                6 | 7 => there.push((n, objects.insert(&mut stock, counted).unwrap())),
                _ => {
                    if there.is_empty() {
                        continue;
                    }
                    let (n, slot) = there.swap_remove(random.below(there.len()));
                    assert_eq!(objects.remove(&mut stock, slot).map(|object| object.0), Some(n));
                    assert!(objects.get(slot).is_none());
                }
            }
            assert_eq!((imports.len(), exports.len(), objects.len()), (held.len(), exported.len(), there.len()));
        }
        assert!(there.iter().all(|&(n, slot)| objects.get(slot).is_some_and(|object| object.0 == n)));
        stock.settle();
        let usage = budget.usage().unwrap();
        assert_eq!(usage.count(Held::Link) as usize, held.len() + exported.len());
        assert_eq!(usage.count(Held::Object) as usize, there.len());

        let mut scrub = Scrub::default();
        let before = DROPPED.load(Ordering::Relaxed);
        imports.scrub(&mut scrub);
        exports.scrub(&mut scrub);
        objects.scrub(&mut scrub);
        assert_eq!(scrub.links as usize, held.len() + exported.len());
        assert_eq!(
            (scrub.deferred as usize, DROPPED.load(Ordering::Relaxed) - before),
            (there.len(), scrub.links as usize)
        );
        assert!(there.iter().all(|&(_, slot)| objects.get(slot).is_none()) && objects.iter().next().is_none());
        assert!(objects.insert(&mut stock, || unreachable!("it dies")).is_err());
        assert!(imports.acquire(&mut stock, 3, || unreachable!("it dies")).is_err());
        while objects.destroy_step(7) == 7 {}
        assert!(objects.is_empty());
        drop((imports, exports, objects));
        assert_eq!(DROPPED.load(Ordering::Relaxed), made);
        assert_eq!(budget.usage().unwrap().current, 0);
    }
}
