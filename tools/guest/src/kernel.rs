//! The kernels that a machine can boot, and how each is told what to run.

use crate::error::Doing;
use crate::image::elf;
use crate::{Error, Result};
use std::io::Read;
use std::path::{Path, PathBuf};

/// A kernel's file. Both kinds start the same agent from the same initial file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kernel {
    /// Ebb, a 64-bit ELF file that QEMU boots through PVH.
    Ebb(PathBuf),
    /// Linux, a bzImage; the reference that Ebb is compared with.
    Linux(PathBuf),
}

/// How a machine ended, as far as QEMU's exit status tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PowerState {
    /// The kernel switched the machine off.
    Off,
    /// The kernel panicked and said so.
    Panicked,
    /// The processor was reset: where no kernel asked for it, that is a triple fault.
    Reset,
    /// QEMU itself failed.
    Failed,
}

/// Where a bzImage has its mark, and the mark: the x86 boot protocol of Linux, "The Real-Mode Kernel Header".
const BZIMAGE_MARK_AT: usize = 0x202;
const BZIMAGE_MARK: &[u8] = b"HdrS";

impl Kernel {
    /// The kernel in a file: an ELF file is Ebb, a bzImage is Linux.
    pub fn open(path: &Path) -> Result<Self> {
        let mut start = Vec::new();
        std::fs::File::open(path)
            .and_then(|file| file.take(1024).read_to_end(&mut start))
            .doing(|| format!("reading {}", path.display()))?;
        if elf::is_elf(&start) {
            Ok(Self::Ebb(path.to_path_buf()))
        } else if start.get(BZIMAGE_MARK_AT..).is_some_and(|rest| rest.starts_with(BZIMAGE_MARK)) {
            Ok(Self::Linux(path.to_path_buf()))
        } else {
            Err(Error::NotAProgram {
                path: path.to_path_buf(),
                why: "neither an Ebb kernel nor a Linux bzImage".into(),
            })
        }
    }

    /// The file that QEMU loads.
    pub fn path(&self) -> &Path {
        match self {
            Self::Ebb(path) | Self::Linux(path) => path,
        }
    }

    /// A name for tables and messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ebb(_) => "Ebb",
            Self::Linux(_) => "Linux",
        }
    }

    /// Whether the agent can mount directories of the host: what a Linux has for that is seldom in its image.
    pub fn has_volumes(&self) -> bool {
        matches!(self, Self::Ebb(_))
    }

    /// The kernel's command line: start the program `init` as process 1 with `arguments`.
    pub(crate) fn command_line(&self, quiet: bool, extra: &str, init: &str, arguments: &[String]) -> String {
        let mut words = Vec::new();
        match self {
            Self::Ebb(_) => words.push(format!("init={init}")),
            Self::Linux(_) => {
                // What makes Linux boot fast and behave the same way every time; see "Toolchain" in the design.
                words.push(format!(
                    "console=ttyS0 panic=-1 nokaslr norandmaps mitigations=off transparent_hugepage=never tsc=reliable \
                     clocksource=tsc nowatchdog audit=0 apparmor=0 random.trust_cpu=on rdinit={init}"
                ));
            }
        }
        if quiet {
            words.push("quiet".into());
        }
        if !extra.is_empty() {
            words.push(extra.into());
        }
        words.push("--".into());
        // Quotes keep spaces in a word.
        let quoted = |word: &String| if word.contains(' ') { format!("\"{word}\"") } else { word.clone() };
        words.extend(arguments.iter().map(quoted));
        words.join(" ")
    }

    /// What QEMU's exit code says about the machine.
    pub(crate) fn power_state(&self, qemu_code: Option<i32>) -> PowerState {
        match (self, qemu_code) {
            // isa-debug-exit: QEMU exits with twice the value that the kernel wrote, plus one.
            (Self::Ebb(_), Some(33)) | (Self::Linux(_), Some(0)) => PowerState::Off,
            (Self::Ebb(_), Some(99)) => PowerState::Panicked,
            (Self::Ebb(_), Some(0)) => PowerState::Reset,
            _ => PowerState::Failed,
        }
    }

    /// Bytes of memory that the kernel needs for itself before it runs the first program.
    pub(crate) fn own_memory_bytes(&self) -> u64 {
        match self {
            Self::Ebb(_) => 24 << 20,
            Self::Linux(_) => 160 << 20,
        }
    }

    /// How much memory it takes to unpack an archive of so many bytes.
    pub(crate) fn unpacking_memory_bytes(&self, archive_bytes: u64) -> u64 {
        match self {
            // It gives the archive's memory back as it goes.
            Self::Ebb(_) => archive_bytes,
            // The archive and the files are in memory at the same time.
            Self::Linux(_) => archive_bytes.saturating_mul(2),
        }
    }

    /// The part of the console's text that tells of a panic, if there is one.
    pub(crate) fn panic_text<'a>(&self, log: &'a str) -> Option<&'a str> {
        let marker = match self {
            Self::Ebb(_) => "ebb: panic:",
            Self::Linux(_) => "Kernel panic - ",
        };
        log.find(marker).map(|at| {
            let line_start = log[..at].rfind('\n').map_or(0, |newline| newline + 1);
            log[line_start..].trim_end()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inits_arguments_come_last() {
        let kernel = Kernel::Ebb("ebb".into());
        let line = kernel.command_line(true, "log=all", "/agent", &["shell".into(), "/bin/sh".into()]);
        assert_eq!(line, "init=/agent quiet log=all -- shell /bin/sh");
    }

    #[test]
    fn a_panic_is_shown_from_its_first_line_on() {
        let kernel = Kernel::Ebb("ebb".into());
        let log = "hello\n[1.0] ebb: panic: index out of bounds\n  at main\n";
        assert_eq!(kernel.panic_text(log), Some("[1.0] ebb: panic: index out of bounds\n  at main"));
        assert_eq!(kernel.panic_text("all is well"), None);
    }

    #[test]
    fn a_reset_is_an_orderly_end_only_for_linux() {
        assert_eq!(Kernel::Linux("l".into()).power_state(Some(0)), PowerState::Off);
        assert_eq!(Kernel::Ebb("e".into()).power_state(Some(0)), PowerState::Reset);
        assert_eq!(Kernel::Ebb("e".into()).power_state(Some(33)), PowerState::Off);
    }
}
