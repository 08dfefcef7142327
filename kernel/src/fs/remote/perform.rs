//! [`Job`]: one question's way to its answer, a task of its own. What it finds it enters in the volume; so it is not lost if nobody waits for it any more.
//!
//! It owns the inodes that the question names until the answer is there: who asked waits with nothing held, and the volume's cache could throw them out meanwhile. Where one is gone before the
//! server is asked anything, the answer is [`Answer::Stale`], and the names are looked up anew.

use alloc::vec;
use alloc::vec::Vec;

use frame::Cx;
use frame::mm::{PAGE_SIZE, UFrame};
use linux_raw_sys::general as abi;
use ninep::{Attributes, Reply, Request, SetAttributes};
use refs::{StrongRc, TempRc, WeakRc};
use tasks::{Body, Next, TaskRef};

use super::calls::{Answer, Name, Payload, Question};
use super::channel::Data;
use super::file;
use super::listing::Listing;
use super::node::Node;
use super::removals::Removal;
use super::session::{Fid, Session};
use super::volume::{Seen, Volume};
use crate::block::wait_async;
use crate::error::{Errno, Result};
use crate::fs::{FileKind, Inode, Rename, Timestamp};
use crate::step::at_once;

/// So many frames one reply with names has: they are entered in one go.
const LIST_FRAMES: usize = 4;
/// A directory of more such replies (a gibibyte of names) is none: a server could go round in circles.
const MOST_REPLIES: usize = 65_536;

/// A question that is to be answered.
pub struct Job {
    /// Whose files it is about.
    pub volume: WeakRc<Volume>,
    /// The server.
    pub session: &'static Session,
    /// What is asked.
    pub question: Question,
    /// What is written.
    pub payload: Payload,
    /// Who asks, under which number.
    pub asker: TaskRef,
    /// The call's number.
    pub number: u64,
}

impl Body for Job {
    fn run_async(&mut self, cx: &mut Cx) -> Next {
        let (first, second) = self.question.names();
        let outcome = match (own(first, cx), second.map(|second| own(second, cx))) {
            (Some(first), None) => self.answer_async(cx, &first, &first),
            (Some(first), Some(Some(second))) => self.answer_async(cx, &first, &second),
            _ => Ok(Answer::Stale),
        };
        if let Ok(volume) = self.volume.upgrade(cx) {
            volume.calls.answer(self.asker, &self.question, self.number, outcome, cx);
        }
        Next::End
    }
}

/// What a change of metadata that is in order is answered with.
fn done(_: Reply<'_>) -> core::result::Result<(), ninep::Error> {
    Ok(())
}

fn number(fid: &StrongRc<Fid>) -> u32 {
    fid.with(|fid| fid.number)
}

/// Comes to own an inode, if it is there still.
fn own(inode: Name, cx: &Cx) -> Option<StrongRc<Inode>> {
    inode.upgrade(cx).ok()?.share()
}

/// Runs `f` on a node.
fn with_node<R>(inode: &StrongRc<Inode>, cx: &Cx, f: impl FnOnce(&TempRc<'_, Inode>, &Node) -> R) -> Result<R> {
    let inode = inode.get(cx);
    Ok(f(&inode, Node::of(&inode)?))
}

/// What stands for a file.
fn fid_of(inode: &StrongRc<Inode>, cx: &Cx) -> Result<StrongRc<Fid>> {
    with_node(inode, cx, |_, node| node.fid(cx))
}

/// A file has not the name any more that it had, and maybe none at all. Who comes by another way than that name (a working directory, /proc/self/fd) has it still.
fn note_removed(inode: &StrongRc<Inode>, cx: &Cx) -> Result<()> {
    with_node(inode, cx, |inode, node| {
        inode.dentry.lock(cx).is_removed = true;
        node.note_gone();
    })
}

/// Waits until no other change of a file's content is under way, and begins one.
fn begin_change_async(cx: &mut Cx, inode: &StrongRc<Inode>) -> Result<()> {
    wait_async(cx, |waker, cx| with_node(inode, cx, |_, node| node.begin_change(waker, cx))?)
}

/// A file is about to have more or fewer names, or has: what the server was asked about it meanwhile is not as it is now.
fn note_change(inode: Option<&StrongRc<Inode>>, cx: &Cx) {
    // What is not of this file system has no such number.
    _ = inode.map(|inode| with_node(inode, cx, |_, node| node.note_change()));
}

/// A file that is about to lose a name.
struct Loser {
    number: u64,
    /// How many names it has, with this one.
    links: u64,
    /// What others see of it, where it may be its last name.
    removal: Option<Removal>,
    inode: Option<StrongRc<Inode>>,
}

impl Loser {
    fn new(attributes: &Attributes, volume: &TempRc<'_, Volume>, cx: &Cx) -> Self {
        let number = attributes.qid.path;
        let is_directory = FileKind::of_mode(attributes.mode) == Some(FileKind::Directory);
        let links = if is_directory { 1 } else { attributes.links };
        // As long as it has others its number is no other file's.
        let removal = (links <= 1).then(|| volume.removals.begin(number, cx));
        let inode = volume.own_inode(number, cx);
        note_change(inode.as_ref(), cx);
        Loser { number, links, removal, inode }
    }

    /// It has lost that name, or none after all. With its last it is known no more.
    fn end(self, lost: Option<(&StrongRc<Inode>, &[u8])>, volume: &TempRc<'_, Volume>, cx: &Cx) {
        let mut is_last = lost.is_some() && self.links <= 1;
        note_change(self.inode.as_ref(), cx);
        if let (Some((directory, name)), Some(inode)) = (lost, self.inode) {
            let inode = inode.get(cx);
            inode.change_kept(cx, |metadata| {
                // Another task may have taken one out beside this one.
                let left = self.links.min(metadata.links.into()).saturating_sub(1);
                is_last |= left == 0;
                metadata.links = if is_last { 0 } else { u32::try_from(left).unwrap_or(u32::MAX) };
                metadata.changed = Timestamp::now();
            });
            if is_last {
                volume.forget(&inode, cx);
            } else {
                let mut dentry = inode.dentry.lock(cx);
                dentry.is_removed |= dentry.parent == Some(directory.downgrade()) && *dentry.name == *name;
            }
        }
        match self.removal {
            Some(removal) => volume.removals.end(removal, is_last, cx),
            None if is_last => volume.removals.note_over(self.number, cx),
            None => {}
        }
    }
}

impl Job {
    /// `first` and `second` are what the question names, in this order.
    fn answer_async(&mut self, cx: &mut Cx, first: &StrongRc<Inode>, second: &StrongRc<Inode>) -> Result<Answer> {
        let payload = core::mem::take(&mut self.payload);
        match self.question.clone() {
            Question::Lookup { name, .. } => self.look_up_async(cx, first, &name).map(Answer::Found),
            Question::Open { writes, .. } => self.open_async(cx, first, writes),
            Question::Attributes { .. } => {
                let fid = fid_of(first, cx)?;
                self.refresh_async(cx, first, &fid).map(|_| Answer::Done)
            }
            Question::List { .. } => self.list_async(cx, first),
            Question::Create { name, kind, permissions, owner, target, .. } => {
                self.create_async(cx, first, &name, (kind, permissions, owner), &target)
            }
            Question::Link { name, .. } => self.link_async(cx, first, &name, second),
            Question::Unlink { name, is_directory, .. } => self.unlink_async(cx, first, &name, is_directory),
            Question::Rename { name, new_name, how, .. } => {
                self.rename_async(cx, (first, &name), (second, &new_name), how)
            }
            Question::Set { set, .. } => {
                begin_change_async(cx, first)?;
                let outcome = self.set_async(cx, first, set);
                with_node(first, cx, |_, node| node.end_change(cx))?;
                outcome
            }
            Question::Write { offset, len, .. } => {
                begin_change_async(cx, first)?;
                let outcome = self.write_async(cx, first, offset, len, payload);
                with_node(first, cx, |_, node| node.end_change(cx))?;
                outcome
            }
            Question::Sync { data_only, .. } => {
                // What is not open has nothing that the server does not have.
                if let Some(writer) = with_node(first, cx, |_, node| node.writer(cx))? {
                    self.session.tell_async(cx, &Request::Sync { fid: number(&writer), data_only }, done)?;
                }
                Ok(Answer::Done)
            }
        }
    }

    fn volume<'cx>(&self, cx: &'cx Cx) -> Result<refs::TempRc<'cx, Volume>> {
        self.volume.upgrade(cx).map_err(|_| Errno::EIO)
    }

    /// Asks for the metadata of what `fid` stands for, with what was known of its changes before.
    fn attributes_async(
        &self,
        cx: &mut Cx,
        inode: Option<&StrongRc<Inode>>,
        fid: &StrongRc<Fid>,
    ) -> Result<(Attributes, Option<u64>)> {
        let changes = inode.and_then(|inode| with_node(inode, cx, |_, node| node.changes()).ok());
        Ok((self.session.attributes_async(cx, number(fid))?, changes))
    }

    /// Brings the metadata of an inode up to date.
    fn refresh_async(&self, cx: &mut Cx, inode: &StrongRc<Inode>, fid: &StrongRc<Fid>) -> Result<Attributes> {
        let (attributes, changes) = self.attributes_async(cx, Some(inode), fid)?;
        let metadata = self.volume(cx)?.metadata(&attributes)?;
        with_node(inode, cx, |inode, node| {
            if inode.number == attributes.qid.path {
                node.update(inode, &attributes, metadata, changes, cx);
            }
        })?;
        Ok(attributes)
    }

    /// What a name leads to: walks there and enters it.
    fn look_up_async(&self, cx: &mut Cx, directory: &StrongRc<Inode>, name: &[u8]) -> Result<StrongRc<Inode>> {
        loop {
            let removals = self.volume(cx)?.removals.count(cx);
            if let Some(inode) = self.look_up_once_async(cx, directory, name, removals)? {
                return Ok(inode);
            }
            tasks::yield_async(cx);
        }
    }

    /// The same; `None` if the file may be gone by now, and another one have its number, since so many [removals](Removals) were over.
    fn look_up_once_async(
        &self,
        cx: &mut Cx,
        directory: &StrongRc<Inode>,
        name: &[u8],
        removals: u64,
    ) -> Result<Option<StrongRc<Inode>>> {
        let above = fid_of(directory, cx)?;
        let name_changes = with_node(directory, cx, |_, node| node.name_changes(name, cx))?;
        let fid = match self.session.walk_async(cx, number(&above), Some(name)) {
            Ok(fid) => fid,
            Err(error) => {
                if error == Errno::ENOENT {
                    with_node(directory, cx, |_, node| node.remember(name, None, name_changes, cx))?;
                }
                return Err(error);
            }
        };
        // Which file it is, is known only then; what is changed meanwhile counts more.
        let known = self.session.attributes_async(cx, number(&fid))?;
        let changes = self.volume(cx)?.changes(known.qid.path, cx);
        let attributes = match changes {
            Some(_) => self.session.attributes_async(cx, number(&fid))?,
            None => known,
        };
        let changes = if attributes.qid == known.qid || changes.is_none() { changes } else { None };
        let target = self.target_async(cx, &fid, &attributes)?;
        if self.volume(cx)?.removals.may_concern(attributes.qid.path, removals, cx) {
            return Ok(None);
        }
        let inode = self.enter((directory, name), fid, &attributes, target, Seen::Found(changes), cx)?;
        with_node(directory, cx, |_, node| node.remember(name, Some(attributes.qid.path), name_changes, cx))?;
        Ok(Some(inode))
    }

    /// Where a symbolic link leads; nothing of another file.
    fn target_async(&self, cx: &mut Cx, fid: &StrongRc<Fid>, attributes: &Attributes) -> Result<Vec<u8>> {
        match FileKind::of_mode(attributes.mode) {
            Some(FileKind::Symlink) => {
                let request = Request::ReadLink { fid: number(fid) };
                self.session.tell_async(cx, &request, |reply| reply.target().map(<[u8]>::to_vec))
            }
            _ => Ok(Vec::new()),
        }
    }

    fn enter(
        &self,
        (directory, name): (&StrongRc<Inode>, &[u8]),
        fid: StrongRc<Fid>,
        attributes: &Attributes,
        target: Vec<u8>,
        seen: Seen,
        cx: &Cx,
    ) -> Result<StrongRc<Inode>> {
        self.volume(cx)?.enter(Some((directory, name)), fid, attributes, target, seen, cx)
    }

    /// Whether a file is still what its name leads to; then it is as it is now, and open.
    fn open_async(&self, cx: &mut Cx, inode: &StrongRc<Inode>, writes: bool) -> Result<Answer> {
        let (own_fid, place, is_removed, expected) = with_node(inode, cx, |inode, node| {
            let dentry = inode.dentry.lock(cx);
            let place = dentry.parent.filter(|_| !dentry.is_removed).map(|parent| (parent, dentry.name.clone()));
            let is_removed = dentry.is_removed;
            drop(dentry);
            (node.fid(cx), place, is_removed, inode.number)
        })?;
        let fid = match place {
            Some((parent, name)) => {
                // It has just been moved, and nothing else was in that directory.
                let Some(parent) = own(parent, cx) else { return Ok(Answer::Stale) };
                let parent = &parent;
                let above = fid_of(parent, cx)?;
                let name_changes = with_node(parent, cx, |_, node| node.name_changes(&name, cx))?;
                match self.session.walk_async(cx, number(&above), Some(&name)) {
                    Ok(fid) => {
                        let attributes = self.refresh_async(cx, inode, &fid)?;
                        if attributes.qid.path != expected {
                            with_node(parent, cx, |_, node| node.forget_name(&name, cx))?;
                            note_removed(inode, cx)?;
                            return Ok(Answer::Stale);
                        }
                        with_node(inode, cx, |_, node| node.replace_fid(fid.share(), cx))?;
                        fid
                    }
                    Err(Errno::ENOENT) => {
                        with_node(parent, cx, |_, node| node.remember(&name, None, name_changes, cx))?;
                        note_removed(inode, cx)?;
                        return Ok(Answer::Stale);
                    }
                    Err(error) => return Err(error),
                }
            }
            None if is_removed => own_fid,
            None => {
                self.refresh_async(cx, inode, &own_fid)?;
                own_fid
            }
        };
        let (is_regular, has_reader, has_writer) = with_node(inode, cx, |inode, node| {
            (inode.kind == FileKind::Regular, node.has_reader(cx), node.writer(cx).is_some())
        })?;
        if is_regular && !has_reader {
            match self.open_one_async(cx, &fid, file::READ) {
                Ok(reader) => with_node(inode, cx, |_, node| node.set_reader(reader, cx))??,
                // Who writes need not read.
                Err(Errno::EACCES) if writes => {}
                Err(error) => return Err(error),
            }
        }
        if is_regular && writes && !has_writer {
            let writer = self.open_one_async(cx, &fid, file::WRITE)?;
            with_node(inode, cx, |_, node| node.set_writer(writer, cx))?;
        }
        Ok(Answer::Done)
    }

    /// One more fid for a file, which is open.
    fn open_one_async(&self, cx: &mut Cx, fid: &StrongRc<Fid>, flags: u32) -> Result<StrongRc<Fid>> {
        let open = self.session.walk_async(cx, number(fid), None)?;
        self.session.tell_async(cx, &Request::Open { fid: number(&open), flags }, done)?;
        Ok(open)
    }

    fn list_async(&self, cx: &mut Cx, directory: &StrongRc<Inode>) -> Result<Answer> {
        let since = frame::time::now();
        let fid = fid_of(directory, cx)?;
        let open = self.open_one_async(cx, &fid, file::DIRECTORY)?;
        let listing = StrongRc::new(Listing::new(since));
        let (mut from, count) = (0, LIST_FRAMES * PAGE_SIZE);
        let frames: Option<Vec<UFrame>> = (0..LIST_FRAMES).map(|_| UFrame::zeroed()).collect();
        let mut frames = frames.ok_or(Errno::ENOMEM)?;
        for _ in 0..MOST_REPLIES {
            let request = Request::List { fid: number(&open), from, count: count as u32 };
            let answer = self.session.ask_async(cx, &request, frames, Data::Received(count))?;
            let len = answer.data_len(count).map_err(|error| self.session.error(error))?;
            frames = answer.frames;
            let mut bytes = vec![0; len];
            for (frame, part) in frames.iter().zip(bytes.chunks_mut(PAGE_SIZE)) {
                // It is memory of the kernel's, which does not fault.
                let _ = frame.reader(0..part.len()).read(part);
            }
            let next = ninep::entries(&bytes, |entry| {
                listing.get(cx).add(entry.name, entry.qid.path, kind_of(&entry), cx);
            });
            match next.map_err(|error| self.session.error(error))? {
                Some(next) if next != from => from = next,
                _ => {
                    with_node(directory, cx, |_, node| node.set_listing(listing, cx))?;
                    return Ok(Answer::Done);
                }
            }
            crate::memory::admit()?;
            tasks::yield_async(cx);
        }
        Err(self.session.error(ninep::Error::Broken("a directory without an end")))
    }

    fn create_async(
        &self,
        cx: &mut Cx,
        directory: &StrongRc<Inode>,
        name: &[u8],
        (kind, mode, (uid, gid)): (FileKind, u32, (u32, u32)),
        target: &[u8],
    ) -> Result<Answer> {
        let above = fid_of(directory, cx)?;
        let since = self.volume(cx)?.entries();
        let (uid, gid) = self.volume(cx)?.owner_there(uid, gid);
        let at = number(&above);
        let mut writer = None;
        let request = match kind {
            FileKind::Regular => {
                let fid = self.session.walk_async(cx, at, None)?;
                let flags = file::WRITE | abi::O_CREAT | abi::O_EXCL;
                let request = Request::Create { fid: number(&fid), name, flags, mode, gid };
                writer = Some(fid);
                request
            }
            FileKind::Directory => Request::Directory { directory: at, name, mode, gid },
            FileKind::Symlink => Request::Symlink { directory: at, name, target, gid },
            _ => Request::Node { directory: at, name, mode: kind.mode_bits() | mode, gid },
        };
        let is_special = matches!(request, Request::Node { .. });
        let made = self.session.tell_async(cx, &request, |mut reply| reply.qid()).map_err(|error| match error {
            // QEMU takes it back, as it then cannot open it in order to set its permissions.
            Errno::ENXIO if is_special => Errno::EPERM,
            error => error,
        })?;
        let fid = self.session.walk_async(cx, at, Some(name))?;
        let mut attributes = self.session.attributes_async(cx, number(&fid))?;
        if (attributes.uid, attributes.gid) != (uid, gid) {
            // A server that may not give files away leaves it as it is.
            let set = SetAttributes { uid: Some(uid), gid: Some(gid), ..SetAttributes::default() };
            let request = Request::SetAttributes { fid: number(&fid), set };
            if self.session.tell_async(cx, &request, done).is_ok() {
                (attributes.uid, attributes.gid) = (uid, gid);
            }
        }
        let target = self.target_async(cx, &fid, &attributes)?;
        if attributes.qid.path != made.path {
            // It is gone, and the name leads elsewhere.
            return Ok(Answer::Stale);
        }
        let inode = self.enter((directory, name), fid, &attributes, target, Seen::Made(since), cx)?;
        with_node(directory, cx, |_, node| node.name_changed(name, Some(attributes.qid.path), cx))?;
        if let Some(writer) = writer {
            Node::of(&inode.get(cx))?.set_writer(writer, cx);
        }
        Ok(Answer::Found(inode))
    }

    fn link_async(
        &self,
        cx: &mut Cx,
        directory: &StrongRc<Inode>,
        name: &[u8],
        target: &StrongRc<Inode>,
    ) -> Result<Answer> {
        let (above, fid) = (fid_of(directory, cx)?, fid_of(target, cx)?);
        let request = Request::Link { directory: number(&above), fid: number(&fid), name };
        note_change(Some(target), cx);
        self.session.tell_async(cx, &request, done)?;
        note_change(Some(target), cx);
        let path = with_node(target, cx, |inode, _| {
            inode.change_kept(cx, |metadata| metadata.links = metadata.links.saturating_add(1));
            inode.number
        })?;
        with_node(directory, cx, |_, node| node.name_changed(name, Some(path), cx))?;
        Ok(Answer::Done)
    }

    fn unlink_async(
        &self,
        cx: &mut Cx,
        directory: &StrongRc<Inode>,
        name: &[u8],
        is_directory: bool,
    ) -> Result<Answer> {
        let above = fid_of(directory, cx)?;
        let flags = if is_directory { abi::AT_REMOVEDIR } else { 0 };
        // Which file loses its name.
        let gone = self.session.walk_async(cx, number(&above), Some(name))?;
        let attributes = self.session.attributes_async(cx, number(&gone))?;
        let loser = Loser::new(&attributes, &self.volume(cx)?, cx);
        let outcome = self.session.tell_async(cx, &Request::Unlink { directory: number(&above), name, flags }, done);
        loser.end(outcome.is_ok().then_some((directory, name)), &self.volume(cx)?, cx);
        outcome?;
        with_node(directory, cx, |_, node| node.name_changed(name, None, cx))?;
        Ok(Answer::Done)
    }

    fn rename_async(
        &self,
        cx: &mut Cx,
        (from, name): (&StrongRc<Inode>, &[u8]),
        (to, new_name): (&StrongRc<Inode>, &[u8]),
        how: Rename,
    ) -> Result<Answer> {
        let (above, new_above) = (fid_of(from, cx)?, fid_of(to, cx)?);
        let moved = self.session.walk_async(cx, number(&above), Some(name))?;
        let attributes = self.session.attributes_async(cx, number(&moved))?;
        let replaced = match self.session.walk_async(cx, number(&new_above), Some(new_name)) {
            Ok(_) if how == Rename::NoReplace => return Err(Errno::EEXIST),
            Ok(fid) => Some(self.session.attributes_async(cx, number(&fid))?),
            Err(Errno::ENOENT) => None,
            Err(error) => return Err(error),
        };
        let request = Request::Rename { from: number(&above), name, to: number(&new_above), new_name };
        let replaced = replaced.filter(|replaced| replaced.qid.path != attributes.qid.path);
        let loser = match replaced {
            Some(replaced) => Some(Loser::new(&replaced, &self.volume(cx)?, cx)),
            None => None,
        };
        let outcome = self.session.tell_async(cx, &request, done);
        drop(moved);
        if let Some(loser) = loser {
            loser.end(outcome.is_ok().then_some((to, new_name)), &self.volume(cx)?, cx);
        }
        outcome?;
        let volume = self.volume(cx)?;
        let to_inode = to.get(cx);
        if let Some(inode) = volume.inode(attributes.qid.path, cx) {
            at_once(Node::of(&inode)?.is_at(&inode, &to_inode, new_name, cx))?;
        }
        with_node(from, cx, |_, node| node.name_changed(name, None, cx))?;
        Node::of(&to_inode)?.name_changed(new_name, Some(attributes.qid.path), cx);
        Ok(Answer::Done)
    }

    fn set_async(&self, cx: &mut Cx, inode: &StrongRc<Inode>, set: SetAttributes) -> Result<Answer> {
        let fid = fid_of(inode, cx)?;
        with_node(inode, cx, |_, node| node.note_change())?;
        let outcome = self.session.tell_async(cx, &Request::SetAttributes { fid: number(&fid), set }, done);
        with_node(inode, cx, |_, node| {
            node.note_change();
            match (outcome, set.size) {
                (Ok(()), Some(size)) => node.was_resized(size, cx),
                (outcome, _) => outcome,
            }
        })??;
        Ok(Answer::Done)
    }

    fn write_async(
        &self,
        cx: &mut Cx,
        inode: &StrongRc<Inode>,
        offset: Option<u64>,
        len: usize,
        frames: Vec<UFrame>,
    ) -> Result<Answer> {
        let (own, writer) = with_node(inode, cx, |_, node| (node.fid(cx), node.writer(cx)))?;
        let writer = match writer {
            Some(writer) => writer,
            None => self.open_one_async(cx, &own, file::WRITE)?,
        };
        let offset = match offset {
            Some(offset) => offset,
            // Others may have made it longer.
            None => match self.session.attributes_async(cx, number(&own)) {
                Ok(attributes) => attributes.size,
                Err(_) => with_node(inode, cx, |inode, _| inode.metadata(cx).size)?,
            },
        };
        with_node(inode, cx, |_, node| node.note_change())?;
        let request = Request::Write { fid: number(&writer), offset, count: len as u32 };
        let written = self.session.ask_async(cx, &request, frames, Data::Sent(len)).and_then(|answer| {
            let count = answer.reply().and_then(|mut reply| reply.word()).map_err(|error| self.session.error(error))?;
            Ok(((count as usize).min(len), answer.frames))
        });
        with_node(inode, cx, |_, node| {
            node.note_change();
            let (count, frames) = written?;
            node.was_written(offset, count, &frames, cx)?;
            Ok(Answer::Written(count, offset + count as u64))
        })?
    }
}

/// What an entry of a directory is, as it says.
fn kind_of(entry: &ninep::Entry<'_>) -> FileKind {
    /// The bits of a qid's kind.
    const DIRECTORY: u8 = 0x80;
    const SYMLINK: u8 = 0x02;
    FileKind::of_mode(u32::from(entry.kind) << 12).unwrap_or(match entry.qid.kind {
        kind if kind & DIRECTORY != 0 => FileKind::Directory,
        kind if kind & SYMLINK != 0 => FileKind::Symlink,
        _ => FileKind::Regular,
    })
}
