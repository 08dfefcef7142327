//! The root of procfs: the machine's entries, and a directory for each process.

use frame::Cx;
use refs::TempRc;

use super::node::{self, FIRST_POSITION};
use super::{ROOT, Target, Who, inode, parse_id, process, process_of_thread, system};
use crate::error::{Errno, Result};
use crate::fs::{Creation, DirectoryEntry, FileKind, Inode, InodeOps, Metadata, VfsCaller};
use crate::process::{Life, PROCESSES};
use crate::step::Step;

/// The root directory.
pub struct Root;

/// The position of the process with id 0.
const FIRST_PROCESS: u64 = 1 << 16;
const FIRST_NUMBER: u64 = ROOT * 64 + 1;

impl InodeOps for Root {
    fn refresh(&self, metadata: &mut Metadata, _cx: &Cx) {
        metadata.links = 2 + PROCESSES.len() as u32;
    }

    fn lookup<'cx>(
        &self,
        this: &TempRc<'cx, Inode>,
        name: &[u8],
        _me: &dyn VfsCaller,
        cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        let Some(id) = parse_id(name) else {
            return Ok(node::lookup(system::ENTRIES, this, FIRST_NUMBER, &Target::System, name, cx)?);
        };
        // A thread's id leads to its process, although it is not listed.
        let process = PROCESSES.weak(id, cx).or_else(|| process_of_thread(id, cx)).ok_or(Errno::ENOENT)?;
        if process.upgrade(cx).map_err(|_| Errno::ENOENT)?.life() == Life::Reaped {
            return Err(Errno::ENOENT.into());
        }
        let target = Target::Process(Who { id, process, thread: None });
        let number = process::number(id);
        Ok(inode((this, name), number, FileKind::Directory, 0o555, &target, cx, || process::directory(target))?)
    }

    fn list(
        &self,
        _this: &Inode,
        from: u64,
        _me: Option<&dyn VfsCaller>,
        cx: &Cx,
        each: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Step<()> {
        debug_assert!(FIRST_POSITION + (system::ENTRIES.len() as u64) < FIRST_PROCESS);
        if !node::list(system::ENTRIES, FIRST_NUMBER, from, each) {
            return Ok(());
        }
        let first = from.saturating_sub(FIRST_PROCESS);
        let mut from = u32::try_from(first).ok();
        while let Some((id, _)) = from.and_then(|from| PROCESSES.next(from, cx)) {
            from = id.checked_add(1);
            let name = alloc::format!("{id}");
            let entry = DirectoryEntry {
                name: name.as_bytes(),
                number: process::number(id),
                kind: FileKind::Directory,
                next: FIRST_PROCESS + u64::from(id) + 1,
            };
            if !each(entry) {
                break;
            }
        }
        Ok(())
    }

    fn create<'cx>(
        &self,
        _this: &TempRc<'cx, Inode>,
        _name: &[u8],
        _what: &Creation<'_>,
        _cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        Err(Errno::ENOENT.into())
    }

    fn may_change_metadata(&self) -> Result<()> {
        Err(Errno::EPERM)
    }
}
