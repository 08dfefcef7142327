//! x86-64, as the System V ABI and Linux define it.

pub mod signal_frame;
