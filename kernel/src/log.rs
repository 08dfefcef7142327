//! The kernel's log: the last messages, for `/dev/kmsg` and syslog(2), and on the console unless `quiet` is on the command line.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{Arguments, Write};
use core::sync::atomic::{AtomicU8, Ordering};

use refs::{SpinLock, WaitList};

use crate::error::{Errno, Result};
use crate::sysctl::Tunable;

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

/// So many messages are kept at most, however short they are.
const MOST: usize = 1024;

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
/// Messages below this level go to the console.
static CONSOLE_LEVEL: AtomicU8 = AtomicU8::new(7);
/// The level that the console had before it was turned off; 0: it was not.
static LEVEL_BEFORE: AtomicU8 = AtomicU8::new(0);
/// Where syslog(2) reads on.
static UNREAD: SpinLock<Position> = SpinLock::new(Position { sequence: 0, offset: 0 });
/// Whether reading the whole log takes a privilege (`/proc/sys/kernel/dmesg_restrict`).
pub static DMESG_RESTRICT: Tunable = Tunable::new(0, 0..=1);
/// Woken by each message.
pub static WRITTEN: WaitList = WaitList::new();

/// The importance of the kernel's own messages.
pub const INFORMATION: u8 = 6;

/// A line in the kernel's log.
#[macro_export]
macro_rules! log {
    ($($part:tt)*) => { $crate::log::write($crate::log::INFORMATION, format_args!($($part)*)) };
}

/// The console level at which the kernel's own messages are kept from the console (`quiet`).
pub const QUIET: u8 = 4;

/// Below what level messages go to the console.
pub fn console_level() -> u8 {
    CONSOLE_LEVEL.load(Ordering::Relaxed)
}

/// Changes below what level messages go to the console.
///
/// # Errors
/// EINVAL for a level that is none.
pub fn set_console_level(level: u8) -> Result<()> {
    if !(1..=8).contains(&level) {
        return Err(Errno::EINVAL);
    }
    CONSOLE_LEVEL.store(level, Ordering::Relaxed);
    LEVEL_BEFORE.store(0, Ordering::Relaxed);
    Ok(())
}

/// Keeps all but emergencies from the console.
pub fn turn_console_off() {
    let before = CONSOLE_LEVEL.swap(1, Ordering::Relaxed);
    // Turned off twice it still comes back.
    let _ = LEVEL_BEFORE.compare_exchange(0, before, Ordering::Relaxed, Ordering::Relaxed);
}

/// Ends that.
pub fn turn_console_on() {
    let before = LEVEL_BEFORE.swap(0, Ordering::Relaxed);
    if before != 0 {
        CONSOLE_LEVEL.store(before, Ordering::Relaxed);
    }
}

/// Enters a line. (A program does it by writing to `/dev/kmsg`.)
pub fn write(level: u8, text: Arguments<'_>) {
    let time = frame::time::now();
    if level < console_level() {
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
        while self.bytes > CAPACITY || self.kept.len() >= MOST {
            let Some(oldest) = self.kept.pop_front() else { break };
            self.bytes -= oldest.text.len();
        }
        self.kept.push_back(Message { sequence: self.next, time, level, text });
        self.next += 1;
    }
}

/// The oldest message with at least this number, if there is one.
pub fn next_from(sequence: u64) -> Option<Message> {
    MESSAGES.with(|messages| {
        // Their numbers have no gaps.
        let first = messages.kept.front()?.sequence;
        let index = usize::try_from(sequence.saturating_sub(first)).ok()?;
        messages.kept.get(index).cloned()
    })
}

/// The number that the next message will have.
pub fn next_sequence() -> u64 {
    MESSAGES.with(|messages| messages.next)
}

/// All that is kept and was not cleared, as `dmesg` shows it; the newest `max` bytes in whole lines.
///
/// # Errors
/// ENOMEM.
pub fn text(max: usize) -> Result<Vec<u8>> {
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
    let mut text = Vec::new();
    text.try_reserve_exact(bytes).map_err(|_| Errno::ENOMEM)?;
    lines[from..].iter().for_each(|line| text.extend_from_slice(line.as_bytes()));
    Ok(text)
}

/// Where in the log a reader is.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// The number of the next message.
    sequence: u64,
    /// How much of its line was read.
    offset: usize,
}

/// What nobody has read by syslog(2) yet, at most `max` bytes, and what there is memory for: whole lines, or a part of the first. And the position behind it, which
/// [`set_read`] takes once the reader has it.
pub fn unread(max: usize) -> (Vec<u8>, Position) {
    let mut at = UNREAD.with(|unread| *unread);
    let mut bytes = Vec::new();
    while let Some(message) = next_from(at.sequence) {
        // What was read in part may be gone.
        let offset = if message.sequence == at.sequence { at.offset } else { 0 };
        let line = message.line();
        let rest = line.as_bytes().get(offset..).unwrap_or_default();
        let room = max - bytes.len();
        if rest.len() > room {
            if bytes.is_empty() {
                bytes.extend_from_slice(&rest[..room]);
                at = Position { sequence: message.sequence, offset: offset + room };
            }
            break;
        }
        if bytes.try_reserve(rest.len()).is_err() {
            break;
        }
        bytes.extend_from_slice(rest);
        at = Position { sequence: message.sequence + 1, offset: 0 };
    }
    (bytes, at)
}

/// What is before that position was read by syslog(2).
pub fn set_read(position: Position) {
    UNREAD.with(|unread| *unread = position);
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
