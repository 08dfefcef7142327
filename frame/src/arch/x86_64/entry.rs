//! The loader's first instruction, up to the first line of Rust.
//!
//! A PVH loader (QEMU's `-kernel`, Firecracker, Cloud Hypervisor) finds the entry through an ELF note and enters it in 32-bit
//! protected mode without paging, `ebx` holding the physical address of its start information. The tables here map the first
//! gigabyte three times (where it is, at [`DIRECT_MAP`](super::kernel_map::DIRECT_MAP), and at the kernel's link address); they
//! are left behind as soon as the final ones exist.

use core::arch::global_asm;

global_asm!(
    r#"
    .macro no_segments              # long mode needs none
    xorl %eax, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %fs
    movl %eax, %gs
    movl %eax, %ss
    .endm

    .pushsection .note.pvh, "a", @note
    .balign 4
    .long 4, 8, 18                  # XEN_ELFNOTE_PHYS32_ENTRY
    .asciz "Xen"
    .quad ebb_boot_entry
    .popsection

    .pushsection .boot.text, "ax"
    .code32
    .globl ebb_boot_entry
ebb_boot_entry:
    cli
    cld
    movl %cr4, %eax
    orl $0x20, %eax                 # PAE
    movl %eax, %cr4
    movl $boot_pml4, %eax
    movl %eax, %cr3
    movl $0xc0000080, %ecx          # EFER: long mode, no-execute
    rdmsr
    orl $0x900, %eax
    wrmsr
    movl %cr0, %eax
    orl $0x80010001, %eax           # paging, write protection, protected mode
    movl %eax, %cr0
    lgdtl boot_gdt_pointer
    ljmpl $8, $boot_long_mode

    # Another core, in protected mode: what the boot core did.
    .globl ebb_core_entry
ebb_core_entry:
    movw $0x18, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    movl %cr4, %eax
    orl $0x20, %eax
    movl %eax, %cr4
    movl $boot_pml4, %eax
    movl %eax, %cr3
    movl $0xc0000080, %ecx
    rdmsr
    orl $0x900, %eax
    wrmsr
    movl %cr0, %eax
    andl $0x9fffffff, %eax          # a core that was reset has its caches off
    orl $0x80010001, %eax
    movl %eax, %cr0
    ljmpl $8, $core_long_mode
    .code64
core_long_mode:
    movabsq $ebb_core_high, %rax
    jmp *%rax

    .code64
boot_long_mode:
    no_segments
    movl %ebx, %edi
    movabsq $ebb_boot_stack_end, %rsp
    xorl %ebp, %ebp
    movabsq $ebb_start, %rax
    call *%rax
    ud2
    .popsection

    .pushsection .text
ebb_core_high:
    no_segments
    movq {core_root}(%rip), %rcx    # the kernel's tables, where the stack is
    movq %rcx, %cr3
    xchgq %rax, {core_stack}(%rip)  # whoever comes too late finds none
    testq %rax, %rax
    jz 1f
    movq %rax, %rsp
    xorl %ebp, %ebp
    call {core_start}
1:
    cli
    hlt
    jmp 1b
    .popsection

    # Another core's first instructions, in real mode, at the start of a page of low memory that they are copied to.
    .pushsection .rodata.ebb_core_first, "a"
    .code16
    .globl ebb_core_first, ebb_core_first_end
ebb_core_first:
    cli
    cld
    movw %cs, %ax
    movw %ax, %ds
    lgdtl core_gdt_pointer - ebb_core_first
    movl %cr0, %eax
    orl $1, %eax
    movl %eax, %cr0
    ljmpl $0x10, $ebb_core_entry
    .balign 4
core_gdt_pointer:
    .word 31
    .long boot_gdt
ebb_core_first_end:
    .code64
    .popsection

    .pushsection .boot.data, "aw"
    .balign 4096
boot_pml4:
    .quad boot_pdpt + 3
    .fill 255, 8, 0
    .quad boot_pdpt + 3             # the direct map
    .fill 254, 8, 0
    .quad boot_pdpt_high + 3
boot_pdpt:
    .quad boot_pd + 3
    .fill 511, 8, 0
boot_pdpt_high:
    .fill 510, 8, 0
    .quad boot_pd + 3
    .quad 0
boot_pd:
    .set page, 0
    .rept 512
    .quad page + 0x83
    .set page, page + 0x200000
    .endr
boot_gdt:
    .quad 0, 0x00af9a000000ffff, 0x00cf9a000000ffff, 0x00cf92000000ffff
boot_gdt_pointer:
    .word 31
    .long boot_gdt
    .popsection

    .pushsection .bss.ebb_boot_stack, "aw", @nobits
    .balign 4096
    .fill 16384, 1, 0
ebb_boot_stack_end:
    .popsection
    "#,
    core_root = sym super::cores::ROOT,
    core_stack = sym super::cores::STACK,
    core_start = sym super::cores::start_other,
    options(att_syntax)
);
