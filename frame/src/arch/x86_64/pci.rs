//! The way to PCI: its configuration space, and the addresses at which devices can be.
//!
//! Where the old ports answer they are used: they reach all that is needed, and to ask them is quicker than to find and map the configuration space in memory, which is what machines without them have.

use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use refs::RawSpin;
use tasks::StaticRef;

use super::kernel_map::{self, DIRECT_MAP};
use super::memory_map::LoaderInfo;
use super::{cores, port};
use crate::acpi;
use crate::pci::{ConfigAccess, FunctionId, Hole};

/// The ports through which the configuration space can be reached: first the address is written, then the data are read or written.
const ADDRESS: u16 = 0xcf8;
const DATA: u16 = 0xcfc;
const ENABLED: u32 = 1 << 31;

/// Where devices are that have no addresses yet: behind all memory, and where no machine has any.
const HOLE: Range<u64> = 0xc000_0000..0xfec0_0000;
/// From here to the end of 32-bit addresses are the interrupt controllers and the firmware.
const CONTROLLERS: Range<u64> = 0xfec0_0000..0x1_0000_0000;
/// The direct map has tables of the top level for addresses below.
const LIMIT: u64 = 1 << 39;
const PAGE: u64 = 4096;

static LOADER_INFO: StaticRef<LoaderInfo> = StaticRef::none();
/// Where the configuration space is in memory; 0: it is not, or nobody has looked.
static BASE: AtomicU64 = AtomicU64::new(0);
static LAST_BUS: AtomicU64 = AtomicU64::new(255);
static HAS_PORTS: AtomicBool = AtomicBool::new(false);
/// Of the two ports one at a time may use them.
static PORTS: RawSpin = RawSpin::new();

/// Finds the configuration space. Called once, at boot, before [`crate::pci::init`].
pub fn init(info: &'static LoaderInfo) {
    LOADER_INFO.set(Some(info));
    // SAFETY: the port reaches nothing but the configuration space, and only with the other one.
    let has_ports = unsafe {
        port::write_u32(ADDRESS, ENABLED);
        port::read_u32(ADDRESS) == ENABLED
    };
    HAS_PORTS.store(has_ports, Ordering::Relaxed);
    if !has_ports {
        find_in_memory();
    }
}

/// Finds out where the configuration space is in memory.
fn find_in_memory() {
    let pointer = LOADER_INFO.get().and_then(|info| info.root_pointer);
    let space = pointer.and_then(|pointer| acpi::config_space(&cores::DirectMap, pointer));
    if let Some(space) = space
        && space.base + ((u64::from(space.last_bus) + 1) << 20) <= LIMIT
    {
        LAST_BUS.store(space.last_bus.into(), Ordering::Relaxed);
        BASE.store(space.base, Ordering::Relaxed);
    }
}

fn config_space() -> Option<Range<u64>> {
    let base = BASE.load(Ordering::Relaxed);
    (base != 0).then(|| base..base + ((LAST_BUS.load(Ordering::Relaxed) + 1) << 20))
}

/// The configuration space.
pub struct Config;

impl Config {
    /// Where a register is in memory; `None` if ports lead to it.
    fn register(&self, id: FunctionId, register: u16) -> Option<*mut u32> {
        let space = config_space().filter(|_| !HAS_PORTS.load(Ordering::Relaxed))?;
        let page = space.start
            + (u64::from(id.bus) << 20 | u64::from(id.device & 31) << 15 | u64::from(id.function & 7) << 12);
        if page >= space.end {
            return None;
        }
        let page = map_page(page)?;
        Some(core::ptr::with_exposed_provenance_mut(page + usize::from(register & 0xffc)))
    }
}

/// What is written to the address port.
fn address(id: FunctionId, register: u16) -> u32 {
    let (bus, device, function) = (u32::from(id.bus), u32::from(id.device & 31), u32::from(id.function & 7));
    ENABLED | bus << 16 | device << 11 | function << 8 | u32::from(register & 0xfc)
}

impl ConfigAccess for Config {
    fn read(&self, id: FunctionId, register: u16) -> u32 {
        if let Some(register) = self.register(id, register) {
            // SAFETY: mapped; the configuration space is read 32 bits at a time.
            return unsafe { register.read_volatile() };
        }
        PORTS.lock();
        // SAFETY: these ports reach nothing but the configuration space.
        let value = unsafe {
            port::write_u32(ADDRESS, address(id, register));
            port::read_u32(DATA)
        };
        PORTS.unlock();
        value
    }

    fn write(&self, id: FunctionId, register: u16, value: u32) {
        if let Some(register) = self.register(id, register) {
            // SAFETY: as above. That a function accesses no memory which it must not is the callers' matter: only `crate::pci` has this.
            unsafe { register.write_volatile(value) };
            return;
        }
        PORTS.lock();
        // SAFETY: as above.
        unsafe {
            port::write_u32(ADDRESS, address(id, register));
            port::write_u32(DATA, value);
        }
        PORTS.unlock();
    }

    fn last_bus(&self) -> u8 {
        LAST_BUS.load(Ordering::Relaxed) as u8
    }
}

fn ram() -> impl Iterator<Item = Range<u64>> {
    let info = LOADER_INFO.get();
    info.into_iter().flat_map(|info| info.ram.as_slice()).map(|range| range.start as u64..range.end as u64)
}

/// The addresses that can be given to devices, as far as the machine says.
pub fn hole() -> Hole {
    // It may be there beside the ports.
    find_in_memory();
    let memory_end = ram().map(|range| range.end).filter(|end| *end <= HOLE.end).max().unwrap_or(0);
    let mut hole = Hole::new(HOLE.start.max(memory_end)..HOLE.end);
    if let Some(space) = config_space() {
        hole.take(space);
    }
    hole
}

/// Whether devices can be at addresses: there is no memory, no controller of the machine's own, and they can be mapped.
pub fn is_for_devices(range: Range<u64>) -> bool {
    let overlaps = |other: Range<u64>| other.start < range.end && range.start < other.end;
    let low = 0..1 << 20;
    range.end <= LIMIT && !ram().chain([low, CONTROLLERS]).chain(config_space()).any(overlaps)
}

/// Maps the registers of devices at addresses, for ever; where the first is. `None` if there can be none, or there is no memory for a table.
pub fn map(range: Range<u64>) -> Option<usize> {
    if !is_for_devices(range.clone()) {
        return None;
    }
    for page in (range.start & !(PAGE - 1)..range.end).step_by(PAGE as usize) {
        map_page(page)?;
    }
    Some(DIRECT_MAP + range.start as usize)
}

/// The machine's remapping units, if it has any, as the firmware says.
pub fn remapping() -> Option<acpi::Remapping> {
    acpi::remapping(&cores::DirectMap, LOADER_INFO.get()?.root_pointer?)
}

/// Maps the registers of a remapping unit, for ever; where the first is. `None` if there can be none, or there is no memory for a table.
pub fn map_unit(range: Range<u64>) -> Option<usize> {
    let overlaps = |other: Range<u64>| other.start < range.end && range.start < other.end;
    let low = 0..1 << 20;
    if !range.start.is_multiple_of(PAGE) || range.end > LIMIT || ram().chain([low]).chain(config_space()).any(overlaps)
    {
        return None;
    }
    for page in range.clone().step_by(PAGE as usize) {
        map_page(page)?;
    }
    Some(DIRECT_MAP + range.start as usize)
}

/// Maps a page of registers; where it is.
fn map_page(page: u64) -> Option<usize> {
    let page = page as usize;
    if !kernel_map::is_mapped(DIRECT_MAP + page) {
        // SAFETY: registers: the configuration space, or what `map` has looked at.
        unsafe { kernel_map::map_device(page) }?;
    }
    Some(DIRECT_MAP + page)
}
