//! The host's end of the serial line.

use ebb_protocol::flow::LINE_WINDOW_BYTES;
use ebb_protocol::{Decoder, ToGuest, ToHost};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

/// Sends messages, no faster than the guest reads them.
pub(crate) struct LineWriter {
    stream: UnixStream,
    queue: VecDeque<u8>,
    unread_bytes: usize,
}

impl LineWriter {
    /// The writing half of a line.
    pub fn new(stream: UnixStream) -> Self {
        Self { stream, queue: VecDeque::new(), unread_bytes: 0 }
    }

    /// Sends a message as soon as the guest has room for it.
    pub fn send(&mut self, message: &ToGuest) -> io::Result<()> {
        self.queue.extend(message.to_frame().encode());
        self.flush()
    }

    /// The guest has read so many bytes more.
    pub fn received(&mut self, count: usize) -> io::Result<()> {
        self.unread_bytes = self.unread_bytes.saturating_sub(count);
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        while !self.queue.is_empty() && self.unread_bytes < LINE_WINDOW_BYTES {
            let (first, _) = self.queue.as_slices();
            let room = first.len().min(LINE_WINDOW_BYTES - self.unread_bytes);
            self.stream.write_all(&first[..room])?;
            self.queue.drain(..room);
            self.unread_bytes += room;
        }
        Ok(())
    }
}

/// Reads the line until it ends or is damaged, and passes on each message and at last the reason of the end.
pub(crate) fn read_line(mut stream: UnixStream, mut pass_on: impl FnMut(Result<ToHost, String>) -> bool) {
    let mut decoder = Decoder::new();
    let mut bytes = vec![0; 64 * 1024];
    let why = loop {
        match stream.read(&mut bytes) {
            Ok(0) => break "the line is closed".to_owned(),
            Ok(count) => decoder.push(&bytes[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => break error.to_string(),
        }
        let damage = loop {
            match decoder.next_frame().and_then(|frame| frame.map(|frame| ToHost::from_frame(&frame)).transpose()) {
                Ok(Some(message)) => {
                    if !pass_on(Ok(message)) {
                        return;
                    }
                }
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        if let Some(error) = damage {
            break format!("the line from the guest is damaged: {error}");
        }
    };
    pass_on(Err(why));
}
