//! The vDSO: a shared object that the kernel maps into each process, so that programs have clocks, the core's number and random bytes without a system call
//! (vdso(7)).
//!
//! ```text
//!   [vvar]  a page of data (page.rs), the same frame for all: the kernel writes it, programs read it
//!   [vdso]  the shared object behind it: calls.rs and random.rs, found by libc through AT_SYSINFO_EHDR and its symbols
//! ```
//!
//! These sources are compiled twice. With `--cfg ebb_vdso` they are the object's code: user code, which the build script links to an ELF file.
//! Else they are what the kernel takes from here: that file's bytes ([`IMAGE`]), and the page's layout with the arithmetic that both sides do
//! ([`page`]). So what the kernel's clock shows and what a program reads is computed by the same lines.
//!
//! Time since boot is a function of the time stamp counter with two constants. It needs no lock at all, and as the counter runs alike on all
//! cores it never goes back between them: `lfence` keeps the processor from reading the counter before what the program did earlier. The wall clock is that
//! plus one word as long as nobody steers it; steered, it is a line that is read under a sequence counter. Its seconds are a word of their own.
#![no_std]
#![cfg_attr(not(any(test, ebb_vdso)), forbid(unsafe_code))]
#[cfg(test)]
extern crate std;

pub mod page;

#[cfg(any(test, ebb_vdso))]
mod calls;
#[cfg(any(test, ebb_vdso))]
mod random;

/// The shared object: an ELF file that needs no relocation.
#[cfg(not(ebb_vdso))]
pub static IMAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vdso.so"));

/// The same, for processors with `rdpid`.
#[cfg(not(ebb_vdso))]
pub static IMAGE_WITH_RDPID: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vdso-rdpid.so"));
