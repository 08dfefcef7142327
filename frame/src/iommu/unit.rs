//! [`Unit`]: one remapping unit (specification, chapters 6, 7 and 11).

use refs::SpinLock;

use super::{Forget, MOST_PAGES};
use crate::mm::{PAGE_SIZE, USegment};
use crate::pci::MmioWindow;

/// Registers (11.4).
const CAPABILITIES: usize = 0x08;
const EXTENDED: usize = 0x10;
const COMMAND: usize = 0x18;
const STATUS: usize = 0x1c;
const ROOT: usize = 0x20;
const FAULT_STATUS: usize = 0x34;
const FAULT_CONTROL: usize = 0x38;
const FAULT_DATA: usize = 0x3c;
const FAULT_ADDRESS: usize = 0x40;
const QUEUE_TAIL: usize = 0x88;
const QUEUE_ADDRESS: usize = 0x90;

const INTERRUPT_TABLE: usize = 0xb8;

/// Bits of the command and the status.
const TRANSLATION: u32 = 1 << 31;
const SET_ROOT: u32 = 1 << 30;
const QUEUE: u32 = 1 << 26;
const INTERRUPTS: u32 = 1 << 25;
const SET_INTERRUPT_TABLE: u32 = 1 << 24;
/// Commands that happen once; all other bits of the status are what a command has to repeat.
const ONCE: u32 = 1 << 30 | 1 << 29 | 1 << 27 | 1 << 24;

/// Bits of the capabilities.
const NEEDS_FLUSHES: u64 = 1 << 4;
const REMEMBERS_ABSENCE: u64 = 1 << 7;
const FORGETS_PAGES: u64 = 1 << 39;
/// Bits of the extended ones.
const IS_COHERENT: u64 = 1 << 0;
const HAS_QUEUE: u64 = 1 << 1;
const REMAPS_INTERRUPTS: u64 = 1 << 3;
const IS_WIDE: u64 = 1 << 4;

/// In the interrupt table's register: controllers have numbers of 32 bits; there are 256 entries.
const WIDE: u64 = 1 << 11;
const PAGE_OF_ENTRIES: u64 = 7;

/// Bits of the fault status that are cleared by writing them: faults were lost; the queue has failed.
const FAULT_LOST: u32 = 1;
const QUEUE_FAILED: u32 = 1 << 4;
const FAULT_BYTES: usize = 16;
/// In the last of a fault's four words: it is one; the device wanted to read.
const IS_FAULT: u32 = 1 << 31;
const IS_READ: u32 = 1 << 30;

/// Descriptors (6.5.2): what to forget, and of how much.
const CONTEXT: u64 = 1;
const PAGES: u64 = 2;
const MESSAGES: u64 = 4;
const WAIT: u64 = 5;
const GLOBALLY: u64 = 1 << 4;
const OF_INDEX: u64 = 1 << 4;
const OF_DOMAIN: u64 = 2 << 4;
const OF_PAGE: u64 = 3 << 4;
/// Reads and writes that are under way end before.
const DRAINED: u64 = 3 << 6;
const WRITES_STATUS: u64 = 1 << 5;
const DOMAIN_SHIFT: u32 = 16;
const STATUS_SHIFT: u32 = 32;
const INDEX_SHIFT: u32 = 32;

const DESCRIPTOR_BYTES: usize = 16;
/// The queue is one page; the word that a unit writes when it is done is in the next.
const QUEUE_BYTES: usize = PAGE_SIZE;
const DONE_AT: usize = PAGE_SIZE;
/// More than any unit takes for anything, in nanoseconds.
const LIMIT: u64 = 1_000_000_000;

/// A device tried to reach what it was not given.
pub(super) struct Fault {
    /// Bus, device and function.
    pub(super) source: u16,
    pub(super) address: u64,
    pub(super) is_read: bool,
    /// The specification's number for it (7.2.3).
    pub(super) reason: u8,
}

/// A remapping unit.
pub(super) struct Unit {
    registers: MmioWindow,
    queue: SpinLock<Queue>,
}

struct Queue {
    memory: USegment,
    tail: usize,
    /// What the unit writes when it has done all that was asked.
    sequence: u32,
    /// It did not answer once, and is not asked again.
    is_dead: bool,
}

/// How many bytes of registers a unit has, by its first page.
pub(super) fn registers_len(first: &MmioWindow) -> usize {
    let capabilities: u64 = first.read(CAPABILITIES);
    (fault_place(capabilities) + fault_count(capabilities) * FAULT_BYTES).next_multiple_of(PAGE_SIZE)
}

fn fault_place(capabilities: u64) -> usize {
    (capabilities >> 24 & 0x3ff) as usize * 16
}

fn fault_count(capabilities: u64) -> usize {
    (capabilities >> 40 & 0xff) as usize + 1
}

impl Unit {
    /// A unit with these registers; the error says why it cannot be used.
    pub(super) fn new(registers: MmioWindow) -> Result<Self, &'static str> {
        let capabilities: u64 = registers.read(CAPABILITIES);
        let extended: u64 = registers.read(EXTENDED);
        if capabilities == u64::MAX || extended & HAS_QUEUE == 0 || capabilities & NEEDS_FLUSHES != 0 {
            return Err("it is too old");
        }
        let memory = USegment::zeroed(1).ok_or("there is no memory for its queue")?;
        let queue = Queue { memory, tail: 0, sequence: 0, is_dead: false };
        Ok(Unit { registers, queue: SpinLock::new(queue) })
    }

    fn capabilities(&self) -> u64 {
        self.registers.read(CAPABILITIES)
    }

    /// Bit n: it walks tables of n + 2 levels.
    pub(super) fn levels(&self) -> u32 {
        (self.capabilities() >> 8 & 0x1f) as u32
    }

    /// How many domains it tells apart.
    pub(super) fn domains(&self) -> u32 {
        1 << (4 + 2 * (self.capabilities() & 7).min(6))
    }

    /// Whether it sees what is in the processor's cache.
    pub(super) fn is_coherent(&self) -> bool {
        self.registers.read::<u64>(EXTENDED) & IS_COHERENT != 0
    }

    /// Whether it remembers that there was nothing.
    pub(super) fn remembers_absence(&self) -> bool {
        self.capabilities() & REMEMBERS_ABSENCE != 0
    }

    /// Changes a bit of its command, and waits until the status says so.
    fn command(&self, bit: u32) -> Result<(), &'static str> {
        let repeated = self.registers.read::<u32>(STATUS) & !ONCE;
        self.registers.write(COMMAND, repeated | bit);
        until(|| self.registers.read::<u32>(STATUS) & bit != 0).then_some(()).ok_or("it does not answer")
    }

    /// Begins to translate by the table of devices at `root`.
    pub(super) fn begin(&self, root: u64) -> Result<(), &'static str> {
        self.registers.write(ROOT, root);
        self.command(SET_ROOT)?;
        self.registers.write(QUEUE_TAIL, 0_u64);
        self.registers.write(QUEUE_ADDRESS, self.queue.with(|queue| queue.memory.address()));
        self.command(QUEUE)?;
        if !self.ask(&[(CONTEXT | GLOBALLY, 0), (PAGES | GLOBALLY | DRAINED, 0)]) {
            return Err("its queue does not answer");
        }
        self.command(TRANSLATION)
    }

    /// From now on its faults are messages, those that there were as well.
    pub(super) fn report_faults(&self, (address, data): (u32, u32)) {
        self.registers.write(FAULT_DATA, data);
        self.registers.write(FAULT_ADDRESS, address);
        self.registers.write(FAULT_ADDRESS + 4, 0_u32);
        self.registers.write(FAULT_CONTROL, 0_u32);
    }

    /// Whether it can remap interrupts, to controllers with numbers of 32 bits if that is asked for.
    pub(super) fn remaps_interrupts(&self, is_wide: bool) -> bool {
        let needed = REMAPS_INTERRUPTS | if is_wide { IS_WIDE } else { 0 };
        self.registers.read::<u64>(EXTENDED) & needed == needed
    }

    /// Begins to send interrupts through the table at `table`.
    pub(super) fn remap_interrupts(&self, table: u64, is_wide: bool) -> Result<(), &'static str> {
        let width = if is_wide { WIDE } else { 0 };
        self.registers.write(INTERRUPT_TABLE, table | width | PAGE_OF_ENTRIES);
        self.command(SET_INTERRUPT_TABLE)?;
        if !self.ask(&[(MESSAGES, 0)]) {
            return Err("its queue does not answer");
        }
        self.command(INTERRUPTS)
    }

    /// Has it forget an entry of the table of interrupts; whether it says that it has.
    pub(super) fn forget_message(&self, index: usize) -> bool {
        self.ask(&[(MESSAGES | OF_INDEX | (index as u64) << INDEX_SHIFT, 0)])
    }

    /// Has it forget what it knows of pages; whether it says that it has.
    pub(super) fn forget(&self, domain: u16, what: Forget<'_>) -> bool {
        let domain = u64::from(domain) << DOMAIN_SHIFT;
        let mut asked = [(PAGES | OF_DOMAIN | DRAINED | domain, 0); MOST_PAGES];
        match what {
            Forget::Pages(pages) if self.capabilities() & FORGETS_PAGES != 0 && pages.len() <= MOST_PAGES => {
                for (descriptor, page) in asked.iter_mut().zip(pages) {
                    let address = u64::from(page.0) * PAGE_SIZE as u64;
                    *descriptor = (PAGES | OF_PAGE | DRAINED | domain, address);
                }
                self.ask(asked.get(..pages.len()).unwrap_or_default())
            }
            _ => self.ask(&asked[..1]),
        }
    }

    /// Has it forget what the table of devices said, and all pages; whether it says that it has.
    pub(super) fn forget_devices(&self) -> bool {
        self.ask(&[(CONTEXT | GLOBALLY, 0), (PAGES | GLOBALLY | DRAINED, 0)])
    }

    /// Asks for something, and waits until it is done; whether it is.
    fn ask(&self, descriptors: &[(u64, u64)]) -> bool {
        let must_write_back = !self.is_coherent();
        self.queue.with(|queue| {
            if queue.is_dead {
                return false;
            }
            queue.sequence = queue.sequence.wrapping_add(1);
            let done = queue.memory.address() + DONE_AT as u64;
            let wait = (WAIT | WRITES_STATUS | u64::from(queue.sequence) << STATUS_SHIFT, done);
            for (low, high) in descriptors.iter().copied().chain([wait]) {
                queue.memory.store_word(queue.tail, low);
                queue.memory.store_word(queue.tail + 8, high);
                if must_write_back {
                    queue.memory.write_back(queue.tail);
                }
                queue.tail = (queue.tail + DESCRIPTOR_BYTES) % QUEUE_BYTES;
            }
            self.registers.write(QUEUE_TAIL, queue.tail as u64);
            queue.is_dead = !until(|| queue.memory.load::<u32>(DONE_AT) == queue.sequence);
            !queue.is_dead
        })
    }

    /// Takes a fault out of its records.
    pub(super) fn next_fault(&self) -> Option<Fault> {
        let capabilities = self.capabilities();
        let records = (0..fault_count(capabilities)).map(|index| fault_place(capabilities) + index * FAULT_BYTES);
        for at in records {
            let last: u32 = self.registers.read(at + 12);
            if last & IS_FAULT == 0 || last == u32::MAX {
                continue;
            }
            let address = self.registers.read::<u64>(at) & !(PAGE_SIZE as u64 - 1);
            let source = self.registers.read::<u32>(at + 8) as u16;
            self.registers.write(at + 12, IS_FAULT);
            return Some(Fault { source, address, is_read: last & IS_READ != 0, reason: last as u8 });
        }
        // The next one is a new message.
        self.registers.write(FAULT_STATUS, FAULT_LOST | QUEUE_FAILED);
        None
    }
}

/// Waits until something holds; false if it does not within the limit.
fn until(holds: impl Fn() -> bool) -> bool {
    let limit = crate::time::now() + LIMIT;
    while !holds() {
        if crate::time::now() > limit {
            return false;
        }
        core::hint::spin_loop();
    }
    true
}
