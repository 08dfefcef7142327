//! A long shell script that must print the same on both systems.

use crate::SystemArguments;
use crate::compare::{Tally, Unit};
use crate::session;
use crate::task::{Action, Task};
use anyhow::{Context, Result};
use std::time::Duration;

const SCRIPT: &str = "user/busybox/script.sh";
/// Far more than any task needs, however slow or busy the machine is: only a hang gets here.
const LIMIT: Duration = Duration::from_secs(600);

/// Runs the script.
pub fn run(arguments: &SystemArguments) -> Result<Tally> {
    let text = std::fs::read_to_string(SCRIPT).with_context(|| format!("reading {SCRIPT}"))?;
    let task = Task { name: SCRIPT.into(), action: Action::Shell(text, "script.sh".into()), stdin: None, limit: LIMIT };
    Ok(session::total(&session::run_all(arguments, vec![task], Unit::Task)?))
}
