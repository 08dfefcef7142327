//! The tree: what changes its shape, and what it allows where.

use alloc::boxed::Box;
use core::any::Any;
use core::ops::Bound;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use refs::{NoSuspend, SpinGuard, SpinLock, StrongRc, TempRc};

use super::{CONTROLLERS, Cgroup, Controllers};
use crate::error::{Errno, Result};

/// Held around each change of the tree: of its shape, of which controllers are enabled, of who is in which group (but for processes that are made where their makers are, and those that end).
static TREE: SpinLock<()> = SpinLock::new(());
/// The group that all others are in.
static ROOT: SpinLock<Option<StrongRc<Cgroup>>> = SpinLock::new(None);
/// How many groups freeze.
static FREEZING: AtomicUsize = AtomicUsize::new(0);
/// How many groups are being killed.
static KILLING: AtomicUsize = AtomicUsize::new(0);
/// Whether any group ever was killed as a whole: else nobody looks whether such a kill has ended.
static WAS_KILLED: AtomicBool = AtomicBool::new(false);
/// The number that the next group gets.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// No group is deeper than this: whoever makes or ends a thread counts it on each level.
const DEEPEST: u32 = 256;

/// Makes the root. At boot.
pub fn start() {
    ROOT.with(|root| *root = Some(StrongRc::new(Cgroup::new(0, b"", None, Box::new(())))));
}

/// The root.
///
/// # Errors
/// ENODEV before there is one.
pub fn root<'cx>(cx: &'cx impl NoSuspend) -> Result<TempRc<'cx, Cgroup>> {
    ROOT.lock(cx).as_ref().map(|root| root.get(cx)).ok_or(Errno::ENODEV)
}

/// Whether any group freezes.
#[inline(always)]
pub fn any_freezes() -> bool {
    FREEZING.load(Ordering::SeqCst) > 0
}

/// Whether any group is being killed.
#[inline(always)]
pub fn any_is_killed() -> bool {
    KILLING.load(Ordering::SeqCst) > 0
}

/// Whether any group ever was killed as a whole.
#[inline(always)]
pub(super) fn any_was_killed() -> bool {
    WAS_KILLED.load(Ordering::SeqCst)
}

/// The tree, which nobody else changes as long as this is there.
pub struct Tree<'a> {
    _guard: SpinGuard<'a, ()>,
}

/// Locks the tree.
pub fn lock_tree<'a>(cx: &'a impl NoSuspend) -> Tree<'a> {
    Tree { _guard: TREE.lock(cx) }
}

/// The lowest group that both are in, themselves among them; `None` if that is the root.
pub fn common_ancestor<'cx>(one: &'cx Cgroup, other: &'cx Cgroup, cx: &'cx impl NoSuspend) -> Option<&'cx Cgroup> {
    let depth = one.depth.min(other.depth);
    let same_depth = |group: &'cx Cgroup| group.up(cx).skip_while(move |above| above.depth > depth);
    same_depth(one).zip(same_depth(other)).find(|(one, other)| one.id == other.id).map(|(one, _)| one)
}

/// The group that comes after `at` in a walk through all that are in `top`, which comes first.
pub fn next_below(at: &Cgroup, top: u64, cx: &impl NoSuspend) -> Option<StrongRc<Cgroup>> {
    if let Some((_, first)) = at.children.lock(cx).all.first_key_value() {
        return Some(first.share());
    }
    let mut left = at;
    while left.id != top {
        let parent = left.parent.as_ref()?.get(cx).into_ref();
        let behind = (Bound::Excluded(left.id), Bound::Unbounded);
        if let Some((_, next)) = parent.children.lock(cx).all.range(behind).next() {
            return Some(next.share());
        }
        left = parent;
    }
    None
}

impl Tree<'_> {
    /// Makes a group below `parent`; the caller gives it its directory by `enter`, before others find it. `members` is what the room of processes keeps of it.
    ///
    /// # Errors
    /// ENOENT: `parent` was removed. EEXIST. EAGAIN: there are too many groups, or it would be too deep. ENOMEM.
    pub fn make<'cx, C: NoSuspend>(
        &self,
        parent: &TempRc<'cx, Cgroup>,
        name: &[u8],
        members: Box<dyn Any + Send + Sync>,
        cx: &'cx C,
        enter: impl FnOnce(&TempRc<'cx, Cgroup>),
    ) -> Result<()> {
        if parent.is_removed() {
            return Err(Errno::ENOENT);
        }
        if parent.child(name, cx).is_some() {
            return Err(Errno::EEXIST);
        }
        let root = root(cx)?;
        let is_full = |(levels, group): (usize, &Cgroup)| {
            group.descendants() >= group.max_descendants.get() || levels + 1 > group.max_depth.get()
        };
        if parent.depth + 1 >= DEEPEST || parent.up(cx).chain([&*root]).enumerate().any(is_full) {
            return Err(Errno::EAGAIN);
        }
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let above = parent.share().ok_or(Errno::ENOENT)?;
        let group = StrongRc::new(Cgroup::new(id, name, Some(above), members));
        let made = group.get(cx);
        made.charge_place()?;
        parent.subtree_control().begin(&made)?;
        enter(&made);
        for above in parent.up(cx).chain([&*root]) {
            above.descendants.fetch_add(1, Ordering::Relaxed);
        }
        made.say(cx);
        let mut children = parent.children.lock(cx);
        children.by_name.insert(name.into(), id);
        children.all.insert(id, group);
        Ok(())
    }

    /// Takes a group out of the tree: nobody gets into it any more.
    ///
    /// # Errors
    /// EBUSY: somebody is in it, or a group below it; ENODEV: it was removed.
    pub fn remove(&self, group: &TempRc<'_, Cgroup>, cx: &impl NoSuspend) -> Result<()> {
        if group.is_removed() {
            return Err(Errno::ENODEV);
        }
        let Some(parent) = group.parent(cx) else { return Err(Errno::EBUSY) };
        if group.population.is_populated() || group.child_count(cx) > 0 {
            return Err(Errno::EBUSY);
        }
        group.is_removed.store(true, Ordering::SeqCst);
        if group.population.freezes.swap(false, Ordering::SeqCst) {
            FREEZING.fetch_sub(1, Ordering::SeqCst);
        }
        group.controllers(cx).end(group);
        group.give_place_back();
        let root = root(cx)?;
        for above in parent.up(cx).chain([&*root]) {
            above.descendants.fetch_sub(1, Ordering::Relaxed);
            above.dying.fetch_add(1, Ordering::Relaxed);
        }
        let mut children = parent.children.lock(cx);
        children.by_name.remove(&group.name);
        let removed = children.all.remove(&group.id);
        drop(children);
        drop(removed);
        Ok(())
    }

    /// Whether a group has processes of its own beside groups below it that compete with them for what threaded controllers give.
    fn is_thread_root(group: &Cgroup) -> bool {
        !group.is_root() && group.population.own() > 0 && group.subtree_control().intersects(Controllers::THREADED)
    }

    /// Whether it may have processes of its own beside controllers for those below it.
    fn can_be_thread_root(group: &Cgroup) -> bool {
        group.is_root()
            || (group.population.threads() == group.population.own()
                && Controllers::THREADED.contains(group.subtree_control()))
    }

    /// Whether there is no such group above it.
    fn is_valid_domain(group: &Cgroup, cx: &impl NoSuspend) -> bool {
        !group.up(cx).skip(1).any(Self::is_thread_root)
    }

    /// What `cgroup.type` shows.
    pub fn kind(&self, group: &Cgroup, cx: &impl NoSuspend) -> &'static str {
        if !Self::is_valid_domain(group, cx) {
            "domain invalid"
        } else if Self::is_thread_root(group) {
            "domain threaded"
        } else {
            "domain"
        }
    }

    /// Checks that a process may come into a group.
    ///
    /// # Errors
    /// ENODEV: it was removed. EOPNOTSUPP: a group above it has processes. EBUSY: it gives controllers to those below it.
    pub fn check_destination(&self, group: &Cgroup, cx: &impl NoSuspend) -> Result<()> {
        if group.is_removed() {
            return Err(Errno::ENODEV);
        }
        if !Self::is_valid_domain(group, cx) {
            return Err(Errno::EOPNOTSUPP);
        }
        if Self::can_be_thread_root(group) || group.subtree_control().is_empty() { Ok(()) } else { Err(Errno::EBUSY) }
    }

    /// Gives controllers to the groups below one, and takes others from them: `cgroup.subtree_control`.
    ///
    /// # Errors
    /// ENODEV: it was removed. ENOENT: it does not have one itself. EBUSY: a group below it gives one on, or it has processes. EOPNOTSUPP: one above it has. ENOMEM.
    pub fn control(
        &self,
        group: &Cgroup,
        enable: Controllers,
        disable: Controllers,
        cx: &impl NoSuspend,
    ) -> Result<()> {
        if group.is_removed() {
            return Err(Errno::ENODEV);
        }
        let before = group.subtree_control();
        for controller in CONTROLLERS {
            if enable.difference(before).contains(controller.bit) && !group.controllers(cx).contains(controller.bit) {
                return Err(Errno::ENOENT);
            }
            if disable.intersection(before).contains(controller.bit) {
                let mut is_given_on = false;
                group.each_child(0, cx, |child| {
                    is_given_on = child.subtree_control().contains(controller.bit);
                    !is_given_on
                });
                if is_given_on {
                    return Err(Errno::EBUSY);
                }
            }
        }
        let (enable, disable) = (enable.difference(before), disable.intersection(before));
        if !enable.is_empty() {
            Self::check_enabling(group, enable, cx)?;
        }
        let mut next = 0;
        while let Some(child) = group.child_from(next, cx) {
            if let Err(error) = enable.begin(&child) {
                Self::each_below(group, child.id, cx, |begun| enable.end(begun));
                return Err(error);
            }
            next = child.id + 1;
        }
        group.set_subtree_control(before.union(enable).difference(disable));
        Self::each_below(group, u64::MAX, cx, |child| disable.end(child));
        Ok(())
    }

    /// Runs `f` on the groups directly below one whose numbers are less than `end`, with only the tree locked.
    fn each_below(group: &Cgroup, end: u64, cx: &impl NoSuspend, f: impl Fn(&Cgroup)) {
        let mut next = 0;
        while let Some(child) = group.child_from(next, cx).filter(|child| child.id < end) {
            f(&child);
            next = child.id + 1;
        }
    }

    fn check_enabling(group: &Cgroup, enable: Controllers, cx: &impl NoSuspend) -> Result<()> {
        if !Self::is_valid_domain(group, cx) {
            return Err(Errno::EOPNOTSUPP);
        }
        if group.is_root() {
            return Ok(());
        }
        if !enable.difference(Controllers::THREADED).is_empty() {
            if Self::is_thread_root(group) {
                return Err(Errno::EOPNOTSUPP);
            }
        } else if Self::can_be_thread_root(group) {
            return Ok(());
        }
        if group.population.own() > 0 { Err(Errno::EBUSY) } else { Ok(()) }
    }

    /// Sets `cgroup.freeze`; false if it was so already. Who is in it is told by the caller, after that.
    ///
    /// # Errors
    /// ENODEV: it was removed.
    pub fn set_freeze(&self, group: &Cgroup, freezes: bool) -> Result<bool> {
        if group.is_removed() {
            return Err(Errno::ENODEV);
        }
        let is_new = group.population.freezes.swap(freezes, Ordering::SeqCst) != freezes;
        if is_new {
            if freezes {
                FREEZING.fetch_add(1, Ordering::SeqCst);
            } else {
                FREEZING.fetch_sub(1, Ordering::SeqCst);
            }
        }
        Ok(is_new)
    }

    /// A kill of all that is in a group begins: as long as what is returned is there, whoever makes a process or moves from within ends as well.
    ///
    /// # Errors
    /// ENODEV: it was removed.
    pub fn begin_kill(&self, group: &TempRc<'_, Cgroup>, cx: &impl NoSuspend) -> Result<Kill> {
        let share = group.share().filter(|_| !group.is_removed()).ok_or(Errno::ENODEV)?;
        WAS_KILLED.store(true, Ordering::SeqCst);
        group.begin_measuring(cx);
        KILLING.fetch_add(1, Ordering::SeqCst);
        group.population.kills.fetch_add(1, Ordering::SeqCst);
        Ok(Kill(share))
    }
}

/// A kill of all that is in a group: see [`Tree::begin_kill`].
pub struct Kill(StrongRc<Cgroup>);

impl Drop for Kill {
    fn drop(&mut self) {
        self.0.with(|group| group.population.kills.fetch_sub(1, Ordering::SeqCst));
        KILLING.fetch_sub(1, Ordering::SeqCst);
    }
}
