//! Memory of parked tasks. Each contender parks its tasks in a process of its own, which reports how much memory it has more
//! than before, page tables included, per task.

use std::future::pending;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use corosensei::Coroutine;
use corosensei::stack::DefaultStack;
use embassy_executor::raw::{Executor, TaskStorage};

use crate::line::{Line, Samples, Unit};
use crate::{machine, ours};

const MILLION: usize = 1_000_000;
/// Stacks with a guard page of their own need two mappings each, and Linux allows 65,530 of them.
const GUARDED: usize = 30_000;

/// All lines of the table.
pub fn lines() -> Vec<Line> {
    let line = Line::new("memory of a parked task, of a million").unit(Unit::Bytes).once();
    vec![
        line.ours("ebb-tasks, stacks of 4 KiB with a guard", |s| child(s, "ebb", MILLION))
            .peer("tokio", |s| child(s, "tokio", MILLION))
            .peer("smol", |s| child(s, "smol", MILLION))
            .peer("embassy-executor", |s| child(s, "embassy", MILLION))
            .peer("corosensei, 4 KiB stacks (30,000)", |s| child(s, "corosensei", GUARDED))
            .peer("may, 4 KiB stacks (30,000)", |s| child(s, "may", GUARDED)),
    ]
}

/// Has a process of its own park the tasks, and enters what it says.
fn child(s: &mut Samples, who: &str, tasks: usize) {
    match ask(who, tasks) {
        Ok(bytes) => s.push_value(bytes),
        Err(error) => eprintln!("memory of {who}: {error:#}"),
    }
}

fn ask(who: &str, tasks: usize) -> Result<f64> {
    let output = Command::new(std::env::current_exe()?)
        .args(["--park", who, "--tasks", &tasks.to_string()])
        .stderr(Stdio::inherit())
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().with_context(|| format!("the process ended with {} and said {text:?}", output.status))
}

/// Parks tasks and says how many bytes each takes.
///
/// # Errors
/// Where there is no contender of that name.
pub fn park(who: &str, tasks: usize) -> Result<f64> {
    if who == "ebb" {
        return Ok(ours::tasks::parked_bytes(tasks)? / tasks as f64);
    }
    let before = machine::memory_bytes()?;
    let after = match who {
        "tokio" => {
            let runtime = tokio::runtime::Builder::new_current_thread().build()?;
            runtime.block_on(async {
                (0..tasks).for_each(|_| drop(tokio::spawn(pending::<()>())));
                tokio::task::yield_now().await;
                drain().await;
            });
            machine::memory_bytes()?
        }
        "smol" => {
            let executor = smol::LocalExecutor::new();
            (0..tasks).for_each(|_| executor.spawn(pending::<()>()).detach());
            while executor.try_tick() {}
            machine::memory_bytes()?
        }
        "embassy" => {
            let executor: &'static Executor = Box::leak(Box::new(Executor::new(core::ptr::null_mut())));
            let storage: &'static [TaskStorage<_>] = Vec::leak((0..tasks).map(|_| TaskStorage::new()).collect());
            for task in storage {
                executor.spawner().spawn(task.spawn(pending::<()>).ok().context("a fresh slot is busy")?);
            }
            // SAFETY: the executor is ours and nothing else polls it.
            unsafe { executor.poll() };
            machine::memory_bytes()?
        }
        "corosensei" => {
            let mut parked = Vec::with_capacity(tasks);
            for _ in 0..tasks {
                let stack = DefaultStack::new(4096).context("no further stack can be mapped")?;
                let mut coroutine: Coroutine<(), (), ()> =
                    Coroutine::with_stack(stack, |yielder, ()| yielder.suspend(()));
                coroutine.resume(());
                parked.push(coroutine);
            }
            let after = machine::memory_bytes()?;
            std::mem::forget(parked);
            after
        }
        "may" => {
            may::config().set_workers(1);
            let (started, all_started) = std::sync::mpsc::channel();
            for _ in 0..tasks {
                let started = started.clone();
                let parked = may::go_with!(0x200, move || {
                    let _ = started.send(());
                    may::coroutine::park();
                });
                drop(parked.context("no further coroutine can be made")?);
            }
            all_started.iter().take(tasks).for_each(drop);
            machine::memory_bytes()?
        }
        _ => bail!("there is no contender called {who}"),
    };
    Ok((after - before) / tasks as f64)
}

/// Lets everything that was spawned run once.
async fn drain() {
    for _ in 0..100_000 {
        tokio::task::yield_now().await;
    }
}
