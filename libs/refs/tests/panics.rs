//! What panics where: constructors may, destructors end the program.
#![cfg(not(ebb_loom))]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::Command;

use refs::{Cx, IdTable, Realm, Slab, StrongRc, WaitList, WakeSlot, WeakRc};

mod noted;
use noted::{Noted, dropped, with_cx};

/// Runs `make`, which panics with the name it was given, and returns the name.
fn escaped<N>(make: impl FnOnce(&mut dyn FnMut(N))) -> N {
    let name = Cell::new(None);
    let result = catch_unwind(AssertUnwindSafe(|| {
        make(&mut |escaping| {
            name.set(Some(escaping));
            resume_unwind(Box::new(()));
        });
    }));
    assert!(result.is_err());
    name.take().unwrap()
}

#[test]
fn the_name_of_an_object_whose_making_panicked_names_no_later_one() {
    with_cx(|cx| {
        let stale: WeakRc<String> = escaped(|panic| {
            StrongRc::new_cyclic(|name| {
                panic(name);
                String::new()
            });
        });
        assert!(stale.is_gone());
        let others: Vec<StrongRc<[usize; 3]>> = (0..200).map(|_| StrongRc::new([0x4141; 3])).collect();
        assert!(stale.upgrade(cx).is_err(), "others of another type use the link again");
        drop(others);
    });
}

#[test]
fn the_same_holds_for_an_object_of_one_thread() {
    with_cx(|cx| {
        let realm = Realm::new();
        let stale: WeakRc<String, _> = escaped(|panic| {
            StrongRc::new_cyclic_in(
                |name| {
                    panic(name);
                    String::new()
                },
                &realm,
            );
        });
        let others: Vec<_> = (0..200usize).map(|number| StrongRc::new_in(number, &realm)).collect();
        assert!(stale.upgrade(cx).is_err());
        others.into_iter().for_each(|other| other.destroy(cx));
        realm.close(cx).unwrap();
    });
}

#[test]
fn the_same_holds_for_an_object_in_a_slab() {
    with_cx(|cx| {
        let mut slab: Slab<String> = Slab::new();
        let stale: WeakRc<String> = escaped(|panic| {
            slab.insert_cyclic(|name| {
                panic(name);
                String::new()
            });
        });
        let number = slab.insert("somebody else's".into());
        assert!(stale.upgrade(cx).is_err());
        slab.remove(number).unwrap().destroy(cx);
    });
}

#[test]
fn a_teardown_runs_for_the_last_owner_only_and_its_object_is_freed_even_if_it_panics() {
    with_cx(|cx| {
        let first = StrongRc::new(Noted(1));
        let last = first.share();
        assert_eq!(first.destroy_async(cx, |_, _| ()), None);
        let panicked =
            catch_unwind(AssertUnwindSafe(|| last.destroy_async(cx, |last, _| resume_unwind(Box::new(last.0)))));
        assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&1u32));
        refs::reclaim::reclaim(cx);
        assert_eq!(dropped(), 1);
    });
}

#[test]
fn a_link_is_given_back_when_making_an_object_panics() {
    with_cx(|cx| {
        let panicked = catch_unwind(|| {
            StrongRc::<Noted>::new_cyclic(|_| resume_unwind(Box::new(())));
        });
        assert!(panicked.is_err());
        let owner = StrongRc::new(Noted(1));
        assert!(owner.downgrade().upgrade(cx).is_ok());
        owner.destroy(cx);
    });
}

/// Runs the calling test again in a process of its own, which does what `act` does; that must end the process with `message`.
#[track_caller]
fn ends_the_program(test: &str, message: &str, act: impl FnOnce(&mut Cx)) {
    const INSIDE: &str = "EBB_REFS_PANICS";
    if std::env::var_os(INSIDE).is_some() {
        with_cx(|cx| {
            let _ = catch_unwind(AssertUnwindSafe(|| act(cx)));
        });
        return;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", test])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("on purpose") && said.contains(message), "{test} said: {said}");
    assert!(output.status.code().is_none(), "{test} ends by a signal: {:?}", output.status);
}

const DESTRUCTOR: &str = "an object's destructor panicked, which ends the program";

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("on purpose");
    }
}

#[test]
fn a_destructor_that_panics_at_a_suspension_ends_the_program() {
    ends_the_program("a_destructor_that_panics_at_a_suspension_ends_the_program", DESTRUCTOR, |cx| {
        drop(StrongRc::new(Bomb));
        refs::reclaim::reclaim(cx);
    });
}

#[test]
fn a_destructor_that_panics_when_its_object_is_destroyed_ends_the_program() {
    ends_the_program("a_destructor_that_panics_when_its_object_is_destroyed_ends_the_program", DESTRUCTOR, |cx| {
        let table = IdTable::new();
        table.insert(1, StrongRc::new(Bomb), cx);
        table.remove(1, cx).unwrap().destroy(cx);
    });
}

#[test]
fn a_destructor_that_panics_in_a_slab_ends_the_program() {
    ends_the_program("a_destructor_that_panics_in_a_slab_ends_the_program", DESTRUCTOR, |cx| {
        let mut slab = Slab::new();
        slab.insert(Bomb);
        drop(slab);
        refs::reclaim::reclaim(cx);
    });
}

#[test]
fn a_destructor_that_panics_in_a_realm_ends_the_program() {
    ends_the_program("a_destructor_that_panics_in_a_realm_ends_the_program", DESTRUCTOR, |cx| {
        let realm = Realm::new();
        StrongRc::new_in(Bomb, &realm).destroy(cx);
    });
}

#[test]
fn what_makes_a_task_ready_ends_the_program_by_a_panic() {
    static SLOT: WakeSlot = WakeSlot::new(|_| panic!("on purpose"));
    ends_the_program(
        "what_makes_a_task_ready_ends_the_program_by_a_panic",
        "what makes a task ready panicked, which ends the program",
        |cx| {
            let list = WaitList::new();
            list.register(SLOT.prepare(), cx);
            assert!(SLOT.commit());
            list.wake_all();
        },
    );
}

#[test]
fn a_lock_is_given_back_by_a_panic_of_what_runs_inside() {
    with_cx(|cx| {
        let lock = refs::SpinLock::new(1);
        assert!(catch_unwind(AssertUnwindSafe(|| lock.with(|_| resume_unwind(Box::new(()))))).is_err());
        assert_eq!(*lock.lock(cx), 1);
    });
}
