//! The tables of what it takes to end a workload, for the terminal and for the book.

use super::cells::{Outcome, Outcomes, Way};
use super::rows::{COUNTS, ROWS, Row};
use super::{CREATED, NEIGHBOUR, READ};
use crate::report::{Style, columns, markdown, number};
use std::fmt::Write;
use std::io;

/// What may lie between the smallest and the largest of a flat row.
const FLAT: f64 = 1.05;

/// What a neighbour may wait at most, in ticks.
const LONGEST_GAP: f64 = 100_000.0;

/// A table with the text before it.
struct Section {
    title: &'static str,
    method: &'static str,
    table: String,
}

/// All tables, with what the kernels refused.
pub fn tables(ebb: &Outcomes, linux: Option<&Outcomes>, style: Style) -> String {
    let mut text = String::new();
    for section in sections(ebb, linux, style) {
        // Writing to a string cannot fail.
        let _ = match style {
            Style::Terminal => write!(text, "{}\n{}\n", section.title, section.table),
            Style::Page => write!(text, "## {}\n\n{}\n\n{}\n", section.title, section.method, section.table),
        };
    }
    text
}

/// The page of the book.
pub fn page(ebb: &Outcomes, linux: Option<&Outcomes>) -> String {
    format!(
        "# Figures of groups\n\n\
         Written by `make bench-groups WRITE=1` (`ebb-bench groups`). The same static program (`user/bench/groups`) ran as process 1 on both kernels in the \
         same emulator, in a machine with one core and 6 GiB. The unit is the **guest instruction**, as in [the other figures](figures.md); time in which the machine is idle, since a \
         kernel waits for a timer, counts as a nanosecond each.\n\n\
         For each figure a workload is started in a new cgroup (`clone3` with `CLONE_INTO_CGROUP`, then `exec`), makes N objects of one class and waits; then `1` is \
         written to its `cgroup.kill`. Nothing outside uses what the workload made. Each class has a machine of its own. Figures for N up to 100 are medians of five and those for 10,000 \
         are of one measurement, after one that does not count; larger ones are measured once, on a kernel that has not made so many before. Where a kernel has no cgroup2, the workload is a process group, ended by SIGKILL, and the tables say so.\n\n\
         {}\n{}",
        groups(ebb, linux),
        tables(ebb, linux, Style::Page)
    )
}

/// What each kernel says about cgroup2.
pub fn groups(ebb: &Outcomes, linux: Option<&Outcomes>) -> String {
    let mut text = String::new();
    for (name, outcomes) in [("Ebb", Some(ebb)), ("Linux", linux)] {
        let answer = outcomes.and_then(|outcomes| outcomes.groups.as_deref()).unwrap_or("not measured");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "- cgroup2 on {name}: {answer}");
    }
    text
}

fn sections(ebb: &Outcomes, linux: Option<&Outcomes>, style: Style) -> Vec<Section> {
    let counts = |way, figure| by_count(ebb, linux, way, figure, style);
    vec![
        Section {
            title: "From the kill until the memory is usable",
            method: "From before the write until the free memory is what it was before the workload was started, but for 1 MiB and 2 % of what the workload held. \
                     What Linux keeps in its lists of a core counts as free: an allocation gets it at once. *Flatness* is the largest of a row's figures \
                     divided by the smallest; the goal is 1.05. The last column compares the largest N that both have.",
            table: counts(Way::Kill, "usable"),
        },
        Section {
            title: "From the kill until the group is empty",
            method: "Until poll(2) on `cgroup.events` has returned and `populated 0` has been read.",
            table: counts(Way::Kill, "dead"),
        },
        Section {
            title: "SIGKILL without a cgroup, until the memory is usable",
            method: "The same workload outside of any cgroup: SIGKILL to its process group, waitpid(2) for its leader, and until no process of the group is left.",
            table: counts(Way::End, "usable"),
        },
        Section {
            title: "What was charged",
            method: "What the controller *reclaim* had charged for the kill when it began, in nanoseconds (a processor that executes an instruction in each), and how much of that the kill took until \
                     `populated 0` was read, in hundredths. More than 100 would be an overrun.",
            table: charged(ebb, style),
        },
        Section {
            title: "Poll and read",
            method: "Until the group is seen to be empty by poll(2), and by reading `cgroup.events` and giving way in turn.",
            table: poll_and_read(ebb, linux, style),
        },
        Section {
            title: "First use afterwards",
            method: "What a page costs that a fresh process touches, before the workload was started and after its end: the workload's memory or 128 MiB of it, at \
                     the largest N up to 100,000. Work that a kernel puts off until its memory is used again shows here.",
            table: first_use(ebb, linux, style),
        },
        Section {
            title: "For how long a neighbour waits",
            method: "The longest time between two readings of the time stamp counter by a process outside that does nothing else, from before the kill until 0.2 s after the \
                     group was empty; both kernels give each of two processes that run some milliseconds in turn. The goal is 100,000. The *share* \
                     is what that process had of the processor until the group was empty.",
            table: neighbour(ebb, linux, style),
        },
        Section {
            title: "What it costs to be in a group",
            method: "What it costs to make an object outside of any cgroup and in a child of the root with all controllers, at the largest N up to 10,000.",
            table: creation(ebb, linux, style),
        },
        Section {
            title: "What objects hold",
            method: "Free memory that is gone while the workload has its objects, less what it is with none, in bytes for each object, at the largest N up to 100,000.",
            table: held(ebb, linux, style),
        },
        Section {
            title: "What could not be measured",
            method: "A dash in the tables above has its reason here.",
            table: refused(ebb, linux),
        },
    ]
}

fn table<const N: usize>(lines: &[[String; N]], style: Style) -> String {
    match style {
        Style::Terminal => columns(lines),
        Style::Page => markdown(lines),
    }
}

fn ratio(value: Option<f64>, base: Option<f64>) -> String {
    match value.zip(base) {
        Some((value, base)) if base > 0.0 => format!("{:.2}", value / base),
        _ => "-".to_owned(),
    }
}

/// A time, or that it is endless.
fn time(value: Option<f64>) -> String {
    if value == Some(-1.0) { "> 2 s".to_owned() } else { number(value) }
}

fn is_time(value: &f64) -> bool {
    *value >= 0.0
}

/// A line per class: a figure at each count.
fn by_count(ebb: &Outcomes, linux: Option<&Outcomes>, way: Way, figure: &str, style: Style) -> String {
    let mut head = vec!["N of".to_owned()];
    for (name, outcomes) in [("Ebb", Some(ebb)), ("Linux", linux)] {
        let has_groups = way == Way::End || outcomes.is_none_or(Outcomes::has_groups);
        let name = if has_groups { name.to_owned() } else { format!("{name} (SIGKILL)") };
        let of_count = |(at, count): (usize, &u64)| {
            let count = number(Some(*count as f64));
            if at == 0 { format!("{name}, {count}") } else { count }
        };
        head.extend(COUNTS.iter().enumerate().map(of_count));
        head.push("flatness".to_owned());
    }
    head.push("Ebb / Linux".to_owned());
    let mut lines: Vec<[String; 2 * COUNTS.len() + 4]> = Vec::from_iter(head.try_into());
    let (mut flat, mut judged) = (0, 0);
    for row in ROWS {
        let figures = |outcomes: Option<&Outcomes>| {
            COUNTS.map(|count| outcomes.and_then(|outcomes| outcomes.figure(way, row.key, count, figure)))
        };
        let [here, there] = [figures(Some(ebb)), figures(linux)];
        if [here, there].iter().flatten().all(Option::is_none) {
            continue;
        }
        let mut line = vec![row.title.to_owned()];
        for figures in [&here, &there] {
            line.extend(figures.map(time));
            line.push(flatness(figures).map_or("-".to_owned(), |flatness| format!("{flatness:.2}")));
        }
        if let Some(flatness) = flatness(&here) {
            judged += 1;
            flat += usize::from(flatness <= FLAT);
        }
        let both = here.iter().zip(&there).rev().find(|(here, there)| here.is_some() && there.is_some());
        line.push(both.map_or("-".to_owned(), |(here, there)| ratio(here.filter(is_time), there.filter(is_time))));
        lines.extend(line.try_into());
    }
    let mut text = table(&lines, style);
    if judged > 0 {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{flat} of {judged} rows are flat on Ebb.\n");
    }
    text
}

/// A line per class: what was charged at each count, and which part of it was used.
fn charged(ebb: &Outcomes, style: Style) -> String {
    let mut head = vec!["N of".to_owned()];
    for name in ["charged", "used, %"] {
        head.extend(COUNTS.iter().map(|count| format!("{name}, {}", number(Some(*count as f64)))));
    }
    let mut lines: Vec<[String; 2 * COUNTS.len() + 1]> = Vec::from_iter(head.try_into());
    let (mut judged, mut over) = (0, 0);
    for row in ROWS {
        let figures = |name| COUNTS.map(|count| ebb.figure(Way::Kill, row.key, count, name));
        let charged = figures("charged").map(|charged| charged.filter(is_time));
        if charged.iter().all(Option::is_none) {
            continue;
        }
        let used: Vec<Option<f64>> = figures("dead")
            .into_iter()
            .zip(charged)
            .map(|(dead, charged)| dead.zip(charged).map(|(dead, charged)| dead / charged * 100.0))
            .collect();
        judged += used.iter().flatten().count();
        over += used.iter().flatten().filter(|used| **used > 100.0).count();
        let mut line = vec![row.title.to_owned()];
        line.extend(charged.map(number));
        line.extend(used.into_iter().map(number));
        lines.extend(line.try_into());
    }
    format!("{}\n{over} of {judged} kills took longer than was charged.\n", table(&lines, style))
}

/// The largest of a row's figures divided by the smallest; `None` where there are not two, or one of them is endless.
fn flatness(figures: &[Option<f64>]) -> Option<f64> {
    let figures: Vec<f64> = figures.iter().copied().flatten().collect();
    let largest = figures.iter().copied().fold(0.0, f64::max);
    let smallest = figures.iter().copied().fold(f64::INFINITY, f64::min);
    (figures.len() > 1 && smallest > 0.0).then(|| largest / smallest)
}

fn poll_and_read(ebb: &Outcomes, linux: Option<&Outcomes>, style: Style) -> String {
    let head = ["N of", "N", "Ebb, poll", "read", "Linux, poll", "read"];
    let mut lines = vec![head.map(str::to_owned)];
    for row in ROWS.iter().filter(|row| READ.0.contains(&row.key)) {
        let count = READ.1.min(row.most);
        let figure = |outcomes: Option<&Outcomes>, way| {
            number(outcomes.and_then(|outcomes| outcomes.figure(way, row.key, count, "dead")))
        };
        let figures = [Some(ebb), linux].map(|outcomes| [figure(outcomes, Way::Kill), figure(outcomes, Way::Read)]);
        let [[ebb_poll, ebb_read], [linux_poll, linux_read]] = figures;
        lines.push([row.title.to_owned(), number(Some(count as f64)), ebb_poll, ebb_read, linux_poll, linux_read]);
    }
    table(&lines, style)
}

/// A line per class with some columns for each kernel, at the largest count that the kernel has figures for.
fn by_kernel(
    ebb: &Outcomes,
    linux: Option<&Outcomes>,
    head: [&str; 9],
    style: Style,
    of: impl Fn(&Outcomes, &Row) -> Option<[String; 4]>,
) -> String {
    let mut lines = vec![head.map(str::to_owned)];
    let dashes = || [(); 4].map(|()| "-".to_owned());
    for row in ROWS {
        let (here, there) = (of(ebb, row), linux.and_then(|outcomes| of(outcomes, row)));
        if here.is_none() && there.is_none() {
            continue;
        }
        let ([a, b, c, d], [e, f, g, h]) = (here.unwrap_or_else(dashes), there.unwrap_or_else(dashes));
        lines.push([row.title.to_owned(), a, b, c, d, e, f, g, h]);
    }
    table(&lines, style)
}

fn first_use(ebb: &Outcomes, linux: Option<&Outcomes>, style: Style) -> String {
    let head = ["N of", "Ebb, N", "before", "after", "ratio", "Linux, N", "before", "after", "ratio"];
    by_kernel(ebb, linux, head, style, |outcomes, row| {
        let count = outcomes.largest(Way::Kill, row, &COUNTS, 100_000)?;
        let [before, after] = ["before", "after"].map(|name| outcomes.figure(Way::Kill, row.key, count, name));
        Some([number(Some(count as f64)), number(before), number(after), ratio(after, before)])
    })
}

fn creation(ebb: &Outcomes, linux: Option<&Outcomes>, style: Style) -> String {
    let head = ["N of", "Ebb, N", "outside", "in a group", "ratio", "Linux, N", "outside", "in a group", "ratio"];
    by_kernel(ebb, linux, head, style, |outcomes, row| {
        let count = outcomes.largest(Way::End, row, &COUNTS, CREATED)?;
        let each = |way| outcomes.figure(way, row.key, count, "created").map(|created| created / count as f64);
        let [outside, inside] = [each(Way::End), each(Way::Kill).filter(|_| outcomes.has_groups())];
        // Nothing takes a loop and no object.
        (row.key != super::NOTHING)
            .then(|| [number(Some(count as f64)), number(outside), number(inside), ratio(inside, outside)])
    })
}

/// What an object holds, with the count that says so.
pub fn held_each(outcomes: &Outcomes, row: &Row) -> Option<(u64, f64)> {
    let count = outcomes.largest(Way::Kill, row, &COUNTS, 100_000)?;
    let empty = outcomes.figure(Way::Kill, super::NOTHING, 1, "held").unwrap_or(0.0);
    let held = outcomes.figure(Way::Kill, row.key, count, "held")?;
    // What is below a page for each is chance where there are few.
    (count > 1).then(|| (count, (held - empty).max(0.0) / count as f64))
}

fn held(ebb: &Outcomes, linux: Option<&Outcomes>, style: Style) -> String {
    let mut lines = vec![["N of", "Ebb, N", "bytes each", "Linux, N", "bytes each", "Ebb / Linux"].map(str::to_owned)];
    for row in ROWS.iter().filter(|row| row.key != super::STARTS) {
        let (here, there) = (held_each(ebb, row), linux.and_then(|outcomes| held_each(outcomes, row)));
        if here.is_none() && there.is_none() {
            continue;
        }
        let count = |held: Option<(u64, f64)>| number(held.map(|(count, _)| count as f64));
        let bytes = |held: Option<(u64, f64)>| held.map(|(_, bytes)| bytes);
        lines.push([
            row.title.to_owned(),
            count(here),
            number(bytes(here)),
            count(there),
            number(bytes(there)),
            ratio(bytes(here), bytes(there)),
        ]);
    }
    table(&lines, style)
}

fn neighbour(ebb: &Outcomes, linux: Option<&Outcomes>, style: Style) -> String {
    let mut lines = vec![
        ["N of", "N", "Ebb, longest gap", "share", "Linux, longest gap", "share", "Ebb / Linux", "goal"]
            .map(str::to_owned),
    ];
    for row in ROWS {
        for count in COUNTS.into_iter().filter(|count| *count == 1 || NEIGHBOUR.contains(count)) {
            let figure = |outcomes: Option<&Outcomes>, name| {
                outcomes.and_then(|outcomes| outcomes.figure(Way::Gap, row.key, count, name))
            };
            let (here, there) = (figure(Some(ebb), "gap"), figure(linux, "gap"));
            if here.is_none() && there.is_none() {
                continue;
            }
            let share =
                |outcomes| figure(outcomes, "share").map_or("-".to_owned(), |share| format!("{:.0} %", share / 10.0));
            let goal = here.map_or("-", |gap| if gap <= LONGEST_GAP { "met" } else { "not met" });
            lines.push([
                row.title.to_owned(),
                number(Some(count as f64)),
                number(here),
                share(Some(ebb)),
                number(there),
                share(linux),
                ratio(here, there),
                goal.to_owned(),
            ]);
        }
    }
    table(&lines, style)
}

/// A line for each class and kernel that was not measured with all counts: which, and why.
fn refused(ebb: &Outcomes, linux: Option<&Outcomes>) -> String {
    let mut text = String::new();
    for row in ROWS {
        for (name, outcomes) in [("Ebb", Some(ebb)), ("Linux", linux)] {
            for count in COUNTS {
                let reason = |way| why_not(outcomes?.of(way, row.key, count)?);
                // What is refused in one way mostly is in all: once is enough.
                let ways = [Way::Kill, Way::End, Way::Gap];
                if let Some((way, reason)) = ways.into_iter().find_map(|way| Some((way, reason(way)?))) {
                    let cell = super::cells::cell(way, row.key, count);
                    // Writing to a string cannot fail.
                    let _ = writeln!(text, "- {name}, {} (`{cell}`): {reason}", row.title);
                }
            }
        }
    }
    if text.is_empty() { "- nothing\n".to_owned() } else { text }
}

/// Why a cell has no figures; `None` if it has.
fn why_not(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Measured(_) => None,
        Outcome::Refused { made: 0, error } => Some(io::Error::from_raw_os_error(*error).to_string()),
        Outcome::Refused { made, error } => {
            let made = number(Some(*made as f64));
            Some(format!("after {made}: {}", io::Error::from_raw_os_error(*error)))
        }
        Outcome::Lost(reason) => Some(reason.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(lines: &[&str]) -> Outcomes {
        let mut outcomes = Outcomes::default();
        outcomes.read("cgroup2\tyes: memory");
        for line in lines {
            let cell = line.split('\t').next().unwrap_or_default();
            outcomes.read(&format!("begin\t{cell}"));
            outcomes.read(line);
        }
        outcomes
    }

    #[test]
    fn a_row_is_flat_if_no_figure_is_far_from_another() {
        let ebb = outcomes(&["kill:pipes/1\tmade=1\tusable=1000", "kill:pipes/100\tmade=100\tusable=1040"]);
        let linux = outcomes(&["kill:pipes/1\tmade=1\tusable=2000", "kill:pipes/100\tmade=100\tusable=-1"]);
        let text = by_count(&ebb, Some(&linux), Way::Kill, "usable", Style::Page);
        let line = "| pipes | 1,000 | 1,040 | - | - | - | 1.04 | 2,000 | > 2 s | - | - | - | - | - |";
        assert!(text.contains(line), "{text}");
        assert!(text.ends_with("1 of 1 rows are flat on Ebb.\n"), "{text}");
    }

    #[test]
    fn what_a_kernel_refuses_is_said_with_its_error() {
        let ebb = outcomes(&["kill:pipes/10000\tmade=1024\terror=24", "kill:ptys/1\tmade=0\terror=38"]);
        let text = refused(&ebb, None);
        assert!(text.contains("`kill:pipes/10000`): after 1,024: Too many open files"), "{text}");
        assert!(text.contains("`kill:ptys/1`): Function not implemented"), "{text}");
    }

    #[test]
    fn what_an_empty_workload_holds_is_no_objects() {
        let ebb = outcomes(&["kill:nothing/1\tmade=1\theld=5000", "kill:pipes/100\tmade=100\theld=105000"]);
        let row = ROWS.iter().find(|row| row.key == "pipes").expect("there are pipes");
        assert_eq!(held_each(&ebb, row), Some((100, 1000.0)));
    }
}
