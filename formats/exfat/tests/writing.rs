//! File systems are written beside a model in memory, and fsck.exfat looks at them: random work, full disks, power cuts, damage.

mod disk;
mod machine;

use std::collections::{BTreeMap, BTreeSet};

use disk::{Disk, Random};
use exfat::Error;
use machine::{Event, Machine};

/// What there is: content of files, and directories.
type Model = BTreeMap<String, Option<Vec<u8>>>;

/// Options of mkfs.exfat, the size of the device, and how much is done.
const KINDS: &[(&str, usize, u64)] = &[
    ("-c 512 --boundary-align=64K", 4 << 20, 600),
    ("-c 4K", 8 << 20, 600),
    ("-c 32K", 16 << 20, 400),
    ("-c 128K", 32 << 20, 250),
    ("-c 4K --boundary-align=512", 8 << 20, 200),
];

struct Work {
    machine: Machine,
    model: Model,
    random: Random,
    /// What was done something to since the last commit.
    touched: BTreeSet<String>,
    full: u64,
    longest: u64,
}

/// Has fsck.exfat look at it. What it says of a file system that was cut off may be that a chain is longer than its file: those clusters nobody has.
fn check(bytes: &[u8], what: &str) {
    let told = complaints(bytes);
    assert!(told.is_empty(), "{what}: {told:?}");
}

fn complaints(bytes: &[u8]) -> Vec<String> {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().join("disk");
    std::fs::write(&path, bytes).unwrap();
    let output = std::process::Command::new("/usr/sbin/fsck.exfat").arg("-n").arg(&path).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    let errors = told.lines().filter(|line| line.starts_with("ERROR") || line.contains("(y/N)"));
    let errors: Vec<String> = errors.map(str::to_owned).collect();
    assert!(output.status.success() || !errors.is_empty(), "{told}");
    errors
}

impl Work {
    fn new(disk: Vec<u8>, model: Model, seed: u64, is_warm: bool, longest: u64) -> Self {
        let machine = Machine::open(disk, is_warm).unwrap();
        Work { machine, model, random: Random::new(seed), touched: BTreeSet::new(), full: 0, longest }
    }

    fn pick(&mut self, wanted: impl Fn(&Option<Vec<u8>>) -> bool) -> Option<String> {
        let all: Vec<&String> = self.model.iter().filter(|(_, entry)| wanted(entry)).map(|(path, _)| path).collect();
        (!all.is_empty()).then(|| all[self.random.below(all.len() as u64) as usize].clone())
    }

    fn new_path(&mut self) -> String {
        let parent = match self.random.below(3) {
            0 => String::new(),
            _ => self.pick(Option::is_none).unwrap_or_default(),
        };
        let number = self.random.below(40);
        let name = match self.random.below(5) {
            0 => format!("{number}"),
            1 => format!("a name of some length, as there are many, number {number}"),
            2 => format!("\u{e4}\u{f6}\u{fc} {number}"),
            3 => format!("{}{number}", "long ".repeat(38)),
            _ => format!("File {number}.txt"),
        };
        format!("{parent}/{name}")
    }

    fn touch(&mut self, path: &str) {
        self.touched.insert(path.to_owned());
    }

    /// A full disk is none that fails.
    fn expect(&mut self, outcome: Result<(), Error>, what: &str) -> bool {
        match outcome {
            Ok(()) => true,
            Err(Error::NoSpace) => {
                self.full += 1;
                false
            }
            Err(error) => panic!("{what}: {error:?}"),
        }
    }

    /// The path there is that differs in case at most.
    fn same(&self, path: &str) -> Option<String> {
        self.model.keys().find(|other| other.to_uppercase() == path.to_uppercase()).cloned()
    }

    fn is_within(path: &str, directory: &str) -> bool {
        path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn step(&mut self) {
        match self.random.below(20) {
            0..5 => {
                let path = self.new_path();
                let is_directory = self.random.below(4) == 0;
                let made = self.machine.create(&path, is_directory).map(drop);
                if self.same(&path).is_some() {
                    assert_eq!(made, Err(Error::Exists), "{path}");
                } else if self.expect(made, &format!("creating {path}")) {
                    self.touch(&path);
                    self.model.insert(path, (!is_directory).then(Vec::new));
                }
            }
            5..11 => {
                let Some(path) = self.pick(Option::is_some) else { return };
                let content = self.model[&path].clone().unwrap();
                let offset = self.random.below(content.len() as u64 + 2000);
                let len = self.random.below(self.longest);
                let bytes: Vec<u8> = (0..len).map(|_| self.random.next() as u8).collect();
                let number = self.machine.find(&path).unwrap();
                self.touch(&path);
                let outcome = match self.machine.write_file(number, offset, &bytes) {
                    Ok(done) if (done as u64) < len => Err(Error::NoSpace),
                    outcome => outcome.map(drop),
                };
                if self.expect(outcome, "writing") {
                    let mut content = content;
                    content.resize(content.len().max((offset + len) as usize), 0);
                    content[offset as usize..(offset + len) as usize].copy_from_slice(&bytes);
                    if len > 0 || offset as usize <= content.len() {
                        self.model.insert(path, Some(content));
                    }
                }
                self.reread();
            }
            11..13 => {
                let Some(path) = self.pick(Option::is_some) else { return };
                let mut content = self.model[&path].clone().unwrap();
                let number = self.machine.find(&path).unwrap();
                let size = self.random.below(content.len() as u64 * 2 + 3000);
                self.touch(&path);
                let outcome = self.machine.resize(number, size);
                if self.expect(outcome, "changing a length") {
                    content.resize(size as usize, 0);
                    self.model.insert(path, Some(content));
                }
                self.reread();
            }
            13..16 => {
                let Some(path) = self.pick(|_| true) else { return };
                let removed = self.machine.remove(&path);
                if self.model.keys().any(|other| *other != path && Self::is_within(other, &path)) {
                    assert_eq!(removed, Err(Error::NotEmpty), "{path}");
                } else if self.expect(removed, &format!("removing {path}")) {
                    self.touch(&path);
                    self.model.remove(&path);
                }
            }
            16..19 => {
                let Some(from) = self.pick(|_| true) else { return };
                let to = match self.random.below(3) {
                    0 => self.pick(Option::is_some).unwrap_or_default(),
                    1 => from.to_uppercase(),
                    _ => self.new_path(),
                };
                let same_case = to.to_uppercase() == from.to_uppercase();
                let is_directory = self.model[&from].is_none();
                // What a kernel judges before.
                let parent = to.rsplit_once('/').map_or("", |(parent, _)| parent);
                let has_parent = parent.is_empty() || self.model.get(parent) == Some(&None);
                let existing = self.same(&to).filter(|other| *other != from);
                let replaces = existing.as_ref().is_some_and(|other| self.model[other].is_none() || is_directory);
                if to.is_empty() || !has_parent || replaces || Self::is_within(&to, &from) && !same_case || from == to {
                    return;
                }
                let outcome = self.machine.rename(&from, &to);
                if self.expect(outcome, &format!("renaming {from} to {to}")) {
                    self.touch(&from);
                    self.touch(&to);
                    if let Some(other) = existing {
                        self.touch(&other);
                        self.model.remove(&other);
                    }
                    let moved: Vec<String> =
                        self.model.keys().filter(|path| Self::is_within(path, &from)).cloned().collect();
                    for path in moved {
                        let entry = self.model.remove(&path).unwrap();
                        self.model.insert(format!("{to}{}", &path[from.len()..]), entry);
                    }
                }
            }
            _ => self.commit(),
        }
    }

    /// What a full disk has left of a file is what the model has.
    fn reread(&mut self) {
        if self.full == 0 {
            return;
        }
        for path in self.touched.clone() {
            if let Some(Some(_)) = self.model.get(&path)
                && let Ok(number) = self.machine.find(&path)
            {
                let content = self.machine.read_file(number).unwrap();
                self.model.insert(path, Some(content));
            }
        }
    }

    fn commit(&mut self) {
        self.machine.commit();
        self.touched.clear();
    }

    fn compare(&mut self, what: &str) {
        let found = walk(&mut self.machine).unwrap();
        assert_eq!(found.keys().collect::<Vec<_>>(), self.model.keys().collect::<Vec<_>>(), "{what}");
        for (path, entry) in &self.model {
            assert!(found[path] == *entry, "{what}: {path}");
        }
    }
}

/// All that there is.
fn walk(machine: &mut Machine) -> Result<Model, Error> {
    let mut found = Model::new();
    let mut directories = vec![(machine.fs.root(), String::new())];
    while let Some((number, path)) = directories.pop() {
        for (name, number, is_directory) in machine.list(number)? {
            let path = format!("{path}/{name}");
            if is_directory {
                directories.push((number, path.clone()));
            }
            let content = if is_directory { None } else { Some(machine.read_file(number)?) };
            found.insert(path, content);
        }
    }
    Ok(found)
}

/// Clusters that files and directories have.
fn reachable(machine: &mut Machine) -> u64 {
    let cluster = u64::from(machine.fs.cluster_bytes());
    let mut clusters = 0;
    let mut directories = vec![machine.fs.root()];
    while let Some(number) = directories.pop() {
        for (_, number, is_directory) in machine.list(number).unwrap() {
            clusters += machine.node(number).unwrap().size.div_ceil(cluster);
            if is_directory {
                directories.push(number);
            }
        }
    }
    clusters
}

#[test]
fn random_work_leaves_what_a_model_has() {
    for (number, (options, bytes, count)) in KINDS.iter().enumerate() {
        let disk = Disk::make(options, *bytes).bytes;
        let before = Machine::open(disk.clone(), true).unwrap().usage.free();
        let mut work = Work::new(disk, Model::new(), number as u64 + 1, number % 2 == 0, 20_000);
        for step in 0..*count {
            work.step();
            if step % 100 == 99 {
                work.commit();
                check(&work.machine.blocks.disk, &format!("{options} after {step}"));
                work.compare(options);
            }
        }
        work.commit();
        // Nothing is lost.
        let disk = work.machine.blocks.disk.clone();
        let mut again = Machine::open(disk, true).unwrap();
        assert_eq!(again.usage.free(), work.machine.usage.free(), "{options}");
        assert_eq!(walk(&mut again).unwrap(), work.model, "{options}");
        let used = u64::from(before - again.usage.free());
        let own = reachable(&mut again);
        // The root directory may have grown.
        assert!(used >= own && used - own < 64, "{options}: {used} clusters are in use, {own} are found");
        assert!(work.model.len() > 10);
    }
}

#[test]
fn what_is_allocated_far_behind_the_end_is_taken_once() {
    // So far that no single change gets there, with a file in one piece and one in many.
    const FAR: u64 = 5 << 20;
    for is_scattered in [false, true] {
        let disk = Disk::make("-c 512 --boundary-align=64K", 16 << 20).bytes;
        let mut machine = Machine::open(disk, true).unwrap();
        let number = machine.create("/long", false).unwrap();
        if is_scattered {
            let other = machine.create("/other", false).unwrap();
            for part in 0..200 {
                machine.write_file(number, part * 512, &[1; 512]).unwrap();
                machine.write_file(other, part * 512, &[2; 512]).unwrap();
            }
        }
        let before = u64::from(machine.usage.free());
        let size = machine.node(number).unwrap().size;
        machine.allocate_ahead(number, FAR..FAR + 700).unwrap();
        machine.commit();
        assert_eq!(machine.node(number).unwrap().size, FAR + 700);
        let taken = before - u64::from(machine.usage.free());
        assert_eq!(taken, (FAR + 700).div_ceil(512) - size.div_ceil(512));
        check(&machine.blocks.disk, "far behind the end");
        let again = Machine::open(machine.blocks.disk.clone(), true).unwrap();
        assert_eq!(again.usage.free(), machine.usage.free());
        // What there is no room for takes nothing.
        let free = machine.usage.free();
        assert_eq!(machine.allocate_ahead(number, 30 << 20..31 << 20), Err(Error::NoSpace));
        assert_eq!(machine.usage.free(), free);
    }
}

#[test]
fn full_disks_lose_nothing() {
    let disk = Disk::make("-c 1K --boundary-align=64K", 1 << 20).bytes;
    let mut work = Work::new(disk, Model::new(), 99, true, 60_000);
    for step in 0..1500 {
        work.step();
        if step % 300 == 299 {
            work.commit();
            check(&work.machine.blocks.disk, &format!("full disk after {step}"));
            work.compare("full disk");
        }
    }
    assert!(work.full > 100, "it was full only {} times", work.full);
}

#[test]
fn files_of_others_are_changed() {
    for options in ["-c 512 --boundary-align=64K", "-c 4K"] {
        let mut disk = Disk::make(options, 16 << 20);
        let mut random = Random::new(8);
        let root = disk.root();
        let mut model = Model::new();
        for number in 0..60 {
            let name = format!("file {number}");
            let mut content: Vec<u8> = (0..random.below(40_000)).map(|_| random.next() as u8).collect();
            let written = if number % 3 == 0 { content.len() / 2 } else { content.len() };
            content[written..].fill(0);
            let file = disk.create(root, &name, false);
            // Every second one stands in one piece, of which the FAT says nothing.
            disk.write(file, &content, written, number % 2 == 0);
            model.insert(format!("/{name}"), Some(content));
        }
        disk.check();
        let mut work = Work::new(disk.bytes, model, 3, false, 20_000);
        work.compare("before");
        for _ in 0..300 {
            work.step();
        }
        work.commit();
        check(&work.machine.blocks.disk, options);
        work.compare(options);
    }
}

#[test]
fn directories_grow_and_are_emptied() {
    let disk = Disk::make("-c 4K", 16 << 20).bytes;
    let mut machine = Machine::open(disk, true).unwrap();
    machine.create("/wide", true).unwrap();
    for number in 0..3000 {
        machine.create(&format!("/wide/a file with the number {number}"), false).unwrap();
    }
    machine.commit();
    check(&machine.blocks.disk, "3000 names");
    for number in (0..3000).filter(|number| number % 3 != 0) {
        machine.remove(&format!("/wide/A FILE with the number {number}")).unwrap();
    }
    let before = machine.size_of("/wide");
    for number in 0..2000 {
        machine.create(&format!("/wide/another with a number {number}"), false).unwrap();
    }
    assert_eq!(machine.size_of("/wide"), before, "room is used again");
    machine.commit();
    check(&machine.blocks.disk, "changed");
    let wide = machine.find("/wide").unwrap();
    assert_eq!(machine.list(wide).unwrap().len(), 3000);
}

#[test]
fn names_that_others_cannot_have_are_refused() {
    let mut machine = Machine::open(Disk::make("-c 4K", 8 << 20).bytes, true).unwrap();
    for name in ["a:b", "a*", "<", "tab\t", "\\"] {
        assert_eq!(machine.create(&format!("/{name}"), false), Err(Error::Invalid), "{name}");
    }
    assert_eq!(machine.create("/...", false), Err(Error::NotFound));
    assert_eq!(machine.create(&format!("/{}", "n".repeat(256)), false), Err(Error::NameTooLong));
    machine.create(&format!("/{}", "\u{e4}".repeat(255)), false).unwrap();
    machine.create("/dots...", false).unwrap();
    assert_eq!(machine.create("/DOTS", false), Err(Error::Exists));
    machine.rename("/dots", "/Dots").unwrap();
    machine.commit();
    check(&machine.blocks.disk, "names");
    let root = machine.fs.root();
    assert!(machine.list(root).unwrap().iter().any(|(name, ..)| name == "Dots"));
}

#[test]
fn power_cuts_lose_what_was_not_committed_at_most() {
    let mut cuts = 0;
    for seed in 0..6 {
        let (options, bytes, _) = KINDS[seed as usize % 3];
        let start = Disk::make(options, bytes.min(8 << 20)).bytes;
        let mut work = Work::new(start.clone(), Model::new(), 1000 + seed, true, 9_000);
        // Where each commit ends in the log, what there was then, and what was done something to until the next.
        let mut commits = vec![(0, Model::new(), BTreeSet::new())];
        for _ in 0..40 {
            for _ in 0..work.random.below(25) {
                work.step();
                let touched = work.touched.clone();
                commits.last_mut().unwrap().2.extend(touched);
            }
            work.commit();
            commits.push((work.machine.log.len(), work.model.clone(), BTreeSet::new()));
        }
        let log = work.machine.log;
        let mut random = Random::new(seed + 5);
        for _ in 0..25 {
            let end = random.below(log.len() as u64 + 1) as usize;
            let image = cut(&start, &log[..end], &mut random);
            let told = complaints(&image);
            let is_bad = |line: &&String| !line.contains("more clusters are allocated");
            assert_eq!(told.iter().find(is_bad), None, "seed {seed}, cut at {end} of {}", log.len());
            let (_, model, touched) = commits.iter().rev().find(|commit| commit.0 <= end).unwrap();
            let found = walk(&mut Machine::open(image, true).unwrap()).unwrap();
            for (path, entry) in model {
                if touched.iter().any(|other| Work::is_within(path, other)) {
                    continue;
                }
                assert!(found.get(path) == Some(entry), "seed {seed}, cut at {end}: {path}");
            }
            cuts += 1;
        }
    }
    assert_eq!(cuts, 150);
}

#[test]
fn a_file_that_moves_twice_never_has_two_names() {
    let start = Disk::make("-c 4K", 8 << 20).bytes;
    let mut machine = Machine::open(start, true).unwrap();
    machine.create("/from", true).unwrap();
    machine.create("/to", true).unwrap();
    // What is behind entries that were in use is seen.
    machine.create("/to/old", false).unwrap();
    machine.remove("/to/old").unwrap();
    let number = machine.create("/from/file", false).unwrap();
    machine.write_file(number, 0, &[3; 9000]).unwrap();
    machine.commit();
    let (start, before) = (machine.blocks.disk.clone(), machine.log.len());
    // To another directory, and then within a sector of that: both before a commit.
    machine.rename("/from/file", "/to/one").unwrap();
    // So there is no room where it was.
    machine.create("/to/next", true).unwrap();
    machine.rename("/to/one", "/to/a name that needs more entries").unwrap();
    machine.commit();
    let log = &machine.log[before..];
    let mut random = Random::new(11);
    for end in (0..=log.len()).cycle().take(200) {
        let found = walk(&mut Machine::open(cut(&start, &log[..end], &mut random), true).unwrap()).unwrap();
        assert!(found.values().flatten().count() <= 1, "cut at {end} of {}: {:?}", log.len(), found.keys());
    }
}

/// What is on a disk that was told this: of what came after the last flush some sectors.
fn cut(start: &[u8], log: &[Event], random: &mut Random) -> Vec<u8> {
    const SECTOR: usize = 512;
    let mut image = start.to_vec();
    let kept = log.iter().rposition(|event| matches!(event, Event::Flush)).unwrap_or(0);
    for (number, event) in log.iter().enumerate() {
        let Event::Write(address, bytes) = event else { continue };
        for (at, part) in bytes.chunks(SECTOR).enumerate() {
            if number < kept || random.below(2) == 0 {
                let address = *address as usize + at * SECTOR;
                image[address..address + part.len()].copy_from_slice(part);
            }
        }
    }
    image
}

#[test]
fn damaged_file_systems_are_written_without_a_panic() {
    let mut changed = 0;
    for (number, (options, bytes)) in
        [("-c 512 --boundary-align=64K", 2 << 20), ("-c 4K", 4 << 20), ("-c 32K", 8 << 20)].iter().enumerate()
    {
        let mut disk = Disk::make(options, *bytes);
        let root = disk.root();
        let mut random = Random::new(number as u64 + 5);
        let mut paths = Vec::new();
        for number in 0..25 {
            let is_directory = number % 5 == 0;
            let file = disk.create(root, &format!("file {number}"), is_directory);
            if !is_directory {
                let content: Vec<u8> = (0..random.below(20_000)).map(|_| random.next() as u8).collect();
                disk.write(file, &content, content.len(), number % 2 == 0);
            }
            paths.push(format!("/file {number}"));
        }
        let metadata = disk.metadata.clone();
        for seed in 0..700 {
            let mut random = Random::new(seed + 1);
            let mut bytes = disk.bytes.clone();
            for _ in 0..1 + random.below(10) {
                let (start, len) = metadata[random.below(metadata.len() as u64) as usize];
                let at = start + random.below(len as u64) as usize;
                match random.below(3) {
                    0 => bytes[at] = random.next() as u8,
                    1 => bytes[at] ^= 1 << random.below(8),
                    _ => bytes[at & !3..(at & !3) + 4].fill(0xff),
                }
            }
            disk::mend(&mut bytes, &metadata, random.below(4) != 0);
            let Ok(mut machine) = Machine::open(bytes, true) else { continue };
            for _ in 0..40 {
                let path = paths[random.below(paths.len() as u64) as usize].clone();
                let other = paths[random.below(paths.len() as u64) as usize].clone();
                let outcome = match random.below(7) {
                    0 => machine.create(&format!("{path}/new {}", random.below(5)), random.below(2) == 0).map(drop),
                    1 => machine.create(&format!("/new {}", random.below(50)), random.below(2) == 0).map(drop),
                    2 => machine.remove(&path),
                    3 if path != other => machine.rename(&path, &other),
                    4 => machine.find(&path).and_then(|number| match machine.node(number)?.is_directory {
                        true => Ok(()),
                        false => machine.write_file(number, random.below(30_000), &[7; 3000]).map(drop),
                    }),
                    5 => machine.find(&path).and_then(|number| match machine.node(number)?.is_directory {
                        true => Ok(()),
                        false => machine.resize(number, random.below(40_000)),
                    }),
                    _ => {
                        machine.commit();
                        Ok(())
                    }
                };
                changed += u64::from(outcome.is_ok());
            }
        }
    }
    assert!(changed > 10_000, "only {changed} changes were made");
}
