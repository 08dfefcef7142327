//! The vDSO in address spaces: `[vvar]`, the page of data that the clocks write, and behind it `[vdso]`, the shared object whose code reads it.
//!
//! Both are [`SpecialMapping`]s: made at boot, owned by this module and by the VMAs that show them, and never destroyed. Their frames are the same for
//! all processes. execve(2) maps them and enters the pages at once: every program's start looks into the object. A child of fork(2) finds
//! them when it touches them. A program may unmap or move them, and debuggers may write into its own copy of the code; the data nobody may.

use alloc::vec::Vec;
use core::ops::Range;

use frame::Cx;
use frame::mm::{Access, PAGE_SIZE, Prot, UFrame};
use refs::{SpinLock, StrongRc};

use super::backing::{Backing, BackingObject};
use super::space::AddressSpace;
use super::vma::{Vma, VmaFlags};
use super::{BadAccess, Mapped, Pages};
use crate::error::{Errno, Result};

/// Pages of the kernel's own that are mapped in processes.
pub struct SpecialMapping {
    /// What `/proc/PID/maps` calls it.
    pub name: &'static str,
    frames: Vec<UFrame>,
    mapped: Mapped,
}

/// How many pages the data and the shared object have together.
pub const VDSO_PAGES: usize = 1 + CODE_PAGES;
const CODE_PAGES: usize = vdso::IMAGE.len().div_ceil(PAGE_SIZE);

struct Parts {
    data: StrongRc<SpecialMapping>,
    code: StrongRc<SpecialMapping>,
}

static PARTS: SpinLock<Option<Parts>> = SpinLock::new(None);

/// Copies the shared object into frames. Called once, at boot.
pub(super) fn start(data: UFrame) {
    let code = vdso::IMAGE.chunks(PAGE_SIZE).map(|part| {
        let frame = UFrame::zeroed().expect("at boot there is memory for a page");
        // A frame of memory never faults.
        let _ = frame.writer(0..part.len()).write(part);
        frame
    });
    let data = StrongRc::new(SpecialMapping { name: "[vvar]", frames: [data].into(), mapped: Mapped::default() });
    let code = StrongRc::new(SpecialMapping { name: "[vdso]", frames: code.collect(), mapped: Mapped::default() });
    PARTS.with(|parts| *parts = Some(Parts { data, code }));
}

impl AddressSpace {
    /// Maps the vDSO at a page's address where nothing is mapped, in an address space that nobody else uses yet; where its shared object is.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn map_vdso(&self, start: usize, cx: &Cx) -> Result<usize> {
        let parts = PARTS.lock(cx);
        let Parts { data, code } = parts.as_ref().ok_or(Errno::ENOMEM)?;
        let (data, code) = (data.share(), code.share());
        drop(parts);
        let flags = VmaFlags::DONT_EXPAND;
        let code_start = start + PAGE_SIZE;
        let end = code_start + CODE_PAGES * PAGE_SIZE;
        self.map_special(data, start..code_start, Prot::READ, Prot::READ, flags | VmaFlags::DONT_DUMP, cx)?;
        self.map_special(code, code_start..end, Prot::READ | Prot::EXECUTE, Prot::all(), flags, cx)?;
        Ok(code_start)
    }

    fn map_special(
        &self,
        object: StrongRc<SpecialMapping>,
        range: Range<usize>,
        prot: Prot,
        limit: Prot,
        flags: VmaFlags,
        cx: &Cx,
    ) -> Result<()> {
        let mut frames = object.get(cx).frames.clone().into_iter();
        let backing = Backing::Object { object: object.unsize(|object| object), first: 0 };
        let mut layout = self.layout.lock(cx);
        layout.insert(Vma { start: range.start, end: range.end, prot, limit, flags, backing })?;
        // What there is no memory for comes in by a fault.
        self.vm.map_absent(range, prot, |_| frames.next(), cx);
        Ok(())
    }
}

impl BackingObject for SpecialMapping {
    fn pages<'a>(&'a self, _cx: &'a Cx) -> Option<&'a dyn Pages> {
        Some(self)
    }
}

impl Pages for SpecialMapping {
    fn page(&self, index: u64, _access: Access, _cx: &Cx) -> core::result::Result<UFrame, BadAccess> {
        self.frames.get(index as usize).cloned().ok_or(BadAccess::BeyondFile)
    }

    fn cached(&self, indices: Range<u64>, each: &mut dyn FnMut(u64, UFrame), _cx: &Cx) {
        for index in indices {
            if let Some(frame) = self.frames.get(index as usize) {
                each(index, frame.clone());
            }
        }
    }

    fn mapped(&self) -> &Mapped {
        &self.mapped
    }
}
