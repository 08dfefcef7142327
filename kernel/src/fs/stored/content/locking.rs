//! Who may change a file's content: nobody else does, and what was begun is finished first.

use frame::Cx;
use refs::SpinGuard;

use super::super::node::Node;
use super::super::{Format, Volume};
use super::{PAGE, page_index};
use crate::error::Errno;
use crate::memory::finish_unmapping;
use crate::step::{Interruption, Step, Stop, TimeSlice};
impl<F: Format> Node<F> {
    /// Locks `writing`, with nothing left of what others have begun.
    ///
    /// # Errors
    /// Whatever a step may say, while there is.
    pub(in super::super) fn lock_content<'a>(&'a self, volume: &Volume<F>, cx: &'a Cx) -> Step<SpinGuard<'a, ()>> {
        let writing = self.lock_delayed(volume, cx)?;
        let file = self.file.get(cx);
        let mut time_slice = TimeSlice::default();
        while file.is_delayed() {
            self.allocate_delayed(volume, &self.content(cx)?, cx)?;
            if time_slice.is_over() && file.is_delayed() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
        }
        Ok(writing)
    }

    /// The same for what does not mind that a part of the file has no blocks yet.
    pub(super) fn lock_delayed<'a>(&'a self, volume: &Volume<F>, cx: &'a Cx) -> Step<SpinGuard<'a, ()>> {
        finish_unmapping(self, cx)?;
        let writing = self.writing.lock(cx);
        if self.mapped.is_being_unmapped() {
            // By another, just now.
            return Err(Stop::Pause(Interruption::Never));
        }
        self.finish_cutting(volume, cx)?;
        Ok(writing)
    }

    /// As [`lock_content`](Self::lock_content), for a change after which the file ends at `new_end` of its present length, or where it ended before: then no mapping may write to its last page, if that is to have more blocks than it has.
    ///
    /// # Errors
    /// As for [`lock_content`](Self::lock_content).
    pub(super) fn lock_to_grow<'a>(
        &'a self,
        volume: &Volume<F>,
        new_end: impl Fn(u64) -> u64,
        cx: &'a Cx,
    ) -> Step<SpinGuard<'a, ()>> {
        let has_parts = F::HAS_HOLES && u64::from(volume.format.block_bytes()) < PAGE;
        let must_unmap = || {
            let size = self.size();
            let is_within_page = has_parts && !size.is_multiple_of(PAGE) && new_end(size) > size;
            Ok::<_, Errno>(is_within_page && self.content(cx)?.is_page_mapped_to_write(page_index(size)?, cx))
        };
        let writing = self.lock_content(volume, cx)?;
        if !must_unmap()? {
            return Ok(writing);
        }
        drop(writing);
        self.end_mapped(cx)?;
        let writing = self.lock_content(volume, cx)?;
        // Somebody may have written to it again meanwhile.
        if must_unmap()? { Err(Stop::Pause(Interruption::KillOnly)) } else { Ok(writing) }
    }
}
