//! Zstandard (RFC 8878): one frame, without a dictionary. Its checksum is not looked at.
//!
//! A frame is a row of blocks of up to 128 KiB, each of *literals* and *sequences*: so many literals, then a match of such a length at such a distance. Literals are coded with a Huffman code ([`huffman`]), the three numbers of a sequence with
//! state machines ([`fse`]). All of these are read backwards ([`bits`]). What there is between two steps is in the [`Decoder`].

mod bits;
mod fse;
mod huffman;

use alloc::vec::Vec;

use crate::output::Output;
use crate::{Error, Progress};
use bits::Backwards;
use fse::Table;

const MAGIC: u32 = 0xfd2f_b528;
const LONGEST_BLOCK: usize = 128 << 10;
/// So many literals are decoded in a step.
const LITERALS_AT_ONCE: usize = 2 << 10;

pub(crate) struct Decoder {
    phase: Phase,
    /// How far the input is read.
    read: usize,
    is_last: bool,
    huffman: Option<huffman::Table>,
    tables: [Option<Table>; 3],
    /// The last three distances.
    distances: [usize; 3],
    /// Those of the block, and how many of them are used.
    literals: Vec<u8>,
    used: usize,
    /// Where the block ends in the input.
    block_end: usize,
    /// What is left of the sequence that is copied.
    copy: Copying,
}

/// So many literals, and then a match.
#[derive(Clone, Copy, Default)]
struct Copying {
    literals: usize,
    matched: usize,
    distance: usize,
}

/// What comes next.
#[derive(Clone, Copy)]
enum Phase {
    Frame,
    Block,
    /// So many bytes that stand in the input as they are.
    Plain(usize),
    /// So many of one byte.
    Repeated(u8, usize),
    /// Literals of so many streams that are still to come, each of which has this many (the last may have fewer); how many there are in all.
    Literals(Streams),
    Sequences,
    /// So many sequences are still to come, from these bits of the input.
    Sequence(Sequences),
    /// What is left of the literals ends a block.
    Rest,
    End,
}

#[derive(Clone, Copy)]
struct Streams {
    /// Where the streams end in the input, one behind the other.
    ends: [usize; 4],
    count: usize,
    now: usize,
    /// Where the stream begins that is decoded now, and how many of its bits are left; `None`: it has not begun.
    start: usize,
    left: Option<i64>,
    /// Literals of each, and of all.
    each: usize,
    all: usize,
}

#[derive(Clone, Copy)]
struct Sequences {
    count: usize,
    start: usize,
    left: i64,
    states: [usize; 3],
}

/// The three numbers of a sequence.
const LITERAL_LENGTH: usize = 0;
const OFFSET: usize = 1;
const MATCH_LENGTH: usize = 2;

/// What codes of lengths of literals begin with, and how many bits are added.
const LITERAL_LENGTHS: [(u32, u32); 20] = [
    (16, 1),
    (18, 1),
    (20, 1),
    (22, 1),
    (24, 2),
    (28, 2),
    (32, 3),
    (40, 3),
    (48, 4),
    (64, 6),
    (128, 7),
    (256, 8),
    (512, 9),
    (1024, 10),
    (2048, 11),
    (4096, 12),
    (8192, 13),
    (16384, 14),
    (32768, 15),
    (65536, 16),
];

/// The same for lengths of matches.
const MATCH_LENGTHS: [(u32, u32); 21] = [
    (35, 1),
    (37, 1),
    (39, 1),
    (41, 1),
    (43, 2),
    (47, 2),
    (51, 3),
    (59, 3),
    (67, 4),
    (83, 4),
    (99, 5),
    (131, 7),
    (259, 8),
    (515, 9),
    (1027, 10),
    (2051, 11),
    (4099, 12),
    (8195, 13),
    (16387, 14),
    (32771, 15),
    (65539, 16),
];

fn literal_length(code: u8) -> Result<(u32, u32), Error> {
    match code {
        0..16 => Ok((u32::from(code), 0)),
        _ => LITERAL_LENGTHS.get(usize::from(code) - 16).copied().ok_or(Error::Malformed),
    }
}

fn match_length(code: u8) -> Result<(u32, u32), Error> {
    match code {
        0..32 => Ok((u32::from(code) + 3, 0)),
        _ => MATCH_LENGTHS.get(usize::from(code) - 32).copied().ok_or(Error::Malformed),
    }
}

fn take(input: &[u8], at: usize, len: usize) -> Result<&[u8], Error> {
    input.get(at..).and_then(|rest| rest.get(..len)).ok_or(Error::Malformed)
}

/// A number of up to eight bytes.
fn number(input: &[u8], at: usize, len: usize) -> Result<u64, Error> {
    Ok(take(input, at, len)?.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

impl Decoder {
    pub fn new() -> Self {
        Decoder {
            phase: Phase::Frame,
            read: 0,
            is_last: false,
            huffman: None,
            tables: [None, None, None],
            distances: [1, 4, 8],
            literals: Vec::new(),
            used: 0,
            block_end: 0,
            copy: Copying::default(),
        }
    }

    /// Decompresses until so much is made, or all is.
    pub fn step(&mut self, input: &[u8], output: &mut Output<'_>, goal: usize) -> Result<Progress, Error> {
        // What makes nothing takes from the input.
        let most_read = self.read + 4 * 1024;
        loop {
            match self.phase {
                Phase::Frame => self.frame(input)?,
                Phase::Block if self.is_last => self.phase = Phase::End,
                Phase::Block => {
                    self.block(input)?;
                    if matches!(self.phase, Phase::Literals(_)) {
                        // The code of the literals was read.
                        return Ok(Progress::More);
                    }
                }
                Phase::Plain(0) | Phase::Repeated(_, 0) => self.phase = Phase::Block,
                Phase::Plain(left) => {
                    let now = left.min(most_now(output, goal)?);
                    output.extend(take(input, self.read, now)?)?;
                    self.read += now;
                    self.phase = Phase::Plain(left - now);
                }
                Phase::Repeated(byte, left) => {
                    let now = left.min(most_now(output, goal)?);
                    output.fill(byte, now)?;
                    self.phase = Phase::Repeated(byte, left - now);
                }
                Phase::Rest if self.used == self.literals.len() => {
                    self.literals.clear();
                    self.read = self.block_end;
                    self.phase = Phase::Block;
                }
                Phase::Rest => self.copy_literals(self.literals.len() - self.used, output, goal).map(drop)?,
                Phase::Literals(streams) => {
                    self.decode_literals(input, streams)?;
                    if matches!(self.phase, Phase::Literals(_)) {
                        return Ok(Progress::More);
                    }
                }
                Phase::Sequences => {
                    self.sequences(input)?;
                    // Building tables takes long enough.
                    return Ok(Progress::More);
                }
                Phase::Sequence(sequences) => self.decode_sequences(input, sequences, output, goal)?,
                Phase::End => return Ok(Progress::Done),
            }
            if output.done >= goal && output.room() > 0 || self.read > most_read {
                return Ok(Progress::More);
            }
        }
    }

    fn frame(&mut self, input: &[u8]) -> Result<(), Error> {
        if number(input, 0, 4)? != u64::from(MAGIC) {
            return Err(Error::Malformed);
        }
        let flags = take(input, 4, 1)?[0];
        if flags & 8 != 0 {
            return Err(Error::Malformed);
        }
        if flags & 3 != 0 {
            return Err(Error::Unsupported("Zstandard with a dictionary"));
        }
        let is_single = flags & 0x20 != 0;
        let size_bytes = match flags >> 6 {
            0 => usize::from(is_single),
            1 => 2,
            2 => 4,
            _ => 8,
        };
        self.read = 5 + usize::from(!is_single) + size_bytes;
        self.phase = Phase::Block;
        Ok(())
    }

    /// Some of the literals that were decoded: how many.
    fn copy_literals(&mut self, len: usize, output: &mut Output<'_>, goal: usize) -> Result<usize, Error> {
        let now = len.min(most_now(output, goal)?);
        let literals = self.literals.get(self.used..).and_then(|rest| rest.get(..now)).ok_or(Error::Malformed)?;
        output.extend(literals)?;
        self.used += now;
        Ok(now)
    }

    fn block(&mut self, input: &[u8]) -> Result<(), Error> {
        let header = number(input, self.read, 3)? as usize;
        self.read += 3;
        self.is_last = header & 1 != 0;
        let len = header >> 3;
        if len > LONGEST_BLOCK {
            return Err(Error::Malformed);
        }
        match header >> 1 & 3 {
            0 => {
                take(input, self.read, len)?;
                self.phase = Phase::Plain(len);
            }
            1 => {
                self.phase = Phase::Repeated(take(input, self.read, 1)?[0], len);
                self.read += 1;
            }
            2 => {
                take(input, self.read, len)?;
                self.block_end = self.read + len;
                self.literals(&input[..self.block_end])?;
            }
            _ => return Err(Error::Malformed),
        }
        Ok(())
    }

    /// The header of the literals, and those that are not compressed. `input` ends with the block.
    fn literals(&mut self, input: &[u8]) -> Result<(), Error> {
        let first = take(input, self.read, 1)?[0];
        let (kind, form) = (first & 3, usize::from(first >> 2 & 3));
        self.used = 0;
        self.literals.clear();
        self.phase = Phase::Sequences;
        if kind < 2 {
            let (bytes, shift) = [(1, 3), (2, 4), (1, 3), (3, 4)][form];
            let all = (number(input, self.read, bytes)? >> shift) as usize;
            self.read += bytes;
            self.reserve_literals(all)?;
            if kind == 0 {
                self.literals.extend_from_slice(take(input, self.read, all)?);
                self.read += all;
            } else {
                self.literals.resize(all, take(input, self.read, 1)?[0]);
                self.read += 1;
            }
            return Ok(());
        }
        let (bytes, bits, count) = [(3, 10, 1), (3, 10, 4), (4, 14, 4), (5, 18, 4)][form];
        let header = number(input, self.read, bytes)? >> 4;
        let (all, compressed) = ((header & ((1 << bits) - 1)) as usize, (header >> bits) as usize);
        self.read += bytes;
        self.reserve_literals(all)?;
        let end = self.read.checked_add(compressed).filter(|end| *end <= input.len()).ok_or(Error::Malformed)?;
        let input = &input[..end];
        if kind == 2 {
            let (table, len) = huffman::Table::read(&input[self.read..])?;
            self.huffman = Some(table);
            self.read += len;
        }
        let mut streams = Streams { ends: [end; 4], count, now: 0, start: 0, left: None, each: all, all };
        if count == 4 {
            let mut at = self.read + 6;
            for stream in 0..3 {
                at += number(input, self.read + 2 * stream, 2)? as usize;
                streams.ends[stream] = at;
            }
            if at > end {
                return Err(Error::Malformed);
            }
            self.read += 6;
            streams.each = all.div_ceil(4);
        }
        streams.start = self.read;
        self.phase = Phase::Literals(streams);
        Ok(())
    }

    fn reserve_literals(&mut self, all: usize) -> Result<(), Error> {
        if all > LONGEST_BLOCK {
            return Err(Error::Malformed);
        }
        self.literals.try_reserve(all).map_err(|_| Error::NoMemory)
    }

    /// Some of the literals.
    fn decode_literals(&mut self, input: &[u8], mut streams: Streams) -> Result<(), Error> {
        let table = self.huffman.as_ref().ok_or(Error::Malformed)?;
        let is_last = streams.now + 1 == streams.count;
        let stream = input.get(streams.start..streams.ends[streams.now]).ok_or(Error::Malformed)?;
        let mut bits = match streams.left {
            None => Backwards::new(stream)?,
            Some(left) => Backwards::at(stream, left),
        };
        let end = if is_last { streams.all } else { streams.each * (streams.now + 1) };
        let until = end.min(self.literals.len() + LITERALS_AT_ONCE);
        // Of fewer than six literals four streams cannot be.
        if end > streams.all {
            return Err(Error::Malformed);
        }
        while self.literals.len() < until {
            self.literals.push(table.decode(&mut bits)?);
        }
        streams.left = Some(bits.left());
        if until == end {
            if bits.left() != 0 {
                return Err(Error::Malformed);
            }
            (streams.start, streams.left) = (streams.ends[streams.now], None);
            streams.now += 1;
        }
        if streams.now == streams.count {
            self.read = streams.ends[3];
            self.phase = Phase::Sequences;
        } else {
            self.phase = Phase::Literals(streams);
        }
        Ok(())
    }

    /// The header of the sequences, and their tables.
    fn sequences(&mut self, input: &[u8]) -> Result<(), Error> {
        let input = input.get(..self.block_end).ok_or(Error::Malformed)?;
        let first = usize::from(take(input, self.read, 1)?[0]);
        let (count, bytes) = match first {
            0..128 => (first, 1),
            128..255 => ((first - 128) << 8 | usize::from(take(input, self.read, 2)?[1]), 2),
            _ => (number(input, self.read + 1, 2)? as usize + 0x7f00, 3),
        };
        self.read += bytes;
        if count == 0 {
            self.phase = Phase::Rest;
            return Ok(());
        }
        let modes = take(input, self.read, 1)?[0];
        if modes & 3 != 0 {
            return Err(Error::Malformed);
        }
        self.read += 1;
        for (which, shift) in [(LITERAL_LENGTH, 6), (OFFSET, 4), (MATCH_LENGTH, 2)] {
            let rest = &input[self.read..];
            match modes >> shift & 3 {
                0 => self.tables[which] = Some(Table::predefined(which)?),
                1 => {
                    self.tables[which] = Some(Table::of_one(*rest.first().ok_or(Error::Malformed)?));
                    self.read += 1;
                }
                2 => {
                    let (most_bits, most_symbols) = [(9, 36), (8, 32), (9, 53)][which];
                    let (table, len) = Table::read(rest, most_bits, most_symbols)?;
                    self.tables[which] = Some(table);
                    self.read += len;
                }
                _ => {}
            }
        }
        let mut bits = Backwards::new(&input[self.read..])?;
        let mut states = [0; 3];
        for (state, table) in states.iter_mut().zip(&self.tables) {
            *state = bits.read(table.as_ref().ok_or(Error::Malformed)?.bits) as usize;
        }
        self.phase = Phase::Sequence(Sequences { count, start: self.read, left: bits.left(), states });
        Ok(())
    }

    /// Some of the sequences.
    fn decode_sequences(
        &mut self,
        input: &[u8],
        mut sequences: Sequences,
        output: &mut Output<'_>,
        goal: usize,
    ) -> Result<(), Error> {
        let mut bits =
            Backwards::at(input.get(sequences.start..self.block_end).ok_or(Error::Malformed)?, sequences.left);
        loop {
            self.copy_sequence(output, goal)?;
            // Each makes three bytes at least.
            if sequences.count == 0 || output.done >= goal && output.room() > 0 {
                break;
            }
            self.next_sequence(&mut sequences, &mut bits)?;
        }
        if bits.left() < 0 {
            return Err(Error::Malformed);
        }
        sequences.left = bits.left();
        self.phase = Phase::Sequence(sequences);
        if sequences.count == 0 && self.copy.literals + self.copy.matched == 0 {
            if bits.left() != 0 {
                return Err(Error::Malformed);
            }
            self.phase = Phase::Rest;
        }
        Ok(())
    }

    /// Copies what the last sequence says, as much of it as there is to be.
    fn copy_sequence(&mut self, output: &mut Output<'_>, goal: usize) -> Result<(), Error> {
        if self.copy.literals > 0 {
            self.copy.literals -= self.copy_literals(self.copy.literals, output, goal)?;
        }
        if self.copy.literals == 0 && self.copy.matched > 0 {
            let now = self.copy.matched.min(most_now(output, goal)?);
            output.repeat(self.copy.distance, now)?;
            self.copy.matched -= now;
        }
        Ok(())
    }

    /// What the next sequence says.
    fn next_sequence(&mut self, sequences: &mut Sequences, bits: &mut Backwards<'_>) -> Result<(), Error> {
        let [Some(literal_lengths), Some(offsets), Some(match_lengths)] = &self.tables else {
            return Err(Error::Malformed);
        };
        let [of_literals, of_offset, of_match] = sequences.states;
        let code = offsets.symbol(of_offset)?;
        if code > 31 {
            return Err(Error::Malformed);
        }
        let offset = (1 << code) + bits.read(u32::from(code)) as usize;
        let (base, more) = match_length(match_lengths.symbol(of_match)?)?;
        let matched = base as usize + bits.read(more) as usize;
        let (base, more) = literal_length(literal_lengths.symbol(of_literals)?)?;
        let literals = base as usize + bits.read(more) as usize;
        sequences.count -= 1;
        if sequences.count > 0 {
            // In the order in which they are read.
            sequences.states[LITERAL_LENGTH] = literal_lengths.next(of_literals, bits)?;
            sequences.states[MATCH_LENGTH] = match_lengths.next(of_match, bits)?;
            sequences.states[OFFSET] = offsets.next(of_offset, bits)?;
        }
        let distance = distance(&mut self.distances, offset, literals == 0)?;
        self.copy = Copying { literals, matched, distance };
        Ok(())
    }
}

/// How much is made at most until the goal is reached; at least one byte, for which there is room.
fn most_now(output: &Output<'_>, goal: usize) -> Result<usize, Error> {
    match goal.max(output.done + 1).min(output.bytes.len()).saturating_sub(output.done) {
        0 => Err(Error::Malformed),
        most => Ok(most),
    }
}

/// The distance that an offset means, which may name one of the last three.
fn distance(last: &mut [usize; 3], offset: usize, is_without_literals: bool) -> Result<usize, Error> {
    let which = match offset {
        1..=3 => offset - 1 + usize::from(is_without_literals),
        _ => {
            let distance = offset.checked_sub(3).ok_or(Error::Malformed)?;
            *last = [distance, last[0], last[1]];
            return Ok(distance);
        }
    };
    match which {
        0 => {}
        1 => last.swap(0, 1),
        2 => last.rotate_right(1),
        _ => *last = [last[0].wrapping_sub(1), last[0], last[1]],
    }
    Ok(last[0])
}
