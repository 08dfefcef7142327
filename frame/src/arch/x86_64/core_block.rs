//! What each core has of its own, reached through `gs` while the core is in the kernel.

use core::arch::asm;
use core::cell::{Cell, UnsafeCell};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use refs::reclaim::Report;

use super::cores::Requests;
use super::descriptors::{Gdt, TaskState};
use super::instructions::wrmsr;
use crate::cpu::MAX_CORES;
use crate::mm::CoreLocal;
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
    /// Whether it waits for something to do.
    pub(crate) idles: Cell<bool>,
    /// The number of its interrupt controller.
    pub(super) apic_id: Cell<u32>,
    /// When this core's alarm is to go off (nanoseconds), or `u64::MAX`.
    pub(crate) alarm: AtomicU64,
    /// Whether it is in the kernel, and when it was last quiescent: user mode and idleness hold nothing back. Kernel entry and exit write it.
    pub(crate) report: Report,
    /// What it asks of other cores, and what they ask of it.
    pub(super) requests: Requests,
    /// Another core looks at this one: it stays at its next non-maskable interrupt for as long.
    pub(super) is_held: AtomicBool,
    /// It stays there.
    pub(super) is_stopped: AtomicBool,
    /// Its free frames, slots of the heap and tables, and what it remembers of address spaces.
    pub(crate) memory: CoreLocal,
    pub(super) gdt: Gdt,
    pub(super) task_state: TaskState,
    pub(super) trap_stack: TrapStack,
    pub(super) fatal_stack: FatalStack,
    pub(super) non_maskable_stack: TrapStack,
}

// SAFETY: others reach what is atomic of a core's block, and the number of its interrupt controller, which is set before the block is known to them.
unsafe impl Sync for CoreBlock {}

impl CoreBlock {
    pub(super) const fn new() -> Self {
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
            idles: Cell::new(false),
            apic_id: Cell::new(0),
            alarm: AtomicU64::new(u64::MAX),
            report: Report::new(),
            requests: Requests::new(),
            is_held: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
            memory: CoreLocal::new(),
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

/// Where a core was interrupted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interrupted {
    pub(super) ip: usize,
    pub(super) rsp: usize,
    pub(super) mode: Mode,
}

/// Whose code a core was running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    User,
    Kernel,
}

impl CoreBlock {
    /// Where the core stays after a non-maskable interrupt; `None` if it does not.
    pub(super) fn stopped_at(&self) -> Option<Interrupted> {
        if !self.is_stopped.load(Ordering::Acquire) {
            return None;
        }
        /// What the processor pushed first: rip, cs, rflags, rsp, ss.
        const FRAME: usize = 5;
        let top = self.non_maskable_stack.0.get().cast::<u64>().wrapping_add(size_of::<TrapStack>() / size_of::<u64>());
        // SAFETY: the words are a part of the block. The core wrote them before it said that it is stopped, and writes nothing there while it is.
        let [ip, cs, _, rsp, _] = unsafe { top.wrapping_sub(FRAME).cast::<[usize; FRAME]>().read_volatile() };
        Some(Interrupted { ip, rsp, mode: if cs & 3 == 0 { Mode::Kernel } else { Mode::User } })
    }
}

static BOOT_CORE: CoreBlock = CoreBlock::new();

/// The blocks of all cores that run, by their numbers.
static BLOCKS: [AtomicPtr<CoreBlock>; MAX_CORES] = [const { AtomicPtr::new(core::ptr::null_mut()) }; MAX_CORES];
/// How many there are.
static COUNT: AtomicUsize = AtomicUsize::new(1);

/// How many cores run.
#[inline(always)]
pub fn count() -> usize {
    COUNT.load(Ordering::Relaxed)
}

/// One more core runs: its block can be found by its number. The blocks of cores are entered in the order of their numbers.
pub(super) fn enter(block: &'static CoreBlock) {
    let number = block.number.get();
    BLOCKS[number].store(core::ptr::from_ref(block).cast_mut(), Ordering::Release);
    COUNT.store(number + 1, Ordering::Release);
}

/// The block of a core that runs.
pub(crate) fn block_of(core: usize) -> Option<&'static CoreBlock> {
    // SAFETY: null, or a block that lives for ever.
    unsafe { BLOCKS.get(core)?.load(Ordering::Acquire).as_ref() }
}

/// Makes [`core_block`] work on the boot core.
///
/// # Safety
/// Called once, at boot, on the boot core, before anything uses its block.
pub unsafe fn install_boot_core() -> &'static CoreBlock {
    // SAFETY: the caller's promise.
    unsafe { install(&BOOT_CORE) };
    enter(&BOOT_CORE);
    &BOOT_CORE
}

/// Makes [`core_block`] work on the core that runs this.
///
/// # Safety
/// It is the block of this core and no other, and nothing has used it yet.
pub unsafe fn install(block: &'static CoreBlock) {
    block.this.set(block);
    // SAFETY: the block lives for ever.
    unsafe { wrmsr(GS_BASE, core::ptr::from_ref(block).addr() as u64) };
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
