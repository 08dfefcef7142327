//! [`Backing`]: what a VMA shows, and keeps alive.

use core::any::Any;
use core::ops::Range;

use frame::Cx;
use frame::mm::Prot;
use refs::{StrongRc, Waker, WeakRc};

use super::vma::{Mergeable, Vma, VmaFlags};
use super::{Mapped, Pages};
use crate::block::SyncProgress;
use crate::step::Step;

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

    /// Whether nobody sees when exactly it comes to its end, should it now.
    fn end_is_unseen(&self) -> bool {
        false
    }

    /// Has the device that keeps it, if there is one, keep what was written to a range of its bytes, and waits for that: msync(2). `progress` is the caller's, and begins as nothing.
    ///
    /// # Errors
    /// `BlockOnDevice`, with the waker entered; EIO, ENOSPC.
    fn synchronise(
        &self,
        _range: Range<u64>,
        _progress: &mut SyncProgress,
        _waker: Option<Waker>,
        _cx: &Cx,
    ) -> Step<()> {
        Ok(())
    }

    /// What `/proc/PID/maps` calls it if it is the kernel's own, and no file.
    fn name(&self) -> Option<&'static str> {
        None
    }
}

/// What the shared mappings of a sealable file own that can be written, now or after mprotect(2): the file, by the description that the first of them came from.
///
/// All of them share the one that [`Mapped`] names. VMAs are copied, split, merged, moved and dropped with their object, so it is there exactly as long as
/// one of them is, and F_SEAL_WRITE need not look for them (Linux counts them: `i_mmap_writable`). It is destroyed with the last VMA; nobody waits
/// on it.
pub struct WritableMappings {
    file: StrongRc<dyn BackingObject>,
}

impl WritableMappings {
    /// What a shared mapping of `file` is to own, whose pages `mapped` belongs to.
    pub fn of(mapped: &Mapped, file: StrongRc<dyn BackingObject>, cx: &Cx) -> StrongRc<dyn BackingObject> {
        let there =
            |writable: &Option<WeakRc<WritableMappings>>| writable.and_then(|there| there.upgrade(cx).ok()?.share());
        let found = there(&mapped.writable.lock(cx));
        let all = found.unwrap_or_else(|| {
            let made = StrongRc::new(WritableMappings { file });
            let mut writable = mapped.writable.lock(cx);
            // Another thread may have made one meanwhile: there is one at most.
            there(&writable).unwrap_or_else(|| {
                *writable = Some(made.downgrade());
                made
            })
        });
        all.unsize(|all| all)
    }

    /// The file.
    pub fn file(&self) -> WeakRc<dyn BackingObject> {
        self.file.downgrade()
    }
}

impl BackingObject for WritableMappings {
    fn pages<'a>(&'a self, cx: &'a Cx) -> Option<&'a dyn Pages> {
        self.file.get(cx).into_ref().pages(cx)
    }

    fn synchronise(&self, range: Range<u64>, progress: &mut SyncProgress, waker: Option<Waker>, cx: &Cx) -> Step<()> {
        self.file.get(cx).synchronise(range, progress, waker, cx)
    }
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

    #[inline(always)]
    fn is_object(&self) -> bool {
        matches!(self, Backing::Object { .. })
    }
}
