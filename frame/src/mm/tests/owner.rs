//! Who is charged for frames.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, Once};

use super::*;

const RW: Prot = Prot::READ.union(Prot::WRITE);
const BASE: usize = 0x7f00_0000;

/// The accounts of these tests: owner 1 may have as many frames as `LIMIT` says, owner 2 all, and there are no others.
static LIMIT: AtomicI64 = AtomicI64::new(0);
static CHARGED: [AtomicI64; 3] = [const { AtomicI64::new(0) }; 3];
static TABLES: AtomicI64 = AtomicI64::new(0);
static SHARED: AtomicI64 = AtomicI64::new(0);
static CALLS: AtomicI64 = AtomicI64::new(0);
/// How often they were told of parts.
static TOLD: AtomicI64 = AtomicI64::new(0);
/// For whom the core works.
static OWNER: AtomicU64 = AtomicU64::new(0);
/// All above are one set for all tests.
static ALONE: Mutex<()> = Mutex::new(());

fn charge(owner: u32, frames: u32, need: Need) -> Charged {
    CALLS.fetch_add(1, Ordering::Relaxed);
    let Some(charged) = CHARGED.get(owner as usize) else { return Charged::Nobody };
    let limit = if owner == 1 { LIMIT.load(Ordering::Relaxed) } else { i64::MAX };
    let count = match i64::from(frames).min(limit - charged.load(Ordering::Relaxed)) {
        ..=0 if need == Need::Always => 1,
        ..=0 => return Charged::Refused,
        count => count,
    };
    charged.fetch_add(count, Ordering::Relaxed);
    Charged::Frames(count as u32)
}

fn give_back(owner: u32, frames: u32) {
    CALLS.fetch_add(1, Ordering::Relaxed);
    CHARGED[owner as usize].fetch_sub(frames.into(), Ordering::Relaxed);
}

fn count(_owner: u32, part: Part, change: i32) {
    TOLD.fetch_add(1, Ordering::Relaxed);
    let count = if part == Part::Tables { &TABLES } else { &SHARED };
    count.fetch_add(change.into(), Ordering::Relaxed);
}

/// Runs a test with these accounts; at its end nobody is charged for anything.
fn with_accounts(test: impl FnOnce(&Machine)) {
    static ONCE: Once = Once::new();
    let machine = Machine::new();
    let _alone = ALONE.lock();
    ONCE.call_once(|| charge_by(Accounts { charge, give_back, count }));
    LIMIT.store(i64::MAX, Ordering::Relaxed);
    work_for(&OWNER);
    test(&machine);
    owner_is(0);
    work_for(&NOBODY);
    gather_stocks(|_| true);
    let counts = [&CHARGED[0], &CHARGED[1], &CHARGED[2], &TABLES, &SHARED];
    assert_eq!(counts.map(|count| count.load(Ordering::Relaxed)), [0; 5]);
}

fn owner_is(owner: u64) {
    OWNER.store(owner, Ordering::Relaxed);
}

/// For how many frames an owner is charged that it has.
fn has(owner: u32) -> i64 {
    CHARGED[owner as usize].load(Ordering::Relaxed) - in_stock(Cores::All, |of| of == owner) as i64
}

/// How many tables there are that are charged to anybody.
fn tables() -> i64 {
    gather_stocks(|_| true);
    TABLES.load(Ordering::Relaxed)
}

/// How many frames are counted as those that several can have.
fn shared() -> i64 {
    gather_stocks(|_| true);
    SHARED.load(Ordering::Relaxed)
}

fn frame() -> UFrame {
    UFrame::for_overwrite().expect("there is memory")
}

#[test]
fn a_frame_is_its_owners_until_its_last_handle_is_dropped() {
    with_accounts(|_| {
        owner_is(1);
        let first = frame();
        owner_is(2);
        let second = frame();
        let again = first.clone();
        assert_eq!((has(1), has(2)), (1, 1));
        owner_is(0);
        let nobodys = frame();
        drop(first);
        assert_eq!((has(1), has(2)), (1, 1));
        drop(again);
        assert_eq!((has(1), has(2)), (0, 1));
        drop((second, nobodys));
        assert_eq!((has(1), has(2)), (0, 0));
    });
}

#[test]
fn a_frame_that_was_an_owners_is_nobodys_when_it_is_used_again() {
    with_accounts(|_| {
        owner_is(1);
        let number = frame().number();
        owner_is(0);
        let again = frame();
        assert_eq!(again.number(), number);
        drop(again);
        assert_eq!(has(1), 0);
    });
}

#[test]
fn memory_beyond_the_limit_is_refused_to_users_and_not_to_tables() {
    with_accounts(|machine| {
        LIMIT.store(40, Ordering::Relaxed);
        owner_is(1);
        let frames: Vec<_> = std::iter::from_fn(UFrame::zeroed).collect();
        assert_eq!((frames.len(), has(1)), (40, 40));
        let space = VmSpace::new().expect("tables are not refused");
        space.map(BASE, frames[0].clone(), RW, &machine.cx).expect("tables are not refused");
        assert_eq!((has(1), tables()), (44, 4));
        assert!(UFrame::zeroed().is_none());
        drop(space);
        assert_eq!(tables(), 0);
        drop(frames);
        assert!(UFrame::zeroed().is_some());
    });
}

#[test]
fn frames_that_come_to_hand_are_charged_many_at_a_time_to_whom_the_core_works_for() {
    with_accounts(|_| {
        owner_is(1);
        let before = CALLS.load(Ordering::Relaxed);
        let frames: Vec<_> = (0..640).map(|_| frame()).collect();
        assert_eq!(has(1), 640);
        let calls = CALLS.load(Ordering::Relaxed) - before;
        assert!((1..=12).contains(&calls), "{calls}");
        drop(frames);
        assert_eq!(has(1), 0);
    });
}

#[test]
fn a_table_is_charged_once_whoever_pays_for_the_frame_that_it_is_made_of() {
    with_accounts(|machine| {
        for (of_frames, of_tables) in [(1, 1), (1, 2), (0, 1), (1, 0)] {
            // Frames of the first one are at hand.
            owner_is(of_frames);
            drop((0..3).map(|_| frame()).collect::<Vec<_>>());
            owner_is(of_tables);
            let page = frame();
            let space = VmSpace::new().expect("there is memory");
            space.map(BASE, page.clone(), RW, &machine.cx).expect("there is memory");
            let charged = if of_tables == 0 { 0 } else { 4 };
            let pages = i64::from(of_tables != 0);
            assert_eq!(has(1) + has(2), charged + pages, "{of_frames} {of_tables}");
            assert_eq!(tables(), charged, "{of_frames} {of_tables}");
            drop(space);
            drop(page);
            assert_eq!((has(1) + has(2), tables()), (0, 0));
        }
    });
}

#[test]
fn an_owner_that_is_gone_is_not_charged() {
    with_accounts(|_| {
        owner_is(9);
        let frames: Vec<_> = (0..100).map(|_| frame()).collect();
        owner_is(1);
        drop(frames);
        assert_eq!(has(1), 0);
    });
}

#[test]
fn where_there_is_no_memory_the_charge_is_given_back() {
    with_accounts(|_| {
        owner_is(2);
        let frames: Vec<_> = std::iter::from_fn(UFrame::for_overwrite).collect();
        assert_eq!(has(2), frames.len() as i64);
    });
}

#[test]
fn the_accounts_are_asked_once_for_many_frames() {
    with_accounts(|_| {
        owner_is(2);
        let before = CALLS.load(Ordering::Relaxed);
        let frames: Vec<_> = (0..1024).map(|_| frame()).collect();
        assert!(CALLS.load(Ordering::Relaxed) - before <= 32);
        // Also where somebody else gives them back.
        owner_is(1);
        drop(frames);
        assert!(CALLS.load(Ordering::Relaxed) - before <= 64);
        assert_eq!(has(2), 0);
    });
}

#[test]
fn a_stock_can_be_taken_from_a_core_and_the_core_goes_on() {
    with_accounts(|_| {
        owner_is(1);
        LIMIT.store(64, Ordering::Relaxed);
        let first = frame();
        assert_eq!(in_stock(Cores::All, |owner| owner == 1), 63);
        assert!(!gather_stocks(|owner| owner == 2) && gather_stocks(|owner| owner == 1));
        assert_eq!(CHARGED[1].load(Ordering::Relaxed), 1);
        let rest: Vec<_> = std::iter::from_fn(UFrame::zeroed).collect();
        assert_eq!(rest.len(), 63);
        drop(first);
    });
}

#[test]
fn pages_and_tables_of_an_ended_space_go_back_to_their_owners() {
    with_accounts(|machine| {
        owner_is(1);
        let space = VmSpace::new().expect("there is memory");
        for index in 0..2000 {
            owner_is(1 + index as u64 / 1000);
            space.map(BASE + index * PAGE_SIZE, frame(), RW, &machine.cx).expect("there is memory");
        }
        assert_eq!(has(1) + has(2), 2000 + tables());
        owner_is(0);
        let pages = space.detach(&machine.cx);
        drop(pages);
        assert_eq!(has(2), 0);
        drop(space);
        assert_eq!((has(1), tables()), (0, 0));
    });
}

#[test]
fn shared_pages_are_counted_as_such_until_they_are_free() {
    with_accounts(|_| {
        owner_is(1);
        let page = frame();
        page.count_as_shared();
        page.count_as_shared();
        owner_is(0);
        let nobodys = frame();
        nobodys.count_as_shared();
        assert_eq!((shared(), has(1)), (1, 1));
        let mapped = page.clone();
        drop(page);
        assert_eq!(shared(), 1);
        drop(mapped);
        assert_eq!((shared(), has(1)), (0, 0));
    });
}

#[test]
fn parts_are_counted_as_often_as_they_change_though_accounts_are_seldom_told() {
    with_accounts(|_| {
        owner_is(1);
        let kept = frame();
        // More often than a stock counts, with one charge in it for all.
        let frames: Vec<_> = (0..5000).map(|_| frame()).collect();
        let before = TOLD.load(Ordering::Relaxed);
        frames.iter().for_each(UFrame::count_as_shared);
        assert!(TOLD.load(Ordering::Relaxed) - before <= 10);
        assert_eq!((shared(), has(1)), (5000, 5001));
        for round in 0..5000 {
            kept.count_as_shared();
            let again = frame();
            again.count_as_shared();
            owner_is(1 + round / 100 % 2);
        }
        assert_eq!((shared(), has(1) + has(2)), (5001, 5001));
        drop(frames);
        assert_eq!((shared(), has(1)), (1, 1));
        drop(kept);
        assert_eq!((shared(), has(1)), (0, 0));
    });
}

#[test]
fn what_an_owner_gives_back_it_takes_again_without_being_charged_anew() {
    with_accounts(|machine| {
        owner_is(1);
        let make = || {
            let space = VmSpace::new().expect("there is memory");
            (0..20).for_each(|index| {
                space.map(BASE + index * PAGE_SIZE, frame(), RW, &machine.cx).expect("there is memory");
            });
            space
        };
        drop(make());
        let before = CALLS.load(Ordering::Relaxed);
        (0..10).for_each(|_| drop(make()));
        assert_eq!(CALLS.load(Ordering::Relaxed), before);
        assert_eq!((has(1), tables()), (0, 0));
    });
}

#[test]
fn what_is_at_hand_for_an_owner_keeps_no_other_from_memory() {
    with_accounts(|_| {
        owner_is(1);
        let frames: Vec<_> = (0..300).map(|_| frame()).collect();
        drop(frames);
        assert!(CHARGED[1].load(Ordering::Relaxed) >= 300);
        // Frames that are charged to the first are the next that the second takes, and the kernel.
        owner_is(2);
        let others: Vec<_> = (0..200).map(|_| frame()).collect();
        assert_eq!((has(1), has(2)), (0, 200));
        let of_kernel = USegment::zeroed(0);
        assert_eq!((has(1), has(2)), (0, 200));
        drop((others, of_kernel));
    });
}

#[test]
fn what_is_at_hand_is_given_back_before_its_owner_is_refused_anything() {
    with_accounts(|_| {
        owner_is(1);
        let frames: Vec<_> = (0..100).map(|_| frame()).collect();
        drop(frames);
        let charged = CHARGED[1].load(Ordering::Relaxed);
        assert!(charged >= 100 && in_stock(Cores::This, |owner| owner == 1) as i64 == charged);
        assert!(!gather_all_stocks(|owner| owner == 2) && gather_all_stocks(|owner| owner == 1));
        assert_eq!(CHARGED[1].load(Ordering::Relaxed), 0);
    });
}

#[test]
fn tables_at_hand_are_no_part_of_what_their_owner_has() {
    with_accounts(|machine| {
        owner_is(1);
        let space = VmSpace::new().expect("there is memory");
        space.map(BASE, frame(), RW, &machine.cx).expect("there is memory");
        drop(space);
        let at_hand = tables_in_stock(|owner| owner == 1) as i64;
        assert!(at_hand > 0 && tables_in_stock(|owner| owner == 2) == 0);
        assert_eq!(has(1), 0);
        // Another owner's from then on.
        owner_is(2);
        let space = VmSpace::new().expect("there is memory");
        assert!(tables_in_stock(|owner| owner == 1) < at_hand as usize);
        drop(space);
    });
}
