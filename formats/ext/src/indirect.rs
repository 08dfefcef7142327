//! Blocks by indirect blocks, as in ext2: twelve numbers in the inode, and trees of one, two and three levels of blocks full of numbers.

use crate::alloc::Use;
use crate::blocks::{Blocks, Run};
use crate::bytes::{le32, put32};
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::inode::Inode;
use crate::map::{Mapping, Written};
use crate::transaction::{Seal, Transaction};
use std_alloc::vec::Vec;

/// Numbers in the inode that are data.
pub const DIRECT: u64 = 12;

/// The way to a file's block: which number in the inode, and which in each indirect block after that.
struct Path {
    slots: [usize; 4],
    len: usize,
}

fn path(block_size: u32, at: u32) -> Result<Path> {
    let per = u64::from(block_size / 4);
    let at = u64::from(at);
    if at < DIRECT {
        return Ok(Path { slots: [at as usize, 0, 0, 0], len: 1 });
    }
    let mut rest = at - DIRECT;
    for levels in 1..=3_usize {
        let span = per.pow(levels as u32);
        if rest < span {
            let mut slots = [11 + levels, 0, 0, 0];
            for (level, slot) in slots.iter_mut().enumerate().take(levels + 1).skip(1) {
                *slot = (rest / per.pow((levels - level) as u32) % per) as usize;
            }
            return Ok(Path { slots, len: levels + 1 });
        }
        rest -= span;
    }
    Err(Error::TooLarge)
}

/// How many numbers from `from` on, at most `most`, are zero, or go up by one; and the first.
fn run_of(numbers: &[u8], from: usize, most: usize) -> (u64, u32) {
    let first = le32(numbers, from * 4);
    let expected = |i: usize| if first == 0 { Some(0) } else { first.checked_add(i as u32) };
    let count = (1..most).take_while(|i| expected(*i) == Some(le32(numbers, (from + i) * 4))).count();
    (first.into(), count as u32 + 1)
}

impl FileSystem {
    fn check_pointer(&self, block: u64, count: u32) -> Result<u64> {
        if self.may_be_data(block, count) { Ok(block) } else { Err(Error::Corrupt("block number of a file")) }
    }

    pub(crate) fn map_indirect(&self, blocks: &impl Blocks, inode: &Inode, at: u32) -> Result<Mapping> {
        let per = self.block_size() as usize / 4;
        let path = path(self.block_size(), at)?;
        let last = path.len - 1;
        let room = if last == 0 { DIRECT as usize } else { per } - path.slots[last];
        let (mut number, mut count) = run_of(inode.block_field(), path.slots[0], if last == 0 { room } else { 1 });
        for level in 1..path.len {
            if number == 0 {
                // All that this number stands for is missing, from here on.
                let span = per.pow((path.len - level) as u32) as u64;
                let inside = (level..path.len).fold(0, |sum, i| sum * per as u64 + path.slots[i] as u64);
                return Ok(Mapping::Hole { count: (span - inside).min(u64::from(u32::MAX - at)).max(1) as u32 });
            }
            self.check_pointer(number, 1)?;
            (number, count) = blocks
                .read(number, |numbers| run_of(numbers, path.slots[level], if level == last { room } else { 1 }))?;
        }
        if number == 0 {
            return Ok(Mapping::Hole { count });
        }
        Ok(Mapping::Blocks { start: self.check_pointer(number, count)?, count, written: Written::Yes })
    }
}

impl<B: Blocks> Transaction<'_, B> {
    pub(crate) fn allocate_indirect(&mut self, inode: &mut Inode, at: u32, count: u32, usage: Use) -> Result<Mapping> {
        let fs = self.fs();
        let path = path(fs.block_size(), at)?;
        let mut goal = self.goal(inode, at)?;
        // The indirect blocks that are missing, from above.
        let mut holder = None;
        for level in 0..path.len - 1 {
            let found = self.number(inode, holder, path.slots[level])?;
            let block = if found == 0 {
                let block = self.take_metadata_block(goal, Seal::None)?;
                inode.add_blocks(fs, 1)?;
                self.set_numbers(inode, holder, path.slots[level], Run { start: block, count: 1 })?;
                goal = block + 1;
                block
            } else {
                fs.check_pointer(found, 1)?
            };
            holder = Some(block);
        }
        // A hole may be longer than what one indirect block stands for.
        let slot = path.slots[path.len - 1];
        let slots = if path.len == 1 { DIRECT as u32 } else { fs.block_size() / 4 };
        let run = self.take_blocks(goal, count.min(slots - slot as u32), usage)?;
        if run.start + u64::from(run.count) > u64::from(u32::MAX) {
            return Err(Error::NoSpace);
        }
        inode.add_blocks(fs, run.count.into())?;
        self.set_numbers(inode, holder, slot, run)?;
        Ok(Mapping::Blocks { start: run.start, count: run.count, written: Written::Yes })
    }

    /// A number in an indirect block, or in the inode.
    fn number(&self, inode: &Inode, holder: Option<u64>, slot: usize) -> Result<u64> {
        Ok(match holder {
            None => le32(inode.block_field(), slot * 4).into(),
            Some(block) => self.read(block, |numbers| le32(numbers, slot * 4))?.into(),
        })
    }

    fn set_numbers(&mut self, inode: &mut Inode, holder: Option<u64>, slot: usize, run: Run) -> Result<()> {
        let fill = |numbers: &mut [u8]| {
            for i in 0..run.count {
                put32(numbers, (slot + i as usize) * 4, (run.start as u32).wrapping_add(i));
            }
        };
        match holder {
            None => fill(inode.block_field_mut()),
            Some(block) => self.modify(block, Seal::None, fill)?,
        }
        Ok(())
    }

    /// As [`remove_extents`](Self::remove_extents).
    pub(crate) fn remove_indirect(&mut self, inode: &mut Inode, from: u32, end: u32, usage: Use) -> Result<u32> {
        let per = u64::from(self.fs().block_size() / 4);
        let (from, end) = (u64::from(from), u64::from(end));
        // From the end, so that what is left is always the file's beginning.
        let mut starts = [0; 4];
        starts[1] = DIRECT;
        starts[2] = DIRECT + per;
        starts[3] = DIRECT + per + per * per;
        for levels in (1..=3_usize).rev() {
            let slot = 11 + levels;
            let number = u64::from(le32(inode.block_field(), slot * 4));
            let span = per.pow(levels as u32);
            let (base, below) = (starts[levels], end.min(starts[levels] + span));
            if number == 0 || from.max(base) >= below {
                continue;
            }
            let range = (from.max(base) - base, below - base);
            let (rest, is_empty) = self.remove_branch(inode, number, levels, range, usage)?;
            if is_empty {
                put32(inode.block_field_mut(), slot * 4, 0);
            }
            if rest > range.0 {
                return Ok((base + rest) as u32);
            }
        }
        for slot in (from.min(DIRECT)..end.min(DIRECT)).rev() {
            let number = u64::from(le32(inode.block_field(), slot as usize * 4));
            if number != 0 {
                if self.is_full() {
                    return Ok(slot as u32 + 1);
                }
                self.give_back(Run { start: number, count: 1 }, usage)?;
                inode.add_blocks(self.fs(), -1)?;
                put32(inode.block_field_mut(), slot as usize * 4, 0);
            }
        }
        Ok(from as u32)
    }

    /// Frees what is in a range of an indirect block's blocks; itself too, if nothing is left in it, which the second result says. The first is as that of
    /// [`remove_extents`](Self::remove_extents).
    fn remove_branch(
        &mut self,
        inode: &mut Inode,
        block: u64,
        levels: usize,
        range: (u64, u64),
        usage: Use,
    ) -> Result<(u64, bool)> {
        let fs = self.fs();
        fs.check_pointer(block, 1)?;
        let per = u64::from(fs.block_size() / 4);
        let span = per.pow(levels as u32 - 1);
        let mut numbers: Vec<u32> =
            self.read(block, |bytes| (0..per as usize).map(|i| le32(bytes, i * 4)).collect())?;
        let before = numbers.clone();
        let (first, last) = ((range.0 / span) as usize, ((range.1 - 1) / span) as usize);
        let mut rest = range.0;
        let mut slot = last + 1;
        while slot > first {
            slot -= 1;
            if numbers[slot] == 0 {
                continue;
            }
            if self.is_full() {
                rest = ((slot as u64 + 1) * span).min(range.1);
                break;
            }
            if levels == 1 {
                let mut start = slot;
                while start > first && numbers[start - 1] != 0 && numbers[start - 1] == numbers[start] - 1 {
                    start -= 1;
                }
                let run = Run { start: numbers[start].into(), count: (slot - start + 1) as u32 };
                self.give_back(run, usage)?;
                inode.add_blocks(fs, -i64::from(run.count))?;
                numbers[start..=slot].fill(0);
                slot = start;
            } else {
                let base = slot as u64 * span;
                let inside = (range.0.max(base) - base, range.1.min(base + span) - base);
                let (inside_rest, is_empty) =
                    self.remove_branch(inode, numbers[slot].into(), levels - 1, inside, usage)?;
                if is_empty {
                    numbers[slot] = 0;
                }
                if inside_rest > inside.0 {
                    rest = base + inside_rest;
                    break;
                }
            }
        }
        if numbers.iter().all(|number| *number == 0) {
            self.give_back(Run { start: block, count: 1 }, Use::Metadata)?;
            inode.add_blocks(fs, -1)?;
            return Ok((rest, true));
        }
        if numbers != before {
            self.modify(block, Seal::None, |bytes| {
                numbers.iter().enumerate().for_each(|(i, number)| put32(bytes, i * 4, *number));
            })?;
        }
        Ok((rest, false))
    }
}
