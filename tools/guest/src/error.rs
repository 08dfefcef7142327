//! What can go wrong between "run this program" and its end, each case by itself, so that callers can react to it.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The result of everything here that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a guest could not be started or a program not be run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// QEMU is not installed.
    #[error("{0} is not installed (on Debian and Ubuntu: apt-get install qemu-system-x86)")]
    QemuMissing(&'static str),

    /// KVM was asked for and is not there.
    #[error("KVM cannot be used: {0}")]
    KvmUnusable(String),

    /// A part of Ebb itself has not been built.
    #[error("{what} is not there ({looked_at}); `make` builds it, {variable} names another")]
    NotBuilt {
        /// Which part.
        what: &'static str,
        /// Where it was expected.
        looked_at: String,
        /// The environment variable that overrides the place.
        variable: &'static str,
    },

    /// A terminal was asked for, and standard input is none.
    #[error("-t needs a terminal on standard input; leave it out for a pipe or a file")]
    NoTerminal,

    /// No such program, on the host or in the root file system.
    #[error("{0}: no such program")]
    NoSuchProgram(String),

    /// The file is no program that a guest could run.
    #[error("{path}: {why}", path = .path.display())]
    NotAProgram {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },

    /// A library or an interpreter that a program needs does not exist on the host.
    #[error("{path} needs {needed}, which is not on this machine", path = .path.display())]
    LibraryMissing {
        /// The program or library.
        path: PathBuf,
        /// What it asks for.
        needed: String,
    },

    /// The root file system cannot be read.
    #[error("{path}: {why}", path = .path.display())]
    BadRootfs {
        /// The directory or archive.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },

    /// An image cannot be a disk.
    #[error("{path}: {why}", path = .path.display())]
    BadDisk {
        /// The image.
        path: PathBuf,
        /// What is wrong with it, and what helps.
        why: String,
    },

    /// A directory cannot be a volume.
    #[error("{path}: {why}", path = .path.display())]
    BadVolume {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it, and what helps.
        why: String,
    },

    /// A kernel cannot mount directories of the host.
    #[error("directories of this machine (--volume) are for Ebb kernels only")]
    NoVolumes,

    /// Ports are published by QEMU's own network alone.
    #[error("--publish needs --network user: a tap device's ports are reached at the guest's own address")]
    NoPublishing,

    /// The machine would not have enough memory to come up, or this host has not enough for it.
    #[error("a machine with {given} MiB of memory cannot be: {why}")]
    TooLittleMemory {
        /// What the machine got.
        given: u64,
        /// What it was needed for.
        why: String,
    },

    /// The guest refused to start the program.
    #[error("cannot {doing}: {} (errno {errno})", io::Error::from_raw_os_error(*.errno))]
    Spawn {
        /// What the guest was doing.
        doing: String,
        /// Linux's number of the error.
        errno: i32,
    },

    /// A bound on the time of reclamation was asked for, of a kernel that knows no such thing.
    #[error("this kernel has no controller `reclaim`, so it cannot bound the time of the program's end")]
    NoReclaim,

    /// The bound on the time of reclamation is less than what is charged for the program before its first instruction, which is this.
    #[error("the bound is too small for the program to start: it takes at least {0:?}")]
    BoundTooSmall(Duration),

    /// The time limit passed.
    #[error("timed out after {} s", .0.as_secs_f64())]
    TimedOut(Duration),

    /// The caller interrupted the run before the program started, with this signal.
    #[error("interrupted by signal {0}")]
    Interrupted(u8),

    /// The kernel panicked; this is what it printed.
    #[error("the kernel panicked:\n{0}")]
    Panicked(String),

    /// QEMU ended or the line broke for another reason.
    #[error("the machine stopped: {why}{}", .log.as_deref().map(|log| format!("\nlast lines of its console:\n{log}")).unwrap_or_default())]
    Died {
        /// What is known.
        why: String,
        /// The end of the kernel's console, if there was anything.
        log: Option<String>,
    },

    /// A tool of the host's that makes images is not installed.
    #[error("{tool} is not on this machine (on Debian and Ubuntu: apt-get install {package})")]
    ToolMissing {
        /// The tool, or a file that it needs.
        tool: &'static str,
        /// The package that has it.
        package: &'static str,
    },

    /// A tool that makes images failed.
    #[error("{said}\n{tool} failed; {advice}")]
    ImageNotMade {
        /// The tool.
        tool: &'static str,
        /// The last of what it wrote.
        said: String,
        /// What may help.
        advice: &'static str,
    },

    /// An operation on the host failed.
    #[error("{doing}: {error}")]
    Io {
        /// What was being done.
        doing: String,
        /// The system's error.
        #[source]
        error: io::Error,
    },
}

/// Says what was being done when an operation failed.
pub(crate) trait Doing<T> {
    /// Names the operation, for a person.
    fn doing(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Error::Io { doing: what(), error })
    }
}
