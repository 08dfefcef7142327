//! The file systems that programs expect: `/dev`, `/dev/pts`, `/proc`, `/sys`, `/tmp`.
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

const MOUNTS: [Mount; 4] = [
    Mount { kind: "devtmpfs", target: "/dev", sign: "/dev/ttyS1" },
    Mount { kind: "devpts", target: "/dev/pts", sign: "/dev/pts/ptmx" },
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
