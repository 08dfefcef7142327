//! Simulated memory for tests on a host. A block of frames is an allocation of its own from when it is taken to when it is
//! given back; a freed frame has no bytes, so that a use after free cannot stay unseen.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::mm::{Access, CoreLocal, FrameNumber, PAGE_SIZE};

mod paging;

pub(in crate::mm) use paging::{
    assert_forgotten, entry_written, flush_all, flush_page, has_contexts, root, set_root, set_root_in, translate,
};
#[cfg(test)]
pub(in crate::mm) use paging::{set_has_contexts, speculate};

#[derive(Default)]
struct Memory {
    /// The exposed address of each frame in use.
    frames: HashMap<u32, usize>,
    /// The frame at each such address.
    numbers: HashMap<usize, u32>,
    /// Each allocation's first frame, by any of its frames.
    blocks: HashMap<u32, u32>,
    /// Each allocation: address, frames, and how many of them are still in use.
    allocations: HashMap<u32, (usize, usize, usize)>,
}

static MEMORY: Mutex<Option<Memory>> = Mutex::new(None);

fn memory() -> MutexGuard<'static, Option<Memory>> {
    let mut memory = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    memory.get_or_insert_default();
    memory
}

/// There is one core.
pub(in crate::mm) fn core_count() -> usize {
    1
}

/// Nobody is there to be asked.
pub(in crate::mm) fn ask_others(_cores: crate::core_set::CoreSet, what: crate::mm::Forget) {
    let crate::mm::Forget { root, generation, start, end } = what;
    unreachable!("one core has no others to forget {root:#x} from {start:#x} to {end:#x} ({generation})");
}

/// The number of the core that runs this. The tests run one at a time.
pub(in crate::mm) fn core_number() -> usize {
    0
}

static CORE: CoreLocal = CoreLocal::new();

/// What the only core keeps of its own.
pub(in crate::mm) fn core_local() -> &'static CoreLocal {
    &CORE
}

/// What a core keeps of its own.
pub(in crate::mm) fn core_local_of(core: usize) -> Option<&'static CoreLocal> {
    (core == 0).then_some(&CORE)
}

/// The bytes of a frame in use.
pub(in crate::mm) fn frame_pointer(frame: FrameNumber) -> *mut u8 {
    let address = memory().as_ref().and_then(|memory| memory.frames.get(&frame.0).copied());
    std::ptr::with_exposed_provenance_mut(address.unwrap_or_else(|| panic!("{frame:?} is not in use")))
}

/// The frame that holds the bytes at a pointer that came from [`frame_pointer`].
pub(in crate::mm) fn pointer_frame(pointer: *const u8) -> FrameNumber {
    let page = pointer.addr() & !(PAGE_SIZE - 1);
    let number = memory().as_ref().and_then(|memory| memory.numbers.get(&page).copied());
    FrameNumber(number.unwrap_or_else(|| panic!("no frame at {pointer:?}")))
}

fn layout(count: usize) -> Layout {
    Layout::from_size_align(count * PAGE_SIZE, PAGE_SIZE).expect("a block is small")
}

/// Says that frames come into use.
pub(in crate::mm) fn provide(first: FrameNumber, count: usize) {
    // SAFETY: the size is not zero.
    let pointer = unsafe { alloc(layout(count)) };
    assert!(!pointer.is_null());
    // SAFETY: just allocated. Not zero: what relies on zeros must see to it.
    unsafe { pointer.write_bytes(0xa5, count * PAGE_SIZE) };
    let address = pointer.expose_provenance();
    let mut guard = memory();
    let memory = guard.as_mut().expect("made by memory()");
    memory.allocations.insert(first.0, (address, count, count));
    for index in 0..count as u32 {
        let at = address + index as usize * PAGE_SIZE;
        assert!(memory.frames.insert(first.0 + index, at).is_none(), "frame {} was in use", first.0 + index);
        memory.numbers.insert(at, first.0 + index);
        memory.blocks.insert(first.0 + index, first.0);
    }
}

/// Says that frames are not used any more.
pub(in crate::mm) fn withdraw(first: FrameNumber, count: usize) {
    (first.0..first.0 + count as u32).map(FrameNumber).for_each(assert_forgotten);
    let mut guard = memory();
    let memory = guard.as_mut().expect("made by memory()");
    for number in first.0..first.0 + count as u32 {
        let address = memory.frames.remove(&number).unwrap_or_else(|| panic!("frame {number} was not in use"));
        memory.numbers.remove(&address);
        let block = memory.blocks.remove(&number).expect("as in `frames`");
        let (start, frames, left) = memory.allocations.get_mut(&block).expect("as in `blocks`");
        *left -= 1;
        if *left == 0 {
            // SAFETY: allocated by `provide` with this layout, and none of its frames is in use.
            unsafe { dealloc(std::ptr::with_exposed_provenance_mut(*start), layout(*frames)) };
            memory.allocations.remove(&block);
        }
    }
}

/// The room for blocks whose frames do not lie together: one such block.
pub(in crate::mm) const BLOCKS_LEN: usize = 64 << 20;

/// Where it is: an allocation that stands for the frames which are mapped there. (Their own bytes are not looked at meanwhile.)
pub(in crate::mm) fn blocks() -> usize {
    static START: OnceLock<usize> = OnceLock::new();
    *START.get_or_init(|| {
        // SAFETY: the size is not zero.
        let start = unsafe { alloc(layout(BLOCKS_LEN / PAGE_SIZE)) };
        assert!(!start.is_null());
        start.expose_provenance()
    })
}

static MAPPED: Mutex<BTreeMap<usize, FrameNumber>> = Mutex::new(BTreeMap::new());

/// Maps a frame in the room for blocks. False if there is none at that address.
///
/// # Safety
/// None is needed.
pub(in crate::mm) unsafe fn map_block_page(address: usize, frame: FrameNumber) -> bool {
    let is_room = address.wrapping_sub(blocks()) < BLOCKS_LEN;
    if is_room {
        let before = MAPPED.lock().unwrap_or_else(PoisonError::into_inner).insert(address, frame);
        assert_eq!(before, None, "something was mapped at {address:#x}");
    }
    is_room
}

/// Takes such a mapping back: the frame, if there was one.
///
/// # Safety
/// None is needed.
pub(in crate::mm) unsafe fn unmap_block_page(address: usize) -> Option<FrameNumber> {
    MAPPED.lock().unwrap_or_else(PoisonError::into_inner).remove(&address)
}

/// Zeroes kernel memory.
///
/// # Safety
/// `to` is valid for writes of `len` bytes and `len` is a multiple of 8.
pub(in crate::mm) unsafe fn zero(to: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { to.write_bytes(0, len) };
}

/// Zeroes a whole frame.
///
/// # Safety
/// Valid for writes of a page.
pub(in crate::mm) unsafe fn zero_page(to: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { zero(to, PAGE_SIZE) };
}

/// Copies a whole frame.
///
/// # Safety
/// Both are valid for a page, are page-aligned and differ.
pub(in crate::mm) unsafe fn copy_page(to: *mut u8, from: *const u8) {
    // SAFETY: the caller's promise.
    unsafe { to.copy_from_nonoverlapping(from, PAGE_SIZE) };
}

/// Copies between kernel memory and untyped frames. Where the two overlap, which of the bytes are copied is unspecified.
///
/// # Safety
/// Both are valid for `len` bytes.
pub(in crate::mm) unsafe fn copy(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { to.copy_from(from, len) };
}

/// Writes zeros to kernel memory or untyped frames.
///
/// # Safety
/// Valid for writes of `len` bytes.
pub(in crate::mm) unsafe fn fill_zero(to: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { to.write_bytes(0, len) };
}

/// The byte at an address as a program would reach it: user memory through the page table, all else as it is.
fn reach(at: *mut u8, access: Access) -> Option<*mut u8> {
    if at.addr() < SIMULATED_USER_END { translate(at.addr(), access) } else { Some(at) }
}

/// The tests keep to user addresses below this, and a host's allocations are above.
const SIMULATED_USER_END: usize = 0x1000_0000_0000;

/// Copies bytes; either side may be user memory. Gives the number of bytes that were *not* copied.
///
/// # Safety
/// A side that is kernel memory is valid for `len` bytes.
pub(in crate::mm) unsafe fn copy_user(to: *mut u8, from: *const u8, len: usize) -> usize {
    for index in 0..len {
        let target = reach(to.wrapping_add(index), Access::Write);
        let source = reach(from.cast_mut().wrapping_add(index), Access::Read);
        let (Some(target), Some(source)) = (target, source) else { return len - index };
        // SAFETY: user memory was translated, and kernel memory is the caller's promise.
        unsafe { *target = *source };
    }
    0
}

/// Writes zeros to user memory. Gives the number of bytes that were *not* written.
///
/// # Safety
/// As for [`copy_user`].
pub(in crate::mm) unsafe fn zero_user(to: *mut u8, len: usize) -> usize {
    for index in 0..len {
        let Some(target) = reach(to.wrapping_add(index), Access::Write) else { return len - index };
        // SAFETY: user memory was translated, and kernel memory is the caller's promise.
        unsafe { *target = 0 };
    }
    0
}

/// Copies bytes of user memory up to the first zero byte, or `len`: how many before it, and whether that is because the next
/// one faulted.
///
/// # Safety
/// `to` is valid for writes of `len` bytes.
pub(in crate::mm) unsafe fn copy_string(to: *mut u8, from: *const u8, len: usize) -> (usize, bool) {
    for index in 0..len {
        let Some(source) = translate(from.addr() + index, Access::Read) else { return (index, true) };
        // SAFETY: user memory was translated, and kernel memory is the caller's promise.
        unsafe {
            if *source == 0 {
                return (index, false);
            }
            *to.add(index) = *source;
        }
    }
    (len, false)
}

/// Reads a word of user memory; `None` if it faulted.
///
/// # Safety
/// Aligned.
pub(in crate::mm) unsafe fn load_u32(from: *const u32) -> Option<u32> {
    // SAFETY: translated, and aligned.
    Some(unsafe { *translate(from.addr(), Access::Read)?.cast() })
}

/// Replaces a word of user memory if it is `expected`; what it was, or `None` if it faulted.
///
/// # Safety
/// Aligned.
pub(in crate::mm) unsafe fn compare_exchange_u32(at: *mut u32, expected: u32, new: u32) -> Option<u32> {
    let at = translate(at.addr(), Access::Write)?.cast::<u32>();
    // SAFETY: translated, and aligned; the tests run one at a time.
    unsafe {
        let found = *at;
        if found == expected {
            *at = new;
        }
        Some(found)
    }
}
