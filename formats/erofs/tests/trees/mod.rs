//! Directories that are generated from seeds.

#![allow(dead_code, reason = "each test uses a part")]

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, XattrFlags};
use tempfile::TempDir;

/// Random numbers: xorshift64*.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// The owners that files have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ids {
    /// Of 16 bits.
    Small,
    /// Some of more.
    Large,
}

/// Some of everything: contents of many kinds and sizes, deep directories, long names, links, devices, extended attributes.
pub fn mixed(seed: u64, ids: Ids) -> TempDir {
    let tree = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let random = &mut Random::new(seed);
    let root = tree.path();
    contents(root, random);
    deep(root, random);
    links(root);
    specials(root);
    attributes(root, random);
    owners(root, random, ids);
    times(root, random);
    tree
}

/// Many entries in one directory, some with long names.
pub fn wide(seed: u64, entries: usize) -> TempDir {
    let tree = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let random = &mut Random::new(seed);
    let wide = tree.path().join("wide");
    fs::create_dir(&wide).unwrap();
    for entry in 0..entries {
        let filler = "n".repeat(random.below(if entry % 10 == 0 { 230 } else { 20 }) as usize);
        fs::write(wide.join(format!("{:x}-{filler}{entry}", random.below(1 << 20))), format!("{entry}")).unwrap();
    }
    tree
}

/// Like [`mixed`], but with few and short files: an image of less than a megabyte.
pub fn small(seed: u64, ids: Ids) -> TempDir {
    let tree = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let random = &mut Random::new(seed);
    let root = tree.path();
    fs::create_dir(root.join("contents")).unwrap();
    for size in [0, 1, 3000, 4096, 12_345, 70_000] {
        fs::write(root.join(format!("contents/text-{size}")), text(random, size)).unwrap();
        fs::write(root.join(format!("contents/mixed-{size}")), mixture(random, size)).unwrap();
    }
    fs::write(root.join("contents/zeros"), vec![0; 300_000]).unwrap();
    links(root);
    attributes(root, random);
    owners(root, random, ids);
    let many = root.join("many");
    fs::create_dir(&many).unwrap();
    for entry in 0..150 {
        fs::write(many.join(format!("{entry}{}", "x".repeat(random.below(100) as usize))), "").unwrap();
    }
    tree
}

const SIZES: [usize; 13] = [0, 1, 31, 2000, 4095, 4096, 4097, 8192, 12_345, 65_536, 100_001, 400_000, 1_500_007];

fn contents(root: &Path, random: &mut Random) {
    let directory = root.join("contents");
    fs::create_dir(&directory).unwrap();
    for size in SIZES {
        for (kind, bytes) in [
            ("zeros", vec![0; size]),
            ("noise", noise(random, size)),
            ("text", text(random, size)),
            ("mixed", mixture(random, size)),
        ] {
            fs::write(directory.join(format!("{kind}-{size}")), &bytes).unwrap();
            if size > 4097 {
                // Contents that are equal in parts, for deduplication.
                let cut = random.below(size as u64 / 2) as usize;
                fs::write(directory.join(format!("{kind}-{size}-cut")), &bytes[cut..]).unwrap();
            }
        }
    }
    for (name, pieces) in [
        ("holes", [(0, 5000), (70_000, 10), (300_000, 4096)]),
        ("hole-first", [(8192, 100), (1 << 20, 1), (2 << 20, 9)]),
    ] {
        let mut file = File::create(directory.join(name)).unwrap();
        for (start, len) in pieces {
            file.seek(SeekFrom::Start(start)).unwrap();
            file.write_all(&noise(random, len)).unwrap();
        }
        file.set_len((3 << 20) + 5).unwrap();
    }
    // The longest extents there are.
    fs::write(directory.join("zeros-13M"), vec![0; 13 << 20]).unwrap();
    fs::write(directory.join("text-2M"), text(random, 2_000_000)).unwrap();
}

fn noise(random: &mut Random, len: usize) -> Vec<u8> {
    (0..len).map(|_| (random.next() >> 32) as u8).collect()
}

fn text(random: &mut Random, len: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < len {
        write!(
            bytes,
            "line {} of {}, ",
            random.below(300),
            ["this", "that", "something else"][random.below(3) as usize]
        )
        .unwrap();
    }
    bytes.truncate(len);
    bytes
}

fn mixture(random: &mut Random, len: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < len {
        let part = 1 + random.below(30_000) as usize;
        match random.below(4) {
            0 => bytes.extend(noise(random, part)),
            1 => bytes.extend(text(random, part)),
            2 => bytes.extend(vec![random.next() as u8; part]),
            _ => {
                let from = random.below(bytes.len() as u64 + 1) as usize;
                bytes.extend_from_within(from..(from + part).min(bytes.len()));
            }
        }
    }
    bytes.truncate(len);
    bytes
}

fn deep(root: &Path, random: &mut Random) {
    let longest = crate::image::longest_name();
    let mut directory = root.join("deep");
    fs::create_dir(&directory).unwrap();
    for depth in 0..40 {
        for name in ["a", "!", "..x", ".hidden", "\u{fc}mlaut", "with space"] {
            if random.below(3) == 0 {
                let len = random.below(3000) as usize;
                fs::write(directory.join(name), text(random, len)).unwrap();
            }
        }
        if depth % 10 == 0 {
            fs::write(directory.join("L".repeat(longest)), "long").unwrap();
            fs::create_dir(directory.join("empty")).unwrap();
        }
        directory.push(format!("level-{depth}"));
        fs::create_dir(&directory).unwrap();
    }
    let many = root.join("many");
    fs::create_dir(&many).unwrap();
    for entry in 0..400 {
        fs::write(many.join(format!("{entry}{}", "x".repeat(random.below(240) as usize))), "").unwrap();
    }
}

fn links(root: &Path) {
    let directory = root.join("links");
    fs::create_dir(&directory).unwrap();
    for len in [1, 30, 100, 2000, 4000, 4095] {
        symlink("t".repeat(len), directory.join(format!("symlink-{len}"))).unwrap();
    }
    for name in ["one", "two", "three"] {
        fs::hard_link(root.join("contents/text-12345"), directory.join(name)).unwrap();
    }
}

/// Devices only where there is the right to make them.
fn specials(root: &Path) {
    let directory = root.join("specials");
    fs::create_dir(&directory).unwrap();
    let make = |name: &str, kind, device| {
        rustix::fs::mknodat(CWD, directory.join(name), kind, Mode::from_raw_mode(0o640), device)
    };
    make("fifo", FileType::Fifo, 0).unwrap();
    make("socket", FileType::Socket, 0).unwrap();
    if rustix::process::geteuid().is_root() {
        for (index, (major, minor)) in [(1, 3), (8, 1), (511, 0xf_ffff), (259, 300)].into_iter().enumerate() {
            let device = rustix::fs::makedev(major, minor);
            make(&format!("character-{index}"), FileType::CharacterDevice, device).unwrap();
            make(&format!("block-{index}"), FileType::BlockDevice, device).unwrap();
        }
    }
}

/// Those in `trusted.` and `security.` only where there is the right to make them.
fn attributes(root: &Path, random: &mut Random) {
    let directory = root.join("attributes");
    fs::create_dir(&directory).unwrap();
    let set = |path: &Path, name: &str, value: &[u8]| {
        rustix::fs::lsetxattr(path, name, value, XattrFlags::empty()).unwrap();
    };
    for file in 0..40 {
        let path = directory.join(format!("file-{file}"));
        let len = random.below(9000) as usize;
        fs::write(&path, text(random, len)).unwrap();
        set(&path, "user.same", b"the same for all");
        set(&path, "user.own", format!("{file}").as_bytes());
        for index in 0..random.below(8) {
            let len = random.below(if file % 4 == 0 { 300 } else { 40 }) as usize;
            set(&path, &format!("user.{}{index}", "n".repeat(random.below(60) as usize)), &noise(random, len));
        }
        if rustix::process::geteuid().is_root() {
            set(&path, "trusted.overlay.opaque", b"y");
            set(&path, "security.label", format!("system_u:{}", file % 3).as_bytes());
        }
    }
    set(&directory, "user.of-a-directory", b"");
    fs::write(directory.join("large"), "").unwrap();
    set(&directory.join("large"), "user.large", &noise(random, 3000));
    set(&directory.join("large"), &format!("user.{}", "N".repeat(250)), b"long name");
}

fn owners(root: &Path, random: &mut Random, ids: Ids) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let most = if ids == Ids::Large { 1 << 31 } else { 1 << 16 };
    for entry in fs::read_dir(root.join("contents")).unwrap() {
        let path = entry.unwrap().path();
        if random.below(2) == 0 {
            chown(&path, Some(random.below(most) as u32), Some(random.below(most) as u32)).unwrap();
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(random.below(0o10000) as u32)).unwrap();
    }
    lchown(root.join("links/symlink-30"), Some(7), Some(8)).unwrap();
}

fn times(root: &Path, random: &mut Random) {
    for entry in fs::read_dir(root.join("contents")).unwrap() {
        let time = Timespec { tv_sec: random.below(4_000_000_000) as i64, tv_nsec: random.below(1_000_000_000) as i64 };
        let times = Timestamps { last_access: time, last_modification: time };
        rustix::fs::utimensat(CWD, entry.unwrap().path(), &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
    }
}

/// The extended attributes of a file, names and values.
pub fn xattrs(path: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut names = vec![0; 65536];
    let len = rustix::fs::llistxattr(path, &mut names[..]).unwrap();
    let mut all = Vec::new();
    for name in names[..len].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0; 65536];
        let len = rustix::fs::lgetxattr(path, name, &mut value[..]).unwrap();
        value.truncate(len);
        all.push((name.to_vec(), value));
    }
    all
}
