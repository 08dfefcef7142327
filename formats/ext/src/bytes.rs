//! Numbers in bytes. Whoever calls these has checked that the number lies inside the bytes; were that wrong, nothing would be read or written
//! (and a debug build stops).

macro_rules! number {
    ($get:ident, $put:ident, $type:ty, $from:ident, $to:ident) => {
        /// The number at this place.
        pub fn $get(bytes: &[u8], at: usize) -> $type {
            const LEN: usize = size_of::<$type>();
            let found = bytes.get(at..).and_then(|rest| rest.first_chunk::<LEN>());
            debug_assert!(found.is_some(), "a number at {at} of {} bytes", bytes.len());
            found.map_or(0, |raw| <$type>::$from(*raw))
        }

        /// Writes the number at this place.
        pub fn $put(bytes: &mut [u8], at: usize, value: $type) {
            const LEN: usize = size_of::<$type>();
            let found = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<LEN>());
            debug_assert!(found.is_some(), "a number at {at}");
            if let Some(raw) = found {
                *raw = value.$to();
            }
        }
    };
}

number!(le16, put16, u16, from_le_bytes, to_le_bytes);
number!(le32, put32, u32, from_le_bytes, to_le_bytes);
number!(be16, put_be16, u16, from_be_bytes, to_be_bytes);
number!(be32, put_be32, u32, from_be_bytes, to_be_bytes);

/// A number of 64 bits in two halves.
pub fn halves(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// The lower half.
pub fn low32(value: u64) -> u32 {
    value as u32
}

/// The upper half.
pub fn high32(value: u64) -> u32 {
    (value >> 32) as u32
}

/// Whether a bit is set in a bitmap; bits past its end are.
pub fn bit(map: &[u8], at: u32) -> bool {
    map.get(at as usize / 8).is_none_or(|byte| byte & 1 << (at % 8) != 0)
}

/// Sets or clears a bit.
pub fn set_bit(map: &mut [u8], at: u32, value: bool) {
    if let Some(byte) = map.get_mut(at as usize / 8) {
        *byte = *byte & !(1 << (at % 8)) | u8::from(value) << (at % 8);
    }
}

/// Bits that are looked at together.
const WORD: u32 = u64::BITS;

/// The word of a bitmap that this bit is in; bits past the map's end are set.
fn word(map: &[u8], at: u32) -> u64 {
    let rest = map.get(at as usize / 64 * 8..).unwrap_or_default();
    match rest.first_chunk() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => rest.iter().rev().fold(u64::MAX, |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// The first clear bit from here on and below `end`.
pub fn next_clear(map: &[u8], from: u32, end: u32) -> Option<u32> {
    let mut at = from;
    while at < end {
        let clear = !word(map, at) >> (at % WORD);
        if clear != 0 {
            return Some(at + clear.trailing_zeros()).filter(|found| *found < end);
        }
        at = (at / WORD + 1) * WORD;
    }
    None
}

/// How many bits are clear from here on, at most `most`, and below `end`.
pub fn clear_run(map: &[u8], from: u32, end: u32, most: u32) -> u32 {
    let stop = end.min(from.saturating_add(most));
    let mut at = from;
    while at < stop {
        let set = word(map, at) >> (at % WORD);
        if set != 0 {
            return (at + set.trailing_zeros()).min(stop) - from;
        }
        at = (at / WORD + 1) * WORD;
    }
    stop.saturating_sub(from)
}

/// The bytes that are wholly in a range of bits.
fn whole_bytes(from: u32, count: u32) -> core::ops::Range<usize> {
    let (first, end) = (from.div_ceil(8) as usize, (from + count) as usize / 8);
    first..end.max(first)
}

/// The bits of a range that are before its whole bytes or after them.
fn odd_bits(from: u32, count: u32) -> impl Iterator<Item = u32> {
    let whole = whole_bytes(from, count);
    let end = from + count;
    // The whole bytes' bits; if there are none, the range ends before its second part begins.
    let (middle, rest) = (whole.start as u32 * 8, whole.end as u32 * 8);
    (from..middle.min(end)).chain(rest.max(middle.min(end)).max(from)..end)
}

/// Whether all bits of a range have this value.
pub fn all_are(map: &[u8], from: u32, count: u32, value: bool) -> bool {
    let byte = if value { 0xff } else { 0 };
    let whole = map.get(whole_bytes(from, count));
    whole.is_some_and(|bytes| bytes.iter().all(|found| *found == byte))
        && odd_bits(from, count).all(|at| bit(map, at) == value)
}

/// Sets or clears the bits of a range.
pub fn set_bits(map: &mut [u8], from: u32, count: u32, value: bool) {
    if let Some(bytes) = map.get_mut(whole_bytes(from, count)) {
        bytes.fill(if value { 0xff } else { 0 });
    }
    odd_bits(from, count).for_each(|at| set_bit(map, at, value));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clear_bits_are_found_as_one_by_one() {
        // 19 bytes: two words and a part of one.
        let map: [u8; 19] = core::array::from_fn(|i| [0xff, 0, 0xff, 0x7f, 0, 0x10, 0xff][i * 5 % 7]);
        for from in 0..170 {
            for end in from..170 {
                let clear = (from..end).find(|at| !bit(&map, *at));
                assert_eq!(next_clear(&map, from, end), clear, "{from}..{end}");
                for most in [1, 7, 64, 200] {
                    let run = (from..end.min(from + most)).take_while(|at| !bit(&map, *at)).count();
                    assert_eq!(clear_run(&map, from, end, most) as usize, run, "{most} in {from}..{end}");
                }
            }
        }
    }

    #[test]
    fn ranges_of_bits_are_what_their_bits_are() {
        for from in 0..40 {
            for count in 1..60 {
                let mut map = [0; 16];
                set_bits(&mut map, from, count, true);
                for at in 0..128 {
                    assert_eq!(bit(&map, at), (from..from + count).contains(&at), "{at} of {count} from {from}");
                }
                assert!(all_are(&map, from, count, true));
                assert!(!all_are(&map, from, count + 1, true));
                assert!(!all_are(&map, from, count, false));
                set_bits(&mut map, from, count, false);
                assert_eq!(map, [0; 16]);
            }
        }
    }
}
