//! The kernel image: `frame` and the kernel's policies, in one file that boots.
#![no_std]
#![no_main]

frame::kernel_image!(&kernel::CONFIG);
