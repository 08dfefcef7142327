//! The VMAs of an address space against a model of single pages.

use std::vec::Vec;

use super::gaps::MOST_UNKNOWN;
use frame::mm::Prot;

use super::*;

/// An object by number, from an index on; object 0 is anonymous memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shows(u32, u64);

impl Mergeable for Shows {
    fn advanced(&self, pages: u64) -> Self {
        if self.0 == 0 { *self } else { Shows(self.0, self.1 + pages) }
    }
    fn is_continued_by(&self, pages: u64, next: &Self) -> bool {
        self.advanced(pages) == *next
    }
    fn is_object(&self) -> bool {
        self.0 > 0
    }
}

const ANONYMOUS: Shows = Shows(0, 0);

fn vma(pages: Range<usize>, backing: Shows) -> Vma<Shows> {
    let flags = VmaFlags::empty();
    let limit = Prot::all();
    Vma { start: pages.start << 12, end: pages.end << 12, prot: Prot::READ, limit, flags, backing }
}

fn vmas(list: &[(Range<usize>, Shows)]) -> VmaMap<Shows> {
    let mut vmas = VmaMap::default();
    for (pages, backing) in list {
        vmas.insert(vma(pages.clone(), *backing)).unwrap();
    }
    vmas
}

fn pages(range: Range<usize>) -> Range<usize> {
    range.start << 12..range.end << 12
}

/// Which pages were taken out, if any were.
fn removed(vmas: &mut VmaMap<Shows>, range: Range<usize>) -> Option<Range<usize>> {
    let removed = vmas.remove(pages(range)).unwrap()?;
    assert_eq!(removed.iter().count(), removed.len());
    let span = removed.span();
    Some(span.start >> 12..span.end >> 12)
}

fn backing(vmas: &VmaMap<Shows>) -> Vec<(Range<usize>, Shows)> {
    vmas.iter().map(|vma| (vma.start >> 12..vma.end >> 12, vma.backing)).collect()
}

#[test]
fn neighbours_that_continue_each_other_become_one() {
    let merged = vmas(&[(10..12, ANONYMOUS), (14..16, ANONYMOUS), (12..14, ANONYMOUS)]);
    assert_eq!(backing(&merged), [(10..16, ANONYMOUS)]);
    let file = vmas(&[(10..12, Shows(1, 5)), (12..14, Shows(1, 7)), (14..15, Shows(1, 8))]);
    assert_eq!(backing(&file), [(10..14, Shows(1, 5)), (14..15, Shows(1, 8))]);
}

#[test]
fn removing_the_middle_leaves_both_ends_with_their_offsets() {
    let mut vmas = vmas(&[(10..20, Shows(1, 100))]);
    assert_eq!(removed(&mut vmas, 13..15), Some(13..15));
    assert_eq!(backing(&vmas), [(10..13, Shows(1, 100)), (15..20, Shows(1, 105))]);
    assert!(vmas.find(13 << 12).is_none());
    assert!(vmas.find((15 << 12) - 1).is_none());
    assert_eq!(vmas.find(15 << 12).map(|vma| vma.backing), Some(Shows(1, 105)));
}

#[test]
fn removing_spans_vmas_and_holes() {
    let mut vmas = vmas(&[(1..3, Shows(1, 0)), (5..7, Shows(2, 0)), (9..12, Shows(3, 0))]);
    assert_eq!(removed(&mut vmas, 2..10), Some(2..10));
    assert_eq!(backing(&vmas), [(1..2, Shows(1, 0)), (10..12, Shows(3, 1))]);
    assert_eq!(removed(&mut vmas, 3..9), None);
    assert_eq!(removed(&mut vmas, 0..20), Some(1..12));
}

#[test]
fn a_change_splits_and_undoing_it_merges() {
    let mut vmas = vmas(&[(10..20, ANONYMOUS)]);
    vmas.change(pages(12..14), |vma| vma.prot = Prot::empty()).unwrap();
    assert_eq!(vmas.len(), 3);
    vmas.change(pages(11..15), |vma| vma.prot = Prot::READ).unwrap();
    assert_eq!(backing(&vmas), [(10..20, ANONYMOUS)]);
}

#[test]
fn coverage_ends_at_the_first_hole() {
    let vmas = vmas(&[(10..12, Shows(1, 0)), (12..14, Shows(2, 0)), (15..16, Shows(3, 0))]);
    assert_eq!(vmas.covered_until(pages(10..16)), 14 << 12);
    assert_eq!(vmas.covered_until(pages(9..16)), 9 << 12);
    assert_eq!(vmas.covered_until(pages(11..13)), 13 << 12);
}

#[test]
fn the_highest_gap_that_fits_is_found() {
    let mut vmas = vmas(&[(10..12, Shows(1, 0)), (14..16, Shows(2, 0)), (17..20, Shows(3, 0))]);
    let mut gap = |len: usize, within: Range<usize>| vmas.find_gap(len << 12, pages(within)).map(|at| at >> 12);
    assert_eq!(gap(1, 1..20), Some(16));
    assert_eq!(gap(2, 1..20), Some(12));
    assert_eq!(gap(3, 1..20), Some(7));
    assert_eq!(gap(3, 1..30), Some(27));
    assert_eq!(gap(9, 1..20), Some(1));
    assert_eq!(gap(10, 1..20), None);
    assert_eq!(gap(2, 11..13), None);
}

#[test]
fn a_growing_stack_keeps_its_distance() {
    let mut vmas = VmaMap::default();
    let flags = VmaFlags::GROWS_DOWN;
    vmas.insert(Vma { flags, ..vma(1000..1010, ANONYMOUS) }).unwrap();
    assert_eq!(vmas.find_gap(1 << 12, pages(1..1000)), Some(743 << 12));
    assert_eq!(vmas.find_gap(1 << 12, pages(1..1005)), Some(743 << 12));
    vmas.grow_down(1000 << 12, 990 << 12);
    assert_eq!(backing(&vmas), [(990..1010, ANONYMOUS)]);
}

#[test]
fn many_vmas_come_and_go_in_any_order() {
    let mut vmas: VmaMap<Shows> = VmaMap::default();
    let most = MAX_AREAS.get() as usize;
    let within = 0..(4 * most) << 12;
    for number in 0..most {
        let start = vmas.find_gap_again(2 << 12, within.clone()).unwrap() >> 12;
        assert_eq!(start, 4 * most - 2 * (number + 1));
        vmas.insert(vma(start..start + 2, Shows(number as u32 + 1, 0))).unwrap();
    }
    assert_eq!(vmas.insert(vma(0..1, Shows(1, 0))), Err(TooManyVmas));
    let half = pages(4 * most - 1..4 * most);
    assert_eq!(vmas.change(half.clone(), |vma| vma.prot = Prot::empty()), Err(TooManyVmas));
    assert!(vmas.has_room_for(&pages(4 * most - 2..4 * most)));
    assert!(!vmas.has_room_for(&half));
    // What is left of a VMA is no more VMAs than it was, unless it is both ends.
    assert!(vmas.remove(half).is_ok());
    assert_eq!(vmas.len(), most);
    assert!(vmas.chunks.iter().all(|chunk| !chunk.is_empty() && chunk.len() <= CHUNK));
    for start in (2 * most..4 * most).step_by(4) {
        vmas.remove(pages(start..start + 2)).unwrap();
    }
    assert!(vmas.knows_its_gaps());
    assert_eq!(vmas.find_gap_again(2 << 12, within.clone()), vmas.find_gap(2 << 12, within));
    assert_eq!(vmas.len(), most / 2);
    vmas.remove(0..usize::MAX & !0xfff).unwrap();
    assert!(vmas.chunks.is_empty() && vmas.len() == 0);
}

/// Numbers below what is asked for.
fn random() -> impl FnMut(usize) -> usize {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    move |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random as usize % below
    }
}

/// The highest gap, by a look at every VMA.
fn plain_gap(vmas: &VmaMap<Shows>, len: usize, within: Range<usize>) -> Option<usize> {
    let lowest = |vma: &Vma<Shows>| match vma.flags.contains(VmaFlags::GROWS_DOWN) {
        true => vma.start.saturating_sub(STACK_GUARD),
        false => vma.start,
    };
    let starts = vmas.iter().map(lowest).chain([usize::MAX]);
    let ends = [0].into_iter().chain(vmas.iter().map(|vma| vma.end));
    let gaps = ends.zip(starts).map(|(end, start)| end.max(within.start)..start.min(within.end));
    gaps.filter(|gap| gap.end >= gap.start + len).map(|gap| gap.end - len).max()
}

/// Many VMAs, of which each change opens or closes gaps: every search finds what a look at all of them finds.
#[test]
fn a_search_that_skips_chunks_finds_what_a_plain_one_finds() {
    const PAGES: usize = 32_768;
    let mut next = random();
    let mut vmas: VmaMap<Shows> = VmaMap::default();
    let (mut most_chunks, mut most_unknown) = (0, 0);
    for round in 0..16_000 {
        let start = 1 + next(PAGES - 40);
        // Phases in which the map fills and empties.
        let is_filling = round / 4_000 % 2 == 0;
        let len = 1 + next(if is_filling { 6 } else { 30 });
        let range = pages(start..start + len);
        match next(if is_filling { 8 } else { 5 }) {
            0 => drop(vmas.remove(range).unwrap()),
            1 => _ = vmas.remove_one(&range, |_| {}),
            2 => vmas.change(range, |vma| vma.prot ^= Prot::WRITE).unwrap(),
            3 => {
                let stack = vmas.at_or_above(range.start).filter(|vma| vma.flags.contains(VmaFlags::GROWS_DOWN));
                if let Some(stack) = stack.map(|vma| vma.start)
                    && stack > range.end
                    && vmas.is_free(range.end..stack)
                {
                    vmas.grow_down(stack, range.end);
                }
            }
            _ => {
                vmas.remove(range.clone()).unwrap();
                let backing = if next(2) == 0 { ANONYMOUS } else { Shows(1 + next(1000) as u32, 0) };
                let flags = if next(500) == 0 { VmaFlags::GROWS_DOWN } else { VmaFlags::empty() };
                vmas.insert(Vma { flags, ..vma(start..start + len, backing) }).unwrap();
            }
        }
        assert!(vmas.knows_its_gaps(), "round {round}");
        most_chunks = most_chunks.max(vmas.chunks.len());
        most_unknown = most_unknown.max(vmas.gaps.unknown());
        // A search makes things known again: there are times with few.
        if round % 4_000 > 1_000 && next(100) > 0 {
            continue;
        }
        let most = if next(4) == 0 { 600 } else { 12 };
        let len = (1 + next(most)) << 12;
        let within = if next(2) == 0 { pages(1..PAGES) } else { pages(next(PAGES / 2)..PAGES / 2 + next(PAGES / 2)) };
        assert_eq!(vmas.find_gap(len, within.clone()), plain_gap(&vmas, len, within), "round {round}");
        let within = pages(1..PAGES);
        assert_eq!(vmas.find_gap_again(len, within.clone()), plain_gap(&vmas, len, within), "round {round}");
    }
    assert!(most_chunks > MOST_UNKNOWN, "{most_chunks} chunks");
    assert_eq!(most_unknown, MOST_UNKNOWN);
}

/// Random operations against an array of pages.
#[test]
fn random_changes_agree_with_a_page_by_page_model() {
    let mut next = random();
    let mut vmas: VmaMap<Shows> = VmaMap::default();
    let mut model = [None::<(Shows, Prot)>; 64];
    let forget = |vmas: &mut VmaMap<Shows>, removed: Option<Removed<Shows>>| {
        let objects = removed.iter().flat_map(Removed::iter).filter(|vma| vma.backing.is_object()).count();
        (0..objects).for_each(|_| vmas.forget_object());
    };
    for _ in 0..20_000 {
        let start = next(63);
        let end = start + 1 + next(64 - start);
        let prot = if next(2) == 0 { Prot::READ } else { Prot::READ | Prot::WRITE };
        match next(3) {
            0 => {
                let is_mapped = model[start..end].iter().any(Option::is_some);
                let mut is_reported = false;
                if vmas.remove_one(&pages(start..end), |_| is_reported = true) {
                    assert_eq!(is_reported, is_mapped);
                } else {
                    assert!(is_mapped && !is_reported);
                    let removed = vmas.remove(pages(start..end)).unwrap();
                    forget(&mut vmas, removed);
                }
                model[start..end].fill(None);
            }
            1 => {
                vmas.change(pages(start..end), |vma| vma.prot = prot).unwrap();
                model[start..end].iter_mut().flatten().for_each(|page| page.1 = prot);
            }
            _ => {
                let backing = if next(2) == 0 { ANONYMOUS } else { Shows(next(2) as u32 + 1, start as u64) };
                let removed = vmas.remove(pages(start..end)).unwrap();
                forget(&mut vmas, removed);
                vmas.insert(Vma { prot, ..vma(start..end, backing) }).unwrap();
                for (page, entry) in model.iter_mut().enumerate().take(end).skip(start) {
                    *entry = Some((backing.advanced((page - start) as u64), prot));
                }
            }
        }
        for (page, expected) in model.iter().enumerate() {
            let found =
                vmas.find(page << 12).map(|vma| (vma.backing.advanced((page - (vma.start >> 12)) as u64), vma.prot));
            assert_eq!(found, *expected, "page {page}");
            let again = vmas.find_again(page << 12).map(Vma::range);
            assert_eq!(again, vmas.find(page << 12).map(Vma::range), "page {page}");
        }
        let len = (1 + next(8)) << 12;
        assert_eq!(vmas.find_gap_again(len, 0..64 << 12), vmas.find_gap(len, 0..64 << 12));
        assert_eq!(vmas.iter().count(), vmas.len());
        assert_eq!(vmas.iter().filter(|vma| vma.backing.is_object()).count(), vmas.objects());
        for (one, next) in vmas.iter().zip(vmas.iter().skip(1)) {
            assert!(one.end <= next.start && !one.is_continued_by(next));
        }
    }
}

#[test]
fn no_more_vmas_show_objects_than_may_and_others_are_not_concerned() {
    let mut vmas = vmas(&[(0..10, Shows(1, 0)), (20..30, ANONYMOUS)]);
    vmas.set_most_objects(2);
    assert_eq!(vmas.room_for_objects(), 1);
    vmas.insert(vma(40..41, Shows(2, 0))).unwrap();
    assert_eq!(vmas.insert(vma(50..51, Shows(3, 0))), Err(TooManyVmas));
    // One that goes on where another ends is no other.
    vmas.insert(vma(41..42, Shows(2, 1))).unwrap();
    assert!(!vmas.remove_one(&pages(3..4), |_| unreachable!()));
    assert!(vmas.remove(pages(3..4)).is_err());
    assert!(vmas.change(pages(3..4), |vma| vma.prot = Prot::all()).is_err());
    vmas.insert(vma(60..61, ANONYMOUS)).unwrap();
    assert!(vmas.remove_one(&pages(24..25), |_| ()));
    assert!(vmas.remove_one(&pages(40..42), |_| ()));
    vmas.change(pages(0..4), |vma| vma.prot = Prot::all()).unwrap();
    assert_eq!((vmas.objects(), vmas.room_for_objects()), (2, 0));
}
