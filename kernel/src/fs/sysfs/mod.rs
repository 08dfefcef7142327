//! What there is of sysfs: how many processors the machine has ([`processors`]), its disks ([`disks`]), its ports to the host ([`ports`]), its source of random numbers ([`hwrng`]), its input devices ([`inputs`]), its network devices ([`networks`]), and else directories without anything in them, so that programs
//! that look there find nothing rather than an error.

mod disks;
mod hwrng;
mod inputs;
mod networks;
mod ports;
mod processors;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use frame::Cx;
use frame::mm::{PAGE_SIZE, Writer};
use refs::{SpinLock, StrongRc, TempRc, WeakRc};

use crate::error::{Errno, Result};
use crate::fs::{
    Creation, Dentry, DirectoryEntry, File, FileKind, FileSystem, Inode, InodeOps, Instance, Metadata, OpenFlags,
    VfsCaller,
};
use crate::step::Step;
pub use hwrng::Hwrng;
pub use inputs::Input;
pub use networks::{Network, Traffic};
pub use ports::Port;

const MAGIC: u32 = 0x6265_6572;

/// What an instance is made from.
enum Entry {
    /// A directory with these entries.
    Directory(Vec<(String, Entry)>),
    /// A file that can be read, with this text and a newline.
    Text(String),
    /// A file that can be read, whose text is made anew each time, or is an error.
    Live(TextSource),
    /// A symbolic link.
    Link(String),
    /// A directory whose entries come and go.
    Changing(Source),
}

/// What makes a text.
type TextSource = Box<dyn Fn(&Cx) -> Result<String> + Send + Sync>;

/// What is in a directory just now: names, each with a number that another entry of the name does not have, and what makes the entry.
type Source = Box<dyn Fn(&Cx) -> Vec<Current> + Send + Sync>;

/// An entry of a directory whose entries come and go.
struct Current {
    name: String,
    serial: u64,
    entry: Entry,
}

/// A directory with what is in it, which it owns.
struct Directory {
    children: Vec<(String, StrongRc<Inode>)>,
}

/// A directory whose entries come and go. It owns those that it has shown and that are still there.
struct Changing {
    this: WeakRc<Inode>,
    file_system: WeakRc<FileSystem>,
    source: Source,
    shown: SpinLock<Shown>,
}

struct Shown {
    entries: Vec<(String, u64, StrongRc<Inode>)>,
    /// The number of the next inode.
    number: u64,
}

/// A file whose text never changes.
struct Text {
    bytes: Box<[u8]>,
}

/// A symbolic link.
struct Link {
    target: Box<[u8]>,
}

/// A file whose text is made when it is read.
struct Live {
    text: TextSource,
}

/// A new instance, which shows these ports, this source of random numbers, input devices if there can be any, and network devices.
///
/// # Errors
/// None at present.
pub fn new(
    ports: Vec<Port>,
    hwrng: Option<Hwrng>,
    inputs: Option<inputs::List>,
    networks: networks::List,
    cx: &Cx,
) -> Result<Instance> {
    let file_system = FileSystem::new("sysfs", MAGIC, Vec::new());
    let system = [("cpu".into(), processors::directory(frame::cpu::count()))];
    let mut classes = Vec::from([ports::class(&ports), hwrng::class(hwrng.as_ref()), networks::class(networks)]);
    let mut devices = disks::devices(cx);
    devices.push(ports::devices(ports));
    let of_no_bus = [disks::made_by_programs(), hwrng::devices(hwrng.as_ref()), networks::devices(networks)];
    devices.push(("virtual".into(), Entry::Directory(of_no_bus.into())));
    if let Some(list) = inputs {
        inputs::register(list, cx);
        classes.push(inputs::class());
        devices.push(inputs::devices());
    }
    devices.push(("system".into(), Entry::Directory(system.into())));
    let names = ["bus", "kernel", "module"];
    let mut entries: Vec<_> = names.iter().map(|&name| (name.into(), Entry::Directory(Vec::new()))).collect();
    entries.extend(disks::directories(classes));
    // Where control groups are mounted.
    let groups = [("cgroup".into(), Entry::Directory(Vec::new()))];
    entries.push(("fs".into(), Entry::Directory(groups.into())));
    entries.push(("devices".into(), Entry::Directory(devices)));
    let root = make("", Entry::Directory(entries), None, &file_system, &mut 1);
    Ok((file_system, root))
}

/// The inode of an entry and those below it. `number` is that of the next inode.
fn make(
    name: &str,
    entry: Entry,
    parent: Option<WeakRc<Inode>>,
    file_system: &StrongRc<FileSystem>,
    number: &mut u64,
) -> StrongRc<Inode> {
    let own_number = *number;
    *number += 1;
    let dentry = Dentry { parent, name: name.as_bytes().into(), is_removed: false };
    match entry {
        Entry::Directory(entries) => StrongRc::new_cyclic(|this| {
            let is_once = |name: &String| entries.iter().filter(|(other, _)| other == name).count() == 1;
            debug_assert!(entries.iter().all(|(name, _)| is_once(name)), "a name is there twice");
            let subdirectories = entries.iter().filter(|(_, entry)| matches!(entry, Entry::Directory(_))).count();
            let metadata = Metadata { links: 2 + subdirectories as u32, ..Metadata::new(FileKind::Directory, 0o755) };
            let children = entries
                .into_iter()
                .map(|(name, entry)| {
                    let inode = make(&name, entry, Some(this), file_system, number);
                    (name, inode)
                })
                .collect();
            Inode::new(file_system.share(), own_number, metadata, dentry, Box::new(Directory { children }))
        }),
        Entry::Text(mut text) => {
            text.push('\n');
            // Whatever its length, Linux tells a page.
            let metadata = Metadata { size: PAGE_SIZE as u64, ..Metadata::new(FileKind::Regular, 0o444) };
            let ops = Box::new(Text { bytes: text.into_bytes().into() });
            StrongRc::new(Inode::new(file_system.share(), own_number, metadata, dentry, ops))
        }
        Entry::Live(text) => {
            let metadata = Metadata { size: PAGE_SIZE as u64, ..Metadata::new(FileKind::Regular, 0o444) };
            StrongRc::new(Inode::new(file_system.share(), own_number, metadata, dentry, Box::new(Live { text })))
        }
        Entry::Changing(source) => StrongRc::new_cyclic(|this| {
            let metadata = Metadata { links: 2, ..Metadata::new(FileKind::Directory, 0o755) };
            // Each directory has numbers of its own for what it will show.
            let shown = Shown { entries: Vec::new(), number: own_number << 32 };
            let ops = Changing { this, file_system: file_system.downgrade(), source, shown: SpinLock::new(shown) };
            Inode::new(file_system.share(), own_number, metadata, dentry, Box::new(ops))
        }),
        Entry::Link(target) => {
            let metadata = Metadata { size: target.len() as u64, ..Metadata::new(FileKind::Symlink, 0o777) };
            let ops = Box::new(Link { target: target.into_bytes().into() });
            StrongRc::new(Inode::new(file_system.share(), own_number, metadata, dentry, ops))
        }
    }
}

/// The name, number and kind of an entry.
fn shown_as(name: &str, inode: &StrongRc<Inode>, cx: &Cx) -> (Box<str>, u64, FileKind) {
    let inode = inode.get(cx);
    (name.into(), inode.number, inode.kind)
}

/// Lists a directory with these entries from a position on.
fn list(
    entries: impl Iterator<Item = (Box<str>, u64, FileKind)>,
    from: u64,
    each: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
) {
    for (index, (name, number, kind)) in entries.enumerate().skip(from.saturating_sub(2) as usize) {
        if !each(DirectoryEntry { name: name.as_bytes(), number, kind, next: 3 + index as u64 }) {
            break;
        }
    }
}

/// Programs make nothing here: as where a file system knows no new files.
fn not_made(what: &Creation<'_>) -> Errno {
    if what.kind == FileKind::Regular { Errno::EACCES } else { Errno::EPERM }
}

/// Nobody may write, whatever the capabilities.
fn open_to_read(flags: OpenFlags) -> Step<Option<Box<dyn File>>> {
    if flags.can_write() { Err(Errno::EACCES.into()) } else { Ok(None) }
}

fn read_text(text: &[u8], offset: u64, to: &mut Writer<'_>) -> Step<usize> {
    let rest = usize::try_from(offset).ok().and_then(|offset| text.get(offset..)).unwrap_or(&[]);
    Ok(to.write(rest)?)
}

impl InodeOps for Directory {
    fn lookup<'cx>(
        &self,
        _this: &TempRc<'cx, Inode>,
        name: &[u8],
        _me: &dyn VfsCaller,
        cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        let child = self.children.iter().find(|(own, _)| own.as_bytes() == name).ok_or(Errno::ENOENT)?;
        Ok(child.1.get(cx))
    }

    fn list(
        &self,
        _this: &Inode,
        from: u64,
        _me: Option<&dyn VfsCaller>,
        cx: &Cx,
        each: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Step<()> {
        list(self.children.iter().map(|(name, inode)| shown_as(name, inode, cx)), from, each);
        Ok(())
    }

    fn create<'cx>(
        &self,
        _this: &TempRc<'cx, Inode>,
        _name: &[u8],
        what: &Creation<'_>,
        _cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        Err(not_made(what).into())
    }

    fn may_change_metadata(&self) -> Result<()> {
        Err(Errno::EPERM)
    }
}

impl Changing {
    /// Brings the entries up to date.
    fn update(&self, cx: &Cx) -> Result<()> {
        let file_system = self.file_system.upgrade(cx)?;
        let file_system = file_system.share().ok_or(Errno::ESTALE)?;
        let mut shown = self.shown.lock(cx);
        // With it locked: else what another core has found since would be taken away again.
        let now = (self.source)(cx);
        let stays = |(name, serial, _): &(String, u64, _)| {
            now.iter().any(|current| current.name == *name && current.serial == *serial)
        };
        let (old, gone) = core::mem::take(&mut shown.entries).into_iter().partition::<Vec<_>, _>(stays);
        shown.entries = old;
        let mut number = shown.number;
        for Current { name, serial, entry } in now {
            if !shown.entries.iter().any(|known| known.0 == name) {
                let inode = make(&name, entry, Some(self.this), &file_system, &mut number);
                shown.entries.push((name, serial, inode));
            }
        }
        shown.number = number;
        drop(shown);
        drop(gone);
        Ok(())
    }
}

impl InodeOps for Changing {
    fn lookup<'cx>(
        &self,
        _this: &TempRc<'cx, Inode>,
        name: &[u8],
        _me: &dyn VfsCaller,
        cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        self.update(cx)?;
        let shown = self.shown.lock(cx);
        let entry = shown.entries.iter().find(|(own, ..)| own.as_bytes() == name).ok_or(Errno::ENOENT)?;
        Ok(entry.2.get(cx))
    }

    fn list(
        &self,
        _this: &Inode,
        from: u64,
        _me: Option<&dyn VfsCaller>,
        cx: &Cx,
        each: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Step<()> {
        self.update(cx)?;
        let shown = self.shown.lock(cx);
        let all: Vec<_> = shown.entries.iter().map(|(name, _, inode)| shown_as(name, inode, cx)).collect();
        drop(shown);
        list(all.into_iter(), from, each);
        Ok(())
    }

    fn create<'cx>(
        &self,
        _this: &TempRc<'cx, Inode>,
        _name: &[u8],
        what: &Creation<'_>,
        _cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        Err(not_made(what).into())
    }

    fn may_change_metadata(&self) -> Result<()> {
        Err(Errno::EPERM)
    }
}

impl InodeOps for Text {
    fn open(
        &self,
        _this: &TempRc<'_, Inode>,
        flags: OpenFlags,
        _me: &dyn VfsCaller,
        _cx: &Cx,
    ) -> Step<Option<Box<dyn File>>> {
        open_to_read(flags)
    }

    fn read(&self, _this: &Inode, offset: u64, to: &mut Writer<'_>, _cx: &Cx) -> Step<usize> {
        read_text(&self.bytes, offset, to)
    }

    fn set_size(&self, _this: &Inode, _size: u64, _cx: &Cx) -> Step<()> {
        Ok(())
    }

    fn may_change_metadata(&self) -> Result<()> {
        Err(Errno::EPERM)
    }
}

impl InodeOps for Live {
    fn open(
        &self,
        _this: &TempRc<'_, Inode>,
        flags: OpenFlags,
        _me: &dyn VfsCaller,
        _cx: &Cx,
    ) -> Step<Option<Box<dyn File>>> {
        open_to_read(flags)
    }

    fn read(&self, _this: &Inode, offset: u64, to: &mut Writer<'_>, cx: &Cx) -> Step<usize> {
        let mut text = (self.text)(cx)?;
        text.push('\n');
        read_text(text.as_bytes(), offset, to)
    }

    fn set_size(&self, _this: &Inode, _size: u64, _cx: &Cx) -> Step<()> {
        Ok(())
    }

    fn may_change_metadata(&self) -> Result<()> {
        Err(Errno::EPERM)
    }
}

impl InodeOps for Link {
    fn read_link(&self, _me: &dyn VfsCaller, _cx: &Cx) -> Step<Vec<u8>> {
        Ok(self.target.to_vec())
    }

    fn may_change_metadata(&self) -> Result<()> {
        Err(Errno::EPERM)
    }
}
