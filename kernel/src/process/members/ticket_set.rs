//! [`TicketSet`]: some of the members.

use alloc::collections::BTreeMap;

use super::Ticket;

/// Tickets in ascending order. Most sets have one at most, which needs no allocation.
///
/// The others stand in words of [`WIDTH`] tickets that follow each other: members that were made together often come together.
#[derive(Default)]
pub struct TicketSet {
    /// The only one, unless others have been there since it was alone.
    only: Option<Ticket>,
    /// The word that was changed last, and its number. It is not among the others.
    last: (u64, u64),
    /// All others that are not 0, by their numbers.
    others: BTreeMap<u64, u64>,
}

/// So many tickets stand in a word.
const WIDTH: u64 = u64::BITS as u64;

impl TicketSet {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.only.is_none() && self.has_no_words()
    }

    #[inline(always)]
    fn has_no_words(&self) -> bool {
        self.last.1 == 0 && self.others.is_empty()
    }

    /// Enters one, unless it is there.
    pub fn insert(&mut self, ticket: Ticket) {
        match self.only {
            None if self.has_no_words() => self.only = Some(ticket),
            None => *self.word(ticket) |= bit(ticket),
            Some(only) if only == ticket => {}
            Some(only) => {
                self.only = None;
                *self.word(only) |= bit(only);
                *self.word(ticket) |= bit(ticket);
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
        !self.has_no_words() && self.remove_of_several(ticket)
    }

    #[inline(never)]
    fn remove_of_several(&mut self, ticket: Ticket) -> bool {
        let word = self.word(ticket);
        let was_there = *word & bit(ticket) != 0;
        *word &= !bit(ticket);
        was_there
    }

    /// The word in which a ticket stands or would; it is the last one from now on.
    #[inline(always)]
    fn word(&mut self, Ticket(ticket): Ticket) -> &mut u64 {
        let number = ticket / WIDTH;
        if self.last.0 != number {
            self.change_word(number);
        }
        &mut self.last.1
    }

    #[cold]
    #[inline(never)]
    fn change_word(&mut self, number: u64) {
        let next = self.others.remove(&number).unwrap_or(0);
        let (before, word) = core::mem::replace(&mut self.last, (number, next));
        if word != 0 {
            self.others.insert(before, word);
        }
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
        let (number, last) = self.last;
        let before = self.others.range(..number).map(|(number, word)| (*number, *word));
        let behind = self.others.range(number..).map(|(number, word)| (*number, *word));
        let several = before.chain([(number, last)]).chain(behind).flat_map(|(number, word)| tickets(number, word));
        self.only.into_iter().chain(several)
    }
}

/// Where a ticket stands in its word.
#[inline(always)]
fn bit(Ticket(ticket): Ticket) -> u64 {
    1 << (ticket % WIDTH)
}

/// The tickets in a word.
fn tickets(number: u64, word: u64) -> impl Iterator<Item = Ticket> {
    let words = core::iter::successors(Some(word), |word| Some(word & word.wrapping_sub(1)));
    words.take_while(|word| *word != 0).map(move |word| Ticket(number * WIDTH + u64::from(word.trailing_zeros())))
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

    #[test]
    fn whatever_comes_and_leaves_is_in_order() {
        let (mut set, mut known) = (TicketSet::default(), std::collections::BTreeSet::new());
        let mut state = 1_u64;
        for round in 0..5000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let number = 1 + (state >> 33) % if round % 1000 < 500 { 1000 } else { 70 };
            if round % 1000 < 300 {
                set.insert(Ticket(number));
                known.insert(number);
            } else {
                assert_eq!(set.remove(Ticket(number)), known.remove(&number));
            }
            assert!(set.is_empty() == known.is_empty());
            assert!(set.iter().eq(known.iter().copied().map(Ticket)));
        }
        known.iter().for_each(|number| assert!(set.remove(Ticket(*number))));
        assert!(set.is_empty() && set.others.is_empty());
    }
}
