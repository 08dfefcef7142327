//! `struct tcp_info`, and what else programs are told of how a connection does.
//!
//! Of a connection within this machine there are no packets, so what is told of these is what a fresh connection of Linux's would tell. Of one with another machine the control block tells.

use alloc::vec;
use alloc::vec::Vec;

use frame::Cx;
use tcpip::tcp::Info;

use super::Endpoint;
use super::endpoint::Phase;
use crate::error::{Errno, Result};
use crate::net::interface::now;

/// The length of `struct tcp_info`.
const INFO_BYTES: usize = 232;
/// TCPI_OPT_TIMESTAMPS, TCPI_OPT_SACK and TCPI_OPT_WSCALE.
const TIMESTAMPS: u8 = 1;
const SACK: u8 = 2;
const WINDOW_SCALE: u8 = 4;
/// The largest packet of the loopback device, and what nobody has said of a path: the threshold of slow start, how much reordering is taken for a loss.
const LOOPBACK_MTU: u32 = 65535;
const NO_THRESHOLD: u32 = 0x7fff_ffff;
const REORDERING: u32 = 3;

/// A `struct tcp_info` in the making.
struct Told(Vec<u8>);

impl Told {
    fn put<const N: usize>(&mut self, at: usize, bytes: [u8; N]) {
        self.0[at..at + N].copy_from_slice(&bytes);
    }

    fn put_word(&mut self, at: usize, value: u32) {
        self.put(at, value.to_le_bytes());
    }

    fn put_long(&mut self, at: usize, value: u64) {
        self.put(at, value.to_le_bytes());
    }
}

impl Endpoint {
    /// How its connection with another machine does, if it has one.
    pub(super) fn info_of_network(&self, cx: &Cx) -> Option<Info> {
        self.connected_peer(cx)?.with_remote(|remote| remote.info(cx), cx)
    }

    /// How many bytes of what it has sent are not acknowledged (SIOCOUTQ), and how many of these were never sent (SIOCOUTQNSD). Within the machine all that is sent is at the peer.
    ///
    /// # Errors
    /// EINVAL: it listens.
    pub(super) fn unacknowledged(&self, cx: &Cx) -> Result<(usize, usize)> {
        if matches!(self.state.lock(cx).phase, Phase::Listening(_)) {
            return Err(Errno::EINVAL);
        }
        let remote = self.connected_peer(cx).and_then(|peer| peer.with_remote(|remote| remote.unacknowledged(cx), cx));
        Ok(remote.unwrap_or((0, 0)))
    }

    /// `struct tcp_info`.
    pub fn info(&self, cx: &Cx) -> Vec<u8> {
        let of_network = self.info_of_network(cx);
        let state = self.state.lock(cx);
        let mut told = Told(vec![0; INFO_BYTES]);
        told.put(0, [state.tcp_state() as u8]);
        // The time until something is sent again; segments; the path.
        told.put_word(8, 200_000);
        told.put_word(16, 32_768);
        told.put_word(20, 536);
        told.put_word(60, LOOPBACK_MTU);
        told.put_word(80, 10);
        if let Phase::Listening(listener) = &state.phase {
            told.put_word(24, listener.waiting() as u32);
            told.put_word(28, listener.most() as u32);
        }
        if matches!(state.phase, Phase::Connected) {
            told.put(5, [TIMESTAMPS | SACK | WINDOW_SCALE, 0x77]);
        }
        told.put_long(120, state.sent);
        told.put_long(128, state.received + state.input.len() as u64);
        told.put_long(200, state.sent);
        drop(state);
        if let Some(info) = of_network {
            tell(&info, &mut told);
        }
        told.0
    }
}

/// What the control block tells.
fn tell(info: &Info, told: &mut Told) {
    let segments = |bytes: usize| bytes.div_ceil(info.send_mss.max(1)) as u32;
    let micros = |time: tcpip::Duration| (time.nanos() / 1000) as u32;
    let since = |time: tcpip::Instant| now().since(time).millis() as u32;
    // TCP_CA_Open, TCP_CA_Disorder, TCP_CA_Recovery, TCP_CA_Loss.
    let state_of_losses = match (info.is_recovering, info.backoff) {
        (true, 0) => 3,
        (true, _) => 4,
        (false, _) => u8::from(info.sacked > 0),
    };
    let option = |is_on, bit| if is_on { bit } else { 0 };
    let has_scale = info.send_scale > 0 || info.receive_scale > 0;
    let options = option(info.timestamps, TIMESTAMPS) | option(info.sack, SACK) | option(has_scale, WINDOW_SCALE);
    told.put(1, [state_of_losses, info.backoff, info.unanswered, info.backoff, options]);
    told.put(6, [info.send_scale | info.receive_scale << 4]);
    told.put_word(8, micros(info.rto));
    told.put_word(12, 40_000);
    told.put_word(16, info.send_mss as u32);
    told.put_word(20, info.receive_mss as u32);
    told.put_word(24, segments(info.in_flight + info.lost + info.sacked));
    told.put_word(28, segments(info.sacked));
    told.put_word(32, segments(info.lost));
    told.put_word(44, since(info.last_sent));
    told.put_word(52, since(info.last_heard));
    told.put_word(56, since(info.last_heard));
    told.put_word(60, info.mtu as u32);
    told.put_word(64, info.receive_buffer as u32);
    told.put_word(68, micros(info.rtt));
    told.put_word(72, micros(info.rtt_variation));
    let has_threshold = info.slow_start_threshold < 1 << 30;
    told.put_word(76, if has_threshold { segments(info.slow_start_threshold) } else { NO_THRESHOLD });
    told.put_word(80, (info.congestion_window / info.send_mss.max(1)) as u32);
    told.put_word(84, info.offered_mss as u32);
    told.put_word(88, REORDERING);
    told.put_word(96, info.receive_buffer as u32);
    told.put_word(100, info.retransmissions);
    told.put_long(112, u64::MAX);
    told.put_long(120, info.bytes_acked);
    told.put_long(128, info.bytes_received);
    told.put_word(136, info.segments_out as u32);
    told.put_word(140, info.segments_in as u32);
    told.put_word(144, info.unsent as u32);
    told.put_word(148, micros(info.rtt_minimum));
    told.put_word(152, info.data_segments_in);
    told.put_word(156, info.data_segments_out);
    told.put_word(192, segments(info.bytes_acked as usize + info.sacked));
    told.put_long(200, info.bytes_acked + (info.in_flight + info.lost + info.sacked) as u64 + info.bytes_retransmitted);
    told.put_long(208, info.bytes_retransmitted);
    told.put_word(216, info.duplicates);
    told.put_word(220, u32::from(info.is_reordering_seen));
    told.put_word(228, info.send_window as u32);
}
