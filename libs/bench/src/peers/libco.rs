//! libco's cothreads, where libco is installed (it is found by pkg-config, or in the folder that `LIBCO` names).

use crate::line::Samples;

#[cfg(libco)]
mod shim {
    unsafe extern "C" {
        pub safe fn ebb_libco_ring(threads: usize, rounds: usize) -> u64;
        pub safe fn ebb_libco_create_empty(operations: usize) -> u64;
        pub safe fn ebb_libco_create_suspend(operations: usize) -> u64;
    }
}

/// Cothreads that switch to each other in a ring, per switch.
pub fn ring<const TASKS: usize>() -> Option<fn(&mut Samples)> {
    #[cfg(libco)]
    return Some(|s| {
        let rounds = super::rounds(TASKS);
        while s.more() {
            s.push(rounds * TASKS, shim::ebb_libco_ring(TASKS, rounds));
        }
    });
    #[cfg(not(libco))]
    None
}

/// A cothread on a static stack that switches back at once.
pub fn create_empty() -> Option<fn(&mut Samples)> {
    #[cfg(libco)]
    return Some(|s| {
        while s.more() {
            s.push(1000, shim::ebb_libco_create_empty(1000));
        }
    });
    #[cfg(not(libco))]
    None
}

/// A cothread on a static stack that switches back twice.
pub fn create_suspend() -> Option<fn(&mut Samples)> {
    #[cfg(libco)]
    return Some(|s| {
        while s.more() {
            s.push(1000, shim::ebb_libco_create_suspend(1000));
        }
    });
    #[cfg(not(libco))]
    None
}
