//! Taking pages of an object out of all address spaces that map it: after it was truncated or pages were cut out of it.
//!
//! There may be many address spaces with many VMAs each, so it takes several steps. How far it is stands in the object's [`Mapped`]; who
//! changes the object next finishes it first. Meanwhile no more pages come in than the object has: a fault asks the object.

use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use frame::Cx;
use frame::mm::{PAGE_SIZE, USER_END};
use refs::{SpinLock, WeakRc};

use super::backing::{Backing, WritableMappings, with_pages};
use super::space::{AddressSpace, registered_from};
use super::{Pages, VmaFlags};
use crate::step::{Interruption, Step, Stop, TimeSlice};

/// So many VMAs are looked at without a look at the clock.
const AREAS_AT_ONCE: usize = 128;

/// What memory knows of an object that can be mapped. Its address is the object's identity, as long as that lives.
#[derive(Default)]
pub struct Mapped {
    /// 0 before it was asked for.
    number: AtomicU64,
    may_be: AtomicBool,
    /// Whether pages are being taken out of address spaces.
    is_under_way: AtomicBool,
    walk: SpinLock<Option<Walk>>,
    /// What its shared mappings own that can be written; only where F_SEAL_WRITE asks for them.
    pub(super) writable: SpinLock<Option<WeakRc<WritableMappings>>>,
}

/// How far that is.
struct Walk {
    indices: Range<u64>,
    /// The number of the address space that comes next.
    space: u64,
    /// All VMAs below were looked at in it.
    address: usize,
    /// How often VMAs had been moved in it when that began.
    moves: u64,
}

impl Mapped {
    /// Of an object that may be mapped somewhere already.
    pub fn somewhere() -> Self {
        Mapped { may_be: AtomicBool::new(true), ..Mapped::default() }
    }

    /// A number that no other object has, nor will have when this one is gone: who waits for a futex in it names it so for as long as the wait lasts,
    /// whatever is unmapped meanwhile.
    pub fn number(&self) -> u64 {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = self.number.load(Ordering::Relaxed);
        if number != 0 {
            return number;
        }
        let new = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        // Whoever is first gives it its number.
        self.number.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed).map_or_else(|given| given, |_| new)
    }

    /// It is mapped from now on.
    #[inline(always)]
    pub fn note(&self) {
        self.may_be.store(true, Ordering::Release);
    }

    /// Whether it is mapped such that it can be written through the mapping, now or after mprotect(2). Only known of what is mapped by
    /// [`WritableMappings`].
    pub fn is_writable(&self, cx: &Cx) -> bool {
        self.writable.lock(cx).is_some_and(|writable| !writable.is_gone())
    }

    /// Whether somebody takes pages out of address spaces just now, or has begun to.
    pub fn is_being_unmapped(&self) -> bool {
        self.is_under_way.load(Ordering::Acquire)
    }

    /// Whether it may be mapped somewhere.
    #[inline(always)]
    pub fn may_be(&self) -> bool {
        self.may_be.load(Ordering::Acquire)
    }
}

/// Takes the pages with these indices of an object out of all address spaces that map it: after the object was truncated
/// (`indices` reaches to `u64::MAX`) or pages were cut out of it, and with no lock of the object held.
///
/// A private mapping loses its own copies too only if the object was truncated.
///
/// # Errors
/// [`Stop::Pause`] if there is more to do: the caller's next step begins with [`finish_unmapping`].
pub fn unmap_pages(object: &dyn Pages, indices: Range<u64>, cx: &Cx) -> Step<()> {
    if begin_unmapping(object, indices, cx) { finish_unmapping(object, cx) } else { Ok(()) }
}

/// Says what is to be taken out as [`unmap_pages`] does, and takes nothing out yet: for whoever holds a lock of the object's. Whether there is anything to do, which
/// [`finish_unmapping`] does.
pub fn begin_unmapping(object: &dyn Pages, indices: Range<u64>, cx: &Cx) -> bool {
    let mapped = object.mapped();
    if !mapped.may_be.swap(false, Ordering::AcqRel) {
        return false;
    }
    *mapped.walk.lock(cx) = Some(Walk { indices, space: 0, address: 0, moves: 0 });
    mapped.is_under_way.store(true, Ordering::Release);
    true
}

/// Goes on with what [`unmap_pages`] began, if it did not come to its end. Whoever is to change the object's length, or to cut out pages, does this
/// first.
///
/// # Errors
/// [`Stop::Pause`] if there is still more to do.
#[inline]
pub fn finish_unmapping(object: &dyn Pages, cx: &Cx) -> Step<()> {
    if object.mapped().is_under_way.load(Ordering::Acquire) { go_on(object, cx) } else { Ok(()) }
}

#[cold]
fn go_on(object: &dyn Pages, cx: &Cx) -> Step<()> {
    let mapped = object.mapped();
    // Taken out meanwhile: an address space's lock is taken before an object's.
    let Some(mut walk) = mapped.walk.lock(cx).take() else { return Ok(()) };
    let mut time_slice = TimeSlice::default();
    while let Some((number, space)) = registered_from(walk.space) {
        if number != walk.space {
            (walk.space, walk.address) = (number, 0);
        }
        let is_done = match space.upgrade(cx) {
            Ok(space) => space.unmap_pages_of(object, &mut walk, &mut time_slice, cx),
            Err(_) => true,
        };
        if is_done {
            (walk.space, walk.address) = (number + 1, 0);
        }
        if !is_done || time_slice.is_over() {
            *mapped.walk.lock(cx) = Some(walk);
            return Err(Stop::Pause(Interruption::Never));
        }
    }
    mapped.is_under_way.store(false, Ordering::Release);
    Ok(())
}

impl AddressSpace {
    /// Goes on with this address space; whether it is done.
    fn unmap_pages_of(&self, object: &dyn Pages, walk: &mut Walk, time_slice: &mut TimeSlice, cx: &Cx) -> bool {
        self.layout.give_way();
        let layout = self.layout.lock(cx);
        if layout.is_claimed {
            // Pages are on their way from one VMA to another.
            walk.address = 0;
            return false;
        }
        if walk.address == 0 || walk.moves != layout.moves {
            (walk.address, walk.moves) = (0, layout.moves);
        }
        let mut looked_at = 0;
        for vma in layout.vmas().overlapping(walk.address..USER_END) {
            looked_at += 1;
            if looked_at % AREAS_AT_ONCE == 0 && time_slice.is_over() {
                return false;
            }
            let start = vma.start.max(walk.address);
            walk.address = vma.end;
            let Backing::Object { object: backing, first } = &vma.backing else { continue };
            if with_pages(backing, cx, |pages| core::ptr::eq(pages.mapped(), object.mapped())) != Some(true) {
                continue;
            }
            object.mapped().note();
            if !vma.flags.contains(VmaFlags::SHARED) && walk.indices.end != u64::MAX {
                continue;
            }
            let pages = vma.pages() as u64;
            let address = |index: u64| vma.start + index.saturating_sub(*first).min(pages) as usize * PAGE_SIZE;
            let mut range = address(walk.indices.start).max(start)..address(walk.indices.end);
            while !range.is_empty() {
                self.unmap_batch(&mut range, cx);
                if time_slice.is_over() {
                    walk.address = range.start.min(vma.end);
                    return false;
                }
            }
        }
        true
    }
}
