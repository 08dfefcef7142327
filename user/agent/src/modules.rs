//! Modules of a Linux kernel, which the host put into the archive: what disks and their file systems take.

use rustix::system::finit_module;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

/// Where they are, if there are any.
const PLACE: &str = "/.ebb/modules";

/// Has the kernel load them, in the order of their names.
pub fn load() -> io::Result<()> {
    // An Ebb has none.
    let Ok(entries) = fs::read_dir(PLACE) else { return Ok(()) };
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>()?;
    paths.sort();
    for path in paths {
        let loaded = finit_module(File::open(&path)?, c"", 0);
        loaded.map_err(|error| io::Error::other(format!("loading {}: {error}", path.display())))?;
    }
    Ok(())
}
