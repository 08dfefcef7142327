//! The boot core, from the first line of Rust to the first task.

use alloc::boxed::Box;
use core::arch::asm;
use core::sync::atomic::{AtomicPtr, Ordering};

use tasks::StackSource;

use super::memory_map::{self, LoaderInfo};
use super::{
    apic, copy, core_block, cores, descriptors, features, fpu, ioapic, kernel_map, link_pages, pci, rtc, stacks, stop,
    tsc, user_mode,
};
use crate::boot::{BootInfo, config};
use crate::mm::BootModule;

static LOADER_INFO: AtomicPtr<LoaderInfo> = AtomicPtr::new(core::ptr::null_mut());

/// Called by the entry code, once, with the loader's start information at that physical address.
#[unsafe(no_mangle)]
extern "C" fn ebb_start(start_info: u32) -> ! {
    // SAFETY: this is the one call, on the boot core, in the order that the functions ask for: the tables of the processor
    // first, so that whatever fails can be reported; then memory; then a stack with a guard page.
    unsafe {
        let block = core_block::install_boot_core();
        descriptors::fill_interrupt_table();
        descriptors::load(block);
        features::enable();
        features::set_core_number(core_block::core_number());
        if !features::smap() {
            copy::patch_for_no_smap();
        }
        let Some(info) = memory_map::read_start_info(start_info) else {
            panic!("the loader gave no PVH start information with a memory map");
        };
        let mut free = info.ram.clone();
        free.remove(&kernel_map::image());
        let filled =
            info.initramfs.as_ref().map_or(0..0, |module| module.start & !4095..module.end.next_multiple_of(4096));
        free.remove(&filled);
        kernel_map::build(&info, &mut free);
        crate::mm::init(free.as_slice().iter().cloned(), filled, config().frames, config().slabs);
        refs::set_link_pages(&link_pages::PAGES);
        refs::set_processor(&refs::Processor {
            current_core: core_block::core_number,
            relax: cores::answer,
            nanoseconds: tsc::nanoseconds,
            stuck: stop::stuck,
        });
        LOADER_INFO.store(Box::into_raw(Box::new(info)), Ordering::Release);
        let stack = stacks::POOL.take().expect("at boot there is memory for a stack");
        asm!("mov rsp, {top}", "xor ebp, ebp", "push rbp", "jmp {go_on}", top = in(reg) stack.top(), go_on = sym on_guarded_stack,
            options(noreturn));
    }
}

extern "C" fn on_guarded_stack() -> ! {
    apic::init();
    ioapic::init();
    tsc::calibrate();
    fpu::init();
    user_mode::init();
    crate::time::set_boot_wall_seconds(rtc::read_seconds());

    // SAFETY: stored by `ebb_start` from a box that is never freed.
    let info: &'static LoaderInfo = unsafe { &*LOADER_INFO.load(Ordering::Acquire) };
    let initramfs = info.initramfs.as_ref().map(|range| {
        // SAFETY: the loader filled the range, which is in one of memory, and `ebb_start` kept its pages from the allocator.
        unsafe { BootModule::new(range.start, range.len()) }
    });
    stop::read_command_line(info.command_line);
    let boot_info = Box::leak(Box::new(BootInfo::new(info.command_line, initramfs, info.memory_bytes)));
    cores::start_others(info);
    pci::init(info);
    crate::pci::init();

    (config().start)(boot_info);
    cores::begin();
    cores::run()
}
