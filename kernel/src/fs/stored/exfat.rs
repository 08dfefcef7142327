//! exFAT.
//!
//! It has no owners and no permissions: options of mount(2) say whose files are, and what may be done with them (`uid`, `gid`, `umask`, `fmask`, `dmask`; root's and 022 where nothing is said).
//!
//! Chains of clusters and the names of directories are gone through in pieces, in [turns](super::turns). What was found out is kept with the file.
//!
//! *Numbers.* A file's number is the place of its entries on the disk, as it was when the file came into memory. A file that is renamed has its entries elsewhere, and keeps its number as long as it is in memory: [`Files`] says where. Of a file without a name it says all.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use exfat::{
    Absent, ChainIndex, Content, Directory, DirectoryIndex, Error, FileSystem, IndexChange, MAGIC_OFFSET, Node,
    Opening, Pending, Place as Where, Purpose, SIGNATURE, Source, Store, Tail, Time, Transaction, Usage,
};
use frame::Cx;
use frame::mm::PAGE_SIZE;
use refs::{SpinLock, StrongRc};

use super::format::{Allocation, Change, Changes, Done, Journal, Place, Said};
use super::turns::{FoundOut, Turn, Turns};
use super::{Format, Listed, Problem, Space, View};
use crate::block::SECTOR;
use crate::drivers::random;
use crate::error::Errno;
use crate::fs::{Creation, FileKind, Metadata, Rename, Timestamp};

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

/// A file or directory that is in memory.
pub struct File {
    number: u64,
    /// What it is, where nothing changes.
    node: Node,
    /// Which of those it is that had that number one after another.
    serial: u64,
    known: StrongRc<Known>,
    files: StrongRc<Files>,
}

/// What was found out of a file.
#[derive(Default)]
struct Known {
    chain: FoundOut<ChainIndex>,
    names: FoundOut<DirectoryIndex>,
}

/// The files that are in memory. Owner: the file system; its files have it as well, for their end.
#[derive(Default)]
struct Files(SpinLock<Table>);

#[derive(Default)]
struct Table {
    entries: BTreeMap<u64, Entry>,
    /// The numbers of those that have a name, by the places of their entries.
    numbers: BTreeMap<u64, u64>,
    /// Counts the files.
    serial: u64,
    /// Counts those that are known no more.
    forgotten: u64,
}

/// What is known of a file, also where it is changed.
struct Entry {
    at: At,
    /// Of how many of its clusters the FAT has a chain, before the file says so.
    unfolded: u32,
    /// What was cut off, and is still in use.
    tails: Vec<Tail>,
    known: StrongRc<Known>,
    serial: u64,
    users: usize,
}

/// Where it stands what a file is.
#[derive(Clone)]
enum At {
    /// At this place, or nowhere: it is the root directory.
    Place(Option<u64>),
    /// Here: it has no name.
    Here(Node),
}

/// Numbers of files whose place is another one's number.
const ODD: u64 = 1 << 62;

impl Table {
    /// The number of the file whose entries are at a place.
    fn number(&mut self, place: u64) -> u64 {
        match self.numbers.get(&place) {
            Some(number) => *number,
            None if !self.entries.contains_key(&place) => place,
            None => {
                let number = ODD | (self.serial + 1);
                self.enter(number, Some(place));
                number
            }
        }
    }

    fn enter(&mut self, number: u64, place: Option<u64>) -> &mut Entry {
        if let Some(place) = place {
            self.numbers.insert(place, number);
        }
        self.entries.entry(number).or_insert_with(|| {
            self.serial += 1;
            let known = StrongRc::new(Known::default());
            Entry { at: At::Place(place), unfolded: 0, tails: Vec::new(), known, serial: self.serial, users: 0 }
        })
    }

    fn moved(&mut self, number: u64, at: At) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        if let At::Place(Some(before)) = entry.at
            && self.numbers.get(&before) == Some(&number)
        {
            self.numbers.remove(&before);
        }
        if let At::Place(Some(place)) = at {
            self.numbers.insert(place, number);
        }
        entry.at = at;
    }

    fn forget(&mut self, number: u64) {
        self.moved(number, At::Place(None));
        self.entries.remove(&number);
        self.forgotten += 1;
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.files.with(|files| {
            files.0.with(|table| {
                let entry = table.entries.get_mut(&self.number).filter(|entry| entry.serial == self.serial);
                let Some(entry) = entry else { return };
                entry.users -= 1;
                // One without a name is deleted.
                if entry.users == 0 && matches!(entry.at, At::Place(_)) {
                    table.forget(self.number);
                }
            });
        });
    }
}

/// What follows from a change for files.
#[derive(Default)]
pub struct Effects(Vec<Effect>);

enum Effect {
    /// A directory has other names.
    Names(u64, IndexChange),
    /// What a file is stands elsewhere, or is something else.
    At(u64, At),
    /// So many of a file's clusters have a chain.
    Unfolded(u64, u32),
    /// A file has so many clusters left; others are still in use.
    Cut(u64, u32, Option<Tail>),
    /// That is left of what was cut off last of a file.
    Rest(u64, Option<Tail>),
    /// A file is gone.
    Gone(u64),
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

    /// Runs a change of a directory.
    fn in_directory<'v, T>(
        &self,
        tx: &mut Transaction<'_, Through<'_, 'v>>,
        number: u64,
        view: &View<'v>,
        all: &mut Outcome,
        change: impl FnOnce(&mut Transaction<'_, Through<'_, 'v>>, &mut Directory<'_>) -> Result<T, Error>,
    ) -> Said<T> {
        let now = self.entry(number, view)?;
        let place = now.stands.of_directory()?;
        let known = now.known.get(view.cx());
        known.names.with(&self.turns, view, |index| {
            let mut directory = Directory::new(place, now.node, index);
            let value = change(tx, &mut directory)?;
            all.changed_directory(self, number, directory);
            Ok::<T, Problem>(value)
        })
    }

    /// Runs a change of a file's content.
    fn in_file<'v, T>(
        &self,
        tx: &mut Transaction<'_, Through<'_, 'v>>,
        number: u64,
        view: &View<'v>,
        all: &mut Outcome,
        change: impl FnOnce(&mut Transaction<'_, Through<'_, 'v>>, &mut Content<'_>) -> Result<T, Error>,
    ) -> Said<T> {
        let now = self.entry(number, view)?;
        let known = now.known.get(view.cx());
        known.chain.with(&self.turns, view, |index| {
            let mut content = Content { node: now.node, index, unfolded: now.unfolded };
            let value = change(tx, &mut content)?;
            let Content { node, unfolded, .. } = content;
            match now.stands {
                Stands::At(place) => tx.save(place, &node)?,
                Stands::Nowhere => all.effects.push(Effect::At(number, At::Here(node.clone()))),
                // It is no file.
                Stands::Root => return Err(Problem::Errno(Errno::EISDIR)),
            }
            all.effects.push(Effect::Unfolded(number, unfolded));
            all.done.touched.push((number, self.metadata(&node)));
            Ok::<T, Problem>(value)
        })
    }

    /// A file has lost its name.
    fn lose(&self, place: u64, node: Node, view: &View<'_>, all: &mut Outcome) {
        let number = self.files.get(view.cx()).0.lock(view.cx()).number(place);
        all.effects.push(Effect::At(number, At::Here(node)));
    }

    fn run<'v>(
        &self,
        tx: &mut Transaction<'_, Through<'_, 'v>>,
        what: &Change<'_>,
        view: &View<'v>,
        all: &mut Outcome,
    ) -> Said<()> {
        match *what {
            Change::Create(directory, name, what) => self.create(tx, directory, name, what, view, all)?,
            Change::CreateNameless(..) | Change::Punch(..) | Change::Attribute(..) => {
                return Err(Problem::Errno(Errno::EOPNOTSUPP));
            }
            Change::Link(..) => return Err(Problem::Errno(Errno::EPERM)),
            Change::Unlink(directory, name) => {
                let node = self.in_directory(tx, directory, view, all, |tx, directory| tx.unlink(directory, name))?;
                self.lose(node.number, node, view, all);
            }
            Change::RemoveDirectory(directory, name) => {
                let node = self.in_directory(tx, directory, view, all, |tx, directory| tx.unlink(directory, name))?;
                let number = self.files.get(view.cx()).0.lock(view.cx()).number(node.number);
                let known = self.entry_known(number, view)?;
                known.get(view.cx()).names.with(&self.turns, view, |index| tx.check_empty(&node, index))?;
                self.lose(node.number, node, view, all);
            }
            Change::Rename(from, to, how) => self.rename(tx, from, to, how, view, all)?,
            Change::Keep(number, ref metadata, _) => {
                let now = self.entry(number, view)?;
                if let Stands::At(place) = now.stands {
                    let mut node = now.node;
                    let is_read_only = !node.is_directory && metadata.mode & 0o222 == 0;
                    tx.describe(&mut node, is_read_only, time(metadata.accessed), time(metadata.modified));
                    tx.save(place, &node)?;
                }
            }
            Change::Allocate(number, ref range, what) => {
                let what = match what {
                    Allocation::Written | Allocation::Together => Purpose::Written,
                    Allocation::Ahead => Purpose::Ahead,
                    Allocation::AheadOfEnd => return Err(Problem::Errno(Errno::EOPNOTSUPP)),
                };
                let reached = self.in_file(tx, number, view, all, |tx, content| tx.allocate(content, range, what))?;
                // If it has come nowhere something was done that has to be done before.
                (all.done.reached, all.done.has_more) = (reached, reached <= range.start);
            }
            Change::Resize(number, size) => {
                let left = size.div_ceil(self.file_system.cluster_bytes().into()) as u32;
                let tail = self.in_file(tx, number, view, all, |tx, content| tx.shorten(content, size))?;
                all.done.has_more = tail.is_some();
                all.effects.push(Effect::Cut(number, left, tail));
            }
            Change::Cut(number) => {
                let tail = self.last_tail(number, view);
                if let Some(tail) = tail {
                    let rest = tx.free_tail(tail)?;
                    all.effects.push(Effect::Rest(number, rest));
                    all.done.has_more = rest.is_some() || self.has_tails(number, 2, view);
                }
            }
            Change::Delete(number) => {
                all.done.has_more = true;
                let node = self.entry(number, view)?.node;
                if let Some(tail) = self.last_tail(number, view) {
                    all.effects.push(Effect::Rest(number, tx.free_tail(tail)?));
                } else if let Some(tail) = Tail::of(&node, self.file_system.cluster_bytes()) {
                    all.effects.push(Effect::At(number, At::Here(node.emptied())));
                    all.effects.push(Effect::Cut(number, 0, tx.free_tail(tail)?));
                } else {
                    all.effects.push(Effect::Gone(number));
                    all.done.has_more = false;
                }
            }
            Change::Recover | Change::Begin(_) | Change::End => {}
        }
        Ok(())
    }

    fn create<'v>(
        &self,
        tx: &mut Transaction<'_, Through<'_, 'v>>,
        directory: u64,
        name: &[u8],
        what: &Creation<'_>,
        view: &View<'v>,
        all: &mut Outcome,
    ) -> Said<()> {
        let is_directory = match what.kind {
            FileKind::Regular => false,
            FileKind::Directory => true,
            _ => return Err(Problem::Errno(Errno::EPERM)),
        };
        let node = self
            .in_directory(tx, directory, view, all, |tx, directory| tx.create(directory, name, is_directory, false))?;
        let number = self.files.get(view.cx()).0.lock(view.cx()).number(node.number);
        all.done.touched.push((number, self.metadata(&node)));
        all.done.made = Some((number, self.open_at(number, view, node)));
        Ok(())
    }

    fn rename<'v>(
        &self,
        tx: &mut Transaction<'_, Through<'_, 'v>>,
        (from, old): (u64, &[u8]),
        (to, new): (u64, &[u8]),
        how: Rename,
        view: &View<'v>,
        all: &mut Outcome,
    ) -> Said<()> {
        if how == Rename::Exchange {
            return Err(Problem::Errno(Errno::EINVAL));
        }
        let target = self.entry(to, view)?;
        let place = target.stands.of_directory()?;
        let known = target.known.get(view.cx());
        let mut changed = None;
        let renamed = if from == to {
            self.in_directory(tx, from, view, all, |tx, directory| tx.rename(directory, old, None, new))?
        } else {
            known.names.with(&self.turns, view, |index| {
                self.in_directory(tx, from, view, all, |tx, directory| {
                    let mut target = Directory::new(place, target.node, index);
                    let renamed = tx.rename(directory, old, Some(&mut target), new)?;
                    changed = Some((target.change, target.node));
                    Ok(renamed)
                })
            })?
        };
        if let Some((change, node)) = changed {
            all.done.touched.push((to, self.metadata(&node)));
            all.effects.push(Effect::Names(to, change));
        }
        if let Some(node) = renamed.replaced {
            if how == Rename::NoReplace {
                return Err(Problem::Errno(Errno::EEXIST));
            }
            let number = self.files.get(view.cx()).0.lock(view.cx()).number(renamed.moved);
            match (self.entry(number, view)?.node.is_directory, node.is_directory) {
                (true, false) => return Err(Problem::Errno(Errno::ENOTDIR)),
                (false, true) => return Err(Problem::Errno(Errno::EISDIR)),
                (true, true) | (false, false) => {}
            }
            if node.is_directory {
                let number = self.files.get(view.cx()).0.lock(view.cx()).number(node.number);
                let known = self.entry_known(number, view)?;
                known.get(view.cx()).names.with(&self.turns, view, |index| tx.check_empty(&node, index))?;
            }
            self.lose(node.number, node, view, all);
        }
        let number = self.files.get(view.cx()).0.lock(view.cx()).number(renamed.moved);
        if renamed.number != renamed.moved {
            all.effects.push(Effect::At(number, At::Place(Some(renamed.number))));
        }
        Ok(())
    }

    fn entry_known(&self, number: u64, view: &View<'_>) -> Said<StrongRc<Known>> {
        let files = self.files.get(view.cx());
        let table = files.0.lock(view.cx());
        Ok(table.entries.get(&number).ok_or(Problem::Errno(Errno::ESTALE))?.known.share())
    }

    /// What is to be given back next of a file: what was cut off last, and of one without a name at last all.
    fn last_tail(&self, number: u64, view: &View<'_>) -> Option<Tail> {
        let files = self.files.get(view.cx());
        let table = files.0.lock(view.cx());
        table.entries.get(&number)?.tails.last().copied()
    }

    fn has_tails(&self, number: u64, count: usize, view: &View<'_>) -> bool {
        let files = self.files.get(view.cx());
        let table = files.0.lock(view.cx());
        table.entries.get(&number).is_some_and(|entry| entry.tails.len() >= count)
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

/// What comes of a change.
#[derive(Default)]
struct Outcome {
    done: Done<File>,
    effects: Vec<Effect>,
}

impl Outcome {
    fn changed_directory(&mut self, exfat: &Exfat, number: u64, directory: Directory<'_>) {
        self.done.touched.push((number, exfat.metadata(&directory.node)));
        self.effects.push(Effect::Names(number, directory.change));
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
                    apply(table, effect);
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

/// What follows from a change is true of the files from now on.
fn apply(table: &mut Table, effect: &Effect) {
    match effect {
        Effect::Names(..) => {}
        Effect::At(number, at) => table.moved(*number, at.clone()),
        Effect::Unfolded(number, unfolded) => {
            if let Some(entry) = table.entries.get_mut(number) {
                entry.unfolded = *unfolded;
            }
        }
        Effect::Cut(number, _, tail) => {
            if let Some(entry) = table.entries.get_mut(number) {
                entry.tails.extend(*tail);
            }
        }
        Effect::Rest(number, rest) => {
            if let Some(entry) = table.entries.get_mut(number) {
                entry.tails.pop();
                entry.tails.extend(*rest);
            }
        }
        Effect::Gone(number) => table.forget(*number),
    }
}
