//! All units of the machine, and the table that says which device has which tables.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use refs::SpinLock;
use tasks::StaticRef;

use super::interrupts::Interrupts;
use super::unit::{self, Fault, Unit};
use super::{Forget, Tables, Translation};
use crate::acpi::Remapping;
use crate::arch::machine::messages::{self, Vector};
use crate::arch::machine::{apic, ioapic, pci as machine};
use crate::irq::IrqCx;
use crate::mm::{PAGE_SIZE, USegment};
use crate::pci::{self, FunctionId, MmioWindow};

/// Entries of the two tables (9.1, 9.3): it is there; faults are not recorded.
const PRESENT: u64 = 1;
const SILENT: u64 = 2;
const ENTRY_BYTES: usize = 16;
const DOMAIN_SHIFT: u32 = 8;
/// So many faults an interrupt takes at most: a fault's device is silent from then on, so there are not many.
const AT_ONCE: usize = 64;

/// The reasons from here on are of interrupts (7.2.3).
const FIRST_OF_INTERRUPTS: u8 = 0x20;

struct Iommu {
    units: Vec<Unit>,
    devices: SpinLock<Devices>,
    /// None where not all units can remap them.
    interrupts: Option<Interrupts>,
    levels: u32,
    is_coherent: bool,
    remembers_absence: bool,
    domains: u32,
    last_domain: AtomicU32,
    _faults: Vector,
}

/// Which device has which tables: an entry for each bus, which leads to a table with one for each device.
struct Devices {
    root: USegment,
    buses: Vec<Option<USegment>>,
}

static IOMMU: StaticRef<Iommu> = StaticRef::none();
static IS_TRIED: SpinLock<bool> = SpinLock::new(false);

/// Finds the units and has them translate, if that was not tried before. Until a device is [attached](attach) it reaches nothing from then on.
pub(crate) fn init() {
    IS_TRIED.with(|is_tried| {
        if core::mem::replace(is_tried, true) {
            return;
        }
        let Some(remapping) = machine::remapping() else { return };
        match Iommu::begin(&remapping) {
            Ok(iommu) => {
                let interrupts = if iommu.interrupts.is_some() { "" } else { "; their interrupts are not remapped" };
                let count = iommu.units.len();
                crate::println!("ebb: IOMMU: {count} unit(s), devices reach what they are given{interrupts}");
            }
            Err(why) => crate::println!("ebb: the IOMMU cannot be used: {why}"),
        }
    });
}

/// Whether all devices reach only what they are given.
pub(crate) fn is_on() -> bool {
    IOMMU.get().is_some()
}

fn window(place: u64) -> Option<MmioWindow> {
    let map = |len: usize| {
        let base = machine::map_unit(place..place.checked_add(len as u64)?)?;
        // SAFETY: mapped just now, for ever. The firmware says that a unit is there, which accesses the memory that this module gives it and no other.
        Some(unsafe { MmioWindow::new(base, len) })
    };
    map(unit::registers_len(&map(PAGE_SIZE)?))
}

impl Iommu {
    fn begin(remapping: &Remapping) -> Result<&'static Self, &'static str> {
        let mut units = Vec::new();
        for place in &remapping.units {
            units.push(Unit::new(window(*place).ok_or("its registers cannot be reached")?)?);
        }
        let common = units.iter().fold(u32::MAX, |levels, unit| levels & unit.levels());
        let levels = [3, 4].into_iter().find(|levels| common & 1 << (levels - 2) != 0);
        let vector = Vector::take(faulted, 0).ok_or("there is no interrupt left for it")?;
        let message = messages::message(&vector, 0);
        let mut buses = Vec::new();
        buses.resize_with(256, || None);
        let root = USegment::zeroed(0).ok_or("there is no memory for its tables")?;
        root.write_all_back();
        let address = root.address();
        let is_wide = apic::is_wide();
        let interrupts = if units.iter().all(|unit| unit.remaps_interrupts(is_wide)) {
            Some(Interrupts::new(is_wide, remapping.io_apic).ok_or("there is no memory for its tables")?)
        } else {
            None
        };
        let iommu: &'static Iommu = Box::leak(Box::new(Iommu {
            devices: SpinLock::new(Devices { root, buses }),
            interrupts,
            levels: levels.ok_or("its tables have neither three levels nor four")?,
            is_coherent: units.iter().all(Unit::is_coherent),
            remembers_absence: units.iter().any(Unit::remembers_absence),
            domains: units.iter().map(Unit::domains).min().unwrap_or(0),
            last_domain: AtomicU32::new(0),
            units,
            _faults: vector,
        }));
        // Where one fails the units before it go on, so that their devices reach nothing.
        for unit in &iommu.units {
            unit.begin(address)?;
        }
        iommu.remap_interrupts()?;
        IOMMU.set(Some(iommu));
        for unit in &iommu.units {
            unit.report_faults(message);
        }
        Ok(iommu)
    }

    /// From now on interrupts go through the table, if there is one.
    fn remap_interrupts(&self) -> Result<(), &'static str> {
        let Some(interrupts) = &self.interrupts else { return Ok(()) };
        ioapic::use_table();
        self.units.iter().try_for_each(|unit| unit.remap_interrupts(interrupts.address(), interrupts.is_wide))
    }

    /// Asks something of all units, also where one fails; whether all have done it.
    fn all(&self, ask: impl Fn(&Unit) -> bool) -> bool {
        self.units.iter().filter(|unit| !ask(unit)).count() == 0
    }

    /// Changes the entry of a device. `None` if there is no memory for the table of its bus.
    fn set(&self, source: u16, change: impl FnOnce((u64, u64)) -> (u64, u64) + Send) -> Option<()> {
        self.devices.with(|devices| {
            let (bus, at) = (usize::from(source >> 8), usize::from(source & 0xff) * ENTRY_BYTES);
            let table = devices.buses.get_mut(bus)?;
            if table.is_none() {
                let new = USegment::zeroed(0)?;
                new.write_all_back();
                devices.root.store_word(bus * ENTRY_BYTES, new.address() | PRESENT);
                devices.root.write_back(bus * ENTRY_BYTES);
                *table = Some(new);
            }
            let table = table.as_ref()?;
            let (low, high) = change((table.load(at), table.load(at + 8)));
            // It is not there while it changes.
            table.store_word(at, low & !PRESENT);
            table.store_word(at + 8, high);
            table.store_word(at, low);
            table.write_back(at);
            Some(())
        })?;
        self.all(Unit::forget_devices).then_some(())
    }
}

fn forget(domain: u16, what: Forget<'_>) -> bool {
    IOMMU.get().is_none_or(|iommu| iommu.all(|unit| unit.forget(domain, what)))
}

/// Gives a device tables of its own, which let it reach nothing yet. `None` if there is no memory, or there are no more domains.
pub(crate) fn attach(id: FunctionId) -> Option<&'static Translation> {
    let iommu = IOMMU.get()?;
    let tables = Tables::new(iommu.levels, iommu.is_coherent)?;
    let root = tables.root();
    let domain = iommu.last_domain.fetch_add(1, Ordering::Relaxed) + 1;
    let domain = u16::try_from(domain).ok().filter(|_| domain < iommu.domains)?;
    let high = u64::from(domain) << DOMAIN_SHIFT | u64::from(iommu.levels - 2);
    iommu.set(id.source(), |_| (root | PRESENT, high))?;
    Some(Box::leak(Box::new(Translation::new(domain, tables, iommu.remembers_absence, forget))))
}

/// A device reaches nothing any more, and its faults are not recorded; whether the units know.
pub(crate) fn cut_off(id: FunctionId) -> bool {
    IOMMU.get().is_none_or(|iommu| iommu.set(id.source(), |_| (SILENT, 0)).is_some())
}

/// The message by which a device interrupts a core with a vector: address and data.
pub(crate) fn message(id: FunctionId, vector: &Vector, core: usize) -> (u32, u32) {
    let Some((iommu, interrupts)) = IOMMU.get().and_then(|iommu| Some((iommu, iommu.interrupts.as_ref()?))) else {
        return messages::message(vector, core);
    };
    let message = interrupts.set(vector.number(), Some(id.source()), messages::controller(core));
    // A unit that does not answer lets the device interrupt as before, which is not at all.
    iommu.all(|unit| unit.forget_message(vector.number()));
    message
}

/// A device interrupts with a vector no more.
pub(crate) fn forget_message(vector: &Vector) {
    if let Some((iommu, interrupts)) = IOMMU.get().and_then(|iommu| Some((iommu, iommu.interrupts.as_ref()?))) {
        interrupts.clear(vector.number());
        // One that does not answer may interrupt with it once more: handlers are called without a reason at times.
        iommu.all(|unit| unit.forget_message(vector.number()));
    }
}

/// Devices tried to reach what they were not given. Each is reported once, and its further faults are not recorded.
fn faulted(cx: &IrqCx, _: usize) {
    let Some(iommu) = IOMMU.get() else { return };
    for unit in &iommu.units {
        for _ in 0..AT_ONCE {
            let Some(fault) = unit.next_fault() else { break };
            iommu.report(&fault, cx);
        }
    }
}

impl Iommu {
    fn report(&self, fault: &Fault, cx: &IrqCx) {
        let mut was_silent = false;
        // Without memory for the table of a bus its devices are reported again.
        let _ = self.set(fault.source, |(low, high)| {
            was_silent = low & SILENT != 0;
            (low | SILENT, high)
        });
        if was_silent {
            return;
        }
        let id = FunctionId::of_source(fault.source);
        let (reason, address) = (fault.reason, fault.address);
        let tried = match (reason, fault.is_read) {
            (FIRST_OF_INTERRUPTS.., _) => "interrupt",
            (_, true) => "read",
            (_, false) => "write",
        };
        crate::println!(
            "ebb: IOMMU: PCI device {id} was stopped: it tried to {tried} at {address:#x} (reason {reason})"
        );
        pci::faulted(id, cx);
    }
}
