//! devpts: the slaves of pseudo-terminals as files, usually in `/dev/pts`. See pts(4).

use alloc::boxed::Box;

use frame::Cx;
use refs::{SpinLock, StrongRc, TempRc};

use crate::drivers::tty::pty;
use crate::error::{Errno, Result};
use crate::fs::{
    Dentry, DeviceNumber, DirectoryEntry, FileKind, FileSystem, Inode, InodeCache, InodeOps, Instance, Metadata,
    VfsCaller,
};
use crate::step::Step;

const DEVPTS_SUPER_MAGIC: u32 = 0x1cd1;
const ROOT: u64 = 1;
/// `ptmx`, which stands in this directory too.
const MASTER: u64 = 2;
/// The number of the slave 0.
const FIRST_SLAVE: u64 = 3;

static INSTANCE: SpinLock<Option<Instance>> = SpinLock::new(None);
static CACHE: InodeCache = InodeCache::new();

struct Root;

/// A slave, or `ptmx`.
struct Node {
    /// `None` for `ptmx`.
    number: Option<u32>,
}

/// The one instance.
///
/// # Errors
/// None at present.
pub fn instance(cx: &Cx) -> Result<Instance> {
    let mut instance = INSTANCE.lock(cx);
    let (file_system, root) = instance.get_or_insert_with(|| {
        let file_system = FileSystem::new("devpts", DEVPTS_SUPER_MAGIC, b",mode=620,ptmxmode=666".to_vec());
        let metadata = Metadata::new(FileKind::Directory, 0o755);
        let root = Inode::new(file_system.share(), ROOT, metadata, Dentry::default(), Box::new(Root));
        (file_system, StrongRc::new(root))
    });
    Ok((file_system.share(), root.share()))
}

impl InodeOps for Root {
    fn lookup<'cx>(
        &self,
        this: &TempRc<'cx, Inode>,
        name: &[u8],
        _me: &dyn VfsCaller,
        cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        let number = if name == b"ptmx" {
            None
        } else {
            let text = core::str::from_utf8(name).map_err(|_| Errno::ENOENT)?;
            let number = text.parse::<u32>().map_err(|_| Errno::ENOENT)?;
            // A name has one spelling only.
            if alloc::format!("{number}") != text {
                return Err(Errno::ENOENT.into());
            }
            Some(number)
        };
        let (inode_number, device, permissions, owner) = match number {
            None => (MASTER, DeviceNumber { major: 5, minor: 2 }, 0o666, (0, 0)),
            Some(number) => {
                let owner = pty::owner(number, cx).ok_or(Errno::ENOENT)?;
                (FIRST_SLAVE + u64::from(number), DeviceNumber { major: 136, minor: number }, 0o620, owner)
            }
        };
        Ok(CACHE.get_or_insert(inode_number, cx, || {
            let mut metadata = Metadata::new(FileKind::CharacterDevice, permissions).owned_by(owner.0, owner.1);
            metadata.device = device;
            let node = Box::new(Node { number });
            Ok(Inode::new(this.file_system.share(), inode_number, metadata, Dentry::new(this, name), node))
        })?)
    }

    fn list(
        &self,
        _this: &Inode,
        from: u64,
        _me: Option<&dyn VfsCaller>,
        cx: &Cx,
        each: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Step<()> {
        let slaves =
            pty::numbers(cx).into_iter().map(|number| (FIRST_SLAVE + u64::from(number), alloc::format!("{number}")));
        let all = core::iter::once((MASTER, "ptmx".into())).chain(slaves);
        // The position behind an entry is its inode's number and 1: at least 3.
        for (number, name) in all.filter(|(number, _)| *number >= from) {
            let entry =
                DirectoryEntry { name: name.as_bytes(), number, kind: FileKind::CharacterDevice, next: number + 1 };
            if !each(entry) {
                break;
            }
        }
        Ok(())
    }
}

impl InodeOps for Node {
    fn is_stale(&self, cx: &Cx) -> bool {
        self.number.is_some_and(|number| pty::owner(number, cx).is_none())
    }
}
