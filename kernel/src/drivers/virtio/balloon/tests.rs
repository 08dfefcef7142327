//! A balloon that keeps to the rules, one that does not, and what the allocator hands out meanwhile.

use std::collections::BTreeSet;
use std::vec::Vec;

use frame::mm::{FrameNumber, FramePolicy, PAGE_SIZE, free_frames};

use super::super::service::serve;
use super::super::simulated::{Random, Registers, RingOfDevice};
use super::*;
use allocators::buddy::FRAMES;

fn plug(features: u64, queues: &[u16]) -> &'static Registers {
    Registers::plug(OLD_NUMBER, features, queues, &[0; 16])
}

fn claim() -> core::result::Result<&'static Balloon, &'static str> {
    Transport::claim(KIND, OLD_NUMBER, WANTED).expect("it is plugged in").and_then(Balloon::new)
}

fn in_kernel(test: impl FnOnce(&Cx)) {
    let _machine = crate::block::test_memory();
    frame::with_context(|cx| test(cx));
}

/// The numbers of pages that a request names.
fn pages(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks(4).map(|number| u32::from_le_bytes(number.try_into().unwrap())).collect()
}

/// Answers all requests of a ring; the pages that they name.
fn answer_all(ring: &mut RingOfDevice) -> Vec<u32> {
    let mut all = Vec::new();
    while let Some((head, bytes)) = ring.take() {
        all.extend(pages(&bytes));
        ring.put(head.into(), 0);
    }
    all
}

/// Makes all large blocks ones that are to be reported.
fn use_all() {
    let blocks: Vec<FrameNumber> = core::iter::from_fn(|| FRAMES.allocate(10)).collect();
    blocks.into_iter().for_each(|first| FRAMES.free(first, 10));
}

/// The frames of the blocks that are reported just now.
fn reported(ring: &mut RingOfDevice) -> Option<(u16, Vec<u32>)> {
    let (head, _) = ring.take()?;
    let blocks = ring.chain(head);
    assert!(blocks.len() <= reporting::AT_ONCE);
    let mut frames = Vec::new();
    for (address, len, is_written) in blocks {
        assert!(is_written && len as usize >= 512 * PAGE_SIZE && address.is_multiple_of(len.into()));
        let first = (address / PAGE_SIZE as u64) as u32;
        frames.extend(first..first + len / PAGE_SIZE as u32);
    }
    Some((head, frames))
}

#[test]
fn all_large_free_blocks_are_reported_once_and_nobody_has_them_meanwhile() {
    in_kernel(|cx| {
        let registers = plug(REPORTING | STATISTICS, &[64; 4]);
        let balloon = claim().unwrap();
        let reporter = Reporter(balloon);
        let mut ring = registers.ring(3);
        use_all();
        // As it does before it reports: what threads have kept for themselves is free.
        frame::mm::gather();
        let before = FRAMES.available();
        for _ in 0..5 {
            assert!(serve(&reporter, cx));
            let (head, frames) = reported(&mut ring).expect("it reports");
            assert_eq!(FRAMES.available(), before - frames.len());
            assert!(!serve(&reporter, cx), "one at a time");
            // Whatever is handed out now is something else.
            let others: Vec<FrameNumber> = core::iter::from_fn(|| FRAMES.allocate(9)).collect();
            for first in &others {
                assert!((first.0..first.0 + 512).all(|frame| !frames.contains(&frame)));
            }
            others.into_iter().for_each(|first| FRAMES.free(first, 9));
            ring.put(head.into(), 0);
        }
        let mut rounds = 0;
        while serve(&reporter, cx) {
            if let Some((head, _)) = reported(&mut ring) {
                ring.put(head.into(), 0);
            }
            rounds += 1;
            assert!(rounds < 100, "it never ends");
        }
        assert_eq!(FRAMES.available(), before);
        // A frame that was used makes one block one that is to be reported.
        let frame = FRAMES.allocate(9).unwrap();
        assert!(!serve(&reporter, cx), "what is left of it was reported");
        FRAMES.free(frame, 9);
        assert!(serve(&reporter, cx));
        let (head, frames) = reported(&mut ring).unwrap();
        assert!(frames.contains(&frame.0) && frames.len() <= 1024);
        ring.put(head.into(), 0);
        assert!(!serve(&reporter, cx) || !serve(&reporter, cx));
        assert!(!registers.has_failed());
    });
}

#[test]
fn what_was_reported_is_taken_back_where_memory_is_needed() {
    in_kernel(|cx| {
        let registers = plug(REPORTING, &[64; 3]);
        let balloon = claim().unwrap();
        let mut ring = registers.ring(2);
        use_all();
        frame::mm::gather();
        let before = FRAMES.available();
        assert!(serve(&Reporter(balloon), cx));
        let (head, frames) = reported(&mut ring).expect("it reports");
        assert!(!balloon.take_back_for_want(cx), "the device has not answered");
        ring.put(head.into(), 0);
        assert_eq!(FRAMES.available(), before - frames.len());
        assert!(balloon.take_back_for_want(cx));
        assert_eq!(FRAMES.available(), before);
        assert!(!balloon.take_back_for_want(cx) && !registers.has_failed());
    });
}

#[test]
fn the_balloon_is_as_large_as_the_host_wants() {
    in_kernel(|cx| {
        let registers = plug(0, &[64; 2]);
        let balloon = claim().unwrap();
        let (mut inflate, mut deflate) = (registers.ring(0), registers.ring(1));
        let keeper = Keeper(balloon);
        let before = free_frames();
        let mut inside = BTreeSet::new();
        for wanted in [600, 100, 101, 0, 1, 0] {
            registers.set_config(WANTED_PAGES, &u32::to_le_bytes(wanted));
            for _ in 0..10 {
                serve(&keeper, cx);
                for page in answer_all(&mut inflate) {
                    assert!(inside.insert(page), "it has {page} twice");
                }
                for page in answer_all(&mut deflate) {
                    assert!(inside.remove(&page), "it never had {page}");
                }
            }
            assert_eq!(registers.config_word(ACTUAL_PAGES), wanted);
            assert_eq!(inside.len(), wanted as usize);
            assert!((before - free_frames()).abs_diff(wanted as usize) < 20);
        }
        assert!(!serve(&keeper, cx) && !registers.has_failed());
    });
}

#[test]
fn a_balloon_without_memory_to_take_leaves_the_reserve() {
    in_kernel(|cx| {
        let registers = plug(DEFLATE_WITHOUT_MEMORY, &[64; 2]);
        let balloon = claim().unwrap();
        let (mut inflate, mut deflate) = (registers.ring(0), registers.ring(1));
        let keeper = Keeper(balloon);
        let before = free_frames();
        registers.set_config(WANTED_PAGES, &u32::MAX.to_le_bytes());
        while serve(&keeper, cx) {
            answer_all(&mut inflate);
        }
        answer_all(&mut inflate);
        let left = free_frames();
        assert!(left >= 100 && left < before / 4, "{left} of {before} are left");
        assert!(registers.config_word(ACTUAL_PAGES) as usize > before / 2);
        // Somebody would be ended for want of memory.
        let mut times = 0;
        while free_frames() <= left + 100 {
            assert!(balloon.deflate_for_want(cx));
            assert_eq!(registers.config_word(ACTUAL_PAGES) as usize, balloon.inflation.lock(cx).pages());
            assert!(!balloon.deflate_for_want(cx), "the device has not answered");
            answer_all(&mut deflate);
            times += 1;
            assert!(times < 10, "each time it is some");
        }
        assert!(!serve(&keeper, cx) && free_frames() > left + 100, "it does not take them back at once");
        registers.set_config(WANTED_PAGES, &0_u32.to_le_bytes());
        for _ in 0..400 {
            serve(&keeper, cx);
            answer_all(&mut deflate);
        }
        assert!(before - free_frames() < 20);
        assert!(!balloon.deflate_for_want(cx), "it is empty");
    });
}

#[test]
fn the_host_is_told_how_much_is_free_whenever_it_asks() {
    in_kernel(|cx| {
        let registers = plug(STATISTICS, &[64; 3]);
        let balloon = claim().unwrap();
        let mut ring = registers.ring(2);
        for _ in 0..3 {
            let (head, bytes) = ring.take().expect("the driver gives the buffer");
            let value = |at: usize| u64::from_le_bytes(bytes[at + 2..at + 10].try_into().unwrap());
            assert_eq!((bytes.len(), bytes[0], bytes[10]), (30, 4, 5));
            assert!(value(0) > 0 && value(0) < value(10));
            serve(&Keeper(balloon), cx);
            assert!(ring.take().is_none(), "not before the host gives it back");
            ring.put(head.into(), 0);
            serve(&Keeper(balloon), cx);
        }
    });
}

#[test]
fn where_queues_are_goes_by_what_is_offered() {
    in_kernel(|cx| {
        let registers = plug(STATISTICS | HINTS | REPORTING, &[64; 5]);
        let balloon = claim().unwrap();
        use_all();
        serve(&Reporter(balloon), cx);
        assert!(reported(&mut registers.ring(4)).is_some());
        balloon.give_up(cx);
        // A queue that it says that it has, and has not.
        plug(STATISTICS | HINTS | REPORTING, &[64; 4]);
        assert!(claim().is_err());
        plug(0, &[64; 1]);
        assert!(claim().is_err());
    });
}

#[test]
fn whatever_a_device_does_all_memory_comes_back() {
    in_kernel(|cx| {
        let (mut cut_off, mut went_on) = (0, 0);
        for seed in 0..100 {
            let mut random = Random(seed);
            let before = free_frames();
            let features = random.of(&[0, STATISTICS, STATISTICS | REPORTING, WANTED])
                | random.of(&[0, 1 << 28, 1 << 29, 1 << 28 | 1 << 29]);
            let sizes: Vec<u16> = (0..5).map(|_| random.of(&[4, 64, 100, 256])).collect();
            let registers = plug(features, &sizes);
            if random.next(8) == 0 {
                registers.make_restless();
            }
            let balloon = claim().unwrap();
            let count = 2 + usize::from(balloon.statistics.is_some()) + usize::from(balloon.reporting.is_some());
            let mut rings: Vec<RingOfDevice> = (0..count).map(|number| registers.ring(number)).collect();
            let lies = random.of(&[3, 30, 3000]);
            for _ in 0..200 {
                let which = random.next(count as u64) as usize;
                match random.next(6) {
                    0 => {
                        let wanted = random.of(&[0, 1, 255, 256, 257, 3000, u32::MAX]);
                        registers.set_config(WANTED_PAGES, &wanted.to_le_bytes());
                    }
                    1 => _ = serve(&Keeper(balloon), cx),
                    2 => _ = serve(&Reporter(balloon), cx),
                    3 if random.next(2) == 0 => use_all(),
                    3 => _ = balloon.deflate_for_want(cx),
                    _ => {
                        if let Some((head, _)) = rings[which].take() {
                            rings[which].put(head.into(), 0);
                        }
                    }
                }
                if random.next(lies) == 0 {
                    rings[which].misbehave(&mut random);
                }
            }
            let is_gone = balloon.attached.is_gone();
            assert_eq!(is_gone, registers.has_failed());
            if is_gone {
                cut_off += 1
            } else {
                went_on += 1
            }
            balloon.give_up(cx);
            assert!(!serve(&Keeper(balloon), cx) && !serve(&Reporter(balloon), cx));
            assert!(before - free_frames() < 64, "{} frames are lost", before - free_frames());
        }
        assert!(cut_off > 20 && went_on > 20, "{cut_off} {went_on}");
    });
}
