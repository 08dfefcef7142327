//! Plots as SVG: lines with logarithmic axes, and groups of bars.

use super::tables::Bar;
use anyhow::{Result, anyhow};
use plotters::prelude::*;
use std::path::Path;

/// One line.
pub struct Line {
    /// What it shows.
    pub name: String,
    /// Which colour it has: an even one for a kernel, and the odd one after it for the same kernel's second line.
    pub colour: usize,
    /// Its points; none may be zero or less.
    pub points: Vec<(f64, f64)>,
}

/// What is on the axes.
pub struct Axes<'a> {
    /// What the plot shows.
    pub title: &'a str,
    /// Below it.
    pub across: &'a str,
    /// At its side.
    pub up: &'a str,
}

const COLOURS: [RGBColor; 4] =
    [RGBColor(0x1f, 0x6f, 0xb4), RGBColor(0x7f, 0xb5, 0xe0), RGBColor(0xc0, 0x50, 0x20), RGBColor(0xe8, 0xa8, 0x80)];
const TEXT: RGBColor = RGBColor(0x33, 0x33, 0x33);

/// Draws lines.
///
/// # Errors
/// The file cannot be written.
pub fn lines(path: &Path, axes: &Axes, lines: &[Line]) -> Result<()> {
    draw_lines(path, axes, lines).map_err(|error| anyhow!("{} cannot be drawn: {error}", path.display()))
}

fn draw_lines(path: &Path, axes: &Axes, lines: &[Line]) -> Result<(), Box<dyn std::error::Error>> {
    let points = || lines.iter().flat_map(|line| &line.points);
    let span = |values: &mut dyn Iterator<Item = f64>| {
        let (least, most) =
            values.fold((f64::MAX, 1.0_f64), |(least, most), value| (least.min(value), most.max(value)));
        // A decade at least, with a margin.
        least.min(most) * 0.8..(most * 1.25).max(least.min(most) * 10.0)
    };
    let area = SVGBackend::new(path, (760, 460)).into_drawing_area();
    area.fill(&WHITE)?;
    let across = span(&mut points().map(|point| point.0));
    let up = span(&mut points().map(|point| point.1));
    let mut chart = ChartBuilder::on(&area)
        .caption(axes.title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(72)
        .build_cartesian_2d(across.log_scale(), up.log_scale())?;
    let short = |value: &f64| format!("{value:.0e}");
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc(axes.across)
        .y_desc(axes.up)
        .x_label_formatter(&short)
        .y_label_formatter(&short)
        .draw()?;
    for line in lines {
        let colour = COLOURS[line.colour % COLOURS.len()];
        let style = colour.stroke_width(2);
        chart
            .draw_series(LineSeries::new(line.points.iter().copied(), style).point_size(3))?
            .label(&line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .border_style(TEXT)
        .background_style(WHITE)
        .draw()?;
    area.present()?;
    Ok(())
}

/// Draws a group of bars for each row, one for each of `names`, on a logarithmic scale where they differ by more than a hundred.
///
/// # Errors
/// The file cannot be written.
pub fn bars(path: &Path, title: &str, names: &[&str], rows: &[Bar]) -> Result<()> {
    draw_bars(path, title, names, rows).map_err(|error| anyhow!("{} cannot be drawn: {error}", path.display()))
}

fn draw_bars(path: &Path, title: &str, names: &[&str], rows: &[Bar]) -> Result<(), Box<dyn std::error::Error>> {
    const TOP: i32 = 44;
    const BAR: i32 = 12;
    const SPACE: i32 = 8;
    const LEFT: i32 = 280;
    const RIGHT: i32 = 720;
    let group = BAR * names.len() as i32 + SPACE;
    let height = TOP + group * rows.len() as i32 + SPACE;
    let area = SVGBackend::new(path, (800, height as u32)).into_drawing_area();
    area.fill(&WHITE)?;
    let style = |size: f64| ("sans-serif", size).into_font().color(&TEXT);
    area.draw(&Text::new(title, (12, 6), style(16.0)))?;
    let values = || rows.iter().flat_map(|row| &row.values).map(|(_, value)| *value).filter(|value| *value > 0.0);
    let (least, most) = (values().fold(f64::MAX, f64::min), values().fold(1.0, f64::max));
    let share = |value: f64| {
        if most < least * 100.0 {
            value / most
        } else {
            // Bars start a little below the smallest value, so that it is still seen.
            (value.max(least) / least * 1.5).ln() / (most / least * 1.5).ln()
        }
    };
    for (at, row) in rows.iter().enumerate() {
        let top = TOP + group * at as i32;
        area.draw(&Text::new(row.name.as_str(), (12, top + 2), style(12.0)))?;
        for (at, name) in names.iter().enumerate() {
            let Some((_, value)) = row.values.iter().find(|(kernel, _)| kernel == name) else { continue };
            let y = top + BAR * at as i32;
            let end = LEFT + (share(*value).clamp(0.0, 1.0) * f64::from(RIGHT - LEFT)) as i32;
            area.draw(&Rectangle::new([(LEFT, y), (end, y + BAR - 2)], COLOURS[at * 2 % COLOURS.len()].filled()))?;
            area.draw(&Text::new(format!("{value:.0}"), (end + 6, y), style(10.0)))?;
        }
    }
    for (at, name) in names.iter().enumerate() {
        let x = LEFT + 90 * at as i32;
        area.draw(&Rectangle::new([(x, 28), (x + 10, 38)], COLOURS[at * 2 % COLOURS.len()].filled()))?;
        area.draw(&Text::new(*name, (x + 14, 27), style(12.0)))?;
    }
    area.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_is_drawn_empty() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("plot.svg");
        let axes = Axes { title: "title", across: "across", up: "up" };
        lines(&path, &axes, &[Line { name: "none".into(), colour: 0, points: Vec::new() }]).expect("it is drawn");
        bars(&path, "title", &["Ebb"], &[]).expect("it is drawn");
    }

    #[test]
    fn each_line_and_bar_is_drawn() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("plot.svg");
        let axes = Axes { title: "title", across: "across", up: "up" };
        let points = vec![(1.0, 100.0), (1000.0, 1e6)];
        lines(&path, &axes, &[Line { name: "a kernel".into(), colour: 1, points }]).expect("it is drawn");
        assert!(std::fs::read_to_string(&path).expect("a file").contains("a kernel"));
        let row = Bar { name: "a row".into(), values: vec![("Ebb".into(), 12.0), ("Linux".into(), 34.0)] };
        bars(&path, "title", &["Ebb", "Linux"], &[row]).expect("it is drawn");
        let text = std::fs::read_to_string(&path).expect("a file");
        assert!(text.contains("a row") && text.contains("12") && text.contains("34"));
    }
}
