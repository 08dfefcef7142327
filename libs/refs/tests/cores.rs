//! Objects that several threads use: dead at once for all, freed when each has passed a suspension.
#![cfg(not(ebb_loom))]

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard};
use std::thread::{Scope, ScopedJoinHandle};

use refs::reclaim::{Core, Report, all_passed, begin_epoch, borrowed_since, epoch_now, reclaim, waiting};
use refs::{Cx, IdTable, SpinLock, StrongRc, WakeSlot, WeakRc};

/// Cores are counted for the whole process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
static DROPPED: AtomicUsize = AtomicUsize::new(0);

struct Noted(u32);

impl Drop for Noted {
    fn drop(&mut self) {
        self.0 = u32::MAX;
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

fn alone() -> MutexGuard<'static, ()> {
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    DROPPED.store(0, Ordering::Relaxed);
    guard
}

fn dropped() -> usize {
    DROPPED.load(Ordering::Relaxed)
}

/// Runs `f` as a core of its own.
fn as_core<R>(f: impl FnOnce(&mut Cx, &Core) -> R) -> R {
    // SAFETY: the only context of this thread ends before it.
    let core = unsafe { Core::register() };
    // SAFETY: this thread has no other Cx, and it is registered.
    let mut cx = unsafe { Cx::new(core::ptr::null()) };
    f(&mut cx, &core)
}

/// A thread that does what it is told, step by step.
struct Other<'scope> {
    steps: Sender<Step>,
    done: Receiver<()>,
    thread: ScopedJoinHandle<'scope, ()>,
}

type Step = Box<dyn FnOnce(&mut Cx, &Core) + Send>;

impl<'scope> Other<'scope> {
    fn start(scope: &'scope Scope<'scope, '_>) -> Self {
        let (steps, to_do) = channel::<Step>();
        let (say, done) = channel();
        let thread = scope.spawn(move || {
            as_core(|cx, core| {
                say.send(()).unwrap();
                while let Ok(step) = to_do.recv() {
                    step(cx, core);
                    say.send(()).unwrap();
                }
            });
        });
        done.recv().unwrap();
        Other { steps, done, thread }
    }

    /// Has the thread do something, and waits until it has.
    fn does(&self, step: impl FnOnce(&mut Cx, &Core) + Send + 'static) {
        self.begins(step);
        self.done.recv().unwrap();
    }

    fn begins(&self, step: impl FnOnce(&mut Cx, &Core) + Send + 'static) {
        self.steps.send(Box::new(step)).unwrap();
    }

    fn ends(self) {
        drop(self.steps);
        self.thread.join().unwrap();
    }
}

#[test]
fn an_object_is_freed_when_each_core_has_passed_a_suspension_since_its_death() {
    let _alone = alone();
    std::thread::scope(|scope| {
        let other = Other::start(scope);
        as_core(|cx, core| {
            let owner = StrongRc::new(Noted(1));
            let name = owner.downgrade();
            owner.destroy(cx);
            assert!(name.is_gone());
            core.quiescent(cx);
            core.quiescent(cx);
            reclaim(cx);
            assert_eq!((dropped(), waiting()), (0, 1), "the other core may still borrow it");
            other.does(|cx, core| core.quiescent(cx));
            core.quiescent(cx);
            assert_eq!((dropped(), waiting()), (1, 0));
        });
        other.ends();
    });
}

#[test]
fn all_have_passed_when_each_core_has_come_in_anew_since() {
    let _alone = alone();
    std::thread::scope(|scope| {
        let other = Other::start(scope);
        as_core(|cx, core| {
            let epoch = begin_epoch();
            // SAFETY: it is this thread's number.
            let passed = |cx: &mut Cx| unsafe { all_passed(cx, core.number(), epoch) };
            assert!(!passed(cx), "the other core may be in the middle of something");
            other.does(|cx, core| core.while_idle(cx, || ()));
            assert!(passed(cx));
        });
        other.ends();
    });
}

#[test]
fn what_was_borrowed_in_an_epoch_may_be_until_its_core_comes_in_in_a_later_one() {
    let _alone = alone();
    std::thread::scope(|scope| {
        let other = Other::start(scope);
        as_core(|cx, core| {
            let borrowed_in = epoch_now();
            begin_epoch();
            core.while_idle(cx, || ());
            assert!(borrowed_since() <= borrowed_in, "the other core has not been quiescent since");
            other.does(|cx, core| core.while_idle(cx, || ()));
            assert!(borrowed_since() > borrowed_in);
            let borrowed_in = epoch_now();
            other.does(|cx, core| core.while_idle(cx, || ()));
            assert!(borrowed_since() <= borrowed_in, "it came in in the same epoch");
        });
        other.ends();
    });
}

#[test]
fn what_a_core_borrows_stays_while_another_core_destroys_it() {
    let _alone = alone();
    std::thread::scope(|scope| {
        let other = Other::start(scope);
        let owner = StrongRc::new(Noted(7));
        let name = owner.downgrade();
        let (destroyed, is_destroyed) = channel();
        let (borrowed, is_borrowed) = channel();
        other.begins(move |cx, _| {
            let object = name.upgrade(cx).unwrap();
            borrowed.send(()).unwrap();
            is_destroyed.recv().unwrap();
            assert_eq!((object.0, name.is_gone(), dropped()), (7, true, 0));
        });
        is_borrowed.recv().unwrap();
        as_core(|cx, core| {
            owner.destroy(cx);
            core.quiescent(cx);
        });
        destroyed.send(()).unwrap();
        other.done.recv().unwrap();
        other.does(|cx, core| core.quiescent(cx));
        assert_eq!(dropped(), 1);
        other.ends();
    });
}

#[test]
fn an_idle_core_holds_nothing_back_until_it_comes_back() {
    let _alone = alone();
    std::thread::scope(|scope| {
        let other = Other::start(scope);
        let (idle, is_idle) = channel();
        let (wake, is_woken) = channel::<()>();
        other.begins(move |cx, core| {
            core.while_idle(cx, || {
                idle.send(()).unwrap();
                is_woken.recv().unwrap();
            });
        });
        is_idle.recv().unwrap();
        as_core(|cx, core| {
            StrongRc::new(Noted(1)).destroy(cx);
            assert_eq!(dropped(), 1, "the only core that runs tasks frees at once");
            wake.send(()).unwrap();
            other.done.recv().unwrap();
            StrongRc::new(Noted(2)).destroy(cx);
            core.quiescent(cx);
            assert_eq!(dropped(), 1, "the other core is back");
        });
        other.ends();
        assert_eq!(dropped(), 2);
    });
}

#[test]
fn a_core_that_says_so_in_the_middle_of_its_work_holds_nothing_back_that_died_before() {
    static REPORT: Report = Report::new();
    const NUMBER: usize = 40;
    let _alone = alone();
    std::thread::scope(|scope| {
        let (pass, passes) = channel::<()>();
        let (say, said) = channel();
        let other = scope.spawn(move || {
            // SAFETY: this thread makes no context.
            let _core = unsafe { Core::register_as(NUMBER, &REPORT) };
            say.send(()).unwrap();
            while passes.recv().is_ok() {
                // SAFETY: the thread borrows nothing.
                unsafe { REPORT.pass() };
                say.send(()).unwrap();
            }
        });
        said.recv().unwrap();
        as_core(|cx, core| {
            StrongRc::new(Noted(1)).destroy(cx);
            core.quiescent(cx);
            assert_eq!(dropped(), 0, "the other core may borrow it");
            pass.send(()).unwrap();
            said.recv().unwrap();
            StrongRc::new(Noted(2)).destroy(cx);
            core.quiescent(cx);
            assert_eq!(dropped(), 1, "the second may be borrowed since");
            drop(pass);
            other.join().unwrap();
            core.quiescent(cx);
            assert_eq!(dropped(), 2);
        });
        // SAFETY: nobody is registered with it any more.
        unsafe { REPORT.pass() };
        assert!(!REPORT.is_present(), "it brings nobody in");
    });
}

#[test]
fn a_core_that_leaves_or_goes_idle_frees_what_waited_for_it() {
    let _alone = alone();
    std::thread::scope(|scope| {
        let (leaving, idling) = (Other::start(scope), Other::start(scope));
        as_core(|cx, core| {
            StrongRc::new(Noted(1)).destroy(cx);
            core.quiescent(cx);
            idling.does(|cx, core| core.while_idle(cx, || ()));
            assert_eq!(dropped(), 0);
            leaving.ends();
            assert_eq!(dropped(), 1);
        });
        idling.ends();
    });
}

#[test]
fn a_core_that_comes_in_after_a_death_is_not_waited_for() {
    let _alone = alone();
    std::thread::scope(|scope| {
        let first = Other::start(scope);
        as_core(|cx, core| {
            StrongRc::new(Noted(1)).destroy(cx);
            let late = Other::start(scope);
            first.does(|cx, core| core.quiescent(cx));
            core.quiescent(cx);
            assert_eq!(dropped(), 1);
            late.ends();
        });
        first.ends();
    });
}

#[test]
fn a_thread_without_a_core_may_drop_what_it_owns() {
    let _alone = alone();
    as_core(|cx, core| {
        let owner = StrongRc::new(Noted(4));
        let name = owner.downgrade();
        let object = name.upgrade(cx).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| drop(owner));
        });
        assert_eq!((name.is_gone(), object.0, dropped()), (true, 4, 0));
        drop(object);
        core.quiescent(cx);
        assert_eq!(dropped(), 1);
    });
}

#[test]
fn more_threads_than_were_foreseen_take_part() {
    let _alone = alone();
    std::thread::scope(|scope| {
        let others: Vec<_> = (0..70).map(|_| Other::start(scope)).collect();
        as_core(|cx, core| {
            StrongRc::new(Noted(1)).destroy(cx);
            for other in &others {
                core.quiescent(cx);
                assert_eq!(dropped(), 0);
                other.does(|cx, core| core.quiescent(cx));
            }
            core.quiescent(cx);
            assert_eq!(dropped(), 1);
        });
        others.into_iter().for_each(Other::ends);
    });
    as_core(|cx, _| StrongRc::new(Noted(1)).destroy(cx));
    assert_eq!(dropped(), 2, "those that left hold nothing back");
}

/// Rounds of the tests that let threads run against each other: fewer under a sanitizer or a slow machine.
const ROUNDS: u32 = 3000;

#[test]
fn threads_that_upgrade_while_others_destroy_never_see_freed_memory() {
    let _alone = alone();
    let table: IdTable<Noted> = IdTable::new();
    let names: SpinLock<Vec<WeakRc<Noted>>> = SpinLock::new(Vec::new());
    let made = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for thread in 0..3u32 {
            let (table, names, made) = (&table, &names, &made);
            scope.spawn(move || {
                as_core(|cx, core| {
                    for round in 0..ROUNDS {
                        let id = round.wrapping_mul(2_654_435_761).wrapping_add(thread) % 8;
                        match round % 4 {
                            0 => {
                                let owner = StrongRc::new(Noted(id));
                                made.fetch_add(1, Ordering::Relaxed);
                                names.lock(cx).push(owner.downgrade());
                                if let Some(old) = table.insert(id, owner, cx) {
                                    old.destroy(cx);
                                }
                            }
                            1 => drop(table.remove(id, cx)),
                            _ => {
                                let all: Vec<_> = names.lock(cx).iter().rev().take(8).copied().collect();
                                for name in all {
                                    if let Ok(object) = name.upgrade(cx) {
                                        let object = object.clone();
                                        assert!(object.0 < 8 && object.downgrade() == name);
                                    }
                                }
                            }
                        }
                        if round % 3 == 0 {
                            core.quiescent(cx);
                        }
                        if round % 100 == 0 {
                            core.while_idle(cx, std::thread::yield_now);
                        }
                    }
                });
            });
        }
    });
    drop(table);
    as_core(|cx, core| core.quiescent(cx));
    assert_eq!((dropped() as u32, waiting()), (made.load(Ordering::Relaxed), 0));
}

/// A wake slot whose thread waits by spinning.
fn count(slot: &'static WakeSlot) {
    // SAFETY: the token of these slots is the address of a leaked counter.
    unsafe { &*core::ptr::with_exposed_provenance::<AtomicU32>(slot.token()) }.fetch_add(1, Ordering::Release);
}

#[test]
fn no_death_is_missed_when_it_comes_while_somebody_begins_to_watch() {
    let _alone = alone();
    let ready: &'static AtomicU32 = Box::leak(Box::new(AtomicU32::new(0)));
    let token = core::ptr::from_ref(ready).expose_provenance();
    let slot: &'static WakeSlot = Box::leak(Box::new(WakeSlot::with_token(count, token)));
    let (send, receive) = channel::<StrongRc<Noted>>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            as_core(|cx, core| {
                for owner in receive {
                    owner.destroy(cx);
                    core.quiescent(cx);
                }
            });
        });
        as_core(|cx, core| {
            for round in 0..ROUNDS {
                let owner = StrongRc::new(Noted(round));
                let name = owner.downgrade();
                send.send(owner).unwrap();
                let waker = slot.prepare();
                name.watch(waker, cx);
                let before = ready.load(Ordering::Acquire);
                if slot.commit() {
                    while ready.load(Ordering::Acquire) == before && slot.is_parked() {
                        std::thread::yield_now();
                    }
                    while ready.load(Ordering::Acquire) == before {
                        std::hint::spin_loop();
                    }
                }
                slot.finish();
                assert!(name.is_gone());
                core.quiescent(cx);
            }
            drop(send);
        });
    });
}
