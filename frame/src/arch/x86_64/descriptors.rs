//! Segments, the task state and the interrupt table: what the processor looks up when control changes hands.
//!
//! The selectors are Linux's, because user programs see two of them.

use core::arch::asm;
use core::cell::UnsafeCell;

use super::core_block::CoreBlock;
use super::traps::{DOUBLE_FAULT, MACHINE_CHECK, NON_MASKABLE};

/// The kernel's code segment.
pub const KERNEL_CODE: u16 = 0x10;
/// The kernel's data segment.
pub const KERNEL_DATA: u16 = 0x18;
/// What `sysret` computes the user selectors from: data is 8 above, code 16.
pub const USER_BASE: u16 = 0x20;
/// User data segment, with the privilege bits.
pub const USER_DATA: u16 = (USER_BASE + 8) | 3;
/// User code segment, with the privilege bits.
pub const USER_CODE: u16 = (USER_BASE + 16) | 3;
const TASK_STATE: u16 = 0x40;
/// The segment whose limit is the core's number, for user code that asks with `lsl`.
const CORE_NUMBER: u16 = 0x78;
/// So many entries: up to that one.
const ENTRIES: usize = CORE_NUMBER as usize / 8 + 1;

/// The descriptor table of one core.
#[repr(C, align(16))]
pub struct Gdt(UnsafeCell<[u64; ENTRIES]>);

impl Gdt {
    /// With all segments but the task state.
    pub(super) const fn new() -> Self {
        let mut table = [0; ENTRIES];
        table[(KERNEL_CODE / 8) as usize] = 0x00af_9b00_0000_ffff;
        table[(KERNEL_DATA / 8) as usize] = 0x00cf_9300_0000_ffff;
        table[(USER_DATA / 8) as usize] = 0x00cf_f300_0000_ffff;
        table[(USER_CODE / 8) as usize] = 0x00af_fb00_0000_ffff;
        Gdt(UnsafeCell::new(table))
    }
}

/// The task state segment: which stacks the processor switches to. No I/O port is allowed to user code: the bitmap lies
/// behind the segment's end.
#[repr(C, align(16))]
pub struct TaskState(UnsafeCell<[u32; 26]>);

impl TaskState {
    /// Without stacks.
    pub(super) const fn new() -> Self {
        TaskState(UnsafeCell::new([0; 26]))
    }
}

const TASK_STATE_LEN: usize = 104;
/// The interrupt stack table's entry for what ends the kernel and may come while its stack cannot be used: neither returns, so they share it.
const FATAL_STACK: u64 = 1;
/// The one for non-maskable interrupts.
const NON_MASKABLE_STACK: u64 = 2;
const VECTORS: usize = 256;

#[repr(C, align(16))]
struct InterruptTable(UnsafeCell<[[u64; 2]; VECTORS]>);
// SAFETY: written once at boot by `load`, before other cores run; afterwards only the processor reads it.
unsafe impl Sync for InterruptTable {}

static INTERRUPTS: InterruptTable = InterruptTable(UnsafeCell::new([[0; 2]; VECTORS]));

#[repr(C, packed)]
struct TablePointer {
    limit: u16,
    base: usize,
}

/// Fills in the interrupt table: every vector leads to its stub.
///
/// # Safety
/// Called once, before any core has loaded it.
pub unsafe fn fill_interrupt_table() {
    super::traps::check_fixups();
    for vector in 0..VECTORS {
        let stub = super::traps::stub(vector) as u64;
        let stack = match vector {
            NON_MASKABLE => NON_MASKABLE_STACK,
            DOUBLE_FAULT | MACHINE_CHECK => FATAL_STACK,
            _ => 0,
        };
        // Only `int3` and `into` may be raised by the user's own `int` instruction.
        let privilege: u64 = if vector == 3 || vector == 4 { 3 } else { 0 };
        let low = stub & 0xffff
            | u64::from(KERNEL_CODE) << 16
            | stack << 32
            | 0x8e << 40
            | privilege << 45
            | (stub >> 16 & 0xffff) << 48;
        // SAFETY: nobody reads the table yet.
        unsafe { (*INTERRUPTS.0.get())[vector] = [low, stub >> 32] };
    }
}

/// Loads the tables on this core.
///
/// # Safety
/// `block` is this core's, installed; the interrupt table is filled.
pub unsafe fn load(block: &'static CoreBlock) {
    let state = block.task_state.0.get();
    let base = state.addr() as u64;
    let limit = TASK_STATE_LEN as u64 - 1;
    // SAFETY: the core's own tables, which the processor does not use yet. The offsets are the TSS' (Intel SDM volume 3, 8.7).
    unsafe {
        let stacks = [(1, block.trap_stack_top()), (9, block.fatal_stack_top()), (11, block.non_maskable_stack_top())];
        for (at, stack) in stacks {
            (*state)[at] = stack as u32;
            (*state)[at + 1] = (stack >> 32) as u32;
        }
        (*state)[25] = (TASK_STATE_LEN as u32) << 16;
        let table = block.gdt.0.get();
        (*table)[(TASK_STATE / 8) as usize] = limit & 0xffff
            | (base & 0xff_ffff) << 16
            | 0x89 << 40
            | (limit >> 16 & 0xf) << 48
            | (base >> 24 & 0xff) << 56;
        (*table)[(TASK_STATE / 8) as usize + 1] = base >> 32;
        // Data that user code may only read, and of which it never does: it has no bytes there.
        let number = block.number.get() as u64;
        (*table)[(CORE_NUMBER / 8) as usize] = 0x0040_f500_0000_0000 | number & 0xffff | (number >> 16 & 0xf) << 48;
    }
    let gdt = TablePointer { limit: size_of::<Gdt>() as u16 - 1, base: block.gdt.0.get().addr() };
    let idt = TablePointer { limit: (VECTORS * 16) as u16 - 1, base: INTERRUPTS.0.get().addr() };
    // SAFETY: the tables live for ever and hold the segments that are loaded. `gs` is not touched: its base would be lost.
    unsafe {
        asm!(
            "lgdt [{gdt}]",
            "lidt [{idt}]",
            "push {code}",
            "lea {scratch}, [rip + 2f]",
            "push {scratch}",
            "retfq",
            "2:",
            "mov ss, {data:e}",
            "mov ds, {zero:e}",
            "mov es, {zero:e}",
            "ltr {task:x}",
            gdt = in(reg) &gdt,
            idt = in(reg) &idt,
            code = in(reg) u64::from(KERNEL_CODE),
            data = in(reg) u32::from(KERNEL_DATA),
            zero = in(reg) 0,
            task = in(reg) TASK_STATE,
            scratch = out(reg) _,
        );
    }
}
