//! What a PVH loader says: command line, modules, memory map.
//!
//! Layout: "x86/HVM direct boot ABI", `xen/include/public/arch-x86/hvm/start_info.h`.

use core::cell::UnsafeCell;
use core::ops::Range;

use super::kernel_map::DIRECT_MAP;

const MAGIC: u32 = 0x336e_c578;
/// What the boot tables map.
const REACHABLE: usize = 1 << 30;
const MAX_RANGES: usize = 64;
/// What lies below belongs to firmware and loader.
const LOW_MEMORY_END: usize = 1 << 20;

#[repr(C)]
struct StartInfo {
    magic: u32,
    version: u32,
    flags: u32,
    modules: u32,
    modules_at: u64,
    command_line_at: u64,
    rsdp_at: u64,
    memory_map_at: u64,
    memory_map_entries: u32,
    reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Module {
    at: u64,
    len_bytes: u64,
    command_line_at: u64,
    reserved: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct MemoryMapEntry {
    at: u64,
    len_bytes: u64,
    kind: u32,
    reserved: u32,
}

const KIND_RAM: u32 = 1;
/// Firmware and loader have no use for this page of low memory once the kernel runs.
const START_PAGE: usize = 0x8000;

/// Ranges of physical addresses, ascending and disjoint.
#[derive(Clone)]
pub struct Ranges {
    ranges: [Range<usize>; MAX_RANGES],
    len: usize,
}

impl Ranges {
    const fn new() -> Self {
        Ranges { ranges: [const { 0..0 }; MAX_RANGES], len: 0 }
    }

    /// The ranges.
    pub fn as_slice(&self) -> &[Range<usize>] {
        &self.ranges[..self.len]
    }

    /// Enters a range that overlaps no other. When the table is full it is lost: memory that is not used.
    fn add(&mut self, range: Range<usize>) {
        if range.is_empty() || self.len == MAX_RANGES {
            return;
        }
        let at = self.as_slice().iter().position(|other| other.start > range.start).unwrap_or(self.len);
        self.ranges[at..=self.len].rotate_right(1);
        self.ranges[at] = range;
        self.len += 1;
    }

    /// Takes a range out of all.
    pub fn remove(&mut self, hole: &Range<usize>) {
        let before = core::mem::replace(self, Ranges::new());
        for range in before.as_slice() {
            self.add(range.start..range.end.min(hole.start));
            self.add(range.start.max(hole.end)..range.end);
        }
    }

    /// Takes `len` bytes from the front of the first range that has them and ends below `limit`.
    pub fn take(&mut self, len: usize, limit: usize) -> Option<Range<usize>> {
        let len_used = self.len;
        let found =
            self.ranges[..len_used].iter_mut().find(|range| range.len() >= len && range.start + len <= limit)?;
        let taken = found.start..found.start + len;
        found.start = taken.end;
        Some(taken)
    }
}

/// What the loader said, in types that can be used.
pub struct LoaderInfo {
    /// All memory, whole pages, without the first megabyte.
    pub ram: Ranges,
    /// Where the initial ram disk is: within one of the ranges of memory.
    pub initramfs: Option<Range<usize>>,
    /// The command line.
    pub command_line: &'static str,
    /// How many bytes of memory the machine has.
    pub memory_bytes: usize,
    /// Where the root pointer of the firmware's tables is, if the loader says so.
    pub root_pointer: Option<u64>,
    /// A page of memory, in the first megabyte, where other cores can start. Nobody else uses it.
    pub start_page: Option<usize>,
}

/// A copy: the loader put it somewhere in low memory.
const COMMAND_LINE_MAX: usize = 4096;
struct CommandLine(UnsafeCell<[u8; COMMAND_LINE_MAX]>);
// SAFETY: `read_start_info` writes it, once; afterwards it is only read.
unsafe impl Sync for CommandLine {}
static COMMAND_LINE: CommandLine = CommandLine(UnsafeCell::new([0; COMMAND_LINE_MAX]));

/// Reads a `T` at a physical address, through the boot tables.
///
/// # Safety
/// The loader put a `T` there; `T` is plain data.
unsafe fn read<T: Copy>(at: u64) -> Option<T> {
    let at = usize::try_from(at).ok()?;
    if at == 0 || at.checked_add(size_of::<T>())? > REACHABLE {
        return None;
    }
    // SAFETY: mapped by the boot tables; plain data by this function's contract.
    Some(unsafe { core::ptr::read_unaligned((DIRECT_MAP + at) as *const T) })
}

/// Reads what the loader left at physical address `start_info`. `None` if it is not a PVH loader's or has no memory map.
///
/// # Safety
/// Called once, at boot, with the boot tables active and the value that the loader passed.
pub unsafe fn read_start_info(start_info: u32) -> Option<LoaderInfo> {
    // SAFETY: a loader passes the address of its start information; the magic number says whether it did.
    let info = unsafe { read::<[u32; size_of::<StartInfo>() / 4]>(start_info.into())? };
    // SAFETY: both are plain data of the same size.
    let info: StartInfo = unsafe { core::mem::transmute(info) };
    if info.magic != MAGIC || info.version == 0 {
        return None;
    }

    let mut ram = Ranges::new();
    let mut memory_bytes = 0;
    let mut start_page = None;
    for index in 0..u64::from(info.memory_map_entries) {
        // SAFETY: the loader's table has so many entries.
        let entry: MemoryMapEntry = unsafe { read(info.memory_map_at + index * size_of::<MemoryMapEntry>() as u64)? };
        if entry.kind != KIND_RAM {
            continue;
        }
        memory_bytes += entry.len_bytes as usize;
        if entry.at as usize <= START_PAGE
            && START_PAGE + 4096 <= (entry.at as usize).saturating_add(entry.len_bytes as usize)
        {
            start_page = Some(START_PAGE);
        }
        let start = (entry.at as usize).next_multiple_of(4096).max(LOW_MEMORY_END);
        let end = (entry.at as usize).saturating_add(entry.len_bytes as usize) & !4095;
        ram.add(start..end);
    }

    let mut initramfs = None;
    if info.modules > 0 {
        // SAFETY: the loader's table has at least one entry.
        let module: Module = unsafe { read(info.modules_at)? };
        let start = module.at as usize;
        let range = start..start.saturating_add(module.len_bytes as usize);
        let is_memory = |memory: &Range<usize>| memory.start <= range.start && range.end <= memory.end;
        if !range.is_empty() && ram.as_slice().iter().any(is_memory) {
            initramfs = Some(range);
        }
    }

    let mut len = 0;
    // SAFETY: only this function touches the buffer mutably, once (its contract).
    let buffer: &'static mut [u8; COMMAND_LINE_MAX] = unsafe { &mut *COMMAND_LINE.0.get() };
    if info.command_line_at != 0 {
        // SAFETY: the loader's command line is a string that ends in 0.
        while let Some(byte) = unsafe { read::<u8>(info.command_line_at + len as u64) } {
            if byte == 0 || len == COMMAND_LINE_MAX {
                break;
            }
            buffer[len] = byte;
            len += 1;
        }
    }
    let command_line = buffer[..len].utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let root_pointer = (info.rsdp_at != 0).then_some(info.rsdp_at);
    Some(LoaderInfo { ram, initramfs, command_line, memory_bytes, root_pointer, start_page })
}
