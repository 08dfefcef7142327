//! A copy of an address space for a child: fork(2).

use core::ops::Range;

use frame::Cx;
use frame::mm::{LEAF_BYTES, PAGE_SIZE, RightsChange, Sharing};
use refs::{StrongRc, Waker};

use super::change::{AT_ONCE_AREAS, AT_ONCE_BYTES, Change, next_piece};
use super::layout::Layout;
use super::madvise::Lock;
use super::space::AddressSpace;
use super::vma::{Mergeable, Vma, VmaFlags};
use crate::error::Result;
use crate::step::{Interruption, Step, Stop, TimeSlice};

/// About so many page tables are copied at once.
const AT_ONCE_TABLES: usize = 128;

/// A copy that is being made, between two steps.
#[derive(Default)]
pub struct Fork {
    change: Change,
    /// The VMAs that end at or below this are copied.
    done: usize,
    /// The pages of the last of them that are still to be copied.
    pages: Option<(Range<usize>, Sharing)>,
}

impl AddressSpace {
    /// Copies this address space into `child`, which is new and empty: private memory is shared until one of the two writes to it.
    ///
    /// The layout is copied as it is at one moment: until all of it is, nobody changes it. Threads that write meanwhile do so before the fork or
    /// after it, as on Linux.
    ///
    /// A caller that is killed meanwhile [leaves it](Self::leave_fork) as it is: the parent's pages can be shared with a child that is gone.
    ///
    /// # Errors
    /// ENOMEM: the child is as far as it got, and to be torn down.
    pub fn fork_step(&self, child: &AddressSpace, fork: &mut Fork, waker: Option<Waker>, cx: &Cx) -> Step<()> {
        let mut layout = fork.change.lock(self, waker, cx)?;
        // The parent's first.
        let mut copy = child.layout.lock_after(&layout, cx);
        if !fork.change.is_begun() {
            // What the parent has been promised the child is promised as well; who asks for too much is refused before anything is done.
            layout.admit_copy()?;
            copy.begin_copy(&layout)?;
            let executable = self.executable.lock(cx).as_ref().map(StrongRc::share);
            *child.executable.lock(cx) = executable;
        }
        let is_small = is_small(&layout, self.vm.mapped_pages());
        // Other cores are asked once for all pages that lose the right to be written, with the layout still locked: until then a fault waits.
        let mut rights = self.vm.change_rights();
        if is_small && !fork.change.is_begun() {
            let copied = copy_at_once(child, &layout, &mut copy, &mut rights, cx);
            self.share_all();
            child.share_all();
            return Ok(copied?);
        }
        if !fork.change.is_begun() {
            fork.change.claim(&mut layout);
        }
        let copied = self.copy_stretch(child, &layout, &mut copy, fork, &mut rights, cx);
        drop(rights);
        self.share_all();
        child.share_all();
        match copied {
            Ok(false) => Err(Stop::Pause(Interruption::KillOnly)),
            Ok(true) => {
                fork.change.release(self, &mut layout);
                Ok(())
            }
            Err(error) => {
                fork.change.release(self, &mut layout);
                Err(error.into())
            }
        }
    }

    /// The copy does not go on, and its child is to be torn down.
    pub fn leave_fork(&self, fork: &mut Fork, cx: &Cx) {
        fork.change.release(self, &mut self.layout.lock(cx));
    }

    /// Goes on for a stretch; whether all is copied.
    fn copy_stretch(
        &self,
        child: &AddressSpace,
        layout: &Layout,
        copy: &mut Layout,
        fork: &mut Fork,
        rights: &mut RightsChange<'_>,
        cx: &Cx,
    ) -> Result<bool> {
        let mut time_slice = TimeSlice::default();
        loop {
            if let Some((pages, sharing)) = &mut fork.pages {
                while let Some(piece) = next_piece(self, pages, cx) {
                    rights.fork(&child.vm, piece, *sharing, cx)?;
                    if time_slice.is_over() {
                        return Ok(false);
                    }
                }
                fork.pages = None;
            }
            // A VMA may have grown together with its neighbour since the last step: only what lies behind is copied.
            let Some(vma) = layout.vmas().at_or_above(fork.done) else { return Ok(true) };
            fork.pages = copy_vma(vma, vma.start.max(fork.done)..vma.end, copy);
            fork.done = vma.end;
            if time_slice.is_over() {
                return Ok(false);
            }
        }
    }
}

/// Whether so many pages are copied at once: each page table takes as long as some dozen pages.
fn is_small(layout: &Layout, pages: usize) -> bool {
    let vmas = layout.vmas();
    if vmas.len() > AT_ONCE_AREAS || pages > AT_ONCE_BYTES / PAGE_SIZE {
        return false;
    }
    has_few_tables(layout, pages, AT_ONCE_TABLES)
}

/// Whether so many pages can have no more page tables than that, but for those above them.
pub(super) fn has_few_tables(layout: &Layout, pages: usize, most: usize) -> bool {
    pages <= most || layout.vmas().iter().map(|vma| (vma.end - vma.start) / LEAF_BYTES + 1).sum::<usize>() <= most
}

#[inline(always)]
fn copy_at_once(
    child: &AddressSpace,
    layout: &Layout,
    copy: &mut Layout,
    rights: &mut RightsChange<'_>,
    cx: &Cx,
) -> Result<()> {
    for vma in layout.vmas().iter() {
        if let Some((pages, sharing)) = copy_vma(vma, vma.range(), copy) {
            rights.fork(&child.vm, pages, sharing, cx)?;
        }
    }
    Ok(())
}

/// Gives the part of a VMA that lies in `range` to the child; the pages that go with it, and how.
#[inline(always)]
fn copy_vma(vma: &Vma<super::Backing>, range: Range<usize>, copy: &mut Layout) -> Option<(Range<usize>, Sharing)> {
    if vma.flags.contains(VmaFlags::DONT_FORK) {
        copy.forget_copy(vma, range);
        return None;
    }
    let flags = vma.flags - Lock::OnFault.flags();
    let backing = vma.backing.advanced(((range.start - vma.start) / PAGE_SIZE) as u64);
    copy.push_copy(Vma { start: range.start, end: range.end, flags, backing, ..*vma });
    if vma.flags.contains(VmaFlags::WIPE_ON_FORK) || vma.is_all_the_objects() {
        return None;
    }
    let sharing = if flags.contains(VmaFlags::SHARED) { Sharing::Shared } else { Sharing::CopyOnWrite };
    Some((range, sharing))
}
