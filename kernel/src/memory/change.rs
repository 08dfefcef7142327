//! [`Change`]: a change of a layout that may take several steps.
//!
//! What a call changes may be large: a million pages, or all VMAs there can be. So it works in steps, and between two steps interrupts come in and
//! others run. Nobody may see a layout half changed, so a call that needs more than one step *claims* the layout: until it is released, other
//! calls that would change it wait, and so do faults where nothing is mapped. Faults elsewhere go on; so a step leaves the page tables with no
//! more than the VMAs allow. Cores that wait for the layout's lock meanwhile get it between two steps.
//!
//! Who waits is woken when the claim is given back, the one that has waited longest first, and until that runs it is its *turn*: no other call begins a change, least of all the one
//! that has just ended its last. A task that has left its core looks again as soon as it runs, whatever it was woken for, so a turn always comes to its end, and whoever
//! notices that wakes the others.
//!
//! The claim belongs to the call, not to the thread: a step that holds it says [`Interruption::EndOfMemory`] when it pauses, so the call
//! always comes back to release it, unless the process ends and nobody else sees its memory. Then what is half changed is seen by nobody, and the rest of the change would be
//! for nothing: the end of the address space takes what was still to be taken away. (A copy that fork(2) makes can be left at any time, and then gives the claim back.)

use alloc::boxed::Box;
use core::ops::Range;

use frame::Cx;
use frame::mm::{LEAF_BYTES, PAGE_SIZE};
use refs::{SpinGuard, Waker};

use super::backing::Backing;
use super::layout::Layout;
use super::space::AddressSpace;
use super::vma::Removed;
use crate::error::Result;
use crate::step::{Interruption, Step, Stop, TimeSlice};

/// How much is done at once without a look at the clock.
pub(super) const AT_ONCE_BYTES: usize = 1024 * PAGE_SIZE;
/// How many VMAs are.
pub(super) const AT_ONCE_AREAS: usize = 64;

/// What a call has claimed.
#[derive(Default)]
pub struct Change {
    has_claim: bool,
}

/// What a range showed until now: its VMAs are out of the layout, its pages still go. The layout keeps it for the call that has claimed that.
pub(super) struct Leftover {
    vmas: Removed<Backing>,
    pages: Range<usize>,
}

impl Change {
    /// Whether the call is in the middle of its change.
    #[inline(always)]
    pub(super) fn is_begun(&self) -> bool {
        self.has_claim
    }

    /// The layout, to change it: at once, unless another call has claimed it.
    #[inline(always)]
    pub(super) fn lock<'a>(
        &self,
        space: &'a AddressSpace,
        waker: Option<Waker>,
        cx: &'a Cx,
    ) -> Step<SpinGuard<'a, Layout>> {
        if self.has_claim {
            // It has just had the lock for a stretch. Faults go on in between.
            space.layout.give_way();
            return Ok(space.layout.lock(cx));
        }
        let mut layout = space.layout.lock(cx);
        if (layout.is_claimed || layout.turn.is_some()) && !space.is_open(&mut layout) {
            if let Some(waker) = waker {
                space.released.register(waker, cx);
            }
            return Err(Stop::Block);
        }
        Ok(layout)
    }

    /// Claims the layout, which this call has locked, until [`release`](Self::release).
    pub(super) fn claim(&mut self, layout: &mut Layout) {
        layout.is_claimed = true;
        self.has_claim = true;
    }

    /// Gives the claim back, if there is one.
    #[inline(always)]
    pub(super) fn release(&mut self, space: &AddressSpace, layout: &mut Layout) {
        if self.has_claim {
            self.has_claim = false;
            layout.is_claimed = false;
            layout.turn = space.released.wake_first_parked();
        }
    }

    /// Takes away what is mapped in a range: at once if it is little. Else the layout is claimed, and [`go_on`](Self::go_on) does it.
    ///
    /// # Errors
    /// ENOMEM if there would be too many VMAs; nothing has changed.
    #[inline]
    pub(super) fn remove(
        &mut self,
        space: &AddressSpace,
        layout: &mut Layout,
        range: Range<usize>,
        cx: &Cx,
    ) -> Result<()> {
        if space.remove_little(layout, &range, cx) { Ok(()) } else { self.remove_much(space, layout, range, cx) }
    }

    fn remove_much(&mut self, space: &AddressSpace, layout: &mut Layout, range: Range<usize>, cx: &Cx) -> Result<()> {
        let Some(vmas) = layout.remove(range)? else { return Ok(()) };
        let pages = vmas.span();
        if pages.len() <= AT_ONCE_BYTES && vmas.len() <= AT_ONCE_AREAS {
            vmas.iter().for_each(|vma| layout.forget(vma));
            space.unmap_range(pages, cx);
            return Ok(());
        }
        self.claim(layout);
        layout.leftover = Some(Box::new(Leftover { vmas, pages }));
        Ok(())
    }

    /// Goes on with what is to be taken away.
    ///
    /// # Errors
    /// [`Stop::Pause`] as long as there is more.
    #[inline]
    pub(super) fn go_on(&mut self, space: &AddressSpace, layout: &mut Layout, cx: &Cx) -> Step<()> {
        // Whoever has not claimed the layout has nothing to take away: it was locked when nobody had.
        let Some(mut leftover) = layout.leftover.take() else { return Ok(()) };
        if !leftover.take_away(space, layout, cx) {
            layout.leftover = Some(leftover);
            return Err(Stop::Pause(Interruption::EndOfMemory));
        }
        Ok(())
    }
}

impl AddressSpace {
    /// Takes away what is mapped in a range if it is nothing, or a little of one VMA; whether it is so.
    #[inline(always)]
    pub(super) fn remove_little(&self, layout: &mut Layout, range: &Range<usize>, cx: &Cx) -> bool {
        range.len() <= AT_ONCE_BYTES && layout.remove_one(range, || self.unmap_range(range.clone(), cx))
    }

    /// Whether a call may begin a change now: none is in the middle of one, and it is nobody else's turn. Once a turn is over all that wait try.
    #[cold]
    pub(super) fn is_open(&self, layout: &mut Layout) -> bool {
        let is_open = !layout.is_claimed && !layout.turn.is_some_and(Waker::is_woken);
        if is_open && layout.turn.take().is_some() {
            self.released.wake_all();
        }
        is_open
    }

    /// Whether a call is in the middle of a change of the layout.
    #[cold]
    pub fn is_claimed(&self, cx: &Cx) -> bool {
        self.layout.lock(cx).is_claimed
    }
}

impl Leftover {
    /// Takes some of the VMAs out whose call has not come to its end; `None` once there are none.
    pub(super) fn pop_chunk(&mut self) -> Option<alloc::vec::Vec<super::vma::Vma<Backing>>> {
        self.vmas.pop_chunk()
    }

    /// Works until it is done, and that is true, or one stretch is over.
    fn take_away(&mut self, space: &AddressSpace, layout: &mut Layout, cx: &Cx) -> bool {
        let mut time_slice = TimeSlice::default();
        while !self.pages.is_empty() {
            space.unmap_batch(&mut self.pages, cx);
            if time_slice.is_over() {
                return false;
            }
        }
        while let Some(vmas) = self.vmas.pop_chunk() {
            vmas.iter().for_each(|vma| layout.forget(vma));
            drop(vmas);
            if time_slice.is_over() {
                return false;
            }
        }
        true
    }
}

/// Takes the next piece with mapped pages off a range: no more than one table's. `None` if there are no more.
pub(super) fn next_piece(space: &AddressSpace, range: &mut Range<usize>, cx: &Cx) -> Option<Range<usize>> {
    let Some(start) = space.vm.first_mapped(range.clone(), cx) else {
        range.start = range.end;
        return None;
    };
    let end = ((start & !(LEAF_BYTES - 1)) + LEAF_BYTES).min(range.end);
    range.start = end;
    Some(start..end)
}
