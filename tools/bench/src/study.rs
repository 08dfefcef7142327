//! `ebb-bench study`: figures 2, 6, 7 and 8 of a published study of bounded resource reclamation (M3, 2024), as Ebb and Linux show them.
//!
//! How long a process takes to end, by its mappings and its semaphores; which memory kernel objects hold; how a neighbour fares meanwhile; and what it costs to make objects
//! outside of a group and in one. An eventfd is a semaphore here, since both kernels have it. The measurements are those of [`groups`](crate::groups);
//! [`tables`] puts them in order, and [`plot`] draws them.

mod plot;
mod tables;

use crate::groups;
use crate::groups::cells::{Outcomes, Way, cell};
use crate::groups::rows::{NOTHING, ROWS, STARTS};
use crate::machine::Kernels;
use anyhow::{Context, Result};
use clap::Args;
use ebb_guest::artifacts;
use std::path::{Path, PathBuf};
use tables::Table;

/// What `ebb-bench study` takes.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    kernels: Kernels,

    /// Make no more objects than this.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    most: u64,

    /// The directory for the tables and plots; it is made if there is none.
    directory: PathBuf,
}

/// A class of which there are ever more.
pub struct Series {
    /// Its name in `user/bench/groups`.
    pub class: &'static str,
    /// What the study calls it.
    pub name: &'static str,
}

/// What a process has ever more of.
pub const SERIES: [Series; 2] =
    [Series { class: "vmas", name: "mappings" }, Series { class: "eventfds", name: "semaphores" }];

/// How many there are of them.
pub const COUNTS: [u64; 7] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000];

/// Of how many objects of every class the memory and the costs of creating are means.
pub const SAMPLE: u64 = 1000;

/// The sample of a class: fewer where one takes long.
pub fn sample(class: &str) -> u64 {
    let row = ROWS.iter().find(|row| row.key == class);
    row.map_or(SAMPLE, |row| row.most.min(SAMPLE))
}

/// The cells of each class, with each cell once.
fn cells(most: u64) -> Vec<Vec<String>> {
    let of_row = |class: &'static str| {
        let mut cells = [Way::Kill, Way::End].map(|way| cell(way, class, sample(class))).to_vec();
        for count in COUNTS.into_iter().filter(|count| *count <= most && is_series(class)) {
            cells.extend([Way::Kill, Way::End, Way::Gap].map(|way| cell(way, class, count)));
        }
        if class == NOTHING {
            cells.push(cell(Way::Gap, class, 1));
        }
        let mut seen = std::collections::HashSet::new();
        cells.retain(|cell| seen.insert(cell.clone()));
        cells
    };
    ROWS.iter().map(|row| of_row(row.key)).collect()
}

fn is_series(class: &str) -> bool {
    SERIES.iter().any(|series| series.class == class)
}

/// Measures, prints the tables, and writes them with the plots.
///
/// # Errors
/// A machine did not start, or a file cannot be written.
pub fn run(arguments: &Arguments) -> Result<()> {
    let directory = &arguments.directory;
    std::fs::create_dir_all(directory).with_context(|| format!("making {}", directory.display()))?;
    let ebb = artifacts::KERNEL.find(arguments.kernels.ebb.as_deref())?;
    let (ebb, linux) = groups::measure(ebb, arguments.kernels.linux.as_deref(), &cells(arguments.most))?;
    let kernels: Vec<(&str, &Outcomes)> = [("Ebb", Some(&ebb)), ("Linux", linux.as_ref())]
        .into_iter()
        .filter_map(|(name, outcomes)| Some((name, outcomes?)))
        .collect();
    let tables = [
        tables::termination(&kernels),
        tables::memory(&kernels),
        tables::neighbour(&kernels),
        tables::creation(&kernels),
    ];
    let mut text = groups::report::groups(&ebb, linux.as_ref());
    for table in &tables {
        text.push_str(&format!("\n{}\n\n{}", table.title, table.text()));
        write(&directory.join(table.file).with_extension("csv"), &table.csv())?;
    }
    write(&directory.join("study.txt"), &text)?;
    plots(directory, &kernels, &tables)?;
    print!("{text}");
    eprintln!("wrote {}", directory.display());
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

fn plots(directory: &Path, kernels: &[(&str, &Outcomes)], [_, memory, _, creation]: &[Table; 4]) -> Result<()> {
    for series in &SERIES {
        let lines = |ways: &[(Way, &str, &str)]| {
            let mut lines = Vec::new();
            for (at, (kernel, outcomes)) in kernels.iter().enumerate() {
                // What is no cgroup.kill is not shown as one; a neighbour fares the same either way.
                let shown = |way: &Way| *way != Way::Kill || outcomes.has_groups();
                for (way, figure, name) in ways.iter().filter(|(way, ..)| shown(way)) {
                    let points = tables::points(outcomes, series, *way, figure);
                    let colour = 2 * at + usize::from(*way == Way::End);
                    lines.push(plot::Line { name: format!("{kernel}{name}"), colour, points });
                }
            }
            lines
        };
        let both = [(Way::Kill, "usable", ", cgroup.kill"), (Way::End, "usable", ", SIGKILL")];
        let axes = plot::Axes {
            title: &format!("Time to terminate a process with many {}", series.name),
            across: series.name,
            up: "guest instructions until the memory is usable",
        };
        plot::lines(&directory.join(format!("termination-{}.svg", series.name)), &axes, &lines(&both))?;
        let axes = plot::Axes {
            title: &format!("A neighbour of a process with many {} that ends", series.name),
            across: series.name,
            up: "longest gap in guest instructions",
        };
        let gap = [(Way::Gap, "gap", "")];
        plot::lines(&directory.join(format!("neighbour-{}.svg", series.name)), &axes, &lines(&gap))?;
    }
    let names: Vec<&str> = kernels.iter().map(|(name, _)| *name).collect();
    plot::bars(&directory.join("memory.svg"), "Bytes that an object holds", &names, &memory.bars("bytes"))?;
    let title = "What it costs to make an object in a group, in per cent of outside";
    plot::bars(&directory.join("creation.svg"), title, &names, &creation.bars("per cent"))
}

/// The classes whose objects hold memory.
fn holding() -> impl Iterator<Item = &'static groups::rows::Row> {
    ROWS.iter().filter(|row| row.key != NOTHING && row.key != STARTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_measured_twice() {
        let cells = cells(1_000_000);
        let all: Vec<&String> = cells.iter().flatten().collect();
        let distinct: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(all.len(), distinct.len());
        assert!(all.iter().any(|cell| *cell == "gap:eventfds/1000000"));
        assert!(all.iter().any(|cell| *cell == "end:pipes/1000"));
        assert!(all.iter().any(|cell| *cell == "kill:starts/100"));
    }
}
