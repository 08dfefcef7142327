//! Boost.Context's fibers, by a shim in C++ where its header is installed.

use crate::line::Samples;

#[cfg(boost_context)]
mod shim {
    unsafe extern "C" {
        pub safe fn ebb_boost_ring(fibers: usize, rounds: usize) -> u64;
        pub safe fn ebb_boost_create_empty(operations: usize) -> u64;
        pub safe fn ebb_boost_create_suspend(operations: usize) -> u64;
    }
}

/// A loop that resumes one fiber after the other; per fiber resumed (there and back).
pub fn ring<const TASKS: usize>() -> Option<fn(&mut Samples)> {
    #[cfg(boost_context)]
    return Some(|s| {
        let rounds = super::rounds(TASKS);
        while s.more() {
            s.push(rounds * TASKS, shim::ebb_boost_ring(TASKS, rounds));
        }
    });
    #[cfg(not(boost_context))]
    None
}

/// One switch: half of there and back.
pub fn switch() -> Option<fn(&mut Samples)> {
    #[cfg(boost_context)]
    return Some(|s| {
        while s.more() {
            s.push(2000, shim::ebb_boost_ring(1, 1000));
        }
    });
    #[cfg(not(boost_context))]
    None
}

/// A fiber on a pooled stack that returns at once.
pub fn create_empty() -> Option<fn(&mut Samples)> {
    #[cfg(boost_context)]
    return Some(|s| {
        while s.more() {
            s.push(1000, shim::ebb_boost_create_empty(1000));
        }
    });
    #[cfg(not(boost_context))]
    None
}

/// A fiber on a pooled stack that suspends once.
pub fn create_suspend() -> Option<fn(&mut Samples)> {
    #[cfg(boost_context)]
    return Some(|s| {
        while s.more() {
            s.push(1000, shim::ebb_boost_create_suspend(1000));
        }
    });
    #[cfg(not(boost_context))]
    None
}
