//! [`SharedMemory`]: what processes share by an anonymous MAP_SHARED mapping that they inherit.

use core::ops::Range;

use frame::Cx;
use frame::mm::{Access, UFrame};
use refs::SpinLock;

use super::overcommit::{self, Privilege};
use super::{BackingObject, BadAccess, Mapped, PageMap, Pages, finish_unmapping, unmap_pages};
use crate::error::Result;
use crate::step::Step;

/// Memory that belongs to no file, of a fixed size. Pages appear, as zeros, when they are touched.
pub struct SharedMemory {
    pages: u64,
    frames: SpinLock<PageMap>,
    mapped: Mapped,
    /// For how many pages memory is promised.
    accounted: usize,
}

impl SharedMemory {
    /// So many pages of zeros. Memory is promised for them if `is_accounted`.
    ///
    /// # Errors
    /// ENOMEM if that may not be promised.
    pub fn new(pages: u64, is_accounted: bool, privilege: Privilege) -> Result<Self> {
        let accounted = if is_accounted { pages as usize } else { 0 };
        overcommit::admit(accounted, 0, privilege)?;
        overcommit::add(accounted);
        Ok(SharedMemory { pages, frames: SpinLock::default(), mapped: Mapped::somewhere(), accounted })
    }

    /// How many of its pages were touched.
    pub fn resident_pages(&self, cx: &Cx) -> usize {
        self.frames.lock(cx).count() as usize
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        overcommit::add(self.accounted.wrapping_neg());
    }
}

impl BackingObject for SharedMemory {
    fn pages<'a>(&'a self, _cx: &'a Cx) -> Option<&'a dyn Pages> {
        Some(self)
    }
}

impl Pages for SharedMemory {
    fn page(&self, index: u64, _access: Access, cx: &Cx) -> core::result::Result<UFrame, BadAccess> {
        if index >= self.pages {
            return Err(BadAccess::BeyondFile);
        }
        let mut frames = self.frames.lock(cx);
        if let Some(frame) = frames.get(index) {
            return Ok(frame.clone());
        }
        let frame = UFrame::zeroed().ok_or(BadAccess::NoMemory)?;
        frame.count_as_shared();
        frames.insert(index, frame.clone()).map_err(|_| BadAccess::NoMemory)?;
        Ok(frame)
    }

    fn cached(&self, indices: Range<u64>, each: &mut dyn FnMut(u64, UFrame), cx: &Cx) {
        let frames = self.frames.lock(cx);
        for index in indices.start..indices.end.min(self.pages) {
            if let Some(frame) = frames.get(index) {
                each(index, frame.clone());
            }
        }
    }

    fn remove(&self, indices: Range<u64>, is_removed: &mut bool, cx: &Cx) -> Step<()> {
        finish_unmapping(self, cx)?;
        if core::mem::replace(is_removed, true) {
            return Ok(());
        }
        self.frames.lock(cx).remove(indices.clone());
        unmap_pages(self, indices, cx)
    }

    fn mapped(&self) -> &Mapped {
        &self.mapped
    }
}
