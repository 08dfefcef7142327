//! What is measured of sockets that talk to each other.

/// What a figure counts, and by what it is divided.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Guest instructions for each operation.
    Instructions,
    /// Guest instructions for each KiB.
    InstructionsPerKib,
    /// Bytes of memory for each connection.
    Bytes,
}

impl Unit {
    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Instructions => "instructions",
            Unit::InstructionsPerKib => "instructions per KiB",
            Unit::Bytes => "bytes",
        }
    }
}

/// Who talks to whom.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Talk {
    /// The program's own sockets.
    Own,
    /// Servers of Debian's and programs that ask them, which are on a disk.
    Servers,
}

/// A row of the table.
pub struct Row {
    /// Its name in the output of `user/bench/network`.
    pub key: &'static str,
    /// What it is.
    pub title: &'static str,
    /// What its figures are.
    pub unit: Unit,
    /// What Ebb has to stay below, besides Linux.
    pub bound: Option<f64>,
    /// Whose sockets they are.
    pub talk: Talk,
}

const fn row(key: &'static str, title: &'static str, unit: Unit) -> Row {
    Row { key, title, unit, bound: None, talk: Talk::Own }
}

const fn servers(key: &'static str, title: &'static str) -> Row {
    Row { key, title, unit: Unit::Instructions, bound: None, talk: Talk::Servers }
}

const fn below(bound: f64, row: Row) -> Row {
    Row { bound: Some(bound), ..row }
}

/// What a round trip has to stay below.
pub const ROUND_TRIP: f64 = 10_000.0;

/// The rows in the table's order.
pub const ROWS: &[Row] = &[
    below(ROUND_TRIP, row("tcp-round-trip", "TCP round trip of a byte between processes", Unit::Instructions)),
    below(ROUND_TRIP, row("udp-round-trip", "UDP round trip of a byte between processes", Unit::Instructions)),
    row("tcp-connect", "connect + accept + close of both ends", Unit::Instructions),
    row("epoll-1000", "TCP round trip of a byte, one of 1,000 connections in an epoll set", Unit::Instructions),
    row("tcp-1k", "TCP, writes of 1 KiB", Unit::InstructionsPerKib),
    row("tcp-16k", "TCP, writes of 16 KiB", Unit::InstructionsPerKib),
    row("tcp-64k", "TCP, writes of 64 KiB", Unit::InstructionsPerKib),
    row("tcp-sendfile", "TCP, sendfile of a file of 1 MiB in a tmpfs", Unit::InstructionsPerKib),
    row("udp-64", "UDP message of 64 bytes, sendmmsg and recvmmsg of 32", Unit::Instructions),
    row("udp-1400", "UDP message of 1,400 bytes, sendmmsg and recvmmsg of 32", Unit::Instructions),
    row("memory-new", "memory of a TCP connection, new", Unit::Bytes),
    row("memory-used", "memory of a TCP connection that carried 1 KiB each way", Unit::Bytes),
    servers("redis-get", "redis, GET, 50 connections"),
    servers("redis-set", "redis, SET of 100 bytes, 50 connections"),
    servers("redis-pipeline", "redis, GET, 50 connections with 16 requests each"),
    servers("nginx-kept", "nginx, file of 100 bytes, 20 connections that are kept"),
    servers("nginx-new", "nginx, file of 100 bytes, a connection for each"),
    servers("nginx-large", "nginx, file of 1 MiB, a connection for each"),
];
