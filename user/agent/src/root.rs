//! A root file system on a disk: an image that is only read, with what programs write kept in memory; or one that is written.
//!
//! The kernel starts the agent from the archive that the host made. Here the image is mounted (under an overlay whose upper layer is a tmpfs, if it is only read), and becomes the root of the agent and of all that it
//! starts. The archive stays where it is, out of their reach; the agent goes back there to unmount what was written.

use crate::{children, mounts};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::ffi::{CString, OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Where all of it is mounted, in the archive.
const PLACE: &str = "/.ebb/root";

/// The option by which the host says that the image itself is written.
const WRITTEN: &str = "rw";

/// The root that was entered.
pub struct Root {
    /// Where the agent and what it starts find the agent.
    pub own_path: OsString,
    /// It is not the archive.
    pub is_entered: bool,
    /// The archive's root directory, where the image itself is written.
    outside: Option<OwnedFd>,
}

impl Root {
    /// The root that the machine starts with.
    pub fn of_archive(own_path: OsString) -> Self {
        Root { own_path, is_entered: false, outside: None }
    }

    /// Ends all other processes and unmounts the image, if it is written, so that nothing is left for who mounts it next.
    pub fn leave(self) -> io::Result<()> {
        let Some(outside) = self.outside else { return Ok(()) };
        children::kill_all_others();
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        // Those that were mounted last come first.
        for place in mounts.lines().rev().filter_map(|line| line.split(' ').nth(1)).filter(|place| *place != "/") {
            // The agent itself uses /dev. What is under a name that is written otherwise here goes with the rest.
            let _ = unmount(place, UnmountFlags::DETACH);
        }
        rustix::process::fchdir(&outside)?;
        rustix::process::chroot(".")?;
        let image = Path::new(PLACE).join("image");
        unmount(&image, UnmountFlags::empty()).or_else(|_| unmount(&image, UnmountFlags::DETACH))?;
        Ok(())
    }
}

/// Makes what is on `device` (or what the server of that name has), a file system of the type `kind`, the root. The agent, which is the file `own_path`, is there as well.
pub fn enter(device: &OsStr, kind: &OsStr, options: &OsStr, own_path: &OsStr) -> io::Result<Root> {
    let [lower, memory, merged] = ["image", "memory", "merged"].map(|name| Path::new(PLACE).join(name));
    mounts::mount_devices()?;
    for directory in [&lower, &memory, &merged] {
        fs::create_dir_all(directory)?;
    }
    let context = |doing: &str, error: io::Error| {
        let device = device.to_string_lossy();
        io::Error::new(error.kind(), format!("{doing} the root file system on {device}: {error}"))
    };
    let nothing = None::<&std::ffi::CStr>;
    let is_written = options == WRITTEN;
    let access = if is_written { MountFlags::empty() } else { MountFlags::RDONLY };
    let own_options = if is_written { &[][..] } else { options.as_bytes() };
    let options = CString::new(own_options).map_err(io::Error::other)?;
    mount(device, &lower, kind, access, Some(&*options)).map_err(|error| context("mounting", error.into()))?;
    if is_written {
        let outside = rustix::fs::open("/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        change_to(&lower)?;
        // It is not in there, and is not put there.
        return Ok(Root { own_path: "/proc/self/exe".into(), is_entered: true, outside: Some(outside) });
    }
    mount("tmpfs", &memory, "tmpfs", MountFlags::empty(), nothing)?;
    let [upper, work] = ["upper", "work"].map(|name| memory.join(name));
    fs::create_dir(&upper)?;
    fs::create_dir(&work)?;
    // As the image's own root directory is.
    let metadata = fs::metadata(&lower)?;
    fs::set_permissions(&upper, metadata.permissions())?;
    // It starts itself for what it does for programs, and a program that is out of its own reach does not start.
    let own_path = Path::new(own_path);
    let own = upper.join(own_path.strip_prefix("/").unwrap_or(own_path));
    if let Some(directory) = own.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::copy(own_path, own)?;
    let options = format!("lowerdir={},upperdir={},workdir={}", lower.display(), upper.display(), work.display());
    let options = CString::new(options).map_err(io::Error::other)?;
    mount("overlay", &merged, "overlay", MountFlags::empty(), Some(&*options))
        .map_err(|error| context("laying memory over", error.into()))?;
    change_to(&merged)?;
    Ok(Root { own_path: own_path.as_os_str().to_owned(), is_entered: true, outside: None })
}

fn change_to(directory: &Path) -> io::Result<()> {
    std::env::set_current_dir(directory)?;
    rustix::process::chroot(".")?;
    std::env::set_current_dir("/")
}
