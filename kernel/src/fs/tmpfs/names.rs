//! [`Names`]: the entries of a directory, found by name through a hash table and listed by position.
//!
//! Entries stand in the order in which they were made, each with a *position* that only grows; a listing goes on behind a position,
//! so it tells each entry once that was there all the time, whatever is made and removed meanwhile. Removed entries leave a gap; gaps are
//! squeezed out when they are more than half of the list.

use alloc::boxed::Box;
use alloc::vec::Vec;

use hashbrown::HashTable;

/// Positions below belong to `.` and `..`.
const FIRST_POSITION: u64 = 3;

struct Slot<T> {
    hash: u64,
    /// The position behind this entry.
    position: u64,
    entry: Option<(Box<[u8]>, T)>,
}

/// Values by name, in a stable order.
pub struct Names<T> {
    slots: Vec<Slot<T>>,
    by_name: HashTable<u32>,
    next_position: u64,
}

/// A hash of a name: a multiplication for every eight bytes.
#[inline(always)]
fn hash_of(name: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = name.len() as u64;
    let mut words = name.chunks_exact(8);
    for word in &mut words {
        let word = word.try_into().map_or(0, u64::from_le_bytes);
        hash = (hash ^ word).wrapping_mul(FACTOR).rotate_left(29);
    }
    let mut last = 0;
    for &byte in words.remainder() {
        last = last << 8 | u64::from(byte);
    }
    hash = (hash ^ last).wrapping_mul(FACTOR);
    hash ^ (hash >> 32)
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Names { slots: Vec::new(), by_name: HashTable::new(), next_position: FIRST_POSITION }
    }
}

impl<T> Names<T> {
    fn index(&self, name: &[u8]) -> Option<usize> {
        let hash = hash_of(name);
        let found = self.by_name.find(hash, |&index| {
            self.slots
                .get(index as usize)
                .is_some_and(|slot| slot.hash == hash && slot.entry.as_ref().is_some_and(|(other, _)| **other == *name))
        });
        found.map(|&index| index as usize)
    }

    /// The value of a name.
    #[inline]
    pub fn get(&self, name: &[u8]) -> Option<&T> {
        let entry = self.slots.get(self.index(name)?)?.entry.as_ref()?;
        Some(&entry.1)
    }

    /// Puts another value in the place of a name's; the old one, or nothing changed if the name is not there.
    pub fn replace(&mut self, name: &[u8], value: T) -> Option<T> {
        let index = self.index(name)?;
        let entry = self.slots.get_mut(index)?.entry.as_mut()?;
        Some(core::mem::replace(&mut entry.1, value))
    }

    /// Enters a name that is not there yet.
    pub fn insert(&mut self, name: &[u8], value: T) {
        let hash = hash_of(name);
        self.next_position += 1;
        self.slots.push(Slot { hash, position: self.next_position, entry: Some((name.into(), value)) });
        let index = (self.slots.len() - 1) as u32;
        let slots = &self.slots;
        self.by_name.insert_unique(hash, index, |&index| slots.get(index as usize).map_or(0, |slot| slot.hash));
    }

    /// Takes a name out.
    pub fn remove(&mut self, name: &[u8]) -> Option<T> {
        let index = self.index(name)?;
        let slot = self.slots.get_mut(index)?;
        if let Ok(entry) = self.by_name.find_entry(slot.hash, |&other| other as usize == index) {
            entry.remove();
        }
        let (_, value) = slot.entry.take()?;
        while self.slots.last().is_some_and(|slot| slot.entry.is_none()) {
            self.slots.pop();
        }
        if self.slots.len() > 2 * self.by_name.len() + 16 {
            self.squeeze();
        }
        Some(value)
    }

    fn squeeze(&mut self) {
        self.slots.retain(|slot| slot.entry.is_some());
        self.by_name.clear();
        for (index, slot) in self.slots.iter().enumerate() {
            // Capacity was kept, so nothing is hashed again.
            self.by_name.insert_unique(slot.hash, index as u32, |_| 0);
        }
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// The entries behind a position (0: all), in order, each with the position behind it.
    pub fn behind(&self, position: u64) -> impl Iterator<Item = (u64, &[u8], &T)> {
        let start = self.slots.partition_point(|slot| slot.position <= position);
        self.slots
            .get(start..)
            .unwrap_or_default()
            .iter()
            .filter_map(|slot| slot.entry.as_ref().map(|(name, value)| (slot.position, &**name, value)))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::format;

    #[test]
    fn names_are_found_replaced_and_removed() {
        let mut names = Names::default();
        for number in 0..1000u32 {
            names.insert(format!("file-{number}").as_bytes(), number);
        }
        assert_eq!(names.get(b"file-999"), Some(&999));
        assert_eq!(names.get(b"file-1000"), None);
        assert_eq!(names.replace(b"file-5", 55), Some(5));
        for number in (0..1000u32).filter(|number| number % 10 != 0) {
            assert!(names.remove(format!("file-{number}").as_bytes()).is_some());
        }
        assert_eq!(names.len(), 100);
        assert_eq!(names.get(b"file-990"), Some(&990));
        assert_eq!(names.remove(b"file-5"), None);
    }

    #[test]
    fn a_listing_goes_on_where_it_was_although_entries_come_and_go() {
        let mut names = Names::default();
        for number in 0..100u32 {
            names.insert(format!("{number}").as_bytes(), number);
        }
        let mut seen = Vec::new();
        let mut position = 0;
        let next_behind = |names: &Names<u32>, position| {
            names.behind(position).next().map(|(next, name, &number)| (next, name.to_vec(), number))
        };
        while let Some((next, name, number)) = next_behind(&names, position) {
            seen.push(number);
            position = next;
            names.remove(&name);
            if number < 50 {
                names.insert(format!("new {number}").as_bytes(), 1000 + number);
            }
        }
        assert_eq!(seen[..100], (0..100).collect::<Vec<_>>());
        assert_eq!(seen.len(), 150);
        assert_eq!(names.len(), 0);
    }

    #[test]
    fn positions_leave_room_for_the_two_directory_links() {
        let mut names = Names::default();
        names.insert(b"a", ());
        assert!(names.behind(0).all(|(position, ..)| position > 2));
        assert_eq!(names.behind(2).count(), 1);
    }
}
