//! A file system that is mounted, the way that a kernel would do it: a cache, a journal, and a disk to which all writes are recorded.

use crate::image::{Disk, complete};
use ext::{
    Access, CommitState, Error, FileSystem, Inode, Io, Journal, JournalPlace, Mapping, Replay, Result, Run, Step, Time,
    Transaction, Written,
};

pub struct Mount {
    pub fs: FileSystem,
    /// What reads see.
    pub cache: Disk,
    pub journal: Option<Journal>,
    /// All that was written to the disk since it was mounted.
    pub log: Vec<Io>,
    /// The disk itself, where nobody wants to know what was lost: with all of the log written.
    pub device: Vec<u8>,
    pub clock: i64,
    pub most_changed: usize,
}

/// Replays the journal of an image, if it has to be.
pub fn replay(image: Vec<u8>) -> Result<Vec<u8>> {
    let mut disk = Disk::new(image);
    let fs = FileSystem::open(&disk, disk.blocks(), Access::ReadOnly)?;
    if !fs.superblock().needs_recovery() {
        return Ok(disk.bytes);
    }
    let place = JournalPlace::find(&fs, &disk)?;
    let mut replay = Replay::new(&fs, &disk, place)?;
    while replay.step(&disk)? == Step::More {}
    for copy in replay.copies() {
        let bytes = replay.contents(&disk, copy)?;
        disk.write(copy.to, &bytes);
    }
    let (block, bytes) = replay.log_end(&disk)?;
    disk.write(block, &bytes);
    Ok(disk.bytes)
}

impl Mount {
    pub fn new(image: Vec<u8>) -> Result<Self> {
        let image = replay(image)?;
        let cache = Disk::new(image.clone());
        Self::with(cache, image)
    }

    /// Every block is absent at first.
    pub fn cold(image: Vec<u8>) -> Result<Self> {
        let mut cache = Disk::new(image.clone());
        cache.here = Some(Default::default());
        Self::with(cache, image)
    }

    fn with(cache: Disk, device: Vec<u8>) -> Result<Self> {
        let fs = complete(&cache, || FileSystem::open(&cache, cache.blocks(), Access::ReadWrite))?;
        let journal = match complete(&cache, || JournalPlace::find(&fs, &cache)) {
            Ok(place) => Some(complete(&cache, || Journal::open(&fs, &cache, place.clone()))?),
            Err(Error::NotFound) => None,
            Err(other) => return Err(other),
        };
        let has_journal = journal.is_some();
        let mut this =
            Self { fs, cache, journal: None, log: Vec::new(), device, clock: 1_700_000_000, most_changed: 0 };
        this.change(|tx| tx.mark_mounted(has_journal))?;
        this.flush();
        this.journal = journal;
        while this.change(|tx| tx.orphan_step())? == Step::More {}
        Ok(this)
    }

    pub fn now(&self) -> Time {
        Time { seconds: self.clock, nanos: 123_456_789 }
    }

    pub fn disk_write(&mut self, block: u64, bytes: &[u8]) {
        let at = block as usize * self.cache.block_size;
        self.device[at..at + bytes.len()].copy_from_slice(bytes);
        self.log.push(Io::Write { block, bytes: bytes.into() });
    }

    pub fn flush(&mut self) {
        self.log.push(Io::Flush);
    }

    fn perform(&mut self, ios: Vec<Io>) {
        for io in ios {
            match io {
                Io::Write { block, bytes } => self.disk_write(block, &bytes),
                Io::Flush => self.flush(),
            }
        }
    }

    /// Commits what was done.
    pub fn commit(&mut self) {
        let now = self.now();
        loop {
            let Some(journal) = &mut self.journal else { return self.flush() };
            match journal.commit(now).expect("a commit") {
                CommitState::Nothing => return,
                CommitState::Busy => panic!("nothing else is under way"),
                CommitState::CheckpointFirst => self.checkpoint(),
                CommitState::Commit(commit) => {
                    self.perform(commit.ios);
                    self.journal.as_mut().expect("a journal").commit_done();
                    self.cache.pinned.clear();
                    return;
                }
            }
        }
    }

    pub fn checkpoint(&mut self) {
        let Some(journal) = &mut self.journal else { return };
        if let Some(checkpoint) = journal.checkpoint().expect("a checkpoint") {
            self.perform(checkpoint.ios);
            self.journal.as_mut().expect("a journal").checkpoint_done();
        }
    }

    /// Unmounts; the image.
    pub fn unmount(mut self) -> Vec<u8> {
        self.commit();
        self.checkpoint();
        assert!(self.journal.as_ref().is_none_or(|journal| !journal.is_dirty()));
        self.journal = None;
        self.change(|tx| tx.mark_unmounted()).expect("nothing is wrong");
        self.flush();
        self.device
    }

    /// Makes a change, as often as it needs for its blocks to be there; nothing is changed if it fails.
    pub fn change<R>(&mut self, run: impl Fn(&mut Transaction<Disk>) -> Result<R>) -> Result<R> {
        self.change_as(true, run)
    }

    pub fn change_as<R>(&mut self, privileged: bool, run: impl Fn(&mut Transaction<Disk>) -> Result<R>) -> Result<R> {
        let now = self.now();
        loop {
            let found = complete(&self.cache, || {
                let mut tx = Transaction::new(&self.fs, &self.cache, now)?;
                if privileged {
                    tx.use_reserve();
                }
                let value = run(&mut tx)?;
                Ok((value, tx.finish()?))
            });
            let (value, changes) = match found {
                Err(Error::CommitFirst) => {
                    self.commit();
                    continue;
                }
                other => other?,
            };
            self.most_changed = self.most_changed.max(changes.blocks.len());
            for run in &changes.freed {
                for block in run.start..run.start + u64::from(run.count) {
                    // What a freed block holds nobody must read.
                    self.cache.write(block, &vec![0xa5; self.cache.block_size]);
                }
            }
            for (block, bytes) in &changes.blocks {
                if let Some(here) = &self.cache.here {
                    here.borrow_mut().insert(*block);
                }
                self.cache.write(*block, bytes);
            }
            match &mut self.journal {
                Some(journal) => {
                    for run in &changes.freed {
                        self.cache.pinned.extend(run.start..run.end());
                    }
                    journal.add(changes);
                    let is_pinned = |block: &u64| journal.pinned_in(Run { start: *block, count: 1 }).is_some();
                    assert!(self.cache.pinned.iter().all(is_pinned));
                    if !journal.has_room() {
                        self.commit();
                    }
                }
                None => changes.blocks.iter().for_each(|(block, bytes)| self.disk_write(*block, bytes)),
            }
            return Ok(value);
        }
    }

    /// Reads something.
    pub fn see<R>(&self, mut run: impl FnMut(&FileSystem, &Disk) -> Result<R>) -> Result<R> {
        complete(&self.cache, || run(&self.fs, &self.cache))
    }

    pub fn inode(&self, number: u32) -> Result<Inode> {
        self.see(|fs, disk| fs.inode(disk, number))
    }

    /// Writes a file's bytes. With `unwritten`, blocks are allocated first and become visible when their contents are there.
    pub fn write(&mut self, number: u32, offset: u64, data: &[u8], unwritten: bool) -> Result<()> {
        let size = self.cache.block_size as u64;
        let end = offset + data.len() as u64;
        let (mut at, last) = ((offset / size) as u32, (end.div_ceil(size)) as u32);
        while at < last {
            let before = self.inode(number)?;
            let old = self.see(|fs, disk| fs.map(disk, &before, at))?;
            let is_new = !matches!(old, Mapping::Blocks { written: Written::Yes, .. });
            let how = if unwritten { Written::No } else { Written::Yes };
            let found = self.change_as(false, |tx| {
                let mut inode = tx.fs().inode(tx, number)?;
                let found = tx.allocate(&mut inode, at, last - at, how)?;
                if let Mapping::Blocks { count, written: Written::Yes, .. } = found {
                    let larger = inode.size().max(end.min(u64::from(at + count.min(last - at)) * size));
                    tx.set_size(&mut inode, larger)?;
                }
                Ok(found)
            })?;
            let Mapping::Blocks { start, count, written } = found else { panic!("a hole was allocated") };
            let count = count.min(last - at);
            for i in 0..count {
                let from = u64::from(at + i) * size;
                let block = start + u64::from(i);
                let mut bytes = if is_new { vec![0; size as usize] } else { self.cache.block(block).to_vec() };
                for (k, byte) in bytes.iter_mut().enumerate() {
                    let place = from + k as u64;
                    if place >= offset && place < end {
                        *byte = data[(place - offset) as usize];
                    }
                }
                self.cache.write(block, &bytes);
                self.disk_write(block, &bytes);
            }
            if written == Written::No {
                let mut done = 0;
                while done < count {
                    done += self.change(|tx| {
                        let mut inode = tx.fs().inode(tx, number)?;
                        let seen = tx.convert(&mut inode, at + done, count - done)?;
                        let larger = inode.size().max(end.min(u64::from(at + done + seen) * size));
                        tx.set_size(&mut inode, larger)?;
                        Ok(seen)
                    })?;
                }
            }
            at += count;
        }
        let now = self.now();
        self.change(|tx| {
            let mut inode = tx.fs().inode(tx, number)?;
            inode.set_mtime(now);
            let larger = inode.size().max(end);
            tx.set_size(&mut inode, larger)
        })
    }

    /// Clears a file's bytes from here to the end of the block.
    pub fn clear_tail(&mut self, number: u32, from: u64) -> Result<()> {
        let size = self.cache.block_size as u64;
        let inode = self.inode(number)?;
        if from.is_multiple_of(size) {
            return Ok(());
        }
        let found = self.see(|fs, disk| fs.map(disk, &inode, (from / size) as u32))?;
        if let Mapping::Blocks { start, written: Written::Yes, .. } = found {
            let mut bytes = self.cache.block(start).to_vec();
            bytes[(from % size) as usize..].fill(0);
            self.cache.write(start, &bytes);
            self.disk_write(start, &bytes);
        }
        Ok(())
    }

    pub fn truncate(&mut self, number: u32, size: u64) -> Result<()> {
        let old = self.inode(number)?.size();
        let mut step = self.change(|tx| {
            let mut inode = tx.fs().inode(tx, number)?;
            tx.truncate(&mut inode, size)
        })?;
        if size < old {
            self.clear_tail(number, size)?;
        }
        while step == Step::More {
            step = self.change(|tx| {
                let mut inode = tx.fs().inode(tx, number)?;
                tx.truncate_step(&mut inode)
            })?;
        }
        Ok(())
    }

    pub fn punch(&mut self, number: u32, from: u32, mut end: u32) -> Result<()> {
        while end > from {
            let gone_from = self.change(|tx| {
                let mut inode = tx.fs().inode(tx, number)?;
                tx.punch(&mut inode, from, end)
            })?;
            let inode = self.inode(number)?;
            let mut at = gone_from;
            while at < end {
                match complete(&self.cache, || self.fs.map(&self.cache, &inode, at))? {
                    Mapping::Hole { count } => at = at.saturating_add(count),
                    Mapping::Blocks { .. } => panic!("block {at} is not gone"),
                }
            }
            assert!(gone_from < end || gone_from == from, "nothing was done");
            end = gone_from;
        }
        Ok(())
    }

    /// Deletes an inode that has no names.
    pub fn delete(&mut self, number: u32) -> Result<()> {
        while self.change(|tx| tx.delete_step(number))? == Step::More {}
        Ok(())
    }

    pub fn read(&self, number: u32) -> Result<Vec<u8>> {
        let inode = self.inode(number)?;
        let size = self.cache.block_size as u64;
        let mut data = vec![0; inode.size() as usize];
        let mut at = 0;
        while u64::from(at) * size < inode.size() {
            match self.see(|fs, disk| fs.map(disk, &inode, at))? {
                Mapping::Blocks { start, count, written } => {
                    for i in 0..count {
                        let from = u64::from(at + i) * size;
                        if from < inode.size() && written == Written::Yes {
                            let len = size.min(inode.size() - from) as usize;
                            let block = self.cache.block(start + u64::from(i));
                            data[from as usize..from as usize + len].copy_from_slice(&block[..len]);
                        }
                    }
                    at += count;
                }
                Mapping::Hole { count } => at = at.saturating_add(count),
            }
        }
        Ok(data)
    }

    /// A directory's names and inodes, without its own two; listed with a stop after each few.
    pub fn names(&self, number: u32) -> Result<Vec<(Vec<u8>, u32)>> {
        let dir = self.inode(number)?;
        let mut all = Vec::new();
        let mut from = ext::Position::START;
        let mut guard = 0;
        while from != ext::Position::END {
            let before = all.len();
            let stop_after = 1 + (from.0 >> 3) % 40;
            from = self.see(|fs, disk| {
                all.truncate(before);
                fs.list(disk, &dir, from, |entry| {
                    all.push((entry.name.to_vec(), entry.inode));
                    if (all.len() - before) as u64 >= stop_after {
                        std::ops::ControlFlow::Break(())
                    } else {
                        std::ops::ControlFlow::Continue(())
                    }
                })
            })?;
            guard += 1;
            assert!(guard < 1_000_000, "a listing without end");
        }
        all.retain(|(name, _)| name != b"." && name != b"..");
        Ok(all)
    }
}
