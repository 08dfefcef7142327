//! Images of file systems, and the programs of e2fsprogs.

use ext::{Absent, Blocks, Run, SUPERBLOCK_OFFSET, Superblock};
use std::cell::RefCell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Kinds of file systems: a name, the options of mke2fs, and MiB.
pub const KINDS: [(&str, &str, u64); 12] = [
    ("ext2-1k", "-t ext2 -b 1024", 24),
    ("ext2-2k", "-t ext2 -b 2048 -O dir_index", 32),
    ("ext2-4k", "-t ext2 -b 4096 -I 128", 32),
    ("ext3-1k", "-t ext3 -b 1024 -J size=4 -O ^resize_inode", 32),
    ("ext4-1k", "-t ext4 -b 1024 -J size=4", 48),
    ("ext4-2k", "-t ext4 -b 2048 -J size=4", 48),
    ("ext4-4k", "-t ext4 -b 4096 -J size=8", 64),
    ("ext4-plain", "-t ext4 -b 4096 -O ^has_journal,^metadata_csum,uninit_bg,^64bit", 48),
    ("ext4-no-sums", "-t ext4 -b 1024 -J size=4 -O ^metadata_csum,^uninit_bg,^flex_bg", 48),
    ("ext4-seed", "-t ext4 -b 1024 -J size=4 -O metadata_csum_seed,64bit,large_dir -I 512", 48),
    ("ext4-meta-bg", "-t ext4 -b 1024 -J size=4 -O meta_bg,^resize_inode,sparse_super2", 48),
    ("ext4-small-groups", "-t ext4 -b 1024 -g 1024 -J size=4 -O ^resize_inode", 32),
];

/// A directory that is removed with everything in it.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // Images are large: in memory, if there is such a place.
        let memory = PathBuf::from("/dev/shm");
        let parent = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let path = parent.join(format!("ebb-ext-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary directory");
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs a program of e2fsprogs; what it printed, and whether it ended well.
pub fn tool(name: &str, arguments: &[&str]) -> (String, Option<i32>) {
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let output = Command::new(name).args(arguments).env("PATH", path).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{name}: {error}: `make setup` installs e2fsprogs"));
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8_lossy(&text).into_owned(), output.status.code())
}

/// Makes an image with mke2fs, filled with a directory's contents.
pub fn make(options: &str, mib: u64, contents: Option<&Path>) -> Vec<u8> {
    let scratch = Scratch::new();
    let file = scratch.0.join("image");
    let name = file.to_str().expect("a name");
    let size = format!("{mib}M");
    let mut arguments = vec!["-q", "-F"];
    arguments.extend(options.split(' '));
    // The same image each time, as far as mke2fs lets it.
    let fixed = ["-U", "4d2f5a10-0000-4000-8000-0123456789ab", "-E", "hash_seed=4d2f5a10-0000-4000-8000-ba9876543210"];
    arguments.extend(fixed);
    if let Some(contents) = contents {
        arguments.extend(["-d", contents.to_str().expect("a name")]);
    }
    arguments.extend([name, &size]);
    let (text, code) = tool("mke2fs", &arguments);
    assert_eq!(code, Some(0), "mke2fs {arguments:?}: {text}");
    std::fs::read(&file).expect("the image")
}

/// Fails unless e2fsck finds the image clean.
pub fn check(image: &[u8], what: &str) {
    let scratch = Scratch::new();
    let file = scratch.0.join("image");
    std::fs::write(&file, image).expect("room for the image");
    let (text, code) = tool("e2fsck", &["-fn", file.to_str().expect("a name")]);
    if code != Some(0) {
        if let Ok(keep) = std::env::var("EXT_KEEP") {
            std::fs::write(keep, image).expect("room for the image");
        }
        panic!("e2fsck finds {what} broken ({code:?}):\n{text}");
    }
}

/// Lets e2fsck replay the journal and check: nothing else must be wrong.
pub fn recover(image: &[u8], what: &str) -> Vec<u8> {
    let scratch = Scratch::new();
    let file = scratch.0.join("image");
    std::fs::write(&file, image).expect("room for the image");
    let name = file.to_str().expect("a name");
    let (text, code) = tool("e2fsck", &["-p", name]);
    assert!(matches!(code, Some(0 | 1)), "e2fsck -p on {what} ({code:?}):\n{text}");
    let (text, code) = tool("e2fsck", &["-fn", name]);
    assert_eq!(code, Some(0), "e2fsck after recovery of {what}:\n{text}");
    std::fs::read(&file).expect("the image")
}

/// An image in memory. Blocks can be absent at first, and pinned.
pub struct Disk {
    pub bytes: Vec<u8>,
    pub block_size: usize,
    /// The blocks that were brought in, if they are absent at first.
    pub here: Option<RefCell<HashSet<u64>>>,
    pub pinned: HashSet<u64>,
    pub verified: Option<RefCell<HashSet<u64>>>,
}

impl Disk {
    pub fn new(bytes: Vec<u8>) -> Self {
        let raw = bytes[SUPERBLOCK_OFFSET..].first_chunk().expect("a superblock");
        let block_size = Superblock::parse(raw).map_or(1024, |sup| sup.block_size as usize);
        Self { bytes, block_size, here: None, pinned: HashSet::new(), verified: None }
    }

    pub fn blocks(&self) -> u64 {
        (self.bytes.len() / self.block_size) as u64
    }

    pub fn block(&self, block: u64) -> &[u8] {
        let at = block as usize * self.block_size;
        &self.bytes[at..at + self.block_size]
    }

    pub fn write(&mut self, block: u64, bytes: &[u8]) {
        let at = block as usize * self.block_size;
        self.bytes[at..at + self.block_size].copy_from_slice(bytes);
    }
}

impl Blocks for Disk {
    fn read<R>(&self, block: u64, with: impl FnOnce(&[u8]) -> R) -> Result<R, Absent> {
        assert!(block < self.blocks(), "block {block} is not on the disk");
        match &self.here {
            Some(here) if !here.borrow().contains(&block) => Err(Absent(block)),
            _ => Ok(with(self.block(block))),
        }
    }

    fn pinned_in(&self, run: Run) -> Option<Run> {
        let mut blocks = run.start..run.end();
        blocks.find(|block| self.pinned.contains(block)).map(|start| Run { start, count: 1 })
    }

    fn is_verified(&self, block: u64) -> bool {
        self.verified.as_ref().is_some_and(|verified| verified.borrow().contains(&block))
    }

    fn mark_verified(&self, block: u64) {
        if let Some(verified) = &self.verified {
            verified.borrow_mut().insert(block);
        }
    }
}

/// Brings blocks in until it does not fail for want of one.
pub fn complete<R>(disk: &Disk, mut run: impl FnMut() -> ext::Result<R>) -> ext::Result<R> {
    loop {
        match (run(), &disk.here) {
            (Err(ext::Error::Absent(block)), Some(here)) => {
                assert!(here.borrow_mut().insert(block), "block {block} was there");
            }
            (other, _) => return other,
        }
    }
}

/// A generator of random numbers (xorshift).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end.max(1)
    }

    pub fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }
}

/// How many times as long as usual random tests run.
pub fn stress() -> u64 {
    std::env::var("EXT_STRESS").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}
