//! Chains of clusters: one after another, or as the FAT says.

use alloc::vec::Vec;

use crate::boot::FIRST_CLUSTER;
use crate::{Error, FileSystem, Source, le32};

/// Where content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    /// The first cluster; 0 if there is none.
    pub first: u32,
    /// The clusters stand one after another; else the FAT says which is next.
    pub is_contiguous: bool,
    /// Bytes; `u64::MAX`: as many as the chain has.
    pub bytes: u64,
}

/// Where a file's clusters are, as far as that was found out. It grows by what is read, and keeps 4 bytes for each 256 clusters.
#[derive(Debug, Default)]
pub struct ChainIndex {
    steps: Vec<u32>,
}

/// Of every so many clusters it is known which they are.
const STRIDE: u32 = 256;
/// No index is longer.
const MOST_STEPS: usize = 1 << 18;
/// So many clusters that stand one after another are found in one look.
const LONGEST_RUN: u32 = 64;

impl ChainIndex {
    /// The file has so many clusters left, and may get others behind them.
    pub fn cut(&mut self, clusters: u32) {
        self.steps.truncate(clusters.div_ceil(STRIDE) as usize);
    }
}

/// Said of a cluster that is the last.
pub(crate) const END: u32 = u32::MAX;

/// Reads the FAT, of which it keeps the part that it read last.
struct Fat<'a, S> {
    file_system: &'a FileSystem,
    source: &'a S,
    part: [u8; PART],
    at: Option<u64>,
}

const PART: usize = 512;

impl<S: Source> Fat<'_, S> {
    /// The cluster behind one that was checked.
    fn next(&mut self, cluster: u32) -> Result<Option<u32>, Error> {
        let address = self.file_system.fat + u64::from(cluster) * 4;
        let start = address & !(PART as u64 - 1);
        if self.at != Some(start) {
            self.source.copy(start, &mut self.part)?;
            self.at = Some(start);
        }
        match le32(&self.part, (address - start) as usize) {
            END => Ok(None),
            next => self.file_system.check_cluster(next).map(|()| Some(next)),
        }
    }
}

impl FileSystem {
    fn fat<'a, S: Source>(&'a self, source: &'a S) -> Fat<'a, S> {
        Fat { file_system: self, source, part: [0; PART], at: None }
    }

    /// The cluster behind another, in a chain of that kind.
    pub(crate) fn next_cluster(
        &self,
        source: &impl Source,
        cluster: u32,
        is_contiguous: bool,
    ) -> Result<Option<u32>, Error> {
        if is_contiguous {
            let next = cluster + 1;
            return Ok(self.check_cluster(next).is_ok().then_some(next));
        }
        self.fat(source).next(cluster)
    }

    /// The cluster of that index of a chain, and how many stand from it on one after another; `None` behind the end of a chain that says itself how long it is.
    pub(crate) fn cluster(
        &self,
        source: &impl Source,
        chain: Chain,
        index: &mut ChainIndex,
        number: u32,
    ) -> Result<Option<(u32, u32)>, Error> {
        let all = u32::try_from(chain.bytes.div_ceil(self.cluster_bytes().into())).unwrap_or(u32::MAX);
        let is_open = chain.bytes == u64::MAX;
        self.check_cluster(chain.first)?;
        if number >= self.clusters {
            return if is_open { Ok(None) } else { Err(Error::Corrupt("a chain is too long")) };
        }
        if chain.is_contiguous {
            let last = (chain.first - FIRST_CLUSTER).checked_add(all.max(1) - 1).filter(|last| *last < self.clusters);
            if last.is_none() || number >= all {
                return Err(Error::Corrupt("clusters beyond the last"));
            }
            return Ok(Some((chain.first + number, all - number)));
        }
        if number >= all {
            return Err(ENDS);
        }
        let mut fat = self.fat(source);
        let step = (number / STRIDE) as usize;
        if step >= MOST_STEPS {
            return Err(Error::Unsupported("a file of more than 67 million clusters"));
        }
        if index.steps.is_empty() {
            index.steps.push(chain.first);
        }
        while index.steps.len() <= step {
            let Some(next) = walk(&mut fat, index.steps[index.steps.len() - 1], STRIDE)? else {
                return if is_open { Ok(None) } else { Err(ENDS) };
            };
            index.steps.try_reserve(1).map_err(|_| Error::NoMemory)?;
            index.steps.push(next);
            source.pause()?;
        }
        let Some(cluster) = walk(&mut fat, index.steps[step], number % STRIDE)? else {
            return if is_open { Ok(None) } else { Err(ENDS) };
        };
        let mut run = 1;
        while run < LONGEST_RUN.min(all - number) && fat.next(cluster + run - 1)? == Some(cluster + run) {
            run += 1;
        }
        Ok(Some((cluster, run)))
    }

    /// Copies content from `offset` on, all of which is there.
    pub(crate) fn read_chain(
        &self,
        source: &impl Source,
        chain: Chain,
        index: &mut ChainIndex,
        mut offset: u64,
        mut to: &mut [u8],
    ) -> Result<(), Error> {
        while !to.is_empty() {
            let number = u32::try_from(offset >> self.cluster_bits).map_err(|_| ENDS)?;
            let within = offset & (u64::from(self.cluster_bytes()) - 1);
            let (cluster, run) = self.cluster(source, chain, index, number)?.ok_or(ENDS)?;
            let left = (u64::from(run) << self.cluster_bits) - within;
            let (now, later) = to.split_at_mut(left.min(to.len() as u64) as usize);
            source.copy(self.address(cluster) + within, now)?;
            offset += now.len() as u64;
            to = later;
        }
        Ok(())
    }
}

/// The cluster so many behind another.
fn walk<S: Source>(fat: &mut Fat<'_, S>, mut cluster: u32, count: u32) -> Result<Option<u32>, Error> {
    for _ in 0..count {
        match fat.next(cluster)? {
            Some(next) => cluster = next,
            None => return Ok(None),
        }
    }
    Ok(Some(cluster))
}

const ENDS: Error = Error::Corrupt("a chain of clusters ends too early");
