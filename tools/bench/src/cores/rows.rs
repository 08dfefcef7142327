//! What is measured on one core and on two.

/// What the two workers of a row have in common.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// They call no kernel: what two cores of the emulator reach.
    Nothing,
    /// Processes with files, pipes and memory of their own.
    Kernel,
    /// Threads of one process.
    State,
}

/// A row of the table.
pub struct Row {
    /// Its name in the output of `user/bench/cores.c`.
    pub key: &'static str,
    /// What it is.
    pub title: &'static str,
    /// What the two workers have in common.
    pub sharing: Sharing,
}

const fn independent(key: &'static str, title: &'static str) -> Row {
    Row { key, title, sharing: Sharing::Kernel }
}

const fn shared(key: &'static str, title: &'static str) -> Row {
    Row { key, title, sharing: Sharing::State }
}

/// The row of what two cores reach at best.
pub const CEILING: &str = "compute";

/// The rows in the table's order.
pub const ROWS: &[Row] = &[
    Row { key: CEILING, title: "user computation, 1,000 steps", sharing: Sharing::Nothing },
    independent("null", "null system call (getppid)"),
    independent("read-1", "read 1 byte, file"),
    independent("read-4k", "read 4 KiB, file"),
    independent("write-1", "write 1 byte, file"),
    independent("write-4k", "write 4 KiB, file"),
    independent("pipe", "write + read 1 byte, pipe"),
    independent("open-close", "open + close"),
    independent("stat", "stat"),
    independent("anonymous-fault", "page fault, anonymous memory"),
    independent("futex-round-trip", "futex round trip between threads of a core"),
    independent("fork-exec-wait", "fork + exec + exit + wait"),
    independent("mmap-munmap", "mmap + munmap"),
    shared("shared-read-1", "read 1 byte, same file"),
    shared("shared-read-4k", "read 4 KiB, same file"),
    shared("shared-write-1", "write 1 byte, same file"),
    shared("shared-write-4k", "write 4 KiB, same file"),
    shared("shared-open-close", "open + close, same file"),
    shared("shared-create-unlink", "create + unlink, same directory"),
    shared("shared-anonymous-fault", "page fault, same address space"),
    shared("shared-mmap-munmap", "mmap + munmap, same address space"),
    shared("shared-futex-wake", "futex wake, same word"),
    shared("shared-pipe", "a byte from one thread to the other, pipe"),
    shared("shared-dup-close", "dup + close, same descriptors"),
];
