//! The end of an address space, in steps: exit(2), execve(2).
//!
//! Whoever takes the last share of it away owns it until its pages and VMAs are gone: a thread that exits, or that has another program. Nobody
//! else reaches it meanwhile. The parent of a process learns of its end only behind that, so what wait(2) reports is free. As long as
//! one is on its way nobody is killed for want of memory.
//!
//! What is large goes in the same time as what is small: its objects are given up, and all else is handed to [`remains`] as a whole.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use frame::Cx;
use frame::mm::{DetachedPages, USER_END};
use refs::StrongRc;

use super::backing::Backing;
use super::change::AT_ONCE_AREAS;
use super::fork::has_few_tables;
use super::remains::{self, PagesOf, Remainder};
use super::space::AddressSpace;
use super::vma::{Vma, VmaMap};
use crate::sched;
use crate::step::TimeSlice;

/// Up to so many pages are given back at once: no more work than handing them over.
const AT_ONCE_PAGES: usize = 256;
/// In no more page tables than this: each takes as long as a dozen pages.
const AT_ONCE_TABLES: usize = 96;

/// How many address spaces are being torn down.
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);

/// Whether memory comes back soon.
pub fn is_under_way() -> bool {
    UNDER_WAY.load(Ordering::Relaxed) > 0
}

impl AddressSpace {
    /// Gives up a share of an address space. If it was the last one, all that it held is free when this returns.
    pub fn give_up_async(space: StrongRc<AddressSpace>, cx: &mut Cx) {
        space.destroy_unseen_async(cx, |space, cx| space.tear_down_async(cx));
    }

    fn tear_down_async(&self, cx: &mut Cx) {
        self.take_leftover_async(cx);
        let is_small = self.is_small(cx);
        if is_small && frame::cpu::count() == 1 {
            // Its destructors do it.
            return self.layout.lock(cx).end_charge();
        }
        if !is_small {
            UNDER_WAY.fetch_add(1, Ordering::Relaxed);
        }
        self.vm.leave(cx);
        if is_small || !self.leave_remains_async(cx) {
            let mut pages = 0..USER_END;
            while !self.tear_down_stretch(&mut pages, cx) {
                sched::pause_in_end_async(cx);
            }
        }
        let executable = self.executable.lock(cx).take();
        if let Some(executable) = executable {
            executable.end_unseen();
        }
        self.layout.lock(cx).end_charge();
        if !is_small {
            UNDER_WAY.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether all that it has ends at once: with the charge for its process, which may be killed.
    fn is_small(&self, cx: &Cx) -> bool {
        let pages = self.vm.mapped_pages();
        let layout = self.layout.lock(cx);
        pages <= AT_ONCE_PAGES && layout.vmas().len() <= AT_ONCE_AREAS && has_few_tables(&layout, pages, AT_ONCE_TABLES)
    }

    /// Gives up the objects of what a call was taking away when the process was ended. Its pages are still mapped.
    fn take_leftover_async(&self, cx: &mut Cx) {
        let leftover = self.layout.lock(cx).take_leftover();
        self.released.wake_all();
        let Some(mut leftover) = leftover else { return };
        let mut time_slice = TimeSlice::default();
        while let Some(vmas) = leftover.pop_chunk() {
            vmas.into_iter().for_each(|vma| end_object(vma.backing));
            if time_slice.is_over() {
                tasks::pause_async(cx);
                time_slice = TimeSlice::default();
            }
        }
    }

    /// Gives up its objects, and leaves all else to [`remains`]; false if there is no memory to do so, and its pages are to be unmapped. The VMAs go first: whoever has
    /// looked the address space up before, on another core, finds none then, and brings in no page.
    fn leave_remains_async(&self, cx: &mut Cx) -> bool {
        let (mut vmas, mut left) = self.layout.lock(cx).take_vmas();
        let mut time_slice = TimeSlice::of_end();
        let mut nth = 0;
        while left > 0
            && let Some(vmas) = vmas.nth_from_ends(nth)
        {
            for vma in vmas {
                if matches!(vma.backing, Backing::Object { .. }) {
                    left = left.saturating_sub(vma.pages());
                    end_object(core::mem::replace(&mut vma.backing, Backing::Anonymous));
                }
            }
            nth += 1;
            if time_slice.is_over() {
                sched::pause_in_end_async(cx);
                time_slice = TimeSlice::of_end();
            }
        }
        let owed = self.private_pages() + self.vm.leaf_tables(cx);
        match self.vm.detach(cx) {
            Some(pages) => {
                let bytes = vmas.bytes();
                remains::leave(SpaceRemains { pages: Some(pages), vmas }, PagesOf::Others, owed, bytes);
                true
            }
            None => {
                while let Some(chunk) = vmas.pop_chunk() {
                    drop(chunk);
                    if time_slice.is_over() {
                        sched::pause_in_end_async(cx);
                        time_slice = TimeSlice::of_end();
                    }
                }
                false
            }
        }
    }

    /// Goes on for a stretch; whether nothing is left. The VMAs go first: whoever has looked the address space up before, on another core, finds none then, and brings in no page.
    fn tear_down_stretch(&self, pages: &mut core::ops::Range<usize>, cx: &Cx) -> bool {
        let mut time_slice = TimeSlice::of_end();
        while let Some(vmas) = self.take_chunk(cx) {
            for vma in vmas {
                end_object(vma.backing);
            }
            if time_slice.is_over() {
                return false;
            }
        }
        while pages.start < pages.end {
            self.vm.unmap_batch(pages, cx);
            if time_slice.is_over() {
                return false;
            }
        }
        true
    }

    /// Takes some VMAs out, the last ones with what was promised.
    fn take_chunk(&self, cx: &Cx) -> Option<Vec<Vma<Backing>>> {
        let mut layout = self.layout.lock(cx);
        let chunk = layout.pop_chunk();
        if chunk.is_none() {
            layout.give_promises_back();
        }
        chunk
    }
}

/// What is left of an address space. None of its VMAs shows an object.
struct SpaceRemains {
    pages: Option<DetachedPages>,
    vmas: VmaMap<Backing>,
}

impl Remainder for SpaceRemains {
    fn give_back(&mut self) -> Option<usize> {
        match self.pages.as_mut().and_then(DetachedPages::give_back) {
            // And a table.
            Some(pages) => Some(pages + 1),
            None => {
                self.pages = None;
                None
            }
        }
    }

    fn free_piece(&mut self) -> Option<usize> {
        /// So many chunks of VMAs are a piece.
        const CHUNKS: usize = 16;
        let before = self.vmas.bytes();
        let freed = (0..CHUNKS).map_while(|_| self.vmas.pop_chunk()).count();
        (freed > 0).then(|| before - self.vmas.bytes())
    }
}

/// Gives up what a VMA shows.
fn end_object(backing: Backing) {
    if let Backing::Object { object, .. } = backing {
        object.end_unseen_if(|object| object.end_is_unseen());
    }
}
