//! [`MountTable`]: which mounts there are, and where.
//!
//! There is one mount namespace, a tree. Beside it there are trees that are nowhere, which a descriptor has: see [`super::mount_detached`]. All are in one table, whose lock whoever changes a
//! tree holds.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use frame::Cx;
use refs::{SpinLock, StrongRc, TempRc, WaitList, Waker, WeakRc};

use super::mount::{Point, Tree};
use super::mount_tree::{self, Children, Groups};
use super::mount_use::give_up_spare;
use super::propagation::{self, Propagation, PropagationType};
use super::{FileKind, FileSystem, Inode, Mount, Path};
use crate::error::{Errno, Result};
use crate::reclaim::{Held, OfMountTree};

/// All mounts, oldest first; the first is the root.
pub struct MountTable {
    mounts: SpinLock<Vec<StrongRc<Mount>>>,
    /// How often the table changed.
    changes: AtomicU64,
    /// Who waits for a change (poll of `/proc/PID/mounts`).
    changed: WaitList,
}

/// The mounts of the one mount namespace.
pub static MOUNTS: MountTable =
    MountTable { mounts: SpinLock::new(Vec::new()), changes: AtomicU64::new(0), changed: WaitList::new() };

impl MountTable {
    /// How often the table changed so far. A waker is entered first, and woken by the next change.
    pub fn changes(&self, waker: Option<Waker>, cx: &Cx) -> u64 {
        if let Some(waker) = waker {
            self.changed.register(waker, cx);
        }
        self.changes.load(Ordering::Relaxed)
    }

    fn has_changed(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
        self.changed.wake_all();
    }

    /// All mounts of the namespace, oldest first.
    pub fn of_namespace<'cx>(&self, cx: &'cx Cx) -> Vec<TempRc<'cx, Mount>> {
        let mounts = self.mounts.lock(cx);
        mounts.iter().map(|mount| mount.get(cx)).filter(|mount| mount.is_attached()).collect()
    }

    /// All mounts, oldest first, with those of trees that are nowhere.
    pub fn all<'cx>(&self, cx: &'cx Cx) -> Vec<TempRc<'cx, Mount>> {
        self.mounts.lock(cx).iter().filter_map(|mount| mount.downgrade().upgrade(cx).ok()).collect()
    }

    /// The file systems that are mounted, each once.
    pub fn file_systems(&self, cx: &Cx) -> Vec<WeakRc<FileSystem>> {
        let mut all: Vec<WeakRc<FileSystem>> = Vec::new();
        for mount in self.all(cx) {
            let file_system = mount.file_system.downgrade();
            if !all.contains(&file_system) {
                all.push(file_system);
            }
        }
        all
    }

    /// The root of the tree; `None` before there is one.
    pub fn root<'cx>(&self, cx: &'cx Cx) -> Option<Path<'cx>> {
        let mounts = self.mounts.lock(cx);
        let first = mounts.first()?;
        let (mount, inode) = (first.downgrade(), first.get(cx).root.downgrade());
        Some(Path { mount: mount.upgrade(cx).ok()?, inode: inode.upgrade(cx).ok()? })
    }

    /// What is mounted on a place, topmost; the place itself if nothing is.
    pub(super) fn topmost<'cx>(&self, mut place: Path<'cx>, cx: &'cx Cx) -> Path<'cx> {
        let _mounts = self.mounts.lock(cx);
        while let Some(mount) = place.mount.covering(place.inode.downgrade(), cx) {
            let inode = mount.root.get(cx);
            place = Path { mount, inode };
        }
        place
    }

    /// Makes `mount` the root of the tree (the first time), or mounts it on the place `on`.
    ///
    /// # Errors
    /// ENOENT: what is there was removed. EINVAL: that mount is not in the tree any more. ENOSPC: there are too many mounts.
    pub fn attach(&self, mount: StrongRc<Mount>, on: Option<&Path<'_>>, cx: &Cx) -> Result<()> {
        let Some(on) = on else {
            mount_tree::add(&mut self.mounts.lock(cx), vec![mount], Tree::Namespace, cx);
            return Ok(());
        };
        let point = MountPoint::take(on, cx)?;
        let mut mounts = self.mounts.lock(cx);
        if !on.mount.is_attached() {
            return Err(Errno::EINVAL);
        }
        let top = mount.get(cx);
        graft(&mut mounts, &[top], vec![mount], point, cx)?;
        drop(mounts);
        self.has_changed();
        Ok(())
    }

    /// Mounts what is at a place on another place as well, with all that is mounted below it where it `is_recursive` (MS_BIND).
    ///
    /// # Errors
    /// As for [`attach`](Self::attach), and EINVAL where its mount cannot be bound or is not in the tree.
    pub fn bind<'cx>(&self, from: &Path<'cx>, on: &Path<'_>, is_recursive: bool, cx: &'cx Cx) -> Result<()> {
        let root = from.inode.share().ok_or(Errno::ENOENT)?;
        let point = MountPoint::take(on, cx)?;
        let mut mounts = self.mounts.lock(cx);
        if !from.mount.is_attached() || !on.mount.is_attached() || from.mount.propagation(cx).is_unbindable {
            return Err(Errno::EINVAL);
        }
        let tree =
            if is_recursive { Children::of(&mounts, cx).bindable_tree(from, cx) } else { vec![from.mount.clone()] };
        mount_tree::check_room(&mounts, tree.len(), &Groups::of(&mounts, cx).receivers(on, cx))?;
        let copies = mount_tree::copy_tree(&tree, root, |index| tree[index].propagation(cx), cx);
        let own: Vec<_> = copies.iter().map(|copy| copy.get(cx)).collect();
        graft(&mut mounts, &own, copies, point, cx)?;
        drop(mounts);
        self.has_changed();
        Ok(())
    }

    /// Moves a mount, with all that is in it, to another place (MS_MOVE); also one that is the first of a tree that is nowhere.
    ///
    /// # Errors
    /// EINVAL for the root, for what is not in the tree, where one of the two is a directory and the other is none, where what it is in is shared, and where it goes to what is shared with something in it
    /// that cannot be bound. ELOOP: the place is in the mount. ENOENT: what is there was removed. ENOSPC: there are too many mounts.
    pub fn relocate<'cx>(&self, mount: &TempRc<'cx, Mount>, on: &Path<'_>, cx: &'cx Cx) -> Result<()> {
        let is_directory = |inode: &Inode| inode.kind == FileKind::Directory;
        if is_directory(&on.inode) != is_directory(&mount.root.get(cx)) {
            return Err(Errno::EINVAL);
        }
        let new = MountPoint::take(on, cx)?;
        let mut mounts = self.mounts.lock(cx);
        let old = move_tree(&mut mounts, mount, new, cx)?;
        drop(mounts);
        give_up_point(old, cx);
        self.has_changed();
        Ok(())
    }

    /// Moves a mount, with all that is in it, to where another one is, and has that be on it (MOVE_MOUNT_BENEATH). `root` is the caller's.
    ///
    /// # Errors
    /// As for [`relocate`](Self::relocate), and EINVAL where `top` is no mount, is `root`'s, or is in no other, where something is on the root of `mount`, and where the other one would get a copy on it.
    pub fn relocate_beneath<'cx>(
        &self,
        mount: &TempRc<'cx, Mount>,
        top: &Path<'cx>,
        root: &Path<'_>,
        cx: &'cx Cx,
    ) -> Result<()> {
        let is_directory = |inode: &Inode| inode.kind == FileKind::Directory;
        if !top.is_root_of_mount() || top.mount.id == root.mount.id {
            return Err(Errno::EINVAL);
        }
        let below = top.mount.point(cx).ok_or(Errno::EINVAL)?;
        let own_root = Path { mount: mount.clone(), inode: mount.root.get(cx) };
        if is_directory(&below.inode) != is_directory(&own_root.inode) || below.mount.point(cx).is_none() {
            return Err(Errno::EINVAL);
        }
        let (new, on_it) = (MountPoint::take(&below, cx)?, MountPoint::take(&own_root, cx)?);
        let mut mounts = self.mounts.lock(cx);
        let is_there = top.mount.point(cx).is_some_and(|point| point.is(&below));
        let children = Children::of(&mounts, cx);
        let is_covered = children.at(mount, own_root.inode.downgrade()).is_some();
        let covers_itself = below.inode.downgrade() == top.mount.root.downgrade()
            && Groups::of(&mounts, cx).receivers(&below, cx).iter().any(|receiver| receiver.is(&top.mount));
        if !is_there
            || is_covered
            || covers_itself
            || children.whole_tree(&top.mount).iter().any(|at| at.id == mount.id)
        {
            return Err(Errno::EINVAL);
        }
        let old = move_tree(&mut mounts, mount, new, cx)?;
        let covered = Mount::place(&top.mount, Some(on_it.keep()), cx);
        drop(mounts);
        give_up_point(old, cx);
        give_up_point(covered, cx);
        self.has_changed();
        Ok(())
    }

    /// Makes `new` the root in the place of `root`, and moves the mount that was there to `put_old`: pivot_root(2).
    ///
    /// # Errors
    /// EBUSY: `new` or `put_old` is on the root's mount. EINVAL: `new` or `root` is no mount point or not in the tree, `put_old` is not below `new`, `new` not below `root`, or what one of them is in is
    /// shared. ENOENT: what is at `put_old` was removed.
    pub fn pivot(&self, root: &Path<'_>, new: &Path<'_>, put_old: &Path<'_>, cx: &Cx) -> Result<()> {
        let point = MountPoint::take(put_old, cx)?;
        let mounts = self.mounts.lock(cx);
        let is_shared = |mount: &Mount| mount.propagation(cx).group.is_some();
        let parent_is_shared = |path: &Path<'_>| path.mount.point(cx).is_some_and(|point| is_shared(&point.mount));
        if is_shared(&put_old.mount) || parent_is_shared(new) || parent_is_shared(root) {
            return Err(Errno::EINVAL);
        }
        if [root, new, put_old].iter().any(|path| !path.mount.is_attached()) {
            return Err(Errno::EINVAL);
        }
        if new.mount.id == root.mount.id || put_old.mount.id == root.mount.id {
            return Err(Errno::EBUSY);
        }
        let is_mount_point = |path: &Path<'_>| path.is_root_of_mount() && path.mount.point(cx).is_some();
        if !is_mount_point(root)
            || !is_mount_point(new)
            || !put_old.is_reachable(new, cx)
            || !new.is_reachable(root, cx)
        {
            return Err(Errno::EINVAL);
        }
        let old_point = Mount::place(&root.mount, Some(point.keep()), cx);
        // The inode where the root was keeps its count.
        let given_up = Mount::place(&new.mount, old_point, cx);
        drop(mounts);
        give_up_point(given_up, cx);
        self.has_changed();
        Ok(())
    }

    /// Makes `to` hear of the mounts that `from` hears of, and be heard by them (MOVE_MOUNT_SET_GROUP).
    ///
    /// # Errors
    /// EINVAL: one of them is not where a mount begins or in no tree, they show different file systems or `from` less of it than `to`; `to` is not private, or `from` is.
    pub fn set_group(&self, from: &Path<'_>, to: &Path<'_>, cx: &Cx) -> Result<()> {
        let _mounts = self.mounts.lock(cx);
        let source = from.mount.propagation(cx);
        let has = |propagation: Propagation| propagation.group.is_some() || propagation.master.is_some();
        let are_roots = from.is_root_of_mount() && to.is_root_of_mount();
        let are_mounted = from.mount.is_in_table() && to.mount.is_in_table();
        let is_same = from.mount.file_system.downgrade() == to.mount.file_system.downgrade();
        if !are_roots
            || !are_mounted
            || !is_same
            || !Inode::is_within(&to.inode, &from.inode, cx)
            || !has(source)
            || has(to.mount.propagation(cx))
        {
            return Err(Errno::EINVAL);
        }
        let mut own = to.mount.propagation.lock(cx);
        *own = Propagation { is_unbindable: own.is_unbindable && source.group.is_none(), ..source };
        Ok(())
    }

    /// A mount, or with all that are in it: what mount_setattr(2) changes.
    ///
    /// # Errors
    /// EINVAL: it is in no tree.
    pub fn tree<'cx>(&self, mount: &TempRc<'cx, Mount>, is_recursive: bool, cx: &'cx Cx) -> Result<Vec<WeakRc<Mount>>> {
        let mounts = self.mounts.lock(cx);
        if !mount.is_in_table() {
            return Err(Errno::EINVAL);
        }
        let tree = if is_recursive { Children::of(&mounts, cx).whole_tree(mount) } else { vec![mount.clone()] };
        Ok(tree.iter().map(TempRc::downgrade).collect())
    }

    /// Enters a mount that is nowhere, as a tree of its own; its number. It is charged to `held`.
    ///
    /// # Errors
    /// ENOSPC: there are too many mounts. ENOMEM: the budget has no room for it.
    pub(super) fn enter_detached(&self, mount: StrongRc<Mount>, held: &mut OfMountTree, cx: &Cx) -> Result<u32> {
        let mut mounts = self.mounts.lock(cx);
        mount_tree::check_room(&mounts, 1, &[])?;
        held.add(Held::Mount, 1)?;
        let number = mount.get(cx).id;
        mount_tree::add(&mut mounts, vec![mount], Tree::Detached(number), cx);
        Ok(number)
    }

    /// A copy of what is mounted at a place, with all that is mounted below it where it `is_recursive`, as a tree that is nowhere: its first mount. They are charged to `held`.
    ///
    /// # Errors
    /// EINVAL: its mount cannot be bound or is not in the tree. ENOENT: it was removed. ENOSPC: there are too many mounts. ENOMEM: the budget has no room for them.
    pub(super) fn copy_detached<'cx>(
        &self,
        from: &Path<'cx>,
        is_recursive: bool,
        held: &mut OfMountTree,
        cx: &'cx Cx,
    ) -> Result<TempRc<'cx, Mount>> {
        let root = from.inode.share().ok_or(Errno::ENOENT)?;
        let mut mounts = self.mounts.lock(cx);
        if !from.mount.is_attached() || from.mount.propagation(cx).is_unbindable {
            return Err(Errno::EINVAL);
        }
        let tree =
            if is_recursive { Children::of(&mounts, cx).bindable_tree(from, cx) } else { vec![from.mount.clone()] };
        mount_tree::check_room(&mounts, tree.len(), &[])?;
        held.add(Held::Mount, tree.len() as u32)?;
        let copies = mount_tree::copy_tree(&tree, root, |index| tree[index].propagation(cx), cx);
        let first = copies.first().map(|copy| copy.get(cx)).ok_or(Errno::EINVAL)?;
        mount_tree::add(&mut mounts, copies, Tree::Detached(first.id), cx);
        Ok(first)
    }

    /// Takes up to `most` mounts of a tree that is nowhere out of the table, the newest first; how many.
    pub(super) fn dissolve(&self, number: u32, most: usize, cx: &Cx) -> usize {
        let mut mounts = self.mounts.lock(cx);
        let (mut gone, mut left) = (Vec::new(), BTreeMap::new());
        for index in (0..mounts.len()).rev() {
            let mount = mounts[index].get(cx);
            if gone.len() == most || mount.tree() != Tree::Detached(number) {
                continue;
            }
            mount.set_tree(Tree::None);
            let point = Mount::place(&mount, None, cx);
            let propagation = core::mem::take(&mut *mount.propagation.lock(cx));
            left.extend(propagation.group.map(|group| (group, propagation.master)));
            gone.push((mounts.remove(index), point));
        }
        if !gone.is_empty() {
            give_up_spare();
            propagation::end_groups(&mounts, &left, cx);
        }
        drop(mounts);
        let count = gone.len();
        for (mount, point) in gone {
            drop(mount);
            give_up_point(point, cx);
        }
        count
    }

    /// Changes which mounts a mount hears of, or all that are in it as well.
    ///
    /// # Errors
    /// EINVAL: it is not in the tree any more.
    pub fn set_propagation<'cx>(
        &self,
        mount: &TempRc<'cx, Mount>,
        to: PropagationType,
        is_recursive: bool,
        cx: &'cx Cx,
    ) -> Result<()> {
        let mounts = self.mounts.lock(cx);
        if !mount.is_in_table() {
            return Err(Errno::EINVAL);
        }
        let changing = if is_recursive { Children::of(&mounts, cx).whole_tree(mount) } else { vec![mount.clone()] };
        propagation::change(&mounts, &changing, to, cx);
        drop(mounts);
        self.has_changed();
        Ok(())
    }

    /// Checks that nothing in a mount is in use, and nothing mounted in it.
    ///
    /// # Errors
    /// EINVAL where it is detached; EBUSY.
    pub fn check_idle(&self, mount: &TempRc<'_, Mount>, cx: &Cx) -> Result<()> {
        let name = mount.downgrade();
        let mounts = self.mounts.lock(cx);
        let index = mounts.iter().position(|other| other.downgrade() == name).ok_or(Errno::EINVAL)?;
        if !mount.is_attached() {
            return Err(Errno::EINVAL);
        }
        give_up_spare();
        let is_busy = mounts[index].owners() > 1 || Children::of(&mounts, cx).are_in(mount);
        if is_busy { Err(Errno::EBUSY) } else { Ok(()) }
    }

    /// Takes a mount out, and what was mounted elsewhere together with it; `lazily` also all that are in it.
    ///
    /// # Errors
    /// EINVAL for the root; EBUSY, unless `lazily`, where something is mounted on it or one of them is in use.
    pub fn detach<'cx>(&self, mount: &TempRc<'cx, Mount>, lazily: bool, cx: &'cx Cx) -> Result<()> {
        let name = mount.downgrade();
        let mut mounts = self.mounts.lock(cx);
        let index = mounts.iter().position(|other| other.downgrade() == name).ok_or(Errno::EINVAL)?;
        if !mount.is_attached() || mount.point(cx).is_none() {
            return Err(Errno::EINVAL);
        }
        let going = mount_tree::going(&mounts, mount, lazily, cx)?;
        let mark = |tree: Tree| going.mounts.iter().for_each(|mount| mount.set_tree(tree));
        // From here on nobody keeps owners of them that are not used; whoever has just done so is found.
        mark(Tree::None);
        give_up_spare();
        let elsewhere = going.mounts.get(1..).unwrap_or_default();
        if !lazily && elsewhere.iter().any(|mount| mount.owners() > 1) {
            mark(Tree::Namespace);
            return Err(Errno::EBUSY);
        }
        let mut removed = vec![mounts.remove(index)];
        if !lazily
            && let Some(only) = removed.pop()
            && let Err(used) = only.end_if_only()
        {
            mounts.insert(index, used);
            mark(Tree::Namespace);
            return Err(Errno::EBUSY);
        }
        if !elsewhere.is_empty() {
            removed.extend(mounts.extract_if(.., |mount| !mount.get(cx).is_in_table()));
        }
        for (covering, below) in &going.uncovered {
            let freed = Mount::place(below, None, cx);
            let old = Mount::place(covering, freed, cx);
            give_up_point(old, cx);
        }
        let (mut points, mut left) = (Vec::new(), BTreeMap::new());
        for gone in &going.mounts {
            points.push(Mount::place(gone, None, cx));
            let propagation = core::mem::take(&mut *gone.propagation.lock(cx));
            left.extend(propagation.group.map(|group| (group, propagation.master)));
        }
        propagation::end_groups(&mounts, &left, cx);
        drop(mounts);
        drop(removed);
        points.into_iter().for_each(|point| give_up_point(point, cx));
        self.has_changed();
        Ok(())
    }
}

/// Moves a mount with all that is in it. Where it was before.
///
/// # Errors
/// As for [`MountTable::relocate`].
fn move_tree<'cx>(
    mounts: &mut Vec<StrongRc<Mount>>,
    mount: &TempRc<'cx, Mount>,
    new: MountPoint<'_, '_>,
    cx: &'cx Cx,
) -> Result<Option<Point>> {
    let on = new.on;
    let parent = mount.point(cx).map(|point| point.mount);
    let is_movable = match (&parent, mount.tree()) {
        (Some(parent), Tree::Namespace) => parent.propagation(cx).group.is_none(),
        (None, Tree::Detached(_)) => true,
        _ => false,
    };
    let tree = Children::of(mounts, cx).whole_tree(mount);
    let goes_to_shared = on.mount.propagation(cx).group.is_some();
    let has_unbindable = || tree.iter().any(|mount| mount.propagation(cx).is_unbindable);
    if !is_movable || !on.mount.is_attached() || (goes_to_shared && has_unbindable()) {
        return Err(Errno::EINVAL);
    }
    // No mount moves meanwhile.
    let mut above = Some(on.mount.clone());
    while let Some(at) = above {
        if at.downgrade() == mount.downgrade() {
            return Err(Errno::ELOOP);
        }
        above = at.point(cx).map(|point| point.mount);
    }
    let old = graft(mounts, &tree, Vec::new(), new, cx)?;
    tree.iter().for_each(|mount| mount.set_tree(Tree::Namespace));
    Ok(old)
}

/// Mounts a tree whose mounts are `new`, or in the table already, and copies of it in all mounts that hear of it. Where the first of it was before.
///
/// # Errors
/// ENOSPC: there are too many mounts.
fn graft(
    mounts: &mut Vec<StrongRc<Mount>>,
    tree: &[TempRc<'_, Mount>],
    new: Vec<StrongRc<Mount>>,
    point: MountPoint<'_, '_>,
    cx: &Cx,
) -> Result<Option<Point>> {
    let on = point.on;
    let receivers = Groups::of(mounts, cx).receivers(on, cx);
    let copied = if new.is_empty() && receivers.is_empty() { 0 } else { tree.len() };
    mount_tree::check_room(mounts, copied, &receivers)?;
    if on.mount.propagation(cx).group.is_some() {
        for mount in tree {
            let mut propagation = mount.propagation.lock(cx);
            *propagation = propagation.shared();
        }
    }
    mount_tree::copy_to_receivers(mounts, tree, on, receivers, cx);
    let old = tree.first().and_then(|top| Mount::place(top, Some(point.keep()), cx));
    mount_tree::add(mounts, new, Tree::Namespace, cx);
    Ok(old)
}

/// The right to mount something on an inode: it is not removed, and has other names only where it has them now, until this is given up.
struct MountPoint<'a, 'cx> {
    on: &'a Path<'cx>,
    is_kept: bool,
}

impl<'a, 'cx> MountPoint<'a, 'cx> {
    /// # Errors
    /// ENOENT: it was removed.
    fn take(on: &'a Path<'cx>, cx: &Cx) -> Result<Self> {
        // Whoever removes or renames it looks whether it is a mount point with the same lock held.
        let file_system = on.inode.file_system.get(cx);
        let _tree = file_system.tree.lock(cx);
        if on.inode.is_removed(cx) {
            return Err(Errno::ENOENT);
        }
        on.inode.mounts.fetch_add(1, Ordering::Relaxed);
        Ok(MountPoint { on, is_kept: false })
    }

    /// Its names, for the mount that is there from now on.
    fn keep(mut self) -> Point {
        self.is_kept = true;
        (self.on.mount.downgrade(), self.on.inode.downgrade())
    }
}

impl Drop for MountPoint<'_, '_> {
    fn drop(&mut self) {
        if !self.is_kept {
            self.on.inode.mounts.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Nothing is mounted there any more.
pub(super) fn give_up_point(point: Option<Point>, cx: &Cx) {
    if let Some((_, inode)) = point
        && let Ok(inode) = inode.upgrade(cx)
    {
        inode.mounts.fetch_sub(1, Ordering::Relaxed);
    }
}
