//! Names: up to 255 units of UTF-16, compared without regard to case as the file system's own table says.

use alloc::string::String;
use alloc::vec::Vec;

use crate::{Error, le16};

/// The longest name, in units of UTF-16.
pub(crate) const LONGEST_NAME: usize = 255;

/// Units that have another one in upper case, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Upcase {
    pairs: Vec<(u16, u16)>,
}

impl Upcase {
    /// The longest table, which has all units.
    pub const MOST_BYTES: u64 = 128 << 10;

    fn of(&self, unit: u16) -> u16 {
        self.pairs.binary_search_by_key(&unit, |pair| pair.0).map_or(unit, |at| self.pairs[at].1)
    }

    /// A name in upper case.
    pub fn fold(&self, name: &[u16]) -> Vec<u16> {
        name.iter().map(|unit| self.of(*unit)).collect()
    }
}

/// Reads a table in parts: a unit for each, but `0xffff` and a number for as many that are their own.
#[derive(Debug, Default)]
pub(crate) struct UpcaseReader {
    pairs: Vec<(u16, u16)>,
    unit: usize,
    /// The next one says how many are their own.
    is_left_out: bool,
}

impl UpcaseReader {
    /// Reads the next part, of an even length but for the last.
    pub fn read(&mut self, part: &[u8]) -> Result<(), Error> {
        self.pairs.try_reserve(part.len() / 2).map_err(|_| Error::NoMemory)?;
        for bytes in part.chunks_exact(2) {
            let value = le16(bytes, 0);
            if core::mem::take(&mut self.is_left_out) {
                self.unit += usize::from(value);
                continue;
            }
            if self.unit > 0xffff {
                return Err(Error::Corrupt("the up-case table is too long"));
            }
            // The last unit of all may stand for itself.
            if value == 0xffff && self.unit < 0xffff {
                self.is_left_out = true;
                continue;
            }
            if usize::from(value) != self.unit {
                self.pairs.push((self.unit as u16, value));
            }
            self.unit += 1;
        }
        Ok(())
    }

    pub fn finish(self) -> Upcase {
        Upcase { pairs: self.pairs }
    }
}

/// What entries say of a name in upper case, so that most others need not be compared.
pub(crate) fn hash(folded: &[u16]) -> u16 {
    let bytes = folded.iter().flat_map(|unit| unit.to_le_bytes());
    bytes.fold(0, |hash: u16, byte| hash.rotate_right(1).wrapping_add(byte.into()))
}

/// A program's name in UTF-16, without dots at its end; `None` if none can be called so.
pub(crate) fn units(name: &[u8]) -> Option<Vec<u16>> {
    let name = core::str::from_utf8(name).ok()?.trim_end_matches('.');
    let units: Vec<u16> = name.encode_utf16().collect();
    (1..=LONGEST_NAME).contains(&units.len()).then_some(units)
}

/// The name of something that is made, which must be one on other systems as well.
pub(crate) fn new_units(name: &[u8]) -> Result<Vec<u16>, Error> {
    const FORBIDDEN: [char; 9] = ['"', '*', '/', ':', '<', '>', '?', '\\', '|'];
    let text = core::str::from_utf8(name).map_err(|_| Error::Invalid)?.trim_end_matches('.');
    // Of a name of dots nothing is left: so it is none, as on Linux.
    if text.is_empty() {
        return Err(Error::NotFound);
    }
    if text.contains(|char: char| char < ' ' || FORBIDDEN.contains(&char)) {
        return Err(Error::Invalid);
    }
    let units: Vec<u16> = text.encode_utf16().collect();
    if units.len() > LONGEST_NAME { Err(Error::NameTooLong) } else { Ok(units) }
}

/// A name as programs see it.
pub(crate) fn text(units: &[u16]) -> String {
    char::decode_utf16(units.iter().copied()).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    #[test]
    fn what_is_left_out_of_a_table_is_its_own() {
        let table: Vec<u8> = [0_u16, 0xffff, 0x60, 0x41, 0x42].into_iter().flat_map(u16::to_le_bytes).collect();
        let mut reader = UpcaseReader::default();
        table.chunks(4).for_each(|part| reader.read(part).unwrap());
        let upcase = reader.finish();
        assert_eq!(upcase.fold(&[0x61, 0x62, 0x63, 5]), vec![0x41, 0x42, 0x63, 5]);
    }

    #[test]
    fn dots_at_the_end_do_not_count() {
        assert_eq!(units(b"a.b.."), units(b"a.b"));
        assert_eq!(units(b"..."), None);
        assert_eq!(new_units(b"..."), Err(Error::NotFound));
        assert_eq!(new_units(b"a?"), Err(Error::Invalid));
        assert_eq!(units(b"\xff"), None);
        assert_eq!(units("\u{1f600}".as_bytes()).unwrap().len(), 2);
        assert_eq!(text(&[0xd83d, 0xde00, 0xd83d]), "\u{1f600}\u{fffd}");
    }
}
