//! Changes of files: their length and their clusters.
//!
//! A file has as many clusters as its length says, and of them the first bytes were written ([`Node::written`]). What a file gets is put behind what it has; what is cut off is a [`Tail`], whose clusters are given back in steps.

use core::ops::Range;

use crate::chain::{Chain, ChainIndex, END};
use crate::transaction::{Transaction, When};
use crate::{Error, Node, Store, Time};

/// What a range of a file is allocated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To be written now. It begins where the file was written to, or before.
    Written,
    /// To be there: it reads as zeros.
    Ahead,
}

/// A file that is to be changed.
#[derive(Debug)]
pub struct Content<'i> {
    /// What it is.
    pub node: Node,
    /// Where its clusters are.
    pub index: &'i mut ChainIndex,
    /// Of how many of its clusters, which stand one after another, the FAT has a chain already.
    pub unfolded: u32,
}

/// Clusters that were a file's, and are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    first: u32,
    count: u32,
    is_contiguous: bool,
}

impl Tail {
    /// All clusters of a file.
    pub fn of(node: &Node, cluster_bytes: u32) -> Option<Self> {
        let count = node.size.div_ceil(cluster_bytes.into()) as u32;
        (count > 0).then_some(Tail { first: node.chain.first, count, is_contiguous: node.chain.is_contiguous })
    }
}

/// So many pieces one change allocates at most, each of so many clusters.
const PIECES: u32 = 16;
const CLUSTERS: u32 = 128;
/// A change leaves off after so many blocks.
const BLOCKS: usize = 64;
/// So many entries of the FAT are written at most where clusters come to be a chain.
const UNFOLDED_AT_ONCE: u32 = 1 << 10;
/// So many clusters are given back in a step: of a chain, and of those that stand one after another.
const FREED_AT_ONCE: u32 = 512;
const CONTIGUOUS_AT_ONCE: u32 = 8192;

impl<S: Store> Transaction<'_, S> {
    /// Sees to it that bytes of a file have clusters, as many from the start on as fit in: up to where, which may be the start; then it is called again. The length changes if it has to.
    ///
    /// # Errors
    /// `NoSpace`, `CommitFirst`, `Corrupt`, `NoMemory`, `Absent`.
    pub fn allocate(&mut self, content: &mut Content<'_>, range: &Range<u64>, what: Purpose) -> Result<u64, Error> {
        let bits = self.fs.cluster_bits;
        let cluster = u64::from(self.fs.cluster_bytes());
        let mut have = content.node.size.div_ceil(cluster);
        let need = range.end.div_ceil(cluster);
        if what == Purpose::Written && range.start > content.node.written {
            return Err(Error::Invalid);
        }
        let missing = need.saturating_sub(have);
        if what == Purpose::Ahead && missing > u64::from(self.free_clusters()) {
            return Err(Error::NoSpace);
        }
        let mut pieces = 0;
        let mut last = None;
        while have < need && pieces < PIECES && self.changed_blocks() < BLOCKS {
            let want = (need - have).min(CLUSTERS.into()) as u32;
            match self.append(content, have as u32, &mut last, want) {
                Ok(0) => break,
                Ok(got) => have += u64::from(got),
                // What there was room for is something. Nothing is half done where that is found out.
                Err(Error::NoSpace) if pieces > 0 || have << bits > range.start => break,
                Err(error) => return Err(error),
            }
            pieces += 1;
        }
        // What was taken is the file's also where that is not as far as the range yet: it would be taken again.
        let reached = range.end.min(have << bits);
        content.node.size = content.node.size.max(reached);
        content.node.chain.bytes = content.node.size;
        if what == Purpose::Written {
            content.node.written = content.node.written.max(reached);
        }
        Ok(reached.max(range.start))
    }

    /// Puts clusters behind those that a file has; how many, 0 if something else has to come first that was begun. `last` is the last of them, if that is known.
    fn append(
        &mut self,
        content: &mut Content<'_>,
        have: u32,
        last: &mut Option<u32>,
        want: u32,
    ) -> Result<u32, Error> {
        let chain = content.node.chain;
        if have == 0 {
            let (first, count) = self.take(None, want)?;
            // As long as its clusters stand one after another the FAT need not say so.
            content.node.chain = Chain { first, is_contiguous: true, bytes: 0 };
            content.unfolded = 0;
            *last = Some(first + count - 1);
            return Ok(count);
        }
        let end = match *last {
            Some(end) => end,
            None => self.fs.cluster(self, chain, content.index, have - 1)?.ok_or(ENDS)?.0,
        };
        self.check_pinned(end)?;
        if chain.is_contiguous {
            if self.is_free(end + 1)? {
                let (_, count) = self.take(Some(end), want)?;
                *last = Some(end + count);
                return Ok(count);
            }
            // They come to be a chain, of which nobody knows before the file's entries say so.
            let until = (have - 1).min(content.unfolded + UNFOLDED_AT_ONCE);
            for number in content.unfolded..until {
                self.link(chain.first + number, chain.first + number + 1, When::Early)?;
            }
            content.unfolded = until;
            if until < have - 1 {
                return Ok(0);
            }
        }
        let (first, count) = self.take(Some(end), want)?;
        content.node.chain.is_contiguous = false;
        self.link(end, first, When::Early)?;
        self.unfold(first, 0, count)?;
        *last = Some(first + count - 1);
        Ok(count)
    }

    /// Gives a file a length that is less than it has; what is cut off.
    ///
    /// # Errors
    /// `Corrupt`, `NoMemory`, `Absent`.
    pub fn shorten(&mut self, content: &mut Content<'_>, size: u64) -> Result<Option<Tail>, Error> {
        let cluster = u64::from(self.fs.cluster_bytes());
        let (keep, have) = (size.div_ceil(cluster) as u32, content.node.size.div_ceil(cluster) as u32);
        let chain = content.node.chain;
        let mut tail = None;
        if keep < have {
            let first = match keep {
                0 => chain.first,
                _ => self.fs.cluster(self, chain, content.index, keep)?.ok_or(ENDS)?.0,
            };
            tail = Some(Tail { first, count: have - keep, is_contiguous: chain.is_contiguous });
            if keep == 0 {
                content.node.chain.first = 0;
                content.node.chain.is_contiguous = false;
            } else if !chain.is_contiguous {
                let (last, _) = self.fs.cluster(self, chain, content.index, keep - 1)?.ok_or(ENDS)?;
                self.link(last, END, When::Late)?;
                self.changes.cuts.push(last);
            }
        }
        content.unfolded = content.unfolded.min(keep.saturating_sub(1));
        content.node.size = size;
        content.node.chain.bytes = size;
        content.node.written = content.node.written.min(size);
        Ok(tail)
    }

    /// Gives back some of the clusters of a tail; what is left.
    ///
    /// # Errors
    /// `Corrupt`, `NoMemory`, `Absent`.
    pub fn free_tail(&mut self, tail: Tail) -> Result<Option<Tail>, Error> {
        if tail.is_contiguous {
            let now = tail.count.min(CONTIGUOUS_AT_ONCE);
            self.fs.check_cluster(tail.first)?;
            self.fs.check_cluster(tail.first.checked_add(now - 1).ok_or(ENDS)?)?;
            self.free(tail.first, now)?;
            let rest = Tail { first: tail.first + now, count: tail.count - now, ..tail };
            return Ok((rest.count > 0).then_some(rest));
        }
        let (mut cluster, mut left) = (tail.first, tail.count);
        // Those that stand one after another are given back together.
        let mut run: Option<(u32, u32)> = None;
        let mut now = 0;
        while left > 0 && now < FREED_AT_ONCE && self.changed_blocks() < BLOCKS {
            self.fs.check_cluster(cluster)?;
            match &mut run {
                Some((first, count)) if *first + *count == cluster => *count += 1,
                _ => {
                    if let Some((first, count)) = run.replace((cluster, 1)) {
                        self.free(first, count)?;
                    }
                }
            }
            (left, now) = (left - 1, now + 1);
            if left > 0 {
                cluster = self.linked(cluster)?;
            }
        }
        if let Some((first, count)) = run {
            self.free(first, count)?;
        }
        Ok((left > 0).then_some(Tail { first: cluster, count: left, is_contiguous: false }))
    }

    /// What a file's entries say beside its name and its clusters.
    pub fn describe(&self, node: &mut Node, is_read_only: bool, accessed: Time, modified: Time) {
        (node.is_read_only, node.modified) = (is_read_only, modified);
        // In steps of two seconds.
        if node.accessed.seconds / 2 != accessed.seconds / 2 {
            node.accessed = Time { seconds: accessed.seconds / 2 * 2, nanoseconds: 0 };
        }
    }
}

const ENDS: Error = Error::Corrupt("a file's clusters end too early");
