//! From a path to an inode: path_resolution(7).
//!
//! A walk holds nothing but `TempRc`s, takes one lock at a time, and allocates only where a symbolic link is followed. The links'
//! targets are put in front of the rest of the path, so that the walk is a loop and not a recursion.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use bitflags::bitflags;
use frame::Cx;
use linux_raw_sys::general;
use refs::TempRc;

use super::access::{Subject, Want};
use super::{FileKind, Inode, Jump, MountFlags, Path, VfsCaller};
use crate::error::{Errno, Result};
use crate::step::{Step, Stop};
use crate::user_memory::{HasMemory, UserIn};

/// Symbolic links that one path may follow.
const MOST_LINKS: u32 = 40;
/// Bytes in a name.
const NAME_MAX: usize = 255;
/// Bytes in a path, with its terminating zero.
const PATH_MAX: usize = 4096;
/// Paths below this length are read without an allocation.
const SHORT: usize = 80;

/// A path as a program gave it, read from its memory.
pub struct PathName {
    short: [u8; SHORT],
    short_len: usize,
    long: Vec<u8>,
}

impl PathName {
    /// Reads the path at `address`.
    ///
    /// # Errors
    /// ENAMETOOLONG; a fault.
    #[inline]
    pub fn read(address: UserIn<u8>, me: &impl HasMemory, cx: &Cx) -> Step<PathName> {
        let mut path = PathName::empty();
        path.fill(address, me, cx)?;
        Ok(path)
    }

    /// The empty path, to be filled where it is.
    #[inline(always)]
    pub fn empty() -> PathName {
        PathName { short: [0; SHORT], short_len: 0, long: Vec::new() }
    }

    /// Becomes the path at `address`: as [`read`](Self::read), without moving it.
    ///
    /// # Errors
    /// ENAMETOOLONG; a fault.
    #[inline(always)]
    pub fn fill(&mut self, address: UserIn<u8>, me: &impl HasMemory, cx: &Cx) -> Step<()> {
        let memory = me.memory(cx)?;
        self.short_len = memory.reader(address.slice(SHORT)).read_until_zero(&mut self.short)?;
        if self.short_len == SHORT {
            self.long = memory.read_c_string(address, PATH_MAX, Errno::ENAMETOOLONG)?;
        }
        Ok(())
    }

    /// Its bytes.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        if self.short_len < SHORT { &self.short[..self.short_len] } else { &self.long }
    }
}

bitflags! {
    /// How a path is walked.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct WalkFlags: u32 {
        /// A symbolic link at the end is followed.
        const FOLLOW = 1;
        /// The last name need not be there.
        const MAY_BE_MISSING = 2;
        /// The last name itself is meant: a slash behind it does not follow a link, and asks for nothing. For making, removing and renaming.
        const NAME = 256;
        /// A slash behind the last name is EISDIR (O_CREAT).
        const NO_SLASH = 512;
        /// Permissions are those of the real ids: access(2).
        const REAL_IDS = 1024;
        /// The empty path is the start itself (AT_EMPTY_PATH).
        const MAY_BE_EMPTY = 4;
        /// RESOLVE_BENEATH of openat2(2): leaving the start is EXDEV.
        const BENEATH = 8;
        /// RESOLVE_IN_ROOT: the start is the root.
        const IN_ROOT = 16;
        /// RESOLVE_NO_SYMLINKS: any symbolic link is ELOOP.
        const NO_SYMLINKS = 32;
        /// RESOLVE_NO_MAGICLINKS: any link that leads to a file rather than to a path is ELOOP.
        const NO_MAGIC_LINKS = 64;
        /// RESOLVE_NO_XDEV: crossing a mount is EXDEV.
        const NO_CROSSING = 128;
        /// Coming into a mount is no use of it that would keep it from expiring: umount2(2).
        const NO_USE = 2048;
    }
}

/// What a walk found.
pub struct Found<'cx, 'p> {
    /// The directory that has (or would have) the last name.
    pub parent: Path<'cx>,
    /// The last name. Empty where the path ends in the root, `.` or `..`, or at the end of a magic link: then nothing can be made or removed there.
    pub name: Cow<'p, [u8]>,
    /// What is there.
    pub target: Option<Path<'cx>>,
    /// Whether the path ended in a slash, and so asks for a directory.
    pub has_trailing_slash: bool,
    /// Whether the path ended in `.`: rmdir(2) and rename(2) refuse it in a way of their own.
    pub ends_in_dot: bool,
}

/// Where a path starts that is relative to `directory` (a descriptor, or AT_FDCWD).
///
/// # Errors
/// EBADF.
#[inline]
pub fn start<'cx>(directory: i32, path: &[u8], me: &(impl VfsCaller + ?Sized), cx: &'cx Cx) -> Result<Path<'cx>> {
    let fs = me.fs(cx)?;
    if path.first() == Some(&b'/') {
        fs.root(cx)
    } else if directory == general::AT_FDCWD {
        fs.working(cx)
    } else {
        me.files(cx)?.get_even_path(directory, cx)?.location.path(cx)
    }
}

/// The inode of a path.
///
/// # Errors
/// Those of path_resolution(7).
#[inline]
pub fn resolve<'cx>(
    directory: i32,
    path: &[u8],
    flags: WalkFlags,
    me: &(impl VfsCaller + ?Sized),
    cx: &'cx Cx,
) -> Step<Path<'cx>> {
    if path.is_empty() || flags.intersects(WalkFlags::IN_ROOT | WalkFlags::BENEATH) {
        return Ok(walk(start(directory, path, me, cx)?, path, flags, me, cx)?.target.ok_or(Errno::ENOENT)?);
    }
    let root = me.fs(cx)?.root(cx)?;
    let at = if path.first() == Some(&b'/') { root.clone() } else { start(directory, path, me, cx)? };
    let mut walker = Walker { me: me.as_dyn(), cx, flags, root, subject: subject(flags, me, cx)?, at, links: 0 };
    match walker.segment(path)? {
        Outcome::End(end) => Ok(end.target.ok_or(Errno::ENOENT)?),
        Outcome::Link { target, behind } => Ok(walker.go_on(target, path, behind)?.0.target.ok_or(Errno::ENOENT)?),
    }
}

/// Whose permissions count on the way.
#[inline(always)]
fn subject<'cx>(flags: WalkFlags, me: &(impl VfsCaller + ?Sized), cx: &'cx Cx) -> Result<Subject<'cx>> {
    if flags.contains(WalkFlags::REAL_IDS) { Subject::real(me, cx) } else { Subject::of(me, cx) }
}

/// What is at the end of a path, and the directory it is in.
///
/// # Errors
/// Those of path_resolution(7).
pub fn walk<'cx, 'p>(
    start: Path<'cx>,
    path: &'p [u8],
    flags: WalkFlags,
    me: &(impl VfsCaller + ?Sized),
    cx: &'cx Cx,
) -> Step<Found<'cx, 'p>> {
    if path.is_empty() {
        if !flags.contains(WalkFlags::MAY_BE_EMPTY) {
            return Err(Errno::ENOENT.into());
        }
        return Ok(Found {
            parent: start.clone(),
            name: Cow::Borrowed(&[]),
            target: Some(start),
            has_trailing_slash: false,
            ends_in_dot: false,
        });
    }
    let root =
        if flags.intersects(WalkFlags::IN_ROOT | WalkFlags::BENEATH) { start.clone() } else { me.fs(cx)?.root(cx)? };
    let mut walker = Walker { me: me.as_dyn(), cx, flags, root, subject: subject(flags, me, cx)?, at: start, links: 0 };
    if path.first() == Some(&b'/') {
        walker.go_to_root()?;
    }
    match walker.segment(path)? {
        Outcome::End(end) => {
            let name = path.get(end.name.clone()).unwrap_or_default();
            Ok(walker.found(end, Cow::Borrowed(name)))
        }
        Outcome::Link { target, behind } => {
            let (end, rest) = walker.go_on(target, path, behind)?;
            let name = rest.get(end.name.clone()).unwrap_or_default().to_vec();
            Ok(walker.found(end, Cow::Owned(name)))
        }
    }
}

/// How many bytes there are before the first slash.
#[inline(always)]
fn name_len(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let mut len = 0;
    let (words, rest) = bytes.as_chunks::<8>();
    for &word in words {
        // A byte is a slash where this is 0; the lowest one is found exactly.
        let difference = u64::from_le_bytes(word) ^ (ONES * b'/' as u64);
        let zeros = difference.wrapping_sub(ONES) & !difference & (ONES << 7);
        if zeros != 0 {
            return len + zeros.trailing_zeros() as usize / 8;
        }
        len += 8;
    }
    for &byte in rest {
        if byte == b'/' {
            break;
        }
        len += 1;
    }
    len
}

struct Walker<'a, 'cx> {
    me: &'a dyn VfsCaller,
    cx: &'cx Cx,
    flags: WalkFlags,
    root: Path<'cx>,
    subject: Subject<'cx>,
    /// The directory in which the next name is looked up.
    at: Path<'cx>,
    links: u32,
}

/// How far a piece of path led.
enum Outcome<'cx> {
    /// To its end.
    End(End<'cx>),
    /// To a symbolic link; `behind` is where the path goes on behind it.
    Link { target: Vec<u8>, behind: usize },
}

struct End<'cx> {
    name: core::ops::Range<usize>,
    target: Option<Path<'cx>>,
    has_trailing_slash: bool,
    ends_in_dot: bool,
}

impl<'cx> Walker<'_, 'cx> {
    /// Walks on where a symbolic link was met: along its target, and along what is behind it. The end, and the path in which it has its
    /// name.
    #[cold]
    fn go_on(&mut self, target: Vec<u8>, path: &[u8], behind: usize) -> Step<(End<'cx>, Vec<u8>)> {
        let mut rest = target;
        rest.extend_from_slice(path.get(behind..).unwrap_or_default());
        loop {
            if rest.first() == Some(&b'/') {
                self.go_to_root()?;
            }
            match self.segment(&rest)? {
                Outcome::End(end) => return Ok((end, rest)),
                Outcome::Link { target, behind } => {
                    let mut next = target;
                    next.extend_from_slice(rest.get(behind..).unwrap_or_default());
                    rest = next;
                }
            }
        }
    }

    fn found<'p>(self, end: End<'cx>, name: Cow<'p, [u8]>) -> Found<'cx, 'p> {
        Found {
            parent: self.at,
            name,
            target: end.target,
            has_trailing_slash: end.has_trailing_slash,
            ends_in_dot: end.ends_in_dot,
        }
    }

    fn go_to_root(&mut self) -> Result<()> {
        if self.flags.contains(WalkFlags::BENEATH) {
            return Err(Errno::EXDEV);
        }
        self.at = self.root.clone();
        Ok(())
    }

    /// Walks along `path` until its end or a symbolic link that must be followed.
    fn segment(&mut self, path: &[u8]) -> Step<Outcome<'cx>> {
        let mut position = 0;
        loop {
            while path.get(position) == Some(&b'/') {
                position += 1;
            }
            let first = position;
            let end = first + name_len(path.get(first..).unwrap_or_default());
            position = end;
            while path.get(position) == Some(&b'/') {
                position += 1;
            }
            let name = path.get(first..end).unwrap_or_default();
            let is_last = position == path.len();
            let has_trailing_slash = is_last && position != end;
            if name.is_empty() {
                // Only slashes: the root, or what a link to nothing but slashes leads to.
                return Ok(self.end_here(true, false));
            }
            self.enter()?;
            if matches!(name, b"." | b"..") {
                if name.len() == 2 {
                    self.up()?;
                }
                if is_last {
                    return Ok(self.end_here(true, name.len() == 1));
                }
                continue;
            }
            if has_trailing_slash && self.flags.contains(WalkFlags::NO_SLASH) {
                return Err(Errno::EISDIR.into());
            }
            let child = match self.look_up(name) {
                Ok(inode) => inode,
                Err(Stop::Error(Errno::ENOENT)) if is_last && self.flags.contains(WalkFlags::MAY_BE_MISSING) => {
                    return Ok(Outcome::End(End {
                        name: first..end,
                        target: None,
                        has_trailing_slash,
                        ends_in_dot: false,
                    }));
                }
                Err(error) => return Err(error),
            };
            if child.kind != FileKind::Symlink && child.mounts.load(Ordering::Relaxed) == 0 {
                // Nearly all names lead to something of the same mount.
                if !is_last {
                    self.at.inode = child;
                    continue;
                }
                if child.kind == FileKind::Directory || !self.needs_directory(has_trailing_slash) {
                    return Ok(Outcome::End(End {
                        name: first..end,
                        target: Some(Path { mount: self.at.mount.clone(), inode: child }),
                        has_trailing_slash,
                        ends_in_dot: false,
                    }));
                }
                return Err(Errno::ENOTDIR.into());
            }
            let child = Path { mount: self.at.mount.clone(), inode: child };
            let child = self.cross(child)?;
            let needs_directory = self.needs_directory(has_trailing_slash);
            let follows = !is_last || needs_directory || self.flags.contains(WalkFlags::FOLLOW);
            if child.inode.kind == FileKind::Symlink && follows {
                match self.follow(&child)? {
                    // What is behind the name, with its slashes, goes behind the target.
                    Target::Path(target) => return Ok(Outcome::Link { target, behind: end }),
                    Target::Place(place) => {
                        self.at = place;
                        if is_last {
                            return Ok(self.end_here(has_trailing_slash, false));
                        }
                        continue;
                    }
                }
            }
            if is_last {
                if needs_directory && child.inode.kind != FileKind::Directory {
                    return Err(Errno::ENOTDIR.into());
                }
                return Ok(Outcome::End(End {
                    name: first..end,
                    target: Some(child),
                    has_trailing_slash,
                    ends_in_dot: false,
                }));
            }
            self.at = child;
        }
    }

    /// The path ends where the walk is, without a name.
    fn end_here(&self, must_be_directory: bool, ends_in_dot: bool) -> Outcome<'cx> {
        Outcome::End(End {
            name: 0..0,
            target: Some(self.at.clone()),
            has_trailing_slash: must_be_directory,
            ends_in_dot,
        })
    }

    /// Whether a slash behind the last name asks for a directory.
    #[inline(always)]
    fn needs_directory(&self, has_trailing_slash: bool) -> bool {
        has_trailing_slash && !self.flags.contains(WalkFlags::NAME)
    }

    /// Checks that a name may be looked up where the walk is.
    #[inline(always)]
    fn enter(&self) -> Result<()> {
        if self.at.inode.kind != FileKind::Directory {
            return Err(Errno::ENOTDIR);
        }
        self.subject.check(&self.at.inode, Want::EXECUTE, self.cx)
    }

    #[inline(always)]
    fn look_up(&self, name: &[u8]) -> Step<TempRc<'cx, Inode>> {
        if name.len() > NAME_MAX {
            return Err(Errno::ENAMETOOLONG.into());
        }
        self.at.inode.ops.lookup(&self.at.inode, name, self.me, self.cx)
    }

    fn up(&mut self) -> Result<()> {
        if self.flags.contains(WalkFlags::BENEATH) && self.at.is(&self.root) {
            return Err(Errno::EXDEV);
        }
        let mount = self.at.mount.id;
        self.at = self.at.clone().parent(&self.root, self.cx)?;
        self.check_crossing(mount)
    }

    #[inline(always)]
    fn cross(&self, child: Path<'cx>) -> Result<Path<'cx>> {
        let child = child.mounted(self.cx)?;
        if self.flags.contains(WalkFlags::NO_CROSSING) && child.mount.id != self.at.mount.id {
            return Err(Errno::EXDEV);
        }
        if !self.flags.contains(WalkFlags::NO_USE) {
            child.mount.is_used();
        }
        Ok(child)
    }

    fn check_crossing(&self, from: u32) -> Result<()> {
        if self.flags.contains(WalkFlags::NO_CROSSING) && self.at.mount.id != from {
            return Err(Errno::EXDEV);
        }
        Ok(())
    }

    fn follow(&mut self, link: &Path<'cx>) -> Step<Target<'cx>> {
        self.links += 1;
        if self.links > MOST_LINKS
            || self.flags.contains(WalkFlags::NO_SYMLINKS)
            || self.at.mount.flags().contains(MountFlags::NO_SYMLINK_FOLLOW)
        {
            return Err(Errno::ELOOP.into());
        }
        link.mount.touch_accessed(&link.inode, self.cx);
        if let Some(jump) = link.inode.ops.jump(self.me, self.cx) {
            if self.flags.contains(WalkFlags::NO_MAGIC_LINKS) {
                return Err(Errno::ELOOP.into());
            }
            if self.flags.intersects(WalkFlags::BENEATH | WalkFlags::IN_ROOT) {
                return Err(Errno::EXDEV.into());
            }
            return Ok(Target::Place(match jump? {
                Jump::Location(location) => location.path(self.cx)?,
                Jump::OpenFile(file) => file.upgrade(self.cx)?.location.path(self.cx)?,
            }));
        }
        let target = link.inode.ops.read_link(self.me, self.cx)?;
        if target.is_empty() {
            return Err(Errno::ENOENT.into());
        }
        if target.len() >= PATH_MAX {
            return Err(Errno::ENAMETOOLONG.into());
        }
        Ok(Target::Path(target))
    }
}

/// Where a symbolic link leads.
enum Target<'cx> {
    Path(Vec<u8>),
    Place(Path<'cx>),
}
