//! The slab policy: which slab a slot comes from, and when an empty slab is given up.
//!
//! Each size class has a list of its slabs that have free slots, doubly linked through the words that the framework keeps for
//! each frame. Full slabs are in no list: they come back with the first slot that is given back. One slab without slots out
//! is kept for each class, so that a class at the edge does not take and give back a frame again and again.

use core::sync::atomic::Ordering;

use frame::mm::{FrameLink, FrameNumber, HeapSlots, SizeClass, Slab, SlabPolicy, frame_link};
use refs::SpinLock;

/// All slabs that have free slots.
pub static SLABS: Slabs = Slabs::new();

/// Slabs, by size class.
pub struct Slabs {
    classes: [SpinLock<Class>; SizeClass::COUNT],
}

impl Slabs {
    /// No slabs yet.
    pub const fn new() -> Self {
        Slabs { classes: [const { SpinLock::new(Class { first: None, empty: 0 }) }; SizeClass::COUNT] }
    }
}

impl Default for Slabs {
    fn default() -> Self {
        Self::new()
    }
}

impl SlabPolicy for Slabs {
    fn take(&self, slots: &mut HeapSlots, count: usize) {
        if let Some(class) = self.classes.get(slots.class().index()) {
            class.with(|slabs| slabs.take(slots, count));
        }
    }

    fn give(&self, slots: HeapSlots) {
        if let Some(class) = self.classes.get(slots.class().index()) {
            class.with(|slabs| slabs.give(slots));
        }
    }

    fn trim(&self) {
        for class in &self.classes {
            class.with(Class::trim);
        }
    }
}

/// The slabs of one size class that have free slots.
struct Class {
    first: Option<Slab>,
    /// How many of them have no slots out.
    empty: usize,
}

impl Class {
    /// Adds free slots until there are `count`, or no memory is left.
    fn take(&mut self, slots: &mut HeapSlots, count: usize) {
        let capacity = slots.class().capacity();
        while slots.len() < count {
            let Some(slab) = self.first.or_else(|| self.add(slots.class())) else { return };
            let Some(out) = slab.take(slots, count - slots.len()) else { return };
            if out.before == 0 {
                self.empty -= 1;
            }
            if out.now == capacity {
                self.unlink(slab);
            }
        }
    }

    fn add(&mut self, class: SizeClass) -> Option<Slab> {
        let slab = Slab::new(class)?;
        self.link(slab);
        self.empty += 1;
        Some(slab)
    }

    fn give(&mut self, mut slots: HeapSlots) {
        let capacity = slots.class().capacity();
        while let Some((slab, out)) = slots.put_back() {
            let was_full = out.before == capacity;
            if out.now == 0 && self.empty > 0 {
                if !was_full {
                    self.unlink(slab);
                }
                slab.destroy();
                continue;
            }
            if was_full {
                self.link(slab);
            }
            if out.now == 0 {
                self.empty += 1;
            }
        }
    }

    /// Gives up the slabs without slots out.
    fn trim(&mut self) {
        let mut at = self.first;
        while let Some(slab) = at {
            at = frame_link(slab.frame()).and_then(|words| Slab::at(FrameNumber(words.next.load(Ordering::Relaxed))));
            if slab.out() == 0 {
                self.unlink(slab);
                slab.destroy();
                self.empty -= 1;
            }
        }
    }

    fn link(&mut self, slab: Slab) {
        let Some(words) = frame_link(slab.frame()) else { return };
        words.previous.store(NONE, Ordering::Relaxed);
        words.next.store(self.first.map_or(NONE, |next| next.frame().0), Ordering::Relaxed);
        if let Some(next) = self.first.and_then(|next| frame_link(next.frame())) {
            next.previous.store(slab.frame().0, Ordering::Relaxed);
        }
        self.first = Some(slab);
    }

    fn unlink(&mut self, slab: Slab) {
        let Some(words) = frame_link(slab.frame()) else { return };
        let (previous, next) = (words.previous.load(Ordering::Relaxed), words.next.load(Ordering::Relaxed));
        // The frame policy uses the words next, and takes them to be clear.
        words.next.store(0, Ordering::Relaxed);
        words.previous.store(0, Ordering::Relaxed);
        if let Some(next) = link(next) {
            next.previous.store(previous, Ordering::Relaxed);
        }
        match link(previous) {
            Some(previous) => previous.next.store(next, Ordering::Relaxed),
            None => self.first = Slab::at(FrameNumber(next)),
        }
    }
}

/// "No slab", in a list.
const NONE: u32 = u32::MAX;

/// The words of a frame; `None` for [`NONE`] and beyond the last frame.
fn link(number: u32) -> Option<&'static FrameLink> {
    frame_link(FrameNumber(number))
}
