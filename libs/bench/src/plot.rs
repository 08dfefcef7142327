//! The figures as bars, one group per line, on a logarithmic scale.

use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::prelude::*;

use crate::line::{Measured, Unit};
use crate::report::number;

const WIDTH: u32 = 860;
const ROW: i32 = 18;
const HEAD: i32 = 26;
const GAP: i32 = 10;
/// Where the names end and the bars begin.
const LEFT: i32 = 270;
const RIGHT: i32 = 780;

const OURS: RGBColor = RGBColor(0x1f, 0x6f, 0xb4);
const PEER: RGBColor = RGBColor(0xb8, 0xb8, 0xb8);
const TEXT: RGBColor = RGBColor(0x55, 0x55, 0x55);

/// Draws all lines into one SVG file.
///
/// # Errors
/// Where the file cannot be written.
pub fn bars(path: &Path, lines: &[Measured]) -> Result<()> {
    let height: i32 = lines.iter().map(|line| HEAD + GAP + ROW * line.figures.len() as i32).sum();
    let area = SVGBackend::new(path, (WIDTH, height.max(1) as u32)).into_drawing_area();
    let mut y = 0;
    for line in lines {
        draw(&area, line, y).map_err(|error| anyhow!("{} cannot be drawn: {error}", path.display()))?;
        y += HEAD + GAP + ROW * line.figures.len() as i32;
    }
    area.present().map_err(|error| anyhow!("{} cannot be written: {error}", path.display()))
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Outcome<'a> = Result<(), DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>>;

fn draw<'a>(area: &Area<'a>, line: &Measured, top: i32) -> Outcome<'a> {
    let style = |size: f64| ("sans-serif", size).into_font().color(&TEXT);
    let limit = line.verdict().map(|(limit, _)| limit);
    let values = || line.figures.iter().filter_map(|figure| figure.median).chain(limit);
    let most = values().fold(1.0_f64, f64::max).log10();
    // Bars start a little below the smallest value, so that it is still seen.
    let least = (values().fold(f64::MAX, f64::min).max(0.1).log10() - 0.3).min(most - 0.1);
    let share = |value: f64| ((value.max(0.1).log10() - least) / (most - least)).clamp(0.0, 1.0);
    let better = if line.unit == Unit::PerTenThousand { "more is better" } else { "less is better" };
    area.draw(&Text::new(format!("{} [{}; {better}]", line.title, line.unit.name()), (8, top + 8), style(14.0)))?;
    for (row, figure) in line.figures.iter().enumerate() {
        let y = top + HEAD + ROW * row as i32;
        let colour = if figure.ours { OURS } else { PEER };
        area.draw(&Text::new(figure.who, (24, y + 2), style(12.0)))?;
        let Some(value) = figure.median else {
            area.draw(&Text::new("not installed", (LEFT, y + 2), style(12.0)))?;
            continue;
        };
        let end = LEFT + (share(value) * f64::from(RIGHT - LEFT)) as i32;
        area.draw(&Rectangle::new([(LEFT, y), (end, y + ROW - 4)], colour.filled()))?;
        area.draw(&Text::new(number(value), (end + 6, y + 2), style(12.0)))?;
    }
    if let Some(limit) = limit {
        let x = LEFT + (share(limit) * f64::from(RIGHT - LEFT)) as i32;
        let bottom = top + HEAD + ROW * line.figures.len() as i32 - 2;
        area.draw(&PathElement::new(vec![(x, top + HEAD - 4), (x, bottom)], RED.stroke_width(1)))?;
    }
    Ok(())
}
