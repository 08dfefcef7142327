//! Messages over the standard input and output.
//!
//! A header says how long a message is. Room is made for what comes, and not for what the header says: that may be any number.
//! A message that is no JSON, or none of the protocol, is left out; where the next one begins is known all the same.

use lsp_server::{Connection, Message};
use std::io::{self, BufRead, Read};
use std::thread::JoinHandle;

/// No header line is longer.
const HEADER_LIMIT: u64 = 4 << 10;

/// The threads that read and write.
pub struct Threads {
    reader: JoinHandle<io::Result<()>>,
    writer: JoinHandle<io::Result<()>>,
}

impl Threads {
    /// Waits for both.
    ///
    /// # Errors
    /// What went wrong with reading or writing.
    pub fn join(self) -> io::Result<()> {
        for thread in [self.reader, self.writer] {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread of the server failed")))?;
        }
        Ok(())
    }
}

/// A connection with whoever started this program.
pub fn connect() -> (Connection, Threads) {
    let (ours, Connection { sender, receiver }) = Connection::memory();
    let reader = std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        while let Some(body) = read(&mut input)? {
            let message: Message = match serde_json::from_slice(&body) {
                Ok(message) => message,
                Err(error) => {
                    eprintln!("cyc: no message of the protocol: {error}");
                    continue;
                }
            };
            let is_last = matches!(&message, Message::Notification(of) if of.method == "exit");
            if sender.send(message).is_err() || is_last {
                break;
            }
        }
        Ok(())
    });
    let writer = std::thread::spawn(move || {
        let mut output = io::stdout().lock();
        receiver.into_iter().try_for_each(|message| message.write(&mut output))
    });
    (ours, Threads { reader, writer })
}

/// The next message's text; `None` at the end.
fn read(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mut length = None;
    loop {
        let mut line = Vec::new();
        input.by_ref().take(HEADER_LIMIT).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        if !line.ends_with(b"\n") {
            return Err(wrong("a header line does not end"));
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or_else(|| wrong("a header line has no colon"))?;
        if name.eq_ignore_ascii_case("Content-Length") {
            length = Some(value.trim().parse::<u64>().map_err(|_| wrong("the length of a message is no number"))?);
        }
    }
    let length = length.ok_or_else(|| wrong("a message has no length"))?;
    let mut body = Vec::new();
    input.by_ref().take(length).read_to_end(&mut body)?;
    match body.len() as u64 == length {
        true => Ok(Some(body)),
        false => Err(wrong("a message is shorter than its header says")),
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    /// The messages of a stream, and what is wrong behind them.
    fn all(mut stream: &[u8]) -> (Vec<String>, Option<String>) {
        let mut messages = Vec::new();
        loop {
            match read(&mut stream) {
                Ok(Some(body)) => messages.push(String::from_utf8_lossy(&body).into_owned()),
                Ok(None) => return (messages, None),
                Err(error) => return (messages, Some(error.to_string())),
            }
        }
    }

    #[test]
    fn messages_follow_each_other() {
        let stream = b"Content-Length: 2\r\n\r\n{}Content-Type: x\r\ncontent-length:3\r\n\r\n[1]";
        assert_eq!(all(stream), (vec!["{}".to_owned(), "[1]".to_owned()], None));
    }

    #[test]
    fn lengths_that_are_wrong_are_errors() {
        let wrong: &[&[u8]] = &[
            b"Content-Length: 18446744073709551615\r\n\r\n{}",
            b"Content-Length: 99999999999999999999999\r\n\r\n{}",
            b"Content-Length: 400000000000\r\n\r\n{}",
            b"Content-Length: -1\r\n\r\n{}",
            b"Content-Length: \xff\r\n\r\n{}",
            b"Content-Length 2\r\n\r\n{}",
            b"Content-Length: 2",
            b"\r\n{}",
            &[b'x'; 10_000],
        ];
        for stream in wrong {
            assert!(all(stream).1.is_some(), "{:?}", String::from_utf8_lossy(stream));
        }
    }
}
