//! Directories of the host, mounted where whoever started the machine wants them.

use rustix::mount::{MountFlags, mount};
use std::ffi::{CString, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;

/// So many words tell of one: what the host calls it, where it is to be, `ro` or `rw`, options of mount(2).
pub const WORDS: usize = 4;

/// Mounts the directory that these words tell of; makes the place if it is missing.
pub fn mount_one(words: &[OsString]) -> io::Result<()> {
    let [tag, place, access, options] = words else { return Err(io::Error::other("a volume has four words")) };
    let context =
        |error: io::Error| io::Error::new(error.kind(), format!("mounting the volume on {}: {error}", place.display()));
    fs::create_dir_all(place).map_err(context)?;
    let flags = if access == "ro" { MountFlags::RDONLY } else { MountFlags::empty() };
    let options = CString::new(options.as_bytes()).map_err(io::Error::other)?;
    mount(tag, place, "9p", flags, Some(&*options)).map_err(|error| context(error.into()))
}
