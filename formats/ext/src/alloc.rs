//! Taking blocks and giving them back.

use crate::blocks::{Blocks, Run};
use crate::bytes::{all_are, clear_run, next_clear, set_bit, set_bits};
use crate::checksum::crc32c;
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::group::{BLOCK_UNINIT, Descriptor};
use crate::superblock::{SUPERBLOCK_BYTES, counts};
use crate::transaction::{Seal, Transaction};

/// Which of a group's bitmaps were changed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bitmaps {
    pub blocks: bool,
    pub inodes: bool,
}

/// What blocks are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A file's contents, visible at once.
    Data,
    /// A file's contents, to be made visible later.
    Unwritten,
    /// Directories, indirect blocks and the like.
    Metadata,
}

impl FileSystem {
    pub(crate) fn block_bitmap_checksum(&self, blocks: &impl Blocks, descriptor: &Descriptor) -> Result<u32> {
        let len = self.superblock().blocks_per_group as usize / 8;
        self.bitmap_checksum(blocks, descriptor.block_bitmap(), len)
    }

    pub(crate) fn inode_bitmap_checksum(&self, blocks: &impl Blocks, descriptor: &Descriptor) -> Result<u32> {
        let len = self.superblock().inodes_per_group as usize / 8;
        self.bitmap_checksum(blocks, descriptor.inode_bitmap(), len)
    }

    fn bitmap_checksum(&self, blocks: &impl Blocks, block: u64, len: usize) -> Result<u32> {
        let seed = self.superblock().checksum_seed;
        Ok(blocks.read(block, |map| crc32c(seed, map.get(..len).unwrap_or(map)))?)
    }

    pub(crate) fn check_inode_bitmap(&self, blocks: &impl Blocks, descriptor: &Descriptor) -> Result<()> {
        let block = descriptor.inode_bitmap();
        if !self.has_checksums() || blocks.is_verified(block) {
            return Ok(());
        }
        if !descriptor.is_inode_bitmap_checksum(self.inode_bitmap_checksum(blocks, descriptor)?) {
            return Err(Error::Corrupt("inode bitmap checksum"));
        }
        blocks.mark_verified(block);
        Ok(())
    }

    fn check_block_bitmap(&self, blocks: &impl Blocks, descriptor: &Descriptor) -> Result<()> {
        let block = descriptor.block_bitmap();
        if !self.has_checksums() || blocks.is_verified(block) {
            return Ok(());
        }
        if !descriptor.is_block_bitmap_checksum(self.block_bitmap_checksum(blocks, descriptor)?) {
            return Err(Error::Corrupt("block bitmap checksum"));
        }
        blocks.mark_verified(block);
        Ok(())
    }
}

impl<B: Blocks> Transaction<'_, B> {
    /// Sees to it that a group's block bitmap can be read; its descriptor, which may have changed by that.
    pub(crate) fn prepare_block_bitmap(&mut self, group: u32, mut descriptor: Descriptor) -> Result<Descriptor> {
        let fs = self.fs();
        if descriptor.flags() & BLOCK_UNINIT == 0 || !fs.has_group_checksums() {
            fs.check_block_bitmap(self, &descriptor)?;
            return Ok(descriptor);
        }
        let (start, len) = (fs.group_start(group), fs.group_len(group));
        let bits = fs.block_size() * 8;
        let map = self.zeroed(descriptor.block_bitmap(), Seal::None);
        for run in fs.metadata_in(start, len) {
            let from = run.start.max(start);
            let to = (run.start + u64::from(run.count)).min(start + u64::from(len));
            for block in from..to {
                set_bit(map, (block - start) as u32, true);
            }
        }
        for past in len..bits {
            set_bit(map, past, true);
        }
        self.bitmaps.entry(group).or_default().blocks = true;
        descriptor.set_flags(descriptor.flags() & !BLOCK_UNINIT);
        self.put_descriptor(group, &descriptor)?;
        Ok(descriptor)
    }

    /// Takes up to `want` blocks that lie together, at `goal` or after it if possible.
    ///
    /// # Errors
    /// `NoSpace`, `CommitFirst`.
    pub(crate) fn take_blocks(&mut self, goal: u64, want: u32, usage: Use) -> Result<Run> {
        let fs = self.fs();
        let sup = fs.superblock();
        let (block, at) = fs.superblock_place();
        let wide = fs.is_wide();
        let free = self.read_part(block, at..at + SUPERBLOCK_BYTES, |raw| counts::free_blocks(raw, wide))?;
        let kept = self.promised.saturating_add(if self.may_use_reserve { 0 } else { sup.reserved_blocks });
        if free <= kept {
            self.has_failed = true;
            return Err(Error::NoSpace);
        }
        let want = want.min((free - kept).min(u32::MAX.into()) as u32).clamp(1, sup.blocks_per_group);
        let goal = if fs.may_be_data(goal, 1) { goal } else { u64::from(sup.first_data_block) + 1 };
        let first = fs.group_of(goal);
        let mut pinned = false;
        // First where there is plenty, then wherever there is anything.
        for enough in [want.max(sup.blocks_per_group / 16), 1] {
            for step in 0..fs.groups() {
                let group = ((u64::from(first) + u64::from(step)) % u64::from(fs.groups())) as u32;
                let descriptor = fs.descriptor(self, group)?;
                if descriptor.free_blocks() < if step == 0 { 1 } else { enough } {
                    continue;
                }
                let descriptor = self.prepare_block_bitmap(group, descriptor)?;
                let from = if step == 0 { (goal - fs.group_start(first)) as u32 } else { 0 };
                let (run, hidden) = self.find_run(group, &descriptor, from, want)?;
                pinned |= hidden;
                if let Some(run) = run {
                    self.mark(run, group, descriptor, true)?;
                    if usage == Use::Data {
                        self.new_data.push(run);
                    }
                    return Ok(run);
                }
            }
        }
        self.has_failed = true;
        Err(if pinned { Error::CommitFirst } else { Error::NoSpace })
    }

    /// The free run at `from`, else the first one that is long enough, else the longest; and whether blocks were passed that are pinned.
    fn find_run(&self, group: u32, descriptor: &Descriptor, from: u32, want: u32) -> Result<(Option<Run>, bool)> {
        let fs = self.fs();
        let (start, len) = (fs.group_start(group), fs.group_len(group));
        let mut hidden = false;
        let found = self.read(descriptor.block_bitmap(), |map| {
            let mut best: Option<(u32, u32)> = None;
            for (mut at, end) in [(from, len), (0, from.min(len))] {
                while let Some(found) = next_clear(map, at, end) {
                    let free = clear_run(map, found, end, want);
                    let all = Run { start: start + u64::from(found), count: free };
                    let pinned = self.pinned_in(all).and_then(|pinned| pinned.common(all));
                    let usable = pinned.map_or(free, |pinned| (pinned.start - all.start) as u32);
                    hidden |= pinned.is_some();
                    if usable > 0 && (usable >= want || found == from) {
                        return Some((found, usable));
                    }
                    if usable > best.map_or(0, |(_, count)| count) {
                        best = Some((found, usable));
                    }
                    at = found + pinned.map_or(free, |pinned| (pinned.end() - all.start) as u32);
                }
            }
            best
        })?;
        let run = found.map(|(at, count)| Run { start: start + u64::from(at), count });
        if let Some(run) = run
            && !fs.may_be_data(run.start, run.count)
        {
            return Err(Error::Corrupt("metadata is marked as free"));
        }
        Ok((run, hidden))
    }

    /// Marks blocks of one group, whose bitmap can be read, as used or free, and counts them.
    fn mark(&mut self, run: Run, group: u32, mut descriptor: Descriptor, used: bool) -> Result<()> {
        let fs = self.fs();
        let first = (run.start - fs.group_start(group)) as u32;
        let wrong = self.modify(descriptor.block_bitmap(), Seal::None, |map| {
            let wrong = !all_are(map, first, run.count, !used);
            if !wrong {
                set_bits(map, first, run.count, used);
            }
            wrong
        })?;
        if wrong {
            return Err(Error::Corrupt("block bitmap"));
        }
        self.bitmaps.entry(group).or_default().blocks = true;
        let count = |free: u64| {
            if used { free.checked_sub(run.count.into()) } else { free.checked_add(run.count.into()) }
        };
        let in_group = count(descriptor.free_blocks().into());
        let in_group = in_group.filter(|free| *free <= fs.superblock().blocks_per_group.into());
        let in_group = in_group.ok_or(Error::Corrupt("free blocks of a group"))? as u32;
        descriptor.set_free_blocks(in_group);
        self.put_descriptor(group, &descriptor)?;
        let wide = fs.is_wide();
        let blocks_count = fs.superblock().blocks_count;
        let counted = self.modify_superblock(|raw| {
            let free = count(counts::free_blocks(raw, wide)).filter(|free| *free <= blocks_count)?;
            counts::set_free_blocks(raw, wide, free);
            Some(())
        })?;
        counted.ok_or(Error::Corrupt("free blocks"))
    }

    /// Takes a block for metadata, all zeros.
    pub(crate) fn take_metadata_block(&mut self, goal: u64, seal: Seal) -> Result<u64> {
        let block = self.take_blocks(goal, 1, Use::Metadata)?.start;
        self.zeroed(block, seal);
        Ok(block)
    }

    /// Gives blocks back.
    pub(crate) fn give_back(&mut self, run: Run, usage: Use) -> Result<()> {
        let fs = self.fs();
        if !fs.may_be_data(run.start, run.count) {
            return Err(Error::Corrupt("block number"));
        }
        let (mut at, end) = (run.start, run.start + u64::from(run.count));
        while at < end {
            let group = fs.group_of(at);
            let stop = end.min(fs.group_start(group) + u64::from(fs.superblock().blocks_per_group));
            let descriptor = fs.descriptor(self, group)?;
            let descriptor = self.prepare_block_bitmap(group, descriptor)?;
            self.mark(Run { start: at, count: (stop - at) as u32 }, group, descriptor, false)?;
            at = stop;
        }
        if usage == Use::Metadata {
            for block in run.start..end {
                self.forget(block);
                self.revoked.insert(block);
            }
        }
        self.freed.push(run);
        self.freed_blocks += u64::from(run.count);
        Ok(())
    }
}
