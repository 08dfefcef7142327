//! BusyBox's applets: a command for each, the same on both systems, and the table of results in the book.

use crate::SystemArguments;
use crate::compare::{Tally, Unit};
use crate::session::{self, Judged};
use crate::task::{Action, Task};
use anyhow::{Context, Result, bail};
use ebb_guest::image::busybox;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

const COMMANDS: &str = "user/busybox/applets.txt";
const SKIPPED: &str = "user/busybox/applets-skipped.txt";
const TABLE: &str = "docs/src/busybox.md";
/// Far more than any task needs, however slow or busy the machine is: only a hang gets here.
const LIMIT: Duration = Duration::from_secs(600);

/// One line of the list of commands: the applet, the command, and perhaps its input.
struct Entry {
    applet: String,
    command: String,
    stdin: Option<Vec<u8>>,
}

/// Runs the commands of all applets (or of those named) and writes or checks the table.
pub fn run(arguments: &SystemArguments, write: bool, only: &[String]) -> Result<Tally> {
    let entries = read_commands(&read(COMMANDS)?)?;
    let skipped = read_skipped(&read(SKIPPED)?);
    let tasks = entries
        .iter()
        .filter(|entry| only.is_empty() || only.contains(&entry.applet))
        .map(|entry| Task {
            name: entry.applet.clone(),
            action: Action::Shell(entry.command.clone(), "sh".into()),
            stdin: entry.stdin.clone(),
            limit: LIMIT,
        })
        .collect();
    let judged = session::run_all(arguments, tasks, Unit::Task)?;
    let mut tally = session::total(&judged);
    if !only.is_empty() || arguments.reference_only {
        return Ok(tally);
    }
    let forgotten = forgotten(&entries, &skipped)?;
    if !forgotten.is_empty() {
        tally.failed += 1;
        println!("neither in {COMMANDS} nor in {SKIPPED}: {}", forgotten.join(" "));
    }
    let table = table(&judged, &skipped);
    if write {
        std::fs::write(TABLE, table).with_context(|| format!("writing {TABLE}"))?;
    } else if std::fs::read_to_string(TABLE).unwrap_or_default() != table {
        tally.failed += 1;
        println!("{TABLE} is out of date; `ebb-checks applets --write` writes it anew");
    } else {
        tally.passed += 1;
    }
    Ok(tally)
}

fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("reading {path} (is this the top of the repository?)"))
}

fn read_commands(text: &str) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut fields = line.split('\t');
        let (Some(applet), Some(command)) = (fields.next(), fields.next()) else {
            bail!("{COMMANDS}: no command in the line `{line}`");
        };
        let stdin = fields.next().map(|text| text.replace("\\n", "\n").replace("\\t", "\t").into_bytes());
        entries.push(Entry { applet: applet.to_owned(), command: command.to_owned(), stdin });
    }
    Ok(entries)
}

/// Applets and why each has no command.
fn read_skipped(text: &str) -> Vec<(String, String)> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('\t'))
        .map(|(applet, reason)| (applet.to_owned(), reason.to_owned()))
        .collect()
}

/// Applets of this machine's BusyBox that are in no list.
fn forgotten(entries: &[Entry], skipped: &[(String, String)]) -> Result<Vec<String>> {
    let mut all = BTreeSet::new();
    for path in busybox::applets(&busybox::find()?)? {
        all.extend(Path::new(&path).file_name().map(|name| name.to_string_lossy().into_owned()));
    }
    for known in entries.iter().map(|entry| &entry.applet).chain(skipped.iter().map(|(applet, _)| applet)) {
        all.remove(known);
    }
    Ok(all.into_iter().collect())
}

fn table(judged: &[Judged], skipped: &[(String, String)]) -> String {
    let same = judged.iter().filter(|one| one.comparison.tally.failed == 0).count();
    let mut text = format!(
        "# BusyBox on Ebb\n\n\
         Every applet of Debian's static BusyBox that needs neither a network nor a block device runs a command on Linux and\n\
         on Ebb; what it prints and its exit code must be the same. {same} of {} commands are. This page is written by\n\
         `ebb-checks applets --write`, and `make test` checks that it is up to date.\n\n\
         | applet | command | result |\n| --- | --- | --- |\n",
        judged.len()
    );
    for one in judged {
        let Action::Shell(command, _) = &one.task.action else { continue };
        let result = if one.comparison.tally.failed == 0 { "same" } else { "**differs**" };
        // Writing into a string cannot fail.
        let _ =
            writeln!(text, "| {} | `{}` | {result} |", one.task.name, command.replace('|', "\\|").replace('`', "'"));
    }
    text.push_str("\n## Not run\n\n| applet | why |\n| --- | --- |\n");
    for (applet, reason) in skipped {
        let _ = writeln!(text, "| {applet} | {} |", reason.replace('|', "\\|"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_an_applet_and_perhaps_input() {
        let entries = read_commands("# comment\n\ncat\tcat\ta\\nb\\n\nls\tls -l | wc -l\n").unwrap();
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[0].stdin.as_deref(), Some(&b"a\nb\n"[..]));
        assert_eq!((entries[1].command.as_str(), &entries[1].stdin), ("ls -l | wc -l", &None));
        assert!(read_commands("cat\n").is_err());
    }
}
