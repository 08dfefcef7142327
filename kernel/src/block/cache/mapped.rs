//! Pages that programs may write through mappings, at any time: they stay dirty until no mapping is left.

use frame::Cx;
use frame::mm::UFrame;

use super::Cache;
use crate::step::{Step, Stop};

impl Cache {
    /// The page of that index, which is here and dirty, is written through a mapping from now on, at any time: it stays dirty until [`end_mapped`](Self::end_mapped) of a later `epoch`.
    ///
    /// # Errors
    /// `Again`: it is not here, or no longer.
    pub fn map_to_write(&self, index: u32, epoch: u32, cx: &Cx) -> Step<UFrame> {
        self.make_dirty(index..index + 1, cx)?;
        let mut content = self.content.lock(cx);
        let found = content.pages.get_mut(index).and_then(|page| {
            page.mapped_since = epoch;
            page.frame.clone()
        });
        let frame = found.ok_or(Stop::Again)?;
        content.mapped.insert(index, ());
        Ok(frame)
    }

    /// No mapping is left of pages that were mapped before `epoch`: what is written to them is said from now on. Goes on from page `from`; where to go on, `None` when all were looked at.
    pub fn end_mapped(&self, from: u32, epoch: u32, cx: &Cx) -> Option<u32> {
        const AT_ONCE: usize = 256;
        let mut content = self.content.lock(cx);
        let mut at = from;
        for _ in 0..AT_ONCE {
            let (index, ()) = content.mapped.next(at)?;
            if let Some(page) = content.pages.get_mut(index).filter(|page| page.mapped_since < epoch) {
                page.mapped_since = 0;
                content.mapped.remove(index);
            }
            at = index.checked_add(1)?;
        }
        Some(at)
    }

    /// Whether the page of that index may be written through a mapping.
    pub fn is_page_mapped_to_write(&self, index: u32, cx: &Cx) -> bool {
        self.content.lock(cx).mapped.get(index).is_some()
    }

    /// Whether pages may be written through mappings.
    pub fn is_mapped_to_write(&self, cx: &Cx) -> bool {
        !self.content.lock(cx).mapped.is_empty()
    }
}
