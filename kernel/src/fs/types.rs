//! Which types of file system can be mounted: the VFS is told at boot.

use alloc::boxed::Box;
use alloc::vec::Vec;

use frame::Cx;
use refs::{NoSuspend, SpinLock, StrongRc, Waker};

use super::{DeviceNumber, FileSystem, Inode, MountFlags, VfsCaller};
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
}

/// Makes an instance of directories that there are, and says what its mount does not allow.
pub type MountDirectories = fn(options: &[u8], me: &dyn VfsCaller, cx: &Cx) -> Step<(Instance, MountFlags)>;

/// Where the instances of a type of file system come from. Its function makes one, or shares the one there is; EINVAL for options that are not understood.
pub enum Origin {
    /// Memory: they are made of nothing but the options of mount(2).
    Memory(fn(options: &[u8], cx: &Cx) -> Result<Instance>),
    /// Directories that there are already, which the options name for whoever mounts; and what the mount does not allow because of them.
    Directories(MountDirectories),
    /// A block device, whose content may have to be waited for.
    Device(fn(&OnDevice<'_>) -> Result<Box<dyn Opening>>),
    /// A server, by its name.
    Server(fn(&OnServer<'_>, cx: &Cx) -> Step<Instance>),
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

/// A type of file system by name.
///
/// # Errors
/// ENODEV for a name that is not known.
pub fn find(name: &[u8], cx: &impl NoSuspend) -> Result<&'static FileSystemType> {
    types(cx).iter().find(|kind| kind.name.as_bytes() == name).ok_or(Errno::ENODEV)
}
