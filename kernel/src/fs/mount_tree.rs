//! Trees of mounts: what is in a mount, copies of it, and which other mounts get a copy of what is mounted in one.
//!
//! All of this works on the table of mounts, with its lock held. What one call does is bounded by how many mounts there may be, [`MOST_MOUNTS`].

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use frame::Cx;
use refs::{StrongRc, TempRc, WeakRc};

use super::mount::Tree;
use super::propagation::{PeerGroup, Propagation};
use super::{Inode, Mount, Path};
use crate::error::{Errno, Result};

/// So many mounts there may be.
pub const MOST_MOUNTS: usize = 4096;

/// A mount, with the inode that it is on.
type Child<'cx> = (WeakRc<Inode>, TempRc<'cx, Mount>);

/// The mounts that are in each.
pub(super) struct Children<'cx>(BTreeMap<WeakRc<Mount>, Vec<Child<'cx>>>);

impl<'cx> Children<'cx> {
    /// Those of all `mounts`.
    pub fn of(mounts: &[StrongRc<Mount>], cx: &'cx Cx) -> Self {
        let mut children: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for mount in mounts {
            let mount = mount.get(cx);
            if let Some((parent, inode)) = mount.point_names(cx) {
                children.entry(parent).or_default().push((inode, mount));
            }
        }
        Children(children)
    }

    fn entries(&self, mount: &TempRc<'_, Mount>) -> &[Child<'cx>] {
        self.0.get(&mount.downgrade()).map_or(&[], Vec::as_slice)
    }

    /// Whether there are any in a mount.
    pub fn are_in(&self, mount: &TempRc<'_, Mount>) -> bool {
        !self.entries(mount).is_empty()
    }

    /// The mount on that inode, as seen through `mount`.
    pub fn at(&self, mount: &TempRc<'_, Mount>, inode: WeakRc<Inode>) -> Option<&TempRc<'cx, Mount>> {
        self.entries(mount).iter().rev().find(|(at, _)| *at == inode).map(|(_, child)| child)
    }

    /// A mount with all that are in it and that `goes_along` says yes to, each behind the one that it is in.
    fn tree(
        &self,
        top: &TempRc<'cx, Mount>,
        mut goes_along: impl FnMut(WeakRc<Inode>, &TempRc<'cx, Mount>, IsIn) -> bool,
    ) -> Vec<TempRc<'cx, Mount>> {
        let mut tree = vec![top.clone()];
        let mut next = 0;
        while let Some(mount) = tree.get(next).cloned() {
            let is_in = if next == 0 { IsIn::Top } else { IsIn::Other };
            let children = self.entries(&mount).iter().filter(|(inode, child)| goes_along(*inode, child, is_in));
            tree.extend(children.map(|(_, child)| child.clone()));
            next += 1;
        }
        tree
    }

    /// A mount with all that are in it, each behind the one that it is in.
    pub fn whole_tree(&self, top: &TempRc<'cx, Mount>) -> Vec<TempRc<'cx, Mount>> {
        self.tree(top, |_, _, _| true)
    }

    /// The mount of a place with all that are in it below that place, but for those that cannot be bound and what is in them: what a recursive bind mount shows.
    pub fn bindable_tree(&self, place: &Path<'cx>, cx: &Cx) -> Vec<TempRc<'cx, Mount>> {
        self.tree(&place.mount, |inode, child, is_in| {
            let is_below = || inode.upgrade(cx).is_ok_and(|inode| Inode::is_within(&inode, &place.inode, cx));
            !child.propagation(cx).is_unbindable && (is_in == IsIn::Other || is_below())
        })
    }
}

/// In which mount of a tree a mount is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IsIn {
    Top,
    Other,
}

/// Copies of the mounts of a tree, the first with another `root`. They are in each other as those of the tree are; the first is nowhere.
pub(super) fn copy_tree(
    tree: &[TempRc<'_, Mount>],
    root: StrongRc<Inode>,
    propagation: impl Fn(usize) -> Propagation,
    cx: &Cx,
) -> Vec<StrongRc<Mount>> {
    let mut copies: Vec<StrongRc<Mount>> = Vec::with_capacity(tree.len());
    let mut copy_of = BTreeMap::new();
    let mut root = Some(root);
    for (index, mount) in tree.iter().enumerate() {
        let shown = root.take().unwrap_or_else(|| mount.root.share());
        let copy = StrongRc::new(mount.copy(shown, propagation(index)));
        if index > 0
            && let Some((parent, inode)) = mount.point_names(cx)
            && let Some(&parent) = copy_of.get(&parent)
        {
            hold_point(inode, cx);
            Mount::place(&copy.get(cx), Some((parent, inode)), cx);
        }
        copy_of.insert(mount.downgrade(), copy.downgrade());
        copies.push(copy);
    }
    copies
}

/// One more mount is on an inode that has one, and so cannot be removed.
fn hold_point(inode: WeakRc<Inode>, cx: &Cx) {
    if let Ok(inode) = inode.upgrade(cx) {
        inode.mounts.fetch_add(1, Ordering::Relaxed);
    }
}

/// A mount that gets a copy of what is mounted in another.
pub(super) struct Receiver<'cx> {
    mount: TempRc<'cx, Mount>,
    /// Its peer group.
    group: Option<PeerGroup>,
    /// Of which group's copies its own is a slave; `None`: it is a peer of where it was mounted.
    hears_of: Option<PeerGroup>,
}

impl Receiver<'_> {
    /// Whether it is that mount.
    pub fn is(&self, mount: &Mount) -> bool {
        self.mount.id == mount.id
    }
}

/// A slave, with its own peer group if it is in one.
type Slave<'cx> = (TempRc<'cx, Mount>, Option<PeerGroup>);

/// The mounts of each peer group, and the slaves of each.
pub(super) struct Groups<'cx> {
    members: BTreeMap<PeerGroup, Vec<TempRc<'cx, Mount>>>,
    slaves: BTreeMap<PeerGroup, Vec<Slave<'cx>>>,
}

impl<'cx> Groups<'cx> {
    /// Those of all `mounts`.
    pub fn of(mounts: &[StrongRc<Mount>], cx: &'cx Cx) -> Self {
        let mut groups = Groups { members: BTreeMap::new(), slaves: BTreeMap::new() };
        for mount in mounts {
            let mount = mount.get(cx);
            let propagation = mount.propagation(cx);
            if let Some(group) = propagation.group {
                groups.members.entry(group).or_default().push(mount.clone());
            }
            if let Some(master) = propagation.master {
                groups.slaves.entry(master).or_default().push((mount, propagation.group));
            }
        }
        groups
    }

    /// Which mounts get a copy of what is mounted at a place: its mount's peers, their slaves, and the slaves of these, as far as they show the place.
    pub fn receivers(&self, on: &Path<'_>, cx: &Cx) -> Vec<Receiver<'cx>> {
        let mut found = Vec::new();
        let Some(origin) = on.mount.propagation(cx).group else { return found };
        // What is in no tree, or in one that is nowhere, hears of nothing.
        let shows =
            |mount: &TempRc<'_, Mount>| mount.is_attached() && Inode::is_within(&on.inode, &mount.root.get(cx), cx);
        let members = |group: PeerGroup| self.members.get(&group).into_iter().flatten().filter(|mount| shows(mount));
        for mount in members(origin).filter(|mount| mount.id != on.mount.id) {
            found.push(Receiver { mount: mount.clone(), group: Some(origin), hears_of: None });
        }
        let (mut seen, mut queue) = (BTreeSet::new(), vec![(origin, origin)]);
        while let Some((master, heard)) = queue.pop() {
            for (slave, group) in self.slaves.get(&master).into_iter().flatten() {
                let Some(group) = *group else {
                    if shows(slave) {
                        found.push(Receiver { mount: slave.clone(), group: None, hears_of: Some(heard) });
                    }
                    continue;
                };
                if seen.insert(group) {
                    let before = found.len();
                    let receivers = members(group).cloned();
                    found.extend(receivers.map(|mount| Receiver { mount, group: Some(group), hears_of: Some(heard) }));
                    queue.push((group, if found.len() > before { group } else { heard }));
                }
            }
        }
        found
    }
}

/// Checks that there may be so many mounts more, each once and once for each receiver.
///
/// # Errors
/// ENOSPC.
pub(super) fn check_room(mounts: &[StrongRc<Mount>], more: usize, receivers: &[Receiver<'_>]) -> Result<()> {
    let count = more.saturating_mul(receivers.len() + 1).saturating_add(mounts.len());
    if count > MOST_MOUNTS { Err(Errno::ENOSPC) } else { Ok(()) }
}

/// A tree is being mounted on `inode` of a mount that is shared: each receiver gets a copy. What is mounted there already comes to be on the copy.
pub(super) fn copy_to_receivers(
    mounts: &mut Vec<StrongRc<Mount>>,
    tree: &[TempRc<'_, Mount>],
    on: &Path<'_>,
    receivers: Vec<Receiver<'_>>,
    cx: &Cx,
) {
    let (Some(top), Some(origin)) = (tree.first(), on.mount.propagation(cx).group) else { return };
    let own: Vec<Propagation> = tree.iter().map(|mount| mount.propagation(cx)).collect();
    // Which groups the copies are in, by the group of the mount that they are in.
    let mut groups: BTreeMap<PeerGroup, Vec<Option<PeerGroup>>> = BTreeMap::new();
    groups.insert(origin, own.iter().map(|propagation| propagation.group).collect());
    for group in receivers.iter().filter_map(|receiver| receiver.group) {
        groups.entry(group).or_insert_with(|| own.iter().map(|_| Some(PeerGroup::fresh())).collect());
    }
    let inode = on.inode.downgrade();
    let children = Children::of(mounts, cx);
    for receiver in receivers {
        let group_of = |of: Option<PeerGroup>, index: usize| groups.get(&of?).and_then(|groups| groups[index]);
        let propagation = |index: usize| Propagation {
            group: group_of(receiver.group, index),
            master: receiver.hears_of.map_or(own[index].master, |master| group_of(Some(master), index)),
            is_unbindable: false,
        };
        let copies = copy_tree(tree, top.root.share(), propagation, cx);
        let Some(copy) = copies.first().map(|copy| copy.get(cx)) else { continue };
        hold_point(inode, cx);
        Mount::place(&copy, Some((receiver.mount.downgrade(), inode)), cx);
        if let Some(covering) = children.at(&receiver.mount, inode) {
            // Its place on `inode` goes, and it gets one on the copy.
            let root = copy.root.downgrade();
            hold_point(root, cx);
            let old = Mount::place(covering, Some((copy.downgrade(), root)), cx);
            super::mount_table::give_up_point(old, cx);
        }
        add(mounts, copies, Tree::Namespace, cx);
    }
}

/// Enters mounts that have their places in a tree.
pub(super) fn add(mounts: &mut Vec<StrongRc<Mount>>, new: Vec<StrongRc<Mount>>, tree: Tree, cx: &Cx) {
    new.iter().for_each(|mount| mount.get(cx).set_tree(tree));
    mounts.extend(new);
}

/// What goes with a mount that is unmounted.
pub(super) struct Going<'cx> {
    /// The mounts, itself first.
    pub mounts: Vec<TempRc<'cx, Mount>>,
    /// What stays though it is on one of them, with that one: it comes to be where that is.
    pub uncovered: Vec<(TempRc<'cx, Mount>, TempRc<'cx, Mount>)>,
}

/// What goes with a mount: `lazily` all that are in it; and what was mounted elsewhere together with one of them, unless something else is mounted in it.
///
/// # Errors
/// EBUSY: something is mounted in it, and it does not go lazily.
pub(super) fn going<'cx>(
    mounts: &[StrongRc<Mount>],
    mount: &TempRc<'cx, Mount>,
    lazily: bool,
    cx: &'cx Cx,
) -> Result<Going<'cx>> {
    let (children, groups) = (Children::of(mounts, cx), Groups::of(mounts, cx));
    if !lazily && children.are_in(mount) {
        return Err(Errno::EBUSY);
    }
    let tree = children.whole_tree(mount);
    let mut names: BTreeSet<_> = tree.iter().map(TempRc::downgrade).collect();
    let mut going = Going { mounts: tree.clone(), uncovered: Vec::new() };
    for member in tree.iter().rev() {
        let Some(point) = member.point(cx) else { continue };
        for receiver in groups.receivers(&point, cx) {
            let Some(copy) = children.at(&receiver.mount, point.inode.downgrade()) else { continue };
            if names.contains(&copy.downgrade()) {
                continue;
            }
            let mut staying = children.entries(copy).iter().filter(|(_, child)| !names.contains(&child.downgrade()));
            match (staying.next(), staying.next()) {
                (None, _) => {}
                (Some((inode, covering)), None) if *inode == copy.root.downgrade() => {
                    going.uncovered.push((covering.clone(), copy.clone()));
                }
                _ => continue,
            }
            names.insert(copy.downgrade());
            going.mounts.push(copy.clone());
        }
    }
    Ok(going)
}
