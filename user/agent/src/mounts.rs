//! The file systems that programs expect: `/dev`, `/dev/pts`, `/proc`, `/sys`, `/tmp`.
//!
//! Ebb mounts `/dev` itself, Linux mounts nothing: so each is mounted only where its sign of life is missing. What cannot
//! be mounted is not fatal; a program that needs it will say so.

use rustix::mount::{MountFlags, mount};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

struct Mount {
    kind: &'static str,
    target: &'static str,
    /// A file that is there exactly if the file system is mounted: a root file system brings names like `/dev/null` of its own.
    sign: &'static str,
}

const MOUNTS: [Mount; 4] = [
    Mount { kind: "devtmpfs", target: "/dev", sign: "/dev/ttyS1" },
    Mount { kind: "devpts", target: "/dev/pts", sign: "/dev/pts/ptmx" },
    Mount { kind: "proc", target: "/proc", sign: "/proc/self" },
    Mount { kind: "sysfs", target: "/sys", sign: "/sys/kernel" },
];

/// The names in `/dev` that a program's own descriptors have.
const LINKS: [(&str, &str); 4] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
];

/// Mounts what is not mounted yet, and makes `/tmp` writable for everyone.
pub fn mount_what_is_missing() {
    for Mount { kind, target, sign } in MOUNTS {
        if Path::new(sign).exists() {
            continue;
        }
        let mounted = fs::create_dir_all(target)
            .and_then(|()| Ok(mount(kind, target, kind, MountFlags::empty(), None::<&std::ffi::CStr>)?));
        if let Err(error) = mounted
            && kind != "sysfs"
        {
            eprintln!("ebb agent: cannot mount {target}: {error}");
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
