//! Images that mkfs.erofs makes of generated directories are read back completely and compared with the directories, each operation with an
//! empty cache at its start.

mod image;
mod trees;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use erofs::{Error, FIRST_POSITION, FileKind, Inode, Place};

use image::{Cache, make_image};
use trees::{Ids, Random};

/// What time the image has for all files; `None`: each its own.
type FixedTime = Option<i64>;

/// Options of mkfs.erofs that make each layout of data that is not compressed.
const PLAIN_LAYOUTS: &[(&[&str], FixedTime)] = &[
    (&[], None),
    (&["-Eforce-inode-compact", "-T1234567"], Some(1_234_567)),
    (&["-Eforce-inode-extended"], None),
    (&["-Enoinline_data"], None),
    (&["-Enosbcrc", "-T1"], Some(1)),
    (&["-x0"], None),
    (&["-x1000"], None),
    (&["--chunksize=4096"], None),
    (&["--chunksize=65536"], None),
    (&["--chunksize=1048576", "-Enoinline_data"], None),
    (&["--chunksize=4096", "-Eforce-chunk-indexes"], None),
    (&["--chunksize=16384", "-Eforce-inode-blockmap"], None),
];

/// And those for compressed data.
const COMPRESSED_LAYOUTS: &[(&[&str], FixedTime)] = &[
    (&["-zlz4"], None),
    (&["-zlz4hc,12"], None),
    (&["-zlz4", "-Elegacy-compress"], None),
    (&["-zlz4hc", "-Elegacy-compress", "-Eforce-inode-compact", "-T5"], Some(5)),
    (&["-zlz4", "-C16384"], None),
    (&["-zlz4hc", "-C65536"], None),
    (&["-zlz4hc", "-C1048576"], None),
    (&["-zlz4", "-C65536", "-Elegacy-compress"], None),
    (&["-zlz4", "--max-extent-bytes=8192"], None),
    (&["-zlz4", "-Eztailpacking"], None),
    (&["-zlz4hc", "-C65536", "-Eztailpacking"], None),
    (&["-zlz4", "-Eztailpacking,legacy-compress"], None),
];

/// The same with options that mkfs.erofs has since 1.9.
const NEWER_LAYOUTS: &[(&[&str], FixedTime)] = &[
    (&["-zlz4", "-Efragments"], None),
    (&["-zlz4", "-C65536", "-Efragments"], None),
    (&["-zlz4hc", "-C65536", "-Eall-fragments"], None),
    (&["-zlz4", "-Efragments,legacy-compress"], None),
    (&["-zlz4", "-Ededupe"], None),
    (&["-zlz4hc", "-C65536", "-Ededupe"], None),
    (&["-zlz4", "-C16384", "-Ededupe,fragments"], None),
    (&["-zlz4hc", "-C65536", "-Ededupe,all-fragments"], None),
    (&["-zlz4", "-C65536", "-Ededupe,ztailpacking"], None),
    (&["-zlz4", "-C65536", "-Ededupe,fragments,ztailpacking"], None),
    (&["-b512", "-zlz4", "-C2048"], None),
    (&["-b1024"], None),
    (&["-b2048", "-zlz4hc", "-C16384", "-Eztailpacking"], None),
    (&["-b512", "--chunksize=4096"], None),
    (&["-zlz4:lz4hc", "-C16384"], None),
    (&["-zlz4", "-C16384", "--zD=1"], None),
    (&["-x1000", "--xattr-prefix=user.n", "--xattr-prefix=trusted.overlay."], None),
    (&["-zlz4", "-Eall-fragments", "--xattr-prefix=user.s"], None),
];

#[test]
fn images_without_compression_are_read_back_as_they_were() {
    compare_layouts(1, PLAIN_LAYOUTS);
}

#[test]
fn compressed_images_are_read_back_as_they_were() {
    compare_layouts(5, COMPRESSED_LAYOUTS);
}

#[test]
fn images_that_only_a_newer_mkfs_makes_are_read_back_as_they_were() {
    if image::is_mkfs_newer() {
        compare_layouts(6, NEWER_LAYOUTS);
    }
}

fn compare_layouts(seed: u64, layouts: &[(&[&str], FixedTime)]) {
    let tree = trees::mixed(seed, Ids::Large);
    let small_ids = trees::mixed(seed, Ids::Small);
    for (options, time) in layouts {
        // A compact inode has 16 bits for an owner.
        let is_compact = options.iter().any(|option| option.contains("force-inode-compact"));
        compare(if is_compact { small_ids.path() } else { tree.path() }, options, *time);
    }
}

#[test]
fn what_the_crate_does_not_read_is_refused_when_the_image_is_opened() {
    let tree = trees::wide(8, 10);
    let image = make_image(tree.path(), &[]);
    let without_checksum = make_image(tree.path(), &["-Enosbcrc"]);
    let open = |image: &[u8], at: usize, byte: u8| {
        let mut image = image.to_vec();
        image[1024 + at] = byte;
        Cache::new(image).open().err()
    };
    let unsupported = |error| matches!(error, Some(Error::Unsupported(_)));
    let corrupt = |error| matches!(error, Some(Error::Corrupt(_)));
    assert!(corrupt(open(&image, 0, 0)), "the magic number");
    assert!(corrupt(open(&image, 64, b'x')), "the checksum");
    assert_eq!(open(&without_checksum, 64, b'x'), None);
    assert!(unsupported(open(&without_checksum, 12, 16)), "blocks of 64 KiB");
    assert!(unsupported(open(&without_checksum, 80, 0x80)), "48-bit addresses");
    assert!(unsupported(open(&without_checksum, 81, 1)), "compressed metadata");
    assert!(unsupported(open(&without_checksum, 86, 1)), "further devices");
    assert!(unsupported(open(&without_checksum, 90, 1)), "large directory blocks");
    assert!(corrupt(open(&without_checksum, 38, 1)), "more blocks than the device has");
}

#[test]
fn directories_of_ten_thousand_entries_are_searched_and_listed() {
    let tree = trees::wide(2, 10_000);
    for options in [&[][..], &["-zlz4", "-Eztailpacking"]] {
        compare(tree.path(), options, None);
    }
}

#[test]
fn a_device_that_ends_too_early_is_refused_or_tells_an_error() {
    let tree = trees::mixed(3, Ids::Small);
    let image = make_image(tree.path(), &["-zlz4", "-C16384", "-Eztailpacking"]);
    for keep in [0, 100, 1024, 1100, 1151, 2000, 4096, 8192, image.len() / 2, image.len() - 1] {
        let cache = Cache::new(image[..keep].to_vec());
        assert!(matches!(cache.open(), Err(Error::Corrupt(_))), "{keep} bytes");
    }
    // The same where the device is said to have all bytes.
    for keep in [4096, image.len() / 3, image.len() / 2, image.len() - 5000] {
        let cache = Cache::new(image[..keep].to_vec()).claiming(image.len() as u64);
        let opened = cache.open().expect("the superblock is there");
        let mut failed = 0;
        image::visit(&cache, &opened, 10_000, &mut failed);
        assert!(failed > 0);
    }
}

/// Makes an image of a directory and compares all that is in it.
fn compare(tree: &Path, options: &[&str], time: FixedTime) {
    let cache = Cache::new(make_image(tree, options));
    let image = cache.open().unwrap_or_else(|error| panic!("{options:?}: {error}"));
    let mut comparison = Comparison {
        cache: &cache,
        image: &image,
        time,
        random: Random::new(7),
        links: HashMap::new(),
        options,
        is_mkfs_newer: image::is_mkfs_newer(),
    };
    let mut directories = vec![(tree.to_path_buf(), image.root(), image.root())];
    let mut inodes = 0;
    while let Some((path, nid, parent)) = directories.pop() {
        inodes += 1;
        for (child, nid_of_child) in comparison.directory(&path, nid, parent) {
            if fs::symlink_metadata(&child).unwrap().is_dir() {
                directories.push((child, nid_of_child, nid));
            } else {
                inodes += comparison.file(&child, nid_of_child);
            }
        }
    }
    let packed = u64::from(options.iter().any(|option| option.contains("fragments") || option.contains("dedupe")));
    assert!((inodes..=inodes + packed).contains(&image.inodes()), "{options:?}: {inodes} of {}", image.inodes());
}

struct Comparison<'a> {
    cache: &'a Cache,
    image: &'a erofs::Image,
    time: FixedTime,
    random: Random,
    /// The image's inode of each inode of the directory.
    links: HashMap<u64, u64>,
    options: &'a [&'a str],
    is_mkfs_newer: bool,
}

impl Comparison<'_> {
    fn run<R>(&self, operation: impl Fn(erofs::Reader<'_, Cache>) -> Result<R, Error>) -> Result<R, Error> {
        self.cache.run(self.image, operation)
    }

    /// Compares a directory; its entries.
    fn directory(&mut self, path: &Path, nid: u64, parent: u64) -> Vec<(PathBuf, u64)> {
        let inode = self.run(|reader| reader.inode(nid)).unwrap();
        self.attributes(path, &inode);
        let mut expected: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        expected.sort();
        let found = self.list(&inode);
        assert_eq!(
            found.iter().map(|entry| entry.name.as_slice()).collect::<Vec<_>>(),
            expected.iter().map(|name| name.as_bytes()).collect::<Vec<_>>(),
            "{:?} {path:?}",
            self.options
        );
        let subdirectories = found.iter().filter(|entry| entry.kind == Some(FileKind::Directory)).count();
        assert_eq!(inode.nlink as usize, 2 + subdirectories, "{path:?}");
        let lookup = |name: &[u8]| self.run(|reader| reader.lookup(&inode, name));
        assert_eq!((lookup(b"."), lookup(b"..")), (Ok(nid), Ok(parent)));
        for entry in &found {
            assert_eq!(lookup(&entry.name), Ok(entry.nid));
            let mut longer = entry.name.clone();
            longer.push(b'!');
            for missing in [&longer[..], &longer[..longer.len() - 2]] {
                if expected.binary_search_by(|name| name.as_bytes().cmp(missing)).is_err()
                    && missing != b"."
                    && missing != b".."
                {
                    assert_eq!(lookup(missing), Err(Error::NotFound));
                }
            }
        }
        for missing in [&b""[..], b"\x01", b"\xff\xff"] {
            assert_eq!(lookup(missing), Err(Error::NotFound));
        }
        found.into_iter().map(|entry| (path.join(OsStr::from_bytes(&entry.name)), entry.nid)).collect()
    }

    /// Lists in parts of random length; each entry is told once, and its position leads to what is after it.
    fn list(&mut self, inode: &Inode) -> Vec<Told> {
        let mut told: Vec<Told> = Vec::new();
        let mut next = Some(0);
        while let Some(position) = next {
            let most = 1 + self.random.below(200) as usize;
            let (part, after) = self
                .run(|reader| {
                    let mut part = Vec::new();
                    let after = reader.list(inode, position, |entry| {
                        if part.len() == most {
                            return ControlFlow::Break(());
                        }
                        part.push(Told {
                            name: entry.name.to_vec(),
                            nid: entry.nid,
                            kind: entry.kind,
                            next: entry.next,
                        });
                        ControlFlow::Continue(())
                    });
                    // What fails has told nothing.
                    assert!(after.is_ok() || part.is_empty());
                    Ok((part, after?))
                })
                .unwrap();
            told.extend(part);
            assert!(after.is_none_or(|after| after > position.max(FIRST_POSITION)));
            next = after;
        }
        assert!(told.is_sorted_by(|a, b| a.next < b.next && a.next > FIRST_POSITION));
        for pair in told.windows(2).step_by(97) {
            let first = self
                .run(|reader| {
                    let mut position = Some(pair[0].next);
                    let mut first = None;
                    while let (Some(at), None) = (position, &first) {
                        position = reader.list(inode, at, |entry| {
                            first = Some(entry.name.to_vec());
                            ControlFlow::Break(())
                        })?;
                    }
                    Ok(first)
                })
                .unwrap();
            assert_eq!(first.as_ref(), Some(&pair[1].name));
        }
        told.sort_by(|a, b| a.name.cmp(&b.name));
        told
    }

    /// Compares what is no directory; 1 if it is no further name of a file seen before.
    fn file(&mut self, path: &Path, nid: u64) -> u64 {
        let metadata = fs::symlink_metadata(path).unwrap();
        if let Some(before) = self.links.insert(metadata.ino(), nid) {
            assert_eq!(before, nid, "{path:?}");
            return 0;
        }
        let inode = self.run(|reader| reader.inode(nid)).unwrap();
        self.attributes(path, &inode);
        assert_eq!(u64::from(inode.nlink), metadata.nlink(), "{path:?}");
        match inode.kind {
            FileKind::Regular => self.content(path, &inode),
            FileKind::Symlink => {
                let target = self.run(|reader| reader.symlink(&inode)).unwrap();
                assert_eq!(target, fs::read_link(path).unwrap().as_os_str().as_bytes());
            }
            _ => {
                assert_eq!(self.run(|reader| reader.read(&inode, 0, &mut [0])), Err(Error::WrongKind));
                assert_eq!(self.run(|reader| reader.map(&inode, 0)), Err(Error::WrongKind));
            }
        }
        assert_eq!(self.run(|reader| reader.lookup(&inode, b".")), Err(Error::WrongKind));
        1
    }

    fn attributes(&self, path: &Path, inode: &Inode) {
        let metadata = fs::symlink_metadata(path).unwrap();
        let context = format!("{:?} {path:?}", self.options);
        assert_eq!(u32::from(inode.mode), metadata.mode(), "{context}");
        assert_eq!((inode.uid, inode.gid), (metadata.uid(), metadata.gid()), "{context}");
        match self.time {
            Some(time) => assert_eq!((inode.mtime, inode.mtime_nanoseconds), (time, 0), "{context}"),
            None => {
                assert_eq!(inode.mtime, metadata.mtime(), "{context}");
                // Newer ones keep the nanoseconds of large inodes only.
                let is_cut = inode.mtime_nanoseconds == 0 && self.is_mkfs_newer;
                assert!(is_cut || i64::from(inode.mtime_nanoseconds) == metadata.mtime_nsec(), "{context}");
            }
        }
        let kind = metadata.file_type();
        if !kind.is_dir() {
            assert_eq!(inode.size, if kind.is_file() || kind.is_symlink() { metadata.len() } else { 0 }, "{context}");
        }
        let device = if kind.is_block_device() || kind.is_char_device() { metadata.rdev() } else { 0 };
        assert_eq!(inode.device, (rustix::fs::major(device), rustix::fs::minor(device)), "{context}");
        self.xattrs(path, inode);
    }

    fn xattrs(&self, path: &Path, inode: &Inode) {
        let mut expected = trees::xattrs(path);
        let names = self.run(|reader| reader.xattr_names(inode)).unwrap();
        let mut found: Vec<_> = names
            .split_inclusive(|byte| *byte == 0)
            .map(|name| {
                let name = &name[..name.len() - 1];
                (name.to_vec(), self.run(|reader| reader.xattr(inode, name)).unwrap())
            })
            .collect();
        expected.sort();
        found.sort();
        assert_eq!(found, expected, "{:?} {path:?}", self.options);
        for missing in [&b"user.none"[..], b"user.", b"", b"nothing.like.it", b"security.x"] {
            if !expected.iter().any(|(name, _)| name == missing) {
                assert_eq!(self.run(|reader| reader.xattr(inode, missing)), Err(Error::NotFound));
            }
        }
    }

    /// Reads a file as a whole, in random parts, and as its mappings say.
    fn content(&mut self, path: &Path, inode: &Inode) {
        let expected = fs::read(path).unwrap();
        let context = format!("{:?} {path:?}", self.options);
        let whole = self.read(inode, 0, expected.len() + 10);
        assert!(whole == expected, "{context}: the whole");
        for _ in 0..8 {
            let start = self.random.below(expected.len() as u64 + 2) as usize;
            let len = self.random.below(20_000) as usize;
            let part = &expected[start.min(expected.len())..(start + len).min(expected.len())];
            assert!(self.read(inode, start as u64, len) == part, "{context}: {len} bytes at {start}");
        }
        assert_eq!(self.run(|reader| reader.map(inode, expected.len() as u64)), Err(Error::NotFound));
        let mut at = 0;
        while at < expected.len() as u64 {
            let mapping = self.run(|reader| reader.map(inode, at)).unwrap();
            assert!(mapping.start == at && mapping.bytes > 0, "{context}: {mapping:?} at {at}");
            let end = at + mapping.bytes;
            let part = &expected[at as usize..end as usize];
            let is_right = match mapping.place {
                Place::Device(address) => {
                    address % u64::from(self.image.block_bytes()) == 0 && self.cache.bytes(address, part.len()) == part
                }
                Place::Inline(address) => {
                    part.len() < self.image.block_bytes() as usize && self.cache.bytes(address, part.len()) == part
                }
                Place::Hole => part.iter().all(|byte| *byte == 0),
                Place::Compressed => {
                    // Its middle tells the same.
                    self.run(|reader| reader.map(inode, at + mapping.bytes / 2)).unwrap() == mapping
                }
            };
            assert!(is_right, "{context}: {mapping:?}");
            at = end;
        }
        assert_eq!(at, expected.len() as u64, "{context}");
    }

    fn read(&self, inode: &Inode, offset: u64, len: usize) -> Vec<u8> {
        self.run(|reader| {
            let mut bytes = vec![0xaa; len];
            let read = reader.read(inode, offset, &mut bytes)?;
            bytes.truncate(read);
            Ok(bytes)
        })
        .unwrap_or_else(|error| panic!("{:?}: {error}", self.options))
    }
}

/// An entry of a directory as it was told.
struct Told {
    name: Vec<u8>,
    nid: u64,
    kind: Option<FileKind>,
    next: u64,
}
