//! What each core has of its own, reached through `gs` while the core is in the kernel.

use core::arch::asm;
use core::cell::{Cell, UnsafeCell};
use core::sync::atomic::AtomicU64;

use super::descriptors::{Gdt, TaskState};
use super::instructions::wrmsr;
use crate::user::{CycleCounter, UserState};

/// The register that says where `gs` begins.
pub(super) const GS_BASE: u32 = 0xc000_0101;

/// Where exceptions and interrupts of user code push what the processor pushes: it is copied away at once.
#[repr(C, align(16))]
pub struct TrapStack(UnsafeCell<[u64; 32]>);

impl TrapStack {
    const fn new() -> Self {
        TrapStack(UnsafeCell::new([0; 32]))
    }

    fn top(&self) -> usize {
        self.0.get().addr() + size_of::<TrapStack>()
    }
}

/// A stack for a double fault (the one in use has probably overflown) or a machine check (which may come where there is none).
#[repr(C, align(16))]
pub struct FatalStack(UnsafeCell<[u8; 16 << 10]>);

/// A core's own data. Only that core touches it (hence the cells), but for the atomics.
#[repr(C)]
pub struct CoreBlock {
    /// The block's own address.
    this: Cell<*const CoreBlock>,
    /// Where the kernel's stack goes on when user code traps.
    pub(super) kernel_rsp: Cell<usize>,
    /// The user's `rax` for a moment.
    pub(super) scratch: Cell<usize>,
    /// Whose floating-point state and segment bases are in the processor: it was run here and its task has not left since.
    pub(crate) loaded: Cell<*const UserState>,
    /// Whose user code can be entered as things are: it is `loaded`, and its address space is active. Whatever activates another one clears this.
    pub(crate) enterable: Cell<*const UserState>,
    /// Whether user code may read the time-stamp counter on this core now.
    pub(crate) cycle_counter: Cell<CycleCounter>,
    /// The core's number.
    pub(super) number: Cell<usize>,
    /// The vector and error code of the last trap of user code.
    pub(super) trap_vector: Cell<usize>,
    pub(super) trap_error: Cell<usize>,
    /// When this core's alarm is to go off (nanoseconds), or `u64::MAX`.
    pub(crate) alarm: AtomicU64,
    pub(super) gdt: Gdt,
    pub(super) task_state: TaskState,
    pub(super) trap_stack: TrapStack,
    pub(super) fatal_stack: FatalStack,
    pub(super) non_maskable_stack: TrapStack,
}

// SAFETY: a core reaches only its own block, and the rest is atomic.
unsafe impl Sync for CoreBlock {}

impl CoreBlock {
    const fn new() -> Self {
        CoreBlock {
            this: Cell::new(core::ptr::null()),
            kernel_rsp: Cell::new(0),
            scratch: Cell::new(0),
            loaded: Cell::new(core::ptr::null()),
            enterable: Cell::new(core::ptr::null()),
            cycle_counter: Cell::new(CycleCounter::Readable),
            number: Cell::new(0),
            trap_vector: Cell::new(0),
            trap_error: Cell::new(0),
            alarm: AtomicU64::new(u64::MAX),
            gdt: Gdt::new(),
            task_state: TaskState::new(),
            trap_stack: TrapStack::new(),
            fatal_stack: FatalStack(UnsafeCell::new([0; 16 << 10])),
            non_maskable_stack: TrapStack::new(),
        }
    }

    /// The top of the stack for traps of user code.
    pub(super) fn trap_stack_top(&self) -> usize {
        self.trap_stack.top()
    }

    /// The top of the stack for non-maskable interrupts, which may come before the kernel has its own stack.
    pub(super) fn non_maskable_stack_top(&self) -> usize {
        self.non_maskable_stack.top()
    }

    /// The top of the stack for double faults and machine checks.
    pub(super) fn fatal_stack_top(&self) -> usize {
        self.fatal_stack.0.get().addr() + size_of::<FatalStack>()
    }
}

static BOOT_CORE: CoreBlock = CoreBlock::new();

/// Makes [`core_block`] work on the boot core.
///
/// # Safety
/// Called once, at boot, on the boot core, before anything uses its block.
pub unsafe fn install_boot_core() -> &'static CoreBlock {
    BOOT_CORE.this.set(&raw const BOOT_CORE);
    // SAFETY: the block lives for ever.
    unsafe { wrmsr(GS_BASE, (&raw const BOOT_CORE).addr() as u64) };
    &BOOT_CORE
}

/// The block of the core that runs this.
///
/// It is that core's until the next suspension, which the caller must not let the reference cross.
#[inline(always)]
pub fn core_block() -> &'static CoreBlock {
    let block: *const CoreBlock;
    // SAFETY: `gs` is the block's address while the core is in the kernel; blocks live for ever.
    unsafe {
        asm!("mov {}, gs:[0]", out(reg) block, options(nostack, preserves_flags, readonly));
        &*block
    }
}

/// The number of the core that runs this.
#[inline(always)]
pub fn core_number() -> usize {
    let number;
    // SAFETY: as for `core_block`.
    unsafe {
        asm!("mov {}, gs:[{offset}]", out(reg) number, offset = const core::mem::offset_of!(CoreBlock, number),
            options(nostack, preserves_flags, readonly));
    }
    number
}

/// What is loaded on the core that runs this: [`CoreBlock::loaded`].
#[inline(always)]
pub fn loaded() -> *const UserState {
    let loaded;
    // SAFETY: as for `core_block`.
    unsafe {
        asm!("mov {}, gs:[{offset}]", out(reg) loaded, offset = const core::mem::offset_of!(CoreBlock, loaded),
            options(nostack, preserves_flags, readonly));
    }
    loaded
}

/// Whose user code can be entered on the core that runs this: [`CoreBlock::enterable`].
#[inline(always)]
pub fn enterable() -> *const UserState {
    let enterable;
    // SAFETY: as for `core_block`.
    unsafe {
        asm!("mov {}, gs:[{offset}]", out(reg) enterable, offset = const core::mem::offset_of!(CoreBlock, enterable),
            options(nostack, preserves_flags, readonly));
    }
    enterable
}
