//! The list of all file systems, and the tree as it is when the first program starts.

use alloc::vec::Vec;

use frame::Cx;
use frame::mm::BootModule;
use linux_raw_sys::general::MS_NOSUID;
use refs::{SpinLock, StrongRc};

use super::cgroup;
use super::devices::{register_drivers, register_nodes};
use super::initramfs::{self, make_directory};
use super::overlay;
use super::proc;
use super::remote;
use super::stored;
use super::stored::erofs::Erofs;
use super::stored::exfat::Exfat;
use super::stored::ext::Ext;
use super::stored::squashfs::Squash;
use super::tmpfs::{self, Directory};
use super::types::{Origin, check_name, register_types};
use super::{Creation, DeviceNumber, FileKind, FileSystemType, Instance, MOUNTS, Mount, MountFlags, Path};
use super::{devpts, mqueue, sysfs};
use crate::block;
use crate::drivers::{self, DRIVERS, NODES, virtio, vport};
use crate::error::{Errno, Result};
use crate::net::devices as network_devices;
use crate::step::at_once;

/// All types of file system.
const TYPES: &[FileSystemType] = &[
    FileSystemType {
        name: "tmpfs",
        origin: Origin::ChangeableMemory(|options, _| tmpfs::new("tmpfs", options), tmpfs::change_options),
        check: tmpfs::check_option,
    },
    FileSystemType {
        name: "ramfs",
        origin: Origin::Memory(|options, _| tmpfs::new("ramfs", options)),
        check: tmpfs::check_option,
    },
    FileSystemType { name: "devtmpfs", origin: Origin::Memory(|_, cx| devices(cx)), check: tmpfs::check_option },
    FileSystemType {
        name: "proc",
        origin: Origin::Memory(|_, cx| proc::instance(cx)),
        check: |option| check_name(option, &["hidepid", "gid", "subset"]),
    },
    FileSystemType {
        name: "sysfs",
        origin: Origin::Memory(|_, cx| {
            sysfs::new(ports(cx), hwrng(), drivers::usb::is_there().then_some(inputs), networks, cx)
        }),
        check: |option| check_name(option, &[]),
    },
    FileSystemType {
        name: "cgroup2",
        origin: Origin::Memory(cgroup::instance),
        check: |option| check_name(option, cgroup::OPTIONS),
    },
    FileSystemType {
        name: "overlay",
        origin: Origin::Directories(overlay::mount),
        check: |option| check_name(option, overlay::OPTIONS),
    },
    FileSystemType { name: "9p", origin: Origin::Server(remote::mount), check: |_| Ok(()) },
    FileSystemType {
        name: "mqueue",
        origin: Origin::Memory(|_, cx| mqueue::instance(cx)),
        check: |option| check_name(option, &[]),
    },
    FileSystemType {
        name: "devpts",
        origin: Origin::Memory(|_, cx| devpts::instance(cx)),
        check: |option| check_name(option, &["uid", "gid", "mode", "ptmxmode", "newinstance", "max"]),
    },
    FileSystemType {
        name: "ext4",
        origin: Origin::Device(|request| stored::mount::<Ext>("ext4", request)),
        check: stored::check_option::<Ext>,
    },
    FileSystemType {
        name: "ext3",
        origin: Origin::Device(|request| stored::mount::<Ext>("ext3", request)),
        check: stored::check_option::<Ext>,
    },
    FileSystemType {
        name: "ext2",
        origin: Origin::Device(|request| stored::mount::<Ext>("ext2", request)),
        check: stored::check_option::<Ext>,
    },
    FileSystemType {
        name: "erofs",
        origin: Origin::Device(|request| stored::mount::<Erofs>("erofs", request)),
        check: stored::check_option::<Erofs>,
    },
    FileSystemType {
        name: "exfat",
        origin: Origin::Device(|request| stored::mount::<Exfat>("exfat", request)),
        check: stored::check_option::<Exfat>,
    },
    FileSystemType {
        name: "squashfs",
        origin: Origin::Device(|request| stored::mount::<Squash>("squashfs", request)),
        check: stored::check_option::<Squash>,
    },
];

/// The ports to the host, as sysfs shows them.
fn ports(cx: &Cx) -> Vec<sysfs::Port> {
    let shown = |port: vport::Named| {
        let device = DeviceNumber { major: vport::MAJOR, minor: port.minor };
        sysfs::Port { file: port.file, device, name: port.name }
    };
    vport::ports(cx).into_iter().map(shown).collect()
}

/// The input devices that there are just now, as sysfs shows them.
fn inputs(cx: &Cx) -> Vec<sysfs::Input> {
    let shown = |input: drivers::input::show::Named| {
        let capabilities = drivers::input::show::capabilities(&input.description);
        let id = input.description.id;
        let drivers::input::Description { name, phys, uniq, .. } = input.description;
        sysfs::Input {
            number: input.number,
            serial: input.serial,
            device: input.device,
            texts: [("name", name), ("phys", phys), ("uniq", uniq)],
            id: [("bustype", id.bus), ("vendor", id.vendor), ("product", id.product), ("version", id.version)],
            capabilities: capabilities.map(|(name, bits)| (name.to_ascii_lowercase(), bits)),
        }
    };
    drivers::input::show::all(cx).into_iter().map(shown).collect()
}

/// The network devices that there are just now, as sysfs shows them.
fn networks(cx: &Cx) -> Vec<sysfs::Network> {
    let shown = |device: network_devices::Device| sysfs::Network {
        index: device.index,
        name: device.name,
        mtu: device.mtu,
        hardware: device.hardware,
        address: device.address,
        flags: device.configured_flags(),
        is_up: device.is_up(),
        is_loopback: device.is_loopback(),
        queue_length: network_devices::QUEUE_LENGTH,
        traffic: device.traffic().map(|counts| sysfs::Traffic {
            frames: counts.frames,
            bytes: counts.bytes,
            dropped: counts.dropped,
        }),
    };
    network_devices::all(cx).into_iter().map(shown).collect()
}

/// The source of random numbers, as sysfs shows it.
fn hwrng() -> Option<sysfs::Hwrng> {
    virtio::rng::is_there().then_some(sysfs::Hwrng { name: virtio::rng::NAME, device: drivers::HWRNG })
}

/// The one instance of devtmpfs.
static DEVICES: SpinLock<Option<Instance>> = SpinLock::new(None);

fn devices(cx: &Cx) -> Result<Instance> {
    let share = |(file_system, root): &Instance| (file_system.share(), root.share());
    if let Some(instance) = &*DEVICES.lock(cx) {
        return Ok(share(instance));
    }
    let instance = tmpfs::new("devtmpfs", b"mode=755")?;
    let root = instance.1.get(cx);
    for node in NODES {
        let mut directory = root.clone();
        let mut parts = node.path.as_bytes().split(|&byte| byte == b'/').peekable();
        while let Some(name) = parts.next() {
            let existing = directory.ops_as::<Directory>().and_then(|names| names.find(name, cx));
            directory = match existing {
                Some(existing) => existing,
                None if parts.peek().is_some() => make_directory(&directory, name, 0o755, cx)?,
                None => {
                    let what = Creation {
                        kind: node.kind,
                        permissions: node.permissions,
                        uid: 0,
                        gid: 0,
                        device: node.device,
                        target: &[],
                        attributes: &[],
                    };
                    at_once(directory.ops.create(&directory, name, &what, cx))?
                }
            };
        }
    }
    let volumes = block::disks(cx).into_iter().flat_map(|disk| disk.volumes(cx));
    let disks = volumes.map(|volume| (FileKind::BlockDevice, 0o660, volume.name(), (volume.major(), volume.minor())));
    let ports = vport::ports(cx).into_iter();
    let ports = ports.map(|port| (FileKind::CharacterDevice, 0o600, port.file, (vport::MAJOR, port.minor)));
    let hwrng = virtio::rng::is_there()
        .then(|| (FileKind::CharacterDevice, 0o600, "hwrng".into(), (drivers::HWRNG.major, drivers::HWRNG.minor)));
    for (kind, permissions, name, (major, minor)) in disks.chain(ports).chain(hwrng) {
        let device = DeviceNumber { major, minor };
        let what = Creation { kind, permissions, uid: 0, gid: 0, device, target: &[], attributes: &[] };
        at_once(root.ops.create(&root, name.as_bytes(), &what, cx))?;
    }
    for name in ["pts", "shm"] {
        make_directory(&root, name.as_bytes(), if name == "shm" { 0o1777 } else { 0o755 }, cx)?;
    }
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ] {
        let what = Creation {
            kind: FileKind::Symlink,
            permissions: 0o777,
            uid: 0,
            gid: 0,
            device: Default::default(),
            target: target.as_bytes(),
            attributes: &[],
        };
        at_once(root.ops.create(&root, name.as_bytes(), &what, cx))?;
    }
    register_nodes(root.downgrade(), cx);
    if drivers::usb::is_there() {
        drivers::input::make_nodes(cx);
    }
    let shared = share(&instance);
    *DEVICES.lock(cx) = Some(instance);
    Ok(shared)
}

/// Tells the VFS of all file systems and drivers, and makes the tree: the root file system with what the initial ram disk holds, and
/// devtmpfs on `/dev`. Called once, before the first program.
///
/// # Errors
/// ENOMEM if there is not room for all of it. A broken archive is logged, and what could be unpacked is there.
pub fn mount_root(archive: Option<BootModule>, cx: &Cx) -> Result<()> {
    register_types(TYPES, cx);
    register_drivers(DRIVERS, cx);
    let (file_system, root) = tmpfs::new("tmpfs", b"mode=755,size=80%")?;
    let place = root.downgrade();
    if let Some(mut archive) = archive
        && let Err(failure) = initramfs::unpack(&root, &mut archive, cx)
    {
        if failure.lacks_memory() {
            return Err(Errno::ENOMEM);
        }
        crate::log!("the initial ram disk cannot be unpacked completely: {failure}");
    }
    MOUNTS.attach(
        StrongRc::new(Mount::new(file_system, root, b"tmpfs".to_vec(), MountFlags::of_mount(0))),
        None,
        cx,
    )?;
    let root = place.upgrade(cx)?;
    let point = match root.ops_as::<Directory>().and_then(|names| names.find(b"dev", cx)) {
        Some(point) => point,
        None => make_directory(&root, b"dev", 0o755, cx)?,
    };
    if point.kind == FileKind::Directory {
        let (file_system, devices) = devices(cx)?;
        let mount = Mount::new(file_system, devices, Vec::from(*b"devtmpfs"), MountFlags::of_mount(MS_NOSUID));
        let on = Path { mount: MOUNTS.root(cx).ok_or(Errno::ENOENT)?.mount, inode: point };
        MOUNTS.attach(StrongRc::new(mount), Some(&on), cx)?;
    }
    Ok(())
}
