//! Segments: a TCP header, its options, and the data (RFC 9293, section 3.1).
//!
//! Holding a [`Segment`] says that the lengths are right and, unless the device has looked, that the checksum is. Numbers in it are the wire's.

use core::net::IpAddr;

use smoltcp::wire::{TcpOption, TcpPacket, TcpSeqNumber};

use crate::Malformed;
use crate::checksum::{self, Checksum, OutgoingChecksum, protocol};

/// Bytes of the longest header.
pub const LONGEST_HEADER: usize = 60;
/// Bytes of the shortest one.
pub const SHORTEST_HEADER: usize = 20;
/// SACK blocks in a segment, at most: so many fit beside time stamps.
pub const MOST_SACK_BLOCKS: usize = 3;

/// Time stamps (RFC 7323, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// The sender's clock.
    pub value: u32,
    /// The receiver's clock, as the sender saw it last.
    pub echo: u32,
}

/// The options that are understood. Others are skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The largest segment that the sender takes, in bytes of data.
    pub mss: Option<u16>,
    /// By how many bits its windows are shifted: at most 14.
    pub window_scale: Option<u8>,
    /// Whether it understands SACK.
    pub sack_permitted: bool,
    /// Its time stamps.
    pub timestamps: Option<Timestamps>,
    /// What it received out of order: starts and ends.
    pub sack: [Option<(u32, u32)>; MOST_SACK_BLOCKS],
}

/// A header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// The number of the first byte, or of the SYN.
    pub sequence: u32,
    /// The number that the sender expects next, where ACK is set.
    pub acknowledgment: Option<u32>,
    /// SYN.
    pub syn: bool,
    /// FIN.
    pub fin: bool,
    /// RST.
    pub rst: bool,
    /// PSH.
    pub push: bool,
    /// The window, as it is on the wire: not scaled.
    pub window: u16,
    /// The options.
    pub options: Options,
}

/// A header and its data. A device may have joined several segments to one, which then is longer than any MSS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// The header.
    pub header: Header,
    /// The data.
    pub payload: &'a [u8],
}

impl<'a> Segment<'a> {
    /// Reads a segment that came in an IP packet with such addresses.
    ///
    /// # Errors
    ///
    /// A length or an option is wrong, the checksum is, a port is zero, or SYN comes with RST or FIN.
    pub fn parse(
        bytes: &'a [u8],
        source: IpAddr,
        destination: IpAddr,
        checksum: Checksum,
    ) -> Result<Segment<'a>, Malformed> {
        let packet = TcpPacket::new_checked(bytes).map_err(|_| Malformed)?;
        if checksum == Checksum::Verify && !checksum::is_right(source, destination, protocol::TCP, bytes) {
            return Err(Malformed);
        }
        if packet.src_port() == 0 || packet.dst_port() == 0 || packet.syn() && (packet.rst() || packet.fin()) {
            return Err(Malformed);
        }
        let header = Header {
            source_port: packet.src_port(),
            destination_port: packet.dst_port(),
            sequence: packet.seq_number().0 as u32,
            acknowledgment: packet.ack().then(|| packet.ack_number().0 as u32),
            syn: packet.syn(),
            fin: packet.fin(),
            rst: packet.rst(),
            push: packet.psh(),
            window: packet.window_len(),
            options: Options::parse(packet.options())?,
        };
        Ok(Segment { header, payload: packet.payload() })
    }

    /// How much sequence space it takes: its bytes, and one each for SYN and FIN.
    pub fn sequence_len(&self) -> u64 {
        self.payload.len() as u64 + u64::from(self.header.syn) + u64::from(self.header.fin)
    }

    /// The reset that answers it where there is no connection (RFC 9293, section 3.10.7.1); none answers a reset.
    pub fn reset(&self) -> Option<Header> {
        let header = &self.header;
        if header.rst {
            return None;
        }
        let (sequence, acknowledgment) = match header.acknowledgment {
            Some(acknowledgment) => (acknowledgment, None),
            None => (0, Some(header.sequence.wrapping_add(self.sequence_len() as u32))),
        };
        Some(Header {
            source_port: header.destination_port,
            destination_port: header.source_port,
            sequence,
            acknowledgment,
            rst: true,
            ..Header::default()
        })
    }
}

impl Options {
    fn parse(mut bytes: &[u8]) -> Result<Options, Malformed> {
        let mut options = Options::default();
        while !bytes.is_empty() {
            let (rest, option) = TcpOption::parse(bytes).map_err(|_| Malformed)?;
            bytes = rest;
            match option {
                TcpOption::EndOfList => break,
                TcpOption::MaxSegmentSize(mss) => options.mss = Some(mss),
                // RFC 7323, section 2.3: a larger one means 14.
                TcpOption::WindowScale(shift) => options.window_scale = Some(shift.min(14)),
                TcpOption::SackPermitted => options.sack_permitted = true,
                TcpOption::SackRange(blocks) => options.sack = blocks,
                TcpOption::TimeStamp { tsval, tsecr } => {
                    options.timestamps = Some(Timestamps { value: tsval, echo: tsecr });
                }
                TcpOption::NoOperation | TcpOption::Unknown { .. } => {}
            }
        }
        Ok(options)
    }

    /// Calls `emit` with each option that is to be sent, time stamps first, two bytes of padding before those that would else not be aligned.
    fn each(&self, mut emit: impl FnMut(TcpOption<'_>)) {
        if let Some(mss) = self.mss {
            emit(TcpOption::MaxSegmentSize(mss));
        }
        match (self.sack_permitted, self.timestamps) {
            (true, _) => emit(TcpOption::SackPermitted),
            (false, Some(_)) => {
                emit(TcpOption::NoOperation);
                emit(TcpOption::NoOperation);
            }
            (false, None) => {}
        }
        if let Some(Timestamps { value, echo }) = self.timestamps {
            emit(TcpOption::TimeStamp { tsval: value, tsecr: echo });
        } else if self.sack_permitted {
            emit(TcpOption::NoOperation);
            emit(TcpOption::NoOperation);
        }
        if let Some(shift) = self.window_scale {
            emit(TcpOption::NoOperation);
            emit(TcpOption::WindowScale(shift));
        }
        if self.sack.iter().any(Option::is_some) {
            emit(TcpOption::NoOperation);
            emit(TcpOption::NoOperation);
            emit(TcpOption::SackRange(self.sack));
        }
    }

    /// Bytes of the options on the wire: a multiple of four, at most 40.
    pub fn len_bytes(&self) -> usize {
        let mut len = 0;
        self.each(|option| len += option.buffer_len());
        len
    }
}

impl Header {
    /// Bytes of the header with its options.
    pub fn len_bytes(&self) -> usize {
        SHORTEST_HEADER + self.options.len_bytes()
    }

    /// Writes the header before `payload_bytes` of data, which already are in `packet` at [`len_bytes`](Header::len_bytes). Returns the segment's length.
    ///
    /// # Errors
    ///
    /// `packet` is too short.
    pub fn emit(
        &self,
        packet: &mut [u8],
        payload_bytes: usize,
        source: IpAddr,
        destination: IpAddr,
        checksum: OutgoingChecksum,
    ) -> Result<usize, Malformed> {
        let header_bytes = self.len_bytes();
        let len = header_bytes + payload_bytes;
        let bytes = packet.get_mut(..len).filter(|_| header_bytes <= LONGEST_HEADER).ok_or(Malformed)?;
        bytes[..header_bytes].fill(0);
        let mut packet = TcpPacket::new_unchecked(bytes);
        packet.set_src_port(self.source_port);
        packet.set_dst_port(self.destination_port);
        packet.set_seq_number(TcpSeqNumber(self.sequence as i32));
        packet.set_ack_number(TcpSeqNumber(self.acknowledgment.unwrap_or(0) as i32));
        packet.set_header_len(header_bytes as u8);
        packet.set_ack(self.acknowledgment.is_some());
        packet.set_syn(self.syn);
        packet.set_fin(self.fin);
        packet.set_rst(self.rst);
        packet.set_psh(self.push);
        packet.set_window_len(self.window);
        let mut rest = packet.options_mut();
        self.options.each(|option| {
            let room = core::mem::take(&mut rest);
            rest = option.emit(room);
        });
        let sum = checksum::compute(checksum, source, destination, protocol::TCP, packet.as_ref());
        packet.set_checksum(sum);
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use core::net::{IpAddr, Ipv4Addr};

    use super::*;

    const A: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const B: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

    #[test]
    fn headers_come_back_as_they_were() {
        let stamps = Some(Timestamps { value: 7, echo: 9 });
        let sack = [Some((1, 2)), Some((5, 9)), Some((20, 21))];
        let none = Options::default();
        for options in [
            none,
            Options { mss: Some(1460), window_scale: Some(7), sack_permitted: true, timestamps: stamps, ..none },
            Options { mss: Some(536), sack_permitted: true, ..none },
            Options { timestamps: stamps, sack, ..none },
            Options { sack, ..none },
        ] {
            let header = Header {
                source_port: 80,
                destination_port: 4000,
                sequence: u32::MAX,
                acknowledgment: Some(3),
                fin: true,
                push: true,
                window: 5000,
                options,
                ..Header::default()
            };
            assert!(options.len_bytes().is_multiple_of(4) && options.len_bytes() <= 40);
            let mut packet = [0; 100];
            packet[header.len_bytes()..][..5].copy_from_slice(b"hello");
            let len = header.emit(&mut packet, 5, A, B, OutgoingChecksum::Full).unwrap();
            let segment = Segment::parse(&packet[..len], A, B, Checksum::Verify).unwrap();
            assert_eq!(segment, Segment { header, payload: b"hello" });
            packet[len - 1] ^= 1;
            assert_eq!(Segment::parse(&packet[..len], A, B, Checksum::Verify), Err(Malformed));
        }
    }
}
