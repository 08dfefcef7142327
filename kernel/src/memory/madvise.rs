//! What changes no mapping: madvise(2), mincore(2), mlock(2), msync(2).

use alloc::vec::Vec;
use core::ops::Range;

use frame::Cx;
use frame::mm::{Access, PAGE_SIZE, USER_END};

use super::BadAccess;
use super::backing::Shown;
use super::mmap::page_range;
use super::space::AddressSpace;
use super::vma::{Area, AreaFlags, Areas};
use crate::error::{Errno, Result};

/// Advice that has an effect here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// None: it is only checked that the range is mapped.
    Nothing,
    /// MADV_DONTNEED: pages may go at once; private memory is zeros or the file's again.
    DropPages,
    /// MADV_FREE: as above, for private anonymous memory only.
    Free,
    /// MADV_DONTFORK, MADV_WIPEONFORK: areas get a flag.
    Set(AreaFlags),
    /// MADV_DOFORK, MADV_KEEPONFORK: areas lose a flag.
    Clear(AreaFlags),
    /// MADV_POPULATE_READ, MADV_POPULATE_WRITE: pages are brought in.
    Populate(Access),
}

/// What mlock2(2) is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// Lock, and bring all pages in.
    Now,
    /// Lock pages when they come in (MLOCK_ONFAULT).
    OnFault,
    /// Unlock.
    Off,
}

impl AddressSpace {
    /// madvise(2).
    ///
    /// # Errors
    /// EINVAL; ENOMEM where a part is not mapped (the rest has been advised).
    pub fn advise(&self, address: usize, len: usize, advice: Advice, cx: &Cx) -> Result<()> {
        let range = page_range(address, len, Errno::EINVAL)?;
        if range.is_empty() {
            return Ok(());
        }
        if let Advice::Populate(access) = advice {
            return self.populate_for(range, access, cx);
        }
        let mut layout = self.layout.lock(cx);
        let is_complete = layout.areas.covered_until(range.clone()) == range.end;
        match advice {
            Advice::Nothing | Advice::Populate(_) => {}
            Advice::DropPages | Advice::Free => {
                let is_refused = layout.areas.overlapping(range.clone()).any(|area| {
                    area.flags.contains(AreaFlags::LOCKED)
                        || (advice == Advice::Free
                            && (area.flags.contains(AreaFlags::SHARED) || !matches!(area.backing, Shown::Anonymous)))
                });
                if is_refused {
                    return Err(Errno::EINVAL);
                }
                self.unmap_range(range, cx);
            }
            Advice::Set(flags)
                if flags.contains(AreaFlags::WIPE_ON_FORK)
                    && layout.areas.overlapping(range.clone()).any(|area| {
                        area.flags.contains(AreaFlags::SHARED) || !matches!(area.backing, Shown::Anonymous)
                    }) =>
            {
                return Err(Errno::EINVAL);
            }
            Advice::Set(flags) => layout.areas.change(range, |area| area.flags |= flags)?,
            Advice::Clear(flags) => layout.areas.change(range, |area| area.flags -= flags)?,
        }
        if is_complete { Ok(()) } else { Err(Errno::ENOMEM) }
    }

    fn populate_for(&self, range: Range<usize>, access: Access, cx: &Cx) -> Result<()> {
        for page in range.step_by(PAGE_SIZE) {
            self.fault(page, access, cx).map_err(|bad| match bad {
                BadAccess::NotMapped | BadAccess::NoMemory => Errno::ENOMEM,
                BadAccess::NotAllowed => Errno::EINVAL,
                BadAccess::BeyondFile => Errno::EFAULT,
            })?;
        }
        Ok(())
    }

    /// mincore(2): 1 for each page that is in memory, 0 for others. The caller bounds `len`.
    ///
    /// # Errors
    /// EINVAL; ENOMEM where a part is not mapped.
    pub fn residency(&self, address: usize, len: usize, cx: &Cx) -> Result<Vec<u8>> {
        let range = page_range(address, len, Errno::ENOMEM)?;
        let layout = self.layout.lock(cx);
        if layout.areas.covered_until(range.clone()) < range.end {
            return Err(Errno::ENOMEM);
        }
        Ok(range.step_by(PAGE_SIZE).map(|page| u8::from(self.is_resident(&layout.areas, page, cx))).collect())
    }

    fn is_resident(&self, areas: &Areas<Shown>, page: usize, cx: &Cx) -> bool {
        if self.vm.query(page, cx).is_some() {
            return true;
        }
        let Some(area) = areas.find(page) else { return false };
        let Shown::Object { object, first } = &area.backing else { return false };
        let index = first.saturating_add(((page - area.start) / PAGE_SIZE) as u64);
        let mut is_cached = false;
        object.with_pages(cx, |pages| pages.cached(index..index.saturating_add(1), &mut |_, _| is_cached = true, cx));
        is_cached
    }

    /// msync(2): what is shared is written through at once, so nothing is left to do.
    ///
    /// # Errors
    /// EINVAL; ENOMEM where a part is not mapped; EBUSY if `invalidate` and a part is locked.
    pub fn synchronise(&self, address: usize, len: usize, invalidate: bool, cx: &Cx) -> Result<()> {
        let range = page_range(address, len, Errno::ENOMEM)?;
        let layout = self.layout.lock(cx);
        if invalidate && layout.areas.overlapping(range.clone()).any(|area| area.flags.contains(AreaFlags::LOCKED)) {
            return Err(Errno::EBUSY);
        }
        if layout.areas.covered_until(range.clone()) < range.end { Err(Errno::ENOMEM) } else { Ok(()) }
    }

    /// mlock(2) and munlock(2). There is no swapping: a locked page only counts against `limit_bytes` (RLIMIT_MEMLOCK).
    ///
    /// # Errors
    /// EINVAL; ENOMEM for what is not mapped or above the limit; EAGAIN where pages cannot be brought in.
    pub fn lock_pages(&self, address: usize, len: usize, lock: Lock, limit_bytes: u64, cx: &Cx) -> Result<()> {
        let start = address & !(PAGE_SIZE - 1);
        let len = len.checked_add(address - start).ok_or(Errno::EINVAL)?;
        let range = page_range(start, len, Errno::EINVAL)?;
        if range.is_empty() {
            return Ok(());
        }
        {
            let mut layout = self.layout.lock(cx);
            if lock != Lock::Off && limit_bytes != u64::MAX {
                let already = layout.areas.pages_where(|area| area.flags.contains(AreaFlags::LOCKED));
                let twice: usize = layout
                    .areas
                    .overlapping(range.clone())
                    .filter(|area| area.flags.contains(AreaFlags::LOCKED))
                    .map(|area| (area.end.min(range.end) - area.start.max(range.start)) / PAGE_SIZE)
                    .sum();
                if ((already - twice) * PAGE_SIZE + range.len()) as u64 > limit_bytes {
                    return Err(Errno::ENOMEM);
                }
            }
            let end = layout.areas.covered_until(range.clone());
            if end > range.start {
                layout.areas.change(range.start..end, |area| area.flags.set(AreaFlags::LOCKED, lock != Lock::Off))?;
            }
            if end < range.end {
                return Err(Errno::ENOMEM);
            }
        }
        if lock == Lock::Now {
            self.populate_allowed(range, cx)?;
        }
        Ok(())
    }

    /// mlockall(2) for what is mapped now, and munlockall(2).
    ///
    /// # Errors
    /// ENOMEM above the limit.
    pub fn lock_all(&self, lock: Lock, limit_bytes: u64, cx: &Cx) -> Result<()> {
        {
            let mut layout = self.layout.lock(cx);
            let total = layout.areas.pages_where(|_| true) * PAGE_SIZE;
            if lock != Lock::Off && total as u64 > limit_bytes {
                return Err(Errno::ENOMEM);
            }
            layout.areas.change(0..USER_END, |area| area.flags.set(AreaFlags::LOCKED, lock != Lock::Off))?;
        }
        if lock != Lock::Now {
            return Ok(());
        }
        let mut at = 0;
        loop {
            let Some(range) = self.layout.lock(cx).areas.at_or_above(at).map(Area::range) else { return Ok(()) };
            at = range.end;
            // As on Linux, what cannot be brought in is no error of mlockall.
            let _ = self.populate_allowed(range, cx);
        }
    }

    /// Brings in what may be accessed at all.
    fn populate_allowed(&self, range: Range<usize>, cx: &Cx) -> Result<()> {
        match self.populate(range, cx) {
            Ok(()) => Ok(()),
            Err(BadAccess::NoMemory) => Err(Errno::EAGAIN),
            Err(_) => Err(Errno::ENOMEM),
        }
    }
}
