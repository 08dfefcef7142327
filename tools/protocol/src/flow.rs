//! How many bytes may be under way.
//!
//! There are two levels. On the **line** from host to guest the host never has more than [`Line::window_bytes`] that the agent has not yet reported as read ([`crate::ToHost::Received`]): a serial line ends in a kernel
//! buffer of a few KiB, and a UART cannot say "stop"; a port can, but the host does not want to wait for a guest that reads no more. From guest to host no such limit is needed, for the host always reads on.
//!
//! Each **stream** of the program has a window of its own, so that a program that does not read its input, or a
//! terminal that does not take its output, stops only that stream. The sender counts down from [`STREAM_WINDOW_BYTES`]
//! and the receiver gives credit back as it passes bytes on.

use crate::message::OUTPUT_FRAME_BYTES;

/// What host and agent talk through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// The port of a virtual console that is called [`PORT_NAME`].
    Port,
    /// The second serial port.
    Serial,
}

/// The name of the port.
pub const PORT_NAME: &str = "ebb.line";

impl Line {
    /// The most bytes, frames and all, that the host may have sent and the agent not yet reported as read.
    ///
    /// Linux keeps up to 4095 bytes for a reader of a raw terminal; half of that leaves room for a slow interrupt handler. What is for a port waits in a socket of the host's, whose buffer is larger.
    pub fn window_bytes(self) -> usize {
        match self {
            Line::Port => 128 * 1024,
            Line::Serial => 2048,
        }
    }

    /// The agent reports what it has read in portions of at least this many bytes.
    pub fn report_bytes(self) -> usize {
        match self {
            Line::Port => self.window_bytes() / 4,
            Line::Serial => 1,
        }
    }

    /// The most bytes of input in one message: no other message reaches the guest while it is under way.
    pub fn input_bytes(self) -> usize {
        match self {
            Line::Port => 32 * 1024,
            Line::Serial => 4096,
        }
    }

    /// The most bytes of output in one message, the frame of which a port takes in one piece.
    pub fn output_bytes(self) -> usize {
        match self {
            Line::Port => 64 * 1024 - OUTPUT_FRAME_BYTES,
            Line::Serial => 8192,
        }
    }
}

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
