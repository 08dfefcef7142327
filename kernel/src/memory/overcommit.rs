//! How much memory may be promised: `vm.overcommit_memory` and its like. See proc_sys_vm(5).
//!
//! What is promised is counted where it is promised: by each layout for its private writable VMAs, by each piece of shared anonymous memory
//! for itself. It goes with them.

use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use frame::cpu::Count;
use frame::mm::PAGE_SIZE;

use crate::error::{Errno, Result};

/// How a promise is judged: the values of `vm.overcommit_memory`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Policy {
    /// Only what could never be kept is refused.
    Heuristic = 0,
    /// Nothing is.
    Always = 1,
    /// All promises together stay below a limit.
    Never = 2,
}

/// Whether the administrator's reserve may be promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// CAP_SYS_ADMIN.
    Administrator,
    /// Everybody else.
    None,
}

/// Pages that are promised. Each core counts for itself, since they all map memory.
static COMMITTED: Count<4096> = Count::new();
static POLICY: AtomicU8 = AtomicU8::new(Policy::Heuristic as u8);
/// In per cent of all memory.
static RATIO: AtomicUsize = AtomicUsize::new(50);
/// In place of the ratio, unless it is 0.
static KIBIBYTES: AtomicUsize = AtomicUsize::new(0);

/// Lets each core count for itself. At boot.
pub(super) fn start() {
    COMMITTED.make_parts();
}

/// Counts promises for so many pages; a negative number, wrapped, takes them back.
#[inline(always)]
pub(super) fn add(pages: usize) {
    COMMITTED.add(pages.cast_signed());
}

/// Pages that are promised: `Committed_AS`.
pub fn committed() -> usize {
    // While others count, what one has taken back may be missed that another promised.
    COMMITTED.sum().max(0).cast_unsigned()
}

/// How many pages may be promised under [`Policy::Never`]: `CommitLimit`.
pub fn limit() -> usize {
    let total = frame::mm::frame_count();
    match KIBIBYTES.load(Ordering::Relaxed) {
        0 => (total as u128 * RATIO.load(Ordering::Relaxed) as u128 / 100) as usize,
        kib => kib / (PAGE_SIZE / 1024),
    }
}

/// The policy.
#[inline(always)]
pub fn policy() -> Policy {
    match POLICY.load(Ordering::Relaxed) {
        1 => Policy::Always,
        2 => Policy::Never,
        _ => Policy::Heuristic,
    }
}

/// Sets the policy.
pub fn set_policy(policy: Policy) {
    POLICY.store(policy as u8, Ordering::Relaxed);
}

/// The ratio in per cent.
pub fn ratio() -> usize {
    RATIO.load(Ordering::Relaxed)
}

/// Sets the ratio in per cent; it decides from here on.
pub fn set_ratio(per_cent: usize) {
    RATIO.store(per_cent, Ordering::Relaxed);
    KIBIBYTES.store(0, Ordering::Relaxed);
}

/// The limit in KiB; 0 where the ratio decides.
pub fn kibibytes() -> usize {
    KIBIBYTES.load(Ordering::Relaxed)
}

/// Sets the limit in KiB; the ratio is 0 from here on, or the limit if this is 0.
pub fn set_kibibytes(kib: usize) {
    KIBIBYTES.store(kib, Ordering::Relaxed);
    RATIO.store(0, Ordering::Relaxed);
}

/// Whether so many pages more may be promised to an address space of `mapped` pages.
///
/// # Errors
/// ENOMEM.
#[inline(always)]
pub(super) fn admit(pages: usize, mapped: usize, privilege: Privilege) -> Result<()> {
    let is_enough = match policy() {
        Policy::Heuristic => pages <= frame::mm::frame_count(),
        Policy::Always => true,
        Policy::Never => is_within_limit(pages, mapped, privilege),
    };
    if is_enough { Ok(()) } else { Err(Errno::ENOMEM) }
}

/// Under [`Policy::Never`]. The reserves are `vm.admin_reserve_kbytes` and `vm.user_reserve_kbytes` as Linux sets them at boot.
#[cold]
fn is_within_limit(pages: usize, mapped: usize, privilege: Privilege) -> bool {
    const MIB: usize = 1 << 20;
    let share = frame::mm::frame_count() / 32;
    let of_administrator = if privilege == Privilege::Administrator { 0 } else { share.min(8 * MIB / PAGE_SIZE) };
    let of_user = (mapped / 32).min(share.min(128 * MIB / PAGE_SIZE));
    committed().saturating_add(pages) < limit().saturating_sub(of_administrator + of_user)
}
