//! [`Node`]: a file of a volume.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};

use frame::Cx;
use frame::mm::{Access, PAGE_SIZE, Reader, UFrame, Writer};
use refs::{SpinLock, StrongRc, TempRc, WeakRc};

use super::format::{Place, Problem};
use super::{Format, Listed, Volume};
use crate::block::{Backing, BlockDevice, Cache, Extent, Keep, ReadAhead, SECTOR, Wanted};
use crate::error::{Errno, Result};
use crate::fs::{DirectoryEntry, FileKind, Inode, InodeOps, Lseek, Metadata, VfsCaller};
use crate::memory::{BadAccess, Mapped, Pages};
use crate::step::{Step, Stop};

/// So many names all directories of a volume remember.
const MOST_NAMES: usize = 65_536;

/// A file of a volume.
pub(super) struct Node<F: Format> {
    volume: WeakRc<Volume<F>>,
    node: StrongRc<F::Node>,
    /// The directory that it was found in, which is there as long as it is.
    _parent: Option<StrongRc<Inode>>,
    size: u64,
    /// The content of a regular file.
    content: Option<StrongRc<Cache>>,
    ahead: ReadAhead,
    mapped: Mapped,
    /// The numbers of a directory's names, as far as they were looked up; `None`: there is no such name.
    names: SpinLock<BTreeMap<Box<[u8]>, Option<u64>>>,
    /// How many names all directories of the volume remember.
    all_names: StrongRc<AtomicUsize>,
}

/// Where a file's pages are.
struct Content<F: Format> {
    volume: WeakRc<Volume<F>>,
    node: StrongRc<F::Node>,
    device: &'static dyn BlockDevice,
    size: u64,
}

impl<F: Format> Backing for Content<F> {
    fn size(&self) -> u64 {
        self.size
    }

    fn locate(&self, index: u32, cx: &Cx) -> Step<Extent> {
        let volume = self.volume.upgrade(cx).map_err(|_| Errno::EIO)?;
        let node = self.node.get(cx);
        Ok(match volume.ask(cx, |format, view| format.place(&node, index, view))? {
            Place::Hole => Extent::Hole { pages: 1 },
            Place::Made => Extent::Made,
            Place::Device { offset, pages } => {
                let at = offset.checked_add(volume.on().bytes().start).ok_or(Errno::EUCLEAN)?;
                Extent::On { device: self.device, sector: at / SECTOR, pages }
            }
        })
    }

    fn make(&self, index: u32, to: &mut Writer<'_>, cx: &Cx) -> Step<()> {
        let volume = self.volume.upgrade(cx).map_err(|_| Errno::EIO)?;
        let node = self.node.get(cx);
        let offset = u64::from(index) * PAGE_SIZE as u64;
        let mut bytes = vec![0; PAGE_SIZE];
        let len = volume.ask(cx, |format, view| format.fill(&node, offset, &mut bytes, view))?;
        Reader::from(&bytes[..len]).copy_to(to)?;
        Ok(())
    }

    fn device(&self) -> &'static dyn BlockDevice {
        self.device
    }
}

impl<F: Format> Node<F> {
    pub fn new(
        (volume, all_names): (WeakRc<Volume<F>>, StrongRc<AtomicUsize>),
        node: F::Node,
        parent: Option<StrongRc<Inode>>,
        metadata: &Metadata,
        device: &'static dyn BlockDevice,
        cx: &Cx,
    ) -> Self {
        let node = StrongRc::new(node);
        let size = metadata.size;
        let is_regular = FileKind::of_mode(metadata.mode) == Some(FileKind::Regular);
        let content =
            is_regular.then(|| Cache::new(Box::new(Content { volume, node: node.share(), device, size }), cx));
        Node {
            volume,
            node,
            _parent: parent,
            size,
            content,
            ahead: ReadAhead::default(),
            mapped: Mapped::default(),
            names: SpinLock::default(),
            all_names,
        }
    }

    fn volume<'cx>(&self, cx: &'cx Cx) -> Result<TempRc<'cx, Volume<F>>> {
        self.volume.upgrade(cx).map_err(|_| Errno::EIO)
    }

    fn content<'cx>(&self, cx: &'cx Cx) -> Result<TempRc<'cx, Cache>> {
        Ok(self.content.as_ref().ok_or(Errno::EINVAL)?.get(cx))
    }

    /// Where the volume's directories remember too many names, this one begins anew.
    fn remember(&self, name: &[u8], number: Option<u64>, cx: &Cx) {
        let all = self.all_names.get(cx);
        let mut names = self.names.lock(cx);
        if all.load(Ordering::Relaxed) >= MOST_NAMES {
            all.fetch_sub(names.len(), Ordering::Relaxed);
            names.clear();
            if all.load(Ordering::Relaxed) >= MOST_NAMES {
                return;
            }
        }
        if names.insert(name.into(), number).is_none() {
            all.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl<F: Format> Drop for Node<F> {
    fn drop(&mut self) {
        let names = self.names.get_mut().len();
        if names > 0 {
            self.all_names.with(|all| all.fetch_sub(names, Ordering::Relaxed));
        }
        if let Some(content) = &self.content {
            content.with(Cache::close);
        }
    }
}

impl<F: Format> InodeOps for Node<F> {
    fn lookup<'cx>(
        &self,
        this: &TempRc<'cx, Inode>,
        name: &[u8],
        _me: &dyn VfsCaller,
        cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        let volume = self.volume(cx)?;
        let known = self.names.lock(cx).get(name).copied();
        let number = match known {
            Some(number) => number,
            None => {
                let node = self.node.get(cx);
                let found = match volume.ask(cx, |format, view| format.look_up(&node, name, view)) {
                    Ok(number) => Some(number),
                    Err(Stop::Error(Errno::ENOENT)) => None,
                    Err(stop) => return Err(stop),
                };
                self.remember(name, found, cx);
                found
            }
        };
        volume.inode(number.ok_or(Errno::ENOENT)?, this, name, cx)
    }

    fn list(
        &self,
        _this: &Inode,
        from: u64,
        _me: Option<&dyn VfsCaller>,
        cx: &Cx,
        each: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Step<()> {
        let node = self.node.get(cx);
        self.volume(cx)?.ask(cx, |format, view| {
            format.list(&node, from, view, &mut |Listed { name, number, kind, next }| {
                let kind = match kind {
                    Some(kind) => kind,
                    None => {
                        let (_, metadata) = format.node(number, view)?;
                        FileKind::of_mode(metadata.mode).ok_or(Problem::Corrupt("an inode of no kind"))?
                    }
                };
                Ok(each(DirectoryEntry { name, number, kind, next }))
            })
        })
    }

    fn read_link(&self, _me: &dyn VfsCaller, cx: &Cx) -> Step<Vec<u8>> {
        let node = self.node.get(cx);
        self.volume(cx)?.ask(cx, |format, view| format.read_link(&node, view))
    }

    fn read(&self, _this: &Inode, offset: u64, to: &mut Writer<'_>, cx: &Cx) -> Step<usize> {
        self.content(cx)?.read(offset, self.size, to, Keep::Pages(&self.ahead), cx)
    }

    fn write(
        &self,
        _this: &Inode,
        _offset: Option<u64>,
        _limit: u64,
        _from: &mut Reader<'_>,
        _cx: &Cx,
    ) -> Step<(usize, u64)> {
        Err(Errno::EROFS.into())
    }

    fn set_size(&self, _this: &Inode, _size: u64, _cx: &Cx) -> Step<()> {
        Err(Errno::EROFS.into())
    }

    fn seek(&self, _this: &Inode, to: Lseek, _cx: &Cx) -> Step<u64> {
        // As of a file system that knows no holes: all is data, and a hole is behind it.
        let (from, wants_data) = match to {
            Lseek::Data(from) => (from, true),
            Lseek::Hole(from) => (from, false),
            _ => return Err(Errno::EINVAL.into()),
        };
        let from = u64::try_from(from).ok().filter(|from| *from < self.size).ok_or(Errno::ENXIO)?;
        Ok(if wants_data { from } else { self.size })
    }

    fn pages(&self) -> Option<&dyn Pages> {
        self.content.as_ref().map(|_| self as &dyn Pages)
    }

    fn keeps_attributes(&self) -> bool {
        true
    }

    fn load_attributes(&self, _this: &Inode, cx: &Cx) -> Step<Vec<(Vec<u8>, Vec<u8>)>> {
        let node = self.node.get(cx);
        self.volume(cx)?.ask(cx, |format, view| format.attributes(&node, view))
    }
}

impl<F: Format> Pages for Node<F> {
    fn page(&self, index: u64, _access: Access, cx: &Cx) -> core::result::Result<UFrame, BadAccess> {
        let (Ok(content), Ok(page)) = (self.content(cx), u32::try_from(index)) else {
            return Err(BadAccess::BeyondFile);
        };
        if index >= self.size.div_ceil(PAGE_SIZE as u64) {
            return Err(BadAccess::BeyondFile);
        }
        content.page(page, Wanted::Ahead(&self.ahead, 1), cx).map_err(|stop| match stop {
            Stop::Absent(absent) => BadAccess::Absent(absent),
            Stop::NoMemory | Stop::Error(Errno::ENOMEM) => BadAccess::NoMemory,
            _ => BadAccess::BeyondFile,
        })
    }

    fn cached(&self, indices: Range<u64>, each: &mut dyn FnMut(u64, UFrame), cx: &Cx) {
        if let Ok(content) = self.content(cx) {
            let end = indices.end.min(self.size.div_ceil(PAGE_SIZE as u64));
            content.each_present(indices.start..end, each, cx);
        }
    }

    fn mapped(&self) -> &Mapped {
        &self.mapped
    }
}
