//! What `mm` needs from below: the way to a frame's bytes, copies that may fault, page-table register and TLB. On bare metal
//! it is the direct map and the processor; where the tests run, each block of frames is an allocation of its own and user
//! memory is found by walking the page tables in software, so that the sanitizers see each access outside.

#[cfg(target_os = "none")]
mod metal;
#[cfg(target_os = "none")]
pub(super) use metal::*;

#[cfg(not(target_os = "none"))]
mod simulated;
#[cfg(not(target_os = "none"))]
pub(super) use simulated::*;
