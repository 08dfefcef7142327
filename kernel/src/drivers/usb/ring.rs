//! Rings of requests and of events (Extensible Host Controller Interface for Universal Serial Bus 1.2, 4.9): each entry is a *TRB* of 16 bytes, and a bit of it, the cycle, says whose it is.

use frame::dma::{DeviceAddress, DmaCoherent};
use frame::mm::PAGE_SIZE;

/// Bytes of an entry.
const TRB_BYTES: usize = 16;
/// Entries of a ring, which is a page.
pub const ENTRIES: usize = PAGE_SIZE / TRB_BYTES;
/// Where a ring of requests leads back to its beginning.
const LINK: usize = ENTRIES - 1;
const CYCLE: u32 = 1;

/// Kinds of entries (6.4.6).
pub mod kind {
    #![allow(missing_docs)]
    pub const NORMAL: u32 = 1;
    pub const SETUP: u32 = 2;
    pub const DATA: u32 = 3;
    pub const STATUS: u32 = 4;
    pub const LINK: u32 = 6;
    pub const ENABLE_SLOT: u32 = 9;
    pub const DISABLE_SLOT: u32 = 10;
    pub const ADDRESS_DEVICE: u32 = 11;
    pub const CONFIGURE_ENDPOINT: u32 = 12;
    pub const EVALUATE_CONTEXT: u32 = 13;
    pub const RESET_ENDPOINT: u32 = 14;
    pub const SET_DEQUEUE: u32 = 16;
    pub const TRANSFER_EVENT: u32 = 32;
    pub const COMMAND_COMPLETION: u32 = 33;
    pub const PORT_CHANGE: u32 = 34;
}

/// The first eight bytes of an entry.
#[derive(Clone, Copy, Debug)]
pub enum Parameter {
    /// A number.
    Number(u64),
    /// Where something is.
    Address(DeviceAddress),
}

/// An entry: its parameter, its status, its control word with the kind and without the cycle.
#[derive(Clone, Copy, Debug)]
pub struct Trb {
    /// What depends on the kind.
    pub parameter: Parameter,
    /// A length, nearly always.
    pub status: u32,
    /// Flags, the kind, and what it is for.
    pub control: u32,
}

/// The kind of an entry, as its control word has it.
pub fn of_kind(kind: u32) -> u32 {
    kind << 10
}

/// Entries for the controller. Whoever adds some has no more under way than there is room for: [`ENTRIES`] less two.
pub struct Ring {
    memory: DmaCoherent,
    /// The number that the controller knows the first entry by. It is only compared with.
    base: u64,
    next: usize,
    cycle: u32,
}

impl Ring {
    /// An empty ring in a page that the controller does not use. `None` if the page has no addresses.
    pub fn new(memory: DmaCoherent) -> Option<Self> {
        clear(&memory);
        memory.store_address(LINK * TRB_BYTES, memory.address(0)?);
        let base = memory.load(LINK * TRB_BYTES);
        Some(Ring { memory, base, next: 0, cycle: CYCLE })
    }

    /// The page again, for who knows that the controller does not use it.
    pub fn into_memory(self) -> DmaCoherent {
        self.memory
    }

    /// Adds an entry: its number.
    pub fn push(&mut self, trb: Trb) -> usize {
        let number = self.next;
        let at = number * TRB_BYTES;
        match trb.parameter {
            Parameter::Number(number) => self.memory.store(at, number),
            Parameter::Address(address) => self.memory.store_address(at, address),
        }
        self.memory.store(at + 8, trb.status);
        self.memory.store(at + 12, trb.control | self.cycle);
        self.next += 1;
        if self.next == LINK {
            /// The meaning of the cycle changes with this entry.
            const TOGGLE: u32 = 2;
            self.memory.store(LINK * TRB_BYTES + 8, 0_u32);
            self.memory.store(LINK * TRB_BYTES + 12, of_kind(kind::LINK) | TOGGLE | self.cycle);
            self.next = 0;
            self.cycle ^= CYCLE;
        }
        number
    }

    /// Which entry an event is about; `None` if it is none of these.
    pub fn number_of(&self, pointer: u64) -> Option<usize> {
        let offset = pointer.checked_sub(self.base)?;
        let is_one = offset.is_multiple_of(TRB_BYTES as u64) && offset < (LINK * TRB_BYTES) as u64;
        is_one.then_some(offset as usize / TRB_BYTES)
    }

    /// Where the next entry will be, with its cycle, as the controller is told where to begin.
    pub fn next_address(&self) -> Option<DeviceAddress> {
        self.memory.address(self.next * TRB_BYTES + self.cycle as usize)
    }
}

/// Makes a page empty.
pub fn clear(memory: &DmaCoherent) {
    // The kernel's own memory does not fault.
    let _ = memory.writer(0, PAGE_SIZE).zero(PAGE_SIZE);
}

/// An entry that the controller has made.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// What it is about.
    pub parameter: u64,
    /// A length and an outcome.
    pub status: u32,
    control: u32,
}

impl Event {
    /// Its kind.
    pub fn kind(self) -> u32 {
        self.control >> 10 & 0x3f
    }

    /// How what it is about went (6.4.5).
    pub fn code(self) -> u8 {
        (self.status >> 24) as u8
    }

    /// What was left of a transfer.
    pub fn residue(self) -> usize {
        (self.status & 0xff_ffff) as usize
    }

    /// Which slot it is about.
    pub fn slot(self) -> u8 {
        (self.control >> 24) as u8
    }

    /// Which of the slot's endpoints.
    pub fn endpoint(self) -> u8 {
        (self.control >> 16 & 0x1f) as u8
    }
}

/// Entries of the controller's.
pub struct EventRing {
    memory: DmaCoherent,
    next: usize,
    cycle: u32,
}

impl EventRing {
    /// An empty ring in a page that the controller does not use.
    pub fn new(memory: DmaCoherent) -> Self {
        clear(&memory);
        EventRing { memory, next: 0, cycle: CYCLE }
    }

    /// Its first entry.
    pub fn address(&self) -> Option<DeviceAddress> {
        self.memory.address(0)
    }

    /// Whether there is an entry that was not taken.
    pub fn has_any(&self) -> bool {
        self.memory.load::<u32>(self.next * TRB_BYTES + 12) & CYCLE == self.cycle
    }

    /// Takes the next entry.
    pub fn pop(&mut self) -> Option<Event> {
        let at = self.next * TRB_BYTES;
        let control: u32 = self.memory.load(at + 12);
        if control & CYCLE != self.cycle {
            return None;
        }
        let event = Event { parameter: self.memory.load(at), status: self.memory.load(at + 8), control };
        self.next += 1;
        if self.next == ENTRIES {
            self.next = 0;
            self.cycle ^= CYCLE;
        }
        Some(event)
    }

    /// Up to where entries were taken, as the controller is told it: with the bit that lets it interrupt again.
    pub fn taken_address(&self) -> Option<DeviceAddress> {
        const HANDLER_BUSY: usize = 8;
        self.memory.address(self.next * TRB_BYTES + HANDLER_BUSY)
    }
}
