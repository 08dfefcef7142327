//! A small userland: BusyBox under all its names.

use super::Image;
use super::elf;
use crate::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where BusyBox lies in a guest.
pub const GUEST_PATH: &str = "/bin/busybox";

/// The host's static BusyBox (Debian's package `busybox-static`).
pub fn find() -> Result<PathBuf> {
    let candidates = ["/bin/busybox", "/usr/bin/busybox"].map(PathBuf::from);
    let path = candidates
        .into_iter()
        .find(|path| path.is_file())
        .ok_or_else(|| Error::NoSuchProgram("busybox (on Debian and Ubuntu: apt-get install busybox-static)".into()))?;
    let bytes =
        std::fs::read(&path).map_err(|error| Error::Io { doing: format!("reading {}", path.display()), error })?;
    let file = elf::read(&bytes).map_err(|why| Error::NotAProgram { path: path.clone(), why })?;
    if file.interpreter.is_some() {
        return Err(Error::NotAProgram {
            path,
            why: "a dynamic program; guests take the package busybox-static".into(),
        });
    }
    Ok(path)
}

/// BusyBox's applets with the paths that they usually have, without a leading slash: `bin/sh`, `usr/bin/awk`.
pub fn applets(busybox: &Path) -> Result<Vec<String>> {
    let doing = || format!("running {} --list-full", busybox.display());
    let output =
        Command::new(busybox).arg("--list-full").output().map_err(|error| Error::Io { doing: doing(), error })?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(|line| line.trim_start_matches('/').to_owned()).collect())
}

impl Image {
    /// Adds BusyBox and a link to it for each applet that the image has no program of its own for.
    pub fn add_busybox(&mut self) -> Result<()> {
        let busybox = find()?;
        self.add_file(GUEST_PATH, &busybox)?;
        for applet in applets(&busybox)? {
            if applet != "linuxrc" && !self.has_program(Path::new(&applet)) {
                self.add_symlink(&applet, GUEST_PATH);
            }
        }
        Ok(())
    }
}
