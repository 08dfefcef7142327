//! The vDSO in address spaces: `[vvar]`, the page of data that the clocks write, and behind it `[vdso]`, the shared object whose code reads it.
//!
//! Both are [`SpecialMapping`]s: made at boot, owned by this module and by the VMAs that show them, and never destroyed. Their frames are the same for
//! all processes. execve(2) maps them and enters the data and the object's first page at once: every program's start looks into it, and there is what reads clocks. A child of fork(2) finds
//! them when it touches them. A program may unmap or move them, and debuggers may write into its own copy of the code; the data nobody may.

use alloc::vec::Vec;
use core::ops::Range;

use frame::Cx;
use frame::mm::{Access, PAGE_SIZE, Prot, UFrame};
use refs::{SpinLock, StrongRc};
use vdso::{IMAGE, IMAGE_WITH_RDPID};

use super::backing::{Backing, BackingObject};
use super::space::AddressSpace;
use super::vma::{Vma, VmaFlags};
use super::{BadAccess, Mapped, Pages};
use crate::error::{Errno, Result};

/// Pages of the kernel's own that are mapped in processes.
pub struct SpecialMapping {
    /// What `/proc/PID/maps` calls it.
    name: &'static str,
    frames: Vec<UFrame>,
    mapped: Mapped,
}

/// How many pages the data and the shared object have together.
pub const VDSO_PAGES: usize = 1 + CODE_PAGES;
const CODE_PAGES: usize = {
    let longest = if IMAGE.len() > IMAGE_WITH_RDPID.len() { IMAGE.len() } else { IMAGE_WITH_RDPID.len() };
    longest.div_ceil(PAGE_SIZE)
};

struct Parts {
    data: StrongRc<SpecialMapping>,
    code: StrongRc<SpecialMapping>,
    /// The pages of both.
    frames: Vec<UFrame>,
}

static PARTS: SpinLock<Option<Parts>> = SpinLock::new(None);

/// Copies the shared object into frames. Called once, at boot.
pub(super) fn start(data: UFrame) {
    let image = if frame::cpu::has_rdpid() { IMAGE_WITH_RDPID } else { IMAGE };
    let code = image.chunks(PAGE_SIZE).map(|part| {
        let frame = UFrame::zeroed().expect("at boot there is memory for a page");
        // A frame of memory never faults.
        let _ = frame.writer(0..part.len()).write(part);
        frame
    });
    let frames: Vec<UFrame> = core::iter::once(data).chain(code).collect();
    let part = |name, frames: &[UFrame]| {
        StrongRc::new(SpecialMapping { name, frames: frames.to_vec(), mapped: Mapped::default() })
    };
    let (data, code) = (part("[vvar]", &frames[..1]), part("[vdso]", &frames[1..]));
    PARTS.with(|parts| *parts = Some(Parts { data, code, frames }));
}

impl AddressSpace {
    /// Maps the vDSO at a page's address, or anywhere if something is mapped there, in an address space that nobody else uses yet; where its shared
    /// object is.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn map_vdso(&self, wish: usize, cx: &Cx) -> Result<usize> {
        const LEN: usize = VDSO_PAGES * PAGE_SIZE;
        let parts = PARTS.lock(cx);
        let Parts { data, code, frames } = parts.as_ref().ok_or(Errno::ENOMEM)?;
        let mut layout = self.layout.lock(cx);
        let at = |start: usize| {
            let code_start = start + PAGE_SIZE;
            let data = special(data, start..code_start, Prot::READ, Prot::READ, VmaFlags::DONT_DUMP);
            [data, special(code, code_start..start + LEN, CODE, Prot::all(), VmaFlags::empty())]
        };
        let start = if layout.has_room_above(wish, 2) {
            let [data, code] = at(wish);
            layout.push(data);
            layout.push(code);
            wish
        } else {
            // A program at a fixed address can be anywhere.
            let start = if layout.vmas().is_free(wish..wish + LEN) { wish } else { layout.place(0, LEN)? };
            at(start).into_iter().try_for_each(|part| layout.insert(part))?;
            start
        };
        // The others come in by a fault, as what there is no memory for does.
        let [data, code, ..] = &frames[..] else { return Err(Errno::ENOMEM) };
        self.vm.map_run(start, [(data.clone(), Prot::READ), (code.clone(), CODE)].into_iter(), cx);
        Ok(start + PAGE_SIZE)
    }
}

const CODE: Prot = Prot::READ.union(Prot::EXECUTE);

fn special(
    object: &StrongRc<SpecialMapping>,
    range: Range<usize>,
    prot: Prot,
    limit: Prot,
    flags: VmaFlags,
) -> Vma<Backing> {
    let backing = Backing::Object { object: object.share().unsize(|object| object), first: 0 };
    Vma { start: range.start, end: range.end, prot, limit, flags: flags | VmaFlags::DONT_EXPAND, backing }
}

impl BackingObject for SpecialMapping {
    fn name(&self) -> Option<&'static str> {
        Some(self.name)
    }

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
