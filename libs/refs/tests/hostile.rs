//! What a clever user does who may write no `unsafe`: the code that a table or a gate has run for him comes back to that very table
//! or gate.
#![cfg(not(ebb_loom))]
#![forbid(unsafe_code)]

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use refs::dynamic::{Gate, Here};
use refs::{Gone, IdTable, StrongRc, WakeSlot};

/// Runs `program` on a thread of its own. It must come to an end: one that waits for a lock that it holds itself does not.
fn ends(program: impl FnOnce() + Send + 'static) {
    let (done, is_done) = channel();
    let thread = std::thread::spawn(move || {
        program();
        let _ = done.send(());
    });
    if is_done.recv_timeout(Duration::from_secs(300)).is_err() && !thread.is_finished() {
        panic!("the program hangs");
    }
    thread.join().expect("no panic");
}

/// Runs `f` with a context to borrow from.
fn with<R>(f: impl FnOnce(&Here) -> R + Send) -> R {
    let gate = Gate::new();
    let open = gate.open();
    let result = gate.lender().with(f);
    open.close().map_err(|(_, held)| held).expect("nothing is held");
    result
}

/// The table that its own keys and objects use, one test at a time.
static TABLE: OnceLock<IdTable<u32, Key>> = OnceLock::new();
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn table() -> &'static IdTable<u32, Key> {
    TABLE.get_or_init(IdTable::new)
}

fn use_table() {
    with(|here| table().len(here));
}

/// A key whose destructor uses the table.
struct Key(u32);

impl Drop for Key {
    fn drop(&mut self) {
        use_table();
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

/// What leads to a key by way of the table.
struct Roundabout(Key);

impl Borrow<Key> for Roundabout {
    fn borrow(&self) -> &Key {
        use_table();
        &self.0
    }
}

#[test]
fn keys_that_a_table_lets_go_of_may_use_it() {
    ends(|| {
        let _alone = ONE_AT_A_TIME.lock();
        with(|here| {
            assert!(table().insert(Key(1), StrongRc::new(1), here).is_none());
            let before = table().insert(Key(1), StrongRc::new(2), here).expect("it was there");
            assert_eq!((*before.get(here), *table().get(Key(1), here).expect("it is there")), (1, 2));
            table().insert(Key(2), StrongRc::new(3), here);
            table().insert(Key(3), StrongRc::new(4), here);
            table().retain(|key, _| key.0 == 2, here);
            assert_eq!((table().len(here), *table().get(Key(2), here).expect("it was kept")), (1, 3));
            assert!(table().remove(Key(2), here).is_some() && table().is_empty(here));
        });
    });
}

#[test]
fn whoever_looks_for_a_key_may_use_the_table_on_the_way() {
    ends(|| {
        let _alone = ONE_AT_A_TIME.lock();
        with(|here| {
            table().insert(Key(7), StrongRc::new(70), here);
            let name = table().weak(Roundabout(Key(7)), here).expect("it is there");
            assert_eq!(table().get(Roundabout(Key(7)), here).map(|object| object.downgrade()), Some(name));
            assert!(table().remove(Roundabout(Key(7)), here).is_some());
            assert_eq!(name.upgrade(here).err(), Some(Gone));
        });
    });
}

#[test]
fn whoever_watches_what_a_table_lets_go_of_may_use_it() {
    static SLOT: WakeSlot = WakeSlot::new(|_| use_table());
    ends(|| {
        let _alone = ONE_AT_A_TIME.lock();
        with(|here| {
            let object = StrongRc::new(1);
            object.downgrade().watch(SLOT.prepare(), here);
            assert!(SLOT.commit());
            table().insert(Key(1), object, here);
            table().retain(|_, _| false, here);
            assert!(SLOT.finish(), "it was woken");
        });
    });
}

#[test]
fn a_choice_that_panics_takes_nothing_out() {
    let table: IdTable<u32> = (0..10).map(|number| (number, StrongRc::new(number))).collect();
    with(|here| {
        let choice = |number: &u32, _: &u32| if *number == 5 { panic!("undecided") } else { number.is_multiple_of(2) };
        assert!(catch_unwind(AssertUnwindSafe(|| table.retain(choice, here))).is_err());
        assert_eq!(table.ids(here), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        table.retain(|number, _| number.is_multiple_of(2), here);
        assert_eq!(table.ids(here), [0, 2, 4, 6, 8]);
    });
}

#[test]
fn a_gate_that_two_have_opened_is_open_until_both_have_closed_it() {
    let gate = Gate::new();
    let (owner, lender) = (StrongRc::new(5), gate.lender());
    let name = owner.downgrade();
    let (first, second) = (gate.open(), gate.open());
    assert!(first.close().is_ok());
    let borrowed = lender.upgrade(&name).expect("the second holds it open");
    let (second, _) = second.close().expect_err("something is borrowed");
    drop(owner);
    with(|_| ());
    assert_eq!(*borrowed, 5);
    drop(borrowed);
    drop(second);
    assert!(catch_unwind(AssertUnwindSafe(|| lender.upgrade(&name).is_ok())).is_err(), "it is closed");
}

#[test]
fn threads_that_open_and_close_one_gate_do_not_shut_each_other_out() {
    let gate = Gate::new();
    let owner = StrongRc::new(5);
    let name = owner.downgrade();
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                let lender = gate.lender();
                for _ in 0..2_000 {
                    let open = gate.open();
                    assert_eq!(lender.upgrade(&name).map(|object| *object), Ok(5));
                    // Another thread may hold something just now.
                    let _ = open.close();
                }
            });
        }
    });
}
