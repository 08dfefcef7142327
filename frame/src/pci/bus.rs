//! What is on the buses, and where its registers are (PCI Local Bus Specification 3.0, chapter 6; PCI-to-PCI Bridge Architecture Specification 1.2, chapter 3).
//!
//! Nothing here touches hardware: the configuration space comes in as a [`ConfigAccess`].
//!
//! Firmware such as SeaBIOS gives all functions their addresses; `qboot`, which starts kernels quickly, gives none. So a function that is [claimed](super::Device::claim) gets what it
//! lacks: addresses in the hole of the address space that no memory and no other function uses, and a bridge before it a window around them.

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

/// Where a function is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionId {
    pub(crate) bus: u8,
    pub(crate) device: u8,
    pub(crate) function: u8,
}

impl FunctionId {
    /// The number with which it asks for memory.
    pub(crate) fn source(self) -> u16 {
        u16::from(self.bus) << 8 | u16::from(self.device & 31) << 3 | u16::from(self.function & 7)
    }

    /// Which function has that number.
    pub(crate) fn of_source(source: u16) -> Self {
        FunctionId { bus: (source >> 8) as u8, device: source as u8 >> 3, function: source as u8 & 7 }
    }
}

impl fmt::Display for FunctionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x}:{:02x}.{}", self.bus, self.device, self.function)
    }
}

/// The way to the configuration space: 32 bits at a time, at multiples of 4. Where there is no function all bits are 1.
pub(crate) trait ConfigAccess {
    fn read(&self, id: FunctionId, register: u16) -> u32;
    fn write(&self, id: FunctionId, register: u16, value: u32);
    /// The last bus that can be reached.
    fn last_bus(&self) -> u8;
}

const COMMAND: u16 = 0x04;
const MEMORY_ENABLED: u32 = 1 << 1;
const BUS_MASTER: u32 = 1 << 2;
/// No interrupts but messages.
const LINE_DISABLED: u32 = 1 << 10;
/// Writing ones into the upper half, the status, would clear bits of it.
const COMMAND_BITS: u32 = 0xffff;
const FIRST_BAR: u16 = 0x10;
/// Of a bridge: its primary, secondary and subordinate bus.
const BUSES: u16 = 0x18;
/// Of a bridge: the first and the last megabyte that it passes on.
const WINDOW: u16 = 0x20;
const CAPABILITIES: u16 = 0x34;
const HAS_CAPABILITIES: u32 = 1 << 20;

/// What a function is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Where it is.
    pub id: FunctionId,
    /// Who made it.
    pub vendor: u16,
    /// What the maker calls it.
    pub device: u16,
    /// Class, subclass and programming interface, a byte each.
    pub class: u32,
    /// Of a bridge: the bus behind it.
    pub(crate) secondary_bus: Option<u8>,
}

/// A range of memory addresses that a function answers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bar {
    pub(crate) base: u64,
    pub(crate) len: u64,
    is_wide: bool,
}

impl Bar {
    pub(crate) fn range(&self) -> Range<u64> {
        self.base..self.base.saturating_add(self.len)
    }
}

/// All functions that there are. Bridges that no firmware has set up get a bus number.
pub(crate) fn scan(config: &impl ConfigAccess) -> Vec<Identity> {
    let mut found = Vec::new();
    let mut buses = alloc::vec![0_u8];
    let mut scanned = 0;
    while let Some(&bus) = buses.get(scanned) {
        scanned += 1;
        for device in 0..32 {
            scan_device(config, bus, device, &mut buses, &mut found);
        }
    }
    found
}

fn scan_device(config: &impl ConfigAccess, bus: u8, device: u8, buses: &mut Vec<u8>, found: &mut Vec<Identity>) {
    for function in 0..8 {
        let id = FunctionId { bus, device, function };
        let ids = config.read(id, 0);
        if ids as u16 == 0xffff {
            if function == 0 {
                return;
            }
            continue;
        }
        let header = config.read(id, 0x0c) >> 16;
        let secondary_bus = if header & 0x7f == 1 { bridge(config, id, buses) } else { None };
        let class = config.read(id, 0x08) >> 8;
        found.push(Identity { id, vendor: ids as u16, device: (ids >> 16) as u16, class, secondary_bus });
        if function == 0 && header & 0x80 == 0 {
            return;
        }
    }
}

/// The bus behind a bridge, which is to be scanned, too; `None` if it cannot be reached or was found before.
fn bridge(config: &impl ConfigAccess, id: FunctionId, buses: &mut Vec<u8>) -> Option<u8> {
    let numbers = config.read(id, BUSES);
    let mut secondary = (numbers >> 8) as u8;
    if secondary == 0 {
        secondary = buses.iter().max()?.checked_add(1)?;
        let new = numbers & 0xff00_0000 | u32::from(secondary) << 16 | u32::from(secondary) << 8 | u32::from(id.bus);
        config.write(id, BUSES, new);
    }
    if secondary > config.last_bus() || buses.contains(&secondary) {
        return None;
    }
    buses.push(secondary);
    Some(secondary)
}

/// Changes the command register: the bits of `on` are set, those of `off` cleared.
fn command(config: &impl ConfigAccess, id: FunctionId, on: u32, off: u32) {
    let old = config.read(id, COMMAND) & COMMAND_BITS;
    config.write(id, COMMAND, old & !off | on);
}

/// Lets a function answer to its addresses. Its interrupts are messages.
pub(crate) fn enable_memory(config: &impl ConfigAccess, id: FunctionId) {
    command(config, id, MEMORY_ENABLED | LINE_DISABLED, 0);
}

/// Whether what asks for memory behind a bridge does so by its own number: the bridge is a port of PCI Express (PCI Express Base Specification 5.0, 7.5.3.2).
pub(crate) fn passes_sources_on(config: &impl ConfigAccess, id: FunctionId) -> bool {
    const EXPRESS: u8 = 0x10;
    const PORTS: core::ops::RangeInclusive<u32> = 4..=6;
    let place = capabilities(config, id).find(|(capability, _)| *capability == EXPRESS);
    place.is_some_and(|(_, place)| PORTS.contains(&(config.read(id, place) >> 20 & 0xf)))
}

/// Lets a function access memory, or keeps it from it: what it wrote before is in memory when this returns.
pub(crate) fn set_bus_master(config: &impl ConfigAccess, id: FunctionId, is_master: bool) {
    if is_master {
        command(config, id, BUS_MASTER, 0);
    } else {
        command(config, id, 0, BUS_MASTER);
    }
    // Reading pushes what the function wrote before it.
    config.read(id, COMMAND);
}

/// The capabilities of a function: the number and place of each.
pub(crate) fn capabilities(config: &impl ConfigAccess, id: FunctionId) -> impl Iterator<Item = (u8, u16)> {
    let has_any = config.read(id, COMMAND) & HAS_CAPABILITIES != 0;
    let mut next = if has_any { config.read(id, CAPABILITIES) as u8 & !3 } else { 0 };
    // There is room for so many; a list that is longer leads back into itself.
    (0..48).map_while(move |_| {
        let place = u16::from(next);
        if place < 0x40 {
            return None;
        }
        let head = config.read(id, place);
        next = (head >> 8) as u8 & !3;
        Some((head as u8, place))
    })
}

/// The ranges of memory addresses of a function, by their numbers.
pub(crate) fn bars(config: &impl ConfigAccess, identity: &Identity) -> [Option<Bar>; 6] {
    let id = identity.id;
    let count = if identity.secondary_bus.is_some() { 2 } else { 6 };
    let mut bars = [None; 6];
    let before = config.read(id, COMMAND) & COMMAND_BITS;
    // It must not answer to the addresses that are written to learn the size.
    config.write(id, COMMAND, before & !MEMORY_ENABLED);
    let mut index = 0;
    while index < count {
        let register = FIRST_BAR + 4 * index as u16;
        let low = config.read(id, register);
        let is_memory = low & 1 == 0;
        let is_wide = is_memory && low >> 1 & 3 == 2 && index + 1 < count;
        if is_memory {
            bars[index] = size(config, id, register, low, is_wide);
        }
        index += if is_wide { 2 } else { 1 };
    }
    config.write(id, COMMAND, before);
    bars
}

fn size(config: &impl ConfigAccess, id: FunctionId, register: u16, low: u32, is_wide: bool) -> Option<Bar> {
    let probe = |register, value| {
        config.write(id, register, u32::MAX);
        let mask = config.read(id, register);
        config.write(id, register, value);
        mask
    };
    let (mut base, mut mask) = (u64::from(low & !0xf), u64::from(probe(register, low) & !0xf) | 0xffff_ffff_0000_0000);
    if is_wide {
        let high = config.read(id, register + 4);
        base |= u64::from(high) << 32;
        mask = mask & 0xffff_ffff | u64::from(probe(register + 4, high)) << 32;
    }
    // No bit that could be set, or ones that do not lie together.
    let len = mask.wrapping_neg();
    (mask & 0xffff_ffff != 0 && len.is_power_of_two() && len >= 16).then_some(Bar { base, len, is_wide })
}

/// The addresses that can be given to functions.
#[derive(Debug)]
pub(crate) struct Hole {
    all: Range<u64>,
    taken: Vec<Range<u64>>,
}

impl Hole {
    pub(crate) fn new(all: Range<u64>) -> Self {
        Hole { all, taken: Vec::new() }
    }

    /// Somebody uses a range.
    pub(crate) fn take(&mut self, range: Range<u64>) {
        self.taken.push(range);
    }

    /// Takes a range of a power of two of bytes, aligned to them.
    fn find(&mut self, len: u64) -> Option<u64> {
        let mut start = self.all.start.checked_next_multiple_of(len)?;
        while let Some(other) = self.taken.iter().find(|other| other.start < start + len && start < other.end) {
            start = other.end.checked_next_multiple_of(len)?;
            if start >= self.all.end {
                return None;
            }
        }
        if start + len > self.all.end {
            return None;
        }
        self.take(start..start + len);
        Some(start)
    }
}

/// Gives a function the addresses that it lacks; those that `is_usable` refuses it lacks as well. False if there are none.
///
/// `bridge` leads to the function's bus; `None` for those of bus 0.
pub(crate) fn assign(
    config: &impl ConfigAccess,
    identity: &Identity,
    bars: &mut [Option<Bar>; 6],
    bridge: Option<&Identity>,
    hole: &mut Hole,
    is_usable: impl Fn(Range<u64>) -> bool,
) -> bool {
    let mut inner = None;
    for (index, bar) in bars.iter_mut().enumerate() {
        let Some(bar) = bar.as_mut().filter(|bar| bar.base == 0 || !is_usable(bar.range())) else { continue };
        let found = match bridge {
            None => hole.find(bar.len),
            Some(bridge) => {
                if inner.is_none() {
                    inner = open_bridge(config, bridge.id, hole);
                }
                inner.as_mut().and_then(|inner| inner.find(bar.len))
            }
        };
        let Some(base) = found.filter(|&base| is_usable(base..base + bar.len)) else { return false };
        bar.base = base;
        let register = FIRST_BAR + 4 * index as u16;
        config.write(identity.id, register, base as u32);
        if bar.is_wide {
            config.write(identity.id, register + 4, (base >> 32) as u32);
        }
    }
    true
}

/// Has a bridge, which passes nothing on so far, pass a range on; `None` if it passes something on, which firmware has distributed, or no range is free.
fn open_bridge(config: &impl ConfigAccess, id: FunctionId, hole: &mut Hole) -> Option<Hole> {
    const BYTES: u64 = 2 << 20;
    let window = config.read(id, WINDOW);
    let (first, last) = (window & 0xfff0, window >> 16 & 0xfff0);
    if first != 0 && first <= last {
        return None;
    }
    let start = hole.find(BYTES)?;
    let (first, last) = ((start >> 16) as u32 & 0xfff0, ((start + BYTES - 1) >> 16) as u32 & 0xfff0);
    config.write(id, WINDOW, last << 16 | first);
    command(config, id, MEMORY_ENABLED | BUS_MASTER, 0);
    Some(Hole::new(start..start + BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    /// Functions with registers, of which those of BARs keep only the bits of their masks.
    #[derive(Default)]
    struct Machine {
        registers: RefCell<BTreeMap<(u8, u8, u8, u16), u32>>,
        masks: BTreeMap<(u8, u8, u8, u16), u32>,
    }

    fn key(id: FunctionId, register: u16) -> (u8, u8, u8, u16) {
        (id.bus, id.device, id.function, register)
    }

    impl ConfigAccess for Machine {
        fn read(&self, id: FunctionId, register: u16) -> u32 {
            let registers = self.registers.borrow();
            let absent = if registers.contains_key(&key(id, 0)) { 0 } else { u32::MAX };
            registers.get(&key(id, register)).copied().unwrap_or(absent)
        }

        fn write(&self, id: FunctionId, register: u16, value: u32) {
            let key = key(id, register);
            let mut registers = self.registers.borrow_mut();
            let old = registers.get(&key).copied().unwrap_or(0);
            let mask = self.masks.get(&key).copied().unwrap_or(u32::MAX);
            registers.insert(key, value & mask | old & !mask);
        }

        fn last_bus(&self) -> u8 {
            255
        }
    }

    fn id(bus: u8, device: u8, function: u8) -> FunctionId {
        FunctionId { bus, device, function }
    }

    impl Machine {
        fn add(&mut self, at: FunctionId, ids: u32, header: u32) {
            self.write(at, 0, ids);
            self.write(at, 0x0c, header << 16);
        }

        fn add_bar(&mut self, at: FunctionId, index: u16, len: u32, bits: u32) {
            let register = FIRST_BAR + 4 * index;
            self.write(at, register, bits);
            self.masks.insert(key(at, register), !(len - 1));
        }
    }

    fn disk(machine: &mut Machine, at: FunctionId) {
        machine.add(at, 0x1042_1af4, 0);
        machine.add_bar(at, 1, 4096, 0);
        machine.add_bar(at, 4, 16384, 0xc);
        machine.add_bar(at, 0, 64, 1);
        for index in [2, 3] {
            machine.masks.insert(key(at, FIRST_BAR + 4 * index), 0);
        }
    }

    #[test]
    fn functions_are_found_behind_bridges_and_given_addresses() {
        let mut machine = Machine::default();
        machine.add(id(0, 0, 0), 0x29c0_8086, 0);
        machine.add(id(0, 31, 0), 0x2918_8086, 0x80);
        machine.add(id(0, 31, 2), 0x2922_8086, 0);
        machine.add(id(0, 2, 0), 0x000c_1b36, 1);
        disk(&mut machine, id(0, 1, 0));
        disk(&mut machine, id(1, 0, 0));
        let found = scan(&machine);
        assert_eq!(found.iter().filter(|found| found.vendor == 0x1af4).count(), 2);
        assert_eq!(found.len(), 6);
        let bridge = *found.iter().find(|found| found.secondary_bus == Some(1)).unwrap();
        let mut hole = Hole::new(0xc000_0000..0xfec0_0000);
        hole.take(0xc000_0000..0xc000_3000);
        let mut all: Vec<Range<u64>> = Vec::new();
        for (at, bridge) in [(id(0, 1, 0), None), (id(1, 0, 0), Some(&bridge))] {
            let identity = found.iter().find(|found| found.id == at).unwrap();
            let mut bars = bars(&machine, identity);
            assert_eq!(bars.map(|bar| bar.map_or(0, |bar| bar.len)), [0, 4096, 0, 0, 16384, 0]);
            assert!(assign(&machine, identity, &mut bars, bridge, &mut hole, |range| range.start >= 1 << 20));
            for bar in bars.into_iter().flatten() {
                assert!(bar.base >= 0xc000_3000 && bar.base % bar.len == 0);
                assert!(all.iter().all(|other| other.end <= bar.base || bar.range().end <= other.start));
                all.push(bar.range());
            }
            assert_eq!(u64::from(machine.read(at, FIRST_BAR + 16) & !0xf), bars[4].unwrap().base);
        }
        let window = machine.read(bridge.id, WINDOW);
        let inner = u64::from(window & 0xfff0) << 16..(u64::from(window >> 16 & 0xfff0) << 16) + (1 << 20);
        assert!(all[2..].iter().all(|bar| inner.start <= bar.start && bar.end <= inner.end), "{all:x?} {inner:x?}");
    }

    #[test]
    fn lists_that_lead_back_end() {
        let mut machine = Machine::default();
        let at = id(0, 3, 0);
        machine.add(at, 0x1042_1af4, 0);
        machine.write(at, COMMAND, HAS_CAPABILITIES);
        machine.write(at, CAPABILITIES, 0x40);
        machine.write(at, 0x40, 0x5011);
        machine.write(at, 0x50, 0x4009);
        assert_eq!(capabilities(&machine, at).take(3).collect::<Vec<_>>(), [(0x11, 0x40), (9, 0x50), (0x11, 0x40)]);
        assert_eq!(capabilities(&machine, at).count(), 48);
        // A bridge that leads to its own bus.
        machine.add(id(0, 4, 0), 1, 1);
        machine.write(id(0, 4, 0), BUSES, 0x01_01_00);
        machine.add(id(1, 0, 0), 1, 1);
        machine.write(id(1, 0, 0), BUSES, 0x01_01_01);
        assert_eq!(scan(&machine).len(), 3);
    }

    #[test]
    fn a_full_hole_has_no_room() {
        let mut hole = Hole::new(0x1000..0x5000);
        assert_eq!(hole.find(0x2000), Some(0x2000));
        assert_eq!(hole.find(0x2000), None);
        assert_eq!(hole.find(0x1000), Some(0x1000));
        assert_eq!(hole.find(0x1000), Some(0x4000));
        assert_eq!(hole.find(0x10), None);
    }
}
