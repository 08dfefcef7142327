//! [`Propagation`]: which mounts hear of what is mounted and unmounted in another. See mount_namespaces(7), "Shared subtrees".
//!
//! A shared mount is in a peer group: what is mounted in one of the group is mounted in all. A slave hears of what happens in its master, a peer group, and not the other way round. All mounts of a group
//! have the same master. Groups are only numbers: who is in one is what the table of mounts says, and so nothing refers to a mount that is gone.

use alloc::collections::{BTreeMap, BTreeSet};
use core::sync::atomic::{AtomicU32, Ordering};

use frame::Cx;
use linux_raw_sys::general;
use refs::{StrongRc, TempRc};

use super::Mount;

/// The number of a peer group, as `/proc/PID/mountinfo` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeerGroup(pub u32);

impl PeerGroup {
    /// A group that nobody is in yet.
    pub fn fresh() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        PeerGroup(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Which mounts a mount hears of, and whether it can be bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Propagation {
    /// Its peer group, if it is shared.
    pub group: Option<PeerGroup>,
    /// The group that it is a slave of.
    pub master: Option<PeerGroup>,
    /// It cannot be the source of a bind mount.
    pub is_unbindable: bool,
}

/// What mount(2) makes of a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PropagationType {
    /// MS_SHARED.
    Shared,
    /// MS_PRIVATE.
    Private,
    /// MS_SLAVE.
    Slave,
    /// MS_UNBINDABLE.
    Unbindable,
}

impl Propagation {
    /// As MS_SHARED, MS_SLAVE, MS_PRIVATE and MS_UNBINDABLE.
    pub fn types(self) -> u32 {
        let shared = if self.group.is_some() { general::MS_SHARED } else { 0 };
        let slave = if self.master.is_some() { general::MS_SLAVE } else { 0 };
        let unbindable = if self.is_unbindable { general::MS_UNBINDABLE } else { 0 };
        let any = shared | slave | unbindable;
        if any == 0 { general::MS_PRIVATE } else { any }
    }

    /// In a peer group, a new one if it is in none.
    pub fn shared(self) -> Self {
        Propagation { group: Some(self.group.unwrap_or_else(PeerGroup::fresh)), is_unbindable: false, ..self }
    }

    /// What it becomes; `has_peers`: others are in its group.
    fn changed(self, to: PropagationType, has_peers: bool) -> Self {
        match to {
            PropagationType::Shared => self.shared(),
            PropagationType::Private => Propagation::default(),
            PropagationType::Unbindable => Propagation { is_unbindable: true, ..Propagation::default() },
            PropagationType::Slave => {
                let master = if has_peers { self.group } else { self.master };
                Propagation { group: None, master, ..self }
            }
        }
    }
}

/// Changes the propagation of `changing`, some of `mounts`.
pub(super) fn change(mounts: &[StrongRc<Mount>], changing: &[TempRc<'_, Mount>], to: PropagationType, cx: &Cx) {
    let mut members: BTreeMap<PeerGroup, usize> = BTreeMap::new();
    for group in mounts.iter().filter_map(|mount| mount.get(cx).propagation(cx).group) {
        *members.entry(group).or_default() += 1;
    }
    let mut left = BTreeMap::new();
    for mount in changing {
        let mut propagation = mount.propagation.lock(cx);
        let before = *propagation;
        let count = before.group.and_then(|group| members.get_mut(&group));
        *propagation = before.changed(to, count.as_ref().is_some_and(|count| **count > 1));
        if let (Some(count), Some(group)) = (count, before.group)
            && propagation.group.is_none()
        {
            *count -= 1;
            left.insert(group, before.master);
        }
    }
    end_groups(mounts, &left, cx);
}

/// Mounts have left these groups, each with that master. The slaves of those that nobody is in any more become slaves of the masters.
pub(super) fn end_groups(mounts: &[StrongRc<Mount>], left: &BTreeMap<PeerGroup, Option<PeerGroup>>, cx: &Cx) {
    if left.is_empty() {
        return;
    }
    let groups: BTreeSet<_> = mounts.iter().filter_map(|mount| mount.get(cx).propagation(cx).group).collect();
    for mount in mounts {
        let mount = mount.get(cx);
        let mut propagation = mount.propagation.lock(cx);
        while let Some(master) = propagation.master
            && let Some(&above) = left.get(&master)
            && !groups.contains(&master)
        {
            propagation.master = above;
        }
    }
}
