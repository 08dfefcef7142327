//! What was measured, as text for a terminal, as JSON, and as pages of the book.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::line::{Figure, Goal, Measured, Unit, Verdict};
use crate::{Table, clock, machine, plot};

/// Where the book keeps the tables that this program writes.
const FOLDER: &str = "docs/src/figures-libs";

/// The circumstances, without which no figure means anything.
pub struct Setting {
    processor: String,
    system: String,
    date: String,
    load: String,
    cores: usize,
    real_time: bool,
    ticks_per_core_cycle: f64,
}

impl Setting {
    /// The circumstances of this run.
    pub fn here(cores: usize, real_time: bool) -> Self {
        Setting {
            processor: machine::processor(),
            system: machine::system(),
            date: machine::date(),
            load: machine::load(),
            cores,
            real_time,
            ticks_per_core_cycle: clock::ticks_per_core_cycle(),
        }
    }

    /// One paragraph.
    pub fn text(&self) -> String {
        let priority = if self.real_time { "SCHED_FIFO" } else { "ordinary priority" };
        format!(
            "{}, {} cores, {}, {}; {}, fat LTO; {}; load {} at the start; measured {}. A cycle is a tick of the \
             time-stamp counter; one cycle of the core takes {:.2}.",
            self.processor,
            self.cores,
            self.system,
            priority,
            env!("COMPILER"),
            env!("C_COMPILER"),
            self.load,
            self.date,
            self.ticks_per_core_cycle
        )
    }
}

/// A table's title.
pub fn title(table: Table) -> &'static str {
    match table {
        Table::Refs => "References",
        Table::Tasks => "Tasks",
        Table::Ipc => "Messages between cores",
        Table::Memory => "Memory",
    }
}

fn file_name(table: Table) -> &'static str {
    match table {
        Table::Refs => "refs",
        Table::Tasks => "tasks",
        Table::Ipc => "ipc",
        Table::Memory => "memory",
    }
}

/// A figure with as many digits as it deserves.
pub fn number(value: f64) -> String {
    if value.abs() < 9.95 {
        format!("{value:.1}")
    } else if value < 10_000.0 {
        format!("{value:.0}")
    } else {
        let whole = format!("{value:.0}");
        let (head, tail) = whole.split_at(whole.len() - 3);
        format!("{head},{tail}")
    }
}

/// The goal in words, with the number that it comes to in this run.
fn goal(measured: &Measured) -> Option<String> {
    let limit = |text: String| match measured.verdict() {
        Some((limit, _)) => format!("{text} (here {})", number(limit)),
        None => text,
    };
    Some(match measured.goal? {
        Goal::Most(most) => format!("≤ {}", number(most)),
        Goal::Least(least) => format!("≥ {}", number(least)),
        Goal::ShareOf(share, who) => limit(format!("≤ {share} × {who}")),
        Goal::Above(above, who) => limit(format!("≤ {who} + {above}")),
    })
}

fn verdict(measured: &Measured) -> String {
    match measured.verdict() {
        Some((_, Verdict::Met)) => "met".to_owned(),
        Some((_, Verdict::Level)) => "level, within 3 %".to_owned(),
        Some((_, Verdict::MissedBy(factor))) => format!("missed, {factor:.2} times"),
        None => String::new(),
    }
}

/// How a contender's figure stands to ours: above 1, ours is better.
fn ratio(measured: &Measured, figure: &Figure) -> Option<f64> {
    let ours = measured.figures.iter().find(|figure| figure.ours)?.median?;
    let theirs = figure.median?;
    Some(if measured.unit == Unit::PerTenThousand { ours / theirs } else { theirs / ours })
}

/// One line for a terminal.
pub fn text(measured: &Measured) -> String {
    let mut out = format!("\n{} [{}]", measured.title, measured.unit.name());
    if let Some(goal) = goal(measured) {
        let _ = write!(out, "  goal {goal}: {}", verdict(measured));
    }
    out.push('\n');
    for figure in &measured.figures {
        let mark = if figure.ours { '*' } else { ' ' };
        let cell = |value: Option<f64>| value.map_or("not installed".to_owned(), number);
        let ratio = ratio(measured, figure).map_or(String::new(), |ratio| format!("{ratio:>8.2}x"));
        let _ = writeln!(out, "{mark} {:<36}{:>14}{:>14}{ratio}", figure.who, cell(figure.median), cell(figure.best));
    }
    out
}

/// Everything, for other programs.
pub fn json(setting: &Setting, tables: &[(Table, Vec<Measured>)]) -> String {
    let tables: serde_json::Map<String, Value> = tables
        .iter()
        .map(|(table, lines)| (file_name(*table).to_owned(), lines.iter().map(line_json).collect()))
        .collect();
    let all = json!({
        "processor": setting.processor, "system": setting.system, "compiler": env!("COMPILER"), "date": setting.date,
        "load": setting.load, "real_time": setting.real_time, "ticks_per_core_cycle": setting.ticks_per_core_cycle,
        "tables": tables,
    });
    format!("{all:#}\n")
}

fn line_json(measured: &Measured) -> Value {
    let figures: Vec<Value> = measured
        .figures
        .iter()
        .map(|figure| json!({ "who": figure.who, "ours": figure.ours, "median": figure.median, "best": figure.best }))
        .collect();
    json!({
        "title": measured.title, "unit": measured.unit.name(), "goal": goal(measured),
        "limit": measured.verdict().map(|verdict| verdict.0), "verdict": verdict(measured), "figures": figures,
    })
}

/// Writes a table, and its plots, into the book.
pub fn write(table: Table, setting: &Setting, lines: &[Measured]) -> Result<()> {
    let folder = Path::new(FOLDER);
    std::fs::create_dir_all(folder).with_context(|| format!("{FOLDER} cannot be made"))?;
    let name = file_name(table);
    plot::bars(&folder.join(format!("{name}.svg")), lines)?;
    let path = folder.join(format!("{name}.md"));
    std::fs::write(&path, page(name, setting, lines)).with_context(|| format!("{} cannot be written", path.display()))
}

fn page(name: &str, setting: &Setting, lines: &[Measured]) -> String {
    let mut out = format!("<!-- Written by `make bench-libs WRITE=1`. -->\n{}\n\n", setting.text());
    let _ = writeln!(out, "`make bench-libs TABLES={name}` measures this table again.\n");
    let goals: Vec<&Measured> = lines.iter().filter(|line| line.goal.is_some()).collect();
    if !goals.is_empty() {
        out.push_str("| goal | | ours | |\n| --- | --- | ---: | --- |\n");
        for line in goals {
            let ours = line.figures.iter().find(|figure| figure.ours).and_then(|figure| figure.median);
            let _ = writeln!(
                out,
                "| {} ({}) | {} | {} | {} |",
                line.title,
                line.unit.name(),
                escape(&goal(line).unwrap_or_default()),
                ours.map_or(String::new(), number),
                verdict(line)
            );
        }
        out.push('\n');
    }
    let _ = writeln!(out, "![The figures of the table below as bars](figures-libs/{name}.svg)\n");
    out.push_str("| | who | median | best | beside ours |\n| --- | --- | ---: | ---: | ---: |\n");
    for line in lines {
        let mut heading = format!("{} ({})", line.title, line.unit.name());
        for figure in &line.figures {
            let who = if figure.ours { format!("**{}**", figure.who) } else { escape(figure.who) };
            let cell = |value: Option<f64>| value.map_or("not installed".to_owned(), number);
            let ratio = ratio(line, figure).map_or(String::new(), |ratio| format!("{ratio:.2}"));
            let _ = writeln!(
                out,
                "| {} | {who} | {} | {} | {ratio} |",
                std::mem::take(&mut heading),
                cell(figure.median),
                cell(figure.best)
            );
        }
    }
    out
}

/// Markdown reads angle brackets as HTML.
fn escape(text: &str) -> String {
    text.replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_as_many_digits_as_they_deserve() {
        assert_eq!(
            [0.04, 2.36, 9.96, 523.4, 1_052.0, 16_500.2].map(number),
            ["0.0", "2.4", "10", "523", "1052", "16,500"]
        );
    }

    #[test]
    fn a_page_says_the_goal_the_verdict_and_each_figure() {
        let figure = |who, ours, value| Figure { who, ours, median: value, best: value };
        let line = Measured {
            title: "yield",
            unit: Unit::Cycles,
            goal: Some(Goal::Most(5.0)),
            figures: vec![
                figure("ebb", true, Some(4.0)),
                figure("Box<dyn F>", false, Some(8.0)),
                figure("libco", false, None),
            ],
        };
        let page = page("tasks", &Setting::here(2, true), &[line]);
        assert!(page.contains("| yield (cycles) | ≤ 5.0 | 4.0 | met |"), "{page}");
        assert!(page.contains("|  | Box&lt;dyn F&gt; | 8.0 | 8.0 | 2.00 |"), "{page}");
        assert!(page.contains("|  | libco | not installed | not installed |  |"), "{page}");
    }
}
