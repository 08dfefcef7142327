//! Collections own objects, give out names and borrows, and give objects up as `Dying`.
#![cfg(not(ebb_loom))]

use refs::{Cx, Dying, Gone, Group, HandleEnd, HandleTable, IdTable, List, Map, Realm, Slab, StrongRc, WeakRc};

mod noted;
use noted::{Noted, dropped, with_cx};

#[test]
fn a_map_finds_objects_by_key_and_gives_them_up() {
    with_cx(|cx| {
        let mut map: Map<String, Noted> = Map::new();
        for (key, number) in [("one", 1), ("two", 2), ("three", 3)] {
            assert!(map.insert(key.to_string(), StrongRc::new(Noted(number))).is_none());
        }
        assert_eq!(map.get("two", cx).unwrap().0, 2);
        assert!(map.get("four", cx).is_none());
        let replaced = map.insert("two".to_string(), StrongRc::new(Noted(22))).unwrap();
        assert_eq!(replaced.get(cx).0, 2);
        replaced.destroy(cx);
        let names: Vec<_> = map.iter().map(|(key, name)| (key.clone(), name.upgrade(cx).unwrap().0)).collect();
        assert_eq!(names, [("one".to_string(), 1), ("three".to_string(), 3), ("two".to_string(), 22)]);
        assert_eq!(map.next_above("one".to_string()).unwrap().0, "three");
        let name = map.weak("one").unwrap();
        map.remove("one").unwrap().destroy(cx);
        assert_eq!(name.upgrade(cx).err(), Some(Gone));
        let other = map.share("two").unwrap();
        while let Some((_, object)) = map.pop_first() {
            object.destroy(cx);
        }
        assert_eq!((map.len(), dropped()), (0, 3), "one of them has another owner");
        other.destroy(cx);
        assert_eq!(dropped(), 4);
    });
}

#[test]
fn what_a_map_gave_out_lives_until_the_suspension_when_the_map_is_dropped() {
    with_cx(|cx| {
        let mut map = Map::<u8, Noted>::new();
        map.insert(1, StrongRc::new(Noted(1)));
        let object = map.get(&1, cx).unwrap();
        let name = map.weak(&1).unwrap();
        drop(map);
        assert!(name.is_gone());
        assert_eq!((object.0, dropped()), (1, 0));
        drop(object);
        refs::reclaim::reclaim(cx);
        assert_eq!(dropped(), 1);
    });
}

fn numbers(list: &List<Noted>, cx: &Cx) -> Vec<u32> {
    let forwards: Vec<u32> = list.iter().map(|name| name.upgrade(cx).unwrap().0).collect();
    let mut backwards = Vec::new();
    let mut place = list.last();
    while let Some(here) = place {
        backwards.push(list.get(here, cx).unwrap().0);
        place = list.previous(here);
    }
    backwards.reverse();
    assert_eq!(forwards, backwards);
    assert_eq!(forwards.len(), list.len());
    forwards
}

#[test]
fn a_list_keeps_its_order_when_entries_come_and_go_anywhere() {
    with_cx(|cx| {
        let mut list = List::new();
        let two = list.push_back(StrongRc::new(Noted(2)));
        let four = list.push_back(StrongRc::new(Noted(4)));
        let one = list.push_front(StrongRc::new(Noted(1)));
        list.insert_after(two, StrongRc::new(Noted(3))).ok().unwrap();
        list.insert_after(four, StrongRc::new(Noted(5))).ok().unwrap();
        assert_eq!(numbers(&list, cx), [1, 2, 3, 4, 5]);
        list.remove(two).unwrap().destroy(cx);
        assert_eq!(numbers(&list, cx), [1, 3, 4, 5]);
        list.remove(one).unwrap().destroy(cx);
        list.pop_back().unwrap().destroy(cx);
        assert_eq!(numbers(&list, cx), [3, 4]);
        list.push_back(StrongRc::new(Noted(6)));
        list.push_front(StrongRc::new(Noted(7)));
        assert_eq!(numbers(&list, cx), [7, 3, 4, 6]);
        while let Some(object) = list.pop_front() {
            object.destroy(cx);
        }
        assert!(list.is_empty() && list.first().is_none() && list.last().is_none());
        assert_eq!(dropped(), 7);
    });
}

#[test]
fn a_place_that_is_used_again_is_not_the_old_one() {
    with_cx(|cx| {
        let mut list = List::new();
        let old = list.push_back(StrongRc::new(Noted(1)));
        list.remove(old).unwrap().destroy(cx);
        let new = list.push_back(StrongRc::new(Noted(2)));
        assert_ne!(old, new);
        assert!(list.get(old, cx).is_none() && list.weak(old).is_none() && list.remove(old).is_none());
        assert!(list.next(old).is_none());
        let given_back = list.insert_after(old, StrongRc::new(Noted(3))).unwrap_err();
        assert_eq!(given_back.get(cx).0, 3);
        assert_eq!(numbers(&list, cx), [2]);
    });
}

#[test]
fn a_slab_uses_memory_again_in_place_and_old_names_stay_dead() {
    with_cx(|cx| {
        let mut slab = Slab::new();
        let mut old = Vec::new();
        for round in 0..1000 {
            let number = slab.insert(Noted(round));
            assert_eq!(slab.get(number, cx).unwrap().0, round);
            let name = slab.weak(number).unwrap();
            assert_eq!(name.upgrade(cx).unwrap().0, round);
            old.push((number, name));
            slab.remove(number).unwrap().destroy(cx);
            assert!(slab.get(number, cx).is_none() && slab.remove(number).is_none());
        }
        assert!(old.iter().all(|(number, name)| *number == old[0].0 && name.address() == old[0].1.address()));
        let alive = slab.insert(Noted(0));
        assert!(old.iter().all(|(_, name)| name.is_gone() && *name != slab.weak(alive).unwrap()));
        assert_eq!((dropped(), slab.len()), (1000, 1));
    });
}

#[test]
fn a_slot_whose_object_is_still_borrowed_is_not_used_again() {
    with_cx(|cx| {
        let mut slab = Slab::new();
        let first = slab.insert(Noted(1));
        let object = slab.get(first, cx).unwrap();
        drop(slab.remove(first).unwrap());
        let second = slab.insert(Noted(2));
        assert_ne!(first, second);
        assert_eq!((object.0, slab.get(second, cx).unwrap().0, dropped()), (1, 2, 0));
        drop(object);
        refs::reclaim::reclaim(cx);
        assert_eq!((dropped(), slab.insert(Noted(3))), (1, first));
    });
}

#[test]
fn a_slab_grows_and_its_objects_stay_where_they_are() {
    with_cx(|cx| {
        let mut slab = Slab::new();
        let names: Vec<_> = (0..1000)
            .map(|number| {
                let index = slab.insert_cyclic(|name| {
                    assert!(name.is_gone());
                    Noted(number)
                });
                slab.weak(index).unwrap()
            })
            .collect();
        assert!(names.iter().zip(0..).all(|(name, number)| name.upgrade(cx).unwrap().0 == number));
        assert_eq!(slab.iter().map(|(_, name)| name.upgrade(cx).unwrap().0).sum::<u32>(), 499_500);
        assert!(slab.capacity() >= 1000 && slab.capacity() < 1064);
        drop(slab);
        assert!(names.iter().all(|name| name.is_gone()));
        assert_eq!(dropped(), 0);
        refs::reclaim::reclaim(cx);
        assert_eq!(dropped(), 1000);
    });
}

#[test]
fn an_object_outlives_its_slab_when_it_has_another_owner() {
    with_cx(|cx| {
        let mut slab = Slab::new();
        let number = slab.insert(Noted(7));
        let owner = slab.share(number).unwrap();
        let name = owner.downgrade();
        drop(slab);
        refs::reclaim::reclaim(cx);
        assert_eq!(name.upgrade(cx).unwrap().0, 7);
        owner.destroy(cx);
        assert!(name.is_gone());
        assert_eq!(dropped(), 1);
    });
}

#[test]
fn a_slot_is_given_back_when_making_its_object_panics() {
    with_cx(|cx| {
        let mut slab = Slab::<Noted>::new();
        let first = slab.insert(Noted(1));
        let panicked = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
            slab.insert_cyclic(|_| std::panic::resume_unwind(Box::new(())));
        }));
        assert!(panicked.is_err());
        let second = slab.insert(Noted(2));
        assert_eq!((second, slab.len()), (first + 1, 2));
        slab.remove(second).unwrap().destroy(cx);
    });
}

#[test]
fn collections_take_objects_of_one_thread_and_of_groups() {
    with_cx(|cx| {
        let realm = Realm::new();
        let mut local = Slab::new_in(&realm);
        let number = local.insert(std::rc::Rc::new(5));
        assert_eq!(**local.get(number, cx).unwrap(), 5);
        let mut list = List::new();
        list.push_back(local.share(number).unwrap());
        local.remove(number).unwrap().destroy(cx);
        assert_eq!(**list.get(list.first().unwrap(), cx).unwrap(), 5);
        list.pop_front().unwrap().destroy(cx);
        drop(local);
        realm.close(cx).unwrap();

        let group = Group::new();
        let mut grouped = Slab::<Noted, _>::new_in(&group);
        let name = {
            let number = grouped.insert(Noted(1));
            grouped.weak(number).unwrap()
        };
        group.end();
        assert!(name.is_gone());
        drop(grouped);
        refs::reclaim::reclaim(cx);
        assert_eq!(dropped(), 1);
    });
}

trait Shape: Send + Sync {
    fn area(&self) -> u32;
}

struct Square(u32, Noted);

impl Shape for Square {
    fn area(&self) -> u32 {
        self.0 * self.0
    }
}

#[test]
fn objects_of_different_types_stand_in_one_table_by_their_trait() {
    with_cx(|cx| {
        let table: refs::IdTable<dyn Shape> = refs::IdTable::new();
        table.insert(1, StrongRc::new(Square(3, Noted(0))).unsize(|shape| shape), cx);
        let mut map: Map<u32, dyn Shape> = Map::new();
        map.insert(2, StrongRc::new(Square(4, Noted(0))).unsize(|shape| shape));
        assert_eq!((table.get(1, cx).unwrap().area(), map.get(&2, cx).unwrap().area()), (9, 16));
        let weak = table.weak(1, cx).unwrap();
        let dying: Dying<dyn Shape> = table.remove(1, cx).unwrap();
        dying.destroy(cx);
        assert!(weak.is_gone());
        assert_eq!(dropped(), 1);
        let _ = Square(1, Noted(1)).1.0;
    });
}

#[test]
fn what_a_collection_does_not_retain_dies() {
    with_cx(|cx| {
        let objects = || (0..10).map(|number| StrongRc::new(Noted(number)));
        let mut map: refs::Map<u32, Noted> = (0..).zip(objects()).collect();
        let name = map.weak(&3).unwrap();
        map.retain(|key, object| key % 2 == 0 && object.0 < 6);
        assert!(name.is_gone());
        assert_eq!(map.keys().copied().collect::<Vec<_>>(), [0, 2, 4]);
        map.extend([(2, StrongRc::new(Noted(20))), (7, StrongRc::new(Noted(70)))]);
        assert_eq!((map.len(), map.get(&2, cx).unwrap().0), (4, 20));

        let mut list: List<Noted> = objects().collect();
        list.retain(|object| object.0 % 3 == 0);
        let left = |list: &List<Noted>| list.iter().map(|name| name.upgrade(cx).unwrap().0).collect::<Vec<_>>();
        assert_eq!(left(&list), [0, 3, 6, 9]);
        list.retain(|_| false);
        assert!(list.is_empty() && list.first().is_none());

        let mut slab: Slab<Noted> = (0..10).map(Noted).collect();
        slab.retain(|number, object| number as u32 == object.0 && number > 7);
        assert_eq!(slab.iter().map(|(number, _)| number).collect::<Vec<_>>(), [8, 9]);

        let mut handles = HandleTable::default();
        for (number, object) in objects().enumerate() {
            assert_eq!(handles.insert(object, number as u8, HandleEnd::Seen, 0, 100).unwrap(), number);
        }
        handles.retain(|index, object, attribute| index == usize::from(attribute) && object.0 > 4);
        assert_eq!(handles.indices().collect::<Vec<_>>(), [5, 6, 7, 8, 9]);
        assert_eq!(
            handles.insert(StrongRc::new(Noted(1)), 0, HandleEnd::Seen, 0, 100).unwrap(),
            0,
            "the lowest free number"
        );
        assert_eq!(format!("{handles:?}").matches("Noted").count(), 6);

        drop((map, slab, handles));
    });
    with_cx(|_| assert_eq!(refs::reclaim::waiting(), 0));
}

#[test]
fn a_table_takes_any_key_that_has_an_order() {
    with_cx(|cx| {
        let table: IdTable<Noted, String> =
            ["b", "a", "c"].into_iter().map(|key| (key.to_string(), StrongRc::new(Noted(key.len() as u32)))).collect();
        assert_eq!(table.ids(cx), ["a", "b", "c"]);
        let (a, name) = table.first(cx).unwrap();
        assert_eq!((table.get(&a, cx).unwrap().downgrade(), a.as_str()), (name, "a"));
        assert_eq!(table.next_above(&a, cx).unwrap().0, "b");
        assert_eq!(table.all(cx).count(), 3);
        table.retain(|key, _| key != "b", cx);
        drop(table.insert("a".to_string(), StrongRc::new(Noted(2)), cx).unwrap());
        assert!(name.is_gone());
        table.remove("a".to_string(), cx).unwrap().destroy(cx);
        assert_eq!(table.ids(cx), ["c"]);
    });
}

#[test]
fn names_are_keys_and_everything_can_be_shown() {
    with_cx(|cx| {
        let owners: Vec<StrongRc<Noted>> = (0..3).map(|number| StrongRc::new(Noted(number))).collect();
        let names: Vec<WeakRc<Noted>> = owners.iter().map(StrongRc::downgrade).collect();
        let hashed: std::collections::HashMap<_, _> = names.iter().copied().zip(0..).collect();
        let ordered: std::collections::BTreeMap<_, _> = names.iter().copied().zip(0..).collect();
        for (number, name) in names.iter().enumerate() {
            assert_eq!((hashed[name], ordered[name]), (number, number));
        }
        owners.into_iter().for_each(|owner| owner.destroy(cx));
        let again = StrongRc::new(Noted(9));
        assert!(!hashed.contains_key(&again.downgrade()) && !ordered.contains_key(&again.downgrade()));
        let lock = refs::SpinLock::new(again);
        assert_eq!(format!("{lock:?}"), "SpinLock { value: StrongRc(Noted(9)), .. }");
        let guard = lock.lock(cx);
        assert_eq!(format!("{lock:?} {guard:?}"), "SpinLock { .. } StrongRc(Noted(9))");
        drop(guard);
        let list: List<Noted> = [StrongRc::new(Noted(1)), StrongRc::new(Noted(2))].into_iter().collect();
        assert_eq!(format!("{list:?}"), "[StrongRc(Noted(1)), StrongRc(Noted(2))]");
    });
}
