//! [`Usage`]: how many clusters are free, and about where.

use alloc::vec::Vec;

use crate::boot::FIRST_CLUSTER;
use crate::chain::ChainIndex;
use crate::{Error, FileSystem, Source};

/// Clusters that are counted together: 4 KiB of the bitmap.
pub(crate) const GROUP: u32 = 1 << 15;
/// What has more clusters is not counted.
const MOST_CLUSTERS: u32 = 1 << 26;

/// How many clusters are free in each group of 32,768, as far as that was counted.
#[derive(Debug, Default)]
pub struct Usage {
    free: Vec<u16>,
    /// The bitmap's clusters are not one after another.
    is_scattered: bool,
    chain: ChainIndex,
    /// The cluster behind that which was given out last.
    pub(crate) next: u32,
}

impl Usage {
    /// Clusters that are free.
    pub fn free(&self) -> u32 {
        self.free.iter().map(|free| u32::from(*free)).sum()
    }

    /// Those of a group.
    pub(crate) fn free_in(&self, group: u32) -> u32 {
        self.free.get(group as usize).map_or(0, |free| u32::from(*free))
    }

    pub(crate) fn groups(&self) -> u32 {
        self.free.len() as u32
    }

    /// What was changed is true.
    pub(crate) fn change(&mut self, group: u32, free: i32) {
        if let Some(count) = self.free.get_mut(group as usize) {
            *count = u16::try_from(i32::from(*count) + free).unwrap_or(0);
        }
    }
}

impl FileSystem {
    /// Counts the clusters that are free. Of more than 67 million none is said to be.
    ///
    /// # Errors
    /// `Corrupt`, `NoMemory`; `Absent`: it is called again with the same `usage`.
    pub fn count(&self, source: &impl Source, usage: &mut Usage) -> Result<(), Error> {
        let groups = if self.clusters > MOST_CLUSTERS { 0 } else { self.clusters.div_ceil(GROUP) };
        let mut part = [0; GROUP as usize / 8];
        while usage.groups() < groups {
            source.pause()?;
            let first = usage.groups() * GROUP;
            let clusters = GROUP.min(self.clusters - first);
            let offset = u64::from(first / 8);
            let bytes = clusters.div_ceil(8) as usize;
            self.read_chain(source, self.bitmap, &mut usage.chain, offset, &mut part[..bytes])?;
            usage.is_scattered |= !self.is_bitmap_contiguous(source, usage, offset, bytes as u64)?;
            if let rest @ 1.. = clusters % 8 {
                part[bytes - 1] |= !((1 << rest) - 1);
            }
            let free: u32 = part[..bytes].iter().map(|byte| byte.count_zeros()).sum();
            usage.free.try_reserve(1).map_err(|_| Error::NoMemory)?;
            usage.free.push(free as u16);
        }
        Ok(())
    }

    fn is_bitmap_contiguous(
        &self,
        source: &impl Source,
        usage: &mut Usage,
        offset: u64,
        bytes: u64,
    ) -> Result<bool, Error> {
        let (first, last) = (offset >> self.cluster_bits, (offset + bytes - 1) >> self.cluster_bits);
        for number in first..=last {
            let found = self.cluster(source, self.bitmap, &mut usage.chain, number as u32)?;
            if found.is_none_or(|(cluster, _)| u64::from(cluster) != u64::from(self.bitmap.first) + number) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether it can be written.
    ///
    /// # Errors
    /// `Unsupported`: why not.
    pub fn check_to_write(&self, usage: &Usage) -> Result<(), Error> {
        if usage.is_scattered {
            return Err(Error::Unsupported("writing exFAT whose bitmap is scattered"));
        }
        if self.clusters > MOST_CLUSTERS {
            return Err(Error::Unsupported("writing exFAT with more than 67 million clusters"));
        }
        if self.cluster_bits - self.block_bits > MOST_BLOCKS_BITS {
            return Err(Error::Unsupported("writing exFAT with clusters of more than 128 blocks"));
        }
        Ok(())
    }

    /// Where the byte of the bitmap is that says of a cluster, and the bit in it.
    pub(crate) fn bit(&self, cluster: u32) -> (u64, u8) {
        let number = cluster - FIRST_CLUSTER;
        (self.address(self.bitmap.first) + u64::from(number / 8), 1 << (number % 8))
    }
}

/// A new directory's cluster is cleared in one change: it has at most so many blocks, as a power of two.
const MOST_BLOCKS_BITS: u32 = 7;
