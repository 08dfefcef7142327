//! Stacks under an operating system: mapped, each with a guard page below it, returned when they are not needed.
//!
//! Stacks are cut from large regions. Where the system has `MADV_GUARD_INSTALL` (Linux 6.13) a guard costs no mapping of its own,
//! so there may be millions of stacks; elsewhere each guard splits a mapping, and `vm.max_map_count` (65,530 as a rule) bounds the
//! number of stacks to half of it.
//!
//! A stack that is given back keeps its place and its guard; its memory is returned to the system (`MADV_DONTNEED`).

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::ptr::{null_mut, with_exposed_provenance_mut};

use refs::SpinLock;

use crate::atomic::global;
use crate::{Stack, StackSource};

const PAGE: usize = 4096;
/// What lies below each stack.
pub(crate) const GUARD_BYTES: usize = PAGE;
/// How large the regions are, at least.
const REGION_BYTES: usize = 4 << 20;
/// For how many stacks they have room, at least.
const REGION_STACKS: usize = 16;
/// No mapping is larger.
const LARGEST_BYTES: usize = isize::MAX as usize & !(PAGE - 1);
/// Linux 6.13: `include/uapi/asm-generic/mman-common.h`.
const MADV_GUARD_INSTALL: i32 = 102;

/// Stacks of one size from the system.
pub struct MappedStacks {
    size_bytes: usize,
    /// Of a stack and its guard; `None` if a region of such stacks is larger than any address space.
    step_bytes: Option<usize>,
    state: SpinLock<State>,
}

struct State {
    unused: Vec<Stack>,
    /// Where the next stack of the newest region begins, and where the region ends.
    next: usize,
    end: usize,
}

global! {
    static SOURCES: SpinLock<Vec<&'static MappedStacks>> = SpinLock::new(Vec::new());
}

impl MappedStacks {
    /// The process's stacks of that size, rounded up to pages. There are none of a size that no address space has room for.
    pub fn of_size(size_bytes: usize) -> &'static MappedStacks {
        let size_bytes = size_bytes.max(PAGE).checked_next_multiple_of(PAGE).unwrap_or(LARGEST_BYTES);
        let step_bytes = size_bytes.checked_add(GUARD_BYTES).filter(|step| *step <= LARGEST_BYTES / REGION_STACKS);
        SOURCES.with(|sources| {
            if let Some(source) = sources.iter().find(|source| source.size_bytes == size_bytes) {
                return *source;
            }
            let state = State { unused: Vec::new(), next: 0, end: 0 };
            let source = &*Box::leak(Box::new(MappedStacks { size_bytes, step_bytes, state: SpinLock::new(state) }));
            sources.push(source);
            source
        })
    }

    /// How many stacks were given back and not taken again.
    pub fn unused(&self) -> usize {
        self.state.with(|state| state.unused.len())
    }

    /// The size of a stack in bytes, without its guard.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }
}

impl fmt::Debug for MappedStacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MappedStacks").field("size_bytes", &self.size_bytes).field("unused", &self.unused()).finish()
    }
}

impl State {
    fn cut(&mut self, step: usize) -> Option<Stack> {
        if self.end - self.next < step {
            // No overflow: `of_size` saw to it.
            let length = REGION_BYTES.max(REGION_STACKS * step);
            // SAFETY: a new private mapping.
            let start = unsafe {
                libc::mmap(
                    null_mut(),
                    length,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                    -1,
                    0,
                )
            };
            if start == libc::MAP_FAILED {
                return None;
            }
            // A huge page would make each first touch of a stack cost two megabytes.
            // SAFETY: the mapping made above.
            unsafe { libc::madvise(start, length, libc::MADV_NOHUGEPAGE) };
            self.next = start.expose_provenance();
            self.end = self.next + length;
        }
        let guard = with_exposed_provenance_mut(self.next);
        // SAFETY: a page of our own region which nothing uses yet.
        let guarded = unsafe {
            libc::madvise(guard, PAGE, MADV_GUARD_INSTALL) == 0 || libc::mprotect(guard, PAGE, libc::PROT_NONE) == 0
        };
        if !guarded {
            return None;
        }
        let bottom = self.next + GUARD_BYTES;
        self.next += step;
        // SAFETY: fresh memory that is never unmapped, with a guard page below it.
        Some(unsafe { Stack::new(bottom, self.next) })
    }
}

impl StackSource for MappedStacks {
    fn take(&self) -> Option<Stack> {
        self.state.with(|state| state.unused.pop().or_else(|| state.cut(self.step_bytes?)))
    }

    unsafe fn give(&self, stack: Stack) {
        // SAFETY: a stack that `take` gave out, and on which nothing runs.
        unsafe {
            libc::madvise(
                with_exposed_provenance_mut(stack.bottom()),
                stack.top() - stack.bottom(),
                libc::MADV_DONTNEED,
            )
        };
        self.state.with(|state| state.unused.push(stack));
    }
}
