//! Partition tables: the master boot record with its chain of logical partitions, and GPT (UEFI Specification 2.10, chapter 5).
//!
//! A table is whatever somebody wrote to the disk: nothing in it is believed that leads out of the disk, and no chain is followed for ever.

use alloc::vec;
use alloc::vec::Vec;

use super::SECTOR;
use crate::step::Step;

/// A part of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its number, from 1.
    pub number: u32,
    /// Its first sector.
    pub start: u64,
    /// How many sectors it has.
    pub sectors: u64,
}

/// No disk has more.
pub const MOST: usize = 15;

/// Reads bytes of a disk.
pub type ReadAt<'a> = dyn FnMut(u64, &mut [u8]) -> Step<()> + 'a;

const BOOT_SIGNATURE: [u8; 2] = [0x55, 0xaa];
const ENTRIES_AT: usize = 446;
const ENTRY: usize = 16;
const PROTECTIVE: u8 = 0xee;

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// The partitions of a disk of so many sectors, whose blocks have `block` bytes. None if it has no table.
///
/// # Errors
/// Those of `read`.
pub fn find(sectors: u64, block: u32, read: &mut ReadAt<'_>) -> Step<Vec<Partition>> {
    let mut record = [0; 512];
    if sectors == 0 {
        return Ok(Vec::new());
    }
    read(0, &mut record)?;
    if record[510..] != BOOT_SIGNATURE {
        return Ok(Vec::new());
    }
    let entries = || record[ENTRIES_AT..].chunks_exact(ENTRY);
    // A boot sector of a file system has the signature as well, but hardly this.
    if entries().any(|entry| entry[0] & 0x7f != 0) {
        return Ok(Vec::new());
    }
    if entries().any(|entry| entry[4] == PROTECTIVE) {
        let last = (sectors * SECTOR / u64::from(block)).saturating_sub(1);
        for header in [1, last] {
            if let Some(found) = find_gpt(sectors, block, header, read)? {
                return Ok(found);
            }
        }
        return Ok(Vec::new());
    }
    find_mbr(&record, sectors, block, read)
}

/// An entry of a record: its kind, and what it covers, in sectors.
fn entry(record: &[u8; 512], index: usize, block: u32) -> (u8, u64, u64) {
    let at = ENTRIES_AT + index * ENTRY;
    let scale = u64::from(block) / SECTOR;
    (record[at + 4], u64::from(u32_at(record, at + 8)) * scale, u64::from(u32_at(record, at + 12)) * scale)
}

fn is_extended(kind: u8) -> bool {
    matches!(kind, 0x05 | 0x0f | 0x85)
}

/// Enters a partition that lies within the disk.
fn add(found: &mut Vec<Partition>, number: usize, start: u64, len: u64, sectors: u64) {
    let is_within = start > 0 && len > 0 && start.checked_add(len).is_some_and(|end| end <= sectors);
    if is_within && number <= MOST {
        found.push(Partition { number: number as u32, start, sectors: len });
    }
}

fn find_mbr(record: &[u8; 512], sectors: u64, block: u32, read: &mut ReadAt<'_>) -> Step<Vec<Partition>> {
    let mut found = Vec::new();
    let mut extended = None;
    for index in 0..4 {
        let (kind, start, len) = entry(record, index, block);
        if kind == 0 {
            continue;
        }
        if is_extended(kind) {
            extended = extended.or(Some(start));
            // As much of it as a boot loader needs.
            add(&mut found, index + 1, start, len.min(2), sectors);
        } else {
            add(&mut found, index + 1, start, len, sectors);
        }
    }
    let Some(first) = extended else { return Ok(found) };
    let mut at = first;
    for number in 5..=MOST {
        if at >= sectors {
            break;
        }
        let mut record = [0; 512];
        read(at * SECTOR, &mut record)?;
        if record[510..] != BOOT_SIGNATURE {
            break;
        }
        let (kind, start, len) = entry(&record, 0, block);
        if kind != 0 {
            add(&mut found, number, at.saturating_add(start), len, sectors);
        }
        let (kind, next, _) = entry(&record, 1, block);
        if !is_extended(kind) || next == 0 {
            break;
        }
        at = first.saturating_add(next);
    }
    Ok(found)
}

/// The partitions of a GPT whose header is in block `header`; `None` if it is none.
fn find_gpt(sectors: u64, block: u32, header: u64, read: &mut ReadAt<'_>) -> Step<Option<Vec<Partition>>> {
    const MOST_ENTRIES: u32 = 1024;
    let block_bytes = u64::from(block);
    let mut head = vec![0; block as usize];
    if header == 0 || (header + 1).saturating_mul(block_bytes) > sectors * SECTOR {
        return Ok(None);
    }
    read(header * block_bytes, &mut head)?;
    let len = u32_at(&head, 12) as usize;
    if !head.starts_with(b"EFI PART") || !(92..=head.len()).contains(&len) || u64_at(&head, 24) != header {
        return Ok(None);
    }
    let sum = u32_at(&head, 16);
    head[16..20].fill(0);
    let (table, count, size, table_sum) = (u64_at(&head, 72), u32_at(&head, 80), u32_at(&head, 84), u32_at(&head, 88));
    let is_size = size.is_power_of_two() && (128..=4096).contains(&size);
    if crc32(&head[..len]) != sum || !is_size || count > MOST_ENTRIES || table == 0 {
        return Ok(None);
    }
    let bytes = u64::from(count) * u64::from(size);
    let at =
        table.checked_mul(block_bytes).filter(|at| at.checked_add(bytes).is_some_and(|end| end <= sectors * SECTOR));
    let Some(at) = at else { return Ok(None) };
    let mut entries = vec![0; bytes as usize];
    read(at, &mut entries)?;
    if crc32(&entries) != table_sum {
        return Ok(None);
    }
    let mut found = Vec::new();
    let scale = block_bytes / SECTOR;
    for (index, entry) in entries.chunks_exact(size as usize).enumerate() {
        let (first, last) = (u64_at(entry, 32), u64_at(entry, 40));
        let is_used = entry[..16].iter().any(|byte| *byte != 0);
        if let Some(count) = last.checked_sub(first).and_then(|less| less.checked_add(1)).filter(|_| is_used)
            && let (Some(start), Some(len)) = (first.checked_mul(scale), count.checked_mul(scale))
        {
            add(&mut found, index + 1, start, len, sectors);
        }
    }
    Ok(Some(found))
}

/// The checksum of GPT: CRC-32 of ISO 3309.
fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 16] = {
        let mut table = [0; 16];
        let mut index = 0;
        while index < 16 {
            let mut value = index as u32;
            let mut bit = 0;
            while bit < 4 {
                value = if value & 1 == 1 { value >> 1 ^ 0xedb8_8320 } else { value >> 1 };
                bit += 1;
            }
            table[index] = value;
            index += 1;
        }
        table
    };
    !bytes.iter().fold(!0, |sum, byte| {
        let sum = sum ^ u32::from(*byte);
        let sum = sum >> 4 ^ TABLE[(sum & 15) as usize];
        sum >> 4 ^ TABLE[(sum & 15) as usize]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTORS: u64 = 8192;

    fn find_in(disk: &[u8], block: u32) -> Vec<Partition> {
        let mut reads = 0;
        let found = find(disk.len() as u64 / SECTOR, block, &mut |at, to| {
            reads += 1;
            assert!(reads < 64);
            to.copy_from_slice(&disk[at as usize..at as usize + to.len()]);
            Ok(())
        });
        let found = found.unwrap();
        for partition in &found {
            assert!(partition.start > 0 && partition.start + partition.sectors <= disk.len() as u64 / SECTOR);
        }
        assert!(found.len() <= MOST);
        found
    }

    fn put_entry(disk: &mut [u8], sector: usize, index: usize, kind: u8, start: u32, len: u32) {
        let at = sector * 512 + ENTRIES_AT + index * ENTRY;
        disk[at + 4] = kind;
        disk[at + 8..at + 12].copy_from_slice(&start.to_le_bytes());
        disk[at + 12..at + 16].copy_from_slice(&len.to_le_bytes());
        disk[sector * 512 + 510..sector * 512 + 512].copy_from_slice(&BOOT_SIGNATURE);
    }

    fn mbr() -> Vec<u8> {
        let mut disk = vec![0; (SECTORS * SECTOR) as usize];
        put_entry(&mut disk, 0, 0, 0x83, 2048, 1024);
        put_entry(&mut disk, 0, 2, 0x0f, 4096, 4096);
        put_entry(&mut disk, 4096, 0, 0x83, 63, 100);
        put_entry(&mut disk, 4096, 1, 0x05, 1000, 500);
        put_entry(&mut disk, 5096, 0, 0x82, 1, 200);
        disk
    }

    fn gpt(block: usize) -> Vec<u8> {
        let mut disk = vec![0; (SECTORS * SECTOR) as usize];
        put_entry(&mut disk, 0, 0, PROTECTIVE, 1, u32::MAX);
        let mut entries = vec![0; 128 * 128];
        for (index, first, last) in [(0_usize, 40_u64, 100_u64), (3, 200, 299), (4, 100_000, 100_001), (5, 300, 10)] {
            entries[index * 128] = 7;
            entries[index * 128 + 32..index * 128 + 40].copy_from_slice(&first.to_le_bytes());
            entries[index * 128 + 40..index * 128 + 48].copy_from_slice(&last.to_le_bytes());
        }
        let last = disk.len() / block - 1;
        for (header, table) in [(1, 2), (last, last - 128 * 128 / block)] {
            disk[table * block..table * block + entries.len()].copy_from_slice(&entries);
            let head = &mut disk[header * block..header * block + 92];
            head[..8].copy_from_slice(b"EFI PART");
            head[12] = 92;
            head[24..32].copy_from_slice(&(header as u64).to_le_bytes());
            head[72..80].copy_from_slice(&(table as u64).to_le_bytes());
            head[80..84].copy_from_slice(&128_u32.to_le_bytes());
            head[84..88].copy_from_slice(&128_u32.to_le_bytes());
            head[88..92].copy_from_slice(&crc32(&entries).to_le_bytes());
            let sum = crc32(head);
            head[16..20].copy_from_slice(&sum.to_le_bytes());
        }
        disk
    }

    fn part(number: u32, start: u64, sectors: u64) -> Partition {
        Partition { number, start, sectors }
    }

    #[test]
    fn the_checksum_is_the_known_one() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn primary_and_logical_partitions_are_found() {
        let expected = [part(1, 2048, 1024), part(3, 4096, 2), part(5, 4159, 100), part(6, 5097, 200)];
        assert_eq!(find_in(&mbr(), 512), expected);
    }

    #[test]
    fn a_gpt_is_found_by_either_header() {
        let mut disk = gpt(512);
        let expected = [part(1, 40, 61), part(4, 200, 100)];
        assert_eq!(find_in(&disk, 512), expected);
        disk[600] ^= 1;
        assert_eq!(find_in(&disk, 512), expected, "the first is damaged");
        let len = disk.len();
        disk[len - 512 + 88] ^= 1;
        assert_eq!(find_in(&disk, 512), [], "and the second");
        assert_eq!(find_in(&gpt(4096), 4096), [part(1, 320, 488), part(4, 1600, 800)]);
    }

    #[test]
    fn what_is_no_table_has_no_partitions() {
        let mut disk = mbr();
        disk[446] = 0x12;
        assert_eq!(find_in(&disk, 512), []);
        assert_eq!(find_in(&vec![0; 1 << 20], 512), []);
        assert_eq!(find_in(&[], 512), []);
    }

    #[test]
    fn damaged_tables_do_no_harm() {
        let mut state = 7_u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for disk in [mbr(), gpt(512)] {
            let mut damaged = disk.clone();
            for _ in 0..4000 {
                let mut changed = Vec::new();
                for _ in 0..1 + random(4) {
                    let sector = [0, 1, 2, 4096, 5096, SECTORS as usize - 1][random(6)];
                    let at = if sector == 0 { ENTRIES_AT + random(66) } else { sector * 512 + random(512) };
                    damaged[at] = random(256) as u8;
                    changed.push(at);
                }
                if random(2) == 0 {
                    // With the right sum all the same.
                    damaged[528..532].fill(0);
                    let sum = crc32(&damaged[512..604]);
                    damaged[528..532].copy_from_slice(&sum.to_le_bytes());
                    changed.extend(528..532);
                }
                find_in(&damaged, 512);
                changed.into_iter().for_each(|at| damaged[at] = disk[at]);
            }
        }
    }
}
