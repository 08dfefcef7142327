//! [`Refusal`]: why a change is not made: an error, and words for those who ask for them (NETLINK_EXT_ACK).

use crate::error::Errno;

/// Why something is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The error.
    pub error: Errno,
    /// What is wrong, in words: Linux's, where it has some.
    pub text: Option<&'static str>,
}

impl From<Errno> for Refusal {
    fn from(error: Errno) -> Self {
        Refusal { error, text: None }
    }
}

/// A refusal with words.
pub fn refused(error: Errno, text: &'static str) -> Refusal {
    Refusal { error, text: Some(text) }
}
