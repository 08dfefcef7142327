//! Files that show a number or `max`.

use super::file::{Showing, Writing};
use crate::cgroup::Limit;
use crate::error::Result;
use crate::fs::cgroup::number;

/// Shows a limit.
pub fn show(text: &mut Showing, limit: &Limit) {
    match limit.get() {
        usize::MAX => text.add(format_args!("max\n")),
        limit => text.add(format_args!("{limit}\n")),
    }
}

/// The limit that was written.
///
/// # Errors
/// Those of `parse` for what is not `max`.
pub fn written(writing: &Writing<'_>, parse: impl FnOnce(&[u8]) -> Result<usize>) -> Result<usize> {
    if writing.text == b"max" { Ok(usize::MAX) } else { parse(writing.text) }
}

/// A number from 0 on that fits into 31 bits.
///
/// # Errors
/// As for [`number::parse_int`], and ERANGE below 0.
pub fn parse_count(text: &[u8]) -> Result<usize> {
    usize::try_from(number::parse_int(text)?).map_err(|_| crate::error::Errno::ERANGE)
}
