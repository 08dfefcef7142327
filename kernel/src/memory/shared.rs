//! [`SharedMemory`]: what processes share by an anonymous MAP_SHARED mapping that they inherit.

use alloc::collections::BTreeMap;
use core::ops::Range;
use core::sync::atomic::AtomicBool;

use frame::Cx;
use frame::mm::{Access, UFrame};
use refs::SpinLock;

use super::{BadAccess, Pages};

/// Memory that belongs to no file, of a fixed size. Pages appear, as zeros, when they are touched.
pub struct SharedMemory {
    pages: u64,
    frames: SpinLock<BTreeMap<u64, UFrame>>,
    mapped: AtomicBool,
}

impl SharedMemory {
    /// So many pages of zeros.
    pub fn new(pages: u64) -> Self {
        SharedMemory { pages, frames: SpinLock::new(BTreeMap::new()), mapped: AtomicBool::new(false) }
    }
}

impl Pages for SharedMemory {
    fn page(&self, index: u64, _access: Access, cx: &Cx) -> Result<UFrame, BadAccess> {
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

    fn mapped(&self) -> &AtomicBool {
        &self.mapped
    }
}
