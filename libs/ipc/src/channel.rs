//! A channel: call lines and a ring in each direction, laid out in one region.
//!
//! ```text
//!   line 0        what the region holds (written once, by the one who made it)
//!        2        A's control line          4  how far A has come in the ring to A
//!        6        B's control line          8  how far B has come in the ring to B
//!       10 ..     call lines on which A asks, call lines on which B asks, ring to B, ring to A
//! ```
//!
//! The lines of the two ends lie two apart: processors fetch lines in pairs.

use crate::Error;
use crate::atomic::Ordering;
use crate::call::{Callee, Caller};
use crate::link::Link;
use crate::region::Region;
use crate::ring::{Receiver, Sender};

/// "EbbIpc" and the version of the layout.
const MAGIC: u64 = 0x4562_6249_7063_0001;
const CONTROL_A: usize = 2;
const CURSOR_A: usize = 4;
const CONTROL_B: usize = 6;
const CURSOR_B: usize = 8;
const FIRST: usize = 10;

/// How much of what a channel has, in each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    call_lines: u16,
    ring_slots: u32,
}

impl Geometry {
    /// The most call lines in a direction.
    pub const MAX_CALL_LINES: usize = 1024;
    /// The most slots of a ring.
    pub const MAX_RING_SLOTS: usize = 1 << 20;

    /// `call_lines` in each direction allow one call fewer at a time: 0, or from 2 to 1024. `ring_slots` in each direction:
    /// 0, or a power of two from 4 to 2^20.
    ///
    /// # Errors
    /// [`Error::BadRegion`] when a number is not one of those.
    pub const fn new(call_lines: usize, ring_slots: usize) -> Result<Geometry, Error> {
        let calls_fit = call_lines == 0 || (call_lines >= 2 && call_lines <= Self::MAX_CALL_LINES);
        let slots_fit =
            ring_slots == 0 || (ring_slots >= 4 && ring_slots <= Self::MAX_RING_SLOTS && ring_slots.is_power_of_two());
        if calls_fit && slots_fit {
            Ok(Geometry { call_lines: call_lines as u16, ring_slots: ring_slots as u32 })
        } else {
            Err(Error::BadRegion)
        }
    }

    /// The size of the region that it takes, in lines of 64 bytes.
    pub const fn len_lines(self) -> usize {
        FIRST + 2 * (self.call_lines as usize + self.ring_slots as usize)
    }

    /// Writes it into a fresh region.
    fn write(self, region: &Region) {
        let line = &region.lines()[0];
        line.word(1).store(self.call_lines.into(), Ordering::Relaxed);
        line.word(2).store(self.ring_slots.into(), Ordering::Relaxed);
        line.word(0).store(MAGIC, Ordering::Release);
    }

    /// Reads what somebody else wrote, once, and believes nothing of it that does not fit the region.
    fn read(region: &Region) -> Result<Geometry, Error> {
        let line = region.lines().first().ok_or(Error::BadRegion)?;
        if line.word(0).load(Ordering::Acquire) != MAGIC {
            return Err(Error::BadRegion);
        }
        let number = |word| usize::try_from(line.word(word).load(Ordering::Relaxed)).map_err(|_| Error::BadRegion);
        let geometry = Geometry::new(number(1)?, number(2)?)?;
        if geometry.len_lines() <= region.len_lines() { Ok(geometry) } else { Err(Error::BadRegion) }
    }
}

impl Default for Geometry {
    /// 128 call lines and 128 slots: 33 KiB.
    fn default() -> Geometry {
        Geometry { call_lines: 128, ring_slots: 128 }
    }
}

/// Which of the two ends of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The end of the one who made it.
    A,
    /// The other.
    B,
}

/// One end of a channel. Its parts can be moved to different threads; the peer finds the channel closed when the last of them
/// is dropped. (A closure that uses one part of an endpoint captures that part alone: the rest stays where it was, and keeps the
/// channel open.)
#[derive(Debug)]
pub struct Endpoint {
    /// Asks and gets answers.
    pub caller: Caller,
    /// Is asked and answers.
    pub callee: Callee,
    /// The ring to the peer.
    pub sender: Sender,
    /// The ring from the peer.
    pub receiver: Receiver,
    /// The state of the connection.
    pub link: Link,
}

impl Endpoint {
    /// Makes a channel in a fresh region (all zeros); the result is its end [`Side::A`].
    ///
    /// # Errors
    /// [`Error::BadRegion`] when the region is too small.
    pub fn create(region: &Region, geometry: Geometry) -> Result<Endpoint, Error> {
        if region.len_lines() < geometry.len_lines() {
            return Err(Error::BadRegion);
        }
        geometry.write(region);
        Ok(Endpoint::lay_out(region, geometry, Side::A))
    }

    /// Takes the end [`Side::B`] of a channel that the peer made in this region.
    ///
    /// An end is taken once: two takers of one end would read each other's traffic as a breach of the protocol.
    ///
    /// # Errors
    /// [`Error::BadRegion`] when there is no channel in it that fits.
    pub fn open(region: &Region) -> Result<Endpoint, Error> {
        let geometry = Geometry::read(region)?;
        Ok(Endpoint::lay_out(region, geometry, Side::B))
    }

    /// `geometry` fits into the region.
    fn lay_out(region: &Region, geometry: Geometry, side: Side) -> Endpoint {
        let (calls, slots) = (usize::from(geometry.call_lines), geometry.ring_slots as usize);
        let calls_of = |side| match side {
            Side::A => region.part(FIRST..FIRST + calls),
            Side::B => region.part(FIRST + calls..FIRST + 2 * calls),
        };
        let rings = FIRST + 2 * calls;
        let ring_to = |side| match side {
            Side::B => region.part(rings..rings + slots),
            Side::A => region.part(rings + slots..rings + 2 * slots),
        };
        let control_of = |side| {
            let at = if side == Side::A { CONTROL_A } else { CONTROL_B };
            region.part(at..at + 1)
        };
        let cursor_of = |side| {
            let at = if side == Side::A { CURSOR_A } else { CURSOR_B };
            region.part(at..at + 1)
        };
        let other = if side == Side::A { Side::B } else { Side::A };
        let link = Link::new(control_of(side), control_of(other));
        Endpoint {
            caller: Caller::new(calls_of(side), link.clone()),
            callee: Callee::new(calls_of(other), link.clone()),
            sender: Sender::new(ring_to(other), cursor_of(other), link.clone()),
            receiver: Receiver::new(ring_to(side), cursor_of(side), link.clone()),
            link,
        }
    }
}

/// The two ends of a channel between threads of this program.
pub fn pair(geometry: Geometry) -> (Endpoint, Endpoint) {
    let region = Region::on_the_heap(geometry.len_lines());
    geometry.write(&region);
    (Endpoint::lay_out(&region, geometry, Side::A), Endpoint::lay_out(&region, geometry, Side::B))
}
