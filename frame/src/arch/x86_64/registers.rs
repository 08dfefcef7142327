//! What a user thread has in the processor beside its floating-point state.

use core::mem::offset_of;

#[cfg(target_os = "none")]
use crate::trap::{BadSegmentBase, Trap};

const _: () = {
    let first = [
        offset_of!(Registers, rdi),
        offset_of!(Registers, rsi),
        offset_of!(Registers, rdx),
        offset_of!(Registers, r10),
        offset_of!(Registers, r8),
        offset_of!(Registers, r9),
    ];
    let mut index = 0;
    while index < first.len() {
        assert!(first[index] == index * size_of::<usize>(), "`arguments` says so");
        index += 1;
    }
};

/// The general registers of a user thread, in the names of the architecture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Registers {
    // The arguments of a system call, in order: see `arguments`.
    pub rdi: usize,
    pub rsi: usize,
    pub rdx: usize,
    pub r10: usize,
    pub r8: usize,
    pub r9: usize,
    pub rax: usize,
    pub rbx: usize,
    pub rcx: usize,
    pub rbp: usize,
    pub rsp: usize,
    pub r11: usize,
    pub r12: usize,
    pub r13: usize,
    pub r14: usize,
    pub r15: usize,
    pub rip: usize,
    pub rflags: usize,
}

impl Registers {
    /// The arguments of a system call, in order.
    #[inline(always)]
    pub fn arguments(&self) -> &[usize; 6] {
        // SAFETY: these six fields come first and one behind the other.
        unsafe { &*core::ptr::from_ref(self).cast() }
    }

    /// The trap that user code causes at once if it is entered with these registers: the processor would raise it in the kernel.
    #[cfg(target_os = "none")]
    #[inline(always)]
    pub(crate) fn trap_on_entry(&self) -> Option<Trap> {
        const GENERAL_PROTECTION: u8 = 13;
        (self.rip >> 47 != 0).then_some(Trap::Exception { vector: GENERAL_PROTECTION, code: 0 })
    }
}

/// The bases of the segments `fs` and `gs`. Both are canonical.
#[cfg(target_os = "none")]
#[derive(Clone, Copy, Debug, Default)]
pub struct SegmentBases {
    fs: usize,
    gs: usize,
}

#[cfg(target_os = "none")]
impl SegmentBases {
    /// # Errors
    /// One of them is not canonical.
    pub fn new(fs: usize, gs: usize) -> Result<Self, BadSegmentBase> {
        let is_canonical = |address: usize| matches!(address as isize >> 47, 0 | -1);
        if is_canonical(fs) && is_canonical(gs) { Ok(SegmentBases { fs, gs }) } else { Err(BadSegmentBase) }
    }

    /// The base of `fs`.
    pub fn fs(self) -> usize {
        self.fs
    }

    /// The base of `gs`.
    pub fn gs(self) -> usize {
        self.gs
    }
}
