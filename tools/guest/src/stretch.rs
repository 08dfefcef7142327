//! What an Ebb that was built with `--features stretch` says of how long it kept interrupts off.
//!
//! Such a kernel counts cycles of the time stamp counter; with [`COUNTED`] they are guest instructions, and the same in every run.

use std::fmt;

/// The file that says it.
pub const FILE: &str = "/proc/ebb/stretch";

/// Arguments of QEMU with which a guest's time is the number of its instructions.
pub const COUNTED: [&str; 2] = ["-icount", "shift=0,sleep=off"];

/// QEMU's processor model for it: the emulator counts each repetition of a string instruction, so it has no fast ones.
pub const CPU: &str = "max,-la57,-erms,-fsrm";

/// How long interrupts may be off, in guest instructions.
pub const BOUND: u64 = 500_000;

/// The longest stretch with interrupts off of some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// In guest instructions.
    pub instructions: u64,
    /// What it began with (`call 231`, `trap 14`, `idle`), and between which two places in the source most of it lies.
    pub what: String,
}

impl Stretch {
    /// From the first line of [`FILE`], wherever that stands in a line; `None` if the text is something else.
    pub fn read(line: &str) -> Option<Self> {
        let (_, text) = line.split_once("longest ")?;
        let (instructions, what) = text.trim().split_once(' ')?;
        Some(Stretch { instructions: instructions.parse().ok()?, what: what.to_owned() })
    }

    /// Whether it is longer than one may be.
    pub fn is_too_long(&self) -> bool {
        self.instructions > BOUND
    }
}

impl fmt::Display for Stretch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>9} {}", self.instructions, self.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_read_wherever_it_stands() {
        let text = "fuzz: longest 95400 call 231, 0 switches, 90000 from kernel/a.rs:57 to frame/b.rs:240\r";
        let stretch = Stretch::read(text).expect("a stretch");
        assert_eq!(stretch.instructions, 95_400);
        assert!(stretch.what.starts_with("call 231, 0 switches"));
        assert!(!stretch.is_too_long());
        assert_eq!(Stretch::read("no longest stretch"), None);
        assert_eq!(Stretch::read(""), None);
    }
}
