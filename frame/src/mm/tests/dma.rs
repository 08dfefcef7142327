//! Memory that devices reach.

use std::sync::Mutex;

use super::*;
use crate::dma::{DmaCoherent, DmaIdle, DmaMap, simulated};
use crate::iommu::{Forget, Lending, Tables, Translation};

#[test]
fn both_sides_see_what_the_other_wrote_and_nothing_lies_beyond_the_end() {
    let machine = Machine::new();
    let shared = DmaCoherent::new(simulated::domain(), 1).expect("there is memory");
    shared.store(PAGE_SIZE - 4, 0x0403_0201_u32);
    shared.store(PAGE_SIZE, 0x0605_u16);
    let first = simulated::number(shared.address(0).unwrap());
    let mut bytes = [0; 6];
    assert!(simulated::read(first + PAGE_SIZE as u64 - 4, &mut bytes));
    assert_eq!(bytes, [1, 2, 3, 4, 5, 6]);
    assert!(simulated::write(first + 8, &[7]));
    assert_eq!(shared.load::<u64>(8), 7);
    shared.store(2 * PAGE_SIZE - 2, u32::MAX);
    assert_eq!((shared.load::<u32>(2 * PAGE_SIZE - 2), shared.load::<u16>(2 * PAGE_SIZE - 2)), (0, 0));
    assert_eq!((shared.address(2 * PAGE_SIZE), shared.load::<u64>(usize::MAX)), (None, 0));
    drop(shared);
    assert_eq!(machine.used(), 0);
}

#[test]
fn what_a_device_can_reach_is_not_freed_but_lost_until_it_is_cut_off() {
    let machine = Machine::new();
    let domain = simulated::domain();
    drop(DmaCoherent::new(domain, 0));
    drop(DmaMap::new(domain, vec![frame_of(1)]).ok().unwrap());
    assert_eq!(machine.used(), 0, "it was not told of any");
    simulated::allow(domain);
    let (ring, lent, kept) = (
        DmaCoherent::new(domain, 0),
        DmaMap::new(domain, vec![frame_of(2)]).ok().unwrap(),
        DmaMap::new(domain, vec![frame_of(3)]).ok().unwrap(),
    );
    assert_eq!(lent.take_back().len(), 1);
    assert_eq!(machine.used(), 2, "what was taken back is free");
    let lost = DmaMap::new(domain, vec![frame_of(4)]).ok().unwrap();
    let address = simulated::number(lost.address(0).unwrap());
    drop(lost);
    assert_eq!(machine.used(), 3);
    assert!(simulated::write(address, &[9]), "the device may still write there");
    simulated::cut_off(domain);
    drop((ring, kept));
    assert_eq!(machine.used(), 1);
    // For the other tests.
    drop(untyped_frame(FrameNumber((address / PAGE_SIZE as u64) as u32)).map(|frame| {
        // SAFETY: the reference that was lost, of a device that does not exist.
        unsafe { UFrame::from_number(frame.number()) }
    }));
    assert_eq!(machine.used(), 0);
}

#[test]
fn a_device_reaches_untyped_memory_only() {
    let _machine = Machine::new();
    let object = Box::new(5_u8);
    for number in 0..frame_count() as u32 + 100 {
        if untyped_frame(FrameNumber(number)).is_none() {
            assert!(!simulated::write(u64::from(number) * PAGE_SIZE as u64, &[1]));
        }
    }
    assert!(!simulated::read(u64::MAX - 1, &mut [0; 8]));
    assert_eq!(*object, 5);
}

/// The entry that a unit finds for an address, in tables of three levels.
fn entry(root: u64, address: u64) -> u64 {
    [30, 21, 12].into_iter().fold(root | 3, |table, shift| {
        if table & 3 == 0 {
            return 0;
        }
        let mut bytes = [0; 8];
        let at = (table & 0x000f_ffff_ffff_f000) + (address >> shift & 511) * 8;
        assert!(simulated::read(at, &mut bytes), "a table is at no memory");
        u64::from_le_bytes(bytes)
    })
}

const ADDRESS: u64 = 0x000f_ffff_ffff_ffff;

#[test]
fn a_device_reaches_a_frame_as_long_as_it_is_lent() {
    let _machine = Machine::new();
    let mut tables = Tables::new(3, false).expect("there is memory");
    let root = tables.root();
    let far = FrameNumber((1 << 27) - 1);
    for frame in [FrameNumber(0), FrameNumber(511), FrameNumber(512), far] {
        let address = u64::from(frame.0) << 12;
        assert_eq!(entry(root, address), 0);
        assert!(tables.map(frame) && tables.map(frame));
        assert_eq!(entry(root, address) & ADDRESS, address | 3);
        assert!(!tables.unmap(frame), "it is lent once more");
        assert_eq!(entry(root, address) & ADDRESS, address | 3);
        assert!(tables.unmap(frame));
        assert_eq!(entry(root, address), 0);
        assert!(!tables.unmap(frame), "it was not lent");
    }
    assert!(!tables.map(FrameNumber(1 << 27)), "the tables have no place for it");
    let most = (0..2000).take_while(|_| tables.map(far)).count();
    assert_eq!(most, 1023);
    assert_eq!(entry(root, u64::from(far.0) << 12) & ADDRESS, u64::from(far.0) << 12 | 3);
}

static FORGOTTEN: Mutex<Vec<(u16, Option<Vec<u32>>)>> = Mutex::new(Vec::new());

fn note(domain: u16, what: Forget<'_>) -> bool {
    let pages = match what {
        Forget::Pages(pages) => Some(pages.iter().map(|page| page.0).collect()),
        Forget::All => None,
    };
    FORGOTTEN.lock().unwrap().push((domain, pages));
    true
}

#[test]
fn units_forget_frames_before_they_come_back() {
    let _machine = Machine::new();
    let translation = Translation::new(7, Tables::new(3, true).expect("there is memory"), false, note);
    let frames = |range: std::ops::Range<u32>| range.map(FrameNumber);
    let forgotten = || std::mem::take(&mut *FORGOTTEN.lock().unwrap());
    assert_eq!([translation.map(frames(1..4)), translation.map(frames(3..30))], [Lending::All; 2]);
    assert!(forgotten().is_empty(), "there was nothing that they know");
    assert!(translation.unmap(frames(1..4)));
    assert_eq!(forgotten(), [(7, Some(vec![1, 2]))], "one of them is still lent");
    assert!(translation.unmap(frames(3..30)));
    assert_eq!(forgotten(), [(7, None)], "there are many");
    // The last of them is beyond the tables: none is left behind.
    assert_eq!(translation.map(frames((1 << 27) - 2..(1 << 27) + 1)), Lending::Nothing);
    assert_eq!(forgotten(), [(7, None)]);
    assert!(translation.unmap(frames((1 << 27) - 2..1 << 27)), "none of them was lent");
    assert!(forgotten().is_empty());
}

#[test]
fn what_units_do_not_forget_is_lost_and_never_free_again() {
    use super::policies::buddy::FRAMES;
    let machine = Machine::new();
    let domain = simulated::domain();
    let tables = Tables::new(3, true).expect("there is memory");
    let translation = Box::into_raw(Box::new(Translation::new(7, tables, false, |_, _| false)));
    // SAFETY: it is freed at the end, and nobody asks it behind that.
    let lent: &'static Translation = unsafe { &*translation };
    domain.translate(lent);
    simulated::allow(domain);
    // As often as it can be: what it is lent with is not lent, but was for a moment.
    let exhaust = |frame: FrameNumber| assert!((0..1023).all(|_| lent.map([frame].into_iter()) == Lending::All));
    let full = frame_of(2);
    exhaust(full.number());
    let frame = frame_of(1);
    let number = frame.number();
    assert!(DmaMap::new(domain, vec![frame, full.clone()]).is_err_and(|frames| frames.len() == 2));
    assert!(untyped_frame(number).is_some(), "the device may reach it, and nobody else has it");
    let first = FRAMES.allocate(4).expect("there is memory");
    exhaust(FrameNumber(first.0 + 15));
    let available = FRAMES.available();
    assert!(DmaIdle::new(domain, first, 4).is_none());
    assert_eq!(FRAMES.available(), available);
    // For the other tests.
    // SAFETY: the device does not exist, and nobody else has what was lost, or uses the translation any more.
    unsafe {
        drop([number, full.number()].map(|number| UFrame::from_number(number)));
        drop(Box::from_raw(translation));
        release_block(first, 4);
    }
    FRAMES.free(first, 4);
    drop(full);
    assert_eq!(machine.used(), 0);
}

#[test]
fn a_block_that_a_device_empties_is_nobody_s_until_it_is_taken_back() {
    use super::policies::buddy::FRAMES;
    let machine = Machine::new();
    let domain = simulated::domain();
    simulated::allow(domain);
    let before = FRAMES.available();
    let first = FRAMES.allocate(4).expect("there is memory");
    let idle = DmaIdle::new(domain, first, 4).expect("there is no IOMMU");
    assert_eq!(
        (idle.len_bytes(), simulated::number(idle.address())),
        (16 * PAGE_SIZE, u64::from(first.0) * PAGE_SIZE as u64)
    );
    assert!(simulated::write(simulated::number(idle.address()), &[0; 100]));
    assert_eq!(idle.take_back(), (first, 4));
    FRAMES.free(first, 4);
    assert_eq!(FRAMES.available(), before);
    // One that is dropped goes back by itself once the device is cut off.
    let first = FRAMES.allocate(4).expect("there is memory");
    let idle = DmaIdle::new(domain, first, 4).expect("there is no IOMMU");
    simulated::cut_off(domain);
    drop(idle);
    assert_eq!((FRAMES.available(), machine.used()), (before, 0));
}

#[test]
#[should_panic(expected = "in use")]
fn a_block_that_is_in_use_is_not_lent_to_be_emptied() {
    let _machine = Machine::new();
    let frame = frame_of(1);
    DmaIdle::new(simulated::domain(), frame.number(), 0);
}
