//! [`Job`]: one question's way to its answer, a task of its own. What it finds it enters in the volume; so it is not lost if nobody waits for it any more.

use alloc::vec;
use alloc::vec::Vec;

use frame::Cx;
use frame::mm::{PAGE_SIZE, UFrame};
use linux_raw_sys::general as abi;
use ninep::{Attributes, Reply, Request, SetAttributes};
use refs::StrongRc;
use refs::WeakRc;
use tasks::{Body, Next, TaskRef};

use super::calls::{Answer, Name, Payload, Question};
use super::channel::Data;
use super::file;
use super::listing::Listing;
use super::node::Node;
use super::session::{Fid, Session};
use super::volume::Volume;
use crate::block::wait_async;
use crate::error::{Errno, Result};
use crate::fs::{FileKind, Inode, Rename, Timestamp};

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
        let outcome = self.answer_async(cx);
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

/// Runs `f` on a node, if it is there still.
fn with_node<R>(inode: Name, cx: &Cx, f: impl FnOnce(&refs::TempRc<'_, Inode>, &Node) -> R) -> Result<R> {
    let inode = inode.upgrade(cx).map_err(|_| Errno::ESTALE)?;
    Ok(f(&inode, Node::of(&inode)?))
}

/// What stands for a file.
fn fid_of(inode: Name, cx: &Cx) -> Result<StrongRc<Fid>> {
    with_node(inode, cx, |_, node| node.fid(cx))
}

/// A file has not the name any more that it had. Who comes by another way than that name (a working directory, /proc/self/fd) has it still.
fn note_removed(inode: Name, cx: &Cx) -> Result<()> {
    with_node(inode, cx, |inode, _| inode.dentry.lock(cx).is_removed = true)
}

/// Waits until no other change of a file's content is under way, and begins one.
fn begin_change_async(cx: &mut Cx, inode: Name) -> Result<()> {
    wait_async(cx, |waker, cx| with_node(inode, cx, |_, node| node.begin_change(waker, cx))?)
}

impl Job {
    fn answer_async(&mut self, cx: &mut Cx) -> Result<Answer> {
        let payload = core::mem::take(&mut self.payload);
        match self.question.clone() {
            Question::Lookup { directory, name } => self.look_up_async(cx, directory, &name).map(Answer::Found),
            Question::Open { inode, writes } => self.open_async(cx, inode, writes),
            Question::Attributes { inode } => {
                let fid = fid_of(inode, cx)?;
                self.refresh_async(cx, inode, &fid).map(|_| Answer::Done)
            }
            Question::List { directory } => self.list_async(cx, directory),
            Question::Create { directory, name, kind, permissions, owner, target } => {
                self.create_async(cx, directory, &name, (kind, permissions, owner), &target).map(Answer::Found)
            }
            Question::Link { directory, name, target } => self.link_async(cx, directory, &name, target),
            Question::Unlink { directory, name, is_directory } => self.unlink_async(cx, directory, &name, is_directory),
            Question::Rename { from, name, to, new_name, how } => {
                self.rename_async(cx, (from, &name), (to, &new_name), how)
            }
            Question::Set { inode, set } => {
                begin_change_async(cx, inode)?;
                let outcome = self.set_async(cx, inode, set);
                with_node(inode, cx, |_, node| node.end_change(cx))?;
                outcome
            }
            Question::Write { inode, offset, len } => {
                begin_change_async(cx, inode)?;
                let outcome = self.write_async(cx, inode, offset, len, payload);
                with_node(inode, cx, |_, node| node.end_change(cx))?;
                outcome
            }
            Question::Sync { inode, data_only } => {
                let (fid, is_writer) = with_node(inode, cx, |_, node| (node.writer(cx), node.fid(cx)))?;
                // What is not open has nothing that the server does not have.
                if let Some(fid) = fid {
                    let request = Request::Sync { fid: number(&fid), data_only };
                    self.session.tell_async(cx, &request, done)?;
                }
                drop(is_writer);
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
        inode: Option<Name>,
        fid: &StrongRc<Fid>,
    ) -> Result<(Attributes, Option<u64>)> {
        let changes = inode.and_then(|inode| with_node(inode, cx, |_, node| node.changes()).ok());
        Ok((self.session.attributes_async(cx, number(fid))?, changes))
    }

    /// Brings the metadata of an inode up to date.
    fn refresh_async(&self, cx: &mut Cx, inode: Name, fid: &StrongRc<Fid>) -> Result<Attributes> {
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
    fn look_up_async(&self, cx: &mut Cx, directory: Name, name: &[u8]) -> Result<StrongRc<Inode>> {
        let above = fid_of(directory, cx)?;
        let fid = match self.session.walk_async(cx, number(&above), Some(name)) {
            Ok(fid) => fid,
            Err(error) => {
                if error == Errno::ENOENT {
                    with_node(directory, cx, |_, node| node.remember(name, None, cx))?;
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
        self.enter_async(cx, directory, name, fid, &attributes, changes)
    }

    fn enter_async(
        &self,
        cx: &mut Cx,
        directory: Name,
        name: &[u8],
        fid: StrongRc<Fid>,
        attributes: &Attributes,
        changes: Option<u64>,
    ) -> Result<StrongRc<Inode>> {
        let target = match FileKind::of_mode(attributes.mode) {
            Some(FileKind::Symlink) => {
                let request = Request::ReadLink { fid: number(&fid) };
                self.session.tell_async(cx, &request, |reply| reply.target().map(<[u8]>::to_vec))?
            }
            _ => Vec::new(),
        };
        let volume = self.volume(cx)?;
        let directory = directory.upgrade(cx).map_err(|_| Errno::ESTALE)?;
        let inode = volume.enter(Some((&directory, name)), fid, attributes, target, changes, cx)?;
        Node::of(&directory)?.remember(name, Some(attributes.qid.path), cx);
        Ok(inode)
    }

    /// Whether a file is still what its name leads to; then it is as it is now, and open.
    fn open_async(&self, cx: &mut Cx, inode: Name, writes: bool) -> Result<Answer> {
        let (own, place, expected) = with_node(inode, cx, |inode, node| {
            let dentry = inode.dentry.lock(cx);
            let place = dentry.parent.filter(|_| !dentry.is_removed).map(|parent| (parent, dentry.name.clone()));
            let is_removed = dentry.is_removed;
            drop(dentry);
            (node.fid(cx), (place, is_removed), inode.number)
        })?;
        let fid = match place {
            (Some((parent, name)), _) => {
                let above = fid_of(parent, cx)?;
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
                        with_node(parent, cx, |_, node| node.remember(&name, None, cx))?;
                        note_removed(inode, cx)?;
                        return Ok(Answer::Stale);
                    }
                    Err(error) => return Err(error),
                }
            }
            (None, true) => own,
            (None, false) => {
                self.refresh_async(cx, inode, &own)?;
                own
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

    fn list_async(&self, cx: &mut Cx, directory: Name) -> Result<Answer> {
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
        directory: Name,
        name: &[u8],
        (kind, mode, (uid, gid)): (FileKind, u32, (u32, u32)),
        target: &[u8],
    ) -> Result<StrongRc<Inode>> {
        let above = fid_of(directory, cx)?;
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
        self.session.tell_async(cx, &request, done).map_err(|error| match error {
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
        let inode = self.enter_async(cx, directory, name, fid, &attributes, None)?;
        with_node(directory, cx, |_, node| node.name_changed(name, Some(attributes.qid.path), cx))?;
        if let Some(writer) = writer {
            Node::of(&inode.get(cx))?.set_writer(writer, cx);
        }
        Ok(inode)
    }

    fn link_async(&self, cx: &mut Cx, directory: Name, name: &[u8], target: Name) -> Result<Answer> {
        let (above, fid) = (fid_of(directory, cx)?, fid_of(target, cx)?);
        let request = Request::Link { directory: number(&above), fid: number(&fid), name };
        self.session.tell_async(cx, &request, done)?;
        let path = with_node(target, cx, |inode, _| {
            inode.change_kept(cx, |metadata| metadata.links = metadata.links.saturating_add(1));
            inode.number
        })?;
        with_node(directory, cx, |_, node| node.name_changed(name, Some(path), cx))?;
        Ok(Answer::Done)
    }

    fn unlink_async(&self, cx: &mut Cx, directory: Name, name: &[u8], is_directory: bool) -> Result<Answer> {
        let above = fid_of(directory, cx)?;
        let flags = if is_directory { abi::AT_REMOVEDIR } else { 0 };
        // Which file loses its name.
        let gone = self.session.walk_async(cx, number(&above), Some(name))?;
        let attributes = self.session.attributes_async(cx, number(&gone))?;
        self.session.tell_async(cx, &Request::Unlink { directory: number(&above), name, flags }, done)?;
        self.lost_name(directory, name, &attributes, cx)?;
        with_node(directory, cx, |_, node| node.name_changed(name, None, cx))?;
        Ok(Answer::Done)
    }

    /// A file lost a name: with its last it is known no more.
    fn lost_name(&self, directory: Name, name: &[u8], attributes: &Attributes, cx: &Cx) -> Result<()> {
        let volume = self.volume(cx)?;
        let Some(inode) = volume.inode(attributes.qid.path, cx) else { return Ok(()) };
        let is_last = inode.kind == FileKind::Directory || attributes.links <= 1;
        inode.change_kept(cx, |metadata| {
            metadata.links = if is_last { 0 } else { u32::try_from(attributes.links - 1).unwrap_or(u32::MAX) };
            metadata.changed = Timestamp::now();
        });
        let mut dentry = inode.dentry.lock(cx);
        if is_last || (dentry.parent == Some(directory) && *dentry.name == *name) {
            dentry.is_removed = true;
        }
        drop(dentry);
        if is_last {
            volume.forget(attributes.qid.path, cx);
        }
        Ok(())
    }

    fn rename_async(
        &self,
        cx: &mut Cx,
        (from, name): (Name, &[u8]),
        (to, new_name): (Name, &[u8]),
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
        self.session.tell_async(cx, &request, done)?;
        drop(moved);
        if let Some(replaced) = replaced.filter(|replaced| replaced.qid.path != attributes.qid.path) {
            self.lost_name(to, new_name, &replaced, cx)?;
        }
        let volume = self.volume(cx)?;
        let to_inode = to.upgrade(cx).map_err(|_| Errno::ESTALE)?;
        if let Some(inode) = volume.inode(attributes.qid.path, cx) {
            Node::of(&inode)?.is_at(&inode, &to_inode, new_name, cx)?;
        }
        with_node(from, cx, |_, node| node.name_changed(name, None, cx))?;
        Node::of(&to_inode)?.name_changed(new_name, Some(attributes.qid.path), cx);
        Ok(Answer::Done)
    }

    fn set_async(&self, cx: &mut Cx, inode: Name, set: SetAttributes) -> Result<Answer> {
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
        inode: Name,
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
