//! A device with what of it is at hand; and a small writer of exFAT, which does what the tests need and no more: it never uses a cluster again, and knows nothing of caches.

#![allow(dead_code, reason = "each test uses a part")]

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::fs;
use std::process::Command;

use exfat::{Absent, Error, FileSystem, Opening, Source, Time, Usage};

/// Random numbers: xorshift64*.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

const PAGE: u64 = 4096;

/// A device of which nothing is at hand at the start of each operation, and where every operation must leave off again and again.
pub struct Device {
    bytes: Vec<u8>,
    present: RefCell<HashSet<u64>>,
    missing: Cell<Option<u64>>,
    may_go_on: Cell<bool>,
    is_warm: bool,
}

impl Device {
    pub fn new(bytes: Vec<u8>) -> Self {
        Device {
            bytes,
            present: RefCell::default(),
            missing: Cell::new(None),
            may_go_on: Cell::new(false),
            is_warm: false,
        }
    }

    pub fn warm(self) -> Self {
        Device { is_warm: true, ..self }
    }

    pub fn bytes(&self, address: u64, len: usize) -> &[u8] {
        &self.bytes[address as usize..address as usize + len]
    }

    pub fn open(&self) -> Result<FileSystem, Error> {
        let mut opening = Opening::new(0x1234_5678_9abc_def1);
        self.run(|source| FileSystem::open(source, self.bytes.len() as u64, &mut opening))
    }

    /// How many clusters are in use.
    pub fn used_clusters(&self, file_system: &FileSystem) -> Result<u32, Error> {
        let mut usage = Usage::default();
        self.run(|source| file_system.count(source, &mut usage))?;
        Ok(file_system.clusters() - usage.free())
    }

    pub fn run<R>(&self, mut operation: impl FnMut(&Self) -> Result<R, Error>) -> Result<R, Error> {
        self.present.borrow_mut().clear();
        for _ in 0..100_000 {
            self.missing.set(None);
            self.may_go_on.set(true);
            match operation(self) {
                Err(Error::Absent) => {
                    assert!(!self.is_warm);
                    if let Some(page) = self.missing.get() {
                        assert!(self.present.borrow_mut().insert(page), "page {page} was there");
                    }
                }
                result => return result,
            }
        }
        panic!("an operation does not come to its end");
    }
}

impl Source for Device {
    fn copy(&self, address: u64, to: &mut [u8]) -> Result<(), Absent> {
        let end = address + to.len() as u64;
        assert!(end <= self.bytes.len() as u64, "{address} and {} bytes", to.len());
        let absent = (address / PAGE..end.div_ceil(PAGE)).find(|page| !self.present.borrow().contains(page));
        if let Some(page) = absent
            && !self.is_warm
        {
            self.missing.set(Some(page));
            return Err(Absent);
        }
        to.copy_from_slice(&self.bytes[address as usize..end as usize]);
        Ok(())
    }

    fn pause(&self) -> Result<(), Absent> {
        // Every second time.
        if self.is_warm || self.may_go_on.replace(false) { Ok(()) } else { Err(Absent) }
    }
}

/// When all files were changed.
pub const TIME: Time = Time { seconds: 1_709_210_097, nanoseconds: 500_000_000 };
/// The same as exFAT has it, two hours east of UTC: 29 February 2024, 14:34:56, and 1.5 s.
const STAMP: u32 = 44 << 25 | 2 << 21 | 29 << 16 | 14 << 11 | 34 << 5 | 28;

/// Where a file's entries are.
#[derive(Clone, Copy)]
pub struct File {
    /// Bytes of the device; 0: the root directory.
    at: usize,
    secondary: usize,
}

/// A file system that is being filled.
pub struct Disk {
    pub bytes: Vec<u8>,
    /// Where metadata is: starts and lengths.
    pub metadata: Vec<(usize, usize)>,
    fat: usize,
    heap: usize,
    cluster: usize,
    clusters: usize,
    root: usize,
    bitmap: usize,
    /// The next cluster that was never used.
    next: usize,
}

fn le32(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

fn put32(bytes: &mut [u8], at: usize, value: usize) {
    bytes[at..at + 4].copy_from_slice(&(value as u32).to_le_bytes());
}

impl Disk {
    pub fn make(options: &str, len: usize) -> Self {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let path = directory.path().join("disk");
        fs::File::create(&path).unwrap().set_len(len as u64).unwrap();
        let output = Command::new("/usr/sbin/mkfs.exfat").args(options.split_whitespace()).arg(&path).output();
        let output = output.expect("mkfs.exfat is in Debian's package exfatprogs; tools/build/setup installs it");
        assert!(output.status.success(), "{options}: {}", String::from_utf8_lossy(&output.stderr));
        let bytes = fs::read(&path).unwrap();
        let sector = 1 << bytes[108];
        let (fat, heap) = (le32(&bytes, 80) * sector, le32(&bytes, 88) * sector);
        let (clusters, cluster) = (le32(&bytes, 92), sector << bytes[109]);
        let root = le32(&bytes, 96);
        let mut disk = Disk { metadata: Vec::new(), fat, heap, cluster, clusters, root, bitmap: 0, next: 0, bytes };
        let start = disk.address(root);
        disk.metadata = vec![(0, 12 * sector), (fat, 4096), (start, 4096.min(cluster))];
        for at in (start..start + cluster).step_by(32) {
            let entry = &disk.bytes[at..at + 32];
            match entry[0] {
                0x81 => disk.bitmap = disk.address(le32(entry, 20)),
                0x82 => {
                    let table = (disk.address(le32(entry, 20)), le32(entry, 24));
                    disk.metadata.push(table);
                }
                _ => {}
            }
        }
        disk.next = (2..).find(|number| disk.is_free(*number) && (*number..clusters).all(|n| disk.is_free(n))).unwrap();
        disk
    }

    fn address(&self, cluster: usize) -> usize {
        self.heap + (cluster - 2) * self.cluster
    }

    fn is_free(&self, cluster: usize) -> bool {
        self.bytes[self.bitmap + (cluster - 2) / 8] >> ((cluster - 2) % 8) & 1 == 0
    }

    /// Clusters that are in use from now on, one after another or with one free between them.
    fn allocate(&mut self, count: usize, is_contiguous: bool) -> Vec<usize> {
        let step = if is_contiguous { 1 } else { 2 };
        let found: Vec<usize> = (0..count).map(|number| self.next + number * step).collect();
        self.next += count * step;
        assert!(self.next < self.clusters, "the disk is full");
        for cluster in &found {
            self.bytes[self.bitmap + (cluster - 2) / 8] |= 1 << ((cluster - 2) % 8);
        }
        found
    }

    fn link(&mut self, clusters: &[usize]) {
        for pair in clusters.windows(2) {
            put32(&mut self.bytes, self.fat + 4 * pair[0], pair[1]);
        }
        if let Some(last) = clusters.last() {
            put32(&mut self.bytes, self.fat + 4 * last, 0xffff_ffff);
        }
    }

    pub fn root(&self) -> File {
        File { at: 0, secondary: 0 }
    }

    /// The clusters of a directory.
    fn chain(&self, directory: File) -> Vec<usize> {
        let mut cluster = if directory.at == 0 { self.root } else { le32(&self.bytes, directory.at + 32 + 20) };
        let mut chain = vec![cluster];
        loop {
            match le32(&self.bytes, self.fat + 4 * cluster) {
                0xffff_ffff => return chain,
                next => cluster = next,
            }
            chain.push(cluster);
        }
    }

    pub fn create(&mut self, parent: File, name: &str, is_directory: bool) -> File {
        let units: Vec<u16> = name.encode_utf16().collect();
        let secondary = 1 + units.len().div_ceil(15);
        let mut set = vec![0; 32 * (secondary + 1)];
        set[0] = 0x85;
        set[1] = secondary as u8;
        set[4] = if is_directory { 0x10 } else { 0x20 };
        for at in [8, 12, 16] {
            put32(&mut set, at, STAMP as usize);
        }
        (set[20], set[21]) = (150, 150);
        set[22..25].fill(0x88);
        (set[32], set[33], set[35]) = (0xc0, 1, units.len() as u8);
        let hash = units.iter().map(|unit| upper(*unit)).flat_map(u16::to_le_bytes);
        let hash = hash.fold(0, |hash: u16, byte| hash.rotate_right(1).wrapping_add(byte.into()));
        set[36..38].copy_from_slice(&hash.to_le_bytes());
        for (part, units) in units.chunks(15).enumerate() {
            let at = 64 + 32 * part;
            set[at] = 0xc1;
            for (unit, value) in units.iter().enumerate() {
                set[at + 2 + 2 * unit..][..2].copy_from_slice(&value.to_le_bytes());
            }
        }
        let at = self.place(parent, &set);
        let file = File { at, secondary };
        if is_directory {
            let clusters = self.allocate(1, true);
            self.link(&clusters);
            let start = self.address(clusters[0]);
            self.metadata.push((start, self.cluster.min(2048)));
            self.set_content(file, clusters[0], self.cluster, self.cluster, false);
        }
        self.seal(file);
        file
    }

    /// Puts a set behind the last entry of a directory, within one cluster so that it stays in one piece.
    fn place(&mut self, parent: File, set: &[u8]) -> usize {
        let chain = self.chain(parent);
        let start = self.address(*chain.last().unwrap());
        let free = (start..start + self.cluster).step_by(32).find(|at| self.bytes[*at] == 0);
        let end = start + self.cluster;
        if let Some(at) = free.filter(|at| at + set.len() <= end) {
            self.bytes[at..at + set.len()].copy_from_slice(set);
            return at;
        }
        // Entries that are not in use fill the rest.
        for at in (free.unwrap_or(end)..end).step_by(32) {
            self.bytes[at] = 0x05;
        }
        let cluster = self.allocate(1, true)[0];
        self.link(&[*chain.last().unwrap(), cluster]);
        let at = self.address(cluster);
        self.metadata.push((at, self.cluster.min(2048)));
        self.bytes[at..at + set.len()].copy_from_slice(set);
        if parent.at != 0 {
            let bytes = (chain.len() + 1) * self.cluster;
            self.set_content(parent, chain[0], bytes, bytes, false);
            self.seal(parent);
        }
        at
    }

    fn set_content(&mut self, file: File, first: usize, len: usize, written: usize, is_contiguous: bool) {
        let stream = &mut self.bytes[file.at + 32..file.at + 64];
        stream[1] = 1 | if is_contiguous { 2 } else { 0 };
        stream[8..16].copy_from_slice(&(written as u64).to_le_bytes());
        put32(stream, 20, first);
        stream[24..32].copy_from_slice(&(len as u64).to_le_bytes());
    }

    /// The checksum of a set.
    fn seal(&mut self, file: File) {
        seal(&mut self.bytes[file.at..file.at + 32 * (file.secondary + 1)]);
    }

    pub fn write(&mut self, file: File, content: &[u8], written: usize, is_contiguous: bool) {
        if content.is_empty() {
            return;
        }
        let clusters = self.allocate(content.len().div_ceil(self.cluster), is_contiguous);
        if !is_contiguous {
            self.link(&clusters);
        }
        for (cluster, part) in clusters.iter().zip(content[..written].chunks(self.cluster)) {
            let at = self.address(*cluster);
            self.bytes[at..at + part.len()].copy_from_slice(part);
        }
        // What was not written is anything.
        if written < content.len() {
            let at = self.address(clusters[written / self.cluster]);
            self.bytes[at + written % self.cluster..at + self.cluster].fill(0xaa);
        }
        self.set_content(file, clusters[0], content.len(), written, is_contiguous);
        self.seal(file);
    }

    /// Removes an empty file.
    pub fn remove(&mut self, file: File) {
        for entry in 0..=file.secondary {
            self.bytes[file.at + 32 * entry] &= 0x7f;
        }
    }

    /// Has fsck.exfat look at it.
    pub fn check(&self) {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let path = directory.path().join("disk");
        fs::write(&path, &self.bytes).unwrap();
        let output = Command::new("/usr/sbin/fsck.exfat").arg("-n").arg(&path).output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{told}");
    }
}

/// The same as the table of mkfs.exfat for the letters that the tests use.
fn upper(unit: u16) -> u16 {
    let upper = char::from_u32(unit.into()).and_then(|char| char.to_uppercase().next());
    upper.map_or(unit, |char| char as u16)
}

fn seal(set: &mut [u8]) {
    let counted = set.iter().enumerate().filter(|(at, _)| !matches!(at, 2 | 3));
    let sum = counted.fold(0, |sum: u16, (_, byte)| sum.rotate_right(1).wrapping_add((*byte).into()));
    set[2..4].copy_from_slice(&sum.to_le_bytes());
}

/// Makes checksums true: of the boot sectors, and of all sets.
pub fn mend(bytes: &mut [u8], metadata: &[(usize, usize)], does: bool) {
    if !does {
        return;
    }
    let sector = metadata[0].1 / 12;
    let counted = bytes[..11 * sector].iter().enumerate().filter(|(at, _)| !matches!(at, 106 | 107 | 112));
    let sum = counted.fold(0, |sum: u32, (_, byte)| sum.rotate_right(1).wrapping_add((*byte).into()));
    put32(bytes, 11 * sector, sum as usize);
    for (start, len) in &metadata[2..] {
        for at in (*start..start + len).step_by(32) {
            let end = at + 32 * (usize::from(bytes[at + 1]) + 1);
            if bytes[at] == 0x85 && end <= bytes.len() {
                seal(&mut bytes[at..end]);
            }
        }
    }
}
