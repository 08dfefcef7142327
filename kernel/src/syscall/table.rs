//! From numbers to calls.

use super::{Call, Entry};

/// Whether all that the manual page of a call says is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completeness {
    /// It is.
    Complete,
    /// It is not: what is missing.
    Partial(&'static str),
}

/// One list for each file of the folder.
const LISTS: &[&[Entry]] = &[];

const SIZE: usize = 512;

static TABLE: [Option<Call>; SIZE] = build();

const fn build() -> [Option<Call>; SIZE] {
    let mut table = [None; SIZE];
    let mut list = 0;
    while list < LISTS.len() {
        let mut at = 0;
        while at < LISTS[list].len() {
            let entry = LISTS[list][at];
            assert!(table[entry.number as usize].is_none(), "two system calls have the same number");
            table[entry.number as usize] = Some(entry.call);
            at += 1;
        }
        list += 1;
    }
    table
}

/// The call of that number.
#[inline(always)]
pub fn lookup(number: usize) -> Option<Call> {
    *TABLE.get(number)?
}

/// All calls that are there.
pub fn all() -> impl Iterator<Item = &'static Entry> {
    LISTS.iter().flat_map(|list| list.iter())
}

/// The name of a call that Linux has and this kernel has not.
pub fn absent_name(_number: u32) -> Option<&'static str> {
    None
}
