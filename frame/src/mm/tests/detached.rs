//! What is left of address spaces, and who gets it.

use super::*;

const RW: Prot = Prot::READ.union(Prot::WRITE);
/// What one leaf table maps.
const LEAF: usize = 512 * PAGE_SIZE;
const BASE: usize = 0x7f00_0000;

/// Maps a page filled with `byte`.
fn map(space: &VmSpace, address: usize, byte: u8, machine: &Machine) {
    space.map(address, frame_of(byte), RW, &machine.cx).expect("there is memory");
}

fn peek(space: &VmSpace, address: usize, machine: &Machine) -> Option<u8> {
    let mut byte = [0];
    space.reader(address, 1, &machine.cx).read(&mut byte).ok().map(|_| byte[0])
}

fn can_read(space: &VmSpace, address: usize, machine: &Machine) -> bool {
    space.activate(&machine.cx);
    machine::translate(address, Access::Read).is_some()
}

#[test]
fn what_is_detached_is_out_of_the_space_at_once_and_comes_back_a_table_at_a_time() {
    let machine = Machine::new();
    let space = VmSpace::new().expect("there is memory");
    let last = USER_END - PAGE_SIZE;
    let places = [0x1000, BASE, BASE + PAGE_SIZE, BASE + 3 * LEAF, 5 << 39, last];
    for address in places {
        map(&space, address, 7, &machine);
        // The processor remembers it from here on.
        assert!(can_read(&space, address, &machine), "{address:#x}");
    }
    let mut pages = space.detach(&machine.cx).expect("there is memory");
    for address in places {
        assert!(!can_read(&space, address, &machine), "{address:#x}");
    }
    assert_eq!((space.mapped_pages(), space.leaf_tables(&machine.cx)), (0, 0));
    let given: Vec<_> = std::iter::from_fn(|| pages.give_back()).collect();
    assert_eq!(given, [1, 2, 1, 1, 1]);
}

#[test]
fn a_space_can_be_used_again_whose_pages_were_detached() {
    let machine = Machine::new();
    let space = VmSpace::new().expect("there is memory");
    map(&space, BASE, 1, &machine);
    assert_eq!(peek(&space, BASE, &machine), Some(1));
    let pages = space.detach(&machine.cx).expect("there is memory");
    map(&space, BASE, 2, &machine);
    assert_eq!(peek(&space, BASE, &machine), Some(2));
    drop(pages);
    assert_eq!(peek(&space, BASE, &machine), Some(2));
    assert_eq!(space.mapped_pages(), 1);
}

#[test]
fn a_space_may_end_before_its_pages_do() {
    let machine = Machine::new();
    let space = VmSpace::new().expect("there is memory");
    for index in 0..1000 {
        map(&space, BASE + index * PAGE_SIZE, 1, &machine);
    }
    let pages = space.detach(&machine.cx);
    drop(space);
    assert!(machine.used() >= 1000);
    drop(pages);
}

#[test]
fn a_frame_that_others_have_as_well_stays() {
    let machine = Machine::new();
    let (parent, child) = (VmSpace::new().expect("there is memory"), VmSpace::new().expect("there is memory"));
    map(&parent, BASE, 3, &machine);
    parent.fork_range(&child, BASE..BASE + LEAF, Sharing::CopyOnWrite, &machine.cx).expect("there is memory");
    let handle = parent.query(BASE, &machine.cx).expect("it is mapped").frame;
    assert_eq!(handle.references(), 3);
    drop(parent.detach(&machine.cx));
    assert_eq!(handle.references(), 2);
    assert_eq!(peek(&child, BASE, &machine), Some(3));
}

static KEPT: Mutex<Option<DetachedPages>> = Mutex::new(None);

fn recover() -> bool {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let has_some = kept.as_mut().is_some_and(|pages| pages.give_back().is_some());
    if !has_some {
        *kept = None;
    }
    has_some
}

#[test]
fn what_is_kept_for_nothing_is_given_back_before_memory_is_refused() {
    let machine = Machine::new();
    recover_by(Recovery { owed: || 0, recover });
    let space = VmSpace::new().expect("there is memory");
    let count = 2000;
    for index in 0..count {
        map(&space, BASE + index * PAGE_SIZE, 1, &machine);
    }
    *KEPT.lock().unwrap_or_else(PoisonError::into_inner) = space.detach(&machine.cx);
    let free = free_frames();
    let all: Vec<_> = std::iter::from_fn(UFrame::for_overwrite).collect();
    assert!((free + count..free + count + 8).contains(&all.len()), "{} frames, of {free} and {count}", all.len());
    drop(all);
    assert!(!recover());
}
