//! What a socket's program has chosen for a connection with another machine, and what it is told of it.

use alloc::boxed::Box;
use core::net::IpAddr;

use frame::Cx;
use linux_raw_sys::net;
use tasks::StaticRef;
use tcpip::ip::{IpHeader, protocol};
use tcpip::tcp::{Endpoints, Error, Info, KeepAlive, Opening, initial_sequence, timestamp_offset};
use tcpip::{Duration, Key};

use super::{Ends, Remote, socket_address};
use crate::error::Errno;
use crate::net::inet::settings::{KEEP_COUNT_DEFAULT, KEEP_IDLE, KEEP_INTERVAL, Settings};
use crate::net::interface::{self, Way, now};

/// The most that waits to be acknowledged, and that waits to be read.
const SEND_LIMIT: usize = 1 << 18;
const RECEIVE_LIMIT: usize = 1 << 20;

static KEY: StaticRef<Key> = StaticRef::none();

pub(super) fn errno_of(error: Error) -> Errno {
    match error {
        Error::Refused => Errno::ECONNREFUSED,
        Error::Reset => Errno::ECONNRESET,
        Error::TimedOut => Errno::ETIMEDOUT,
        Error::HostUnreachable => Errno::EHOSTUNREACH,
        Error::NetworkUnreachable => Errno::ENETUNREACH,
        Error::Aborted => Errno::ECONNABORTED,
    }
}

/// What nobody can guess, from which numbers and cookies are made.
pub(in crate::net::inet::tcp) fn key(cx: &Cx) -> Key {
    KEY.get().copied().unwrap_or_else(|| {
        let key: &'static Key = Box::leak(Box::new(interface::key(cx)));
        KEY.set(Some(key));
        *key
    })
}

/// What connections begin with over a way.
pub(super) fn opening(ends: &Ends, way: &Way, settings: &Settings, cx: &Cx) -> Opening {
    let key = key(cx);
    let endpoints = Endpoints { local: socket_address(ends.0), remote: socket_address(ends.1) };
    let mut chosen =
        tcpip::tcp::Settings { send_limit: SEND_LIMIT, receive_limit: RECEIVE_LIMIT, ..Default::default() };
    if let Some(most) = settings.set_value(net::SOL_TCP, net::TCP_MAXSEG) {
        chosen.mss_limit = most as u16;
    }
    apply(settings, &mut chosen);
    Opening {
        endpoints,
        sequence: initial_sequence(&key, now(), &endpoints),
        timestamp_offset: timestamp_offset(&key, &endpoints),
        mtu: way.mtu(),
        settings: chosen,
    }
}

/// What may change at any time.
fn apply(settings: &Settings, chosen: &mut tcpip::tcp::Settings) {
    let number = |name, default: i32| settings.set_value(net::SOL_TCP, name).unwrap_or(default).max(0) as u64;
    chosen.keep_alive = settings.is_on(net::SOL_SOCKET, net::SO_KEEPALIVE).then(|| KeepAlive {
        idle: Duration::from_secs(number(net::TCP_KEEPIDLE, KEEP_IDLE.get() as i32)),
        interval: Duration::from_secs(number(net::TCP_KEEPINTVL, KEEP_INTERVAL.get() as i32)),
        count: number(net::TCP_KEEPCNT, KEEP_COUNT_DEFAULT.get() as i32) as u8,
    });
    if let Some(most) = settings.set_value(net::SOL_SOCKET, net::SO_SNDBUF) {
        chosen.send_limit = (most as usize).min(SEND_LIMIT);
    }
    let user_timeout = number(net::TCP_USER_TIMEOUT, 0);
    chosen.user_timeout = (user_timeout > 0).then(|| Duration::from_millis(user_timeout));
    chosen.no_delay = settings.is_on(net::SOL_TCP, net::TCP_NODELAY);
    chosen.cork = settings.is_on(net::SOL_TCP, net::TCP_CORK);
    chosen.quick_ack = settings.is_on(net::SOL_TCP, net::TCP_QUICKACK);
    chosen.syn_retries = number(net::TCP_SYNCNT, 6) as u8;
    if let Some(seconds) = settings.set_value(net::SOL_TCP, net::TCP_LINGER2)
        && seconds > 0
    {
        chosen.fin_wait = Duration::from_secs(seconds as u64);
    }
}

/// What the headers of its packets say.
#[derive(Clone, Copy)]
pub(super) struct Marks {
    hop_limit: u8,
    traffic_class: u8,
    /// With less than this that is not sent there is room (TCP_NOTSENT_LOWAT); 0: nobody has said.
    pub unsent_most: usize,
}

impl Marks {
    /// As a socket's program wants them, for packets to an address.
    pub(super) fn of(settings: &Settings, to: IpAddr) -> Self {
        let (level, hops, class) = match to {
            IpAddr::V4(_) => (net::SOL_IP, net::IP_TTL, net::IP_TOS),
            IpAddr::V6(_) => (net::SOL_IPV6, net::IPV6_UNICAST_HOPS, net::IPV6_TCLASS),
        };
        let unsent = settings.set_value(net::SOL_TCP, net::TCP_NOTSENT_LOWAT).unwrap_or(0);
        Marks {
            hop_limit: settings.set_value(level, hops).map_or(64, |hops| hops as u8),
            // Its two low bits are the protocol's.
            traffic_class: settings.set_value(level, class).map_or(0, |class| class as u8 & !3),
            unsent_most: unsent as u32 as usize,
        }
    }

    /// The header of a packet.
    pub(super) fn header(&self, ends: &Ends) -> IpHeader {
        let header = IpHeader::new(ends.0.ip, ends.1.ip, protocol::TCP);
        IpHeader { hop_limit: self.hop_limit, traffic_class: self.traffic_class, ..header }
    }
}

impl Remote {
    /// Has the control block do as the socket's program has chosen.
    pub(super) fn choose(&self, cx: &Cx) {
        let settings = self.proxy.get(cx).connected_peer(cx).and_then(|peer| peer.settings(cx));
        if let Some(settings) = settings {
            self.apply(&settings, cx);
        }
    }

    fn apply(&self, settings: &Settings, cx: &Cx) {
        let mut state = self.state.lock(cx);
        // What is left of one that nobody uses has a time limit of its own.
        if state.left.is_some() {
            return;
        }
        let had_quick_ack = state.connection.settings().quick_ack;
        apply(settings, state.connection.settings_mut());
        match settings.set_value(net::SOL_TCP, net::TCP_QUICKACK) {
            Some(0) => state.connection.acknowledge_later(),
            Some(_) if !had_quick_ack => state.connection.acknowledge_now(),
            _ => {}
        }
        state.marks = Marks::of(settings, self.ends.1.ip);
    }

    /// The socket's program has chosen something else.
    pub(in crate::net::inet::tcp) fn chosen(&self, settings: &Settings, cx: &Cx) {
        self.apply(settings, cx);
        self.go_on(cx);
    }

    /// What TCP_INFO tells.
    pub(in crate::net::inet::tcp) fn info(&self, cx: &Cx) -> Info {
        self.state.lock(cx).connection.info()
    }

    /// Bytes of the socket's that the control block has and that are not acknowledged, and how many of them were never sent.
    pub(in crate::net::inet::tcp) fn unacknowledged(&self, cx: &Cx) -> (usize, usize) {
        let state = self.state.lock(cx);
        (state.connection.unacknowledged_bytes(), state.connection.unsent_bytes())
    }
}
