//! [`KnownNames`]: what a directory knows of its names, where looking them up is dear.
//!
//! All directories of a file system share one bound. One that learns a name too many begins anew; what it forgets is freed in pieces.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use core::sync::atomic::{AtomicUsize, Ordering};

use frame::Cx;
use refs::{SpinLock, StrongRc};

use super::names::hash_of;
use crate::pieces::{Pieces, free_in_pieces};

/// So many names all directories of a file system know.
const MOST_NAMES: usize = 65_536;

/// Names, and what is known of each, by the names' hashes: numbers are compared sooner than names. Of two names with one hash it knows the later.
struct Known<T>(BTreeMap<u64, (Box<[u8]>, T)>);

impl<T: Send + Sync + 'static> Pieces for Known<T> {
    fn free_piece(&mut self) -> bool {
        /// So many are freed at once.
        const AT_ONCE: usize = 64;
        for _ in 0..AT_ONCE {
            self.0.pop_first();
        }
        !self.0.is_empty()
    }
}

struct Names<T> {
    known: Known<T>,
    changes: u64,
}

/// What a directory knows of its names. It belongs to the directory's inode.
pub struct KnownNames<T: Copy + Send + Sync + 'static> {
    names: SpinLock<Names<T>>,
    /// How many all directories of the file system know.
    all: StrongRc<AtomicUsize>,
}

impl<T: Copy + Send + Sync + 'static> KnownNames<T> {
    /// Of a directory of which nothing is known.
    pub fn new(all: StrongRc<AtomicUsize>) -> Self {
        KnownNames { names: SpinLock::new(Names { known: Known(BTreeMap::new()), changes: 0 }), all }
    }

    /// What is known of a name, and how often names were [forgotten](Self::forget) so far.
    pub fn get(&self, name: &[u8], cx: &Cx) -> (Option<T>, u64) {
        let names = self.names.lock(cx);
        let known = names.known.0.get(&hash_of(name)).filter(|(known, _)| **known == *name);
        (known.map(|(_, what)| *what), names.changes)
    }

    /// Remembers what is known of a name; with `changes` only if none was forgotten since.
    pub fn remember(&self, name: &[u8], what: T, changes: Option<u64>, cx: &Cx) {
        let all = self.all.get(cx);
        let mut names = self.names.lock(cx);
        if changes.is_some_and(|changes| changes != names.changes) {
            return;
        }
        let mut old = None;
        if all.load(Ordering::Relaxed) >= MOST_NAMES {
            old = Some(core::mem::replace(&mut names.known, Known(BTreeMap::new())));
            all.fetch_sub(old.as_ref().map_or(0, |old| old.0.len()), Ordering::Relaxed);
        }
        if all.load(Ordering::Relaxed) < MOST_NAMES
            && names.known.0.insert(hash_of(name), (name.into(), what)).is_none()
        {
            all.fetch_add(1, Ordering::Relaxed);
        }
        drop(names);
        free(old);
    }

    /// A name leads elsewhere from now on, or may.
    pub fn forget(&self, name: &[u8], cx: &Cx) {
        let mut names = self.names.lock(cx);
        names.changes += 1;
        let hash = hash_of(name);
        if names.known.0.get(&hash).is_some_and(|(known, _)| **known == *name) {
            names.known.0.remove(&hash);
            self.all.get(cx).fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn free<T: Send + Sync + 'static>(names: Option<Known<T>>) {
    if let Some(names) = names.filter(|names| !names.0.is_empty()) {
        free_in_pieces(names);
    }
}

impl<T: Copy + Send + Sync + 'static> Drop for KnownNames<T> {
    fn drop(&mut self) {
        let known = core::mem::replace(&mut self.names.get_mut().known, Known(BTreeMap::new()));
        self.all.with(|all| all.fetch_sub(known.0.len(), Ordering::Relaxed));
        free(Some(known));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_until_they_are_forgotten_or_too_many() {
        let all = StrongRc::new(AtomicUsize::new(0));
        frame::with_context(|cx| {
            let (first, second) = (KnownNames::new(all.share()), KnownNames::new(all.share()));
            first.remember(b"a", 1, None, cx);
            let (found, changes) = first.get(b"a", cx);
            assert_eq!((found, first.get(b"b", cx).0), (Some(1), None));
            first.forget(b"a", cx);
            first.remember(b"a", 2, Some(changes), cx);
            assert_eq!(first.get(b"a", cx).0, None);
            for number in 0..MOST_NAMES as u32 {
                second.remember(&number.to_le_bytes(), number, None, cx);
            }
            // There is room for no more, and the first has none to give up.
            first.remember(b"b", 3, None, cx);
            assert_eq!(first.get(b"b", cx).0, None);
            second.remember(b"c", 4, None, cx);
            assert_eq!((second.get(&[0; 4], cx).0, second.get(b"c", cx).0), (None, Some(4)));
            assert_eq!(all.get(cx).load(Ordering::Relaxed), 1);
            drop(second);
            assert_eq!(all.get(cx).load(Ordering::Relaxed), 0);
        });
    }
}
