//! [`FileSystem`]: what the boot sectors say, and the root directory of the file system as a whole.

use crate::chain::{Chain, ChainIndex};
use crate::directory::ENTRY_BYTES;
use crate::name::{Upcase, UpcaseReader};
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
const NOT_CHECKED: [usize; 3] = [FLAGS, FLAGS + 1, PERCENT];
/// The first cluster there is.
pub(crate) const FIRST_CLUSTER: u32 = 2;
/// The most clusters.
const MOST_CLUSTERS: u32 = 0xffff_fff5;
/// So many entries of the root directory are looked through for what says something of the file system.
const LOOKED_THROUGH: u32 = 4096;
/// Before others may have their turn.
const LOOKED_AT_ONCE: u32 = 256;
/// Bits of the size of the largest blocks.
const MOST_BLOCK_BITS: u32 = 12;
/// Where the boot sector says whether the file system is in use, and how full it is.
const FLAGS: usize = 106;
const IS_DIRTY: u16 = 2;
const PERCENT: usize = 112;

/// A file system that was opened. It borrows nothing and never changes.
#[derive(Debug)]
pub struct FileSystem {
    pub(crate) cluster_bits: u32,
    /// Bits of the size of blocks, as changes are counted in: no cluster is smaller, and the FAT begins with one.
    pub(crate) block_bits: u32,
    /// Where the FAT is, in bytes.
    pub(crate) fat: u64,
    /// Where the clusters are.
    pub(crate) heap: u64,
    pub(crate) clusters: u32,
    pub(crate) root: u32,
    pub(crate) upcase: Upcase,
    pub(crate) bitmap: Chain,
    /// It was not unmounted.
    is_dirty: bool,
    /// What the hashes of names in indexes depend on.
    key: u64,
}

/// How far a file system is opened, which is done in pieces.
#[derive(Debug, Default)]
pub struct Opening {
    key: u64,
    /// The boot sectors were read.
    found: Option<FileSystem>,
    chain: ChainIndex,
    /// The next entry of the root directory.
    next: u32,
    bitmap: Option<Chain>,
    /// Where the up-case table is, and its checksum.
    upcase: Option<(Chain, u32)>,
    table: UpcaseReader,
    /// Bytes of it that were read, and their sum.
    read: u64,
    sum: u32,
}

impl Opening {
    /// Begins. Nobody can make names that have one hash in an index who does not know `key`.
    pub fn new(key: u64) -> Self {
        Opening { key, ..Opening::default() }
    }
}

impl FileSystem {
    /// Reads and checks the boot sectors of a device of `device_bytes` bytes, and finds the bitmap and the up-case table.
    ///
    /// # Errors
    /// `Corrupt` for what is no exFAT, or is longer than its device; `Unsupported`; `NoMemory`; `Absent`: it is called again with the same `opening`.
    pub fn open(source: &impl Source, device_bytes: u64, opening: &mut Opening) -> Result<Self, Error> {
        let mut found = match opening.found.take() {
            Some(found) => found,
            None => Self::read_boot(source, device_bytes, opening.key)?,
        };
        let outcome = found.read_root(source, opening).and_then(|()| found.read_upcase(source, opening));
        match outcome {
            Ok(()) => Ok(found),
            Err(error) => {
                opening.found = Some(found);
                Err(error)
            }
        }
    }

    fn read_boot(source: &impl Source, device_bytes: u64, key: u64) -> Result<Self, Error> {
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
        let found = FileSystem {
            cluster_bits,
            block_bits: (fat | heap).trailing_zeros().min(cluster_bits).min(MOST_BLOCK_BITS),
            fat,
            heap,
            clusters,
            root: le32(&boot, 96),
            upcase: Upcase::default(),
            bitmap: Chain { first: 0, is_contiguous: false, bytes: 0 },
            is_dirty: le16(&boot, FLAGS) & IS_DIRTY != 0,
            key,
        };
        found.check_cluster(found.root)?;
        Ok(found)
    }

    /// Finds the bitmap and the up-case table in the root directory.
    fn read_root(&mut self, source: &impl Source, opening: &mut Opening) -> Result<(), Error> {
        let mut entries = self.entries(source, self.root_chain());
        while opening.next < LOOKED_THROUGH && (opening.bitmap.is_none() || opening.upcase.is_none()) {
            if opening.next.is_multiple_of(LOOKED_AT_ONCE) {
                source.pause()?;
            }
            let Some(entry) = entries.get(&mut opening.chain, opening.next)? else { break };
            let chain = Chain { first: le32(&entry, 20), is_contiguous: false, bytes: le64(&entry, 24) };
            match entry[0] {
                0 => break,
                // The first one: a second belongs to a second FAT.
                0x81 if entry[1] & 1 == 0 => opening.bitmap = opening.bitmap.or(Some(chain)),
                0x82 => opening.upcase = opening.upcase.or(Some((chain, le32(&entry, 4)))),
                _ => {}
            }
            opening.next += 1;
        }
        let (Some(bitmap), Some((upcase, _))) = (opening.bitmap, opening.upcase) else {
            return Err(Error::Corrupt("no bitmap or no up-case table"));
        };
        if bitmap.bytes < u64::from(self.clusters).div_ceil(8) || !(2..=Upcase::MOST_BYTES).contains(&upcase.bytes) {
            return Err(Error::Corrupt("the bitmap or the up-case table"));
        }
        self.check_cluster(bitmap.first)?;
        self.check_cluster(upcase.first)?;
        self.bitmap = bitmap;
        Ok(())
    }

    fn read_upcase(&mut self, source: &impl Source, opening: &mut Opening) -> Result<(), Error> {
        let (chain, sum) = opening.upcase.ok_or(Error::Corrupt("no up-case table"))?;
        let mut part = [0; 2048];
        while opening.read < chain.bytes {
            source.pause()?;
            let len = (chain.bytes - opening.read).min(part.len() as u64) as usize;
            let mut index = ChainIndex::default();
            self.read_chain(source, chain, &mut index, opening.read, &mut part[..len])?;
            opening.table.read(&part[..len])?;
            opening.read += len as u64;
            opening.sum = part[..len].iter().fold(opening.sum, |sum, byte| add_to_sum(sum, *byte));
        }
        if opening.sum != sum {
            return Err(Error::Corrupt("the up-case table's checksum"));
        }
        self.upcase = core::mem::take(&mut opening.table).finish();
        Ok(())
    }

    /// The hash of a name in upper case that an index keeps: a polynomial in the file system's key, so that few names have the same whoever has chosen them.
    pub(crate) fn index_hash(&self, folded: &[u16]) -> u32 {
        const PRIME: u128 = (1 << 61) - 1;
        let hash =
            folded.iter().fold(1, |hash: u128, unit| (hash * u128::from(self.key) + u128::from(*unit) + 1) % PRIME);
        hash as u32
    }

    /// The block with the boot sector, and what is to be in it while the file system is in use, or with so many clusters in use when it is not any more.
    ///
    /// # Errors
    /// `Absent`, `NoMemory`.
    pub(crate) fn mark(
        &self,
        source: &impl Source,
        used: Option<u32>,
    ) -> Result<(u64, alloc::boxed::Box<[u8]>), Error> {
        let mut block = zeros(1 << self.block_bits)?;
        source.copy(0, &mut block)?;
        match used {
            None => block[FLAGS] |= IS_DIRTY as u8,
            Some(used) => {
                block[FLAGS] &= !(IS_DIRTY as u8);
                block[PERCENT] = (u64::from(used) * 100 / u64::from(self.clusters.max(1))).min(100) as u8;
            }
        }
        Ok((0, block.into()))
    }

    /// Bytes of a block, as changes are counted in: a power of two from 512 to 4096.
    pub fn block_bytes(&self) -> u32 {
        1 << self.block_bits
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
