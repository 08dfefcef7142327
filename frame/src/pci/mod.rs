//! PCI: devices, their registers and their interrupts.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `bus` | what is on the buses, and at which addresses |
//! | `window` | [`MmioWindow`]: registers of a device |
//! | this one | [`Device`], which is claimed by one driver, and [`Interrupt`] |
//!
//! A device is found once, at boot; nothing else of the hardware is touched until a driver claims it. Its driver gets windows onto its registers, but never onto those that say where its interrupts go (the MSI-X
//! table, and the pages around it): with those a device could be made to interrupt as somebody else, or to write anywhere (invariants 3 and 7). Nor can a driver write to the
//! configuration space.
//!
//! What a device reaches in memory is its [`Domain`]'s matter: see [`crate::dma`].

// Nobody scans buses on a host.
#[cfg_attr(not(target_os = "none"), allow(dead_code))]
mod bus;
mod window;

pub use bus::{FunctionId, Identity};
pub use window::{MmioWindow, Ones};

pub(crate) use bus::ConfigAccess;
#[cfg(target_os = "none")]
pub(crate) use bus::Hole;
#[cfg(not(target_os = "none"))]
pub(crate) use bus::capabilities;

#[cfg(target_os = "none")]
mod device;
#[cfg(not(target_os = "none"))]
pub use crate::hosted::pci::{Device, Interrupt};
#[cfg(target_os = "none")]
pub use device::{Device, Interrupt};
#[cfg(target_os = "none")]
pub(crate) use device::{faulted, init};
