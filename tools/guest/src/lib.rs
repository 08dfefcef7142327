//! Guests: machines under QEMU in which one program after the other runs, on Ebb or, for comparison, on Linux.
//!
//! How data passes through:
//!
//! 1. [`image::Image`] collects files (a root file system, programs of the host with their libraries, the agent) and
//!    writes them as a cpio archive;
//! 2. [`Machine`] says which [`Kernel`] boots it, with how much memory and which [`Accel`]erator;
//! 3. [`Guest::boot`] starts QEMU and waits until the agent, process 1 in the guest, reports ready over the second
//!    serial port; the first serial port is the kernel's console, kept in [`console::Log`];
//! 4. [`Guest::run`] and [`Guest::stream`] run [`Program`]s with input, output, signals and a time limit.
//! 5. [`Statistics`] is what a program's control group counted, for a program that has one.
//!
//! Dropping a [`Guest`] ends QEMU. The rest of the protocol is in the crate `ebb-protocol`.

#![forbid(unsafe_code)]

mod accel;
pub mod artifacts;
pub mod bare;
pub mod console;
mod cpus;
pub mod debian;
mod disk;
mod error;
mod guest;
pub mod image;
mod input_device;
mod kernel;
mod line;
mod machine;
mod network;
mod program;
mod qemu;
mod root_image;
pub mod statistics;
pub mod stretch;
mod volume;

pub use accel::Accel;
pub use cpus::Cpus;
pub use debian::Debian;
pub use disk::Disk;
pub use ebb_protocol::{Exit, OutputStream};
pub use error::{Error, Result};
pub use guest::{Guest, Interrupt, Output, Remote};
pub use image::Image;
pub use input_device::InputDevice;
pub use kernel::Kernel;
pub use machine::{ConsoleUse, Machine, Mebibytes};
pub use network::{Network, PublishedPort};
pub use program::{Input, Program};
pub use qemu::{QEMU, find_qemu};
pub use root_image::RootImage;
pub use statistics::Statistics;
pub use volume::Volume;
