//! Laying a program out in a new address space. Nothing of the file is read but its headers: its pages are mapped, and come in
//! when they are touched.

use alloc::vec::Vec;
use core::ops::Range;

use frame::Cx;
use frame::mm::{PAGE_SIZE, Prot, USER_END, Writer};
use linux_raw_sys::auxvec;
use refs::StrongRc;

use super::elf::{Elf, HEADER_SIZE, Header, PROGRAM_HEADER_SIZE, Position, Segment};
use super::layout::Layout;
use super::stack::{self, ProgramStrings, StackImage};
use crate::credentials::{Gid, Uid};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::OpenFile;
use crate::fs::notify::FileEvents;
use crate::memory::{
    AddressSpace, Backing, BackingObject, BadAccess, Image, LOWEST, Limits, Mappable, Mapping, Placement, RemoteRight,
    VmaFlags,
};
use crate::step::{Interruption, Step, Stop, TimeSlice};

/// What a stack has to begin with, below what execve(2) puts there.
const STACK_ROOM: usize = 128 << 10;

/// Where a loaded program starts.
pub struct Start {
    /// The first instruction: the interpreter's if there is one.
    pub entry: usize,
    /// The stack pointer.
    pub stack: usize,
}

/// What a program is told about itself.
pub struct Startup<'a> {
    /// Its arguments and its environment.
    pub strings: ProgramStrings<'a>,
    /// The path that was executed.
    pub path: &'a [u8],
    /// Real and effective user.
    pub user: (Uid, Uid),
    /// Real and effective group.
    pub group: (Gid, Gid),
    /// Whether it runs with more rights than its caller had.
    pub secure: bool,
    /// Where its parts go.
    pub layout: Layout,
}

/// Reads up to the end of `to`: how many bytes.
pub fn read_at(file: &OpenFile, offset: u64, to: &mut [u8], me: &Current, cx: &Cx) -> Step<usize> {
    let mut done = 0;
    while done < to.len() {
        let at = offset.checked_add(done as u64).ok_or(Errno::ENOEXEC)?;
        match file.file.read(at, &mut Writer::from(&mut to[done..]), me, cx) {
            Ok(0) => break,
            Ok(len) => {
                done += len;
                file.notify(FileEvents::ACCESS, cx);
            }
            // A file for whose content somebody has to be waited for is no program.
            Err(Stop::Block | Stop::BlockUntil(_)) => return Err(Errno::ENOEXEC.into()),
            Err(stop) => return Err(stop),
        }
    }
    Ok(done)
}

/// Reads a range that the caller has bounded.
///
/// # Errors
/// ENOEXEC if the file ends before; ENOMEM.
pub fn read_exactly(file: &OpenFile, range: Range<u64>, me: &Current, cx: &Cx) -> Step<Vec<u8>> {
    let len = (range.end - range.start) as usize;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|_| Errno::ENOMEM)?;
    bytes.resize(len, 0);
    if read_at(file, range.start, &mut bytes, me, cx)? < len { Err(Errno::ENOEXEC.into()) } else { Ok(bytes) }
}

/// Reads and checks the headers of a file whose first bytes are known.
///
/// # Errors
/// ENOEXEC.
pub fn read_elf(file: &OpenFile, first: &[u8], me: &Current, cx: &Cx) -> Step<Elf> {
    let header = Header::parse(&first[..first.len().min(HEADER_SIZE)]).map_err(|_| Errno::ENOEXEC)?;
    // The header bounds it to 64 KiB.
    let bytes = read_exactly(file, header.program_headers.clone(), me, cx)?;
    Ok(header.load(&bytes).map_err(|_| Errno::ENOEXEC)?)
}

/// Maps a program, its interpreter if it has one, and a stack, which is to be written.
///
/// # Errors
/// ENOMEM; ENOEXEC, EPERM where the file asks for the impossible.
pub fn load(
    space: &AddressSpace,
    file: &StrongRc<OpenFile>,
    elf: &Elf,
    interpreter: Option<(&StrongRc<OpenFile>, &Elf)>,
    startup: &Startup<'_>,
    limits: Limits,
    cx: &Cx,
) -> Step<(Start, Image, StackImage)> {
    let layout = &startup.layout;
    space.set_map_end(layout.map_end, cx);
    let bias = match elf.position {
        Position::Fixed => 0,
        // Whatever address the file names first is moved to the base.
        Position::Anywhere => layout.program_base.next_multiple_of(elf.alignment).wrapping_sub(elf.span.start),
    };
    map_segments(space, file, elf, bias, limits, cx)?;
    space.set_break_start(elf.span.end.wrapping_add(bias).wrapping_add(layout.heap_gap), cx);
    let mut entry = elf.entry.wrapping_add(bias);
    let mut base = 0;
    if let Some((file, elf)) = interpreter {
        base = match elf.position {
            Position::Fixed => 0,
            Position::Anywhere => space.find_room(elf.span.len(), elf.alignment, cx)?.wrapping_sub(elf.span.start),
        };
        map_segments(space, file, elf, base, limits, cx)?;
        entry = elf.entry.wrapping_add(base);
    }
    let vdso = space.map_vdso(layout.vdso, cx)?;
    let (stack, mut image) = map_stack(space, elf, [bias, base, vdso], startup, limits, cx)?;
    for Segment { memory, prot, .. } in &elf.segments {
        let range = memory.start.wrapping_add(bias)..memory.end.wrapping_add(bias);
        let whole = if prot.contains(Prot::EXECUTE) { &mut image.code } else { &mut image.data };
        *whole = if whole.start == whole.end { range } else { whole.start.min(range.start)..whole.end.max(range.end) };
    }
    Ok((Start { entry, stack: stack.pointer }, image, stack))
}

fn map_segments(
    space: &AddressSpace,
    file: &StrongRc<OpenFile>,
    elf: &Elf,
    bias: usize,
    limits: Limits,
    cx: &Cx,
) -> Step<()> {
    let moved = |range: Range<usize>| range.start.wrapping_add(bias)..range.end.wrapping_add(bias);
    let span = moved(elf.span.clone());
    if span.start < LOWEST || span.end > USER_END || span.start >= span.end {
        return Err(Errno::EPERM.into());
    }
    match file.get(cx).file.mappable(cx) {
        Mappable::Pages(pages) | Mappable::ReadOnly(pages) => pages.mapped().note(),
        Mappable::No | Mappable::Zeros => return Err(Errno::ENOEXEC.into()),
    }
    for segment in &elf.segments {
        let pages = moved(segment.file_pages());
        if !pages.is_empty() {
            let object: StrongRc<dyn BackingObject> = file.share().unsize(|file| file);
            let backing = Backing::Object { object, first: segment.first_page() };
            space.map(private(pages, segment.prot, backing), limits, cx)?;
        }
        let zeros = moved(segment.zero_pages());
        if !zeros.is_empty() {
            space.map(private(zeros, segment.prot, Backing::Anonymous), limits, cx)?;
        }
        if segment.memory.end > segment.data_end && segment.data_end > segment.memory.start {
            // A file that is shorter than it claims has no such page.
            let zeroed = space.zero_rest_of_page(segment.data_end.wrapping_add(bias), cx);
            zeroed.map_err(|bad| match bad {
                BadAccess::NoMemory | BadAccess::Absent(_) => bad.stop(),
                _ => Errno::ENOEXEC.into(),
            })?;
        }
    }
    Ok(())
}

fn private(range: Range<usize>, prot: Prot, backing: Backing) -> Mapping {
    Mapping {
        place: Placement::Fixed(range.start),
        len: range.len(),
        prot,
        limit: Prot::all(),
        flags: VmaFlags::empty(),
        backing,
    }
}

fn map_stack(
    space: &AddressSpace,
    elf: &Elf,
    [bias, base, vdso]: [usize; 3],
    startup: &Startup<'_>,
    limits: Limits,
    cx: &Cx,
) -> Result<(StackImage, Image)> {
    let auxiliary = [
        (auxvec::AT_SYSINFO_EHDR, vdso),
        (auxvec::AT_MINSIGSTKSZ, minimal_signal_stack()),
        (auxvec::AT_HWCAP, 0),
        (auxvec::AT_PAGESZ, PAGE_SIZE),
        (auxvec::AT_CLKTCK, 100),
        (auxvec::AT_PHDR, elf.headers_at.map_or(0, |at| at.wrapping_add(bias))),
        (auxvec::AT_PHENT, PROGRAM_HEADER_SIZE),
        (auxvec::AT_PHNUM, elf.header_count),
        (auxvec::AT_BASE, base),
        (auxvec::AT_FLAGS, 0),
        (auxvec::AT_ENTRY, elf.entry.wrapping_add(bias)),
        (auxvec::AT_UID, startup.user.0.number() as usize),
        (auxvec::AT_EUID, startup.user.1.number() as usize),
        (auxvec::AT_GID, startup.group.0.number() as usize),
        (auxvec::AT_EGID, startup.group.1.number() as usize),
        (auxvec::AT_SECURE, usize::from(startup.secure)),
        (auxvec::AT_HWCAP2, 0),
    ];
    let random = crate::drivers::random::bytes(cx);
    let stack = stack::lay_out(startup.layout.stack_top, &startup.strings, startup.path, random, &auxiliary);
    let start = (stack.pointer - STACK_ROOM) & !(PAGE_SIZE - 1);
    let mut prot = Prot::READ | Prot::WRITE;
    prot.set(Prot::EXECUTE, elf.executable_stack);
    let mut mapping = private(start..startup.layout.stack_top.next_multiple_of(PAGE_SIZE), prot, Backing::Anonymous);
    mapping.flags = VmaFlags::GROWS_DOWN;
    space.map(mapping, limits, cx)?;
    let image = Image {
        stack: stack.pointer,
        arguments: stack.arguments.clone(),
        environment: stack.environment.clone(),
        ..Image::default()
    };
    Ok((stack, image))
}

/// Writes the new stack from `at` on, which moves as it is written.
///
/// # Errors
/// ENOMEM; `Pause`.
pub fn write_stack(
    space: &AddressSpace,
    stack: &StackImage,
    strings: &ProgramStrings<'_>,
    at: &mut usize,
    cx: &Cx,
) -> Step<()> {
    const PART: usize = 8 * PAGE_SIZE;
    let mut time_slice = TimeSlice::default();
    while *at < stack.top {
        let part = stack.part(*at, PART, strings);
        if space.write_remote(*at, &part, RemoteRight::Own, cx)? < part.len() {
            return Err(Errno::ENOMEM.into());
        }
        *at += part.len();
        if *at < stack.top && time_slice.is_over() {
            return Err(Stop::Pause(Interruption::KillOnly));
        }
    }
    Ok(())
}

/// The room that a signal frame takes at most: registers, siginfo and red zone, beside the processor's extended state.
fn minimal_signal_stack() -> usize {
    (frame::user::fpu_size().0 + 1024).next_multiple_of(64)
}
