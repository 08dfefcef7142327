//! A root file system on a disk: an image that is only read, with what programs write kept in memory.
//!
//! The kernel starts the agent from the archive that the host made. Here the image is mounted under an overlay whose upper layer is a tmpfs, and becomes the root of the agent and of all that it
//! starts. The archive stays where it is, out of their reach.

use rustix::mount::{MountFlags, mount};
use std::ffi::{CString, OsStr};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Where all of it is mounted, in the archive.
const PLACE: &str = "/.ebb/root";

/// Makes what is on `device` (or what the server of that name has), a file system of the type `kind`, the root. The agent, which is the file `own_path`, is there as well.
pub fn enter(device: &OsStr, kind: &OsStr, options: &OsStr, own_path: &OsStr) -> io::Result<()> {
    let [lower, memory, merged] = ["image", "memory", "merged"].map(|name| Path::new(PLACE).join(name));
    for directory in [&lower, &memory, &merged] {
        fs::create_dir_all(directory)?;
    }
    let context = |doing: &str, error: io::Error| {
        let device = device.to_string_lossy();
        io::Error::new(error.kind(), format!("{doing} the root file system on {device}: {error}"))
    };
    let nothing = None::<&std::ffi::CStr>;
    let options = CString::new(options.as_bytes()).map_err(io::Error::other)?;
    mount(device, &lower, kind, MountFlags::RDONLY, Some(&*options))
        .map_err(|error| context("mounting", error.into()))?;
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
    std::env::set_current_dir(&merged)?;
    rustix::process::chroot(".")?;
    std::env::set_current_dir("/")
}
