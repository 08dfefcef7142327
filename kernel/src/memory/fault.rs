//! Faults: making a page accessible if its VMA allows it.
//!
//! Private memory is copied on the first write, unless nobody else has the frame any more. Nothing here suspends.

use alloc::vec::Vec;
use core::ops::Range;

use frame::Cx;
use frame::mm::{Access, Entry, PAGE_SIZE, Prot, UFrame, USER_END};
use refs::{StrongRc, Waker};

use super::backing::{Backing, BackingObject, with_pages};
use super::layout::Layout;
use super::space::{AddressSpace, LOWEST};
use super::vma::{STACK_GUARD, Vma, VmaFlags};
use super::{BadAccess, Pages};
use crate::step::{Step, Stop};

/// How many pages of a file a fault maps at most, if they are in memory: an aligned window.
const AROUND: usize = 16;

impl AddressSpace {
    /// Makes the page of `address` accessible if the VMAs allow it.
    ///
    /// # Errors
    /// Why not.
    pub fn fault(&self, address: usize, access: Access, cx: &Cx) -> Result<(), BadAccess> {
        self.fault_in(&self.layout.lock(cx), address, access, cx)
    }

    #[inline(always)]
    fn fault_in(&self, layout: &Layout, address: usize, access: Access, cx: &Cx) -> Result<(), BadAccess> {
        let vma = layout.vmas().find(address).ok_or(BadAccess::NotMapped)?;
        if !permits(vma.prot, access) {
            return Err(BadAccess::NotAllowed);
        }
        let page = address & !(PAGE_SIZE - 1);
        match self.vm.query(page, cx) {
            None => self.bring_in(vma, page, access, cx).map(|_| ()),
            Some(entry) => self.widen(vma, page, entry, access, cx),
        }
    }

    /// As [`fault`](Self::fault), where nothing was found mapped in the middle of another call's change: what is mapped is known when that is done.
    ///
    /// # Errors
    /// None but those that say how to go on.
    #[cold]
    pub fn fault_step(
        &self,
        address: usize,
        access: Access,
        waker: Option<Waker>,
        cx: &Cx,
    ) -> Step<Result<(), BadAccess>> {
        let mut layout = self.layout.lock(cx);
        self.is_open(&mut layout);
        let outcome = self.fault_in(&layout, address, access, cx);
        if outcome == Err(BadAccess::NotMapped) && layout.is_claimed {
            if let Some(waker) = waker {
                self.released.register(waker, cx);
            }
            return Err(Stop::Block);
        }
        Ok(outcome)
    }

    /// As [`fault`](Self::fault), where the processor has found nothing: nearly always because nothing is mapped there.
    ///
    /// # Errors
    /// Why not.
    pub fn fault_absent(&self, address: usize, access: Access, cx: &Cx) -> Result<(), BadAccess> {
        let layout = self.layout.lock(cx);
        let vma = layout.vmas().find(address).ok_or(BadAccess::NotMapped)?;
        if !permits(vma.prot, access) {
            return Err(BadAccess::NotAllowed);
        }
        if self.bring_in(vma, address & !(PAGE_SIZE - 1), access, cx)? {
            return Ok(());
        }
        drop(layout);
        // It is mapped for nothing, or by another thread now.
        self.fault(address, access, cx)
    }

    /// Maps what a VMA shows at `page`, unless something is mapped there; whether nothing was.
    #[inline]
    fn bring_in(&self, vma: &Vma<Backing>, page: usize, access: Access, cx: &Cx) -> Result<bool, BadAccess> {
        let Backing::Object { object, first } = &vma.backing else {
            let frame = UFrame::zeroed().ok_or(BadAccess::NoMemory)?;
            return self.enter_new(page, frame, mapped(vma.prot), cx);
        };
        let index = first.saturating_add(((page - vma.start) / PAGE_SIZE) as u64);
        if vma.flags.contains(VmaFlags::SHARED) {
            let prot =
                if access == Access::Write { mapped(vma.prot) } else { mapped_shared(&vma.backing, vma.prot, cx) };
            let access = if prot.contains(Prot::WRITE) { Access::Write } else { Access::Read };
            let frame = page_of(object, index, access, cx)?;
            self.add_shared(1);
            return self.enter_new(page, frame, prot, cx);
        }
        let frame = page_of(object, index, Access::Read, cx)?;
        if access == Access::Write {
            let copy = frame.duplicate().ok_or(BadAccess::NoMemory)?;
            return self.enter_new(page, copy, mapped(vma.prot), cx);
        }
        self.bring_in_around(vma, page, object, index, frame, cx)
    }

    /// Maps a page that was read, and with it what is in memory of the file around it: the program will probably want that next.
    fn bring_in_around(
        &self,
        vma: &Vma<Backing>,
        page: usize,
        object: &StrongRc<dyn BackingObject>,
        index: u64,
        frame: UFrame,
        cx: &Cx,
    ) -> Result<bool, BadAccess> {
        let window = page & !(AROUND * PAGE_SIZE - 1);
        let start = window.max(vma.start);
        let end = (window + AROUND * PAGE_SIZE).min(vma.end);
        self.add_shared(1);
        if end - start == PAGE_SIZE {
            return self.enter_new(page, frame, mapped(vma.prot) - Prot::WRITE, cx);
        }
        let first = index - ((page - start) / PAGE_SIZE) as u64;
        let indices = first..first.saturating_add(((end - start) / PAGE_SIZE) as u64);
        let mut frames = [const { None::<UFrame> }; AROUND];
        let mut each = |at: u64, frame: UFrame| {
            if let Some(slot) = at.checked_sub(first).and_then(|slot| frames.get_mut(slot as usize)) {
                *slot = Some(frame);
            }
        };
        with_pages(object, cx, |pages: &dyn Pages| pages.cached(indices, &mut each, cx));
        each(index, frame);
        let mut take = |address: usize| frames.get_mut((address - start) / PAGE_SIZE).and_then(Option::take);
        let prot = mapped(vma.prot) - Prot::WRITE;
        let count = self.vm.map_absent(start..end, prot, &mut take, cx);
        self.add_shared(count);
        match take(page) {
            None => Ok(true),
            // There is no memory for a table, or something is mapped.
            Some(frame) => self.enter_new(page, frame, prot, cx),
        }
    }

    /// A page is mapped, but not for what is wanted now.
    fn widen(&self, vma: &Vma<Backing>, page: usize, entry: Entry, access: Access, cx: &Cx) -> Result<(), BadAccess> {
        let allowed = mapped(vma.prot);
        if vma.flags.contains(VmaFlags::SHARED) {
            self.widen_shared(vma, page, entry, access, cx)?;
        } else if access != Access::Write {
            self.vm.set_prot(page, entry.prot | (allowed - Prot::WRITE), cx);
        } else if !entry.prot.contains(Prot::WRITE) {
            return self.own(vma, page, entry, cx).map(drop);
        }
        Ok(())
    }

    /// The same for a page of a shared mapping; its frame.
    #[inline(never)]
    fn widen_shared(
        &self,
        vma: &Vma<Backing>,
        page: usize,
        entry: Entry,
        access: Access,
        cx: &Cx,
    ) -> Result<UFrame, BadAccess> {
        let prot = mapped_shared(&vma.backing, vma.prot, cx);
        if prot.contains(Prot::WRITE) || access != Access::Write || entry.prot.contains(Prot::WRITE) {
            self.vm.set_prot(page, entry.prot | prot, cx);
            return Ok(entry.frame);
        }
        let Backing::Object { object, first } = &vma.backing else { return Ok(entry.frame) };
        let index = first.saturating_add(((page - vma.start) / PAGE_SIZE) as u64);
        let frame = page_of(object, index, Access::Write, cx)?;
        self.enter(page, frame.clone(), mapped(vma.prot), cx)?;
        Ok(frame)
    }

    /// Makes the frame of a private page the process's own, for writing.
    fn own(&self, vma: &Vma<Backing>, page: usize, entry: Entry, cx: &Cx) -> Result<UFrame, BadAccess> {
        self.remove_shared();
        // One reference is the page table's, one is `entry`.
        if entry.frame.references() <= 2 {
            self.vm.set_prot(page, mapped(vma.prot), cx);
            return Ok(entry.frame);
        }
        let copy = entry.frame.duplicate().ok_or(BadAccess::NoMemory)?;
        self.enter(page, copy.clone(), mapped(vma.prot), cx)?;
        Ok(copy)
    }

    #[inline(always)]
    fn enter_new(&self, page: usize, frame: UFrame, prot: Prot, cx: &Cx) -> Result<bool, BadAccess> {
        self.vm.map_new(page, frame, prot, cx).map_err(|_| BadAccess::NoMemory)
    }

    #[inline(always)]
    fn enter(&self, page: usize, frame: UFrame, prot: Prot, cx: &Cx) -> Result<(), BadAccess> {
        self.vm.map(page, frame, prot, cx).map_err(|_| BadAccess::NoMemory)
    }

    /// Lets the stack above `address` grow down to it, up to `limit` bytes (RLIMIT_STACK). Whether it did.
    #[cold]
    pub fn grow_stack(&self, address: usize, limit: u64, cx: &Cx) -> bool {
        let mut layout = self.layout.lock(cx);
        let page = address & !(PAGE_SIZE - 1);
        if !(LOWEST..USER_END).contains(&address) {
            return false;
        }
        let Some(stack) = layout.vmas().at_or_above(page).filter(|vma| vma.flags.contains(VmaFlags::GROWS_DOWN)) else {
            return false;
        };
        let (start, end) = (stack.start, stack.end);
        let is_too_near = layout.vmas().below(start).is_some_and(|below| {
            let guard = if below.flags.contains(VmaFlags::GROWS_DOWN) { 0 } else { STACK_GUARD };
            below.end.saturating_add(guard) > page
        });
        if is_too_near || (end - page) as u64 > limit {
            return false;
        }
        layout.grow_down(start, page);
        true
    }

    /// Reads another program's memory, even where it could not itself if that is forced: how many bytes until the first page that is not there.
    ///
    /// # Errors
    /// `Absent`, whatever was read.
    pub fn read_remote(&self, address: usize, to: &mut [u8], right: RemoteRight, cx: &Cx) -> Step<usize> {
        let mut done = 0;
        while done < to.len() {
            let Some(at) = address.checked_add(done) else { break };
            let part = in_page(at, to.len() - done);
            let frame = match self.readable(at, right, cx) {
                Ok(frame) => frame,
                Err(bad @ BadAccess::Absent(_)) => return Err(bad.stop()),
                Err(_) => break,
            };
            let len = part.len();
            match frame.reader(part).read(&mut to[done..done + len]) {
                Ok(copied) if copied == len => done += len,
                _ => break,
            }
        }
        Ok(done)
    }

    /// Writes another program's memory, even where it could not itself if that is `forced` (in a private copy): how many bytes.
    ///
    /// # Errors
    /// `Absent`, whatever was written.
    pub fn write_remote(&self, address: usize, from: &[u8], right: RemoteRight, cx: &Cx) -> Step<usize> {
        let mut done = 0;
        while done < from.len() {
            let Some(at) = address.checked_add(done) else { break };
            let part = in_page(at, from.len() - done);
            let len = part.len();
            let write = |frame: UFrame| frame.writer(part).write(&from[done..done + len]);
            match self.with_writable(at, right, write, cx) {
                Ok(Ok(copied)) if copied == len => done += len,
                Err(bad @ BadAccess::Absent(_)) => return Err(bad.stop()),
                _ => break,
            }
        }
        Ok(done)
    }

    /// Writes zeros from `address` to the end of its page, in a private copy, whatever the program itself may do.
    ///
    /// # Errors
    /// Why not.
    pub fn zero_rest_of_page(&self, address: usize, cx: &Cx) -> Result<(), BadAccess> {
        let part = in_page(address, PAGE_SIZE);
        if part.start == 0 {
            return Ok(());
        }
        // A frame of memory never faults.
        let zero = |frame: UFrame| frame.writer(part).zero(PAGE_SIZE).is_ok();
        self.with_writable(address, RemoteRight::Forced, zero, cx).map(|_| ())
    }

    /// The frame at `address`, to be read.
    fn readable(&self, address: usize, right: RemoteRight, cx: &Cx) -> Result<UFrame, BadAccess> {
        let layout = self.layout.lock(cx);
        let vma = layout.vmas().find(address).ok_or(BadAccess::NotMapped)?;
        if right == RemoteRight::Own && !permits(vma.prot, Access::Read) {
            return Err(BadAccess::NotAllowed);
        }
        let page = address & !(PAGE_SIZE - 1);
        if self.vm.query(page, cx).is_none() {
            self.bring_in(vma, page, Access::Read, cx)?;
        }
        Ok(self.vm.query(page, cx).ok_or(BadAccess::NotMapped)?.frame)
    }

    /// What is behind a page, if it is in the page tables.
    pub fn resident(&self, page: usize, cx: &Cx) -> Option<Resident> {
        let layout = self.layout.lock(cx);
        let entry = self.vm.query(page, cx)?;
        let vma = layout.vmas().find(page)?;
        let shows_object = matches!(vma.backing, Backing::Object { .. });
        // One reference is the page table's, one is `entry`. What can be written of a private mapping is the process' own.
        let is_exclusive = entry.frame.references() <= 2;
        let of_object = shows_object
            && (vma.flags.contains(VmaFlags::SHARED) || !is_exclusive && !entry.prot.contains(Prot::WRITE));
        Some(Resident { of_object, is_exclusive })
    }

    /// The frame of a page if there is one in memory, whatever the program may do with it: for a core file.
    pub fn present_page(&self, page: usize, cx: &Cx) -> Option<UFrame> {
        let layout = self.layout.lock(cx);
        if let Some(entry) = self.vm.query(page, cx) {
            return Some(entry.frame);
        }
        let vma = layout.vmas().find(page)?;
        let Backing::Object { object, first } = &vma.backing else { return None };
        let index = first.saturating_add(((page - vma.start) / PAGE_SIZE) as u64);
        let mut found = None;
        with_pages(object, cx, |pages: &dyn Pages| {
            pages.cached(index..index + 1, &mut |_, frame| found = Some(frame), cx)
        });
        found
    }

    /// The frames of so many pages from `start` on, for a device that accesses them as the program could: `None` where one of them is not in memory, or may not be accessed so, or (to be written) is a
    /// mapping's that others share, of which it must be known when it is written.
    pub fn frames(&self, start: usize, pages: usize, access: Access, cx: &Cx) -> Option<Vec<UFrame>> {
        let layout = self.layout.lock(cx);
        let end = start.checked_add(pages.checked_mul(PAGE_SIZE)?)?;
        let vma = layout.vmas().find(start).filter(|vma| end <= vma.range().end)?;
        let right = match access {
            Access::Write if vma.flags.contains(VmaFlags::SHARED) => return None,
            Access::Write => Prot::WRITE,
            _ => Prot::READ,
        };
        let frame = |page| self.vm.query(page, cx).filter(|entry| entry.prot.contains(right)).map(|entry| entry.frame);
        (start..end).step_by(PAGE_SIZE).map(frame).collect()
    }

    /// Runs `write` on the frame at `address`, in a state in which it may be written. Until it has returned the page stays as it is: else another core could fork, and its
    /// program write to a copy, before what is written here is there.
    fn with_writable<R>(
        &self,
        address: usize,
        right: RemoteRight,
        write: impl FnOnce(UFrame) -> R,
        cx: &Cx,
    ) -> Result<R, BadAccess> {
        let mut layout = self.layout.lock(cx);
        let vma = layout.vmas().find(address).ok_or(BadAccess::NotMapped)?;
        let is_private = !vma.flags.contains(VmaFlags::SHARED);
        if !vma.prot.contains(Prot::WRITE) {
            // What it could not be allowed to write is nobody's to change.
            if !(right == RemoteRight::Forced && is_private && vma.limit.contains(Prot::WRITE)) {
                return Err(BadAccess::NotAllowed);
            }
            if vma.maps_object_privately() {
                let range = vma.range();
                let changed = layout.change(range, |vma| vma.flags |= VmaFlags::MAY_OWN);
                changed.map_err(|_| BadAccess::NoMemory)?;
            }
        }
        let vma = layout.vmas().find(address).ok_or(BadAccess::NotMapped)?;
        let page = address & !(PAGE_SIZE - 1);
        if self.vm.query(page, cx).is_none() {
            self.bring_in(vma, page, Access::Write, cx)?;
        }
        let entry = self.vm.query(page, cx).ok_or(BadAccess::NotMapped)?;
        let frame = if is_private {
            self.own(vma, page, entry, cx)?
        } else {
            self.widen_shared(vma, page, entry, Access::Write, cx)?
        };
        Ok(write(frame))
    }
}

/// Whether a page is accessed that the program itself may not access so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteRight {
    /// Only where the program itself may.
    Own,
    /// Also what it may not read; what it may not write, in a private copy (debuggers, the program loader).
    Forced,
}

/// What is behind a page that is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resident {
    /// It is a page of a file or of shared memory.
    pub of_object: bool,
    /// Nobody else has it.
    pub is_exclusive: bool,
}

/// With what rights pages of a shared mapping of those rights are mapped that are not about to be written: with all, but for that to write where the object must be told first.
#[inline(always)]
pub(super) fn mapped_shared(backing: &Backing, prot: Prot, cx: &Cx) -> Prot {
    let prot = mapped(prot);
    if prot.contains(Prot::WRITE) && is_told_of_writes(backing, cx) { prot - Prot::WRITE } else { prot }
}

#[inline(never)]
fn is_told_of_writes(backing: &Backing, cx: &Cx) -> bool {
    match backing {
        Backing::Object { object, .. } => with_pages(object, cx, |pages| pages.is_told_of_writes()) == Some(true),
        Backing::Anonymous => false,
    }
}

/// The part of a page that `len` bytes from `address` have.
fn in_page(address: usize, len: usize) -> Range<usize> {
    let start = address % PAGE_SIZE;
    start..start.saturating_add(len).min(PAGE_SIZE)
}

/// A page of an object.
pub(super) fn page_of(
    object: &StrongRc<dyn BackingObject>,
    index: u64,
    access: Access,
    cx: &Cx,
) -> Result<UFrame, BadAccess> {
    with_pages(object, cx, |pages| pages.page(index, access, cx)).unwrap_or(Err(BadAccess::BeyondFile))
}

impl AddressSpace {
    /// Whether something is mapped there that allows an access; whether that can be made accessible only a fault says.
    pub fn permits(&self, address: usize, access: Access, cx: &Cx) -> bool {
        self.layout.lock(cx).vmas().find(address).is_some_and(|vma| permits(vma.prot, access))
    }
}

/// Whether a VMA's protection allows an access. The processor cannot forbid reading what may be written or executed.
#[inline(always)]
fn permits(prot: Prot, access: Access) -> bool {
    match access {
        Access::Read => !prot.is_empty(),
        Access::Write => prot.contains(Prot::WRITE),
        Access::Execute => prot.contains(Prot::EXECUTE),
    }
}

/// What goes into the page table for a VMA's protection.
#[inline(always)]
pub(super) fn mapped(prot: Prot) -> Prot {
    if prot.is_empty() { prot } else { prot | Prot::READ }
}
