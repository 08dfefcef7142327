//! The line discipline (N_TTY): what becomes of the bytes between a terminal and its programs. See termios(3).
//!
//! Pure logic: bytes from the terminal go in by [`Discipline::receive`], which says what to echo and which signal to send; programs take them out
//! by [`Discipline::read`]; what programs write passes [`Discipline::transmit`].
//!
//! In canonical mode the bytes of the current line stay in `line`, where they can be erased, until a delimiter completes it; then
//! they move to `input`, and the end of the line is noted in `ends`, as the count of all bytes that ever entered `input` up to it.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use linux_raw_sys::general as abi;

use super::termios::Termios;

/// The longest line, without its delimiter.
const MAX_LINE: usize = 4095;
/// What the input holds at most; beyond, bytes are lost.
pub const MAX_INPUT: usize = 1 << 20;

/// A signal for the foreground process group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attention {
    /// SIGINT.
    Interrupt,
    /// SIGQUIT.
    Quit,
    /// SIGTSTP.
    Suspend,
}

/// What a read finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Available {
    /// Nothing yet.
    Nothing,
    /// The end of the file (VEOF on an empty line).
    End,
    /// So many bytes may be taken now.
    Bytes(usize),
}

/// The state of one terminal's line discipline.
#[derive(Default)]
pub struct Discipline {
    /// The settings.
    termios: Termios,
    /// What programs can read.
    input: VecDeque<u8>,
    /// How many bytes have left `input` so far.
    taken: u64,
    /// Where lines end, counted as `taken` is.
    ends: VecDeque<u64>,
    /// The line that is being edited.
    line: Vec<u8>,
    /// The column of the cursor.
    column: usize,
    /// The column where the current line began.
    line_column: usize,
    /// The next byte is taken as it is (VLNEXT).
    is_literal_next: bool,
    /// Output is stopped (VSTOP).
    is_stopped: bool,
}

impl Discipline {
    /// The settings.
    pub fn termios(&self) -> &Termios {
        &self.termios
    }

    /// Whether output is stopped by VSTOP or TCXONC.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Stops or restarts output.
    pub fn set_stopped(&mut self, is_stopped: bool) {
        self.is_stopped = is_stopped;
    }

    /// Changes the settings. What was typed but not read is kept, and becomes readable when canonical mode ends.
    pub fn set_termios(&mut self, termios: Termios) {
        let was_canonical = self.is_canonical();
        self.termios = termios;
        self.termios.line = 0;
        if was_canonical && !self.is_canonical() {
            let line = core::mem::take(&mut self.line);
            self.input.extend(line);
            self.ends.clear();
            self.is_literal_next = false;
        } else if !was_canonical && self.is_canonical() && !self.input.is_empty() {
            self.ends.push_back(self.taken + self.input.len() as u64);
        }
        if !self.termios.has_input(abi::IXON) {
            self.is_stopped = false;
        }
    }

    /// Forgets what was typed but not read.
    pub fn flush_input(&mut self) {
        self.taken += self.input.len() as u64;
        self.input.clear();
        self.ends.clear();
        self.line.clear();
        self.is_literal_next = false;
    }

    /// What a read would find.
    pub fn available(&self) -> Available {
        if self.is_canonical() {
            match self.ends.front() {
                None => Available::Nothing,
                Some(&end) if end == self.taken => Available::End,
                Some(&end) => Available::Bytes((end - self.taken) as usize),
            }
        } else if self.input.is_empty() {
            Available::Nothing
        } else {
            Available::Bytes(self.input.len())
        }
    }

    /// The first `max` bytes that a read would find, in two pieces.
    pub fn peek(&self, max: usize) -> (&[u8], &[u8]) {
        let Available::Bytes(count) = self.available() else { return (&[], &[]) };
        let count = count.min(max);
        let (first, second) = self.input.as_slices();
        let in_first = count.min(first.len());
        (&first[..in_first], &second[..count - in_first])
    }

    /// Takes out the first `count` bytes, at most what [`available`](Self::available) said; in canonical mode with the end behind them.
    pub fn take(&mut self, count: usize) {
        let count = count.min(self.input.len());
        self.input.drain(..count);
        self.taken += count as u64;
        if self.ends.front() == Some(&self.taken) {
            self.ends.pop_front();
        }
    }

    /// What programs have not read yet, for `FIONREAD`.
    pub fn unread(&self) -> usize {
        match self.available() {
            Available::Bytes(_) if self.is_canonical() => {
                self.ends.back().map_or(0, |&end| end.saturating_sub(self.taken) as usize)
            }
            Available::Bytes(count) => count,
            _ => 0,
        }
    }

    /// Whether bytes pass unchanged and unechoed: then many can be taken in at once.
    fn is_transparent(&self) -> bool {
        const INPUT: u32 = abi::ISTRIP | abi::INLCR | abi::IGNCR | abi::ICRNL | abi::IXON | abi::IUCLC;
        self.termios.input & INPUT == 0 && self.termios.local & (abi::ICANON | abi::ISIG | abi::ECHO | abi::ECHONL) == 0
    }

    /// Makes room for bytes that come, with the line that is being edited and what its end needs; whether there is memory for it.
    pub fn make_room(&mut self, bytes: &[u8]) -> bool {
        let (len, ends) =
            (bytes.len() + self.line.len(), 1 + bytes.iter().filter(|byte| self.may_end_line(**byte)).count());
        (self.input.capacity() - self.input.len() >= len || self.input.try_reserve(len).is_ok())
            && (self.ends.capacity() - self.ends.len() >= ends || self.ends.try_reserve(ends).is_ok())
    }

    fn may_end_line(&self, byte: u8) -> bool {
        matches!(byte, b'\n' | b'\r') || [abi::VEOF, abi::VEOL, abi::VEOL2].iter().any(|&at| self.termios.is(byte, at))
    }

    /// Takes in what the terminal sent. What is to be shown is appended to `echo`; signals go to `attention`. Where there is no memory for it it is lost.
    pub fn receive(&mut self, bytes: &[u8], echo: &mut Vec<u8>, mut attention: impl FnMut(Attention)) {
        if !self.make_room(bytes) {
            return;
        }
        if self.is_transparent() {
            let room = MAX_INPUT.saturating_sub(self.input.len());
            self.input.extend(&bytes[..bytes.len().min(room)]);
            return;
        }
        for &byte in bytes {
            if let Some(signal) = self.receive_byte(byte, echo) {
                attention(signal);
            }
        }
    }

    fn receive_byte(&mut self, byte: u8, echo: &mut Vec<u8>) -> Option<Attention> {
        let termios = self.termios;
        let mut byte = if termios.has_input(abi::ISTRIP) { byte & 0x7f } else { byte };
        if termios.has_input(abi::IUCLC) && termios.has_local(abi::IEXTEN) {
            byte = byte.to_ascii_lowercase();
        }
        if core::mem::take(&mut self.is_literal_next) {
            self.add(byte, echo);
            return None;
        }
        if termios.has_input(abi::IXON) {
            if termios.is(byte, abi::VSTART) {
                self.is_stopped = false;
                return None;
            }
            if termios.is(byte, abi::VSTOP) {
                self.is_stopped = true;
                return None;
            }
            if self.is_stopped && termios.has_input(abi::IXANY) {
                self.is_stopped = false;
            }
        }
        if termios.has_local(abi::ISIG)
            && let Some(signal) = self.signal_of(byte)
        {
            if !termios.has_local(abi::NOFLSH) {
                self.flush_input();
            }
            if termios.has_local(abi::ECHO) {
                self.echo_byte(byte, echo);
            }
            return Some(signal);
        }
        match byte {
            b'\r' if termios.has_input(abi::IGNCR) => return None,
            b'\r' if termios.has_input(abi::ICRNL) => byte = b'\n',
            b'\n' if termios.has_input(abi::INLCR) => byte = b'\r',
            _ => {}
        }
        if termios.has_local(abi::ICANON) {
            self.edit(byte, echo);
        } else if self.input.len() < MAX_INPUT {
            if termios.has_local(abi::ECHO) {
                self.echo_byte(byte, echo);
            }
            self.input.push_back(byte);
        }
        None
    }

    fn signal_of(&self, byte: u8) -> Option<Attention> {
        [(abi::VINTR, Attention::Interrupt), (abi::VQUIT, Attention::Quit), (abi::VSUSP, Attention::Suspend)]
            .into_iter()
            .find_map(|(index, signal)| self.termios.is(byte, index).then_some(signal))
    }

    /// A byte in canonical mode.
    fn edit(&mut self, byte: u8, echo: &mut Vec<u8>) {
        let termios = self.termios;
        let extended = termios.has_local(abi::IEXTEN);
        if termios.is(byte, abi::VERASE) {
            self.erase_character(echo);
        } else if termios.is(byte, abi::VWERASE) && extended {
            self.erase_word(echo);
        } else if termios.is(byte, abi::VKILL) {
            self.erase_line(byte, echo);
        } else if termios.is(byte, abi::VLNEXT) && extended {
            self.is_literal_next = true;
            if termios.has_local(abi::ECHO | abi::ECHOCTL) {
                // The caret is overwritten by what follows.
                self.put_all(b"^\x08", echo);
            }
        } else if termios.is(byte, abi::VREPRINT) && extended && termios.has_local(abi::ECHO) {
            self.echo_byte(byte, echo);
            self.put(b'\n', echo);
            let line = core::mem::take(&mut self.line);
            self.line_column = self.column;
            for &byte in &line {
                self.echo_byte(byte, echo);
            }
            self.line = line;
        } else if termios.is(byte, abi::VEOF) {
            self.complete();
        } else if byte == b'\n' {
            if termios.has_local(abi::ECHO) || termios.has_local(abi::ECHONL) {
                self.put(b'\n', echo);
            }
            self.line.push(byte);
            self.complete();
        } else if termios.is(byte, abi::VEOL) || (termios.is(byte, abi::VEOL2) && extended) {
            if termios.has_local(abi::ECHO) {
                self.echo_byte(byte, echo);
            }
            self.line.push(byte);
            self.complete();
        } else {
            self.add(byte, echo);
        }
    }

    /// Appends an ordinary byte to the line (or to the input, in raw mode).
    fn add(&mut self, byte: u8, echo: &mut Vec<u8>) {
        let is_full = self.input.len() >= MAX_INPUT || (self.is_canonical() && self.line.len() >= MAX_LINE);
        if is_full {
            if self.termios.has_input(abi::IMAXBEL) {
                echo.push(7);
            }
            return;
        }
        if self.termios.has_local(abi::ECHO) {
            if self.line.is_empty() {
                self.line_column = self.column;
            }
            self.echo_byte(byte, echo);
        }
        if self.is_canonical() { self.line.push(byte) } else { self.input.push_back(byte) }
    }

    /// The line is complete: programs can read it.
    fn complete(&mut self) {
        let line = core::mem::take(&mut self.line);
        self.input.extend(line);
        self.ends.push_back(self.taken + self.input.len() as u64);
    }

    fn erase_character(&mut self, echo: &mut Vec<u8>) {
        let Some(mut last) = self.line.pop() else { return };
        // A character of several bytes goes as a whole.
        while self.termios.has_input(abi::IUTF8) && last & 0xc0 == 0x80 {
            let Some(before) = self.line.pop() else { break };
            last = before;
        }
        if !self.termios.has_local(abi::ECHO) {
            return;
        }
        if !self.termios.has_local(abi::ECHOE) {
            self.echo_byte(self.termios.character(abi::VERASE), echo);
            return;
        }
        let target = self.width_of_line();
        while self.column > target {
            self.put_all(b"\x08 \x08", echo);
        }
    }

    fn erase_word(&mut self, echo: &mut Vec<u8>) {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
        while self.line.last().is_some_and(|&byte| !is_word(byte)) {
            self.erase_character(echo);
        }
        while self.line.last().is_some_and(|&byte| is_word(byte)) {
            self.erase_character(echo);
        }
    }

    fn erase_line(&mut self, byte: u8, echo: &mut Vec<u8>) {
        if !self.termios.has_local(abi::ECHO) {
            self.line.clear();
        } else if self.termios.has_local(abi::ECHOK | abi::ECHOKE | abi::ECHOE) {
            while !self.line.is_empty() {
                self.erase_character(echo);
            }
        } else {
            self.line.clear();
            self.echo_byte(byte, echo);
            if self.termios.has_local(abi::ECHOK) {
                self.put(b'\n', echo);
            }
        }
    }

    /// The column where the cursor stands behind the current line as it was echoed.
    fn width_of_line(&self) -> usize {
        self.line.iter().fold(self.line_column, |column, &byte| match byte {
            b'\t' => (column | 7) + 1,
            _ if self.is_echoed_with_caret(byte) => column + 2,
            0..0x20 | 0x7f => column,
            _ if self.termios.has_input(abi::IUTF8) && byte & 0xc0 == 0x80 => column,
            _ => column + 1,
        })
    }

    fn is_echoed_with_caret(&self, byte: u8) -> bool {
        self.termios.has_local(abi::ECHOCTL) && (byte < 0x20 || byte == 0x7f) && byte != b'\t' && byte != b'\n'
    }

    fn echo_byte(&mut self, byte: u8, echo: &mut Vec<u8>) {
        if self.is_echoed_with_caret(byte) {
            self.put_all(&[b'^', byte ^ 0x40], echo);
        } else {
            self.put(byte, echo);
        }
    }

    fn put_all(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        let is_plain = !self.termios.has_output(abi::OPOST | abi::OLCUC);
        while !bytes.is_empty() {
            let plain = bytes.iter().take_while(|&&byte| is_plain && (0x20..0x7f).contains(&byte)).count();
            out.extend_from_slice(&bytes[..plain]);
            self.column += plain;
            if let Some(&byte) = bytes.get(plain) {
                self.put(byte, out);
            }
            bytes = bytes.get(plain + 1..).unwrap_or(&[]);
        }
    }

    /// One byte on its way to the terminal.
    fn put(&mut self, byte: u8, out: &mut Vec<u8>) {
        let termios = &self.termios;
        let processed = termios.has_output(abi::OPOST);
        match byte {
            b'\n' => {
                if processed && termios.has_output(abi::ONLCR) {
                    out.push(b'\r');
                    self.column = 0;
                } else if processed && termios.has_output(abi::ONLRET) {
                    self.column = 0;
                }
                out.push(b'\n');
            }
            b'\r' if processed && termios.has_output(abi::ONOCR) && self.column == 0 => {}
            b'\r' if processed && termios.has_output(abi::OCRNL) => out.push(b'\n'),
            b'\r' => {
                self.column = 0;
                out.push(byte);
            }
            b'\t' => {
                let next = (self.column | 7) + 1;
                if processed && termios.output & abi::TABDLY == abi::XTABS {
                    out.extend(core::iter::repeat_n(b' ', next - self.column));
                } else {
                    out.push(byte);
                }
                self.column = next;
            }
            8 => {
                self.column = self.column.saturating_sub(1);
                out.push(byte);
            }
            0..0x20 | 0x7f => out.push(byte),
            _ => {
                if !(termios.has_input(abi::IUTF8) && byte & 0xc0 == 0x80) {
                    self.column += 1;
                }
                let upper = processed && termios.has_output(abi::OLCUC);
                out.push(if upper { byte.to_ascii_uppercase() } else { byte });
            }
        }
    }

    /// What a program wrote, on its way to the terminal: appended to `out` as the output modes say.
    pub fn transmit(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.put_all(bytes, out);
    }

    /// Whether lines are edited.
    #[inline(always)]
    pub fn is_canonical(&self) -> bool {
        self.termios.has_local(abi::ICANON)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;

    #[derive(Default)]
    struct Screen {
        discipline: Discipline,
        echo: Vec<u8>,
        signals: Vec<Attention>,
    }

    impl Screen {
        fn with(change: impl FnOnce(&mut Termios)) -> Self {
            let mut screen = Screen::default();
            let mut termios = Termios::default();
            change(&mut termios);
            screen.discipline.set_termios(termios);
            screen
        }

        fn type_in(&mut self, bytes: &[u8]) -> String {
            self.echo.clear();
            self.discipline.receive(bytes, &mut self.echo, |signal| self.signals.push(signal));
            String::from_utf8_lossy(&self.echo).into_owned()
        }

        fn read(&mut self, max: usize) -> Option<Vec<u8>> {
            match self.discipline.available() {
                Available::Nothing => None,
                Available::End => {
                    self.discipline.take(0);
                    Some(Vec::new())
                }
                Available::Bytes(_) => {
                    let (first, second) = self.discipline.peek(max);
                    let bytes = [first, second].concat();
                    self.discipline.take(bytes.len());
                    Some(bytes)
                }
            }
        }
    }

    #[test]
    fn a_line_is_readable_when_it_is_complete() {
        let mut screen = Screen::default();
        assert_eq!(screen.type_in(b"ls -l"), "ls -l");
        assert_eq!(screen.read(100), None);
        assert_eq!(screen.type_in(b"\r"), "\r\n");
        assert_eq!(screen.read(3).unwrap(), b"ls ");
        assert_eq!(screen.read(100).unwrap(), b"-l\n");
        assert_eq!(screen.read(100), None);
    }

    #[test]
    fn two_lines_are_read_one_at_a_time() {
        let mut screen = Screen::default();
        screen.type_in(b"one\rtwo\r");
        assert_eq!(screen.discipline.unread(), 8);
        assert_eq!(screen.read(100).unwrap(), b"one\n");
        assert_eq!(screen.read(100).unwrap(), b"two\n");
    }

    #[test]
    fn erasing_takes_back_what_was_shown() {
        let mut screen = Screen::default();
        assert_eq!(screen.type_in(b"ab\x7f"), "ab\x08 \x08");
        assert_eq!(screen.type_in(b"\x7f\x7f"), "\x08 \x08");
        screen.type_in(b"x\ty\x7f");
        assert_eq!(screen.type_in(b"\x7f"), "\x08 \x08".repeat(7));
        assert_eq!(screen.type_in(b"\x16\x01\x7f"), "^\x08^A\x08 \x08\x08 \x08");
        screen.type_in(b"\r");
        assert_eq!(screen.read(100).unwrap(), b"x\n");
    }

    #[test]
    fn a_character_of_several_bytes_is_erased_as_a_whole() {
        let mut screen = Screen::with(|termios| termios.input |= abi::IUTF8);
        assert_eq!(screen.type_in("aé\x7f".as_bytes()), "aé\x08 \x08");
        screen.type_in(b"\n");
        assert_eq!(screen.read(100).unwrap(), b"a\n");
    }

    #[test]
    fn words_and_lines_are_erased() {
        let mut screen = Screen::default();
        screen.type_in(b"echo one two  \x17");
        screen.type_in(b"\r");
        assert_eq!(screen.read(100).unwrap(), b"echo one \n");
        screen.type_in(b"abc");
        assert_eq!(screen.type_in(b"\x15"), "\x08 \x08".repeat(3));
        screen.type_in(b"d\r");
        assert_eq!(screen.read(100).unwrap(), b"d\n");
    }

    #[test]
    fn the_end_of_the_file_is_an_empty_line_without_newline() {
        let mut screen = Screen::default();
        screen.type_in(b"\x04");
        assert_eq!(screen.read(100).unwrap(), b"");
        assert_eq!(screen.read(100), None);
        screen.type_in(b"ab\x04");
        assert_eq!(screen.read(100).unwrap(), b"ab");
        assert_eq!(screen.read(100), None);
    }

    #[test]
    fn signals_discard_what_was_typed() {
        let mut screen = Screen::default();
        assert_eq!(screen.type_in(b"abc\x03"), "abc^C");
        assert_eq!(screen.type_in(b"\x1a"), "^Z");
        screen.type_in(b"\x1c");
        assert_eq!(screen.signals, [Attention::Interrupt, Attention::Suspend, Attention::Quit]);
        screen.type_in(b"x\r");
        assert_eq!(screen.read(100).unwrap(), b"x\n");
    }

    #[test]
    fn raw_mode_passes_everything_unchanged() {
        let mut screen = Screen::with(|termios| {
            (termios.input, termios.output, termios.local) = (0, 0, 0);
        });
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(screen.type_in(&all), "");
        assert_eq!(screen.read(1000).unwrap(), all);
        let mut out = Vec::new();
        screen.discipline.transmit(&all, &mut out);
        assert_eq!(out, all);
        assert!(screen.signals.is_empty());
    }

    #[test]
    fn what_was_typed_survives_a_change_to_raw_mode() {
        let mut screen = Screen::default();
        screen.type_in(b"one\rtw");
        let mut raw = Termios::default();
        raw.local &= !(abi::ICANON | abi::ECHO);
        screen.discipline.set_termios(raw);
        screen.type_in(b"o");
        assert_eq!(screen.read(100).unwrap(), b"one\ntwo");
    }

    #[test]
    fn output_stops_and_goes_on() {
        let mut screen = Screen::default();
        screen.type_in(b"\x13");
        assert!(screen.discipline.is_stopped());
        screen.type_in(b"\x11");
        assert!(!screen.discipline.is_stopped());
    }

    #[test]
    fn newlines_get_a_carriage_return_unless_switched_off() {
        let mut screen = Screen::default();
        let mut out = Vec::new();
        screen.discipline.transmit(b"a\nb", &mut out);
        assert_eq!(out, b"a\r\nb");
        let mut screen = Screen::with(|termios| termios.output &= !abi::OPOST);
        out.clear();
        screen.discipline.transmit(b"a\nb", &mut out);
        assert_eq!(out, b"a\nb");
    }

    #[test]
    fn a_line_that_is_too_long_loses_its_rest_but_can_be_ended() {
        let mut screen = Screen::default();
        screen.type_in(&[b'x'; 5000]);
        screen.type_in(b"\r");
        assert_eq!(screen.read(10_000).unwrap().len(), MAX_LINE + 1);
    }
}
