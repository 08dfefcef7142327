//! Virtual devices (Virtual I/O Device Specification 1.2).
//!
//! | file | what it holds |
//! | --- | --- |
//! | `pci` | a device on PCI: features, status, queues, interrupts (2.1, 2.2, 3.1, 4.1) |
//! | `queue` | a split virtqueue (2.7) |
//! | `service` | what all drivers do alike: interrupts, the task that serves a device, its end |
//! | `block` | disks (5.2) |
//! | `console`, `port`, `rings` | streams of bytes to the host, with names (5.3): the device, one of its ports, its two queues |
//! | `balloon` | memory that goes back to the host (5.5) |
//! | `net` | network cards (5.1) |
//! | `rng` | random numbers of the host's (5.4) |
//! | `ninep` | directories of the host |
//!
//! A device is not trusted to keep to the rules: whatever it says is compared with what it was given. One that says what cannot be is *broken*: it is cut off from memory, all its requests fail with EIO,
//! and so do all that come.

pub mod balloon;
pub mod block;
pub mod console;
pub mod net;
pub mod ninep;
mod pci;
pub mod port;
pub mod queue;
mod rings;
pub mod rng;
mod service;
#[cfg(test)]
mod simulated;
