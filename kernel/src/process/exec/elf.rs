//! ELF files of 64 bits: from untrusted bytes to checked numbers (see elf(5) and the System V ABI, chapter 5).
//!
//! Holding an [`Elf`] says: every segment lies in user addresses after any [`bias`](Elf::span) that keeps its span there, no sum of its
//! fields overflows, and file offset and address agree modulo the page size. It says nothing about what the file really contains: it may
//! be shorter than the segments claim.

use alloc::vec::Vec;
use core::ops::Range;

use frame::mm::{PAGE_SIZE, Prot, USER_END};
use linux_raw_sys::elf::{ELFCLASS, ELFDATA, ELFMAG, ET_DYN};
use linux_raw_sys::elf::{PF_R, PF_W, PF_X, PT_GNU_STACK, PT_INTERP, PT_LOAD};
use zerocopy::{FromBytes, Immutable, KnownLayout};

use crate::arch::ELF_MACHINE;

/// Bytes of the header at the start of a file.
pub const HEADER_SIZE: usize = size_of::<FileHeader>();

/// Bytes of one program header.
pub const PROGRAM_HEADER_SIZE: usize = size_of::<ProgramHeader>();

/// The kind of a program at fixed addresses.
const ET_EXEC: u16 = 2;

/// The most bytes that program headers may have, as on Linux.
const MAX_PROGRAM_HEADERS_BYTES: usize = 65_536;

/// The longest path of an interpreter, with its zero.
const MAX_INTERPRETER: u64 = 4096;

/// The largest alignment that is honoured.
const MAX_ALIGNMENT: u64 = 1 << 30;

#[derive(FromBytes, Immutable, KnownLayout)]
#[repr(C)]
struct FileHeader {
    magic: [u8; 4],
    class: u8,
    data: u8,
    _ident: [u8; 10],
    kind: u16,
    machine: u16,
    _version: u32,
    entry: u64,
    program_headers: u64,
    _section_headers: u64,
    _flags: u32,
    _header_size: u16,
    program_header_size: u16,
    program_header_count: u16,
    _sections: [u16; 3],
}

#[derive(FromBytes, Immutable, KnownLayout)]
#[repr(C)]
struct ProgramHeader {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    _physical: u64,
    file_size: u64,
    memory_size: u64,
    align: u64,
}

/// It is no ELF file that can be run here (ENOEXEC).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadElf;

/// Where the file says that it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// At the addresses it names.
    Fixed,
    /// Anywhere (position-independent).
    Anywhere,
}

/// The header of a file: where its program headers are.
#[derive(Clone, Debug)]
pub struct Header {
    /// Where the file goes.
    pub position: Position,
    entry: u64,
    /// Where in the file the program headers are.
    pub program_headers: Range<u64>,
}

/// One part of a file that is to be in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where its first byte is in the file.
    pub offset: u64,
    /// Its bytes in memory, before a bias.
    pub memory: Range<usize>,
    /// Where what comes from the file ends; what is behind is zero.
    pub data_end: usize,
    /// What the program may do with it.
    pub prot: Prot,
}

impl Segment {
    /// The pages that have something of the file.
    pub fn file_pages(&self) -> Range<usize> {
        if self.data_end == self.memory.start {
            let at = page_down(self.memory.start);
            return at..at;
        }
        page_down(self.memory.start)..page_up(self.data_end)
    }

    /// The pages behind them.
    pub fn zero_pages(&self) -> Range<usize> {
        let start = self.file_pages().end;
        start..page_up(self.memory.end).max(start)
    }

    /// The index of the file's page that its first page shows.
    pub fn first_page(&self) -> u64 {
        self.offset / PAGE_SIZE as u64
    }
}

/// A file that can be run.
#[derive(Clone, Debug)]
pub struct Elf {
    /// Where it goes.
    pub position: Position,
    /// Where it starts, before the bias. Not checked: a wrong one faults in user mode.
    pub entry: usize,
    /// The parts to load, as the file orders them; at least one.
    pub segments: Vec<Segment>,
    /// The page-aligned range that holds all segments.
    pub span: Range<usize>,
    /// What the bias must be a multiple of.
    pub alignment: usize,
    /// Where the program headers are in memory, before the bias, if they are loaded.
    pub headers_at: Option<usize>,
    /// How many there are.
    pub header_count: usize,
    /// Where the file has the path of the interpreter (the dynamic linker), with its zero.
    pub interpreter: Option<Range<u64>>,
    /// Whether the stack is to be executable.
    pub executable_stack: bool,
}

fn page_down(address: usize) -> usize {
    address & !(PAGE_SIZE - 1)
}

/// Of checked addresses, which are at least a page below the end of numbers.
fn page_up(address: usize) -> usize {
    address.next_multiple_of(PAGE_SIZE)
}

impl Header {
    /// From the first bytes of a file.
    ///
    /// # Errors
    /// It is no ELF program for this machine.
    pub fn parse(bytes: &[u8]) -> Result<Header, BadElf> {
        let (header, _) = FileHeader::read_from_prefix(bytes).map_err(|_| BadElf)?;
        let is_ours = header.magic == ELFMAG[..4]
            && header.class == ELFCLASS
            && header.data == ELFDATA
            && header.machine == ELF_MACHINE
            && usize::from(header.program_header_size) == PROGRAM_HEADER_SIZE;
        let size = usize::from(header.program_header_count) * PROGRAM_HEADER_SIZE;
        if !is_ours || size == 0 || size > MAX_PROGRAM_HEADERS_BYTES {
            return Err(BadElf);
        }
        let position = match header.kind {
            ET_EXEC => Position::Fixed,
            ET_DYN => Position::Anywhere,
            _ => return Err(BadElf),
        };
        let end = header.program_headers.checked_add(size as u64).filter(|&end| end <= i64::MAX as u64);
        Ok(Header { position, entry: header.entry, program_headers: header.program_headers..end.ok_or(BadElf)? })
    }

    /// Checks the program headers, which the caller has read from [`program_headers`](Self::program_headers).
    ///
    /// # Errors
    /// A segment is impossible, or there is none.
    pub fn load(&self, program_headers: &[u8]) -> Result<Elf, BadElf> {
        let mut elf = Elf {
            position: self.position,
            entry: usize::try_from(self.entry).map_err(|_| BadElf)?,
            segments: Vec::new(),
            // Nothing yet: the first segment sets both ends.
            span: Range { start: usize::MAX, end: 0 },
            alignment: PAGE_SIZE,
            headers_at: None,
            header_count: program_headers.len() / PROGRAM_HEADER_SIZE,
            interpreter: None,
            executable_stack: false,
        };
        elf.segments.try_reserve_exact(elf.header_count).map_err(|_| BadElf)?;
        for bytes in program_headers.chunks_exact(PROGRAM_HEADER_SIZE) {
            let header = ProgramHeader::read_from_bytes(bytes).map_err(|_| BadElf)?;
            match header.kind {
                PT_LOAD if header.memory_size > 0 => elf.add(&header, self.program_headers.start)?,
                PT_INTERP if elf.interpreter.is_none() => elf.interpreter = Some(interpreter(&header)?),
                PT_GNU_STACK => elf.executable_stack = header.flags & PF_X != 0,
                _ => {}
            }
        }
        if elf.segments.is_empty() { Err(BadElf) } else { Ok(elf) }
    }
}

fn interpreter(header: &ProgramHeader) -> Result<Range<u64>, BadElf> {
    if header.file_size < 2 || header.file_size > MAX_INTERPRETER {
        return Err(BadElf);
    }
    Ok(header.offset..header.offset.checked_add(header.file_size).ok_or(BadElf)?)
}

impl Elf {
    fn add(&mut self, header: &ProgramHeader, headers_offset: u64) -> Result<(), BadElf> {
        let page = PAGE_SIZE as u64;
        let memory_end = header.address.checked_add(header.memory_size).filter(|&end| end <= USER_END as u64);
        let memory_end = memory_end.ok_or(BadElf)?;
        let file_end = header.offset.checked_add(header.file_size).filter(|&end| end <= i64::MAX as u64 - page);
        let file_end = file_end.ok_or(BadElf)?;
        if header.file_size > header.memory_size || header.offset % page != header.address % page {
            return Err(BadElf);
        }
        let mut prot = Prot::empty();
        prot.set(Prot::READ, header.flags & PF_R != 0);
        prot.set(Prot::WRITE, header.flags & PF_W != 0);
        prot.set(Prot::EXECUTE, header.flags & PF_X != 0);
        // All below USER_END, so they fit.
        let memory = header.address as usize..memory_end as usize;
        let data_end = (header.address + header.file_size) as usize;
        if self.headers_at.is_none() && (header.offset..file_end).contains(&headers_offset) {
            self.headers_at = Some(memory.start + (headers_offset - header.offset) as usize);
        }
        if header.align.is_power_of_two() && header.align <= MAX_ALIGNMENT {
            self.alignment = self.alignment.max(header.align as usize);
        }
        self.span.start = self.span.start.min(page_down(memory.start));
        self.span.end = self.span.end.max(page_up(memory.end));
        self.segments.push(Segment { offset: header.offset, memory, data_end, prot });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    struct Part(u32, u32, u64, u64, u64, u64);

    /// A file: its header and the program headers (kind, flags, offset, address, file size, memory size).
    fn file(kind: u16, parts: &[Part]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend_from_slice(&kind.to_le_bytes());
        bytes.extend_from_slice(&62u16.to_le_bytes());
        bytes.extend_from_slice(&1u32.to_le_bytes());
        bytes.extend_from_slice(&0x40_1000u64.to_le_bytes());
        bytes.extend_from_slice(&64u64.to_le_bytes());
        bytes.extend_from_slice(&0u64.to_le_bytes());
        bytes.extend_from_slice(&0u32.to_le_bytes());
        for half in [64u16, 56, parts.len() as u16, 0, 0, 0] {
            bytes.extend_from_slice(&half.to_le_bytes());
        }
        for Part(kind, flags, offset, address, file_size, memory_size) in parts {
            bytes.extend_from_slice(&kind.to_le_bytes());
            bytes.extend_from_slice(&flags.to_le_bytes());
            for word in [*offset, *address, *address, *file_size, *memory_size, 0x1000] {
                bytes.extend_from_slice(&word.to_le_bytes());
            }
        }
        bytes
    }

    fn parse(bytes: &[u8]) -> Result<Elf, BadElf> {
        let header = Header::parse(bytes)?;
        let start = usize::try_from(header.program_headers.start).map_err(|_| BadElf)?;
        let end = usize::try_from(header.program_headers.end).map_err(|_| BadElf)?;
        header.load(bytes.get(start..end).ok_or(BadElf)?)
    }

    fn good() -> Vec<u8> {
        file(
            2,
            &[
                Part(PT_LOAD, PF_R | PF_X, 0, 0x40_0000, 0x2345, 0x2345),
                Part(PT_LOAD, PF_R | PF_W, 0x2e80, 0x40_3e80, 0x200, 0x5000),
                Part(PT_INTERP, PF_R, 0x300, 0x40_0300, 28, 28),
                Part(PT_GNU_STACK, PF_R | PF_W, 0, 0, 0, 0),
            ],
        )
    }

    #[test]
    fn a_program_is_laid_out_as_its_headers_say() {
        let elf = parse(&good()).unwrap();
        assert_eq!(elf.position, Position::Fixed);
        assert_eq!(elf.span, 0x40_0000..0x40_9000);
        assert_eq!(elf.headers_at, Some(0x40_0040));
        assert_eq!(elf.interpreter, Some(0x300..0x31c));
        assert!(!elf.executable_stack);
        let data = &elf.segments[1];
        assert_eq!(data.file_pages(), 0x40_3000..0x40_5000);
        assert_eq!(data.zero_pages(), 0x40_5000..0x40_9000);
        assert_eq!(data.first_page(), 2);
        assert_eq!(data.prot, Prot::READ | Prot::WRITE);
    }

    #[test]
    fn impossible_segments_are_refused() {
        let load = |offset, address, file_size, memory_size| {
            parse(&file(3, &[Part(PT_LOAD, PF_R, offset, address, file_size, memory_size)])).err()
        };
        assert_eq!(load(0, 0, 0x1000, 0x1000), None);
        assert_eq!(load(0, 0, 0x1001, 0x1000), Some(BadElf), "more in the file than in memory");
        assert_eq!(load(1, 0, 0x1000, 0x1000), Some(BadElf), "offset and address disagree");
        assert_eq!(load(0, u64::MAX - 0xfff, 0x1000, 0x1000), Some(BadElf), "end of addresses");
        assert_eq!(load(0, 0x7fff_ffff_f000, 0, 1), Some(BadElf), "kernel addresses");
        assert_eq!(load(u64::MAX - 0xfff, 0, 0x1000, 0x2000), Some(BadElf), "end of files");
        assert_eq!(load(0, 0, 0, 0), Some(BadElf), "nothing to load");
    }

    #[test]
    fn other_files_are_refused() {
        assert!(parse(b"").is_err());
        assert!(parse(b"#!/bin/sh\n").is_err());
        let mut other = good();
        other[18] = 183;
        assert!(parse(&other).is_err(), "another machine");
        let mut other = good();
        other[4] = 1;
        assert!(parse(&other).is_err(), "32 bits");
    }

    #[test]
    fn mutated_files_never_break_what_a_checked_file_promises() {
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        let mut next = move || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
        let original = good();
        let mut accepted = 0;
        for _ in 0..200_000 {
            let mut bytes = original.clone();
            for _ in 0..1 + next() % 4 {
                let at = next() as usize % bytes.len();
                bytes[at] = match next() % 4 {
                    0 => 0,
                    1 => 0xff,
                    2 => bytes[at] ^ (1 << (next() % 8)),
                    _ => next() as u8,
                };
            }
            bytes.truncate(bytes.len() - (next() % 32 == 0) as usize * (next() as usize % bytes.len()));
            let Ok(elf) = parse(&bytes) else { continue };
            accepted += 1;
            assert!(!elf.segments.is_empty());
            assert!(elf.span.end <= USER_END && elf.span.start < elf.span.end);
            assert!(elf.alignment.is_power_of_two());
            for segment in &elf.segments {
                let (file, zero) = (segment.file_pages(), segment.zero_pages());
                assert!(file.start <= file.end && file.end == zero.start && zero.start <= zero.end);
                assert!(elf.span.start <= file.start && zero.end <= elf.span.end);
                assert!(segment.memory.start <= segment.data_end && segment.data_end <= segment.memory.end);
            }
        }
        assert!(accepted > 1000);
    }
}
