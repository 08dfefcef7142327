//! Which types of file system can be mounted: the VFS is told at boot.

use alloc::boxed::Box;
use alloc::vec::Vec;

use frame::Cx;
use linux_raw_sys::general::AT_FDCWD;
use refs::{NoSuspend, SpinLock, StrongRc, Waker};

use super::walk::{self, WalkFlags};
use super::{DeviceNumber, FileKind, FileSystem, Inode, MountFlags, VfsCaller};
use crate::error::{Errno, Result};
use crate::step::Step;

/// A new instance and its root directory.
pub type Instance = (StrongRc<FileSystem>, StrongRc<Inode>);

/// A type of file system, as in `/proc/filesystems`.
pub struct FileSystemType {
    /// Its name for mount(2).
    pub name: &'static str,
    /// Where an instance comes from.
    pub origin: Origin,
    /// Looks whether an option is one of its own, before there is an instance: fsconfig(2).
    pub check: fn(option: &[u8]) -> Checked,
}

impl FileSystemType {
    /// Whether nothing can be mounted without a source.
    pub fn needs_source(&self) -> bool {
        matches!(self.origin, Origin::Device(_))
    }
}

/// What is wrong with an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadOption {
    /// There is none of that name.
    Unknown,
    /// Its value means nothing.
    Value,
}

/// Whether an option is one that is understood.
pub type Checked = core::result::Result<(), BadOption>;

/// An option's name and value.
pub fn split_option(option: &[u8]) -> (&[u8], &[u8]) {
    let at = option.iter().position(|&byte| byte == b'=').unwrap_or(option.len());
    let (key, value) = option.split_at(at);
    (key, value.get(1..).unwrap_or_default())
}

/// Checks that an option has one of these names.
///
/// # Errors
/// `Unknown`.
pub fn check_name(option: &[u8], names: &[&str]) -> Checked {
    let (key, _) = split_option(option);
    if names.iter().any(|name| name.as_bytes() == key) { Ok(()) } else { Err(BadOption::Unknown) }
}

/// Makes an instance of directories that there are, and says what its mount does not allow.
pub type MountDirectories = fn(options: &[u8], me: &dyn VfsCaller, cx: &Cx) -> Step<(Instance, MountFlags)>;

/// Where the instances of a type of file system come from. Its function makes one, or shares the one there is; EINVAL for options that are not understood.
pub enum Origin {
    /// Memory: they are made of nothing but the options of mount(2).
    Memory(fn(options: &[u8], cx: &Cx) -> Result<Instance>),
    /// The same, and the options of an instance can be changed (MS_REMOUNT).
    ChangeableMemory(
        fn(options: &[u8], cx: &Cx) -> Result<Instance>,
        fn(&FileSystem, options: &[u8], cx: &Cx) -> Result<()>,
    ),
    /// Directories that there are already, which the options name for whoever mounts; and what the mount does not allow because of them.
    Directories(MountDirectories),
    /// A block device, whose content may have to be waited for.
    Device(fn(&OnDevice<'_>) -> Result<Box<dyn Opening>>),
    /// A server, by its name.
    Server(fn(&OnServer<'_>, cx: &Cx) -> Step<Instance>),
}

/// What is to be mounted, in the words of mount(2).
pub struct Request<'a> {
    /// Which type of file system.
    pub kind: &'static FileSystemType,
    /// The source.
    pub source: &'a [u8],
    /// The options, with commas between them.
    pub options: &'a [u8],
    /// Whether nothing is to be written.
    pub is_read_only: bool,
}

/// How far the making of an instance came.
pub enum Made {
    /// There it is, with what its mount does not allow.
    Instance(Instance, MountFlags),
    /// What is on a device is opened.
    Opening(Box<dyn Opening>),
}

impl Request<'_> {
    /// Makes an instance, or begins to.
    ///
    /// # Errors
    /// Those of mount(2).
    pub fn begin(&self, me: &dyn VfsCaller, cx: &Cx) -> Step<Made> {
        let allows_all = MountFlags::empty();
        match self.kind.origin {
            Origin::Memory(make) | Origin::ChangeableMemory(make, _) => {
                Ok(Made::Instance(make(self.options, cx)?, allows_all))
            }
            Origin::Directories(make) => {
                let (instance, access) = make(self.options, me, cx)?;
                Ok(Made::Instance(instance, access))
            }
            Origin::Device(make) => {
                let device = block_device(self.source, me, cx)?;
                let request = OnDevice { device, is_read_only: self.is_read_only, options: self.options };
                Ok(Made::Opening(make(&request)?))
            }
            Origin::Server(make) => {
                let instance = make(&OnServer { name: self.source, options: self.options }, cx)?;
                Ok(Made::Instance(instance, allows_all))
            }
        }
    }
}

/// The block device whose node is at a path.
fn block_device(path: &[u8], me: &dyn VfsCaller, cx: &Cx) -> Step<DeviceNumber> {
    let node = walk::resolve(AT_FDCWD, path, WalkFlags::FOLLOW, me, cx)?;
    if node.inode.kind != FileKind::BlockDevice {
        return Err(Errno::ENOTBLK.into());
    }
    if node.mount.flags().contains(MountFlags::NO_DEVICES) {
        return Err(Errno::EACCES.into());
    }
    Ok(node.inode.device)
}

/// An instance that is being made of what is on a device. Who drops it before it is done gives that up.
pub trait Opening: Send {
    /// Goes on; the instance, when it is done.
    ///
    /// # Errors
    /// Those of mount(2); whatever a step may say.
    fn step(&mut self, waker: Option<Waker>, cx: &Cx) -> Step<Instance>;
}

/// What is to be mounted of a server.
pub struct OnServer<'a> {
    /// Which one.
    pub name: &'a [u8],
    /// The options of mount(2).
    pub options: &'a [u8],
}

/// What is to be mounted of a block device.
pub struct OnDevice<'a> {
    /// Which device.
    pub device: DeviceNumber,
    /// Whether nothing is to be written there.
    pub is_read_only: bool,
    /// The options of mount(2).
    pub options: &'a [u8],
}

static TYPES: SpinLock<&'static [FileSystemType]> = SpinLock::new(&[]);

/// Says which file systems can be mounted. Called once, at boot.
pub fn register_types(types: &'static [FileSystemType], cx: &impl NoSuspend) {
    *TYPES.lock(cx) = types;
}

/// The file systems that can be mounted.
pub fn types(cx: &impl NoSuspend) -> &'static [FileSystemType] {
    *TYPES.lock(cx)
}

impl OnDevice<'_> {
    /// The options as `/proc/mounts` shows them, with a leading comma.
    pub fn options_shown(&self) -> Vec<u8> {
        let mut shown = Vec::new();
        if !self.options.is_empty() {
            shown.push(b',');
            shown.extend_from_slice(self.options);
        }
        shown
    }
}

/// Changes the options of an instance (MS_REMOUNT), if its type can; else they mean nothing.
///
/// # Errors
/// EINVAL for options that are not understood, or cannot be from now on.
pub fn change_options(file_system: &FileSystem, options: &[u8], cx: &Cx) -> Result<()> {
    match find(file_system.name.as_bytes(), cx).map(|kind| &kind.origin) {
        Ok(Origin::ChangeableMemory(_, change)) => change(file_system, options, cx),
        _ => Ok(()),
    }
}

/// A type of file system by name.
///
/// # Errors
/// ENODEV for a name that is not known.
pub fn find(name: &[u8], cx: &impl NoSuspend) -> Result<&'static FileSystemType> {
    types(cx).iter().find(|kind| kind.name.as_bytes() == name).ok_or(Errno::ENODEV)
}
