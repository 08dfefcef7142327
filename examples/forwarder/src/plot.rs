//! The plots: throughput, what the forwarder's processor could do, and memory against packet size.

use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;

use crate::build::Build;
use crate::run::Measured;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws them side by side. `rows` has a packet size and what was measured of each build.
pub fn draw(file: &Path, builds: &[Build], rows: &[(u32, Vec<Measured>)]) -> Result<()> {
    let area = SVGBackend::new(file, (1500, 420)).into_drawing_area();
    let failed = |error: &dyn std::fmt::Display| anyhow!("{error}");
    area.fill(&WHITE).map_err(|error| failed(&error))?;
    let (left, others) = area.split_horizontally(500);
    let (middle, right) = others.split_horizontally(500);
    chart(&left, "Throughput", "MB/s", builds, rows, |_, seen| seen.megabytes_per_second())?;
    chart(&middle, "Per second of the forwarder's processor time", "MB", builds, rows, |_, seen| {
        f64::from(seen.bytes) / seen.processor_micros_per_packet()
    })?;
    chart(&right, "What packets add to the forwarder's memory", "KiB", builds, rows, |build, seen| {
        build.above_idle(seen) as f64
    })?;
    area.present().map_err(|error| failed(&error))
}

fn chart(
    area: &Area<'_>,
    title: &str,
    unit: &str,
    builds: &[Build],
    rows: &[(u32, Vec<Measured>)],
    value: impl Fn(&Build, &Measured) -> f64,
) -> Result<()> {
    let failed = |error: &dyn std::fmt::Display| anyhow!("{error}");
    let sizes = || rows.iter().map(|(size, _)| *size);
    let (least, most) = (sizes().min().unwrap_or(1), sizes().max().unwrap_or(2));
    let values = rows.iter().flat_map(|(_, row)| builds.iter().zip(row).map(|(build, seen)| value(build, seen)));
    let highest = values.fold(1.0, f64::max) * 1.1;
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(64)
        .build_cartesian_2d((least..most.max(least + 1)).log_scale(), 0.0..highest)
        .map_err(|error| failed(&error))?;
    chart.configure_mesh().x_desc("bytes in a packet").y_desc(unit).draw().map_err(|error| failed(&error))?;
    for (number, build) in builds.iter().enumerate() {
        let points = rows.iter().filter_map(|(size, row)| row.get(number).map(|seen| (*size, value(build, seen))));
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
