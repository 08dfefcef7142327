//! The kernel's log: the last messages, for `/dev/kmsg` and syslog(2), and on the console unless `quiet` is on the command line.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{Arguments, Write};
use core::sync::atomic::{AtomicBool, Ordering};

use refs::{SpinLock, WaitList};

/// How many bytes of messages are kept.
pub const CAPACITY: usize = 64 * 1024;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its number: they count from 0 and never come again.
    pub sequence: u64,
    /// When it was written, in nanoseconds since boot.
    pub time: u64,
    /// How important it is: 0 (emergency) to 7 (debug), as in syslog(2).
    pub level: u8,
    /// The text, without a newline.
    pub text: String,
}

/// The longest text of a message, in bytes.
const MAX_TEXT: usize = 1024;

struct Messages {
    kept: VecDeque<Message>,
    bytes: usize,
    next: u64,
    /// What was cleared by syslog(2) is not shown by it again.
    cleared: u64,
}

static MESSAGES: SpinLock<Messages> = SpinLock::new(Messages { kept: VecDeque::new(), bytes: 0, next: 0, cleared: 0 });
static QUIET: AtomicBool = AtomicBool::new(false);
/// Woken by each message.
pub static WRITTEN: WaitList = WaitList::new();

/// The importance of the kernel's own messages.
pub const INFORMATION: u8 = 6;

/// A line in the kernel's log.
#[macro_export]
macro_rules! log {
    ($($part:tt)*) => { $crate::log::write($crate::log::INFORMATION, format_args!($($part)*)) };
}

/// Says whether messages are kept from the console.
pub fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// Enters a line. (A program does it by writing to `/dev/kmsg`.)
pub fn write(level: u8, text: Arguments<'_>) {
    let time = frame::time::now();
    if !QUIET.load(Ordering::Relaxed) {
        frame::println!("ebb: {text}");
    }
    let mut line = String::new();
    // Formatting into a string fails only where a type's own formatting does: the line is then short.
    let _ = write!(line, "{text}");
    let end = (0..=MAX_TEXT.min(line.len())).rev().find(|&end| line.is_char_boundary(end));
    line.truncate(end.unwrap_or(0));
    MESSAGES.with(|messages| messages.push(time, level, line));
    WRITTEN.wake_all();
}

impl Messages {
    fn push(&mut self, time: u64, level: u8, text: String) {
        self.bytes += text.len();
        self.kept.push_back(Message { sequence: self.next, time, level, text });
        self.next += 1;
        while self.bytes > CAPACITY {
            let Some(oldest) = self.kept.pop_front() else { break };
            self.bytes -= oldest.text.len();
        }
    }
}

/// The oldest message with at least this number, if there is one.
pub fn next_from(sequence: u64) -> Option<Message> {
    MESSAGES.with(|messages| messages.kept.iter().find(|message| message.sequence >= sequence).cloned())
}

/// The number that the next message will have.
pub fn next_sequence() -> u64 {
    MESSAGES.with(|messages| messages.next)
}

/// All that is kept and was not cleared, as `dmesg` shows it; the newest `max` bytes in whole lines.
pub fn text(max: usize) -> Vec<u8> {
    let lines: Vec<String> = MESSAGES.with(|messages| {
        let shown = messages.kept.iter().filter(|message| message.sequence >= messages.cleared);
        shown.map(Message::line).collect()
    });
    let mut from = lines.len();
    let mut bytes = 0;
    while from > 0 && bytes + lines[from - 1].len() <= max {
        from -= 1;
        bytes += lines[from].len();
    }
    lines[from..].concat().into_bytes()
}

/// The number of the oldest message that was not cleared.
pub fn first_not_cleared() -> u64 {
    MESSAGES.with(|messages| messages.cleared)
}

/// Has syslog(2) not show again what there is.
pub fn clear() {
    MESSAGES.with(|messages| messages.cleared = messages.next);
}

impl Message {
    fn line(&self) -> String {
        let micros = self.time / 1000;
        alloc::format!("<{}>[{:5}.{:06}] {}\n", self.level, micros / 1_000_000, micros % 1_000_000, self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_lines_go_first() {
        let mut messages = Messages { kept: VecDeque::new(), bytes: 0, next: 0, cleared: 0 };
        for _ in 0..100 {
            messages.push(0, 6, "x".repeat(1000));
        }
        assert!(messages.bytes <= CAPACITY);
        assert_eq!(messages.kept.back().map(|message| message.sequence), Some(99));
        assert_eq!(messages.kept.len(), CAPACITY / 1000);
    }

    #[test]
    fn a_line_has_level_and_time() {
        let message = Message { sequence: 0, time: 1_234_567_890, level: 4, text: "hello".into() };
        assert_eq!(message.line(), "<4>[    1.234567] hello\n");
    }
}
