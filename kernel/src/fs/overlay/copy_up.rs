//! Copying a file of a lower layer to the upper one, before it is changed: first the directories that it is in, then its content, its attributes and its metadata, in the work
//! directory. It appears in the upper layer when it is complete.
//!
//! The content is copied in bounded steps. How far that came belongs to the inode ([`Job`]), so whoever needs the file goes on with it. What nobody goes on with, since its caller was
//! killed, is given up soon.

use alloc::boxed::Box;
use alloc::vec::Vec;

use frame::Cx;
use frame::mm::{Reader, Writer};
use refs::{TempRc, WeakRc};

use super::node::{Below, Node};
use super::temporary::Temporary;
use super::{Overlay, below, share};
use crate::error::Errno;
use crate::fs::attributes::{self, SetAttribute};
use crate::fs::{Creation, FileKind, Inode, Lseek, Metadata, VfsCaller};
use crate::step::{Interruption, Step, Stop, TimeSlice};
use crate::time::SECOND;

/// How many bytes are copied in one go.
const AT_ONCE: usize = 32 * 1024;
/// A copy is given up when nobody went on with it for so long, in nanoseconds.
const PATIENCE: u64 = SECOND;
/// Others have their turn first. What is copied stays where the caller is killed.
const PAUSE: Stop = Stop::Pause(Interruption::KillOnly);

/// How far a file's content is copied.
pub enum Job {
    /// Nobody copies it.
    Idle,
    /// A step on another core is at it.
    Claimed,
    /// So far.
    Begun(Box<Copy>),
}

/// A file that is copied.
pub struct Copy {
    temporary: Temporary,
    /// How many bytes are there.
    done: u64,
    /// When the last were, in nanoseconds since boot.
    when: u64,
}

/// The inode of the upper layer in whose place `this` stands. If there is none yet it is made first, with the first `most` bytes of a file's content.
///
/// # Errors
/// EROFS without an upper layer; those of the layers. `Pause`; `Again`: it is forgotten, or another core is at it.
pub fn copy_up<'cx>(
    this: &TempRc<'cx, Inode>,
    most: u64,
    me: Option<&dyn VfsCaller>,
    cx: &'cx Cx,
) -> Step<TempRc<'cx, Inode>> {
    let own = below(this)?;
    if let Some(upper) = own.upper(cx) {
        return Ok(upper);
    }
    // It is not forgotten meanwhile.
    let _owner = share(this)?;
    own.overlay.get(cx).work(cx)?;
    crate::memory::admit()?;
    if !this.dentry.lock(cx).is_removed {
        copy_up_above(this, cx)?;
    }
    match this.ops_as::<Node>() {
        Some(node) if this.kind == FileKind::Regular => copy_up_regular(this, node, most, cx),
        _ => {
            let mut temporary = make_like(own, me, cx)?;
            publish(this, own, &mut temporary, cx)
        }
    }
}

/// Copies the directories that a file is in, the uppermost first.
fn copy_up_above(this: &TempRc<'_, Inode>, cx: &Cx) -> Step<()> {
    let mut missing = Vec::new();
    let mut above = this.parent(cx);
    while let Some(directory) = above {
        if below(&directory)?.upper(cx).is_some() {
            break;
        }
        above = directory.parent(cx);
        missing.push(directory);
    }
    let mut time_slice = TimeSlice::default();
    for directory in missing.iter().rev() {
        let own = below(directory)?;
        let mut temporary = make_like(own, None, cx)?;
        publish(directory, own, &mut temporary, cx)?;
        if time_slice.is_over() {
            return Err(PAUSE);
        }
    }
    Ok(())
}

/// Makes what is in the lower layer in the work directory, but for a file's content.
fn make_like(own: &Below, me: Option<&dyn VfsCaller>, cx: &Cx) -> Step<Temporary> {
    let overlay = own.overlay.get(cx);
    let lower = own.lowers.first().ok_or(Errno::EIO)?.inode.get(cx);
    let metadata = lower.metadata(cx);
    // What may have to wait comes before anything is made.
    let attributes = lower.attributes(cx)?.as_deref().cloned().unwrap_or_default();
    let target = match lower.kind {
        FileKind::Symlink => lower.ops.read_link(me.ok_or(Errno::EIO)?, cx)?,
        _ => Vec::new(),
    };
    let what = Creation {
        kind: lower.kind,
        permissions: metadata.mode & 0o7777,
        uid: metadata.uid,
        gid: metadata.gid,
        device: lower.device,
        target: &target,
        attributes: &[],
    };
    let temporary = Temporary::make(&own.overlay, &what, cx)?;
    let upper = temporary.inode.get(cx);
    for (name, value) in &attributes {
        if own.attribute_above(name).is_some() {
            attributes::put(&upper, name, Some(value), SetAttribute::Any, cx)?;
        }
    }
    if lower.kind != FileKind::Directory {
        attributes::put(&upper, overlay.notes.origin, Some(&own.origin_note(&lower, &overlay)), SetAttribute::Any, cx)?;
    }
    upper.set_flags(lower.flags());
    take_over(&upper, &metadata, cx);
    Ok(temporary)
}

/// Gives a copy what stat(2) tells of the file that it is of.
fn take_over(upper: &Inode, of: &Metadata, cx: &Cx) {
    upper.change(cx, |metadata| {
        (metadata.mode, metadata.uid, metadata.gid) = (of.mode, of.uid, of.gid);
        (metadata.accessed, metadata.modified) = (of.accessed, of.modified);
    });
}

/// Goes on with the copy of a regular file.
fn copy_up_regular<'cx>(this: &TempRc<'cx, Inode>, node: &Node, most: u64, cx: &'cx Cx) -> Step<TempRc<'cx, Inode>> {
    let overlay = node.below.overlay.get(cx);
    let mut copy = match core::mem::replace(&mut *node.job.lock(cx), Job::Claimed) {
        Job::Claimed => return Err(Stop::Again),
        Job::Idle => None,
        Job::Begun(copy) => Some(copy),
    };
    let outcome = go_on(this, node, &mut copy, most, cx);
    let next = match (&outcome, copy) {
        (Err(Stop::Error(_)) | Ok(_), copy) => {
            drop(copy);
            Job::Idle
        }
        (Err(_), None) => Job::Idle,
        (Err(_), Some(copy)) => Job::Begun(copy),
    };
    let is_begun = matches!(next, Job::Begun(_));
    *node.job.lock(cx) = next;
    overlay.note_copy(this.downgrade(), is_begun, cx);
    outcome
}

fn go_on<'cx>(
    this: &TempRc<'cx, Inode>,
    node: &Node,
    copy: &mut Option<Box<Copy>>,
    most: u64,
    cx: &'cx Cx,
) -> Step<TempRc<'cx, Inode>> {
    if let Some(upper) = node.below.upper(cx) {
        return Ok(upper);
    }
    let lower = node.below.lowers.first().ok_or(Errno::EIO)?.inode.get(cx);
    let copy = match copy {
        Some(copy) => copy,
        None => copy.insert(Box::new(Copy { temporary: make_like(&node.below, None, cx)?, done: 0, when: 0 })),
    };
    let metadata = lower.metadata(cx);
    copy.fill(&lower, metadata.size.min(most), cx)?;
    take_over(&copy.temporary.inode.get(cx), &metadata, cx);
    publish(this, &node.below, &mut copy.temporary, cx)
}

impl Copy {
    /// Copies the bytes up to `end`.
    fn fill(&mut self, lower: &TempRc<'_, Inode>, end: u64, cx: &Cx) -> Step<()> {
        let upper = self.temporary.inode.get(cx);
        let mut buffer = Vec::new();
        let len = AT_ONCE.min(end.saturating_sub(self.done) as usize);
        buffer.try_reserve_exact(len).map_err(|_| Errno::ENOMEM)?;
        buffer.resize(len, 0);
        let mut time_slice = TimeSlice::default();
        while self.done < end {
            self.when = frame::time::now();
            // Holes stay holes.
            match lower.ops.seek(lower, Lseek::Data(self.done as i64), cx) {
                Ok(data) => self.done = data,
                Err(Stop::Error(Errno::ENXIO)) => self.done = end,
                Err(Stop::Error(_)) => {}
                Err(stop) => return Err(stop),
            }
            if self.done >= end {
                break;
            }
            let room = buffer.get_mut(..AT_ONCE.min((end - self.done) as usize)).unwrap_or_default();
            let read = lower.ops.read(lower, self.done, &mut Writer::from(&mut *room), cx)?;
            if read == 0 {
                break;
            }
            let mut bytes = Reader::from(&*room).limit(read);
            while bytes.remaining() > 0 {
                (_, self.done) = upper.ops.write(&upper, Some(self.done), u64::MAX, &mut bytes, cx)?;
            }
            if self.done < end && time_slice.is_over() {
                return Err(PAUSE);
            }
        }
        if upper.metadata(cx).size < end { upper.ops.set_size(&upper, end, cx) } else { Ok(()) }
    }
}

/// Lets a copy appear in the upper layer, where the file is now. One that has lost its name gets none there.
fn publish<'cx>(
    this: &TempRc<'cx, Inode>,
    own: &Below,
    temporary: &mut Temporary,
    cx: &'cx Cx,
) -> Step<TempRc<'cx, Inode>> {
    let file_system = this.file_system.get(cx);
    let _tree = file_system.tree.lock(cx);
    if let Some(upper) = own.upper(cx) {
        // Another core was first.
        return Ok(upper);
    }
    let (parent, name, is_removed) = {
        let dentry = this.dentry.lock(cx);
        (dentry.parent, dentry.name.clone(), dentry.is_removed)
    };
    if !is_removed {
        let parent = parent.and_then(|parent| parent.upgrade(cx).ok()).ok_or(Errno::ENOENT)?;
        // It may be in another directory by now.
        let directory = below(&parent)?.upper(cx).ok_or(Stop::Again)?;
        let before = directory.metadata(cx);
        temporary.place(&directory, &name, None, cx)?;
        // Nothing has changed in it that anybody sees.
        directory.change(cx, |metadata| {
            (metadata.accessed, metadata.modified) = (before.accessed, before.modified);
        });
    }
    let is_only_name = own.lowers.first().is_some_and(|lower| lower.inode.get(cx).metadata(cx).links == 1);
    let upper = temporary.inode.get(cx);
    own.set_upper(temporary.inode.share(), this.kind == FileKind::Directory || is_only_name, cx);
    this.bring_up_to_date(cx);
    Ok(upper)
}

impl Overlay {
    /// A copy of a file is under way, or no longer.
    fn note_copy(&self, inode: WeakRc<Inode>, is_begun: bool, cx: &Cx) {
        let mut copies = self.copies.lock(cx);
        let known = copies.iter().position(|copy| *copy == inode);
        match (known, is_begun) {
            (Some(index), false) => {
                copies.swap_remove(index);
            }
            (None, true) => copies.push(inode),
            _ => {}
        }
    }

    /// Gives those copies up with which nobody goes on.
    pub fn give_up_copies(&self, cx: &Cx) {
        if self.copies.lock(cx).is_empty() {
            return;
        }
        let copies = core::mem::take(&mut *self.copies.lock(cx));
        for copy in copies {
            let Ok(inode) = copy.upgrade(cx) else { continue };
            let Some(node) = inode.ops_as::<Node>() else { continue };
            let given_up = take_old(node, cx);
            if given_up.is_none() && !matches!(*node.job.lock(cx), Job::Idle) {
                self.note_copy(copy, true, cx);
            }
        }
    }
}

/// Takes a copy away that is too old.
fn take_old(node: &Node, cx: &Cx) -> Option<Box<Copy>> {
    let mut job = node.job.lock(cx);
    match core::mem::replace(&mut *job, Job::Idle) {
        Job::Begun(copy) if frame::time::now().saturating_sub(copy.when) > PATIENCE => Some(copy),
        other => {
            *job = other;
            None
        }
    }
}
