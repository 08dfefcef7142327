//! Places in a connection's two sequence spaces, as numbers that do not wrap.
//!
//! On the wire a place is 32 bits and wraps (RFC 9293, section 3.4). Inside this crate it is a 64-bit *position*: the SYN is at [`START`], the first
//! byte of data one after it, and the FIN after the last byte. So positions compare like numbers, and only this file knows that the wire wraps.
//! [`START`] is large enough for a place half the space before it to have a position as well.

/// The position of a SYN.
pub(crate) const START: u64 = 1 << 32;

/// A direction's initial sequence number, which ties positions to numbers on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin(pub u32);

impl Origin {
    /// The number on the wire of a position.
    pub fn wire(self, position: u64) -> u32 {
        // START is a multiple of 2^32.
        self.0.wrapping_add(position as u32)
    }

    /// The position nearest to `near` that has such a number. `near` is at least [`START`].
    pub fn position(self, wire: u32, near: u64) -> u64 {
        let distance = wire.wrapping_sub(self.wire(near)) as i32;
        near.saturating_add_signed(i64::from(distance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_go_on_where_numbers_wrap() {
        let origin = Origin(u32::MAX - 1);
        assert_eq!(origin.wire(START), u32::MAX - 1);
        assert_eq!(origin.wire(START + 3), 1);
        assert_eq!(origin.position(1, START), START + 3);
        assert_eq!(origin.position(u32::MAX - 2, START), START - 1);
        assert_eq!(origin.position(origin.wire(START + (7 << 32)), START + (7 << 32) + 5), START + (7 << 32));
    }
}
