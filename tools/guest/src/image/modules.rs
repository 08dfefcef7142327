//! Modules of a Linux kernel: what Debian's has for disks, their file systems and networks is not in the kernel itself.
//!
//! They come from the `lib/modules/VERSION` that belongs to a `boot/vmlinuz-VERSION`, with those that they depend on, and the agent loads them in the order of
//! their names.

use super::Image;
use super::tree::MODULES_PATH;
use crate::error::Doing;
use crate::{Error, Machine, Network, Result};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What a root file system on a disk takes, and further disks. (The checksums of ext4 are asked for by what they do, so nothing depends on them by name.)
const FOR_DISKS: [&str; 9] =
    ["virtio_pci", "virtio_blk", "crc32c_generic", "ext4", "overlay", "erofs", "squashfs", "exfat", "loop"];
/// What a card takes, and `ss`.
const FOR_NETWORKS: [&str; 6] = ["virtio_pci", "virtio_net", "tcp_diag", "udp_diag", "unix_diag", "netlink_diag"];

/// Where a module names those that must be loaded before it.
const DEPENDENCIES: &[u8] = b"\0depends=";

impl Image {
    /// Adds the modules that a Linux kernel needs for a machine's disks and its card. What is not there is taken to be in the kernel.
    pub(crate) fn add_device_modules(&mut self, kernel: &Path, machine: &Machine) -> Result<()> {
        let of_disks = if machine.disks.is_empty() { &[][..] } else { &FOR_DISKS };
        let of_networks = if machine.network == Network::None { &[][..] } else { &FOR_NETWORKS };
        self.add_modules(kernel, &[of_disks, of_networks].concat())
    }

    /// Adds modules of a Linux kernel, with those that they depend on, as `/.ebb/modules/00`, `01` ... in the order in which they can be loaded. What is not
    /// there is taken to be in the kernel.
    ///
    /// # Errors
    /// A module cannot be read, or is compressed.
    pub fn add_modules(&mut self, kernel: &Path, names: &[&str]) -> Result<()> {
        let Some(directory) = directory_of(kernel) else { return Ok(()) };
        let reading = || format!("reading {}", directory.display());
        let mut files = HashMap::new();
        collect(&directory, &mut files).doing(reading)?;
        let mut ordered = Vec::new();
        for name in names {
            add_with_dependencies(name, &files, &mut ordered)?;
        }
        for (number, path) in ordered.iter().enumerate() {
            self.add_file(Path::new(MODULES_PATH).join(format!("{number:02}")), path)?;
        }
        Ok(())
    }
}

/// Where a kernel's modules are, if there are any.
fn directory_of(kernel: &Path) -> Option<PathBuf> {
    let version = kernel.file_name()?.to_str()?.strip_prefix("vmlinuz-")?;
    let path = kernel.parent()?.parent()?.join("lib/modules").join(version);
    path.is_dir().then_some(path)
}

/// All modules below a directory, by name.
fn collect(directory: &Path, files: &mut HashMap<String, PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            collect(&path, files)?;
        } else if let Some((name, _)) = entry.file_name().to_string_lossy().split_once(".ko") {
            files.insert(name.replace('-', "_"), path);
        }
    }
    Ok(())
}

fn add_with_dependencies(name: &str, files: &HashMap<String, PathBuf>, ordered: &mut Vec<PathBuf>) -> Result<()> {
    let Some(path) = files.get(name).filter(|path| !ordered.contains(path)) else { return Ok(()) };
    if path.extension().is_none_or(|extension| extension != "ko") {
        let why = "it is compressed; `unxz` or `zstd -d --rm` makes a module of it that can be loaded here".into();
        return Err(Error::NotAProgram { path: path.clone(), why });
    }
    let bytes = fs::read(path).doing(|| format!("reading {}", path.display()))?;
    // Modules do not depend on each other in a circle: Linux could not load them.
    for dependency in dependencies(&bytes) {
        add_with_dependencies(&dependency.replace('-', "_"), files, ordered)?;
    }
    ordered.push(path.clone());
    Ok(())
}

/// The names of the modules that must be loaded before this one.
fn dependencies(module: &[u8]) -> Vec<String> {
    let Some(at) = module.windows(DEPENDENCIES.len()).position(|bytes| bytes == DEPENDENCIES) else {
        return Vec::new();
    };
    let names = module[at + DEPENDENCIES.len()..].split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(names).split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_come_after_those_that_they_depend_on() {
        let directory = tempfile::tempdir().unwrap();
        let modules = directory.path().join("lib/modules/6.1/kernel");
        fs::create_dir_all(&modules).unwrap();
        fs::create_dir_all(directory.path().join("boot")).unwrap();
        let module = |name: &str, depends: &str| {
            fs::write(modules.join(name), format!("ELF\0license=GPL\0depends={depends}\0intree=Y\0")).unwrap();
        };
        module("ext4.ko", "jbd2,mb-cache");
        module("jbd2.ko", "");
        module("mb_cache.ko", "");
        module("virtio_blk.ko", "virtio");
        let kernel = directory.path().join("boot/vmlinuz-6.1");
        let mut image = Image::empty();
        image.add_modules(&kernel, &FOR_DISKS).unwrap();
        let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        let mut files = HashMap::new();
        collect(&modules, &mut files).unwrap();
        let mut ordered = Vec::new();
        for wanted in ["virtio_blk", "ext4", "jbd2"] {
            add_with_dependencies(wanted, &files, &mut ordered).unwrap();
        }
        assert_eq!(
            ordered.iter().map(name).collect::<Vec<_>>(),
            ["virtio_blk.ko", "jbd2.ko", "mb_cache.ko", "ext4.ko"]
        );
        assert!(image.lookup(&Path::new(MODULES_PATH).join("03")).is_some());
        assert!(image.lookup(&Path::new(MODULES_PATH).join("04")).is_none());
    }

    #[test]
    fn a_kernel_without_modules_has_none() {
        let mut image = Image::empty();
        image.add_modules(Path::new("/no/such/bzImage"), &FOR_DISKS).unwrap();
        assert_eq!(image.entries().count(), 0);
    }
}
