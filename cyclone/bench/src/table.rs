//! The two tables, as they stand in the documentation.

use crate::measure::{self, Run};
use crate::programs::{PROGRAMS, Program, Way, Ways};
use crate::{Options, programs::Heap};
use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};

/// Prints what programs cost in Cyclone and in C.
///
/// # Errors
/// If a program cannot be built or run, or prints something else than in C.
pub fn tables(options: &Options) -> Result<()> {
    let is_chosen = |program: &&Program| options.only.as_ref().is_none_or(|only| program.name.contains(only.as_str()));
    let chosen: Vec<_> = PROGRAMS.iter().filter(is_chosen).collect();
    if chosen.is_empty() {
        let names: Vec<_> = PROGRAMS.iter().map(|program| program.name).collect();
        bail!("no program has such a name; there are {}", names.join(", "));
    }
    let directory = tempfile::tempdir()?;
    let progress = ProgressBar::new(chosen.len() as u64 * u64::from(options.runs))
        .with_style(ProgressStyle::with_template("{pos}/{len} runs {wide_bar} {msg}")?);
    println!("| program | C ms | Cyclone ms | ratio | instructions | C KiB | Cyclone KiB |{}", original_head(options));
    println!(
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |{}",
        if options.original.is_some() { " ---: |" } else { "" }
    );
    let (mut ratios, mut other_heaps) = (Vec::new(), Vec::new());
    for program in chosen {
        progress.set_message(program.name);
        let mut ways = Ways::build(options, program, directory.path())?;
        for _ in 0..options.runs {
            for way in ways.all() {
                let run = measure::run(&way.program, &[program.argument])?;
                if way.best.as_ref().is_none_or(|best| run.micros < best.micros) {
                    way.best = Some(run);
                }
            }
            progress.inc(1);
        }
        let expected = best(&ways.c)?.output.clone();
        for way in ways.all() {
            if best(way)?.output != expected {
                bail!("{}: the program built by {} prints something else than the one in C", program.name, way.name);
            }
        }
        let instructions = match options.no_instructions {
            true => None,
            false => Some(
                measure::instructions(&ways.cyclone.program, program.small_argument)?
                    / measure::instructions(&ways.c.program, program.small_argument)?,
            ),
        };
        let (c, cyclone) = (best(&ways.c)?, best(&ways.cyclone)?);
        let original = match &ways.original {
            Some(way) => format!(" {} |", milliseconds(best(way)?)),
            None => String::new(),
        };
        progress.suspend(|| {
            println!(
                "| {} | {} | {} | {:.2} | {} | {} | {} |{original}",
                program.name,
                milliseconds(c),
                milliseconds(cyclone),
                ratio(cyclone, c),
                instructions.map_or("".to_owned(), |ratio| format!("{ratio:.2}")),
                c.peak_kib,
                cyclone.peak_kib,
            );
        });
        ratios.push((program.name, ratio(cyclone, c)));
        if let Some(malloc) = &ways.malloc {
            other_heaps.push((program, best(malloc)?.clone(), cyclone.clone()));
        }
    }
    progress.finish_and_clear();
    let mean = (ratios.iter().map(|(_, ratio)| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
    let largest = ratios.iter().max_by(|one, two| one.1.total_cmp(&two.1)).context("nothing was measured")?;
    println!("\nThe geometric mean of the ratios is {mean:.3}, the largest {:.2} (`{}`).", largest.1, largest.0);
    if !other_heaps.is_empty() {
        println!("\n| program | allocates | malloc ms | Cyclone ms | ratio | malloc KiB | Cyclone KiB |");
        println!("| --- | --- | ---: | ---: | ---: | ---: | ---: |");
    }
    for (program, malloc, cyclone) in &other_heaps {
        println!(
            "| {} | {} | {} | {} | {:.2} | {} | {} |",
            program.name,
            match program.heap {
                Heap::Regions => "in regions",
                Heap::Plain | Heap::Collected => "from the collector",
            },
            milliseconds(malloc),
            milliseconds(cyclone),
            ratio(cyclone, malloc),
            malloc.peak_kib,
            cyclone.peak_kib,
        );
    }
    Ok(())
}

fn original_head(options: &Options) -> &'static str {
    if options.original.is_some() { " original ms |" } else { "" }
}

fn best(way: &Way) -> Result<&Run> {
    way.best.as_ref().with_context(|| format!("the program built by {} was not run", way.name))
}

fn milliseconds(run: &Run) -> String {
    format!("{:.1}", run.micros as f64 / 1000.0)
}

fn ratio(run: &Run, to: &Run) -> f64 {
    run.micros as f64 / to.micros as f64
}
