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

/// The strings of a new program.
#[derive(Clone, Copy, Debug)]
pub struct ProgramStrings<'a> {
    /// What stands in place of the first argument, for scripts.
    pub front: Option<&'a Strings>,
    /// The arguments.
    pub argv: &'a Strings,
    /// The environment.
    pub envp: &'a Strings,
}

impl<'a> ProgramStrings<'a> {
    /// How many arguments there are.
    pub fn argument_count(&self) -> usize {
        self.front.map_or(0, Strings::count) + self.argv.count() - self.replaced()
    }

    /// How many of `argv` are replaced.
    fn replaced(&self) -> usize {
        usize::from(self.front.is_some()).min(self.argv.count())
    }

    /// The bytes of the front, of the other arguments, and of the environment, which follow each other.
    fn bytes(&self) -> [&'a [u8]; 3] {
        let front = self.front.map_or(&[][..], |front| front.bytes_behind(0));
        [front, self.argv.bytes_behind(self.replaced()), self.envp.bytes_behind(0)]
    }

    /// Where an argument begins, counted from the first one's start.
    fn argument(&self, index: usize) -> usize {
        let Some(front) = self.front else { return self.argv.start(index) };
        match index.checked_sub(front.count()) {
            None => front.start(index),
            Some(index) => {
                let replaced = self.replaced();
                front.bytes_behind(0).len() + self.argv.start(replaced + index) - self.argv.start(replaced)
            }
        }
    }
}

/// A new stack that is to be written: it may be long, so it is written in parts.
#[derive(Debug)]
pub struct StackImage {
    /// The stack pointer: where it begins.
    pub pointer: usize,
    /// Behind all of it.
    pub top: usize,
    /// The strings of `argv`.
    pub arguments: Range<usize>,
    /// The strings of `envp`.
    pub environment: Range<usize>,
    /// The auxiliary vector, with its end.
    pub auxiliary: Vec<(u64, u64)>,
    /// Behind the words.
    words_end: usize,
    random_at: usize,
    random: [u8; 16],
    path: Vec<u8>,
}

/// Lays out a stack below `top` (16-byte aligned). `auxiliary` has what does not lie on the stack itself.
pub fn lay_out(
    top: usize,
    strings: &ProgramStrings<'_>,
    path: &[u8],
    random: [u8; 16],
    auxiliary: &[(u32, usize)],
) -> StackImage {
    let [front, argv, envp] = strings.bytes();
    let path_at = top - 8 - (path.len() + 1);
    let environment = path_at - envp.len()..path_at;
    let arguments = environment.start - argv.len() - front.len()..environment.start;
    let platform_at = (arguments.start - PLATFORM.len()) & !15;
    let random_at = platform_at - random.len();
    let mut vector: Vec<(u64, u64)> = auxiliary.iter().map(|&(kind, value)| (u64::from(kind), value as u64)).collect();
    vector.push((auxvec::AT_RANDOM.into(), random_at as u64));
    vector.push((auxvec::AT_EXECFN.into(), path_at as u64));
    vector.push((auxvec::AT_PLATFORM.into(), platform_at as u64));
    vector.push((auxvec::AT_NULL.into(), 0));
    let words = 1 + strings.argument_count() + 1 + strings.envp.count() + 1 + 2 * vector.len();
    let pointer = (random_at - words * 8) & !15;
    let words_end = pointer + words * 8;
    StackImage {
        pointer,
        top,
        arguments,
        environment,
        auxiliary: vector,
        words_end,
        random_at,
        random,
        path: path.to_vec(),
    }
}

impl StackImage {
    /// The bytes from `at` on (a multiple of 8), at most `most` (one as well) and at least 8, or up to the top.
    pub fn part(&self, at: usize, most: usize, strings: &ProgramStrings<'_>) -> Vec<u8> {
        let end = at.saturating_add(most).min(self.top);
        let mut bytes = Vec::with_capacity(end - at);
        while at + bytes.len() < end.min(self.words_end) {
            let word = self.word((at + bytes.len() - self.pointer) / 8, strings);
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        let [front, argv, envp] = strings.bytes();
        let behind_front = self.arguments.start + front.len();
        let path_at = self.environment.end;
        let pieces: [(usize, &[u8]); 6] = [
            (self.random_at, &self.random),
            (self.random_at + self.random.len(), PLATFORM),
            (self.arguments.start, front),
            (behind_front, argv),
            (self.environment.start, envp),
            (path_at, &self.path),
        ];
        for (start, piece) in pieces {
            let from = (at + bytes.len()).max(start);
            let Some(rest) = piece.get(from - start..).filter(|rest| !rest.is_empty() && from < end) else { continue };
            // Between pieces there are zeros.
            bytes.resize(from - at, 0);
            bytes.extend_from_slice(&rest[..rest.len().min(end - from)]);
        }
        bytes.resize(end - at, 0);
        bytes
    }

    /// One of the words that the stack begins with.
    fn word(&self, index: usize, strings: &ProgramStrings<'_>) -> u64 {
        let (argc, envc) = (strings.argument_count(), strings.envp.count());
        let Some(index) = index.checked_sub(1) else { return argc as u64 };
        if index < argc {
            return (self.arguments.start + strings.argument(index)) as u64;
        }
        let Some(index) = (index - argc).checked_sub(1) else { return 0 };
        if index < envc {
            return (self.environment.start + strings.envp.start(index)) as u64;
        }
        let Some(index) = (index - envc).checked_sub(1) else { return 0 };
        let (kind, value) = self.auxiliary.get(index / 2).copied().unwrap_or_default();
        if index.is_multiple_of(2) { kind } else { value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOP: usize = 0x7fff_ffff_f000;

    fn word(bytes: &[u8], index: usize) -> usize {
        let bytes = &bytes[index * 8..index * 8 + 8];
        usize::from_le_bytes(bytes.try_into().unwrap())
    }

    fn string<'a>(image: &StackImage, bytes: &'a [u8], address: usize) -> &'a [u8] {
        bytes[address - image.pointer..].split(|&byte| byte == 0).next().unwrap()
    }

    #[test]
    fn every_pointer_leads_to_its_string() {
        let front = Strings::from_slices(&[b"ls", b"-l"]).unwrap();
        let argv = Strings::from_slices(&[b"replaced", b""]).unwrap();
        let envp = Strings::from_slices(&[b"HOME=/", b"A=B"]).unwrap();
        let strings = ProgramStrings { front: Some(&front), argv: &argv, envp: &envp };
        let image = lay_out(TOP, &strings, b"/bin/ls", [7; 16], &[(auxvec::AT_PAGESZ, 4096)]);
        assert_eq!(image.pointer % 16, 0);
        let bytes = image.part(image.pointer, usize::MAX & !7, &strings);
        assert_eq!(image.pointer + bytes.len(), TOP);
        for most in [8, 16, 64, 4096] {
            let parts = (image.pointer..TOP).step_by(most).flat_map(|at| image.part(at, most, &strings));
            assert_eq!(parts.collect::<std::vec::Vec<u8>>(), bytes);
        }
        assert_eq!(word(&bytes, 0), 3);
        assert_eq!(string(&image, &bytes, word(&bytes, 1)), b"ls");
        assert_eq!(string(&image, &bytes, word(&bytes, 2)), b"-l");
        assert_eq!(string(&image, &bytes, word(&bytes, 3)), b"");
        assert_eq!(word(&bytes, 4), 0);
        assert_eq!(string(&image, &bytes, word(&bytes, 5)), b"HOME=/");
        assert_eq!(string(&image, &bytes, word(&bytes, 6)), b"A=B");
        assert_eq!(word(&bytes, 7), 0);
        assert_eq!((word(&bytes, 8), word(&bytes, 9)), (6, 4096));
        let random = word(&bytes, 11) - image.pointer;
        assert_eq!(bytes[random..random + 16], [7; 16]);
        assert_eq!(string(&image, &bytes, word(&bytes, 13)), b"/bin/ls");
        assert_eq!(string(&image, &bytes, word(&bytes, 15)), b"x86_64");
        assert_eq!((word(&bytes, 16), word(&bytes, 17)), (0, 0));
        assert_eq!(image.arguments.len(), 7);
    }
}
