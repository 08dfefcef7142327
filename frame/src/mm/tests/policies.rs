//! The simplest policies.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::mm::*;

pub struct Frames(Mutex<BTreeSet<u32>>);
pub static FRAMES: Frames = Frames(Mutex::new(BTreeSet::new()));

impl Frames {
    fn with<R>(&self, f: impl FnOnce(&mut BTreeSet<u32>) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl FramePolicy for Frames {
    fn add(&self, first: FrameNumber, count: usize) {
        self.with(|frames| frames.extend(first.0..first.0 + count as u32));
    }

    fn allocate(&self, order: u8) -> Option<FrameNumber> {
        self.with(|frames| {
            let size = 1 << order;
            let block =
                |first: &u32| first.is_multiple_of(size) && (*first..first + size).all(|frame| frames.contains(&frame));
            let first = frames.iter().copied().find(|first| block(first))?;
            frames.retain(|frame| !(first..first + size).contains(frame));
            Some(FrameNumber(first))
        })
    }

    fn free(&self, first: FrameNumber, order: u8) {
        self.with(|frames| {
            for frame in first.0..first.0 + (1 << order) {
                assert!(frames.insert(frame), "frame {frame} was given back twice");
            }
        });
    }

    fn available(&self) -> usize {
        self.with(|frames| frames.len())
    }
}

pub struct Slabs(Mutex<Vec<(SizeClass, Slab)>>);
pub static SLABS: Slabs = Slabs(Mutex::new(Vec::new()));

impl SlabPolicy for Slabs {
    fn take(&self, class: SizeClass) -> Option<HeapSlot> {
        let mut slabs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = slabs.iter().filter(|(of, _)| *of == class).find_map(|(_, slab)| slab.take());
        slot.or_else(|| {
            let slab = Slab::new(class)?;
            slabs.push((class, slab));
            slab.take()
        })
    }

    fn give(&self, slot: HeapSlot) {
        let slab = slot.slab();
        if slot.put_back() == 0 {
            assert!(slab.destroy());
            self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|(_, other)| *other != slab);
        }
    }
}
