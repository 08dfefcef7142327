//! The figures of the study in order: as text, and as CSV with a line for each figure.

use super::{COUNTS, SERIES, Series, holding, sample};
use crate::groups::cells::{Outcomes, Way};
use crate::groups::rows::{NOTHING, ROWS};
use crate::report::number;

/// What a kernel showed, for one row and column of a table.
struct Entry {
    row: String,
    kernel: String,
    column: &'static str,
    value: f64,
}

/// A figure of the study.
pub struct Table {
    /// What it shows.
    pub title: &'static str,
    /// Its file's name, without what says its kind.
    pub file: &'static str,
    entries: Vec<Entry>,
}

/// A row's name, and a value for each kernel.
pub struct Bar {
    /// What the row is.
    pub name: String,
    /// Kernel and value.
    pub values: Vec<(String, f64)>,
}

impl Table {
    fn new(title: &'static str, file: &'static str) -> Self {
        Table { title, file, entries: Vec::new() }
    }

    fn add(&mut self, row: &str, kernel: &str, column: &'static str, value: Option<f64>) {
        let entry = |value| Entry { row: row.to_owned(), kernel: kernel.to_owned(), column, value };
        self.entries.extend(value.map(entry));
    }

    /// A line for each figure: what of, which kernel, which figure, and its value.
    pub fn csv(&self) -> String {
        let mut text = "what,kernel,figure,value\n".to_owned();
        for Entry { row, kernel, column, value } in &self.entries {
            text.push_str(&format!("\"{row}\",{kernel},{column},{value}\n"));
        }
        text
    }

    /// A line for each row, with a column for each kernel's figures.
    pub fn text(&self) -> String {
        let mut heads: Vec<(&str, &str)> = Vec::new();
        let mut rows: Vec<&str> = Vec::new();
        for entry in &self.entries {
            if !heads.contains(&(&entry.kernel, entry.column)) {
                heads.push((&entry.kernel, entry.column));
            }
            if !rows.contains(&entry.row.as_str()) {
                rows.push(&entry.row);
            }
        }
        let mut lines = vec![vec![String::new()]];
        lines[0].extend(heads.iter().map(|(kernel, column)| format!("{kernel}, {column}")));
        for row in rows {
            let mut line = vec![row.to_owned()];
            for (kernel, column) in &heads {
                let entry = self
                    .entries
                    .iter()
                    .find(|entry| entry.row == row && entry.kernel == *kernel && entry.column == *column);
                line.push(match entry {
                    // Free memory that did not come back.
                    Some(entry) if entry.value < 0.0 => "> 2 s".to_owned(),
                    entry => number(entry.map(|entry| entry.value)),
                });
            }
            lines.push(line);
        }
        aligned(&lines)
    }

    /// The figures of one column by row.
    pub fn bars(&self, column: &str) -> Vec<Bar> {
        let mut bars: Vec<Bar> = Vec::new();
        for entry in self.entries.iter().filter(|entry| entry.column == column) {
            let value = (entry.kernel.clone(), entry.value);
            match bars.iter_mut().find(|bar| bar.name == entry.row) {
                Some(bar) => bar.values.push(value),
                None => bars.push(Bar { name: entry.row.clone(), values: vec![value] }),
            }
        }
        bars
    }
}

fn aligned(lines: &[Vec<String>]) -> String {
    let widths: Vec<usize> =
        (0..lines[0].len()).map(|at| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for line in lines {
        for (at, (cell, width)) in line.iter().zip(&widths).enumerate() {
            text.push_str(&if at == 0 { format!("{cell:<width$}") } else { format!("  {cell:>width$}") });
        }
        text.push('\n');
    }
    text
}

/// A figure against the count.
pub fn points(outcomes: &Outcomes, series: &Series, way: Way, figure: &str) -> Vec<(f64, f64)> {
    let point = |count: u64| {
        let value = outcomes.figure(way, series.class, count, figure)?;
        (value > 0.0).then_some((count as f64, value))
    };
    COUNTS.into_iter().filter_map(point).collect()
}

/// Figure 2: how long it takes to terminate, in guest instructions until the memory is usable.
pub fn termination(kernels: &[(&str, &Outcomes)]) -> Table {
    let mut table =
        Table::new("Figure 2: time to terminate, in guest instructions until the memory is usable", "termination");
    for series in &SERIES {
        for count in COUNTS {
            let row = format!("{}, {}", series.name, number(Some(count as f64)));
            for (kernel, outcomes) in kernels {
                let ways = [(Way::Kill, "cgroup.kill"), (Way::End, "SIGKILL")];
                for (way, column) in ways.into_iter().filter(|(way, _)| *way == Way::End || outcomes.has_groups()) {
                    table.add(&row, kernel, column, outcomes.figure(way, series.class, count, "usable"));
                }
            }
        }
    }
    table
}

/// Figure 6: how many bytes an object holds.
pub fn memory(kernels: &[(&str, &Outcomes)]) -> Table {
    let mut table = Table::new("Figure 6: memory that kernel objects hold", "memory");
    for row in holding() {
        for (kernel, outcomes) in kernels {
            let held = |class, count| outcomes.figure(Way::Kill, class, count, "held");
            let each = |held: f64| (held - self::empty(outcomes)).max(0.0) / sample(row.key) as f64;
            table.add(row.title, kernel, "bytes", held(row.key, sample(row.key)).map(each));
        }
    }
    table
}

fn empty(outcomes: &Outcomes) -> f64 {
    outcomes.figure(Way::Kill, NOTHING, 1, "held").unwrap_or(0.0)
}

/// Figure 7: for how long a neighbour did not run, and what it had of the processor meanwhile.
pub fn neighbour(kernels: &[(&str, &Outcomes)]) -> Table {
    let mut table = Table::new(
        "Figure 7: a neighbour, while a process ends: its longest gap in guest instructions, and its share of the processor in per cent",
        "neighbour",
    );
    for series in &SERIES {
        for count in COUNTS {
            let row = format!("{}, {}", series.name, number(Some(count as f64)));
            for (kernel, outcomes) in kernels {
                let figure = |name| outcomes.figure(Way::Gap, series.class, count, name);
                table.add(&row, kernel, "longest gap", figure("gap"));
                table.add(&row, kernel, "share", figure("share").map(|share| share / 10.0));
            }
        }
    }
    table
}

/// Figure 8: what it costs to make an object outside of any group and in one, in guest instructions.
pub fn creation(kernels: &[(&str, &Outcomes)]) -> Table {
    let mut table = Table::new("Figure 8: making an object, in guest instructions", "creation");
    for row in ROWS.iter().filter(|row| row.key != NOTHING) {
        for (kernel, outcomes) in kernels {
            let count = sample(row.key);
            let each = |way| outcomes.figure(way, row.key, count, "created").map(|created| created / count as f64);
            let (outside, inside) = (each(Way::End), each(Way::Kill).filter(|_| outcomes.has_groups()));
            table.add(row.title, kernel, "outside", outside);
            table.add(row.title, kernel, "in a group", inside);
            let share = outside.zip(inside).filter(|(outside, _)| *outside > 0.0);
            table.add(row.title, kernel, "per cent", share.map(|(outside, inside)| inside / outside * 100.0));
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_column_for_each_figure_of_each_kernel() {
        let mut table = Table::new("", "");
        table.add("pipes", "Ebb", "outside", Some(1234.0));
        table.add("pipes", "Linux", "outside", Some(20.0));
        table.add("eventfds", "Ebb", "outside", None);
        table.add("eventfds", "Linux", "outside", Some(-1.0));
        let expected = "          Ebb, outside  Linux, outside\npipes            1,234              20\neventfds             -           > 2 s\n";
        assert_eq!(table.text(), expected);
        assert!(table.csv().contains("\"pipes\",Ebb,outside,1234\n"), "{}", table.csv());
        assert_eq!(table.bars("outside").len(), 2);
    }
}
