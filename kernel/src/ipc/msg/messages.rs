//! [`Messages`]: what is in a queue, and which of it a receiver wants.
//!
//! A message is found by its type in a tree of types, so a search looks at few. Only who wants another type than one, or the message behind so many others, goes from one to the next;
//! such a [`Search`] is cut, and goes on where it was: a message that comes meanwhile stands behind all others.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;

use super::text::Text;
use crate::pieces::Pieces;
use crate::step::{Interruption, Step, Stop, TimeSlice};

/// So many messages are looked at before the time is.
const LOOKED_AT: usize = 256;

/// So many are freed at a time.
const FREED_AT_ONCE: usize = 16;

/// A message.
#[derive(Clone)]
pub struct Message {
    /// Above 0.
    pub kind: i64,
    /// What it says. Whoever copies the message (MSG_COPY) has the same text.
    pub text: Arc<Text>,
}

/// Which message is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The first.
    Any,
    /// The first of a type.
    Kind(i64),
    /// The first of another type.
    Other(i64),
    /// The first of the lowest type, if that is no more than this.
    Lowest(i64),
    /// The one behind so many others, which stays (MSG_COPY).
    Copy(usize),
}

impl Wanted {
    /// Whether a receiver that waits takes a message of a type.
    pub fn takes(self, kind: i64) -> bool {
        match self {
            Wanted::Any => true,
            Wanted::Kind(wanted) => kind == wanted,
            Wanted::Other(unwanted) => kind != unwanted,
            Wanted::Lowest(most) => kind <= most,
            Wanted::Copy(_) => false,
        }
    }
}

/// A search, and how far it is.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// What is searched for, behind what was passed.
    wanted: Wanted,
    /// It is no message up to this number.
    passed: u64,
}

impl Search {
    /// A search that begins.
    pub fn new(wanted: Wanted) -> Self {
        Search { wanted, passed: 0 }
    }
}

/// The messages in a queue, with numbers that ascend in the order in which they came. (Trees need no large piece of memory.)
#[derive(Default)]
pub struct Messages {
    in_order: BTreeMap<u64, Message>,
    /// Type and number of each.
    by_kind: BTreeSet<(i64, u64)>,
    last: u64,
}

impl Messages {
    /// A message comes, behind all others.
    pub fn push(&mut self, message: Message) {
        self.last += 1;
        self.by_kind.insert((message.kind, self.last));
        self.in_order.insert(self.last, message);
    }

    /// The message of a number.
    pub fn get(&self, number: u64) -> Option<&Message> {
        self.in_order.get(&number)
    }

    /// Takes a message out.
    pub fn remove(&mut self, number: u64) -> Option<Message> {
        let message = self.in_order.remove(&number)?;
        self.by_kind.remove(&(message.kind, number));
        Some(message)
    }

    /// The number of the message that is wanted; `None`: there is none.
    ///
    /// # Errors
    /// `Pause`: the search goes on when others have had their turn.
    pub fn find(&self, search: &mut Search) -> Step<Option<u64>> {
        let found = match search.wanted {
            Wanted::Any => self.in_order.first_key_value().map(|(number, _)| *number),
            Wanted::Kind(kind) => self.by_kind.range((kind, 0)..=(kind, u64::MAX)).next().map(|(_, number)| *number),
            Wanted::Lowest(most) => self.by_kind.first().filter(|(kind, _)| *kind <= most).map(|(_, number)| *number),
            Wanted::Other(_) | Wanted::Copy(_) => return self.go_through(search),
        };
        Ok(found)
    }

    fn go_through(&self, search: &mut Search) -> Step<Option<u64>> {
        let mut time_slice = TimeSlice::default();
        for (count, (number, message)) in (1..).zip(self.in_order.range(search.passed + 1..)) {
            match &mut search.wanted {
                Wanted::Copy(0) => return Ok(Some(*number)),
                Wanted::Copy(before) => *before -= 1,
                wanted if wanted.takes(message.kind) => return Ok(Some(*number)),
                _ => {}
            }
            search.passed = *number;
            if count % LOOKED_AT == 0 && time_slice.is_over() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
        }
        Ok(None)
    }
}

impl Pieces for Messages {
    fn free_piece(&mut self) -> bool {
        (0..FREED_AT_ONCE).all(|_| {
            let message = self.in_order.pop_first();
            self.by_kind.pop_first().is_some() || message.is_some()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(kinds: &[i64]) -> Messages {
        let mut messages = Messages::default();
        for kind in kinds {
            messages.push(Message { kind: *kind, text: Arc::default() });
        }
        messages
    }

    fn found(messages: &Messages, wanted: Wanted) -> Option<u64> {
        messages.find(&mut Search::new(wanted)).unwrap()
    }

    #[test]
    fn the_first_of_what_is_wanted_is_found() {
        let messages = messages(&[3, 3, 5, 2, 2, 7]);
        assert_eq!(found(&messages, Wanted::Any), Some(1));
        assert_eq!(found(&messages, Wanted::Kind(2)), Some(4));
        assert_eq!(found(&messages, Wanted::Kind(4)), None);
        assert_eq!(found(&messages, Wanted::Other(3)), Some(3));
        assert_eq!(found(&messages, Wanted::Lowest(6)), Some(4));
        assert_eq!(found(&messages, Wanted::Lowest(1)), None);
        assert_eq!(found(&messages, Wanted::Copy(2)), Some(3));
        assert_eq!(found(&messages, Wanted::Copy(6)), None);
    }

    #[test]
    fn a_message_that_was_taken_out_is_not_found_by_its_type() {
        let mut messages = messages(&[3, 2, 3]);
        assert_eq!(messages.remove(1).map(|message| message.kind), Some(3));
        assert_eq!(found(&messages, Wanted::Kind(3)), Some(3));
        assert!(messages.remove(1).is_none());
        assert_eq!(messages.remove(3).map(|message| message.kind), Some(3));
        assert_eq!(found(&messages, Wanted::Kind(3)), None);
        assert_eq!(found(&messages, Wanted::Other(2)), None);
        assert_eq!(found(&messages, Wanted::Any), Some(2));
    }

    #[test]
    fn a_search_that_found_nothing_finds_what_comes_later() {
        let mut messages = messages(&[3, 3]);
        let mut search = Search::new(Wanted::Other(3));
        assert_eq!(messages.find(&mut search).unwrap(), None);
        messages.push(Message { kind: 4, text: Arc::default() });
        assert_eq!(messages.find(&mut search).unwrap(), Some(3));
    }

    #[test]
    fn all_are_freed_in_pieces() {
        let mut messages = messages(&[1; 40]);
        let pieces = (1..).take_while(|_| messages.free_piece()).count();
        assert_eq!(pieces, 2);
        assert_eq!(found(&messages, Wanted::Any), None);
    }
}
