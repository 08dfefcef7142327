//! What is measured, and what was known before.
//!
//! The figures under `minimal` and `asterinas` were measured once with other programs in the same way (guest
//! instructions, same emulator): a Linux 6.1 that was built with little else than what the measurement needs, and
//! Asterinas 0.18. They are Ebb's yardstick where both were not run here.

use anyhow::{Result, bail};

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

/// The row that has a program of its own.
pub const BOOT: &str = "boot";

/// The rows of the first table, in its order.
pub const ROWS: &[Row] = &[
    known(BOOT, "boot to the first user instruction", 0.33e9, None),
    known("null", "null system call (getppid)", 222.0, Some(541.0)),
    row("getpid", "getpid"),
    row("monotonic", "clock_gettime(CLOCK_MONOTONIC), vDSO"),
    row("realtime", "clock_gettime(CLOCK_REALTIME), vDSO"),
    row("gettimeofday", "gettimeofday, vDSO"),
    row("time", "time, vDSO"),
    row("getcpu", "getcpu, vDSO"),
    row("read-1", "read 1 byte, file"),
    row("read-4k", "read 4 KiB, file"),
    row("write-1", "write 1 byte, file"),
    row("write-4k", "write 4 KiB, file"),
    row("read-zero-1", "read 1 byte, /dev/zero"),
    row("write-null-1", "write 1 byte, /dev/null"),
    row("sendfile-null", "sendfile 1 MB, file to /dev/null"),
    row("sendfile-file", "sendfile 1 MB, file to file"),
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
    row("unix-round-trip", "Unix socket round trip between processes"),
    row("tcp-round-trip", "tcp round trip"),
    row("udp-round-trip", "udp round trip"),
    row("tcp-connect", "tcp connect + accept + close"),
    row("poll-100", "poll of 100 descriptors"),
];

/// How many of something there are in the columns of the second table.
pub const COUNTS: [&str; 3] = ["1", "100", "10000"];

/// A line of the second table: what something costs where there are many.
pub struct RowOfMany {
    /// Its name in the output of the program `many`, which puts `/` and the count behind it.
    pub key: &'static str,
    /// What it is. `N` stands for the count.
    pub title: &'static str,
}

const fn many(key: &'static str, title: &'static str) -> RowOfMany {
    RowOfMany { key, title }
}

/// The rows of the second table, in its order.
pub const MANY: &[RowOfMany] = &[
    many("descriptors-dup-close", "dup + close among N descriptors"),
    many("descriptors-fork", "fork + exit + wait with N descriptors"),
    many("descriptors-fork-after", "fork + exit + wait after N descriptors were closed"),
    many("descriptors-end", "end of a process with N eventfds"),
    many("pipes-end", "end of a process with N pipes"),
    many("pairs-end", "end of a process with N pairs of Unix sockets"),
    many("threads-create-join", "thread made, ended and joined, among N threads"),
    many("threads-times", "times, N threads"),
    many("threads-signal", "signal to a process of N threads, with handler"),
    many("threads-yield", "yield, N threads wait"),
    many("threads-end", "end of a process with N threads"),
    many("futex-wake-elsewhere", "futex wake of nobody, N wait on another"),
    many("futex-round-trip-among", "futex round trip, N wait on the same"),
    many("futex-interrupt-all", "signal to each of N that wait on one futex"),
    many("futex-wake-all", "futex wake of N, until all have run"),
    many("futex-requeue-all", "futex requeue of N"),
    many("processes-fork", "fork + exit + wait, N children"),
    many("processes-fork-in-group", "fork + setpgid + exit + wait, N in the group"),
    many("processes-wait-one", "wait for a child that runs, N children"),
    many("processes-wait-any", "wait for any child, N children run"),
    many("processes-find", "kill(pid, 0), N processes"),
    many("processes-setpgid", "setpgid, out of a group of N and back"),
    many("processes-uptime", "read of /proc/uptime, N processes"),
    many("processes-stat", "read of /proc/stat, N processes"),
    many("processes-kill-group", "signal to a group of N"),
    many("processes-orphaned", "end of a process with N children"),
    many("processes-end", "SIGKILL to a group of N, and wait for all"),
    many("mappings-map-unmap", "mmap + munmap of a page among N mappings"),
    many("mappings-fault", "page fault + madvise(DONTNEED) among N mappings"),
    many("mappings-protect", "mprotect, twice, among N mappings"),
    many("mappings-maps", "read of /proc/self/maps, N mappings"),
    many("mappings-fork", "fork + exit + wait with N mappings"),
    many("mappings-end", "end of a process with N mappings"),
    many("epoll-wait-64", "epoll_wait for 64, N are ready"),
    many("epoll-modify", "epoll_ctl MOD, N are ready"),
    many("epoll-wait-1", "write + epoll_wait + read, 1 of N becomes ready"),
    many("epoll-add-delete", "epoll_ctl ADD + DEL, N in the set"),
    many("poll-all", "poll of N descriptors"),
    many("epoll-end", "end of a process with N eventfds in an epoll set"),
    many("siblings-create-unlink", "create + close + unlink among N names"),
    many("siblings-stat", "stat among N names"),
    many("siblings-rename", "rename, twice, among N names"),
    many("siblings-list", "list of a directory of N"),
    many("siblings-getcwd", "getcwd, N siblings"),
    many("unlinked-end", "end of a process with N unlinked files"),
    many("locks-lock-unlock", "lock + unlock between N locks of a file"),
    many("locks-ask", "F_GETLK between N locks of a file"),
    many("locks-end", "end of a process with N locks"),
    many("timers-arm-disarm", "timerfd armed and disarmed, N armed"),
    many("timers-create-delete", "POSIX timer made, armed and deleted, N timerfds armed"),
    many("timers-end", "end of a process with N armed timerfds"),
];

/// The rows of the table of waits, in its order: what a process has that ends, by its name in the output of the program `watch`.
pub const WATCHED: &[(&str, &str)] = &[
    ("watch-nothing", "nothing"),
    ("watch-eventfds", "60,000 eventfds"),
    ("watch-socket-pairs", "30,000 pairs of Unix sockets"),
    ("watch-unlinked-files", "60,000 unlinked files"),
    ("watch-children", "2,000 children"),
    ("watch-threads", "10,000 threads"),
];

/// Checks that the rows which were asked for are among `keys`.
///
/// # Errors
/// One is not; the message names those that there are.
pub fn check_names(asked: &[String], keys: impl Iterator<Item = &'static str>) -> Result<()> {
    let keys: Vec<_> = keys.collect();
    match asked.iter().find(|name| !keys.contains(&name.as_str())) {
        Some(unknown) => bail!("there is no row {unknown}; there are {}", keys.join(", ")),
        None => Ok(()),
    }
}

/// The names of all rows.
pub fn keys() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.key).chain(MANY.iter().map(|row| row.key)).chain(WATCHED.iter().map(|(key, _)| *key))
}
