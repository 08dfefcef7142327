//! exFAT.
//!
//! It has no owners and no permissions: options of mount(2) say whose files are, and what may be done with them (`uid`, `gid`, `umask`, `fmask`, `dmask`; root's and 022 where nothing is said).
//!
//! Chains of clusters and the names of directories are gone through in pieces, in [turns](super::turns). What was found out is kept with the file.
//!
//! *Numbers.* A file's number is the place of its entries on the disk, as it was when the file came into memory. A file that is renamed has its entries elsewhere, and keeps its number as long as it is in memory: [`Files`] says where. Of a file without a name it says all.

mod changes;
mod files;

use alloc::vec::Vec;
use core::ops::Range;

use exfat::{
    Absent, ChainIndex, DirectoryIndex, Error, FileSystem, MAGIC_OFFSET, Node, Opening, Pending, Place as Where,
    SIGNATURE, Source, Store, Time, Transaction, Usage,
};
use frame::Cx;
use frame::mm::PAGE_SIZE;
use refs::StrongRc;

use self::changes::Outcome;
use self::files::{At, Effect, Files, Known};
pub use self::files::{Effects, File};
use super::format::{Change, Changes, Done, Journal, Place, Said};
use super::turns::{FoundOut, Turn, Turns};
use super::{Format, Listed, Problem, Space, View};
use crate::block::SECTOR;
use crate::drivers::random;
use crate::error::Errno;
use crate::fs::{FileKind, Metadata, Timestamp};

/// A file system.
pub struct Exfat {
    file_system: FileSystem,
    options: Options,
    turns: StrongRc<Turns>,
    is_written: bool,
    /// Which clusters are free.
    usage: FoundOut<Usage>,
    files: StrongRc<Files>,
}

/// How far a file system is opened.
#[derive(Default)]
pub struct Begun {
    opening: Option<Opening>,
    /// Counted when it is opened.
    opened: Option<FileSystem>,
    usage: Usage,
    turns: Option<StrongRc<Turns>>,
}

/// Whose all files are, and what may not be done with them.
struct Options {
    uid: u32,
    gid: u32,
    file_mask: u32,
    directory_mask: u32,
}

/// Where nothing else is said.
const MASK: u32 = 0o022;

/// An option with a number: its name, and the number.
fn number(option: &[u8]) -> Option<(&str, u32)> {
    let (name, value) = core::str::from_utf8(option).ok()?.split_once('=')?;
    let radix = if matches!(name, "uid" | "gid") { 10 } else { 8 };
    let value = u32::from_str_radix(value, radix).ok()?;
    (radix == 10 || value <= 0o777).then_some((name, value))
}

impl Options {
    fn read(options: &[u8]) -> Self {
        let mut all = Options { uid: 0, gid: 0, file_mask: MASK, directory_mask: MASK };
        for (name, value) in options.split(|&byte| byte == b',').filter_map(number) {
            match name {
                "uid" => all.uid = value,
                "gid" => all.gid = value,
                "fmask" => all.file_mask = value,
                "dmask" => all.directory_mask = value,
                "umask" => (all.file_mask, all.directory_mask) = (value, value),
                _ => {}
            }
        }
        all
    }
}

/// What one call of a function of the format reads through.
struct Through<'a, 'v> {
    view: &'a View<'v>,
    turns: &'a StrongRc<Turns>,
    turn: Turn,
}

impl Source for Through<'_, '_> {
    fn copy(&self, address: u64, to: &mut [u8]) -> Result<(), Absent> {
        // What is wrong with it the view knows; to the format it is absent.
        self.view.copy_changed(address, to).map_err(|_| Absent)
    }

    fn pause(&self) -> Result<(), Absent> {
        if self.turn.is_over(self.turns, self.view) { Err(Absent) } else { Ok(()) }
    }
}

impl Store for Through<'_, '_> {
    fn early(&self, block: u64) -> Option<alloc::boxed::Box<[u8]>> {
        self.view.pending().and_then(|pending| pending.early(block))
    }

    fn pinned_until(&self, cluster: u32) -> Option<u32> {
        self.view.pending().and_then(|pending| pending.pinned_until(cluster))
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Absent => Problem::Absent,
            Error::Corrupt(what) => Problem::Corrupt(what),
            Error::Unsupported(what) => Problem::Unsupported(what),
            Error::NotFound => Problem::Errno(Errno::ENOENT),
            Error::WrongKind => Problem::Errno(Errno::EINVAL),
            Error::NoMemory => Problem::Errno(Errno::ENOMEM),
            Error::NoSpace => Problem::Errno(Errno::ENOSPC),
            Error::CommitFirst => Problem::CommitFirst,
            Error::Exists => Problem::Errno(Errno::EEXIST),
            Error::NotEmpty => Problem::Errno(Errno::ENOTEMPTY),
            Error::Invalid => Problem::Errno(Errno::EINVAL),
            Error::NameTooLong => Problem::Errno(Errno::ENAMETOOLONG),
            Error::ReadOnly => Problem::Errno(Errno::EROFS),
        }
    }
}

fn timestamp(time: Time) -> Timestamp {
    Timestamp { seconds: time.seconds, nanoseconds: time.nanoseconds }
}

fn time(time: Timestamp) -> Time {
    Time { seconds: time.seconds, nanoseconds: time.nanoseconds }
}

fn kind(is_directory: bool) -> FileKind {
    if is_directory { FileKind::Directory } else { FileKind::Regular }
}

impl Exfat {
    fn through<'a, 'v>(&'a self, view: &'a View<'v>) -> Through<'a, 'v> {
        Through { view, turns: &self.turns, turn: Turn::default() }
    }

    /// Runs a function of the format's that needs to know where a file's clusters are.
    fn with_chain<T>(
        &self,
        file: &File,
        view: &View<'_>,
        read: impl FnOnce(&Through<'_, '_>, &Node, &mut ChainIndex) -> Result<T, Error>,
    ) -> Said<T> {
        let node = self.now(file, view)?;
        let known = file.known.get(view.cx());
        known.chain.with(&self.turns, view, |index| read(&self.through(view), &node, index))
    }

    /// The same for what needs to know the names of a directory.
    fn with_names<T>(
        &self,
        directory: &File,
        view: &View<'_>,
        read: impl FnOnce(&Through<'_, '_>, &Node, &mut DirectoryIndex) -> Result<T, Error>,
    ) -> Said<T> {
        let node = self.now(directory, view)?;
        let known = directory.known.get(view.cx());
        known.names.with(&self.turns, view, |index| read(&self.through(view), &node, index))
    }

    /// The file as it is now: what was read once stays true only where nothing is written.
    fn now(&self, file: &File, view: &View<'_>) -> Said<Node> {
        if !self.is_written { Ok(file.node.clone()) } else { Ok(self.entry(file.number, view)?.node) }
    }

    /// A file that is in memory, as it is now.
    fn entry(&self, number: u64, view: &View<'_>) -> Said<Now> {
        let (at, unfolded, known) = {
            let files = self.files.get(view.cx());
            let table = files.0.lock(view.cx());
            let entry = table.entries.get(&number).ok_or(Problem::Errno(Errno::ESTALE))?;
            (entry.at.clone(), entry.unfolded, entry.known.share())
        };
        let through = self.through(view);
        let (stands, node) = match at {
            At::Here(node) => (Stands::Nowhere, node),
            At::Place(Some(place)) => (Stands::At(place), self.file_system.node(&through, place)?),
            At::Place(None) => (Stands::Root, self.file_system.node(&through, self.file_system.root())?),
        };
        Ok(Now { stands, node, unfolded, known })
    }

    /// The file whose entries are at a place comes into memory.
    fn open_at(&self, number: u64, view: &View<'_>, node: Node) -> File {
        let files = self.files.get(view.cx());
        let mut table = files.0.lock(view.cx());
        let place = (node.number != self.file_system.root()).then_some(node.number);
        let entry = table.enter(number, place);
        entry.users += 1;
        File { number, node, serial: entry.serial, known: entry.known.share(), files: self.files.share() }
    }

    fn metadata(&self, node: &Node) -> Metadata {
        let mask = if node.is_directory { self.options.directory_mask } else { self.options.file_mask };
        let all = if node.is_read_only { 0o555 } else { 0o777 };
        let mut metadata = Metadata::new(kind(node.is_directory), all & !mask);
        (metadata.uid, metadata.gid) = (self.options.uid, self.options.gid);
        // Of directories nobody counts how many they are in: one name says that nothing follows from it.
        metadata.links = 1;
        metadata.size = node.size;
        metadata.blocks = node.size.next_multiple_of(self.file_system.cluster_bytes().into()) / SECTOR;
        metadata.accessed = timestamp(node.accessed);
        (metadata.modified, metadata.changed) = (timestamp(node.modified), timestamp(node.modified));
        metadata.born = timestamp(node.created);
        metadata
    }
}

/// A file that is in memory, as it is now.
struct Now {
    stands: Stands,
    node: Node,
    unfolded: u32,
    known: StrongRc<Known>,
}

/// Where on the disk it stands what a file is.
#[derive(Clone, Copy)]
enum Stands {
    /// Nobody says what the root directory is.
    Root,
    At(u64),
    /// It has no name any more.
    Nowhere,
}

impl Stands {
    /// The place of a directory's entries, none of the root's. One that was removed gets no names: nobody could ever find them.
    fn of_directory(self) -> Said<Option<u64>> {
        match self {
            Stands::Root => Ok(None),
            Stands::At(place) => Ok(Some(place)),
            Stands::Nowhere => Err(Problem::Errno(Errno::ENOENT)),
        }
    }
}

impl Format for Exfat {
    type Node = File;
    type Opening = Begun;

    const CAN_BE_WRITTEN: bool = true;
    const NUMBERS_STAY: bool = false;
    const HAS_HOLES: bool = false;
    const HAS_FLAGS: bool = false;
    const HAS_ACLS: bool = false;
    const WRITES_THROUGH_DISK: bool = true;
    const MAGIC: u32 = 0x2011_bab0;

    fn has_option(option: &[u8]) -> bool {
        match number(option) {
            Some((name, _)) => matches!(name, "uid" | "gid" | "umask" | "fmask" | "dmask"),
            // What is so anyway.
            None => matches!(option, b"iocharset=utf8" | b"utf8"),
        }
    }

    fn block_bytes(&self) -> u32 {
        self.file_system.block_bytes()
    }

    fn open(view: &View<'_>, bytes: u64, to_write: bool, options: &[u8], begun: &mut Begun) -> Said<Self> {
        let mut signature = [0; SIGNATURE.len()];
        if bytes < PAGE_SIZE as u64 {
            return Err(Problem::Errno(Errno::EINVAL));
        }
        view.copy(MAGIC_OFFSET, &mut signature)?;
        if signature != *SIGNATURE {
            return Err(Problem::Errno(Errno::EINVAL));
        }
        let turns = begun.turns.get_or_insert_with(Turns::new).share();
        let through = Through { view, turns: &turns, turn: Turn::default() };
        if begun.opened.is_none() {
            let key = || u64::from_le_bytes(random::bytes(view.cx()));
            let opening = begun.opening.get_or_insert_with(|| Opening::new(key() | 1));
            begun.opened = Some(FileSystem::open(&through, bytes, opening)?);
        }
        let Some(file_system) = &begun.opened else { return Err(Problem::Absent) };
        file_system.count(&through, &mut begun.usage)?;
        if to_write && let Err(Error::Unsupported(what)) = file_system.check_to_write(&begun.usage) {
            crate::log!("exfat: {what}");
            return Err(Problem::Errno(Errno::EROFS));
        }
        if to_write && file_system.is_dirty() {
            crate::log!("exfat: it was not unmounted, and should be checked");
        }
        let file_system = begun.opened.take().ok_or(Problem::Absent)?;
        Ok(Exfat {
            file_system,
            options: Options::read(options),
            turns,
            is_written: to_write,
            usage: FoundOut::new(core::mem::take(&mut begun.usage)),
            files: StrongRc::new(Files::default()),
        })
    }

    fn is_written(&self) -> bool {
        self.is_written
    }

    fn journal(&self, _view: &View<'_>) -> Said<Journal> {
        Ok(Journal::Ordered(Pending::default()))
    }

    fn change(&self, what: &Change<'_>, now: Timestamp, view: &View<'_>) -> Said<(Done<File>, Changes)> {
        let through = self.through(view);
        self.usage.with(&self.turns, view, |usage| {
            let mut tx = Transaction::new(&self.file_system, &through, usage, time(now));
            let mut all = Outcome::default();
            match what {
                Change::Begin(_) => tx.mark(true)?,
                // What was to be checked when it was mounted still is.
                Change::End if !self.file_system.is_dirty() => tx.mark(false)?,
                _ => self.run(&mut tx, what, view, &mut all)?,
            }
            Ok::<_, Problem>((all.done, Changes::Ordered(tx.finish(), Effects(all.effects))))
        })
    }

    fn is_true(&self, changes: &Changes) {
        let Changes::Ordered(changes, Effects(effects)) = changes else { return };
        self.usage.change(|usage| usage.apply(changes));
        // What was found out is changed when the files are not locked any more: both locks are leaves.
        let mut known = Vec::with_capacity(effects.len());
        self.files.with(|files| {
            files.0.with(|table| {
                for effect in effects {
                    if let Effect::Names(number, _) | Effect::Cut(number, ..) = effect {
                        known.extend(table.entries.get(number).map(|entry| (entry.known.share(), effect)));
                    }
                    table.apply(effect);
                }
            });
        });
        for (known, effect) in known {
            known.with(|known| match effect {
                // Where there is no memory for it the directory is looked through again.
                Effect::Names(_, change) => known.names.change(|index| _ = index.change(change)),
                Effect::Cut(_, left, _) => known.chain.change(|index| index.cut(*left)),
                _ => {}
            });
        }
    }

    fn forgotten(&self, cx: &Cx) -> u64 {
        self.files.get(cx).0.lock(cx).forgotten
    }

    fn written_until(&self, file: &File, view: &View<'_>) -> Said<u64> {
        Ok(self.now(file, view)?.written)
    }

    fn written_to(&self, file: &File, range: Range<u64>, view: &View<'_>) -> Said<u64> {
        Ok(self.now(file, view)?.written.min(range.end).max(range.start))
    }

    fn others_first(&self, view: &View<'_>) -> Problem {
        self.turns.get(view.cx()).give_way(view);
        Problem::Absent
    }

    fn permissions(&self, kind: FileKind, now: u32, wanted: u32) -> Result<u32, Errno> {
        let is_directory = kind == FileKind::Directory;
        let mask = if is_directory { self.options.directory_mask } else { self.options.file_mask };
        if wanted & !0o777 != 0 {
            return Err(Errno::EPERM);
        }
        // What cannot be kept is not done, and nobody is told: so it is on Linux.
        let wanted = wanted & !mask;
        let writes = 0o222 & !mask;
        let is_kept = wanted & 0o555 == now & 0o555
            && (wanted & 0o222 == writes || wanted & 0o222 == 0 && !is_directory && writes != 0);
        Ok(if is_kept { wanted } else { now })
    }

    fn can_be_owned_by(&self, uid: u32, gid: u32) -> bool {
        (uid, gid) == (self.options.uid, self.options.gid)
    }

    fn space(&self, view: &View<'_>) -> Said<Space> {
        let free = self.usage.with(&self.turns, view, |usage| Ok::<_, Problem>(usage.free()))?;
        let pages = |clusters: u32| {
            (u64::from(clusters) * u64::from(self.file_system.cluster_bytes())).div_ceil(PAGE_SIZE as u64)
        };
        let all = pages(self.file_system.clusters());
        Ok(Space {
            pages: all,
            used_pages: all - pages(free).min(all),
            block_bytes: self.file_system.cluster_bytes(),
            // As on Linux: 255 characters, of which each may take six bytes.
            longest_name: 255 * 6,
            ..Space::default()
        })
    }

    fn root(&self) -> u64 {
        self.file_system.root()
    }

    fn node(&self, number: u64, view: &View<'_>) -> Said<(File, Metadata)> {
        let at = {
            let files = self.files.get(view.cx());
            let table = files.0.lock(view.cx());
            let at = table.entries.get(&number).map(|entry| entry.at.clone());
            if at.is_none() && table.numbers.contains_key(&number) {
                // It was forgotten, and its place is that of a file with another number: who asks finds that by `forgotten`.
                return Err(Problem::Errno(Errno::ESTALE));
            }
            at
        };
        let place = match at {
            Some(At::Here(_)) => return Err(Problem::Errno(Errno::ENOENT)),
            Some(At::Place(Some(place))) => place,
            Some(At::Place(None)) | None => number,
        };
        let node = self.file_system.node(&self.through(view), place)?;
        let metadata = self.metadata(&node);
        Ok((self.open_at(number, view, node), metadata))
    }

    fn attributes(&self, _file: &File, _view: &View<'_>) -> Said<Vec<(Vec<u8>, Vec<u8>)>> {
        Ok(Vec::new())
    }

    fn look_up(&self, directory: &File, name: &[u8], view: &View<'_>) -> Said<u64> {
        let place = self
            .with_names(directory, view, |through, node, index| self.file_system.look_up(through, node, index, name))?;
        Ok(self.files.get(view.cx()).0.lock(view.cx()).number(place))
    }

    fn is_same_name(&self, one: &[u8], other: &[u8]) -> bool {
        self.file_system.is_same_name(one, other)
    }

    fn list(
        &self,
        directory: &File,
        from: u64,
        view: &View<'_>,
        each: &mut dyn FnMut(Listed<'_>) -> Said<bool>,
    ) -> Said<()> {
        let mut end = Ok(true);
        let files = self.files.get(view.cx());
        self.with_names(directory, view, |through, node, index| {
            self.file_system.list(through, node, index, from, |entry| {
                let kind = Some(kind(entry.is_directory));
                let number = files.0.lock(view.cx()).numbers.get(&entry.number).copied().unwrap_or(entry.number);
                end = each(Listed { name: entry.name.as_bytes(), number, kind, next: entry.next });
                end == Ok(true)
            })
        })?;
        end.map(|_| ())
    }

    fn read_link(&self, _file: &File, _view: &View<'_>) -> Said<Vec<u8>> {
        Err(Problem::Errno(Errno::EINVAL))
    }

    fn place(&self, file: &File, page: u32, view: &View<'_>) -> Said<Place> {
        let page_bytes = PAGE_SIZE as u64;
        let offset = u64::from(page) * page_bytes;
        if self.is_written {
            // A page is written as a part of the disk's, beside which others may be directories.
            return Ok(if offset >= self.now(file, view)?.written { Place::Hole } else { Place::Made });
        }
        let mapping =
            self.with_chain(file, view, |through, node, index| self.file_system.map(through, node, index, offset))?;
        // The last page may end with the file.
        let is_last = offset + mapping.bytes == file.node.size && mapping.bytes < page_bytes;
        let pages = if is_last { 1 } else { mapping.bytes / page_bytes };
        Ok(match mapping.place {
            _ if pages == 0 => Place::Made,
            Where::Hole => Place::Hole,
            Where::Device(offset) => Place::Device { offset, pages: pages.min(u64::from(u32::MAX)) as u32 },
        })
    }

    fn fill(&self, file: &File, offset: u64, to: &mut [u8], view: &View<'_>) -> Said<usize> {
        self.with_chain(file, view, |through, node, index| self.file_system.read(through, node, index, offset, to))
    }

    fn store(&self, file: &File, range: Range<u64>, view: &View<'_>) -> Said<Vec<(u64, u64, u64)>> {
        self.with_chain(file, view, |through, node, index| {
            let mut parts = Vec::new();
            let mut at = range.start;
            while at < range.end.min(node.written) {
                let mapping = self.file_system.map(through, node, index, at)?;
                let len = mapping.bytes.min(range.end - at);
                if let Where::Device(address) = mapping.place {
                    parts.push((at, address, len));
                }
                at += len;
            }
            Ok(parts)
        })
    }
}
