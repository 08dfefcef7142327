//! What the processor's architecture decides of Linux's interface, behind one door: a second architecture is a second folder.
//!
//! | an architecture provides | |
//! | --- | --- |
//! | [`signal_frame`] | the frame of a signal handler on the user's stack, and the way back |

mod x86_64;

pub use x86_64::signal_frame;
