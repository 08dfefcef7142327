//! How soon the memory of what was destroyed can be had again while another core is busy: what `user/bench/reuse.c` prints, and its table.

use crate::report::{Style, columns, markdown};
use std::collections::HashMap;
use std::fmt::Write;

/// How soon it has to be, in nanoseconds.
const GOAL: f64 = 100_000.0;

/// How often each machine destroys each kind of object.
pub const TRIALS: &str = "100";

const KINDS: [(&str, &str); 4] = [
    ("mapping", "mapping of 4 MiB, unmapped"),
    ("file", "file of 4 MiB, closed and deleted"),
    ("pipes", "four full pipes of 1 MiB, closed"),
    ("process", "process with 4 MiB, killed and waited for"),
];

const OTHERS: [(&str, &str); 4] = [
    ("idle", "idle"),
    ("computes", "computes"),
    ("calls", "makes system calls"),
    ("thread", "computes, in the same process"),
];

/// Times in nanoseconds, by kind and what the other core does.
#[derive(Default)]
pub struct Times {
    medians: HashMap<String, Vec<f64>>,
    longest: HashMap<String, f64>,
}

impl Times {
    /// Adds a line that a machine printed.
    pub fn read(&mut self, line: &str) {
        let Some(fields) = line.strip_prefix("reuse:") else { return };
        let fields: Vec<&str> = fields.split('\t').collect();
        if let [key, median, longest] = fields[..]
            && let (Ok(median), Ok(longest)) = (median.parse(), longest.parse::<f64>())
        {
            self.medians.entry(key.to_owned()).or_default().push(median);
            let entry = self.longest.entry(key.to_owned()).or_default();
            *entry = entry.max(longest);
        }
    }

    /// The median of the machines' medians, and the longest of all times.
    fn of(&self, key: &str) -> Option<(f64, f64)> {
        let mut medians = self.medians.get(key)?.clone();
        medians.sort_by(f64::total_cmp);
        Some((*medians.get((medians.len() - 1) / 2)?, *self.longest.get(key)?))
    }
}

/// A line for each kind of object and each thing that the other core does.
pub fn table(ebb: &Times, linux: Option<&Times>, style: Style) -> String {
    let head = ["what is destroyed", "the other core", "Ebb, median", "longest", "Linux, median", "longest", "goal"];
    let mut lines = vec![head.map(str::to_owned)];
    let (mut met, mut judged) = (0, 0);
    for (kind, title) in KINDS {
        for (other, does) in OTHERS {
            let key = format!("{kind}/{other}");
            let (here, there) = (ebb.of(&key), linux.and_then(|times| times.of(&key)));
            if here.is_none() && there.is_none() {
                continue;
            }
            let goal = match here {
                None => "-",
                Some((_, longest)) if longest <= GOAL => "met",
                Some((median, _)) if median <= GOAL => "median only",
                Some(_) => "not met",
            };
            judged += usize::from(here.is_some());
            met += usize::from(goal == "met");
            let time = |time: Option<f64>| time.map_or("-".to_owned(), |time| format!("{:.1} us", time / 1000.0));
            lines.push([
                title.to_owned(),
                does.to_owned(),
                time(here.map(|(median, _)| median)),
                time(here.map(|(_, longest)| longest)),
                time(there.map(|(median, _)| median)),
                time(there.map(|(_, longest)| longest)),
                goal.to_owned(),
            ]);
        }
    }
    let mut text = match style {
        Style::Terminal => columns(&lines),
        Style::Page => markdown(&lines),
    };
    if judged > 0 {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{met} of {judged} within {:.0} us always.\n", GOAL / 1000.0);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_of_all_machines_is_judged() {
        let mut times = Times::default();
        for line in [
            "cores\t2",
            "reuse:file/calls\t2000\t9000",
            "reuse:pipes/idle\t2000\t9000",
            "reuse:file/calls\t3000\t150000",
        ] {
            times.read(line);
        }
        assert_eq!(times.of("file/calls"), Some((2000.0, 150_000.0)));
        let text = table(&times, None, Style::Page);
        assert!(text.contains("| makes system calls | 2.0 us | 150.0 us | - | - | median only |"), "{text}");
        assert!(text.contains("| idle | 2.0 us | 9.0 us | - | - | met |"), "{text}");
        assert!(text.ends_with("1 of 2 within 100 us always.\n"), "{text}");
    }
}
