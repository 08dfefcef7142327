//! Tasks: `ebb-tasks` beside other coroutines and executors, all on one core.

use generational_arena::Arena;
use slotmap::{DefaultKey, SlotMap};
use std::hint::black_box;

use crate::line::{Goal, Line};
use crate::ours::{c, tasks as ours};
use crate::peers::{boost, coroutines, embassy, futures, libco, may, smol, tokio};

/// All lines of the table.
pub fn lines() -> Vec<Line> {
    vec![
        ring::<2>("yield through the run queue, 2 tasks", 5.0),
        ring::<64>("yield through the run queue, 64 tasks", 7.0),
        ring::<512>("yield through the run queue, 512 tasks", 9.0),
        switch(),
        switch_by_id(),
        create_single(),
        create_alone(),
        create_empty(),
        create_nested(),
        create_suspend(),
        finish(),
        ids(),
        checks(),
    ]
}

fn ring<const TASKS: usize>(title: &'static str, goal: f64) -> Line {
    Line::new(title)
        .goal(Goal::Most(goal))
        .ours("ebb-tasks", |s| ours::ring(s, TASKS))
        .ours_if("ebb-tasks from C, ac.h", c::ring::<TASKS>())
        .peer("corosensei, resumed in turn", |s| coroutines::ring(s, TASKS))
        .peer_if("boost.context, resumed in turn", boost::ring::<TASKS>())
        .peer_if("libco, each to the next", libco::ring::<TASKS>())
        .peer("may", |s| may::ring(s, TASKS))
        .peer("embassy-executor", |s| embassy::ring(s, TASKS))
        .peer("smol", |s| smol::ring(s, TASKS))
        .peer("tokio", |s| tokio::ring(s, TASKS))
}

fn switch() -> Line {
    Line::new("switch to a given task, no queue")
        .goal(Goal::Most(3.2))
        .ours("ebb-tasks", ours::hand_over)
        .ours_if("ebb-tasks from C, ac.h", c::hand_over())
        .peer("corosensei, resume or suspend", coroutines::switch)
        .peer_if("boost.context", boost::switch())
        .peer_if("libco", libco::ring::<2>())
        .peer("Box<dyn Future>, polled by hand", futures::switch)
}

fn switch_by_id() -> Line {
    Line::new("switch to a task named by a checked id, and save oneself under one")
        .goal(Goal::Most(6.0))
        .ours("ebb-tasks", ours::hand_over_by_id)
        .ours_if("ebb-tasks from C, ac.h", c::hand_over_by_id())
        .peer("corosensei, in a slotmap", coroutines::switch_by_key)
}

fn create_single() -> Line {
    Line::new("make, run and end an empty task, one at a time")
        .goal(Goal::Most(8.0))
        .ours("ebb-tasks", ours::create_single_unordered)
        .peer("corosensei, pooled stacks", coroutines::create_single_unordered)
        .peer("an empty call", |s| s.single_unordered(empty_call))
}

fn create_alone() -> Line {
    Line::new("the same, until nothing of it is under way any more")
        .ours("ebb-tasks", ours::create_single)
        .peer("corosensei, pooled stacks", coroutines::create_single)
        .peer("an empty call", |s| s.single(empty_call))
}

#[inline(never)]
fn empty_call() {
    black_box(());
}

fn create_empty() -> Line {
    Line::new("make, run and end an empty task")
        .goal(Goal::Most(5.0))
        .ours("ebb-tasks", ours::create_empty)
        .ours("ebb-tasks, eager", ours::create_empty_eager)
        .ours_if("ebb-tasks from C, ac.h", c::create_empty())
        .peer("an empty call", |s| s.each(empty_call))
        .peer("Box<dyn Future>, polled by hand", futures::create_empty)
        .peer("corosensei, pooled stacks", coroutines::create_empty)
        .peer_if("libco, one static stack", libco::create_empty())
        .peer_if("boost.context, pooled stacks", boost::create_empty())
        .peer("embassy-executor, static slot", |s| embassy::create(s, 0))
        .peer("smol, awaited", smol::create_empty)
        .peer("tokio, awaited", tokio::create_empty)
        .peer("may, joined", |s| may::create(s, 0))
}

fn create_nested() -> Line {
    Line::new("64 tasks made inside each other, each")
        .goal(Goal::Most(20.0))
        .ours("ebb-tasks", |s| ours::create_nested(s, 64))
        .ours_if("ebb-tasks from C, ac.h", c::create_nested::<64>())
        .peer("corosensei, pooled stacks", |s| coroutines::create_nested(s, 64))
}

fn create_suspend() -> Line {
    Line::new("make a task that suspends once, resume and end it")
        .goal(Goal::Most(22.0))
        .ours("ebb-tasks", ours::create_suspend)
        .ours_if("ebb-tasks from C, ac.h", c::create_suspend())
        .peer("Box<dyn Future>, polled by hand", futures::create_suspend)
        .peer("corosensei, pooled stacks", coroutines::create_suspend)
        .peer_if("libco, one static stack", libco::create_suspend())
        .peer_if("boost.context, pooled stacks", boost::create_suspend())
        .peer("embassy-executor, static slot", |s| embassy::create(s, 1))
        .peer("smol, awaited", smol::create_suspend)
        .peer("tokio, awaited", tokio::create_suspend)
        .peer("may, joined", |s| may::create(s, 1))
}

fn finish() -> Line {
    Line::new("an empty finish block")
        .goal(Goal::Most(1.0))
        .ours("ebb-tasks", ours::finish)
        .ours_if("ebb-tasks from C, ac.h", c::finish())
        .peer("std::thread::scope, empty", |s| s.each(|| std::thread::scope(|_| ())))
        .peer("tokio JoinSet, empty", tokio::empty_set)
}

fn ids() -> Line {
    Line::new("make a task's id and give it back")
        .goal(Goal::ShareOf(1.0, "slotmap insert, remove"))
        .ours("ebb-tasks", ours::ids)
        .ours_if("ebb-tasks from C, ac.h", c::ids())
        .peer("slotmap insert, remove", |s| {
            let mut map = SlotMap::new();
            s.each(|| {
                // In memory, as the table of a run-time is.
                let map = black_box(&mut map);
                let key: DefaultKey = black_box(map.insert(1_usize));
                black_box(map.remove(key));
            });
        })
        .peer("generational-arena insert, remove", |s| {
            let mut arena = Arena::new();
            s.each(|| {
                let arena = black_box(&mut arena);
                let key = black_box(arena.insert(1_usize));
                black_box(arena.remove(key));
            });
        })
}

fn checks() -> Line {
    Line::new("check that a task's name leads to a living task")
        .goal(Goal::ShareOf(1.0, "slotmap get"))
        .ours("ebb-tasks AweRef", ours::check_name)
        .ours("ebb-tasks Id", ours::check_id)
        .peer("slotmap get", |s| {
            let mut map: SlotMap<DefaultKey, usize> = SlotMap::new();
            let key = map.insert(1);
            s.each(|| _ = black_box(map.get(black_box(key)).is_some()));
        })
        .peer("Rc clone, drop", |s| {
            let task = std::rc::Rc::new(1_usize);
            s.each(|| drop(black_box(black_box(&task).clone())));
        })
}
