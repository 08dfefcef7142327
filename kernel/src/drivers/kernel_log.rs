//! `/dev/kmsg`: the kernel's log as a file. Each read gives one message; each write makes one.

use core::sync::atomic::{AtomicU64, Ordering};

use frame::Cx;
use frame::mm::{Reader, Writer};
use refs::Waker;

use crate::error::Errno;
use crate::fs::{Events, File, FileEnd, Lseek, VfsCaller};
use crate::log;
use crate::reclaim::Held;
use crate::step::{Step, Stop};

/// The longest text that a program can write.
const MAX_TEXT: usize = 976;
/// The level of what a program writes without saying one (KERN_WARNING).
const DEFAULT_LEVEL: u8 = 4;

/// An open kernel log: it knows which message is read next.
pub struct KernelLog {
    next: AtomicU64,
}

impl KernelLog {
    /// One that starts with the oldest message.
    pub fn new() -> Self {
        KernelLog { next: AtomicU64::new(0) }
    }
}

impl File for KernelLog {
    fn end(&self) -> FileEnd {
        FileEnd::Seen
    }

    fn class(&self) -> Held {
        Held::File
    }

    fn read(&self, _offset: u64, to: &mut Writer<'_>, _me: &dyn VfsCaller, _cx: &Cx) -> Step<usize> {
        let message = log::next_from(self.next.load(Ordering::Relaxed)).ok_or(Stop::Block)?;
        let log::Message { sequence, time, level, text } = message;
        let line = alloc::format!("{level},{sequence},{},-;{text}\n", time / 1000);
        if to.remaining() < line.len() {
            return Err(Errno::EINVAL.into());
        }
        to.write(line.as_bytes())?;
        self.next.store(sequence + 1, Ordering::Relaxed);
        Ok(line.len())
    }

    fn write(&self, _offset: u64, from: &mut Reader<'_>, _me: &dyn VfsCaller, _cx: &Cx) -> Step<usize> {
        let len = from.remaining();
        if len > MAX_TEXT {
            return Err(Errno::EINVAL.into());
        }
        let mut bytes = [0; MAX_TEXT];
        from.read(&mut bytes[..len])?;
        let (level, text) = split_level(&bytes[..len]);
        let text = alloc::string::String::from_utf8_lossy(text);
        log::write(level, format_args!("{}", text.trim_end_matches('\n')));
        Ok(len)
    }

    fn poll(&self, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        if let Some(waker) = waker {
            log::WRITTEN.register(waker, cx);
        }
        let mut ready = Events::OUT | Events::WRITE_NORMAL;
        if log::next_sequence() > self.next.load(Ordering::Relaxed) {
            ready |= Events::IN | Events::READ_NORMAL;
        }
        ready & interest
    }

    fn seek(&self, to: Lseek, _now: u64, _cx: &Cx) -> Step<u64> {
        let next = match to {
            Lseek::Set(0) => 0,
            Lseek::End(0) => log::next_sequence(),
            // Behind what syslog(2) has cleared.
            Lseek::Data(0) => log::first_not_cleared(),
            _ => return Err(Errno::EINVAL.into()),
        };
        self.next.store(next, Ordering::Relaxed);
        Ok(0)
    }
}

/// The level in front of a text, as in `<6>text`, and the text. Facilities are not kept.
fn split_level(bytes: &[u8]) -> (u8, &[u8]) {
    let parsed = || {
        let rest = bytes.strip_prefix(b"<")?;
        let end = rest.iter().take(5).position(|&byte| byte == b'>')?;
        let number: u32 = core::str::from_utf8(&rest[..end]).ok()?.parse().ok()?;
        Some(((number & 7) as u8, &rest[end + 1..]))
    };
    parsed().unwrap_or((DEFAULT_LEVEL, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_taken_from_the_front() {
        assert_eq!(split_level(b"<6>hello"), (6, &b"hello"[..]));
        assert_eq!(split_level(b"<14>hello"), (6, &b"hello"[..]));
        assert_eq!(split_level(b"hello"), (DEFAULT_LEVEL, &b"hello"[..]));
        assert_eq!(split_level(b"<x>hello"), (DEFAULT_LEVEL, &b"<x>hello"[..]));
        assert_eq!(split_level(b"<"), (DEFAULT_LEVEL, &b"<"[..]));
    }
}
