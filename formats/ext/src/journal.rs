//! Writing the journal. Transactions of the file system are gathered in the running transaction of the journal; a commit writes copies of all its
//! blocks into the log, flushes, writes the commit record and flushes again. Until a checkpoint has written the blocks to their places, only the
//! log has them: so a crash at any point leaves either all of a transaction or nothing.
//!
//! The caller does the writing: [`Commit`] and [`Checkpoint`] are lists of what to do, in this order. One of them is under way at a time; operations go on
//! meanwhile, in a new running transaction. The caller must write no metadata to its place by itself.

use crate::blocks::{Blocks, Run};
use crate::bytes::{put_be16, put_be32};
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::inode::Time;
use crate::replay::{HEAD, JournalPlace, LogHead, MAGIC, block_type, journal_feature, log_head_checksum, tag_flag};
use crate::transaction::{Changes, STEP_BLOCKS};
use std_alloc::boxed::Box;
use std_alloc::collections::{BTreeMap, BTreeSet};
use std_alloc::sync::Arc;
use std_alloc::vec;
use std_alloc::vec::Vec;

/// Something to do to the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Io {
    /// Write a block.
    Write {
        /// Which.
        block: u64,
        /// What.
        bytes: Arc<[u8]>,
    },
    /// What was written before must be on the disk before anything after this is.
    Flush,
}

/// A commit. When `data` is on the disk `ios` are to be done in order, then [`Journal::commit_done`] to be called.
#[derive(Debug)]
pub struct Commit {
    /// Blocks of files: what belongs there must have been written (a flush is not needed: the first of `ios` does it).
    pub data: Vec<Run>,
    /// What to write.
    pub ios: Vec<Io>,
}

/// Whether there is something to commit.
#[derive(Debug)]
pub enum CommitState {
    /// There is not.
    Nothing,
    /// Something is under way that has to be done before.
    Busy,
    /// The log is full: a checkpoint has to be made before.
    CheckpointFirst,
    /// There is.
    Commit(Commit),
}

/// A checkpoint: `ios` are to be done in order, then [`Journal::checkpoint_done`] to be called.
#[derive(Debug)]
pub struct Checkpoint {
    /// What to write.
    pub ios: Vec<Io>,
}

type Contents = BTreeMap<u64, Arc<[u8]>>;

/// Removes the blocks of a run.
fn remove_run(contents: &mut Contents, run: Run) {
    while let Some((&block, _)) = contents.range(run.start..run.end()).next() {
        contents.remove(&block);
    }
}

/// The most blocks that are gathered where there is no log.
const MOST_WITHOUT_LOG: usize = 1024;

/// What is gathered for one commit.
#[derive(Debug, Default)]
struct Gathered {
    blocks: Contents,
    revoked: BTreeSet<u64>,
    /// Runs that were freed: starts and lengths.
    freed: BTreeMap<u64, u32>,
    data: Vec<Run>,
}

impl Gathered {
    fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.revoked.is_empty()
    }

    /// The first freed blocks among these.
    fn freed_in(&self, run: Run) -> Option<Run> {
        let before = self.freed.range(..=run.start).next_back();
        let after = self.freed.range(run.start..run.end()).next();
        let runs = before.into_iter().chain(after).map(|(start, count)| Run { start: *start, count: *count });
        runs.filter_map(|freed| freed.common(run)).min()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Nothing,
    Commit,
    Checkpoint,
}

/// The journal's blocks on the disk.
#[derive(Debug)]
struct Log {
    place: JournalPlace,
    head: LogHead,
    block_size: usize,
    /// The number of the transaction that is committed next.
    sequence: u32,
    /// Where the log goes on.
    next: u32,
    /// Blocks of the log that are used by what no checkpoint has written.
    used: u32,
}

/// The journal of a file system that is mounted for writing.
#[derive(Debug)]
pub struct Journal {
    /// `None`: the file system has none. Then a commit writes all blocks to their places.
    log: Option<Log>,
    running: Gathered,
    committing: Gathered,
    /// What was committed last, as far as no checkpoint has written it.
    committed: Contents,
    doing: Doing,
}

impl Journal {
    /// Opens an empty log.
    ///
    /// # Errors
    /// `Invalid` if it is to be replayed; `Unsupported`, `Corrupt`, `Absent`.
    pub fn open(fs: &FileSystem, blocks: &impl Blocks, place: JournalPlace) -> Result<Self> {
        let mut head = LogHead::read(fs, blocks, &place)?;
        if head.start != 0 {
            return Err(Error::Invalid);
        }
        head.incompat &= !(journal_feature::ASYNC_COMMIT | journal_feature::CSUM_V2 | journal_feature::CSUM_V3);
        head.incompat |= journal_feature::REVOKE;
        if fs.is_wide() {
            head.incompat |= journal_feature::BIT64;
        }
        if fs.has_checksums() {
            head.incompat |= journal_feature::CSUM_V3;
        }
        // Checksums of the first kind are not made.
        put_be32(&mut head.raw, 0x24, 0);
        head.raw[0x50] = if fs.has_checksums() { 4 } else { 0 };
        let (sequence, next) = (head.sequence.max(1), head.first);
        Ok(Self::with(Some(Log { place, head, block_size: fs.block_size() as usize, sequence, next, used: 0 })))
    }

    /// What takes the journal's place in a file system that has none (ext2): changes are gathered and written together, to their places. A crash in the
    /// middle of that leaves what e2fsck has to repair.
    pub fn without_log() -> Self {
        Self::with(None)
    }

    fn with(log: Option<Log>) -> Self {
        Self {
            log,
            running: Gathered::default(),
            committing: Gathered::default(),
            committed: Contents::new(),
            doing: Doing::Nothing,
        }
    }

    /// Whether there is a log.
    pub fn has_log(&self) -> bool {
        self.log.is_some()
    }

    /// The most blocks that the running transaction is to have: a quarter of the log.
    fn most_blocks(&self) -> usize {
        self.log.as_ref().map_or(MOST_WITHOUT_LOG, |log| log.len() as usize / 4)
    }

    /// Whether one more transaction of the file system fits the running one. If not, a commit comes first.
    pub fn has_room(&self) -> bool {
        self.running.blocks.len() + 2 * STEP_BLOCKS <= self.most_blocks().max(2 * STEP_BLOCKS)
    }

    /// Whether so much of the log is used that a checkpoint should be made.
    pub fn wants_checkpoint(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.used > log.len() / 2)
    }

    /// Whether anything waits for a commit.
    pub fn is_dirty(&self) -> bool {
        !self.running.is_empty() || !self.committing.is_empty()
    }

    /// The first of these blocks that were freed by what is not committed.
    pub fn pinned_in(&self, run: Run) -> Option<Run> {
        self.running.freed_in(run).into_iter().chain(self.committing.freed_in(run)).min()
    }

    /// Takes what a transaction of the file system has changed.
    pub fn add(&mut self, changes: Changes) {
        for run in &changes.freed {
            remove_run(&mut self.running.blocks, *run);
            self.running.freed.insert(run.start, run.count);
        }
        self.running.revoked.extend(&changes.revoked);
        for (block, bytes) in changes.blocks {
            self.running.revoked.remove(&block);
            self.running.blocks.insert(block, bytes);
        }
        self.running.data.extend(&changes.new_data);
    }

    /// Begins to commit what has been gathered.
    pub fn commit(&mut self, now: Time) -> Result<CommitState> {
        if self.doing != Doing::Nothing {
            return Ok(CommitState::Busy);
        }
        if self.running.is_empty() {
            return Ok(CommitState::Nothing);
        }
        let ios = match &mut self.log {
            None => {
                let blocks = core::mem::take(&mut self.running.blocks);
                let writes = blocks.into_iter().map(|(block, bytes)| Io::Write { block, bytes });
                writes.chain([Io::Flush]).collect()
            }
            Some(log) => {
                let need = log.blocks_needed(&self.running);
                if need > log.len() - log.used {
                    if self.committed.is_empty() && log.used == 0 {
                        return Err(Error::TooLarge);
                    }
                    return Ok(CommitState::CheckpointFirst);
                }
                log.write(&self.running, need, now)?
            }
        };
        self.committing = core::mem::take(&mut self.running);
        self.doing = Doing::Commit;
        Ok(CommitState::Commit(Commit { data: self.committing.data.clone(), ios }))
    }

    /// All that a commit was to write is on the disk.
    pub fn commit_done(&mut self) {
        let done = core::mem::take(&mut self.committing);
        // What was freed must not be written over what comes there next.
        for (start, count) in &done.freed {
            remove_run(&mut self.committed, Run { start: *start, count: *count });
        }
        if self.log.is_some() {
            self.committed.extend(done.blocks);
        }
        self.doing = Doing::Nothing;
    }

    /// Begins to write to their places all blocks that were committed, so that the log becomes empty; `None` if there are none or
    /// something is under way.
    pub fn checkpoint(&mut self) -> Result<Option<Checkpoint>> {
        let Some(log) = self.log.as_mut().filter(|log| log.used > 0) else { return Ok(None) };
        if self.doing != Doing::Nothing {
            return Ok(None);
        }
        let last = core::mem::take(&mut self.committed);
        let mut ios: Vec<Io> = last.into_iter().map(|(block, bytes)| Io::Write { block, bytes }).collect();
        ios.push(Io::Flush);
        ios.push(log.write_head(0)?);
        ios.push(Io::Flush);
        self.doing = Doing::Checkpoint;
        Ok(Some(Checkpoint { ios }))
    }

    /// All that a checkpoint was to write is on the disk.
    pub fn checkpoint_done(&mut self) {
        if let Some(log) = &mut self.log {
            log.used = 0;
        }
        self.doing = Doing::Nothing;
    }
}

impl Log {
    fn len(&self) -> u32 {
        self.head.end - self.head.first
    }

    /// What to write so that all of this is in the log, in `need` blocks and a few.
    fn write(&mut self, gathered: &Gathered, need: u32, now: Time) -> Result<Vec<Io>> {
        let mut ios = Vec::with_capacity(need as usize + 3);
        if self.used == 0 {
            ios.push(self.write_head(self.next)?);
        }
        self.write_revoked(gathered, &mut ios)?;
        self.write_copies(gathered, &mut ios)?;
        ios.push(Io::Flush);
        let commit = self.commit_record(now);
        self.append(commit, &mut ios)?;
        ios.push(Io::Flush);
        self.sequence = self.sequence.wrapping_add(1);
        Ok(ios)
    }

    fn number_len(&self) -> usize {
        if self.head.has(journal_feature::BIT64) { 8 } else { 4 }
    }

    /// Tags of one descriptor, and numbers of one revoke record.
    fn per_block(&self) -> (usize, usize) {
        let room = self.block_size - HEAD - self.head.tail_len();
        ((room - 16) / self.head.tag_len(), (room - 4) / self.number_len())
    }

    fn blocks_needed(&self, gathered: &Gathered) -> u32 {
        let (tags, numbers) = self.per_block();
        let copies = gathered.blocks.len();
        (copies + copies.div_ceil(tags) + gathered.revoked.len().div_ceil(numbers) + 1) as u32
    }

    fn new_block(&self, kind: u32) -> Box<[u8]> {
        let mut bytes = vec![0; self.block_size].into_boxed_slice();
        put_be32(&mut bytes, 0, MAGIC);
        put_be32(&mut bytes, 4, kind);
        put_be32(&mut bytes, 8, self.sequence);
        bytes
    }

    /// Puts a block at the log's end.
    fn append(&mut self, bytes: impl Into<Arc<[u8]>>, ios: &mut Vec<Io>) -> Result<()> {
        let block = self.place.block(self.next)?;
        ios.push(Io::Write { block, bytes: bytes.into() });
        self.next = self.head.after(self.next);
        self.used += 1;
        Ok(())
    }

    /// Puts the checksum into a block that has it at `at`.
    fn seal(&self, bytes: &mut [u8], at: usize) {
        if self.head.is_checked() {
            let sum = self.head.checksum(bytes, at);
            put_be32(bytes, at, sum);
        }
    }

    fn write_revoked(&mut self, gathered: &Gathered, ios: &mut Vec<Io>) -> Result<()> {
        let (_, most) = self.per_block();
        let len = self.number_len();
        let numbers: Vec<u64> = gathered.revoked.iter().copied().collect();
        for part in numbers.chunks(most) {
            let mut bytes = self.new_block(block_type::REVOKE);
            put_be32(&mut bytes, HEAD, (HEAD + 4 + part.len() * len) as u32);
            for (i, number) in part.iter().enumerate() {
                let at = HEAD + 4 + i * len;
                if len == 8 {
                    put_be32(&mut bytes, at, (number >> 32) as u32);
                }
                put_be32(&mut bytes, at + len - 4, *number as u32);
            }
            let at = self.block_size - 4;
            self.seal(&mut bytes, at);
            self.append(bytes, ios)?;
        }
        Ok(())
    }

    fn write_copies(&mut self, gathered: &Gathered, ios: &mut Vec<Io>) -> Result<()> {
        let (most, _) = self.per_block();
        let all: Vec<(&u64, &Arc<[u8]>)> = gathered.blocks.iter().collect();
        for part in all.chunks(most) {
            let mut descriptor = self.new_block(block_type::DESCRIPTOR);
            let mut copies = Vec::with_capacity(part.len());
            let mut at = HEAD;
            for (i, (number, bytes)) in part.iter().enumerate() {
                let mut copy = Arc::clone(bytes);
                let mut flags = if i == 0 { 0 } else { tag_flag::SAME_UUID };
                if copy.starts_with(&MAGIC.to_be_bytes()) {
                    put_be32(Arc::make_mut(&mut copy), 0, 0);
                    flags |= tag_flag::ESCAPE;
                }
                if i + 1 == part.len() {
                    flags |= tag_flag::LAST;
                }
                self.write_tag(&mut descriptor, at, **number, flags, &copy);
                at += self.head.tag_len() + if i == 0 { 16 } else { 0 };
                copies.push(copy);
            }
            let tail = self.block_size - 4;
            self.seal(&mut descriptor, tail);
            self.append(descriptor, ios)?;
            for copy in copies {
                self.append(copy, ios)?;
            }
        }
        Ok(())
    }

    fn write_tag(&self, descriptor: &mut [u8], at: usize, number: u64, flags: u32, copy: &[u8]) {
        put_be32(descriptor, at, number as u32);
        let high = (number >> 32) as u32;
        if self.head.has(journal_feature::CSUM_V3) {
            put_be32(descriptor, at + 4, flags);
            put_be32(descriptor, at + 8, high);
            put_be32(descriptor, at + 12, self.head.copy_checksum(self.sequence, copy));
        } else {
            put_be16(descriptor, at + 6, flags as u16);
            if self.head.has(journal_feature::BIT64) {
                put_be32(descriptor, at + 8, high);
            }
        }
        if flags & tag_flag::SAME_UUID == 0 {
            let from = at + self.head.tag_len();
            descriptor[from..from + 16].copy_from_slice(&self.head.raw[0x30..0x40]);
        }
    }

    fn commit_record(&self, now: Time) -> Box<[u8]> {
        let mut bytes = self.new_block(block_type::COMMIT);
        let seconds = now.seconds.max(0) as u64;
        put_be32(&mut bytes, 0x30, (seconds >> 32) as u32);
        put_be32(&mut bytes, 0x34, seconds as u32);
        put_be32(&mut bytes, 0x38, now.nanos);
        self.seal(&mut bytes, 16);
        bytes
    }

    /// The journal's superblock, saying that the log starts at `start` (0: that it is empty) with the next transaction.
    fn write_head(&mut self, start: u32) -> Result<Io> {
        let raw = &mut self.head.raw;
        put_be32(raw, 0x18, self.sequence);
        put_be32(raw, 0x1c, start);
        put_be32(raw, 0x28, self.head.incompat);
        put_be32(raw, 0xfc, 0);
        if self.head.is_checked() {
            let sum = log_head_checksum(&self.head.raw);
            put_be32(&mut self.head.raw, 0xfc, sum);
        }
        let mut bytes = vec![0; self.block_size];
        bytes[..self.head.raw.len()].copy_from_slice(&self.head.raw);
        Ok(Io::Write { block: self.place.block(0)?, bytes: bytes.into() })
    }
}
