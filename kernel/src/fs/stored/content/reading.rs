//! How a file is read: through its pages, past them, and ahead; where its data and holes are.

use alloc::vec::Vec;
use core::ops::Range;

use frame::Cx;
use frame::mm::{PAGE_SIZE, UFrame, Writer};
use refs::WeakRc;

use super::super::Format;
use super::super::node::Node;
use super::{PAGE, page_index};
use crate::block::{Cache, DirectRead, Keep, ReadAhead, Wanted};
use crate::error::Errno;
use crate::fs::Lseek;
use crate::step::{Interruption, Step, Stop, TimeSlice};
impl<F: Format> Node<F> {
    pub(in super::super) fn read_content(
        &self,
        offset: u64,
        to: &mut Writer<'_>,
        keep: Keep<'_>,
        cx: &Cx,
    ) -> Step<usize> {
        self.content(cx)?.read(offset, self.size(), to, keep, cx)
    }

    /// Has the disk read whole pages into frames of a program's, if it can: how many bytes.
    pub(in super::super) fn read_past(
        &self,
        offset: u64,
        frames: impl FnOnce() -> Option<(u32, Vec<UFrame>)>,
        passing: &mut DirectRead,
        cx: &Cx,
    ) -> Step<usize> {
        Ok(self.content(cx)?.read_past(offset, frames, passing, cx)? as usize * PAGE_SIZE)
    }

    /// What [`write_past`](Self::write_past) has the disk write passes.
    pub(in super::super) fn passed(&self, cx: &Cx) -> Option<WeakRc<Cache>> {
        Some(self.content(cx).ok()?.name())
    }

    /// Takes what is on the disk of a range out of the cache.
    pub(in super::super) fn forget_content(&self, range: Range<u64>, cx: &Cx) {
        if let Ok(content) = self.content(cx) {
            // Of much, the rest goes when memory is needed.
            let _ = content.forget(range, false, cx);
        }
    }

    pub(in super::super) fn seek_content(&self, to: Lseek, cx: &Cx) -> Step<u64> {
        let (from, wants_data) = match to {
            Lseek::Data(from) => (from, true),
            Lseek::Hole(from) => (from, false),
            _ => return Err(Errno::EINVAL.into()),
        };
        let file = self.file.get(cx);
        // Where it has no blocks yet, all is data.
        let delayed = file.delayed_from();
        let size = file.size();
        let mut at = u64::try_from(from).ok().filter(|from| *from < size).ok_or(Errno::ENXIO)?;
        let volume = self.volume(cx)?;
        loop {
            if at >= delayed {
                return Ok(if wants_data { at } else { size });
            }
            match volume.ask(cx, |format, view| format.seek(&file.node, at, wants_data, view))? {
                Ok(found) if found < size => return Ok(found),
                Err(next) if next < size => at = next,
                _ if wants_data && delayed < size => return Ok(delayed),
                _ if wants_data => return Err(Errno::ENXIO.into()),
                // There is a hole behind every file.
                _ => return Ok(size),
            }
        }
    }

    /// Has pages read, all of them at once where the first is not there.
    pub(in super::super) fn read_content_ahead(&self, pages: Range<u64>, cx: &Cx) -> Step<()> {
        let end = pages.end.min(self.size().div_ceil(PAGE));
        let (content, mut time_slice) = (self.content(cx)?, TimeSlice::default());
        for index in pages.start..end {
            let count = u32::try_from(end - index).unwrap_or(u32::MAX);
            content.page(page_index(index * PAGE)?, Wanted::Ahead(&ReadAhead::default(), count), cx)?;
            if time_slice.is_over() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
        }
        Ok(())
    }
}
