//! The format of core files: an ELF file with a segment for each VMA, and notes about the thread that ended the process. See core(5), and
//! `linux/elfcore.h` for the notes.

use alloc::vec::Vec;

use frame::mm::{PAGE_SIZE, Prot};
use linux_raw_sys::general as abi;
use zerocopy::{Immutable, IntoBytes};

use super::Segment;
use crate::arch::{CoreRegisters, ELF_MACHINE};
use crate::error::{Errno, Result};
use crate::signal::SigInfo;

const ET_CORE: u16 = 4;
const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
const NT_PRSTATUS: u32 = 1;
const NT_PRPSINFO: u32 = 3;
const NT_AUXV: u32 = 6;
const NT_SIGINFO: u32 = 0x5349_4749;

/// The most segments that fit a header, beside the notes.
pub const MAX_SEGMENTS: usize = 0xfffd;

#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct FileHeader {
    ident: [u8; 16],
    kind: u16,
    machine: u16,
    version: u32,
    entry: u64,
    program_headers: u64,
    section_headers: u64,
    flags: u32,
    header_size: u16,
    program_header_size: u16,
    program_header_count: u16,
    sections: [u16; 3],
}

#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct ProgramHeader {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    physical: u64,
    file_size: u64,
    memory_size: u64,
    align: u64,
}

#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct NoteHeader {
    name_size: u32,
    size: u32,
    kind: u32,
    name: [u8; 8],
}

/// Who a process is: its id, its parent's, its group's and its session's.
#[derive(Clone, Copy, IntoBytes, Immutable)]
#[repr(C)]
pub struct Ids {
    pub pid: u32,
    pub parent: u32,
    pub group: u32,
    pub session: u32,
}

/// `struct elf_prstatus`.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct ThreadStatus {
    signal: i32,
    code: i32,
    errno: i32,
    current_signal: u16,
    padding: u16,
    pending: u64,
    blocked: u64,
    ids: Ids,
    /// User and system time, and those of children that were waited for: seconds and microseconds.
    times: [u64; 8],
    registers: CoreRegisters,
    has_floating_point: u32,
    padding_2: u32,
}

/// `struct elf_prpsinfo`.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct ProcessInfo {
    state: u8,
    state_name: u8,
    is_zombie: u8,
    nice: u8,
    padding: u32,
    flags: u64,
    uid: u32,
    gid: u32,
    ids: Ids,
    name: [u8; 16],
    arguments: [u8; 80],
}

/// What the notes tell.
pub struct Notes {
    /// The signal.
    pub info: SigInfo,
    /// The signals that are pending for the thread, and those that it blocks.
    pub pending_and_blocked: (u64, u64),
    /// Who the process is. The first is the thread's own id for the thread.
    pub ids: Ids,
    /// The thread's id.
    pub tid: u32,
    /// In nanoseconds: user and system time, and those of children that were waited for.
    pub times: [u64; 4],
    /// The thread's registers.
    pub registers: CoreRegisters,
    /// Real user and group.
    pub user_and_group: (u32, u32),
    /// The thread's name.
    pub name: [u8; 16],
    /// The start of the arguments, with spaces between.
    pub arguments: [u8; 80],
    /// The auxiliary vector.
    pub auxiliary: Vec<u64>,
}

impl Notes {
    fn encode(&self) -> Vec<u8> {
        let mut times = [0; 8];
        for (time, pair) in self.times.iter().zip(times.chunks_exact_mut(2)) {
            pair.copy_from_slice(&[time / 1_000_000_000, time % 1_000_000_000 / 1000]);
        }
        let status = ThreadStatus {
            signal: self.info.signo,
            code: self.info.code,
            errno: self.info.errno,
            current_signal: self.info.signo as u16,
            padding: 0,
            pending: self.pending_and_blocked.0,
            blocked: self.pending_and_blocked.1,
            ids: Ids { pid: self.tid, ..self.ids },
            times,
            registers: self.registers,
            has_floating_point: 0,
            padding_2: 0,
        };
        let process = ProcessInfo {
            state: 0,
            state_name: b'R',
            is_zombie: 0,
            nice: 0,
            padding: 0,
            flags: 0,
            uid: self.user_and_group.0,
            gid: self.user_and_group.1,
            ids: self.ids,
            name: self.name,
            arguments: self.arguments,
        };
        let mut notes = Vec::new();
        for (kind, content) in [
            (NT_PRSTATUS, status.as_bytes()),
            (NT_PRPSINFO, process.as_bytes()),
            (NT_SIGINFO, self.info.as_bytes()),
            (NT_AUXV, self.auxiliary.as_bytes()),
        ] {
            let header = NoteHeader { name_size: 5, size: content.len() as u32, kind, name: *b"CORE\0\0\0\0" };
            notes.extend_from_slice(header.as_bytes());
            notes.extend_from_slice(content);
            notes.resize(notes.len().next_multiple_of(4), 0);
        }
        notes
    }
}

/// All that comes before the first segment's content, which follows on the next page.
///
/// # Errors
/// ENOMEM.
pub fn head(notes: &Notes, segments: &[Segment]) -> Result<Vec<u8>> {
    let notes = notes.encode();
    let headers_end = size_of::<FileHeader>() + size_of::<ProgramHeader>() * (segments.len() + 1);
    let end = headers_end + notes.len();
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(end).map_err(|_| Errno::ENOMEM)?;
    let mut ident = [0; 16];
    // 64 bits, little-endian, version 1.
    ident[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    let header = FileHeader {
        ident,
        kind: ET_CORE,
        machine: ELF_MACHINE,
        version: 1,
        entry: 0,
        program_headers: size_of::<FileHeader>() as u64,
        section_headers: 0,
        flags: 0,
        header_size: size_of::<FileHeader>() as u16,
        program_header_size: size_of::<ProgramHeader>() as u16,
        program_header_count: (segments.len() + 1) as u16,
        sections: [0; 3],
    };
    bytes.extend_from_slice(header.as_bytes());
    let note = ProgramHeader {
        kind: PT_NOTE,
        flags: 0,
        offset: headers_end as u64,
        address: 0,
        physical: 0,
        file_size: notes.len() as u64,
        memory_size: 0,
        align: 4,
    };
    bytes.extend_from_slice(note.as_bytes());
    let mut offset = first_content(end);
    for segment in segments {
        let load = ProgramHeader {
            kind: PT_LOAD,
            flags: flags(segment.prot),
            offset,
            address: segment.range.start as u64,
            physical: 0,
            file_size: segment.content_len as u64,
            memory_size: segment.range.len() as u64,
            align: PAGE_SIZE as u64,
        };
        bytes.extend_from_slice(load.as_bytes());
        offset += segment.content_len as u64;
    }
    bytes.extend_from_slice(&notes);
    Ok(bytes)
}

/// Where in the file the content of the first segment begins, if so many bytes come before.
pub fn first_content(head_len: usize) -> u64 {
    head_len.next_multiple_of(PAGE_SIZE) as u64
}

fn flags(prot: Prot) -> u32 {
    let bit = |right, flag| if prot.contains(right) { flag } else { 0 };
    // PF_R, PF_W, PF_X.
    bit(Prot::READ, abi::R_OK) | bit(Prot::WRITE, abi::W_OK) | bit(Prot::EXECUTE, abi::X_OK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_have_the_sizes_of_linux() {
        assert_eq!(size_of::<ThreadStatus>(), 336);
        assert_eq!(size_of::<ProcessInfo>(), 136);
        assert_eq!(size_of::<SigInfo>(), 128);
        assert_eq!(size_of::<FileHeader>(), 64);
        assert_eq!(size_of::<ProgramHeader>(), 56);
    }
}
