//! [`Layout`]: where the parts of a program go, and by how much that is left to chance.
//!
//! ```text
//!   USER_END -> vDSO | stack | gap, at least what the stack may grow to | mappings, downwards ... program (if it can be anywhere) | its heap, upwards
//! ```
//!
//! As on Linux there are 28 bits of chance in where mappings and programs begin, and 30 in the stack pointer. Fixed programs stay where they are.

use core::ops::Range;

use frame::Cx;
use frame::mm::{LEAF_BYTES, PAGE_SIZE, USER_END};

use crate::drivers::random;
use crate::memory::VDSO_PAGES;
use crate::sysctl::Tunable;

/// What is left to chance (`/proc/sys/kernel/randomize_va_space`): 0 nothing, 1 all but the heap, 2 all.
pub static RANDOMIZE_VA_SPACE: Tunable = Tunable::new(2, 0..=2);

/// Of personality(2): nothing is left to chance.
pub const ADDR_NO_RANDOMIZE: u32 = 0x004_0000;

/// Where the highest byte of a stack is below: there is always room for the vDSO above.
const STACK_TOP: usize = USER_END - VDSO_PAGES * PAGE_SIZE;

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
    /// Where the vDSO goes: above the stack, if there is room in the memory of the same page table, which is there in any case.
    pub vdso: usize,
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
        let stack_top = (STACK_TOP - stack % STACK_SPREAD) & !15;
        let lowest = stack_top.next_multiple_of(PAGE_SIZE);
        let table_end = stack_top.next_multiple_of(LEAF_BYTES).min(USER_END);
        let places = (table_end - lowest).saturating_sub(VDSO_PAGES * PAGE_SIZE) / PAGE_SIZE + 1;
        Layout {
            stack_top,
            vdso: lowest + stack / STACK_SPREAD % places * PAGE_SIZE,
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
        assert_eq!((layout.stack_top, layout.vdso), (STACK_TOP, STACK_TOP));
        assert_eq!(layout.map_end, STACK_TOP - (128 << 20));
        assert_eq!((layout.program_base, layout.heap_gap), (PROGRAM_BASE, 0));
    }

    #[test]
    fn the_parts_never_meet() {
        let most = [usize::MAX; 4];
        for stack_limit in [0, 8 << 20, 1 << 40, u64::MAX] {
            let layout = Layout::spread(stack_limit, most, STACK_SPREAD);
            assert!(
                layout.map_end >= USER_END / 6 - MAP_SPREAD - (1 + VDSO_PAGES) * PAGE_SIZE
                    && layout.map_end < layout.stack_top
            );
            assert!(STACK_TOP - layout.stack_top < STACK_SPREAD + 16);
            assert!(layout.program_base + HEAP_SPREAD < USER_END - STACK_SPREAD);
            assert_eq!((layout.map_end % PAGE_SIZE, layout.stack_top % 16), (0, 0));
            assert_eq!((layout.program_base % PAGE_SIZE, layout.heap_gap % PAGE_SIZE), (0, 0));
        }
    }

    #[test]
    fn the_vdso_is_above_the_stack_and_below_the_end() {
        for stack in
            [0, 1, 4095, 4096, 3 << 12, LEAF_BYTES - 1, LEAF_BYTES, 5 << 40, usize::MAX, usize::MAX - (8 << 12)]
        {
            let layout = Layout::spread(8 << 20, [stack, 0, 0, 0], STACK_SPREAD);
            assert!(layout.vdso >= layout.stack_top && layout.vdso + VDSO_PAGES * PAGE_SIZE <= USER_END, "{stack:#x}");
            assert_eq!(layout.vdso % PAGE_SIZE, 0);
            assert!(layout.vdso - layout.stack_top < LEAF_BYTES);
        }
    }
}
