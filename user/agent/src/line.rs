//! The agent's end of the line: messages to and from the host.

use ebb_protocol::flow::{self, PORT_NAME};
use ebb_protocol::{Decoder, OutputFrame, OutputStream, ToGuest, ToHost};
use rustix::fs::OFlags;
use rustix::termios::{ControlModes, OptionalActions, tcgetattr, tcsetattr};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The second serial port: a raw channel of bytes to the host.
const SERIAL: &str = "/dev/ttyS1";
/// Where the ports of virtual consoles are, each with its name.
const PORTS: &str = "/sys/class/virtio-ports";

/// The open line. Reading from it also tells the host that there is room again.
pub struct Line {
    file: File,
    kind: flow::Line,
    decoder: Decoder,
    /// What was read of the line and not reported yet.
    unreported_bytes: usize,
    received: Vec<u8>,
    output: OutputFrame,
}

impl Line {
    /// Opens the port that is for this if there is one, else the serial line.
    pub fn open() -> io::Result<Self> {
        let port = find_port().and_then(|path| OpenOptions::new().read(true).write(true).open(path).ok());
        let (file, kind) = match port {
            Some(file) => (file, flow::Line::Port),
            None => (open_serial()?, flow::Line::Serial),
        };
        Ok(Self {
            file,
            kind,
            decoder: Decoder::new(),
            unreported_bytes: 0,
            received: vec![0; kind.input_bytes()],
            output: OutputFrame::with_room(kind.output_bytes()),
        })
    }

    /// Sends one message. Waits while the line is full: the host always reads on.
    pub fn send(&mut self, message: &ToHost) -> io::Result<()> {
        self.file.write_all(&message.to_frame().encode())
    }

    /// Reads once from `pipe`, at most `most` bytes, and sends them as output; how many, 0 at the pipe's end. What is wrong with the pipe is the error inside.
    pub fn pass_output(&mut self, mut pipe: &File, stream: OutputStream, most: usize) -> io::Result<io::Result<usize>> {
        let room = self.output.room();
        let most = most.min(room.len());
        let count = match pipe.read(&mut room[..most]) {
            Ok(count) => count,
            Err(error) => return Ok(Err(error)),
        };
        if count > 0 {
            self.file.write_all(self.output.seal(stream, count))?;
        }
        Ok(Ok(count))
    }

    /// Takes what has arrived, waiting for at least one byte, and returns the messages that are complete.
    ///
    /// Fails if the line is damaged: there is no telling then what the host wanted.
    pub fn receive(&mut self) -> io::Result<Vec<ToGuest>> {
        let count = match self.file.read(&mut self.received) {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the host hung up")),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        self.decoder.push(&self.received[..count]);
        self.unreported_bytes += count;
        if self.unreported_bytes >= self.kind.report_bytes() {
            let count = std::mem::take(&mut self.unreported_bytes);
            self.send(&ToHost::Received(count as u32))?;
        }
        let mut messages = Vec::new();
        while let Some(frame) = self.decoder.next_frame().map_err(io::Error::other)? {
            messages.push(ToGuest::from_frame(&frame).map_err(io::Error::other)?);
        }
        Ok(messages)
    }
}

/// The port that is called as the host calls its line.
fn find_port() -> Option<PathBuf> {
    let is_for_this =
        |port: &Path| std::fs::read_to_string(port.join("name")).is_ok_and(|name| name.trim() == PORT_NAME);
    let mut ports = std::fs::read_dir(PORTS).ok()?.filter_map(Result::ok);
    let port = ports.find(|port| is_for_this(&port.path()))?;
    Some(Path::new("/dev").join(port.file_name()))
}

/// Opens the serial line and switches off all that a terminal does to bytes.
fn open_serial() -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(OFlags::NOCTTY.bits() as i32)
        .open(SERIAL)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot open {SERIAL}: {error}")))?;
    // A kernel may give a plain device here instead of a terminal: then there is nothing to switch off.
    if let Ok(mut settings) = tcgetattr(&file) {
        settings.make_raw();
        settings.control_modes |= ControlModes::CLOCAL | ControlModes::CREAD;
        settings.control_modes &= !ControlModes::CRTSCTS;
        // Speed does not matter to an emulated port, but a driver's time-outs may depend on it.
        settings.set_speed(115_200)?;
        tcsetattr(&file, OptionalActions::Now, &settings)?;
    }
    Ok(file)
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
