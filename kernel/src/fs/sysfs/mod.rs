//! File systems of directories without anything in them: what is left of sysfs, so that programs that look there find nothing rather than
//! an error.

use alloc::boxed::Box;
use alloc::vec::Vec;

use frame::Cx;
use refs::{StrongRc, TempRc};

use crate::error::{Errno, Result};
use crate::fs::{Dentry, DirectoryEntry, FileKind, FileSystem, Inode, InodeOps, Instance, Metadata, VfsCaller};

/// The directories of sysfs.
pub const SYSFS: &[&str] = &["block", "bus", "class", "dev", "devices", "fs", "kernel", "module"];

/// A directory and the directories in it, which it owns.
struct Directory {
    children: Vec<(&'static str, StrongRc<Inode>)>,
}

/// A new instance: a root with these directories.
///
/// # Errors
/// None at present.
pub fn new(name: &'static str, magic: u32, directories: &[&'static str]) -> Result<Instance> {
    let file_system = FileSystem::new(name, magic, Vec::new());
    let make = |number, dentry, children| {
        let metadata = Metadata::new(FileKind::Directory, 0o755);
        Inode::new(file_system.share(), number, metadata, dentry, Box::new(Directory { children }))
    };
    let root = StrongRc::new_cyclic(|root| {
        let children = directories.iter().zip(2..);
        let children = children.map(|(&name, number)| {
            let dentry = Dentry { parent: Some(root), name: name.as_bytes().into(), is_removed: false };
            (name, StrongRc::new(make(number, dentry, Vec::new())))
        });
        make(1, Dentry::default(), children.collect())
    });
    Ok((file_system, root))
}

impl InodeOps for Directory {
    fn lookup<'cx>(
        &self,
        _this: &TempRc<'cx, Inode>,
        name: &[u8],
        _me: &dyn VfsCaller,
        cx: &'cx Cx,
    ) -> Result<TempRc<'cx, Inode>> {
        let child = self.children.iter().find(|(own, _)| own.as_bytes() == name).ok_or(Errno::ENOENT)?;
        Ok(child.1.get(cx))
    }

    fn list(
        &self,
        _this: &Inode,
        from: u64,
        _me: Option<&dyn VfsCaller>,
        cx: &Cx,
        each: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Result<()> {
        for (index, (name, inode)) in self.children.iter().enumerate().skip(from.saturating_sub(2) as usize) {
            let number = inode.get(cx).number;
            let next = 3 + index as u64;
            if !each(DirectoryEntry { name: name.as_bytes(), number, kind: FileKind::Directory, next }) {
                break;
            }
        }
        Ok(())
    }

    fn may_change_metadata(&self) -> Result<()> {
        Err(Errno::EPERM)
    }
}
