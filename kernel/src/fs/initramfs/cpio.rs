//! The "new ASCII" cpio format: a header of thirteen 8-digit hexadecimal fields, the name, the data, each padded to 4 bytes; an entry
//! named `TRAILER!!!` ends an archive, and another may follow behind zeros. See cpio(5) and the kernel's "initramfs buffer format".
//!
//! The archive is input from outside: every length is checked before it is used, and what does not fit ends the iteration with an
//! error that names the place.

use core::fmt;

use crate::fs::DeviceNumber;

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
    /// The content; the target of a symbolic link.
    pub data: &'a [u8],
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

/// An item, and where it is in the bytes that it was found in.
#[derive(Clone, Copy, Debug)]
pub struct Parsed<'a> {
    /// What it is.
    pub item: Item<'a>,
    /// Where a file's content begins.
    pub data_at: usize,
    /// Where the item ends, with its padding. (Behind the end of the bytes, where they end early.)
    pub end: usize,
}

/// Finds the items of one or several archives, one behind the other.
#[derive(Default)]
pub struct Parser {
    /// How far it has come, for messages.
    position: usize,
    in_archive: bool,
}

impl Parser {
    /// The next item, of what is behind those that were found before. `None` at the end of the bytes, or where a compressed archive
    /// follows.
    ///
    /// # Errors
    /// What is wrong. Nothing behind it can be trusted.
    pub fn next<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<Parsed<'a>>, Malformed> {
        let mut start = 0;
        if !self.in_archive {
            // Padding between archives.
            start = bytes.iter().position(|&byte| byte != 0).unwrap_or(bytes.len());
        }
        let offset = self.position + start;
        let malformed = |what| Malformed { what, offset };
        let rest = bytes.get(start..).unwrap_or_default();
        if rest.is_empty() && !self.in_archive {
            return Ok(None);
        }
        if !self.in_archive && rest.starts_with(&[0x1f, 0x8b]) {
            return Ok(None);
        }
        let header = rest.get(..HEADER).ok_or(malformed("an archive ends within a header"))?;
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
        let name_len = name_len as usize;
        if name_len == 0 || name_len > PATH_MAX {
            return Err(malformed("a name has an impossible length"));
        }
        let name_end = HEADER + name_len;
        let name = rest.get(HEADER..name_end).ok_or(malformed("an archive ends within a name"))?;
        let Some((0, name)) = name.split_last() else {
            return Err(malformed("a name has no end"));
        };
        if name.contains(&0) {
            return Err(malformed("a name has a zero byte"));
        }
        let data_start = name_end.next_multiple_of(4);
        let data_end = data_start.checked_add(size as usize).ok_or(malformed("a file has an impossible length"))?;
        let is_trailer = name == b"TRAILER!!!";
        let data = match rest.get(data_start..data_end) {
            Some(data) => data,
            // The padding behind the last name of all may be missing.
            None if is_trailer && size == 0 => &[],
            None => return Err(malformed("an archive ends within a file")),
        };
        let end = start + data_end.next_multiple_of(4);
        self.position = self.position.saturating_add(end);
        let found = |item| Ok(Some(Parsed { item, data_at: start + data_start, end }));
        if is_trailer {
            self.in_archive = false;
            return found(Item::End);
        }
        if has_sum && data.iter().fold(0u32, |sum, &byte| sum.wrapping_add(byte.into())) != sum {
            return Err(malformed("a file does not have its checksum"));
        }
        self.in_archive = true;
        found(Item::File(Entry {
            name,
            attributes: Attributes { mode, uid, gid, modified },
            links,
            identity: (inode, major, minor),
            device: DeviceNumber { major: device_major & 0xfff, minor: device_minor & 0xf_ffff },
            data,
        }))
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

    /// All items, up to the first error.
    struct Items<'a>(&'a [u8], Parser);

    impl<'a> Items<'a> {
        fn new(bytes: &'a [u8]) -> Self {
            Items(bytes, Parser::default())
        }
    }

    impl<'a> Iterator for Items<'a> {
        type Item = Result<Item<'a>, Malformed>;

        fn next(&mut self) -> Option<Self::Item> {
            let next = self.1.next(self.0).transpose()?;
            let end = next.map_or(self.0.len(), |parsed| parsed.end);
            self.0 = self.0.get(end..).unwrap_or_default();
            if next.is_err() {
                self.1 = Parser::default();
            }
            Some(next.map(|parsed| parsed.item))
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
        let items: Vec<_> = Items::new(&bytes).map(Result::unwrap).collect();
        assert_eq!(items.len(), 4);
        let Item::File(shell) = items[1] else { panic!() };
        assert_eq!(
            (shell.name, shell.data, shell.attributes.mode, shell.attributes.uid),
            (&b"bin/sh"[..], &b"#!"[..], 0o100755, 1)
        );
        assert_eq!(shell.device, DeviceNumber { major: 5, minor: 1 });
        assert_eq!(items[3], Item::End);
    }

    #[test]
    fn archives_may_follow_one_another_behind_zeros() {
        let mut bytes = archive();
        bytes.extend([0; 512]);
        bytes.extend(archive());
        assert_eq!(Items::new(&bytes).filter(|item| matches!(item, Ok(Item::File(_)))).count(), 6);
    }

    #[test]
    fn an_archive_that_is_cut_off_is_an_error_and_the_end() {
        let bytes = archive();
        for len in 1..bytes.len() - 130 {
            let items: Vec<_> = Items::new(&bytes[..len]).collect();
            assert!(items.last().unwrap().is_err(), "cut at {len}");
            assert!(items.iter().filter(|item| item.is_err()).count() == 1);
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
            assert!(Items::new(&bytes).count() <= bytes.len() / HEADER + 1);
        }
    }
}
