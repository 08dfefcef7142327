//! The table of figures, for the terminal and for the book.

use crate::Figures;
use crate::rows::{COUNTS, MANY, ROWS, RowOfMany, WATCHED};
use std::fmt::Write;

/// How a table looks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Columns padded with spaces.
    Terminal,
    /// Markdown.
    Page,
}

const HEAD: [&str; 8] = ["row", "Ebb", "Linux", "Ebb / Linux", "minimal Linux", "Ebb / minimal", "goal", "Asterinas"];

/// A line per row that was measured; what is not known is shown as a dash.
pub fn table(ebb: Option<&Figures>, linux: Option<&Figures>, style: Style) -> String {
    let mut lines = vec![HEAD.map(str::to_owned)];
    let (mut met, mut judged) = (0, 0);
    for row in ROWS {
        let here = ebb.and_then(|figures| figures.get(row.key)).copied();
        let there = linux.and_then(|figures| figures.get(row.key)).copied();
        if here.or(there).is_none() {
            continue;
        }
        // Where the minimal Linux is not known, Debian's is what has to be beaten.
        let verdict = here.zip(row.minimal.or(there)).map(|(ours, theirs)| ours < theirs);
        judged += usize::from(verdict.is_some());
        met += usize::from(verdict == Some(true));
        lines.push([
            row.title.to_owned(),
            number(here),
            number(there),
            ratio(here, there),
            number(row.minimal),
            ratio(here, row.minimal),
            verdict.map_or("-", |met| if met { "met" } else { "not met" }).to_owned(),
            number(row.asterinas),
        ]);
    }
    with_goals(&lines, met, judged, style)
}

/// A table of these lines, and how many of the goals that could be judged are met.
pub fn with_goals<const N: usize>(lines: &[[String; N]], met: usize, judged: usize, style: Style) -> String {
    let mut text = match style {
        Style::Terminal => columns(lines),
        Style::Page => markdown(lines),
    };
    if judged > 0 {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{met} of {judged} goals met.\n");
    }
    text
}

/// A line per operation that was measured, and for each count of things around it what Ebb and Linux need.
pub fn many(ebb: Option<&Figures>, linux: Option<&Figures>, style: Style) -> String {
    let mut head = vec!["row".to_owned()];
    for count in COUNTS {
        let count = number(count.parse().ok());
        head.extend([format!("Ebb, N = {count}"), "Linux".to_owned(), "ratio".to_owned()]);
    }
    head.push("goal".to_owned());
    let mut lines: Vec<[String; 3 * COUNTS.len() + 2]> = Vec::from_iter(head.try_into());
    let (mut met, mut judged) = (0, 0);
    for row in MANY {
        if ![ebb, linux].into_iter().flatten().any(|figures| figures.keys().any(|key| is_of(row, key))) {
            continue;
        }
        let mut line = vec![row.title.to_owned()];
        let mut verdicts = Vec::new();
        for count in COUNTS {
            let key = format!("{}/{count}", row.key);
            let [here, there] = [ebb, linux].map(|figures| figures.and_then(|figures| figures.get(&key)).copied());
            // What Linux does and Ebb refuses is no goal that was met.
            if let (Some(_), Some(theirs)) = (ebb, there) {
                verdicts.push(here.is_some_and(|ours| ours < theirs));
            }
            line.extend([number(here), number(there), ratio(here, there)]);
        }
        judged += verdicts.len();
        met += verdicts.iter().filter(|met| **met).count();
        line.push(match verdicts.iter().all(|met| *met) {
            _ if verdicts.is_empty() => "-".to_owned(),
            true => "met".to_owned(),
            false => "not met".to_owned(),
        });
        lines.extend(line.try_into());
    }
    let mut text = match style {
        Style::Terminal => columns(&lines),
        Style::Page => markdown(&lines),
    };
    if judged > 0 {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{met} of {judged} cells are below Linux.\n");
    }
    text
}

/// A line per kind of thing: for how long another process did not run while one ended that had very many of it.
pub fn watched(ebb: Option<&Figures>, linux: Option<&Figures>, style: Style) -> String {
    let mut lines = vec![["what the process has that ends", "Ebb", "Linux", "ratio"].map(str::to_owned)];
    for (key, title) in WATCHED {
        let [here, there] = [ebb, linux].map(|figures| figures.and_then(|figures| figures.get(*key)).copied());
        if here.or(there).is_some() {
            lines.push([(*title).to_owned(), number(here), number(there), ratio(here, there)]);
        }
    }
    match style {
        Style::Terminal => columns(&lines),
        Style::Page => markdown(&lines),
    }
}

/// How long Ebb may keep interrupts off, in guest instructions.
const LONGEST_STRETCH: f64 = ebb_guest::stretch::BOUND as f64;

/// A line per operation: for how long interrupts were off at most, from before the first of its things was made until the operation was over.
pub fn stretches(figures: &Figures, style: Style) -> String {
    let mut head = vec!["row".to_owned()];
    head.extend(COUNTS.map(|count| format!("N = {}", number(count.parse().ok()))));
    head.push("goal".to_owned());
    let mut lines: Vec<[String; COUNTS.len() + 2]> = Vec::from_iter(head.try_into());
    let mut longest = 0.0_f64;
    for row in MANY {
        let found = COUNTS.map(|count| figures.get(&format!("stretch:{}/{count}", row.key)).copied());
        let Some(most) = found.into_iter().flatten().reduce(f64::max) else { continue };
        longest = longest.max(most);
        let mut line = vec![row.title.to_owned()];
        line.extend(found.map(number));
        line.push(if most <= LONGEST_STRETCH { "met" } else { "not met" }.to_owned());
        lines.extend(line.try_into());
    }
    let table = match style {
        Style::Terminal => columns(&lines),
        Style::Page => markdown(&lines),
    };
    format!("{table}\nThe longest is {}; the goal is {}.\n", number(Some(longest)), number(Some(LONGEST_STRETCH)))
}

/// Whether a figure is of this row, with whatever count.
fn is_of(row: &RowOfMany, key: &str) -> bool {
    key.split_once('/').is_some_and(|(name, _)| name == row.key)
}

/// A line per row: Ebb, and Ebb in which every reference to an object counts itself.
pub fn references(ebb: &Figures, strong: &Figures, style: Style) -> String {
    let mut lines = vec![["row", "Ebb", "strong references", "Ebb / strong"].map(str::to_owned)];
    for row in ROWS {
        let [here, there] = [ebb, strong].map(|figures| figures.get(row.key).copied());
        if here.or(there).is_none() {
            continue;
        }
        lines.push([row.title.to_owned(), number(here), number(there), ratio(here, there)]);
    }
    match style {
        Style::Terminal => columns(&lines),
        Style::Page => markdown(&lines),
    }
}

/// A line per row: outside of a control group and in one, and how much more that is.
pub fn in_group(outside: &Figures, inside: &Figures) -> String {
    let mut lines = vec![["row", "outside", "in a group", "more"].map(str::to_owned)];
    for row in ROWS {
        let [out, within] = [outside, inside].map(|figures| figures.get(row.key).copied());
        if let Some((out, within)) = out.zip(within) {
            let more = format!("{:+.1} %", (within / out - 1.0) * 100.0);
            lines.push([row.title.to_owned(), number(Some(out)), number(Some(within)), more]);
        }
    }
    columns(&lines)
}

/// The page of the book.
pub fn page(
    ebb: Option<&Figures>,
    linux: Option<&Figures>,
    against_strong: Option<(&Figures, &Figures)>,
    stretch: Option<&Figures>,
) -> String {
    let stretches = stretch.map_or(String::new(), |figures| {
        format!(
            "\n## For how long interrupts are off\n\n\
             The longest stretch of kernel code without a point where interrupts are let in, while the program of the table above ran on an Ebb \
             that measures it (`--features stretch`): from before the first of N things was made until the operation was over. No other process waits \
             longer for an interrupt.\n\n{}",
            self::stretches(figures, Style::Page)
        )
    });
    let references = against_strong.map_or(String::new(), |(ebb, strong)| {
        format!(
            "\n## What Ebb's references cost\n\n\
             The same kernel, built so that each reference taken to an object counts itself and uncounts itself when it is \
             dropped (`--features hold-strong`). Ebb's own references name an object across a suspension and look whether it \
             lives when they are used again; a ratio of at most 1.01 says that this costs no more than counting.\n\n{}",
            self::references(ebb, strong, Style::Page)
        )
    });
    format!(
        "# Figures\n\n\
         Written by `make bench` (`ebb-bench --write`). The same static program (`user/bench`) ran on both kernels in the \
         same emulator. The unit is the **guest instruction**: QEMU with `-icount shift=0` advances the time stamp counter \
         by one per instruction. That makes figures repeatable, and says nothing about cache misses, TLB misses or how many \
         instructions a real processor does at once; they are not nanoseconds.\n\n\
         - *Linux* is Debian's kernel, booted through PVH as Ebb is, with mitigations and huge pages switched off; neither \
         kernel randomises addresses (`norandmaps`).\n\
         - *minimal Linux* and *Asterinas* were measured earlier with programs of the same kind: a Linux 6.1 configured with \
         little else than what is measured, and Asterinas 0.18.\n\
         - The *goal* of each row is to stay below the minimal Linux; where that is not known, below Debian's.\n\
         - Each figure is the median of 11 batches, without the loop around the operation.\n\n{}\n\
         ## With many of everything\n\n\
         What an operation costs where there are N of what it deals with (`user/bench/many`). The goal of each cell is to stay below \
         Linux. The machine has 2 GiB: Linux needs them for 10,000 processes. Each figure is the median of 5 batches; what ends or lists \
         all of 10,000 is measured once.\n\n{}\n\
         ## For how long another process waits\n\n\
         One process ends that has very many of something; another one does nothing but read the time stamp counter (`user/bench/watch.c`). \
         The longest time between two of its readings, from before the end began until 0.2 s after it was reported, on one core. Time slices \
         count: both kernels give each of two processes that run some milliseconds in turn.\n\n{}{stretches}{references}",
        table(ebb, linux, Style::Page),
        many(ebb, linux, Style::Page),
        watched(ebb, linux, Style::Page)
    )
}

/// A figure with its digits in groups; a dash for none.
pub fn number(value: Option<f64>) -> String {
    match value {
        None => "-".into(),
        Some(value) if value >= 1e9 => format!("{:.2}e9", value / 1e9),
        Some(value) if value >= 1e7 => format!("{:.1}e6", value / 1e6),
        Some(value) => {
            let digits = format!("{value:.0}");
            let mut text = String::new();
            for (index, digit) in digits.chars().enumerate() {
                if index > 0 && (digits.len() - index).is_multiple_of(3) {
                    text.push(',');
                }
                text.push(digit);
            }
            text
        }
    }
}

/// How many times `base` a value is, with two digits; a dash where one is not known.
pub fn ratio(value: Option<f64>, base: Option<f64>) -> String {
    match value.zip(base) {
        Some((value, base)) if base > 0.0 => format!("{:.2}", value / base),
        _ => "-".into(),
    }
}

/// Lines of equal columns.
pub fn columns<const N: usize>(lines: &[[String; N]]) -> String {
    let mut text = String::new();
    for line in lines {
        for (index, cell) in line.iter().enumerate() {
            let width = lines.iter().map(|line| line[index].chars().count()).max().unwrap_or(0);
            // Writing to a string cannot fail.
            let _ = if index == 0 { write!(text, "{cell:<width$}") } else { write!(text, "  {cell:>width$}") };
        }
        text.push('\n');
    }
    text
}

/// A table in Markdown; the first line is its head.
pub fn markdown<const N: usize>(lines: &[[String; N]]) -> String {
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate() {
        let _ = writeln!(text, "| {} |", line.join(" | "));
        if index == 0 {
            let _ = writeln!(text, "| --- |{}", " ---: |".repeat(N - 1));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(number(Some(7.4)), "7");
        assert_eq!(number(Some(1234.0)), "1,234");
        assert_eq!(number(Some(809_000.0)), "809,000");
        assert_eq!(number(Some(1_566_402_721.0)), "1.57e9");
        assert_eq!(number(None), "-");
    }

    #[test]
    fn a_row_of_many_is_met_if_all_its_cells_are() {
        let ebb = Figures::from([("threads-times/1".to_owned(), 200.0), ("threads-times/100".to_owned(), 700.0)]);
        let linux = Figures::from([("threads-times/1".to_owned(), 400.0), ("threads-times/100".to_owned(), 700.0)]);
        let text = many(Some(&ebb), Some(&linux), Style::Page);
        let line = "| times, N threads | 200 | 400 | 0.50 | 700 | 700 | 1.00 | - | - | - | not met |";
        assert!(text.contains(line), "{text}");
        assert!(text.ends_with("1 of 2 cells are below Linux.\n"), "{text}");
    }

    #[test]
    fn rows_in_a_group_are_compared_with_those_outside() {
        let outside = Figures::from([("null".to_owned(), 200.0), ("fstat".to_owned(), 700.0)]);
        let inside = Figures::from([("null".to_owned(), 201.0), ("stat".to_owned(), 700.0)]);
        let text = in_group(&outside, &inside);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.ends_with("200         201  +0.5 %\n"), "{text}");
    }

    #[test]
    fn a_goal_is_met_below_the_yardstick_only() {
        let ebb = Figures::from([("null".to_owned(), 200.0), ("fstat".to_owned(), 700.0)]);
        let text = table(Some(&ebb), None, Style::Page);
        assert!(text.contains("| null system call (getppid) | 200 | - | - | 222 | 0.90 | met | 541 |"), "{text}");
        assert!(text.contains("| fstat | 700 | - | - | 651 | 1.08 | not met | - |"), "{text}");
        assert!(text.ends_with("1 of 2 goals met.\n"), "{text}");
    }
}
