//! The kernel's frame policy.

use super::policies::buddy::FRAMES;
use super::*;

const MAX_ORDER: u8 = 10;

/// Takes single frames until there are none.
fn take_all() -> Vec<FrameNumber> {
    core::iter::from_fn(|| FRAMES.allocate(0)).collect()
}

#[test]
fn blocks_are_aligned_disjoint_and_join_again() {
    let _machine = Machine::new();
    let before = FRAMES.available();
    let mut frames = Vec::new();
    let mut blocks = Vec::new();
    for order in [0, 3, 0, 5, 10, 1, 2, 9, 0] {
        let first = FRAMES.allocate(order).expect("there is memory");
        assert!(first.0.is_multiple_of(1 << order));
        frames.extend(first.0..first.0 + (1 << order));
        blocks.push((first, order));
    }
    assert_eq!(FRAMES.available(), before - frames.len());
    frames.sort_unstable();
    assert!(frames.windows(2).all(|pair| pair[0] < pair[1]), "two blocks overlap");
    for (first, order) in blocks {
        FRAMES.free(first, order);
    }
    assert_eq!(FRAMES.available(), before);
}

#[test]
fn memory_in_single_frames_becomes_the_largest_blocks_again() {
    let _machine = Machine::new();
    let before = FRAMES.available();
    let mut frames = take_all();
    assert_eq!((frames.len(), FRAMES.available()), (before, 0));
    assert_eq!(FRAMES.allocate(0), None);
    // Back in an order that has little to do with their numbers.
    frames.sort_by_key(|frame| frame.0.wrapping_mul(0x9e37_79b1));
    for some in frames.chunks(7) {
        FRAMES.free_many(some);
    }
    let blocks: Vec<_> = core::iter::from_fn(|| FRAMES.allocate(MAX_ORDER)).collect();
    assert!(blocks.len() >= 4, "{} blocks of the largest order", blocks.len());
    for first in blocks {
        FRAMES.free(first, MAX_ORDER);
    }
    assert_eq!(FRAMES.available(), before);
}

#[test]
fn many_are_as_many_as_there_are() {
    let _machine = Machine::new();
    let mut some = [FrameNumber(0); 100];
    assert_eq!(FRAMES.allocate_many(&mut some), 100);
    FRAMES.free_many(&some);
    let all = take_all();
    FRAMES.free_many(&all[..30]);
    assert_eq!(FRAMES.allocate_many(&mut some), 30);
    FRAMES.free_many(&some[..30]);
    FRAMES.free_many(&all[30..]);
}

#[test]
fn many_at_once_are_different_frames_and_become_the_largest_blocks_again() {
    let _machine = Machine::new();
    let count_blocks = || {
        let blocks: Vec<_> = core::iter::from_fn(|| FRAMES.allocate(MAX_ORDER)).collect();
        blocks.iter().for_each(|first| FRAMES.free(*first, MAX_ORDER));
        blocks.len()
    };
    let (before, blocks) = (FRAMES.available(), count_blocks());
    let mut batches = Vec::new();
    for len in [0, 1, 64, 2, 37, 3, 1500, 100, 5] {
        let mut some = vec![FrameNumber(0); len];
        assert_eq!(FRAMES.allocate_many(&mut some), len);
        batches.push(some);
    }
    let mut frames: Vec<_> = batches.iter().flatten().collect();
    frames.sort_unstable();
    assert!(frames.windows(2).all(|pair| pair[0] < pair[1]), "a frame was given twice");
    assert_eq!(FRAMES.available(), before - frames.len());
    for some in &mut batches {
        // In two runs, of which the second is not where the first ends.
        let third = some.len() / 3;
        some.rotate_left(third);
        FRAMES.free_many(some);
    }
    assert_eq!((FRAMES.available(), count_blocks()), (before, blocks));
}

#[test]
fn orders_beyond_the_largest_are_refused() {
    let _machine = Machine::new();
    let before = FRAMES.available();
    assert_eq!(FRAMES.allocate(MAX_ORDER + 1), None);
    assert_eq!(FRAMES.allocate(u8::MAX), None);
    FRAMES.free(FrameNumber(0), u8::MAX);
    assert_eq!(FRAMES.available(), before);
}

#[test]
fn reported_blocks_are_taken_last_and_stay_reported_while_they_are_large_and_whole() {
    let _machine = Machine::new();
    let before = FRAMES.available();
    // All is used once, however the tests before have left it.
    FRAMES.begin();
    let blocks: Vec<_> = core::iter::from_fn(|| FRAMES.allocate(MAX_ORDER)).collect();
    blocks.iter().for_each(|first| FRAMES.free(*first, MAX_ORDER));
    let mut all = Vec::new();
    while let Some((first, order)) = FRAMES.take_unreported() {
        assert!(order >= 9 && FRAMES.available() < before);
        FRAMES.give_reported(first, order);
        all.push((first, order));
        assert!(all.len() <= before / 512, "it never ends");
    }
    assert!(all.len() >= blocks.len() && FRAMES.available() == before);
    // What is small is not reported, and is taken first.
    let frame = FRAMES.allocate(0).expect("there is memory");
    let is_reported = |(first, order): &(FrameNumber, u8)| (first.0..first.0 + (1 << order)).contains(&frame.0);
    assert!(!all.iter().any(is_reported));
    FRAMES.free(frame, 0);
    // Half of a reported block is taken: the other half is reported. Together they are not.
    let half = FRAMES.allocate(9).expect("there is memory");
    assert_eq!(FRAMES.take_unreported(), None);
    FRAMES.free(half, 9);
    let (first, order) = FRAMES.take_unreported().expect("it was used");
    assert!((first.0..first.0 + (1 << order)).contains(&half.0));
    FRAMES.give_reported(first, order);
    // Both halves are reported: so is what they make.
    let block = FRAMES.allocate(10).expect("there is memory");
    FRAMES.give_reported(block, 9);
    FRAMES.give_reported(FrameNumber(block.0 + 512), 9);
    assert_eq!(FRAMES.take_unreported(), None);
    assert_eq!(FRAMES.allocate(10), Some(block));
    FRAMES.free(block, 10);
    assert_eq!(FRAMES.available(), before);
}
