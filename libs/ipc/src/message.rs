//! A message: seven words and a tag; and the status word that publishes it.
//!
//! ```text
//!   bit  0   2        12          32              64
//!       | kind | short |   tag     |     long      |
//! ```
//!
//! | where | `short` | `long` |
//! | --- | --- | --- |
//! | call line | request: the line on which the caller's next request will come; response: 0, or 1 for a refusal | number of the request |
//! | ring | lap of the ring, modulo 1024 | cookie of the request, or 0 |

/// The payload of a message: 56 bytes, which with the status word make one cache line.
pub type Words = [u64; 7];

/// What kind of thing a message is: 20 bits that mean whatever the two ends agree upon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(u32);

impl Tag {
    /// The largest tag.
    pub const MAX: Tag = Tag((1 << 20) - 1);

    /// The tag of that number.
    ///
    /// # Panics
    /// When `number` does not fit 20 bits; in a constant that is a compile error.
    #[inline(always)]
    pub const fn new(number: u32) -> Tag {
        assert!(number <= Tag::MAX.0, "a tag has 20 bits");
        Tag(number)
    }

    /// Its number.
    #[inline(always)]
    pub const fn number(self) -> u32 {
        self.0
    }
}

impl From<u16> for Tag {
    fn from(number: u16) -> Tag {
        Tag(number.into())
    }
}

/// What one end says to the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Message {
    /// What it is about.
    pub tag: Tag,
    /// What it says.
    pub words: Words,
}

impl Message {
    /// A message of these words, at most seven (more do not compile); those not given are 0.
    #[inline(always)]
    pub fn new<const N: usize>(tag: Tag, words: &[u64; N]) -> Message {
        const { assert!(N <= 7, "a message has seven words") };
        Message { tag, words: core::array::from_fn(|i| if i < N { words[i] } else { 0 }) }
    }
}

/// What a message is in the traffic between the ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Asks for a response.
    Request = 1,
    /// Answers a request.
    Response = 2,
    /// Neither: nobody waits for an answer.
    Plain = 3,
}

/// A status word, taken apart. A word of zeros is an empty slot, which has no [`Kind`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Status(pub u64);

impl Status {
    /// All that is not the tag.
    const NOT_TAG: u64 = !((Tag::MAX.0 as u64) << 12);

    #[inline(always)]
    pub fn new(kind: Kind, short: u16, tag: Tag, long: u32) -> Status {
        Status(kind as u64 | u64::from(short & SHORT_MASK) << 2 | u64::from(tag.0) << 12 | u64::from(long) << 32)
    }

    #[inline(always)]
    pub fn kind(self) -> Option<Kind> {
        match self.0 & 3 {
            1 => Some(Kind::Request),
            2 => Some(Kind::Response),
            3 => Some(Kind::Plain),
            _ => None,
        }
    }

    #[inline(always)]
    pub fn short(self) -> u16 {
        (self.0 >> 2) as u16 & SHORT_MASK
    }

    #[inline(always)]
    pub fn tag(self) -> Tag {
        Tag((self.0 >> 12) as u32 & Tag::MAX.0)
    }

    #[inline(always)]
    pub fn long(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Whether the two differ in nothing but the tag.
    #[inline(always)]
    pub fn is_but_for_tag(self, other: Status) -> bool {
        (self.0 ^ other.0) & Self::NOT_TAG == 0
    }
}

/// The ten bits of a status word's `short` field.
pub(crate) const SHORT_MASK: u16 = 0x3ff;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_word_gives_back_what_was_put_in() {
        for kind in [Kind::Request, Kind::Response, Kind::Plain] {
            let status = Status::new(kind, 1023, Tag::MAX, u32::MAX);
            assert_eq!(
                (status.kind(), status.short(), status.tag(), status.long()),
                (Some(kind), 1023, Tag::MAX, u32::MAX)
            );
            let status = Status::new(kind, 0, Tag::new(0), 1);
            assert_eq!((status.kind(), status.short(), status.tag(), status.long()), (Some(kind), 0, Tag::new(0), 1));
        }
        assert!(Status(0).kind().is_none());
    }
}
