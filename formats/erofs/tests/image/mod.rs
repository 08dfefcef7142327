//! Images, and a cache that is empty at the start of each operation.

#![allow(dead_code, reason = "each test uses a part")]

use std::cell::RefCell;
use std::collections::HashSet;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;

use erofs::{Absent, BLOCK_BYTES, Blocks, Error, FileKind, Image, Reader};

/// Makes an image of a directory.
pub fn make_image(tree: &Path, options: &[&str]) -> Vec<u8> {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = directory.path().join("image");
    let output = Command::new("mkfs.erofs")
        .args(["--quiet", "-U", "c1b9d5a2-f162-11cf-9ece-0020afc76f16"])
        .args(options)
        .args([&file, tree])
        .output()
        .expect("mkfs.erofs is in Debian's package erofs-utils; tools/build/setup installs it");
    assert!(output.status.success(), "{options:?}: {}", String::from_utf8_lossy(&output.stderr));
    fs::read(file).unwrap()
}

/// If mkfs.erofs knows of fragments, deduplication and the rest; Debian 12's does not.
pub fn is_mkfs_newer() -> bool {
    let output = Command::new("mkfs.erofs").arg("--help").output().unwrap();
    String::from_utf8_lossy(&output.stdout).contains("--xattr-prefix")
}

/// The longest name that it stores: Debian 12's cuts the last byte of a name of 255.
pub fn longest_name() -> usize {
    if is_mkfs_newer() { 255 } else { 254 }
}

/// A device, and which of its blocks are in the cache.
pub struct Cache {
    device: Vec<u8>,
    claimed: u64,
    present: RefCell<HashSet<u64>>,
    /// All blocks are always there.
    warm: bool,
    /// The blocks that were missing, without those that were only going to be needed.
    missed: RefCell<HashSet<u64>>,
}

impl Cache {
    pub fn new(device: Vec<u8>) -> Self {
        Self {
            claimed: device.len() as u64,
            device,
            present: RefCell::default(),
            warm: false,
            missed: RefCell::default(),
        }
    }

    /// Says that the device has that many bytes.
    pub fn claiming(self, claimed: u64) -> Self {
        Self { claimed, ..self }
    }

    pub fn warm(self) -> Self {
        Self { warm: true, ..self }
    }

    pub fn open(&self) -> Result<Image, Error> {
        self.repeat(|| Image::open(self, self.claimed))
    }

    /// Runs an operation until it has the blocks that it needs; at its start there are none.
    pub fn run<R>(&self, image: &Image, operation: impl Fn(Reader<'_, Self>) -> Result<R, Error>) -> Result<R, Error> {
        self.repeat(|| operation(image.reader(self)))
    }

    fn repeat<R>(&self, operation: impl Fn() -> Result<R, Error>) -> Result<R, Error> {
        self.present.borrow_mut().clear();
        loop {
            match operation() {
                Err(Error::Absent { block, count }) => {
                    assert!(!self.warm && count > 0);
                    let end = block + count;
                    assert!(end <= self.claimed.div_ceil(BLOCK_BYTES as u64), "{block} and {count} blocks");
                    assert!(self.present.borrow_mut().insert(block), "block {block} was there");
                    self.present.borrow_mut().extend(block..end);
                    self.missed.borrow_mut().insert(block);
                }
                result => return result,
            }
        }
    }

    pub fn bytes(&self, address: u64, len: usize) -> &[u8] {
        &self.device[address as usize..address as usize + len]
    }

    /// The blocks that some operation missed.
    pub fn first_blocks(&self) -> Vec<usize> {
        let mut blocks: Vec<_> = self.missed.borrow().iter().map(|block| *block as usize).collect();
        blocks.sort_unstable();
        blocks
    }
}

impl Blocks for Cache {
    fn read<R>(&self, block: u64, with: impl FnOnce(&[u8]) -> R) -> Result<R, Absent> {
        if !self.warm && !self.present.borrow().contains(&block) {
            return Err(Absent);
        }
        let start = (block as usize * BLOCK_BYTES).min(self.device.len());
        Ok(with(&self.device[start..(start + BLOCK_BYTES).min(self.device.len())]))
    }
}

/// Does all that can be done with up to `most` inodes that the directories lead to; counts what fails. No answer may be longer than it is said to be.
pub fn visit(cache: &Cache, image: &Image, most: usize, failed: &mut usize) {
    let mut to_visit = vec![image.root()];
    let mut seen = HashSet::new();
    while let Some(nid) = to_visit.pop() {
        if seen.len() == most || !seen.insert(nid) {
            continue;
        }
        let Ok(inode) = cache.run(image, |reader| reader.inode(nid)) else {
            *failed += 1;
            continue;
        };
        let mut count = |is_error: bool| *failed += usize::from(is_error);
        match cache.run(image, |reader| reader.xattr_names(&inode)) {
            Ok(names) => {
                for name in names.split(|byte| *byte == 0).take(8) {
                    count(!matches!(
                        cache.run(image, |reader| reader.xattr(&inode, name)),
                        Ok(_) | Err(Error::NotFound)
                    ));
                }
            }
            Err(_) => count(true),
        }
        match inode.kind {
            FileKind::Directory => {
                let mut next = Some(0);
                for _ in 0..50 {
                    let Some(position) = next else { break };
                    let listed = cache.run(image, |reader| {
                        let mut part = Vec::new();
                        let next = reader.list(&inode, position, |entry| {
                            part.push((entry.name.to_vec(), entry.nid));
                            ControlFlow::Continue(())
                        })?;
                        Ok((part, next))
                    });
                    let Ok((part, after)) = listed else {
                        count(true);
                        break;
                    };
                    for (name, _) in part.iter().step_by(7) {
                        count(cache.run(image, |reader| reader.lookup(&inode, name)).is_err());
                    }
                    to_visit.extend(part.into_iter().map(|(_, nid)| nid));
                    assert!(after.is_none_or(|after| after > position));
                    next = after;
                }
            }
            FileKind::Symlink => count(cache.run(image, |reader| reader.symlink(&inode)).is_err()),
            FileKind::Regular => {
                for offset in [0, 1, 5000, inode.size / 2, inode.size.saturating_sub(5000), u64::MAX - 5] {
                    let result = cache.run(image, |reader| {
                        let mapping = reader.map(&inode, offset);
                        if let Ok(mapping) = mapping {
                            assert!(mapping.start <= offset && offset - mapping.start < mapping.bytes);
                            assert!(mapping.start + mapping.bytes <= inode.size);
                        }
                        let mut buffer = vec![0; 20_000];
                        reader.read(&inode, offset, &mut buffer)
                    });
                    count(result.is_err());
                }
            }
            _ => {}
        }
    }
}
