//! Every interleaving that the memory model allows, of short programs on two cores: publication, upgrade, destruction,
//! quiescence, wake-ups. Run with `RUSTFLAGS="--cfg ebb_loom"`, in release mode.
//!
//! What an object contains is a loom cell: an access that is not ordered with its destructor's is an error that loom finds.
#![cfg(ebb_loom)]

use std::sync::atomic::{AtomicUsize, Ordering};

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use refs::reclaim::{Core, reclaim};
use refs::{Cx, Group, Pooled, PooledSlot, StrongRc, Versioned, WaitList, WakeLater, WakeSlot, WeakRc};

/// An object whose reads and whose end are known to loom.
struct Watched(UnsafeCell<u32>);

// SAFETY: that all accesses are ordered is what the tests are about; loom checks it.
unsafe impl Sync for Watched {}

impl Watched {
    fn new(value: u32) -> Self {
        let watched = Watched(UnsafeCell::new(0));
        // SAFETY: nobody else has it yet. A write, so that loom sees whether later reads are ordered with it.
        watched.0.with_mut(|place| unsafe { *place = value });
        watched
    }

    fn read(&self) -> u32 {
        // SAFETY: loom checks it.
        self.0.with(|value| unsafe { *value })
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // SAFETY: loom checks it.
        self.0.with_mut(|value| unsafe { *value = u32::MAX });
    }
}

/// Runs `test` in all interleavings with at most `preemptions` involuntary switches.
fn explore(preemptions: usize, test: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(test);
}

fn as_core<R>(f: impl FnOnce(&mut Cx, &Core) -> R) -> R {
    // SAFETY: the only context of this thread ends before it.
    let core = unsafe { Core::register() };
    // SAFETY: this thread has no other Cx, and it is registered.
    let mut cx = unsafe { Cx::new(core::ptr::null()) };
    f(&mut cx, &core)
}

fn look(name: WeakRc<Watched>, cx: &Cx) {
    if let Ok(object) = name.upgrade(cx) {
        assert_eq!(object.read(), 1);
    }
}

#[test]
fn whoever_upgrades_a_name_early_sees_the_whole_object_or_none() {
    explore(3, || {
        let (send, receive) = loom::sync::mpsc::channel();
        let other = thread::spawn(move || {
            let name: WeakRc<Watched> = receive.recv().unwrap();
            as_core(|cx, _| look(name, cx));
        });
        let owner = StrongRc::new_cyclic(|name| {
            send.send(name).unwrap();
            Watched::new(1)
        });
        other.join().unwrap();
        as_core(|cx, _| owner.destroy(cx));
    });
}

#[test]
fn an_object_is_not_freed_under_a_core_that_borrows_it() {
    explore(3, || {
        let owner = StrongRc::new(Watched::new(1));
        let name = owner.downgrade();
        let other = thread::spawn(move || {
            as_core(|cx, core| {
                look(name, cx);
                core.quiescent(cx);
                look(name, cx);
            });
        });
        as_core(|cx, core| {
            owner.destroy(cx);
            core.quiescent(cx);
        });
        other.join().unwrap();
    });
}

#[test]
fn an_object_that_is_dropped_without_a_context_is_not_freed_under_a_core_that_borrows_it() {
    explore(3, || {
        let owner = StrongRc::new(Watched::new(1));
        let name = owner.downgrade();
        let other = thread::spawn(move || {
            as_core(|cx, core| {
                look(name, cx);
                core.quiescent(cx);
            });
        });
        drop(owner);
        as_core(|cx, core| core.quiescent(cx));
        other.join().unwrap();
    });
}

#[test]
fn a_core_that_was_idle_reaches_no_freed_object() {
    explore(3, || {
        let owner = StrongRc::new(Watched::new(1));
        let name = owner.downgrade();
        let other = thread::spawn(move || {
            as_core(|cx, core| {
                core.while_idle(cx, || ());
                look(name, cx);
            });
        });
        as_core(|cx, core| {
            owner.destroy(cx);
            core.quiescent(cx);
        });
        other.join().unwrap();
    });
}

#[test]
fn two_cores_that_free_at_once_free_each_object_once() {
    explore(2, || {
        let owners = [StrongRc::new(Watched::new(1)), StrongRc::new(Watched::new(1))];
        let names = owners.each_ref().map(StrongRc::downgrade);
        let [first, second] = owners;
        let other = thread::spawn(move || {
            as_core(|cx, core| {
                look(names[1], cx);
                first.destroy(cx);
                core.quiescent(cx);
            });
        });
        as_core(|cx, core| {
            look(names[0], cx);
            second.destroy(cx);
            core.quiescent(cx);
            reclaim(cx);
        });
        other.join().unwrap();
        assert!(names.iter().all(WeakRc::is_gone));
    });
}

#[test]
fn owners_on_two_threads_that_end_at_once_end_the_object_once() {
    explore(3, || {
        let first = StrongRc::new(Watched::new(1));
        let second = first.share();
        let name = first.downgrade();
        let other = thread::spawn(move || {
            second.with(|object| assert_eq!(object.read(), 1));
            drop(second);
        });
        first.with(|object| assert_eq!(object.read(), 1));
        drop(first);
        other.join().unwrap();
        assert!(name.is_gone());
        as_core(|cx, core| core.quiescent(cx));
        assert_eq!(refs::reclaim::waiting(), 0);
    });
}

#[test]
fn a_group_that_ends_is_seen_by_the_next_upgrade_and_frees_nothing_under_a_borrow() {
    explore(3, || {
        let group = Group::new();
        let owner = StrongRc::new_in(Watched::new(1), &group);
        let name = owner.downgrade();
        let other = thread::spawn(move || {
            as_core(|cx, core| {
                if let Ok(object) = name.upgrade(cx) {
                    assert_eq!(object.read(), 1);
                }
                core.quiescent(cx);
            });
        });
        as_core(|cx, core| {
            group.end();
            assert!(name.is_gone());
            owner.destroy(cx);
            core.quiescent(cx);
        });
        other.join().unwrap();
    });
}

#[test]
fn a_stable_reference_reads_one_version() {
    explore(3, || {
        let owner = StrongRc::new(Versioned::new((0, 0)));
        let stable = as_core(|cx, _| owner.get(cx).downgrade_stable());
        let other = thread::spawn(move || {
            as_core(|cx, _| {
                if let Ok(value) = stable.upgrade(cx) {
                    assert_eq!(*value, (0, 0));
                }
            });
        });
        as_core(|cx, _| {
            {
                let object = owner.get(cx);
                let mut value = object.write(cx);
                value.0 = 1;
                value.1 = 1;
            }
            assert!(stable.upgrade(cx).is_err());
            owner.destroy(cx);
        });
        other.join().unwrap();
    });
}

/// How often the task of a slot was made ready.
fn count(slot: &'static WakeSlot) {
    // SAFETY: the token of these slots is the address of a leaked counter.
    unsafe { &*core::ptr::with_exposed_provenance::<AtomicUsize>(slot.token()) }.fetch_add(1, Ordering::SeqCst);
}

fn slot() -> (&'static WakeSlot, &'static AtomicUsize) {
    let ready: &'static AtomicUsize = Box::leak(Box::new(AtomicUsize::new(0)));
    let slot = WakeSlot::with_token(count, core::ptr::from_ref(ready).expose_provenance());
    (Box::leak(Box::new(slot)), ready)
}

#[test]
fn a_wake_up_that_races_with_parking_is_seen_by_exactly_one_side() {
    explore(4, || {
        let (slot, ready) = slot();
        let waker = slot.prepare();
        let others = [0, 1].map(|_| thread::spawn(move || waker.wake()));
        let parked = slot.commit();
        let woken = others.map(|other| other.join().unwrap());
        assert_eq!(woken.iter().filter(|&&woken| woken).count(), 1, "the first wake-up counts");
        assert_eq!(ready.load(Ordering::SeqCst), usize::from(parked));
        slot.finish();
        assert!(!waker.wake() && !waker.is_waiting());
    });
}

/// Counts in the slot's first word.
fn ring(slot: &'static Pooled) {
    let old = slot.word(0);
    slot.exchange(0, old, old + 1);
}

#[test]
fn a_waker_of_a_pooled_slot_reaches_no_wait_of_the_next_owner() {
    explore(4, || {
        let slot = PooledSlot::new(ring, [1, 0, 0, 0], false);
        let old = slot.get().prepare();
        assert!(slot.get().commit());
        let other = thread::spawn(move || old.wake());
        drop(slot);
        let next = PooledSlot::new(ring, [10, 0, 0, 0], false);
        let waker = next.get().prepare();
        let parked = next.get().commit();
        other.join().unwrap();
        assert!(parked && waker.is_waiting(), "the old waker ended another wait");
        assert!(!old.is_waiting() && !old.wake());
        assert!(waker.wake());
    });
}

#[test]
fn a_waker_of_a_pooled_slot_that_comes_in_time_calls_its_function() {
    explore(4, || {
        let slot = PooledSlot::new(ring, [1, 0, 0, 0], false);
        let waker = slot.get().prepare();
        let other = thread::spawn(move || waker.wake());
        let parked = slot.get().commit();
        assert!(other.join().unwrap());
        assert_eq!(slot.get().word(0), 1 + usize::from(parked));
    });
}

#[test]
fn who_finds_itself_woken_sees_what_was_done_before() {
    explore(4, || {
        let (slot, _) = slot();
        let value = Arc::new(UnsafeCell::new(0));
        // Orders nothing: it only says that the other thread is through.
        let done = Arc::new(loom::sync::atomic::AtomicBool::new(false));
        let waker = slot.prepare();
        let other = {
            let (value, done) = (value.clone(), done.clone());
            thread::spawn(move || {
                // SAFETY: loom checks that nobody else uses it at the same time.
                value.with_mut(|value| unsafe { *value = 1 });
                waker.wake();
                done.store(true, loom::sync::atomic::Ordering::Relaxed);
            })
        };
        if done.load(loom::sync::atomic::Ordering::Relaxed) {
            assert!(!slot.commit());
            // SAFETY: as above.
            assert_eq!(value.with(|value| unsafe { *value }), 1);
        }
        other.join().unwrap();
    });
}

#[test]
fn a_wake_up_is_not_lost_when_it_races_with_registering() {
    explore(3, || {
        let (slot, ready) = slot();
        let list = Arc::new(WaitList::new());
        let happened = Arc::new(loom::sync::atomic::AtomicBool::new(false));
        let other = {
            let (list, happened) = (list.clone(), happened.clone());
            thread::spawn(move || {
                happened.store(true, loom::sync::atomic::Ordering::Release);
                list.wake_one();
            })
        };
        // SAFETY: this thread has no other Cx and frees nothing.
        let cx = unsafe { Cx::new(core::ptr::null()) };
        let waker = slot.prepare();
        list.register(waker, &cx);
        let parked = !happened.load(loom::sync::atomic::Ordering::Acquire) && slot.commit();
        other.join().unwrap();
        assert_eq!(ready.load(Ordering::SeqCst), usize::from(parked), "who parks is woken");
        slot.finish();
    });
}

#[test]
fn two_events_at_once_wake_two_waiters_in_a_list() {
    explore(3, || {
        let (slots, list) = ([slot(), slot()], Arc::new(WaitList::new()));
        // SAFETY: this thread has no other Cx and frees nothing.
        let cx = unsafe { Cx::new(core::ptr::null()) };
        for (slot, _) in slots {
            list.register(slot.prepare(), &cx);
            assert!(slot.commit());
        }
        let other = {
            let list = list.clone();
            thread::spawn(move || list.wake_one())
        };
        let woken = [list.wake_one(), other.join().unwrap()];
        assert_eq!(woken, [true, true]);
        assert_eq!(slots.map(|(_, ready)| ready.load(Ordering::SeqCst)), [1, 1]);
    });
}

#[test]
fn who_is_handed_over_is_woken_in_its_turn_and_wakes_who_serves() {
    explore(3, || {
        let (waiting, server) = ([slot(), slot(), slot(), slot()], slot());
        let (list, later) = (WaitList::new(), Arc::new(WakeLater::new()));
        // SAFETY: this thread has no other Cx and frees nothing.
        let cx = unsafe { Cx::new(core::ptr::null()) };
        for (slot, _) in waiting {
            list.register(slot.prepare(), &cx);
            assert!(slot.commit());
        }
        let other = {
            let later = later.clone();
            // The list ends with this thread, before those are woken that were handed over.
            thread::spawn(move || assert_eq!(list.wake_first_of(&later), 4))
        };
        let (own, made_ready) = server;
        let mut parks = 0;
        let ready = || waiting.map(|(_, ready)| ready.load(Ordering::SeqCst));
        later.serve(own.prepare(), &cx);
        if later.wake_some() {
            own.finish();
        } else if own.commit() {
            parks = 1;
        }
        other.join().unwrap();
        if ready() != [1; 4] {
            assert_eq!(made_ready.load(Ordering::SeqCst), parks, "it has parked, and was woken");
            assert_eq!(ready()[0], 1);
            assert!(later.wake_some());
        }
        assert_eq!(ready(), [1; 4]);
        assert!(!later.wake_some());
    });
}

#[test]
fn a_death_that_races_with_watching_wakes() {
    explore(3, || {
        let (slot, ready) = slot();
        let owner = StrongRc::new(Watched::new(1));
        let name = owner.downgrade();
        let other = thread::spawn(move || drop(owner));
        // SAFETY: this thread has no other Cx and frees nothing.
        let cx = unsafe { Cx::new(core::ptr::null()) };
        let waker = slot.prepare();
        name.watch(waker, &cx);
        let parked = slot.commit();
        other.join().unwrap();
        assert!(name.is_gone());
        assert!(!waker.is_waiting(), "the death ended the wait");
        assert_eq!(ready.load(Ordering::SeqCst), usize::from(parked));
        slot.finish();
        as_core(|cx, core| core.quiescent(cx));
    });
}
