//! The plots: throughput, what the forwarder's processor could do, and memory, against packet size, or against routes or
//! batches where they differ.

use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;

use crate::build::Build;
use crate::measured::{Load, Measured};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A number of a load.
type Of = fn(&Load) -> u32;

/// Draws them side by side. `rows` has what was measured of each build.
pub fn draw(file: &Path, builds: &[Build], rows: &[Vec<Measured>]) -> Result<()> {
    let area = SVGBackend::new(file, (1500, 420)).into_drawing_area();
    let failed = |error: &dyn std::fmt::Display| anyhow!("{error}");
    area.fill(&WHITE).map_err(|error| failed(&error))?;
    let (left, others) = area.split_horizontally(500);
    let (middle, right) = others.split_horizontally(500);
    chart(&left, "Throughput", "MB/s", builds, rows, Measured::megabytes_per_second)?;
    chart(&middle, "Per second of the forwarder's processor time", "MB", builds, rows, |seen| {
        f64::from(seen.load.bytes) / seen.processor_micros_per_packet()
    })?;
    chart(&right, "What packets add to the forwarder's memory", "KiB", builds, rows, |seen| {
        seen.above_idle_kib() as f64
    })?;
    area.present().map_err(|error| failed(&error))
}

/// What the rows differ in, and its value in each.
fn horizontal(rows: &[Vec<Measured>]) -> (&'static str, Vec<String>) {
    let values: [(&str, Of); 3] = [
        ("routes", |load| load.routes),
        ("bytes with a system call", |load| load.batch),
        ("bytes in a packet", |load| load.bytes),
    ];
    let loads = || rows.iter().filter_map(|row| row.first()).map(|seen| seen.load);
    let differs = |value: Of| loads().zip(loads().skip(1)).any(|(a, b)| value(&a) != value(&b));
    let (name, value) = values.into_iter().find(|(_, value)| differs(*value)).unwrap_or(values[2]);
    (name, loads().map(|load| value(&load).to_string()).collect())
}

/// The rows are drawn at equal distances, whatever their values.
fn chart(
    area: &Area<'_>,
    title: &str,
    unit: &str,
    builds: &[Build],
    rows: &[Vec<Measured>],
    value: impl Fn(&Measured) -> f64,
) -> Result<()> {
    let failed = |error: &dyn std::fmt::Display| anyhow!("{error}");
    let (name, labels) = horizontal(rows);
    let highest = rows.iter().flatten().map(&value).fold(1.0, f64::max) * 1.1;
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(64)
        .build_cartesian_2d(0..labels.len().max(2) - 1, 0.0..highest)
        .map_err(|error| failed(&error))?;
    chart
        .configure_mesh()
        .x_desc(name)
        .y_desc(unit)
        .x_labels(labels.len())
        .x_label_formatter(&|row| labels.get(*row).cloned().unwrap_or_default())
        .draw()
        .map_err(|error| failed(&error))?;
    for (number, build) in builds.iter().enumerate() {
        let points = rows.iter().enumerate().filter_map(|(at, row)| row.get(number).map(|seen| (at, value(seen))));
        let style = build.color.stroke_width(2);
        chart
            .draw_series(LineSeries::new(points, style))
            .map_err(|error| failed(&error))?
            .label(build.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .border_style(BLACK)
        .background_style(WHITE)
        .draw()
        .map_err(|error| failed(&error))
}
