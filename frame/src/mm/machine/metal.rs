//! The real machine.

use crate::arch::machine as arch;
use crate::arch::machine::kernel_map::{self, DIRECT_MAP};
use crate::core_set::CoreSet;
use crate::mm::{Context, CoreLocal, FrameNumber, PAGE_SIZE};

/// The number of the core that runs this.
#[inline(always)]
pub(in crate::mm) fn core_number() -> usize {
    arch::core_block::core_number()
}

/// What the core that runs this keeps of its own.
#[inline(always)]
pub(in crate::mm) fn core_local() -> &'static CoreLocal {
    &arch::core_block::core_block().memory
}

/// What a core keeps of its own that runs.
#[inline]
pub(in crate::mm) fn core_local_of(core: usize) -> Option<&'static CoreLocal> {
    arch::core_block::block_of(core).map(|block| &block.memory)
}

/// The bytes of a frame.
#[inline(always)]
pub(in crate::mm) fn frame_pointer(frame: FrameNumber) -> *mut u8 {
    core::ptr::with_exposed_provenance_mut(DIRECT_MAP + ((frame.0 as usize) << 12))
}

/// The frame that holds the bytes at a pointer that came from [`frame_pointer`].
#[inline(always)]
pub(in crate::mm) fn pointer_frame(pointer: *const u8) -> FrameNumber {
    FrameNumber(((pointer.addr() - DIRECT_MAP) >> 12) as u32)
}

/// Says that frames come into use.
#[inline(always)]
pub(in crate::mm) fn provide(_first: FrameNumber, _count: usize) {}

/// Says that frames are not used any more.
#[inline(always)]
pub(in crate::mm) fn withdraw(_first: FrameNumber, _count: usize) {}

/// Where the kernel's address space has room for blocks whose frames do not lie together.
#[inline(always)]
pub(in crate::mm) fn blocks() -> usize {
    kernel_map::BLOCKS
}

/// How many bytes of room: half of what a top-level entry maps.
pub(in crate::mm) const BLOCKS_LEN: usize = 256 << 30;

/// Maps a frame into the kernel's address space, to read and write. False if there was no memory for a table.
///
/// # Safety
/// The frame is the caller's alone, `address` is in the blocks' area, and nothing is mapped there.
pub(in crate::mm) unsafe fn map_block_page(address: usize, frame: FrameNumber) -> bool {
    let flags = kernel_map::WRITABLE | kernel_map::NO_EXECUTE;
    // SAFETY: the caller's promise.
    unsafe { kernel_map::map_page(address, (frame.0 as usize) << 12, flags) }
}

/// Takes such a mapping back: the frame, if there was one.
///
/// # Safety
/// Nobody uses the mapping.
pub(in crate::mm) unsafe fn unmap_block_page(address: usize) -> Option<FrameNumber> {
    // SAFETY: the caller's promise.
    let physical = unsafe { kernel_map::unmap_page(address) }?;
    Some(FrameNumber((physical >> 12) as u32))
}

/// Zeroes kernel memory.
///
/// # Safety
/// `to` is valid for writes of `len` bytes and `len` is a multiple of 8. User programs may see and change the bytes meanwhile.
#[inline(always)]
pub(in crate::mm) unsafe fn zero(to: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { arch::string::zero_words(to, len) }
}

/// Zeroes a whole frame.
///
/// # Safety
/// Valid for writes of a page, and page-aligned. User programs may see and change the bytes meanwhile.
#[inline(always)]
pub(in crate::mm) unsafe fn zero_page(to: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe {
        if !arch::vectors::zero_page(to) {
            zero(to, PAGE_SIZE);
        }
    }
}

/// Copies a whole frame.
///
/// # Safety
/// Both are valid for a page, are page-aligned and differ. User programs may change the bytes meanwhile.
#[inline(always)]
pub(in crate::mm) unsafe fn copy_page(to: *mut u8, from: *const u8) {
    // SAFETY: the caller's promise.
    unsafe {
        if !arch::vectors::copy_page(to, from) {
            arch::string::copy_words(to, from, PAGE_SIZE);
        }
    }
}

/// Copies bytes; at most one of the two sides is user memory, or both. Gives the number of bytes that were *not* copied
/// because user memory faulted.
///
/// # Safety
/// A side that is kernel memory is valid for `len` bytes, and the sides do not overlap there; a side that is user memory is
/// below [`USER_END`](crate::mm::USER_END).
#[inline(always)]
pub(in crate::mm) unsafe fn copy_user(to: *mut u8, from: *const u8, len: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe { arch::copy::copy_user(to, from, len) }
}

/// Writes zeros to user memory. Gives the number of bytes that were *not* written because it faulted.
///
/// # Safety
/// The bytes are below [`USER_END`](crate::mm::USER_END).
#[inline(always)]
pub(in crate::mm) unsafe fn zero_user(to: *mut u8, len: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe { arch::copy::zero_user(to, len) }
}

/// Copies between kernel memory and untyped frames, which user programs may change meanwhile. Where the two overlap, which of the bytes are copied is
/// unspecified.
///
/// # Safety
/// Both are valid for `len` bytes.
#[inline(always)]
pub(in crate::mm) unsafe fn copy(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller's promise. Both are instructions that move bytes one after the other, wherever those are.
    unsafe {
        if len != PAGE_SIZE || !arch::vectors::copy_page(to, from) {
            arch::string::copy_bytes(to, from, len);
        }
    }
}

/// Writes zeros to kernel memory or untyped frames.
///
/// # Safety
/// Valid for writes of `len` bytes.
#[inline(always)]
pub(in crate::mm) unsafe fn fill_zero(to: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { arch::string::zero_bytes(to, len) }
}

/// Copies bytes of user memory up to the first zero byte, or `len`: how many before it, and whether that is because the next
/// one faulted. What is behind them in `to` is unspecified.
///
/// # Safety
/// `to` is valid for writes of `len` bytes, and `from` is below [`USER_END`](crate::mm::USER_END).
#[inline(always)]
pub(in crate::mm) unsafe fn copy_string(to: *mut u8, from: *const u8, len: usize) -> (usize, bool) {
    // SAFETY: the caller's promise.
    unsafe { arch::copy::copy_string(to, from, len) }
}

/// Reads a word of user memory atomically; `None` if it faulted.
///
/// # Safety
/// Aligned, and below [`USER_END`](crate::mm::USER_END).
pub(in crate::mm) unsafe fn load_u32(from: *const u32) -> Option<u32> {
    // SAFETY: the caller's promise.
    unsafe { arch::copy::load_u32(from) }
}

/// Replaces a word of user memory if it is `expected`; what it was, or `None` if it faulted.
///
/// # Safety
/// Aligned, and below [`USER_END`](crate::mm::USER_END).
pub(in crate::mm) unsafe fn compare_exchange_u32(at: *mut u32, expected: u32, new: u32) -> Option<u32> {
    // SAFETY: the caller's promise.
    unsafe { arch::copy::compare_exchange_u32(at, expected, new) }
}

/// The frame of the page table that the core uses now.
pub(in crate::mm) fn root() -> FrameNumber {
    FrameNumber((arch::instructions::read_cr3() >> 12) as u32)
}

/// Whether the core remembers what it finds in page tables by context.
#[inline(always)]
pub(in crate::mm) fn has_contexts() -> bool {
    arch::features::has_pcids()
}

/// Makes the core use a page table in the context of number 0, and forget all that it remembers of that (but for global pages). No user code runs in it before
/// whoever runs some has said so.
///
/// # Safety
/// The table maps the kernel as the current one does, and stays in use as a table until another is set.
#[inline(always)]
pub(in crate::mm) unsafe fn set_root(root: FrameNumber) {
    arch::core_block::core_block().enterable.set(core::ptr::null());
    // SAFETY: the caller's promise.
    unsafe { arch::instructions::write_cr3((root.0 as usize) << 12) };
}

/// As [`set_root`], in a context, of which all is forgotten that is not kept.
///
/// # Safety
/// As for [`set_root`]. There are contexts; what is kept is of this table, and nothing was taken out since that may be remembered.
pub(in crate::mm) unsafe fn set_root_in(root: FrameNumber, context: Context) {
    arch::core_block::core_block().enterable.set(core::ptr::null());
    let value = (root.0 as usize) << 12 | usize::from(context.number) | usize::from(context.keeps) << 63;
    // SAFETY: the caller's promise.
    unsafe { arch::instructions::write_cr3(value) };
}

/// Makes the core forget the translation of one page.
#[inline(always)]
pub(in crate::mm) fn flush_page(address: usize) {
    arch::instructions::invlpg(address);
}

/// Makes the core forget all translations, those of global pages too.
pub(in crate::mm) fn flush_all() {
    arch::features::forget_translations();
}

/// Has other cores forget something, and waits until all have. This core is not among them.
#[cold]
pub(in crate::mm) fn ask_others(cores: CoreSet, what: crate::mm::Forget) {
    arch::cores::ask(cores, what);
}

/// How many cores run.
#[inline(always)]
pub(in crate::mm) fn core_count() -> usize {
    arch::core_block::count()
}

/// An entry of some table was written.
#[inline(always)]
pub(in crate::mm) fn entry_written() {}

/// Checks on a simulated machine that the processor remembers no way to a frame, which is about to be used for something else.
#[inline(always)]
pub(in crate::mm) fn assert_forgotten(_frame: FrameNumber) {}
