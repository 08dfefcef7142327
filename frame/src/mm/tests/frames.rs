//! Frames and segments, their metadata and the supply.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

#[test]
fn a_zeroed_frame_is_zero_also_when_it_was_used_before() {
    let machine = Machine::new();
    let number = frame_of(7).number();
    let again = UFrame::zeroed().expect("there is memory");
    assert_eq!(again.number(), number, "the frame that was used last is handed out first");
    let mut bytes = [1; PAGE_SIZE];
    assert_eq!(again.reader(0..PAGE_SIZE).read(&mut bytes), Ok(PAGE_SIZE));
    assert_eq!(bytes, [0; PAGE_SIZE]);
    assert_eq!(machine.used(), 1);
}

#[test]
fn a_frame_is_free_when_its_last_handle_is_dropped() {
    let machine = Machine::new();
    let frame = frame_of(1);
    let second = frame.clone();
    assert_eq!((frame.references(), second.references()), (2, 2));
    drop(frame);
    assert_eq!((second.references(), machine.used()), (1, 1));
    drop(second);
    assert_eq!(machine.used(), 0);
}

#[test]
fn a_duplicate_has_the_content_and_a_life_of_its_own() {
    let _machine = Machine::new();
    let frame = frame_of(3);
    let copy = frame.duplicate().expect("there is memory");
    assert_eq!(frame.writer(0..1).write(&[4]), Ok(1));
    assert_eq!((first_byte(&frame), first_byte(&copy)), (4, 3));
    drop(frame);
    assert_eq!(first_byte(&copy), 3);
}

#[test]
fn a_word_is_stored_where_it_belongs_and_never_behind_the_end() {
    let _machine = Machine::new();
    let frame = frame_of(0);
    frame.store(511, 0x0102_0304_0506_0708);
    frame.store(512, u64::MAX);
    let mut bytes = [0; 16];
    assert_eq!(frame.reader(PAGE_SIZE - 16..PAGE_SIZE).read(&mut bytes), Ok(16));
    assert_eq!(bytes, [0, 0, 0, 0, 0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1]);
}

#[test]
fn many_frames_come_and_go_through_the_cores_stack() {
    let machine = Machine::new();
    for _ in 0..3 {
        let frames: Vec<_> = (0..1000).map(|index| frame_of(index as u8)).collect();
        assert_eq!(machine.used(), 1000);
        for (index, frame) in frames.iter().enumerate() {
            assert_eq!(first_byte(frame), index as u8);
        }
    }
}

#[test]
fn user_memory_ends_at_the_reserve_and_kernel_memory_does_not() {
    let machine = Machine::new();
    set_reserve(100);
    let frames: Vec<_> = std::iter::from_fn(UFrame::for_overwrite).collect();
    assert!(UFrame::zeroed().is_none());
    assert!((90..=110).contains(&free_frames()), "{} frames left", free_frames());
    let own: Vec<_> = (0..80).map(|_| Frame::new(Plain(1)).expect("the reserve is for the kernel")).collect();
    assert!(UFrame::zeroed().is_none(), "the kernel's batches leak into user memory");
    assert_eq!(machine.used(), frames.len() + own.len());
    set_reserve(0);
}

#[test]
fn all_memory_can_be_used_and_comes_back() {
    let machine = Machine::new();
    let frames: Vec<_> = std::iter::from_fn(UFrame::for_overwrite).collect();
    assert_eq!((free_frames(), machine.used()), (0, frames.len()));
    assert!(USegment::zeroed(0).is_none());
}

#[test]
fn metadata_know_holes_from_memory() {
    let _machine = Machine::new();
    // Without the first two and the hole, but for what the loader filled of it.
    assert_eq!((metadata::end_of_memory(), frame_count()), (8192, 8192 - 2 - 1024 + 16));
    let is_reserved =
        |number| metadata::Metadata::get(FrameNumber(number)).is_some_and(|record| record.is(metadata::Kind::Reserved));
    // Frame 1 is not whole; the hole is between an eighth and a quarter.
    assert!(is_reserved(0) && is_reserved(1) && is_reserved(1024) && is_reserved(2047));
    assert!(!is_reserved(900) && !is_reserved(4096) && !is_reserved(8191));
    assert!(frame_link(FrameNumber(8191)).is_some() && frame_link(FrameNumber(8192)).is_none());
}

struct Plain(u64);
impl FrameMeta for Plain {}

struct Counted(Arc<AtomicUsize>);
impl FrameMeta for Counted {}
impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_typed_frame_drops_its_metadata_with_the_last_handle() {
    let _machine = Machine::new();
    let drops = Arc::new(AtomicUsize::new(0));
    let frame = Frame::new(Counted(drops.clone())).expect("there is memory");
    let second = frame.clone();
    assert_eq!(frame.references(), 2);
    drop(frame);
    assert_eq!(drops.load(Ordering::Relaxed), 0);
    assert_eq!(Arc::strong_count(&second.0), 2);
    drop(second);
    assert_eq!(drops.load(Ordering::Relaxed), 1);
}

#[test]
fn a_frame_of_a_segment_outlives_it() {
    let machine = Machine::new();
    let segment = Segment::new(3, |index| Plain(index as u64)).expect("there is memory");
    assert_eq!((segment.frames(), machine.used()), (8, 8));
    let fifth = segment.frame(5).expect("there are eight");
    assert!(segment.frame(8).is_none());
    drop(segment);
    assert_eq!((fifth.0, machine.used()), (5, 1));
}

#[test]
fn an_untyped_segment_is_contiguous() {
    let machine = Machine::new();
    let segment = USegment::zeroed(2).expect("there is memory");
    assert_eq!(segment.writer(PAGE_SIZE - 2..PAGE_SIZE + 2).write(&[1, 2, 3, 4]), Ok(4));
    let mut bytes = [9; 6];
    assert_eq!(segment.reader(PAGE_SIZE - 3..PAGE_SIZE + 3).read(&mut bytes), Ok(6));
    assert_eq!(bytes, [0, 1, 2, 3, 4, 0]);
    let second = segment.frame(1).expect("there are four");
    drop(segment);
    assert_eq!((first_byte(&second), machine.used()), (3, 1));
}

#[test]
#[should_panic(expected = "in use")]
fn a_policy_that_hands_out_a_used_frame_is_stopped() {
    let _machine = Machine::new();
    let frame = frame_of(1);
    metadata::Metadata::get(frame.number()).expect("in range").claim(metadata::Kind::Untyped);
}

#[test]
fn a_count_that_would_overflow_pins_the_frame() {
    let machine = Machine::new();
    let frame = frame_of(1);
    let record = metadata::Metadata::get(frame.number()).expect("in range");
    record.state.store(metadata::Kind::Untyped as u32 | ((1 << 28) - 1), Ordering::Relaxed);
    for _ in 0..3 {
        std::mem::forget(frame.clone());
    }
    for _ in 0..10 {
        drop(frame.clone());
    }
    assert!(frame.references() > 1 << 28);
    record.state.store(metadata::Kind::Untyped as u32 | 1, Ordering::Relaxed);
    drop(frame);
    assert_eq!(machine.used(), 0);
}

#[test]
fn a_block_from_the_policy_exists_and_is_aligned() {
    let _machine = Machine::new();
    let last = metadata::end_of_memory() as u32 - 1;
    for (first, order) in [(0, 0), (last, 0), (4, 2), (6, 1)] {
        supply::check(FrameNumber(first), order);
    }
    for (first, order) in [(last + 1, 0), (last, 1), (u32::MAX, 0), (5, 1), (6, 2), (512, 10)] {
        let refused = std::panic::catch_unwind(|| supply::check(FrameNumber(first), order));
        assert!(refused.is_err(), "frame {first}, order {order}");
    }
}

#[test]
fn what_the_loader_filled_becomes_memory_as_it_is_read() {
    let mut machine = Machine::new();
    // The simulation's module: 16 frames from 1024 on.
    machine::provide(FrameNumber(1024), 16);
    let before = free_frames();
    // SAFETY: these frames are known, reserved and nobody's.
    let mut module = unsafe { BootModule::new(1024 * PAGE_SIZE + 100, 15 * PAGE_SIZE) };
    let freed = || free_frames() - before;
    assert_eq!((module.rest().len(), module.rest()[0]), (15 * PAGE_SIZE, 0xa5));
    module.advance(PAGE_SIZE - 101);
    assert_eq!(freed(), 0);
    module.advance(1);
    assert_eq!((freed(), module.rest().len()), (1, 14 * PAGE_SIZE + 100));
    module.advance(4 * PAGE_SIZE);
    assert_eq!((freed(), module.rest()[0]), (5, 0xa5));
    drop(module);
    assert_eq!(freed(), 16);
    machine.free += 16;
}
