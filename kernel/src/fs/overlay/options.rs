//! The options of an overlay's mount.

use alloc::vec::Vec;

use crate::error::{Errno, Result};
use crate::fs::types::split_option;

/// Whether directories of lower layers can be renamed, and whether those that were are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redirect {
    /// They can.
    On,
    /// They cannot; those that were are found.
    Follow,
    /// They cannot, and those that were are refused.
    NoFollow,
}

/// The names of all options.
pub const NAMES: &[&str] = &[
    "lowerdir",
    "upperdir",
    "workdir",
    "redirect_dir",
    "xino",
    "userxattr",
    "volatile",
    "fsync",
    "metacopy",
    "index",
    "nfs_export",
    "verity",
    "uuid",
    "default_permissions",
    "override_creds",
];

/// What mount(2) was told.
#[derive(Debug)]
pub struct Options {
    /// The paths of the lower layers, the topmost first.
    pub lower: Vec<Vec<u8>>,
    /// The path of the upper layer.
    pub upper: Option<Vec<u8>>,
    /// The path of the directory in which its changes are prepared.
    pub work: Option<Vec<u8>>,
    /// What `redirect_dir` says.
    pub redirect: Redirect,
    /// Whether files of all layers have numbers of the overlay's own (`xino`).
    pub numbers_are_own: bool,
    /// Whether what the overlay notes of files is in attributes that any user may set (`userxattr`).
    pub notes_are_users: bool,
    /// Whether nobody needs the upper layer when the system has gone down (`volatile`).
    pub is_volatile: bool,
    /// How `/proc/mounts` shows them, with a leading comma each.
    pub shown: Vec<u8>,
}

/// The most lower layers, as on Linux.
const MOST_LAYERS: usize = 500;

/// Splits at a byte that has no backslash before it. The backslashes stay.
fn split(text: &[u8], at: u8) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    let (mut start, mut is_escaped) = (0, false);
    for (index, &byte) in text.iter().enumerate() {
        if byte == at && !is_escaped {
            parts.extend(text.get(start..index));
            start = index + 1;
        }
        is_escaped = byte == b'\\' && !is_escaped;
    }
    parts.extend(text.get(start..));
    parts
}

/// Takes the backslashes out that are before other bytes.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut is_escaped = false;
    for &byte in text {
        is_escaped = byte == b'\\' && !is_escaped;
        if !is_escaped {
            plain.push(byte);
        }
    }
    plain
}

impl Options {
    /// Reads the options of mount(2).
    ///
    /// # Errors
    /// EINVAL for what is not understood or goes not together.
    pub fn parse(options: &[u8]) -> Result<Options> {
        let mut lower: &[u8] = &[];
        let (mut upper, mut work): (&[u8], &[u8]) = (&[], &[]);
        let mut redirect = None;
        let (mut numbers_are_own, mut notes_are_users, mut is_volatile) = (false, false, false);
        for option in split(options, b',') {
            match split_option(option) {
                (b"lowerdir", value) => lower = value,
                (b"upperdir", value) => upper = value,
                (b"workdir", value) => work = value,
                (b"redirect_dir", b"on") => redirect = Some(Redirect::On),
                (b"redirect_dir", b"off" | b"follow") => redirect = Some(Redirect::Follow),
                (b"redirect_dir", b"nofollow") => redirect = Some(Redirect::NoFollow),
                (b"xino", b"on") => numbers_are_own = true,
                (b"xino", b"off" | b"auto") => numbers_are_own = false,
                (b"userxattr", b"") => notes_are_users = true,
                (b"volatile", b"") | (b"fsync", b"volatile") => is_volatile = true,
                (b"metacopy" | b"index" | b"nfs_export" | b"verity", b"off")
                | (b"uuid", b"on" | b"off" | b"auto" | b"null")
                | (b"default_permissions" | b"override_creds", b"")
                | (b"", _) => {}
                _ => return Err(Errno::EINVAL),
            }
        }
        let layers: Vec<_> = split(lower, b':').iter().map(|path| unescape(path)).collect();
        let too_few = if upper.is_empty() { 2 } else { 1 };
        if layers.iter().any(Vec::is_empty) || layers.len() < too_few || layers.len() > MOST_LAYERS {
            return Err(Errno::EINVAL);
        }
        if (!upper.is_empty() && work.is_empty())
            || (notes_are_users && redirect.is_some_and(|redirect| redirect != Redirect::NoFollow))
        {
            return Err(Errno::EINVAL);
        }
        let usual = if notes_are_users { Redirect::NoFollow } else { Redirect::Follow };
        let redirect = redirect.unwrap_or(usual);
        let mut shown = [b",lowerdir=", lower].concat();
        if !upper.is_empty() {
            shown.extend_from_slice(&[b",upperdir=", upper, b",workdir=", work].concat());
        }
        shown.extend_from_slice(match redirect {
            Redirect::On => b",redirect_dir=on",
            // Without an upper layer it is the same.
            Redirect::Follow if upper.is_empty() => b",redirect_dir=on",
            Redirect::Follow => b"",
            Redirect::NoFollow => b",redirect_dir=nofollow",
        });
        shown.extend_from_slice(if notes_are_users { b",userxattr" } else { b"" });
        shown.extend_from_slice(if is_volatile { b",fsync=volatile" } else { b"" });
        let path = |text: &[u8]| (!upper.is_empty()).then(|| unescape(text));
        let (upper, work) = (path(upper), path(work));
        Ok(Options { lower: layers, upper, work, redirect, numbers_are_own, notes_are_users, is_volatile, shown })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_split_at_colons_that_are_not_escaped() {
        let options = Options::parse(b"lowerdir=/a\\:b:/c\\\\,upperdir=/u\\,v,workdir=/w").unwrap();
        assert_eq!(options.lower, [b"/a:b".to_vec(), b"/c\\".to_vec()]);
        assert_eq!(options.upper.as_deref(), Some(&b"/u,v"[..]));
        assert_eq!(options.redirect, Redirect::Follow);
    }

    #[test]
    fn what_goes_not_together_is_refused() {
        for options in [
            &b""[..],
            b"lowerdir=/a",
            b"lowerdir=/a,upperdir=/u",
            b"lowerdir=/a::/b,upperdir=/u,workdir=/w",
            b"lowerdir=/a:/b,metacopy=on",
            b"lowerdir=/a:/b,index=on",
            b"lowerdir=/a:/b,unknown",
            b"lowerdir=/a:/b,userxattr,redirect_dir=on",
        ] {
            assert_eq!(Options::parse(options).err(), Some(Errno::EINVAL));
        }
        assert!(Options::parse(b"lowerdir=/a:/b").is_ok());
    }
}
