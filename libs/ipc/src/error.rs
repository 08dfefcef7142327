//! What can go wrong on a channel.

use core::fmt;

/// Why an operation on a channel failed. Each one leaves the channel as it was, but for [`Corrupt`](Error::Corrupt) and
/// [`Closed`](Error::Closed), after which nothing more is sent or received on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Error {
    /// There is no room now: every call line is in use, or the peer has not taken enough messages. Try again later.
    Full,
    /// The peer closed the channel or died.
    Closed,
    /// The peer wrote what the protocol does not allow. The channel is dead.
    Corrupt,
    /// The call, request or cookie is not one that is outstanding here: it is finished already, or was made elsewhere.
    Stale,
    /// The time given for it was over first.
    TimedOut,
    /// The region has not the size or shape that a channel needs, or could be changed by its sender.
    BadRegion,
    /// All cookies of this end are in use.
    NoCookie,
    /// The one who was asked dropped the request without an answer.
    Refused,
    /// The task's block was asked to end first.
    Canceled,
}

impl Error {
    /// The number that Linux and the published C interface use for it (`errno.h`).
    pub const fn errno(self) -> i32 {
        match self {
            Error::Full => 11,      // EAGAIN, EWOULDBLOCK
            Error::Closed => 32,    // EPIPE
            Error::Corrupt => 71,   // EPROTO
            Error::Stale => 22,     // EINVAL
            Error::TimedOut => 110, // ETIMEDOUT
            Error::BadRegion => 74, // EBADMSG
            Error::NoCookie => 12,  // ENOMEM
            Error::Refused => 111,  // ECONNREFUSED
            Error::Canceled => 125, // ECANCELED
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::Full => "the channel is full",
            Error::Closed => "the peer closed the channel or died",
            Error::Corrupt => "the peer broke the protocol",
            Error::Stale => "nothing of that name is outstanding",
            Error::TimedOut => "timed out",
            Error::BadRegion => "the shared region is not a channel",
            Error::NoCookie => "too many requests are outstanding",
            Error::Refused => "the request was dropped without an answer",
            Error::Canceled => "canceled",
        })
    }
}

impl core::error::Error for Error {}
