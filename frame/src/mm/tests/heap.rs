//! The heap and its slabs.

use std::alloc::{GlobalAlloc, Layout};

use super::*;

/// An object on the heap that checks, when it goes, that nobody else wrote to it.
struct Object {
    at: *mut u8,
    layout: Layout,
    byte: u8,
}

impl Object {
    fn new(size: usize, align: usize, byte: u8) -> Self {
        let layout = Layout::from_size_align(size, align).expect("a layout");
        // SAFETY: the size is not zero.
        let at = unsafe { Heap.alloc(layout) };
        assert!(!at.is_null() && at.addr().is_multiple_of(align), "{size} bytes aligned to {align} at {at:?}");
        // SAFETY: just allocated.
        unsafe { at.write_bytes(byte, size) };
        Object { at, layout, byte }
    }

    fn resize(&mut self, size: usize) {
        let old = self.layout.size();
        // SAFETY: allocated with this layout; the size is not zero.
        self.at = unsafe { Heap.realloc(self.at, self.layout, size) };
        assert!(!self.at.is_null());
        self.layout = Layout::from_size_align(size, self.layout.align()).expect("a layout");
        self.check(old.min(size));
        // SAFETY: the object has `size` bytes.
        unsafe { self.at.write_bytes(self.byte, size) };
    }

    fn check(&self, len: usize) {
        // SAFETY: the object was initialised.
        let bytes = unsafe { std::slice::from_raw_parts(self.at, len) };
        assert!(bytes.iter().all(|byte| *byte == self.byte));
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        self.check(self.layout.size());
        // SAFETY: allocated with this layout.
        unsafe { Heap.dealloc(self.at, self.layout) };
    }
}

#[test]
fn a_size_class_fits_its_sizes_and_alignments() {
    for size in 0..=4096 {
        for align in [1, 2, 8, 16, 32, 64, 256, 1024, 4096] {
            let class = SizeClass::of(size, align).expect("up to a page there is a class");
            assert!(class.size_bytes() >= size, "{size}: {class:?}");
            assert!(align <= 16 || class.size_bytes().is_multiple_of(align), "{size} aligned to {align}: {class:?}");
            assert!(class.size_bytes().is_multiple_of(16) && class.capacity() > 0);
            if align <= 16 && class.index() > 0 {
                assert!(SizeClass::SIZES[class.index() - 1] < size, "{size} has a smaller class than {class:?}");
            }
        }
    }
    assert_eq!(SizeClass::of(4097, 1), None);
    assert_eq!(SizeClass::of(1, 8192), None);
    assert_eq!(SizeClass::of(usize::MAX, 1), None);
    assert_eq!(SizeClass::of(isize::MAX as usize, 64), None);
}

#[test]
fn objects_of_all_sizes_keep_apart() {
    let machine = Machine::new();
    let mut objects = Vec::new();
    for round in 0..4 {
        for size in [1, 8, 16, 17, 24, 48, 64, 100, 192, 300, 500, 700, 1024, 1025, 1360, 1500, 2048, 3000, 4096] {
            for align in [1, 8, 16, 64, 4096] {
                objects.push(Object::new(size, align, (size ^ align ^ round) as u8));
            }
        }
        for size in [4097, 8192, 20_000, 100_000, 1 << 20] {
            objects.push(Object::new(size, 8, size as u8));
        }
        // Every third goes, and its place is used again.
        let mut index = 0;
        objects.retain(|_| {
            index += 1;
            index % 3 != 0
        });
    }
    drop(objects);
    assert_eq!(machine.used(), 0);
}

#[test]
fn an_object_keeps_its_content_when_it_is_resized() {
    let machine = Machine::new();
    let mut object = Object::new(1, 8, 0x5a);
    for size in [2, 16, 17, 40, 1000, 100, 4096, 4097, 9000, 8193, 70_000, 10] {
        object.resize(size);
    }
    drop(object);
    assert_eq!(machine.used(), 0);
}

#[test]
fn too_much_is_refused_and_leaves_nothing_behind() {
    let machine = Machine::new();
    let refused = |size, align| {
        let layout = Layout::from_size_align(size, align).expect("a layout");
        // SAFETY: the size is not zero.
        unsafe { Heap.alloc(layout) }.is_null()
    };
    assert!(refused(isize::MAX as usize, 1) && refused(65 << 20, 8) && refused(8, 8 << 20));
    let mut all: Vec<_> = std::iter::from_fn(UFrame::for_overwrite).collect();
    assert!(refused(600, 8) && refused(4096, 8) && refused(1 << 16, 8));
    all.truncate(all.len() - 4);
    drop(Object::new(600, 8, 1));
    drop(all);
    assert_eq!(machine.used(), 0);
}

#[test]
fn a_slab_with_slots_out_is_not_destroyed() {
    let machine = Machine::new();
    let class = SizeClass::of(1000, 8).expect("a class");
    let slab = Slab::new(class).expect("there is memory");
    let mut slots = HeapSlots::none(class);
    assert_eq!(slab.take(&mut slots, 0), None);
    assert_eq!(slab.take(&mut slots, 3), Some(SlotsOut { before: 0, now: 3 }));
    assert_eq!(slab.take(&mut slots, 3), Some(SlotsOut { before: 3, now: 4 }));
    assert_eq!((slab.take(&mut slots, 1), slots.len(), slab.out()), (None, 4, 4));
    assert!(!slab.destroy());
    assert_eq!(slots.put_back(), Some((slab, SlotsOut { before: 4, now: 0 })));
    assert!(slots.put_back().is_none() && slots.is_empty());
    // Slots that came back are handed out again, to those who want slots of that size.
    let mut others = HeapSlots::none(SizeClass::of(64, 8).expect("a class"));
    assert_eq!((slab.take(&mut others, 1), others.len()), (None, 0));
    assert_eq!(slab.take(&mut slots, 1), Some(SlotsOut { before: 0, now: 1 }));
    assert_eq!(slots.put_back(), Some((slab, SlotsOut { before: 1, now: 0 })));
    assert!(slab.destroy());
    // What is left is a name without a slab.
    assert!(!slab.destroy() && slab.take(&mut slots, 1).is_none() && Slab::at(slab.frame()).is_none());
    assert_eq!(machine.used(), 0);
}

#[test]
#[should_panic(expected = "another size")]
fn an_object_freed_with_another_size_is_noticed() {
    let _machine = Machine::new();
    let slab = Slab::new(SizeClass::of(64, 8).expect("a class")).expect("there is memory");
    let mut slots = HeapSlots::none(SizeClass::of(64, 8).expect("a class"));
    slab.take(&mut slots, 1).expect("a new slab has slots");
    let (first, len) = slots.into_list();
    // SAFETY: it is not of this class: that is what is tested, and it only panics.
    let mut wrong = unsafe { HeapSlots::from_list(SizeClass::of(128, 8).expect("a class"), first, len) };
    wrong.put_back();
}

#[test]
fn a_large_block_is_made_of_frames_that_do_not_lie_together() {
    let machine = Machine::new();
    // Every other frame is in use: no two that are free lie together.
    let mut frames: Vec<_> = std::iter::from_fn(UFrame::for_overwrite).collect();
    frames.sort_by_key(UFrame::number);
    let kept: Vec<_> = frames.into_iter().filter(|frame| frame.number().0 % 2 == 0).collect();
    trim();
    assert!(USegment::zeroed(1).is_none());
    let free = free_frames();
    let block = Object::new(10 * PAGE_SIZE + 1, 8, 0x5a);
    assert!(scattered::has(block.at) && free - free_frames() >= 11);
    // The simulated kernel has room for one such block.
    let before = free_frames();
    // SAFETY: the size is not zero.
    assert!(unsafe { Heap.alloc(block.layout) }.is_null());
    assert_eq!(free_frames(), before);
    drop(block);
    drop(kept);
    assert_eq!(machine.used(), 0);
}

#[test]
fn a_very_large_block_comes_back_in_pieces_and_its_place_when_it_is_needed() {
    let machine = Machine::new();
    let mut frames: Vec<_> = std::iter::from_fn(UFrame::for_overwrite).collect();
    frames.sort_by_key(UFrame::number);
    let kept: Vec<_> = frames.into_iter().filter(|frame| frame.number().0 % 2 == 0).collect();
    trim();
    let free = free_frames();
    // So many that cores are asked at once to forget them.
    const PAGES: usize = 600;
    drop(Object::new(PAGES * PAGE_SIZE, 8, 0x5a));
    assert_eq!((scattered::spent_frames(), free_frames()), (PAGES, free - PAGES));
    assert!(scattered::give_spent_back());
    assert!((1..PAGES).contains(&scattered::spent_frames()));
    assert_eq!(free_frames() + scattered::spent_frames(), free);
    // There is room for one such block, which takes what is left of the other.
    drop(Object::new(PAGES * PAGE_SIZE, 8, 0xa5));
    assert_eq!((scattered::spent_frames(), free_frames()), (PAGES, free - PAGES));
    while scattered::give_spent_back() {}
    assert_eq!((scattered::spent_frames(), free_frames()), (0, free));
    drop(kept);
    assert_eq!(machine.used(), 0);
}
