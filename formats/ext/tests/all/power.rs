//! The power is cut: after each write, and with some of the writes lost that no flush had confirmed. What was committed must be there, and e2fsck
//! must find nothing wrong, whoever replays the journal.

use crate::image::{self, Random, stress};
use crate::model::{Model, Node};
use crate::mount::Mount;
use crate::workload::Workload;
use ext::{Error, Io};
use std::collections::BTreeMap;

struct Recorded {
    base: Vec<u8>,
    block_size: usize,
    log: Vec<Io>,
    /// What was there at each commit, and how long the log was then.
    commits: Vec<(usize, Model)>,
}

fn record(options: &str, mib: u64, steps: u64, seed: u64) -> Recorded {
    let base = image::make(options, mib, None);
    let mount = Mount::new(base.clone()).expect("an image");
    let mut work = Workload::new(mount, seed);
    work.largest = 150_000;
    let mut commits = vec![(work.mount.log.len(), work.model.clone())];
    for step in 0..steps {
        let before = work.mount.log.iter().filter(|io| matches!(io, Io::Flush)).count();
        match work.step() {
            Ok(()) | Err(Error::NoSpace) => {}
            Err(other) => panic!("step {step}: {other:?}"),
        }
        let after = work.mount.log.iter().filter(|io| matches!(io, Io::Flush)).count();
        assert_eq!(before, after, "commits are made here only");
        if work.random.one_in(8) {
            work.mount.commit();
            commits.push((work.mount.log.len(), work.model.clone()));
            if work.random.one_in(12) || work.mount.journal.as_ref().is_some_and(|journal| journal.wants_checkpoint()) {
                work.mount.checkpoint();
            }
        }
    }
    let block_size = work.mount.cache.block_size;
    Recorded { base, block_size, log: work.mount.log, commits }
}

/// The disk after a cut: all that a flush had confirmed, and of the rest some.
fn cut(recorded: &Recorded, at: usize, random: &mut Random) -> Vec<u8> {
    let mut image = recorded.base.clone();
    let confirmed = recorded.log[..at].iter().rposition(|io| *io == Io::Flush).unwrap_or(0);
    let lose = random.below(3);
    for (i, io) in recorded.log[..at].iter().enumerate() {
        let Io::Write { block, bytes } = io else { continue };
        let kept = i <= confirmed || lose == 0 || lose == 1 && random.one_in(2) || lose == 2 && !random.one_in(8);
        if kept {
            let place = *block as usize * recorded.block_size;
            image[place..place + bytes.len()].copy_from_slice(bytes);
        }
    }
    image
}

/// All names with their inodes.
fn names(mount: &Mount, dir: u32, model: &mut BTreeMap<u32, BTreeMap<Vec<u8>, u32>>) {
    let mut found: BTreeMap<Vec<u8>, u32> = mount.names(dir).expect("a directory").into_iter().collect();
    found.remove(&b"lost+found"[..]);
    for number in found.values() {
        if mount.inode(*number).expect("an inode").is_dir() {
            names(mount, *number, model);
        }
    }
    model.insert(dir, found);
}

fn names_of(model: &Model) -> BTreeMap<u32, BTreeMap<Vec<u8>, u32>> {
    let dirs = model.nodes.iter().filter_map(|(number, node)| match node {
        Node::Dir { names, .. } => Some((*number, names.clone())),
        _ => None,
    });
    dirs.collect()
}

/// What is mounted is what was committed last before the cut, or the commit after it.
fn compare(recorded: &Recorded, at: usize, mount: &Mount) {
    let last = recorded.commits.iter().rposition(|(len, _)| *len <= at).unwrap_or(0);
    let mut found = BTreeMap::new();
    names(mount, crate::model::ROOT, &mut found);
    let states = &recorded.commits[last..recorded.commits.len().min(last + 3)];
    let is = states.iter().take(2).position(|(_, model)| names_of(model) == found);
    let is = is.unwrap_or_else(|| panic!("cut after write {at}: the names are those of no commit"));
    for (number, node) in &states[is].1.nodes {
        // Contents are as they were committed if nothing was written since.
        let Node::File(data) = node else { continue };
        let unchanged = |(_, model): &(usize, Model)| model.nodes.get(number).is_none_or(|other| other == node);
        if states.iter().all(unchanged) && states.len() == 3 {
            let found = mount.read(*number).expect("a file");
            assert!(
                found == *data,
                "cut after write {at}: contents of {number}: {} bytes, {}",
                found.len(),
                data.len()
            );
        }
        let inode = mount.inode(*number).expect("an inode");
        assert_eq!(u32::from(inode.links()), states[is].1.links[number]);
        let attributes = mount.see(|fs, disk| fs.attributes(disk, &inode)).expect("attributes");
        let attributes: BTreeMap<_, _> = attributes.into_iter().map(|one| (one.name, one.value)).collect();
        assert_eq!(attributes, states[is].1.attributes.get(number).cloned().unwrap_or_default());
    }
}

fn cuts(options: &str, mib: u64, steps: u64, count: u64, seed: u64) {
    let recorded = record(options, mib, steps, seed);
    let mut random = Random(seed * 2 + 1);
    let first = recorded.commits[0].0 as u64;
    for i in 0..count {
        let at = (first + random.below(recorded.log.len() as u64 - first)) as usize;
        let what = format!("{options}, seed {seed}, cut after write {at} of {}", recorded.log.len());
        let image = cut(&recorded, at, &mut random);
        let mount = Mount::new(image.clone()).unwrap_or_else(|error| panic!("{what}: {error:?}"));
        compare(&recorded, at, &mount);
        if i % 3 == 0 {
            image::check(&mount.unmount(), &what);
        } else if i % 3 == 1 {
            let mount = Mount::new(image::recover(&image, &what)).unwrap_or_else(|error| panic!("{what}: {error:?}"));
            compare(&recorded, at, &mount);
        }
    }
}

#[test]
fn a_power_cut_at_any_write_loses_nothing_that_was_committed() {
    let kinds = [
        ("-t ext4 -b 1024 -J size=1", 12),
        ("-t ext3 -b 1024 -J size=1", 12),
        ("-t ext4 -b 1024 -J size=1 -O ^64bit,^metadata_csum,uninit_bg", 12),
        ("-t ext4 -b 4096 -J size=4", 24),
    ];
    for (i, (options, mib)) in kinds.into_iter().enumerate() {
        for round in 0..stress() {
            cuts(options, mib, 400, 40, 10 * round + i as u64 + 1);
        }
    }
}

#[test]
fn what_begins_with_the_journals_magic_number_survives() {
    // A symbolic link's block is metadata, and can begin with anything.
    let base = image::make("-t ext4 -b 1024 -J size=1", 12, None);
    let mut mount = Mount::new(base).expect("an image");
    let target = [&b"\xc0\x3b\x39\x98"[..], &[b'x'; 100]].concat();
    let new = ext::NewInode { mode: 0xa1ff, ..Default::default() };
    let number = mount.change(|tx| tx.symlink(2, b"link", &target, &new)).expect("a link").number();
    mount.commit();
    let mut image = mount.device.clone();
    for _ in 0..2 {
        let again = Mount::new(image.clone()).expect("an image");
        let inode = again.inode(number).expect("an inode");
        assert_eq!(again.see(|fs, disk| fs.read_link(disk, &inode)).expect("a link"), target);
        image = image::recover(&image, "a journal with an escaped copy");
    }
}
