//! [`FileEnd`]: who may see when a file comes to its end, and what a description keeps of that.
//!
//! A kind of file says who sees its end; there is no default. A description keeps in one word how much memory comes back with it, as long as nobody but who uses the table that it was made for
//! has it or hears of it ([`Descriptors::export`](super::Descriptors::export)), and where the other end of the pair is that it is of.

use core::sync::atomic::{AtomicU16, Ordering};

/// Who may see when a file comes to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileEnd {
    /// Anybody: it is to end as soon as its last descriptor is closed.
    Seen,
    /// Only who has a descriptor of it, or watches one, or has it watch others: all that happens is that memory comes back, so many bytes at least.
    Unseen {
        /// Of the kernel's, without the description's own.
        bytes: usize,
    },
    /// The same, or who has a descriptor of the other end of the pair that it is of.
    UnseenBy {
        /// Half of what both ends have, likewise.
        bytes: usize,
    },
}

/// Where the other end of a pair was entered, as seen from this one's descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OtherEnd {
    /// There is none.
    None,
    /// Under the next number.
    Next,
    /// Under the one before.
    Before,
    /// Under another.
    Elsewhere,
}

/// What a description keeps of its end.
#[derive(Debug)]
pub(super) struct UnseenEnd(AtomicU16);

/// In units of this.
const UNIT: usize = 4;
const BYTES: u16 = (1 << 12) - 1;
const NEXT: u16 = 1 << 12;
const BEFORE: u16 = 1 << 13;
const LEFT: u16 = 1 << 14;
const LEAVES: u16 = 1 << 15;

impl UnseenEnd {
    /// Of a description with which so many bytes come back at least; 0 where its end is seen.
    pub(super) fn new(bytes: usize) -> Self {
        UnseenEnd(AtomicU16::new((bytes / UNIT).min(BYTES.into()) as u16))
    }

    /// Of one end of a pair.
    pub(super) fn of_pair(bytes: usize, other: OtherEnd) -> Self {
        let bits = match other {
            OtherEnd::None => 0,
            OtherEnd::Next => NEXT,
            OtherEnd::Before => BEFORE,
            OtherEnd::Elsewhere => NEXT | BEFORE,
        };
        let end = Self::new(bytes);
        end.0.fetch_or(bits, Ordering::Relaxed);
        end
    }

    #[inline(always)]
    fn word(&self) -> u16 {
        self.0.load(Ordering::Relaxed)
    }

    /// How many bytes come back at least; 0: others have it, or always could.
    #[inline(always)]
    pub(super) fn bytes(&self) -> usize {
        usize::from(self.word() & BYTES) * UNIT
    }

    /// Others have it as well, or hear of it.
    pub(super) fn export(&self) {
        self.0.fetch_and(!BYTES, Ordering::Relaxed);
    }

    /// It is of a table that has ended, and its last owner is about to go.
    pub(super) fn leave(&self) {
        self.0.fetch_or(LEFT, Ordering::Relaxed);
    }

    /// What it has open is [left](super::nameless_remains) if that can be.
    pub(super) fn leave_nameless(&self) {
        self.0.fetch_or(LEAVES, Ordering::Relaxed);
    }

    /// Whether either was said.
    #[inline(always)]
    pub(super) fn is_special(&self) -> bool {
        self.word() & (LEFT | LEAVES) != 0
    }

    /// Whether [`leave`](Self::leave) was called.
    pub(super) fn is_left(&self) -> bool {
        self.word() & LEFT != 0
    }

    /// Whether [`leave_nameless`](Self::leave_nameless) was called.
    pub(super) fn leaves_nameless(&self) -> bool {
        self.word() & LEAVES != 0
    }

    /// Where the other end is.
    pub(super) fn other(&self) -> OtherEnd {
        match self.word() & (NEXT | BEFORE) {
            0 => OtherEnd::None,
            NEXT => OtherEnd::Next,
            BEFORE => OtherEnd::Before,
            _ => OtherEnd::Elsewhere,
        }
    }
}
