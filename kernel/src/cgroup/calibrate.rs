//! [`calibrate`]: how slow this machine is.

use frame::Cx;

/// Measures.
pub fn calibrate(_cx: &Cx) {}
