//! A barrier on all processors that run those who take part (`membarrier(2)`, the global expedited kind).
//!
//! [`everywhere`] is a full barrier on the calling processor, and on each other one that runs a thread of a process that has called
//! [`register`]. Where the system has none, `register` says so, and every sender makes its own barriers.

#[cfg(all(feature = "std", target_os = "linux", not(any(ebb_loom, ebb_shuttle))))]
mod system {
    use std::sync::OnceLock;

    // linux/membarrier.h
    const GLOBAL_EXPEDITED: libc::c_int = 1 << 1;
    const REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;

    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: the call reads and writes no memory of ours.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }

    /// Makes this process take part; true if it does, and if [`everywhere`] works.
    pub fn register() -> bool {
        static REGISTERED: OnceLock<bool> = OnceLock::new();
        *REGISTERED.get_or_init(|| membarrier(REGISTER_GLOBAL_EXPEDITED) && membarrier(GLOBAL_EXPEDITED))
    }

    /// A barrier on every processor that runs a process that takes part.
    pub fn everywhere() {
        membarrier(GLOBAL_EXPEDITED);
    }
}

#[cfg(not(all(feature = "std", target_os = "linux", not(any(ebb_loom, ebb_shuttle)))))]
mod system {
    /// There is no such barrier here.
    pub fn register() -> bool {
        false
    }

    /// Never called: nobody is registered.
    pub fn everywhere() {}
}

pub(crate) use system::{everywhere, register};
