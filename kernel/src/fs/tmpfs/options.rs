//! The options of a tmpfs: `size` (bytes, with `k`, `m`, `g` or `%`), `nr_blocks`, `nr_inodes`, `mode`, `uid`, `gid`; half of memory and as many inodes as pages by default.

use alloc::vec::Vec;

use frame::mm::{PAGE_SIZE, frame_count};

use crate::error::{Errno, Result};
use crate::fs::types::{BadOption, Checked, split_option};

/// What mount(2) was told.
#[derive(Debug)]
pub struct Options {
    /// The most pages, and inodes; 0: as many as there is room for.
    pub pages: Option<u64>,
    pub inodes: Option<u64>,
    /// The permissions and owner of the root directory.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
}

impl Default for Options {
    fn default() -> Self {
        Options { pages: None, inodes: None, mode: 0o1777, uid: 0, gid: 0 }
    }
}

impl Options {
    /// Reads the options of mount(2).
    ///
    /// # Errors
    /// EINVAL for one that is not understood.
    pub fn parse(options: &[u8]) -> Result<Options> {
        let mut chosen = Options::default();
        for option in options.split(|&byte| byte == b',').filter(|option| !option.is_empty()) {
            chosen.set(option).map_err(|_| Errno::EINVAL)?;
        }
        Ok(chosen)
    }

    fn set(&mut self, option: &[u8]) -> Checked {
        let (key, value) = split_option(option);
        let value = core::str::from_utf8(value).map_err(|_| BadOption::Value)?;
        let number = || value.parse::<u32>().map_err(|_| BadOption::Value);
        let size = || size(value).ok_or(BadOption::Value);
        match key {
            b"size" => self.pages = Some(size()?.div_ceil(PAGE_SIZE as u64)),
            b"nr_blocks" => self.pages = Some(size()?),
            b"nr_inodes" => self.inodes = Some(size()?),
            b"mode" => self.mode = u32::from_str_radix(value, 8).map_err(|_| BadOption::Value)? & 0o7777,
            b"uid" => self.uid = number()?,
            b"gid" => self.gid = number()?,
            b"huge" | b"noswap" | b"mpol" | b"inode32" | b"inode64" | b"defaults" => {}
            _ => return Err(BadOption::Unknown),
        }
        Ok(())
    }
}

/// Looks whether an option is understood.
///
/// # Errors
/// What is wrong with it.
pub fn check(option: &[u8]) -> Checked {
    Options::default().set(option)
}

/// A number with a unit, or a percentage of memory; in bytes.
fn size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|unit: char| !unit.is_ascii_digit());
    let number: u64 = digits.parse().ok()?;
    let factor = match text.get(digits.len()..)? {
        "" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        "%" => (frame_count() * PAGE_SIZE / 100) as u64,
        _ => return None,
    };
    number.checked_mul(factor)
}

/// How options are shown that were chosen after those in `old`, with a comma before each: the last of each name.
pub fn shown(old: &[u8], new: &[u8]) -> Vec<u8> {
    let split = |options| <[u8]>::split(options, |&byte| byte == b',').filter(|option: &&[u8]| !option.is_empty());
    let is_replaced = |option: &[u8]| split(new).any(|other| split_option(other).0 == split_option(option).0);
    let kept = split(old).filter(|option| !is_replaced(option));
    kept.chain(split(new)).fold(Vec::new(), |mut shown, option| {
        shown.push(b',');
        shown.extend_from_slice(option);
        shown
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(
            ["1", "3k", "2M", "1g", "k", "1x", ""].map(size),
            [Some(1), Some(3072), Some(2 << 20), Some(1 << 30), None, None, None]
        );
    }

    #[test]
    fn what_is_not_understood_is_told_apart() {
        assert_eq!(check(b"size=1m"), Ok(()));
        assert_eq!(check(b"size=big"), Err(BadOption::Value));
        assert_eq!(check(b"colour=red"), Err(BadOption::Unknown));
    }

    #[test]
    fn options_that_are_changed_are_shown_once() {
        assert_eq!(shown(b"", b"size=1m,mode=755"), b",size=1m,mode=755");
        assert_eq!(shown(b",size=1m,mode=755", b"size=2m"), b",mode=755,size=2m");
    }
}
