//! What is measured, and what was known before.
//!
//! The figures under `minimal` and `asterinas` were measured once with other programs in the same way (guest
//! instructions, same emulator): a Linux 6.1 that was built with little else than what the measurement needs, and
//! Asterinas 0.18. They are Ebb's yardstick where both were not run here.

/// One figure.
pub struct Row {
    /// Its name in the output of the measuring programs.
    pub key: &'static str,
    /// What it is.
    pub title: &'static str,
    /// The minimal Linux.
    pub minimal: Option<f64>,
    /// Asterinas.
    pub asterinas: Option<f64>,
}

const fn row(key: &'static str, title: &'static str) -> Row {
    Row { key, title, minimal: None, asterinas: None }
}

const fn known(key: &'static str, title: &'static str, minimal: f64, asterinas: Option<f64>) -> Row {
    Row { key, title, minimal: Some(minimal), asterinas }
}

/// All rows in the order of the table.
pub const ROWS: &[Row] = &[
    known("boot", "boot to the first user instruction", 0.33e9, None),
    known("null", "null system call (getppid)", 222.0, Some(541.0)),
    row("getpid", "getpid"),
    row("read-1", "read 1 byte, file"),
    row("read-4k", "read 4 KiB, file"),
    row("write-1", "write 1 byte, file"),
    row("write-4k", "write 4 KiB, file"),
    row("read-zero-1", "read 1 byte, /dev/zero"),
    row("write-null-1", "write 1 byte, /dev/null"),
    known("stat", "stat", 2067.0, Some(3971.0)),
    known("fstat", "fstat", 651.0, None),
    known("open-close", "open + close", 3280.0, Some(5758.0)),
    known("pipe-round-trip", "pipe round trip between processes", 7359.0, Some(10247.0)),
    row("context-switch", "context switch (yield)"),
    known("fork-exit-wait", "fork + exit + wait", 66_119.0, Some(809_000.0)),
    known("fork-exec-exit", "fork + exec + exit + wait", 139_414.0, None),
    known("anonymous-fault", "page fault, anonymous memory", 1902.0, Some(6170.0)),
    row("file-fault", "page fault, file, one in 64 KiB"),
    row("file-page", "page of a file read in order"),
    row("mmap-munmap", "mmap + munmap of a page"),
    row("signal", "signal to oneself, with handler"),
    row("futex-round-trip", "futex round trip between threads"),
    row("poll-100", "poll of 100 descriptors"),
];
