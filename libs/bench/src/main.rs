//! Ebb's libraries beside their peers: one command, one process, one table.
//!
//! Each [line](line::Line) is one thing to do, done by ours and by peers. Contenders of a line are measured in turn, run after
//! run, on one pinned core, so that whatever else the machine does hits all of them alike: **compare figures within a line, as
//! ratios**. A figure is the median over the runs of each run's median batch, less what reading the clock costs. Goals and
//! verdicts are in [`rows`]; what is printed also goes into the book, as tables and plots ([`report`], [`plot`]).

mod clock;
mod line;
mod machine;
mod ours;
mod peers;
mod plot;
mod report;
mod rows;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, ValueEnum};

/// Measures Ebb's libraries beside their peers.
#[derive(Parser)]
struct Arguments {
    /// Which tables; all of them if none is named.
    tables: Vec<Table>,
    /// Only lines whose title contains this.
    #[arg(long)]
    only: Option<String>,
    /// Also write the figures to this file, as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Also write the tables and plots into the book (run from the repository's top folder).
    #[arg(long)]
    write: bool,
    /// Used by the table of memory: park tasks of this kind, say how many bytes each takes, and exit.
    #[arg(long, hide = true)]
    park: Option<String>,
    /// How many tasks to park.
    #[arg(long, hide = true, default_value_t = 1_000_000)]
    tasks: usize,
}

/// One table: the lines of one library, or of one subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Table {
    /// References.
    Refs,
    /// Tasks.
    Tasks,
    /// Messages between cores.
    Ipc,
    /// Memory of parked tasks.
    Memory,
}

impl Table {
    const ALL: [Table; 4] = [Table::Refs, Table::Tasks, Table::Ipc, Table::Memory];

    fn lines(self) -> Vec<line::Line> {
        match self {
            Table::Refs => rows::refs::lines(),
            Table::Tasks => rows::tasks::lines(),
            Table::Ipc => rows::ipc::lines(),
            Table::Memory => rows::memory::lines(),
        }
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if let Some(who) = &arguments.park {
        println!("{}", rows::memory::park(who, arguments.tasks)?);
        return Ok(());
    }
    let cores = machine::settle()?;
    let real_time = machine::real_time();
    let setting = report::Setting::here(cores, real_time);
    println!("{}", setting.text());
    let tables = if arguments.tables.is_empty() { Table::ALL.to_vec() } else { arguments.tables };
    let mut measured = Vec::new();
    for table in tables {
        if table == Table::Ipc && cores < 2 {
            eprintln!("The table of messages needs two cores; there is one.");
            continue;
        }
        println!("\n== {}", report::title(table));
        let mut results = Vec::new();
        for line in table.lines() {
            if arguments.only.as_ref().is_some_and(|only| !line.title.contains(only.as_str())) {
                continue;
            }
            let result = line.measure();
            print!("{}", report::text(&result));
            results.push(result);
        }
        measured.push((table, results));
    }
    if let Some(path) = &arguments.json {
        std::fs::write(path, report::json(&setting, &measured))?;
    }
    if arguments.write {
        for (table, results) in &measured {
            report::write(*table, &setting, results)?;
        }
    }
    Ok(())
}
