//! [`BlockDevice`]: what a driver provides.

use alloc::string::String;
use alloc::vec::Vec;

use frame::Cx;
use refs::WaitList;

use super::{Refused, Request, Statistics};

/// How large a device is, and what can be written there.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    /// How many sectors it has.
    pub sectors: u64,
    /// It cannot be written.
    pub is_read_only: bool,
    /// Bytes of its smallest unit.
    pub logical_block: u32,
}

/// What a device has and can do. It never changes; of a device that has a [`Geometry`] of its own, that says what is in both.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How many sectors it has.
    pub sectors: u64,
    /// It cannot be written.
    pub is_read_only: bool,
    /// What it writes stays only after [`Operation::Flush`](super::Operation::Flush).
    pub has_cache: bool,
    /// Bytes of its smallest unit.
    pub logical_block: u32,
    /// Bytes of what it writes at once inside.
    pub physical_block: u32,
    /// Bytes by which its first physical block is displaced.
    pub alignment_offset: u32,
    /// Bytes that are not written slowly at once.
    pub smallest_io: u32,
    /// Bytes that are written best at once; 0: it does not say.
    pub best_io: u32,
    /// How many frames a request may have.
    pub most_frames: usize,
    /// How many sectors one request may discard; 0: it cannot discard.
    pub most_discard: u32,
    /// How many sectors one request may fill with zeros; 0: it cannot.
    pub most_zeroes: u32,
    /// How many requests it takes at once, in all its queues.
    pub depth: usize,
}

/// A device with sectors. It lives for ever; one that is gone refuses.
pub trait BlockDevice: Send + Sync {
    /// What it has and can do.
    fn limits(&self) -> &Limits;

    /// How large it is now, and what can be written there.
    fn geometry(&self) -> Geometry {
        let limits = self.limits();
        Geometry { sectors: limits.sectors, is_read_only: limits.is_read_only, logical_block: limits.logical_block }
    }

    /// What `/sys/block` shows of it beside what every disk has: a directory, and its files with their texts.
    fn details(&self, _cx: &Cx) -> Option<(&'static str, Vec<(&'static str, String)>)> {
        None
    }

    /// Nobody has it open any more, nor is anything on it mounted.
    fn last_closed(&self) {}

    /// Whether it is about to let go of what it has, so that nobody may begin to use it.
    fn lets_go(&self) -> bool {
        false
    }

    /// Gives it something to do. It never suspends. One that is not [within its limits](Request::is_within) it refuses.
    ///
    /// # Errors
    /// It does not take the request, which comes back.
    fn submit(&self, request: Request, cx: &Cx) -> Result<(), (Request, Refused)>;

    /// What it has done.
    fn statistics(&self) -> &Statistics;

    /// Where those wait who were refused because it was full.
    fn room(&self) -> &WaitList;
}
