//! [`FileSystem`]: what the boot sectors say, and the root directory of the file system as a whole.

use alloc::vec::Vec;

use crate::chain::{Chain, ChainIndex};
use crate::directory::{ENTRY_BYTES, Entry};
use crate::name::Upcase;
use crate::{Error, Source, le16, le32, le64, zeros};

/// Where what an exFAT file system is known by stands, and what that is.
pub const MAGIC_OFFSET: u64 = 3;
/// See [`MAGIC_OFFSET`].
pub const SIGNATURE: &[u8; 8] = b"EXFAT   ";

/// Bytes of what is read of the boot sector.
const BOOT_BYTES: usize = 512;
/// So many sectors the checksum in the one behind them counts.
const CHECKED_SECTORS: usize = 11;
/// Bytes of the boot sector that it does not count: they change while it is mounted.
const NOT_CHECKED: [usize; 3] = [106, 107, 112];
/// The first cluster there is.
pub(crate) const FIRST_CLUSTER: u32 = 2;
/// The most clusters.
const MOST_CLUSTERS: u32 = 0xffff_fff5;
/// So many entries of the root directory are looked through for what says something of the file system.
const LOOKED_THROUGH: u32 = 4096;
/// So much of the bitmap is counted.
const COUNTED_BYTES: u64 = 256 << 10;

/// A file system that was opened. It borrows nothing and never changes.
#[derive(Clone, Debug)]
pub struct FileSystem {
    pub(crate) cluster_bits: u32,
    /// Where the FAT is, in bytes.
    pub(crate) fat: u64,
    /// Where the clusters are.
    pub(crate) heap: u64,
    pub(crate) clusters: u32,
    pub(crate) root: u32,
    pub(crate) upcase: Upcase,
    bitmap: Chain,
    /// It was not unmounted.
    is_dirty: bool,
}

impl FileSystem {
    /// Reads and checks the boot sectors of a device of `device_bytes` bytes, and finds the bitmap and the up-case table.
    ///
    /// # Errors
    /// `Corrupt` for what is no exFAT, or is longer than its device; `Unsupported`; `NoMemory`; `Absent`.
    pub fn open(source: &impl Source, device_bytes: u64) -> Result<Self, Error> {
        let mut boot = [0; BOOT_BYTES];
        if device_bytes < BOOT_BYTES as u64 {
            return Err(Error::Corrupt("no exFAT boot sector"));
        }
        source.copy(0, &mut boot)?;
        if boot[3..11] != SIGNATURE[..] || boot[11..64].iter().any(|byte| *byte != 0) || le16(&boot, 510) != 0xaa55 {
            return Err(Error::Corrupt("no exFAT boot sector"));
        }
        if le16(&boot, 104) >> 8 != 1 {
            return Err(Error::Unsupported("exFAT of another version than 1"));
        }
        if boot[110] != 1 {
            return Err(Error::Unsupported("exFAT with two FATs"));
        }
        let sector_bits = u32::from(boot[108]);
        let cluster_bits = sector_bits + u32::from(boot[109]);
        if !(9..=12).contains(&sector_bits) || cluster_bits > 25 {
            return Err(Error::Corrupt("the size of sectors or clusters"));
        }
        let bytes = le64(&boot, 72).checked_mul(1 << sector_bits).filter(|bytes| *bytes <= device_bytes);
        let bytes = bytes.ok_or(Error::Corrupt("it is longer than its device"))?;
        check_sum(source, sector_bits, bytes)?;
        let (fat, fat_bytes) = (u64::from(le32(&boot, 80)) << sector_bits, u64::from(le32(&boot, 84)) << sector_bits);
        let (heap, clusters) = (u64::from(le32(&boot, 88)) << sector_bits, le32(&boot, 92));
        let needed = (u64::from(clusters) + 2) * 4;
        let end = heap.checked_add(u64::from(clusters) << cluster_bits);
        if clusters > MOST_CLUSTERS
            || fat < 24 << sector_bits
            || fat_bytes < needed
            || fat + fat_bytes > heap
            || end.is_none_or(|end| end > bytes)
        {
            return Err(Error::Corrupt("where the FAT and the clusters are"));
        }
        let mut found = FileSystem {
            cluster_bits,
            fat,
            heap,
            clusters,
            root: le32(&boot, 96),
            upcase: Upcase::default(),
            bitmap: Chain { first: 0, is_contiguous: false, bytes: 0 },
            is_dirty: le16(&boot, 106) & 2 != 0,
        };
        found.check_cluster(found.root)?;
        found.read_root(source)?;
        Ok(found)
    }

    /// Finds the bitmap and the up-case table in the root directory.
    fn read_root(&mut self, source: &impl Source) -> Result<(), Error> {
        let mut index = ChainIndex::default();
        let mut entries = self.entries(source, self.root_chain());
        let (mut bitmap, mut upcase) = (None, None);
        for number in 0..LOOKED_THROUGH {
            let Some(entry) = entries.get(&mut index, number)? else { break };
            let chain = |entry: &Entry| Chain { first: le32(entry, 20), is_contiguous: false, bytes: le64(entry, 24) };
            match entry[0] {
                0 => break,
                // The first one: a second belongs to a second FAT.
                0x81 if entry[1] & 1 == 0 => bitmap = bitmap.or(Some(chain(&entry))),
                0x82 => upcase = upcase.or(Some((chain(&entry), le32(&entry, 4)))),
                _ => {}
            }
            if bitmap.is_some() && upcase.is_some() {
                break;
            }
        }
        let (Some(bitmap), Some((upcase, sum))) = (bitmap, upcase) else {
            return Err(Error::Corrupt("no bitmap or no up-case table"));
        };
        if bitmap.bytes < u64::from(self.clusters).div_ceil(8) || !(2..=Upcase::MOST_BYTES).contains(&upcase.bytes) {
            return Err(Error::Corrupt("the bitmap or the up-case table"));
        }
        self.check_cluster(bitmap.first)?;
        self.check_cluster(upcase.first)?;
        self.bitmap = bitmap;
        let mut table = zeros(upcase.bytes as usize)?;
        self.read_chain(source, upcase, &mut ChainIndex::default(), 0, &mut table)?;
        if table.iter().fold(0, |sum, byte| add_to_sum(sum, *byte)) != sum {
            return Err(Error::Corrupt("the up-case table's checksum"));
        }
        self.upcase = Upcase::read(&table)?;
        Ok(())
    }

    pub(crate) fn root_chain(&self) -> Chain {
        // How long it is only its chain says.
        Chain { first: self.root, is_contiguous: false, bytes: u64::MAX }
    }

    pub(crate) fn check_cluster(&self, cluster: u32) -> Result<(), Error> {
        if cluster < FIRST_CLUSTER || cluster - FIRST_CLUSTER >= self.clusters {
            return Err(Error::Corrupt("a cluster's number"));
        }
        Ok(())
    }

    /// Where a cluster is, in bytes, which was checked.
    pub(crate) fn address(&self, cluster: u32) -> u64 {
        self.heap + (u64::from(cluster - FIRST_CLUSTER) << self.cluster_bits)
    }

    /// Bytes of a cluster: a power of two.
    pub fn cluster_bytes(&self) -> u32 {
        1 << self.cluster_bits
    }

    /// How many clusters there are.
    pub fn clusters(&self) -> u32 {
        self.clusters
    }

    /// Whether it was mounted to be written and not unmounted.
    pub fn is_dirty(&self) -> bool {
        self.is_dirty
    }

    /// How many clusters are in use; all where there are more than two million.
    ///
    /// # Errors
    /// `Corrupt`, `NoMemory`, `Absent`.
    pub fn used_clusters(&self, source: &impl Source) -> Result<u32, Error> {
        let bytes = u64::from(self.clusters).div_ceil(8);
        if bytes > COUNTED_BYTES {
            return Ok(self.clusters);
        }
        let mut bitmap: Vec<u8> = zeros(bytes as usize)?;
        self.read_chain(source, self.bitmap, &mut ChainIndex::default(), 0, &mut bitmap)?;
        if let (Some(last), rest @ 1..) = (bitmap.last_mut(), self.clusters % 8) {
            *last &= (1 << rest) - 1;
        }
        Ok(bitmap.iter().map(|byte| byte.count_ones()).sum())
    }
}

/// The sum of the boot sectors, which fills the sector behind them.
fn check_sum(source: &impl Source, sector_bits: u32, bytes: u64) -> Result<(), Error> {
    let sector = 1_usize << sector_bits;
    if bytes < (12 * sector) as u64 {
        return Err(Error::Corrupt("it is too short"));
    }
    let mut all = zeros(CHECKED_SECTORS * sector + 4)?;
    source.copy(0, &mut all)?;
    let (counted, expected) = all.split_at(CHECKED_SECTORS * sector);
    let counted = counted.iter().enumerate().filter(|(at, _)| !NOT_CHECKED.contains(at));
    let sum = counted.fold(0, |sum, (_, byte)| add_to_sum(sum, *byte));
    if sum == le32(expected, 0) { Ok(()) } else { Err(Error::Corrupt("the boot sectors' checksum")) }
}

fn add_to_sum(sum: u32, byte: u8) -> u32 {
    sum.rotate_right(1).wrapping_add(byte.into())
}

const _: () = assert!(ENTRY_BYTES == 32);
