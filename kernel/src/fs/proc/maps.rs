//! `/proc/PID/maps` and `smaps`.
//!
//! A program may have tens of thousands of VMAs, so the text is made as it is read: a page of it at a time, of whole lines, from the VMA on at which the
//! part before ended. Who reads on where the last read ended sees each VMA that stays once; to go anywhere else all that is before is made again.

use core::any::Any;
use core::mem;

use alloc::vec::Vec;
use frame::Cx;
use frame::mm::{PAGE_SIZE, Prot, Writer};
use refs::{SpinLock, WeakRc};

use super::Target;
use super::process::name_for;
use super::text::{Line, Text, write_some};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::inode_file::seek_in;
use crate::fs::{File, FileEnd, Lseek, OpenFile, VfsCaller};
use crate::ipc::shm::Segment;
use crate::memory::{AddressSpace, BackingObject, VmaFlags, VmaName, VmaReport, WritableMappings};
use crate::reclaim::Held;
use crate::step::{Interruption, Step, Stop, TimeSlice};

/// The column where names begin.
const NAME_COLUMN: usize = 73;

/// How many bytes of text there is room for at first: for the VMAs of a small program.
const FEW_LINES: usize = 1024;

/// Appends what there is to say of a VMA.
pub type ShowVma = fn(&mut Text, &VmaReport, &AddressSpace, &mut LastName, &Current, &Cx);

/// An open text with a part for each VMA of an address space.
pub struct VmaTextFile {
    target: Target,
    show: ShowVma,
    part: SpinLock<Part>,
}

/// The part of the text that was made last.
#[derive(Default)]
struct Part {
    /// Where in the text it begins.
    offset: u64,
    text: Text,
    /// The part behind it begins with the VMA here or above.
    next: usize,
}

impl Part {
    fn end(&self) -> u64 {
        self.offset + self.text.len() as u64
    }
}

/// The name of the object that was asked for last: neighbours often show the same one.
#[derive(Default)]
pub struct LastName(Option<(WeakRc<dyn BackingObject>, FileName)>);

/// What is shown of a file.
#[derive(Clone, Default)]
struct FileName {
    is_file: bool,
    device: u32,
    inode: u64,
    name: Vec<u8>,
}

impl LastName {
    fn of(&mut self, object: WeakRc<dyn BackingObject>, me: &Current, cx: &Cx) -> &FileName {
        if self.0.as_ref().is_none_or(|(last, _)| *last != object) {
            self.0 = None;
        }
        &self.0.get_or_insert_with(|| (object, file_name(object, me, cx).unwrap_or_default())).1
    }
}

fn file_name(object: WeakRc<dyn BackingObject>, me: &Current, cx: &Cx) -> Option<FileName> {
    let object = object.upgrade(cx).ok()?;
    let object: &dyn Any = &*object;
    if let Some(writable) = object.downcast_ref::<WritableMappings>() {
        return file_name(writable.file(), me, cx);
    }
    if let Some(segment) = object.downcast_ref::<Segment>() {
        let name = alloc::format!("/SYSV{:08x} (deleted)", segment.key).into_bytes();
        return Some(FileName { is_file: true, device: 1, inode: segment.id as u64, name });
    }
    let file = object.downcast_ref::<OpenFile>()?;
    let inode = file.location.inode.get(cx);
    let name = file.location.path(cx).and_then(|path| name_for(&path, me, cx)).unwrap_or_default();
    Some(FileName { is_file: true, device: inode.file_system.get(cx).device, inode: inode.number, name })
}

impl VmaTextFile {
    /// The text about a process that `show` makes.
    pub fn new(target: Target, show: ShowVma) -> Self {
        VmaTextFile { target, show, part: SpinLock::default() }
    }

    /// Makes the part of the text behind the last one; it is empty at the end.
    fn make_next(&self, last: &Part, me: &Current, cx: &Cx) -> Result<Part> {
        let mut part = Part { offset: last.end(), text: Text::with_capacity(FEW_LINES), next: last.next };
        let Ok(space) = self.target.space(cx) else { return Ok(part) };
        let mut name = LastName::default();
        while let Some(vma) = space.report(part.next, cx) {
            let len = part.text.len();
            (self.show)(&mut part.text, &vma, &space, &mut name, me, cx);
            if len > 0 && part.text.len() > PAGE_SIZE {
                part.text.cut(len);
                break;
            }
            part.next = vma.range.end;
        }
        part.text.bytes()?;
        Ok(part)
    }
}

impl File for VmaTextFile {
    fn end(&self) -> FileEnd {
        FileEnd::Seen
    }

    fn class(&self) -> Held {
        Held::File
    }

    fn read(&self, offset: u64, to: &mut Writer<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let me = Current::of(me)?;
        self.target.check_access(me, cx)?;
        let mut part = mem::take(&mut *self.part.lock(cx));
        if offset < part.offset || offset == 0 {
            part = Part::default();
        }
        let mut time_slice = TimeSlice::default();
        let result = loop {
            if offset < part.end() {
                let from = (offset - part.offset) as usize;
                break part.text.bytes().map_err(Stop::from).and_then(|bytes| Ok(write_some(&bytes[from..], to)?));
            }
            let next = self.make_next(&part, me, cx).and_then(|next| {
                // Behind that: see [`Target::check_access`].
                self.target
                    .check_access(me, cx)
                    .or_else(|error| if next.text.len() == 0 { Ok(()) } else { Err(error) })?;
                Ok(next)
            });
            match next {
                Ok(next) if next.text.len() == 0 => break Ok(0),
                Ok(next) => part = next,
                Err(error) => break Err(error.into()),
            }
            if time_slice.is_over() {
                break Err(Stop::Pause(Interruption::KillOnly));
            }
        };
        *self.part.lock(cx) = part;
        result
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn seek(&self, to: Lseek, now: u64, _cx: &Cx) -> Step<u64> {
        match to {
            // Nobody knows where it ends.
            Lseek::End(_) => Err(Errno::EINVAL.into()),
            to => Ok(seek_in(|| 0, to, now)?),
        }
    }
}

/// A line of `maps`.
pub fn maps(text: &mut Text, vma: &VmaReport, _space: &AddressSpace, names: &mut LastName, me: &Current, cx: &Cx) {
    let nothing = FileName::default();
    let file = match vma.name {
        VmaName::Object(object) => names.of(object, me, cx),
        _ => &nothing,
    };
    add_line(text, vma, file);
}

/// The lines of a VMA in `smaps`.
pub fn smaps(text: &mut Text, vma: &VmaReport, space: &AddressSpace, names: &mut LastName, me: &Current, cx: &Cx) {
    let nothing = FileName::default();
    let file = match vma.name {
        VmaName::Object(object) => names.of(object, me, cx),
        _ => &nothing,
    };
    add_line(text, vma, file);
    let resident = space.vm().mapped_in(vma.range.clone(), cx) * 4;
    let locked = if vma.flags.contains(VmaFlags::LOCKED) { resident } else { 0 };
    for (name, kib) in [
        ("Size:", vma.range.len() / 1024),
        ("KernelPageSize:", 4),
        ("MMUPageSize:", 4),
        ("Rss:", resident),
        ("Pss:", resident),
        ("Shared_Clean:", 0),
        ("Shared_Dirty:", 0),
        ("Private_Clean:", 0),
        ("Private_Dirty:", resident),
        ("Referenced:", resident),
        ("Anonymous:", if file.is_file { 0 } else { resident }),
        ("Swap:", 0),
        ("Locked:", locked),
    ] {
        text.add(format_args!("{name:<16}{kib:8} kB\n"));
    }
}

fn add_line(text: &mut Text, vma: &VmaReport, file: &FileName) {
    let mut line = Line::new();
    line.add_hex(vma.range.start as u64);
    line.add(*b"-");
    line.add_hex(vma.range.end as u64);
    let right = |prot, letter| if vma.prot.contains(prot) { letter } else { b'-' };
    line.add([
        b' ',
        right(Prot::READ, b'r'),
        right(Prot::WRITE, b'w'),
        right(Prot::EXECUTE, b'x'),
        if vma.flags.contains(VmaFlags::SHARED) { b's' } else { b'p' },
        b' ',
    ]);
    line.add_hex(vma.offset);
    // Major and minor number of the device.
    line.add(*b" 00:");
    line.add_short_hex(file.device);
    line.add(*b" ");
    line.add_decimal(file.inode);
    line.add(*b" ");
    let name: &[u8] = match &vma.name {
        _ if !file.name.is_empty() => &file.name,
        VmaName::Heap => b"[heap]",
        VmaName::Stack => b"[stack]",
        VmaName::Special(name, _) => name.as_bytes(),
        VmaName::Object(_) => b"/dev/zero (deleted)",
        VmaName::Anonymous => b"",
    };
    if !name.is_empty() {
        line.pad_to(NAME_COLUMN);
    }
    text.add_bytes(line.bytes());
    if name.contains(&b'\n') {
        // It would end the line.
        let mut parts = name.split(|byte| *byte == b'\n');
        text.add_bytes(parts.next().unwrap_or_default());
        parts.for_each(|part| {
            text.add_bytes(b"\\012");
            text.add_bytes(part);
        });
    } else {
        text.add_bytes(name);
    }
    text.add_bytes(b"\n");
}
