//! The host's end of the line, and which line it is: the guest decides by the one that it says the first word on.

use ebb_protocol::flow::Line;
use ebb_protocol::{Decoder, ToGuest, ToHost};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, OnceLock};

/// Sends messages, no faster than the guest reads them.
pub(crate) struct LineWriter {
    kind: Line,
    stream: UnixStream,
    queue: VecDeque<u8>,
    unread_bytes: usize,
}

impl LineWriter {
    /// The writing half of a line.
    pub fn new(kind: Line, stream: &UnixStream) -> io::Result<Self> {
        Ok(Self { kind, stream: stream.try_clone()?, queue: VecDeque::new(), unread_bytes: 0 })
    }

    /// What the line is.
    pub fn kind(&self) -> Line {
        self.kind
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
        let window = self.kind.window_bytes();
        while !self.queue.is_empty() && self.unread_bytes < window {
            let (first, _) = self.queue.as_slices();
            let room = first.len().min(window - self.unread_bytes);
            self.stream.write_all(&first[..room])?;
            self.queue.drain(..room);
            self.unread_bytes += room;
        }
        Ok(())
    }
}

/// Reads each line in a thread of its own, and passes on the messages of the one that the first came through, and at last the reason of its end; which one that is. While none has come, the end of any is passed on.
pub(crate) fn read_lines(
    lines: [(Line, UnixStream); 2],
    pass_on: impl Fn(Result<ToHost, String>) -> bool + Clone + Send + 'static,
) -> Arc<OnceLock<Line>> {
    let chosen = Arc::new(OnceLock::new());
    for (kind, stream) in lines {
        let (chosen, pass_on) = (chosen.clone(), pass_on.clone());
        std::thread::spawn(move || {
            read_line(stream, |message| {
                let speaking = if message.is_ok() { Some(chosen.get_or_init(|| kind)) } else { chosen.get() };
                speaking.is_none_or(|speaking| *speaking == kind) && pass_on(message)
            });
        });
    }
    chosen
}

/// Reads the line until it ends or is damaged, and passes on each message and at last the reason of the end.
fn read_line(mut stream: UnixStream, mut pass_on: impl FnMut(Result<ToHost, String>) -> bool) {
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
