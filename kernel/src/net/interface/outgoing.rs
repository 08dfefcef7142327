//! [`Outgoing`]: memory in which packets are written that go out one after the other, with room before them for their headers. So they are not copied on their way to the card, whose own memory is where they go next.

use alloc::vec::Vec;

use frame::Cx;
use tcpip::ethernet::HEADER_BYTES;
use tcpip::ip::IpHeader;
use tcpip::tcp::{self, Segmentation, Transmission};
use tcpip::{OutgoingChecksum, complete_checksum};

use super::{Cut, LeftChecksum, Offload, Unsent, Way, now};
use crate::net::counters;

/// Bytes of the longest packet, with a frame's header.
const LONGEST: usize = HEADER_BYTES + 65_535;
/// So many are kept that nobody uses.
const MOST_SPARE: usize = 8;
/// Where the checksum is in a header of TCP.
const TCP_CHECKSUM: u16 = 16;

/// Memory for one packet, whatever its length; `None` if there is none.
pub(super) fn memory() -> Option<Vec<u8>> {
    let mut frame = Vec::new();
    frame.try_reserve_exact(LONGEST).ok()?;
    frame.resize(LONGEST, 0);
    Some(frame)
}

/// Memory for packets to one address.
pub struct Outgoing {
    way: Way,
    header: IpHeader,
    /// At least as long as the longest packet.
    frame: Vec<u8>,
}

impl Outgoing {
    /// For packets with such headers, which go such a way.
    ///
    /// # Errors
    /// `NoRoom`: there is no memory.
    pub fn new(way: Way, header: IpHeader, cx: &Cx) -> Result<Outgoing, Unsent> {
        let spare = way.interface.spare.lock(cx).pop();
        let frame = spare.filter(|frame| frame.len() == LONGEST).or_else(memory).ok_or(Unsent::NoRoom)?;
        Ok(Outgoing { way, header, frame })
    }

    /// Gives the memory back.
    pub fn end(self, cx: &Cx) {
        let mut spare = self.way.interface.spare.lock(cx);
        if spare.len() < MOST_SPARE && spare.try_reserve(1).is_ok() {
            spare.push(self.frame);
        }
    }

    /// Whether the card has room for one more.
    pub fn has_room(&self, cx: &Cx) -> bool {
        self.way.interface.card.has_room(cx)
    }

    /// What of a segment of TCP can be left to the card.
    pub fn offload(&self) -> tcp::Offload {
        let abilities = self.way.interface.card.abilities();
        let computes = abilities.computes_checksums;
        let cuts = computes && abilities.cuts(self.header.destination.is_ipv6());
        tcp::Offload {
            checksum: if computes { OutgoingChecksum::ByDevice } else { OutgoingChecksum::Full },
            segmentation: if cuts { Segmentation::ByDevice } else { Segmentation::None },
        }
    }

    /// Where a segment of TCP is to be written: behind the headers.
    pub fn payload(&mut self) -> &mut [u8] {
        let at = HEADER_BYTES + self.header.len_bytes();
        let cuts = self.offload().segmentation == Segmentation::ByDevice;
        let most = if cuts { LONGEST } else { HEADER_BYTES + self.way.mtu() };
        &mut self.frame[at..most.min(LONGEST)]
    }

    /// Sends a segment of TCP that was written there.
    ///
    /// # Errors
    /// It was not sent, and why.
    pub fn send(&mut self, sent: &Transmission, cx: &Cx) -> Result<(), Unsent> {
        let at = HEADER_BYTES + self.header.len_bytes();
        let left = self.offload();
        let frame = &mut self.frame[..at + sent.len];
        self.header.emit(&mut frame[HEADER_BYTES..], sent.len).map_err(|_| Unsent::TooLarge)?;
        let is_left = left.checksum == OutgoingChecksum::ByDevice;
        let offload = Offload {
            checksum: is_left.then_some(LeftChecksum { start: at as u16, at: TCP_CHECKSUM }),
            cut: sent.segment_payload.map(|payload| Cut {
                header_bytes: (at + sent.header_bytes) as u16,
                payload: payload as u16,
                is_v6: self.header.destination.is_ipv6(),
            }),
        };
        counters::TCP_OUT.count();
        counters::ip(self.header.destination).count_sent(at + sent.len - HEADER_BYTES);
        let interface = self.way.interface;
        let known = interface.state.lock(cx).neighbours.resolve_known(now(), self.way.next);
        if let Some(hardware) = known {
            return interface.send_frame_with(hardware, frame, &offload, cx);
        }
        // It waits for its neighbour, complete: what is too long for that is sent again.
        if offload.cut.is_some() {
            return Err(Unsent::NoRoom);
        }
        if is_left {
            complete_checksum(frame, at, TCP_CHECKSUM.into());
        }
        let mut own = Vec::new();
        own.try_reserve_exact(frame.len()).map_err(|_| Unsent::NoRoom)?;
        own.extend_from_slice(frame);
        interface.send_to_neighbour(self.way.next, own, cx)
    }
}
