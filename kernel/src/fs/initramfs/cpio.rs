//! The "new ASCII" cpio format: a header of thirteen 8-digit hexadecimal fields, the name, the data, each padded to 4 bytes; an entry
//! named `TRAILER!!!` ends an archive, and another may follow behind zeros. See cpio(5) and the kernel's "initramfs buffer format".
//!
//! The archive is input from outside: every length is checked before it is used, and what does not fit ends the iteration with an
//! error that names the place.

use core::fmt;

use super::Source;
use crate::fs::{DeviceNumber, FileKind};

/// What is wrong with an archive, and at which byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// What.
    pub what: &'static str,
    /// Where the entry begins.
    pub offset: usize,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.what, self.offset)
    }
}

/// One file of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its path, without the terminating zero. As it stands there: with a leading `/` or `./`, perhaps.
    pub name: &'a [u8],
    /// What it has beside its content.
    pub attributes: Attributes,
    /// How many names it has.
    pub links: u32,
    /// Entries with the same identity (of one archive) are names of one file.
    pub identity: (u32, u32, u32),
    /// Which device, for a device node.
    pub device: DeviceNumber,
    /// The target of a symbolic link.
    pub target: &'a [u8],
    /// What the bytes of the content add up to, if the archive says.
    pub sum: Option<u32>,
}

/// What a file of an archive has beside its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Kind and permissions.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Last change, in seconds since 1970.
    pub modified: u32,
}

/// What an archive consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A file.
    File(Entry<'a>),
    /// The end of an archive: identities begin anew behind it.
    End,
}

const HEADER: usize = 110;
const PATH_MAX: usize = 4096;

/// An item, and how many bytes belong to it of the source that it was found in.
#[derive(Clone, Copy, Debug)]
pub struct Parsed<'a> {
    /// What it is.
    pub item: Item<'a>,
    /// Those before its content.
    pub header: usize,
    /// Its content.
    pub content: usize,
    /// What is behind that until the next item. (Where an archive ends early they may be missing.)
    pub padding: usize,
}

/// Finds the items of one or several archives, one behind the other.
#[derive(Default)]
pub struct Parser {
    /// Where the item begins that was found last, and where it ends, for messages.
    start: usize,
    position: usize,
    in_archive: bool,
}

impl Parser {
    /// The next item, of which the caller passes all bytes. `None` at the end of the source, or where a compressed archive follows.
    ///
    /// # Errors
    /// What is wrong. Nothing behind it can be trusted.
    pub fn next<'a>(&mut self, source: &'a mut impl Source) -> Result<Option<Parsed<'a>>, Malformed> {
        if !self.in_archive {
            self.pass_padding(source);
            let start = source.fill(2);
            if start.is_empty() || start.starts_with(&[0x1f, 0x8b]) {
                return Ok(None);
            }
        }
        self.start = self.position;
        let malformed = self.malformed();
        let header = source.fill(HEADER).get(..HEADER).ok_or(malformed("an archive ends within a header"))?;
        let has_sum = match header.get(..6) {
            Some(b"070701") => false,
            Some(b"070702") => true,
            _ => return Err(malformed("no cpio header")),
        };
        let mut fields = [0u32; 13];
        for (index, field) in fields.iter_mut().enumerate() {
            let digits = header.get(6 + index * 8..14 + index * 8).unwrap_or_default();
            *field = hexadecimal(digits).ok_or(malformed("a header field is no number"))?;
        }
        let [inode, mode, uid, gid, links, modified, size, major, minor, device_major, device_minor, name_len, sum] =
            fields;
        let (name_len, size) = (name_len as usize, size as usize);
        if name_len == 0 || name_len > PATH_MAX {
            return Err(malformed("a name has an impossible length"));
        }
        let name_end = HEADER + name_len;
        let content_at = name_end.next_multiple_of(4);
        let is_link = FileKind::of_mode(mode) == Some(FileKind::Symlink);
        if is_link && size > PATH_MAX {
            return Err(malformed("a link has an impossible length"));
        }
        let target_len = if is_link { size } else { 0 };
        let bytes = source.fill(content_at + target_len);
        let name = bytes.get(HEADER..name_end).ok_or(malformed("an archive ends within a name"))?;
        let Some((0, name)) = name.split_last() else {
            return Err(malformed("a name has no end"));
        };
        if name.contains(&0) {
            return Err(malformed("a name has a zero byte"));
        }
        let is_trailer = name == b"TRAILER!!!";
        // The padding behind the last name of all may be missing.
        let target = match bytes.get(content_at..content_at + target_len) {
            Some(target) => target,
            None if target_len == 0 && is_trailer => &[],
            None => return Err(malformed("an archive ends within a file")),
        };
        let padding = size.next_multiple_of(4) - size;
        self.position = self.position.saturating_add(content_at).saturating_add(size + padding);
        self.in_archive = !is_trailer;
        let item = if is_trailer {
            Item::End
        } else {
            Item::File(Entry {
                name,
                attributes: Attributes { mode, uid, gid, modified },
                links,
                identity: (inode, major, minor),
                device: DeviceNumber { major: device_major & 0xfff, minor: device_minor & 0xf_ffff },
                target,
                sum: has_sum.then_some(sum),
            })
        };
        Ok(Some(Parsed { item, header: content_at, content: size, padding }))
    }

    /// Says what is wrong with the item that was found last.
    pub fn malformed(&self) -> impl Fn(&'static str) -> Malformed + use<> {
        let offset = self.start;
        move |what| Malformed { what, offset }
    }

    /// Passes the zeros between archives.
    fn pass_padding(&mut self, source: &mut impl Source) {
        loop {
            let bytes = source.fill(1);
            let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
            let is_all = zeros == bytes.len();
            source.advance(zeros);
            self.position = self.position.saturating_add(zeros);
            if zeros == 0 || !is_all {
                return;
            }
        }
    }
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0u32, |number, &digit| Some(number << 4 | (digit as char).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use alloc::vec::Vec;
    use std::format;

    struct File {
        name: Vec<u8>,
        attributes: Attributes,
        device: DeviceNumber,
        data: Vec<u8>,
    }

    /// All files up to the first error.
    fn files(mut bytes: &[u8]) -> (Vec<File>, Result<(), Malformed>) {
        let mut files = Vec::new();
        let mut parser = Parser::default();
        loop {
            let found = match parser.next(&mut bytes) {
                Ok(Some(found)) => found,
                Ok(None) => return (files, Ok(())),
                Err(malformed) => return (files, Err(malformed)),
            };
            let (header, content, padding) = (found.header, found.content, found.padding);
            let file = match found.item {
                Item::File(entry) => Some((entry.name.to_vec(), entry.attributes, entry.device)),
                Item::End => None,
            };
            bytes.advance(header);
            let Some(data) = bytes.get(..content).map(<[u8]>::to_vec) else {
                return (files, Err(parser.malformed()("an archive ends within a file")));
            };
            files.extend(file.map(|(name, attributes, device)| File { name, attributes, device, data }));
            bytes.advance(content + padding);
        }
    }

    fn entry(name: &str, mode: u32, data: &[u8]) -> Vec<u8> {
        let mut bytes = format!(
            "070701{:08x}{mode:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{name}\0",
            7,
            1,
            2,
            1,
            1000,
            data.len(),
            0,
            3,
            5,
            1,
            name.len() + 1,
            0
        )
        .into_bytes();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend_from_slice(data);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn archive() -> Vec<u8> {
        let mut bytes = entry("bin", 0o40755, b"");
        bytes.extend(entry("bin/sh", 0o100755, b"#!"));
        bytes.extend(entry("a name", 0o100644, b"12345"));
        bytes.extend(entry("TRAILER!!!", 0, b""));
        bytes
    }

    #[test]
    fn files_come_with_their_names_and_content() {
        let bytes = archive();
        let (files, outcome) = files(&bytes);
        assert_eq!((files.len(), outcome), (3, Ok(())));
        let File { name, attributes, device, data } = &files[1];
        assert_eq!((&name[..], &data[..], attributes.mode, attributes.uid), (&b"bin/sh"[..], &b"#!"[..], 0o100755, 1));
        assert_eq!(*device, DeviceNumber { major: 5, minor: 1 });
    }

    #[test]
    fn archives_may_follow_one_another_behind_zeros() {
        let mut bytes = archive();
        bytes.extend([0; 512]);
        bytes.extend(archive());
        assert_eq!(files(&bytes).0.len(), 6);
    }

    #[test]
    fn an_archive_that_is_cut_off_is_an_error() {
        let bytes = archive();
        for len in 1..bytes.len() - 130 {
            assert!(files(&bytes[..len]).1.is_err(), "cut at {len}");
        }
    }

    #[test]
    fn no_mutation_makes_it_panic_or_run_for_ever() {
        let original = archive();
        let mut seed = 0x2545_f491_4f6c_dd1du64;
        let mut random = move || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed as usize
        };
        for _ in 0..20_000 {
            let mut bytes = original.clone();
            for _ in 0..1 + random() % 8 {
                let at = random() % bytes.len();
                bytes[at] = match random() % 3 {
                    0 => random() as u8,
                    1 => b'f',
                    _ => b'0',
                };
            }
            bytes.truncate(random() % (bytes.len() + 1));
            assert!(files(&bytes).0.len() <= bytes.len() / HEADER + 1);
        }
    }
}
