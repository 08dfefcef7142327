//! [`TicketSet`]: some of the members.

use alloc::collections::BTreeSet;

use super::Ticket;

/// Tickets in ascending order. Most sets have one at most, which needs no allocation.
#[derive(Default)]
pub struct TicketSet {
    /// The only one, unless others have been there since it was alone.
    only: Option<Ticket>,
    /// All of several.
    several: BTreeSet<Ticket>,
}

impl TicketSet {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.only.is_none() && self.several.is_empty()
    }

    /// Enters one, unless it is there.
    pub fn insert(&mut self, ticket: Ticket) {
        match self.only {
            None if self.several.is_empty() => self.only = Some(ticket),
            None => {
                self.several.insert(ticket);
            }
            Some(only) if only == ticket => {}
            Some(only) => {
                self.only = None;
                self.several.extend([only, ticket]);
            }
        }
    }

    /// Takes one out; whether it was there.
    #[inline(always)]
    pub fn remove(&mut self, ticket: Ticket) -> bool {
        if self.only == Some(ticket) {
            self.only = None;
            return true;
        }
        !self.several.is_empty() && self.several.remove(&ticket)
    }

    /// Gives a ticket, if it is there, to another set, in which it has another number.
    #[cold]
    #[inline(never)]
    pub fn hand_over(&mut self, ticket: Ticket, to: &mut TicketSet, number: Ticket) {
        if self.remove(ticket) {
            to.insert(number);
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Ticket> {
        self.only.iter().chain(&self.several).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_or_several_come_and_leave() {
        let mut set = TicketSet::default();
        for highest in [1, 2, 5, 1] {
            (1..=highest).rev().for_each(|number| set.insert(Ticket(number)));
            set.insert(Ticket(1));
            assert!(set.iter().eq((1..=highest).map(Ticket)));
            assert!(!set.remove(Ticket(9)));
            let mut other = TicketSet::default();
            set.hand_over(Ticket(9), &mut other, Ticket(7));
            assert!(other.is_empty());
            set.hand_over(Ticket(1), &mut other, Ticket(7));
            assert!(other.iter().eq([Ticket(7)]) && set.iter().all(|ticket| ticket != Ticket(1)));
            other.hand_over(Ticket(7), &mut set, Ticket(1));
            for number in 1..=highest {
                assert!(set.remove(Ticket(number)) && !set.remove(Ticket(number)));
            }
            assert!(set.is_empty() && set.iter().next().is_none());
        }
    }
}
