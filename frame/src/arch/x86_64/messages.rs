//! Interrupts that are messages (MSI): writes to the addresses of the local controllers (Intel SDM, volume 3, 11.11).
//!
//! A vector is taken on all cores at once; the message says to which one it goes.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::{apic, core_block};
use crate::cpu::Named;
use crate::irq::IrqCx;

/// Behind those of the ISA lines.
const FIRST: usize = 0x40;
const COUNT: usize = apic::TIMER_VECTOR - FIRST;
const ADDRESS: u32 = 0xfee0_0000;
/// The number of a controller has eight bits here.
const CONTROLLERS: u32 = 0xff;

/// What a vector is for.
struct Slot {
    is_taken: AtomicBool,
    handler: Named<fn(&IrqCx, usize)>,
    id: AtomicUsize,
}

static SLOTS: [Slot; COUNT] =
    [const { Slot { is_taken: AtomicBool::new(false), handler: Named::none(), id: AtomicUsize::new(0) } }; COUNT];

/// A vector that somebody has. It is free again when this is dropped.
pub struct Vector(usize);

impl Vector {
    /// Takes one, whose interrupts are handled by `handler`, called with `id`.
    pub fn take(handler: fn(&IrqCx, usize), id: usize) -> Option<Self> {
        let index = SLOTS.iter().position(|slot| !slot.is_taken.swap(true, Ordering::Acquire))?;
        SLOTS[index].id.store(id, Ordering::Relaxed);
        SLOTS[index].handler.set(handler);
        Some(Vector(index))
    }
}

impl Drop for Vector {
    fn drop(&mut self) {
        SLOTS[self.0].handler.clear();
        SLOTS[self.0].is_taken.store(false, Ordering::Release);
    }
}

impl Vector {
    /// Which it is.
    pub fn number(&self) -> usize {
        FIRST + self.0
    }
}

/// The number of a core's controller.
pub fn controller(core: usize) -> u32 {
    let of = |core| core_block::block_of(core).map(|block| block.apic_id.get()).filter(|id| *id < CONTROLLERS);
    // One that a message cannot name leaves it to the boot core.
    of(core).or_else(|| of(0)).unwrap_or(0)
}

/// The message that interrupts a core: address and data.
pub fn message(vector: &Vector, core: usize) -> (u32, u32) {
    (ADDRESS | controller(core) << 12, vector.number() as u32)
}

/// Whether a vector is one of those that messages have.
pub fn is_message(vector: usize) -> bool {
    (FIRST..FIRST + COUNT).contains(&vector)
}

/// A message has arrived.
pub fn interrupt(vector: usize, cx: &IrqCx) {
    let slot = &SLOTS[vector - FIRST];
    if let Some(handler) = slot.handler.get() {
        handler(cx, slot.id.load(Ordering::Relaxed));
    }
}
