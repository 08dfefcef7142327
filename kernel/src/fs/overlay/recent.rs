//! Which names an overlay knows, in the order in which it came to know them: the oldest are forgotten where there are many, so that it does not hold the inodes of all
//! files that anybody ever looked at.
//!
//! Forgotten is only what nobody uses: an inode without another owner than the directory, of which no known inode says that it is above it. Who changes something in
//! a directory, or copies a file, is an owner meanwhile.

use alloc::boxed::Box;

use frame::Cx;
use refs::{TempRc, WeakRc};

use super::Overlay;
use super::cache::{Cache, Entry};
use super::directory::Directory;
use crate::fs::Inode;

/// So many names are known at least.
const KEPT: usize = 4096;

/// A name that a directory knows.
pub struct Known {
    directory: WeakRc<Inode>,
    name: Box<[u8]>,
}

impl Overlay {
    /// A directory has come to know a name. No lock is held.
    pub fn remember(&self, directory: &TempRc<'_, Inode>, name: &[u8], cx: &Cx) {
        let mut recent = self.recent.lock(cx);
        // Without memory for it the name is not forgotten.
        if recent.try_reserve(1).is_ok() {
            recent.push_back(Known { directory: directory.downgrade(), name: name.into() });
        }
        if recent.len() <= KEPT {
            return;
        }
        let oldest = [recent.pop_front(), recent.pop_front()];
        drop(recent);
        for known in oldest.into_iter().flatten() {
            if !known.forget(cx) {
                self.recent.lock(cx).push_back(known);
            }
        }
    }
}

impl Known {
    /// Has the directory forget it; false if it is used.
    fn forget(&self, cx: &Cx) -> bool {
        let Ok(directory) = self.directory.upgrade(cx) else { return true };
        let Some(directory) = directory.into_ref().ops_as::<Directory>() else { return true };
        let mut cache = directory.cache.lock(cx);
        let known = cache.names.get(&self.name);
        match known {
            Some(Entry::Nothing(_)) if !cache.is_complete => {
                let _nothing = cache.remove(&self.name);
            }
            Some(Entry::Inode { .. }) => return forget_inode(&mut cache, &self.name, cx),
            _ => return true,
        }
        cache.has_forgotten();
        true
    }
}

fn forget_inode(cache: &mut refs::SpinGuard<'_, Cache>, name: &[u8], cx: &Cx) -> bool {
    let Some(Entry::Inode { inode, .. }) = cache.names.get(name) else { return true };
    let now = inode.get(cx);
    let is_used = inode.owners() > 1
        || now.mounts.load(core::sync::atomic::Ordering::Relaxed) > 0
        || now.attachment.lock(cx).is_some()
        || now.watchers.are_any();
    if is_used {
        return false;
    }
    // A directory's names after those of the one it is in. They stay as they are until it ends.
    let names = now.ops_as::<Directory>().map(|directory| directory.cache.lock_after(cache, cx));
    if names.as_ref().is_some_and(|names| names.inodes > 0) {
        return false;
    }
    let number = now.ops.identity(&now, cx).1;
    let listed = Entry::Listed { number, kind: now.kind };
    let taken = if cache.is_complete { cache.set(name, listed).ok().flatten() } else { cache.remove(name) };
    let Some(Entry::Inode { inode, covers }) = taken else { return true };
    if let Err(inode) = inode.end_if_only() {
        // It has a place there: there is memory for it, or it was taken out just now.
        let _ = cache.set(name, Entry::Inode { inode, covers });
        return false;
    }
    cache.has_forgotten();
    true
}
