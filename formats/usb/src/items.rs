//! [`items`]: what a report descriptor is made of (HID 1.11, 6.2.2).

/// A short item: its tag with its type, as they stand in its first byte, and its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Tag and type.
    pub tag: u8,
    data: u32,
    bytes: u8,
}

impl Item {
    /// Its data, which are no number below zero.
    pub fn unsigned(self) -> u32 {
        self.data
    }

    /// Its data with their sign.
    pub fn signed(self) -> i32 {
        match self.bytes {
            1 => self.data as i8 as i32,
            2 => self.data as i16 as i32,
            _ => self.data as i32,
        }
    }

    /// A usage: where it has no page, that of the items before.
    pub fn usage(self, page: u16) -> u32 {
        if self.bytes == 4 { self.data } else { u32::from(page) << 16 | self.data }
    }
}

/// The first byte of a long item, of which none is defined.
const LONG: u8 = 0xfe;

/// The items of a descriptor. One that is cut off is the last: `None`.
pub fn items(descriptor: &[u8]) -> impl Iterator<Item = Option<Item>> {
    let mut rest = Some(descriptor);
    core::iter::from_fn(move || {
        loop {
            let (&first, behind) = rest?.split_first()?;
            if first == LONG {
                let len = behind.first().map_or(usize::MAX, |&len| usize::from(len) + 2);
                rest = behind.get(len..);
                if rest.is_none() {
                    return Some(None);
                }
                continue;
            }
            let bytes = [0, 1, 2, 4][usize::from(first & 3)];
            let Some((data, next)) = behind.split_at_checked(bytes) else {
                rest = None;
                return Some(None);
            };
            rest = Some(next);
            let data = data.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte));
            return Some(Some(Item { tag: first & !3, data, bytes: bytes as u8 }));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn data_have_a_sign_and_usages_a_page_where_they_bring_none() {
        let all: Vec<Item> =
            items(&[0x15, 0x81, 0x26, 0xff, 0x7f, 0x0b, 4, 0, 7, 0, 0xc0]).map(Option::unwrap).collect();
        assert_eq!(all.iter().map(|item| item.tag).collect::<Vec<_>>(), [0x14, 0x24, 0x08, 0xc0]);
        assert_eq!((all[0].signed(), all[1].signed()), (-127, 32767));
        assert_eq!((all[2].usage(9), all[0].usage(9)), (0x7_0004, 0x9_0081));
    }

    #[test]
    fn long_items_are_passed_over_and_what_is_cut_off_ends() {
        let read = |bytes| items(bytes).map(|item| item.map(|item| item.tag)).collect::<Vec<_>>();
        assert_eq!(read(&[0xfe, 2, 9, 1, 1, 0xc0]), [Some(0xc0)]);
        assert_eq!(read(&[0xfe, 9, 9, 1]), [None]);
        assert_eq!(read(&[0x26, 1]), [None]);
    }
}
