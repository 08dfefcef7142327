//! What objects can be besides plain: versioned, seen by a trait, of one thread, in a group, slow to die.
#![cfg(not(ebb_loom))]

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use refs::{Cx, Gone, Group, Grouped, InUse, Local, Lost, Mortal, Realm, StrongRc, Versioned, WakeSlot, WeakRc};

mod noted;
use noted::{Noted, dropped, with_cx};

#[test]
fn a_stable_reference_tells_destroyed_from_modified() {
    with_cx(|cx| {
        let owner = StrongRc::new(Versioned::new(1));
        let first = owner.get(cx).downgrade_stable();
        assert_eq!(*first.upgrade(cx).unwrap(), 1);
        assert_eq!(*owner.get(cx).read(cx), 1, "reading is not modifying");
        assert_eq!(*first.upgrade(cx).unwrap(), 1);
        {
            let object = owner.get(cx);
            let mut value = object.write(cx);
            *value += 1;
            assert_eq!(*value, 2, "who writes can read");
        }
        assert_eq!(first.upgrade(cx).err(), Some(Lost::Modified));
        let second = owner.get(cx).downgrade_stable();
        assert_eq!(*second.upgrade(cx).unwrap(), 2);
        assert_eq!(first.weak(), second.weak());
        owner.destroy(cx);
        assert_eq!((first.upgrade(cx).err(), second.upgrade(cx).err()), (Some(Lost::Gone), Some(Lost::Gone)));
    });
}

#[test]
fn access_to_write_is_a_modification_even_if_nothing_is_written() {
    with_cx(|cx| {
        let owner = StrongRc::new(Versioned::new([0u8; 4]));
        let stable = owner.get(cx).downgrade_stable();
        drop(owner.get(cx).write(cx));
        assert_eq!(stable.upgrade(cx).err(), Some(Lost::Modified));
        owner.destroy(cx);
        let mut own = Versioned::new(1);
        *own.get_mut() = 2;
        assert_eq!((own.version(), own.into_inner()), (1, 2));
    });
}

#[test]
fn many_read_at_a_time_and_nobody_writes_meanwhile() {
    let value = Versioned::new((0u64, 0u64));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                // SAFETY: this thread has no other Cx, and nothing here suspends or frees.
                let cx = unsafe { Cx::new(core::ptr::null()) };
                for _ in 0..20_000 {
                    let mut both = value.write(&cx);
                    both.0 += 1;
                    both.1 += 1;
                    drop(both);
                    let (one, two) = (value.read(&cx), value.read(&cx));
                    assert_eq!(one.0, two.1);
                }
            });
        }
    });
    assert_eq!((value.version(), value.into_inner()), (40_000, (40_000, 40_000)));
}

trait Speak: Send + Sync {
    fn speak(&self) -> String;
}

struct Dog(Noted);
#[repr(align(64))]
struct Cat(u8, Noted);

impl Speak for Dog {
    fn speak(&self) -> String {
        format!("woof {}", self.0.0)
    }
}

impl Speak for Cat {
    fn speak(&self) -> String {
        format!("meow {}{}", self.0, self.1.0)
    }
}

#[test]
fn a_trait_object_is_reached_and_freed_as_what_it_was_made_as() {
    with_cx(|cx| {
        let owners: [StrongRc<dyn Speak>; 2] =
            [StrongRc::new(Dog(Noted(1))).unsize(|dog| dog), StrongRc::new(Cat(7, Noted(2))).unsize(|cat| cat)];
        let names = owners.each_ref().map(StrongRc::downgrade);
        let said: Vec<String> = names.iter().map(|name| name.upgrade(cx).unwrap().speak()).collect();
        assert_eq!(said, ["woof 1", "meow 72"]);
        #[cfg(not(feature = "check-temps"))]
        assert_eq!(size_of::<refs::TempRc<dyn Speak>>(), 2 * size_of::<usize>());
        for owner in owners {
            owner.destroy(cx);
        }
        assert!(names.iter().all(|name| name.is_gone()));
        assert_eq!(dropped(), 2);
    });
}

#[test]
fn an_array_is_seen_as_a_slice() {
    with_cx(|cx| {
        let owner: StrongRc<[u16]> = StrongRc::new([1u16, 2, 3]).unsize(|array| array);
        assert_eq!(&*owner.downgrade().upgrade(cx).unwrap(), [1, 2, 3]);
        owner.destroy(cx);
    });
}

#[test]
fn a_name_of_a_trait_object_is_made_from_a_borrow() {
    with_cx(|cx| {
        let owner = StrongRc::new(Dog(Noted(5)));
        let name: WeakRc<dyn Speak> = owner.get(cx).unsize::<dyn Speak>(|dog| dog, cx).downgrade();
        assert_eq!(name.upgrade(cx).unwrap().speak(), "woof 5");
        owner.destroy(cx);
        assert!(name.is_gone());
    });
}

#[test]
fn unsizing_to_a_part_of_the_object_panics() {
    #[repr(C)]
    struct Pair(u8, u64);
    with_cx(|cx| {
        let second =
            std::panic::catch_unwind(|| StrongRc::new(Pair(1, 2)).unsize(|pair| &pair.1 as &(dyn Sync + Send)));
        assert!(second.is_err(), "another address");
        // The first field lies where the object lies; it is seen as what it is.
        let first: StrongRc<dyn std::fmt::Debug + Send + Sync> = StrongRc::new((3u64,)).unsize(|tuple| &tuple.0);
        assert_eq!(format!("{:?}", first.get(cx)), "3");
        first.destroy(cx);
    });
}

#[test]
fn a_borrow_of_a_local_object_can_become_an_owner_as_long_as_it_lives() {
    with_cx(|cx| {
        let realm = Realm::new();
        let first = StrongRc::new_in(Noted(1), &realm);
        let borrowed = first.get(cx);
        let second = borrowed.share().expect("it lives");
        assert_eq!(second.owners(), 2);
        drop((first, second));
        assert!(borrowed.share().is_none() && borrowed.downgrade().is_gone());
        drop(borrowed);
        realm.close(cx).unwrap();
        assert_eq!(dropped(), 1);
    });
}

#[test]
fn an_owner_gives_an_object_up_only_while_it_is_the_only_one() {
    with_cx(|cx| {
        let first = StrongRc::new(Noted(1));
        let borrowed = first.get(cx);
        let second = first.share();
        let first = first.end_if_only().expect_err("there is another");
        assert_eq!(first.owners(), 2);
        drop(second);
        assert!(first.end_if_only().is_ok());
        assert!(borrowed.share().is_none() && borrowed.downgrade().is_gone());
    });
}

#[test]
fn objects_of_one_thread_need_not_be_send() {
    with_cx(|cx| {
        let realm = Realm::new();
        let count = Rc::new(Cell::new(0));
        let owner = StrongRc::new_in(RefCell::new(count.clone()), &realm);
        let name: WeakRc<_, Local> = owner.downgrade();
        name.upgrade(cx).unwrap().borrow().set(3);
        let other = owner.share();
        owner.destroy(cx);
        assert_eq!((count.get(), name.is_gone(), Rc::strong_count(&count)), (3, false, 2));
        other.destroy(cx);
        assert_eq!((name.is_gone(), Rc::strong_count(&count), realm.len()), (true, 1, 0));
        realm.close(cx).unwrap();
    });
}

#[test]
fn a_local_object_that_is_dropped_is_dead_at_once_and_freed_when_its_realm_is_quiescent() {
    with_cx(|cx| {
        let realm = Realm::new();
        let owner = StrongRc::new_in(Noted(1), &realm);
        let object = owner.get(cx);
        drop(owner);
        assert!(object.downgrade().is_gone());
        assert_eq!((object.0, dropped()), (1, 0));
        drop(object);
        realm.quiescent(cx);
        assert_eq!((dropped(), realm.is_empty()), (1, true));
        realm.close(cx).unwrap();
    });
}

#[test]
fn a_realm_with_objects_is_not_closed_and_one_without_is_used_again_by_another_thread() {
    with_cx(|cx| {
        let realm = Realm::new();
        let owner = StrongRc::new_in(Noted(1), &realm);
        let other = StrongRc::new_in(Noted(2), &realm);
        assert_eq!(realm.close(cx), Err(InUse(2)));
        let name = owner.downgrade();
        assert_eq!(name.upgrade(cx).map(|object| object.0), Ok(1));
        drop(owner);
        other.destroy(cx);
        assert_eq!((dropped(), name.is_gone()), (2, true), "both are freed with the last");
        let realm = Realm::new();
        let name = {
            let owner = StrongRc::new_in(0u8, &realm);
            let name = owner.downgrade();
            owner.destroy(cx);
            name
        };
        realm.close(cx).unwrap();
        std::thread::spawn(|| {
            // SAFETY: the context ends before it.
            let _core = unsafe { refs::reclaim::Core::register() };
            // SAFETY: this thread has no other Cx, and it is registered.
            let mut cx = unsafe { Cx::new(core::ptr::null()) };
            let realm = Realm::new();
            for number in 0..1000 {
                let owner = StrongRc::new_in(number, &realm);
                assert_eq!(*owner.get(&cx), number);
                owner.destroy(&mut cx);
            }
            realm.close(&mut cx).unwrap();
        })
        .join()
        .unwrap();
        assert!(name.is_gone(), "a link that went to another thread does not revive old names");
    });
}

#[test]
fn a_long_chain_of_local_objects_is_destroyed_without_recursion() {
    struct Node(Option<StrongRc<Node, Local>>, Noted);
    with_cx(|cx| {
        let realm = Realm::new();
        let mut chain = None;
        for number in 0..100_000 {
            chain = Some(StrongRc::new_in(Node(chain, Noted(number)), &realm));
        }
        assert!(chain.as_ref().is_some_and(|node| node.with(|node| node.0.is_some() && node.1.0 == 99_999)));
        chain.unwrap().destroy(cx);
        assert_eq!(dropped(), 100_000);
        realm.close(cx).unwrap();
    });
}

#[test]
fn ending_a_group_ends_every_name_into_it_and_no_other() {
    with_cx(|cx| {
        let (group, other) = (Group::new(), Group::new());
        let owners: Vec<_> = (0..1000).map(|number| StrongRc::new_in(Noted(number), &group)).collect();
        let names: Vec<WeakRc<Noted, Grouped>> = owners.iter().map(StrongRc::downgrade).collect();
        let outside = StrongRc::new_in(Noted(1), &other);
        let mut borrowed = owners[0].get(cx);
        assert!(names.iter().zip(0..).all(|(name, number)| name.upgrade(cx).unwrap().0 == number));
        group.end();
        assert!(names.iter().all(|name| name.upgrade(cx).err() == Some(Gone)));
        assert!(outside.downgrade().upgrade(cx).is_ok());
        borrowed = borrowed.clone();
        assert_eq!((borrowed.0, borrowed.downgrade().is_gone(), dropped()), (0, true, 0));
        drop(borrowed);
        for owner in owners {
            owner.destroy(cx);
        }
        assert_eq!(dropped(), 1000);
        outside.destroy(cx);
    });
}

#[test]
fn a_new_group_does_not_revive_the_names_of_an_old_one() {
    with_cx(|cx| {
        let mut names = Vec::new();
        let mut owners = Vec::new();
        for number in 0..100 {
            let group = Group::new();
            owners.push(StrongRc::new_in(Noted(number), &group));
            names.push((group.name(), owners[owners.len() - 1].downgrade()));
        }
        let group = Group::new();
        assert!(names.iter().all(|(group, name)| group.is_gone() && name.is_gone()));
        assert!(names.iter().all(|(name, _)| *name != group.name()));
        owners.into_iter().for_each(|owner| owner.destroy(cx));
    });
}

/// What brings something to its end.
type Ending = Box<dyn FnOnce(&mut Cx)>;

fn ignore(_: &'static WakeSlot) {}

#[test]
fn who_waits_for_anything_mortal_is_woken_when_it_ends() {
    with_cx(|cx| {
        let group = Group::new();
        let realm = Realm::new();
        let shared = StrongRc::new(Noted(1));
        let grouped = StrongRc::new_in(Noted(2), &group);
        let local = StrongRc::new_in(Noted(3), &realm);
        let versioned = StrongRc::new(Versioned::new(Noted(4)));
        let speaker: StrongRc<dyn Speak> = StrongRc::new(Dog(Noted(5))).unsize(|dog| dog);
        let things: [&dyn Mortal; 6] = [
            &shared.downgrade(),
            &grouped.downgrade(),
            &local.downgrade(),
            &versioned.get(cx).downgrade_stable(),
            &group.name(),
            &speaker.downgrade(),
        ];
        let slot: &'static WakeSlot = Box::leak(Box::new(WakeSlot::new(ignore)));
        let mut ends: Vec<Option<Ending>> = vec![
            Some(Box::new(|cx| shared.destroy(cx))),
            Some(Box::new(|_| group.end())),
            Some(Box::new(|_| drop(local))),
            Some(Box::new(|cx| versioned.destroy(cx))),
            None,
            Some(Box::new(|_| drop(speaker))),
        ];
        for (index, thing) in things.iter().enumerate() {
            let waker = slot.prepare();
            let Some(end) = ends[index].take() else {
                assert!(thing.is_gone(), "the group was ended before");
                continue;
            };
            assert!(!thing.is_gone());
            thing.watch_end(waker, cx);
            assert!(slot.commit(), "nothing has happened yet");
            end(cx);
            assert!(thing.is_gone() && !slot.is_parked(), "{index}");
            slot.finish();
            let late = slot.prepare();
            thing.watch_end(late, cx);
            assert!(!slot.commit(), "what is over already wakes at once");
            slot.finish();
        }
        grouped.destroy(cx);
        realm.quiescent(cx);
        realm.close(cx).unwrap();
    });
}

#[test]
fn nobody_reaches_an_object_while_its_teardown_suspends() {
    with_cx(|cx| {
        let owner = StrongRc::new(Noted(6));
        let name = owner.downgrade();
        let slot: &'static WakeSlot = Box::leak(Box::new(WakeSlot::new(ignore)));
        let waker = slot.prepare();
        name.watch(waker, cx);
        let result = owner.destroy_async(cx, |object, cx| {
            assert!(name.upgrade(cx).is_err() && !waker.is_waiting());
            // What a suspension does.
            refs::reclaim::reclaim(cx);
            assert_eq!((object.0, dropped()), (6, 0), "it is not freed before its teardown is over");
            "torn down"
        });
        assert_eq!((result, dropped()), (Some("torn down"), 1));
    });
}

#[test]
fn a_borrow_is_as_wide_as_a_reference_and_a_name_costs_three_words() {
    assert_eq!(size_of::<WeakRc<u8>>(), 24);
    assert_eq!(size_of::<WeakRc<u8, Local>>(), 24);
    assert_eq!(size_of::<StrongRc<u8>>(), 8);
    #[cfg(not(feature = "check-temps"))]
    assert_eq!((size_of::<refs::TempRc<u8>>(), size_of::<Option<refs::TempRc<u8>>>()), (8, 8));
}
