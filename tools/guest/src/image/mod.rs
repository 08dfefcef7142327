//! The initial file system of a guest.
//!
//! An [`Image`] is a tree of files in memory (their contents stay where they are until the end). It is filled from
//!
//! - [`rootfs`]: a directory, a tar or a cpio archive;
//! - [`host_program`]: a program of the host with its interpreter and libraries, found by reading the ELF files;
//! - [`busybox`]: BusyBox and a link for each applet;
//!
//! and written as one cpio archive ([`cpio`]), which the kernel unpacks into its root file system.

pub mod busybox;
pub mod cpio;
pub mod elf;
pub mod host_program;
mod modules;
pub mod rootfs;
mod tree;

pub(crate) use tree::AGENT_PATH;
pub use tree::{Content, Image, Kind, Node};
