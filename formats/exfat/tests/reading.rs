//! File systems that mkfs.exfat makes, filled by a small writer that stands here, are checked by fsck.exfat and read back; and damaged ones.

mod disk;

use std::collections::{BTreeMap, BTreeSet};

use disk::{Device, Disk, Random};
use exfat::{ChainIndex, DirectoryIndex, Error, Node, Place};

/// Options of mkfs.exfat, and the size of the device.
const KINDS: &[(&str, usize)] = &[
    ("-c 512 --boundary-align=64K", 4 << 20),
    ("-c 4K", 16 << 20),
    ("-c 32K", 32 << 20),
    ("-c 128K", 64 << 20),
    ("-c 256K", 64 << 20),
];

#[test]
fn what_was_written_is_read_back() {
    for (number, (options, bytes)) in KINDS.iter().enumerate() {
        let mut disk = Disk::make(options, *bytes);
        let expected = fill(&mut disk, &mut Random::new(number as u64 + 1), 60, 40_000);
        disk.check();
        let device = Device::new(disk.bytes);
        compare(&device, &expected, options);
    }
}

#[test]
fn directories_of_many_names_are_searched_and_listed() {
    let mut disk = Disk::make("-c 4K", 64 << 20);
    let directory = disk.root();
    let wide = disk.create(directory, "wide", true);
    let mut expected = BTreeSet::new();
    for number in 0..10_000 {
        let name = format!("Name {} of many, number {number}", number % 7);
        // Every second one is gone again.
        let file = disk.create(wide, &name, false);
        if number % 2 == 0 { disk.remove(file) } else { _ = expected.insert(name) }
    }
    disk.check();
    let device = Device::new(disk.bytes);
    let file_system = device.open().unwrap();
    let mut index = DirectoryIndex::default();
    let root = device.run(|source| file_system.node(source, file_system.root())).unwrap();
    let wide = device.run(|source| file_system.look_up(source, &root, &mut index, b"WIDE")).unwrap();
    let wide = device.run(|source| file_system.node(source, wide)).unwrap();
    let mut index = DirectoryIndex::default();
    let listed = list(&device, &file_system, &wide, &mut index, 333);
    let names: Vec<&String> = listed.iter().map(|(name, ..)| name).collect();
    assert_eq!(names.len(), 5000);
    assert!(names.iter().all(|name| expected.contains(*name)));
    for (name, number, _) in listed.iter().step_by(7) {
        let shouted = name.to_uppercase();
        let found = device.run(|source| file_system.look_up(source, &wide, &mut index, shouted.as_bytes()));
        assert_eq!(found, Ok(*number));
    }
    for missing in ["", ".", "name 0 of many, number 0", "nothing"] {
        let found = device.run(|source| file_system.look_up(source, &wide, &mut index, missing.as_bytes()));
        assert_eq!(found, Err(Error::NotFound), "{missing}");
    }
}

#[test]
fn names_are_compared_as_the_table_says() {
    let mut disk = Disk::make("-c 4K", 8 << 20);
    let root = disk.root();
    let names = ["Mixed Case.TXT", "\u{fc}ml\u{e4}ut", "\u{1f600} smile", &"n".repeat(255), "\u{3b1}\u{3b2}"];
    for name in names {
        disk.create(root, name, false);
    }
    disk.check();
    let device = Device::new(disk.bytes);
    let file_system = device.open().unwrap();
    let root = device.run(|source| file_system.node(source, file_system.root())).unwrap();
    let mut index = DirectoryIndex::default();
    let mut found = |name: &str| device.run(|source| file_system.look_up(source, &root, &mut index, name.as_bytes()));
    let number = found("Mixed Case.TXT").unwrap();
    assert_eq!(found("mixed cASE.txt"), Ok(number));
    assert_eq!(found("mixed case.txt..."), Ok(number));
    assert_eq!(found("mixed case.tx"), Err(Error::NotFound));
    assert_eq!(found("\u{dc}ML\u{c4}UT"), found("\u{fc}ml\u{e4}ut"));
    assert_eq!(found("\u{391}\u{392}"), found("\u{3b1}\u{3b2}"));
    assert!(found("\u{1f600} SMILE").is_ok());
    assert!(found(&"N".repeat(255)).is_ok());
    assert_eq!(found(&"N".repeat(256)), Err(Error::NotFound));
}

#[test]
fn what_is_no_exfat_is_refused() {
    let disk = Disk::make("-c 4K", 8 << 20);
    let open = |at: usize, byte: u8| {
        let mut bytes = disk.bytes.clone();
        bytes[at] = byte;
        Device::new(bytes).open().err()
    };
    assert_eq!(open(106, 2), None, "not unmounted");
    assert!(matches!(open(3, b'N'), Some(Error::Corrupt(_))), "the signature");
    assert!(matches!(open(110, 2), Some(Error::Unsupported(_))), "two FATs");
    assert!(matches!(open(105, 2), Some(Error::Unsupported(_))), "version 2");
    assert!(matches!(open(100, 0x55), Some(Error::Corrupt(_)) | None), "the serial number, and the checksum");
    assert!(matches!(open(600, 1), Some(Error::Corrupt(_))), "a boot sector");
    let mut short = disk.bytes.clone();
    short.truncate(4 << 20);
    assert!(matches!(Device::new(short).open(), Err(Error::Corrupt(_))));
}

#[test]
fn no_damage_leads_to_a_panic_or_an_endless_loop() {
    for (number, (options, bytes)) in
        [("-c 512 --boundary-align=64K", 2 << 20), ("-c 4K", 4 << 20), ("-c 32K", 8 << 20)].iter().enumerate()
    {
        let mut disk = Disk::make(options, *bytes);
        fill(&mut disk, &mut Random::new(number as u64 + 77), 25, 20_000);
        disk.check();
        let metadata = disk.metadata.clone();
        let whole = disk.bytes;
        let mut failures = 0;
        const COUNT: u64 = 3_500;
        for seed in 0..COUNT {
            let mut bytes = whole.clone();
            damage(&mut bytes, &metadata, &mut Random::new(seed + 1));
            let device = Device::new(bytes);
            let device = if seed % 8 == 0 { device } else { device.warm() };
            failures += u64::from(!visit(&device));
        }
        assert!(failures > COUNT / 10, "{options}: only {failures} of {COUNT} were found to be damaged");
    }
}

/// What is expected of a path: content, or that it is a directory.
type Expected = BTreeMap<String, Option<Vec<u8>>>;

/// Makes files and directories; what is to be found.
fn fill(disk: &mut Disk, random: &mut Random, count: u64, longest: u64) -> Expected {
    let mut expected = BTreeMap::new();
    let mut directories = vec![(disk.root(), String::new())];
    for number in 0..count {
        let (parent, path) = directories[random.below(directories.len() as u64) as usize].clone();
        let name = format!(
            "{}{number}",
            ["File ", "\u{e4}\u{f6}", "long long long long name ", "x"][random.below(4) as usize]
        );
        let path = format!("{path}/{name}");
        let is_directory = random.below(5) == 0;
        let made = disk.create(parent, &name, is_directory);
        if is_directory {
            directories.push((made, path.clone()));
            expected.insert(path, None);
            continue;
        }
        let len = random.below(longest) as usize;
        let mut content: Vec<u8> = (0..len).map(|_| random.next() as u8).collect();
        // Contiguous or scattered, and some not written to the end.
        let written = if random.below(3) == 0 { random.below(len as u64 + 1) as usize } else { len };
        content[written..].fill(0);
        disk.write(made, &content, written, random.below(2) == 0);
        expected.insert(path, Some(content));
    }
    expected
}

fn list(
    device: &Device,
    file_system: &exfat::FileSystem,
    node: &Node,
    index: &mut DirectoryIndex,
    most: usize,
) -> Vec<(String, u64, bool)> {
    let mut all: Vec<(String, u64, bool)> = Vec::new();
    let mut position = 0;
    loop {
        let mut part = Vec::new();
        let mut next = position;
        let outcome = device.run(|source| {
            (part, next) = (Vec::new(), position);
            file_system.list(source, node, index, position, |entry| {
                if part.len() == most {
                    return false;
                }
                part.push((entry.name.to_owned(), entry.number, entry.is_directory));
                assert!(entry.next > next);
                next = entry.next;
                true
            })
        });
        outcome.unwrap();
        position = next;
        let is_end = part.len() < most;
        all.extend(part);
        if is_end {
            return all;
        }
    }
}

fn compare(device: &Device, expected: &Expected, options: &str) {
    let file_system = device.open().unwrap();
    let mut directories = vec![(file_system.root(), String::new())];
    let mut seen = 0;
    while let Some((number, path)) = directories.pop() {
        let node = device.run(|source| file_system.node(source, number)).unwrap();
        let mut index = DirectoryIndex::default();
        for (name, number, is_directory) in list(device, &file_system, &node, &mut index, 5) {
            let path = format!("{path}/{name}");
            let found = device.run(|source| file_system.look_up(source, &node, &mut index, name.as_bytes()));
            assert_eq!(found, Ok(number));
            seen += 1;
            match expected.get(&path).unwrap_or_else(|| panic!("{options}: {path}")) {
                None => {
                    assert!(is_directory);
                    directories.push((number, path));
                }
                Some(content) => {
                    let file = device.run(|source| file_system.node(source, number)).unwrap();
                    assert!(!file.is_directory && file.size == content.len() as u64);
                    assert_eq!(file.modified, disk::TIME);
                    check_content(device, &file_system, &file, content);
                }
            }
        }
    }
    assert_eq!(seen, expected.len());
    let used = device.used_clusters(&file_system).unwrap();
    assert!(used > 2 && used < file_system.clusters());
}

fn check_content(device: &Device, file_system: &exfat::FileSystem, file: &Node, content: &[u8]) {
    let mut index = ChainIndex::default();
    for (from, len) in [(0, content.len() + 9), (content.len() / 2, 3000), (content.len(), 10)] {
        let mut found = vec![1; len];
        let read = device.run(|source| file_system.read(source, file, &mut index, from as u64, &mut found)).unwrap();
        assert!(found[..read] == content[from..(from + len).min(content.len())]);
    }
    let mut at = 0;
    while at < content.len() {
        let mapping = device.run(|source| file_system.map(source, file, &mut index, at as u64)).unwrap();
        let part = &content[at..at + mapping.bytes as usize];
        match mapping.place {
            Place::Device(address) => assert!(device.bytes(address, part.len()) == part),
            Place::Hole => assert!(part.iter().all(|byte| *byte == 0)),
        }
        at += part.len();
    }
}

/// Does all that can be done with up to 200 files; whether nothing fails.
fn visit(device: &Device) -> bool {
    let Ok(file_system) = device.open() else { return false };
    let mut is_whole = device.used_clusters(&file_system).is_ok();
    let mut numbers = vec![file_system.root()];
    let mut seen = 0;
    while let Some(number) = numbers.pop() {
        seen += 1;
        if seen > 200 {
            break;
        }
        let Ok(node) = device.run(|source| file_system.node(source, number)) else {
            is_whole = false;
            continue;
        };
        if node.is_directory {
            let mut index = DirectoryIndex::default();
            let mut names = Vec::new();
            let listed = device.run(|source| {
                names.clear();
                file_system.list(source, &node, &mut index, 0, |entry| {
                    names.push((entry.name.to_owned(), entry.number));
                    names.len() < 100
                })
            });
            is_whole &= listed.is_ok();
            for (name, number) in names {
                let found = device.run(|source| file_system.look_up(source, &node, &mut index, name.as_bytes()));
                is_whole &= found.is_ok();
                numbers.push(number);
            }
            let missing = device.run(|source| file_system.look_up(source, &node, &mut index, b"not there"));
            is_whole &= missing == Err(Error::NotFound);
        } else {
            let mut index = ChainIndex::default();
            for offset in [0, node.size / 2, node.size.saturating_sub(100), u64::MAX - 5] {
                let mut part = [0; 5000];
                is_whole &= device.run(|source| file_system.read(source, &node, &mut index, offset, &mut part)).is_ok();
            }
        }
    }
    is_whole
}

/// Changes some bytes, mostly in metadata.
fn damage(bytes: &mut [u8], metadata: &[(usize, usize)], random: &mut Random) {
    for _ in 0..1 + random.below(10) {
        let (start, len) = match random.below(8) {
            0 => (0, bytes.len()),
            _ => metadata[random.below(metadata.len() as u64) as usize],
        };
        let at = (start + random.below(len as u64) as usize).min(bytes.len() - 16);
        match random.below(4) {
            0 => bytes[at] = random.next() as u8,
            1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes[at & !3..(at & !3) + 4].fill(0xff),
            _ => {
                let from = (start + random.below(len as u64) as usize).min(bytes.len() - 16);
                bytes.copy_within(from..from + 8, at & !3);
            }
        }
    }
    // Checksums would find nearly everything: some are made to be true again.
    disk::mend(bytes, metadata, random.below(4) != 0);
}
