//! Memory that devices reach.

use super::*;
use crate::dma::{DmaCoherent, DmaMap, simulated};

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
