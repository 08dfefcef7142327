//! The two CRCs of ext4: CRC-32C (metadata_csum, journal), and CRC-16 (gdt_csum). Both are used without the usual last inversion.

pub use crc32c::crc32c;

const fn table16() -> [u16; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let mut value = i as u16;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 != 0 { value >> 1 ^ 0xa001 } else { value >> 1 };
            bit += 1;
        }
        table[i] = value;
        i += 1;
    }
    table
}

static TABLE16: [u16; 256] = table16();

/// CRC-16 (the polynomial of ANSI) over the bytes, going on from `seed`.
pub fn crc16(seed: u16, bytes: &[u8]) -> u16 {
    bytes.iter().fold(seed, |crc, byte| crc >> 8 ^ TABLE16[((crc ^ u16::from(*byte)) & 0xff) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_catalogue() {
        assert_eq!(crc16(0, b"123456789"), 0xbb3d);
    }
}
