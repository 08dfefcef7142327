//! [`Text`], which the files of procfs write, and [`TextFile`], which programs read.

use alloc::vec::Vec;
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicU64, Ordering};

use frame::Cx;
use frame::mm::{Fault, Reader, Writer};
use refs::{SpinLock, Waker, WeakRc};

use super::net_sockets::SocketsSoFar;
use super::{Change, Show, Target};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::inode_file::seek_in;
use crate::fs::{Events, File, FileEnd, Lseek, MOUNTS, VfsCaller};
use crate::memory::AddressSpace;
use crate::process::Thread;
use crate::reclaim::Held;
use crate::step::{Interruption, Step, Stop, TimeSlice};

/// A text in the making. It may become long (`maps` of a program with many mappings), so what finds no memory is left out and remembered.
#[derive(Default)]
pub struct Text {
    bytes: Vec<u8>,
    lacks_memory: bool,
    /// Where the next part begins, if there is one; 0 at first. What it counts is known to who makes the text.
    next_part: Option<u64>,
    /// How far a list of sockets was made, where it is one.
    pub(super) sockets: SocketsSoFar,
    time_slice: TimeSlice,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.add_bytes(text.as_bytes());
        Ok(())
    }
}

impl Text {
    /// An empty one that becomes about so long.
    pub fn with_capacity(len: usize) -> Self {
        let mut bytes = Vec::new();
        let lacks_memory = bytes.try_reserve_exact(len).is_err();
        Text { bytes, lacks_memory, ..Text::default() }
    }

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

    /// Whether nothing is left to make.
    fn is_complete(&self) -> bool {
        self.next_part.is_none()
    }

    /// Appends what `format_args!` made.
    pub fn add(&mut self, arguments: fmt::Arguments<'_>) {
        // Only a type's own formatting could fail, and none of those that are used here does.
        let _ = self.write_fmt(arguments);
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

/// The beginning of a line, of numbers and single letters: it is put together without a look at how long it becomes, and appended at once. What
/// does not fit into it is lost.
pub struct Line {
    bytes: [u8; Line::ROOM],
    len: usize,
}

impl Line {
    const ROOM: usize = 128;

    /// An empty one.
    #[inline(always)]
    pub fn new() -> Self {
        Line { bytes: [b' '; Line::ROOM], len: 0 }
    }

    /// Appends bytes.
    #[inline(always)]
    pub fn add<const N: usize>(&mut self, bytes: [u8; N]) {
        if let Some(to) = self.bytes.get_mut(self.len..).and_then(<[u8]>::first_chunk_mut) {
            *to = bytes;
            self.len += N;
        }
    }

    /// Appends a number in hexadecimal digits, eight at least.
    #[inline(always)]
    pub fn add_hex(&mut self, number: u64) {
        let high = (number >> 32) as u32;
        self.add_digits(high, count_digits(high));
        self.add_digits(number as u32, 8);
    }

    /// Appends a number in hexadecimal digits, two at least.
    #[inline(always)]
    pub fn add_short_hex(&mut self, number: u32) {
        self.add_digits(number, count_digits(number).max(2));
    }

    /// Appends the last `count` hexadecimal digits of a number.
    #[inline(always)]
    fn add_digits(&mut self, number: u32, count: u32) {
        const SPACES: u64 = u64::from_be_bytes([b' '; 8]);
        let digits = hex_digits(number).checked_shl(8 * (8 - count)).unwrap_or(0);
        let spaces = SPACES.checked_shr(8 * count).unwrap_or(0);
        if let Some(to) = self.bytes.get_mut(self.len..).and_then(<[u8]>::first_chunk_mut) {
            *to = (digits | spaces).to_be_bytes();
            self.len += count as usize;
        }
    }

    /// Appends a number in decimal digits.
    #[inline(always)]
    pub fn add_decimal(&mut self, number: u64) {
        let mut rest = number;
        let mut digits = [0; 20];
        let mut count = 0;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
            count += 1;
            if rest == 0 {
                break;
            }
        }
        let digits = digits.get(digits.len() - count..).unwrap_or_default();
        if let Some(to) = self.bytes.get_mut(self.len..self.len + count) {
            to.iter_mut().zip(digits).for_each(|(to, digit)| *to = *digit);
            self.len += count;
        }
    }

    /// Fills up with spaces to that length.
    #[inline(always)]
    pub fn pad_to(&mut self, len: usize) {
        // They are there already.
        self.len = self.len.max(len.min(Line::ROOM));
    }

    /// The bytes so far.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// How many hexadecimal digits a number has; zero has none.
#[inline(always)]
fn count_digits(number: u32) -> u32 {
    (u32::BITS - number.leading_zeros()).div_ceil(4)
}

/// The eight hexadecimal digits of a number, the first in the highest byte.
#[inline(always)]
fn hex_digits(number: u32) -> u64 {
    // Each half byte comes to stand in a byte of its own.
    let number = u64::from(number);
    let number = (number | number << 16) & 0x0000_ffff_0000_ffff;
    let number = (number | number << 8) & 0x00ff_00ff_00ff_00ff;
    let number = (number | number << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    const EACH: u64 = 0x0101_0101_0101_0101;
    // From ten on by as much more as `a` is behind `9`.
    let is_letter = (number + 6 * EACH) >> 4 & EACH;
    number + EACH * u64::from(b'0') + is_letter * u64::from(b'a' - b'9' - 1)
}

/// An open text.
pub struct TextFile {
    target: Target,
    show: Show,
    change: Option<Change>,
    /// The address space that it is about, where it is about one: there is no text any more when the process has another.
    of: Option<Option<WeakRc<AddressSpace>>>,
    texts: SpinLock<Texts>,
}

/// So many texts are kept for calls that read the same open text at once.
const MOST_CALLS: usize = 4;

/// What is kept of an open text.
#[derive(Default)]
struct Texts {
    /// As it was when it was last read from the start.
    last: Vec<u8>,
    /// What the calls that read it just now go on with: one each, until the call has it all or ends. Of more than [`MOST_CALLS`] some begin anew.
    of_calls: Vec<TextOfCall>,
}

/// The text that one call reads. It is in the making while others have their turn, or complete while memory of the reader's is brought in: then the
/// call goes on with the same text, whoever else reads from the start meanwhile.
struct TextOfCall {
    caller: WeakRc<Thread>,
    text: Text,
}

impl Texts {
    fn take(&mut self, caller: WeakRc<Thread>) -> Option<Text> {
        let at = self.of_calls.iter().position(|call| call.caller == caller)?;
        Some(self.of_calls.swap_remove(at).text)
    }

    fn keep(&mut self, caller: WeakRc<Thread>, text: Text, cx: &Cx) {
        // A thread that was killed does not come back.
        self.of_calls.retain(|call| call.caller.upgrade(cx).is_ok());
        if self.of_calls.len() == MOST_CALLS {
            let complete = self.of_calls.iter().position(|call| call.text.is_complete());
            match complete {
                _ if text.is_complete() => return self.last = text.bytes,
                // Those in the making come first: as they go on, each has its end.
                Some(at) => self.last = self.of_calls.swap_remove(at).text.bytes,
                None => return,
            }
        }
        self.of_calls.push(TextOfCall { caller, text });
    }

    fn capacity(&self) -> usize {
        self.last.capacity() + self.of_calls.iter().map(|call| call.text.bytes.capacity()).sum::<usize>()
    }
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
    fn end(&self) -> FileEnd {
        FileEnd::Seen
    }

    fn class(&self) -> Held {
        Held::File
    }

    fn kernel_bytes(&self, cx: &Cx) -> usize {
        self.text.kernel_bytes(cx)
    }

    fn read(&self, offset: u64, to: &mut Writer<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        self.text.read(offset, to, me, cx)
    }

    fn end_read(&self, me: &dyn VfsCaller, cx: &Cx) {
        self.text.end_read(me, cx);
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

    fn poll_was_lost(&self, events: Events) {
        if events.intersects(Events::ERROR | Events::PRIORITY) {
            // As if one change less had been seen.
            self.seen.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The longest thing that can be written.
const MAX_WRITE: usize = 4096;

impl TextFile {
    /// The text that `show` makes.
    pub fn new(target: Target, show: Show, change: Option<Change>) -> Self {
        TextFile { target, show, change, of: None, texts: SpinLock::default() }
    }

    /// The text that `show` makes about the address space that the target has now.
    pub fn of_memory(target: Target, show: Show, cx: &Cx) -> Self {
        TextFile { of: Some(memory_of(&target, cx)), ..TextFile::new(target, show, None) }
    }

    /// Makes a text, or goes on with one.
    fn make(&self, text: &mut Text, me: &Current, cx: &Cx) -> Result<()> {
        text.time_slice = TimeSlice::default();
        (self.show)(text, &self.target, me, cx)?;
        // It is made of what the process has: where that is another one by now, of nothing.
        if text.is_complete() && self.of.is_some_and(|of| of != memory_of(&self.target, cx)) {
            *text = Text::default();
        }
        text.bytes().map(drop)
    }
}

/// Writes what there is room and memory for.
///
/// # Errors
/// A fault of the first byte: one behind it is a short read.
pub(super) fn write_some(bytes: &[u8], to: &mut Writer<'_>) -> core::result::Result<usize, Fault> {
    let room = to.remaining();
    let outcome = to.write(bytes);
    match room - to.remaining() {
        0 => outcome,
        len => Ok(len),
    }
}

fn memory_of(target: &Target, cx: &Cx) -> Option<WeakRc<AddressSpace>> {
    target.space(cx).ok().map(|space| space.downgrade())
}

impl File for TextFile {
    fn end(&self) -> FileEnd {
        FileEnd::Seen
    }

    fn class(&self) -> Held {
        Held::File
    }

    fn kernel_bytes(&self, cx: &Cx) -> usize {
        512 + self.texts.lock(cx).capacity()
    }

    fn read(&self, offset: u64, to: &mut Writer<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let me = Current::of(me)?;
        let behind = |text: &[u8]| usize::try_from(offset).unwrap_or(usize::MAX).min(text.len());
        let kept = {
            let mut texts = self.texts.lock(cx);
            let kept = texts.take(me.thread);
            if kept.is_none() && offset > 0 && !texts.last.is_empty() {
                return Ok(write_some(&texts.last[behind(&texts.last)..], to)?);
            }
            kept
        };
        let is_complete = kept.as_ref().is_some_and(Text::is_complete);
        let mut text = kept.unwrap_or_default();
        if !is_complete {
            self.make(&mut text, me, cx)?;
            if !text.is_complete() {
                self.texts.lock(cx).keep(me.thread, text, cx);
                return Err(Stop::Pause(Interruption::KillOnly));
            }
        }
        let rest = &text.bytes[behind(&text.bytes)..];
        let wanted = rest.len().min(to.remaining());
        let outcome = write_some(rest, to);
        let mut texts = self.texts.lock(cx);
        if outcome == Ok(wanted) {
            texts.last = text.bytes;
        } else {
            texts.keep(me.thread, text, cx);
        }
        Ok(outcome?)
    }

    fn end_read(&self, me: &dyn VfsCaller, cx: &Cx) {
        let Ok(me) = Current::of(me) else { return };
        let mut texts = self.texts.lock(cx);
        if let Some(text) = texts.take(me.thread)
            && text.is_complete()
        {
            // Who reads on gets the rest of it.
            texts.last = text.bytes;
        }
    }

    fn write(&self, _offset: u64, from: &mut Reader<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let change = self.change.ok_or(Errno::EIO)?;
        let len = from.remaining();
        if len > MAX_WRITE {
            return Err(Errno::EINVAL.into());
        }
        let mut bytes = alloc::vec![0; len];
        let count = from.read(&mut bytes)?;
        match change {
            Change::AtOnce(change) => change(&bytes[..count], &self.target, Current::of(me)?, cx)?,
            Change::InTurns(change) => change(&bytes[..count], &self.target, Current::of(me)?, cx)?,
        }
        Ok(count)
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn seek(&self, to: Lseek, now: u64, cx: &Cx) -> Step<u64> {
        Ok(seek_in(|| self.texts.lock(cx).last.len() as u64, to, now)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_by_the_formatting_machinery() {
        for number in [0, 1, 9, 10, 15, 16, 0xfff_ffff, 1 << 32, 0x7fff_ffff_f000, 0x1234_5678_9abc_def0, u64::MAX] {
            let mut line = Line::new();
            line.add_hex(number);
            line.add(*b" ");
            line.add_decimal(number);
            line.add([b'.']);
            assert_eq!(line.bytes(), std::format!("{number:08x} {number}.").into_bytes());
        }
    }

    #[test]
    fn a_line_is_filled_up_with_spaces() {
        let mut line = Line::new();
        line.add_hex(0xff_0000_0000);
        line.add([b' ']);
        line.add_short_hex(7);
        line.pad_to(16);
        line.pad_to(3);
        assert_eq!(line.bytes(), b"ff00000000 07   ");
    }

    #[test]
    fn what_does_not_fit_into_a_line_is_lost() {
        let mut line = Line::new();
        (0..20).for_each(|_| line.add_hex(u64::MAX));
        line.add_decimal(u64::MAX);
        assert!(line.bytes().len() <= Line::ROOM && line.bytes().iter().all(|byte| *byte == b'f'));
    }

    #[test]
    fn a_text_whose_time_was_over_behind_its_last_piece_is_complete() {
        let mut text = Text { next_part: Some(3), ..Text::default() };
        assert_eq!(text.part(), 3);
        assert_eq!(text.next_part, None);
    }

    #[test]
    fn a_text_is_cut() {
        let mut text = Text::with_capacity(3);
        text.add_bytes(b"ab");
        text.cut(1);
        assert_eq!(text.into_bytes().unwrap(), b"a");
    }
}
