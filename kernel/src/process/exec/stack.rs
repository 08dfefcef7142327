//! What a new program finds on its stack: see getauxval(3) and the System V ABI for x86-64, section 3.4.1.
//!
//! ```text
//!   sp -> argc | argv pointers | 0 | envp pointers | 0 | auxiliary vector | padding
//!         16 random bytes | platform | strings of argv | strings of envp | path of the program | 8 zeros <- top
//! ```

use alloc::vec;
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
    /// The auxiliary vector, with its end: kinds and values in turn.
    pub auxiliary: Vec<u64>,
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
    let on_stack = [
        (auxvec::AT_RANDOM, random_at),
        (auxvec::AT_EXECFN, path_at),
        (auxvec::AT_PLATFORM, platform_at),
        (auxvec::AT_NULL, 0),
    ];
    let mut vector = vec![0; 2 * (auxiliary.len() + on_stack.len())];
    for (pair, &(kind, value)) in vector.as_chunks_mut().0.iter_mut().zip(auxiliary.iter().chain(&on_stack)) {
        *pair = [u64::from(kind), value as u64];
    }
    let words = 1 + strings.argument_count() + 1 + strings.envp.count() + 1 + vector.len();
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
        let mut bytes = vec![0; end - at];
        let words = bytes.get_mut(..self.words_end.min(end).saturating_sub(at)).unwrap_or_default();
        self.write_words((at - self.pointer) / 8, words.as_chunks_mut().0, strings);
        let [front, argv, envp] = strings.bytes();
        let pieces: [(usize, &[u8]); 6] = [
            (self.random_at, &self.random),
            (self.random_at + self.random.len(), PLATFORM),
            (self.arguments.start, front),
            (self.arguments.start + front.len(), argv),
            (self.environment.start, envp),
            (self.environment.end, &self.path),
        ];
        for (start, piece) in pieces {
            let from = at.max(start);
            let (Some(rest), Some(to)) = (piece.get(from - start..), bytes.get_mut(from - at..)) else { continue };
            let len = rest.len().min(to.len());
            to[..len].copy_from_slice(&rest[..len]);
        }
        bytes
    }

    /// Writes some of the words that the stack begins with, from number `first` on.
    fn write_words(&self, first: usize, words: &mut [[u8; 8]], strings: &ProgramStrings<'_>) {
        let arguments = 1..1 + strings.argument_count();
        let environment = arguments.end + 1..arguments.end + 1 + strings.envp.count();
        let auxiliary = environment.end + 1..environment.end + 1 + self.auxiliary.len();
        if let (0, Some(word)) = (first, words.first_mut()) {
            *word = strings.argument_count().to_le_bytes();
        }
        let (from, to) = common(first, words, arguments);
        for (index, word) in (from..).zip(to) {
            *word = (self.arguments.start + strings.argument(index)).to_le_bytes();
        }
        let (from, to) = common(first, words, environment);
        for (index, word) in (from..).zip(to) {
            *word = (self.environment.start + strings.envp.start(index)).to_le_bytes();
        }
        let (from, to) = common(first, words, auxiliary);
        for (value, word) in self.auxiliary.get(from..).unwrap_or_default().iter().zip(to) {
            *word = value.to_le_bytes();
        }
    }
}

/// What `words`, of which the first has number `first`, have in common with a range of numbers: where that begins in the range, and the words.
fn common(first: usize, words: &mut [[u8; 8]], range: Range<usize>) -> (usize, &mut [[u8; 8]]) {
    let start = range.start.max(first);
    let end = range.end.min(first + words.len());
    (start - range.start, words.get_mut(start - first..end.saturating_sub(first)).unwrap_or_default())
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
