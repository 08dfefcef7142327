//! [`Cgroup`]: one group, and what is counted in it.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use refs::{NoSuspend, SpinLock, StrongRc, TempRc};

use super::population::Population;
use super::{Controllers, Cpu, Memory, Pids, Reclaim};
use crate::error::{Errno, Result};

/// A number that can be limited: `max` at first.
pub struct Limit(AtomicUsize);

impl Default for Limit {
    fn default() -> Self {
        Limit(AtomicUsize::new(usize::MAX))
    }
}

impl Limit {
    /// The most that is allowed; `usize::MAX` for no limit.
    #[inline(always)]
    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Changes it.
    pub fn set(&self, limit: usize) {
        self.0.store(limit, Ordering::Relaxed);
    }

    /// There is none any more.
    pub fn lift(&self) {
        self.set(usize::MAX);
    }
}

/// The groups directly below one. Changed with the tree locked.
#[derive(Default)]
pub(super) struct Children {
    /// By their numbers, in the order in which they were made.
    pub all: BTreeMap<u64, StrongRc<Cgroup>>,
    pub by_name: BTreeMap<Box<[u8]>, u64>,
}

/// A control group.
pub struct Cgroup {
    /// Its number, which no other one has or had. The root has 0.
    pub id: u64,
    /// The name of its directory; empty for the root.
    pub name: Box<[u8]>,
    /// How many groups are above it.
    pub depth: u32,
    /// The group above it; `None` for the root.
    pub(super) parent: Option<StrongRc<Cgroup>>,
    pub(super) children: SpinLock<Children>,
    pub(super) is_removed: AtomicBool,
    subtree_control: AtomicU32,
    /// How many groups are below it.
    pub(super) descendants: AtomicUsize,
    /// How many were below it, and are not gone yet.
    pub(super) dying: AtomicUsize,
    /// `cgroup.max.depth`.
    pub max_depth: Limit,
    /// `cgroup.max.descendants`.
    pub max_descendants: Limit,
    /// Who is in it.
    pub population: Population,
    /// What the controller cpu keeps of it.
    pub cpu: Cpu,
    /// What the controller memory keeps of it.
    pub memory: Memory,
    /// What the controller pids keeps of it.
    pub pids: Pids,
    /// What the controller reclaim keeps of it.
    pub reclaim: Reclaim,
    /// The list of its members, which the room of processes keeps here.
    pub members: Box<dyn Any + Send + Sync>,
    /// Its directory, which the file system keeps here until the group is removed.
    pub directory: SpinLock<Option<Box<dyn Any + Send + Sync>>>,
}

impl Cgroup {
    pub(super) fn new(
        id: u64,
        name: &[u8],
        parent: Option<StrongRc<Cgroup>>,
        members: Box<dyn Any + Send + Sync>,
    ) -> Self {
        Cgroup {
            id,
            name: name.into(),
            depth: parent.as_ref().map_or(0, |parent| parent.with(|parent| parent.depth + 1)),
            parent,
            children: SpinLock::default(),
            is_removed: AtomicBool::new(false),
            subtree_control: AtomicU32::new(0),
            descendants: AtomicUsize::new(0),
            dying: AtomicUsize::new(0),
            max_depth: Limit::default(),
            max_descendants: Limit::default(),
            population: Population::default(),
            cpu: Cpu::default(),
            memory: Memory::default(),
            pids: Pids::default(),
            reclaim: Reclaim::default(),
            members,
            directory: SpinLock::new(None),
        }
    }

    /// Whether it is the root.
    pub fn is_root(&self) -> bool {
        self.parent.is_none()
    }

    /// Whether rmdir(2) has taken it out of the tree.
    pub fn is_removed(&self) -> bool {
        self.is_removed.load(Ordering::SeqCst)
    }

    /// The group above it.
    pub fn parent<'cx>(&self, cx: &'cx impl NoSuspend) -> Option<TempRc<'cx, Cgroup>> {
        Some(self.parent.as_ref()?.get(cx))
    }

    /// How many groups are below it.
    pub fn descendants(&self) -> usize {
        self.descendants.load(Ordering::Relaxed)
    }

    /// How many were below it that somebody still has a share in.
    pub fn dying(&self) -> usize {
        self.dying.load(Ordering::Relaxed)
    }

    /// How many groups are directly below it.
    pub fn child_count(&self, cx: &impl NoSuspend) -> usize {
        self.children.lock(cx).all.len()
    }

    /// The group of that name below it.
    pub fn child<'cx>(&self, name: &[u8], cx: &'cx impl NoSuspend) -> Option<TempRc<'cx, Cgroup>> {
        let children = self.children.lock(cx);
        Some(children.all.get(children.by_name.get(name)?)?.get(cx))
    }

    /// The first group below it whose number is `from` at least.
    pub(super) fn child_from<'cx>(&self, from: u64, cx: &'cx impl NoSuspend) -> Option<TempRc<'cx, Cgroup>> {
        let children = self.children.lock(cx);
        let (_, child) = children.all.range(from..).next()?;
        Some(child.get(cx))
    }

    /// Runs `f` on the groups below it whose numbers are `from` at least, in their order, until it says false.
    pub fn each_child(&self, from: u64, cx: &impl NoSuspend, mut f: impl FnMut(&Cgroup) -> bool) {
        let children = self.children.lock(cx);
        for (_, child) in children.all.range(from..) {
            if !f(&child.get(cx)) {
                break;
            }
        }
    }

    /// Itself, and all above it but the root.
    #[inline(always)]
    pub(super) fn up<'cx, C: NoSuspend>(&'cx self, cx: &'cx C) -> impl Iterator<Item = &'cx Cgroup> + 'cx {
        let mut at = Some(self);
        core::iter::from_fn(move || {
            let now = at?;
            // The root has none above it, and is left out.
            at = Some(now.parent.as_ref()?.get(cx).into_ref());
            Some(now)
        })
    }

    /// Its name as in `/proc/PID/cgroup`.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn path(&self, cx: &impl NoSuspend) -> Result<Vec<u8>> {
        let len: usize = self.up(cx).map(|group| group.name.len() + 1).sum();
        let mut path = Vec::new();
        path.try_reserve_exact(len.max(1)).map_err(|_| Errno::ENOMEM)?;
        path.resize(len, b'/');
        let mut end = len;
        for group in self.up(cx) {
            let start = end - group.name.len();
            path[start..end].copy_from_slice(&group.name);
            end = start - 1;
        }
        if path.is_empty() {
            path.push(b'/');
        }
        Ok(path)
    }

    /// The controllers that it can give to groups below it: `cgroup.controllers`.
    pub fn controllers(&self, cx: &impl NoSuspend) -> Controllers {
        self.parent(cx).map_or(Controllers::all(), |parent| parent.subtree_control())
    }

    /// The controllers that groups below it have: `cgroup.subtree_control`.
    pub fn subtree_control(&self) -> Controllers {
        Controllers::from_bits_truncate(self.subtree_control.load(Ordering::SeqCst))
    }

    pub(super) fn set_subtree_control(&self, controllers: Controllers) {
        self.subtree_control.store(controllers.bits(), Ordering::SeqCst);
    }

    /// Whether it, or a group above it, freezes.
    pub fn is_to_freeze(&self, cx: &impl NoSuspend) -> bool {
        self.up(cx).any(|group| group.population.freezes.load(Ordering::SeqCst))
    }

    /// Whether all who are in it or below it stand still: `frozen` of `cgroup.events`.
    pub fn is_frozen(&self, cx: &impl NoSuspend) -> bool {
        self.is_to_freeze(cx) && self.population.stands_still()
    }

    /// Whether it, or a group above it, is being killed with all that is in it.
    pub fn is_being_killed(&self, cx: &impl NoSuspend) -> bool {
        self.up(cx).any(|group| group.population.kills.load(Ordering::SeqCst) > 0)
    }

    /// Tells who waits at `cgroup.events` what has become of it.
    pub fn say(&self, cx: &impl NoSuspend) {
        self.population.say(self.is_frozen(cx));
    }

    /// One thread more, of a process that is made in it or, where it has others, is in it.
    ///
    /// # Errors
    /// EAGAIN: `pids.max`, its own or one above it. That is counted, and told.
    pub fn begin_thread(&self, cx: &impl NoSuspend) -> Result<()> {
        let refused = self.up(cx).find(|group| !group.pids.try_add());
        if let Some(refused) = refused {
            self.up(cx).take_while(|group| group.id != refused.id).for_each(|group| group.pids.remove(1));
            refused.say_denied(cx);
            return Err(Errno::EAGAIN);
        }
        self.come(1, None, cx);
        Ok(())
    }

    #[cold]
    fn say_denied(&self, cx: &impl NoSuspend) {
        self.pids.denied_here.fetch_add(1, Ordering::Relaxed);
        self.pids.local_event.notify();
        for group in self.up(cx) {
            group.pids.denied.fetch_add(1, Ordering::Relaxed);
            group.pids.event.notify();
        }
    }

    /// A thread has ended.
    pub fn end_thread(&self, cx: &impl NoSuspend) {
        self.leave(1, None, cx);
    }

    /// So many numbers are free again: of threads that have ended, or of a process that was waited for.
    pub fn release_pids(&self, count: usize, cx: &impl NoSuspend) {
        self.up(cx).for_each(|group| group.pids.remove(count));
    }

    /// So many threads come, all the same whether from outside of `end`, which is above it.
    fn come(&self, threads: usize, end: Option<&Cgroup>, cx: &impl NoSuspend) {
        self.population.add_own(threads);
        for group in self.up_to(end, cx) {
            let was_empty = group.population.add(threads);
            if was_empty {
                group.keep_charges(cx);
            }
            if was_empty || super::tree::any_freezes() {
                group.say(cx);
            }
        }
    }

    fn leave(&self, threads: usize, end: Option<&Cgroup>, cx: &impl NoSuspend) {
        self.population.remove_own(threads);
        for group in self.up_to(end, cx) {
            let is_empty = group.population.remove(threads);
            if is_empty {
                group.keep_charges(cx);
                if super::tree::any_was_killed() {
                    group.may_have_ended(cx);
                }
            }
            if is_empty || super::tree::any_freezes() {
                group.say(cx);
            }
        }
    }

    /// So many threads more of those that are counted stand still, or fewer.
    pub fn change_frozen(&self, by: isize, cx: &impl NoSuspend) {
        for group in self.up(cx) {
            group.population.change_frozen(by);
            group.say(cx);
        }
    }

    /// Itself and all above it, below `end` or the root.
    fn up_to<'cx>(&'cx self, end: Option<&Cgroup>, cx: &'cx impl NoSuspend) -> impl Iterator<Item = &'cx Cgroup> + 'cx {
        let end = end.map_or(0, |end| end.id);
        self.up(cx).take_while(move |group| group.id != end)
    }

    /// A process with so many `threads`, of which some are `frozen`, and so many `pids`, moves from one group to another; `None` is the root. What is above both counts it all the time. The
    /// tree is locked.
    pub fn move_between(from: Option<&Cgroup>, to: Option<&Cgroup>, moved: &Moved, cx: &impl NoSuspend) {
        let common = from.zip(to).and_then(|(from, to)| super::tree::common_ancestor(from, to, cx));
        let frozen = moved.frozen as isize;
        if let Some(to) = to {
            to.population.add_own(moved.threads);
            for group in to.up_to(common, cx) {
                group.pids.add(moved.pids);
                if group.population.add(moved.threads) {
                    group.keep_charges(cx);
                }
                group.population.change_frozen(frozen);
                group.say(cx);
            }
        }
        if let Some(from) = from {
            from.population.remove_own(moved.threads);
            for group in from.up_to(common, cx) {
                group.pids.remove(moved.pids);
                if group.population.remove(moved.threads) {
                    group.keep_charges(cx);
                }
                group.population.change_frozen(-frozen);
                group.say(cx);
            }
        }
    }
}

/// What a process counts for.
pub struct Moved {
    /// Threads that have not ended.
    pub threads: usize,
    /// Those among them that stand still.
    pub frozen: usize,
    /// Numbers: see [`Pids`].
    pub pids: usize,
}

impl Drop for Cgroup {
    /// It is no dying descendant any more.
    fn drop(&mut self) {
        if !*self.is_removed.get_mut() {
            return;
        }
        let mut above = self.parent.as_ref().map(StrongRc::share);
        while let Some(group) = above {
            above = group.with(|group| {
                group.dying.fetch_sub(1, Ordering::Relaxed);
                group.parent.as_ref().map(StrongRc::share)
            });
        }
    }
}
