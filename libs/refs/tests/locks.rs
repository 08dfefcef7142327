//! Spin locks and wait lists by themselves.
#![cfg(not(ebb_loom))]

use std::sync::Mutex;

use refs::{Cx, SpinLock, WaitList, WakeLater, WakeSlot};

fn cx() -> Cx {
    // SAFETY: no test has two on one stack, and nothing here suspends or frees.
    unsafe { Cx::new(core::ptr::null()) }
}

#[test]
fn one_core_at_a_time_has_what_a_lock_holds() {
    let lock = SpinLock::new((0u64, 0u64));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let cx = cx();
                for round in 0..5_000 {
                    if round % 2 == 0 {
                        let mut both = lock.lock(&cx);
                        both.0 += 1;
                        both.1 += 1;
                    } else {
                        lock.with(|both| *both = (both.0 + 1, both.1 + 1));
                    }
                }
            });
        }
    });
    assert_eq!(lock.into_inner(), (15_000, 15_000));
}

#[test]
fn a_lock_that_somebody_has_is_not_taken_by_trying() {
    let (mut lock, cx) = (SpinLock::new(1), cx());
    let guard = lock.try_lock(&cx).unwrap();
    assert!(lock.try_lock(&cx).is_none());
    drop(guard);
    *lock.try_lock(&cx).unwrap() += 1;
    *lock.get_mut() += 1;
    assert_eq!(*lock.lock(&cx), 3);
}

/// In which order slots were made ready, by their tokens.
static READY: Mutex<Vec<usize>> = Mutex::new(Vec::new());

fn note(slot: &'static WakeSlot) {
    READY.lock().unwrap().push(slot.token());
}

fn slots<const N: usize>(first: usize) -> [&'static WakeSlot; N] {
    std::array::from_fn(|index| &*Box::leak(Box::new(WakeSlot::with_token(note, first + index))))
}

fn ready(first: usize) -> Vec<usize> {
    READY
        .lock()
        .unwrap()
        .iter()
        .filter(|&&token| (first..first + 10).contains(&token))
        .map(|token| token - first)
        .collect()
}

#[test]
fn waiters_are_woken_in_the_order_in_which_they_came() {
    let (list, cx, slots) = (WaitList::new(), cx(), slots::<5>(100));
    for slot in slots {
        list.register(slot.prepare(), &cx);
        assert!(slot.commit());
    }
    assert!(!list.is_empty());
    assert!(list.wake_one() && list.wake_one());
    assert_eq!(ready(100), [0, 1]);
    assert_eq!(list.wake_all(), 3);
    assert_eq!(ready(100), [0, 1, 2, 3, 4]);
    assert!(!list.wake_one() && list.is_empty() && list.wake_all() == 0);
}

#[test]
fn a_list_that_ends_wakes_those_in_it() {
    let (list, cx, slots) = (WaitList::new(), cx(), slots::<3>(700));
    for slot in slots {
        list.register(slot.prepare(), &cx);
        assert!(slot.commit());
    }
    slots[1].finish();
    drop(list);
    assert_eq!(ready(700), [0, 2]);
}

#[test]
fn of_exclusive_waits_one_is_woken_and_all_others_too() {
    let (list, cx, slots) = (WaitList::new(), cx(), slots::<5>(400));
    for (index, slot) in slots.iter().enumerate() {
        slot.set_exclusive(index % 2 == 0);
        list.register(slot.prepare(), &cx);
        assert!(slot.commit());
    }
    assert_eq!(list.wake(), 3);
    assert_eq!(ready(400), [1, 3, 0]);
    assert_eq!(list.wake(), 1);
    assert_eq!(ready(400), [1, 3, 0, 2]);
    for slot in [slots[0], slots[2]] {
        list.register(slot.prepare(), &cx);
        assert!(slot.commit());
    }
    slots[4].finish();
    slots[0].finish();
    assert_eq!(list.wake(), 1, "those whose wait is over are passed by");
    assert_eq!(list.wake(), 0);
    for slot in [slots[0], slots[2]] {
        list.register(slot.prepare(), &cx);
        assert!(slot.commit());
    }
    assert_eq!(list.wake_all(), 2, "where all are to be woken, all are");
}

#[test]
fn an_exclusive_wake_up_that_reaches_nobody_goes_on_to_the_next() {
    static DECLINING: WakeSlot = WakeSlot::new(|slot| slot.decline());
    let (list, cx, slots) = (WaitList::new(), cx(), slots::<2>(500));
    DECLINING.set_exclusive(true);
    for _ in 0..2 {
        list.register(DECLINING.prepare(), &cx);
        assert!(DECLINING.commit());
        for slot in slots {
            slot.set_exclusive(true);
            list.register(slot.prepare(), &cx);
            assert!(slot.commit());
        }
        assert_eq!(list.wake(), 2);
        assert!(DECLINING.finish(), "its wait was ended all the same");
        assert_eq!(list.wake_all(), 1);
    }
    assert_eq!(ready(500), [0, 1, 0, 1]);
}

#[test]
fn a_waiter_whose_wait_is_over_is_passed_by() {
    let (list, cx, slots) = (WaitList::new(), cx(), slots::<3>(200));
    for slot in slots {
        list.register(slot.prepare(), &cx);
        assert!(slot.commit());
    }
    assert!(slots[0].interrupt() && !slots[0].interrupt());
    assert!(slots[0].finish_interrupted());
    assert!(!slots[1].finish_interrupted());
    assert!(list.wake_one() && !list.wake_one());
    assert_eq!(ready(200), [0, 2], "the first was interrupted, the second gave up, the third was woken");
}

#[test]
fn of_those_that_wait_the_first_whose_task_has_left_its_core_is_told() {
    let (list, cx, slots) = (WaitList::new(), cx(), slots::<4>(600));
    assert_eq!(list.wake_first_parked(), None);
    let wakers = slots.map(|slot| slot.prepare());
    for waker in wakers {
        list.register(waker, &cx);
    }
    slots[0].finish();
    // The one at 1 is about to leave its core.
    assert!(slots[2].commit() && slots[3].commit());
    assert_eq!(list.wake_first_parked(), Some(wakers[2]));
    assert_eq!(ready(600), [2]);
    assert!(!slots[1].commit(), "it was woken as well");
    assert!(wakers[2].is_woken() && !wakers[3].is_woken() && !wakers[0].is_woken());
    slots[2].finish();
    assert!(!wakers[2].is_woken(), "it runs");
    assert_eq!(list.wake_first_parked(), Some(wakers[3]));
    assert_eq!(list.wake_first_parked(), None);
}

#[test]
fn a_list_does_not_grow_by_waits_that_are_over() {
    let (list, cx, [slot]) = (WaitList::new(), cx(), slots::<1>(300));
    let mut old = None;
    for _ in 0..10_000 {
        let waker = slot.prepare();
        assert!(Some(waker) != old && waker.is_waiting());
        list.register(waker, &cx);
        slot.finish();
        old = Some(waker);
    }
    assert!(list.is_empty() && !list.wake_one());
    assert!(ready(300).is_empty());
}

#[test]
fn of_many_a_few_are_woken_and_the_others_in_their_order_by_who_serves() {
    const ALL: usize = 1000;
    static WOKEN: std::sync::Mutex<Vec<usize>> = std::sync::Mutex::new(Vec::new());
    let (cx, later) = (cx(), WakeLater::new());
    let lists = [WaitList::new(), WaitList::new()];
    let ready = |slot: &'static WakeSlot| WOKEN.lock().unwrap().push(slot.token());
    let slots: Vec<&'static WakeSlot> =
        (0..2 * ALL).map(|number| &*Box::leak(Box::new(WakeSlot::with_token(ready, number)))).collect();
    for (number, slot) in slots.iter().enumerate() {
        lists[number / ALL].register(slot.prepare(), &cx);
        assert!(slot.commit());
    }
    assert_eq!(lists[0].wake_first_of(&later), ALL);
    assert!(WOKEN.lock().unwrap().len() <= 4, "a few");
    assert_eq!(lists[1].wake_first_of(&later), ALL);
    assert!(WOKEN.lock().unwrap().len() <= 8, "a few of each");
    // Some have waited long enough meanwhile, and the lists end.
    slots[10..20].iter().for_each(|slot| assert!(slot.withdraw()));
    drop(lists);
    let mut pieces = 0;
    while later.wake_some() {
        pieces += 1;
    }
    assert!(pieces > 10, "{pieces} pieces");
    let (first, second): (Vec<usize>, Vec<usize>) = WOKEN.lock().unwrap().iter().partition(|number| **number < ALL);
    assert_eq!(first, (0..10).chain(20..ALL).collect::<Vec<_>>());
    assert_eq!(second, (ALL..2 * ALL).collect::<Vec<_>>());
}
