//! What is measured of programs whose files are on a disk.

/// A row of the table.
pub struct Row {
    /// Its name in the output of `user/bench/disks`.
    pub key: &'static str,
    /// What it is.
    pub title: &'static str,
}

const fn row(key: &'static str, title: &'static str) -> Row {
    Row { key, title }
}

/// The rows in the table's order.
pub const ROWS: &[Row] = &[
    row("read-4k", "read 64 MiB in order, 4 KiB each"),
    row("read-4k-again", "the same, when it is in memory"),
    row("read-1m", "read 64 MiB in order, 1 MiB each"),
    row("read-4k-direct", "read 16 MiB in order, 4 KiB each, O_DIRECT"),
    row("read-1m-direct", "read 64 MiB in order, 1 MiB each, O_DIRECT"),
    row("random-read-4k", "4,096 random reads of 4 KiB"),
    row("random-read-1m", "64 random reads of 1 MiB"),
    row("random-read-4k-direct", "4,096 random reads of 4 KiB, O_DIRECT"),
    row("random-read-1m-direct", "64 random reads of 1 MiB, O_DIRECT"),
    row("write-4k", "write a file of 64 MiB, 4 KiB each"),
    row("write-1m", "write a file of 64 MiB, 1 MiB each"),
    row("write-4k-direct", "write a file of 16 MiB, 4 KiB each, O_DIRECT"),
    row("write-1m-direct", "write a file of 64 MiB, 1 MiB each, O_DIRECT"),
    row("write-4k-fsync", "write a file, 500 times 4 KiB and fsync"),
    row("random-write-4k", "4,096 random writes of 4 KiB"),
    row("random-write-1m", "64 random writes of 1 MiB"),
    row("random-write-4k-direct", "4,096 random writes of 4 KiB, O_DIRECT"),
    row("random-write-1m-direct", "64 random writes of 1 MiB, O_DIRECT"),
    row("random-write-4k-fsync", "500 random writes of 4 KiB, each with fsync"),
    row("sqlite-speed", "sqlite3, inserts, selects, updates, deletes"),
    row("sqlite-inserts", "sqlite3, 200 inserts, a transaction each"),
    row("sqlite-inserts-wal", "sqlite3, the same with a write-ahead log"),
    row("tar-x", "`tar x` of 5,000 files"),
    row("rm-r", "`rm -r` of 5,000 files"),
    row("ls-cold", "`ls -lR` of 5,000 files, not in memory"),
    row("git-status-cold", "`git status` of 5,000 files, not in memory"),
    row("git-status", "`git status` of 5,000 files"),
    row("grep-cold", "`grep -r` in 5,000 files, not in memory"),
    row("grep", "`grep -r` in 5,000 files"),
    row("python-cold", "`python3 -c pass`, not in memory"),
];
