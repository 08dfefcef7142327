//! The journal (JBD2) as it is on the disk, and what a mount does with one that was not left empty: every block of a transaction that was
//! committed is copied to its place, but what a later transaction has revoked.

use crate::blocks::{Blocks, Run};
use crate::bytes::{be16, be32, halves, put_be32, put32};
use crate::checksum::crc32c;
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::map::{Mapping, Written};
use crate::orphan::Step;
use crate::superblock::{self, counts};
use std_alloc::boxed::Box;
use std_alloc::collections::BTreeMap;
use std_alloc::vec::Vec;

/// What blocks of the journal that are not copies begin with.
pub const MAGIC: u32 = 0xc03b_3998;
/// Kinds of such blocks.
pub mod block_type {
    pub const DESCRIPTOR: u32 = 1;
    pub const COMMIT: u32 = 2;
    pub const SUPERBLOCK_V2: u32 = 4;
    pub const REVOKE: u32 = 5;
}
/// Features of the journal.
pub mod journal_feature {
    pub const REVOKE: u32 = 1;
    pub const BIT64: u32 = 2;
    pub const ASYNC_COMMIT: u32 = 4;
    pub const CSUM_V2: u32 = 8;
    pub const CSUM_V3: u32 = 0x10;
    pub const FAST_COMMIT: u32 = 0x20;
    pub const KNOWN: u32 = REVOKE | BIT64 | ASYNC_COMMIT | CSUM_V2 | CSUM_V3 | FAST_COMMIT;
}
/// Flags of a tag.
pub mod tag_flag {
    /// The copy began with the magic number, which was replaced by zeros.
    pub const ESCAPE: u32 = 1;
    /// No UUID follows.
    pub const SAME_UUID: u32 = 2;
    /// It is the block's last.
    pub const LAST: u32 = 8;
}
/// Bytes of the head of each such block.
pub const HEAD: usize = 12;
/// Bytes of the journal's superblock.
pub const SUPERBLOCK: usize = 1024;

/// Where the journal's blocks are.
#[derive(Clone, Debug)]
pub struct JournalPlace {
    /// The first of the journal's blocks in each run, and the run.
    runs: Vec<(u32, Run)>,
    blocks: u32,
}

impl JournalPlace {
    /// Finds them.
    ///
    /// # Errors
    /// `Unsupported` if the journal is on another disk; `NotFound` if there is none; `Corrupt`, `Absent`.
    pub fn find(fs: &FileSystem, blocks: &impl Blocks) -> Result<Self> {
        let sup = fs.superblock();
        if !sup.has_compat(crate::superblock::feature::HAS_JOURNAL) {
            return Err(Error::NotFound);
        }
        if sup.journal_inode == 0 {
            return Err(Error::Unsupported("journal on another disk"));
        }
        let inode = fs.any_inode(blocks, sup.journal_inode)?;
        let count = inode.size() / u64::from(sup.block_size);
        let count = u32::try_from(count).ok().filter(|count| u64::from(*count) < sup.blocks_count && *count > 1);
        let count = count.ok_or(Error::Corrupt("size of the journal"))?;
        let mut runs = Vec::new();
        let mut at = 0;
        while at < count {
            let Mapping::Blocks { start, count: together, written: Written::Yes } = fs.map(blocks, &inode, at)? else {
                return Err(Error::Corrupt("hole in the journal"));
            };
            let together = together.min(count - at);
            runs.push((at, Run { start, count: together }));
            at += together;
        }
        Ok(Self { runs, blocks: count })
    }

    /// The block of the disk that one of the journal's is.
    pub(crate) fn block(&self, index: u32) -> Result<u64> {
        let at = self.runs.partition_point(|(first, _)| *first <= index);
        let found = at.checked_sub(1).and_then(|at| self.runs.get(at)).filter(|_| index < self.blocks);
        found.map(|(first, run)| run.start + u64::from(index - first)).ok_or(Error::Corrupt("block of the journal"))
    }

    pub(crate) fn run(&self, index: u32) -> Option<Run> {
        let at = self.runs.partition_point(|(first, _)| *first <= index).checked_sub(1)?;
        let (first, run) = self.runs[at];
        let skip = index - first;
        (skip < run.count).then(|| Run { start: run.start + u64::from(skip), count: run.count - skip })
    }

    /// How many blocks it has.
    pub fn len(&self) -> u32 {
        self.blocks
    }

    /// Whether it has none, which it cannot.
    pub fn is_empty(&self) -> bool {
        self.blocks == 0
    }
}

/// What the journal's superblock says.
#[derive(Clone, Debug)]
pub struct LogHead {
    pub raw: Box<[u8]>,
    /// The first block of the log, and the one after its last.
    pub first: u32,
    pub end: u32,
    /// The number of the transaction that the log starts with.
    pub sequence: u32,
    /// Where it starts; 0 if it is empty.
    pub start: u32,
    pub incompat: u32,
    pub seed: u32,
}

impl LogHead {
    /// Reads it.
    pub fn read(fs: &FileSystem, blocks: &impl Blocks, place: &JournalPlace) -> Result<Self> {
        let raw = blocks.read(place.block(0)?, |bytes| bytes.get(..SUPERBLOCK).map(Box::<[u8]>::from))?;
        let raw = raw.ok_or(Error::Corrupt("journal"))?;
        let wrong = Error::Corrupt("superblock of the journal");
        if be32(&raw, 0) != MAGIC || be32(&raw, 0xc) != fs.block_size() {
            return Err(wrong);
        }
        if be32(&raw, 4) != block_type::SUPERBLOCK_V2 {
            return Err(Error::Unsupported("journal of the first version"));
        }
        let incompat = be32(&raw, 0x28);
        let checked = incompat & (journal_feature::CSUM_V2 | journal_feature::CSUM_V3) != 0;
        if incompat & !journal_feature::KNOWN != 0
            || incompat & journal_feature::ASYNC_COMMIT != 0 && !checked
            || checked && raw[0x50] != 4
        {
            return Err(Error::Unsupported("feature of the journal"));
        }
        if checked && be32(&raw, 0xfc) != log_head_checksum(&raw) {
            return Err(wrong);
        }
        let (first, len) = (be32(&raw, 0x14), be32(&raw, 0x10));
        let fast = match (incompat & journal_feature::FAST_COMMIT != 0, be32(&raw, 0x54)) {
            (false, _) => 0,
            (true, 0) => 256,
            (true, count) => count,
        };
        let end = len.checked_sub(fast).ok_or(wrong)?;
        let (sequence, start) = (be32(&raw, 0x18), be32(&raw, 0x1c));
        if first == 0
            || end > place.len()
            || end < first.saturating_add(16)
            || start != 0 && !(first..end).contains(&start)
        {
            return Err(wrong);
        }
        let seed = crc32c(!0, &raw[0x30..0x40]);
        Ok(Self { raw, first, end, sequence, start, incompat, seed })
    }

    pub fn has(&self, feature: u32) -> bool {
        self.incompat & feature != 0
    }

    /// Whether blocks have checksums.
    pub fn is_checked(&self) -> bool {
        self.has(journal_feature::CSUM_V2 | journal_feature::CSUM_V3)
    }

    /// Bytes of a tag.
    pub fn tag_len(&self) -> usize {
        if self.has(journal_feature::CSUM_V3) {
            return 16;
        }
        let wide = if self.has(journal_feature::BIT64) { 4 } else { 0 };
        8 + wide + if self.has(journal_feature::CSUM_V2) { 2 } else { 0 }
    }

    /// Bytes at the end of descriptors and revoke records.
    pub fn tail_len(&self) -> usize {
        if self.is_checked() { 4 } else { 0 }
    }

    /// The block of the log after this one.
    pub fn after(&self, at: u32) -> u32 {
        if at + 1 >= self.end { self.first } else { at + 1 }
    }

    /// The checksum of a block that has its own at `at`.
    pub fn checksum(&self, bytes: &[u8], at: usize) -> u32 {
        crc32c(crc32c(crc32c(self.seed, &bytes[..at]), &[0; 4]), &bytes[at + 4..])
    }

    /// The checksum of a copy, as its tag has it.
    pub fn copy_checksum(&self, sequence: u32, bytes: &[u8]) -> u32 {
        let sum = crc32c(crc32c(self.seed, &sequence.to_be_bytes()), bytes);
        if self.has(journal_feature::CSUM_V3) { sum } else { sum & 0xffff }
    }
}

/// The checksum of the journal's superblock.
pub fn log_head_checksum(raw: &[u8]) -> u32 {
    crc32c(crc32c(crc32c(!0, &raw[..0xfc]), &[0; 4]), &raw[0x100..SUPERBLOCK])
}

/// A block that is to be copied out of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyBlock {
    /// Where the copy is.
    pub from: u64,
    /// Where it belongs.
    pub to: u64,
    sequence: u32,
    escaped: bool,
    checksum: u32,
}

/// Finds out what has to be copied. To be stepped until it is `Done`; then [`copies`](Self::copies) are to be made (each with
/// [`contents`](Self::contents)), then all flushed, then [`log_end`](Self::log_end) written, and flushed.
#[derive(Debug)]
pub struct Replay {
    place: JournalPlace,
    head: LogHead,
    blocks_count: u64,
    at: u32,
    sequence: u32,
    /// Blocks of the log that were looked at: more than it has would be a circle.
    seen: u32,
    /// Of the transaction that is being read.
    open: Vec<CopyBlock>,
    open_revoked: Vec<u64>,
    copies: Vec<CopyBlock>,
    /// By which transaction a block was revoked last.
    revoked: BTreeMap<u64, u32>,
}

/// Whether transaction `one` is `other` or came after it; numbers wrap.
fn not_before(one: u32, other: u32) -> bool {
    one.wrapping_sub(other) < 1 << 31
}

/// The superblock of a file system whose journal was replayed: it says that there is nothing to replay. For when the log's end is on the disk; it belongs at
/// [`SUPERBLOCK_OFFSET`](crate::SUPERBLOCK_OFFSET).
///
/// # Errors
/// `Corrupt`, `Absent`.
pub fn recovered_superblock(blocks: &impl Blocks) -> Result<Box<[u8]>> {
    let (mut raw, has_checksum) = FileSystem::raw_superblock(blocks)?;
    counts::set_recovery(&mut raw, false);
    if has_checksum {
        let sum = superblock::checksum(&raw);
        put32(&mut raw, 0x3fc, sum);
    }
    Ok(raw.into())
}

impl Replay {
    /// Starts. The file system is opened read only for this, and opened anew afterwards.
    ///
    /// # Errors
    /// `Unsupported` if there may be fast commits, `Corrupt`, `Absent`.
    pub fn new(fs: &FileSystem, blocks: &impl Blocks, place: JournalPlace) -> Result<Self> {
        let head = LogHead::read(fs, blocks, &place)?;
        if head.has(journal_feature::FAST_COMMIT) {
            return Err(Error::Unsupported("fast commits"));
        }
        let (at, sequence) = (head.start, head.sequence);
        let blocks_count = fs.superblock().blocks_count;
        Ok(Self {
            place,
            head,
            blocks_count,
            at,
            sequence,
            seen: 0,
            open: Vec::new(),
            open_revoked: Vec::new(),
            copies: Vec::new(),
            revoked: BTreeMap::new(),
        })
    }

    /// Looks at one more block of the log.
    pub fn step(&mut self, blocks: &impl Blocks) -> Result<Step> {
        if self.at == 0 || self.seen >= self.head.end - self.head.first {
            return Ok(self.end());
        }
        let block = self.place.block(self.at)?;
        if let Some(run) = self.place.run(self.at) {
            blocks.want(run.start, run.count.min(32));
        }
        let bytes: Box<[u8]> = blocks.read(block, |bytes| Box::from(bytes))?;
        if be32(&bytes, 0) != MAGIC || be32(&bytes, 8) != self.sequence {
            return Ok(self.end());
        }
        let whole = |at: usize| !self.head.is_checked() || self.head.checksum(&bytes, at) == be32(&bytes, at);
        match be32(&bytes, 4) {
            block_type::DESCRIPTOR if whole(bytes.len() - 4) => self.descriptor(&bytes)?,
            block_type::REVOKE if whole(bytes.len() - 4) => {
                self.revoke(&bytes)?;
                self.advance(1);
            }
            block_type::COMMIT if whole(16) => {
                self.commit();
                self.advance(1);
            }
            _ => return Ok(self.end()),
        }
        Ok(Step::More)
    }

    fn advance(&mut self, count: u32) {
        for _ in 0..count.min(self.head.end) {
            self.at = self.head.after(self.at);
        }
        self.seen = self.seen.saturating_add(count);
    }

    fn descriptor(&mut self, bytes: &[u8]) -> Result<()> {
        let head = &self.head;
        let (len, end) = (head.tag_len(), bytes.len() - head.tail_len());
        let v3 = head.has(journal_feature::CSUM_V3);
        let mut at = HEAD;
        let mut log = self.at;
        let mut count = 1;
        while at + len <= end {
            let flags = if v3 { be32(bytes, at + 4) } else { be16(bytes, at + 6).into() };
            let high = if head.has(journal_feature::BIT64) { be32(bytes, at + 8) } else { 0 };
            let to = halves(be32(bytes, at), high);
            let checksum = if v3 { be32(bytes, at + 12) } else { be16(bytes, at + 4).into() };
            if to >= self.blocks_count {
                return Err(Error::Corrupt("block number in the journal"));
            }
            log = head.after(log);
            count += 1;
            if count > head.end {
                return Err(Error::Corrupt("journal"));
            }
            let from = self.place.block(log)?;
            let escaped = flags & tag_flag::ESCAPE != 0;
            self.open.push(CopyBlock { from, to, sequence: self.sequence, escaped, checksum });
            at += len + if flags & tag_flag::SAME_UUID != 0 { 0 } else { 16 };
            if flags & tag_flag::LAST != 0 {
                break;
            }
        }
        self.advance(count);
        Ok(())
    }

    fn revoke(&mut self, bytes: &[u8]) -> Result<()> {
        let len = if self.head.has(journal_feature::BIT64) { 8 } else { 4 };
        let used = be32(bytes, HEAD) as usize;
        if used < HEAD + 4 || used > bytes.len() - self.head.tail_len() {
            return Err(Error::Corrupt("revoke record"));
        }
        for number in bytes[HEAD + 4..used].chunks_exact(len) {
            self.open_revoked.push(if len == 8 {
                halves(be32(number, 4), be32(number, 0))
            } else {
                be32(number, 0).into()
            });
        }
        Ok(())
    }

    fn commit(&mut self) {
        self.copies.append(&mut self.open);
        for block in self.open_revoked.drain(..) {
            self.revoked.insert(block, self.sequence);
        }
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// Keeps, of all copies that were committed, the last of each block that was not revoked.
    fn end(&mut self) -> Step {
        self.at = 0;
        self.open.clear();
        self.open_revoked.clear();
        let mut last = BTreeMap::new();
        for copy in self.copies.drain(..) {
            let is_void = self.revoked.get(&copy.to).is_some_and(|by| not_before(*by, copy.sequence));
            if !is_void {
                last.insert(copy.to, copy);
            }
        }
        self.copies = last.into_values().collect();
        Step::Done
    }

    /// What has to be copied, each block once.
    pub fn copies(&self) -> &[CopyBlock] {
        &self.copies
    }

    /// What belongs in a copy's place.
    pub fn contents(&self, blocks: &impl Blocks, copy: &CopyBlock) -> Result<Box<[u8]>> {
        let mut bytes: Box<[u8]> = blocks.read(copy.from, |bytes| Box::from(bytes))?;
        if self.head.is_checked() && self.head.copy_checksum(copy.sequence, &bytes) != copy.checksum {
            return Err(Error::Corrupt("copy in the journal"));
        }
        if copy.escaped {
            put_be32(&mut bytes, 0, MAGIC);
        }
        Ok(bytes)
    }

    /// The journal's first block, for when all copies are in their places: it says that the log is empty.
    pub fn log_end(&self, blocks: &impl Blocks) -> Result<(u64, Box<[u8]>)> {
        let block = self.place.block(0)?;
        let mut bytes: Box<[u8]> = blocks.read(block, |bytes| Box::from(bytes))?;
        // What a crash has left behind the end must not look like what comes next.
        put_be32(&mut bytes, 0x18, self.sequence.wrapping_add(1));
        put_be32(&mut bytes, 0x1c, 0);
        if self.head.is_checked() {
            let sum = log_head_checksum(&bytes);
            put_be32(&mut bytes, 0xfc, sum);
        }
        Ok((block, bytes))
    }
}
