//! What the owner of a connection chooses, as socket options do, and what goes wrong with a connection.

use crate::time::Duration;

/// Keep-alive probes (RFC 9293, section 3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// The peer is silent for so long before the first probe (`TCP_KEEPIDLE`).
    pub idle: Duration,
    /// The time between probes (`TCP_KEEPINTVL`).
    pub interval: Duration,
    /// So many unanswered ones end the connection (`TCP_KEEPCNT`).
    pub count: u8,
}

/// The choices of an owner. They may change at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes that may be written and not yet be acknowledged (`SO_SNDBUF`).
    pub send_limit: usize,
    /// Bytes of the receive buffer at first.
    pub receive_initial: usize,
    /// Bytes to which it may grow (`SO_RCVBUF`, or the system's limit). Together with `receive_initial` it decides the window scale when the connection is made.
    pub receive_limit: usize,
    /// The largest MSS in either direction (`TCP_MAXSEG`).
    pub mss_limit: u16,
    /// Sends small segments at once (`TCP_NODELAY`): no Nagle algorithm.
    pub no_delay: bool,
    /// Sends full segments only (`TCP_CORK`), for at most 200 ms.
    pub cork: bool,
    /// Acknowledges at once (`TCP_QUICKACK`).
    pub quick_ack: bool,
    /// Probes an idle peer (`SO_KEEPALIVE`).
    pub keep_alive: Option<KeepAlive>,
    /// Data that was not acknowledged for so long ends the connection (`TCP_USER_TIMEOUT`).
    pub user_timeout: Option<Duration>,
    /// How often a SYN or a SYN and ACK is sent again (`TCP_SYNCNT`).
    pub syn_retries: u8,
    /// How often data is sent again, or a closed window probed, without any answer.
    pub data_retries: u8,
    /// How long a connection stays in FIN-WAIT-2 when nobody owns it any more (`TCP_LINGER2`).
    pub fin_wait: Duration,
    /// How long it stays in TIME-WAIT.
    pub time_wait: Duration,
}

impl Settings {
    /// The shift of windows that a connection with these settings offers (RFC 7323, section 2).
    pub fn window_scale(&self) -> u8 {
        let largest = self.receive_limit.max(self.receive_initial);
        (0..14).find(|&scale| largest >> scale <= usize::from(u16::MAX)).unwrap_or(14)
    }
}

impl Default for Settings {
    /// As Linux's defaults.
    fn default() -> Self {
        Settings {
            send_limit: 4 << 20,
            receive_initial: 128 << 10,
            receive_limit: 6 << 20,
            mss_limit: u16::MAX,
            no_delay: false,
            cork: false,
            quick_ack: false,
            keep_alive: None,
            user_timeout: None,
            syn_retries: 6,
            data_retries: 15,
            fin_wait: Duration::from_secs(60),
            time_wait: Duration::from_secs(60),
        }
    }
}

/// Why a connection ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The peer refused it (`ECONNREFUSED`).
    Refused,
    /// The peer reset it (`ECONNRESET`).
    Reset,
    /// No answer came (`ETIMEDOUT`).
    TimedOut,
    /// A router or the peer says that it cannot be reached (`EHOSTUNREACH`).
    HostUnreachable,
    /// Its network cannot (`ENETUNREACH`).
    NetworkUnreachable,
    /// The owner ended it at once (`ECONNABORTED`).
    Aborted,
}

/// Why bytes were neither written nor read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// There is no room, or nothing to read, yet (`EAGAIN`).
    WouldBlock,
    /// This direction was shut down (`EPIPE`).
    Shut,
    /// There is no memory (`ENOMEM`).
    OutOfMemory,
    /// The connection failed; told once.
    Failed(Error),
}
