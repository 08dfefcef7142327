//! What mke2fs and debugfs put into an image is read back.

use crate::image::{self, Disk, KINDS, Scratch, tool};
use crate::model::ROOT;
use crate::mount::Mount;
use ext::{Access, Error, FileSystem, Kind, Written};
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

fn fill(at: &Path) {
    let write = |name: &str, data: &[u8]| std::fs::write(at.join(name), data).expect("a file");
    let noise = |len: usize, salt: usize| (0..len).map(|i| (i * 31 + i / 251 + salt) as u8).collect::<Vec<u8>>();
    write("empty", b"");
    write("small", b"some text\n");
    write("one-block", &noise(1024, 1));
    write("large", &noise(1_700_003, 2));
    std::fs::create_dir_all(at.join("a/b/c")).expect("directories");
    write("a/b/c/deep", &noise(5000, 3));
    std::fs::create_dir(at.join("many")).expect("a directory");
    for i in 0..700 {
        write(&format!("many/file-number-{i}-with-a-name-that-takes-room"), format!("{i}").as_bytes());
    }
    symlink("small", at.join("short-link")).expect("a link");
    symlink("x/".repeat(60), at.join("long-link")).expect("a link");
    std::fs::hard_link(at.join("small"), at.join("a/other-name")).expect("a link");
    let sparse = std::fs::File::create(at.join("sparse")).expect("a file");
    use std::os::unix::fs::FileExt;
    sparse.write_all_at(b"far away", 3_000_000).expect("room");
    sparse.write_all_at(b"near", 100_000).expect("room");
}

/// Compares a directory of this machine with one in the image.
fn compare(mount: &Mount, host: &Path, number: u32) {
    let found: BTreeMap<Vec<u8>, u32> = mount.names(number).expect("a directory").into_iter().collect();
    let mut expected: Vec<Vec<u8>> = std::fs::read_dir(host)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name().as_bytes().to_vec())
        .collect();
    expected.sort();
    let mut names: Vec<Vec<u8>> = found.keys().cloned().collect();
    names.retain(|name| name != b"lost+found");
    assert_eq!(names, expected);
    let dir = mount.inode(number).expect("a directory");
    for name in expected {
        let path = host.join(std::ffi::OsStr::from_bytes(&name));
        let about = std::fs::symlink_metadata(&path).expect("a file");
        let inode = mount.inode(found[&name]).expect("an inode");
        assert_eq!(mount.see(|fs, disk| fs.lookup(disk, &dir, &name)), Ok(found[&name]));
        assert_eq!(u32::from(inode.mode()), about.mode(), "{}", path.display());
        assert_eq!((inode.uid(), inode.gid()), (about.uid(), about.gid()));
        assert_eq!(inode.mtime().seconds, about.mtime());
        if about.is_dir() {
            compare(mount, &path, found[&name]);
            continue;
        }
        assert_eq!((inode.size(), u64::from(inode.links())), (about.size(), about.nlink()), "{}", path.display());
        if about.is_symlink() {
            let target = std::fs::read_link(&path).expect("a link");
            assert_eq!(
                mount.see(|fs, disk| fs.read_link(disk, &inode)).expect("a link"),
                target.as_os_str().as_bytes()
            );
        } else {
            assert!(
                mount.read(found[&name]).expect("a file") == std::fs::read(&path).expect("a file"),
                "{}",
                path.display()
            );
        }
    }
}

#[test]
fn what_mke2fs_put_in_is_read_back_from_all_kinds() {
    let scratch = Scratch::new();
    fill(&scratch.0);
    for (name, options, mib) in KINDS {
        let image = image::make(options, mib, Some(&scratch.0));
        let mount = Mount::new(image.clone()).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        compare(&mount, &scratch.0, ROOT);
        image::check(&mount.unmount(), name);
        // With directories that e2fsck has indexed, and what debugfs can make.
        let file = scratch.0.with_extension("image");
        std::fs::write(&file, image).expect("room for the image");
        let path = file.to_str().expect("a name");
        tool("e2fsck", &["-fyD", path]);
        let mount = Mount::new(std::fs::read(&file).expect("the image")).expect("an image");
        compare(&mount, &scratch.0, ROOT);
        for command in
            ["mknod disk b 8 300", "mknod pipe p", "ea_set small user.greeting hello", "ea_set small trusted.more xyz"]
        {
            tool("debugfs", &["-w", "-R", command, path]);
        }
        let mount = Mount::new(std::fs::read(&file).expect("the image")).expect("an image");
        let root = mount.inode(ROOT).expect("the root");
        let find = |name: &[u8]| {
            mount.inode(mount.see(|fs, disk| fs.lookup(disk, &root, name)).expect("a name")).expect("an inode")
        };
        assert_eq!((find(b"disk").kind(), find(b"disk").device()), (Some(Kind::BlockDevice), Some((8, 300))));
        assert_eq!(find(b"pipe").kind(), Some(Kind::Fifo));
        let small = find(b"small");
        let mut all = mount.see(|fs, disk| fs.attributes(disk, &small)).expect("attributes");
        all.sort_by(|one, other| one.name.cmp(&other.name));
        let all: Vec<(&[u8], &[u8])> = all.iter().map(|one| (&one.name[..], &one.value[..])).collect();
        assert_eq!(all, [(&b"trusted.more"[..], &b"xyz"[..]), (b"user.greeting", b"hello")], "{name}");
        std::fs::remove_file(&file).expect("the image");
    }
}

#[test]
fn holes_and_data_are_found() {
    let scratch = Scratch::new();
    fill(&scratch.0);
    for (_, options, mib) in [KINDS[0], KINDS[6]] {
        let mount = Mount::new(image::make(options, mib, Some(&scratch.0))).expect("an image");
        let root = mount.inode(ROOT).expect("the root");
        let number = mount.see(|fs, disk| fs.lookup(disk, &root, b"sparse")).expect("a name");
        let inode = mount.inode(number).expect("an inode");
        let size = u64::from(mount.fs.block_size());
        let end = inode.size().div_ceil(size) as u32;
        let seek = |mut at: u32, data: bool| loop {
            match mount.see(|fs, disk| fs.seek(disk, &inode, at, end, data)).expect("a place") {
                Ok(found) => return found,
                Err(next) if next >= end => return end,
                Err(next) => at = next,
            }
        };
        let (near, far) = ((100_000 / size) as u32, (3_000_000 / size) as u32);
        assert_eq!(seek(0, false), 0);
        assert_eq!(seek(0, true), near);
        assert_eq!(seek(near, false), near + 1);
        assert_eq!(seek(near + 1, true), far);
        assert_eq!(seek(far, false), end);
        let next = |mut at: u32, end: u32| loop {
            match mount.see(|fs, disk| fs.next_blocks(disk, &inode, at, end)).expect("a place") {
                Ok(found) => return Some((found.at, found.count, found.written)),
                Err(next) if next >= end => return None,
                Err(next) => at = next,
            }
        };
        assert_eq!(next(0, end), Some((near, 1, Written::Yes)));
        assert_eq!(next(near + 1, end), Some((far, 1, Written::Yes)));
        assert_eq!(next(0, near), None);
        // Behind the end there is nothing, and it is soon known.
        assert_eq!(next(far + 1, u32::MAX), None);
    }
}

#[test]
fn features_that_are_not_for_writing_can_be_read_and_others_not() {
    let scratch = Scratch::new();
    fill(&scratch.0);
    for (options, read) in [
        ("-t ext4 -b 4096 -O bigalloc -C 16384", true),
        ("-t ext4 -b 1024 -O mmp", true),
        ("-t ext4 -b 1024 -O quota", true),
        ("-t ext4 -b 1024 -O ea_inode", true),
        ("-t ext4 -b 1024 -O inline_data", true),
        ("-t ext4 -b 1024 -O encrypt", false),
        ("-t ext4 -b 1024 -O casefold", false),
        ("-t ext4 -b 4096 -O verity", true),
    ] {
        let disk = Disk::new(image::make(options, 24, Some(&scratch.0)));
        let write = FileSystem::open(&disk, disk.blocks(), Access::ReadWrite).map(|_| ());
        let open = FileSystem::open(&disk, disk.blocks(), Access::ReadOnly);
        if !read {
            assert!(matches!(write, Err(Error::Unsupported(_))), "{options}: {write:?}");
            assert!(open.is_err());
            continue;
        }
        assert_eq!(write, Err(Error::ReadOnly), "{options}");
        let fs = open.unwrap_or_else(|error| panic!("{options}: {error:?}"));
        let root = fs.inode(&disk, ROOT).expect("the root");
        let large = fs.inode(&disk, fs.lookup(&disk, &root, b"large").expect("a name")).expect("an inode");
        assert_eq!(large.size(), 1_700_003);
        fs.map(&disk, &large, 100).expect("a block");
        let small = fs.inode(&disk, fs.lookup(&disk, &root, b"small").expect("a name")).expect("an inode");
        let mapped = fs.map(&disk, &small, 0);
        if options.ends_with("inline_data") {
            assert_eq!(mapped, Err(Error::Unsupported("inline data")));
        } else {
            mapped.expect("a block");
        }
    }
}

#[test]
fn what_is_no_ext_file_system_is_refused() {
    let zeros = Disk::new(vec![0; 1 << 20]);
    assert_eq!(FileSystem::open(&zeros, 1024, Access::ReadOnly).map(|_| ()), Err(Error::NotFound));
    let whole = image::make("-t ext4 -b 1024", 16, None);
    let cut = Disk::new(whole[..8 << 20].to_vec());
    let opened = FileSystem::open(&cut, cut.blocks(), Access::ReadOnly).map(|_| ());
    assert!(matches!(opened, Err(Error::Corrupt(_))), "{opened:?}");
}
