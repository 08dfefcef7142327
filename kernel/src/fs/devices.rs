//! Device nodes and their drivers: a device node says which device, and the VFS is told at boot who opens it.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use frame::Cx;
use refs::{NoSuspend, SpinLock, TempRc, WeakRc};

use super::{Creation, DeviceNumber, File, FileKind, Inode, Named, OpenFlags, VfsCaller, notify};
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

/// devtmpfs, once it was made.
struct Nodes {
    root: WeakRc<Inode>,
    /// Directories that were made for nodes, by name.
    directories: BTreeMap<&'static str, WeakRc<Inode>>,
}

static NODES: SpinLock<Option<Nodes>> = SpinLock::new(None);

/// Says where nodes of devices that come later are to be. Called once, by who makes devtmpfs.
pub fn register_nodes(root: WeakRc<Inode>, cx: &impl NoSuspend) {
    *NODES.lock(cx) = Some(Nodes { root, directories: BTreeMap::new() });
}

/// The node of a device that may go again.
pub struct Node {
    directory: WeakRc<Inode>,
    name: Box<[u8]>,
    inode: WeakRc<Inode>,
}

fn create<'cx>(
    directory: &TempRc<'cx, Inode>,
    name: &[u8],
    kind: FileKind,
    permissions: u32,
    device: DeviceNumber,
    cx: &'cx Cx,
) -> Result<TempRc<'cx, Inode>> {
    let what = Creation { kind, permissions, uid: 0, gid: 0, device, target: &[], attributes: &[] };
    let made = at_once(directory.ops.create(directory, name, &what, cx))?;
    notify::created(directory, name, &made, cx);
    Ok(made)
}

fn root(cx: &Cx) -> Option<TempRc<'_, Inode>> {
    let root = NODES.lock(cx).as_ref().map(|nodes| nodes.root)?;
    root.upgrade(cx).ok()
}

/// Makes the node of a block device that has come, in devtmpfs. Where there is none, who makes one finds the device.
///
/// # Errors
/// ENOSPC, ENOMEM.
pub fn add_node(name: &[u8], device: DeviceNumber, cx: &Cx) -> Result<()> {
    let Some(root) = root(cx) else { return Ok(()) };
    match create(&root, name, FileKind::BlockDevice, 0o660, device, cx) {
        Ok(_) | Err(Errno::EEXIST) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes the node of a character device that has come and may go, in a directory of devtmpfs. `None` where there is no devtmpfs yet: who makes it asks for the node.
///
/// # Errors
/// EEXIST: a program has made something of that name. ENOSPC, ENOMEM.
pub fn add_node_in(directory: &'static str, name: &[u8], device: DeviceNumber, cx: &Cx) -> Result<Option<Node>> {
    let Some(root) = root(cx) else { return Ok(None) };
    let known = NODES.lock(cx).as_ref().and_then(|nodes| nodes.directories.get(directory).copied());
    let parent = match known.and_then(|known| known.upgrade(cx).ok()).filter(|known| !known.is_removed(cx)) {
        Some(parent) => parent,
        None => {
            let made = create(&root, directory.as_bytes(), FileKind::Directory, 0o755, DeviceNumber::default(), cx)?;
            if let Some(nodes) = &mut *NODES.lock(cx) {
                nodes.directories.insert(directory, made.downgrade());
            }
            made
        }
    };
    let inode = create(&parent, name, FileKind::CharacterDevice, 0o600, device, cx)?;
    Ok(Some(Node { directory: parent.downgrade(), name: name.into(), inode: inode.downgrade() }))
}

/// Takes a device's node away, if it is where it was made.
pub fn remove_node(node: &Node, cx: &Cx) {
    let (Ok(directory), Ok(inode)) = (node.directory.upgrade(cx), node.inode.upgrade(cx)) else { return };
    let at = Named { me: None, directory: &directory, name: &node.name, inode: Some(&inode) };
    // Programs may have moved it, or mounted something on it: then it is theirs.
    if at_once(directory.ops.unlink(&at, cx)).is_ok() {
        notify::unlinked(&directory, &node.name, &inode, cx);
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
