//! Gzip (RFC 1952) around deflate (RFC 1951): for an initial ram disk that is compressed.

use alloc::vec;
use alloc::vec::Vec;

use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress, inflate_flags};

/// Whether the bytes begin as a gzip member does.
pub fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b, 8])
}

/// Unpacks the first member; its content, and how many bytes it took.
///
/// # Errors
/// What is wrong with it. Content longer than `limit` bytes is an error.
pub fn unpack(bytes: &[u8], limit: usize) -> Result<(Vec<u8>, usize), &'static str> {
    let header = header_len(bytes).ok_or("a gzip header is broken")?;
    let mut input = bytes.get(header..).unwrap_or_default();
    let mut state = DecompressorOxide::new();
    let mut content = vec![0; input.len().saturating_mul(3).max(4096).min(limit)];
    let mut filled = 0;
    loop {
        let flags = inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
        let (status, consumed, produced) = decompress(&mut state, input, &mut content, filled, flags);
        input = input.get(consumed..).unwrap_or_default();
        filled += produced;
        match status {
            TINFLStatus::Done => break,
            TINFLStatus::HasMoreOutput if content.len() < limit => {
                content.resize(content.len().saturating_mul(2).min(limit), 0);
            }
            TINFLStatus::HasMoreOutput => return Err("compressed data are too long for this machine"),
            TINFLStatus::NeedsMoreInput | TINFLStatus::FailedCannotMakeProgress => {
                return Err("compressed data are cut off");
            }
            _ => return Err("compressed data are broken"),
        }
    }
    content.truncate(filled);
    let word = |at: usize| input.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
    let (Some(sum), Some(len)) = (word(0), word(4)) else {
        return Err("compressed data are cut off");
    };
    if len != filled as u32 || sum != crc32(&content) {
        return Err("compressed data do not have their checksum");
    }
    let rest = input.len() - 8;
    Ok((content, bytes.len() - rest))
}

/// How long the header of a member is.
fn header_len(bytes: &[u8]) -> Option<usize> {
    const TEXT_AND_RESERVED: u8 = 0xe0;
    const HEADER_SUM: u8 = 2;
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    if !is_gzip(bytes) {
        return None;
    }
    let flags = *bytes.get(3)?;
    if flags & TEXT_AND_RESERVED != 0 {
        return None;
    }
    let mut at = 10;
    if flags & EXTRA != 0 {
        at += 2 + usize::from(u16::from_le_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
    }
    for string in [NAME, COMMENT] {
        if flags & string != 0 {
            at += bytes.get(at..)?.iter().position(|&byte| byte == 0)? + 1;
        }
    }
    if flags & HEADER_SUM != 0 {
        at += 2;
    }
    (at <= bytes.len()).then_some(at)
}

/// The checksum of RFC 1952, section 8, a byte at a time.
fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut index = 0;
        while index < 256 {
            let mut value = index as u32;
            let mut bit = 0;
            while bit < 8 {
                value = if value & 1 == 1 { value >> 1 ^ 0xedb8_8320 } else { value >> 1 };
                bit += 1;
            }
            table[index] = value;
            index += 1;
        }
        table
    };
    !bytes.iter().fold(!0, |sum: u32, &byte| TABLE[usize::from(sum as u8 ^ byte)] ^ sum >> 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `printf 'hello hello hello hello\n' | gzip -n9`
    const HELLO: [u8; 29] = [
        0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0xc8, 0x40,
        0x27, 0xb9, 0x00, 0x00, 0x88, 0x59, 0x0b, 0x18, 0x00, 0x00, 0x00,
    ];

    #[test]
    fn the_checksum_is_that_of_the_rfc() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn a_member_gives_its_content_and_its_length() {
        let mut bytes = HELLO.to_vec();
        bytes.extend_from_slice(b"behind");
        assert_eq!(unpack(&bytes, 1 << 20), Ok((b"hello hello hello hello\n".to_vec(), HELLO.len())));
    }

    #[test]
    fn content_beyond_the_limit_is_an_error() {
        assert!(unpack(&HELLO, 10).is_err());
    }

    #[test]
    fn what_is_cut_off_or_changed_is_an_error() {
        for len in 0..HELLO.len() {
            assert!(unpack(&HELLO[..len], 1 << 20).is_err());
        }
        for at in 10..HELLO.len() {
            for bit in 0..8 {
                let mut bytes = HELLO;
                bytes[at] ^= 1 << bit;
                assert!(unpack(&bytes, 1 << 20).is_err(), "byte {at} bit {bit}");
            }
        }
    }
}
