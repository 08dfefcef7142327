//! [`Node`]: a file or directory; and content.

use crate::boot::FileSystem;
use crate::chain::{Chain, ChainIndex};
use crate::directory::Set;
use crate::{Error, Source, Time, le16, le32};

/// A file or directory: what its entries say. It borrows nothing and never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its number: where its first entry is.
    pub number: u64,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// Whether it is not to be written to.
    pub is_read_only: bool,
    /// Bytes of content; of a directory, those of its clusters.
    pub size: u64,
    /// When it was made.
    pub created: Time,
    /// When it was changed last.
    pub modified: Time,
    /// When it was read last, in steps of two seconds.
    pub accessed: Time,
    pub(crate) chain: Chain,
    /// So many bytes were written; the rest reads as zeros.
    pub written: u64,
}

/// Where a part of a file's content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The part's bytes from what was asked for on; at least 1, and not beyond the file's end.
    pub bytes: u64,
    /// Where it is.
    pub place: Place,
}

/// Where a part of a file's content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the device at this address, in bytes, as it is: a multiple of 512 if the offset in the file is one.
    Device(u64),
    /// Nowhere: it is all zeros.
    Hole,
}

pub(crate) const READ_ONLY: u16 = 1;
pub(crate) const DIRECTORY: u16 = 0x10;
/// The longest directory, in bytes.
pub(crate) const LONGEST_DIRECTORY: u64 = 256 << 20;

impl Node {
    /// What a set says.
    pub(crate) fn of(file_system: &FileSystem, number: u64, set: &Set) -> Result<Self, Error> {
        let first = &set.first;
        let attributes = le16(first, 4);
        let is_directory = attributes & DIRECTORY != 0;
        let (chain, written) = set.content();
        let most = u64::from(file_system.clusters) << file_system.cluster_bits;
        if chain.bytes > most || written > chain.bytes || is_directory && chain.bytes > LONGEST_DIRECTORY {
            return Err(Error::Corrupt("a file's length"));
        }
        if chain.bytes > 0 {
            file_system.check_cluster(chain.first)?;
        }
        Ok(Node {
            number,
            is_directory,
            is_read_only: attributes & READ_ONLY != 0,
            size: chain.bytes,
            created: Time::read(le32(first, 8), first[20], first[22]),
            modified: Time::read(le32(first, 12), first[21], first[23]),
            accessed: Time::read(le32(first, 16), 0, first[24]),
            chain,
            written,
        })
    }

    /// The root directory, of which no entry says anything.
    pub(crate) fn root(file_system: &FileSystem) -> Self {
        let epoch = Time::read(0, 0, 0);
        Node {
            number: file_system.root(),
            is_directory: true,
            is_read_only: false,
            size: file_system.cluster_bytes().into(),
            created: epoch,
            modified: epoch,
            accessed: epoch,
            chain: file_system.root_chain(),
            written: 0,
        }
    }

    /// The same without content.
    pub fn emptied(&self) -> Self {
        let chain = Chain { first: 0, is_contiguous: false, bytes: 0 };
        Node { size: 0, written: 0, chain, ..self.clone() }
    }

    /// Where a directory's entries are.
    pub(crate) fn listing(&self) -> Result<Chain, Error> {
        if self.is_directory { Ok(self.chain) } else { Err(Error::WrongKind) }
    }

    fn content(&self) -> Result<Chain, Error> {
        if self.is_directory { Err(Error::WrongKind) } else { Ok(self.chain) }
    }
}

impl FileSystem {
    /// Where the content from `offset` on is.
    ///
    /// # Errors
    /// `NotFound` at or beyond the file's end; `WrongKind` (a directory); `Corrupt`, `Unsupported`, `NoMemory`, `Absent`.
    pub fn map(
        &self,
        source: &impl Source,
        node: &Node,
        index: &mut ChainIndex,
        offset: u64,
    ) -> Result<Mapping, Error> {
        let chain = node.content()?;
        if offset >= node.size {
            return Err(Error::NotFound);
        }
        if offset >= node.written {
            return Ok(Mapping { bytes: node.size - offset, place: Place::Hole });
        }
        let number = u32::try_from(offset >> self.cluster_bits).map_err(|_| Error::Corrupt("a file's length"))?;
        let within = offset & (u64::from(self.cluster_bytes()) - 1);
        let found = self.cluster(source, chain, index, number)?;
        let (cluster, run) = found.ok_or(Error::Corrupt("a file's clusters end too early"))?;
        let bytes = ((u64::from(run) << self.cluster_bits) - within).min(node.written - offset);
        Ok(Mapping { bytes, place: Place::Device(self.address(cluster) + within) })
    }

    /// Copies content from `offset` on; how many bytes, fewer than `to` has only at the file's end. After an error what is in `to` means nothing.
    ///
    /// # Errors
    /// As for [`map`](Self::map), but for `NotFound`.
    pub fn read(
        &self,
        source: &impl Source,
        node: &Node,
        index: &mut ChainIndex,
        mut offset: u64,
        to: &mut [u8],
    ) -> Result<usize, Error> {
        node.content()?;
        let len = node.size.saturating_sub(offset).min(to.len() as u64) as usize;
        let mut to = &mut to[..len];
        while !to.is_empty() {
            let mapping = self.map(source, node, index, offset)?;
            let (now, later) = to.split_at_mut(mapping.bytes.min(to.len() as u64) as usize);
            match mapping.place {
                Place::Device(address) => source.copy(address, now)?,
                Place::Hole => now.fill(0),
            }
            offset += now.len() as u64;
            to = later;
        }
        Ok(len)
    }
}
