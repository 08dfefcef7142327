//! Where exceptions and interrupts arrive.
//!
//! One stub for each vector pushes the vector (and 0 where the processor pushes no error code). From user mode all registers go
//! to the user's [`Registers`](crate::user::Registers), and the kernel goes on where it entered user mode, on its own stack, as if that had been a call (see
//! [`super::user_mode`]). From kernel mode the registers are saved where we are: it is an interrupt in the idle loop, a user
//! copy that faulted, or the end.
//!
//! Three vectors may arrive anywhere, also where neither the stack nor `gs` are the kernel's (between a system call's first instructions, or
//! before user mode's last): they have stacks of their own. A non-maskable interrupt is ignored at once; double faults and machine checks are reported,
//! and end the kernel.

use core::arch::global_asm;
use core::mem::offset_of;

use refs::reclaim::EPOCH;

use super::core_block::{CoreBlock, FatalStack, GS_BASE, TrapStack};
use super::instructions::{read_cr2, take_dr6};
use crate::mm::Access;
use crate::user::{Registers, Trap};

/// Stubs are this far apart.
const STUB_BYTES: usize = 16;

/// A page could not be accessed.
pub const PAGE_FAULT: usize = 14;
/// A non-maskable interrupt.
pub const NON_MASKABLE: usize = 2;
/// An exception that could not be delivered.
pub const DOUBLE_FAULT: usize = 8;
/// The processor or memory is broken.
pub const MACHINE_CHECK: usize = 18;
/// A debug exception.
pub const DEBUG: usize = 1;
/// A general protection fault.
pub const GENERAL_PROTECTION: usize = 13;
/// The first vector that is an interrupt and no exception.
pub const FIRST_INTERRUPT: usize = 32;

global_asm!(
    r#"
    .section .text
    .balign 16
.globl ebb_stubs
ebb_stubs:
    .set vector, 0
    .rept 256
    .balign {stub}
    .if vector == {non_maskable}
    jmp ebb_non_maskable
    .endif
    .if vector == 8 || (vector >= 10 && vector <= 14) || vector == 17 || vector == 21 || vector == 29 || vector == 30
    .else
    push 0
    .endif
    push vector
    .if vector == {double_fault} || vector == {machine_check}
    jmp ebb_fatal_trap
    .else
    jmp ebb_trap
    .endif
    .set vector, vector + 1
    .endr
    .org ebb_stubs + 256 * {stub}   # fails where a stub is too long

ebb_non_maskable:                   # on a stack that is a part of the core's block; what is pushed there stays while the core does (`CoreBlock::stopped_at`)
    push rax
    lea rax, [rsp + 48 - {non_maskable_stack_top}]
    cmp byte ptr [rip + {stopped}], 0
    jne 2f
    cmp byte ptr [rax + {is_held}], 0
    jne 1f
    pop rax                         # raised by something else, which is ignored
    iretq
1:  mov byte ptr [rax + {is_stopped}], 1    # another core wants to look at this one
    pause
    cmp byte ptr [rip + {stopped}], 0
    jne 2f
    cmp byte ptr [rax + {is_held}], 0
    jne 1b
    mov byte ptr [rax + {is_stopped}], 0
    pop rax
    iretq
2:  mov byte ptr [rax + {is_stopped}], 1    # another core cannot go on, and stops all
3:  cli
    hlt
    jmp 3b

    .balign 16
ebb_trap:                           # vector, error, rip, cs, rflags, rsp, ss
    test byte ptr [rsp + 24], 3
    jz ebb_kernel_trap
    swapgs
    push rax
    mov rax, gs:[{loaded}]
    mov [rax + {rbx}], rbx
    mov [rax + {rcx}], rcx
    mov [rax + {rdx}], rdx
    mov [rax + {rsi}], rsi
    mov [rax + {rdi}], rdi
    mov [rax + {rbp}], rbp
    mov [rax + {r8}], r8
    mov [rax + {r9}], r9
    mov [rax + {r10}], r10
    mov [rax + {r11}], r11
    mov [rax + {r12}], r12
    mov [rax + {r13}], r13
    mov [rax + {r14}], r14
    mov [rax + {r15}], r15
    pop [rax + {rax}]
    pop gs:[{trap_vector}]
    pop gs:[{trap_error}]
    pop [rax + {rip}]
    pop rcx
    pop [rax + {rflags}]
    pop [rax + {rsp}]
    mov rsp, gs:[{kernel_rsp}]
    push 2                          # direction and alignment-check flags off
    popfq
    mov rax, [rip + {epoch}]
    xchg gs:[{report}], rax         # back, with a full barrier: `refs::reclaim::Report`
    mov eax, 1
    ret

    .balign 16
ebb_fatal_trap:                     # on the fatal stack, which is a part of the core's block
    push rax
    push rcx
    push rdx
    lea rax, [rsp + 80 - {fatal_stack_top}]
    mov rdx, rax
    shr rdx, 32
    mov ecx, {gs_base}
    wrmsr
    pop rdx
    pop rcx
    pop rax

ebb_kernel_trap:
    push rax
    push rbx
    push rcx
    push rdx
    push rsi
    push rdi
    push rbp
    push r8
    push r9
    push r10
    push r11
    push r12
    push r13
    push r14
    push r15
    cld
    mov rdi, rsp
    call {handler}
    pop r15
    pop r14
    pop r13
    pop r12
    pop r11
    pop r10
    pop r9
    pop r8
    pop rbp
    pop rdi
    pop rsi
    pop rdx
    pop rcx
    pop rbx
    pop rax
    add rsp, 16
    iretq
    "#,
    stub = const STUB_BYTES,
    non_maskable = const NON_MASKABLE,
    double_fault = const DOUBLE_FAULT,
    machine_check = const MACHINE_CHECK,
    fatal_stack_top = const offset_of!(CoreBlock, fatal_stack) + size_of::<FatalStack>(),
    non_maskable_stack_top = const offset_of!(CoreBlock, non_maskable_stack) + size_of::<TrapStack>(),
    is_held = const offset_of!(CoreBlock, is_held),
    is_stopped = const offset_of!(CoreBlock, is_stopped),
    gs_base = const GS_BASE,
    report = const offset_of!(CoreBlock, report),
    epoch = sym EPOCH,
    loaded = const offset_of!(CoreBlock, loaded),
    trap_vector = const offset_of!(CoreBlock, trap_vector),
    trap_error = const offset_of!(CoreBlock, trap_error),
    kernel_rsp = const offset_of!(CoreBlock, kernel_rsp),
    rax = const offset_of!(Registers, rax),
    rbx = const offset_of!(Registers, rbx),
    rcx = const offset_of!(Registers, rcx),
    rdx = const offset_of!(Registers, rdx),
    rsi = const offset_of!(Registers, rsi),
    rdi = const offset_of!(Registers, rdi),
    rbp = const offset_of!(Registers, rbp),
    rsp = const offset_of!(Registers, rsp),
    r8 = const offset_of!(Registers, r8),
    r9 = const offset_of!(Registers, r9),
    r10 = const offset_of!(Registers, r10),
    r11 = const offset_of!(Registers, r11),
    r12 = const offset_of!(Registers, r12),
    r13 = const offset_of!(Registers, r13),
    r14 = const offset_of!(Registers, r14),
    r15 = const offset_of!(Registers, r15),
    rip = const offset_of!(Registers, rip),
    rflags = const offset_of!(Registers, rflags),
    handler = sym kernel_trap,
    stopped = sym super::stop::STOPPED,
);

unsafe extern "C" {
    fn ebb_stubs();
    static __fixups_start: Fixup;
    static __fixups_end: Fixup;
}

/// The address of a vector's stub.
pub fn stub(vector: usize) -> usize {
    ebb_stubs as *const () as usize + vector * STUB_BYTES
}

/// Where to go on when the instruction at `fault` faults.
#[repr(C)]
struct Fixup {
    fault: usize,
    go_on: usize,
}

/// How kernel code goes on that may fault, in the order of the instructions.
fn fixups() -> &'static [Fixup] {
    let (start, end) = (&raw const __fixups_start, &raw const __fixups_end);
    let count = (end.addr() - start.addr()) / size_of::<Fixup>();
    // SAFETY: the linker script puts whole entries between the two symbols.
    unsafe { core::slice::from_raw_parts(start, count) }
}

/// Makes sure that code which may fault is found when it does.
///
/// # Panics
/// If the table is not in order.
pub fn check_fixups() {
    assert!(fixups().is_sorted_by_key(|fixup| fixup.fault), "the fixups are not in order");
}

/// Kernel code may fault at `ip` if it says how to go on.
fn fixup(ip: usize) -> Option<usize> {
    let fixups = fixups();
    let index = fixups.binary_search_by_key(&ip, |fixup| fixup.fault).ok()?;
    Some(fixups[index].go_on)
}

/// The registers of kernel code, as `ebb_kernel_trap` pushes them.
#[repr(C)]
#[derive(Debug)]
pub struct KernelTrap {
    r15: usize,
    r14: usize,
    r13: usize,
    r12: usize,
    r11: usize,
    r10: usize,
    r9: usize,
    r8: usize,
    rbp: usize,
    rdi: usize,
    rsi: usize,
    rdx: usize,
    rcx: usize,
    rbx: usize,
    rax: usize,
    vector: usize,
    error: usize,
    rip: usize,
    cs: usize,
    rflags: usize,
    rsp: usize,
    ss: usize,
}

/// Handles an exception or interrupt of user code, or says what the caller has to handle.
pub fn handle_user(vector: usize, error: usize) -> Option<Trap> {
    const PRESENT: usize = 1;
    const WRITE: usize = 1 << 1;
    const FETCH: usize = 1 << 4;
    match vector {
        FIRST_INTERRUPT.. => {
            super::interrupts::dispatch(vector);
            None
        }
        PAGE_FAULT => Some(Trap::PageFault {
            address: read_cr2(),
            access: match error {
                _ if error & FETCH != 0 => Access::Execute,
                _ if error & WRITE != 0 => Access::Write,
                _ => Access::Read,
            },
            present: error & PRESENT != 0,
        }),
        DEBUG => Some(Trap::Exception { vector: vector as u8, code: take_dr6() }),
        _ => Some(Trap::Exception { vector: vector as u8, code: error }),
    }
}

extern "C" fn kernel_trap(trap: &mut KernelTrap) {
    if trap.vector >= FIRST_INTERRUPT {
        #[cfg(feature = "stretch")]
        crate::stretch::begin(crate::stretch::Cause::Trap(trap.vector));
        let report = &super::core_block::core_block().report;
        // What the handler borrows of objects, it borrows on a core that is there.
        let was_idle = !report.is_present();
        if was_idle {
            report.come_back();
        }
        super::interrupts::dispatch(trap.vector);
        if was_idle {
            // SAFETY: this core's own, and the handler is through.
            unsafe { report.leave() };
        }
        #[cfg(feature = "stretch")]
        {
            crate::stretch::end();
            if was_idle {
                crate::stretch::quiescent_from_here();
            }
        }
        return;
    }
    #[cfg(feature = "selftest")]
    if trap.vector == DEBUG {
        return crate::selftest::single_step::stepped();
    }
    let at_user_memory = trap.vector == PAGE_FAULT && read_cr2() < 1 << 47;
    if at_user_memory && let Some(go_on) = fixup(trap.rip) {
        trap.rip = go_on;
        return;
    }
    die(trap)
}

/// Says what happened, and where.
fn die(trap: &KernelTrap) -> ! {
    let address = read_cr2();
    let what: &str = match trap.vector {
        DOUBLE_FAULT if super::stacks::is_guard(trap.rsp.wrapping_sub(8)) || super::stacks::is_guard(address) => {
            "kernel stack overflow"
        }
        0 => "divide error in the kernel",
        3 => "breakpoint in the kernel",
        6 => "invalid instruction in the kernel",
        DOUBLE_FAULT => "double fault",
        GENERAL_PROTECTION => "general protection fault in the kernel",
        PAGE_FAULT => "page fault in the kernel",
        MACHINE_CHECK => "machine check",
        _ => "exception in the kernel",
    };
    super::stop::die(
        format_args!("{what} (vector {}, error {:#x}, address {address:#x})", trap.vector, trap.error),
        Some(trap),
        trap.rip,
        trap.rsp,
    )
}

impl core::fmt::Display for KernelTrap {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        writeln!(f, "  rip {:#018x}  cs  {:#06x}  rflags {:#010x}", self.rip, self.cs, self.rflags)?;
        writeln!(f, "  rax {:#018x}  rbx {:#018x}  rcx {:#018x}", self.rax, self.rbx, self.rcx)?;
        writeln!(f, "  rdx {:#018x}  rsi {:#018x}  rdi {:#018x}", self.rdx, self.rsi, self.rdi)?;
        writeln!(f, "  rbp {:#018x}  rsp {:#018x}  r8  {:#018x}", self.rbp, self.rsp, self.r8)?;
        writeln!(f, "  r9  {:#018x}  r10 {:#018x}  r11 {:#018x}", self.r9, self.r10, self.r11)?;
        writeln!(f, "  r12 {:#018x}  r13 {:#018x}  r14 {:#018x}", self.r12, self.r13, self.r14)?;
        write!(f, "  r15 {:#018x}  ss  {:#06x}", self.r15, self.ss)
    }
}
