//! Process groups and sessions: see credentials(7), setpgid(2), setsid(2).
//!
//! A group is a number with members; a session is an object, because a terminal belongs to it. A session lives as long as a group in it.

use alloc::collections::BTreeMap;
use core::sync::atomic::{AtomicU32, Ordering};

use refs::{IdTable, NoSuspend, SpinLock, StrongRc, TempRc, WeakRc};

use super::members::{Cursor, Members, Ticket};
use super::{Life, Process};
use crate::error::{Errno, Result};

/// A session.
pub struct Session {
    /// Its id: the pid of the process that made it.
    pub id: u32,
    /// The device number of its controlling terminal; 0: none.
    pub terminal: AtomicU32,
    /// The foreground group of that terminal; 0: none.
    pub foreground: AtomicU32,
    /// What was the foreground group when the terminal was hung up: it is told when the leader ends. 0: none.
    pub hung_up: AtomicU32,
    /// How many groups are in it.
    groups: AtomicU32,
}

impl Session {
    fn new(id: u32) -> Self {
        let [terminal, foreground, hung_up, groups] = [const { AtomicU32::new(0) }; 4];
        Session { id, terminal, foreground, hung_up, groups }
    }
}

struct Group {
    session: u32,
    members: Members<Process>,
    /// How many of them are stopped by job control and have not ended.
    stopped: usize,
}

static GROUPS: SpinLock<BTreeMap<u32, Group>> = SpinLock::new(BTreeMap::new());
static SESSIONS: IdTable<Session> = IdTable::new();

/// The session of that id.
pub fn session<'cx>(id: u32, cx: &'cx impl NoSuspend) -> Option<TempRc<'cx, Session>> {
    SESSIONS.get(id, cx)
}

/// The session that has this controlling terminal.
pub fn session_of_terminal<'cx>(terminal: u32, cx: &'cx impl NoSuspend) -> Option<TempRc<'cx, Session>> {
    SESSIONS
        .all(cx)
        .filter_map(|session| session.upgrade(cx).ok())
        .find(|session| terminal != 0 && session.terminal.load(Ordering::Relaxed) == terminal)
}

/// The processes of a group, zombies too. They are looked up one by one, so this takes no memory.
pub fn group_members<'a>(group: u32, cx: &'a impl NoSuspend) -> impl Iterator<Item = WeakRc<Process>> + 'a {
    let mut cursor = Cursor::default();
    core::iter::from_fn(move || next_member(group, &mut cursor, cx))
}

/// The next of a walk through the processes of a group.
pub fn next_member(group: u32, cursor: &mut Cursor, cx: &impl NoSuspend) -> Option<WeakRc<Process>> {
    GROUPS.lock(cx).get(&group)?.members.next(cursor)
}

/// The session that a group is in, if there is such a group.
pub fn group_session(group: u32, cx: &impl NoSuspend) -> Option<u32> {
    GROUPS.lock(cx).get(&group).map(|group| group.session)
}

/// Whether a group or session has this number.
pub(super) fn is_in_use(id: u32, cx: &impl NoSuspend) -> bool {
    GROUPS.lock(cx).contains_key(&id) || SESSIONS.weak(id, cx).is_some()
}

/// Enters a new process in the group and session of its maker.
pub(super) fn join(process: &TempRc<'_, Process>, maker: &Process, cx: &impl NoSuspend) {
    let mut groups = GROUPS.lock(cx);
    let (group, session) = (maker.group(), maker.session());
    process.set_group_and_session(group, session);
    enter(&mut groups, process, group, session, cx);
}

fn enter(
    groups: &mut BTreeMap<u32, Group>,
    process: &TempRc<'_, Process>,
    group: u32,
    session: u32,
    cx: &impl NoSuspend,
) {
    let group = groups.entry(group).or_insert_with(|| {
        if let Some(session) = SESSIONS.get(session, cx) {
            session.groups.fetch_add(1, Ordering::Relaxed);
        }
        Group { session, members: Members::new(), stopped: 0 }
    });
    process.in_group.set(group.members.enter(process.downgrade()));
}

/// Takes a process out of its group; the group goes with its last member, and the session with its last group.
pub(super) fn leave(process: &Process, cx: &impl NoSuspend) {
    let mut groups = GROUPS.lock(cx);
    if process.counts_as_stopped.swap(false, Ordering::Relaxed) {
        count_stopped(&mut groups, process.group(), false);
    }
    let ended = leave_by(&mut groups, process.group(), process.in_group.get(), cx);
    drop(groups);
    if let Some(session) = ended {
        drop(SESSIONS.remove(session, cx));
    }
}

/// Takes the member with that ticket out of a group; the session that ends with it.
fn leave_by(groups: &mut BTreeMap<u32, Group>, id: u32, ticket: Ticket, cx: &impl NoSuspend) -> Option<u32> {
    let group = groups.get_mut(&id)?;
    group.members.leave(ticket);
    if !group.members.is_empty() {
        return None;
    }
    let session = group.session;
    groups.remove(&id);
    (SESSIONS.get(session, cx)?.groups.fetch_sub(1, Ordering::Relaxed) == 1).then_some(session)
}

/// Job control has stopped a process, or it goes on or has ended: its group counts it or not, as it is now.
pub(super) fn count_if_stopped(process: &Process, cx: &impl NoSuspend) {
    let mut groups = GROUPS.lock(cx);
    let is_stopped = process.has_stopped(cx);
    if process.counts_as_stopped.swap(is_stopped, Ordering::Relaxed) != is_stopped {
        count_stopped(&mut groups, process.group(), is_stopped);
    }
}

fn count_stopped(groups: &mut BTreeMap<u32, Group>, group: u32, one_more: bool) {
    if let Some(group) = groups.get_mut(&group) {
        group.stopped = if one_more { group.stopped + 1 } else { group.stopped.saturating_sub(1) };
    }
}

/// Whether a member of the group is stopped by job control.
pub(super) fn has_stopped_member(group: u32, cx: &impl NoSuspend) -> bool {
    GROUPS.lock(cx).get(&group).is_some_and(|group| group.stopped > 0)
}

/// Moves a process from its group to another; the session that ends with that.
fn change_group(
    groups: &mut BTreeMap<u32, Group>,
    process: &TempRc<'_, Process>,
    group: u32,
    session: u32,
    cx: &impl NoSuspend,
) -> Option<u32> {
    let (old, ticket) = (process.group(), process.in_group.get());
    // Entered first: the session must not end in between.
    enter(groups, process, group, session, cx);
    process.set_group_and_session(group, session);
    if process.counts_as_stopped.load(Ordering::Relaxed) {
        count_stopped(groups, old, false);
        count_stopped(groups, group, true);
    }
    leave_by(groups, old, ticket, cx)
}

/// Moves a process to a group, which is made if it does not exist: see setpgid(2). The caller has checked who may do that to whom.
///
/// # Errors
/// ESRCH if it was waited for; EPERM if it leads a session, or if the group is in another session or does not exist and is not its own.
pub fn set_group(process: &TempRc<'_, Process>, group: u32, cx: &impl NoSuspend) -> Result<()> {
    let mut groups = GROUPS.lock(cx);
    let session = process.session();
    if process.life() == Life::Reaped {
        return Err(Errno::ESRCH);
    }
    if session == process.pid {
        return Err(Errno::EPERM);
    }
    if group != process.pid && groups.get(&group).map(|group| group.session) != Some(session) {
        return Err(Errno::EPERM);
    }
    if group == process.group() {
        return Ok(());
    }
    // It stays in its session, which has a group then.
    change_group(&mut groups, process, group, session, cx);
    Ok(())
}

/// Makes a session with one group and one process: see setsid(2).
///
/// # Errors
/// EPERM if it leads a group (or one of that number is left).
pub fn create_session(process: &TempRc<'_, Process>, cx: &impl NoSuspend) -> Result<u32> {
    let id = process.pid;
    let mut groups = GROUPS.lock(cx);
    if groups.contains_key(&id) || SESSIONS.weak(id, cx).is_some() {
        return Err(Errno::EPERM);
    }
    drop(SESSIONS.insert(id, StrongRc::new(Session::new(id)), cx));
    let ended = change_group(&mut groups, process, id, id, cx);
    drop(groups);
    if let Some(session) = ended {
        drop(SESSIONS.remove(session, cx));
    }
    Ok(id)
}

/// The session of process 1.
pub(super) fn found_session(process: &TempRc<'_, Process>, id: u32, cx: &impl NoSuspend) {
    drop(SESSIONS.insert(id, StrongRc::new(Session::new(id)), cx));
    enter(&mut GROUPS.lock(cx), process, id, id, cx);
}

/// Whether a group is orphaned: no member has a parent in the same session but outside the group, so nobody would continue it if it stopped.
pub fn is_orphaned(group: u32, cx: &impl NoSuspend) -> bool {
    is_orphaned_without(group, None, cx)
}

/// Whether a group is orphaned if `leaving` is not counted, neither as a member nor as a parent.
pub(super) fn is_orphaned_without(group: u32, leaving: Option<&Process>, cx: &impl NoSuspend) -> bool {
    !group_members(group, cx).filter_map(|member| member.upgrade(cx).ok()).any(|member| {
        if member.life() != Life::Alive || leaving.is_some_and(|leaving| leaving.pid == member.pid) {
            return false;
        }
        member.parent(cx).is_some_and(|parent| {
            parent.group() != group
                && parent.session() == member.session()
                && parent.pid != super::INIT
                && leaving.is_none_or(|leaving| leaving.pid != parent.pid)
        })
    })
}
