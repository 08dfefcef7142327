//! The store with a reclamation group for each session: when a client vanishes, what costs time is who outside waits for its values, however many
//! values there are.
//!
//! A value is plain data in the group's arena: its bytes are in it, or in a chain of blocks. Others know it by key through one index, which belongs to nobody:
//! its entries lead nowhere once their group has died, and each insertion removes two such entries that it comes across. Who waits for a value has an entry in its
//! group's export table; that is charged to the group that has the value, and the wait itself to the waiter's.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::LazyLock;

use groups::{
    Arena, Budget, Charge, Chunks, Contents, Cost, Exports, Group, Limits, Mortuary, Name, NoMemory, Report, Scrub,
    Slot, Tree, classes,
};
use refs::{Cx, GroupName, SpinLock, WaitList};
use rustix::time::{ClockId, clock_gettime};
use tasks::rt;

use super::{Payload, Store, Stored, Watched};

classes! {
    /// What costs time when a client vanishes, in nanoseconds.
    pub enum Held {
        /// A client without anything.
        Base = Cost::eager(50_000),
        /// A value of its that others watch.
        Watched = Cost::eager(2_000),
        /// A wait of its for a value of others.
        Wait = Cost::eager(2_000),
    }
}

/// What the death of one client may take, in nanoseconds.
const BOUND: Limits = Limits::bound(5_000_000);
/// The most memory for values: 4 GiB.
const MOST_CHUNKS: usize = 1 << 16;

static BUDGETS: LazyLock<Tree<Held>> = LazyLock::new(Tree::new);
static MEMORY: LazyLock<Chunks> = LazyLock::new(|| Chunks::new(MOST_CHUNKS));
static DEAD: LazyLock<Mortuary> = LazyLock::new(Mortuary::new);

/// The processor time that this thread has had, in nanoseconds.
pub fn thread_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Bytes of a value that are in the value itself.
const INLINE: usize = 32;

struct Value {
    version: u64,
    len: usize,
    start: [u8; INLINE],
    rest: Option<Name<Block>>,
    watched: Option<Slot<Watch>>,
}

struct Block {
    next: Option<Name<Block>>,
    bytes: [u8; 4000],
}

/// Who waits for a value. They are told when it changes, and when this ends.
struct Watch(WaitList);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.wake_all();
    }
}

/// What a client has.
struct Client {
    values: Arena<'static, Value>,
    blocks: Arena<'static, Block>,
    watched: Exports<'static, Held, Watch>,
}

impl Contents for Client {
    fn scrub(&mut self, scrub: &mut Scrub) {
        self.watched.scrub(scrub);
        self.values.scrub(scrub);
        self.blocks.scrub(scrub);
    }
}

impl Client {
    fn new(budget: Budget<'static, Held>) -> Self {
        let watched = Exports::new(budget, Held::Watched);
        Client { values: Arena::new(&MEMORY), blocks: Arena::new(&MEMORY), watched }
    }

    /// Puts bytes into blocks, or nothing.
    fn store(&mut self, bytes: &[u8]) -> Result<Option<Name<Block>>, NoMemory> {
        let mut chain = None;
        for part in bytes.chunks(4000).rev() {
            let mut block = Block { next: chain, bytes: [0; 4000] };
            block.bytes[..part.len()].copy_from_slice(part);
            match self.blocks.insert(block) {
                Ok(name) => chain = Some(name),
                Err(full) => {
                    self.free(chain);
                    return Err(full);
                }
            }
        }
        Ok(chain)
    }

    fn free(&mut self, mut chain: Option<Name<Block>>) {
        while let Some(block) = chain.and_then(|name| self.blocks.remove(name)) {
            chain = block.next;
        }
    }

    fn add(&mut self, bytes: &[u8]) -> Result<Name<Value>, NoMemory> {
        let (start, rest) = self.divide(bytes)?;
        let added = self.values.insert(Value { version: 0, len: bytes.len(), start, rest, watched: None });
        if added.is_err() {
            self.free(rest);
        }
        added
    }

    fn divide(&mut self, bytes: &[u8]) -> Result<([u8; INLINE], Option<Name<Block>>), NoMemory> {
        let (first, rest) = bytes.split_at(bytes.len().min(INLINE));
        let mut start = [0; INLINE];
        start[..first.len()].copy_from_slice(first);
        Ok((start, self.store(rest)?))
    }

    /// Changes a value, and tells who watches it.
    fn change(&mut self, name: Name<Value>, bytes: &[u8]) -> Result<(), NoMemory> {
        let (start, rest) = self.divide(bytes)?;
        if let Some(value) = self.values.get_mut(name) {
            let old = value.rest;
            (value.start, value.rest, value.len) = (start, rest, bytes.len());
            value.version += 1;
            if let Some(watch) = value.watched.and_then(|slot| self.watched.get(slot)) {
                watch.0.wake_all();
            }
            self.free(old);
        }
        Ok(())
    }
}

type Session = Group<'static, 'static, Held, Client>;

/// Where a value is: in which session, and there.
#[derive(Clone, Copy)]
struct Place {
    session: u64,
    value: Name<Value>,
}

#[derive(Default)]
struct State {
    sessions: BTreeMap<u64, Session>,
    last_session: u64,
    index: BTreeMap<u64, Place>,
    /// Up to which key stale entries were looked for.
    pruned_to: u64,
}

impl State {
    fn find(&mut self, key: u64) -> Option<(&mut Session, Name<Value>)> {
        let Place { session, value } = *self.index.get(&key)?;
        let session = self.sessions.get_mut(&session)?;
        session.values.get(value)?;
        Some((session, value))
    }

    /// Looks at the next two entries of the index, and removes those that lead nowhere.
    fn prune(&mut self) {
        for _ in 0..2 {
            let next = self.index.range((Bound::Excluded(self.pruned_to), Bound::Unbounded)).next();
            let Some((&key, place)) = next.or_else(|| self.index.first_key_value()) else { return };
            self.pruned_to = key;
            if self.sessions.get(&place.session).is_none_or(|session| session.values.get(place.value).is_none()) {
                self.index.remove(&key);
            }
        }
    }
}

/// Keeps the values of each session in a group.
#[derive(Default)]
pub struct Grouped {
    state: SpinLock<State>,
}

/// A session by number, and the name that ends with it.
#[derive(Clone)]
pub struct SessionName {
    number: u64,
    name: GroupName,
    budget: Budget<'static, Held>,
}

impl Grouped {
    /// Ends a session, and says how.
    pub fn kill(&self, name: &SessionName, cx: &Cx) -> Option<Report> {
        let session = self.state.lock(cx).sessions.remove(&name.number)?;
        Some(session.kill(&DEAD, &thread_time))
    }

    /// Looks at a value and enters the waiter with it, if it has still the version that was seen.
    fn look(&self, key: u64, seen: &Seen, waker: refs::Waker, cx: &Cx) -> Option<Watched> {
        let mut state = self.state.lock(cx);
        let Some((session, name)) = state.find(key) else { return Some(Watched::Gone) };
        let Some(watch) = session.watched.get(seen.slot) else { return Some(Watched::Gone) };
        watch.0.register(waker, cx);
        let version = session.values.get(name)?.version;
        (version != seen.version).then_some(Watched::Changed)
    }

    /// Enters a value among those that are watched, and charges both sides.
    fn begin(&self, own: Budget<'static, Held>, key: u64, cx: &Cx) -> Result<Seen, Watched> {
        let wait = own.charge(Held::Wait, 1).map_err(|_| Watched::Refused)?;
        let mut state = self.state.lock(cx);
        let (session, name) = state.find(key).ok_or(Watched::Gone)?;
        let mut budget = session.budget();
        let value = session.values.get(name).ok_or(Watched::Gone)?;
        let (version, known) = (value.version, value.watched);
        let held = known.filter(|&slot| session.watched.hold(slot));
        let slot = match held {
            Some(slot) => slot,
            None => {
                let watch = || Watch(WaitList::default());
                session.watched.export(&mut budget, watch).map_err(|_| Watched::Refused)?
            }
        };
        if let Some(value) = session.values.get_mut(name) {
            value.watched = Some(slot);
        }
        Ok(Seen { slot, version, _wait: wait })
    }

    /// Takes it out again, if it is still there.
    fn end(&self, key: u64, seen: &Seen, cx: &Cx) {
        let mut state = self.state.lock(cx);
        let Some((session, name)) = state.find(key) else { return };
        let mut budget = session.budget();
        if session.watched.release(&mut budget, seen.slot).is_some()
            && let Some(value) = session.values.get_mut(name)
        {
            value.watched = None;
        }
    }
}

/// What a waiter has seen of a value, and what is charged for it.
struct Seen {
    slot: Slot<Watch>,
    version: u64,
    _wait: Charge<'static, Held>,
}

impl Store for Grouped {
    type Session = SessionName;

    fn open(&self, cx: &Cx) -> SessionName {
        let mut session = Group::new(BUDGETS.root(), BOUND, Held::Base, Client::new)
            .expect("the root has no bound, and one client's is above what a client without anything costs");
        let (name, budget) = (session.names().name(), session.budget());
        let mut state = self.state.lock(cx);
        state.last_session += 1;
        let number = state.last_session;
        state.sessions.insert(number, session);
        SessionName { number, name, budget }
    }

    #[cfg_attr(false, ebb_lint::never_suspends)]
    fn close(&self, name: SessionName, cx: &mut Cx) {
        let _ = self.kill(&name, cx);
    }

    fn put(&self, name: &SessionName, key: u64, bytes: Payload, cx: &Cx) -> Stored {
        let mut state = self.state.lock(cx);
        let stored = match state.find(key) {
            Some((session, value)) => session.change(value, bytes.bytes()),
            None => {
                let Some(session) = state.sessions.get_mut(&name.number) else { return Stored::Refused };
                session.add(bytes.bytes()).map(|value| {
                    state.index.insert(key, Place { session: name.number, value });
                    state.prune();
                })
            }
        };
        if stored.is_ok() { Stored::Done } else { Stored::Refused }
    }

    fn get(&self, key: u64, cx: &Cx) -> Option<usize> {
        let mut state = self.state.lock(cx);
        let (session, value) = state.find(key)?;
        Some(session.values.get(value)?.len)
    }

    fn watch_async(&self, name: &SessionName, key: u64, cx: &mut Cx) -> Watched {
        let seen = match self.begin(name.budget, key, cx) {
            Ok(seen) => seen,
            Err(ended) => return ended,
        };
        let ended = rt::wait_async(cx, |cx, waker| self.look(key, &seen, waker, cx), &[&name.name]);
        self.end(key, &seen, cx);
        ended.unwrap_or(Watched::Unwanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [usize; 7] = [0, 1, INLINE, INLINE + 1, 4_000 + INLINE, 4_001 + INLINE, 100_000];

    #[test]
    fn a_value_has_the_size_that_was_put_and_ends_with_its_session() {
        rt::run(|cx: &mut Cx| {
            let store = Grouped::default();
            let (session, other) = (store.open(cx), store.open(cx));
            for (key, size) in (0..).zip(SIZES) {
                assert_eq!(store.put(&session, key, Payload::new(size), cx), Stored::Done);
                assert_eq!(store.get(key, cx), Some(size));
            }
            // Whoever changes a value, it stays its first owner's.
            for (key, size) in (0..).zip(SIZES.into_iter().rev()) {
                assert_eq!(store.put(&other, key, Payload::new(size), cx), Stored::Done);
                assert_eq!(store.get(key, cx), Some(size));
            }
            let report = store.kill(&session, cx).expect("it is there");
            assert_eq!((report.links, report.charged), (0, 50_000));
            assert!((0..7).all(|key| store.get(key, cx).is_none()));
            assert_eq!(store.put(&session, 1, Payload::new(1), cx), Stored::Refused);
            assert_eq!(store.put(&other, 1, Payload::new(1), cx), Stored::Done);
            assert_eq!(store.get(1, cx), Some(1));
        });
    }

    #[test]
    fn entries_that_lead_nowhere_are_removed_by_later_insertions() {
        rt::run(|cx: &mut Cx| {
            let store = Grouped::default();
            let (session, other) = (store.open(cx), store.open(cx));
            (0..100).for_each(|key| _ = store.put(&session, key, Payload::new(1), cx));
            store.close(session, cx);
            assert_eq!(store.state.lock(cx).index.len(), 100);
            (200..400).for_each(|key| _ = store.put(&other, key, Payload::new(1), cx));
            assert_eq!(store.state.lock(cx).index.len(), 200);
        });
    }

    #[test]
    fn watchers_learn_of_a_change_and_of_the_end_and_are_charged_until_then() {
        rt::run(|cx: &mut Cx| {
            let store = Grouped::default();
            let (owner, other) = (store.open(cx), store.open(cx));
            store.put(&owner, 1, Payload::new(1), cx);
            store.put(&owner, 2, Payload::new(1), cx);
            let charged = |session: &SessionName| session.budget.usage().map_or(0, |usage| usage.current);
            rt::finish_async(cx, |scope, cx| {
                for (key, expected) in
                    [(1, Watched::Changed), (1, Watched::Changed), (2, Watched::Gone), (3, Watched::Gone)]
                {
                    let (store, other) = (&store, other.clone());
                    scope.spawn_async(cx, move |cx| assert_eq!(store.watch_async(&other, key, cx), expected));
                }
                rt::yield_async(cx);
                assert_eq!((charged(&owner), charged(&other)), (54_000, 56_000));
                store.put(&other, 1, Payload::new(2), cx);
                rt::yield_async(cx);
                assert_eq!((charged(&owner), charged(&other)), (52_000, 52_000));
                assert_eq!(store.kill(&owner, cx).map(|report| report.links), Some(1));
            });
            assert_eq!(charged(&other), 50_000);
        });
    }

    #[test]
    fn a_client_that_watches_too_much_is_refused_what_would_make_its_end_too_long() {
        rt::run(|cx: &mut Cx| {
            let store = Grouped::default();
            let (owner, other) = (store.open(cx), store.open(cx));
            store.put(&owner, 1, Payload::new(1), cx);
            let waits: Vec<_> = (0..).map_while(|_| other.budget.charge(Held::Wait, 1).ok()).collect();
            assert_eq!(waits.len(), 2_475);
            assert_eq!(store.watch_async(&other, 1, cx), Watched::Refused);
        });
    }
}
