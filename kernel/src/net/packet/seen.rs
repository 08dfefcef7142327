//! [`Seen`]: a frame that goes over a device or comes from it, as it is shown to sockets.

use tcpip::ethernet::HEADER_BYTES;

use super::endpoint::{ADDRESS_BYTES, encode};
use crate::net::devices;
use crate::net::interface::Interface;

/// ARPHRD_ETHER.
pub const ETHERNET: u16 = 1;
/// ARPHRD_LOOPBACK.
pub const LOOPBACK: u16 = 772;

/// PACKET_HOST and its like.
const FOR_HOST: u8 = 0;
const FOR_ALL: u8 = 1;
const FOR_GROUP: u8 = 2;
const FOR_OTHER: u8 = 3;
const OUTGOING: u8 = 4;

/// Whether a frame comes or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It has come.
    In,
    /// It goes.
    Out,
}

/// The checksum of TCP or UDP in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// It is as it was or will be on the wire.
    There,
    /// Its field has the sum of the pseudo header: the card computes the rest, or nobody (TP_STATUS_CSUMNOTREADY).
    Left,
}

/// A frame that is shown.
#[derive(Clone, Copy)]
pub struct Seen<'a> {
    /// Its bytes, with the link's header.
    pub frame: &'a [u8],
    /// Whether it comes or goes.
    pub direction: Direction,
    /// The number of its device.
    pub device: u32,
    /// `ARPHRD_*`: what kind of device that is.
    pub hardware: u16,
    /// The device's address.
    pub own: [u8; 6],
    /// Whether its checksum is there.
    pub checksum: Checksum,
}

impl<'a> Seen<'a> {
    /// One of a card's.
    pub fn on(interface: &Interface, frame: &'a [u8], direction: Direction, checksum: Checksum) -> Self {
        let (device, own) = (interface.index, interface.hardware().0);
        Seen { frame, direction, device, hardware: ETHERNET, own, checksum }
    }

    /// One of the loopback device's.
    pub fn on_loopback(frame: &'a [u8], direction: Direction, checksum: Checksum) -> Self {
        Seen { frame, direction, device: devices::INDEX as u32, hardware: LOOPBACK, own: [0; 6], checksum }
    }

    /// What it carries (`ETH_P_*`); `None`: it has not even a header.
    pub fn kind(&self) -> Option<u16> {
        let kind = self.frame.get(12..HEADER_BYTES)?;
        Some(u16::from_be_bytes([kind[0], kind[1]]))
    }

    /// For whom it is (`PACKET_*`).
    pub fn audience(&self) -> u8 {
        match self.frame.first_chunk::<6>() {
            _ if self.direction == Direction::Out => OUTGOING,
            Some([0xff, 0xff, 0xff, 0xff, 0xff, 0xff]) => FOR_ALL,
            Some(to) if to[0] & 1 != 0 => FOR_GROUP,
            Some(to) if *to == self.own => FOR_HOST,
            _ => FOR_OTHER,
        }
    }

    /// `struct sockaddr_ll`: where it is from.
    pub fn address(&self) -> [u8; ADDRESS_BYTES] {
        let mut address = encode(self.kind().unwrap_or(0), self.device, Some(self.hardware));
        address[10] = self.audience();
        if let Some(source) = self.frame.get(6..12) {
            address[12..18].copy_from_slice(source);
        }
        address
    }
}
