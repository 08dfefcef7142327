//! Terminals: what ioctl does not do.

use linux_raw_sys::general::__NR_vhangup;

use super::{Call, Entry};
use crate::drivers::tty;

/// The calls of this file.
pub const CALLS: &[Entry] = &[Entry::new(
    __NR_vhangup,
    "vhangup",
    Call::Step(|cx, me, _| {
        tty::vhangup(me, cx)?;
        Ok(0)
    }),
)];
