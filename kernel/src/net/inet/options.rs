//! Options that sockets of all protocols have: what setsockopt(2) gives is decoded here, what getsockopt(2) gets is written down.

use alloc::vec::Vec;
use linux_raw_sys::net;
use zerocopy::IntoBytes;

use super::address::Version;
use super::settings::{Protocol, Settings, check_level};
use crate::error::{Errno, Result};
use crate::net::Timeouts;
use crate::step::Step;
use crate::time::clock::TimeVal;
use crate::user_memory::{In, UserMemory, UserSlice};

/// The most that a program can ask for as buffers (`net.core.rmem_max`, `wmem_max`), which is doubled; and the least that it gets.
pub const MOST_BUFFER: u32 = 212_992;
const LEAST_SEND_BUFFER: u32 = 4608;
const LEAST_RECEIVE_BUFFER: u32 = 2304;

/// An option that is to be set.
pub struct Setting<'a> {
    /// `SOL_*`.
    pub level: u32,
    /// Which one.
    pub name: u32,
    /// Where its value is.
    pub value: UserSlice<u8, In>,
    /// In whose memory.
    pub memory: &'a UserMemory<'a>,
}

impl Setting<'_> {
    /// Its first bytes.
    ///
    /// # Errors
    /// EINVAL: it has fewer. A fault.
    pub fn bytes<const N: usize>(&self) -> Step<[u8; N]> {
        let mut bytes = [0; N];
        if self.value.len() < N {
            return Err(Errno::EINVAL.into());
        }
        self.memory.read_into(self.value, &mut bytes)?;
        Ok(bytes)
    }

    /// A number, which may be one byte long where ip(7) says so.
    ///
    /// # Errors
    /// EINVAL: too short. A fault.
    pub fn number(&self) -> Step<i32> {
        if self.level == net::SOL_IP && (1..4).contains(&self.value.len()) {
            return Ok(i32::from(self.bytes::<1>()?[0]));
        }
        Ok(i32::from_le_bytes(self.bytes()?))
    }

    /// A text of at most so many bytes, without what is behind its end.
    ///
    /// # Errors
    /// EINVAL: empty. A fault.
    pub fn text(&self, most: usize) -> Step<Vec<u8>> {
        if self.value.is_empty() {
            return Err(Errno::EINVAL.into());
        }
        let mut bytes = alloc::vec![0; self.value.len().min(most)];
        self.memory.read_into(self.value, &mut bytes)?;
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        bytes.truncate(end);
        Ok(bytes)
    }
}

/// What a socket has for its options beside its [`Settings`].
#[derive(Default)]
pub struct OfSocket {
    /// How long its calls wait.
    pub timeouts: Timeouts,
}

/// What a socket's options are about.
#[derive(Clone, Copy)]
pub struct Owner {
    /// Its protocol.
    pub protocol: Protocol,
    /// Its family.
    pub version: Version,
}

impl Owner {
    /// Sets an option that has no other meaning than its value.
    ///
    /// # Errors
    /// ENOPROTOOPT, EINVAL, EDOM. A fault.
    pub fn set(self, setting: &Setting<'_>, settings: &mut Settings, own: &OfSocket) -> Step<()> {
        if setting.level == net::SOL_SOCKET
            && let Some(timeout) = own.timeouts.of(setting.name)
        {
            let mut time = TimeVal::default();
            time.as_mut_bytes().copy_from_slice(&setting.bytes::<16>()?);
            return Ok(timeout.set(time)?);
        }
        check_level(self.protocol, self.version, setting.level)?;
        let value = setting.number()?;
        let (level, name) = (setting.level, setting.name);
        let doubled = |least: u32| (value as u32).min(MOST_BUFFER).saturating_mul(2).max(least) as i32;
        match (level, name) {
            (net::SOL_SOCKET, net::SO_SNDBUF | net::SO_SNDBUFFORCE) => {
                settings.put(level, net::SO_SNDBUF, doubled(LEAST_SEND_BUFFER))?;
            }
            (net::SOL_SOCKET, net::SO_RCVBUF | net::SO_RCVBUFFORCE) => {
                settings.put(level, net::SO_RCVBUF, doubled(LEAST_RECEIVE_BUFFER))?;
            }
            _ => settings.set(self.protocol, self.version, level, name, value)?,
        }
        Ok(())
    }

    /// The value of an option that [`set`](Self::set) sets, or that is the same for all sockets of a kind.
    ///
    /// # Errors
    /// EOPNOTSUPP, ENOPROTOOPT.
    pub fn get(self, level: u32, name: u32, settings: &Settings, own: &OfSocket) -> Result<Vec<u8>> {
        if level == net::SOL_SOCKET
            && let Some(timeout) = own.timeouts.of(name)
        {
            return Ok(timeout.get().as_bytes().to_vec());
        }
        let is_tcp = self.protocol == Protocol::Tcp;
        let buffer =
            |of_tcp| settings.set_value(level, name).unwrap_or(if is_tcp { of_tcp } else { MOST_BUFFER as i32 });
        let value = match (level, name) {
            (net::SOL_SOCKET, net::SO_SNDBUF) => buffer(16_384),
            (net::SOL_SOCKET, net::SO_RCVBUF) => buffer(131_072),
            (net::SOL_SOCKET, net::SO_DOMAIN) => self.version.number() as i32,
            (net::SOL_SOCKET, net::SO_PASSCRED | net::SO_ACCEPTCONN) => 0,
            (net::SOL_SOCKET, net::SO_PEERCRED) => {
                let nobody = crate::net::Credentials { pid: 0, uid: u32::MAX, gid: u32::MAX };
                return Ok(nobody.as_bytes().to_vec());
            }
            (net::SOL_SOCKET, net::SO_BINDTODEVICE) => return Ok(Vec::new()),
            (net::SOL_IP, net::IP_OPTIONS) => return Ok(Vec::new()),
            _ => settings.get(self.protocol, self.version, level, name)?,
        };
        Ok(value.to_le_bytes().to_vec())
    }
}

/// SO_LINGER as programs are told of it.
pub fn linger(seconds: Option<u32>) -> Vec<u8> {
    let words = [u32::from(seconds.is_some()), seconds.unwrap_or(0)];
    words.as_bytes().to_vec()
}

/// What a `struct linger` says.
///
/// # Errors
/// EINVAL: too short. A fault.
pub fn read_linger(setting: &Setting<'_>) -> Step<Option<u32>> {
    let bytes = setting.bytes::<8>()?;
    let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    Ok((word(0) != 0).then_some(word(4)))
}
