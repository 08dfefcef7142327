//! [`Shown`]: what an area shows, and keeps alive.

use core::any::Any;

use frame::Cx;
use frame::mm::Prot;
use refs::StrongRc;

use super::Pages;
use super::vma::{Area, AreaFlags, Backing};

/// What an area shows.
pub enum Shown {
    /// Zeros that become the process's own when they are touched.
    Anonymous,
    /// An object, from the page `first` on.
    Object {
        /// The object. The area is one of its owners (Linux's lifetime of a mapped file).
        object: StrongRc<dyn BackingObject>,
        /// The index of the page at the area's start.
        first: u64,
    },
}

impl Area<Shown> {
    /// Whether it shows an object of which a page becomes the process's own when it is written.
    pub fn shows_object_privately(&self) -> bool {
        matches!(self.backing, Shown::Object { .. }) && !self.flags.contains(AreaFlags::SHARED)
    }

    /// Whether all its pages are the object's own, as a program's text: a child can find them there as well, so `fork` need
    /// not copy what is in the page tables.
    pub fn is_all_the_objects(&self) -> bool {
        self.shows_object_privately() && !self.prot.contains(Prot::WRITE) && !self.flags.contains(AreaFlags::MAY_OWN)
    }
}

/// What a VMA maps and keeps alive: an open file, shared anonymous memory. Whoever has pages to map implements it; memory knows no more of it.
pub trait BackingObject: Any + Send + Sync {
    /// Its pages; `None` if it has none (any more).
    fn pages<'a>(&'a self, cx: &'a Cx) -> Option<&'a dyn Pages>;
}

/// Runs `f` on an object's pages; `None` if it has none (any more).
#[inline]
pub(super) fn with_pages<R>(
    object: &StrongRc<dyn BackingObject>,
    cx: &Cx,
    f: impl FnOnce(&dyn Pages) -> R,
) -> Option<R> {
    object.get(cx).pages(cx).map(f)
}

impl Backing for Shown {
    fn advanced(&self, pages: u64) -> Self {
        match self {
            Shown::Anonymous => Shown::Anonymous,
            Shown::Object { object, first } => {
                Shown::Object { object: object.share(), first: first.saturating_add(pages) }
            }
        }
    }

    fn is_continued_by(&self, pages: u64, next: &Self) -> bool {
        match (self, next) {
            (Shown::Anonymous, Shown::Anonymous) => true,
            (Shown::Object { object, first }, Shown::Object { object: other, first: next }) => {
                first.checked_add(pages) == Some(*next) && object.downgrade() == other.downgrade()
            }
            _ => false,
        }
    }
}
