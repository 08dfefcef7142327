//! What a new program finds on its stack: see getauxval(3) and the System V ABI for x86-64, section 3.4.1.
//!
//! ```text
//!   sp -> argc | argv pointers | 0 | envp pointers | 0 | auxiliary vector | padding
//!         16 random bytes | platform | strings of argv | strings of envp | path of the program | 8 zeros <- top
//! ```

use alloc::vec::Vec;
use core::ops::Range;

use linux_raw_sys::auxvec;

use super::strings::Strings;
use crate::arch::PLATFORM;
use crate::error::{Errno, Result};

/// The contents of a new stack.
#[derive(Debug)]
pub struct StackImage {
    /// The stack pointer: where `bytes` go.
    pub pointer: usize,
    /// Everything from there to the top.
    pub bytes: Vec<u8>,
    /// The strings of `argv`.
    pub arguments: Range<usize>,
    /// The strings of `envp`.
    pub environment: Range<usize>,
    /// The auxiliary vector, with its end.
    pub auxiliary: Vec<(u64, u64)>,
}

/// Lays out a stack below `top` (16-byte aligned). `auxiliary` has what does not lie on the stack itself.
///
/// # Errors
/// ENOMEM.
pub fn build(
    top: usize,
    argv: &Strings,
    envp: &Strings,
    path: &[u8],
    random: [u8; 16],
    auxiliary: &[(u32, usize)],
) -> Result<StackImage> {
    let path_at = top - 8 - (path.len() + 1);
    let environment = path_at - envp.bytes().len()..path_at;
    let arguments = environment.start - argv.bytes().len()..environment.start;
    let platform_at = (arguments.start - PLATFORM.len()) & !15;
    let random_at = platform_at - random.len();
    let mut vector: Vec<(u64, u64)> = auxiliary.iter().map(|&(kind, value)| (u64::from(kind), value as u64)).collect();
    vector.push((auxvec::AT_RANDOM.into(), random_at as u64));
    vector.push((auxvec::AT_EXECFN.into(), path_at as u64));
    vector.push((auxvec::AT_PLATFORM.into(), platform_at as u64));
    vector.push((auxvec::AT_NULL.into(), 0));
    let words = 1 + argv.count() + 1 + envp.count() + 1 + 2 * vector.len();
    let pointer = (random_at - words * 8) & !15;

    let mut bytes = Vec::new();
    bytes.try_reserve_exact(top - pointer).map_err(|_| Errno::ENOMEM)?;
    let mut word = |value: u64| bytes.extend_from_slice(&value.to_le_bytes());
    word(argv.count() as u64);
    for (strings, start) in [(argv, arguments.start), (envp, environment.start)] {
        let mut at = start;
        for string in strings.iter() {
            word(at as u64);
            at += string.len() + 1;
        }
        word(0);
    }
    for &(kind, value) in &vector {
        word(kind);
        word(value);
    }
    bytes.resize(random_at - pointer, 0);
    bytes.extend_from_slice(&random);
    bytes.extend_from_slice(PLATFORM);
    bytes.resize(arguments.start - pointer, 0);
    bytes.extend_from_slice(argv.bytes());
    bytes.extend_from_slice(envp.bytes());
    bytes.extend_from_slice(path);
    bytes.resize(top - pointer, 0);
    Ok(StackImage { pointer, bytes, arguments, environment, auxiliary: vector })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOP: usize = 0x7fff_ffff_f000;

    fn word(image: &StackImage, index: usize) -> usize {
        let bytes = &image.bytes[index * 8..index * 8 + 8];
        usize::from_le_bytes(bytes.try_into().unwrap())
    }

    fn string(image: &StackImage, address: usize) -> &[u8] {
        image.bytes[address - image.pointer..].split(|&byte| byte == 0).next().unwrap()
    }

    #[test]
    fn every_pointer_leads_to_its_string() {
        let argv = Strings::from_slices(&[b"ls", b"-l", b""]).unwrap();
        let envp = Strings::from_slices(&[b"HOME=/", b"A=B"]).unwrap();
        let image = build(TOP, &argv, &envp, b"/bin/ls", [7; 16], &[(auxvec::AT_PAGESZ, 4096)]).unwrap();
        assert_eq!(image.pointer % 16, 0);
        assert_eq!(image.pointer + image.bytes.len(), TOP);
        assert_eq!(word(&image, 0), 3);
        assert_eq!(string(&image, word(&image, 1)), b"ls");
        assert_eq!(string(&image, word(&image, 2)), b"-l");
        assert_eq!(string(&image, word(&image, 3)), b"");
        assert_eq!(word(&image, 4), 0);
        assert_eq!(string(&image, word(&image, 5)), b"HOME=/");
        assert_eq!(string(&image, word(&image, 6)), b"A=B");
        assert_eq!(word(&image, 7), 0);
        assert_eq!((word(&image, 8), word(&image, 9)), (6, 4096));
        let random = word(&image, 11) - image.pointer;
        assert_eq!(image.bytes[random..random + 16], [7; 16]);
        assert_eq!(string(&image, word(&image, 13)), b"/bin/ls");
        assert_eq!(string(&image, word(&image, 15)), b"x86_64");
        assert_eq!((word(&image, 16), word(&image, 17)), (0, 0));
        assert_eq!(image.arguments.len(), 7);
    }
}
