//! Hashes of names, by which an indexed directory is ordered: the three that ext4 knows, each with bytes of names taken as signed or unsigned.

use std_alloc::vec::Vec;

/// A name's hash: what orders it, and what tells names with the same one apart in a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hash {
    /// Its lowest bit is 0.
    pub major: u32,
    pub minor: u32,
}

const START: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];

/// Hashes a name. `version` is 0 (the old one), 1 (half of MD4) or 2 (TEA), and 3 more for unsigned bytes; `None` for others.
pub fn hash_name(name: &[u8], version: u8, seed: &[u32; 4]) -> Option<Hash> {
    let signed = version < 3;
    let mut state = if seed.iter().any(|word| *word != 0) { *seed } else { START };
    let (major, minor) = match version % 3 {
        _ if version > 5 => return None,
        0 => (old(name, signed), 0),
        1 => {
            for at in (0..name.len()).step_by(32) {
                half_md4(&mut state, &words::<8>(&name[at..], signed));
            }
            (state[1], state[2])
        }
        _ => {
            for at in (0..name.len()).step_by(16) {
                tea(&mut state, &words::<4>(&name[at..], signed));
            }
            (state[0], state[1])
        }
    };
    // The largest value stands for the end of the directory.
    let major = if major & !1 == 0xffff_fffe { 0xffff_fffc } else { major & !1 };
    Some(Hash { major, minor })
}

fn widen(byte: u8, signed: bool) -> u32 {
    if signed { byte as i8 as u32 } else { byte.into() }
}

/// The beginning of a text as numbers, filled up with its length.
fn words<const N: usize>(text: &[u8], signed: bool) -> [u32; N] {
    let len = text.len() as u32;
    let pad = (len | len << 8) | (len | len << 8) << 16;
    let mut words: Vec<u32> = text[..text.len().min(4 * N)]
        .chunks(4)
        .map(|four| four.iter().fold(pad, |word, byte| widen(*byte, signed).wrapping_add(word << 8)))
        .collect();
    words.resize(N, pad);
    core::array::from_fn(|i| words[i])
}

fn old(name: &[u8], signed: bool) -> u32 {
    let (mut last, mut before) = (0x12a3_fe2d_u32, 0x37ab_e8f9_u32);
    for byte in name {
        let mut next = before.wrapping_add(last ^ widen(*byte, signed).wrapping_mul(7_152_373));
        if next & 0x8000_0000 != 0 {
            next = next.wrapping_sub(0x7fff_ffff);
        }
        before = last;
        last = next;
    }
    last << 1
}

fn tea(state: &mut [u32; 4], words: &[u32; 4]) {
    let (mut x, mut y, mut sum) = (state[0], state[1], 0_u32);
    let mix = |value: u32, sum: u32, a: u32, b: u32| {
        (value << 4).wrapping_add(a) ^ value.wrapping_add(sum) ^ (value >> 5).wrapping_add(b)
    };
    for _ in 0..16 {
        sum = sum.wrapping_add(0x9e37_79b9);
        x = x.wrapping_add(mix(y, sum, words[0], words[1]));
        y = y.wrapping_add(mix(x, sum, words[2], words[3]));
    }
    state[0] = state[0].wrapping_add(x);
    state[1] = state[1].wrapping_add(y);
}

type Round = (fn(u32, u32, u32) -> u32, u32, [usize; 8], [u32; 4]);

/// Half of MD4: eight steps a round instead of sixteen.
fn half_md4(state: &mut [u32; 4], words: &[u32; 8]) {
    const ROUNDS: [Round; 3] = [
        (|x, y, z| z ^ (x & (y ^ z)), 0, [0, 1, 2, 3, 4, 5, 6, 7], [3, 7, 11, 19]),
        (|x, y, z| (x & y).wrapping_add((x ^ y) & z), 0x5a82_7999, [1, 3, 5, 7, 0, 2, 4, 6], [3, 5, 9, 13]),
        (|x, y, z| x ^ y ^ z, 0x6ed9_eba1, [3, 7, 2, 6, 1, 5, 0, 4], [3, 9, 11, 15]),
    ];
    let mut v = *state;
    for (mix, constant, order, shifts) in ROUNDS {
        for (step, word) in order.into_iter().enumerate() {
            // The four values take turns: the first, the last, and so on backwards.
            let at = |i: usize| (4 - step % 4 + i) % 4;
            let sum = v[at(0)].wrapping_add(mix(v[at(1)], v[at(2)], v[at(3)])).wrapping_add(words[word]);
            v[at(0)] = sum.wrapping_add(constant).rotate_left(shifts[step % 4]);
        }
    }
    for i in 0..4 {
        state[i] = state[i].wrapping_add(v[i]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seed's UUID is 4d2f5a10-0000-4000-8000-ba9876543210; the values are those of debugfs's `dx_hash`.
    const SEED: [u32; 4] = [0x105a_2f4d, 0x0040_0000, 0x98ba_0080, 0x1032_5476];
    const LONG: &[u8] = b"a-name-that-is-longer-than-thirty-two-bytes-0123456789";

    #[test]
    fn hashes_are_those_of_debugfs() {
        let hash = |name: &[u8], version, seed: &[u32; 4]| {
            hash_name(name, version, seed).map(|hash| (hash.major, hash.minor)).expect("a version that is known")
        };
        assert_eq!(hash(b"hello", 0, &SEED), (0x3225_2546, 0));
        assert_eq!(hash(LONG, 0, &SEED), (0x2d8f_0e66, 0));
        assert_eq!(hash(b"hello", 1, &SEED), (0xca80_bc74, 0xcf34_7aa7));
        assert_eq!(hash(LONG, 1, &SEED), (0x9205_b536, 0x3297_ad8d));
        assert_eq!(hash(b"hello", 2, &SEED), (0x5e36_052e, 0xcd50_27f2));
        assert_eq!(hash(LONG, 2, &SEED), (0x3829_de3a, 0x3003_7a52));
        assert_eq!(hash("hällo".as_bytes(), 0, &[0; 4]), (0x1a11_861a, 0));
        assert_eq!(hash("hällo".as_bytes(), 1, &[0; 4]), (0xe5a1_dd5c, 0xb13d_8a81));
        assert_eq!(hash("hällo".as_bytes(), 2, &[0; 4]), (0x52c9_68c6, 0xdd3f_1c35));
        assert_eq!(hash(b"hello", 4, &SEED), hash(b"hello", 1, &SEED), "signs matter beyond ASCII only");
        assert_ne!(hash("hällo".as_bytes(), 3, &[0; 4]), hash("hällo".as_bytes(), 0, &[0; 4]));
        assert!(hash_name(b"hello", 6, &SEED).is_none());
    }
}
