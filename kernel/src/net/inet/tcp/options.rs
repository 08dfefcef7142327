//! The options of an endpoint that do more than keep a number: tcp(7), and of socket(7) what a connection has.

use alloc::vec::Vec;

use frame::Cx;
use linux_raw_sys::net;

use super::Endpoint;
use super::endpoint::TcpState;
use crate::error::{Errno, Result};
use crate::net::inet::options::{OfSocket, Owner, Setting, linger, read_linger};
use crate::net::inet::settings::Protocol;
use crate::step::Step;

/// The names of the congestion controls that there are, which nothing here uses: the first is that of new sockets.
const CONGESTION_CONTROLS: [&[u8]; 2] = [b"cubic", b"reno"];
/// The length of such a name, with what fills it up.
const NAME_BYTES: usize = 16;
/// How long the end of a connection is waited for, in seconds, where nobody said (`net.ipv4.tcp_fin_timeout`), and at most.
const FIN_TIMEOUT: i32 = 60;
const MOST_FIN_TIMEOUT: i32 = 120;
/// What a segment has where nobody has said anything (RFC 9293).
const DEFAULT_MSS: i32 = 536;
/// The longest time between two attempts to begin a connection, in seconds.
const MOST_BETWEEN_SYNS: u32 = 120;

/// After how many seconds what is sent again and again was sent so often that it is at least so long since the first time.
fn until_sent_again(seconds: i32) -> i32 {
    let (mut total, mut next) = (1_u32, 1);
    if seconds <= 0 {
        return 0;
    }
    while total < seconds as u32 {
        next = (next * 2).min(MOST_BETWEEN_SYNS);
        total += next;
    }
    total as i32
}

impl Endpoint {
    fn owner(&self) -> Owner {
        Owner { protocol: Protocol::Tcp, version: self.version }
    }

    /// Sets an option.
    ///
    /// # Errors
    /// ENOPROTOOPT, EINVAL, ENOENT, EDOM. A fault.
    pub(super) fn set_option(&self, setting: &Setting<'_>, own: &OfSocket, cx: &Cx) -> Step<()> {
        match (setting.level, setting.name) {
            (net::SOL_SOCKET, net::SO_LINGER) => {
                let linger = read_linger(setting)?;
                self.state.lock(cx).linger = linger;
            }
            (net::SOL_SOCKET, net::SO_RCVLOWAT) => {
                let value = setting.number()?;
                self.state.lock(cx).low_water = usize::try_from(value).unwrap_or(i32::MAX as usize).max(1);
            }
            (net::SOL_TCP, net::TCP_CONGESTION) => {
                let name = setting.text(NAME_BYTES - 1)?;
                let number = CONGESTION_CONTROLS.iter().position(|known| *known == name).ok_or(Errno::ENOENT)?;
                self.settings.lock(cx).put(setting.level, setting.name, number as i32)?;
            }
            (net::SOL_TCP, net::TCP_LINGER2) => {
                let value = setting.number()?;
                let kept = if (0..=MOST_FIN_TIMEOUT).contains(&value) { value } else { -1 };
                self.settings.lock(cx).put(setting.level, setting.name, kept)?;
            }
            (net::SOL_TCP, net::TCP_DEFER_ACCEPT) => {
                let kept = until_sent_again(setting.number()?);
                self.settings.lock(cx).put(setting.level, setting.name, kept)?;
            }
            (net::SOL_IPV6, net::IPV6_V6ONLY) if self.state.lock(cx).bound.is_some() => {
                return Err(Errno::EINVAL.into());
            }
            _ => {
                // What the value is made of is read first: no memory of a program is with a lock held.
                let mut settings = self.settings.lock(cx).clone();
                self.owner().set(setting, &mut settings, own)?;
                *self.settings.lock(cx) = settings.clone();
                self.apply(setting, cx)?;
                if let Some(peer) = self.connected_peer(cx) {
                    peer.with_remote(|remote| remote.chosen(&settings, cx), cx);
                }
            }
        }
        Ok(())
    }

    /// An option was set that something else depends on.
    fn apply(&self, setting: &Setting<'_>, cx: &Cx) -> Result<()> {
        if setting.level != net::SOL_SOCKET {
            return Ok(());
        }
        let settings = self.settings.lock(cx).clone();
        match setting.name {
            net::SO_REUSEADDR | net::SO_REUSEPORT => {
                let mut state = self.state.lock(cx);
                let key = state.key(&settings, 0);
                if let Some(bound) = &mut state.bound {
                    bound.change(key);
                }
            }
            net::SO_OOBINLINE => {
                self.state.lock(cx).urgent_inline = settings.is_on(net::SOL_SOCKET, net::SO_OOBINLINE);
            }
            net::SO_RCVBUF => {
                let bytes = settings.set_value(net::SOL_SOCKET, net::SO_RCVBUF).unwrap_or(0);
                self.set_capacity(bytes as usize, cx);
            }
            _ => {}
        }
        Ok(())
    }

    /// The value of an option.
    ///
    /// # Errors
    /// EOPNOTSUPP, ENOPROTOOPT.
    pub(super) fn option(&self, level: u32, name: u32, own: &OfSocket, cx: &Cx) -> Result<Vec<u8>> {
        let number = |value: i32| Ok(value.to_le_bytes().to_vec());
        let kept = |default: i32| self.settings.lock(cx).set_value(level, name).unwrap_or(default);
        match (level, name) {
            (net::SOL_SOCKET, net::SO_TYPE) => number(net::SOCK_STREAM as i32),
            (net::SOL_SOCKET, net::SO_PROTOCOL) => number(Protocol::TCP_NUMBER),
            (net::SOL_SOCKET, net::SO_ACCEPTCONN) => number((self.tcp_state(cx).0 == TcpState::Listen).into()),
            (net::SOL_SOCKET, net::SO_ERROR) => {
                let error = self.state.lock(cx).error.take();
                number(error.map_or(0, |error| error.number().into()))
            }
            (net::SOL_SOCKET, net::SO_LINGER) => Ok(linger(self.state.lock(cx).linger)),
            (net::SOL_SOCKET, net::SO_RCVLOWAT) => number(self.state.lock(cx).low_water as i32),
            (net::SOL_TCP, net::TCP_CONGESTION) => {
                let mut name = CONGESTION_CONTROLS[kept(0) as usize].to_vec();
                name.resize(NAME_BYTES, 0);
                Ok(name)
            }
            (net::SOL_TCP, net::TCP_LINGER2) => number(match kept(0) {
                0 => FIN_TIMEOUT,
                seconds => seconds,
            }),
            (net::SOL_TCP, net::TCP_DEFER_ACCEPT) => number(kept(0)),
            (net::SOL_SOCKET, net::SO_COOKIE) => Ok(self.cookie.get().to_le_bytes().to_vec()),
            (net::SOL_TCP, net::TCP_INFO) => Ok(self.info(cx)),
            (net::SOL_TCP, net::TCP_MAXSEG) => match self.info_of_network(cx) {
                Some(info) => number(info.send_mss as i32),
                None => number(kept(DEFAULT_MSS)),
            },
            _ => {
                let settings = self.settings.lock(cx).clone();
                self.owner().get(level, name, &settings, own)
            }
        }
    }

    /// The name of the congestion control that was chosen.
    pub fn congestion_control(&self, cx: &Cx) -> &'static [u8] {
        let number = self.settings.lock(cx).set_value(net::SOL_TCP, net::TCP_CONGESTION).unwrap_or(0);
        CONGESTION_CONTROLS[number as usize]
    }
}
