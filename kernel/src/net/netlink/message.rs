//! Messages of netlink(7): a header, a struct that the kind says, and attributes.

use alloc::vec::Vec;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::error::Errno;
pub use crate::net::refusal::{Refusal, refused};

/// `struct nlmsghdr`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Header {
    /// Bytes, with those of the header.
    pub len: u32,
    /// What it is.
    pub kind: u16,
    /// `NLM_F_*`.
    pub flags: u16,
    /// The asker's number for it.
    pub sequence: u32,
    /// Whose it is.
    pub port: u32,
}

/// The size of a header.
pub const HEADER_BYTES: usize = size_of::<Header>();

/// Flags of messages.
pub const NLM_F_REQUEST: u16 = 1;
/// It is one of several.
pub const NLM_F_MULTI: u16 = 2;
/// An answer is wanted if all went well, too.
pub const NLM_F_ACK: u16 = 4;
/// All that there is of a kind is asked for.
pub const NLM_F_DUMP: u16 = 0x300;
/// Of changes: what is there is replaced; it must not be there; it is made if it is not.
pub const NLM_F_REPLACE: u16 = 0x100;
/// Likewise.
pub const NLM_F_EXCL: u16 = 0x200;
/// Likewise.
pub const NLM_F_CREATE: u16 = 0x400;
/// Of errors: the request was cut off; attributes are behind it.
const NLM_F_CAPPED: u16 = 0x100;
const NLM_F_ACK_TLVS: u16 = 0x200;

/// Kinds that all protocols have.
pub const NLMSG_ERROR: u16 = 2;
/// The end of a dump.
pub const NLMSG_DONE: u16 = 3;
/// The first kind that a protocol has for itself.
pub const FIRST_KIND: u16 = 16;

const NLMSGERR_ATTR_MSG: u16 = 1;
/// What a kind of attribute says beside its number: it holds others, its bytes are in network order.
const NLA_FLAGS: u16 = 0xc000;

/// A request, in whole.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// Its header.
    pub header: Header,
    /// What is behind that.
    pub body: &'a [u8],
    /// Who asks.
    pub asker: Asker,
}

/// Who asks.
#[derive(Clone, Copy, Default)]
pub struct Asker {
    /// Its port.
    pub port: u32,
    /// Its dumps are to be checked and filtered strictly (NETLINK_GET_STRICT_CHK).
    pub is_strict: bool,
    /// It has CAP_NET_ADMIN, and so had whoever opened the socket: what a program with more rights writes to a descriptor that it was given is not its own request.
    pub is_administrator: bool,
}

impl Request<'_> {
    /// Whether all that there is of a kind is asked for.
    pub fn is_dump(&self) -> bool {
        self.header.flags & NLM_F_DUMP == NLM_F_DUMP
    }

    /// The struct at the beginning of its body; what is missing of it is zero.
    pub fn head<const N: usize>(&self) -> [u8; N] {
        let mut head = [0; N];
        let len = self.body.len().min(N);
        head[..len].copy_from_slice(&self.body[..len]);
        head
    }

    /// The attributes behind the first `len` bytes of its body.
    pub fn attributes(&self, len: usize) -> Attributes<'_> {
        Attributes(self.body.get(len.next_multiple_of(4)..).unwrap_or_default())
    }
}

/// Attributes, one behind the other: what is cut short ends them.
#[derive(Clone)]
pub struct Attributes<'a>(&'a [u8]);

impl<'a> Attributes<'a> {
    /// Those in some bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Attributes(bytes)
    }

    /// The last one of a kind.
    pub fn get(&self, kind: u16) -> Option<&'a [u8]> {
        self.clone().filter(|(own, _)| *own == kind).last().map(|(_, value)| value)
    }

    /// The last one of a kind, which is a number of four bytes.
    ///
    /// # Errors
    /// ERANGE: it is shorter.
    pub fn word(&self, kind: u16) -> Result<Option<u32>, Refusal> {
        let Some(value) = self.get(kind) else { return Ok(None) };
        let word = value.first_chunk().ok_or(refused(Errno::ERANGE, "Attribute failed policy validation"))?;
        Ok(Some(u32::from_le_bytes(*word)))
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let [a, b, c, d] = *self.0.first_chunk::<4>()?;
        let (len, kind) = (usize::from(u16::from_le_bytes([a, b])), u16::from_le_bytes([c, d]));
        let value = self.0.get(4..len)?;
        self.0 = self.0.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind & !NLA_FLAGS, value))
    }
}

/// A message in the making.
pub struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// One of a kind, with these bytes first. `to` is the request that it answers.
    pub fn new(to: &Request<'_>, kind: u16, flags: u16, body: &[u8]) -> Self {
        Message::with_header(Header { len: 0, kind, flags, sequence: to.header.sequence, port: to.asker.port }, body)
    }

    /// One that answers nothing.
    pub fn notice(kind: u16, flags: u16, body: &[u8]) -> Self {
        Message::with_header(Header { len: 0, kind, flags, sequence: 0, port: 0 }, body)
    }

    fn with_header(header: Header, body: &[u8]) -> Self {
        let mut bytes = header.as_bytes().to_vec();
        bytes.extend_from_slice(body);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        Message { bytes }
    }

    /// Adds an attribute.
    pub fn with(mut self, kind: u16, value: &[u8]) -> Self {
        self.add(kind, value);
        self
    }

    /// Adds an attribute: as much of a value as its length can say.
    pub fn add(&mut self, kind: u16, value: &[u8]) {
        const LONGEST: usize = 0xfff8;
        let value = &value[..value.len().min(LONGEST)];
        self.bytes.extend_from_slice(&(4 + value.len() as u16).to_le_bytes());
        self.bytes.extend_from_slice(&kind.to_le_bytes());
        self.bytes.extend_from_slice(value);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// Its bytes.
    pub fn finish(mut self) -> Vec<u8> {
        let len = (self.bytes.len() as u32).to_le_bytes();
        self.bytes[..4].copy_from_slice(&len);
        self.bytes
    }
}

/// How an asker wants to hear of errors.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manner {
    /// Without the request (NETLINK_CAP_ACK).
    pub is_capped: bool,
    /// With words (NETLINK_EXT_ACK).
    pub has_words: bool,
}

/// What an asker is told of the outcome of a request.
pub fn outcome(request: &Request<'_>, outcome: Result<(), Refusal>, manner: Manner) -> Vec<u8> {
    let number = outcome.err().map_or(0, |refusal| -i32::from(refusal.error.number()));
    let quoted = if outcome.is_err() && !manner.is_capped { request.body } else { &[] };
    let mut flags = if quoted.len() == request.body.len() && outcome.is_err() { 0 } else { NLM_F_CAPPED };
    let text = outcome.err().and_then(|refusal| refusal.text).filter(|_| manner.has_words);
    if text.is_some() {
        flags |= NLM_F_ACK_TLVS;
    }
    let body = [&number.to_le_bytes()[..], request.header.as_bytes(), quoted].concat();
    let message = Message::new(request, NLMSG_ERROR, flags, &body);
    match text {
        Some(text) => message.with(NLMSGERR_ATTR_MSG, &[text.as_bytes(), &[0]].concat()).finish(),
        None => message.finish(),
    }
}

/// The requests in some bytes: what is cut short ends them.
pub fn requests(bytes: &[u8], asker: Asker) -> impl Iterator<Item = Request<'_>> {
    let mut rest = bytes;
    core::iter::from_fn(move || {
        let (header, _) = Header::read_from_prefix(rest).ok()?;
        let len = header.len as usize;
        if len < HEADER_BYTES || len > rest.len() {
            return None;
        }
        let body = &rest[HEADER_BYTES..len];
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some(Request { header, body, asker })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(kind: u16, body: &[u8]) -> Vec<u8> {
        let header = Header { len: (HEADER_BYTES + body.len()) as u32, kind, flags: 1, sequence: 7, port: 0 };
        [header.as_bytes(), body].concat()
    }

    #[test]
    fn what_is_cut_short_is_no_request() {
        let whole = bytes(18, &[0; 16]);
        assert_eq!(requests(&whole, Asker::default()).count(), 1);
        assert_eq!(requests(&whole[..20], Asker::default()).count(), 0);
        assert_eq!(requests(&[], Asker::default()).count(), 0);
        assert_eq!(requests(&[whole.clone(), whole].concat(), Asker::default()).count(), 2);
    }

    #[test]
    fn attributes_end_where_they_are_wrong() {
        let good = [5, 0, 3, 0x80, b'x', 0, 0, 0, 8, 0, 4, 0, 1, 2, 3, 4];
        let attributes = Attributes::new(&good);
        assert_eq!(attributes.get(3), Some(&b"x"[..]));
        assert_eq!(attributes.word(4), Ok(Some(0x0403_0201)));
        assert!(attributes.word(3).is_err());
        for wrong in [&[3, 0, 1, 0][..], &[9, 0, 1, 0, 1, 2, 3, 4], &[1, 0, 0]] {
            assert_eq!(Attributes::new(wrong).count(), 0);
        }
    }

    #[test]
    fn an_error_quotes_the_request_and_says_why() {
        let bytes = bytes(18, &[9; 4]);
        let request = requests(&bytes, Asker { port: 5, ..Asker::default() }).next().unwrap();
        let plain = outcome(&request, Err(Errno::ENODEV.into()), Manner::default());
        assert_eq!((plain.len(), &plain[16..20]), (40, &(-19_i32).to_le_bytes()[..]));
        let words = Manner { is_capped: true, has_words: true };
        let told = outcome(&request, Err(refused(Errno::EINVAL, "no")), words);
        assert_eq!(told.len(), 16 + 20 + 8);
        assert_eq!(Attributes::new(&told[36..]).get(1), Some(&b"no\0"[..]));
        assert_eq!(outcome(&request, Ok(()), words).len(), 36);
    }
}
