//! The kernel's slab policy.

use super::policies::slab::SLABS;
use super::*;

fn take(class: SizeClass, count: usize) -> HeapSlots {
    let mut slots = HeapSlots::none(class);
    SLABS.take(&mut slots, count);
    assert_eq!((slots.class(), slots.len()), (class, count), "there is memory");
    slots
}

#[test]
fn slots_fill_slabs_and_slabs_go_when_they_are_empty() {
    let _machine = Machine::new();
    let before = free_frames();
    for index in 0..SizeClass::COUNT {
        let class = SizeClass::at(index).expect("below the count");
        let count = class.capacity() * 5 + 1;
        let mut slots: Vec<_> = (0..count).map(|_| take(class, 1)).collect();
        assert_eq!(before - free_frames(), index + 6, "six slabs, and one left of each class before");
        // Back in an order that has little to do with their slabs.
        let mut step = 0;
        while !slots.is_empty() {
            step += 7;
            SLABS.give(slots.swap_remove(step % slots.len()));
        }
        assert_eq!(before - free_frames(), index + 1, "one empty slab is kept for each class");
        // The same, all at once.
        let slots = take(class, count);
        assert_eq!(before - free_frames(), index + 6, "the kept one is among the six");
        SLABS.give(slots);
        assert_eq!(before - free_frames(), index + 1, "one empty slab is kept for each class");
    }
    // The kept slabs are used again.
    let class = SizeClass::of(100, 8).expect("a small size");
    let slot = take(class, 1);
    assert_eq!(before - free_frames(), SizeClass::COUNT);
    SLABS.give(slot);
}

#[test]
fn slots_come_and_go_in_any_order() {
    let _machine = Machine::new();
    let class = SizeClass::of(1024, 8).expect("a small size");
    let mut state = 1_u32;
    let mut slots = Vec::new();
    for _ in 0..5000 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if slots.is_empty() || state >> 16 & 3 > 1 || slots.len() < 10 {
            slots.push(take(class, 1 + (state >> 8 & 7) as usize));
        } else {
            SLABS.give(slots.swap_remove(state as usize % slots.len()));
        }
    }
    slots.drain(..).for_each(|slot| SLABS.give(slot));
    let (slot, _) = take(class, 1).into_list();
    let slab = Slab::at(machine::pointer_frame(slot)).expect("a slot is in a slab");
    assert_eq!(slab.out(), 1, "the one slab that is left");
    // SAFETY: the one slot that was just taken, and nobody used.
    SLABS.give(unsafe { HeapSlots::from_list(class, slot, 1) });
}
