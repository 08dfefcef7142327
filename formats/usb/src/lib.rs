//! What USB devices say of themselves (Universal Serial Bus Specification 2.0, chapter 9), and what human interface devices report (Device Class Definition for HID 1.11, HID Usage Tables 1.4), as events of
//! Linux's input layer.
//!
//! All is pure: bytes of a device become what they say. Every byte is untrusted: lengths are compared with what there is, and what a device may claim to have is bounded.
//!
//! | module | what is in it |
//! | --- | --- |
//! | `descriptors` | [`Device`], [`Configuration`]: what a device is, and its interfaces and endpoints |
//! | `items` | the items that a report descriptor is made of |
//! | `layout` | [`Layout`]: which fields the reports of a device have |
//! | `codes` | types and codes of Linux's events ([`codes`](crate::codes)) |
//! | `usages` | which event a usage is |
//! | `decoder` | [`Decoder`]: the events of a device's reports, and the reports that set its lights |
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod codes;
mod decoder;
mod descriptors;
mod items;
mod layout;
mod usages;

pub use decoder::{AbsoluteRange, Capabilities, Decoder, Event};
pub use descriptors::{Configuration, Device, Endpoint, Interface, ReportDescriptor, string};
pub use layout::{Field, Invalid, Kind, LONGEST_REPORT, Layout};

/// The class of interfaces that are for humans.
pub const CLASS_HID: u8 = 3;
/// The class of hubs.
pub const CLASS_HUB: u8 = 9;
