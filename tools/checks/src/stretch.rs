//! For how long an Ebb that measures it (`--features stretch`) keeps interrupts off while the behaviour checks run, in guest instructions.

use crate::SystemArguments;
use crate::compare::Tally;
use crate::programs;
use crate::system::GuestSystem;
use crate::task::Outcome;
use anyhow::{Result, bail};
use ebb_guest::stretch::{self, Stretch};
use ebb_guest::{Accel, Kernel, Machine, artifacts};

/// Runs the checks whose names contain one of the filters (all, if there is none) and prints the longest stretch of each subsystem. A check
/// passes if it ends and no stretch was longer than one may be.
pub fn run(arguments: &SystemArguments, filters: &[String]) -> Result<Tally> {
    let tasks = programs::tasks(filters)?;
    let mut machine = Machine::new(Kernel::open(&artifacts::KERNEL.find(arguments.kernel.as_deref())?)?);
    machine.accel = Accel::Tcg;
    machine.cpu = stretch::CPU.to_owned();
    machine.qemu_options.extend(stretch::COUNTED.map(str::to_owned));
    let mut system = GuestSystem::new(machine, &tasks, arguments.on_disk.as_deref())?;
    let mut tally = Tally::default();
    let mut longest: Vec<(String, Stretch)> = Vec::new();
    for task in tasks {
        system.run_text(&format!("echo > {}", stretch::FILE))?;
        let outcome = system.run_task(&task)?;
        let told = system.run_text(&format!("head -n 1 {}", stretch::FILE))?;
        let Some(found) = Stretch::read(&told) else {
            bail!("{} says nothing: is this a kernel with the feature `stretch`?", stretch::FILE);
        };
        let ended = matches!(outcome, Outcome::Ended { .. });
        if !ended || found.is_too_long() {
            tally.failed += 1;
            println!("{}{}: {found}", task.name, if ended { "" } else { " did not end" });
        } else {
            tally.passed += 1;
        }
        longest.push((task.name, found));
    }
    print_table(&longest);
    Ok(tally)
}

/// The longest of each subsystem.
fn print_table(longest: &[(String, Stretch)]) {
    let subsystem = |name: &str| name.split('/').next().unwrap_or_default().to_owned();
    for same in longest.chunk_by(|(one, _), (other, _)| subsystem(one) == subsystem(other)) {
        if let Some((name, stretch)) = same.iter().max_by_key(|(_, stretch)| stretch.instructions) {
            println!("{:<24} {stretch}", name);
        }
    }
}
