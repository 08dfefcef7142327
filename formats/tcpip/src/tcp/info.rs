//! [`Info`]: what can be told of a connection, for `TCP_INFO` and for tests.

use crate::time::{Duration, Instant};

use super::connection::{Connection, Phase, State};
use super::sequence::START;

/// What [`Info`] counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub segments_in: u64,
    pub segments_out: u64,
    pub retransmitted: u64,
    pub retransmissions: u32,
    pub data_segments_in: u32,
    pub data_segments_out: u32,
    pub lost: u64,
    pub duplicates: u32,
}

/// What `TCP_INFO` tells.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Info {
    /// The state.
    pub state: State,
    /// Time-outs in a row.
    pub backoff: u8,
    /// Time-outs and probes without any answer.
    pub unanswered: u8,
    /// When data was sent last.
    pub last_sent: Instant,
    /// When a segment came last.
    pub last_heard: Instant,
    /// Bytes of the largest packet that the path takes, as far as is known.
    pub mtu: usize,
    /// The MSS that was offered to the peer.
    pub offered_mss: usize,
    /// Whether losses are being repaired.
    pub is_recovering: bool,
    /// What was agreed: SACK, time stamps, and the shifts of windows that are sent and received.
    pub sack: bool,
    /// Time stamps.
    pub timestamps: bool,
    /// By how many bits the peer's windows are shifted.
    pub send_scale: u8,
    /// By how many ours are.
    pub receive_scale: u8,
    /// The retransmission time-out.
    pub rto: Duration,
    /// The smoothed round trip; zero if none was measured.
    pub rtt: Duration,
    /// Its variation.
    pub rtt_variation: Duration,
    /// The smallest.
    pub rtt_minimum: Duration,
    /// The last one.
    pub rtt_latest: Duration,
    /// Bytes of data in a full segment.
    pub send_mss: usize,
    /// Bytes in the longest segment that came.
    pub receive_mss: usize,
    /// Bytes in the network.
    pub in_flight: usize,
    /// Bytes that were lost and not sent again.
    pub lost: usize,
    /// Bytes that the peer has out of order.
    pub sacked: usize,
    /// Bytes that are written and not sent.
    pub unsent: usize,
    /// The congestion window, in bytes.
    pub congestion_window: usize,
    /// The threshold of slow start, in bytes.
    pub slow_start_threshold: usize,
    /// The peer's window, in bytes.
    pub send_window: u64,
    /// Bytes of the receive buffer.
    pub receive_buffer: usize,
    /// Bytes that were acknowledged.
    pub bytes_acked: u64,
    /// Bytes that were received in order.
    pub bytes_received: u64,
    /// Segments that came.
    pub segments_in: u64,
    /// Segments that were sent.
    pub segments_out: u64,
    /// Segments with data that came.
    pub data_segments_in: u32,
    /// Segments with data that were sent.
    pub data_segments_out: u32,
    /// Segments that were sent again.
    pub retransmissions: u32,
    /// Bytes that were sent again.
    pub bytes_retransmitted: u64,
    /// Bytes that were believed lost, over all.
    pub bytes_lost: u64,
    /// D-SACKs that came: something was sent again for nothing.
    pub duplicates: u32,
    /// Whether reordering was seen.
    pub is_reordering_seen: bool,
}

impl Connection {
    /// What `TCP_INFO` tells.
    pub fn info(&self) -> Info {
        let (sending, receiving) = (&self.sending, &self.receiving);
        Info {
            state: self.state,
            backoff: self.timers.backoff,
            unanswered: self.timers.unanswered,
            last_sent: sending.last_sent,
            last_heard: self.timers.heard,
            mtu: self.mtu,
            offered_mss: usize::from(self.receive_mss()),
            is_recovering: self.phase != Phase::Open,
            sack: self.sack,
            timestamps: self.stamps.is_some(),
            send_scale: sending.scale,
            receive_scale: receiving.scale,
            rto: self.retransmission_timeout(),
            rtt: self.rtt.smoothed().unwrap_or_default(),
            rtt_variation: self.rtt.variation(),
            rtt_minimum: self.rtt.minimum().unwrap_or_default(),
            rtt_latest: self.rtt.latest(),
            send_mss: self.send_mss(),
            receive_mss: receiving.mss,
            in_flight: sending.board.in_flight(),
            lost: sending.board.lost(),
            sacked: sending.board.sacked(),
            unsent: self.unsent_bytes(),
            congestion_window: self.congestion.window(),
            slow_start_threshold: self.congestion.threshold(),
            send_window: sending.window,
            receive_buffer: receiving.buffer,
            bytes_acked: sending.una.min(sending.written).saturating_sub(START + 1),
            bytes_received: receiving.next.saturating_sub(START + 1 + u64::from(self.is_peer_done())),
            segments_in: self.counts.segments_in,
            segments_out: self.counts.segments_out,
            data_segments_in: self.counts.data_segments_in,
            data_segments_out: self.counts.data_segments_out,
            retransmissions: self.counts.retransmissions,
            bytes_retransmitted: self.counts.retransmitted,
            bytes_lost: self.counts.lost,
            duplicates: self.counts.duplicates,
            is_reordering_seen: self.rack.is_reordering_seen,
        }
    }
}
