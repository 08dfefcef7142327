//! The control group of the program that `ebb run` runs: the bound on what its end may take, and where its statistics go.

use crate::time::parse_time;
use clap::Args;
use ebb_guest::{Error, Program, Result, Statistics};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What `ebb run` is asked about the program's group. Without any of it the program has none.
#[derive(Args)]
pub struct GroupArguments {
    /// Bound the processor time that it takes to end the program with all that it started and holds: 5ms, 800us, 1s. What would
    /// make it more is refused when the program asks for it (ENOMEM).
    #[arg(long, value_name = "TIME", value_parser = parse_bound)]
    reclaim_within: Option<Duration>,

    /// When the program has ended, print on standard error what its end was charged and took, and how much memory, threads and
    /// processor time it used.
    #[arg(long)]
    stats: bool,

    /// Write the same into a file, as JSON; `-` is standard output, behind the program's.
    #[arg(long, value_name = "FILE")]
    stats_json: Option<PathBuf>,
}

/// The longest time that the kernel agrees to.
const LONGEST: Duration = Duration::from_secs(3600);

impl GroupArguments {
    /// Gives the program a group, if anything was asked.
    pub fn give(&self, program: Program) -> Program {
        let is_asked = self.reclaim_within.is_some() || self.stats || self.stats_json.is_some();
        if is_asked { program.in_group(self.reclaim_within) } else { program }
    }

    /// Where the statistics will go; before the machine starts, so that a file which cannot be written costs no run.
    pub fn report(&self) -> Result<Report> {
        let json: Option<Box<dyn Write>> = match &self.stats_json {
            None => None,
            Some(path) if path == Path::new("-") => Some(Box::new(io::stdout())),
            Some(path) => {
                let failed = |error| Error::Io { doing: format!("writing {}", path.display()), error };
                Some(Box::new(File::create(path).map_err(failed)?))
            }
        };
        let text = match (self.stats, self.reclaim_within) {
            (true, _) => Text::All,
            (false, Some(_)) => Text::Refusals,
            (false, None) => Text::Nothing,
        };
        Ok(Report { text, json })
    }
}

/// Where the statistics go.
pub struct Report {
    text: Text,
    json: Option<Box<dyn Write>>,
}

/// What is printed on standard error.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Text {
    /// All that was counted.
    All,
    /// That the bound was in the way of a program that failed.
    Refusals,
    Nothing,
}

impl Report {
    /// Prints the statistics and writes them; `is_success`: the program says that all went well.
    pub fn write(self, statistics: &Statistics, is_success: bool) -> Result<()> {
        let failed = |error| Error::Io { doing: "writing the statistics".into(), error };
        match self.text {
            Text::All => io::stderr().write_all(statistics.to_string().as_bytes()).map_err(failed)?,
            Text::Refusals if !is_success => {
                if let Some(hint) = refusals(statistics) {
                    eprintln!("ebb: {hint}");
                }
            }
            Text::Refusals | Text::Nothing => {}
        }
        let Some(mut json) = self.json else { return Ok(()) };
        serde_json::to_writer_pretty(&mut json, statistics).map_err(|error| failed(error.into()))?;
        writeln!(json).and_then(|()| json.flush()).map_err(failed)
    }
}

/// What to say of a program that failed, if its bound was in the way.
fn refusals(statistics: &Statistics) -> Option<String> {
    let reclaim = statistics.reclaim.as_ref().filter(|reclaim| reclaim.denied > 0)?;
    let bound = Duration::from_micros(reclaim.max_us?);
    let times = if reclaim.denied == 1 { "once".into() } else { format!("{} times", reclaim.denied) };
    Some(format!("the bound of {bound:?} was in the program's way {times} (--stats says more)"))
}

/// Reads a time for `reclaim.max`, which is kept in microseconds. A bare number is refused: the kernel would take it for microseconds, [`parse_time`] for seconds.
fn parse_bound(text: &str) -> std::result::Result<Duration, String> {
    let expected = || "expected a time like 5ms, 800us or 1s".to_owned();
    if !text.ends_with(char::is_alphabetic) {
        return Err(expected());
    }
    let bound = parse_time(text).map_err(|_| expected())?;
    match bound {
        _ if bound < Duration::from_micros(1) => Err("at least 1us".into()),
        _ if bound > LONGEST => Err("at most 1h".into()),
        _ => Ok(bound),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_has_a_unit_and_is_between_a_microsecond_and_an_hour() {
        assert_eq!(parse_bound("5ms"), Ok(Duration::from_millis(5)));
        assert_eq!(parse_bound("800us"), Ok(Duration::from_micros(800)));
        assert_eq!(parse_bound("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_bound("1h"), Ok(LONGEST));
        for bad in ["", "5", "5000", "ms", "0ms", "0.5us", "61m", "-1ms", "soon"] {
            assert!(parse_bound(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn who_failed_is_told_of_refusals_and_of_nothing_else() {
        let with_denied = |denied| {
            let reclaim = ebb_guest::statistics::Reclaim {
                max_us: Some(200),
                peak_us: 190,
                denied,
                overrun: 0,
                charged_us: 30,
                classes: Default::default(),
            };
            refusals(&Statistics { reclaim: Some(reclaim), ..Statistics::default() })
        };
        assert_eq!(with_denied(0), None);
        assert_eq!(
            with_denied(3).as_deref(),
            Some("the bound of 200µs was in the program's way 3 times (--stats says more)")
        );
        assert_eq!(refusals(&Statistics::default()), None);
    }
}
