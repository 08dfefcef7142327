//! getrandom(2) without a system call: a generator with fast key erasure (the kernel's own algorithm) in memory of the program's.
//!
//! A program asks for the size of a [`State`] and how to map memory for it, and has one for each thread. That memory is of the kind that a child of fork(2)
//! finds full of zeros and core files lack (MAP_DROPPABLE), so no two processes ever go on with the same key.
//! A state has the number of the kernel's generation that its key is of: 0, for none, where it is new or was wiped. Where
//! that is not the page's number, the key comes from the kernel by the system call.
//!
//! A state may be wiped, and the generation may end, in the middle of a call (a signal's handler forks and goes on in the child): so both
//! are looked at once more behind the last byte, and the call begins anew. What a key or the random bytes leave behind is erased: in the batch when they are given out, and registers
//! before the block function returns, which keeps nothing in the memory of the stack (a thread that forks would copy that).
//!
//! This is user code, as `calls` is.

use core::arch::{asm, global_asm};
use core::sync::atomic::{Ordering, compiler_fence};

use crate::page::{Page, Word};

const GETRANDOM: usize = 318;
const EFAULT: isize = 14;
/// GRND_NONBLOCK, GRND_RANDOM, GRND_INSECURE: all are the same, as the kernel's generator always has a seed.
const FLAGS: u32 = 7;
/// As much as any call reads at most.
const MOST: usize = 0x7fff_f000;
const PAGE: usize = 4096;
const BLOCK: usize = 64;

const BATCH: usize = 96;
const KEY: usize = 32;

/// A generator of one thread's.
#[repr(C)]
pub struct State {
    /// Random bytes that were not given out yet, from `used` on; the others are zeros.
    batch: [u8; BATCH],
    /// What the next ones are made by. It stands behind the batch: two blocks make both.
    key: [u8; KEY],
    /// Of which generation the key is; 0: there is none.
    generation: u64,
    used: u32,
    /// A call is under way. A signal's handler that calls again meanwhile gets its bytes from the kernel.
    in_use: u32,
}

const _: () = assert!(core::mem::offset_of!(State, key) == BATCH && BATCH + KEY == 2 * BLOCK);

/// How to have a state, as the kernel's header <linux/random.h> has it (`struct vgetrandom_opaque_params`).
#[derive(Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Parameters {
    size_of_opaque_state: u32,
    mmap_prot: u32,
    mmap_flags: u32,
    reserved: [u32; 13],
}

const PARAMETERS: Parameters = Parameters {
    size_of_opaque_state: size_of::<State>() as u32,
    // PROT_READ | PROT_WRITE
    mmap_prot: 3,
    // MAP_ANONYMOUS | MAP_DROPPABLE
    mmap_flags: 0x28,
    reserved: [0; 13],
};

// The ChaCha20 block function (RFC 8439, section 2.3) with nonce 0, a row of the state in each register. It touches no memory but what it reads the
// key from and writes the blocks to.
//
//   rdi: where the blocks go; rsi: the key; rdx: the number of the first block; rcx: how many, one at least
global_asm!(
    ".pushsection .rodata.ebb_chacha20, \"a\"",
    ".balign 16",
    ".Lebb_chacha20_constants: .ascii \"expand 32-byte k\"",
    ".popsection",
    ".macro ebb_rotate row, left, right",
    "movdqa xmm8, \\row",
    "pslld \\row, \\left",
    "psrld xmm8, \\right",
    "por \\row, xmm8",
    ".endm",
    ".macro ebb_quarter_rounds",
    "paddd xmm0, xmm1",
    "pxor xmm3, xmm0",
    "pshuflw xmm3, xmm3, 0xb1",
    "pshufhw xmm3, xmm3, 0xb1",
    "paddd xmm2, xmm3",
    "pxor xmm1, xmm2",
    "ebb_rotate xmm1, 12, 20",
    "paddd xmm0, xmm1",
    "pxor xmm3, xmm0",
    "ebb_rotate xmm3, 8, 24",
    "paddd xmm2, xmm3",
    "pxor xmm1, xmm2",
    "ebb_rotate xmm1, 7, 25",
    ".endm",
    ".pushsection .text.ebb_chacha20, \"ax\"",
    ".globl ebb_chacha20",
    ".hidden ebb_chacha20",
    ".type ebb_chacha20, @function",
    "ebb_chacha20:",
    ".cfi_startproc",
    "movdqa xmm4, [rip + .Lebb_chacha20_constants]",
    "movdqu xmm5, [rsi]",
    "movdqu xmm6, [rsi + 16]",
    "movq xmm7, rdx",
    "2:",
    "movdqa xmm0, xmm4",
    "movdqa xmm1, xmm5",
    "movdqa xmm2, xmm6",
    "movdqa xmm3, xmm7",
    "mov eax, 10",
    "3:",
    // The columns, then the diagonals: the rows are turned so that those stand in columns.
    "ebb_quarter_rounds",
    "pshufd xmm1, xmm1, 0x39",
    "pshufd xmm2, xmm2, 0x4e",
    "pshufd xmm3, xmm3, 0x93",
    "ebb_quarter_rounds",
    "pshufd xmm1, xmm1, 0x93",
    "pshufd xmm2, xmm2, 0x4e",
    "pshufd xmm3, xmm3, 0x39",
    "dec eax",
    "jnz 3b",
    "paddd xmm0, xmm4",
    "paddd xmm1, xmm5",
    "paddd xmm2, xmm6",
    "paddd xmm3, xmm7",
    "movdqu [rdi], xmm0",
    "movdqu [rdi + 16], xmm1",
    "movdqu [rdi + 32], xmm2",
    "movdqu [rdi + 48], xmm3",
    "add rdi, 64",
    "inc rdx",
    "movq xmm7, rdx",
    "dec rcx",
    "jnz 2b",
    "pxor xmm0, xmm0",
    "pxor xmm1, xmm1",
    "pxor xmm2, xmm2",
    "pxor xmm3, xmm3",
    "pxor xmm5, xmm5",
    "pxor xmm6, xmm6",
    "pxor xmm8, xmm8",
    "ret",
    ".cfi_endproc",
    ".size ebb_chacha20, . - ebb_chacha20",
    ".popsection",
);

/// Makes `count` blocks, one at least, from number `first` on. The key is read before anything is written.
///
/// # Safety
/// `to` is to that many blocks, `key` to a key.
#[inline(always)]
unsafe fn make_blocks(to: *mut u8, key: *const u8, first: u64, count: usize) {
    // SAFETY: the caller's promise. The function is called directly: a shared object without relocations has no other way.
    unsafe {
        asm!("call ebb_chacha20", inout("rdi") to => _, in("rsi") key, inout("rdx") first => _, inout("rcx") count => _,
            out("rax") _, clobber_abi("C"));
    }
}

/// Takes bytes out of a batch: what was there is zeros then.
///
/// # Safety
/// Both are `len` bytes, apart from each other.
#[inline(always)]
unsafe fn take(mut to: *mut u8, mut from: *mut u8, len: usize) {
    let mut left = len;
    // SAFETY: the caller's promise.
    unsafe {
        while left >= 8 {
            to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned());
            from.cast::<u64>().write_unaligned(0);
            (to, from, left) = (to.add(8), from.add(8), left - 8);
            // This is a loop, and no call of a function for long copies.
            compiler_fence(Ordering::SeqCst);
        }
        while left > 0 {
            to.write(from.read());
            from.write(0);
            (to, from, left) = (to.add(1), from.add(1), left - 1);
            compiler_fence(Ordering::SeqCst);
        }
    }
}

/// # Safety
/// As the system call, but that a bad pointer is not refused; `state` is to `state_len` bytes that are one thread's, unless they are not the size of a
/// state.
#[inline(always)]
pub unsafe fn getrandom(
    page: &Page,
    buffer: *mut u8,
    len: usize,
    flags: u32,
    state: *mut State,
    state_len: usize,
) -> isize {
    // SAFETY: the caller's pointers.
    unsafe {
        if state_len == usize::MAX && buffer.is_null() && len == 0 && flags == 0 {
            state.cast::<Parameters>().write(PARAMETERS);
            return 0;
        }
        if state.addr() % PAGE + size_of::<State>() > PAGE {
            return -EFAULT;
        }
        if flags & !FLAGS != 0 || state_len != size_of::<State>() || page.get(Word::RandomGeneration) == 0 {
            return system_call(buffer, len, flags);
        }
        let len = len.min(MOST);
        if len == 0 {
            return 0;
        }
        let in_use = &raw mut (*state).in_use;
        if in_use.read_volatile() != 0 {
            return system_call(buffer, len, flags);
        }
        in_use.write_volatile(1);
        compiler_fence(Ordering::SeqCst);
        // The second time something ended in the middle of the first; there is no third.
        let done = (0..2).any(|_| fill(page, buffer, len, state));
        compiler_fence(Ordering::SeqCst);
        in_use.write_volatile(0);
        if done { len as isize } else { system_call(buffer, len, flags) }
    }
}

/// Writes random bytes; whether they are good.
///
/// # Safety
/// That of [`getrandom`].
#[inline(always)]
unsafe fn fill(page: &Page, buffer: *mut u8, len: usize, state: *mut State) -> bool {
    // SAFETY: the caller's pointers. Whatever a state says, what is used of its batch lies in it.
    unsafe {
        let (batch, key) = ((&raw mut (*state).batch).cast::<u8>(), (&raw mut (*state).key).cast::<u8>());
        let (generation, used) = (&raw mut (*state).generation, &raw mut (*state).used);
        let current = page.get(Word::RandomGeneration);
        if generation.read_volatile() != current {
            // Said before the key comes: if the state is wiped meanwhile, it is not of this generation.
            generation.write_volatile(current);
            used.write_volatile(BATCH as u32);
            if system_call(key, KEY, 0) != KEY as isize {
                generation.write_volatile(0);
                return false;
            }
        }
        let (mut to, mut left) = (buffer, len);
        loop {
            let start = (used.read_volatile() as usize).min(BATCH);
            let count = left.min(BATCH - start);
            take(to, batch.add(start), count);
            used.write_volatile((start + count) as u32);
            (to, left) = (to.add(count), left - count);
            compiler_fence(Ordering::SeqCst);
            if left == 0 {
                return generation.read_volatile() == page.get(Word::RandomGeneration);
            }
            let whole = left / BLOCK;
            if whole > 0 {
                make_blocks(to, key, 0, whole);
                (to, left) = (to.add(whole * BLOCK), left % BLOCK);
            }
            // A new batch, and a new key, from which nobody learns what was given out.
            make_blocks(batch, key, whole as u64, 2);
            used.write_volatile(0);
        }
    }
}

/// # Safety
/// As the system call.
#[cold]
#[inline(never)]
unsafe fn system_call(buffer: *mut u8, len: usize, flags: u32) -> isize {
    let result: isize;
    // SAFETY: the kernel checks the pointer.
    unsafe {
        asm!("syscall", inlateout("rax") GETRANDOM => result, in("rdi") buffer, in("rsi") len, in("rdx") flags,
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

#[cfg(test)]
mod tests {
    use core::ptr::null_mut;
    use std::vec;

    use super::*;

    #[repr(align(4096))]
    struct Own(State);

    fn new_state() -> std::boxed::Box<Own> {
        let state = State { batch: [0; BATCH], key: [0; KEY], generation: 0, used: 0, in_use: 0 };
        std::boxed::Box::new(Own(state))
    }

    fn page(generation: u64) -> Page {
        let page = Page::default();
        page.set(Word::RandomGeneration, generation);
        page
    }

    fn get(page: &Page, len: usize, state: &mut Own) -> vec::Vec<u8> {
        let mut bytes = vec![0; len];
        // SAFETY: the pointers are good.
        let got = unsafe { getrandom(page, bytes.as_mut_ptr(), len, 0, &raw mut state.0, size_of::<State>()) };
        assert_eq!(got, len as isize);
        bytes
    }

    #[test]
    fn the_blocks_are_those_of_rfc_8439_appendix_a_1() {
        let mut blocks = [0; 2 * BLOCK];
        // SAFETY: the pointers are good.
        unsafe { make_blocks(blocks.as_mut_ptr(), [0; KEY].as_ptr(), 0, 2) };
        assert_eq!(blocks[..4], [0x76, 0xb8, 0xe0, 0xad]);
        assert_eq!(blocks[60..64], [0xb2, 0xee, 0x65, 0x86]);
        assert_eq!(blocks[64..68], [0x9f, 0x07, 0xe7, 0xbe]);
        let mut key = [0; KEY];
        key[31] = 1;
        // SAFETY: as above.
        unsafe { make_blocks(blocks.as_mut_ptr(), key.as_ptr(), 1, 1) };
        assert_eq!(blocks[..4], [0x3a, 0xeb, 0x52, 0x24]);
    }

    #[test]
    fn no_bytes_come_twice_whatever_their_number() {
        let (page, mut state) = (page(1), new_state());
        let mut all = vec::Vec::new();
        for len in (16..64).chain([95, 96, 97, 128, 160, 1000, 4096]) {
            all.extend(get(&page, len, &mut state).chunks_exact(16).map(<[u8]>::to_vec));
            let State { batch, used, in_use, .. } = &state.0;
            assert!(batch[..*used as usize].iter().all(|byte| *byte == 0) && *in_use == 0);
        }
        all.sort();
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn the_key_is_another_when_a_batch_is_made() {
        let (page, mut state) = (page(1), new_state());
        get(&page, 1, &mut state);
        let key = state.0.key;
        get(&page, BATCH - 1, &mut state);
        assert_eq!(state.0.key, key);
        get(&page, 1, &mut state);
        assert_ne!(state.0.key, key);
    }

    #[test]
    fn a_state_that_was_wiped_or_is_of_another_generation_gets_a_new_key() {
        let (first, second) = (page(1), page(2));
        let mut state = new_state();
        get(&first, 1, &mut state);
        let key = state.0.key;
        get(&second, 1, &mut state);
        assert!(state.0.key != key && state.0.generation == 2);
        let (mut one, mut other) = (new_state(), new_state());
        assert_ne!(get(&first, 32, &mut one), get(&first, 32, &mut other));
        assert_ne!(one.0.key, other.0.key);
    }

    #[test]
    fn while_a_call_is_under_way_another_is_the_system_call() {
        let (page, mut state) = (page(1), new_state());
        state.0.in_use = 1;
        assert_ne!(get(&page, 32, &mut state), vec![0; 32]);
        assert_eq!((state.0.generation, state.0.in_use), (0, 1));
    }

    #[test]
    fn who_asks_learns_how_to_have_a_state() {
        let mut parameters = Parameters { reserved: [7; 13], ..Parameters::default() };
        // SAFETY: the pointers are good, or null.
        let got = unsafe { getrandom(&page(1), null_mut(), 0, 0, (&raw mut parameters).cast(), usize::MAX) };
        assert_eq!((got, parameters), (0, PARAMETERS));
    }

    #[test]
    fn a_state_across_two_pages_is_refused_and_one_of_another_size_not_used() {
        let mut byte = 0_u8;
        let across = core::ptr::without_provenance_mut(2 * PAGE - 8);
        // SAFETY: the state is not looked at.
        unsafe {
            assert_eq!(getrandom(&page(1), &raw mut byte, 1, 0, across, size_of::<State>()), -EFAULT);
            assert_eq!(getrandom(&page(1), &raw mut byte, 1, 0, null_mut(), 7), 1);
            assert_eq!(getrandom(&page(0), &raw mut byte, 1, 0, null_mut(), size_of::<State>()), 1);
            assert_eq!(getrandom(&page(1), &raw mut byte, 1, 1 << 20, null_mut(), size_of::<State>()), -22);
            assert_eq!(getrandom(&page(1), null_mut(), 0, 0, null_mut(), size_of::<State>()), 0);
        }
    }
}
