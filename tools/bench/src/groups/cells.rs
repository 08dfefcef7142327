//! What is measured at one point, and what came of it: the lines that `user/bench/groups` prints.

use super::rows::Row;
use std::collections::HashMap;

/// How the workload ends, and what is looked at meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// cgroup.kill; poll(2) says when the group is empty.
    Kill,
    /// The same, without poll(2).
    Read,
    /// SIGKILL, without a cgroup.
    End,
    /// cgroup.kill, while a process outside reads the time stamp counter.
    Gap,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Kill => "kill",
            Way::Read => "read",
            Way::End => "end",
            Way::Gap => "gap",
        }
    }
}

/// The name of a cell: so many objects of a class, ended in this way.
pub fn cell(way: Way, class: &str, count: u64) -> String {
    format!("{}:{class}/{count}", way.name())
}

/// What became of a cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// All objects were made: figures by name.
    Measured(HashMap<String, f64>),
    /// The kernel refused to make so many; it made this many and gave this error.
    Refused {
        /// How many there were.
        made: u64,
        /// The error's number.
        error: i32,
    },
    /// There are no figures, for this reason.
    Lost(String),
}

/// What one kernel did.
#[derive(Debug, Default)]
pub struct Outcomes {
    cells: HashMap<String, Outcome>,
    /// What the kernel said about cgroup2: the controllers that it has, or why there is none.
    pub groups: Option<String>,
    /// The cell that was begun last, if it is not over.
    begun: Option<String>,
    complaint: Option<String>,
}

impl Outcomes {
    /// Adds a line of a machine's console; true if it ends a cell.
    pub fn read(&mut self, line: &str) -> bool {
        let fields: Vec<&str> = line.split('\t').collect();
        match fields[..] {
            ["cgroup2", answer] => self.groups = Some(answer.to_owned()),
            ["begin", cell] => {
                self.begun = Some(cell.to_owned());
                self.complaint = None;
            }
            ["failed", cell, status] => {
                let reason = self.complaint.take().unwrap_or_else(|| format!("wait status {status}"));
                return self.end(cell, Outcome::Lost(reason));
            }
            [cell, ref figures @ ..] if self.begun.as_deref() == Some(cell) => {
                return self.end(cell, outcome(figures));
            }
            _ => {
                if let Some(complaint) = line.strip_prefix("bench: ") {
                    self.complaint = Some(complaint.to_owned());
                }
            }
        }
        false
    }

    /// Says that the machine ended before the cell that was begun last; gives that cell's name.
    pub fn lose(&mut self, reason: &str) -> Option<String> {
        let cell = self.begun.clone()?;
        self.end(&cell, Outcome::Lost(reason.to_owned()));
        Some(cell)
    }

    fn end(&mut self, cell: &str, outcome: Outcome) -> bool {
        self.begun = None;
        self.cells.insert(cell.to_owned(), outcome);
        true
    }

    /// Whether the kernel has cgroup2; where it has none, each workload was a process group that SIGKILL ended.
    pub fn has_groups(&self) -> bool {
        self.groups.as_deref().is_some_and(|answer| answer.starts_with("yes"))
    }

    /// What became of a cell; `None` if it was not measured.
    pub fn of(&self, way: Way, class: &str, count: u64) -> Option<&Outcome> {
        self.cells.get(&cell(way, class, count))
    }

    /// A figure of a cell whose objects were all made.
    pub fn figure(&self, way: Way, class: &str, count: u64, name: &str) -> Option<f64> {
        match self.of(way, class, count)? {
            Outcome::Measured(figures) => figures.get(name).copied(),
            Outcome::Refused { .. } | Outcome::Lost(_) => None,
        }
    }

    /// The largest of `counts` up to `most` for which a cell has figures.
    pub fn largest(&self, way: Way, row: &Row, counts: &[u64], most: u64) -> Option<u64> {
        let has_figures = |count: &u64| matches!(self.of(way, row.key, *count), Some(Outcome::Measured(_)));
        counts.iter().copied().filter(|count| *count <= most).filter(has_figures).max()
    }
}

fn outcome(fields: &[&str]) -> Outcome {
    let figures: HashMap<String, f64> = fields
        .iter()
        .filter_map(|field| {
            let (name, value) = field.split_once('=')?;
            Some((name.to_owned(), value.parse().ok()?))
        })
        .collect();
    match (figures.get("error"), figures.get("made")) {
        (Some(error), Some(made)) if *error != 0.0 => Outcome::Refused { made: *made as u64, error: *error as i32 },
        _ => Outcome::Measured(figures),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_outcomes() {
        let mut outcomes = Outcomes::default();
        for line in [
            "[    1.0] Linux\tsays",
            "cgroup2\tyes: memory pids cpu",
            "begin\tkill:pipes/100",
            "kill:pipes/100\tmade=100\terror=0\tdead=12\tusable=-1",
            "begin\tkill:pipes/10000",
            "kill:pipes/10000\tmade=1024\terror=24\tdead=12",
            "begin\tend:pipes/1",
            "bench: the workload was not ready in time",
            "failed\tend:pipes/1\t0x100",
            "begin\tgap:pipes/1",
        ] {
            outcomes.read(line);
        }
        assert!(outcomes.has_groups());
        assert_eq!(outcomes.figure(Way::Kill, "pipes", 100, "usable"), Some(-1.0));
        assert_eq!(outcomes.of(Way::Kill, "pipes", 10_000), Some(&Outcome::Refused { made: 1024, error: 24 }));
        let late = Outcome::Lost("the workload was not ready in time".to_owned());
        assert_eq!(outcomes.of(Way::End, "pipes", 1), Some(&late));
        assert_eq!(outcomes.lose("the kernel died").as_deref(), Some("gap:pipes/1"));
        assert_eq!(outcomes.lose("the kernel died"), None);
    }
}
