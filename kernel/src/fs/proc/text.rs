//! [`Text`], which the files of procfs write, and [`TextFile`], which programs read.

use alloc::vec::Vec;
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use frame::Cx;
use frame::mm::{Reader, Writer};
use refs::{SpinLock, Waker};

use super::{Change, Show, Target};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::inode_file::seek_in;
use crate::fs::{Events, File, Lseek, MOUNTS, VfsCaller};
use crate::step::{Interruption, Step, Stop, TimeSlice};

/// A text in the making. It may become long (`maps` of a program with many mappings), so what finds no memory is left out and remembered.
#[derive(Default)]
pub struct Text {
    bytes: Vec<u8>,
    lacks_memory: bool,
    /// Where the next part begins, if there is one; 0 at first. What it counts is known to who makes the text.
    next_part: Option<u64>,
    time_slice: TimeSlice,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.add_bytes(text.as_bytes());
        Ok(())
    }
}

impl Text {
    /// Where to go on: 0 at first, then what [`ends_part`](Self::ends_part) was told. Asked once at the start of each part: where nothing is left to
    /// make, the text is complete.
    pub fn part(&mut self) -> u64 {
        self.next_part.take().unwrap_or(0)
    }

    /// Asked between two pieces of a text that may be long: whether to leave off here. The rest is made from `next` on, after others had their turn.
    pub fn ends_part(&mut self, next: u64) -> bool {
        let ends = self.time_slice.is_over();
        self.next_part = ends.then_some(next);
        ends
    }

    /// Appends what `format_args!` made.
    pub fn add(&mut self, arguments: fmt::Arguments<'_>) {
        // Only a type's own formatting could fail, and none of those that are used here does.
        let _ = self.write_fmt(arguments);
    }

    /// Appends a number in hexadecimal digits, `width` at least.
    pub fn add_hex(&mut self, number: u64, width: usize) {
        let digits = (u64::BITS - number.leading_zeros()).div_ceil(4) as usize;
        self.add_digits(digits.max(width).min(16), |at| b"0123456789abcdef"[(number >> (4 * at)) as usize % 16]);
    }

    /// Appends a number in decimal digits.
    pub fn add_decimal(&mut self, number: u64) {
        let mut rest = number;
        let mut digits = [b'0'; 20];
        let mut count = 0;
        while rest > 0 || count == 0 {
            digits[count] = b'0' + (rest % 10) as u8;
            rest /= 10;
            count += 1;
        }
        self.add_digits(count, |at| digits[at]);
    }

    /// Appends so many digits; `digit` gives them by their distance from the last.
    #[inline(always)]
    fn add_digits(&mut self, count: usize, digit: impl Fn(usize) -> u8) {
        let mut bytes = [0; 20];
        let bytes = &mut bytes[..count];
        bytes.iter_mut().rev().enumerate().for_each(|(at, byte)| *byte = digit(at));
        self.add_bytes(bytes);
    }

    /// Appends bytes as they are.
    pub fn add_bytes(&mut self, bytes: &[u8]) {
        if self.bytes.try_reserve(bytes.len()).is_ok() {
            self.bytes.extend_from_slice(bytes);
        } else {
            self.lacks_memory = true;
        }
    }

    /// Appends a name, with what would end it written as in `/proc/mounts`: space, tab, newline, backslash as octal numbers.
    pub fn add_name(&mut self, name: &[u8]) {
        for &byte in name {
            match byte {
                b' ' | b'\t' | b'\n' | b'\\' => self.add(format_args!("\\{byte:03o}")),
                _ => self.add_bytes(&[byte]),
            }
        }
    }

    /// Fills up with spaces to that length, which is some tens of bytes on.
    pub fn pad_to(&mut self, len: usize) {
        let missing = len.saturating_sub(self.bytes.len());
        if self.bytes.try_reserve(missing).is_ok() {
            self.bytes.resize(self.bytes.len() + missing, b' ');
        } else {
            self.lacks_memory = true;
        }
    }

    /// Makes it as short as it was.
    pub fn cut(&mut self, len: usize) {
        self.bytes.truncate(len);
    }

    /// The bytes so far.
    ///
    /// # Errors
    /// ENOMEM if some were left out.
    pub fn bytes(&self) -> Result<&[u8]> {
        if self.lacks_memory { Err(Errno::ENOMEM) } else { Ok(&self.bytes) }
    }

    /// How long it is.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes.
    ///
    /// # Errors
    /// ENOMEM if some were left out.
    pub fn into_bytes(self) -> Result<Vec<u8>> {
        if self.lacks_memory { Err(Errno::ENOMEM) } else { Ok(self.bytes) }
    }
}

/// An open text.
pub struct TextFile {
    target: Target,
    show: Show,
    change: Option<Change>,
    /// As it was when it was last read from the start.
    text: SpinLock<Vec<u8>>,
    /// The same in the making: others have their turn in between.
    making: SpinLock<Option<Text>>,
    /// It was made for a reader whose memory was missing, and who comes again.
    is_fresh: AtomicBool,
}

/// An open text about mounts: it can be waited for until there is another mount or one less.
pub struct MountsFile {
    text: TextFile,
    /// How often the mounts had changed when it was opened, or polled last.
    seen: AtomicU64,
}

impl MountsFile {
    /// The text that `show` makes.
    pub fn new(target: Target, show: Show, cx: &Cx) -> Self {
        let seen = AtomicU64::new(MOUNTS.changes(None, cx));
        MountsFile { text: TextFile::new(target, show, None), seen }
    }
}

impl File for MountsFile {
    fn read(&self, offset: u64, to: &mut Writer<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        self.text.read(offset, to, me, cx)
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn seek(&self, to: Lseek, now: u64, cx: &Cx) -> Step<u64> {
        self.text.seek(to, now, cx)
    }

    fn is_pollable(&self) -> bool {
        true
    }

    fn poll(&self, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        let changes = MOUNTS.changes(waker, cx);
        let mut events = Events::IN | Events::READ_NORMAL;
        if self.seen.swap(changes, Ordering::Relaxed) != changes {
            events |= Events::ERROR | Events::PRIORITY;
        }
        events & (interest | Events::ERROR)
    }
}

/// The longest thing that can be written.
const MAX_WRITE: usize = 4096;

impl TextFile {
    /// The text that `show` makes.
    pub fn new(target: Target, show: Show, change: Option<Change>) -> Self {
        TextFile {
            target,
            show,
            change,
            text: SpinLock::new(Vec::new()),
            making: SpinLock::new(None),
            is_fresh: AtomicBool::new(false),
        }
    }
}

impl File for TextFile {
    fn read(&self, offset: u64, to: &mut Writer<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        if !self.is_fresh.swap(false, Ordering::Relaxed) && (offset == 0 || self.text.lock(cx).is_empty()) {
            let mut text = self.making.lock(cx).take().unwrap_or_default();
            text.time_slice = TimeSlice::default();
            (self.show)(&mut text, &self.target, Current::of(me)?, cx)?;
            if text.next_part.is_some() {
                *self.making.lock(cx) = Some(text);
                return Err(Stop::Pause(Interruption::KillOnly));
            }
            *self.text.lock(cx) = text.into_bytes()?;
        }
        let text = self.text.lock(cx);
        let rest = usize::try_from(offset).ok().and_then(|offset| text.get(offset..)).unwrap_or(&[]);
        let written = to.write(rest);
        self.is_fresh.store(written.is_err(), Ordering::Relaxed);
        Ok(written?)
    }

    fn write(&self, _offset: u64, from: &mut Reader<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let change = self.change.ok_or(Errno::EIO)?;
        let len = from.remaining();
        if len > MAX_WRITE {
            return Err(Errno::EINVAL.into());
        }
        let mut bytes = alloc::vec![0; len];
        let count = from.read(&mut bytes)?;
        change(&bytes[..count], &self.target, Current::of(me)?, cx)?;
        Ok(count)
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn seek(&self, to: Lseek, now: u64, cx: &Cx) -> Step<u64> {
        Ok(seek_in(|| self.text.lock(cx).len() as u64, to, now)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_by_the_formatting_machinery() {
        for number in [0, 1, 9, 10, 15, 16, 0xfff_ffff, 0x1234_5678_9abc_def0, u64::MAX] {
            let mut text = Text::default();
            text.add_hex(number, 8);
            text.add_bytes(b" ");
            text.add_decimal(number);
            assert_eq!(text.into_bytes().unwrap(), std::format!("{number:08x} {number}").into_bytes());
        }
    }

    #[test]
    fn a_text_whose_time_was_over_behind_its_last_piece_is_complete() {
        let mut text = Text { next_part: Some(3), ..Text::default() };
        assert_eq!(text.part(), 3);
        assert_eq!(text.next_part, None);
    }

    #[test]
    fn a_text_is_filled_up_and_cut() {
        let mut text = Text::default();
        text.add_bytes(b"ab");
        text.pad_to(4);
        text.pad_to(3);
        assert_eq!(text.bytes().unwrap(), b"ab  ");
        text.cut(1);
        assert_eq!(text.into_bytes().unwrap(), b"a");
    }
}
