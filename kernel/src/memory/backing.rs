//! [`Shown`]: what an area shows, and keeps alive.

use frame::Cx;
use frame::mm::Prot;
use refs::{StrongRc, WeakRc};

use super::vma::{Area, AreaFlags, Backing};
use super::{Mappable, Pages, SharedMemory};
use crate::fs::OpenFile;

/// What an area shows.
pub enum Shown {
    /// Zeros that become the process's own when they are touched.
    Anonymous,
    /// An object, from the page `first` on.
    Object {
        /// The object. The area is one of its owners (Linux's lifetime of a mapped file).
        object: Object,
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

/// An object with pages.
pub enum Object {
    /// An open file.
    File(StrongRc<OpenFile>),
    /// Shared anonymous memory.
    Memory(StrongRc<SharedMemory>),
}

impl Object {
    /// Runs `f` on the pages; `None` if the file has none (any more).
    pub fn with_pages<R>(&self, cx: &Cx, f: impl FnOnce(&dyn Pages) -> R) -> Option<R> {
        match self {
            Object::File(file) => match file.get(cx).file.mappable(cx) {
                Mappable::Pages(pages) => Some(f(pages)),
                Mappable::No | Mappable::Zeros => None,
            },
            Object::Memory(memory) => Some(f(&*memory.get(cx))),
        }
    }

    /// The file, if it is one.
    pub fn file(&self) -> Option<WeakRc<OpenFile>> {
        match self {
            Object::File(file) => Some(file.downgrade()),
            Object::Memory(_) => None,
        }
    }

    /// One more owner.
    pub(super) fn share(&self) -> Self {
        match self {
            Object::File(file) => Object::File(file.share()),
            Object::Memory(memory) => Object::Memory(memory.share()),
        }
    }

    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Object::File(one), Object::File(other)) => one.downgrade() == other.downgrade(),
            (Object::Memory(one), Object::Memory(other)) => one.downgrade() == other.downgrade(),
            _ => false,
        }
    }
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
                first.checked_add(pages) == Some(*next) && object.is(other)
            }
            _ => false,
        }
    }
}
