//! `cgroup.procs` and `cgroup.threads`: who is in a group, and who comes into it.

use frame::Cx;
use refs::TempRc;

use super::file::{Showing, Writing};
use super::{check_may_migrate, number};
use crate::cgroup::{self, Cgroup};
use crate::error::{Errno, Result};
use crate::process::{self, GroupWalk, Met, Process};
use crate::step::Step;

/// Lists the processes that have not ended.
pub fn show_processes(text: &mut Showing, group: &TempRc<'_, Cgroup>, cx: &Cx) -> Step<()> {
    loop {
        let walk = text.walk.get_or_insert_with(|| GroupWalk::new(group, false));
        let Some(met) = walk.next_process(cx) else { return Ok(()) };
        if let Met::One(process) = met
            && let Ok(process) = process.upgrade(cx)
        {
            text.add(format_args!("{}\n", process.pid));
        }
        text.check_time()?;
    }
}

/// Lists their threads.
pub fn show_threads(text: &mut Showing, group: &TempRc<'_, Cgroup>, cx: &Cx) -> Step<()> {
    loop {
        let walk = text.walk.get_or_insert_with(|| GroupWalk::new(group, false));
        let Some(met) = walk.next_thread(cx) else { return Ok(()) };
        if let Met::One(thread) = met
            && let Ok(thread) = thread.upgrade(cx)
        {
            text.add(format_args!("{}\n", thread.tid()));
        }
        text.check_time()?;
    }
}

/// The process of the id that was written, which may be that of any thread of it; 0: the writer's. Zombies too.
fn chosen<'cx>(writing: &Writing<'_>, cx: &'cx Cx) -> Result<TempRc<'cx, Process>> {
    let id = number::parse(writing.text).map_err(|_| Errno::EINVAL)?;
    let id = u32::try_from(i32::try_from(id).map_err(|_| Errno::EINVAL)?).map_err(|_| Errno::EINVAL)?;
    if id == 0 {
        return Ok(writing.me.process(cx)?);
    }
    let of_thread = || process::find_thread(id, cx).and_then(|thread| thread.process(cx).ok());
    process::find(id, cx).or_else(of_thread).ok_or(Errno::ESRCH)
}

/// Moves a process into the group.
pub fn move_process(writing: &mut Writing<'_>, group: &TempRc<'_, Cgroup>, cx: &Cx) -> Step<()> {
    if writing.work.walk.is_none() {
        let process = chosen(writing, cx)?;
        // Where another core moves it just now, it is judged anew.
        let mut moved = judge_and_move(writing, &process, group, cx);
        while moved == Err(Errno::ESTALE) {
            moved = judge_and_move(writing, &process, group, cx);
        }
        if !moved? {
            return Ok(());
        }
        writing.work.walk = Some(GroupWalk::of_process(&process));
    }
    // Each looks where it is now.
    tell_moved(writing, cx)
}

fn judge_and_move(
    writing: &Writing<'_>,
    process: &TempRc<'_, Process>,
    group: &TempRc<'_, Cgroup>,
    cx: &Cx,
) -> Result<bool> {
    let from = process.control_group(cx);
    check_may_migrate(from.as_deref(), group, &writing.subject(cx), cx)?;
    process::migrate(process, from.map_or(0, |from| from.id), group, cx)
}

/// Moves a thread into the group, which must be where it is: threads stay with their process.
pub fn move_thread(writing: &mut Writing<'_>, group: &TempRc<'_, Cgroup>, cx: &Cx) -> Step<()> {
    let process = chosen(writing, cx)?;
    let from = process.control_group(cx);
    let subject = writing.subject(cx);
    check_may_migrate(from.as_deref(), group, &subject, cx)?;
    cgroup::lock_tree(cx).check_destination(group, cx)?;
    if from.as_ref().map_or(0, |from| from.id) == group.id { Ok(()) } else { Err(Errno::EOPNOTSUPP.into()) }
}

/// Tells all threads of a walk that they are in another group, or that the group has other controllers or another weight.
pub fn tell_moved(writing: &mut Writing<'_>, cx: &Cx) -> Step<()> {
    while let Some(met) = writing.work.walk.as_mut().and_then(|walk| walk.next_thread(cx)) {
        if let Met::One(thread) = met
            && let Ok(thread) = thread.upgrade(cx)
        {
            process::tell_moved(&thread, cx);
        }
        writing.work.check_time()?;
    }
    Ok(())
}

/// Tells all threads of a walk that their group freezes or thaws.
pub fn tell_all(writing: &mut Writing<'_>, freezes: bool, cx: &Cx) -> Step<()> {
    while let Some(met) = writing.work.walk.as_mut().and_then(|walk| walk.next_thread(cx)) {
        if let Met::One(thread) = met
            && let Ok(thread) = thread.upgrade(cx)
        {
            process::tell_frozen(&thread, freezes, cx);
        }
        writing.work.check_time()?;
    }
    Ok(())
}
