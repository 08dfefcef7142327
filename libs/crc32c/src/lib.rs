//! CRC-32C (Castagnoli), as file systems use it: without the inversions at its start and end.
//!
//! x86-64 processors with SSE4.2 have an instruction for it that takes eight bytes at once and works on general registers, so it can be used where no vector registers may
//! be touched. Other processors, and interpreters of Rust such as Miri, take tables.
//!
//! The only `unsafe` is the instruction itself. A processor that lacks it is asked first (Intel SDM vol. 2A, CRC32 and CPUID).

#![no_std]

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod instruction;
mod tables;

/// CRC-32C over the bytes, going on from `seed`.
pub fn crc32c(seed: u32, bytes: &[u8]) -> u32 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if let Some(instruction) = instruction::Instruction::find() {
        return instruction.crc32c(seed, bytes);
    }
    tables::crc32c(seed, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One bit after the other, as the polynomial says.
    fn by_bits(seed: u32, bytes: &[u8]) -> u32 {
        bytes.iter().fold(seed, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ (0x82f6_3b78 & (crc & 1).wrapping_neg()))
        })
    }

    #[test]
    fn the_checksum_is_that_of_the_catalogue() {
        // The check value of the catalogue of parametrised CRC algorithms.
        assert_eq!(!crc32c(!0, b"123456789"), 0xe306_9283);
        assert_eq!(!tables::crc32c(!0, b"123456789"), 0xe306_9283);
    }

    #[test]
    fn every_length_and_alignment_has_the_same_checksum_in_every_way() {
        let bytes: [u8; 300] = core::array::from_fn(|i| (i * 7 + i / 13) as u8);
        for from in 0..9 {
            for to in from..bytes.len() {
                let part = &bytes[from..to];
                let expected = by_bits(0x1234_5678, part);
                assert_eq!(crc32c(0x1234_5678, part), expected, "{from}..{to}");
                assert_eq!(tables::crc32c(0x1234_5678, part), expected, "{from}..{to}");
            }
        }
    }

    #[test]
    fn a_checksum_goes_on_where_it_was_left() {
        let bytes = b"What is split is the same as what is whole.";
        for at in 0..bytes.len() {
            assert_eq!(crc32c(crc32c(1, &bytes[..at]), &bytes[at..]), crc32c(1, bytes));
        }
    }
}
