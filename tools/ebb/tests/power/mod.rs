//! Machines that are gone from one moment to the next.

use std::fs;
use std::process::Command;

/// How many times the power is cut for each kind of file system.
pub fn cuts() -> u32 {
    std::env::var("EBB_POWER_CUTS").ok().and_then(|count| count.parse().ok()).unwrap_or(7)
}

/// Ends the emulator that a process has started, at once.
pub fn kill_emulator(parent: u32) {
    let tasks = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    for children in tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok()) {
        for child in children.split_whitespace() {
            let _ = Command::new("kill").args(["-9", child]).status();
        }
    }
}
