//! How many bytes may be under way.
//!
//! There are two levels. The **line** from host to guest ends in a kernel buffer of a few KiB, and a UART cannot say
//! "stop": so the host never has more than [`LINE_WINDOW_BYTES`] on the line that the agent has not yet reported as
//! read ([`crate::ToHost::Received`]). From guest to host no such limit is needed, for the host always reads on.
//!
//! Each **stream** of the program has a window of its own, so that a program that does not read its input, or a
//! terminal that does not take its output, stops only that stream. The sender counts down from [`STREAM_WINDOW_BYTES`]
//! and the receiver gives credit back as it passes bytes on.

/// The most bytes, frames and all, that the host may have sent and the agent not yet reported as read.
///
/// Linux keeps up to 4095 bytes for a reader of a raw terminal; half of that leaves room for a slow interrupt handler.
pub const LINE_WINDOW_BYTES: usize = 2048;

/// The most payload bytes of one stream that its receiver can be asked to hold.
pub const STREAM_WINDOW_BYTES: usize = 256 * 1024;

/// A sender's right to send payload bytes of one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    bytes: usize,
}

impl Window {
    /// A full window of [`STREAM_WINDOW_BYTES`].
    pub fn full() -> Self {
        Self { bytes: STREAM_WINDOW_BYTES }
    }

    /// How many bytes may be sent now.
    pub fn available_bytes(&self) -> usize {
        self.bytes
    }

    /// Notes that `count` bytes were sent; more than there was room for leaves the window empty.
    pub fn spend(&mut self, count: usize) {
        self.bytes = self.bytes.saturating_sub(count);
    }

    /// Notes that the receiver passed `count` bytes on. Never grows beyond the full window, whatever the peer says.
    pub fn refund(&mut self, count: usize) {
        self.bytes = self.bytes.saturating_add(count).min(STREAM_WINDOW_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_never_grows_beyond_full_or_below_empty() {
        let mut window = Window::full();
        window.refund(usize::MAX);
        assert_eq!(window.available_bytes(), STREAM_WINDOW_BYTES);
        window.spend(usize::MAX);
        assert_eq!(window.available_bytes(), 0);
        window.refund(5);
        window.spend(2);
        assert_eq!(window.available_bytes(), 3);
    }
}
