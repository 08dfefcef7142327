//! The "newc" cpio format: what kernels unpack their first file system from.
//!
//! Each entry is a header of 110 characters (a magic number and thirteen fields of eight hexadecimal digits), the name
//! with its final zero, and the contents; name and contents are each filled up to a multiple of four bytes. The entry
//! named `TRAILER!!!` ends the archive. Names of one file share an inode number, and the first of them carries the
//! contents. The format is described in the manual page cpio(5).

use super::tree::path_from_bytes;
use super::{Content, Image, Kind, Node};
use std::collections::HashMap;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const MAGIC: &[u8] = b"070701";
/// The same format with a checksum of the contents, which nobody checks.
const MAGIC_WITH_CHECKSUM: &[u8] = b"070702";
const HEADER_BYTES: usize = 110;
const TRAILER: &[u8] = b"TRAILER!!!";

const TYPE_MASK: u32 = 0o170_000;
const TYPE_FIFO: u32 = 0o010_000;
const TYPE_CHAR_DEVICE: u32 = 0o020_000;
const TYPE_DIRECTORY: u32 = 0o040_000;
const TYPE_BLOCK_DEVICE: u32 = 0o060_000;
const TYPE_FILE: u32 = 0o100_000;
const TYPE_SYMLINK: u32 = 0o120_000;

/// Whether these first bytes of a file are a cpio archive's.
pub fn is_cpio(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC) || bytes.starts_with(MAGIC_WITH_CHECKSUM)
}

/// Why an archive could not be written.
#[derive(Debug)]
pub(crate) enum WriteError {
    /// This file's contents could not be read.
    Content(PathBuf, io::Error),
    /// The archive could not be written.
    Archive(io::Error),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Archive(error)
    }
}

/// Writes all of the image; returns the archive's length in bytes.
pub(crate) fn write(image: &Image, out: &mut impl Write) -> Result<u64, WriteError> {
    let mut names: HashMap<&Path, u32> = HashMap::new();
    for (_, node) in image.entries() {
        if let Kind::HardLink(target) = &node.kind {
            *names.entry(target.as_path()).or_insert(1) += 1;
        }
    }
    let mut writer = Writer { out, length: 0 };
    let mut inodes: HashMap<&Path, u32> = HashMap::new();
    let mut next_inode = 1;
    let mut fresh_inode = || {
        next_inode += 1;
        next_inode
    };
    for (path, node) in image.entries() {
        let name = path.as_os_str().as_bytes();
        match &node.kind {
            Kind::File(content) => {
                let links = names.get(path).copied().unwrap_or(1);
                // A link that came before its file has brought the contents already.
                let (inode, bytes) = match inodes.get(path) {
                    Some(&inode) => (inode, Vec::new()),
                    None => (fresh_inode(), read(path, content)?),
                };
                inodes.insert(path, inode);
                writer.entry(name, node, TYPE_FILE, inode, links, &bytes)?;
            }
            Kind::HardLink(target) => {
                let Some(Node { kind: Kind::File(content), .. }) = image.lookup_no_follow(target) else {
                    continue; // A link to nothing: as in a file system, there is no such name.
                };
                let links = names.get(target.as_path()).copied().unwrap_or(2);
                let (inode, bytes) = match inodes.get(target.as_path()) {
                    Some(&inode) => (inode, Vec::new()),
                    None => (fresh_inode(), read(target, content)?),
                };
                inodes.insert(target, inode);
                writer.entry(name, node, TYPE_FILE, inode, links, &bytes)?;
            }
            Kind::Directory => writer.entry(name, node, TYPE_DIRECTORY, fresh_inode(), 2, &[])?,
            Kind::Symlink(text) => {
                writer.entry(name, node, TYPE_SYMLINK, fresh_inode(), 1, text.as_os_str().as_bytes())?;
            }
            Kind::CharDevice(..) => writer.entry(name, node, TYPE_CHAR_DEVICE, fresh_inode(), 1, &[])?,
            Kind::BlockDevice(..) => writer.entry(name, node, TYPE_BLOCK_DEVICE, fresh_inode(), 1, &[])?,
            Kind::Fifo => writer.entry(name, node, TYPE_FIFO, fresh_inode(), 1, &[])?,
        }
    }
    writer.entry(TRAILER, &Node::new(0, Kind::Fifo), 0, 0, 1, &[])?;
    Ok(writer.length)
}

fn read(path: &Path, content: &Content) -> Result<Vec<u8>, WriteError> {
    let bytes = content.read().map_err(|error| match content {
        Content::HostFile(host_path) => WriteError::Content(host_path.clone(), error),
        Content::Bytes(_) => WriteError::Content(path.to_path_buf(), error),
    })?;
    if u32::try_from(bytes.len()).is_err() {
        let error = io::Error::other("4 GiB or longer: such files do not fit a cpio archive");
        return Err(WriteError::Content(path.to_path_buf(), error));
    }
    Ok(bytes)
}

struct Writer<'a, W> {
    out: &'a mut W,
    length: u64,
}

impl<W: Write> Writer<'_, W> {
    fn entry(&mut self, name: &[u8], node: &Node, kind: u32, inode: u32, links: u32, bytes: &[u8]) -> io::Result<()> {
        let (major, minor) = match node.kind {
            Kind::CharDevice(major, minor) | Kind::BlockDevice(major, minor) => (major, minor),
            _ => (0, 0),
        };
        let fields = [
            inode,
            kind | (node.mode & 0o7777),
            node.uid,
            node.gid,
            links,
            node.mtime,
            bytes.len() as u32,
            0,
            0,
            major,
            minor,
            name.len() as u32 + 1,
            0,
        ];
        let mut header = MAGIC.to_vec();
        for field in fields {
            header.extend_from_slice(format!("{field:08X}").as_bytes());
        }
        header.extend_from_slice(name);
        header.push(0);
        self.padded(&header)?;
        self.padded(bytes)
    }

    fn padded(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        let padding = bytes.len().wrapping_neg() % 4;
        self.out.write_all(&[0; 3][..padding])?;
        self.length += (bytes.len() + padding) as u64;
        Ok(())
    }
}

/// Adds all files of an archive (or of several, one behind the other) to an image. An error says what is wrong with the
/// archive and where.
pub fn read_into(image: &mut Image, archive: &[u8]) -> Result<(), String> {
    let mut first_names: HashMap<(u32, u32, u32), PathBuf> = HashMap::new();
    let mut at = 0;
    while let Some(rest) = archive.get(at..).filter(|rest| !rest.is_empty()) {
        if rest[0] == 0 {
            at += 1; // Filling between archives.
            continue;
        }
        let entry = parse(rest).map_err(|why| format!("corrupt cpio archive at byte {at}: {why}"))?;
        at += entry.length;
        if entry.name == TRAILER {
            first_names.clear();
            continue;
        }
        let path = path_from_bytes(entry.name);
        let identity = (entry.field(7), entry.field(8), entry.field(0));
        let kind = match entry.field(1) & TYPE_MASK {
            TYPE_FILE => match first_names.get(&identity).filter(|_| entry.field(4) > 1) {
                // Writers differ in which of several names carries the contents.
                Some(first) if !entry.content.is_empty() => {
                    let first = first.clone();
                    let content = Kind::File(Content::Bytes(entry.content.to_vec()));
                    image.insert(&first, Node { kind: content, ..entry.node() });
                    Kind::HardLink(first)
                }
                Some(first) => Kind::HardLink(first.clone()),
                None => {
                    first_names.insert(identity, path.strip_prefix("/").unwrap_or(&path).to_path_buf());
                    Kind::File(Content::Bytes(entry.content.to_vec()))
                }
            },
            TYPE_DIRECTORY => Kind::Directory,
            TYPE_SYMLINK => Kind::Symlink(path_from_bytes(entry.content)),
            TYPE_CHAR_DEVICE => Kind::CharDevice(entry.field(9), entry.field(10)),
            TYPE_BLOCK_DEVICE => Kind::BlockDevice(entry.field(9), entry.field(10)),
            TYPE_FIFO => Kind::Fifo,
            _ => continue, // Sockets: nobody listens to one in an archive.
        };
        image.insert(&path, Node { kind, ..entry.node() });
    }
    Ok(())
}

struct Entry<'a> {
    fields: [u32; 13],
    name: &'a [u8],
    content: &'a [u8],
    /// From this entry's first byte to the next one's.
    length: usize,
}

impl Entry<'_> {
    fn field(&self, index: usize) -> u32 {
        self.fields[index]
    }

    fn node(&self) -> Node {
        Node {
            mode: self.field(1) & 0o7777,
            uid: self.field(2),
            gid: self.field(3),
            mtime: self.field(5),
            kind: Kind::Fifo,
        }
    }
}

fn parse(bytes: &[u8]) -> Result<Entry<'_>, &'static str> {
    if !is_cpio(bytes) {
        return Err("no entry begins here");
    }
    let header = bytes.get(..HEADER_BYTES).ok_or("the archive ends within a header")?;
    let mut fields = [0; 13];
    for (field, digits) in fields.iter_mut().zip(header[MAGIC.len()..].chunks_exact(8)) {
        let digits = std::str::from_utf8(digits).map_err(|_| "a number is not hexadecimal")?;
        *field = u32::from_str_radix(digits, 16).map_err(|_| "a number is not hexadecimal")?;
    }
    let name_end = HEADER_BYTES + fields[11] as usize;
    let name = bytes.get(HEADER_BYTES..name_end).ok_or("the archive ends within a name")?;
    let [name @ .., 0] = name else { return Err("a name does not end with a zero") };
    let content_start = name_end.next_multiple_of(4);
    let content_end = content_start + fields[6] as usize;
    let content = bytes.get(content_start..content_end).ok_or("the archive ends within a file")?;
    Ok(Entry { fields, name, content, length: content_end.next_multiple_of(4) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(image: &Image) -> Vec<u8> {
        let mut bytes = Vec::new();
        let length = write(image, &mut bytes).unwrap();
        assert_eq!(length, bytes.len() as u64);
        bytes
    }

    fn sample() -> Image {
        let mut image = Image::empty();
        image.add_bytes("/dir/file", 0o640, "contents");
        image.add_symlink("/dir/link", "file");
        image.insert("/also", Node::new(0o640, Kind::HardLink("dir/file".into())));
        image.insert("/null", Node::new(0o666, Kind::CharDevice(1, 3)));
        image.insert("/pipe", Node { uid: 7, gid: 8, mtime: 9, ..Node::new(0o600, Kind::Fifo) });
        image
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        let first = archive(&sample());
        let mut copy = Image::empty();
        read_into(&mut copy, &first).unwrap();
        // Which of two names is called the first may change; the archive has the same files.
        let mut again = Image::empty();
        read_into(&mut again, &archive(&copy)).unwrap();
        let describe = |image: &Image| -> Vec<String> {
            image.entries().map(|(path, node)| format!("{} {:o} {:?}", path.display(), node.mode, node.kind)).collect()
        };
        assert_eq!(describe(&copy), describe(&again));
        assert_eq!(copy.entries().count(), sample().entries().count());
    }

    #[test]
    fn an_archive_cut_anywhere_is_refused_or_shorter_but_never_a_panic() {
        let bytes = archive(&sample());
        for end in 0..bytes.len() {
            let mut image = Image::empty();
            let _ = read_into(&mut image, &bytes[..end]);
        }
    }

    #[test]
    fn an_archive_with_any_byte_changed_is_never_a_panic() {
        let bytes = archive(&sample());
        for position in 0..bytes.len() {
            for value in [0, b'F', 0xff] {
                let mut changed = bytes.clone();
                changed[position] = value;
                let _ = read_into(&mut Image::empty(), &changed);
            }
        }
    }

    #[test]
    fn several_archives_in_a_row_are_one() {
        let mut first = archive(&sample());
        first.extend_from_slice(&[0; 512]);
        let mut other = Image::empty();
        other.add_bytes("/late", 0o644, "x");
        first.extend(archive(&other));
        let mut image = Image::empty();
        read_into(&mut image, &first).unwrap();
        assert!(image.lookup(Path::new("/late")).is_some());
        assert!(image.lookup(Path::new("/dir/file")).is_some());
    }
}
