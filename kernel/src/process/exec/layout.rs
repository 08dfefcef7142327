//! [`Layout`]: where the parts of a program go, and by how much that is left to chance.
//!
//! ```text
//!   USER_END -> stack | gap, at least what the stack may grow to | mappings, downwards ... program (if it can be anywhere) | its heap, upwards
//! ```
//!
//! As on Linux there are 28 bits of chance in where mappings and programs begin, and 30 in the stack pointer. Fixed programs stay where they are.

use core::ops::Range;

use frame::Cx;
use frame::mm::{PAGE_SIZE, USER_END};

use crate::drivers::random;
use crate::sysctl::Tunable;

/// What is left to chance (`/proc/sys/kernel/randomize_va_space`): 0 nothing, 1 all but the heap, 2 all.
pub static RANDOMIZE_VA_SPACE: Tunable = Tunable::new(2, 0..=2);

/// Of personality(2): nothing is left to chance.
pub const ADDR_NO_RANDOMIZE: u32 = 0x004_0000;

/// Where the highest byte of a stack is below.
const STACK_TOP: usize = USER_END;

/// Where position-independent programs go (two thirds up, as on Linux).
const PROGRAM_BASE: usize = (USER_END / 3 * 2) & !(PAGE_SIZE - 1);

/// What lies between the lowest stack and the first mapping at least and at most.
const STACK_GAP: Range<usize> = 128 << 20..USER_END / 6 * 5;

/// By how much less than this the stack begins further down.
const STACK_SPREAD: usize = 16 << 30;
/// By how much less than this mappings begin further down, and programs further up.
const MAP_SPREAD: usize = PAGE_SIZE << 28;
/// By how much less than this the heap begins behind its program.
const HEAP_SPREAD: usize = 1 << 30;

/// Where the parts of a program go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Below what the stack begins; 16-byte aligned.
    pub stack_top: usize,
    /// Below what mappings go that have no place of their own.
    pub map_end: usize,
    /// Where a program goes that can be anywhere, before it is aligned.
    pub program_base: usize,
    /// How far behind its program the heap begins.
    pub heap_gap: usize,
}

impl Layout {
    /// Chooses one for a program whose stack may grow to `stack_limit` bytes.
    pub fn choose(stack_limit: u64, personality: u32, cx: &Cx) -> Self {
        let setting = RANDOMIZE_VA_SPACE.get();
        if setting == 0 || personality & ADDR_NO_RANDOMIZE != 0 {
            return Self::spread(stack_limit, [0; 4], 0);
        }
        let chance: [u8; 32] = random::bytes(cx);
        let (words, _) = chance.as_chunks::<8>();
        let word = |index: usize| words.get(index).map_or(0, |word| usize::from_le_bytes(*word));
        let mut layout = Self::spread(stack_limit, [0, 1, 2, 3].map(word), STACK_SPREAD);
        if setting == 1 {
            layout.heap_gap = 0;
        }
        layout
    }

    /// Without chance where all numbers are 0. `pad`: by how much the stack may begin further down.
    fn spread(stack_limit: u64, [stack, map, program, heap]: [usize; 4], pad: usize) -> Self {
        let pages = !(PAGE_SIZE - 1);
        let limit = usize::try_from(stack_limit).unwrap_or(usize::MAX);
        let gap = limit.saturating_add(pad).clamp(STACK_GAP.start, STACK_GAP.end);
        Layout {
            stack_top: (STACK_TOP - stack % STACK_SPREAD) & !15,
            map_end: (STACK_TOP - gap - map % MAP_SPREAD) & pages,
            program_base: PROGRAM_BASE + ((program % MAP_SPREAD) & pages),
            heap_gap: (heap % HEAP_SPREAD) & pages,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_chance_a_program_is_where_it_always_was() {
        let layout = Layout::spread(8 << 20, [0; 4], 0);
        assert_eq!(layout.stack_top, USER_END);
        assert_eq!(layout.map_end, USER_END - (128 << 20));
        assert_eq!((layout.program_base, layout.heap_gap), (PROGRAM_BASE, 0));
    }

    #[test]
    fn the_parts_never_meet() {
        let most = [usize::MAX; 4];
        for stack_limit in [0, 8 << 20, 1 << 40, u64::MAX] {
            let layout = Layout::spread(stack_limit, most, STACK_SPREAD);
            assert!(layout.map_end >= USER_END / 6 - MAP_SPREAD - PAGE_SIZE && layout.map_end < layout.stack_top);
            assert!(USER_END - layout.stack_top < STACK_SPREAD + 16);
            assert!(layout.program_base + HEAP_SPREAD < USER_END - STACK_SPREAD);
            assert_eq!((layout.map_end % PAGE_SIZE, layout.stack_top % 16), (0, 0));
            assert_eq!((layout.program_base % PAGE_SIZE, layout.heap_gap % PAGE_SIZE), (0, 0));
        }
    }
}
