//! The scrub list of a group: what leads out of it and what leads in, and nothing else. Its death walks these entries, not its objects.
//!
//! - [`Imports`]: one entry for each *distinct* object outside that the group holds, however often it holds it.
//! - [`Exports`]: one entry for each object inside that somebody outside holds, however many hold it.
//!
//! An entry's *link* is a value whose destructor does what must be done outside: release a lock, wake who waits, tell a peer. Every entry is charged
//! when it is made. Nothing is allocated when the entries die, and memory goes back by the chunk.

use alloc::collections::BTreeMap;

use crate::slots::{Slot, Slots};
use crate::{Budget, Charge, Class, Denied, Stock};

/// From where a table takes its charges: from a [`Budget`], or faster from a [`Stock`] of it.
pub trait ChargeFrom<'t, C: Class> {
    /// The budget that is charged.
    fn budget(&self) -> Budget<'t, C>;

    /// Charges it.
    fn charge(&mut self, class: C, count: u32) -> Result<Charge<'t, C>, Denied>;

    /// Gives a charge back.
    fn give_back(&mut self, charge: Charge<'t, C>) {
        drop(charge);
    }
}

impl<'t, C: Class> ChargeFrom<'t, C> for Budget<'t, C> {
    fn budget(&self) -> Budget<'t, C> {
        *self
    }

    fn charge(&mut self, class: C, count: u32) -> Result<Charge<'t, C>, Denied> {
        Budget::charge(*self, class, count)
    }
}

impl<'t, C: Class> ChargeFrom<'t, C> for Stock<'t, C> {
    fn budget(&self) -> Budget<'t, C> {
        Stock::budget(self)
    }

    fn charge(&mut self, class: C, count: u32) -> Result<Charge<'t, C>, Denied> {
        Stock::charge(self, class, count)
    }

    fn give_back(&mut self, charge: Charge<'t, C>) {
        Stock::give_back(self, charge);
    }
}

/// What a group's death has found so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scrub {
    /// Links to the outside that were cut.
    pub links: u64,
    /// Chunks of memory that went back at once.
    pub chunks: u64,
    /// Objects whose destructors are still to run.
    pub deferred: u64,
}

/// Charges for the entries of one table, all of one class and to one budget.
#[derive(Debug)]
pub(crate) struct Charged<'t, C: Class> {
    charge: Charge<'t, C>,
    /// The group is dying: nothing is added any more.
    is_dying: bool,
}

impl<'t, C: Class> Charged<'t, C> {
    pub(crate) fn new(budget: Budget<'t, C>, class: C) -> Self {
        Charged { charge: Charge::none(budget, class), is_dying: false }
    }

    /// What a new entry costs, to be [kept](Self::keep) once it is there.
    pub(crate) fn one(&self, from: &mut impl ChargeFrom<'t, C>) -> Result<Charge<'t, C>, Denied> {
        if self.is_dying || from.budget() != self.charge.budget() {
            return Err(Denied::Ended);
        }
        from.charge(self.charge.class(), 1)
    }

    pub(crate) fn keep(&mut self, one: Charge<'t, C>) {
        // It is of the same budget and class; and a table has fewer entries than a charge can count.
        drop(self.charge.merge(one));
    }

    pub(crate) fn give_back(&mut self, from: &mut impl ChargeFrom<'t, C>) {
        if let Some(one) = self.charge.split(1) {
            from.give_back(one);
        }
    }

    pub(crate) fn die(&mut self) {
        self.is_dying = true;
    }

    pub(crate) fn is_dying(&self) -> bool {
        self.is_dying
    }
}

#[derive(Debug)]
struct Entry<L> {
    link: L,
    uses: u32,
}

/// The objects of a group that are held outside.
#[derive(Debug)]
pub struct Exports<'t, C: Class, L> {
    entries: Slots<Entry<L>>,
    charged: Charged<'t, C>,
}

impl<'t, C: Class, L> Exports<'t, C, L> {
    /// An empty table, whose entries are charged to `budget` as objects of `class`.
    pub fn new(budget: Budget<'t, C>, class: C) -> Self {
        Exports { entries: Slots::new(), charged: Charged::new(budget, class) }
    }

    /// Enters an object that is held outside from now on, with what its death means there. `from` charges the table's budget; another one is
    /// [`Denied::Ended`].
    pub fn export(&mut self, from: &mut impl ChargeFrom<'t, C>, link: impl FnOnce() -> L) -> Result<Slot<L>, Denied> {
        let one = self.charged.one(from)?;
        let slot = self.entries.insert(Entry { link: link(), uses: 1 });
        self.charged.keep(one);
        Ok(slot.of())
    }

    /// Says that one more holds an object that is in the table. `false` if it is not, or has as many holders as can be counted.
    #[must_use]
    pub fn hold(&mut self, slot: Slot<L>) -> bool {
        let Some(entry) = self.entries.get_mut(slot.of()) else { return false };
        let Some(uses) = entry.uses.checked_add(1) else { return false };
        entry.uses = uses;
        true
    }

    /// Says that one holds it no more. The last one takes the link out, and is given it.
    pub fn release(&mut self, from: &mut impl ChargeFrom<'t, C>, slot: Slot<L>) -> Option<L> {
        let entry = self.entries.get_mut(slot.of())?;
        entry.uses -= 1;
        if entry.uses > 0 {
            return None;
        }
        let removed = self.entries.remove(slot.of())?;
        self.charged.give_back(from);
        Some(removed.link)
    }

    /// The link of an entry.
    pub fn get(&self, slot: Slot<L>) -> Option<&L> {
        self.entries.get(slot.of()).map(|entry| &entry.link)
    }

    /// The link of an entry.
    pub fn get_mut(&mut self, slot: Slot<L>) -> Option<&mut L> {
        self.entries.get_mut(slot.of()).map(|entry| &mut entry.link)
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Cuts all links: each is dropped. Nothing can be added any more. The charges stay until the group's budget ends.
    pub fn scrub(&mut self, scrub: &mut Scrub) {
        self.charged.die();
        while let Some(entry) = self.entries.take_any() {
            drop(entry);
            scrub.links += 1;
        }
    }
}

/// The distinct objects outside that a group holds, each with a key that says which it is.
#[derive(Debug)]
pub struct Imports<'t, C: Class, K: Ord + Clone, L> {
    links: Exports<'t, C, Import<K, L>>,
    by_key: BTreeMap<K, Slot<Import<K, L>>>,
}

#[derive(Debug)]
struct Import<K, L> {
    key: K,
    link: L,
}

impl<'t, C: Class, K: Ord + Clone, L> Imports<'t, C, K, L> {
    /// An empty table, whose entries are charged to `budget` as objects of `class`.
    pub fn new(budget: Budget<'t, C>, class: C) -> Self {
        Imports { links: Exports::new(budget, class), by_key: BTreeMap::new() }
    }

    /// Holds an object outside: once more if it is held already, else through a new link. What is held more than once is charged once. An object that
    /// is held as often as can be counted is [`Denied::Full`]. `from` charges the table's budget; another one is [`Denied::Ended`].
    pub fn acquire(
        &mut self,
        from: &mut impl ChargeFrom<'t, C>,
        key: K,
        link: impl FnOnce() -> L,
    ) -> Result<Slot<L>, Denied> {
        if let Some(&slot) = self.by_key.get(&key) {
            return match self.links.hold(slot) {
                true => Ok(slot.of()),
                false if self.links.charged.is_dying() => Err(Denied::Ended),
                false => Err(Denied::Full { depth: 0 }),
            };
        }
        let slot = self.links.export(from, || Import { key: key.clone(), link: link() })?;
        self.by_key.insert(key, slot);
        Ok(slot.of())
    }

    /// Lets go of an object once. The last time its link is taken out and returned; dropping it cuts it.
    pub fn release(&mut self, from: &mut impl ChargeFrom<'t, C>, slot: Slot<L>) -> Option<L> {
        let import = self.links.release(from, slot.of())?;
        self.by_key.remove(&import.key);
        Some(import.link)
    }

    /// The link to an object.
    pub fn get(&self, slot: Slot<L>) -> Option<&L> {
        self.links.get(slot.of()).map(|import| &import.link)
    }

    /// The entry of an object that is held.
    pub fn find(&self, key: &K) -> Option<Slot<L>> {
        self.by_key.get(key).map(|slot| slot.of())
    }

    /// How many distinct objects are held.
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Cuts all links: each is dropped. Nothing can be added any more. The charges stay until the group's budget ends.
    pub fn scrub(&mut self, scrub: &mut Scrub) {
        self.links.scrub(scrub);
    }
}
