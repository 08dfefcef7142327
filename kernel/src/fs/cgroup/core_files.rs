//! The files that each group has.

use core::sync::atomic::Ordering;

use frame::Cx;
use refs::TempRc;

use super::file::{Showing, Writing};
use super::{Entry, limits, number, procs};
use crate::cgroup::{self, Cgroup, Controllers};
use crate::error::{Errno, Result};
use crate::process::{self, GroupWalk, Met};
use crate::reclaim;
use crate::sched;
use crate::signal::{Info, Signal, send};
use crate::step::Step;

const fn file(name: &'static str) -> Entry {
    Entry::new(name, Controllers::empty())
}

/// The files.
pub const FILES: &[Entry] = &[
    file("cgroup.controllers").in_root().shows(|text, group, cx| {
        list(text, group.controllers(cx));
        Ok(())
    }),
    file("cgroup.events")
        .shows(|text, group, cx| {
            let (populated, frozen) = (group.population.is_populated(), group.is_frozen(cx));
            text.add(format_args!("populated {}\nfrozen {}\n", u8::from(populated), u8::from(frozen)));
            Ok(())
        })
        .tells(|group| &group.population.event),
    file("cgroup.freeze")
        .shows(|text, group, _| {
            text.add(format_args!("{}\n", u8::from(group.population.freezes.load(Ordering::SeqCst))));
            Ok(())
        })
        .changes(freeze),
    file("cgroup.kill").changes(kill),
    file("cgroup.max.depth")
        .in_root()
        .shows(|text, group, _| {
            limits::show(text, &group.max_depth);
            Ok(())
        })
        .changes(|writing, group, _| {
            group.max_depth.set(limits::written(writing, limits::parse_count)?);
            Ok(())
        }),
    file("cgroup.max.descendants")
        .in_root()
        .shows(|text, group, _| {
            limits::show(text, &group.max_descendants);
            Ok(())
        })
        .changes(|writing, group, _| {
            group.max_descendants.set(limits::written(writing, limits::parse_count)?);
            Ok(())
        }),
    file("cgroup.procs").in_root().shows(procs::show_processes).changes(procs::move_process),
    file("cgroup.stat").in_root().shows(|text, group, _| {
        text.add(format_args!("nr_descendants {}\n", group.descendants()));
        text.add(format_args!("nr_dying_descendants {}\n", group.dying()));
        Ok(())
    }),
    file("cgroup.subtree_control")
        .in_root()
        .shows(|text, group, _| {
            list(text, group.subtree_control());
            Ok(())
        })
        .changes(control),
    file("cgroup.threads").in_root().shows(procs::show_threads).changes(procs::move_thread),
    file("cgroup.type")
        .shows(|text, group, cx| {
            text.add(format_args!("{}\n", cgroup::lock_tree(cx).kind(group, cx)));
            Ok(())
        })
        .changes(|writing, _, _| {
            let is_known = writing.text == b"threaded";
            // Threads stay with their process.
            Err(if is_known { Errno::EOPNOTSUPP } else { Errno::EINVAL }.into())
        }),
    file("cpu.stat").in_root().shows(show_times),
];

/// Lists controllers.
fn list(text: &mut Showing, controllers: Controllers) {
    for (index, controller) in controllers.each().enumerate() {
        text.add(format_args!("{}{}", if index == 0 { "" } else { " " }, controller.name));
    }
    if !controllers.is_empty() {
        text.add(format_args!("\n"));
    }
}

/// What is to be enabled and what disabled.
fn parse_control(text: &[u8]) -> Result<(Controllers, Controllers)> {
    let (mut enable, mut disable) = (Controllers::empty(), Controllers::empty());
    for word in text.split(|&byte| byte == b' ').filter(|word| !word.is_empty()) {
        let named = Controllers::named(&word[1..]).ok_or(Errno::EINVAL)?;
        let (to, from) = match word[0] {
            b'+' => (&mut enable, &mut disable),
            b'-' => (&mut disable, &mut enable),
            _ => return Err(Errno::EINVAL),
        };
        to.insert(named);
        from.remove(named);
    }
    Ok((enable, disable))
}

fn control(writing: &mut Writing<'_>, group: &TempRc<'_, Cgroup>, cx: &Cx) -> Step<()> {
    let (enable, disable) = parse_control(writing.text)?;
    if enable.contains(Controllers::RECLAIM) && !reclaim::is_calibrated() {
        writing.work.calibrate()?;
    }
    if writing.work.walk.is_none() {
        cgroup::lock_tree(cx).control(group, enable, disable, cx)?;
        if !enable.union(disable).intersects(Controllers::MEMORY | Controllers::CPU | Controllers::RECLAIM) {
            return Ok(());
        }
        writing.work.walk = Some(GroupWalk::new(group, true));
    }
    while let Some(met) = writing.work.walk.as_mut().and_then(|walk| walk.next_thread(cx)) {
        if let Met::One(thread) = met
            && let Ok(thread) = thread.upgrade(cx)
        {
            if let Ok(process) = thread.process(cx) {
                process.renew_account(cx);
            }
            process::tell_moved(&thread, cx);
        }
        writing.work.check_time()?;
    }
    Ok(())
}

fn freeze(writing: &mut Writing<'_>, group: &TempRc<'_, Cgroup>, cx: &Cx) -> Step<()> {
    let freezes = match number::parse_int(writing.text)? {
        0 => false,
        1 => true,
        _ => return Err(Errno::ERANGE.into()),
    };
    if writing.work.walk.is_none() {
        cgroup::lock_tree(cx).set_freeze(group, freezes)?;
        writing.work.walk = Some(GroupWalk::new(group, true));
    }
    procs::tell_all(writing, freezes, cx)
}

fn kill(writing: &mut Writing<'_>, group: &TempRc<'_, Cgroup>, cx: &Cx) -> Step<()> {
    if number::parse_int(writing.text)? != 1 {
        return Err(Errno::ERANGE.into());
    }
    if writing.work.walk.is_none() {
        let used = writing.me.thread(cx)?.cpu_time(cx);
        writing.work.kill = Some(cgroup::lock_tree(cx).begin_kill(group, cx)?);
        writing.work.walk = Some(GroupWalk::new(group, true));
        writing.work.times.0 = used;
        sched::work_at_ends(tasks::current(cx));
    }
    while let Some(met) = writing.work.walk.as_mut().and_then(|walk| walk.next_process(cx)) {
        if let Met::One(process) = met
            && let Ok(process) = process.upgrade(cx)
        {
            process.note_told(group, cx);
            // There is always room for this one.
            let _ = send::send_to_process(&process, Info::kernel(Signal::KILL), cx);
        }
        writing.work.check_time()?;
    }
    // What a killer in the group uses is the group's own.
    let me = writing.me.process(cx)?;
    let is_within =
        |own: TempRc<'_, Cgroup>| cgroup::common_ancestor(&own, group, cx).is_some_and(|common| common.id == group.id);
    let used = if me.control_group(cx).is_some_and(is_within) { 0 } else { writing.me.thread(cx)?.cpu_time(cx) };
    group.all_are_told(used.saturating_sub(writing.work.times.0), cx);
    Ok(())
}

/// `cpu.stat`: the times of all who are or were in the group or below it.
fn show_times(text: &mut Showing, group: &TempRc<'_, Cgroup>, cx: &Cx) -> Step<()> {
    let (user, system) = if group.is_root() {
        sched::done_by_cores()
            .fold((0, 0), |(user, system), done| (user + done.ran - done.system, system + done.system))
    } else {
        times_of(text, group, cx)?
    };
    let micros = |nanoseconds: u64| nanoseconds / 1000;
    let (user, system) = (micros(user), micros(system));
    text.add(format_args!("usage_usec {}\nuser_usec {user}\nsystem_usec {system}\n", user + system));
    if !group.is_root() && group.controllers(cx).contains(Controllers::CPU) {
        let told = group.cpu.throttling()?;
        text.add(format_args!("nr_periods {}\nnr_throttled {}\n", told.periods, told.throttled));
        text.add(format_args!("throttled_usec {}\n", micros(told.throttled_time)));
        text.add(format_args!("nr_bursts {}\nburst_usec {}\n", told.bursts, micros(told.burst_time)));
    }
    Ok(())
}

fn times_of(text: &mut Showing, group: &TempRc<'_, Cgroup>, cx: &Cx) -> Step<(u64, u64)> {
    if text.walk.is_none() {
        text.walk = Some(GroupWalk::new(group, true));
        // Before the walk: who ends meanwhile is not counted twice.
        text.times = group.cpu.past();
    }
    loop {
        let mut times = text.times;
        let goes_on = text.walk.as_mut().is_some_and(|walk| walk.add_times(&mut times, cx));
        text.times = times;
        if !goes_on {
            return Ok(group.cpu.tell(times, cx));
        }
        text.check_time()?;
    }
}
