//! [`Request`]: what a client asks.

use alloc::vec::Vec;

use crate::{HEADER_BYTES, VERSION};

/// The tag of [`Request::Version`].
pub const NO_TAG: u16 = 0xffff;
/// No fid: nobody has to prove who he is.
const NO_FID: u32 = u32::MAX;
/// What is asked for by [`Request::Attributes`]: all that stat(2) tells.
const BASIC: u64 = 0x7ff;

/// A time for [`SetAttributes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetTime {
    /// The server's present.
    Now,
    /// That: seconds and nanoseconds since 1970.
    To(u64, u64),
}

/// What is to change of a file; `None` stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetAttributes {
    /// Permissions.
    pub mode: Option<u32>,
    /// The owner.
    pub uid: Option<u32>,
    /// The group.
    pub gid: Option<u32>,
    /// The length.
    pub size: Option<u64>,
    /// When it was read.
    pub accessed: Option<SetTime>,
    /// When it was written.
    pub modified: Option<SetTime>,
}

/// What a client asks.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum Request<'a> {
    /// Begins anew, with messages of so many bytes at most.
    Version { message_bytes: u32 },
    /// Has `fid` stand for the root of what is served, as user `uid` uses it.
    Attach { fid: u32, uid: u32 },
    /// Has `new` stand for what `name` is in `fid`; without a name, for the same file.
    Walk { fid: u32, new: u32, name: Option<&'a [u8]> },
    /// Gives a fid up.
    Clunk { fid: u32 },
    /// What stat(2) tells.
    Attributes { fid: u32 },
    /// Changes some of it.
    SetAttributes { fid: u32, set: SetAttributes },
    /// What statfs(2) tells.
    Space { fid: u32 },
    /// Opens a file, with flags of open(2) of x86-64.
    Open { fid: u32, flags: u32 },
    /// Makes a file in the directory `fid` and opens it: `fid` stands for the file then.
    Create { fid: u32, name: &'a [u8], flags: u32, mode: u32, gid: u32 },
    /// Makes a symbolic link.
    Symlink { directory: u32, name: &'a [u8], target: &'a [u8], gid: u32 },
    /// Makes a FIFO or a socket, as its mode says.
    Node { directory: u32, name: &'a [u8], mode: u32, gid: u32 },
    /// Makes a directory.
    Directory { directory: u32, name: &'a [u8], mode: u32, gid: u32 },
    /// Gives a file one more name.
    Link { directory: u32, fid: u32, name: &'a [u8] },
    /// Takes a name out: that of a directory with `flags` AT_REMOVEDIR.
    Unlink { directory: u32, name: &'a [u8], flags: u32 },
    /// Moves a name.
    Rename { from: u32, name: &'a [u8], to: u32, new_name: &'a [u8] },
    /// Where a symbolic link leads.
    ReadLink { fid: u32 },
    /// Names of an open directory from a position on.
    List { fid: u32, from: u64, count: u32 },
    /// Content of an open file.
    Read { fid: u32, offset: u64, count: u32 },
    /// Writes content, of which the bytes follow behind the message.
    Write { fid: u32, offset: u64, count: u32 },
    /// Keeps what was written; `data_only`: without times.
    Sync { fid: u32, data_only: bool },
}

/// A message that is put together.
struct Fields(Vec<u8>);

impl Fields {
    fn short(mut self, value: u16) -> Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn word(mut self, value: u32) -> Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn long(mut self, value: u64) -> Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// A string; what is behind the longest that there can be is cut off.
    fn text(self, text: &[u8]) -> Self {
        let len = u16::try_from(text.len()).unwrap_or(u16::MAX);
        let mut fields = self.short(len);
        fields.0.extend(text.iter().take(usize::from(len)));
        fields
    }

    fn attributes(self, set: &SetAttributes) -> Self {
        let time = |time: Option<SetTime>, bit: u32, exact: u32| match time {
            None => (0, 0, 0),
            Some(SetTime::Now) => (bit, 0, 0),
            Some(SetTime::To(seconds, nanoseconds)) => (bit | exact, seconds, nanoseconds),
        };
        let bit = |is_set: bool, bit: u32| if is_set { bit } else { 0 };
        let (accessed, modified) = (time(set.accessed, 0x10, 0x80), time(set.modified, 0x20, 0x100));
        let valid = bit(set.mode.is_some(), 1)
            | bit(set.uid.is_some(), 2)
            | bit(set.gid.is_some(), 4)
            | bit(set.size.is_some(), 8)
            | accessed.0
            | modified.0;
        self.word(valid)
            .word(set.mode.unwrap_or(0))
            .word(set.uid.unwrap_or(0))
            .word(set.gid.unwrap_or(0))
            .long(set.size.unwrap_or(0))
            .long(accessed.1)
            .long(accessed.2)
            .long(modified.1)
            .long(modified.2)
    }
}

impl Request<'_> {
    /// The number of its kind; a reply's is one more.
    pub fn kind(&self) -> u8 {
        match self {
            Request::Version { .. } => 100,
            Request::Attach { .. } => 104,
            Request::Walk { .. } => 110,
            Request::Clunk { .. } => 120,
            Request::Attributes { .. } => 24,
            Request::SetAttributes { .. } => 26,
            Request::Space { .. } => 8,
            Request::Open { .. } => 12,
            Request::Create { .. } => 14,
            Request::Symlink { .. } => 16,
            Request::Node { .. } => 18,
            Request::Directory { .. } => 72,
            Request::Link { .. } => 70,
            Request::Unlink { .. } => 76,
            Request::Rename { .. } => 74,
            Request::ReadLink { .. } => 22,
            Request::List { .. } => 40,
            Request::Read { .. } => 116,
            Request::Write { .. } => 118,
            Request::Sync { .. } => 50,
        }
    }

    /// The message, but for data that follow behind it.
    pub fn encode(&self, tag: u16) -> Vec<u8> {
        let mut fields = Fields(Vec::with_capacity(64)).word(0);
        fields.0.push(self.kind());
        let mut message = self.fields(fields.short(tag)).0;
        let behind = if let Request::Write { count, .. } = self { *count } else { 0 };
        let len = u32::try_from(message.len()).unwrap_or(u32::MAX).saturating_add(behind);
        if let Some(place) = message.first_chunk_mut() {
            *place = len.to_le_bytes();
        }
        message
    }

    fn fields(&self, to: Fields) -> Fields {
        debug_assert_eq!(to.0.len(), HEADER_BYTES);
        match *self {
            Request::Version { message_bytes } => to.word(message_bytes).text(VERSION),
            Request::Attach { fid, uid } => to.word(fid).word(NO_FID).text(b"").text(b"").word(uid),
            Request::Walk { fid, new, name: None } => to.word(fid).word(new).short(0),
            Request::Walk { fid, new, name: Some(name) } => to.word(fid).word(new).short(1).text(name),
            Request::Clunk { fid } | Request::Space { fid } | Request::ReadLink { fid } => to.word(fid),
            Request::Attributes { fid } => to.word(fid).long(BASIC),
            Request::SetAttributes { fid, set } => to.word(fid).attributes(&set),
            Request::Open { fid, flags } => to.word(fid).word(flags),
            Request::Create { fid, name, flags, mode, gid } => to.word(fid).text(name).word(flags).word(mode).word(gid),
            Request::Symlink { directory, name, target, gid } => to.word(directory).text(name).text(target).word(gid),
            Request::Node { directory, name, mode, gid } => {
                to.word(directory).text(name).word(mode).word(0).word(0).word(gid)
            }
            Request::Directory { directory, name, mode, gid } => to.word(directory).text(name).word(mode).word(gid),
            Request::Link { directory, fid, name } => to.word(directory).word(fid).text(name),
            Request::Unlink { directory, name, flags } => to.word(directory).text(name).word(flags),
            Request::Rename { from, name, to: directory, new_name } => {
                to.word(from).text(name).word(directory).text(new_name)
            }
            Request::List { fid, from, count } => to.word(fid).long(from).word(count),
            Request::Read { fid, offset, count } | Request::Write { fid, offset, count } => {
                to.word(fid).long(offset).word(count)
            }
            Request::Sync { fid, data_only } => to.word(fid).word(data_only.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_its_length_its_kind_its_tag_and_its_fields() {
        let walk = Request::Walk { fid: 1, new: 2, name: Some(b"etc") }.encode(7);
        assert_eq!(walk, [22, 0, 0, 0, 110, 7, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 3, 0, b'e', b't', b'c']);
        assert_eq!(Request::Version { message_bytes: 8192 }.encode(NO_TAG).len(), 7 + 4 + 2 + 8);
        assert_eq!(Request::Clunk { fid: 3 }.encode(0), [11, 0, 0, 0, 120, 0, 0, 3, 0, 0, 0]);
    }

    #[test]
    fn what_follows_a_write_counts() {
        let write = Request::Write { fid: 1, offset: 4096, count: 1000 }.encode(0);
        assert_eq!((write.len(), &write[..4]), (23, &1023_u32.to_le_bytes()[..]));
    }

    #[test]
    fn only_what_is_to_change_is_said_to() {
        let set = SetAttributes { size: Some(5), modified: Some(SetTime::Now), ..SetAttributes::default() };
        let message = Request::SetAttributes { fid: 9, set }.encode(0);
        assert_eq!(message.len(), 7 + 4 + 4 + 12 + 8 * 5);
        assert_eq!(&message[11..15], &0x28_u32.to_le_bytes());
        let set = SetAttributes { accessed: Some(SetTime::To(1, 2)), mode: Some(0o600), ..SetAttributes::default() };
        assert_eq!(&Request::SetAttributes { fid: 9, set }.encode(0)[11..15], &0x91_u32.to_le_bytes());
    }
}
