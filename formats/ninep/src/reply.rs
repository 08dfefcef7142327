//! [`Reply`]: what a server answers.

use crate::{DATA_AT, HEADER_BYTES, LONGEST_TARGET, VERSION};

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The server says no: a number of Linux's errors.
    Refused(u32),
    /// What it says is no reply to the request: how.
    Broken(&'static str),
}

/// A result.
type Result<T> = core::result::Result<T, Error>;

/// The kind of a reply that is an error.
const ERROR: u8 = 7;

/// The server's name of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Qid {
    /// Whether it is a directory, a symbolic link ...
    pub kind: u8,
    /// Changes with the file.
    pub version: u32,
    /// Its number.
    pub path: u64,
}

/// A point of time since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time {
    /// Seconds.
    pub seconds: i64,
    /// And nanoseconds, below 1,000,000,000.
    pub nanoseconds: u32,
}

/// What stat(2) tells of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Attributes {
    pub qid: Qid,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub links: u64,
    /// As makedev(3) encodes it.
    pub device: u64,
    pub size: u64,
    /// Of 512 bytes.
    pub blocks: u64,
    pub accessed: Time,
    pub modified: Time,
    pub changed: Time,
}

/// What statfs(2) tells of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Space {
    pub block_bytes: u32,
    pub blocks: u64,
    pub free_blocks: u64,
    pub available_blocks: u64,
    pub files: u64,
    pub free_files: u64,
}

/// The fields of a reply that are not looked at yet.
#[derive(Clone, Copy, Debug)]
pub struct Reply<'a>(&'a [u8]);

const SHORT: Error = Error::Broken("a reply is too short");

impl<'a> Reply<'a> {
    /// The length of a message, its kind and its tag; `None` if not even those are there.
    pub fn header(bytes: &[u8]) -> Option<(u32, u8, u16)> {
        let (len, rest) = bytes.split_first_chunk()?;
        let (&[kind], rest) = rest.split_first_chunk()?;
        let (tag, _) = rest.split_first_chunk()?;
        Some((u32::from_le_bytes(*len), kind, u16::from_le_bytes(*tag)))
    }

    /// The reply to a request of this kind.
    ///
    /// # Errors
    /// The server's; `Broken` if it is none.
    pub fn to(request_kind: u8, bytes: &'a [u8]) -> Result<Self> {
        let (_, kind, _) = Self::header(bytes).ok_or(SHORT)?;
        let mut reply = Reply(bytes.get(HEADER_BYTES..).ok_or(SHORT)?);
        if kind == ERROR {
            return Err(Error::Refused(reply.word()?));
        }
        if Some(kind) == request_kind.checked_add(1) {
            Ok(reply)
        } else {
            Err(Error::Broken("a reply to another request"))
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk().ok_or(SHORT)?;
        self.0 = rest;
        Ok(*array)
    }

    /// A word of 4 bytes.
    ///
    /// # Errors
    /// `Broken`: there is none.
    pub fn word(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// To a question that brings data: how many bytes of them are behind these, [`DATA_AT`](crate::DATA_AT) bytes of the reply.
    ///
    /// # Errors
    /// The server's; `Broken` if the message is not as long as that, or there are more than the `most` that were asked for.
    pub fn data_len(request_kind: u8, bytes: &[u8], most: usize) -> Result<usize> {
        let count = Reply::to(request_kind, bytes)?.word()? as usize;
        let (len, ..) = Self::header(bytes).ok_or(SHORT)?;
        if count > most {
            return Err(Error::Broken("more data than were asked for"));
        }
        if (len as usize).checked_sub(DATA_AT) != Some(count) {
            return Err(Error::Broken("a reply that is not as long as its data"));
        }
        Ok(count)
    }

    fn short(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn long(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn byte(&mut self) -> Result<u8> {
        self.array().map(|[byte]| byte)
    }

    pub(crate) fn text(&mut self) -> Result<&'a [u8]> {
        let len = usize::from(self.short()?);
        let (text, rest) = self.0.split_at_checked(len).ok_or(SHORT)?;
        self.0 = rest;
        Ok(text)
    }

    pub(crate) fn of(bytes: &'a [u8]) -> Self {
        Reply(bytes)
    }

    pub(crate) fn left(&self) -> &'a [u8] {
        self.0
    }

    /// To a version: the most bytes of a message.
    ///
    /// # Errors
    /// `Broken`: the server speaks another version.
    pub fn version(mut self) -> Result<u32> {
        let bytes = self.word()?;
        if self.text()? == VERSION { Ok(bytes) } else { Err(Error::Broken("it speaks another version")) }
    }

    /// The qid with which replies to many requests begin.
    ///
    /// # Errors
    /// `Broken`.
    pub fn qid(&mut self) -> Result<Qid> {
        Ok(Qid { kind: self.byte()?, version: self.word()?, path: self.long()? })
    }

    /// To a walk of one name, or none: whether all of it was gone.
    ///
    /// # Errors
    /// `Broken`.
    pub fn walked(mut self) -> Result<Option<Qid>> {
        match self.short()? {
            0 => Ok(None),
            1 => self.qid().map(Some),
            _ => Err(Error::Broken("a walk of more names than were asked for")),
        }
    }

    fn time(&mut self) -> Result<Time> {
        let (seconds, nanoseconds) = (self.long()?, self.long()?);
        // What cannot be is some time.
        Ok(Time { seconds: seconds as i64, nanoseconds: (nanoseconds % 1_000_000_000) as u32 })
    }

    /// To a question for attributes.
    ///
    /// # Errors
    /// `Broken`.
    pub fn attributes(mut self) -> Result<Attributes> {
        let _valid = self.long()?;
        let qid = self.qid()?;
        let (mode, uid, gid) = (self.word()?, self.word()?, self.word()?);
        let (links, device, size) = (self.long()?, self.long()?, self.long()?);
        let _block_bytes = self.long()?;
        let blocks = self.long()?;
        let (accessed, modified, changed) = (self.time()?, self.time()?, self.time()?);
        if size > i64::MAX as u64 {
            return Err(Error::Broken("a file of more bytes than can be"));
        }
        Ok(Attributes { qid, mode, uid, gid, links, device, size, blocks, accessed, modified, changed })
    }

    /// To a question for space.
    ///
    /// # Errors
    /// `Broken`.
    pub fn space(mut self) -> Result<Space> {
        let _kind = self.word()?;
        Ok(Space {
            block_bytes: self.word()?,
            blocks: self.long()?,
            free_blocks: self.long()?,
            available_blocks: self.long()?,
            files: self.long()?,
            free_files: self.long()?,
        })
    }

    /// To a question where a symbolic link leads.
    ///
    /// # Errors
    /// `Broken`.
    pub fn target(mut self) -> Result<&'a [u8]> {
        let target = self.text()?;
        let is_path = (1..=LONGEST_TARGET).contains(&target.len()) && !target.contains(&0);
        if is_path { Ok(target) } else { Err(Error::Broken("a symbolic link that leads to no path")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn message(kind: u8, fields: &[&[u8]]) -> Vec<u8> {
        let fields = fields.concat();
        let len = (fields.len() + HEADER_BYTES) as u32;
        [&len.to_le_bytes()[..], &[kind, 1, 0], &fields].concat()
    }

    fn attributes() -> Vec<u8> {
        let words: Vec<u8> = [0o100644_u32, 1000, 1001].iter().flat_map(|word| word.to_le_bytes()).collect();
        let longs: Vec<u8> = (1..=15_u64).flat_map(u64::to_le_bytes).collect();
        message(25, &[&0x7ff_u64.to_le_bytes(), &[0], &7_u32.to_le_bytes(), &8_u64.to_le_bytes(), &words, &longs])
    }

    #[test]
    fn attributes_are_where_they_belong() {
        let bytes = attributes();
        let found = Reply::to(24, &bytes).unwrap().attributes().unwrap();
        assert_eq!(found.qid, Qid { kind: 0, version: 7, path: 8 });
        assert_eq!((found.mode, found.uid, found.gid), (0o100644, 1000, 1001));
        assert_eq!((found.links, found.device, found.size, found.blocks), (1, 2, 3, 5));
        assert_eq!(found.modified, Time { seconds: 8, nanoseconds: 9 });
    }

    #[test]
    fn what_is_cut_off_anywhere_is_broken() {
        let whole = attributes();
        // What follows the three times is not looked at.
        for len in 0..whole.len() - 32 {
            let outcome = Reply::to(24, &whole[..len]).and_then(Reply::attributes);
            assert!(matches!(outcome, Err(Error::Broken(_))), "{len}: {outcome:?}");
        }
    }

    #[test]
    fn refusals_and_replies_to_other_requests_are_told() {
        let refused = message(7, &[&2_u32.to_le_bytes()]);
        assert_eq!(Reply::to(24, &refused).map(|_| ()), Err(Error::Refused(2)));
        assert!(matches!(Reply::to(24, &message(9, &[])), Err(Error::Broken(_))));
        assert!(matches!(Reply::to(24, &message(7, &[])), Err(Error::Broken(_))));
    }

    #[test]
    fn versions_and_targets_are_checked() {
        let version = |text: &[u8]| {
            let bytes = message(101, &[&8192_u32.to_le_bytes(), &(text.len() as u16).to_le_bytes(), text]);
            Reply::to(100, &bytes).and_then(Reply::version)
        };
        assert_eq!(version(VERSION), Ok(8192));
        assert!(version(b"unknown").is_err());
        let target = |text: &[u8]| {
            let bytes = message(23, &[&(text.len() as u16).to_le_bytes(), text]);
            Reply::to(22, &bytes).and_then(|reply| reply.target().map(<[u8]>::to_vec))
        };
        assert_eq!(target(b"../a"), Ok(b"../a".to_vec()));
        assert!(target(b"").is_err() && target(b"a\0b").is_err() && target(&[b'a'; 5000]).is_err());
    }

    #[test]
    fn data_are_as_many_as_the_message_is_long() {
        let reply = |count: u32, len: u32| {
            let mut bytes = message(117, &[&count.to_le_bytes()]);
            bytes[..4].copy_from_slice(&len.to_le_bytes());
            Reply::data_len(116, &bytes, 4096)
        };
        assert_eq!((reply(0, 11), reply(4096, 4107)), (Ok(0), Ok(4096)));
        for (count, len) in [(4097, 4108), (4096, 11), (1, 11), (0, 12), (u32::MAX, 10), (0, 0), (10, 10)] {
            assert!(matches!(reply(count, len), Err(Error::Broken(_))), "{count} {len}");
        }
        assert_eq!(Reply::data_len(116, &message(7, &[&5_u32.to_le_bytes()]), 4096), Err(Error::Refused(5)));
    }

    #[test]
    fn any_bytes_are_read_without_harm() {
        let mut state = 1_u64;
        for _ in 0..100_000 {
            let mut bytes = [0_u8; 48];
            for byte in &mut bytes {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                *byte = (state >> 56) as u8;
            }
            let len = (state >> 32) as usize % 48;
            for kind in [8_u8, 22, 24, 100, 110, 255] {
                bytes[4] = kind.wrapping_add(1);
                if let Ok(mut reply) = Reply::to(kind, &bytes[..len]) {
                    let _ = (reply.space(), reply.target(), reply.attributes(), reply.version(), reply.walked());
                    let _ = reply.qid();
                }
            }
        }
    }
}
