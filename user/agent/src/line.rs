//! The agent's end of the serial line: messages to and from the host.

use ebb_protocol::{Decoder, ToGuest, ToHost};
use rustix::fs::OFlags;
use rustix::termios::{ControlModes, OptionalActions, tcgetattr, tcsetattr};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// The second serial port: a raw channel of bytes to the host.
const DEVICE: &str = "/dev/ttyS1";

/// The open line. Reading from it also tells the host that there is room again.
pub struct Line {
    file: File,
    decoder: Decoder,
}

impl Line {
    /// Opens the line and switches off all that a terminal does to bytes.
    pub fn open() -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(OFlags::NOCTTY.bits() as i32)
            .open(DEVICE)
            .map_err(|error| io::Error::new(error.kind(), format!("cannot open {DEVICE}: {error}")))?;
        // A kernel may give a plain device here instead of a terminal: then there is nothing to switch off.
        if let Ok(mut settings) = tcgetattr(&file) {
            settings.make_raw();
            settings.control_modes |= ControlModes::CLOCAL | ControlModes::CREAD;
            settings.control_modes &= !ControlModes::CRTSCTS;
            // Speed does not matter to an emulated port, but a driver's time-outs may depend on it.
            settings.set_speed(115_200)?;
            tcsetattr(&file, OptionalActions::Now, &settings)?;
        }
        Ok(Self { file, decoder: Decoder::new() })
    }

    /// Sends one message. Waits while the line is full: the host always reads on.
    pub fn send(&mut self, message: &ToHost) -> io::Result<()> {
        self.file.write_all(&message.to_frame().encode())
    }

    /// Takes what has arrived, waiting for at least one byte, and returns the messages that are complete.
    ///
    /// Fails if the line is damaged: there is no telling then what the host wanted.
    pub fn receive(&mut self) -> io::Result<Vec<ToGuest>> {
        let mut bytes = [0; 4096];
        let count = match self.file.read(&mut bytes) {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the host hung up")),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        if count > 0 {
            self.decoder.push(&bytes[..count]);
            self.send(&ToHost::Received(count as u32))?;
        }
        let mut messages = Vec::new();
        while let Some(frame) = self.decoder.next_frame().map_err(io::Error::other)? {
            messages.push(ToGuest::from_frame(&frame).map_err(io::Error::other)?);
        }
        Ok(messages)
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
