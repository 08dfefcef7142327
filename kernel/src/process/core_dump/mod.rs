//! Core files: what is left of a process that a signal has ended whose default action says so. See core(5).
//!
//! The thread that takes the signal writes the file, on its way to user mode; the others exit at once, so their registers are not in it. Reading memory
//! and writing the file go in steps, in which others have their turn, and SIGKILL breaks them off.

mod format;

use alloc::vec::Vec;
use core::any::Any;
use core::ops::Range;
use core::sync::atomic::Ordering;

use bitflags::bitflags;
use frame::Cx;
use frame::mm::{PAGE_SIZE, Prot, Reader};
use linux_raw_sys::general as abi;
use refs::{SpinLock, StrongRc};

use super::Process;
use crate::arch;
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::dentry::{self, At};
use crate::fs::{OpenFile, OpenFlags, open};
use crate::memory::{AddressSpace, VmaFlags, VmaName, VmaReport, WritableMappings};
use crate::signal::{Info, Work};
use crate::step::{Interruption, Patience, Step, Stop, TimeSlice, complete_async};
use crate::sysctl::Tunable;
use crate::user_memory::{UserIn, UserMemory};
use crate::{time, utsname};
use format::{MAX_SEGMENTS, Notes};

bitflags! {
    /// Which memory core files have: the bits of `/proc/PID/coredump_filter`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct CoreFilter: u32 {
        /// Private memory: that of no file, and what was or can be written of a file.
        const PRIVATE = 1;
        /// Shared memory that is no file, or one without a name.
        const SHARED = 2;
        /// Private mappings of files that were not written.
        const PRIVATE_FILES = 4;
        /// Shared mappings of files.
        const SHARED_FILES = 8;
        /// The first page of mapped ELF files.
        const ELF_HEADERS = 16;
        /// Private huge pages, which are not told apart here.
        const PRIVATE_HUGE = 32;
        const _ = !0;
    }
}

impl Default for CoreFilter {
    fn default() -> Self {
        CoreFilter::PRIVATE | CoreFilter::SHARED | CoreFilter::ELF_HEADERS | CoreFilter::PRIVATE_HUGE
    }
}

/// Whether the name of a core file ends with the process' id where the pattern does not say so (`/proc/sys/kernel/core_uses_pid`).
pub static CORE_USES_PID: Tunable = Tunable::new(0, 0..=1);

/// The longest pattern, and the longest name: in bytes.
const MAX_NAME: usize = 127;

/// What core files are called; `None` until it is set.
static PATTERN: SpinLock<Option<Vec<u8>>> = SpinLock::new(None);

/// What core files are called: `/proc/sys/kernel/core_pattern`.
pub fn pattern(cx: &Cx) -> Vec<u8> {
    PATTERN.lock(cx).clone().unwrap_or_else(|| b"core".to_vec())
}

/// Changes what core files are called. What is too long is cut off.
///
/// # Errors
/// EINVAL for a pipe to a program: the kernel starts none.
pub fn set_pattern(pattern: &[u8], cx: &Cx) -> Result<()> {
    if pattern.first() == Some(&b'|') {
        return Err(Errno::EINVAL);
    }
    *PATTERN.lock(cx) = Some(pattern[..pattern.len().min(MAX_NAME)].to_vec());
    Ok(())
}

/// One VMA in a core file.
struct Segment {
    range: Range<usize>,
    prot: Prot,
    /// So many bytes of it, from its start on, are in the file.
    content_len: usize,
    /// It is no object's: what is not in the page tables is nowhere.
    is_anonymous: bool,
}

/// Ends the calling thread's process by a signal, after a core file is written if there is to be one.
pub fn end_process_async(cx: &mut Cx, me: &mut Current, info: Info) {
    match me.process(cx) {
        Ok(process) if process.begin_dump(info.signal) => {
            let own = me.thread(cx).map_or(0, |thread| thread.tid());
            process.each_thread(cx, |thread| {
                if thread.tid() != own {
                    thread.signals.add_work(Work::EXIT);
                }
            });
            // Those that end wake the others. One may be the caller.
            process.wake_ending(cx);
        }
        // The end has begun already.
        _ => return,
    }
    let is_dumped = write_core_async(cx, me, info).is_ok();
    if let Ok(process) = me.process(cx) {
        process.end_dump(is_dumped);
    }
    if let Ok(thread) = me.thread(cx) {
        thread.signals.add_work(Work::EXIT);
    }
}

/// Writes a core file; it is one even if not all of it could be written.
///
/// # Errors
/// There is to be none, or it cannot be made.
fn write_core_async(cx: &mut Cx, me: &mut Current, info: Info) -> Result<()> {
    let limit = {
        let process = me.process(cx)?;
        let limit = process.limits.lock(cx).soft(abi::RLIMIT_CORE);
        if process.dumpable.load(Ordering::Relaxed) != 1 || limit < PAGE_SIZE as u64 {
            return Err(Errno::EPERM);
        }
        limit
    };
    let name = name(me, info, cx)?;
    let file = complete_async(cx, me, Patience::Forever, |cx, me, _| create(&name, me, cx))?;
    let written = write_async(cx, me, info, &file, limit);
    file.destroy(cx);
    // What is there of it is a core file.
    let _ = written;
    Ok(())
}

fn write_async(cx: &mut Cx, me: &mut Current, info: Info, file: &StrongRc<OpenFile>, limit: u64) -> Result<()> {
    let mut segments = Vec::new();
    let mut next = 0;
    complete_async(cx, me, Patience::Forever, |cx, me, _| collect_segments(&mut segments, &mut next, me, cx))?;
    let head = format::head(&notes(me, info, cx)?, &segments)?;
    let mut dump = Dump { file, limit, written: 0 };
    let mut done = 0;
    complete_async(cx, me, Patience::Forever, |cx, me, _| {
        dump.write(0, &mut done, head.len(), |done| Reader::from(&head[done..]), me, cx)
    })?;
    let mut offset = format::first_content(head.len());
    for segment in &segments {
        let mut done = 0;
        complete_async(cx, me, Patience::Forever, |cx, me, _| dump.write_segment(segment, offset, &mut done, me, cx))?;
        offset += segment.content_len as u64;
    }
    complete_async(cx, me, Patience::Forever, |cx, _, _| {
        let open = file.get(cx);
        let inode = open.inode(cx)?;
        inode.ops.set_size(&inode, offset, cx)
    })
}

/// A core file that is being written.
struct Dump<'a> {
    file: &'a StrongRc<OpenFile>,
    /// RLIMIT_CORE, in bytes.
    limit: u64,
    /// How many bytes were written; holes are none.
    written: u64,
}

impl Dump<'_> {
    /// Writes what `rest` gives, from `done` to `len`, to the file from `offset` on.
    fn write<'b>(
        &mut self,
        offset: u64,
        done: &mut usize,
        len: usize,
        rest: impl Fn(usize) -> Reader<'b>,
        me: &Current,
        cx: &Cx,
    ) -> Step<()> {
        let mut time_slice = TimeSlice::default();
        while *done < len {
            let most = (len - *done).min(16 * PAGE_SIZE);
            if self.written + most as u64 > self.limit {
                return Err(Errno::EFBIG.into());
            }
            let mut from = rest(*done).split(most);
            match self.file.get(cx).file.write(offset + *done as u64, &mut from, me, cx)? {
                0 => return Err(Errno::ENOSPC.into()),
                written => {
                    *done += written;
                    self.written += written as u64;
                }
            }
            if time_slice.is_over() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
        }
        Ok(())
    }

    /// Writes the content of a segment from `done` on: the pages that are there. The others stay holes.
    fn write_segment(&mut self, segment: &Segment, offset: u64, done: &mut usize, me: &Current, cx: &Cx) -> Step<()> {
        /// So many bytes of anonymous memory are looked at together.
        const TOGETHER: usize = 512 * PAGE_SIZE;
        let mut time_slice = TimeSlice::default();
        let space = me.space(cx)?;
        while *done < segment.content_len {
            let page = segment.range.start + *done;
            let is_large = page.is_multiple_of(TOGETHER) && *done + TOGETHER <= segment.content_len;
            if segment.is_anonymous && is_large && space.vm().mapped_in(page..page + TOGETHER, cx) == 0 {
                *done += TOGETHER;
            } else if let Some(frame) = space.present_page(page, cx) {
                let mut page_done = 0;
                self.write(
                    offset + *done as u64,
                    &mut page_done,
                    PAGE_SIZE,
                    |done| frame.reader(done..PAGE_SIZE),
                    me,
                    cx,
                )?;
                *done += PAGE_SIZE;
            } else {
                *done += PAGE_SIZE;
            }
            if time_slice.is_over() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
        }
        Ok(())
    }
}

/// Looks at the VMAs from `next` on.
fn collect_segments(segments: &mut Vec<Segment>, next: &mut usize, me: &Current, cx: &Cx) -> Step<()> {
    let mut time_slice = TimeSlice::default();
    let space = me.space(cx)?;
    let filter = CoreFilter::from_bits_retain(me.process(cx)?.core_filter.load(Ordering::Relaxed));
    while segments.len() < MAX_SEGMENTS
        && let Some(vma) = space.report(*next, cx)
    {
        segments.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
        let content_len = content_len(&vma, &space, filter, cx);
        let is_anonymous = !matches!(vma.name, VmaName::Object(_) | VmaName::Special(..));
        *next = vma.range.end;
        segments.push(Segment { range: vma.range, prot: vma.prot, content_len, is_anonymous });
        if time_slice.is_over() {
            return Err(Stop::Pause(Interruption::KillOnly));
        }
    }
    Ok(())
}

/// How much of a VMA a core file has.
fn content_len(vma: &VmaReport, space: &AddressSpace, filter: CoreFilter, cx: &Cx) -> usize {
    let when = |kind| if filter.contains(kind) { vma.range.len() } else { 0 };
    if vma.flags.contains(VmaFlags::DONT_DUMP) {
        return 0;
    }
    if matches!(vma.name, VmaName::Special(..)) {
        // There is no file that has it.
        return vma.range.len();
    }
    if vma.flags.contains(VmaFlags::SHARED) {
        return when(if shows_named_file(vma, cx) { CoreFilter::SHARED_FILES } else { CoreFilter::SHARED });
    }
    let is_file = matches!(vma.name, VmaName::Object(_));
    let may_be_own = vma.prot.contains(Prot::WRITE) || vma.flags.contains(VmaFlags::MAY_OWN);
    if (!is_file || may_be_own) && filter.contains(CoreFilter::PRIVATE) {
        return vma.range.len();
    }
    if !is_file || filter.contains(CoreFilter::PRIVATE_FILES) {
        return if is_file { vma.range.len() } else { 0 };
    }
    let mut magic = [0; 4];
    let is_elf = filter.contains(CoreFilter::ELF_HEADERS)
        && vma.offset == 0
        && vma.prot.contains(Prot::READ)
        && space
            .present_page(vma.range.start, cx)
            .is_some_and(|frame| frame.reader(0..magic.len()).read(&mut magic).is_ok() && magic == *b"\x7fELF");
    if is_elf { PAGE_SIZE } else { 0 }
}

/// Whether a VMA shows a file that has a name.
fn shows_named_file(vma: &VmaReport, cx: &Cx) -> bool {
    let VmaName::Object(object) = vma.name else { return false };
    let Ok(object) = object.upgrade(cx) else { return false };
    let any: &dyn Any = &*object;
    let file = any.downcast_ref::<WritableMappings>().map(|writable| writable.file());
    let has_name =
        |any: &dyn Any| any.downcast_ref::<OpenFile>().is_some_and(|open| !open.location.inode.get(cx).is_removed(cx));
    match file {
        Some(file) => file.upgrade(cx).is_ok_and(|file| has_name(&*file)),
        None => has_name(any),
    }
}

/// The name of the core file: the pattern, filled in.
fn name(me: &Current, info: Info, cx: &Cx) -> Result<Vec<u8>> {
    let (process, thread) = (me.process(cx)?, me.thread(cx)?);
    let (uid, gid) = {
        let credentials = thread.credentials.lock(cx);
        (credentials.users().real.number(), credentials.groups().real.number())
    };
    let pattern = pattern(cx);
    let (mut name, mut has_pid) = (Vec::new(), false);
    let mut letters = pattern.iter();
    while let Some(&letter) = letters.next() {
        if letter != b'%' {
            name.push(letter);
            continue;
        }
        let number = match letters.next() {
            None => break,
            Some(b'%') => {
                name.push(b'%');
                continue;
            }
            Some(b'e' | b'f') => {
                add_without_slashes(&mut name, thread.name(cx).bytes());
                continue;
            }
            Some(b'h') => {
                add_without_slashes(&mut name, &utsname::host_name(cx));
                continue;
            }
            Some(b'p' | b'P') => {
                has_pid = true;
                process.pid.into()
            }
            Some(b'i' | b'I') => thread.tid().into(),
            Some(b'u') => uid.into(),
            Some(b'g') => gid.into(),
            Some(b'd') => process.dumpable.load(Ordering::Relaxed).into(),
            Some(b's') => info.signal.number().into(),
            Some(b't') => time::clock::real_time() / time::SECOND,
            Some(b'c') => process.limits.lock(cx).soft(abi::RLIMIT_CORE),
            // What is not known is left out.
            Some(_) => continue,
        };
        name.extend_from_slice(alloc::format!("{number}").as_bytes());
    }
    if !has_pid && CORE_USES_PID.get() != 0 {
        name.extend_from_slice(alloc::format!(".{}", process.pid).as_bytes());
    }
    Ok(name)
}

/// A name that is a part of a path's last name.
fn add_without_slashes(name: &mut Vec<u8>, part: &[u8]) {
    name.extend(part.iter().map(|&letter| if letter == b'/' { b'!' } else { letter }));
}

/// Makes the core file in the place of what has its name.
fn create(name: &[u8], me: &Current, cx: &Cx) -> Step<StrongRc<OpenFile>> {
    // What was never there need not go; what cannot go is in the way.
    match dentry::unlink(At { directory: abi::AT_FDCWD, path: name }, me, cx) {
        Ok(()) | Err(Stop::Error(_)) => {}
        stopped => stopped?,
    }
    let flags =
        OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::WRITE_ONLY | OpenFlags::NO_FOLLOW | OpenFlags::LARGE_FILE;
    match open::open_step(abi::AT_FDCWD, name, &open::OpenHow::new(flags, 0o600), me, cx)? {
        open::Opened::File(file) => Ok(file),
        open::Opened::Fifo(..) | open::Opened::Leased(..) => Err(Errno::EEXIST.into()),
    }
}

/// What the notes tell of the calling thread.
fn notes(me: &Current, info: Info, cx: &Cx) -> Result<Notes> {
    let (process, thread) = (me.process(cx)?, me.thread(cx)?);
    let (user, system) = process.times(cx);
    let children = process.children_usage(cx);
    let image = me.space(cx)?.image(cx);
    let user_and_group = {
        let credentials = thread.credentials.lock(cx);
        (credentials.users().real.number(), credentials.groups().real.number())
    };
    Ok(Notes {
        info: info.encode(),
        pending_and_blocked: (thread.signals.pending.set().0, thread.signals.blocked().0),
        ids: ids(&process),
        tid: thread.tid(),
        times: [user, system, children.user, children.system],
        registers: arch::core_registers(&me.context, arch::NO_CALL),
        user_and_group,
        name: thread.name(cx).padded(),
        arguments: arguments(&*me.space(cx)?, image.arguments, cx),
        auxiliary: image.auxiliary,
    })
}

fn ids(process: &Process) -> format::Ids {
    format::Ids { pid: process.pid, parent: process.parent_pid(), group: process.group(), session: process.session() }
}

/// The start of the arguments, with spaces between, as far as they are there.
fn arguments(space: &AddressSpace, range: Range<usize>, cx: &Cx) -> [u8; 80] {
    let mut bytes = [0; 80];
    let len = range.len().min(bytes.len() - 1);
    let memory = UserMemory::new(space, cx);
    let mut reader = memory.reader(UserIn::<u8>::new(range.start).slice(len));
    let _ = reader.read(&mut bytes[..len]);
    let len = len - reader.remaining();
    bytes[..len].iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b' ');
    bytes
}
