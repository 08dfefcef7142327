//! Objects, their names and their end, on one core.
#![cfg(not(ebb_loom))]

use refs::{Gone, HandleEnd, HandleTable, IdTable, StrongRc, WaitList, WakeSlot, WeakRc};

mod noted;
use noted::{Noted, dropped, with_cx};

#[test]
fn a_weak_reference_leads_to_the_object_until_it_is_destroyed() {
    with_cx(|cx| {
        let owner = StrongRc::new(Noted(1));
        let weak = owner.downgrade();
        assert_eq!(weak.upgrade(cx).map(|object| object.0), Ok(1));
        owner.destroy(cx);
        assert_eq!(dropped(), 1);
        assert_eq!(weak.upgrade(cx).map(|object| object.0), Err(Gone));
        assert!(weak.is_gone());
    });
}

#[test]
fn a_dropped_owner_kills_at_once_and_frees_at_the_next_suspension() {
    with_cx(|cx| {
        let owner = StrongRc::new(Noted(1));
        let weak = owner.downgrade();
        let borrowed = weak.upgrade(cx).unwrap();
        drop(owner);
        assert!(weak.is_gone());
        assert_eq!((borrowed.0, dropped()), (1, 0), "what is borrowed stays until the suspension");
        drop(borrowed);
        refs::reclaim::reclaim(cx);
        assert_eq!(dropped(), 1);
    });
}

#[test]
fn an_object_with_several_owners_dies_with_the_last() {
    with_cx(|cx| {
        let first = StrongRc::new(Noted(1));
        let second = first.share();
        let weak = first.downgrade();
        first.destroy(cx);
        assert!(!weak.is_gone());
        second.destroy(cx);
        assert!(weak.is_gone());
        assert_eq!(dropped(), 1);
    });
}

#[test]
fn a_borrow_can_become_an_owner_as_long_as_the_object_lives() {
    with_cx(|cx| {
        let first = StrongRc::new(Noted(1));
        let borrowed = first.get(cx);
        let second = borrowed.share().expect("it lives");
        drop(first);
        assert!(!borrowed.downgrade().is_gone());
        drop(second);
        assert!(borrowed.share().is_none() && borrowed.downgrade().is_gone());
        assert_eq!((borrowed.0, dropped()), (1, 0));
        drop(borrowed);
        refs::reclaim::reclaim(cx);
        assert_eq!(dropped(), 1);
    });
}

#[test]
fn a_link_that_is_used_again_does_not_revive_old_names() {
    with_cx(|cx| {
        let mut old: Vec<WeakRc<Noted>> = Vec::new();
        for number in 0..1000 {
            let owner = StrongRc::new(Noted(number));
            old.push(owner.downgrade());
            owner.destroy(cx);
        }
        let alive = StrongRc::new(Noted(0));
        assert!(old.iter().all(|weak| weak.is_gone() && *weak != alive.downgrade()));
        alive.destroy(cx);
    });
}

#[test]
fn a_name_given_out_before_the_object_is_complete_leads_nowhere_yet() {
    with_cx(|cx| {
        let owner = StrongRc::new_cyclic(|name: WeakRc<Noted>| {
            assert!(name.upgrade(cx).is_err());
            Noted(1)
        });
        assert!(owner.downgrade().upgrade(cx).is_ok());
        owner.destroy(cx);
    });
}

struct Node {
    _next: Option<StrongRc<Node>>,
    _noted: Noted,
}

#[test]
fn a_long_chain_is_destroyed_without_recursion_and_in_steps() {
    with_cx(|cx| {
        let mut chain = None;
        for number in 0..100_000 {
            chain = Some(StrongRc::new(Node { _next: chain, _noted: Noted(number) }));
        }
        chain.unwrap().destroy(cx);
        let at_once = dropped();
        assert!((1..1000).contains(&at_once), "{at_once}");
        assert!(refs::reclaim::reclaim_some(cx, 10), "there are more");
        assert_eq!(dropped(), at_once + 10);
        assert!(!refs::reclaim::reclaim_some(cx, usize::MAX));
        assert_eq!(dropped(), 100_000);
    });
}

#[test]
fn a_table_gives_out_names_and_gives_up_objects() {
    with_cx(|cx| {
        let table = IdTable::new();
        assert!(table.insert(3, StrongRc::new(Noted(30)), cx).is_none());
        assert_eq!(table.get(3, cx).unwrap().0, 30);
        let replaced = table.insert(3, StrongRc::new(Noted(31)), cx).unwrap();
        assert_eq!(replaced.get(cx).0, 30);
        replaced.destroy(cx);
        let weak = table.weak(3, cx).unwrap();
        table.remove(3, cx).unwrap().destroy(cx);
        assert!(weak.is_gone() && table.get(3, cx).is_none() && table.is_empty(cx));
        assert_eq!(dropped(), 2);
    });
}

#[test]
fn handles_are_the_lowest_free_numbers() {
    with_cx(|cx| {
        let mut table = HandleTable::default();
        for number in 0..4 {
            assert_eq!(
                table.insert(StrongRc::new(Noted(number)), (), HandleEnd::Seen, 0, 10).ok(),
                Some(number as usize)
            );
        }
        table.remove(1).unwrap().destroy(cx);
        table.remove(2).unwrap().destroy(cx);
        assert_eq!(table.insert(StrongRc::new(Noted(9)), (), HandleEnd::Seen, 0, 10).ok(), Some(1));
        assert_eq!(table.insert(StrongRc::new(Noted(9)), (), HandleEnd::Seen, 7, 10).ok(), Some(7));
        assert_eq!(table.insert(StrongRc::new(Noted(9)), (), HandleEnd::Seen, 0, 10).ok(), Some(2));
        assert_eq!(table.insert(StrongRc::new(Noted(9)), (), HandleEnd::Seen, 0, 10).ok(), Some(4));
        assert!(
            table.insert(StrongRc::new(Noted(9)), (), HandleEnd::Seen, 8, 8).is_err(),
            "no number below the limit is free"
        );
        assert_eq!(table.indices().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 7]);
        assert!(table.get(5, cx).is_none() && table.get(99, cx).is_none());
    });
}

#[test]
fn a_reserved_number_is_nobodys_until_it_is_filled_or_released() {
    with_cx(|cx| {
        let mut table = HandleTable::default();
        let (first, second) = (table.reserve_lowest(0, 10).unwrap(), table.reserve_lowest(0, 10).unwrap());
        assert_eq!((first, second), (0, 1));
        assert!(table.is_reserved(0) && table.get(0, cx).is_none() && table.remove(0).is_none());
        assert_eq!(table.insert(StrongRc::new(Noted(2)), (), HandleEnd::Seen, 0, 10).ok(), Some(2));
        assert_eq!(table.indices().collect::<Vec<_>>(), [2]);
        assert_eq!(table.share_all().unwrap().reserve_lowest(0, 10), Some(0), "a copy has no reservations");
        table.fill(second, StrongRc::new(Noted(1)), (), HandleEnd::Seen);
        table.release(first);
        assert!(!table.is_reserved(first) && !table.is_reserved(second));
        assert_eq!(table.reserve_lowest(0, 2), Some(0));
        assert_eq!(table.reserve_lowest(0, 3), None, "all numbers below the limit are taken");
    });
}

#[test]
fn a_handle_table_is_as_cheap_to_copy_as_what_is_in_it() {
    with_cx(|cx| {
        let mut table = HandleTable::default();
        for number in 0..20_000 {
            assert_eq!(table.insert(StrongRc::new(Noted(1)), (), HandleEnd::Seen, 0, 1 << 20).ok(), Some(number));
        }
        for number in 3..20_000 {
            table.remove(number).unwrap().destroy(cx);
        }
        assert_eq!((table.next(3), table.indices().count()), (None, 3));
        assert!(table.share_all().unwrap().len() <= 64);
        assert!(table.make_room(900_000));
        assert!(table.replace(900_000, table.share(0).unwrap(), (), HandleEnd::Seen).is_none());
        assert_eq!(table.indices().collect::<Vec<_>>(), [0, 1, 2, 900_000]);
        assert_eq!(table.reserve_lowest(0, 1 << 20), Some(3));
        assert_eq!(table.reserve_lowest(900_000, 1 << 20), Some(900_001));
    });
}

#[test]
fn a_table_that_ends_is_emptied_in_parts_and_says_what_it_owned_alone() {
    with_cx(|cx| {
        let mut table = HandleTable::default();
        for number in 0..200 {
            assert_eq!(
                table.insert(StrongRc::new(Noted(number)), (), HandleEnd::Seen, 0, 300).ok(),
                Some(number as usize)
            );
        }
        let mut copy = table.share_all().unwrap();
        for alone in [1, 100] {
            copy.remove(alone).unwrap().destroy(cx);
        }
        assert_eq!([0, 1, 2, 200].map(|index| table.owners(index)), [Some(2), Some(1), Some(2), None]);
        let ([alone], next) = table.drain(0, 50, |_| false);
        assert_eq!((alone.map(|alone| alone.get(cx).0), next), (Some(1), 2));
        assert!(matches!(table.drain(2, 50, |_| false), ([None], 52)));
        let ([alone], next) = table.drain(52, 1000, |_| false);
        assert_eq!((alone.map(|alone| alone.get(cx).0), next), (Some(100), 101));
        let ([rest], end) = table.drain(101, 1000, |_| false);
        assert!(rest.is_none() && end >= 200 && end == table.len());
        assert_eq!(copy.owners(3), Some(1));
        drop((table, copy));
        refs::reclaim::reclaim(cx);
        assert_eq!(dropped(), 200);
    });
}

#[test]
fn a_table_that_ends_says_what_it_is_asked_for_and_the_last_of_two_all() {
    with_cx(|cx| {
        let mut table = HandleTable::default();
        let other: Vec<_> = (0..3).map(|number| StrongRc::new(Noted(number))).collect();
        for object in &other {
            assert!(table.insert(object.share(), (), HandleEnd::Seen, 0, 300).is_ok());
        }
        let mut copy = table.share_all().unwrap();
        let (end, is_second) = (table.len(), |noted: &Noted| noted.0 == 1);
        assert!(matches!(table.drain(0, 1000, is_second), ([None], next) if next == end));
        let ([chosen], next) = copy.drain(0, 1000, is_second);
        assert_eq!((chosen.map(|chosen| chosen.get(cx).0), next), (Some(1), 2));
        assert!(matches!(copy.drain(next, 1000, is_second), ([None], next) if next == end));
        drop(other);
        refs::reclaim::reclaim(cx);
        assert_eq!(dropped(), 3);
    });
}

#[test]
fn a_copy_of_a_table_and_the_table_change_apart() {
    with_cx(|cx| {
        let mut table = HandleTable::default();
        for number in 0..130 {
            assert_eq!(
                table.insert(StrongRc::new(Noted(number)), 'a', HandleEnd::Seen, 0, 300).ok(),
                Some(number as usize)
            );
        }
        // What is reserved stays so, and can be filled whatever was copied meanwhile.
        let reserved = table.reserve_lowest(0, 300).unwrap();
        let mut copy = table.share_all().unwrap();
        assert_eq!([0, 70, 129].map(|index| copy.owners(index)), [Some(2), Some(2), Some(2)]);
        assert_eq!(copy.insert(StrongRc::new(Noted(500)), 'b', HandleEnd::Seen, 0, 300).ok(), Some(reserved));
        table.fill(reserved, StrongRc::new(Noted(600)), 'c', HandleEnd::Seen);
        assert_eq!([&table, &copy].map(|table| table.get(reserved, cx).unwrap().0), [600, 500]);
        copy.set_attribute(1, 'd').unwrap();
        table.remove(2).unwrap().destroy(cx);
        assert!(copy.make_room(3) && copy.replace(3, StrongRc::new(Noted(700)), 'e', HandleEnd::Seen).is_some());
        assert_eq!([&table, &copy].map(|table| table.attribute(1).unwrap()), ['a', 'd']);
        assert_eq!([&table, &copy].map(|table| table.get(2, cx).map(|object| object.0)), [None, Some(2)]);
        assert_eq!([&table, &copy].map(|table| table.get(3, cx).unwrap().0), [3, 700]);
        assert_eq!(table.next_where(0, 300, |attribute| attribute == 'c'), Some(reserved));
        assert_eq!(copy.next_where(2, 300, |attribute| attribute == 'd'), None);
        // Those with the default attribute are found where that is wanted.
        table.set_attribute(129, char::default()).unwrap();
        assert_eq!(table.next_where(60, 300, |attribute| attribute == char::default()), Some(129));
        assert_eq!(copy.next_where(0, 300, |attribute| attribute == char::default()), None);
        assert_eq!(table.next_where(129, 300, |attribute| attribute != char::default()), Some(reserved));
        // The table grows in a chunk that both have.
        let last = table.insert(StrongRc::new(Noted(800)), 'f', HandleEnd::Seen, 191, 300).ok().unwrap();
        assert!(copy.get(last, cx).is_none() && copy.get(70, cx).unwrap().0 == 70);
        let weak = table.weak(70).unwrap();
        drop(table);
        assert!(!weak.is_gone());
        assert_eq!((copy.owners(70), copy.owners(2)), (Some(1), Some(1)));
        drop(copy);
        assert!(weak.is_gone());
        refs::reclaim::reclaim(cx);
        assert_eq!(dropped(), 134);
    });
}

#[test]
fn a_duplicated_handle_keeps_the_object_and_the_last_one_ends_it() {
    with_cx(|cx| {
        let mut table = HandleTable::default();
        let index = table.insert(StrongRc::new(Noted(1)), 'a', HandleEnd::Seen, 0, 10).ok().unwrap();
        let other = table.share_all().unwrap();
        let copy = table.share(index).unwrap();
        assert!(table.make_room(5));
        assert!(table.replace(5, copy, 'b', HandleEnd::Seen).is_none());
        let weak = table.weak(index).unwrap();
        assert_eq!(table.remove_where(|&attribute| attribute == 'a').len(), 1);
        table.remove(5).unwrap().destroy(cx);
        assert!(!weak.is_gone());
        drop(other);
        assert!(weak.is_gone());
        refs::reclaim::reclaim(cx);
        assert_eq!(dropped(), 1);
    });
}

/// How many tasks were made ready by this thread's wake-ups.
fn made_ready() -> usize {
    READY.get()
}

std::thread_local! {
    static READY: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[test]
fn very_many_waiters_are_woken_in_pieces() {
    with_cx(|cx| {
        const ALL: usize = 3 * WaitList::AT_ONCE + 1;
        let list = WaitList::new();
        for _ in 0..ALL {
            let slot: &'static WakeSlot = Box::leak(Box::new(WakeSlot::new(|_| READY.set(READY.get() + 1))));
            list.register(slot.prepare(), cx);
            assert!(slot.commit());
        }
        assert_eq!(list.wake_all(), ALL);
        assert!(list.is_empty());
        assert!(made_ready() <= WaitList::AT_ONCE + 1, "{} at once", made_ready());
        refs::reclaim::reclaim(cx);
        assert_eq!(made_ready(), ALL);
    });
}

#[test]
fn a_table_that_ends_leaves_what_nobody_sees_for_later() {
    with_cx(|cx| {
        let mut table = HandleTable::default();
        for number in 0..1000 {
            let end = if number == 3 || number == 700 { HandleEnd::Seen } else { HandleEnd::Unseen };
            assert_eq!(table.insert(StrongRc::new(Noted(number)), (), end, 0, 1000).ok(), Some(number as usize));
        }
        // One becomes seen; another goes, and what comes in its place is not unseen by that.
        assert!(table.is_unseen(500) && !table.is_unseen(700));
        table.see(500);
        table.remove(600).unwrap().destroy(cx);
        assert_eq!(table.insert(StrongRc::new(Noted(1600)), (), HandleEnd::Seen, 0, 1000).ok(), Some(600));
        assert!(!table.is_unseen(500) && !table.is_unseen(600));
        let (mut drained, mut at) = (Vec::new(), 0);
        while at < table.len() {
            let ([seen], next) = table.drain(at, 4096, |_| false);
            drained.extend(seen.map(|seen| seen.get(cx).0));
            at = next;
        }
        assert_eq!(drained, [3, 500, 1600, 700]);
        let left: Vec<_> = core::iter::from_fn(|| table.pop().map(|left| left.get(cx).0)).collect();
        assert_eq!((left.len(), left[0], left[995]), (996, 999, 0));
        refs::reclaim::reclaim(cx);
        assert_eq!(dropped(), 1001);
    });
}

#[test]
fn what_two_tables_have_is_unseen_in_neither() {
    with_cx(|cx| {
        let mut table = HandleTable::default();
        for number in 0..70 {
            assert!(table.insert(StrongRc::new(Noted(number)), (), HandleEnd::Unseen, 0, 100).is_ok());
        }
        let copy = table.share_all().unwrap();
        assert!((0..70).all(|number| !table.is_unseen(number) && !copy.is_unseen(number)));
        // What comes later is one's own.
        let later = table.insert(StrongRc::new(Noted(70)), (), HandleEnd::Unseen, 0, 100).ok().unwrap();
        assert!(table.is_unseen(later) && !table.is_unseen(later - 1));
        drop(copy);
        let ([first], next) = table.drain(0, 4096, |_| false);
        assert_eq!((first.map(|first| first.get(cx).0), next), (Some(0), 1));
        table.see_all();
        assert!(!table.is_unseen(later));
        drop(table);
        refs::reclaim::reclaim(cx);
        assert_eq!(dropped(), 71);
    });
}
