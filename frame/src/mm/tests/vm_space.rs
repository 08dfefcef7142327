//! User address spaces, checked by walking their tables in software as the processor does.

use std::collections::BTreeMap;

use super::*;

const BASE: usize = 0x7f00_0000;
const RW: Prot = Prot::READ.union(Prot::WRITE);
/// What one leaf table maps.
const LEAF: usize = 512 * PAGE_SIZE;

fn new_space() -> VmSpace {
    VmSpace::new().expect("there is memory")
}

fn map(space: &VmSpace, address: usize, byte: u8, prot: Prot, machine: &Machine) {
    space.map(address, frame_of(byte), prot, &machine.cx).expect("there is memory");
}

/// The byte that the program would read.
fn peek(space: &VmSpace, address: usize, machine: &Machine) -> Option<u8> {
    let mut byte = [0];
    space.reader(address, 1, &machine.cx).read(&mut byte).ok().map(|_| byte[0])
}

/// Writes as the program would.
fn poke(space: &VmSpace, address: usize, byte: u8, machine: &Machine) -> bool {
    space.writer(address, 1, &machine.cx).write(&[byte]).is_ok()
}

fn can_execute(space: &VmSpace, address: usize, machine: &Machine) -> bool {
    space.activate(&machine.cx);
    machine::translate(address, Access::Execute).is_some()
}

#[test]
fn a_program_sees_what_is_mapped_and_may_do_what_it_says() {
    let machine = Machine::new();
    let space = new_space();
    for (index, prot) in [Prot::READ, RW, Prot::READ | Prot::EXECUTE, Prot::empty()].into_iter().enumerate() {
        let address = BASE + index * PAGE_SIZE;
        map(&space, address, index as u8, prot, &machine);
        assert_eq!(peek(&space, address + 5, &machine), prot.contains(Prot::READ).then_some(index as u8));
        assert_eq!(poke(&space, address, 9, &machine), prot.contains(Prot::WRITE));
        assert_eq!(can_execute(&space, address, &machine), prot.contains(Prot::EXECUTE));
        let entry = space.query(address + 77, &machine.cx).expect("it is mapped");
        assert_eq!((entry.prot, entry.dirty), (prot, prot.contains(Prot::WRITE)));
        assert_eq!(entry.frame.references(), 2);
    }
    assert_eq!(space.mapped_pages(), 4);
    assert_eq!(peek(&space, BASE - 1, &machine), None);
    assert_eq!(peek(&space, BASE + 4 * PAGE_SIZE, &machine), None);
}

#[test]
fn addresses_that_are_not_users_are_refused_everywhere() {
    let machine = Machine::new();
    let space = new_space();
    let cx = &machine.cx;
    for address in [USER_END, usize::MAX, 0xffff_8000_0000_0000, 1 << 47, 1 << 48] {
        assert_eq!(space.map(address, frame_of(1), RW, cx), Err(OutOfMemory));
        assert!(space.query(address, cx).is_none());
        space.set_prot(address, RW, cx);
        space.protect(address..usize::MAX, RW, true, cx);
        assert_eq!(space.unmap(address..usize::MAX, cx), 0);
        assert_eq!(space.map_absent(address..usize::MAX, RW, |_| panic!("no page"), cx), 0);
        map(&space, 0, 1, RW, &machine);
        assert_eq!(space.move_batch(&mut (0..PAGE_SIZE), address, cx), Err(OutOfMemory));
        assert_eq!(space.unmap(0..usize::MAX, cx), 1);
    }
    map(&space, USER_END - PAGE_SIZE, 5, RW, &machine);
    map(&space, 0, 6, RW, &machine);
    assert_eq!((peek(&space, 0, &machine), space.mapped_pages()), (Some(6), 2));
    #[expect(clippy::reversed_empty_ranges)]
    let backwards = BASE..0;
    assert_eq!(space.unmap(backwards, cx), 0);
    assert_eq!(space.unmap(PAGE_SIZE..usize::MAX, cx), 1);
}

#[test]
fn mapping_in_place_of_a_page_gives_back_the_old_one() {
    let machine = Machine::new();
    let space = new_space();
    map(&space, BASE, 1, RW, &machine);
    let used = machine.used();
    map(&space, BASE + 5, 2, Prot::READ, &machine);
    assert_eq!((peek(&space, BASE, &machine), machine.used(), space.mapped_pages()), (Some(2), used, 1));
}

#[test]
fn empty_tables_come_back_with_their_last_page() {
    let machine = Machine::new();
    let space = new_space();
    let empty = machine.used();
    let far = [0, BASE, BASE + LEAF, 1 << 30, 1 << 39, (1 << 43) + 12 * PAGE_SIZE];
    for address in far {
        map(&space, address, 1, RW, &machine);
    }
    assert!(machine.used() > empty + far.len());
    for address in far {
        assert_eq!(space.unmap(address..address + PAGE_SIZE, &machine.cx), 1);
        assert_eq!(peek(&space, address, &machine), None);
    }
    assert_eq!(machine.used(), empty);
    for address in far {
        map(&space, address, 1, RW, &machine);
    }
    assert_eq!(space.unmap(0..USER_END, &machine.cx), far.len());
    assert_eq!((machine.used(), space.mapped_pages()), (empty, 0));
}

#[test]
fn unmapping_a_part_leaves_the_rest() {
    let machine = Machine::new();
    let space = new_space();
    let pages = 1500;
    for index in 0..pages {
        map(&space, BASE + index * PAGE_SIZE, index as u8, RW, &machine);
    }
    // Long and short ranges, within one table and across several, the space in use and not.
    let other = new_space();
    for (from, to) in [(3, 4), (10, 90), (100, 101), (500, 1100), (1499, 1500)] {
        (if from % 2 == 0 { &space } else { &other }).activate(&machine.cx);
        let range = BASE + from * PAGE_SIZE..BASE + to * PAGE_SIZE;
        assert_eq!(space.unmap(range.clone(), &machine.cx), to - from);
        assert_eq!(space.unmap(range, &machine.cx), 0);
    }
    let gone = |index: usize| matches!(index, 3 | 10..90 | 100 | 500..1100 | 1499);
    for index in 0..pages {
        let expected = (!gone(index)).then_some(index as u8);
        assert_eq!(peek(&space, BASE + index * PAGE_SIZE, &machine), expected, "page {index}");
    }
    assert_eq!(space.mapped_pages(), (0..pages).filter(|index| !gone(*index)).count());
}

#[test]
fn a_space_in_use_can_be_dropped() {
    let machine = Machine::new();
    let space = new_space();
    map(&space, BASE, 1, RW, &machine);
    space.activate(&machine.cx);
    drop(space);
    assert_eq!(machine::root(), kernel_space::root());
    let next = new_space();
    assert_eq!(peek(&next, BASE, &machine), None);
}

#[test]
fn fork_shares_pages_until_one_side_writes() {
    let machine = Machine::new();
    let (parent, child) = (new_space(), new_space());
    let addresses = [BASE, BASE + 3 * PAGE_SIZE, BASE + LEAF + 9 * PAGE_SIZE, BASE + 40 * LEAF];
    for (index, address) in addresses.into_iter().enumerate() {
        map(&parent, address, index as u8, RW, &machine);
    }
    map(&parent, BASE + PAGE_SIZE, 9, Prot::empty(), &machine);
    parent.activate(&machine.cx);
    let range = BASE..BASE + 41 * LEAF;
    parent.fork_range(&child, range, Sharing::CopyOnWrite, &machine.cx).expect("there is memory");
    assert_eq!(child.mapped_pages(), 5);
    for (index, address) in addresses.into_iter().enumerate() {
        for space in [&parent, &child] {
            assert_eq!(peek(space, address, &machine), Some(index as u8));
            assert!(!poke(space, address, 99, &machine), "a write must fault");
        }
    }
    assert_eq!(peek(&child, BASE + PAGE_SIZE, &machine), None);
    // As the fault handler does: a copy for the one, the page itself for the last.
    let entry = child.query(BASE, &machine.cx).expect("mapped");
    assert_eq!(entry.frame.references(), 3);
    let copy = entry.frame.duplicate().expect("there is memory");
    drop(entry);
    child.map(BASE, copy, RW, &machine.cx).expect("there is memory");
    assert!(poke(&child, BASE, 50, &machine));
    let entry = parent.query(BASE, &machine.cx).expect("mapped");
    assert_eq!(entry.frame.references(), 2);
    parent.set_prot(BASE, RW, &machine.cx);
    assert!(poke(&parent, BASE, 60, &machine));
    assert_eq!((peek(&parent, BASE, &machine), peek(&child, BASE, &machine)), (Some(60), Some(50)));
    drop(entry);
    drop(parent);
    assert_eq!(peek(&child, addresses[3], &machine), Some(3));
}

#[test]
fn fork_of_shared_pages_leaves_them_writable() {
    let machine = Machine::new();
    let (parent, child) = (new_space(), new_space());
    map(&parent, BASE, 1, RW, &machine);
    map(&child, BASE, 7, RW, &machine);
    parent.fork_range(&child, BASE..BASE + 1, Sharing::Shared, &machine.cx).expect("there is memory");
    assert!(poke(&parent, BASE, 2, &machine));
    assert_eq!((peek(&child, BASE, &machine), child.mapped_pages()), (Some(2), 1));
    parent.fork_range(&parent, BASE..BASE + 1, Sharing::Shared, &machine.cx).expect("nothing to do");
}

#[test]
fn protect_gives_the_right_to_write_only_where_nobody_else_would_see_it() {
    let machine = Machine::new();
    let space = new_space();
    map(&space, BASE, 1, RW, &machine);
    let shared = frame_of(2);
    space.map(BASE + PAGE_SIZE, shared.clone(), Prot::READ, &machine.cx).expect("there is memory");
    let range = BASE..BASE + 2 * PAGE_SIZE;
    space.protect(range.clone(), Prot::empty(), true, &machine.cx);
    assert_eq!((peek(&space, BASE, &machine), space.mapped_pages()), (None, 2));
    space.protect(range.clone(), RW, true, &machine.cx);
    assert!(poke(&space, BASE, 3, &machine) && !poke(&space, BASE + PAGE_SIZE, 3, &machine));
    space.protect(range, RW | Prot::EXECUTE, false, &machine.cx);
    assert!(poke(&space, BASE + PAGE_SIZE, 3, &machine) && can_execute(&space, BASE, &machine));
    assert_eq!(first_byte(&shared), 3);
}

#[test]
fn what_the_processor_notes_can_be_read_and_forgotten() {
    let machine = Machine::new();
    // A walk that nobody asked for notes accesses, too.
    machine::speculate(false);
    let space = new_space();
    for index in 0..3 {
        map(&space, BASE + index * PAGE_SIZE, 1, RW, &machine);
    }
    peek(&space, BASE, &machine);
    poke(&space, BASE + PAGE_SIZE, 1, &machine);
    let noted = |what| {
        let mut pages = Vec::new();
        let range = BASE..BASE + 3 * PAGE_SIZE;
        space.clear_noted(range, what, |address| pages.push((address - BASE) / PAGE_SIZE), &machine.cx);
        pages
    };
    assert_eq!(noted(Noted::Dirty), [1]);
    assert_eq!(noted(Noted::Dirty), []);
    assert_eq!(noted(Noted::Accessed), [0, 1]);
    assert!(!space.query(BASE, &machine.cx).expect("mapped").accessed);
}

#[test]
fn moved_pages_are_at_their_new_place_only() {
    let machine = Machine::new();
    let space = new_space();
    let pages = [0, 1, 511, 512, 700];
    for page in pages {
        map(&space, BASE + page * PAGE_SIZE, page as u8, RW, &machine);
    }
    let to = BASE + 8 * LEAF + 3 * PAGE_SIZE;
    map(&space, to + PAGE_SIZE, 77, RW, &machine);
    space.activate(&machine.cx);
    let mut left = BASE..BASE + 701 * PAGE_SIZE;
    space.move_batch(&mut left, to, &machine.cx).expect("there is memory");
    assert!(left.is_empty(), "few pages are one batch");
    for page in pages {
        assert_eq!(peek(&space, BASE + page * PAGE_SIZE, &machine), None);
        assert_eq!(peek(&space, to + page * PAGE_SIZE, &machine), Some(page as u8));
    }
    assert_eq!(space.mapped_pages(), pages.len());
    assert_eq!(space.move_batch(&mut (to..to + LEAF), to + PAGE_SIZE, &machine.cx), Err(OutOfMemory));
}

#[test]
fn a_batch_is_as_much_as_a_full_table_however_many_tables_that_are() {
    const TABLES: usize = 300;
    let (machine, space) = (Machine::new(), new_space());
    let cx = &machine.cx;
    for table in 0..TABLES {
        map(&space, BASE + table * LEAF, 1, RW, &machine);
    }
    space.activate(cx);
    let whole = BASE..BASE + TABLES * LEAF;
    let to = 1 << 40;
    let mut left = whole.clone();
    let mut batches = 0;
    while !left.is_empty() {
        let target = to + (left.start - whole.start);
        space.move_batch(&mut left, target, cx).expect("there is memory");
        batches += 1;
    }
    assert!((2..=TABLES / 64).contains(&batches), "{batches} batches to move");
    assert_eq!((space.mapped_in(whole, cx), space.mapped_pages()), (0, TABLES));

    // A full table is a batch of its own.
    for page in 1..LEAF / PAGE_SIZE {
        map(&space, to + page * PAGE_SIZE, 1, RW, &machine);
    }
    let mut left = to + PAGE_SIZE..to + TABLES * LEAF;
    space.unmap_batch(&mut left, cx);
    assert_eq!((left.start, space.mapped_pages()), (to + LEAF, TABLES));
    let mut batches = 0;
    while !left.is_empty() {
        space.unmap_batch(&mut left, cx);
        batches += 1;
    }
    assert!((2..=TABLES / 64).contains(&batches), "{batches} batches to unmap");
    assert_eq!((peek(&space, to, &machine), space.mapped_pages()), (Some(1), 1));
}

#[test]
fn map_absent_fills_the_gaps_around_a_fault() {
    let machine = Machine::new();
    let space = new_space();
    let start = BASE + LEAF - 4 * PAGE_SIZE;
    map(&space, start + PAGE_SIZE, 1, RW, &machine);
    let mut asked = Vec::new();
    let frame_at = |address| {
        asked.push((address - start) / PAGE_SIZE);
        (asked.len() != 2).then(|| frame_of(2))
    };
    assert_eq!(space.map_absent(start..start + 8 * PAGE_SIZE, Prot::READ, frame_at, &machine.cx), 6);
    assert_eq!(asked, [0, 2, 3, 4, 5, 6, 7]);
    let seen: Vec<_> = (0..8).map(|page| peek(&space, start + page * PAGE_SIZE, &machine)).collect();
    assert_eq!(seen, [Some(2), Some(1), None, Some(2), Some(2), Some(2), Some(2), Some(2)]);
    assert_eq!(space.mapped_pages(), 7);
}

#[test]
fn a_run_of_frames_goes_where_nothing_is_mapped() {
    let machine = Machine::new();
    let space = new_space();
    let start = BASE + LEAF - 2 * PAGE_SIZE;
    map(&space, start + PAGE_SIZE, 9, RW, &machine);
    space.map_run(start, (1..=4).map(|value| (frame_of(value), Prot::READ)), &machine.cx);
    let seen: Vec<_> = (0..5).map(|page| peek(&space, start + page * PAGE_SIZE, &machine)).collect();
    assert_eq!(seen, [Some(1), Some(9), Some(3), Some(4), None]);
    assert_eq!(space.mapped_pages(), 4);
    space.map_run(USER_END - PAGE_SIZE, (1..=2).map(|value| (frame_of(value), RW)), &machine.cx);
    assert!(space.query(USER_END - PAGE_SIZE, &machine.cx).is_some());
    assert_eq!(space.mapped_pages(), 5);
}

#[test]
fn running_out_of_memory_for_tables_changes_nothing() {
    let machine = Machine::new();
    let (space, child) = (new_space(), new_space());
    map(&space, BASE, 1, RW, &machine);
    let spare = frame_of(2);
    trim();
    let all: Vec<_> = std::iter::from_fn(UFrame::for_overwrite).collect();
    assert!(VmSpace::new().is_none());
    assert_eq!(space.map(1 << 40, spare.clone(), RW, &machine.cx), Err(OutOfMemory));
    assert_eq!(space.map_absent(1 << 40..1 << 41, RW, |_| Some(spare.clone()), &machine.cx), 0);
    space.map_run(1 << 40, core::iter::once((spare.clone(), RW)), &machine.cx);
    assert_eq!(space.fork_range(&child, 0..USER_END, Sharing::CopyOnWrite, &machine.cx), Err(OutOfMemory));
    let mut left = BASE..BASE + PAGE_SIZE;
    assert_eq!(space.move_batch(&mut left, 1 << 40, &machine.cx), Err(OutOfMemory));
    assert_eq!(left, BASE..BASE + PAGE_SIZE);
    assert_eq!((peek(&space, BASE, &machine), space.mapped_pages(), spare.references()), (Some(1), 1, 1));
    drop(all);
}

#[test]
fn a_long_random_history_agrees_with_a_simple_model() {
    for has_contexts in [true, false] {
        let machine = Machine::new();
        machine::set_has_contexts(has_contexts);
        random_history(&machine);
    }
}

fn random_history(machine: &Machine) {
    let mut state = 0x1234_5678_9abc_def0_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % below
    };
    let mut spaces = vec![(new_space(), BTreeMap::new())];
    // Pages at both ends of tables, so that all levels come and go.
    let page = |index: usize| (index / 24) * (LEAF * 300) + (index % 24 + 500) * PAGE_SIZE;
    const PAGES: usize = 24 * 8;
    for step in 0..4000 {
        let which = random(spaces.len());
        let first = random(PAGES);
        let last = (first + random(60)).min(PAGES - 1);
        let range = page(first)..page(last) + PAGE_SIZE;
        let inside = |index: &usize| (first..=last).contains(index);
        let count = spaces.len();
        let (space, model) = &mut spaces[which];
        match random(10) {
            0..5 => {
                map(space, page(first), step as u8, RW, machine);
                model.insert(first, (step as u8, true));
            }
            5 => {
                let expected = model.keys().filter(|index| inside(index)).count();
                assert_eq!(space.unmap(range, &machine.cx), expected);
                model.retain(|index, _| !inside(index));
            }
            6 => {
                space.protect(range, Prot::READ, true, &machine.cx);
                model.iter_mut().filter(|(index, _)| inside(index)).for_each(|(_, page)| page.1 = false);
            }
            7 if count < 5 => {
                let child = new_space();
                space.fork_range(&child, 0..USER_END, Sharing::CopyOnWrite, &machine.cx).expect("there is memory");
                model.values_mut().for_each(|page| page.1 = false);
                let copy = model.clone();
                spaces.push((child, copy));
            }
            8 if count > 1 => {
                spaces.swap_remove(which);
            }
            _ => {
                if let Some((index, (_, writable))) = model.iter().nth(random(PAGES).min(model.len().saturating_sub(1)))
                {
                    let index = *index;
                    assert_eq!(poke(space, page(index), step as u8, machine), *writable);
                    if *writable {
                        model.insert(index, (step as u8, true));
                    }
                }
            }
        }
        if step % 50 == 0 {
            for (space, model) in &spaces {
                assert_eq!(space.mapped_pages(), model.len());
                for index in 0..PAGES {
                    let expected = model.get(&index).map(|page: &(u8, bool)| page.0);
                    assert_eq!(peek(space, page(index), machine), expected, "step {step}, page {index}");
                }
            }
        }
    }
}

#[test]
fn a_space_that_is_left_and_used_again_is_as_its_tables_say() {
    let machine = Machine::new();
    let cx = &machine.cx;
    // More of them than a core keeps.
    let spaces: Vec<_> = (0..9).map(|_| new_space()).collect();
    for (number, space) in spaces.iter().enumerate() {
        map(space, BASE, number as u8, RW, &machine);
        map(space, BASE + PAGE_SIZE, number as u8 + 100, RW, &machine);
        map(space, BASE + LEAF, number as u8 + 200, RW, &machine);
    }
    let seen = |number: usize| {
        let space: &VmSpace = &spaces[number];
        [BASE, BASE + PAGE_SIZE, BASE + LEAF].map(|address| peek(space, address, &machine))
    };
    let all = |number: usize| [number as u8, number as u8 + 100, number as u8 + 200].map(Some);
    for number in [0, 1, 0, 2, 3, 0, 4, 5, 6, 7, 8, 0, 1, 2] {
        assert_eq!(seen(number), all(number));
    }
    // While another is in use: a page, a whole table, a right. None may be remembered.
    spaces[1].activate(cx);
    spaces[0].unmap(BASE..BASE + PAGE_SIZE, cx);
    spaces[0].unmap(BASE + LEAF..BASE + LEAF + PAGE_SIZE, cx);
    spaces[0].protect(BASE + PAGE_SIZE..BASE + LEAF, Prot::READ, true, cx);
    map(&spaces[1], BASE + 9 * LEAF, 77, RW, &machine);
    assert_eq!(seen(0), [None, Some(100), None]);
    assert!(!poke(&spaces[0], BASE + PAGE_SIZE, 1, &machine));
    // In use, then left.
    spaces[2].activate(cx);
    spaces[2].unmap(BASE..BASE + PAGE_SIZE, cx);
    assert_eq!(seen(1), all(1));
    assert_eq!(seen(2), [None, Some(102), Some(202)]);
    // A space whose root was another's.
    let gone = new_space();
    map(&gone, BASE, 50, RW, &machine);
    assert_eq!(peek(&gone, BASE, &machine), Some(50));
    spaces[3].activate(cx);
    drop(gone);
    let next = new_space();
    map(&next, BASE, 51, RW, &machine);
    assert_eq!((peek(&next, BASE, &machine), seen(3)), (Some(51), all(3)));
}

/// The program tries a page where nothing is mapped, and the processor remembers the tables on the way.
#[test]
fn a_table_that_never_held_a_page_is_forgotten_before_it_is_given_back() {
    let machine = Machine::new();
    let cx = &machine.cx;
    let base = 4 * LEAF;
    let parent = new_space();
    for page in [0, 1, 2, 3, 4, 5, 6, 7, 100] {
        map(&parent, base + page * PAGE_SIZE, 1, RW, &machine);
    }
    // In two steps: the group's bit stays, though nothing is left of it. (Page 100 is of a vma that is not forked.)
    parent.unmap(base..base + 4 * PAGE_SIZE, cx);
    parent.unmap(base + 4 * PAGE_SIZE..base + 8 * PAGE_SIZE, cx);
    assert_eq!(
        (parent.mapped_in(base..base + 200 * PAGE_SIZE, cx), parent.mapped_in(base..base + PAGE_SIZE, cx)),
        (1, 0)
    );
    let child = new_space();
    parent.fork_range(&child, base..base + 8 * PAGE_SIZE, Sharing::CopyOnWrite, cx).unwrap();
    assert_eq!(child.mapped_pages(), 0);
    assert_eq!(peek(&child, base, &machine), None);
    assert_eq!(child.unmap(base..base + 8 * PAGE_SIZE, cx), 0);
    // The leaf table is used again for other addresses (here of the same space; it might be another's).
    map(&child, base + 9 * LEAF, 0x55, RW, &machine);
    assert_eq!(peek(&child, base, &machine), None);
}

#[test]
fn what_the_processor_remembers_of_an_entry_goes_when_the_entry_changes() {
    let machine = Machine::new();
    let cx = &machine.cx;
    let space = new_space();
    map(&space, BASE, 1, RW, &machine);
    map(&space, BASE + PAGE_SIZE, 2, RW, &machine);
    assert!(poke(&space, BASE, 3, &machine));

    space.set_prot(BASE, Prot::READ, cx);
    assert!(!poke(&space, BASE, 4, &machine));
    space.set_prot(BASE, RW, cx);
    assert!(poke(&space, BASE, 4, &machine));

    let mut dirty = 0;
    space.clear_noted(BASE..BASE + PAGE_SIZE, Noted::Dirty, |_| dirty += 1, cx);
    assert!(poke(&space, BASE, 5, &machine));
    space.clear_noted(BASE..BASE + PAGE_SIZE, Noted::Dirty, |_| dirty += 1, cx);
    assert_eq!(dirty, 2, "the second write was noted as well");

    // The other page keeps the table where it is.
    space.move_batch(&mut (BASE..BASE + PAGE_SIZE), BASE + 8 * PAGE_SIZE, cx).expect("there is memory");
    assert_eq!(peek(&space, BASE, &machine), None);
    assert_eq!(peek(&space, BASE + 8 * PAGE_SIZE, &machine), Some(5));

    let parent = new_space();
    map(&parent, BASE + PAGE_SIZE, 6, RW, &machine);
    assert_eq!(peek(&space, BASE + PAGE_SIZE, &machine), Some(2));
    parent.fork_range(&space, BASE..BASE + 2 * PAGE_SIZE, Sharing::CopyOnWrite, cx).expect("there is memory");
    assert_eq!(peek(&space, BASE + PAGE_SIZE, &machine), Some(6));
}

#[test]
fn the_first_mapped_table_of_a_range_is_found_however_far_it_is() {
    let machine = Machine::new();
    let space = new_space();
    let cx = &machine.cx;
    assert_eq!(space.first_mapped(0..USER_END, cx), None);
    let (low, high) = (BASE + 5 * PAGE_SIZE, (1 << 46) + 3 * LEAF + PAGE_SIZE);
    for address in [low, high] {
        map(&space, address, 1, RW, &machine);
    }
    assert_eq!(space.leaf_tables(cx), 2);
    assert_eq!(space.first_mapped(0..USER_END, cx), Some(BASE & !(LEAF - 1)));
    // Within the range, and not in front of it.
    assert_eq!(space.first_mapped(low..USER_END, cx), Some(low));
    assert_eq!(space.first_mapped(low + LEAF..USER_END, cx), Some(high & !(LEAF - 1)));
    assert_eq!(space.first_mapped(low + LEAF..1 << 46, cx), None);
    assert_eq!(space.first_mapped(high..high + 1, cx), Some(high));
    assert_eq!(space.first_mapped(high + LEAF..USER_END, cx), None);
    assert_eq!(space.first_mapped(USER_END..usize::MAX, cx), None);
    space.unmap(low..low + PAGE_SIZE, cx);
    assert_eq!(space.first_mapped(0..USER_END, cx), Some(high & !(LEAF - 1)));
}
