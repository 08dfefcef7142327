//! What a workload can have very many of.

/// A class of objects.
pub struct Row {
    /// Its name in `user/bench/groups`.
    pub key: &'static str,
    /// What it is.
    pub title: &'static str,
    /// The most of them that are made.
    pub most: u64,
}

/// How many of them there are in the columns of the tables.
pub const COUNTS: [u64; 5] = [1, 100, 10_000, 100_000, 1_000_000];

/// How many of most classes are made at most.
const MANY: u64 = 100_000;

const fn row(key: &'static str, title: &'static str) -> Row {
    Row { key, title, most: MANY }
}

/// The class of a workload that makes nothing: what remains is the process.
pub const NOTHING: &str = "nothing";

/// The class that leaves nothing behind, and shows what it costs to start a process in a group.
pub const STARTS: &str = "starts";

/// The rows in the tables' order.
pub const ROWS: &[Row] = &[
    Row { key: NOTHING, title: "nothing", most: 1 },
    Row { key: "vmas", title: "adjacent VMAs", most: 1_000_000 },
    row("sparse", "VMAs with a page and a page table each"),
    Row { key: "pages", title: "anonymous pages", most: 1_000_000 },
    row("shared-pages", "shared anonymous pages"),
    row("memfd-pages", "pages of a memfd"),
    row("file-mappings", "mappings of a file, read"),
    row("descriptors", "descriptors of one open file"),
    row("open-one", "open files of one file"),
    row("open-many", "open files of a file each"),
    row("unlinked", "unlinked files of a page"),
    row("record-locks", "record locks, 1,000 a file"),
    row("flocks", "open files with flock, 1,000 a file"),
    row("pipes", "pipes"),
    row("full-pipes", "full pipes"),
    row("fifos", "FIFOs, open and unlinked"),
    row("socket-pairs", "pairs of Unix sockets"),
    row("socket-data", "pairs of Unix sockets, 4 KiB in flight"),
    row("rights", "descriptors in flight"),
    row("eventfds", "eventfds"),
    row("epoll-sets", "epoll sets"),
    row("epoll-items", "epoll items, an eventfd each"),
    row("timerfds", "timerfds, armed"),
    row("posix-timers", "POSIX timers, armed"),
    row("signalfds", "signalfds"),
    row("inotify-instances", "inotify instances"),
    row("inotify-watches", "inotify watches of a file each"),
    row("ptys", "pseudoterminals, both ends open"),
    row("threads", "threads, a futex each"),
    row("threads-read", "threads that read a pipe"),
    row("futex-waiters", "threads, one private futex"),
    row("shared-futex-waiters", "threads, one shared futex"),
    row("processes", "child processes, blocked"),
    row("zombies", "zombies"),
    Row { key: STARTS, title: "fork + exec + exit + wait", most: 100 },
];
