//! *Delayed allocation*: appended pages that get their blocks later. See [the module above](super).

use core::ops::Range;
use core::sync::atomic::Ordering;

use frame::Cx;
use frame::mm::Reader;
use refs::TempRc;

use super::super::format::{Allocation, Change, Growth};
use super::super::node::Node;
use super::super::{Format, Volume};
use super::{NOT_DELAYED, PAGE, note_data};
use crate::block;
use crate::block::Cache;
use crate::error::Errno;
use crate::step::{Step, Stop};
/// So many pages are appended in one go whose blocks come later.
const DELAYED_AT_ONCE: u64 = 256;

/// Whether files of a volume may get blocks later than their pages become dirty, or than a device is told to write them.
pub(super) fn delays<F: Format>(volume: &Volume<F>) -> bool {
    F::HAS_HOLES && u64::from(volume.format.block_bytes()) == PAGE
}

/// How many blocks a file takes at most for bytes that it gets at its end.
pub(super) fn needed(growth: &Growth, bytes: Range<u64>) -> u64 {
    let count = (bytes.end - bytes.start).div_ceil(PAGE);
    count + growth.tree_blocks(u32::try_from(count).unwrap_or(u32::MAX))
}

impl<F: Format> Node<F> {
    /// Appends bytes to pages that get their blocks later: how many, and whether `from` is where it should be for the next ones. `None` where they must get blocks now. `writing` is locked.
    pub(super) fn append_delayed(
        &self,
        volume: &Volume<F>,
        content: &TempRc<'_, Cache>,
        range: Range<u64>,
        from: &mut Reader<'_>,
        cx: &Cx,
    ) -> Step<Option<(u64, bool)>> {
        let (at, file) = (range.start, self.file.get(cx));
        let start = if file.is_delayed() { file.delayed_from() } else { at };
        if !file.is_delayed() {
            if !at.is_multiple_of(PAGE) {
                return Ok(None);
            }
            let growth = volume.ask(cx, |format, view| format.delayed(&file.node, view))?;
            *file.growth.lock(cx) = growth;
        }
        let Some(growth) = *file.growth.lock(cx) else { return Ok(None) };
        let end = range.end.min((at / PAGE + DELAYED_AT_ONCE) * PAGE).min(start + u64::from(growth.most()) * PAGE);
        if end <= at {
            return Ok(None);
        }
        let promised = file.promised.load(Ordering::Relaxed);
        let more = needed(&growth, start..end).saturating_sub(promised);
        if more > 0 && !volume.promise(more, cx)? {
            return Ok(None);
        }
        file.promised.store(promised + more, Ordering::Relaxed);
        file.delayed_from.store(start, Ordering::Release);
        let copied = content.append(at, end, from, cx);
        let reached = at + *copied.as_ref().unwrap_or(&0) as u64;
        if reached == start {
            file.delayed_from.store(NOT_DELAYED, Ordering::Release);
        }
        file.size.store(reached, Ordering::Relaxed);
        file.keep_promised(needed(&growth, start..reached));
        let copied = copied? as u64;
        file.note_dirty(block::cache::has_many_dirty());
        Ok(Some((copied, copied == end - at)))
    }

    /// Gives blocks to what has none yet, as much as one change can. `writing` is locked.
    pub(super) fn allocate_delayed(&self, volume: &Volume<F>, content: &TempRc<'_, Cache>, cx: &Cx) -> Step<()> {
        let file = self.file.get(cx);
        let (start, end) = (file.delayed_from(), file.size());
        let change = Change::Allocate(file.number, start..end, Allocation::Written);
        let own = file.promised.load(Ordering::Relaxed);
        let growth = (*file.growth.lock(cx)).ok_or(Errno::EIO)?;
        let outcome = volume.change_promised(cx, &change, own, |done, state| {
            if done.reached <= start {
                return Err(Errno::ENOSPC.into());
            }
            note_data(state, file.number, content);
            if done.reached < end {
                file.delayed_from.store(done.reached, Ordering::Release);
                file.keep_promised(needed(&growth, done.reached..end).min(own));
            } else {
                file.delayed_from.store(NOT_DELAYED, Ordering::Release);
                file.keep_promised(0);
            }
            file.take(done);
            Ok(())
        });
        match outcome {
            Err(Stop::Error(error)) => {
                // The file system contradicts itself, or is not written any more. What is in memory stays there; whoever syncs the file is told.
                file.keep_promised(0);
                content.note_unwritten(error, cx);
                Err(error.into())
            }
            outcome => outcome.map(drop),
        }
    }
}
