//! SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed hash of short messages that cannot be guessed without the key.
//!
//! Initial sequence numbers (RFC 6528) and SYN cookies are made of it.

/// A secret, from a good source of random numbers.
#[derive(Clone, Copy)]
pub struct Key(pub [u64; 2]);

impl core::fmt::Debug for Key {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str("Key(secret)")
    }
}

impl Key {
    /// The hash of a message.
    pub fn hash(&self, message: &[u8]) -> u64 {
        let [low, high] = self.0;
        let mut state = [
            low ^ 0x736f_6d65_7073_6575,
            high ^ 0x646f_7261_6e64_6f6d,
            low ^ 0x6c79_6765_6e65_7261,
            high ^ 0x7465_6462_7974_6573,
        ];
        let (words, rest) = message.as_chunks::<8>();
        for word in words {
            absorb(&mut state, u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        last[7] = message.len() as u8;
        absorb(&mut state, u64::from_le_bytes(last));
        state[2] ^= 0xff;
        for _ in 0..4 {
            round(&mut state);
        }
        state[0] ^ state[1] ^ state[2] ^ state[3]
    }
}

fn absorb(state: &mut [u64; 4], word: u64) {
    state[3] ^= word;
    round(state);
    round(state);
    state[0] ^= word;
}

fn round(state: &mut [u64; 4]) {
    let [a, b, c, d] = state;
    *a = a.wrapping_add(*b);
    *b = b.rotate_left(13) ^ *a;
    *a = a.rotate_left(32);
    *c = c.wrapping_add(*d);
    *d = d.rotate_left(16) ^ *c;
    *a = a.wrapping_add(*d);
    *d = d.rotate_left(21) ^ *a;
    *c = c.wrapping_add(*b);
    *b = b.rotate_left(17) ^ *c;
    *c = c.rotate_left(32);
}

#[cfg(test)]
mod tests {
    use super::Key;

    #[test]
    fn hashes_as_the_papers_example() {
        let key = Key([0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]);
        let message: [u8; 15] = core::array::from_fn(|at| at as u8);
        assert_eq!(key.hash(&message), 0xa129_ca61_49be_45e5);
    }
}
