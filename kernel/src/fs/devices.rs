//! Device nodes and their drivers: a device node says which device, and the VFS is told at boot who opens it.

use alloc::boxed::Box;

use frame::Cx;
use refs::{NoSuspend, SpinLock, WeakRc};

use super::{Creation, DeviceNumber, File, FileKind, Inode, OpenFlags, VfsCaller};
use crate::error::{Errno, Result};
use crate::step::{Step, at_once};

/// Opens a device.
pub type OpenDevice = fn(DeviceNumber, OpenFlags, &dyn VfsCaller, &Cx) -> Step<Box<dyn File>>;

/// Who opens the device nodes of a major number.
pub struct Driver {
    /// [`FileKind::CharacterDevice`] or [`FileKind::BlockDevice`].
    pub kind: FileKind,
    /// The major number.
    pub major: u32,
    /// Its first minor number.
    pub first_minor: u32,
    /// And the last.
    pub last_minor: u32,
    /// Opens one. ENXIO if there is no such device.
    pub open: OpenDevice,
}

/// A file that devtmpfs has from the start.
pub struct DeviceNode {
    /// Its path below `/dev`; directories on the way are made.
    pub path: &'static str,
    /// Character or block device.
    pub kind: FileKind,
    /// Its permissions.
    pub permissions: u32,
    /// Which device.
    pub device: DeviceNumber,
}

static DRIVERS: SpinLock<&'static [Driver]> = SpinLock::new(&[]);

/// Says who opens which device nodes. Called once, at boot.
pub fn register_drivers(drivers: &'static [Driver], cx: &impl NoSuspend) {
    *DRIVERS.lock(cx) = drivers;
}

/// The root of devtmpfs, once it was made.
static NODES: SpinLock<Option<WeakRc<Inode>>> = SpinLock::new(None);

/// Says where nodes of devices that come later are to be. Called once, by who makes devtmpfs.
pub fn register_nodes(root: WeakRc<Inode>, cx: &impl NoSuspend) {
    *NODES.lock(cx) = Some(root);
}

/// Makes the node of a block device that has come, in devtmpfs. Where there is none, who makes one finds the device.
///
/// # Errors
/// ENOSPC, ENOMEM.
pub fn add_node(name: &[u8], device: DeviceNumber, cx: &Cx) -> Result<()> {
    let root = *NODES.lock(cx);
    let Some(root) = root.and_then(|root| root.upgrade(cx).ok()) else { return Ok(()) };
    let (kind, permissions) = (FileKind::BlockDevice, 0o660);
    let what = Creation { kind, permissions, uid: 0, gid: 0, device, target: &[] };
    match at_once(root.ops.create(&root, name, &what, cx)) {
        Ok(_) | Err(Errno::EEXIST) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Opens a device.
///
/// # Errors
/// ENXIO where there is no driver or no such device; the driver's own.
pub fn open_device(
    kind: FileKind,
    device: DeviceNumber,
    flags: OpenFlags,
    me: &dyn VfsCaller,
    cx: &Cx,
) -> Step<Box<dyn File>> {
    let drivers = *DRIVERS.lock(cx);
    let driver = drivers.iter().find(|driver| {
        driver.kind == kind
            && driver.major == device.major
            && (driver.first_minor..=driver.last_minor).contains(&device.minor)
    });
    match driver {
        Some(driver) => (driver.open)(device, flags, me, cx),
        None => Err(Errno::ENXIO.into()),
    }
}
