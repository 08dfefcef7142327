//! The exit code of every way to fail, so that scripts can tell them apart.
//!
//! The codes that others use in the same sense keep it: 124 of `timeout`, 125 to 127 of `env`, `nice` and shells.

use ebb_guest::Error;

/// The command line makes no sense.
pub const USAGE: u8 = 120;
/// Something that Ebb needs is not on this machine.
pub const INCOMPLETE: u8 = 121;

/// The codes, for `--help`.
pub const TABLE: &str = "\
Exit codes:
  the program's own, or 128+n if signal n ended it; and of ebb itself:
  118  QEMU failed, the machine stopped, an image could not be made, or something failed on the host
  119  the root file system cannot be read, or a disk or volume cannot be used
  120  the command line makes no sense
  121  QEMU, KVM, another tool or a part of Ebb is missing (`ebb doctor` says more), or the kernel cannot do what was asked for
  122  not a program for x86-64 Linux, a corrupt ELF file, or a library is missing
  123  too little memory
  124  the time limit passed
  125  the kernel panicked
  126  the program was found but cannot be executed, or not within the bound of --reclaim-within
  127  no such program";

const ENOENT: i32 = 2;

/// The exit code of an error.
pub fn of(error: &Error) -> u8 {
    match error {
        Error::Died { .. } | Error::Io { .. } | Error::ImageNotMade { .. } => 118,
        Error::BadRootfs { .. } | Error::BadDisk { .. } | Error::BadVolume { .. } => 119,
        Error::QemuMissing(_)
        | Error::KvmUnusable(_)
        | Error::NotBuilt { .. }
        | Error::ToolMissing { .. }
        | Error::NoReclaim
        | Error::NoVolumes => INCOMPLETE,
        Error::NoTerminal | Error::NoPublishing => USAGE,
        Error::NotAProgram { .. } | Error::LibraryMissing { .. } => 122,
        Error::TooLittleMemory { .. } => 123,
        Error::TimedOut(_) => 124,
        Error::Panicked(_) => 125,
        Error::Spawn { errno: ENOENT, .. } | Error::NoSuchProgram(_) => 127,
        Error::Spawn { .. } | Error::BoundTooSmall(_) => 126,
        Error::Interrupted(signal) => 128_u8.wrapping_add(*signal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_in_the_table() {
        let text = || "x".to_owned();
        let path = || "x".into();
        let errors = [
            Error::Died { why: text(), log: None },
            Error::BadRootfs { path: path(), why: text() },
            Error::BadDisk { path: path(), why: text() },
            Error::BadVolume { path: path(), why: text() },
            Error::NoVolumes,
            Error::QemuMissing("qemu"),
            Error::ToolMissing { tool: "tool", package: "package" },
            Error::ImageNotMade { tool: "tool", said: text(), advice: "help" },
            Error::NotAProgram { path: path(), why: text() },
            Error::TooLittleMemory { given: 1, why: text() },
            Error::TimedOut(std::time::Duration::from_secs(1)),
            Error::Panicked(text()),
            Error::Spawn { doing: text(), errno: 13 },
            Error::NoSuchProgram(text()),
            Error::NoReclaim,
            Error::BoundTooSmall(std::time::Duration::from_micros(111)),
        ];
        for code in errors.iter().map(of).chain([USAGE]) {
            assert!(TABLE.contains(&format!("\n  {code}  ")), "{code}");
        }
    }
}
