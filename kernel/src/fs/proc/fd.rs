//! `/proc/PID/fd` and `/proc/PID/fdinfo`.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use frame::Cx;
use frame::mm::Writer;
use refs::{StrongRc, TempRc};

use super::node::FIRST_POSITION;
use super::process::{base_number, name_for};
use super::text::Text;
use super::{Target, inode, parse_id};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::inode_file::seek_in;
use crate::fs::notify::Inotify;
use crate::fs::{
    Creation, DirectoryEntry, FdFlags, File, FileEnd, FileKind, FileTable, Inode, InodeOps, Jump, Lseek, Metadata,
    OpenFile, OpenFlags, VfsCaller,
};
use crate::reclaim::Held;
use crate::step::Step;

/// What is shown of each descriptor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum View {
    Link,
    Info,
}

impl View {
    /// Where the inode numbers of this view begin, behind the process' own.
    fn offset(self) -> u64 {
        match self {
            View::Link => 1 << 30,
            View::Info => 1 << 29,
        }
    }

    fn kind(self) -> FileKind {
        match self {
            View::Link => FileKind::Symlink,
            View::Info => FileKind::Regular,
        }
    }
}

struct Directory {
    target: Target,
    view: View,
}

/// One descriptor.
struct Descriptor {
    target: Target,
    fd: i32,
}

/// `/proc/PID/fd`.
pub fn links(target: Target) -> Box<dyn InodeOps> {
    Box::new(Directory { target, view: View::Link })
}

/// `/proc/PID/fdinfo`.
pub fn infos(target: Target) -> Box<dyn InodeOps> {
    Box::new(Directory { target, view: View::Info })
}

fn table<'cx>(target: &Target, cx: &'cx Cx) -> Result<TempRc<'cx, FileTable>> {
    let thread = target.thread(cx).map_err(|_| Errno::ENOENT)?;
    let table = thread.files.lock(cx).as_ref().map(StrongRc::downgrade);
    Ok(table.ok_or(Errno::ENOENT)?.upgrade(cx)?)
}

impl Directory {
    fn number(&self, fd: u64) -> Result<u64> {
        Ok(base_number(self.target.who()?) + self.view.offset() + fd)
    }
}

impl InodeOps for Directory {
    fn refresh(&self, metadata: &mut Metadata, cx: &Cx) {
        (metadata.uid, metadata.gid) = self.target.owner(cx);
    }

    fn is_stale(&self, _cx: &Cx) -> bool {
        self.target.is_gone()
    }

    /// A process that changed its user ids finds its own descriptors still: `/dev/stdout` leads here.
    fn admits(&self, process: u32, cx: &Cx) -> bool {
        self.view == View::Link && self.target.process(cx).is_ok_and(|target| target.pid == process)
    }

    fn lookup<'cx>(
        &self,
        this: &TempRc<'cx, Inode>,
        name: &[u8],
        me: &dyn VfsCaller,
        cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        self.target.check_access(Current::of(me)?, cx)?;
        let fd = parse_id(name).and_then(|fd| i32::try_from(fd).ok()).ok_or(Errno::ENOENT)?;
        let flags = table(&self.target, cx)?.get_even_path(fd, cx).map_err(|_| Errno::ENOENT)?.flags();
        let permissions = match self.view {
            View::Info => 0o400,
            View::Link => 0o100 | if flags.can_read() { 0o400 } else { 0 } | if flags.can_write() { 0o200 } else { 0 },
        };
        let target = self.target;
        let number = self.number(fd as u64)?;
        let make = || -> Box<dyn InodeOps> { Box::new(Descriptor { target, fd }) };
        Ok(inode((this, name), number, self.view.kind(), permissions, &target, cx, make)?)
    }

    fn list(
        &self,
        _this: &Inode,
        from: u64,
        me: Option<&dyn VfsCaller>,
        cx: &Cx,
        each: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Step<()> {
        if let Some(me) = me {
            self.target.check_access(Current::of(me)?, cx)?;
        }
        let first = from.saturating_sub(FIRST_POSITION - 1) as usize;
        let table = table(&self.target, cx)?;
        let mut at = first;
        // One at a time, as there may be too many for a list of them; the lock is free meanwhile.
        let next = |at| table.handles.lock(cx).next(at);
        while let Some(fd) = next(at) {
            at = fd + 1;
            let name = alloc::format!("{fd}");
            let entry = DirectoryEntry {
                name: name.as_bytes(),
                number: self.number(fd as u64)?,
                kind: self.view.kind(),
                next: FIRST_POSITION + fd as u64,
            };
            if !each(entry) {
                break;
            }
        }
        Ok(())
    }

    fn create<'cx>(
        &self,
        _this: &TempRc<'cx, Inode>,
        _name: &[u8],
        _what: &Creation<'_>,
        _cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        Err(Errno::ENOENT.into())
    }

    fn may_change_metadata(&self) -> Result<()> {
        Err(Errno::EPERM)
    }
}

impl Descriptor {
    fn open_file<'cx>(&self, me: &Current, cx: &'cx Cx) -> Result<TempRc<'cx, OpenFile>> {
        let open = table(&self.target, cx).and_then(|table| table.get_even_path(self.fd, cx));
        self.target.check_access(me, cx)?;
        open.map_err(|_| Errno::ENOENT)
    }
}

impl InodeOps for Descriptor {
    fn refresh(&self, metadata: &mut Metadata, cx: &Cx) {
        (metadata.uid, metadata.gid) = self.target.owner(cx);
        metadata.size = 64;
    }

    fn is_stale(&self, _cx: &Cx) -> bool {
        // The number may have been given to another description.
        true
    }

    fn read_link(&self, me: &dyn VfsCaller, cx: &Cx) -> Step<Vec<u8>> {
        let open = self.open_file(Current::of(me)?, cx)?;
        Ok(name_for(&open.location.path(cx)?, Current::of(me)?, cx)?)
    }

    fn jump(&self, me: &dyn VfsCaller, cx: &Cx) -> Option<Result<Jump>> {
        // Whoever follows it may open it once more.
        let follow = |me| {
            self.target.check_access(me, cx)?;
            let open = table(&self.target, cx).and_then(|table| table.get_exported_even_path(self.fd, cx));
            open.map(|open| Jump::OpenFile(open.downgrade())).map_err(|_| Errno::ENOENT)
        };
        Some(Current::of(me).and_then(follow))
    }

    fn open(
        &self,
        _this: &TempRc<'_, Inode>,
        _flags: OpenFlags,
        me: &dyn VfsCaller,
        cx: &Cx,
    ) -> Step<Option<Box<dyn File>>> {
        self.open_file(Current::of(me)?, cx)?;
        Ok(Some(Box::new(Info { target: self.target, fd: self.fd })))
    }

    fn may_change_metadata(&self) -> Result<()> {
        Err(Errno::EPERM)
    }
}

/// An open `/proc/PID/fdinfo/N`.
struct Info {
    target: Target,
    fd: i32,
}

impl File for Info {
    fn end(&self) -> FileEnd {
        FileEnd::Seen
    }

    fn class(&self) -> Held {
        Held::File
    }

    fn read(&self, offset: u64, to: &mut Writer<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        self.target.check_access(Current::of(me)?, cx)?;
        let table = table(&self.target, cx)?;
        let open = table.get_even_path(self.fd, cx).map_err(|_| Errno::ENOENT)?;
        let attribute = usize::try_from(self.fd).ok().and_then(|fd| table.handles.lock(cx).attribute(fd));
        let mut flags = open.reported_flags(cx);
        flags.set(OpenFlags::CLOSE_ON_EXEC, attribute.is_some_and(|flags| flags.contains(FdFlags::CLOSE_ON_EXEC)));
        let inode = open.location.inode.get(cx);
        let mut text = Text::default();
        text.add(format_args!(
            "pos:\t{}\nflags:\t0{:o}\nmnt_id:\t{}\nino:\t{}\n",
            open.offset.load(Ordering::Relaxed),
            flags.bits(),
            open.location.mount.get(cx).id,
            inode.number,
        ));
        if let Some(inotify) = open.kind::<Inotify>() {
            inotify.each_watch(cx, |wd, mask, inode| {
                let (device, number) = inode.ops.identity(inode, cx);
                text.add(format_args!(
                    "inotify wd:{wd:x} ino:{number:x} sdev:{device:x} mask:{mask:x} ignored_mask:0\n"
                ));
            });
        }
        let text = text.into_bytes()?;
        let rest = usize::try_from(offset).ok().and_then(|offset| text.get(offset..)).unwrap_or(&[]);
        Ok(to.write(rest)?)
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn seek(&self, to: Lseek, now: u64, _cx: &Cx) -> Step<u64> {
        Ok(seek_in(|| 0, to, now)?)
    }
}
