//! [`Names`]: the entries of a directory, found by name through a hash table and listed by position.
//!
//! Entries stand in the order in which they were made, each with a *position* that only grows; a listing goes on behind a position,
//! so it tells each entry once that was there all the time, whatever is made and removed meanwhile. Removed entries leave a gap; gaps are
//! squeezed out when they are more than half of the list.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::error::{Errno, Result};

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
    /// An open-addressing hash table, a power of two long: indices of slots + 2, or one of the two values below.
    buckets: Vec<u32>,
    live: usize,
    /// Buckets that are not empty.
    used: usize,
    next_position: u64,
}

const EMPTY: u32 = 0;
const REMOVED: u32 = 1;
const FIRST: u32 = 2;
/// Names up to this length are told apart by their length and their hash alone.
const SHORT: usize = 8;

/// A hash of a name. Different short names of one length have different hashes: their bytes fit into a word, and what happens to the word can
/// be undone.
#[inline(always)]
pub fn hash_of(name: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let word = |bytes: [u8; 8]| u64::from_le_bytes(bytes);
    let half = |bytes: [u8; 4]| u64::from(u32::from_le_bytes(bytes));
    let mut hash = 0;
    if name.len() > SHORT {
        let (words, _) = name.as_chunks::<8>();
        for &bytes in words {
            hash = (hash ^ word(bytes)).wrapping_mul(FACTOR).rotate_left(29);
        }
        hash ^= name.last_chunk().copied().map_or(0, word);
    } else if let (Some(&first), Some(&last)) = (name.first_chunk(), name.last_chunk()) {
        hash = half(first) | half(last) << 32;
    } else if let (Some(&first), Some(&middle), Some(&last)) = (name.first(), name.get(name.len() / 2), name.last()) {
        hash = u64::from(first) | u64::from(middle) << 8 | u64::from(last) << 16;
    }
    // Each step can be undone; together they let each bit of the word tell on the lowest bits, by which buckets are chosen. (Names that are counted
    // up differ in the last byte of the word only.)
    hash = hash.wrapping_mul(FACTOR);
    hash = (hash ^ (hash >> 32)).wrapping_mul(FACTOR);
    hash ^ (hash >> 32)
}

/// Whether two names are the same that have the same hash.
#[inline(always)]
fn is_same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    if one.len() <= SHORT {
        return true;
    }
    let ((words, _), (other_words, _)) = (one.as_chunks::<8>(), other.as_chunks::<8>());
    words.iter().zip(other_words).all(|(word, other)| word == other) && one.last_chunk::<8>() == other.last_chunk::<8>()
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Names { slots: Vec::new(), buckets: Vec::new(), live: 0, used: 0, next_position: FIRST_POSITION }
    }
}

impl<T> Names<T> {
    /// Where a name is: its bucket, and its slot's index.
    #[inline(always)]
    fn find(&self, name: &[u8]) -> Option<(usize, usize)> {
        let hash = hash_of(name);
        let mask = self.buckets.len().wrapping_sub(1);
        let mut at = hash as usize & mask;
        loop {
            let bucket = *self.buckets.get(at)?;
            if bucket == EMPTY {
                return None;
            }
            let index = bucket.wrapping_sub(FIRST) as usize;
            if let Some(Slot { hash: other, entry: Some((there, _)), .. }) = self.slots.get(index)
                && *other == hash
                && is_same(there, name)
            {
                return Some((at, index));
            }
            at = (at + 1) & mask;
        }
    }

    /// The value of a name.
    #[inline(always)]
    pub fn get(&self, name: &[u8]) -> Option<&T> {
        let (_, index) = self.find(name)?;
        self.slots.get(index)?.entry.as_ref().map(|(_, value)| value)
    }

    /// Puts another value in the place of a name's, and says what that was.
    ///
    /// # Errors
    /// The value, if the name is not there.
    pub fn replace(&mut self, name: &[u8], value: T) -> core::result::Result<T, T> {
        let slot = self.find(name).and_then(|(_, index)| self.slots.get_mut(index));
        match slot.and_then(|slot| slot.entry.as_mut()) {
            Some((_, there)) => Ok(core::mem::replace(there, value)),
            None => Err(value),
        }
    }

    /// Enters a name that is not there yet.
    ///
    /// # Errors
    /// ENOMEM, and nothing is changed.
    pub fn insert(&mut self, name: &[u8], value: T) -> Result<()> {
        self.slots.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
        // At least a quarter of the buckets stays empty, so every search ends.
        if (self.used + 1) * 4 > self.buckets.len() * 3 {
            self.rebuild(((self.live + 1) * 2).next_power_of_two().max(8))?;
        }
        let hash = hash_of(name);
        self.next_position += 1;
        self.slots.push(Slot { hash, position: self.next_position, entry: Some((name.into(), value)) });
        self.live += 1;
        self.enter(hash, self.slots.len() - 1);
        Ok(())
    }

    /// Enters a slot in the hash table.
    fn enter(&mut self, hash: u64, index: usize) {
        let mask = self.buckets.len() - 1;
        let mut at = hash as usize & mask;
        while let Some(bucket) = self.buckets.get_mut(at) {
            if matches!(*bucket, EMPTY | REMOVED) {
                self.used += usize::from(*bucket == EMPTY);
                *bucket = index as u32 + FIRST;
                return;
            }
            at = (at + 1) & mask;
        }
    }

    /// Squeezes out gaps and makes the hash table anew.
    fn rebuild(&mut self, len: usize) -> Result<()> {
        let mut buckets = Vec::new();
        buckets.try_reserve_exact(len).map_err(|_| Errno::ENOMEM)?;
        buckets.resize(len, EMPTY);
        self.slots.retain(|slot| slot.entry.is_some());
        self.buckets = buckets;
        self.used = 0;
        for index in 0..self.slots.len() {
            if let Some(hash) = self.slots.get(index).map(|slot| slot.hash) {
                self.enter(hash, index);
            }
        }
        Ok(())
    }

    /// Makes a removed bucket, and those before it, empty again if no search goes on behind them.
    fn forget_removed(&mut self, mut at: usize) {
        let mask = self.buckets.len() - 1;
        if self.buckets.get((at + 1) & mask) != Some(&EMPTY) {
            return;
        }
        while let Some(bucket) = self.buckets.get_mut(at).filter(|bucket| **bucket == REMOVED) {
            *bucket = EMPTY;
            self.used -= 1;
            at = at.wrapping_sub(1) & mask;
        }
    }

    /// Takes a name out.
    pub fn remove(&mut self, name: &[u8]) -> Option<T> {
        let (at, index) = self.find(name)?;
        let (_, value) = self.slots.get_mut(index)?.entry.take()?;
        *self.buckets.get_mut(at)? = REMOVED;
        self.forget_removed(at);
        self.live -= 1;
        while self.slots.last().is_some_and(|slot| slot.entry.is_none()) {
            self.slots.pop();
        }
        if self.slots.len() > 2 * self.live + 16 {
            // Without memory for it the gaps stay.
            let _ = self.rebuild(((self.live + 1) * 2).next_power_of_two().max(8));
        }
        Some(value)
    }

    /// Takes out some names of all, for who frees them in pieces; `None` if there are no more. Nothing can be found any more.
    pub fn take_some(&mut self) -> Option<Vec<T>> {
        const AT_ONCE: usize = 64;
        self.buckets = Vec::new();
        let start = self.slots.len().checked_sub(1)? / AT_ONCE * AT_ONCE;
        Some(self.slots.drain(start..).filter_map(|slot| slot.entry.map(|(_, value)| value)).collect())
    }

    /// All names with their values, in order.
    pub fn into_entries(self) -> impl Iterator<Item = (Box<[u8]>, T)> {
        self.slots.into_iter().filter_map(|slot| slot.entry)
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.live
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
            names.insert(format!("file-{number}").as_bytes(), number).unwrap();
        }
        assert_eq!(names.get(b"file-999"), Some(&999));
        assert_eq!(names.get(b"file-1000"), None);
        assert_eq!(names.replace(b"file-5", 55), Ok(5));
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
            names.insert(format!("{number}").as_bytes(), number).unwrap();
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
                names.insert(format!("new {number}").as_bytes(), 1000 + number).unwrap();
            }
        }
        assert_eq!(seen[..100], (0..100).collect::<Vec<_>>());
        assert_eq!(seen.len(), 150);
        assert_eq!(names.len(), 0);
    }

    #[test]
    fn names_of_all_lengths_are_told_apart() {
        let mut names = Names::default();
        let text = b"abcdefghijklmnopqrstuvwxyz0123456789";
        let mut all = Vec::new();
        for len in 1..=20 {
            for start in 0..=text.len() - len {
                all.push(text[start..start + len].to_vec());
                let mut changed = text[start..start + len].to_vec();
                changed[len / 2] = b'#';
                all.push(changed);
            }
        }
        all.sort();
        all.dedup();
        for (value, name) in all.iter().enumerate() {
            assert_eq!(names.get(name), None);
            names.insert(name, value).unwrap();
        }
        for (value, name) in all.iter().enumerate() {
            assert_eq!(names.get(name), Some(&value));
        }
        assert_eq!(names.get(b""), None);
    }

    #[test]
    fn names_that_are_counted_up_are_spread_over_the_buckets() {
        for prefix in ["", "f", "file", "name-of-a-file-"] {
            let mut taken = std::vec![0; 1 << 12];
            for number in 0..1 << 12 {
                taken[hash_of(format!("{prefix}{number:04}").as_bytes()) as usize & 0xfff] += 1;
            }
            assert!(taken.iter().all(|&count| count < 12), "{prefix}: up to {:?} in a bucket", taken.iter().max());
        }
    }

    #[test]
    fn positions_leave_room_for_the_two_directory_links() {
        let mut names = Names::default();
        names.insert(b"a", ()).unwrap();
        assert!(names.behind(0).all(|(position, ..)| position > 2));
        assert_eq!(names.behind(2).count(), 1);
    }
}
