//! Compressed content.
//!
//! A file is cut into *extents*, each of which was compressed by itself into a *physical cluster*: one or more blocks. For each *logical cluster* of the
//! file (a block, mostly) there is an index after the inode. It is either a *head*: an extent begins in this logical cluster, at this offset, and is stored
//! there; or it is not, and says how far back the head of its extent is. The first index after a head says how many blocks the physical cluster has, if
//! that can be more than one. So where an extent ends is known from the next head.
//!
//! The last extent may be stored right after the indexes (an *inline tail*) or together with those of other files in the *packed inode* (a *fragment*).
//!
//! Every search is bounded by [`MOST_DECOMPRESSED`], and everything that is allocated by it or by [`MOST_COMPRESSED`]. The packed inode cannot have fragments
//! itself, so nothing recurs.

use bitflags::bitflags;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::blocks::{Blocks, is_in_one_block};
use crate::data::zeros;
use crate::inode::Layout;
use crate::{Error, Inode, Reader};

/// The longest physical cluster, in bytes.
const MOST_COMPRESSED: u64 = 1 << 20;

/// The longest extent, in bytes.
pub const MOST_DECOMPRESSED: u64 = 12 << 20;

/// Stands before the indexes.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Header {
    /// Of a fragment: its offset. Of an inline tail: its length, in the upper half.
    tail: U32,
    advice: U16,
    /// Of the two kinds of heads, four bits each.
    algorithms: u8,
    /// Of a logical cluster, beyond a block's; the highest bit: the file is a fragment as a whole.
    cluster_bits: u8,
}

/// An index that is not packed.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct FullIndex {
    advice: U16,
    offset: U16,
    /// A head's block; otherwise the distances to the heads before (low half) and after.
    location: U32,
}

bitflags! {
    #[derive(Clone, Copy)]
    struct Advice: u16 {
        /// Packed indexes: some are of 2 bytes. Otherwise: extents instead of indexes.
        const TWO_BYTES_OR_EXTENTS = 1;
        const BIG_CLUSTERS_1 = 2;
        const BIG_CLUSTERS_2 = 4;
        const INLINE_TAIL = 8;
        const INTERLACED = 0x10;
        const FRAGMENT = 0x20;
    }
}

/// In place of a distance: this many blocks has the physical cluster.
const IS_BLOCK_COUNT: u32 = 1 << 11;

/// Content that is decompressed at once.
pub(crate) struct Extent {
    pub(crate) start: u64,
    /// More than `start`.
    pub(crate) end: u64,
    stored: Stored,
}

enum Stored {
    /// At this offset of the packed inode.
    Fragment(u64),
    Cluster {
        address: u64,
        bytes: u64,
        coding: Coding,
    },
}

/// How an extent is stored.
#[derive(Clone, Copy)]
enum Coding {
    /// As it is.
    Raw,
    /// As it is, but each byte where the same offset in a block of the file would be: the beginning may stand after the end.
    Interlaced,
    Lz4,
}

/// If an extent may be in the packed inode.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fragments {
    Allowed,
    Refused,
}

/// What an index says.
enum Index {
    Head { kind: HeadKind, offset: u64, block: u32 },
    Inner { back: u64, blocks: Option<u64> },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum HeadKind {
    Plain,
    First,
    Second,
}

/// A head and where it is.
struct Head {
    cluster: u64,
    kind: HeadKind,
    /// Where its extent begins, as an offset in the file.
    start: u64,
    block: u32,
}

/// The indexes of a file.
struct Indexes {
    layout: IndexLayout,
    size: u64,
    advice: Advice,
    algorithms: u8,
    cluster_bits: u32,
    tail: Tail,
}

enum IndexLayout {
    /// 8 bytes each, from this address on.
    Full(u64),
    /// Packed: `short` of 4 bytes up to an address that is a multiple of 32, then `packed` of 2 bytes, then again 4 bytes.
    Compact { address: u64, short: u64, packed: u64, count: u64 },
}

#[derive(Clone, Copy)]
enum Tail {
    Ordinary,
    Inline(u64),
    Fragment(u64),
}

impl<B: Blocks> Reader<'_, B> {
    /// Fills `to`, which ends within the file.
    pub(crate) fn read_compressed(&self, inode: &Inode, offset: u64, to: &mut [u8]) -> Result<(), Error> {
        self.read_extents(inode, offset, to, Fragments::Allowed)
    }

    /// The extent that `offset`, which is within the file, is in.
    pub(crate) fn extent(&self, inode: &Inode, offset: u64) -> Result<Extent, Error> {
        let header_at = inode.end.next_multiple_of(8);
        let header: U64 = self.device.get(header_at)?;
        // The highest bit says that the other bits are where in the packed inode the file is.
        if header.get() >> 63 != 0 {
            return Ok(Extent { start: 0, end: inode.size, stored: Stored::Fragment(header.get() & !(1 << 63)) });
        }
        let indexes = self.indexes(inode, header_at)?;
        self.find_extent(&indexes, offset)
    }

    fn read_extents(
        &self,
        inode: &Inode,
        mut offset: u64,
        mut to: &mut [u8],
        fragments: Fragments,
    ) -> Result<(), Error> {
        while !to.is_empty() {
            let extent = self.extent(inode, offset)?;
            let len = (extent.end - offset).min(to.len() as u64) as usize;
            let (now, later) = to.split_at_mut(len);
            let skip = offset - extent.start;
            match extent.stored {
                Stored::Fragment(at) if fragments == Fragments::Allowed => {
                    self.read_packed(at.checked_add(skip).ok_or(FRAGMENT)?, now)?;
                }
                Stored::Fragment(_) => return Err(FRAGMENT),
                Stored::Cluster { address, bytes, coding } => {
                    self.read_cluster(address, bytes, coding, extent.start, skip, now)?;
                }
            }
            offset += len as u64;
            to = later;
        }
        Ok(())
    }

    fn read_packed(&self, offset: u64, to: &mut [u8]) -> Result<(), Error> {
        let packed = self.inode(self.image.packed.ok_or(FRAGMENT)?)?;
        if offset.checked_add(to.len() as u64).is_none_or(|end| end > packed.size) {
            return Err(FRAGMENT);
        }
        match packed.layout {
            Layout::CompressedFull | Layout::CompressedCompact => {
                self.read_extents(&packed, offset, to, Fragments::Refused)
            }
            _ => self.read_plain(&packed, offset, to),
        }
    }

    /// Fills `to` with what stands after `skip` bytes of the extent that begins at `start`.
    fn read_cluster(
        &self,
        address: u64,
        bytes: u64,
        coding: Coding,
        start: u64,
        skip: u64,
        to: &mut [u8],
    ) -> Result<(), Error> {
        match coding {
            Coding::Raw => self.device.copy(address + skip, to),
            Coding::Interlaced => {
                let at = (start + skip) % bytes;
                let (first, rest) = to.split_at_mut(to.len().min((bytes - at) as usize));
                self.device.copy(address + at, first)?;
                self.device.copy(address, rest)
            }
            Coding::Lz4 if skip == 0 => self.decompress(address, bytes as usize, to),
            Coding::Lz4 => {
                let skip = skip as usize;
                let mut all = zeros(skip + to.len())?;
                self.decompress(address, bytes as usize, &mut all)?;
                to.copy_from_slice(&all[skip..]);
                Ok(())
            }
        }
    }

    /// Decompresses a physical cluster until `to` is full: in the cache itself where it is in one block.
    fn decompress(&self, address: u64, bytes: usize, to: &mut [u8]) -> Result<(), Error> {
        let mut decompress = |cluster: &[u8]| {
            // The data may stand at the cluster's end, after zeros; no LZ4 begins with one.
            let padding = cluster.iter().position(|byte| *byte != 0).unwrap_or(cluster.len());
            decompress::lz4::decompress(&cluster[padding..], to).map_err(|_| Error::Corrupt("compressed data"))
        };
        if is_in_one_block(address, bytes) {
            return self.device.view(address, bytes, decompress);
        }
        let mut cluster = zeros(bytes)?;
        self.device.copy(address, &mut cluster)?;
        decompress(&cluster)
    }

    fn indexes(&self, inode: &Inode, header_at: u64) -> Result<Indexes, Error> {
        let header: Header = self.device.get(header_at)?;
        let advice =
            Advice::from_bits(header.advice.get()).ok_or(Error::Unsupported("a format of compressed files"))?;
        let cluster_bits = self.image.block_bits + u32::from(header.cluster_bits & 15);
        if cluster_bits > 14 || header.cluster_bits & 0x70 != 0 {
            return Err(Error::Unsupported("logical clusters of more than 16 KiB"));
        }
        let tail = if advice.contains(Advice::FRAGMENT) {
            Tail::Fragment(u64::from(header.tail))
        } else if advice.contains(Advice::INLINE_TAIL) && header.tail.get() >> 16 != 0 {
            Tail::Inline(u64::from(header.tail) >> 16)
        } else {
            Tail::Ordinary
        };
        let first = header_at + size_of::<Header>() as u64;
        let layout = if inode.layout == Layout::CompressedFull {
            if advice.contains(Advice::TWO_BYTES_OR_EXTENTS) {
                return Err(Error::Unsupported("extents instead of indexes"));
            }
            IndexLayout::Full(first + 8)
        } else {
            if advice.contains(Advice::BIG_CLUSTERS_1) != advice.contains(Advice::BIG_CLUSTERS_2) {
                return Err(Error::Corrupt("the size of clusters"));
            }
            let count = inode.size.div_ceil(u64::from(self.image.block_bytes()));
            let short = (first.next_multiple_of(32) - first) / 4;
            let packed = if advice.contains(Advice::TWO_BYTES_OR_EXTENTS) && short < count {
                (count - short) / 16 * 16
            } else {
                0
            };
            if packed > 0 && cluster_bits > 12 {
                return Err(Error::Unsupported("indexes of 2 bytes for logical clusters of more than 4 KiB"));
            }
            IndexLayout::Compact { address: first, short, packed, count }
        };
        Ok(Indexes { layout, size: inode.size, advice, algorithms: header.algorithms, cluster_bits, tail })
    }

    fn find_extent(&self, indexes: &Indexes, offset: u64) -> Result<Extent, Error> {
        let head = self.head_of(indexes, offset)?;
        let end = self.end_of(indexes, &head)?;
        if offset < head.start || offset >= end {
            return Err(INDEX);
        }
        let is_last = end == indexes.size;
        let (address, bytes) = match indexes.tail {
            Tail::Fragment(low) if is_last => {
                let high = if matches!(indexes.layout, IndexLayout::Full(_)) { u64::from(head.block) << 32 } else { 0 };
                return Ok(Extent { start: head.start, end, stored: Stored::Fragment(high | low) });
            }
            Tail::Inline(bytes) if is_last => {
                let address = indexes.after((indexes.size - 1) >> indexes.cluster_bits)?;
                self.check_inline(address, bytes)?;
                (address, bytes)
            }
            _ => {
                let bytes = self.cluster_blocks(indexes, &head)? << self.image.block_bits;
                if bytes == 0 || bytes > MOST_COMPRESSED {
                    return Err(Error::Corrupt("a physical cluster's size"));
                }
                let address = self.block_address(head.block);
                self.device.check(address, bytes)?;
                (address, bytes)
            }
        };
        let coding = self.coding(indexes, head.kind, bytes)?;
        if matches!(coding, Coding::Raw | Coding::Interlaced) && end - head.start > bytes {
            return Err(Error::Corrupt("a physical cluster is too short"));
        }
        Ok(Extent { start: head.start, end, stored: Stored::Cluster { address, bytes, coding } })
    }

    fn coding(&self, indexes: &Indexes, kind: HeadKind, bytes: u64) -> Result<Coding, Error> {
        let algorithm = match kind {
            // What is shorter than a block is no block of the file.
            HeadKind::Plain if indexes.advice.contains(Advice::INTERLACED) => {
                return match bytes.cmp(&u64::from(self.image.block_bytes())) {
                    core::cmp::Ordering::Less => Ok(Coding::Raw),
                    core::cmp::Ordering::Equal => Ok(Coding::Interlaced),
                    core::cmp::Ordering::Greater => Err(Error::Unsupported("interlaced clusters of many blocks")),
                };
            }
            HeadKind::Plain => return Ok(Coding::Raw),
            HeadKind::First => indexes.algorithms & 15,
            HeadKind::Second => indexes.algorithms >> 4,
        };
        match algorithm {
            0 => Ok(Coding::Lz4),
            1 => Err(Error::Unsupported("LZMA")),
            2 => Err(Error::Unsupported("DEFLATE")),
            3 => Err(Error::Unsupported("Zstandard")),
            _ => Err(Error::Unsupported("a way of compression")),
        }
    }

    /// The head of the extent that `offset` is in.
    fn head_of(&self, indexes: &Indexes, offset: u64) -> Result<Head, Error> {
        let bits = indexes.cluster_bits;
        let first = offset >> bits;
        let mut cluster = first;
        loop {
            let back = match self.index(indexes, cluster)? {
                Index::Head { kind, offset: within, block } => {
                    let start = (cluster << bits) + within;
                    if start <= offset {
                        return Ok(Head { cluster, kind, start, block });
                    }
                    1
                }
                Index::Inner { back, .. } => back,
            };
            cluster = cluster.checked_sub(back).filter(|_| back > 0).ok_or(INDEX)?;
            if first - cluster > MOST_DECOMPRESSED >> bits {
                return Err(INDEX);
            }
        }
    }

    /// Where the extent of a head ends.
    fn end_of(&self, indexes: &Indexes, head: &Head) -> Result<u64, Error> {
        let bits = indexes.cluster_bits;
        // One more than it takes, since an extent may begin in the middle of a logical cluster.
        for cluster in head.cluster + 1..=head.cluster + 1 + (MOST_DECOMPRESSED >> bits) {
            if cluster << bits >= indexes.size {
                return Ok(indexes.size);
            }
            if let Index::Head { offset, .. } = self.index(indexes, cluster)? {
                return Ok(((cluster << bits) + offset).min(indexes.size));
            }
        }
        Err(Error::Unsupported("extents of more than 12 MiB"))
    }

    /// How many blocks the physical cluster of a head has.
    fn cluster_blocks(&self, indexes: &Indexes, head: &Head) -> Result<u64, Error> {
        let may_be_big = match head.kind {
            HeadKind::First => Advice::BIG_CLUSTERS_1,
            HeadKind::Plain | HeadKind::Second => Advice::BIG_CLUSTERS_2,
        };
        let next = head.cluster + 1;
        if !indexes.advice.contains(may_be_big) || next << indexes.cluster_bits >= indexes.size {
            return Ok(1);
        }
        match self.index(indexes, next)? {
            Index::Head { .. } => Ok(1),
            Index::Inner { blocks, .. } => blocks.ok_or(INDEX),
        }
    }

    fn index(&self, indexes: &Indexes, cluster: u64) -> Result<Index, Error> {
        let index = match indexes.layout {
            IndexLayout::Full(_) => self.full_index(indexes, cluster)?,
            IndexLayout::Compact { .. } => {
                let pack = indexes.pack(cluster)?;
                self.device.view(pack.address, pack.bytes, |bytes| pack.index(bytes, indexes))?
            }
        };
        match index {
            Index::Head { offset, .. } if offset >> indexes.cluster_bits != 0 => Err(INDEX),
            Index::Inner { blocks: Some(_), .. } if !indexes.has_big_clusters() => Err(INDEX),
            _ => Ok(index),
        }
    }

    fn full_index(&self, indexes: &Indexes, cluster: u64) -> Result<Index, Error> {
        let index: FullIndex = self.device.get(indexes.at(cluster)?)?;
        let kind = match index.advice.get() & 3 {
            0 => HeadKind::Plain,
            1 => HeadKind::First,
            3 => HeadKind::Second,
            _ => return Ok(inner(index.location.get() & 0xffff)),
        };
        Ok(Index::Head { kind, offset: u64::from(index.offset), block: index.location.get() })
    }
}

/// An index that is no head's, from what stands for its distance.
fn inner(back: u32) -> Index {
    if back & IS_BLOCK_COUNT != 0 {
        Index::Inner { back: 1, blocks: Some(u64::from(back & !IS_BLOCK_COUNT)) }
    } else {
        Index::Inner { back: u64::from(back), blocks: None }
    }
}

/// Some packed indexes and a block. Each index has two bits that say its kind above those that are an offset or a distance. The block is that of
/// the heads, each of which adds as many as its cluster has.
struct Pack {
    address: u64,
    bytes: usize,
    /// The index that is meant.
    index: usize,
    /// Of an index.
    bits: usize,
    count: usize,
}

const SHORT_PACK_BYTES: u64 = 8;
const LONG_PACK_BYTES: u64 = 32;

impl Indexes {
    fn has_big_clusters(&self) -> bool {
        self.advice.intersects(Advice::BIG_CLUSTERS_1 | Advice::BIG_CLUSTERS_2)
    }

    /// The address of an index; of one that is packed, of what would be its bytes if it were not.
    fn at(&self, cluster: u64) -> Result<u64, Error> {
        match self.layout {
            IndexLayout::Full(first) => cluster.checked_mul(8).and_then(|at| at.checked_add(first)).ok_or(INDEX),
            IndexLayout::Compact { address, short, packed, count } => {
                if cluster >= count {
                    return Err(INDEX);
                }
                let of_two = cluster.saturating_sub(short).min(packed);
                // Fits: there are at most 2^54 logical clusters.
                Ok(address + 4 * (cluster - of_two) + 2 * of_two)
            }
        }
    }

    /// Where the pack of an index is.
    fn pack(&self, cluster: u64) -> Result<Pack, Error> {
        let IndexLayout::Compact { short, packed, .. } = self.layout else { return Err(INDEX) };
        let at = self.at(cluster)?;
        let (bytes, index_bytes, bits) = if cluster >= short && cluster - short < packed {
            (LONG_PACK_BYTES, 2, 14)
        } else {
            (SHORT_PACK_BYTES, 4, 16)
        };
        let address = at / bytes * bytes;
        let index = ((at - address) / index_bytes) as usize;
        Ok(Pack { address, bytes: bytes as usize, index, bits, count: (bytes / index_bytes) as usize })
    }

    /// The address after an index and all that are packed with it.
    fn after(&self, cluster: u64) -> Result<u64, Error> {
        match self.layout {
            IndexLayout::Full(_) => self.at(cluster)?.checked_add(8).ok_or(INDEX),
            IndexLayout::Compact { .. } => self.pack(cluster).map(|pack| pack.address + pack.bytes as u64),
        }
    }
}

impl Pack {
    fn index(&self, bytes: &[u8], indexes: &Indexes) -> Result<Index, Error> {
        let low_bits = indexes.cluster_bits.max(IS_BLOCK_COUNT.ilog2() + 1);
        let raw = |index| self.raw(bytes, index, low_bits);
        let (kind, low) = raw(self.index)?;
        if let Some(kind) = kind {
            let before = if indexes.has_big_clusters() { self.blocks_before(raw) } else { self.heads_before(raw) }?;
            let last: U32 = U32::read_from_suffix(bytes).map_err(|_| INDEX)?.1;
            let block = last.get().checked_add(before).ok_or(INDEX)?;
            return Ok(Index::Head { kind, offset: u64::from(low), block });
        }
        if low & IS_BLOCK_COUNT != 0 || self.index + 1 != self.count {
            return Ok(inner(low));
        }
        // The last of a pack says how far the next head is; the one before it tells the distance back.
        let (kind, low) = raw(self.index - 1)?;
        let back = match kind {
            Some(_) => 0,
            None if low & IS_BLOCK_COUNT != 0 => 1,
            None => u64::from(low),
        };
        Ok(Index::Inner { back: back + 1, blocks: None })
    }

    /// A head's kind, and the offset, distance or number of blocks.
    fn raw(&self, bytes: &[u8], index: usize, low_bits: u32) -> Result<(Option<HeadKind>, u32), Error> {
        let bit = index * self.bits;
        let (word, _) = bytes.get(bit / 8..).and_then(|rest| U32::read_from_prefix(rest).ok()).ok_or(INDEX)?;
        let value = word.get() >> (bit % 8);
        let kind = match (value >> low_bits) & 3 {
            0 => Some(HeadKind::Plain),
            1 => Some(HeadKind::First),
            2 => None,
            _ => Some(HeadKind::Second),
        };
        Ok((kind, value & ((1 << low_bits) - 1)))
    }

    /// How many blocks after the pack's the cluster of this head is, if each cluster has one: 1, since the pack's block is the one before its first head's.
    fn heads_before(&self, raw: impl Fn(usize) -> Result<(Option<HeadKind>, u32), Error>) -> Result<u32, Error> {
        let mut blocks = 1;
        let mut at = self.index;
        while let Some(before) = at.checked_sub(1) {
            let (kind, low) = raw(before)?;
            let back = if kind.is_some() { 0 } else { low as usize };
            // The head may be in a pack before this one.
            let Some(head) = before.checked_sub(back) else { break };
            blocks += 1;
            at = head;
        }
        Ok(blocks)
    }

    /// The same where a cluster may have many blocks.
    fn blocks_before(&self, raw: impl Fn(usize) -> Result<(Option<HeadKind>, u32), Error>) -> Result<u32, Error> {
        let mut blocks: u32 = 0;
        let mut at = self.index;
        while let Some(before) = at.checked_sub(1) {
            let (kind, low) = raw(before)?;
            let (back, count) = match kind {
                Some(_) => (0, 1),
                // Its head is the one before it.
                None if low & IS_BLOCK_COUNT != 0 => (1, low & !IS_BLOCK_COUNT),
                None if low <= 1 => return Err(INDEX),
                // On to the one that says how many blocks.
                None => (low as usize - 2, 0),
            };
            blocks += count;
            match before.checked_sub(back) {
                Some(head) => at = head,
                None => break,
            }
        }
        Ok(blocks)
    }
}

const INDEX: Error = Error::Corrupt("an index of a compressed file");
const FRAGMENT: Error = Error::Corrupt("a fragment");
