//! [`Volume`]: a file system that is mounted.

use alloc::boxed::Box;
use alloc::vec;
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use frame::Cx;
use frame::mm::Writer;
use refs::{StrongRc, TempRc, WeakRc};

use super::format::Said;
use super::node::Node;
use super::{Format, Problem};
use crate::block::{self, Keep, ReadAhead};
use crate::error::{Errno, Result};
use crate::fs::types::OnDevice;
use crate::fs::{Dentry, FileKind, FileSystem, Inode, InodeCache, Instance, Kept};
use crate::step::{Step, Stop};

/// Where a file system is: a disk, or a part of one. It can be opened once more for each of these.
struct Place {
    volume: block::Volume,
    ahead: ReadAhead,
}

impl Place {
    fn of(volume: block::Volume) -> Self {
        volume.count_open(1);
        Place { volume, ahead: ReadAhead::default() }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.volume.count_open(-1);
    }
}

/// A file system that is mounted.
///
/// Owner: its [`FileSystem`]. Its end frees its inodes; whoever waits for pages of them is told EIO.
pub struct Volume<F: Format> {
    name: WeakRc<Volume<F>>,
    place: Place,
    format: F,
    inodes: InodeCache,
    /// How many names its directories remember.
    names: StrongRc<AtomicUsize>,
    file_system: WeakRc<FileSystem>,
    /// Something wrong was found, and told.
    is_bad: AtomicBool,
}

impl<F: Format> Kept for Volume<F> {}

/// The blocks of a volume, for one call of a format's function.
pub struct View<'a> {
    place: &'a Place,
    cx: &'a Cx,
    /// Why a block was not at hand.
    stop: Cell<Option<Stop>>,
}

impl View<'_> {
    /// Copies bytes of the volume.
    ///
    /// # Errors
    /// `Absent`: they must come first, or cannot.
    pub fn copy(&self, offset: u64, to: &mut [u8]) -> Said<()> {
        let bytes = self.place.volume.bytes();
        let end = offset.checked_add(to.len() as u64).and_then(|end| end.checked_add(bytes.start));
        if end.is_none_or(|end| end > bytes.end) {
            return Err(Problem::Corrupt("an address beyond the end of the disk"));
        }
        let cache = self.place.volume.disk.cache(self.cx);
        let mut done = 0;
        while done < to.len() {
            let at = bytes.start + offset + done as u64;
            let mut rest = Writer::from(&mut to[done..]);
            match cache.read(at, bytes.end, &mut rest, Keep::Pages(&self.place.ahead), self.cx) {
                Ok(0) => return Err(Problem::Errno(Errno::EIO)),
                Ok(read) => done += read,
                Err(stop) => {
                    self.stop.set(Some(stop));
                    return Err(Problem::Absent);
                }
            }
        }
        Ok(())
    }

    /// Runs `with` on bytes of the volume: up to `len`, fewer at its end.
    ///
    /// # Errors
    /// As for [`copy`](Self::copy).
    pub fn with<R>(&self, offset: u64, len: usize, with: impl FnOnce(&[u8]) -> R) -> Said<R> {
        let left = self.place.volume.size().saturating_sub(offset);
        let mut bytes = vec![0; len.min(usize::try_from(left).unwrap_or(usize::MAX))];
        self.copy(offset, &mut bytes)?;
        Ok(with(&bytes))
    }
}

/// Runs a function of a format's on a volume's blocks.
fn ask<T>(place: &Place, is_bad: &AtomicBool, name: &str, cx: &Cx, ask: impl FnOnce(&View<'_>) -> Said<T>) -> Step<T> {
    let view = View { place, cx, stop: Cell::new(None) };
    let problem = match ask(&view) {
        Ok(value) => return Ok(value),
        Err(problem) => problem,
    };
    let (error, what) = match problem {
        Problem::Absent => return Err(view.stop.take().unwrap_or(Errno::EIO.into())),
        Problem::Errno(error) => return Err(error.into()),
        Problem::Corrupt(what) => (Errno::EUCLEAN, what),
        Problem::Unsupported(what) => (Errno::EOPNOTSUPP, what),
    };
    if !is_bad.swap(true, Ordering::Relaxed) {
        crate::log!("{name} on {}: {what}", place.volume.name());
    }
    Err(error.into())
}

/// Makes an instance of what is on a device.
///
/// # Errors
/// ENXIO: there is no such device. EINVAL: it has no such file system; options that are not understood. EROFS: it is to be written. EUCLEAN, EIO.
pub fn mount<F: Format>(request: &OnDevice<'_>, cx: &Cx) -> Step<Instance> {
    for option in request.options.split(|&byte| byte == b',') {
        if !matches!(
            option,
            b"" | b"defaults" | b"ro" | b"rw" | b"user_xattr" | b"acl" | b"noacl" | b"errors=remount-ro"
        ) {
            return Err(Errno::EINVAL.into());
        }
    }
    let device = request.device;
    let volume = block::volume(device.minor, cx).filter(|_| device.major == block::MAJOR).ok_or(Errno::ENXIO)?;
    let place = Place::of(volume);
    let is_bad = AtomicBool::new(false);
    let (format, space) = ask(&place, &is_bad, F::NAME, cx, |view| {
        let format = F::open(view, volume.size())?;
        let space = format.space(view)?;
        Ok((format, space))
    })?;
    if F::IS_WRITTEN && !request.is_read_only {
        return Err(Errno::EROFS.into());
    }
    let (node, metadata) = ask(&place, &is_bad, F::NAME, cx, |view| format.node(format.root(), view))?;
    let file_system = FileSystem::new_read_only(F::NAME, F::MAGIC, request.options_shown());
    let (volume, root) = {
        let file_system = file_system.get(cx);
        let capacity = &file_system.capacity;
        for (figure, value) in [
            (&capacity.pages, space.pages),
            (&capacity.used_pages, space.used_pages),
            (&capacity.inodes, space.inodes),
            (&capacity.used_inodes, space.used_inodes),
        ] {
            figure.store(value, Ordering::Relaxed);
        }
        let volume = StrongRc::new_cyclic(|name| Volume {
            name,
            place,
            format,
            inodes: InodeCache::of_owners(),
            names: StrongRc::new(AtomicUsize::new(0)),
            file_system: file_system.downgrade(),
            is_bad,
        });
        let root = {
            let volume = volume.get(cx);
            let number = volume.format.root();
            volume.enter(number, None, node, metadata, cx)?.share().ok_or(Errno::ENOENT)?
        };
        (volume, root)
    };
    file_system.with(|file_system| file_system.keep(volume.unsize(|volume| volume)));
    Ok((file_system, root))
}

impl<F: Format> Volume<F> {
    /// Runs a function of the format's.
    ///
    /// # Errors
    /// What the format says; `Absent`.
    pub(super) fn ask<T>(&self, cx: &Cx, question: impl FnOnce(&F, &View<'_>) -> Said<T>) -> Step<T> {
        ask(&self.place, &self.is_bad, F::NAME, cx, |view| question(&self.format, view))
    }

    /// Where its files are.
    pub(super) fn on(&self) -> block::Volume {
        self.place.volume
    }

    /// The inode of that number, which is in the directory `parent` under `name`.
    ///
    /// # Errors
    /// As for [`ask`](Self::ask).
    pub(super) fn inode<'cx>(
        &self,
        number: u64,
        parent: &TempRc<'cx, Inode>,
        name: &[u8],
        cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        if let Some(inode) = self.inodes.get(number, cx) {
            // A directory has one name: with another the tree would be a circle.
            let is_elsewhere = inode.kind == FileKind::Directory && !inode.dentry.lock(cx).is(parent, name);
            return if is_elsewhere { Err(Errno::EUCLEAN.into()) } else { Ok(inode) };
        }
        let (node, metadata) = self.ask(cx, |format, view| format.node(number, view))?;
        Ok(self.enter(number, Some((parent, name)), node, metadata, cx)?)
    }

    fn enter<'cx>(
        &self,
        number: u64,
        place: Option<(&TempRc<'cx, Inode>, &[u8])>,
        node: F::Node,
        metadata: crate::fs::Metadata,
        cx: &'cx Cx,
    ) -> Result<TempRc<'cx, Inode>> {
        crate::memory::admit()?;
        self.inodes.get_or_insert(number, cx, || {
            let file_system = self.file_system.upgrade(cx)?.share().ok_or(Errno::EIO)?;
            let dentry = place.map_or_else(Dentry::default, |(parent, name)| Dentry::new(parent, name));
            let parent = place.map(|(parent, _)| parent.share().ok_or(Errno::ESTALE)).transpose()?;
            let names = self.names.share();
            let device = self.place.volume.disk.device;
            let ops = Box::new(Node::new((self.name, names), node, parent, &metadata, device, cx));
            Ok(Inode::new(file_system, number, metadata, dentry, ops))
        })
    }
}
