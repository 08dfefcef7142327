//! The file systems that programs expect: `/dev`, `/dev/pts`, `/dev/shm`, `/proc`, `/sys`, `/tmp`, and `/run` where the root is on a disk.
//!
//! Ebb mounts `/dev` itself, Linux mounts nothing: so each is mounted only where its sign of life is missing. What cannot
//! be mounted is not fatal; a program that needs it will say so.

use rustix::mount::{MountFlags, mount};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

struct Mount {
    kind: &'static str,
    target: &'static str,
    /// A file that is there exactly if the file system is mounted: a root file system brings names like `/dev/null` of its own.
    sign: &'static str,
}

impl Mount {
    fn mount_if_missing(&self) -> io::Result<()> {
        if Path::new(self.sign).exists() {
            return Ok(());
        }
        fs::create_dir_all(self.target)?;
        Ok(mount(self.kind, self.target, self.kind, MountFlags::empty(), None::<&std::ffi::CStr>)?)
    }
}

const DEVICES: Mount = Mount { kind: "devtmpfs", target: "/dev", sign: "/dev/ttyS1" };

const MOUNTS: [Mount; 5] = [
    DEVICES,
    Mount { kind: "devpts", target: "/dev/pts", sign: "/dev/pts/ptmx" },
    // Where the kernel has this directory, it is in memory as it is.
    Mount { kind: "tmpfs", target: "/dev/shm", sign: "/dev/shm" },
    Mount { kind: "proc", target: "/proc", sign: "/proc/self" },
    Mount { kind: "sysfs", target: "/sys", sign: "/sys/kernel" },
];

/// Mounted for a program that wants a control group of its own, and not before.
const CONTROL_GROUPS: Mount =
    Mount { kind: "cgroup2", target: CONTROL_GROUP_ROOT, sign: "/sys/fs/cgroup/cgroup.controllers" };

/// Where the control groups are.
pub const CONTROL_GROUP_ROOT: &str = "/sys/fs/cgroup";

/// The names in `/dev` that a program's own descriptors have.
const LINKS: [(&str, &str); 4] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
];

/// Mounts the control groups, of version 2.
pub fn mount_control_groups() -> io::Result<()> {
    CONTROL_GROUPS.mount_if_missing()
}

/// Mounts the devices, if the kernel did not: what is on one can be mounted then.
pub fn mount_devices() -> io::Result<()> {
    DEVICES.mount_if_missing()
}

/// Mounts an empty `/run`, where a root file system that outlives the machine has one: what was in it told of processes of an earlier boot.
pub fn mount_run() {
    if !Path::new("/run").is_dir() {
        return;
    }
    let locks = Path::new("/run/lock");
    let mounted = mount("tmpfs", "/run", "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, Some(c"mode=755"));
    let made = mounted.map_err(io::Error::from).and_then(|()| {
        fs::create_dir(locks)?;
        fs::set_permissions(locks, fs::Permissions::from_mode(0o1777))
    });
    if let Err(error) = made {
        eprintln!("ebb agent: cannot mount /run: {error}");
    }
}

/// Mounts what is not mounted yet, and makes `/tmp` writable for everyone.
pub fn mount_what_is_missing() {
    for file_system in MOUNTS {
        if let Err(error) = file_system.mount_if_missing()
            && file_system.kind != "sysfs"
        {
            eprintln!("ebb agent: cannot mount {}: {error}", file_system.target);
        }
    }
    for (link, target) in LINKS {
        // The kernel may have made them already.
        let _ = std::os::unix::fs::symlink(target, link);
    }
    if fs::create_dir_all("/tmp").is_ok() {
        // A read-only root file system keeps the mode it has.
        let _ = fs::set_permissions("/tmp", fs::Permissions::from_mode(0o1777));
    }
}
