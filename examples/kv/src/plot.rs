//! The plot: memory held against the number of killed clients.

use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::prelude::*;

use crate::{Seen, mib};

/// Draws what was seen with Ebb's references and with counted ones.
pub fn draw(file: &Path, immediate: &[Seen], counted: &[Seen]) -> Result<()> {
    let failed = |error: &dyn std::fmt::Display| anyhow!("{error}");
    let most = immediate.iter().chain(counted).map(mib).fold(1.0, f64::max) * 1.1;
    let area = SVGBackend::new(file, (720, 400)).into_drawing_area();
    area.fill(&WHITE).map_err(|error| failed(&error))?;
    let mut chart = ChartBuilder::on(&area)
        .caption("Memory held by the server", ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(56)
        .build_cartesian_2d(0..immediate.len().max(2) - 1, 0.0..most)
        .map_err(|error| failed(&error))?;
    chart
        .configure_mesh()
        .x_desc("clients killed; at the end the watchers leave")
        .y_desc("MiB")
        .draw()
        .map_err(|error| failed(&error))?;
    for (name, color, seen) in [("Ebb's references", BLUE, immediate), ("Rc", RED, counted)] {
        let points = seen.iter().enumerate().map(|(step, seen)| (step, mib(seen)));
        chart
            .draw_series(LineSeries::new(points, color.stroke_width(2)))
            .map_err(|error| failed(&error))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .border_style(BLACK)
        .background_style(WHITE)
        .draw()
        .map_err(|error| failed(&error))?;
    area.present().map_err(|error| failed(&error))
}
