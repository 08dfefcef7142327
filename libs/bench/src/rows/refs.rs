//! References: `ebb-refs` beside counted pointers, generational keys and epochs.
//!
//! Each contender has the same 64 objects of 32 bytes in a table, and an operation takes them in turn, so that all of it is
//! in the first-level cache and no two operations depend on each other.

use std::rc::{Rc, Weak};
use std::sync::{Arc, Weak as ArcWeak};

use crossbeam_epoch as epoch;
use generational_arena::{Arena, Index};
use refs::{Cx, Local, Realm, Slab, StrongRc, WeakRc};
use slotmap::{DefaultKey, SlotMap};
use std::hint::black_box;

use crate::line::{BATCH, Goal, Line, Samples};

const OBJECTS: usize = 64;
const PASSES: usize = 16;

#[derive(Clone, Copy)]
struct Thing {
    value: u64,
    _more: [u64; 3],
}

fn thing(value: usize) -> Thing {
    Thing { value: value as u64, _more: [0; 3] }
}

/// Gives `test` the context of this thread.
fn with_cx<R>(test: impl FnOnce(&mut Cx) -> R) -> R {
    // SAFETY: the context ends before it.
    let _core = unsafe { refs::reclaim::Core::register() };
    // SAFETY: no caller of this function has another Cx on this thread, and `suspend_async` does not really suspend.
    test(&mut unsafe { Cx::new(core::ptr::null()) })
}

/// How the compiler sees a suspension.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Suspension {
    /// A call of something that it cannot look into.
    Call,
    /// A switch of stacks that is inlined, as those of `tasks::rt` are: all registers may change too.
    Inlined,
}

/// A suspension with nothing in it.
#[inline(always)]
fn suspend(how: Suspension) {
    #[inline(never)]
    fn call() {
        // SAFETY: an empty sequence of instructions.
        unsafe { core::arch::asm!("", options(nostack, preserves_flags)) };
    }
    match how {
        Suspension::Call => call(),
        // SAFETY: an empty sequence of instructions.
        Suspension::Inlined => unsafe {
            core::arch::asm!("", clobber_abi("C"), out("r12") _, out("r13") _, out("r14") _, out("r15") _);
        },
    }
}

/// The same for ours, with the report that each of our suspensions makes.
#[inline(always)]
fn suspend_async(cx: &mut Cx, how: Suspension) {
    // SAFETY: this thread is the only core.
    unsafe { refs::reclaim::quiescent(cx, 0, usize::MAX) };
    suspend(how);
}

/// One operation after the other, round and round over a table.
#[inline(always)]
fn passes<T>(s: &mut Samples, table: &[T], mut operation: impl FnMut(&T)) {
    let table: &[T; OBJECTS] = table.try_into().expect("all tables have that length");
    s.batches(OBJECTS * PASSES, || {
        for index in 0..OBJECTS * PASSES {
            operation(&table[index % OBJECTS]);
        }
    });
}

fn strong() -> Vec<StrongRc<Thing>> {
    (0..OBJECTS).map(|value| StrongRc::new(thing(value))).collect()
}

fn strong_in(realm: &Realm) -> Vec<StrongRc<Thing, Local>> {
    (0..OBJECTS).map(|value| StrongRc::new_in(thing(value), realm)).collect()
}

fn counted() -> Vec<Rc<Thing>> {
    (0..OBJECTS).map(|value| Rc::new(thing(value))).collect()
}

fn counted_across_threads() -> Vec<Arc<Thing>> {
    (0..OBJECTS).map(|value| Arc::new(thing(value))).collect()
}

fn slots() -> (SlotMap<DefaultKey, Thing>, Vec<DefaultKey>) {
    let mut map = SlotMap::new();
    let keys = (0..OBJECTS).map(|value| map.insert(thing(value))).collect();
    (map, keys)
}

fn arena() -> (Arena<Thing>, Vec<Index>) {
    let mut arena = Arena::new();
    let keys = (0..OBJECTS).map(|value| arena.insert(thing(value))).collect();
    (arena, keys)
}

/// All lines of the table.
pub fn lines() -> Vec<Line> {
    let mut lines = vec![
        take(),
        copy_weak(),
        downgrade(),
        upgrade(),
        pattern::<false>("take, read, downgrade, suspend (a call), upgrade, read"),
        pattern::<true>("take, read, downgrade, suspend (inlined), upgrade, read"),
        make(),
    ];
    lines.extend([destroy::<0>(), destroy::<1>(), destroy::<1000>()]);
    lines
}

fn take() -> Line {
    Line::new("look an object up in a table, read it, let it go")
        .goal(Goal::Above(1.0, "plain borrow (Vec<Box>)"))
        .ours("ebb-refs TempRc", |s| {
            with_cx(|cx| passes(s, &strong(), |object| _ = black_box(object.get(cx).value)));
        })
        .ours("ebb-refs TempRc, one thread", |s| {
            let realm = Realm::new();
            with_cx(|cx| passes(s, &strong_in(&realm), |object| _ = black_box(object.get(cx).value)));
        })
        .ours("ebb-refs Slab get", |s| {
            let mut slab = Slab::<Thing>::new();
            let keys: Vec<usize> = (0..OBJECTS).map(|value| slab.insert(thing(value))).collect();
            with_cx(|cx| passes(s, &keys, |&key| _ = black_box(slab.get(key, cx).map(|object| object.value))));
        })
        .peer("plain borrow (Vec<Box>)", |s| {
            let table: Vec<Box<Thing>> = (0..OBJECTS).map(|value| Box::new(thing(value))).collect();
            passes(s, &table, |object| _ = black_box(object.value));
        })
        .peer("Rc clone, drop", |s| {
            passes(s, &counted(), |object| _ = black_box(black_box(object.clone()).value));
        })
        .peer("Arc clone, drop", |s| {
            passes(s, &counted_across_threads(), |object| _ = black_box(object.clone().value));
        })
        .peer("triomphe Arc clone, drop", |s| {
            let table: Vec<_> = (0..OBJECTS).map(|value| triomphe::Arc::new(thing(value))).collect();
            passes(s, &table, |object| _ = black_box(object.clone().value));
        })
        .peer("slotmap get", |s| {
            let (map, keys) = slots();
            passes(s, &keys, |&key| _ = black_box(map.get(key).map(|object| object.value)));
        })
        .peer("generational-arena get", |s| {
            let (arena, keys) = arena();
            passes(s, &keys, |&key| _ = black_box(arena.get(key).map(|object| object.value)));
        })
        .peer("crossbeam-epoch pin, load", |s| {
            let table: Vec<_> = (0..OBJECTS).map(|value| epoch::Atomic::new(thing(value))).collect();
            passes(s, &table, |object| {
                let guard = epoch::pin();
                let object = object.load(std::sync::atomic::Ordering::Acquire, &guard);
                // SAFETY: nothing here removes objects.
                black_box(unsafe { object.deref() }.value);
            });
        })
}

/// What a weak reference consists of, without its meaning.
#[derive(Clone, Copy)]
struct Plain(#[expect(dead_code)] &'static u64, #[expect(dead_code)] u64, #[expect(dead_code)] &'static u64);

const _: () = assert!(size_of::<Plain>() == size_of::<WeakRc<Thing>>());

fn copy_weak() -> Line {
    Line::new("copy a weak reference, drop the copy")
        .goal(Goal::Above(0.0, "as many plain words"))
        .ours("ebb-refs WeakRc", |s| {
            let table = strong();
            let weak: Vec<WeakRc<Thing>> = table.iter().map(StrongRc::downgrade).collect();
            passes(s, &weak, |weak| _ = black_box(&{ *weak }));
        })
        .peer("as many plain words", |s| {
            let table: Vec<Plain> = vec![Plain(&0, 1, &2); OBJECTS];
            passes(s, &table, |words| _ = black_box(&{ *words }));
        })
        .peer("Rc Weak clone, drop", |s| {
            let table = counted();
            let weak: Vec<Weak<Thing>> = table.iter().map(Rc::downgrade).collect();
            passes(s, &weak, |weak| _ = black_box(&weak.clone()));
        })
        .peer("Arc Weak clone, drop", |s| {
            let table = counted_across_threads();
            let weak: Vec<ArcWeak<Thing>> = table.iter().map(Arc::downgrade).collect();
            passes(s, &weak, |weak| _ = black_box(&weak.clone()));
        })
}

fn downgrade() -> Line {
    Line::new("downgrade, drop the weak reference")
        .ours("ebb-refs", |s| passes(s, &strong(), |object| _ = black_box(&object.downgrade())))
        .ours("ebb-refs, one thread", |s| {
            let realm = Realm::new();
            passes(s, &strong_in(&realm), |object| _ = black_box(&object.downgrade()));
        })
        .peer("Rc", |s| passes(s, &counted(), |object| _ = black_box(&Rc::downgrade(object))))
        .peer("Arc", |s| passes(s, &counted_across_threads(), |object| _ = black_box(&Arc::downgrade(object))))
}

fn upgrade() -> Line {
    Line::new("upgrade a weak reference, read, let it go")
        .goal(Goal::ShareOf(1.0, "slotmap get"))
        .ours("ebb-refs", |s| {
            let table = strong();
            let weak: Vec<WeakRc<Thing>> = table.iter().map(StrongRc::downgrade).collect();
            with_cx(|cx| passes(s, &weak, |weak| _ = black_box(weak.upgrade(cx).ok().map(|object| object.value))));
        })
        .ours("ebb-refs, one thread", |s| {
            let realm = Realm::new();
            let table = strong_in(&realm);
            let weak: Vec<WeakRc<Thing, Local>> = table.iter().map(StrongRc::downgrade).collect();
            with_cx(|cx| passes(s, &weak, |weak| _ = black_box(weak.upgrade(cx).ok().map(|object| object.value))));
        })
        .peer("slotmap get", |s| {
            let (map, keys) = slots();
            passes(s, &keys, |&key| _ = black_box(map.get(key).map(|object| object.value)));
        })
        .peer("generational-arena get", |s| {
            let (arena, keys) = arena();
            passes(s, &keys, |&key| _ = black_box(arena.get(key).map(|object| object.value)));
        })
        .peer("Rc", |s| {
            let table = counted();
            let weak: Vec<Weak<Thing>> = table.iter().map(Rc::downgrade).collect();
            passes(s, &weak, |weak| _ = black_box(weak.upgrade().map(|object| object.value)));
        })
        .peer("Arc", |s| {
            let table = counted_across_threads();
            let weak: Vec<ArcWeak<Thing>> = table.iter().map(Arc::downgrade).collect();
            passes(s, &weak, |weak| _ = black_box(weak.upgrade().map(|object| object.value)));
        })
}

const fn how(inlined: bool) -> Suspension {
    if inlined { Suspension::Inlined } else { Suspension::Call }
}

fn pattern<const INLINED: bool>(title: &'static str) -> Line {
    Line::new(title)
        .goal(Goal::ShareOf(0.5, "Rc, Weak"))
        .ours("ebb-refs", |s| {
            with_cx(|cx| {
                passes(s, &strong(), |object| {
                    let taken = object.get(cx);
                    black_box(taken.value);
                    let weak = taken.downgrade();
                    drop(taken);
                    suspend_async(cx, how(INLINED));
                    black_box(weak.upgrade(cx).ok().map(|object| object.value));
                });
            });
        })
        .ours("ebb-refs, one thread", |s| {
            let realm = Realm::new();
            with_cx(|cx| {
                passes(s, &strong_in(&realm), |object| {
                    let taken = object.get(cx);
                    black_box(taken.value);
                    let weak = taken.downgrade();
                    drop(taken);
                    realm.quiescent(cx);
                    suspend(how(INLINED));
                    black_box(weak.upgrade(cx).ok().map(|object| object.value));
                });
            });
        })
        .peer("Rc, Weak", |s| {
            passes(s, &counted(), |object| {
                let taken = object.clone();
                black_box(taken.value);
                let weak = Rc::downgrade(&taken);
                drop(taken);
                suspend(how(INLINED));
                black_box(weak.upgrade().map(|object| object.value));
            });
        })
        .peer("Rc held across", |s| {
            passes(s, &counted(), |object| {
                let taken = object.clone();
                black_box(taken.value);
                suspend(how(INLINED));
                black_box(taken.value);
            });
        })
        .peer("Arc, Weak", |s| {
            passes(s, &counted_across_threads(), |object| {
                let taken = object.clone();
                black_box(taken.value);
                let weak = Arc::downgrade(&taken);
                drop(taken);
                suspend(how(INLINED));
                black_box(weak.upgrade().map(|object| object.value));
            });
        })
        .peer("slotmap get, twice", |s| {
            let (map, keys) = slots();
            let map = black_box(map);
            passes(s, &keys, |&key| {
                black_box(map.get(key).map(|object| object.value));
                suspend(how(INLINED));
                black_box(map.get(key).map(|object| object.value));
            });
        })
        .peer("a pointer that nothing checks", |s| {
            let table: Vec<Box<Thing>> = (0..OBJECTS).map(|value| Box::new(thing(value))).collect();
            passes(s, &table, |object| {
                let kept: *const Thing = &raw const **object;
                black_box(object.value);
                suspend(how(INLINED));
                // SAFETY: the table keeps the object.
                black_box(unsafe { (*black_box(kept)).value });
            });
        })
        .peer("a suspension alone", |s| passes(s, &counted(), |_| suspend(how(INLINED))))
}

fn make() -> Line {
    Line::new("make an object and destroy it")
        .ours("ebb-refs", |s| with_cx(|cx| s.each(|| black_box(StrongRc::new(thing(1))).destroy(cx))))
        .ours("ebb-refs, one thread", |s| {
            let realm = Realm::new();
            with_cx(|cx| s.each(|| black_box(StrongRc::new_in(thing(1), &realm)).destroy(cx)));
        })
        .ours("ebb-refs Slab insert, remove, one thread", |s| {
            let realm = Realm::new();
            let mut slab = Slab::<Thing, Local>::new_in(&realm);
            with_cx(|cx| {
                s.each(|| {
                    let key = black_box(slab.insert(thing(1)));
                    if let Some(dying) = slab.remove(key) {
                        dying.destroy(cx);
                    }
                });
            });
        })
        .peer("Box", |s| s.each(|| drop(black_box(Box::new(thing(1))))))
        .peer("Rc", |s| s.each(|| drop(black_box(Rc::new(thing(1))))))
        .peer("Arc", |s| s.each(|| drop(black_box(Arc::new(thing(1))))))
        .peer("triomphe Arc", |s| s.each(|| drop(black_box(triomphe::Arc::new(thing(1))))))
        .peer("slotmap insert, remove", |s| {
            let mut map = SlotMap::new();
            s.each(|| {
                let key: DefaultKey = black_box(map.insert(thing(1)));
                black_box(map.remove(key));
            });
        })
        .peer("generational-arena insert, remove", |s| {
            let mut arena = Arena::new();
            s.each(|| {
                let key = black_box(arena.insert(thing(1)));
                black_box(arena.remove(key));
            });
        })
        .peer("crossbeam-epoch defer_destroy", |s| {
            s.each(|| {
                let guard = epoch::pin();
                let object = black_box(epoch::Owned::new(thing(1)).into_shared(&guard));
                // SAFETY: nobody else ever saw the object.
                unsafe { guard.defer_destroy(object) };
            });
        })
}

/// Destroys objects that `WEAK` weak references still name, until their memory is free. For counted pointers that means: until
/// the last weak reference is gone too.
fn destroy<const WEAK: usize>() -> Line {
    const { assert!(WEAK <= 1000) };
    let title = match WEAK {
        0 => "destroy until the memory is free, no weak reference left",
        1 => "destroy until the memory is free, 1 weak reference left",
        _ => "destroy until the memory is free, 1000 weak references left",
    };
    let objects = if WEAK > 10 { 4 } else { BATCH / 10 };
    let line = Line::new(title)
        .ours("ebb-refs", move |s| {
            with_cx(|cx| {
                let make = |value| {
                    let owner = StrongRc::new(thing(value));
                    let weak = (0..WEAK).map(|_| owner.downgrade()).collect::<Vec<_>>();
                    (owner, weak)
                };
                rebuilt(s, objects, make, |(owner, weak)| {
                    owner.destroy(cx);
                    drop(black_box(weak));
                });
            });
        })
        .ours("ebb-refs, one thread", move |s| {
            let realm = Realm::new();
            with_cx(|cx| {
                let make = |value| {
                    let owner = StrongRc::new_in(thing(value), &realm);
                    let weak = (0..WEAK).map(|_| owner.downgrade()).collect::<Vec<_>>();
                    (owner, weak)
                };
                rebuilt(s, objects, make, |(owner, weak)| {
                    owner.destroy(cx);
                    drop(black_box(weak));
                });
            });
        })
        .peer("Rc", move |s| {
            let make = |value| {
                let owner = Rc::new(thing(value));
                let weak = (0..WEAK).map(|_| Rc::downgrade(&owner)).collect::<Vec<_>>();
                (owner, weak)
            };
            rebuilt(s, objects, make, drop_both);
        })
        .peer("Arc", move |s| {
            let make = |value| {
                let owner = Arc::new(thing(value));
                let weak = (0..WEAK).map(|_| Arc::downgrade(&owner)).collect::<Vec<_>>();
                (owner, weak)
            };
            rebuilt(s, objects, make, drop_both);
        });
    if WEAK > 0 {
        return line;
    }
    line.peer("triomphe Arc", move |s| rebuilt(s, objects, |value| triomphe::Arc::new(thing(value)), drop))
        .peer("Box", move |s| rebuilt(s, objects, |value| Box::new(thing(value)), drop))
}

/// The owner first, then each weak reference.
fn drop_both<A, B>((owner, weak): (A, Vec<B>)) {
    drop(owner);
    for weak in weak {
        drop(weak);
    }
}

/// Times `end` on objects that `make` made, with the making left out of the figure.
fn rebuilt<T>(s: &mut Samples, objects: usize, mut make: impl FnMut(usize) -> T, mut end: impl FnMut(T)) {
    while s.more() {
        let all: Vec<T> = (0..objects).map(&mut make).collect();
        let start = crate::clock::now();
        all.into_iter().for_each(&mut end);
        let ticks = crate::clock::now() - start;
        s.push(objects, ticks);
    }
}
