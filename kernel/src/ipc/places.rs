//! [`Places`]: which places of a table are taken.

use core::ops::Range;

use super::MOST;

const WORDS: usize = MOST as usize / u64::BITS as usize;

/// A bit for each place: a free one is found by looking at some words, however many are taken.
pub struct Places([u64; WORDS]);

fn bit_of(place: u32) -> (usize, u64) {
    ((place / u64::BITS) as usize, 1 << (place % u64::BITS))
}

impl Places {
    /// All are free.
    pub const fn new() -> Self {
        Places([0; WORDS])
    }

    /// Something stands there.
    pub fn take(&mut self, place: u32) {
        let (word, bit) = bit_of(place);
        self.0[word] |= bit;
    }

    /// Nothing stands there any more.
    pub fn free(&mut self, place: u32) {
        let (word, bit) = bit_of(place);
        self.0[word] &= !bit;
    }

    /// The first place in a range where nothing stands.
    pub fn first_free(&self, range: Range<u32>) -> Option<u32> {
        if range.is_empty() {
            return None;
        }
        let (first, bit) = bit_of(range.start);
        let below = bit - 1;
        let free_in = |(word, taken): (usize, &u64)| {
            let taken = if word == first { taken | below } else { *taken };
            (taken != u64::MAX).then(|| word as u32 * u64::BITS + taken.trailing_ones())
        };
        let free = self.0.iter().enumerate().skip(first).find_map(free_in);
        free.filter(|place| *place < range.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_free_place_of_a_range_is_found() {
        let mut places = Places::new();
        assert_eq!(places.first_free(0..MOST as u32), Some(0));
        (0..200).for_each(|place| places.take(place));
        assert_eq!(places.first_free(0..MOST as u32), Some(200));
        assert_eq!(places.first_free(0..200), None);
        places.free(70);
        assert_eq!(places.first_free(0..200), Some(70));
        assert_eq!(places.first_free(70..71), Some(70));
        assert_eq!(places.first_free(71..MOST as u32), Some(200));
        assert_eq!(places.first_free(300..MOST as u32), Some(300));
        assert_eq!(places.first_free(71..71), None);
    }

    #[test]
    fn all_can_be_taken() {
        let mut places = Places::new();
        (0..MOST as u32).for_each(|place| places.take(place));
        assert_eq!(places.first_free(0..MOST as u32), None);
        places.free(MOST as u32 - 1);
        assert_eq!(places.first_free(5..MOST as u32), Some(MOST as u32 - 1));
    }
}
