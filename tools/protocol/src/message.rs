//! The messages and their fields.
//!
//! Numbers are little-endian; a byte string is a `u32` length and the bytes; a list is a `u32` count and its items.

use crate::wire::{self, Frame, WireError};

/// What the host says to the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToGuest {
    /// Run this program. Only sent while none runs.
    Start(Start),
    /// Bytes for the program's standard input.
    Stdin(Vec<u8>),
    /// The program's standard input ends behind the bytes sent so far.
    StdinEof,
    /// Deliver this signal (its Linux number) to the program's process group.
    Signal(u8),
    /// The host passed on so many bytes of the stream: the guest may send so many more.
    Credit(OutputStream, u32),
    /// Nobody reads this stream any more: close it, so that the program sees what a writer to a closed pipe sees.
    CloseOutput(OutputStream),
    /// The size of the host's terminal, in characters; for the program's or the console's terminal in the guest.
    WindowSize {
        /// Lines.
        rows: u16,
        /// Characters in a line.
        columns: u16,
    },
    /// Write everything back and power off.
    Shutdown,
}

/// What the agent says to the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToHost {
    /// The agent runs and waits for [`ToGuest::Start`].
    Ready {
        /// Nanoseconds from the start of the kernel's clock to the agent's first instruction, as the kernel counts them.
        boot_ns: u64,
    },
    /// The agent took so many more bytes from the line (see [`crate::flow`]).
    Received(u32),
    /// The program wrote this.
    Output(OutputStream, Vec<u8>),
    /// The agent passed on so many bytes of standard input: the host may send so many more.
    StdinCredit(u32),
    /// The program closed its standard input: what follows would be thrown away.
    StdinClosed,
    /// The program ended. What it left running is killed now; [`ToHost::Exited`] follows unless that takes for ever.
    Ended,
    /// The program ended, all it wrote has been sent, and nothing that it started is left.
    Exited(Exit),
    /// The program could not be started.
    StartError(StartError),
    /// What the program's group counted; just before [`ToHost::Exited`] of a program that was started in one.
    Statistics(GroupFiles),
}

/// Why a program could not be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartError {
    /// The kernel refused something.
    Errno {
        /// What the agent was doing, for a person.
        doing: String,
        /// Linux's number of the error.
        errno: i32,
    },
    /// A bound on the time of reclamation was asked for, and the kernel's control groups have no controller `reclaim`.
    NoReclaim,
    /// The bound on the time of reclamation is less than what is charged for the program before its first instruction.
    BoundTooSmall {
        /// What is charged, in microseconds: a bound of so much is enough to start.
        needed_us: u64,
    },
}

/// One program to run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Start {
    /// The file to execute, an absolute path in the guest, or a name to look up in the program's `PATH`.
    pub program: Vec<u8>,
    /// The arguments, the program's own name first.
    pub argv: Vec<Vec<u8>>,
    /// The whole environment.
    pub env: Vec<(Vec<u8>, Vec<u8>)>,
    /// The working directory; made if it is missing.
    pub cwd: Vec<u8>,
    /// What standard input is.
    pub stdin: StandardInput,
    /// Gives the program a control group of its own, made before it and removed after it; without it the program runs in the agent's, the root.
    pub group: Option<GroupLimits>,
}

/// The limits of a program's control group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GroupLimits {
    /// `reclaim.max`: how long the group's kill may take, in microseconds.
    pub reclaim_max_us: Option<u64>,
}

/// What the files of a program's group said. A file that the kernel does not have is left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupFiles {
    /// How many processes were in the group or below it when it was killed.
    pub killed: u32,
    /// Files as they were just before that, by name.
    pub before_kill: Vec<(String, String)>,
    /// Files as they were when nobody was left.
    pub after_kill: Vec<(String, String)>,
}

/// What a program's standard input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StandardInput {
    /// `/dev/null`.
    #[default]
    Null,
    /// A pipe, fed by [`ToGuest::Stdin`].
    Pipe,
    /// A terminal of this size, which is standard output and standard error as well (sent as [`OutputStream::Stdout`]) and controls the
    /// program's session.
    Terminal {
        /// Lines.
        rows: u16,
        /// Characters in a line.
        columns: u16,
    },
}

/// One of a program's two output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exit {
    /// It called `exit` with this code.
    Code(u8),
    /// This signal (its Linux number) ended it.
    Signal(u8),
}

impl Exit {
    /// The code by which a shell reports such an end: the code itself, or 128 and the signal's number.
    pub fn shell_code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128_u8.wrapping_add(signal),
        }
    }

    /// Whether the program said that all went well.
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

impl OutputStream {
    fn number(self) -> u8 {
        match self {
            OutputStream::Stdout => 1,
            OutputStream::Stderr => 2,
        }
    }
}

/// The kind of [`ToHost::Output`].
const OUTPUT: u8 = 67;
/// Before the bytes of such a message: the frame's header, the stream, the length.
const OUTPUT_HEAD_BYTES: usize = wire::HEADER_BYTES + 5;
/// How much longer the frame of such a message is than its bytes.
pub const OUTPUT_FRAME_BYTES: usize = OUTPUT_HEAD_BYTES + wire::CHECKSUM_BYTES;

/// A frame for [`ToHost::Output`] whose bytes are read to where they are sent from.
#[derive(Debug)]
pub struct OutputFrame {
    bytes: Vec<u8>,
}

impl OutputFrame {
    /// A frame with room for so many bytes.
    pub fn with_room(room: usize) -> Self {
        Self { bytes: vec![0; room + OUTPUT_FRAME_BYTES] }
    }

    /// Where the bytes go.
    pub fn room(&mut self) -> &mut [u8] {
        let end = self.bytes.len() - wire::CHECKSUM_BYTES;
        &mut self.bytes[OUTPUT_HEAD_BYTES..end]
    }

    /// The message of the first `count` bytes of the room.
    pub fn seal(&mut self, stream: OutputStream, count: usize) -> &[u8] {
        let frame = &mut self.bytes[..count + OUTPUT_FRAME_BYTES];
        frame[wire::HEADER_BYTES] = stream.number();
        frame[wire::HEADER_BYTES + 1..OUTPUT_HEAD_BYTES].copy_from_slice(&(count as u32).to_le_bytes());
        wire::seal(OUTPUT, frame);
        frame
    }
}

impl ToGuest {
    /// The message as a frame.
    pub fn to_frame(&self) -> Frame<'static> {
        let mut out = Fields::default();
        let kind = match self {
            Self::Start(start) => {
                out.bytes(&start.program);
                out.list(&start.argv, |out, arg| out.bytes(arg));
                out.list(&start.env, |out, (name, value)| {
                    out.bytes(name);
                    out.bytes(value);
                });
                out.bytes(&start.cwd);
                match start.stdin {
                    StandardInput::Null => out.u8(0),
                    StandardInput::Pipe => out.u8(1),
                    StandardInput::Terminal { rows, columns } => {
                        out.u8(2);
                        out.u32(u32::from(rows));
                        out.u32(u32::from(columns));
                    }
                }
                out.option(start.group, |out, group| out.option(group.reclaim_max_us, Fields::u64));
                1
            }
            Self::Stdin(bytes) => {
                out.bytes(bytes);
                2
            }
            Self::StdinEof => 3,
            Self::Signal(number) => {
                out.u8(*number);
                4
            }
            Self::Credit(stream, count) => {
                out.stream(*stream);
                out.u32(*count);
                5
            }
            Self::CloseOutput(stream) => {
                out.stream(*stream);
                6
            }
            Self::WindowSize { rows, columns } => {
                out.u32(u32::from(*rows));
                out.u32(u32::from(*columns));
                7
            }
            Self::Shutdown => 8,
        };
        Frame { kind, payload: out.payload.into() }
    }

    /// What the frame means; [`WireError::Malformed`] if nothing.
    pub fn from_frame(frame: &Frame<'_>) -> Result<Self, WireError> {
        let mut fields = Reader { rest: &frame.payload };
        let message = match frame.kind {
            1 => Self::Start(Start {
                program: fields.bytes()?,
                argv: fields.list(Reader::bytes)?,
                env: fields.list(|fields| Ok((fields.bytes()?, fields.bytes()?)))?,
                cwd: fields.bytes()?,
                stdin: match fields.u8()? {
                    0 => StandardInput::Null,
                    1 => StandardInput::Pipe,
                    2 => StandardInput::Terminal { rows: fields.u32()? as u16, columns: fields.u32()? as u16 },
                    _ => return Err(WireError::Malformed("unknown kind of standard input")),
                },
                group: fields.option(|fields| Ok(GroupLimits { reclaim_max_us: fields.option(Reader::u64)? }))?,
            }),
            2 => Self::Stdin(fields.bytes()?),
            3 => Self::StdinEof,
            4 => Self::Signal(fields.u8()?),
            5 => Self::Credit(fields.stream()?, fields.u32()?),
            6 => Self::CloseOutput(fields.stream()?),
            7 => Self::WindowSize { rows: fields.u32()? as u16, columns: fields.u32()? as u16 },
            8 => Self::Shutdown,
            _ => return Err(WireError::Malformed("unknown kind of message")),
        };
        fields.end()?;
        Ok(message)
    }
}

impl ToHost {
    /// The message as a frame.
    pub fn to_frame(&self) -> Frame<'static> {
        let mut out = Fields::default();
        let kind = match self {
            Self::Ready { boot_ns } => {
                out.u64(*boot_ns);
                65
            }
            Self::Received(count) => {
                out.u32(*count);
                66
            }
            Self::Output(stream, bytes) => {
                out.stream(*stream);
                out.bytes(bytes);
                OUTPUT
            }
            Self::StdinCredit(count) => {
                out.u32(*count);
                68
            }
            Self::StdinClosed => 69,
            Self::Exited(exit) => {
                let (how, number) = match exit {
                    Exit::Code(code) => (0, *code),
                    Exit::Signal(signal) => (1, *signal),
                };
                out.u8(how);
                out.u8(number);
                70
            }
            Self::StartError(error) => {
                match error {
                    StartError::Errno { doing, errno } => {
                        out.u8(0);
                        out.text(doing);
                        out.u32(*errno as u32);
                    }
                    StartError::NoReclaim => out.u8(1),
                    StartError::BoundTooSmall { needed_us } => {
                        out.u8(2);
                        out.u64(*needed_us);
                    }
                }
                71
            }
            Self::Ended => 72,
            Self::Statistics(GroupFiles { killed, before_kill, after_kill }) => {
                out.u32(*killed);
                for files in [before_kill, after_kill] {
                    out.list(files, |out, (name, text)| {
                        out.text(name);
                        out.text(text);
                    });
                }
                73
            }
        };
        Frame { kind, payload: out.payload.into() }
    }

    /// What the frame means; [`WireError::Malformed`] if nothing.
    pub fn from_frame(frame: &Frame<'_>) -> Result<Self, WireError> {
        let mut fields = Reader { rest: &frame.payload };
        let message = match frame.kind {
            65 => Self::Ready { boot_ns: fields.u64()? },
            66 => Self::Received(fields.u32()?),
            OUTPUT => Self::Output(fields.stream()?, fields.bytes()?),
            68 => Self::StdinCredit(fields.u32()?),
            69 => Self::StdinClosed,
            70 => Self::Exited(match (fields.u8()?, fields.u8()?) {
                (0, code) => Exit::Code(code),
                (1, signal) => Exit::Signal(signal),
                _ => return Err(WireError::Malformed("unknown way to end")),
            }),
            71 => Self::StartError(match fields.u8()? {
                0 => StartError::Errno { doing: fields.text()?, errno: fields.u32()? as i32 },
                1 => StartError::NoReclaim,
                2 => StartError::BoundTooSmall { needed_us: fields.u64()? },
                _ => return Err(WireError::Malformed("unknown reason not to start")),
            }),
            72 => Self::Ended,
            73 => {
                let file = |fields: &mut Reader<'_>| Ok((fields.text()?, fields.text()?));
                Self::Statistics(GroupFiles {
                    killed: fields.u32()?,
                    before_kill: fields.list(file)?,
                    after_kill: fields.list(file)?,
                })
            }
            _ => return Err(WireError::Malformed("unknown kind of message")),
        };
        fields.end()?;
        Ok(message)
    }
}

#[derive(Default)]
struct Fields {
    payload: Vec<u8>,
}

impl Fields {
    fn u8(&mut self, value: u8) {
        self.payload.push(value);
    }

    fn u32(&mut self, value: u32) {
        self.payload.extend_from_slice(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.payload.extend_from_slice(&value.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.u32(bytes.len() as u32);
        self.payload.extend_from_slice(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn option<T>(&mut self, value: Option<T>, put: impl FnOnce(&mut Self, T)) {
        self.u8(u8::from(value.is_some()));
        if let Some(value) = value {
            put(self, value);
        }
    }

    fn list<T>(&mut self, items: &[T], mut put: impl FnMut(&mut Self, &T)) {
        self.u32(items.len() as u32);
        for item in items {
            put(self, item);
        }
    }

    fn stream(&mut self, stream: OutputStream) {
        self.u8(stream.number());
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(WireError::Malformed("too short"))?;
        self.rest = rest;
        Ok(*taken)
    }

    fn u8(&mut self) -> Result<u8, WireError> {
        Ok(u8::from_le_bytes(self.take()?))
    }

    fn u32(&mut self) -> Result<u32, WireError> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    fn u64(&mut self) -> Result<u64, WireError> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    fn bytes(&mut self) -> Result<Vec<u8>, WireError> {
        let length = self.u32()? as usize;
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(WireError::Malformed("too short"))?;
        self.rest = rest;
        Ok(taken.to_vec())
    }

    /// A text for a person; what is no UTF-8 is replaced.
    fn text(&mut self) -> Result<String, WireError> {
        Ok(String::from_utf8_lossy(&self.bytes()?).into_owned())
    }

    fn option<T>(&mut self, value: impl FnOnce(&mut Self) -> Result<T, WireError>) -> Result<Option<T>, WireError> {
        match self.u8()? {
            0 => Ok(None),
            1 => value(self).map(Some),
            _ => Err(WireError::Malformed("neither there nor missing")),
        }
    }

    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T, WireError>) -> Result<Vec<T>, WireError> {
        let count = self.u32()?;
        (0..count).map(|_| item(self)).collect()
    }

    fn stream(&mut self) -> Result<OutputStream, WireError> {
        match self.u8()? {
            1 => Ok(OutputStream::Stdout),
            2 => Ok(OutputStream::Stderr),
            _ => Err(WireError::Malformed("unknown stream")),
        }
    }

    fn end(&self) -> Result<(), WireError> {
        if self.rest.is_empty() { Ok(()) } else { Err(WireError::Malformed("too long")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some_to_guest() -> Vec<ToGuest> {
        vec![
            ToGuest::Start(Start {
                program: b"/bin/sh".to_vec(),
                argv: vec![b"sh".to_vec(), b"".to_vec(), vec![0xff]],
                env: vec![(b"A".to_vec(), b"b=c".to_vec())],
                cwd: b"/".to_vec(),
                stdin: StandardInput::Pipe,
                group: Some(GroupLimits { reclaim_max_us: Some(u64::MAX) }),
            }),
            ToGuest::Start(Start::default()),
            ToGuest::Start(Start { group: Some(GroupLimits { reclaim_max_us: None }), ..Start::default() }),
            ToGuest::Start(Start { stdin: StandardInput::Terminal { rows: 24, columns: 80 }, ..Start::default() }),
            ToGuest::Stdin(b"text".to_vec()),
            ToGuest::StdinEof,
            ToGuest::Signal(15),
            ToGuest::Credit(OutputStream::Stderr, 70_000),
            ToGuest::CloseOutput(OutputStream::Stdout),
            ToGuest::WindowSize { rows: 25, columns: 80 },
            ToGuest::Shutdown,
        ]
    }

    fn some_to_host() -> Vec<ToHost> {
        vec![
            ToHost::Ready { boot_ns: u64::MAX },
            ToHost::Received(12),
            ToHost::Output(OutputStream::Stdout, vec![0, 255]),
            ToHost::StdinCredit(1),
            ToHost::StdinClosed,
            ToHost::Ended,
            ToHost::Exited(Exit::Code(3)),
            ToHost::Exited(Exit::Signal(11)),
            ToHost::StartError(StartError::Errno { doing: "execute /x".into(), errno: 2 }),
            ToHost::StartError(StartError::NoReclaim),
            ToHost::StartError(StartError::BoundTooSmall { needed_us: 111 }),
            ToHost::Statistics(GroupFiles::default()),
            ToHost::Statistics(GroupFiles {
                killed: 2,
                before_kill: vec![("reclaim.current".into(), "226\n".into())],
                after_kill: vec![("reclaim.peak".into(), "289\n".into()), ("reclaim.last".into(), String::new())],
            }),
        ]
    }

    #[test]
    fn messages_survive_the_journey() {
        for message in some_to_guest() {
            assert_eq!(ToGuest::from_frame(&message.to_frame()), Ok(message));
        }
        for message in some_to_host() {
            assert_eq!(ToHost::from_frame(&message.to_frame()), Ok(message));
        }
    }

    #[test]
    fn output_that_was_read_into_its_frame_is_the_same_message() {
        let mut frame = OutputFrame::with_room(100);
        frame.room()[..5].copy_from_slice(b"bytes");
        let message = ToHost::Output(OutputStream::Stderr, b"bytes".to_vec());
        assert_eq!(frame.seal(OutputStream::Stderr, 5), message.to_frame().encode());
        assert_eq!(frame.room().len(), 100);
    }

    #[test]
    fn a_shortened_or_lengthened_message_is_refused() {
        fn check(mut frame: Frame<'_>, is_refused: impl Fn(&Frame<'_>) -> bool) {
            frame.payload.to_mut().push(0);
            assert!(is_refused(&frame), "{frame:?}");
            frame.payload.to_mut().pop();
            if frame.payload.to_mut().pop().is_some() {
                assert!(is_refused(&frame), "{frame:?}");
            }
        }
        for message in some_to_guest() {
            check(message.to_frame(), |frame| ToGuest::from_frame(frame).is_err());
        }
        for message in some_to_host() {
            check(message.to_frame(), |frame| ToHost::from_frame(frame).is_err());
        }
    }

    #[test]
    fn a_list_that_claims_to_be_huge_is_refused_without_being_allocated() {
        let frame = Frame { kind: 1, payload: vec![0, 0, 0, 0, 255, 255, 255, 255].into() };
        assert_eq!(ToGuest::from_frame(&frame), Err(WireError::Malformed("too short")));
    }

    #[test]
    fn a_signal_is_reported_as_shells_do() {
        assert_eq!(Exit::Signal(9).shell_code(), 137);
        assert_eq!(Exit::Code(7).shell_code(), 7);
    }
}
