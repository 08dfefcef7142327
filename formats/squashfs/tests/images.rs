//! Images that mksquashfs makes of generated directories are read back completely and compared with the directories, each operation with nothing at hand at its start.

mod image;
#[path = "../../erofs/tests/trees/mod.rs"]
mod trees;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use squashfs::{BlockIndex, Error, FIRST_POSITION, FileKind, Inode, Place};

use image::{Device, make_image};
use trees::{Ids, Random};

const LAYOUTS: &[&str] = &[
    "-comp gzip",
    "-comp gzip -Xcompression-level 1 -no-fragments",
    "-comp gzip -b 4096 -always-use-fragments",
    "-comp gzip -noI -noD -noF -noX",
    "-comp gzip -noD -noF -no-xattrs",
    "-comp gzip -nopad -no-exports -no-duplicates",
];

const LZ4_LAYOUTS: &[&str] =
    &["-comp lz4", "-comp lz4 -Xhc -b 1M", "-comp lz4 -b 4096", "-comp lz4 -always-use-fragments"];

const XZ_LAYOUTS: &[&str] = &["-comp xz", "-comp xz -b 1M -Xdict-size 100%", "-comp xz -b 8192 -no-fragments"];

const ZSTD_LAYOUTS: &[&str] = &[
    "-comp zstd",
    "-comp zstd -Xcompression-level 1 -b 1M",
    "-comp zstd -Xcompression-level 22 -b 256K",
    "-comp zstd -Xcompression-level 19 -b 4096 -always-use-fragments",
];

#[test]
fn images_in_zlib_are_read_back_as_they_were() {
    compare_layouts(1, LAYOUTS);
}

#[test]
fn images_in_lz4_are_read_back_as_they_were() {
    compare_layouts(2, LZ4_LAYOUTS);
}

#[test]
fn images_in_xz_are_read_back_as_they_were() {
    compare_layouts(3, XZ_LAYOUTS);
}

#[test]
fn images_in_zstandard_are_read_back_as_they_were() {
    compare_layouts(4, ZSTD_LAYOUTS);
}

fn compare_layouts(seed: u64, layouts: &[&str]) {
    let tree = trees::mixed(seed, Ids::Large);
    for options in layouts {
        compare(tree.path(), options);
    }
}

#[test]
fn directories_of_ten_thousand_entries_are_searched_and_listed() {
    let tree = trees::wide(2, 10_000);
    for options in ["-comp gzip", "-comp xz -b 4096"] {
        compare(tree.path(), options);
    }
}

#[test]
fn very_many_owners_are_told_apart() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let tree = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for number in 0..5000_u32 {
        let path = tree.path().join(format!("{number}"));
        fs::write(&path, "").unwrap();
        std::os::unix::fs::chown(&path, Some(100_000 + 7 * number), Some(3)).unwrap();
    }
    compare(tree.path(), "-comp zstd");
}

#[test]
fn large_sparse_files_are_read_everywhere() {
    let tree = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut file = fs::File::create(tree.path().join("sparse")).unwrap();
    let size = (100 << 20) + 77;
    let pieces: Vec<u64> = (0..10).map(|piece| piece * 10_000_000 + 12_345).collect();
    for piece in &pieces {
        file.seek(SeekFrom::Start(*piece)).unwrap();
        file.write_all(format!("piece at {piece}").as_bytes()).unwrap();
    }
    file.set_len(size).unwrap();
    for options in ["-comp gzip -b 4096", "-comp lz4", "-comp zstd -b 4096 -no-fragments"] {
        let device = Device::new(make_image(tree.path(), options));
        let image = device.open().unwrap();
        let inode = device
            .run(&image, |reader| {
                let root = reader.inode(image.root())?;
                reader.inode(reader.lookup(&root, b"sparse")?)
            })
            .unwrap();
        assert_eq!(inode.size, size);
        let mut index = BlockIndex::default();
        // From its end: the index is made at once.
        for piece in pieces.iter().rev() {
            let text = format!("piece at {piece}");
            let mut found = vec![1; text.len() + 10];
            let read = device.run(&image, |reader| reader.read(&inode, &mut index, *piece, &mut found)).unwrap();
            assert_eq!((read, &found[..text.len()]), (found.len(), text.as_bytes()));
            assert!(found[text.len()..].iter().all(|byte| *byte == 0));
            let hole = device.run(&image, |reader| reader.map(&inode, &mut index, piece + 2_000_000)).unwrap();
            assert_eq!(hole.place, Place::Hole);
        }
    }
}

#[test]
fn content_that_is_too_short_is_corrupt() {
    // The size of the one block, or of the fragment, as it stands in the image; and what it is changed to.
    for (len, options) in [(8192_u32, "-b 8192 -no-fragments"), (5000, "-b 8192 -always-use-fragments")] {
        let tree = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        fs::write(tree.path().join("file"), vec![7; len as usize]).unwrap();
        let image = make_image(tree.path(), &format!("-comp gzip -noI -noD -noF -noX {options}"));
        let size = (len | 1 << 24).to_le_bytes();
        let at = image.windows(4).rposition(|bytes| bytes == size).unwrap();
        for (short, is_whole) in [(len, true), (len - 1, false), (0, false)] {
            let mut image = image.clone();
            image[at..at + 4].copy_from_slice(&(short | 1 << 24).to_le_bytes());
            let device = Device::new(image);
            let image = device.open().unwrap();
            let inode = device.run(&image, |reader| {
                let root = reader.inode(image.root())?;
                reader.inode(reader.lookup(&root, b"file")?)
            });
            let mut found = vec![0; len as usize];
            let read = device
                .run(&image, |reader| reader.read(inode.as_ref().unwrap(), &mut BlockIndex::default(), 0, &mut found));
            match is_whole {
                true => assert_eq!(read, Ok(len as usize)),
                false => assert!(matches!(read, Err(Error::Corrupt(_))), "{options}, {short}: {read:?}"),
            }
        }
    }
}

#[test]
fn more_attributes_than_can_be_read_in_one_go_are_too_many() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let tree = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = tree.path().join("file");
    fs::write(&path, "").unwrap();
    let flags = rustix::fs::XattrFlags::empty();
    for number in 0..200 {
        let name = format!("trusted.{number}");
        if rustix::fs::lsetxattr(&path, &name, b"", flags).is_err() {
            // The file system of this directory keeps fewer.
            return;
        }
    }
    let device = Device::new(make_image(tree.path(), "-comp gzip"));
    let image = device.open().unwrap();
    let attributes = device.run(&image, |reader| {
        let root = reader.inode(image.root())?;
        reader.xattrs(&reader.inode(reader.lookup(&root, b"file")?)?)
    });
    assert_eq!(attributes, Err(Error::TooLarge));
}

#[test]
fn what_the_crate_does_not_read_is_refused_when_the_image_is_opened() {
    let tree = trees::wide(8, 10);
    let image = make_image(tree.path(), "-comp gzip");
    let open = |at: usize, byte: u8| {
        let mut image = image.clone();
        image[at] = byte;
        Device::new(image).open().err()
    };
    assert!(matches!(open(0, 0), Some(Error::Corrupt(_))), "the magic number");
    assert!(matches!(open(20, 9), Some(Error::Corrupt(_))), "a kind of compression");
    assert!(matches!(open(22, 13), Some(Error::Corrupt(_))), "the size of blocks");
    assert!(matches!(open(44, 0xff), Some(Error::Corrupt(_))), "longer than the device");
    assert!(matches!(open(28, 3), Some(Error::Unsupported(_))), "version 3");
    for kind in ["lzma", "lzo"] {
        let image = make_image(tree.path(), &format!("-comp {kind}"));
        assert!(matches!(Device::new(image).open(), Err(Error::Unsupported(_))), "{kind}");
    }
}

#[test]
fn a_filter_of_xz_is_refused_where_it_is_used() {
    let tree = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let busybox = ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|path| Path::new(path).exists());
    let busybox = fs::read(busybox.expect("package busybox-static")).unwrap();
    fs::write(tree.path().join("program"), &busybox).unwrap();
    let device = Device::new(make_image(tree.path(), "-comp xz -Xbcj x86"));
    let image = device.open().unwrap();
    let inode = device.run(&image, |reader| {
        let root = reader.inode(image.root())?;
        reader.inode(reader.lookup(&root, b"program")?)
    });
    let inode = inode.unwrap();
    let mut refused = 0;
    for (block, expected) in busybox.chunks(128 << 10).enumerate() {
        let mut found = vec![0; expected.len()];
        let offset = (block as u64) << 17;
        let read = device.run(&image, |reader| reader.read(&inode, &mut BlockIndex::default(), offset, &mut found));
        match read {
            Ok(_) => assert!(found == expected),
            Err(error) => {
                assert!(matches!(error, Error::Unsupported(_)), "{error}");
                refused += 1;
            }
        }
    }
    // mksquashfs takes it where it makes less.
    assert!(refused > 0);
}

#[test]
fn a_device_that_ends_too_early_is_refused_or_tells_an_error() {
    let tree = trees::mixed(3, Ids::Small);
    let image = make_image(tree.path(), "-comp gzip");
    for keep in [0, 50, 95, 96, 2000, 4096, 8192, image.len() / 2] {
        let device = Device::new(image[..keep].to_vec());
        assert!(matches!(device.open(), Err(Error::Corrupt(_))), "{keep} bytes");
    }
    // The same where the device is said to have all bytes.
    for keep in [4096, image.len() / 3, image.len() / 2, image.len() - 9000] {
        let device = Device::new(image[..keep].to_vec()).claiming(image.len() as u64);
        let opened = device.open().expect("the superblock is there");
        let mut failed = 0;
        image::visit(&device, &opened, 10_000, &mut failed);
        assert!(failed > 0);
    }
}

/// Makes an image of a directory and compares all that is in it.
fn compare(tree: &Path, options: &str) {
    let device = Device::new(make_image(tree, options));
    let image = device.open().unwrap_or_else(|error| panic!("{options}: {error}"));
    let mut comparison =
        Comparison { device: &device, image: &image, random: Random::new(7), links: HashMap::new(), options };
    let mut directories = vec![(tree.to_path_buf(), image.root())];
    let mut inodes = 0;
    while let Some((path, number)) = directories.pop() {
        inodes += 1;
        for (child, number) in comparison.directory(&path, number) {
            if fs::symlink_metadata(&child).unwrap().is_dir() {
                directories.push((child, number));
            } else {
                inodes += comparison.file(&child, number);
            }
        }
    }
    assert_eq!(inodes, image.inodes(), "{options}");
}

struct Comparison<'a> {
    device: &'a Device,
    image: &'a squashfs::Image,
    random: Random,
    /// The image's inode of each inode of the directory.
    links: HashMap<u64, u64>,
    options: &'a str,
}

struct Told {
    name: Vec<u8>,
    number: u64,
    kind: FileKind,
    next: u64,
}

impl Comparison<'_> {
    fn run<R>(&self, operation: impl FnMut(squashfs::Reader<'_, Device>) -> Result<R, Error>) -> Result<R, Error> {
        self.device.run(self.image, operation)
    }

    /// Compares a directory; its entries.
    fn directory(&mut self, path: &Path, number: u64) -> Vec<(PathBuf, u64)> {
        let inode = self.run(|reader| reader.inode(number)).unwrap();
        self.attributes(path, &inode);
        let mut expected: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        expected.sort();
        let found = self.list(&inode);
        assert_eq!(
            found.iter().map(|entry| entry.name.as_slice()).collect::<Vec<_>>(),
            expected.iter().map(|name| name.as_bytes()).collect::<Vec<_>>(),
            "{} {path:?}",
            self.options
        );
        let subdirectories = found.iter().filter(|entry| entry.kind == FileKind::Directory).count();
        assert_eq!(inode.nlink as usize, 2 + subdirectories, "{path:?}");
        let lookup = |name: &[u8]| self.run(|reader| reader.lookup(&inode, name));
        for entry in &found {
            assert_eq!(lookup(&entry.name), Ok(entry.number));
            let mut longer = entry.name.clone();
            longer.push(b'!');
            for missing in [&longer[..], &longer[..longer.len() - 2]] {
                if expected.binary_search_by(|name| name.as_bytes().cmp(missing)).is_err() {
                    assert_eq!(lookup(missing), Err(Error::NotFound));
                }
            }
        }
        for missing in [&b""[..], b"\x01", b"\xff\xff"] {
            assert_eq!(lookup(missing), Err(Error::NotFound));
        }
        found.into_iter().map(|entry| (path.join(OsStr::from_bytes(&entry.name)), entry.number)).collect()
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
                        let (name, number, kind) = (entry.name.to_vec(), entry.number, entry.kind);
                        part.push(Told { name, number, kind, next: entry.next });
                        ControlFlow::Continue(())
                    })?;
                    Ok((part, after))
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
                    let mut name = None;
                    reader.list(inode, pair[0].next, |entry| {
                        name = Some(entry.name.to_vec());
                        ControlFlow::Break(())
                    })?;
                    Ok(name)
                })
                .unwrap();
            assert_eq!(first.as_deref(), Some(&pair[1].name[..]));
        }
        told
    }

    /// Compares what is no directory; 1 if its inode was not seen before.
    fn file(&mut self, path: &Path, number: u64) -> u64 {
        let metadata = fs::symlink_metadata(path).unwrap();
        if let Some(before) = self.links.insert(metadata.ino(), number) {
            assert_eq!(before, number, "{path:?}");
            return 0;
        }
        let inode = self.run(|reader| reader.inode(number)).unwrap();
        self.attributes(path, &inode);
        assert_eq!(u64::from(inode.nlink), metadata.nlink(), "{path:?}");
        match inode.kind {
            FileKind::Regular => self.content(path, &inode),
            FileKind::Symlink => {
                let target = self.run(|reader| reader.symlink(&inode)).unwrap();
                assert_eq!(target, fs::read_link(path).unwrap().as_os_str().as_bytes());
            }
            FileKind::BlockDevice | FileKind::CharacterDevice => {
                let device = metadata.rdev();
                assert_eq!(inode.device, (rustix::fs::major(device), rustix::fs::minor(device)), "{path:?}");
            }
            _ => {}
        }
        1
    }

    fn attributes(&self, path: &Path, inode: &Inode) {
        let metadata = fs::symlink_metadata(path).unwrap();
        let kind = metadata.file_type();
        let expected = match () {
            () if kind.is_dir() => FileKind::Directory,
            () if kind.is_file() => FileKind::Regular,
            () if kind.is_symlink() => FileKind::Symlink,
            () if kind.is_block_device() => FileKind::BlockDevice,
            () if kind.is_char_device() => FileKind::CharacterDevice,
            () if kind.is_fifo() => FileKind::Fifo,
            () => FileKind::Socket,
        };
        assert_eq!(inode.kind, expected, "{path:?}");
        assert_eq!(u32::from(inode.permissions), metadata.mode() & 0o7777, "{path:?}");
        assert_eq!((inode.uid, inode.gid), (metadata.uid(), metadata.gid()), "{path:?}");
        assert_eq!(i64::from(inode.mtime), metadata.mtime(), "{path:?}");
        let mut expected = if self.options.contains("-no-xattrs") { Vec::new() } else { trees::xattrs(path) };
        let mut found = self.run(|reader| reader.xattrs(inode)).unwrap();
        expected.sort();
        found.sort();
        assert_eq!(found, expected, "{path:?}");
    }

    /// Compares content, in order and in random parts.
    fn content(&mut self, path: &Path, inode: &Inode) {
        let expected = fs::read(path).unwrap();
        assert_eq!(inode.size, expected.len() as u64, "{path:?}");
        let mut index = BlockIndex::default();
        // No more than the cache holds: each operation begins anew where something is missing.
        let mut found = vec![1; 60_000];
        let mut read = 0;
        loop {
            let len = self.run(|reader| reader.read(inode, &mut index, read as u64, &mut found)).unwrap();
            assert!(found[..len] == expected[read..read + len], "{} {path:?} from {read}", self.options);
            read += len;
            if len < found.len() {
                break;
            }
        }
        assert_eq!(read, expected.len());
        let mut index = BlockIndex::default();
        for _ in 0..5 {
            let offset = self.random.below(inode.size + 1);
            let mut part = vec![1; self.random.below(20_000) as usize];
            let read = self.run(|reader| reader.read(inode, &mut index, offset, &mut part)).unwrap();
            let end = (offset as usize + part.len()).min(expected.len());
            assert!(part[..read] == expected[offset as usize..end], "{} {path:?} from {offset}", self.options);
        }
    }
}
