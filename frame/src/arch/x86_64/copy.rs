//! Copies to and from user memory, which may fault.
//!
//! A routine that faults goes on, byte by byte, to the first byte that cannot be copied, and returns how many bytes were
//! left: faults are looked up by address in the section `.ebb.fixups`.
//!
//! *Each byte of the target is written once*, and 4 or 8 bytes by one instruction: another thread sees what is written at once, and may have written something else there when a
//! second store of the same comes. (Its word may be a lock that the kernel has just unlocked for a thread that exits, CLONE_CHILD_CLEARTID.) So no two pieces
//! overlap, and after a fault nothing is written again that is there already. A caller that begins anew after a fault does write all of it again; but a word that is aligned is in one page.
//!
//! Between `stac` and `clac` the processor lets the kernel at user memory; on
//! one without SMAP the two are replaced at boot, because it does not know them.

use core::arch::global_asm;

global_asm!(
    r#"
    # They stand in the order of the addresses `from`: `traps::fixup` halves its search.
    .macro fixup from, to
    .pushsection .ebb.fixups, "a"
    .quad \from, \to
    .popsection
    .endm
    .macro allow
77:
    .pushsection .ebb.smap, "a"
    .quad 77b
    .popsection
    stac
    .endm
    .macro forbid
77:
    .pushsection .ebb.smap, "a"
    .quad 77b
    .popsection
    clac
    .endm

    .section .text.hot.ebb_copy, "ax"
    .balign 64
.globl ebb_copy_user
ebb_copy_user:                      # rdi: to, rsi: from, rdx: length; rax: bytes left
    allow
9:  cmp rdx, 16
    ja 30f
    jb 10f
44: mov rax, [rsi]
45: mov rcx, [rsi + 8]
12: mov [rdi], rax
13: mov [rdi + 8], rcx
    forbid
    xor eax, eax
    ret
10: cmp edx, 8
    jne 11f
14: mov rax, [rsi]
15: mov [rdi], rax
    forbid
    xor eax, eax
    ret
11: cmp edx, 4
    jne 20f
31: mov eax, [rsi]
32: mov [rdi], eax
    forbid
    xor eax, eax
    ret
    # Fewer than 16, the largest pieces first.
20: test dl, 8
    jz 22f
16: mov rax, [rsi]
17: mov [rdi], rax
    add rsi, 8
    add rdi, 8
    sub edx, 8
22: test dl, 4
    jz 24f
18: mov eax, [rsi]
19: mov [rdi], eax
    add rsi, 4
    add rdi, 4
    sub edx, 4
24: test dl, 2
    jz 26f
21: movzx eax, word ptr [rsi]
23: mov [rdi], ax
    add rsi, 2
    add rdi, 2
    sub edx, 2
26: test edx, edx
    jz 29f
27: mov al, [rsi]
28: mov [rdi], al
29: forbid
    xor eax, eax
    ret
30: cmp rdx, 64
    ja 50f
    # In steps of 16, then what is left.
    mov r8, rdx
    and r8, -16
    add rdi, r8
    add rsi, r8
    and edx, 15
    neg r8
35: mov rax, [rsi + r8]
36: mov rcx, [rsi + r8 + 8]
37: mov [rdi + r8], rax
38: mov [rdi + r8 + 8], rcx
    add r8, 16
    jnz 35b
    test edx, edx
    jnz 20b
    forbid
    xor eax, eax
    ret
50: cmp rdx, 512
    jae 60f
51: mov rcx, rdx
    shr rcx, 3
    and edx, 7
54: rep movsq
    jnz 20b
    forbid
    xor eax, eax
    ret
    fixup 44b, 90f
    fixup 45b, 90f
    fixup 12b, 90f
    fixup 13b, 83f
    fixup 14b, 90f
    fixup 15b, 90f
    fixup 31b, 90f
    fixup 32b, 90f
    fixup 16b, 90f
    fixup 17b, 90f
    fixup 18b, 90f
    fixup 19b, 90f
    fixup 21b, 90f
    fixup 23b, 90f
    fixup 27b, 90f
    fixup 28b, 90f
    fixup 35b, 80f
    fixup 36b, 80f
    fixup 37b, 80f
    fixup 38b, 84f
    fixup 54b, 81f
    # 256 bytes at a time, with vector registers (see `vectors`), then the rest as if it were all.
60: cmp byte ptr [rip + ebb_has_vectors], 0
    je 51b
    sub rsp, 64
    vmovdqu [rsp], ymm0
    vmovdqu [rsp + 32], ymm1
    mov rcx, rdx
    and rcx, -256
    and edx, 255
    add rdi, rcx
    add rsi, rcx
    neg rcx
61: .set place, 0
    .rept 4
62: vmovdqu ymm0, [rsi + rcx + place]
63: vmovdqu ymm1, [rsi + rcx + place + 32]
64: vmovdqu [rdi + rcx + place], ymm0
65: vmovdqu [rdi + rcx + place + 32], ymm1
    .subsection 1                   # a fault in one of these steps: what is copied stays
66: lea rcx, [rcx + 32]
67: lea rcx, [rcx + place]
    jmp 82f
    .previous
    fixup 62b, 67b
    fixup 63b, 67b
    fixup 64b, 67b
    fixup 65b, 66b
    .set place, place + 64
    .endr
    add rcx, 256
    jnz 61b
    vmovdqu ymm0, [rsp]
    vmovdqu ymm1, [rsp + 32]
    add rsp, 64
    jmp 9b
82: vmovdqu ymm0, [rsp]
    vmovdqu ymm1, [rsp + 32]
    add rsp, 64
    add rdi, rcx
    add rsi, rcx
    sub rdx, rcx
    jmp 90f
    # A fault at the second half of 16 bytes.
83: add rdi, 8
    add rsi, 8
    sub edx, 8
    jmp 90f
    # A fault after `rdi` and `rsi` were moved to the end of the front: back to where it is.
84: add r8, 8
80: add rdi, r8
    add rsi, r8
    sub rdx, r8
    jmp 90f
    # A fault in the middle of `rep movsq`.
81: lea rdx, [rdx + rcx * 8]
    # Byte by byte to the end, or to the byte that faults.
90: test rdx, rdx
    jz 99f
91: mov al, [rsi]
92: mov [rdi], al
    inc rsi
    inc rdi
    dec rdx
    jnz 91b
99: forbid
    mov rax, rdx
    ret
    fixup 91b, 99b
    fixup 92b, 99b

    .balign 16
.globl ebb_zero_user
ebb_zero_user:                      # rdi: to, rsi: length; rax: bytes left
    allow
    xor eax, eax
    mov rcx, rsi
    shr rcx, 3
    and esi, 7
44: rep stosq
    test esi, esi
    jz 99f
90: mov byte ptr [rdi], 0
    inc rdi
    dec rsi
    jnz 90b
99: forbid
    mov rax, rsi
    ret
80: lea rsi, [rsi + rcx * 8]
    jmp 90b
    fixup 44b, 80b
    fixup 90b, 99b

    .balign 16
.globl ebb_copy_string
ebb_copy_string:                    # rdi: to, rsi: from, rdx: length; rax: bytes before the zero, bit 63: one faulted
    allow
    movabs r8, 0x0101010101010101
    movabs r9, 0x8080808080808080
    xor eax, eax
10: lea rcx, [rax + 8]
    cmp rcx, rdx
    ja 20f
44: mov r10, [rsi + rax]
    # The lowest bit set of (word - 01..01) & ~word & 80..80 marks the first zero byte.
    mov r11, r10
    mov rcx, r10
    sub r11, r8
    not rcx
    and r11, r9
    mov [rdi + rax], r10
    and r11, rcx
    jnz 15f
    add rax, 8
    jmp 10b
15: bsf r11, r11
    shr r11, 3
    add rax, r11
    forbid
    ret
    # Fewer than eight are left, or the eight reach into memory that is not there.
20: cmp rax, rdx
    jae 30f
21: movzx ecx, byte ptr [rsi + rax]
    test ecx, ecx
    jz 30f
    mov [rdi + rax], cl
    inc rax
    jmp 20b
30: forbid
    ret
90: bts rax, 63
    forbid
    ret
    fixup 44b, 20b
    fixup 21b, 90b

    .balign 16
.globl ebb_load_u32
ebb_load_u32:                       # rdi: from; rax: the word, or -1
    allow
44: mov eax, [rdi]
    forbid
    ret
90: forbid
    mov rax, -1
    ret
    fixup 44b, 90b

    .balign 16
.globl ebb_compare_exchange_u32
ebb_compare_exchange_u32:           # rdi: at, esi: expected, edx: new; rax: the word found, or -1
    allow
    mov eax, esi
44: lock cmpxchg [rdi], edx
    mov eax, eax
    forbid
    ret
90: forbid
    mov rax, -1
    ret
    fixup 44b, 90b
    "#
);

unsafe extern "C" {
    fn ebb_copy_user(to: *mut u8, from: *const u8, len: usize) -> usize;
    fn ebb_zero_user(to: *mut u8, len: usize) -> usize;
    fn ebb_copy_string(to: *mut u8, from: *const u8, len: usize) -> usize;
    fn ebb_load_u32(from: *const u32) -> u64;
    fn ebb_compare_exchange_u32(at: *mut u32, expected: u32, new: u32) -> u64;
    static __smap_start: usize;
    static __smap_end: usize;
}

/// Copies `len` bytes from the front; how many bytes were left when one could not be copied.
///
/// # Safety
/// Each side is a range of user addresses (below 2^47), or memory of the kernel that may be read or written and does not
/// overlap the other side.
#[inline(always)]
pub unsafe fn copy_user(to: *mut u8, from: *const u8, len: usize) -> usize {
    // SAFETY: by this function's contract; faults at user addresses are fixed up.
    unsafe { ebb_copy_user(to, from, len) }
}

/// Writes `len` zeros from the front; how many bytes were left when one could not be written.
///
/// # Safety
/// `to` is as for [`copy_user`].
#[inline(always)]
pub unsafe fn zero_user(to: *mut u8, len: usize) -> usize {
    // SAFETY: by this function's contract; faults at user addresses are fixed up.
    unsafe { ebb_zero_user(to, len) }
}

/// Copies bytes up to the first zero byte, or `len`: how many before it, and whether that is because one could not be read.
/// What is behind them in `to` is unspecified.
///
/// # Safety
/// `from` is a range of user addresses, and `to` is memory of the kernel that may be written.
#[inline(always)]
pub unsafe fn copy_string(to: *mut u8, from: *const u8, len: usize) -> (usize, bool) {
    // SAFETY: by this function's contract; faults at user addresses are fixed up.
    let done = unsafe { ebb_copy_string(to, from, len) };
    (done & (usize::MAX >> 1), done > usize::MAX >> 1)
}

/// Reads a word, atomically; `None` if it cannot be read.
///
/// # Safety
/// `from` is a user address, a multiple of 4.
#[inline(always)]
pub unsafe fn load_u32(from: *const u32) -> Option<u32> {
    // SAFETY: by this function's contract; faults at user addresses are fixed up.
    u32::try_from(unsafe { ebb_load_u32(from) }).ok()
}

/// Replaces a word, atomically, by `new` if it is `expected`; the word found, or `None` if it cannot be written.
///
/// # Safety
/// `at` is a user address, a multiple of 4.
#[inline(always)]
pub unsafe fn compare_exchange_u32(at: *mut u32, expected: u32, new: u32) -> Option<u32> {
    // SAFETY: by this function's contract; faults at user addresses are fixed up.
    u32::try_from(unsafe { ebb_compare_exchange_u32(at, expected, new) }).ok()
}

/// On a processor without SMAP, replaces the instructions that it does not know by ones that do nothing.
///
/// # Safety
/// Called at boot, while the kernel's text is still writable and nothing runs these routines.
pub unsafe fn patch_for_no_smap() {
    const NOTHING: [u8; 3] = [0x0f, 0x1f, 0x00];
    let (start, end) = (&raw const __smap_start, &raw const __smap_end);
    // SAFETY: the linker script puts the addresses of the three-byte instructions between the two symbols.
    unsafe {
        for place in core::slice::from_raw_parts(start, (end.addr() - start.addr()) / size_of::<usize>()) {
            (*place as *mut [u8; 3]).write(NOTHING);
        }
    }
}
