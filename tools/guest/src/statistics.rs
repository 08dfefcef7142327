//! [`Statistics`]: what was counted in a program's control group, read from the group's files.
//!
//! What a kernel does not count is `None`: Linux has no controller `reclaim`, and an old one no peaks. Serialized, the fields' names are those of the JSON, and units are in them.

use ebb_protocol::GroupFiles;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// What was counted in a program's control group, from the group's making to the moment when nobody was left in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Statistics {
    /// What the controller `reclaim` charged.
    pub reclaim: Option<Reclaim>,
    /// The group's kill: at the program's end, of what it left, or at a time limit, of the program as well.
    pub kill: Kill,
    /// What the controller `memory` counted.
    pub memory: Option<Memory>,
    /// How many threads there were at most, with processes that had ended and that nobody had waited for.
    pub pids_peak: Option<u64>,
    /// The processor time that the program and all that it started used.
    pub cpu: Option<Cpu>,
}

/// What the controller `reclaim` charged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reclaim {
    /// The bound; `None`: there was none.
    pub max_us: Option<u64>,
    /// The most that was charged at any moment.
    pub peak_us: u64,
    /// How often something was refused.
    pub denied: u64,
    /// How many kills took longer than was charged.
    pub overrun: u64,
    /// What was charged when the kill began.
    pub charged_us: u64,
    /// Of that, by class of object.
    pub classes: BTreeMap<String, InClass>,
}

/// What is charged for the objects of one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct InClass {
    /// How many.
    pub count: u64,
    /// For all of them.
    pub charged_ns: u64,
}

/// A group's kill.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Kill {
    /// How many processes there were when it began; if none, nothing was left to kill, and what was measured is the kill of an empty group.
    pub processes: u32,
    /// How long it took.
    pub measured: Option<Measured>,
}

/// How long a group's kill took, by the kernel's measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Measured {
    /// What was charged when it began.
    pub charged_us: u64,
    /// How long processors worked for it.
    pub measured_us: u64,
    /// From its beginning to the moment when the group was empty.
    pub elapsed_us: u64,
}

/// What the controller `memory` counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// How much there was at most; `None` on a Linux before 5.19.
    pub peak_bytes: Option<u64>,
    /// How often what happened: `memory.events`.
    pub events: BTreeMap<String, u64>,
}

/// Processor time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Cpu {
    /// In all.
    pub usage_us: u64,
    /// In user mode.
    pub user_us: u64,
    /// In the kernel.
    pub system_us: u64,
}

impl Statistics {
    /// What the files say. A file that is missing or says something else counts as not there.
    pub(crate) fn of(files: &GroupFiles) -> Self {
        let before = Files(&files.before_kill);
        let after = Files(&files.after_kill);
        Self {
            reclaim: reclaim(&before, &after),
            kill: Kill { processes: files.killed, measured: measured(&after) },
            memory: after
                .fields("memory.events")
                .map(|events| Memory { peak_bytes: after.number("memory.peak"), events }),
            pids_peak: after.number("pids.peak"),
            cpu: cpu(&after),
        }
    }

    /// What the summary adds to a kill that took longer than it should have.
    fn verdict(&self) -> &'static str {
        let bound_us = self.reclaim.as_ref().and_then(|reclaim| reclaim.max_us);
        match (self.kill.measured, bound_us) {
            (Some(kill), Some(bound_us)) if kill.measured_us > bound_us => "; beyond the bound",
            (Some(kill), _) if kill.measured_us > kill.charged_us => "; more than was charged",
            _ => "",
        }
    }
}

fn reclaim(before: &Files<'_>, after: &Files<'_>) -> Option<Reclaim> {
    let events = after.fields("reclaim.events")?;
    Some(Reclaim {
        max_us: after.number("reclaim.max"),
        peak_us: after.number("reclaim.peak")?,
        denied: *events.get("denied")?,
        overrun: *events.get("overrun")?,
        charged_us: before.number("reclaim.current")?,
        classes: before.text("reclaim.stat")?.lines().filter_map(class).collect(),
    })
}

/// A line of `reclaim.stat`: the class, how many, and what is charged for all of them, in nanoseconds.
fn class(line: &str) -> Option<(String, InClass)> {
    let mut words = line.split(' ');
    let (name, count, charged_ns) = (words.next()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some((name.to_owned(), InClass { count, charged_ns }))
}

fn measured(after: &Files<'_>) -> Option<Measured> {
    let last = after.fields("reclaim.last")?;
    let micros = |name: &str| last.get(name).copied();
    Some(Measured {
        charged_us: micros("charged_us")?,
        measured_us: micros("measured_us")?,
        elapsed_us: micros("elapsed_us")?,
    })
}

fn cpu(after: &Files<'_>) -> Option<Cpu> {
    let stat = after.fields("cpu.stat")?;
    let micros = |name: &str| stat.get(name).copied();
    Some(Cpu { usage_us: micros("usage_usec")?, user_us: micros("user_usec")?, system_us: micros("system_usec")? })
}

/// Files of a group, by name.
struct Files<'a>(&'a [(String, String)]);

impl Files<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(file, _)| file == name).map(|(_, text)| text.as_str())
    }

    /// The number that is all of a file.
    fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.trim().parse().ok()
    }

    /// The fields of a file with one on each line, a name and a number.
    fn fields(&self, name: &str) -> Option<BTreeMap<String, u64>> {
        let field = |line: &str| {
            let (name, number) = line.split_once(' ')?;
            Some((name.to_owned(), number.parse().ok()?))
        };
        Some(self.text(name)?.lines().filter_map(field).collect())
    }
}

/// A summary of some lines, each with what it is about first. What was not counted is left out.
impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(reclaim) = &self.reclaim {
            writeln!(f, "reclaim  {reclaim}")?;
        }
        writeln!(f, "kill     {}{}", self.kill, self.verdict())?;
        if let Some(memory) = &self.memory {
            writeln!(f, "memory   {memory}")?;
        }
        if let Some(peak) = self.pids_peak {
            writeln!(f, "threads  at most {peak}")?;
        }
        if let Some(Cpu { usage_us, user_us, system_us }) = self.cpu {
            let [usage, user, system] = [usage_us, user_us, system_us].map(Duration::from_micros);
            writeln!(f, "cpu      {usage:?}: user {user:?}, system {system:?}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Reclaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {:?} charged", Duration::from_micros(self.peak_us))?;
        match self.max_us {
            Some(max_us) => write!(f, " of {:?}", Duration::from_micros(max_us))?,
            None => f.write_str(", without a bound")?,
        }
        write!(f, "; refused {}, overrun {}", times(self.denied), times(self.overrun))?;
        write!(f, "\nat end   {:?} charged", Duration::from_micros(self.charged_us))?;
        let held = self.classes.iter().filter(|(_, class)| class.count > 0);
        for (nth, (name, class)) in held.enumerate() {
            let charged = Duration::from_nanos(class.charged_ns);
            write!(f, "{} {} {name} {charged:?}", if nth == 0 { ":" } else { "," }, class.count)?;
        }
        Ok(())
    }
}

impl fmt::Display for Kill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.processes {
            0 => f.write_str("nothing was left to kill")?,
            1 => f.write_str("1 process")?,
            count => write!(f, "{count} processes")?,
        }
        match &self.measured {
            Some(measured) if self.processes == 0 => write!(f, "; the empty group: {measured}"),
            Some(measured) => write!(f, ": {measured}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [charged, measured, elapsed] =
            [self.charged_us, self.measured_us, self.elapsed_us].map(Duration::from_micros);
        write!(f, "{measured:?} of processor time, {charged:?} charged, {elapsed:?} elapsed")
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.peak_bytes {
            Some(bytes) => write!(f, "at most {} KiB", bytes.div_ceil(1024))?,
            None => f.write_str("the most is not known")?,
        }
        for (event, &count) in self.events.iter().filter(|&(_, &count)| count > 0) {
            write!(f, "; {event} {}", times(count))?;
        }
        Ok(())
    }
}

fn times(count: u64) -> String {
    match count {
        0 => "never".into(),
        1 => "once".into(),
        _ => format!("{count} times"),
    }
}

#[cfg(test)]
mod tests;
