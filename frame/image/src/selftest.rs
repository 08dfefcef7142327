//! The image that runs the tests inside the framework at boot: with the kernel's memory, and without the rest of it.
#![no_std]
#![no_main]

use frame::{BootInfo, Config};

frame::kernel_image!(&CONFIG);

static CONFIG: Config = Config {
    frames: &allocators::buddy::FRAMES,
    slabs: &allocators::slab::SLABS,
    tasks: &frame::selftest::POLICY,
    start,
};

fn start(info: &'static BootInfo) {
    frame::selftest::spawn(frame::selftest::tests(), info.command_line);
}
