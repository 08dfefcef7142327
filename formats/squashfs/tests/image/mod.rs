//! Images, and a source that has nothing at the start of each operation, and decompresses little at a time.

#![allow(dead_code, reason = "each test uses a part")]

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;

use squashfs::{Absent, BlockIndex, Cache, Claim, Error, FileKind, Image, Packed, Reader, Source};

/// Makes an image of a directory.
pub fn make_image(tree: &Path, options: &str) -> Vec<u8> {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = directory.path().join("image");
    let output = Command::new("mksquashfs")
        .args([tree, &file])
        .args(["-quiet", "-no-progress", "-mkfs-time", "0"])
        .args(options.split_whitespace())
        .output()
        .expect("mksquashfs is in Debian's package squashfs-tools; tools/build/setup installs it");
    assert!(output.status.success(), "{options:?}: {}", String::from_utf8_lossy(&output.stderr));
    fs::read(file).unwrap()
}

/// The longest name that mksquashfs stores.
pub fn longest_name() -> usize {
    255
}

/// A device, which of its pages are there, and what was decompressed of it.
pub struct Device {
    bytes: Vec<u8>,
    claimed: u64,
    present: RefCell<HashSet<u64>>,
    missing: Cell<u64>,
    cache: RefCell<Option<Cache>>,
    /// So many steps are left until the operation has to begin again.
    steps: Cell<usize>,
    /// Everything is there, and no step too many.
    is_warm: bool,
    /// Pages that were missing.
    missed: RefCell<HashSet<u64>>,
}

const PAGE: u64 = 4096;
const STEPS: usize = 20;
/// Said to be missing where only steps were used up.
const NOTHING: u64 = u64::MAX;

impl Device {
    pub fn new(bytes: Vec<u8>) -> Self {
        Self {
            claimed: bytes.len() as u64,
            bytes,
            present: RefCell::default(),
            missing: Cell::new(NOTHING),
            cache: RefCell::default(),
            steps: Cell::new(STEPS),
            is_warm: false,
            missed: RefCell::default(),
        }
    }

    /// Says that the device has that many bytes.
    pub fn claiming(self, claimed: u64) -> Self {
        Self { claimed, ..self }
    }

    pub fn warm(self) -> Self {
        Self { is_warm: true, ..self }
    }

    pub fn open(&self) -> Result<Image, Error> {
        let image = self.repeat(|| Image::open(self, self.claimed))?;
        *self.cache.borrow_mut() = Some(image.cache());
        Ok(image)
    }

    /// Runs an operation until it has what it needs; at its start nothing is there.
    pub fn run<R>(
        &self,
        image: &Image,
        operation: impl FnMut(Reader<'_, Self>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        if !self.is_warm {
            *self.cache.borrow_mut() = Some(image.cache());
        }
        let mut operation = operation;
        self.repeat(|| operation(image.reader(self)))
    }

    fn repeat<R>(&self, mut operation: impl FnMut() -> Result<R, Error>) -> Result<R, Error> {
        self.present.borrow_mut().clear();
        for _ in 0..100_000 {
            self.steps.set(STEPS);
            self.missing.set(NOTHING);
            match operation() {
                Err(Error::Absent) => {
                    assert!(!self.is_warm);
                    let page = self.missing.get();
                    if page != NOTHING {
                        assert!(self.present.borrow_mut().insert(page), "page {page} was there");
                        self.missed.borrow_mut().insert(page);
                    }
                }
                result => return result,
            }
        }
        panic!("an operation does not come to its end");
    }

    /// The pages that some operation missed.
    pub fn missed(&self) -> Vec<usize> {
        let mut pages: Vec<_> = self.missed.borrow().iter().map(|page| *page as usize).collect();
        pages.sort_unstable();
        pages
    }
}

impl Source for Device {
    fn copy(&self, address: u64, to: &mut [u8]) -> Result<(), Absent> {
        let end = address + to.len() as u64;
        assert!(end <= self.claimed, "{address} and {} bytes", to.len());
        let absent = (address / PAGE..end.div_ceil(PAGE)).find(|page| !self.present.borrow().contains(page));
        if let Some(page) = absent
            && !self.is_warm
        {
            self.missing.set(page);
            return Err(Absent);
        }
        to.fill(0);
        let from = &self.bytes[(address as usize).min(self.bytes.len())..(end as usize).min(self.bytes.len())];
        to[..from.len()].copy_from_slice(from);
        Ok(())
    }

    fn unpack(&self, packed: Packed, from: usize, to: &mut [u8]) -> Result<usize, Error> {
        loop {
            let mut slot = self.cache.borrow_mut();
            let mut work = match slot.as_mut().unwrap().claim(packed)? {
                Claim::Ready(block) => return Ok(block.copy(from, to)),
                Claim::Work(work) => work,
                Claim::Busy => panic!("nobody else is there"),
            };
            drop(slot);
            if self.steps.get() == 0 && !self.is_warm {
                self.cache.borrow_mut().as_mut().unwrap().put_back(work, Err(Error::Absent));
                return Err(Error::Absent);
            }
            self.steps.set(self.steps.get().saturating_sub(1));
            let outcome = work.step(|address, to| self.copy(address, to));
            self.cache.borrow_mut().as_mut().unwrap().put_back(work, outcome);
            outcome?;
        }
    }
}

/// Does all that can be done with up to `most` inodes that the directories lead to; counts what fails.
pub fn visit(device: &Device, image: &Image, most: usize, failed: &mut usize) {
    let mut to_visit = vec![image.root()];
    let mut seen = HashSet::new();
    while let Some(number) = to_visit.pop() {
        if seen.len() == most || !seen.insert(number) {
            continue;
        }
        let Ok(inode) = device.run(image, |reader| reader.inode(number)) else {
            *failed += 1;
            continue;
        };
        let mut count = |is_error: bool| *failed += usize::from(is_error);
        count(device.run(image, |reader| reader.xattrs(&inode)).is_err());
        match inode.kind {
            FileKind::Directory => {
                let mut next = Some(0);
                for _ in 0..50 {
                    let Some(position) = next else { break };
                    let listed = device.run(image, |reader| {
                        let mut part = Vec::new();
                        let next = reader.list(&inode, position, |entry| {
                            if part.len() == 100 {
                                return ControlFlow::Break(());
                            }
                            part.push((entry.name.to_vec(), entry.number));
                            ControlFlow::Continue(())
                        })?;
                        Ok((part, next))
                    });
                    let Ok((part, after)) = listed else {
                        count(true);
                        break;
                    };
                    for (name, _) in part.iter().step_by(7) {
                        count(device.run(image, |reader| reader.lookup(&inode, name)).is_err());
                    }
                    to_visit.extend(part.into_iter().map(|(_, number)| number));
                    assert!(after.is_none_or(|after| after > position));
                    next = after;
                }
            }
            FileKind::Symlink => count(device.run(image, |reader| reader.symlink(&inode)).is_err()),
            FileKind::Regular => {
                let mut index = BlockIndex::default();
                for offset in [0, 1, 5000, inode.size / 2, inode.size.saturating_sub(5000), u64::MAX - 5] {
                    let result = device.run(image, |reader| {
                        if let Ok(mapping) = reader.map(&inode, &mut index, offset) {
                            assert!(mapping.start <= offset && offset - mapping.start < mapping.bytes);
                            assert!(mapping.start + mapping.bytes <= inode.size);
                        }
                        let mut buffer = vec![0; 20_000];
                        reader.read(&inode, &mut index, offset, &mut buffer)
                    });
                    count(result.is_err());
                }
            }
            _ => {}
        }
    }
}
