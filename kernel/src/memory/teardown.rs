//! The end of an address space, in steps: exit(2), execve(2).
//!
//! Whoever takes the last share of it away owns it until its pages and VMAs are gone: a thread that exits, or that has another program. Nobody
//! else reaches it meanwhile. The parent of a process learns of its end only behind that, so what wait(2) reports is free. As long as
//! one is on its way nobody is killed for want of memory.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use frame::Cx;
use frame::mm::{PAGE_SIZE, USER_END};
use refs::StrongRc;

use super::backing::Backing;
use super::change::{AT_ONCE_AREAS, AT_ONCE_BYTES, next_piece};
use super::space::AddressSpace;
use super::vma::Vma;
use crate::step::TimeSlice;

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
        let is_small =
            self.vm.mapped_pages() <= AT_ONCE_BYTES / PAGE_SIZE && self.layout.lock(cx).vmas().len() <= AT_ONCE_AREAS;
        if is_small && frame::cpu::count() == 1 {
            // Its destructors do it.
            return;
        }
        if !is_small {
            UNDER_WAY.fetch_add(1, Ordering::Relaxed);
        }
        self.vm.leave(cx);
        let mut pages = 0..USER_END;
        while !self.tear_down_stretch(&mut pages, cx) {
            tasks::pause_async(cx);
        }
        let executable = self.executable.lock(cx).take();
        if let Some(executable) = executable {
            executable.end_unseen();
        }
        if !is_small {
            UNDER_WAY.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Goes on for a stretch; whether nothing is left. The VMAs go first: whoever has looked the address space up before, on another core, finds none then, and brings in no page.
    fn tear_down_stretch(&self, pages: &mut core::ops::Range<usize>, cx: &Cx) -> bool {
        let mut time_slice = TimeSlice::default();
        while let Some(vmas) = self.take_chunk(cx) {
            for vma in vmas {
                if let Backing::Object { object, .. } = vma.backing {
                    object.end_unseen_if(|object| object.end_is_unseen());
                }
            }
            if time_slice.is_over() {
                return false;
            }
        }
        while let Some(piece) = next_piece(self, pages, cx) {
            self.vm.unmap(piece, cx);
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
