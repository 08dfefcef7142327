//! [`Interrupts`]: what a device's message, or a line of the machine's controller, does (specification, 5.1 and 9.9).
//!
//! A message names an entry of a table and not what happens: that the entry says, and who may name it. So a device interrupts with the vectors that its driver has taken for it, and no others (invariant 3). The entry of a
//! vector has the vector's number; of vectors there are as many as a page has entries.

use refs::SpinLock;

use crate::arch::machine::{ioapic, messages};
use crate::mm::USegment;

const ENTRY_BYTES: usize = 16;
const PRESENT: u64 = 1;
const VECTOR_SHIFT: u32 = 16;
/// Where the receiving controller's number is: 32 bits, or 8.
const WIDE_SHIFT: u32 = 32;
const NARROW_SHIFT: u32 = 40;
/// The entry is for the device of that number alone.
const ONE_SOURCE: u64 = 1 << 18;
/// The address of a message that names an entry.
const ADDRESS: u32 = 0xfee0_0010;
const INDEX_SHIFT: u32 = 5;

/// A page of entries.
pub(super) struct Interrupts {
    table: SpinLock<USegment>,
    address: u64,
    /// Whether controllers have numbers of 32 bits.
    pub(super) is_wide: bool,
}

impl Interrupts {
    /// A table in which the lines of the machine's controller, whose number is `controller` if the firmware says so, have their vectors, and nothing else has one. `None` if there is no memory.
    pub(super) fn new(is_wide: bool, controller: Option<u16>) -> Option<Self> {
        let table = USegment::zeroed(0)?;
        let interrupts = Interrupts { address: table.address(), table: SpinLock::new(table), is_wide };
        for line in 0..ioapic::LINES {
            interrupts.set(ioapic::vector(line), controller, messages::controller(0));
        }
        interrupts.table.with(|table| table.write_all_back());
        Some(interrupts)
    }

    /// Where the table is.
    pub(super) fn address(&self) -> u64 {
        self.address
    }

    /// Has the entry of a vector interrupt with it the core whose controller has that number, if `source` asks for it, or anybody if nobody knows who will. The message that does it: address and data.
    pub(super) fn set(&self, vector: usize, source: Option<u16>, controller: u32) -> (u32, u32) {
        let receiver = u64::from(controller) << if self.is_wide { WIDE_SHIFT } else { NARROW_SHIFT };
        let who = source.map_or(0, |source| ONE_SOURCE | u64::from(source));
        self.write(vector, receiver | (vector as u64) << VECTOR_SHIFT | PRESENT, who);
        (ADDRESS | (vector as u32) << INDEX_SHIFT, 0)
    }

    /// Nobody interrupts with the vector any more, once the units have forgotten its entry.
    pub(super) fn clear(&self, vector: usize) {
        self.write(vector, 0, 0);
    }

    fn write(&self, vector: usize, low: u64, high: u64) {
        self.table.with(|table| {
            let at = vector * ENTRY_BYTES;
            // It is not there while it changes.
            table.store_word(at, 0_u64);
            table.store_word(at + 8, high);
            table.store_word(at, low);
            table.write_back(at);
        });
    }
}
