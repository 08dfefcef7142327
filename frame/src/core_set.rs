//! Sets of cores, by their numbers: one that is a value ([`CoreSet`]), and one that several cores change ([`SharedCoreSet`]).

use core::sync::atomic::{AtomicU64, Ordering};

/// Numbers of cores in a set are below this: as many as there can ever be.
pub const LIMIT: usize = 256;

const BITS: usize = u64::BITS as usize;
/// So many words are a set.
pub const WORDS: usize = LIMIT / BITS;

/// The word of a core, and its bit there. A number beyond the limit has none.
#[inline(always)]
fn place(core: usize) -> (usize, u64) {
    (core / BITS, 1 << (core % BITS))
}

/// Some cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreSet([u64; WORDS]);

impl CoreSet {
    /// None.
    pub const EMPTY: CoreSet = CoreSet([0; WORDS]);

    /// The cores with numbers below `count`.
    #[inline]
    pub const fn below(count: usize) -> Self {
        let mut words = [0; WORDS];
        let (mut word, mut left) = (0, if count < LIMIT { count } else { LIMIT });
        while left > 0 {
            let bits = if left < BITS { left } else { BITS };
            words[word] = u64::MAX >> (BITS - bits);
            left -= bits;
            word += 1;
        }
        CoreSet(words)
    }

    /// Those whose bits are set: bit b of word w is core 64 w + b. Words that are missing are 0.
    pub fn from_words(words: impl IntoIterator<Item = u64>) -> Self {
        let mut set = CoreSet::EMPTY;
        set.0.iter_mut().zip(words).for_each(|(word, bits)| *word = bits);
        set
    }

    /// The set as [`from_words`](Self::from_words) takes it.
    #[inline(always)]
    pub fn words(self) -> [u64; WORDS] {
        self.0
    }

    /// The cores that are in both.
    #[inline]
    pub fn and(self, other: CoreSet) -> Self {
        CoreSet(core::array::from_fn(|word| self.0[word] & other.0[word]))
    }

    /// All but one.
    #[inline]
    pub fn without(mut self, core: usize) -> Self {
        self.remove(core);
        self
    }

    /// How many they are.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Adds a core.
    ///
    /// # Panics
    /// Its number is not below [`LIMIT`].
    #[inline(always)]
    pub fn insert(&mut self, core: usize) {
        let (word, bit) = place(core);
        self.0[word] |= bit;
    }

    /// Takes a core out, if it is there.
    #[inline(always)]
    pub fn remove(&mut self, core: usize) {
        let (word, bit) = place(core);
        if let Some(word) = self.0.get_mut(word) {
            *word &= !bit;
        }
    }

    /// Whether a core is there.
    #[inline(always)]
    pub fn contains(&self, core: usize) -> bool {
        let (word, bit) = place(core);
        self.0.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Whether none is there.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The cores, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.into_iter().enumerate().flat_map(|(word, bits)| Bits(bits).map(move |bit| word * BITS + bit))
    }
}

impl FromIterator<usize> for CoreSet {
    fn from_iter<I: IntoIterator<Item = usize>>(cores: I) -> Self {
        let mut set = CoreSet::EMPTY;
        cores.into_iter().for_each(|core| set.insert(core));
        set
    }
}

/// The numbers of the bits that are set.
struct Bits(u64);

impl Iterator for Bits {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        let bit = (self.0 != 0).then(|| self.0.trailing_zeros() as usize)?;
        self.0 &= self.0 - 1;
        Some(bit)
    }
}

/// Some cores, which several cores add and take out. It is seen word by word: a set that is changed meanwhile may be seen as it never was at any one moment,
/// but each core in it is seen as it was.
#[derive(Debug, Default)]
pub struct SharedCoreSet([AtomicU64; WORDS]);

impl SharedCoreSet {
    /// None.
    pub const fn new() -> Self {
        SharedCoreSet([const { AtomicU64::new(0) }; WORDS])
    }

    /// Makes it these. What the caller did before is seen by whoever sees one of them.
    pub fn set(&self, cores: CoreSet) {
        for (word, bits) in self.0.iter().zip(cores.0) {
            word.store(bits, Ordering::Release);
        }
    }

    /// Adds a core. What the caller did before is seen by whoever [takes](Self::take) it out.
    ///
    /// # Panics
    /// Its number is not below [`LIMIT`].
    pub fn insert(&self, core: usize) {
        let (word, bit) = place(core);
        self.0[word].fetch_or(bit, Ordering::AcqRel);
    }

    /// Takes a core out, if it is there. What the caller did before is seen by whoever sees that it [is empty](Self::is_empty).
    pub fn remove(&self, core: usize) {
        let (word, bit) = place(core);
        if let Some(word) = self.0.get(word) {
            word.fetch_and(!bit, Ordering::Release);
        }
    }

    /// Takes all cores out that are there.
    pub fn take(&self) -> CoreSet {
        CoreSet(self.0.each_ref().map(|word| match word.load(Ordering::Relaxed) {
            0 => 0,
            _ => word.swap(0, Ordering::AcqRel),
        }))
    }

    /// Whether none is there.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| word.load(Ordering::Acquire) == 0)
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn a_set_has_what_was_put_in_and_not_taken_out() {
        let mut set = CoreSet::EMPTY;
        assert!(set.is_empty());
        for core in [0, 63, 64, 200, LIMIT - 1] {
            set.insert(core);
        }
        set.remove(64);
        set.remove(1);
        set.remove(LIMIT);
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 200, 255]);
        assert!(set.contains(200) && !set.contains(64) && !set.contains(LIMIT) && !set.contains(usize::MAX));
        assert!(!set.is_empty());
        assert_eq!(set, [255, 0, 200, 63].into_iter().collect());
    }

    #[test]
    fn the_cores_below_a_number_are_all_there_are() {
        for count in [0, 1, 63, 64, 65, 128, 255, LIMIT] {
            assert_eq!(CoreSet::below(count).iter().collect::<Vec<_>>(), (0..count).collect::<Vec<_>>());
            assert_eq!(CoreSet::below(count).len(), count);
        }
        assert_eq!(CoreSet::below(usize::MAX), CoreSet::below(LIMIT));
    }

    #[test]
    fn a_set_comes_back_from_its_words() {
        let set: CoreSet = [0, 63, 64, 200, 255].into_iter().collect();
        assert_eq!(CoreSet::from_words(set.words()), set);
        assert_eq!(CoreSet::from_words([1 << 63, 1]), [63, 64].into_iter().collect());
        assert_eq!(set.and(CoreSet::below(200)), [0, 63, 64].into_iter().collect());
        assert_eq!(set.without(63).without(1), [0, 64, 200, 255].into_iter().collect());
    }

    #[test]
    fn what_is_taken_out_of_a_shared_set_is_out() {
        let shared = SharedCoreSet::new();
        shared.set([3, 70].into_iter().collect());
        shared.insert(255);
        shared.remove(3);
        shared.remove(LIMIT);
        assert!(!shared.is_empty());
        assert_eq!(shared.take(), [70, 255].into_iter().collect());
        assert!(shared.is_empty() && shared.take().is_empty());
    }

    #[test]
    fn no_core_is_lost_that_several_put_in_while_one_takes() {
        let shared = SharedCoreSet::new();
        let mut seen = CoreSet::EMPTY;
        std::thread::scope(|scope| {
            for first in 0..4 {
                let shared = &shared;
                scope.spawn(move || (first..LIMIT).step_by(4).for_each(|core| shared.insert(core)));
            }
            while seen != CoreSet::below(LIMIT) {
                for core in shared.take().iter() {
                    assert!(!seen.contains(core));
                    seen.insert(core);
                }
                std::thread::yield_now();
            }
        });
        assert!(shared.is_empty());
    }
}
