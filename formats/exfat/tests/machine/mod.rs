//! A file system that is written, with what is around the crate in a kernel: changes that are not on the disk, commits, what is known of files; and what the disk was told, so that power can be cut anywhere.

#![allow(dead_code, reason = "each test uses a part")]

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};

use exfat::{
    Absent, ChainIndex, Content, Directory, DirectoryIndex, Error, FileSystem, IndexChange, Io, Node, Opening, Pending,
    Place, Purpose, Source, Store, Tail, Time, Transaction, Usage,
};

const PAGE: u64 = 4096;

/// What the disk was told.
#[derive(Clone)]
pub enum Event {
    Write(u64, Vec<u8>),
    Flush,
}

/// The blocks, as they are now; of the disk only pages that came.
pub struct Blocks {
    pub disk: Vec<u8>,
    changed: BTreeMap<u64, Box<[u8]>>,
    pending: Pending,
    bits: u32,
    present: RefCell<BTreeSet<u64>>,
    missing: Cell<Option<u64>>,
    may_go_on: Cell<bool>,
    /// Everything is there.
    pub is_warm: bool,
}

impl Source for Blocks {
    fn copy(&self, address: u64, to: &mut [u8]) -> Result<(), Absent> {
        let end = address + to.len() as u64;
        assert!(end <= self.disk.len() as u64, "{address} and {} bytes", to.len());
        let absent = (address / PAGE..end.div_ceil(PAGE)).find(|page| !self.present.borrow().contains(page));
        if let Some(page) = absent
            && !self.is_warm
        {
            self.missing.set(Some(page));
            return Err(Absent);
        }
        to.copy_from_slice(&self.disk[address as usize..end as usize]);
        for (number, bytes) in self.changed.range(address >> self.bits..end.div_ceil(1 << self.bits)) {
            let start = number << self.bits;
            let (from, until) = (address.max(start), end.min(start + bytes.len() as u64));
            to[(from - address) as usize..(until - address) as usize]
                .copy_from_slice(&bytes[(from - start) as usize..(until - start) as usize]);
        }
        Ok(())
    }

    fn pause(&self) -> Result<(), Absent> {
        if self.is_warm || self.may_go_on.replace(false) { Ok(()) } else { Err(Absent) }
    }
}

impl Store for Blocks {
    fn early(&self, block: u64) -> Option<Box<[u8]>> {
        self.pending.early(block)
    }

    fn pinned_until(&self, cluster: u32) -> Option<u32> {
        self.pending.pinned_until(cluster)
    }
}

/// What is known of a file.
#[derive(Default)]
pub struct Known {
    names: DirectoryIndex,
    chain: ChainIndex,
    unfolded: u32,
}

pub struct Machine {
    pub blocks: Blocks,
    pub fs: FileSystem,
    pub usage: Usage,
    known: HashMap<u64, Known>,
    pub log: Vec<Event>,
    now: i64,
}

impl Machine {
    pub fn open(disk: Vec<u8>, is_warm: bool) -> Result<Self, Error> {
        let bytes = disk.len() as u64;
        let mut blocks = Blocks {
            disk,
            changed: BTreeMap::new(),
            pending: Pending::default(),
            bits: 9,
            present: RefCell::default(),
            missing: Cell::new(None),
            may_go_on: Cell::new(false),
            is_warm,
        };
        let mut opening = Opening::new(0x0fed_cba9_8765_4321);
        let fs = repeat(&blocks, || FileSystem::open(&blocks, bytes, &mut opening))?;
        blocks.bits = fs.block_bytes().ilog2();
        let mut usage = Usage::default();
        repeat(&blocks, || fs.count(&blocks, &mut usage))?;
        fs.check_to_write(&usage)?;
        Ok(Machine { blocks, fs, usage, known: HashMap::new(), log: Vec::new(), now: 1_700_000_000 })
    }

    /// Reads.
    pub fn read<R>(&self, mut read: impl FnMut(&Blocks) -> Result<R, Error>) -> Result<R, Error> {
        repeat(&self.blocks, || read(&self.blocks))
    }

    /// Makes a change: all of it or nothing.
    fn change<R>(
        &mut self,
        mut change: impl FnMut(&mut Transaction<'_, Blocks>, &mut HashMap<u64, Known>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.now += 1;
        let now = Time { seconds: self.now, nanoseconds: 120_000_000 };
        for _ in 0..4 {
            let (fs, blocks, usage, known) = (&self.fs, &self.blocks, &self.usage, &mut self.known);
            let outcome = repeat(blocks, || {
                let mut tx = Transaction::new(fs, blocks, usage, now);
                change(&mut tx, known).map(|value| (value, tx.finish()))
            });
            match outcome {
                Ok((value, changes)) => {
                    self.usage.apply(&changes);
                    for (number, block) in &changes.blocks {
                        self.blocks.changed.insert(*number, block.bytes.clone());
                    }
                    assert!(changes.blocks.len() < 256);
                    self.blocks.pending.add(changes);
                    if !self.blocks.pending.has_room() {
                        self.commit();
                    }
                    return Ok(value);
                }
                Err(Error::CommitFirst) => self.commit(),
                Err(error) => return Err(error),
            }
        }
        panic!("a commit has made no room");
    }

    pub fn commit(&mut self) {
        let Some(ios) = self.blocks.pending.commit() else { return };
        for io in ios {
            match io {
                Io::Write(number, bytes) => self.write(number << self.blocks.bits, &bytes),
                Io::Flush => self.log.push(Event::Flush),
            }
        }
        self.blocks.pending.commit_done();
        self.blocks.changed.clear();
    }

    fn write(&mut self, address: u64, bytes: &[u8]) {
        self.blocks.disk[address as usize..address as usize + bytes.len()].copy_from_slice(bytes);
        self.log.push(Event::Write(address, bytes.to_vec()));
    }

    pub fn node(&self, number: u64) -> Result<Node, Error> {
        self.read(|blocks| self.fs.node(blocks, number))
    }

    pub fn size_of(&mut self, path: &str) -> u64 {
        let number = self.find(path).unwrap();
        self.node(number).unwrap().size
    }

    /// The number of a file.
    pub fn find(&mut self, path: &str) -> Result<u64, Error> {
        let mut number = self.fs.root();
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let node = self.node(number)?;
            let known = self.known.entry(number).or_default();
            let (fs, blocks) = (&self.fs, &self.blocks);
            number = repeat(blocks, || fs.look_up(blocks, &node, &mut known.names, name.as_bytes()))?;
        }
        Ok(number)
    }

    fn parent(&mut self, path: &str) -> Result<(u64, String), Error> {
        let (parent, name) = path.rsplit_once('/').unwrap();
        Ok((self.find(parent)?, name.to_owned()))
    }

    fn changed(&mut self, number: u64, change: &IndexChange) {
        assert!(self.known.entry(number).or_default().names.change(change));
    }

    pub fn create(&mut self, path: &str, is_directory: bool) -> Result<u64, Error> {
        let (parent, name) = self.parent(path)?;
        let (change, number) = self.change(|tx, known| {
            let mut directory = open(tx, parent, known)?;
            let made = tx.create(&mut directory, name.as_bytes(), is_directory, false)?;
            Ok((directory.change, made.number))
        })?;
        self.changed(parent, &change);
        self.known.remove(&number);
        Ok(number)
    }

    pub fn remove(&mut self, path: &str) -> Result<(), Error> {
        let (parent, name) = self.parent(path)?;
        let number = self.find(path)?;
        let (change, node) = self.change(|tx, known| {
            let node = tx.fs().node(tx, number)?;
            if node.is_directory {
                let mut own = known.remove(&number).unwrap_or_default();
                let outcome = tx.check_empty(&node, &mut own.names);
                known.insert(number, own);
                outcome?;
            }
            let mut directory = open(tx, parent, known)?;
            let node = tx.unlink(&mut directory, name.as_bytes())?;
            Ok((directory.change, node))
        })?;
        self.changed(parent, &change);
        self.known.remove(&number);
        self.free(Tail::of(&node, self.fs.cluster_bytes()))
    }

    fn free(&mut self, mut tail: Option<Tail>) -> Result<(), Error> {
        while let Some(now) = tail {
            tail = self.change(|tx, _| tx.free_tail(now))?;
        }
        Ok(())
    }

    pub fn rename(&mut self, from: &str, to: &str) -> Result<(), Error> {
        let ((from, name), (to, new)) = (self.parent(from)?, self.parent(to)?);
        let (changes, renamed) = self.change(|tx, known| {
            let mut own = (to != from).then(|| known.remove(&to).unwrap_or_default());
            let outcome = (|| {
                let mut target = match &mut own {
                    Some(own) => Some(open_known(tx, to, own)?),
                    None => None,
                };
                let mut directory = open(tx, from, known)?;
                let renamed = tx.rename(&mut directory, name.as_bytes(), target.as_mut(), new.as_bytes())?;
                Ok(((directory.change, target.map(|target| target.change)), renamed))
            })();
            if let Some(own) = own {
                known.insert(to, own);
            }
            outcome
        })?;
        self.changed(from, &changes.0);
        if let Some(change) = &changes.1 {
            self.changed(to, change);
        }
        let known = self.known.remove(&renamed.moved);
        self.known.remove(&renamed.number);
        if let Some(known) = known {
            self.known.insert(renamed.number, known);
        }
        let tail = renamed.replaced.and_then(|node| Tail::of(&node, self.fs.cluster_bytes()));
        self.free(tail)
    }

    /// Changes a file's content.
    fn content<R>(
        &mut self,
        number: u64,
        mut change: impl FnMut(&mut Transaction<'_, Blocks>, &mut Content<'_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let (value, unfolded) = self.change(|tx, known| {
            let node = tx.fs().node(tx, number)?;
            let known = known.entry(number).or_default();
            let mut content = Content { node, index: &mut known.chain, unfolded: known.unfolded };
            let value = change(tx, &mut content)?;
            tx.save(number, &content.node)?;
            Ok((value, content.unfolded))
        })?;
        self.known.entry(number).or_default().unfolded = unfolded;
        Ok(value)
    }

    fn allocate(&mut self, number: u64, range: std::ops::Range<u64>, what: Purpose) -> Result<u64, Error> {
        for _ in 0..1000 {
            let reached = self.content(number, |tx, content| tx.allocate(content, &range, what))?;
            if reached > range.start {
                return Ok(reached);
            }
        }
        panic!("nothing comes of an allocation");
    }

    /// Writes to a file; how much, as the disk may be full.
    pub fn write_file(&mut self, number: u64, offset: u64, bytes: &[u8]) -> Result<usize, Error> {
        loop {
            let written = self.node(number)?.written;
            if written >= offset {
                break;
            }
            let reached = self.allocate(number, written..offset, Purpose::Written)?;
            self.put(number, written, &vec![0; (reached - written) as usize])?;
        }
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            let reached = match self.allocate(number, at..offset + bytes.len() as u64, Purpose::Written) {
                Ok(reached) => reached,
                Err(Error::NoSpace) if done > 0 => break,
                Err(error) => return Err(error),
            };
            let len = (reached - at) as usize;
            self.put(number, at, &bytes[done..done + len])?;
            done += len;
        }
        Ok(done)
    }

    /// Puts bytes where a file's clusters are.
    fn put(&mut self, number: u64, mut offset: u64, mut bytes: &[u8]) -> Result<(), Error> {
        let node = self.node(number)?;
        while !bytes.is_empty() {
            let (fs, blocks) = (&self.fs, &self.blocks);
            let known = self.known.entry(number).or_default();
            let mapping = repeat(blocks, || fs.map(blocks, &node, &mut known.chain, offset))?;
            let Place::Device(address) = mapping.place else { return Err(Error::Invalid) };
            let (now, later) = bytes.split_at(mapping.bytes.min(bytes.len() as u64) as usize);
            self.write(address, now);
            (offset, bytes) = (offset + now.len() as u64, later);
        }
        Ok(())
    }

    /// Makes a file longer, from somewhere on, which may be behind its end.
    pub fn allocate_ahead(&mut self, number: u64, range: std::ops::Range<u64>) -> Result<(), Error> {
        let mut at = range.start;
        while at < range.end {
            at = self.allocate(number, at..range.end, Purpose::Ahead)?;
        }
        Ok(())
    }

    pub fn resize(&mut self, number: u64, size: u64) -> Result<(), Error> {
        let now = self.node(number)?.size;
        if size > now {
            let mut at = now;
            while at < size {
                at = self.allocate(number, at..size, Purpose::Ahead)?;
            }
            return Ok(());
        }
        let tail = self.content(number, |tx, content| tx.shorten(content, size))?;
        let left = size.div_ceil(self.fs.cluster_bytes().into()) as u32;
        self.known.entry(number).or_default().chain.cut(left);
        self.free(tail)
    }

    pub fn read_file(&mut self, number: u64) -> Result<Vec<u8>, Error> {
        let node = self.node(number)?;
        let mut bytes = vec![0; node.size as usize];
        let (fs, blocks) = (&self.fs, &self.blocks);
        let known = self.known.entry(number).or_default();
        repeat(blocks, || fs.read(blocks, &node, &mut known.chain, 0, &mut bytes))?;
        Ok(bytes)
    }

    /// The names of a directory.
    pub fn list(&mut self, number: u64) -> Result<Vec<(String, u64, bool)>, Error> {
        let node = self.node(number)?;
        let (fs, blocks) = (&self.fs, &self.blocks);
        let known = self.known.entry(number).or_default();
        let mut all = Vec::new();
        let mut position = 0;
        loop {
            let outcome = fs.list(blocks, &node, &mut known.names, position, |entry| {
                all.push((entry.name.to_owned(), entry.number, entry.is_directory));
                position = entry.next;
                true
            });
            match outcome {
                Ok(()) => return Ok(all),
                Err(Error::Absent) => blocks.fetch(),
                Err(error) => return Err(error),
            }
        }
    }
}

fn open<'i>(
    tx: &Transaction<'_, Blocks>,
    number: u64,
    known: &'i mut HashMap<u64, Known>,
) -> Result<Directory<'i>, Error> {
    open_known(tx, number, known.entry(number).or_default())
}

fn open_known<'i>(tx: &Transaction<'_, Blocks>, number: u64, known: &'i mut Known) -> Result<Directory<'i>, Error> {
    let place = (number != tx.fs().root()).then_some(number);
    Ok(Directory::new(place, tx.fs().node(tx, number)?, &mut known.names))
}

impl Blocks {
    fn fetch(&self) {
        assert!(!self.is_warm);
        self.may_go_on.set(true);
        if let Some(page) = self.missing.take() {
            self.present.borrow_mut().insert(page);
        }
    }
}

/// Runs an operation until it has what it needs; at its start nothing is at hand.
fn repeat<R>(blocks: &Blocks, mut operation: impl FnMut() -> Result<R, Error>) -> Result<R, Error> {
    blocks.present.borrow_mut().clear();
    for _ in 0..100_000 {
        match operation() {
            Err(Error::Absent) => blocks.fetch(),
            result => return result,
        }
    }
    panic!("an operation does not come to its end");
}
