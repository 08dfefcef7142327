//! Sockets: one folder per address family.
//!
//! | family | folder |
//! | --- | --- |
//! | AF_UNIX | [`unix`] |

pub mod unix;
