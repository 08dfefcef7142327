//! Groups: their death, and what is left for later.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use groups::{
    Arena, Budget, Chunks, Contents, Cost, Denied, Exports, Group, Imports, Limits, Mortuary, Name, Objects, Scrub,
    Tree, classes,
};
use refs::{Grouped, StrongRc};

classes! {
    enum Held { Base = Cost::eager(100), Link = Cost::eager(10), Session = Cost::deferred(5) }
}

/// Something outside that counts who holds it, and how often something was destroyed.
#[derive(Default)]
struct Outside {
    holders: AtomicUsize,
    destroyed: AtomicUsize,
}

struct Link(Arc<Outside>);

impl Link {
    fn new(outside: &Arc<Outside>) -> Self {
        outside.holders.fetch_add(1, Ordering::Relaxed);
        Link(Arc::clone(outside))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.0.holders.fetch_sub(1, Ordering::Relaxed);
    }
}

struct Session {
    outside: Arc<Outside>,
    _text: String,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.outside.destroyed.fetch_add(1, Ordering::Relaxed);
    }
}

/// What a client has.
struct Client<'t> {
    files: Imports<'t, Held, u32, Link>,
    watched: Exports<'t, Held, Link>,
    entries: Arena<'t, u64>,
    sessions: Objects<'t, Held, Session>,
    owners: Objects<'t, Held, StrongRc<u64, Grouped>>,
}

impl<'t> Client<'t> {
    fn new(budget: Budget<'t, Held>, pool: &'t Chunks) -> Self {
        Client {
            files: Imports::new(budget, Held::Link),
            watched: Exports::new(budget, Held::Link),
            entries: Arena::new(pool),
            sessions: Objects::new(budget, Held::Session),
            owners: Objects::new(budget, Held::Session),
        }
    }
}

impl Contents for Client<'_> {
    fn scrub(&mut self, scrub: &mut Scrub) {
        self.files.scrub(scrub);
        self.watched.scrub(scrub);
        self.entries.scrub(scrub);
        self.sessions.scrub(scrub);
        self.owners.scrub(scrub);
    }

    fn destroy_step(&mut self, most: usize) -> usize {
        let done = self.sessions.destroy_step(most);
        done + self.owners.destroy_step(most - done)
    }
}

#[test]
fn a_kill_cuts_the_links_and_leaves_destructors_for_later_steps() {
    let (tree, pool) = (Tree::new(), Chunks::new(100));
    let outside = Arc::new(Outside::default());
    let mortuary = Mortuary::new();
    let time = Cell::new(0);
    let clock = || {
        time.set(time.get() + 7);
        time.get()
    };
    let parent = tree.root().child(Limits::bound(10_000)).unwrap();
    let limits = Limits { bound: 1_000, reserved: 1_000 };
    let mut group = Group::new(*parent, limits, Held::Base, |budget| Client::new(budget, &pool)).unwrap();
    let mut budget = group.budget();
    let names: Vec<Name<u64>> = (0..50_000).map(|n| group.entries.insert(n).unwrap()).collect();
    for key in 0..30 {
        group.files.acquire(&mut budget, key % 3, || Link::new(&outside)).unwrap();
    }
    group.watched.export(&mut budget, || Link::new(&outside)).unwrap();
    for _ in 0..1_000 {
        let session = || Session { outside: Arc::clone(&outside), _text: "text".repeat(10) };
        group.sessions.insert(&mut budget, session).unwrap();
    }
    let grouped = StrongRc::new_in(5, group.names());
    let name = grouped.downgrade();
    group.owners.insert(&mut budget, || grouped).unwrap();
    assert_eq!(budget.usage().unwrap().current, 140);
    assert_eq!(parent.usage().unwrap().current, 1_000);
    assert_eq!(outside.holders.load(Ordering::Relaxed), 4);
    assert!(group.entries.get(names[77]) == Some(&77) && !name.is_gone());

    let report = group.kill(&mortuary, &clock);
    assert_eq!((report.charged, report.measured, report.is_overrun()), (140, 7, false));
    assert_eq!((report.links, report.deferred), (4, 1_001));
    assert!(report.chunks > 10 && pool.lens() == (report.chunks as usize, 0));
    assert_eq!((outside.holders.load(Ordering::Relaxed), outside.destroyed.load(Ordering::Relaxed)), (0, 0));
    assert!(name.is_gone());
    assert_eq!(budget.charge(Held::Session, 1).err(), Some(Denied::Ended));
    assert_eq!((tree.root().usage().unwrap().current, parent.usage().unwrap().count(Held::Session)), (0, 0));

    assert_eq!(mortuary.step(10), 10);
    assert_eq!(outside.destroyed.load(Ordering::Relaxed), 10);
    assert!(!mortuary.is_empty());
    while mortuary.step(100) == 100 {}
    assert!(mortuary.is_empty());
    assert_eq!(outside.destroyed.load(Ordering::Relaxed), 1_000);
}

#[test]
fn a_kill_that_takes_longer_than_was_charged_is_counted() {
    let (tree, pool) = (Tree::new(), Chunks::new(1));
    let mortuary = Mortuary::new();
    let time = Cell::new(0);
    let slow = || {
        time.set(time.get() + 101);
        time.get()
    };
    let group = Group::new(tree.root(), Limits::bound(100), Held::Base, |budget| Client::new(budget, &pool)).unwrap();
    let report = group.kill(&mortuary, &slow);
    assert!(report.is_overrun());
    assert_eq!(tree.root().usage().unwrap().overruns, 1);
}

#[test]
fn a_group_that_is_dropped_destroys_its_contents_and_gives_its_charges_back() {
    let (tree, pool) = (Tree::new(), Chunks::new(10));
    let outside = Arc::new(Outside::default());
    let limits = Limits { bound: 300, reserved: 200 };
    let mut group = Group::new(tree.root(), limits, Held::Base, |budget| Client::new(budget, &pool)).unwrap();
    let mut budget = group.budget();
    group.watched.export(&mut budget, || Link::new(&outside)).unwrap();
    group.entries.insert(1).unwrap();
    drop(group);
    assert_eq!(outside.holders.load(Ordering::Relaxed), 0);
    assert_eq!((tree.root().usage().unwrap().current, pool.lens().1), (0, 0));
    assert!(budget.usage().is_none());
}

#[test]
fn a_group_for_which_there_is_no_room_is_not_made() {
    let (tree, pool) = (Tree::new(), Chunks::new(10));
    let parent = tree.root().child(Limits::bound(150)).unwrap();
    let make = |limits| Group::new(*parent, limits, Held::Base, |budget| Client::new(budget, &pool));
    assert_eq!(make(Limits::bound(99)).err(), Some(Denied::Full { depth: 2 }));
    let first = make(Limits::bound(100)).unwrap();
    assert_eq!(make(Limits::bound(100)).err(), Some(Denied::Full { depth: 1 }));
    drop(first);
    assert!(make(Limits { bound: 100, reserved: 150 }).is_ok());
    assert_eq!(parent.usage().unwrap().current, 0);
}

/// A client that has clients.
struct Clients<'t>(Vec<Group<'t, 't, Held, Client<'t>>>);

impl Contents for Clients<'_> {
    fn scrub(&mut self, scrub: &mut Scrub) {
        self.0.iter_mut().for_each(|client| client.scrub(scrub));
    }

    fn destroy_step(&mut self, most: usize) -> usize {
        let mut done = 0;
        while let Some(client) = self.0.last_mut() {
            done += client.destroy_step(most - done);
            if done == most {
                break;
            }
            self.0.pop();
        }
        done
    }
}

#[test]
fn groups_in_a_group_are_charged_to_it_and_die_with_it() {
    let (tree, pool) = (Tree::new(), Chunks::new(10));
    let outside = Arc::new(Outside::default());
    let mortuary = Mortuary::new();
    let mut outer = Group::new(tree.root(), Limits::bound(350), Held::Base, |_| Clients(Vec::new())).unwrap();
    let outer_budget = outer.budget();
    let make = || Group::new(outer_budget, Limits::bound(1_000), Held::Base, |budget| Client::new(budget, &pool));
    let mut names = Vec::new();
    for _ in 0..2 {
        let mut inner = make().unwrap();
        let mut budget = inner.budget();
        inner.watched.export(&mut budget, || Link::new(&outside)).unwrap();
        let session = || Session { outside: Arc::clone(&outside), _text: String::new() };
        inner.sessions.insert(&mut budget, session).unwrap();
        inner.entries.insert(1).unwrap();
        names.push((inner.names().name(), budget));
        outer.0.push(inner);
    }
    assert_eq!(make().err(), Some(Denied::Full { depth: 1 }));
    let report = outer.kill(&mortuary, &|| 0);
    assert_eq!((report.charged, report.links, report.chunks, report.deferred), (320, 2, 2, 2));
    assert!(names.iter().all(|(name, budget)| name.is_gone() && budget.charge(Held::Session, 1).is_err()));
    assert_eq!((outside.holders.load(Ordering::Relaxed), pool.lens().1), (0, 0));
    assert_eq!(tree.root().usage().unwrap().current, 0);
    while mortuary.step(1) == 1 {}
    assert_eq!(outside.destroyed.load(Ordering::Relaxed), 2);
    assert!(names.iter().all(|(_, budget)| budget.usage().is_none()));
}

struct Failing;

impl Drop for Failing {
    fn drop(&mut self) {
        panic!("a destructor that fails");
    }
}

struct Fails<'t>(Objects<'t, Held, Failing>, Exports<'t, Held, Failing>);

impl Contents for Fails<'_> {
    fn scrub(&mut self, scrub: &mut Scrub) {
        self.1.scrub(scrub);
        self.0.scrub(scrub);
    }

    fn destroy_step(&mut self, most: usize) -> usize {
        self.0.destroy_step(most)
    }
}

#[test]
fn a_destructor_that_panics_leaves_the_mortuary_usable_and_no_charge_behind() {
    let caught = |f: &mut dyn FnMut()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).is_err();
    let tree = Tree::new();
    let make = || {
        let contents = |budget| Fails(Objects::new(budget, Held::Session), Exports::new(budget, Held::Link));
        Group::new(tree.root(), Limits::bound(200), Held::Base, contents).unwrap()
    };
    let mortuary = Mortuary::new();
    let mut group = make();
    let mut budget = group.budget();
    group.0.insert(&mut budget, || Failing).unwrap();
    group.kill(&mortuary, &|| 0);
    assert!(caught(&mut || _ = mortuary.step(10)));
    assert_eq!(mortuary.step(10), 0);
    let mut group = Some(make());
    if let Some(group) = &mut group {
        let mut budget = group.budget();
        group.1.export(&mut budget, || Failing).unwrap();
    }
    assert!(caught(&mut || _ = group.take().map(|group| group.kill(&mortuary, &|| 0))));
    assert_eq!(tree.root().usage().unwrap().current, 0);
}

#[test]
fn steps_of_several_threads_destroy_everything_once() {
    let (tree, pool) = (Tree::new(), Chunks::new(10));
    let outside = Arc::new(Outside::default());
    let mortuary = Mortuary::new();
    for _ in 0..20 {
        let mut group =
            Group::new(tree.root(), Limits::bound(1_000), Held::Base, |budget| Client::new(budget, &pool)).unwrap();
        let mut budget = group.budget();
        for _ in 0..30 {
            let session = || Session { outside: Arc::clone(&outside), _text: String::new() };
            group.sessions.insert(&mut budget, session).unwrap();
        }
        group.kill(&mortuary, &|| 0);
    }
    let steps = Mutex::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while mortuary.step(4) == 4 {
                    *steps.lock().unwrap() += 1;
                }
            });
        }
    });
    while mortuary.step(4) == 4 {}
    assert_eq!(outside.destroyed.load(Ordering::Relaxed), 600);
    assert!(*steps.lock().unwrap() >= 140);
}

#[test]
fn a_mortuary_that_is_dropped_destroys_the_rest_however_many_groups_it_is_of() {
    let (tree, pool) = (Tree::new(), Chunks::new(1));
    let mortuary = Mortuary::new();
    let count = if cfg!(miri) { 100 } else { 100_000 };
    for _ in 0..count {
        let group = Group::new(tree.root(), Limits::bound(1_000), Held::Base, |budget| Client::new(budget, &pool));
        group.unwrap().kill(&mortuary, &|| 0);
    }
    drop(mortuary);
}
