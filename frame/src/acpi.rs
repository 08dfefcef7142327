//! Which processors there are, and where the configuration space of PCI is, as the firmware's tables say (ACPI Specification 6.5: 5.2.5 root pointer, 5.2.7 and 5.2.8 root
//! tables, 5.2.12 MADT; PCI Firmware Specification 3.3: 4.1.2 MCFG).
//!
//! The tables are the machine's word, not a user's, but firmware has mistakes: whatever does not add up (a checksum, a length) ends the search, and
//! the boot core goes on alone.

use alloc::vec::Vec;

/// The way to physical memory.
pub(crate) trait Physical {
    /// A copy of `len` bytes at physical address `at`; `None` if they cannot be read.
    fn read(&self, at: u64, len: usize) -> Option<Vec<u8>>;
}

/// The number of a processor's local interrupt controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ApicId(pub(crate) u32);

const ROOT_POINTER_LEN: usize = 20;
const HEADER_LEN: usize = 36;
/// No table of these is longer.
const MAX_TABLE: usize = 1 << 16;
/// Behind the header of the MADT: the controllers' address, and flags.
const MADT_ENTRIES: usize = HEADER_LEN + 8;
const LOCAL_APIC: u8 = 0;
const LOCAL_X2APIC: u8 = 9;
/// The processor can be used.
const ENABLED: u32 = 1;

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn adds_up(bytes: &[u8]) -> bool {
    bytes.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)) == 0
}

/// A table with its header, if it is one of that name.
fn table(memory: &impl Physical, at: u64, name: &[u8; 4]) -> Option<Vec<u8>> {
    let header = memory.read(at, HEADER_LEN)?;
    let len = u32_at(&header, 4)? as usize;
    if !header.starts_with(name) || !(HEADER_LEN..=MAX_TABLE).contains(&len) {
        return None;
    }
    memory.read(at, len).filter(|table| adds_up(table))
}

/// The table of that name, found from the root pointer at physical address `root_pointer`.
fn find(memory: &impl Physical, root_pointer: u64, name: &[u8; 4]) -> Option<Vec<u8>> {
    let pointer = memory.read(root_pointer, ROOT_POINTER_LEN)?;
    if !pointer.starts_with(b"RSD PTR ") || !adds_up(&pointer) {
        return None;
    }
    // From revision 2 on there is a table of 64-bit addresses, too.
    let extended = if pointer.get(15).is_some_and(|revision| *revision >= 2) {
        memory.read(root_pointer, HEADER_LEN).and_then(|pointer| u64_at(&pointer, 24)).filter(|at| *at != 0)
    } else {
        None
    };
    let (root, width) = match extended {
        Some(at) => (table(memory, at, b"XSDT")?, 8),
        None => (table(memory, u32_at(&pointer, 16)?.into(), b"RSDT")?, 4),
    };
    let addresses = root.get(HEADER_LEN..)?.chunks_exact(width);
    let mut address = addresses.map(|entry| u64_at(entry, 0).or(u32_at(entry, 0).map(u64::from)).unwrap_or(0));
    address.find_map(|at| table(memory, at, name))
}

/// The processors that can be used, in the firmware's order, found from the root pointer at physical address `root_pointer`.
pub(crate) fn processors(memory: &impl Physical, root_pointer: u64) -> Option<Vec<ApicId>> {
    Some(controllers(&find(memory, root_pointer, b"APIC")?))
}

/// Where the configuration space of PCI's first segment is, if it is memory: from bus 0 on, a megabyte for each bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConfigSpace {
    pub(crate) base: u64,
    pub(crate) last_bus: u8,
}

/// Where the configuration space of PCI is, found from the root pointer at physical address `root_pointer`; `None` where the firmware names none that begins with bus 0.
pub(crate) fn config_space(memory: &impl Physical, root_pointer: u64) -> Option<ConfigSpace> {
    /// Behind the header of the table, eight bytes that mean nothing.
    const ENTRIES: usize = HEADER_LEN + 8;
    let mcfg = find(memory, root_pointer, b"MCFG")?;
    let entries = mcfg.get(ENTRIES..)?.chunks_exact(16);
    entries
        .filter_map(|entry| Some((u64_at(entry, 0)?, u32_at(entry, 8)?)))
        .find(|(base, buses)| *base != 0 && base % (1 << 20) == 0 && buses & 0xff_ffff == 0)
        .map(|(base, buses)| ConfigSpace { base, last_bus: (buses >> 24) as u8 })
}

/// No machine has more.
const MOST_UNITS: usize = 64;

/// The units that keep devices of PCI's first segment from memory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Remapping {
    /// Where their registers are.
    pub(crate) units: Vec<u64>,
    /// By which number (bus, device, function) the machine's interrupt controller asks for interrupts, if there is one such controller.
    pub(crate) io_apic: Option<u16>,
}

/// The remapping units, found from the root pointer at physical address `root_pointer` (Intel VT-d specification 4.1: 8.1 DMAR, 8.3 DRHD). `None` if the firmware names none, or one that cannot be.
pub(crate) fn remapping(memory: &impl Physical, root_pointer: u64) -> Option<Remapping> {
    /// Behind the header of the table: the width of addresses, flags, and ten bytes that mean nothing.
    const STRUCTURES: usize = HEADER_LEN + 12;
    const UNIT: u16 = 0;
    const SCOPES: usize = 16;
    let dmar = find(memory, root_pointer, b"DMAR")?;
    let (mut units, mut io_apics) = (Vec::new(), Vec::new());
    let mut rest = dmar.get(STRUCTURES..)?;
    while !rest.is_empty() {
        let (kind, len) = (u16_at(rest, 0)?, u16_at(rest, 2)?);
        let (structure, behind) = rest.split_at_checked(usize::from(len).max(4))?;
        if kind == UNIT && u16_at(structure, 6)? == 0 {
            units.push(u64_at(structure, 8).filter(|at| *at != 0 && at % 4096 == 0 && !units.contains(at))?);
            io_apics.extend(io_apics_in(structure.get(SCOPES..)?));
        }
        rest = behind;
    }
    let io_apic = if let [one] = *io_apics { Some(one) } else { None };
    Some(Remapping { units, io_apic }).filter(|found| (1..=MOST_UNITS).contains(&found.units.len()))
}

/// The interrupt controllers among a unit's scopes (8.3.1), by their numbers.
fn io_apics_in(mut scopes: &[u8]) -> Vec<u16> {
    const IO_APIC: u8 = 3;
    let mut found = Vec::new();
    while let [kind, len, ..] = *scopes
        && let Some((scope, behind)) = scopes.split_at_checked(usize::from(len).max(2))
    {
        if let [_, _, _, _, _, bus, device, function] = *scope
            && kind == IO_APIC
        {
            found.push(u16::from(bus) << 8 | u16::from(device & 31) << 3 | u16::from(function & 7));
        }
        scopes = behind;
    }
    found
}

/// The local controllers in a MADT.
fn controllers(madt: &[u8]) -> Vec<ApicId> {
    let mut found: Vec<ApicId> = Vec::new();
    let mut rest = madt.get(MADT_ENTRIES..).unwrap_or_default();
    while let [kind, len, ..] = *rest
        && let Some((entry, behind)) = rest.split_at_checked(usize::from(len).max(2))
    {
        let (id, flags) = match kind {
            LOCAL_APIC => (entry.get(3).map(|id| u32::from(*id)), u32_at(entry, 4)),
            LOCAL_X2APIC => (u32_at(entry, 4), u32_at(entry, 8)),
            _ => (None, None),
        };
        if let (Some(id), Some(flags)) = (id, flags)
            && flags & ENABLED != 0
            && !found.contains(&ApicId(id))
        {
            found.push(ApicId(id));
        }
        rest = behind;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory that begins at address 0.
    struct Bytes(Vec<u8>);

    impl Physical for Bytes {
        fn read(&self, at: u64, len: usize) -> Option<Vec<u8>> {
            let at = usize::try_from(at).ok()?;
            self.0.get(at..at.checked_add(len)?).map(<[u8]>::to_vec)
        }
    }

    fn summed(mut bytes: Vec<u8>, at: usize, covered: usize) -> Vec<u8> {
        bytes[at] = 0;
        bytes[at] = bytes[..covered].iter().fold(0u8, |sum, byte| sum.wrapping_sub(*byte));
        bytes
    }

    fn table_of(name: &[u8; 4], rest: &[u8]) -> Vec<u8> {
        let mut table = name.to_vec();
        table.extend(((HEADER_LEN + rest.len()) as u32).to_le_bytes());
        table.resize(HEADER_LEN, 7);
        table.extend(rest);
        let len = table.len();
        summed(table, 9, len)
    }

    fn local(id: u8, flags: u32) -> Vec<u8> {
        let mut entry = vec![LOCAL_APIC, 8, 0, id];
        entry.extend(flags.to_le_bytes());
        entry
    }

    fn local_x2(id: u32, flags: u32) -> Vec<u8> {
        let mut entry = vec![LOCAL_X2APIC, 16, 0, 0];
        entry.extend(id.to_le_bytes());
        entry.extend(flags.to_le_bytes());
        entry.extend([0; 4]);
        entry
    }

    /// Root pointer at 0, root table at 64, another table at 256, the MADT at 512, the MCFG at 768.
    fn machine(revision: u8) -> Bytes {
        let mut mcfg = vec![0; 8];
        for (base, segment, first, last) in [(0xa000_0000_u64, 1_u16, 0, 255), (0xb000_0000, 0, 0, 63)] {
            mcfg.extend(base.to_le_bytes());
            mcfg.extend(segment.to_le_bytes());
            mcfg.extend([first, last, 0, 0, 0, 0]);
        }
        let mut entries = vec![0; 8];
        for entry in [
            local(0, 1),
            vec![1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            local(2, 1),
            local(3, 0),
            local_x2(300, 1),
            local(2, 1),
        ] {
            entries.extend(entry);
        }
        let (root, name) = match revision {
            0 => ([256u32, 512, 768].iter().flat_map(|at| at.to_le_bytes()).collect::<Vec<u8>>(), b"RSDT"),
            _ => ([256u64, 512, 768].iter().flat_map(|at| at.to_le_bytes()).collect::<Vec<u8>>(), b"XSDT"),
        };
        let mut pointer = b"RSD PTR \0OEMOEM".to_vec();
        pointer.push(revision);
        pointer.extend(if revision == 0 { 64u32 } else { 0 }.to_le_bytes());
        pointer.extend(36u32.to_le_bytes());
        pointer.extend(64u64.to_le_bytes());
        pointer.extend([0; 4]);
        let mut memory = vec![0; 1024];
        for (at, bytes) in [
            (0, summed(pointer, 8, ROOT_POINTER_LEN)),
            (64, table_of(name, &root)),
            (256, table_of(b"FACP", &[1, 2, 3])),
            (512, table_of(b"APIC", &entries)),
            (768, table_of(b"MCFG", &mcfg)),
        ] {
            memory[at..at + bytes.len()].copy_from_slice(&bytes);
        }
        Bytes(memory)
    }

    #[test]
    fn processors_that_are_enabled_are_found_once_each() {
        for revision in [0, 2] {
            let found = processors(&machine(revision), 0).unwrap();
            assert_eq!(found, [ApicId(0), ApicId(2), ApicId(300)]);
            let space = config_space(&machine(revision), 0);
            assert_eq!(space, Some(ConfigSpace { base: 0xb000_0000, last_bus: 63 }));
        }
    }

    #[test]
    fn what_does_not_add_up_is_refused() {
        for at in [3, 9, 16, 70, 513, 560] {
            let mut memory = machine(0);
            memory.0[at] ^= 0x10;
            assert_eq!(processors(&memory, 0), None, "byte {at}");
        }
        assert_eq!(processors(&Bytes(Vec::new()), 0), None);
        assert_eq!(processors(&machine(0), u64::MAX - 3), None);
    }

    #[test]
    fn no_bytes_are_too_strange() {
        // Entries of length 0 and 1, and one that is cut off.
        for rest in [vec![0, 0, 0, 0], vec![0, 1, 0, 1, 0], vec![0, 8, 0], vec![9, 4, 0, 0], vec![LOCAL_APIC]] {
            let mut madt = vec![0; MADT_ENTRIES];
            madt.extend(rest);
            assert_eq!(controllers(&madt), []);
        }
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u8
        };
        for len in 0..600 {
            let madt: Vec<u8> = (0..len).map(|_| random()).collect();
            let _ = controllers(&madt);
        }
    }

    /// A machine whose one table is a DMAR with these structures.
    fn with_dmar(structures: &[u8]) -> Bytes {
        let mut pointer = b"RSD PTR ".to_vec();
        pointer.resize(ROOT_POINTER_LEN, 0);
        pointer[16..20].copy_from_slice(&64u32.to_le_bytes());
        let mut memory = summed(pointer, 8, ROOT_POINTER_LEN);
        memory.resize(64, 0);
        memory.extend(table_of(b"RSDT", &128u32.to_le_bytes()));
        memory.resize(128, 0);
        memory.extend(table_of(b"DMAR", &[&[0; 12], structures].concat()));
        Bytes(memory)
    }

    fn remapping_unit(segment: u16, base: u64, scopes: &[u8]) -> Vec<u8> {
        let mut unit = vec![0, 0, 16 + scopes.len() as u8, 0, 1, 0];
        unit.extend(segment.to_le_bytes());
        unit.extend(base.to_le_bytes());
        unit.extend(scopes);
        unit
    }

    #[test]
    fn remapping_units_of_the_first_segment_are_found() {
        let reserved = [1, 0, 8, 0, 0, 0, 0, 0];
        let all = [
            remapping_unit(0, 0xfed9_0000, &[3, 8, 0, 0, 0, 0xff, 0, 0]),
            reserved.to_vec(),
            remapping_unit(1, 0xfed9_2000, &[]),
            remapping_unit(0, 0xfed9_1000, &[]),
        ];
        let expected = Remapping { units: vec![0xfed9_0000, 0xfed9_1000], io_apic: Some(0xff00) };
        assert_eq!(remapping(&with_dmar(&all.concat()), 0), Some(expected));
        let two = remapping_unit(0, 0xfed9_0000, &[3, 8, 0, 0, 0, 0xff, 0, 0, 3, 8, 0, 0, 1, 0, 31, 7, 1, 0]);
        assert_eq!(remapping(&with_dmar(&two), 0).unwrap().io_apic, None, "it is one of two");
    }

    #[test]
    fn remapping_units_that_cannot_be_are_refused() {
        let good = remapping_unit(0, 0xfed9_0000, &[]);
        let cut = &good[..12];
        let too_many: Vec<u8> = (1..=65).flat_map(|page| remapping_unit(0, page << 12, &[])).collect();
        let odd = remapping_unit(0, 0xfed9_0800, &[]);
        let twice = [good.as_slice(), &good].concat();
        for bad in [&[][..], cut, &too_many, &odd, &twice, &[0, 0, 0, 0], &[1, 0], &remapping_unit(0, 0, &[])] {
            assert_eq!(remapping(&with_dmar(bad), 0), None, "{bad:?}");
        }
        let mut state = 1u64;
        for len in 0..300 {
            let random = std::iter::repeat_with(|| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 61) as u8
            });
            let found = remapping(&with_dmar(&random.take(len).collect::<Vec<u8>>()), 0);
            assert!(found.is_none_or(|found| found.units.iter().all(|base| base % 4096 == 0)));
        }
    }
}
