//! [`SharedMemory`]: what processes share by an anonymous MAP_SHARED mapping that they inherit.

use alloc::collections::BTreeMap;
use core::ops::Range;
use core::sync::atomic::AtomicBool;

use frame::Cx;
use frame::mm::{Access, UFrame};
use refs::SpinLock;

use super::overcommit::{self, Privilege};
use super::{BackingObject, BadAccess, Pages, unmap_pages};
use crate::error::Result;

/// Memory that belongs to no file, of a fixed size. Pages appear, as zeros, when they are touched.
pub struct SharedMemory {
    pages: u64,
    frames: SpinLock<BTreeMap<u64, UFrame>>,
    mapped: AtomicBool,
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
        Ok(SharedMemory { pages, frames: SpinLock::new(BTreeMap::new()), mapped: AtomicBool::new(true), accounted })
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
        if let Some(frame) = frames.get(&index) {
            return Ok(frame.clone());
        }
        let frame = UFrame::zeroed().ok_or(BadAccess::NoMemory)?;
        frames.insert(index, frame.clone());
        Ok(frame)
    }

    fn cached(&self, indices: Range<u64>, each: &mut dyn FnMut(u64, UFrame), cx: &Cx) {
        for (&index, frame) in self.frames.lock(cx).range(indices) {
            each(index, frame.clone());
        }
    }

    fn remove(&self, indices: Range<u64>, cx: &Cx) -> Result<()> {
        let mut frames = self.frames.lock(cx);
        let mut rest = frames.split_off(&indices.start);
        frames.append(&mut rest.split_off(&indices.end));
        drop(frames);
        unmap_pages(self, indices, cx);
        Ok(())
    }

    fn mapped(&self) -> &AtomicBool {
        &self.mapped
    }
}
