//! Shows that no verdict depends on the machine or on who starts the checks: runs this command again under other conditions,
//! and all facts must be the same under each.
//!
//! A condition is a shell command line that puts a process into some state and then executes what follows it; a slow machine
//! is one whose processors are shared with threads that compute.

use crate::SystemArguments;
use crate::compare::Tally;
use anyhow::{Context, Result};
use ebb_guest::image::busybox;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// What is different in one run.
struct Mutation {
    name: &'static str,
    /// Run by BusyBox's shell, which then executes the command.
    prelude: &'static str,
    /// Threads that compute beside it, for each processor.
    busy_threads: usize,
}

const MUTATIONS: [Mutation; 6] = [
    Mutation {
        name: "in the background of a script",
        prelude: "trap '' INT QUIT HUP TSTP TTIN TTOU CHLD PIPE",
        busy_threads: 0,
    },
    Mutation {
        name: "forty open files",
        prelude: "i=3; while [ $i -lt 43 ]; do eval \"exec $i</dev/null\"; i=$((i + 1)); done",
        busy_threads: 0,
    },
    Mutation {
        name: "another umask, lower limits",
        prelude: "umask 077; ulimit -n 512; ulimit -s 4096",
        busy_threads: 0,
    },
    Mutation {
        name: "another locale and time zone",
        prelude: "export LC_ALL=de_DE.UTF-8 LANG=de_DE.UTF-8 TZ=Asia/Kathmandu POSIXLY_CORRECT=1",
        busy_threads: 0,
    },
    Mutation { name: "low priority", prelude: "renice -n 15 -p $$ >/dev/null", busy_threads: 0 },
    Mutation { name: "a busy machine", prelude: ":", busy_threads: 6 },
];

/// Runs the checks with these filters under each condition; a condition passes if all its facts do.
pub fn run(arguments: &SystemArguments, filters: &[String]) -> Result<Tally> {
    let mut tally = Tally::default();
    for mutation in &MUTATIONS {
        println!("== {}", mutation.name);
        if mutation.passes(arguments, filters)? {
            tally.passed += 1;
        } else {
            tally.failed += 1;
        }
    }
    Ok(tally)
}

impl Mutation {
    fn passes(&self, arguments: &SystemArguments, filters: &[String]) -> Result<bool> {
        let mut command = Command::new(busybox::find()?);
        // A session of its own has no terminal.
        command.args(["setsid", "sh", "-c"]).arg(format!("{}; exec \"$0\" \"$@\"", self.prelude));
        command.arg(std::env::current_exe().context("finding this program")?).arg("programs").args(filters);
        command.arg("--cpus").arg(arguments.cpus.to_string());
        if let Some(kernel) = &arguments.kernel {
            command.arg("--kernel").arg(kernel);
        }
        if let Some(reference) = &arguments.reference {
            command.arg("--reference").arg(reference);
        }
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let processors = thread::available_parallelism().map_or(1, usize::from);
            for _ in 0..self.busy_threads * processors {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let status = command.stdin(Stdio::null()).status();
            over.store(true, Ordering::Relaxed);
            Ok(status.context("running the checks")?.success())
        })
    }
}
