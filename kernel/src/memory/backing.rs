//! [`Backing`]: what a VMA shows, and keeps alive.

use core::any::Any;

use frame::Cx;
use frame::mm::Prot;
use refs::StrongRc;

use super::Pages;
use super::vma::{Mergeable, Vma, VmaFlags};

/// What a VMA shows.
pub enum Backing {
    /// Zeros that become the process's own when they are touched.
    Anonymous,
    /// An object, from the page `first` on.
    Object {
        /// The object. The VMA is one of its owners (Linux's lifetime of a mapped file).
        object: StrongRc<dyn BackingObject>,
        /// The index of the page at the VMA's start.
        first: u64,
    },
}

impl Vma<Backing> {
    /// Whether it shows an object of which a page becomes the process's own when it is written.
    pub fn maps_object_privately(&self) -> bool {
        matches!(self.backing, Backing::Object { .. }) && !self.flags.contains(VmaFlags::SHARED)
    }

    /// Whether all its pages are the object's own, as a program's text: a child can find them there as well, so `fork` need
    /// not copy what is in the page tables.
    pub fn is_all_the_objects(&self) -> bool {
        self.maps_object_privately() && !self.prot.contains(Prot::WRITE) && !self.flags.contains(VmaFlags::MAY_OWN)
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

impl Mergeable for Backing {
    fn advanced(&self, pages: u64) -> Self {
        match self {
            Backing::Anonymous => Backing::Anonymous,
            Backing::Object { object, first } => {
                Backing::Object { object: object.share(), first: first.saturating_add(pages) }
            }
        }
    }

    fn is_continued_by(&self, pages: u64, next: &Self) -> bool {
        match (self, next) {
            (Backing::Anonymous, Backing::Anonymous) => true,
            (Backing::Object { object, first }, Backing::Object { object: other, first: next }) => {
                first.checked_add(pages) == Some(*next) && object.downgrade() == other.downgrade()
            }
            _ => false,
        }
    }
}
