//! Damaged file systems: nothing panics, nothing goes on for ever, whatever is on the disk.

use crate::image::{self, Disk, Random, stress};
use crate::mount::{Mount, replay};
use crate::workload::Workload;
use ext::{Access, Error, FileSystem, JournalPlace, Mapping, NewInode, Position, Rename, SetMode, Time, Transaction};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashSet};
use std::ops::ControlFlow;

/// Blocks that may be read in one operation.
const READS: u64 = 400_000;

/// A disk that counts what is read from it, and takes every checksum as right.
struct Counted<'a> {
    disk: &'a Disk,
    reads: Cell<u64>,
    trusting: bool,
}

impl ext::Blocks for Counted<'_> {
    fn read<R>(&self, block: u64, with: impl FnOnce(&[u8]) -> R) -> Result<R, ext::Absent> {
        self.reads.set(self.reads.get() + 1);
        assert!(self.reads.get() < READS, "an operation does not end");
        self.disk.read(block, with)
    }

    fn is_verified(&self, _: u64) -> bool {
        self.trusting
    }
}

/// Reads all that can be reached, and tries to change some of it.
fn use_it(disk: &mut Disk, random: &mut Random, trusting: bool) -> (u32, u32) {
    let Ok(fs) = FileSystem::open(disk, disk.blocks(), Access::ReadOnly) else { return (0, 0) };
    let mut numbers = vec![2_u32];
    let mut seen: HashSet<u32> = HashSet::new();
    while let Some(number) = numbers.pop() {
        if !seen.insert(number) || seen.len() > 300 {
            continue;
        }
        let counted = Counted { disk, reads: Cell::new(0), trusting };
        let Ok(inode) = fs.inode(&counted, number) else { continue };
        let _ = fs.attributes(&counted, &inode);
        let _ = fs.read_link(&counted, &inode);
        let _ = (inode.atime(), inode.crtime(), inode.device(), inode.sectors(&fs), fs.max_file_size(&inode));
        let mut at = 0;
        for _ in 0..50 {
            counted.reads.set(0);
            match fs.map(&counted, &inode, at) {
                Ok(Mapping::Blocks { count, .. } | Mapping::Hole { count }) => at = at.saturating_add(count),
                Err(_) => break,
            }
        }
        let _ = fs.seek(&counted, &inode, 0, u32::MAX, true);
        let mut from = Position::START;
        for _ in 0..30 {
            counted.reads.set(0);
            match fs.list(&counted, &inode, from, |entry| {
                numbers.push(entry.inode);
                if random.one_in(40) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            }) {
                Ok(next) if next != Position::END => {
                    assert!(next >= from, "a listing goes back");
                    from = next;
                }
                _ => break,
            }
        }
        counted.reads.set(0);
        let _ = fs.lookup(&counted, &inode, b"some-name-that-is-not-there");
        let _ = fs.is_empty(&counted, &inode);
    }
    let Ok(fs) = FileSystem::open(disk, disk.blocks(), Access::ReadWrite) else { return (0, 0) };
    let known: Vec<u32> = seen.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
    let done = (0..25).filter(|_| change(&fs, disk, &known, random, trusting)).count();
    (known.len() as u32, done as u32)
}

fn change(fs: &FileSystem, disk: &mut Disk, known: &[u32], random: &mut Random, trusting: bool) -> bool {
    let mut any = || known[random.below(known.len() as u64) as usize];
    let (one, other) = (any(), any());
    let which = random.below(14);
    let name = format!("new-{}", random.below(30)).into_bytes();
    let counted = Counted { disk, reads: Cell::new(0), trusting };
    let first_name = |dir: u32| -> Vec<u8> {
        let mut found = Vec::new();
        if let Ok(dir) = fs.inode(&counted, dir) {
            let _ = fs.list(&counted, &dir, Position::START, |entry| {
                found = entry.name.to_vec();
                if found.len() > 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
        }
        found
    };
    let (old, target) = (first_name(one), first_name(other));
    counted.reads.set(0);
    let Ok(mut tx) = Transaction::new(fs, &counted, Time { seconds: 1_800_000_000, nanos: 5 }) else { return false };
    let new = |mode| NewInode { mode, ..Default::default() };
    let done = match which {
        0 => tx.create(one, &name, &new(0x81a4)).map(|_| ()),
        1 => tx.create(one, &name, &new(0x41ed)).map(|_| ()),
        2 => tx.unlink(one, &old).map(|_| ()),
        3 => tx.rmdir(one, &old).map(|_| ()),
        4 => tx.rename(one, &old, other, &name, Rename::Replace).map(|_| ()),
        5 => tx.rename(one, &old, other, &target, Rename::Exchange).map(|_| ()),
        6 => tx.link(one, other, &name).map(|_| ()),
        7 => tx.symlink(one, &name, &[b'x'; 100], &new(0)).map(|_| ()),
        8 => tx.orphan_step().map(|_| ()),
        9 => tx.delete_step(one).map(|_| ()),
        10 => fs.inode(&tx, one).and_then(|mut inode| tx.allocate(&mut inode, 7, 20, ext::Written::No).map(|_| ())),
        11 => fs.inode(&tx, one).and_then(|mut inode| {
            tx.truncate(&mut inode, 100)?;
            tx.truncate_step(&mut inode).map(|_| ())
        }),
        12 => fs.inode(&tx, one).and_then(|mut inode| tx.set_attribute(&mut inode, b"user.x", &[7; 300], SetMode::Any)),
        _ => fs.inode(&tx, one).and_then(|mut inode| {
            tx.convert(&mut inode, 3, 5)?;
            tx.punch(&mut inode, 2, 9).map(|_| ())
        }),
    };
    let changes = match done {
        Ok(()) => tx.finish(),
        Err(error) => Err(error),
    };
    if let Ok(changes) = changes {
        for (block, bytes) in changes.blocks {
            disk.write(block, &bytes);
        }
        return true;
    } else if let Err(Error::Absent(block)) = changes {
        panic!("block {block} is absent");
    }
    false
}

/// The blocks with metadata: those that are read when all of it is used.
fn metadata(image: &[u8]) -> Vec<u64> {
    let mut disk = Disk::new(image.to_vec());
    disk.here = Some(RefCell::new(HashSet::new()));
    let fs = image::complete(&disk, || FileSystem::open(&disk, disk.blocks(), Access::ReadOnly)).expect("an image");
    let mut numbers = vec![2];
    while let Some(number) = numbers.pop() {
        let inode = image::complete(&disk, || fs.inode(&disk, number)).expect("an inode");
        let _ = image::complete(&disk, || fs.attributes(&disk, &inode));
        let _ = image::complete(&disk, || fs.read_link(&disk, &inode));
        let _ = image::complete(&disk, || fs.seek(&disk, &inode, 0, 200, true));
        let _ = image::complete(&disk, || fs.seek(&disk, &inode, 0, 200, false));
        let mut from = Position::START;
        while inode.is_dir() && from != Position::END {
            from = image::complete(&disk, || {
                fs.list(&disk, &inode, from, |entry| {
                    if entry.name != b"." && entry.name != b".." {
                        numbers.push(entry.inode);
                    }
                    ControlFlow::Continue(())
                })
            })
            .expect("a directory");
        }
        for number in 1..fs.superblock().inodes_count.min(200) {
            let _ = image::complete(&disk, || fs.is_inode_used(&disk, number));
        }
        numbers.sort_unstable();
        numbers.dedup();
        if numbers.len() > 300 {
            break;
        }
    }
    let mut blocks: Vec<u64> = disk.here.take().expect("blocks").into_inner().into_iter().collect();
    blocks.sort_unstable();
    blocks
}

fn damage(disk: &mut Disk, blocks: &[u64], random: &mut Random) -> Vec<(usize, u8)> {
    let mut undo = Vec::new();
    for _ in 0..1 + random.below(6) {
        let block = blocks[random.below(blocks.len() as u64) as usize] as usize * disk.block_size;
        // The beginnings of blocks have more meaning than the rest.
        let range = [64, 256, disk.block_size as u64][random.below(3) as usize];
        let mut at = block + random.below(range) as usize;
        if random.one_in(4) {
            // Something that is not zero.
            at = (at..block + disk.block_size).find(|at| disk.bytes[*at] != 0).unwrap_or(at);
        }
        let value = match random.below(6) {
            0 => 0,
            1 => 0xff,
            2 => disk.bytes[at] ^ 1 << random.below(8),
            3 => disk.bytes[at].wrapping_add(1),
            4 => disk.bytes[block + random.below(disk.block_size as u64) as usize],
            _ => random.next() as u8,
        };
        undo.push((at, disk.bytes[at]));
        disk.bytes[at] = value;
    }
    undo
}

fn worked_on(options: &str, seed: u64) -> Vec<u8> {
    let mount = Mount::new(image::make(options, 4, None)).expect("an image");
    let mut work = Workload::new(mount, seed);
    for i in 0..60 {
        let _ = work.create_in(2, format!("a-file-in-the-root-with-a-long-name-{i}").into_bytes());
    }
    for _ in 0..300 {
        let _ = work.step();
    }
    // Orphans, as a crash leaves them.
    for name in ["left-1", "left-2", "left-3"] {
        let new = NewInode { mode: 0x81a4, ..Default::default() };
        let number = work.mount.change(|tx| tx.create(2, name.as_bytes(), &new)).expect("room").number();
        let _ = work.mount.write(number, 0, &[7; 9000], false);
        work.mount.change(|tx| tx.unlink(2, name.as_bytes())).expect("a name");
    }
    work.mount.unmount()
}

#[test]
fn ten_thousand_damaged_images_are_used_without_panic_or_endless_loop() {
    let kinds = [
        ("-t ext2 -b 1024 -N 400", false),
        ("-t ext4 -b 1024 -N 400 -O ^has_journal,^metadata_csum,^uninit_bg", false),
        ("-t ext4 -b 1024 -N 400 -O ^has_journal,^metadata_csum,uninit_bg", true),
        ("-t ext4 -b 1024 -N 400 -O ^has_journal", true),
        ("-t ext4 -b 1024 -N 400 -O ^has_journal", false),
    ];
    for (i, (options, trusting)) in kinds.into_iter().enumerate() {
        let good = worked_on(options, i as u64 + 1);
        let blocks = metadata(&good);
        let mut disk = Disk::new(good.clone());
        let mut random = Random(i as u64 * 2 + 12345);
        let (mut used, mut changed) = (0, 0);
        let rounds = 2000 * stress();
        for round in 0..rounds {
            damage(&mut disk, &blocks, &mut random);
            let (seen, done) = use_it(&mut disk, &mut random, trusting);
            used += u64::from(seen);
            changed += u64::from(done);
            // Some damage stays for the next round.
            if round % 3 == 2 {
                disk.bytes.copy_from_slice(&good);
            }
        }
        println!("{options}: {used} inodes read and {changed} changes made in {rounds} images");
        assert!(used > 5 * rounds && changed > rounds, "most of a damaged image is still used");
    }
}

#[test]
fn damaged_journals_are_replayed_or_refused() {
    for (i, options) in ["-t ext4 -b 1024 -J size=1", "-t ext3 -b 1024 -J size=1"].into_iter().enumerate() {
        let mount = Mount::new(image::make(options, 8, None)).expect("an image");
        let mut work = Workload::new(mount, 4);
        for step in 0..200 {
            let _ = work.step();
            if step % 10 == 9 {
                work.mount.commit();
            }
        }
        let good = work.mount.device;
        let disk = Disk::new(good.clone());
        let fs = FileSystem::open(&disk, disk.blocks(), Access::ReadOnly).expect("an image");
        let place = JournalPlace::find(&fs, &disk).expect("a journal");
        let mut blocks = Vec::new();
        let journal = fs.superblock().journal_inode;
        assert_eq!(journal, 8);
        // Its blocks are those that begin with the magic number.
        for block in 0..disk.blocks() {
            if disk.block(block).starts_with(&0xc03b_3998_u32.to_be_bytes()) {
                blocks.push(block);
            }
        }
        assert!(blocks.len() > 30 && place.len() == 1024);
        let mut random = Random(i as u64 * 2 + 99);
        let mut refused = 0;
        for _ in 0..300 * stress() {
            let mut disk = Disk::new(good.clone());
            damage(&mut disk, &blocks, &mut random);
            match replay(disk.bytes) {
                Ok(image) => {
                    use_it(&mut Disk::new(image), &mut random, false);
                }
                Err(Error::Absent(block)) => panic!("block {block}"),
                Err(_) => refused += 1,
            }
        }
        assert!(refused > 0);
    }
}
