//! [`Device`] and [`Interrupt`].

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use refs::SpinLock;
use tasks::StaticRef;

use super::bus::{self, Bar, Identity};
use super::{ConfigAccess, FunctionId, Hole, MmioWindow};
use crate::arch::machine::messages::Vector;
use crate::arch::machine::pci as machine;
use crate::cpu::Named;
use crate::dma::Domain;
use crate::iommu;
use crate::irq::IrqCx;
use crate::mm::PAGE_SIZE;

const MSI_X: u8 = 0x11;
const MSI_X_ENABLED: u32 = 1 << 31;
const MSI_X_ALL_MASKED: u32 = 1 << 30;
const ENTRY_BYTES: usize = 16;
const ENTRY_MASKED: u32 = 1;
/// No driver uses more interrupts of one device.
const MOST_INTERRUPTS: usize = 64;

/// A function of the machine.
struct Function {
    identity: Identity,
    is_claimed: AtomicBool,
    domain: Domain,
    /// Bit n: entry n of its MSI-X table is in use.
    entries: AtomicU64,
    /// Its driver's, with the number that it is called with.
    fault_handler: Named<fn(&IrqCx, usize)>,
    fault_id: AtomicUsize,
}

static FUNCTIONS: StaticRef<Vec<Function>> = StaticRef::none();
/// The addresses that are free, once a function was claimed.
static HOLE: SpinLock<Option<Hole>> = SpinLock::new(None);

/// Finds out what is on the buses. Called once, at boot.
pub(crate) fn init() {
    let new = |identity| Function {
        identity,
        is_claimed: AtomicBool::new(false),
        domain: Domain::new(),
        entries: AtomicU64::new(0),
        fault_handler: Named::none(),
        fault_id: AtomicUsize::new(0),
    };
    let functions = bus::scan(&machine::Config).into_iter().map(new).collect();
    FUNCTIONS.set(Some(Box::leak(Box::new(functions))));
}

/// A function was kept from memory that it was not given: its driver hears of it.
pub(crate) fn faulted(id: FunctionId, cx: &IrqCx) {
    let Some(function) = functions().iter().find(|function| function.identity.id == id) else { return };
    function.domain.fault();
    if let Some(handler) = function.fault_handler.get() {
        handler(cx, function.fault_id.load(Ordering::Relaxed));
    }
}

fn functions() -> &'static [Function] {
    FUNCTIONS.get().map_or(&[], |functions| functions)
}

/// Where the interrupts of a function are routed.
struct Table {
    entries: MmioWindow,
    count: usize,
    /// The pages that no driver gets: its own, and those of the bits that say what is pending.
    kept: [Range<u64>; 2],
}

/// A device that its driver has to itself. Dropping it keeps it from memory for ever; nobody gets it again.
pub struct Device {
    function: &'static Function,
    bars: [Option<Bar>; 6],
    table: Option<Table>,
}

impl Device {
    /// Claims the first device that is `wanted` and that nobody has; `None` if there is none. One that is wanted and gets no addresses is left out, with a message.
    pub fn claim(wanted: impl Fn(&Identity) -> bool) -> Option<Self> {
        functions().iter().find_map(|function| {
            let is_free = wanted(&function.identity) && !function.is_claimed.swap(true, Ordering::Relaxed);
            if !is_free {
                return None;
            }
            let device = Self::open(function);
            if device.is_none() {
                crate::println!(
                    "ebb: PCI device {} gets no addresses, or no tables of the IOMMU: it is left out",
                    function.identity.id
                );
            }
            device
        })
    }

    fn open(function: &'static Function) -> Option<Self> {
        let config = &machine::Config;
        let identity = &function.identity;
        let bridge = functions().iter().find(|other| other.identity.secondary_bus == Some(identity.id.bus));
        let mut bars = bus::bars(config, identity);
        let has_all = HOLE.with(|hole| {
            let hole = hole.get_or_insert_with(hole_now);
            let bridge = bridge.map(|bridge| &bridge.identity);
            bus::assign(config, identity, &mut bars, bridge, hole, machine::is_for_devices)
        });
        if !has_all {
            return None;
        }
        iommu::init();
        if iommu::is_on() && !translate(function) {
            return None;
        }
        bus::enable_memory(config, identity.id);
        let mut device = Device { function, bars, table: None };
        device.table = device.find_table();
        Some(device)
    }

    /// What it is.
    pub fn identity(&self) -> &Identity {
        &self.function.identity
    }

    /// What it reaches in memory.
    pub fn domain(&self) -> &'static Domain {
        &self.function.domain
    }

    /// Lets it access memory.
    pub fn allow_dma(&self) {
        if self.function.domain.allow() {
            bus::set_bus_master(&machine::Config, self.identity().id, true);
        }
    }

    /// Keeps it from memory, for ever. Memory that it could access is freed where it is dropped from here on.
    pub fn cut_off(&self) {
        bus::set_bus_master(&machine::Config, self.identity().id, false);
        iommu::cut_off(self.identity().id);
        self.function.domain.cut_off();
    }

    /// Has `handler` called with `id` when an IOMMU has stopped the device: what it works on may never be done. It is called once.
    pub fn on_fault(&self, handler: fn(&IrqCx, usize), id: usize) {
        self.function.fault_id.store(id, Ordering::Relaxed);
        self.function.fault_handler.set(handler);
    }

    /// Its capabilities: the number of each, and where it is in the configuration space.
    pub fn capabilities(&self) -> impl Iterator<Item = (u8, u16)> {
        bus::capabilities(&machine::Config, self.identity().id)
    }

    /// The 32 bits at `register`, a multiple of 4, of its configuration space (256 bytes).
    pub fn config(&self, register: u16) -> u32 {
        machine::Config.read(self.identity().id, register & 0xfc)
    }

    /// A window onto its registers: `len` bytes from `offset` in the range of that number. `None` if they are not there, or a part of what decides where its interrupts go.
    pub fn window(&self, bar: usize, offset: u64, len: u64) -> Option<MmioWindow> {
        let range = self.range(bar, offset, len)?;
        let is_kept = |kept: &Range<u64>| kept.start < range.end && range.start < kept.end;
        if self.table.as_ref().is_some_and(|table| table.kept.iter().any(is_kept)) {
            return None;
        }
        map(range)
    }

    fn range(&self, bar: usize, offset: u64, len: u64) -> Option<Range<u64>> {
        let bar = (*self.bars.get(bar)?)?;
        let is_within = len > 0 && offset.checked_add(len).is_some_and(|end| end <= bar.len);
        is_within.then(|| bar.base + offset..bar.base + offset + len)
    }

    fn find_table(&self) -> Option<Table> {
        let (_, place) = self.capabilities().find(|(id, _)| *id == MSI_X)?;
        let count = (self.config(place) >> 16 & 0x7ff) as usize + 1;
        let locate = |register, len: usize| {
            let location = self.config(register);
            self.range((location & 7) as usize, u64::from(location & !7), len as u64)
        };
        let table = locate(place + 4, count * ENTRY_BYTES)?;
        let pending = locate(place + 8, count.div_ceil(64) * 8)?;
        let entries = map(table.clone())?;
        for entry in 0..count {
            entries.write(entry * ENTRY_BYTES + 12, ENTRY_MASKED);
        }
        let page = PAGE_SIZE as u64;
        let pages = |range: Range<u64>| range.start & !(page - 1)..range.end.next_multiple_of(page);
        let control = machine::Config.read(self.identity().id, place);
        machine::Config.write(self.identity().id, place, control & !MSI_X_ALL_MASKED | MSI_X_ENABLED);
        Some(Table { entries, count, kept: [pages(table), pages(pending)] })
    }

    /// How many interrupts it can have.
    pub fn interrupts(&self) -> usize {
        self.table.as_ref().map_or(0, |table| table.count.min(MOST_INTERRUPTS))
    }

    /// Has the device's interrupt of that number handled by `handler`, called with `id`, on a core. `None` if it has no such interrupt, it is in use, or there are no vectors left.
    ///
    /// An interrupt may arrive once more after it was dropped, as one of whoever has its vector then: handlers are called without a reason at times.
    pub fn interrupt(&self, number: usize, core: usize, handler: fn(&IrqCx, usize), id: usize) -> Option<Interrupt> {
        let table = self.table.as_ref()?;
        if number >= self.interrupts() {
            return None;
        }
        let bit = 1 << number;
        if self.function.entries.fetch_or(bit, Ordering::Relaxed) & bit != 0 {
            return None;
        }
        let Some(vector) = Vector::take(handler, id) else {
            self.function.entries.fetch_and(!bit, Ordering::Relaxed);
            return None;
        };
        let (address, data) = iommu::message(self.identity().id, &vector, core);
        let at = number * ENTRY_BYTES;
        table.entries.write(at, address);
        table.entries.write(at + 4, 0_u32);
        table.entries.write(at + 8, data);
        table.entries.write(at + 12, 0_u32);
        Some(Interrupt { function: self.function, entry: table.entries.part(at, ENTRY_BYTES)?, number, vector })
    }
}

/// Gives a function a translation; whether it has one. It must ask for memory by its own number: all bridges on the way to it are of PCI Express.
fn translate(function: &'static Function) -> bool {
    let id = function.identity.id;
    let mut bus = id.bus;
    for _ in functions() {
        let Some(bridge) = functions().iter().find(|other| other.identity.secondary_bus == Some(bus)) else { break };
        if !bus::passes_sources_on(&machine::Config, bridge.identity.id) {
            crate::println!("ebb: PCI device {id} is behind a bridge that hides it from the IOMMU");
            return false;
        }
        bus = bridge.identity.id.bus;
    }
    let translation = iommu::attach(id);
    if let Some(translation) = translation {
        function.domain.translate(translation);
    }
    translation.is_some()
}

impl Drop for Device {
    fn drop(&mut self) {
        self.cut_off();
    }
}

/// An interrupt of a device. It is masked when this is dropped.
pub struct Interrupt {
    function: &'static Function,
    entry: MmioWindow,
    number: usize,
    vector: Vector,
}

#[cfg(feature = "selftest")]
impl Interrupt {
    /// Has the device send that message instead, as one that is broken may.
    pub(crate) fn forge(&self, (address, data): (u32, u32)) {
        self.entry.write(0, address);
        self.entry.write(8, data);
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.entry.write(12, ENTRY_MASKED);
        // The mask is there before the vector is somebody else's.
        let _: u32 = self.entry.read(12);
        iommu::forget_message(&self.vector);
        self.function.entries.fetch_and(!(1 << self.number), Ordering::Relaxed);
    }
}

/// The addresses that no memory and no function has.
fn hole_now() -> Hole {
    let mut hole = machine::hole();
    for function in functions() {
        for bar in bus::bars(&machine::Config, &function.identity).into_iter().flatten() {
            if bar.base != 0 {
                hole.take(bar.range());
            }
        }
    }
    hole
}

/// A window onto registers.
fn map(range: Range<u64>) -> Option<MmioWindow> {
    let base = machine::map(range.clone())?;
    // SAFETY: mapped just now, for ever; nobody but devices answers to these addresses. What a device does to memory because of them is a matter of its domain.
    Some(unsafe { MmioWindow::new(base, (range.end - range.start) as usize) })
}
