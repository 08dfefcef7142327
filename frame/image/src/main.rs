//! The kernel image: `frame` and the kernel's policies, in one file that boots.
#![no_std]
#![no_main]

#[cfg(not(feature = "selftest"))]
frame::kernel_image!(&kernel::CONFIG);

#[cfg(feature = "selftest")]
frame::kernel_image!(&selftest::CONFIG);

/// The kernel's memory, and the tests instead of an init program.
#[cfg(feature = "selftest")]
mod selftest {
    use frame::{BootInfo, Config};

    pub static CONFIG: Config =
        Config { frames: kernel::CONFIG.frames, slabs: kernel::CONFIG.slabs, tasks: &frame::selftest::POLICY, start };

    fn start(info: &'static BootInfo) {
        frame::selftest::spawn(frame::selftest::tests(), info.command_line);
    }
}
