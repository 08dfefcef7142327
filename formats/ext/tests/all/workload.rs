//! Random work beside a model: what is there must be the same, and e2fsck must find it clean.

use crate::image::{self, KINDS, Random, stress};
use crate::model::{Model, Node, ROOT};
use crate::mount::Mount;
use ext::{Error, NewInode, Rename};

pub struct Workload {
    pub mount: Mount,
    pub model: Model,
    pub random: Random,
    pub largest: u64,
}

impl Workload {
    pub fn new(mount: Mount, seed: u64) -> Self {
        Self { mount, model: Model::new(), random: Random(seed * 2 + 1), largest: 400_000 }
    }

    fn any_dir(&mut self) -> u32 {
        let dirs: Vec<u32> = self.model.nodes.keys().copied().filter(|number| self.model.is_dir(*number)).collect();
        dirs[self.random.below(dirs.len() as u64) as usize]
    }

    fn any(&mut self, wanted: impl Fn(&Node) -> bool) -> Option<u32> {
        let all: Vec<u32> =
            self.model.nodes.iter().filter(|(_, node)| wanted(node)).map(|(number, _)| *number).collect();
        (!all.is_empty()).then(|| all[self.random.below(all.len() as u64) as usize])
    }

    fn any_name(&mut self, dir: u32) -> Option<(Vec<u8>, u32)> {
        let count = self.model.names(dir).len() as u64;
        let at = self.random.below(count) as usize;
        self.model.names(dir).iter().nth(at).map(|(name, number)| (name.clone(), *number))
    }

    fn new_name(&mut self) -> Vec<u8> {
        let len = if self.random.one_in(6) { 1 + self.random.below(255) } else { 4 + self.random.below(20) };
        (0..len).map(|_| b"abcdefghijklmnopqrstuvwxyz0123456789-_\xc3\xa4"[self.random.below(40) as usize]).collect()
    }

    fn new_inode(&mut self, kind: u16) -> NewInode {
        NewInode {
            mode: kind | 0o640,
            uid: self.random.below(1 << 20) as u32,
            gid: self.random.below(1 << 20) as u32,
            device: (self.random.below(600) as u32, self.random.below(1 << 20) as u32),
            generation: self.random.next() as u32,
        }
    }

    /// Does something; an error must be one that the state of the model explains.
    pub fn step(&mut self) -> Result<(), Error> {
        self.mount.clock += 1;
        match self.random.below(100) {
            0..=19 => self.create(),
            20..=27 => self.mkdir(),
            28..=49 => self.write(),
            50..=55 => self.truncate(),
            56..=58 => self.punch(),
            59..=66 => self.unlink(),
            67..=69 => self.rmdir(),
            70..=79 => self.rename(),
            80..=83 => self.link(),
            84..=87 => self.symlink(),
            88..=89 => self.special(),
            90..=97 => self.attribute(),
            _ => self.unnamed(),
        }
    }

    fn entered(&mut self, dir: u32, name: Vec<u8>, number: u32, node: Node) {
        assert!(self.model.nodes.insert(number, node).is_none(), "inode {number} is new");
        self.model.names(dir).insert(name, number);
        if !self.model.is_dir(number) {
            self.model.links.insert(number, 1);
        }
    }

    pub fn create(&mut self) -> Result<(), Error> {
        let dir = self.any_dir();
        let name = self.new_name();
        self.create_in(dir, name)
    }

    pub fn create_in(&mut self, dir: u32, name: Vec<u8>) -> Result<(), Error> {
        let new = self.new_inode(0x8000);
        let exists = self.model.names(dir).contains_key(&name);
        let made = self.mount.change(|tx| tx.create(dir, &name, &new));
        if exists {
            assert_eq!(made.map(|_| ()), Err(Error::Exists));
            return Ok(());
        }
        let made = made?;
        assert_eq!((made.uid(), made.gid(), made.mode()), (new.uid, new.gid, new.mode));
        self.entered(dir, name, made.number(), Node::File(Vec::new()));
        Ok(())
    }

    fn mkdir(&mut self) -> Result<(), Error> {
        let dir = self.any_dir();
        let (name, new) = (self.new_name(), self.new_inode(0x4000));
        if self.model.names(dir).contains_key(&name) {
            return Ok(());
        }
        let made = self.mount.change(|tx| tx.create(dir, &name, &new))?;
        self.entered(dir, name, made.number(), Node::Dir { names: Default::default(), parent: dir });
        Ok(())
    }

    fn write(&mut self) -> Result<(), Error> {
        let Some(number) = self.any(|node| matches!(node, Node::File(_))) else { return Ok(()) };
        let far = if self.random.one_in(8) { self.largest } else { 30_000 };
        let most = if self.random.one_in(5) { 60_000 } else { 6000 };
        let (offset, len) = (self.random.below(far), 1 + self.random.below(most));
        let data: Vec<u8> = (0..len).map(|i| (self.random.0 >> (i % 8)) as u8 ^ i as u8).collect();
        let unwritten = self.random.one_in(3);
        self.mount.write(number, offset, &data, unwritten)?;
        let Some(Node::File(contents)) = self.model.nodes.get_mut(&number) else { unreachable!("it is a file") };
        let end = (offset + len) as usize;
        if contents.len() < end {
            contents.resize(end, 0);
        }
        contents[offset as usize..end].copy_from_slice(&data);
        Ok(())
    }

    fn truncate(&mut self) -> Result<(), Error> {
        let Some(number) = self.any(|node| matches!(node, Node::File(data) if !data.is_empty())) else { return Ok(()) };
        let size = self.random.below(self.largest);
        let size = if self.random.one_in(2) { size / 20 } else { size };
        self.mount.truncate(number, size)?;
        let Some(Node::File(contents)) = self.model.nodes.get_mut(&number) else { unreachable!("it is a file") };
        contents.resize(size as usize, 0);
        Ok(())
    }

    fn punch(&mut self) -> Result<(), Error> {
        let Some(number) = self.any(|node| matches!(node, Node::File(data) if data.len() > 5000)) else {
            return Ok(());
        };
        let size = self.mount.cache.block_size as u64;
        let Some(Node::File(contents)) = self.model.nodes.get_mut(&number) else { unreachable!("it is a file") };
        let blocks = contents.len() as u64 / size;
        let from = self.random.below(blocks);
        let end = from + 1 + self.random.below(blocks - from);
        self.mount.punch(number, from as u32, end as u32)?;
        let stop = contents.len().min((end * size) as usize);
        if from < end && ((from * size) as usize) < stop {
            contents[(from * size) as usize..stop].fill(0);
        }
        Ok(())
    }

    /// A name is gone; whatever has no name any more is deleted.
    fn lost_name(&mut self, number: u32) -> Result<(), Error> {
        if let Some(links) = self.model.links.get_mut(&number) {
            *links -= 1;
            if *links > 0 {
                return Ok(());
            }
        }
        self.model.forget(number);
        self.mount.delete(number)
    }

    fn unlink(&mut self) -> Result<(), Error> {
        let dir = self.any_dir();
        let Some((name, number)) = self.any_name(dir) else { return Ok(()) };
        let done = self.mount.change(|tx| tx.unlink(dir, &name));
        if self.model.is_dir(number) {
            assert_eq!(done.map(|_| ()), Err(Error::IsDirectory));
            return Ok(());
        }
        done?;
        self.model.names(dir).remove(&name);
        self.lost_name(number)
    }

    fn rmdir(&mut self) -> Result<(), Error> {
        let dir = self.any_dir();
        let Some((name, number)) = self.any_name(dir) else { return Ok(()) };
        let done = self.mount.change(|tx| tx.rmdir(dir, &name)).map(|_| ());
        if !self.model.is_dir(number) {
            assert_eq!(done, Err(Error::NotDirectory));
        } else if !self.model.names(number).is_empty() {
            assert_eq!(done, Err(Error::NotEmpty));
        } else {
            done?;
            self.model.names(dir).remove(&name);
            self.lost_name(number)?;
        }
        Ok(())
    }

    fn rename(&mut self) -> Result<(), Error> {
        let (from, to) = (self.any_dir(), self.any_dir());
        let to = if self.random.one_in(3) { from } else { to };
        let Some((old, moved)) = self.any_name(from) else { return Ok(()) };
        let target = if self.random.one_in(2) { self.any_name(to) } else { None };
        let (new, gone) = match target {
            Some((name, number)) => (name, Some(number)),
            None => (self.new_name(), None),
        };
        let gone = gone.or(self.model.names(to).get(&new).copied());
        let how =
            [Rename::Replace, Rename::Replace, Rename::NoReplace, Rename::Exchange][self.random.below(4) as usize];
        let done =
            self.mount.change(|tx| tx.rename(from, &old, to, &new, how)).map(|inode| inode.map(|inode| inode.number()));
        let model = &mut self.model;
        let expected = match gone {
            _ if model.is_dir(moved) && model.is_above(moved, to) => Err(Error::Invalid),
            None if how == Rename::Exchange => Err(Error::NotFound),
            Some(_) if how == Rename::NoReplace => Err(Error::Exists),
            Some(gone) if gone == moved => Ok(None),
            Some(gone) if how == Rename::Exchange => {
                if model.is_dir(gone) && model.is_above(gone, from) {
                    Err(Error::Invalid)
                } else {
                    Ok(None)
                }
            }
            Some(gone) => match (model.is_dir(moved), model.is_dir(gone)) {
                (true, false) => Err(Error::NotDirectory),
                (false, true) => Err(Error::IsDirectory),
                (true, true) if !model.names(gone).is_empty() => Err(Error::NotEmpty),
                (true, true) => Ok(Some(gone)),
                (false, false) => Ok((model.links[&gone] == 1).then_some(gone)),
            },
            None => Ok(None),
        };
        if matches!(done, Err(Error::NoSpace)) {
            return Err(Error::NoSpace);
        }
        assert_eq!(done, expected, "{how:?} of {moved} ({from} to {to}), there is {gone:?}");
        if done.is_err() || gone == Some(moved) {
            return Ok(());
        }
        if how == Rename::Exchange {
            let gone = gone.expect("what it was exchanged with");
            model.names(from).insert(old, gone);
            model.names(to).insert(new, moved);
            self.set_parent(gone, from);
        } else {
            model.names(from).remove(&old);
            model.names(to).insert(new, moved);
            if let Some(gone) = gone {
                self.lost_name(gone)?;
            }
        }
        self.set_parent(moved, to);
        Ok(())
    }

    fn set_parent(&mut self, number: u32, to: u32) {
        if let Some(Node::Dir { parent, .. }) = self.model.nodes.get_mut(&number) {
            *parent = to;
        }
    }

    fn link(&mut self) -> Result<(), Error> {
        let dir = self.any_dir();
        let Some(number) = self.any(|node| !matches!(node, Node::Dir { .. })) else { return Ok(()) };
        let name = self.new_name();
        if self.model.names(dir).contains_key(&name) {
            return Ok(());
        }
        self.mount.change(|tx| tx.link(number, dir, &name))?;
        self.model.names(dir).insert(name, number);
        *self.model.links.entry(number).or_default() += 1;
        Ok(())
    }

    fn symlink(&mut self) -> Result<(), Error> {
        let dir = self.any_dir();
        let (name, new) = (self.new_name(), self.new_inode(0));
        let len = [5, 59, 60, 61, 400, 1000][self.random.below(6) as usize];
        let target: Vec<u8> = (0..len).map(|i| b'a' + (i % 26) as u8).collect();
        if self.model.names(dir).contains_key(&name) {
            return Ok(());
        }
        let made = self.mount.change(|tx| tx.symlink(dir, &name, &target, &new))?;
        self.entered(dir, name, made.number(), Node::Symlink(target));
        Ok(())
    }

    fn special(&mut self) -> Result<(), Error> {
        let dir = self.any_dir();
        let kind = [0x1000, 0x2000, 0x6000, 0xc000][self.random.below(4) as usize];
        let (name, new) = (self.new_name(), self.new_inode(kind));
        if self.model.names(dir).contains_key(&name) {
            return Ok(());
        }
        let made = self.mount.change(|tx| tx.create(dir, &name, &new))?;
        self.entered(dir, name, made.number(), Node::Other(new.mode, new.device));
        Ok(())
    }

    fn attribute(&mut self) -> Result<(), Error> {
        let Some(number) = self.any(|_| true) else { return Ok(()) };
        let which = self.random.below(6);
        let name = [
            &b"user.a"[..],
            b"user.longer-name",
            b"trusted.x",
            b"security.selinux",
            b"user.b",
            b"system.posix_acl_access",
        ][which as usize];
        if self.random.one_in(3) {
            let there = self.model.attributes.get(&number).is_some_and(|all| all.contains_key(name));
            let done = self.mount.change(|tx| {
                let mut inode = tx.fs().inode(tx, number)?;
                tx.remove_attribute(&mut inode, name)
            });
            if !there {
                assert_eq!(done, Err(Error::NotFound));
                return Ok(());
            }
            done?;
            self.model.attributes.get_mut(&number).map(|all| all.remove(name));
            return Ok(());
        }
        let value = if which == 5 {
            // user::rw-, user:1000:r--, group::r--, mask::r--, other::---
            let entries =
                [(1_u16, 6_u16, u32::MAX), (2, 4, 1000), (4, 4, u32::MAX), (0x10, 4, u32::MAX), (0x20, 0, u32::MAX)];
            let mut value = vec![2, 0, 0, 0];
            for (tag, bits, id) in entries {
                value.extend(tag.to_le_bytes());
                value.extend(bits.to_le_bytes());
                value.extend(id.to_le_bytes());
            }
            value
        } else {
            let most = if self.random.one_in(3) { 700 } else { 40 };
            (0..self.random.below(most)).map(|i| i as u8).collect()
        };
        match self.model.set_attribute(&mut self.mount, number, name, &value) {
            // The block of attributes is full, or the disk: that cannot be told apart here.
            Err(Error::NoSpace) => Ok(()),
            other => other,
        }
    }

    fn unnamed(&mut self) -> Result<(), Error> {
        let dir = self.any_dir();
        let new = self.new_inode(0x8000);
        let number = self.mount.change(|tx| tx.create_unnamed(dir, &new))?.number();
        match self.mount.write(number, 0, b"contents of a file without a name", false) {
            Err(Error::NoSpace) => return self.mount.delete(number),
            other => other?,
        }
        let name = self.new_name();
        if self.random.one_in(2) || self.model.names(dir).contains_key(&name) {
            return self.mount.delete(number);
        }
        match self.mount.change(|tx| tx.link(number, dir, &name)) {
            Err(Error::NoSpace) => return self.mount.delete(number),
            other => other?,
        };
        self.entered(dir, name, number, Node::File(b"contents of a file without a name".to_vec()));
        Ok(())
    }
}

/// Random work on each kind of file system.
fn work(name: &str, options: &str, mib: u64, steps: u64, seed: u64) {
    let mount = Mount::new(image::make(options, mib, None)).expect("an image");
    let mut work = Workload::new(mount, seed);
    for step in 0..steps {
        match work.step() {
            Ok(()) | Err(Error::NoSpace) => {}
            Err(other) => panic!("{name}, step {step}: {other:?}"),
        }
        if step % (steps / 3).max(1) == 0 {
            work.model.compare(&work.mount);
        }
    }
    work.model.compare(&work.mount);
    let most = work.mount.most_changed;
    println!("{name}: a transaction changed {most} blocks at most");
    assert!(most < 2 * ext::STEP_BLOCKS, "{name}: a transaction changed {most} blocks");
    let model = work.model;
    let image = work.mount.unmount();
    image::check(&image, name);
    model.compare_with_debugfs(&image);
    let again = Mount::new(image).expect("what was unmounted");
    model.compare(&again);
}

#[test]
fn random_work_is_as_a_model_says_and_clean() {
    for (i, (name, options, mib)) in KINDS.iter().enumerate() {
        for round in 0..stress() {
            work(name, options, *mib, 1500, 100 * round + i as u64 + 1);
        }
    }
}

#[test]
fn names_are_hashed_with_unsigned_bytes_where_the_superblock_says_so() {
    let (name, options, mib) = KINDS[7];
    let mut image = image::make(options, mib, None);
    image[ext::SUPERBLOCK_OFFSET + 0x160] = 2;
    let mut work = Workload::new(Mount::new(image).expect("an image"), 41);
    for _ in 0..600 {
        work.create().expect("room");
    }
    for i in 0..400 {
        work.create_in(ROOT, format!("größer-{i}-Übermaß").into_bytes()).expect("room");
    }
    work.model.compare(&work.mount);
    image::check(&work.mount.unmount(), name);
}

#[test]
fn every_operation_can_be_repeated_from_any_absent_block() {
    for (name, options, mib) in [KINDS[0], KINDS[4], KINDS[11]] {
        let mut mount = Mount::cold(image::make(options, mib, None)).expect("an image");
        mount.clock += 1;
        let mut work = Workload::new(mount, 77);
        for step in 0..400 * stress() {
            // Each operation starts with nothing at hand.
            if let Some(here) = &work.mount.cache.here {
                here.borrow_mut().clear();
            }
            match work.step() {
                Ok(()) | Err(Error::NoSpace) => {}
                Err(other) => panic!("{name}, step {step}: {other:?}"),
            }
        }
        work.model.compare(&work.mount);
        let model = work.model;
        let image = work.mount.unmount();
        image::check(&image, name);
        model.compare_with_debugfs(&image);
    }
}

#[test]
fn a_full_disk_leaves_everything_as_it_was() {
    for (name, options) in [("ext2", "-t ext2 -b 1024 -N 256"), ("ext4", "-t ext4 -b 1024 -N 300 -J size=1")] {
        let mount = Mount::new(image::make(options, 6, None)).expect("an image");
        let mut work = Workload::new(mount, 5);
        let mut full = 0;
        for step in 0..4000 {
            let result = work.step();
            match result {
                Ok(()) => {}
                Err(Error::NoSpace) => full += 1,
                Err(other) => panic!("{name}, step {step}: {other:?}"),
            }
            if result.is_err() && full % 50 == 1 {
                // A write may have got as far as the space: the model's file is compared without what is beyond it.
                let numbers: Vec<u32> = work.model.nodes.keys().copied().collect();
                for number in numbers {
                    if let Some(Node::File(data)) = work.model.nodes.get_mut(&number) {
                        *data = work.mount.read(number).expect("a file");
                    }
                }
                work.model.compare(&work.mount);
            }
        }
        assert!(full > 50, "{name}: the disk was full {full} times");
        let image = work.mount.unmount();
        image::check(&image, name);
    }
}

#[test]
fn directories_with_thousands_of_names_keep_their_index() {
    for (name, options, mib) in [KINDS[0], KINDS[1], KINDS[4], KINDS[6], KINDS[9]] {
        let count = if name == "ext2-1k" { 1500 } else { 6000 };
        let options = format!("{options} -N 16000");
        let mount = Mount::new(image::make(&options, mib, None)).expect("an image");
        let mut work = Workload::new(mount, 9);
        for i in 0..count {
            let long = if i % 3 == 0 {
                "a-name-that-is-rather-long-so-that-blocks-are-full-sooner-than-they-otherwise-would-be"
            } else {
                ""
            };
            work.create_in(ROOT, format!("file-{i}{long}").into_bytes()).expect("room");
        }
        work.model.compare(&work.mount);
        for i in (0..count).step_by(2) {
            let long = if i % 3 == 0 {
                "a-name-that-is-rather-long-so-that-blocks-are-full-sooner-than-they-otherwise-would-be"
            } else {
                ""
            };
            let name = format!("file-{i}{long}").into_bytes();
            let gone = work.mount.change(|tx| tx.unlink(ROOT, &name)).expect("a file");
            work.model.names(ROOT).remove(&name);
            work.model.forget(gone.number());
            work.mount.delete(gone.number()).expect("a file without names");
        }
        work.model.compare(&work.mount);
        let image = work.mount.unmount();
        image::check(&image, name);
    }
}

#[test]
fn a_listing_tells_what_is_there_all_the_time_once() {
    for (name, options, mib) in [KINDS[0], KINDS[4]] {
        let mount = Mount::new(image::make(options, mib, None)).expect("an image");
        let mut work = Workload::new(mount, 3);
        for i in 0..700 {
            work.create_in(ROOT, format!("stays-{i}").into_bytes()).expect("room");
        }
        let mut told = std::collections::BTreeMap::new();
        let mut from = ext::Position::START;
        let mut next = 0_u32;
        while from != ext::Position::END {
            let dir = work.mount.inode(ROOT).expect("the root");
            let mut left = 7;
            from = work
                .mount
                .see(|fs, disk| {
                    fs.list(disk, &dir, from, |entry| {
                        *told.entry(entry.name.to_vec()).or_insert(0) += 1;
                        left -= 1;
                        if left == 0 { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
                    })
                })
                .expect("a listing");
            for _ in 0..6 {
                next += 1;
                if next > 900 {
                    break;
                }
                work.create_in(ROOT, format!("comes-{next}-and-makes-blocks-split").into_bytes()).expect("room");
            }
            if let Some(old) = next.checked_sub(20).filter(|old| *old > 0) {
                let _ =
                    work.mount.change(|tx| tx.unlink(ROOT, format!("comes-{old}-and-makes-blocks-split").as_bytes()));
            }
        }
        for i in 0..700 {
            assert_eq!(told.get(format!("stays-{i}").as_bytes()), Some(&1), "{name}: stays-{i}");
        }
    }
}

/// Blocks of two files in turns, so that neither has two that lie together.
fn interleave(work: &mut Workload, blocks: u64) -> [u32; 2] {
    let size = work.mount.cache.block_size as u64;
    let files = [b"one".to_vec(), b"other".to_vec()].map(|name| {
        work.create_in(ROOT, name.clone()).expect("room");
        work.model.names(ROOT)[&name]
    });
    for at in 0..blocks {
        for file in files {
            let data: Vec<u8> = (0..size).map(|i| (i ^ at ^ u64::from(file)) as u8).collect();
            work.mount.write(file, at * size, &data, false).expect("room");
            let Some(Node::File(contents)) = work.model.nodes.get_mut(&file) else { unreachable!("it is a file") };
            contents.extend(&data);
        }
    }
    files
}

#[test]
fn scattered_files_have_deep_trees_and_are_cut_in_steps() {
    for (name, options, mib) in [KINDS[0], KINDS[3], KINDS[4], KINDS[7], KINDS[8]] {
        let mount = Mount::new(image::make(options, mib, None)).expect("an image");
        let mut work = Workload::new(mount, 21);
        let size = work.mount.cache.block_size as u64;
        let blocks = if size == 1024 { 4000 } else { 1500 };
        let [one, other] = interleave(&mut work, blocks);
        // Every third block is punched out, which splits what was joined.
        for at in (0..blocks).step_by(3) {
            work.mount.punch(one, at as u32, at as u32 + 1).expect("a hole");
            let Some(Node::File(contents)) = work.model.nodes.get_mut(&one) else { unreachable!("it is a file") };
            contents[(at * size) as usize..((at + 1) * size) as usize].fill(0);
        }
        // And every sixth filled again.
        for at in (0..blocks).step_by(6) {
            work.mount.write(one, at * size, b"again", at % 4 == 0).expect("room");
            let Some(Node::File(contents)) = work.model.nodes.get_mut(&one) else { unreachable!("it is a file") };
            contents[(at * size) as usize..(at * size) as usize + 5].copy_from_slice(b"again");
        }
        work.model.compare(&work.mount);
        work.mount.commit();
        image::check(
            &{
                work.mount.checkpoint();
                work.mount.device.clone()
            },
            name,
        );
        let cut = blocks / 3 * size + 100;
        work.mount.truncate(one, cut).expect("a smaller file");
        let Some(Node::File(contents)) = work.model.nodes.get_mut(&one) else { unreachable!("it is a file") };
        contents.truncate(cut as usize);
        work.model.compare(&work.mount);
        let gone = work.mount.change(|tx| tx.unlink(ROOT, b"other")).expect("a file").number();
        assert_eq!(gone, other);
        work.mount.delete(other).expect("a file without names");
        work.model.names(ROOT).remove(&b"other"[..]);
        work.model.forget(other);
        work.model.compare(&work.mount);
        let most = work.mount.most_changed;
        println!("{name}: a transaction changed {most} blocks at most");
        assert!(most < 2 * ext::STEP_BLOCKS, "{name}: a transaction changed {most} blocks");
        let image = work.mount.unmount();
        image::check(&image, name);
    }
}

#[test]
fn a_file_that_grows_takes_no_more_than_was_foretold() {
    for (name, options, mib) in [KINDS[0], KINDS[3], KINDS[4], KINDS[7], KINDS[8]] {
        let mount = Mount::new(image::make(options, mib, None)).expect("an image");
        let mut work = Workload::new(mount, 34);
        let size = work.mount.cache.block_size as u64;
        let files = [b"one".to_vec(), b"other".to_vec()].map(|name| {
            work.create_in(ROOT, name.clone()).expect("room");
            work.model.names(ROOT)[&name]
        });
        let (mut at, mut foretold) = (0, Vec::new());
        let mut counts = [1, 1, 1, 1, 1, 2, 7, 12, 100, 300, 340, 700].into_iter();
        loop {
            let inode = work.mount.inode(files[0]).expect("an inode");
            let taken = work.mount.see(|fs, _| Ok(inode.sectors(fs))).expect("a number") * 512 / size;
            // Of all that was foretold before, however much the file has grown since.
            for (from, before, growth) in &foretold {
                let growth: &ext::Growth = growth;
                let count = (at - from) as u32;
                assert!(taken <= before + u64::from(count) + growth.tree_blocks(count), "{name}: {from} and {count}");
            }
            let Some(count) = counts.next() else { break };
            let growth =
                work.mount.see(|fs, disk| fs.growth(disk, &inode)).expect("readable").expect("it ends with a block");
            assert!(u64::from(growth.most()) >= count);
            foretold.push((at, taken, growth));
            for _ in 0..count {
                // Neither has two blocks that lie together.
                for file in files {
                    work.mount.write(file, at * size, &vec![1; size as usize], false).expect("room");
                }
                at += 1;
            }
        }
        work.mount.write(files[0], at * size, b"less than a block", false).expect("room");
        let inode = work.mount.inode(files[0]).expect("an inode");
        assert_eq!(work.mount.see(|fs, disk| fs.growth(disk, &inode)), Ok(None), "{name}");
        // What is promised to others is not taken.
        let free = work.mount.see(|fs, disk| fs.statistics(disk)).expect("numbers").free_blocks;
        let taken = |work: &mut Workload, left: u64| {
            work.mount.change(|tx| {
                tx.leave_free(left);
                let mut inode = tx.fs().inode(tx, files[0])?;
                tx.allocate(&mut inode, at as u32 + 1, 1, ext::Written::Yes).map(drop)
            })
        };
        assert_eq!(taken(&mut work, free), Err(Error::NoSpace), "{name}");
        assert_eq!(taken(&mut work, free / 2), Ok(()), "{name}");
    }
}

#[test]
fn a_file_reaches_as_far_as_its_blocks_can() {
    for (name, options, mib) in [KINDS[0], KINDS[2], KINDS[6]] {
        let mount = Mount::new(image::make(options, mib, None)).expect("an image");
        let mut work = Workload::new(mount, 22);
        work.create_in(ROOT, b"far".to_vec()).expect("room");
        let number = work.model.names(ROOT)[&b"far"[..]];
        let size = work.mount.cache.block_size as u64;
        let most = work.mount.fs.max_file_size(&work.mount.inode(number).expect("an inode"));
        let places =
            [0, 11 * size, 12 * size, (12 + size / 4) * size, (12 + size / 4 + size * size / 16) * size, most - size];
        for place in places {
            work.mount
                .write(number, place, &[9; 100], false)
                .unwrap_or_else(|error| panic!("{name}, {place}: {error:?}"));
        }
        let mut inode = work.mount.inode(number).expect("an inode");
        assert_eq!(inode.size(), most - size + 100);
        assert_eq!(work.mount.change(|tx| tx.set_size(&mut inode.clone(), most + 1)), Err(Error::TooLarge));
        for place in places {
            let at = work.mount.see(|fs, disk| fs.map(disk, &inode, (place / size) as u32)).expect("a block");
            assert!(matches!(at, ext::Mapping::Blocks { .. }), "{name}: {at:?} at {place}");
        }
        image::check(
            &{
                work.mount.commit();
                work.mount.checkpoint();
                work.mount.device.clone()
            },
            name,
        );
        work.mount.truncate(number, 13 * size).expect("a smaller file");
        inode = work.mount.inode(number).expect("an inode");
        assert!(inode.sectors(&work.mount.fs) <= 4 * size / 512, "{name}: {} sectors", inode.sectors(&work.mount.fs));
        image::check(&work.mount.unmount(), name);
    }
}
