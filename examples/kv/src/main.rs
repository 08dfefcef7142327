//! `ebb-kv`: a small key-value server on `ebb-refs`, `ebb-tasks` and `ebb-ipc`, whose clients are killed while others wait on
//! their values.
//!
//! Owners (processes) put values; watchers (threads) wait until a value changes or goes. Then the owners are killed one by one.
//! It runs twice: with Ebb's references, and with `Rc`. What the server still holds after each kill is printed side by side:
//! with Ebb's a dead client's memory comes back at once and its watchers learn of it; with `Rc` the watchers keep it.
#![forbid(unsafe_code)]

mod client;
mod kill;
mod plot;
mod protocol;
mod server;
mod store;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use ipc::Geometry;
use ipc::linux::thread_pair;

use client::{Owned, Owner, Watcher};
use store::{Counted, Immediate, Store};

/// A key-value server whose clients vanish while others wait on their values.
#[derive(Parser)]
#[command(version, max_term_width = 100, args_conflicts_with_subcommands = true)]
struct CommandLine {
    #[command(subcommand)]
    role: Option<Role>,

    #[command(flatten)]
    size: Size,

    /// Write the plot there, as SVG.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Role {
    /// Be a client that owns values (its channel comes over the standard input). For `ebb-kv` itself.
    #[command(hide = true)]
    Own(Owned),

    /// Measure what it takes until a client that vanished is gone, against how many values it has and how many of them others watch.
    Kill {
        /// The most values that it has.
        #[arg(long, default_value_t = 1_000_000)]
        most: u64,
    },
}

/// How much there is of everything.
#[derive(clap::Args, Clone, Copy)]
struct Size {
    /// Clients that own values and are killed.
    #[arg(long, default_value_t = 8)]
    owners: u64,

    /// Clients that watch all values.
    #[arg(long, default_value_t = 4)]
    watchers: u64,

    /// Values of each owner.
    #[arg(long, default_value_t = 16)]
    values: u64,

    /// The size of a value in KiB.
    #[arg(long, default_value_t = 256)]
    kib: u64,
}

/// What was seen after a number of kills.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// What all values held, in bytes.
    pub held_bytes: usize,
    /// How many watches had ended because their value was gone.
    pub told: usize,
}

fn main() -> Result<()> {
    let arguments = CommandLine::parse();
    match arguments.role {
        Some(Role::Own(owned)) => return client::own(owned),
        Some(Role::Kill { most }) => return kill::table(most),
        None => {}
    }
    let immediate = run::<Immediate>(arguments.size)?;
    let counted = run::<Counted>(arguments.size)?;
    println!("{:>16} {:>14} {:>16} {:>14} {:>16}", "", "Ebb: held", "watchers told", "Rc: held", "watchers told");
    for (step, (ebb, rc)) in immediate.iter().zip(&counted).enumerate() {
        let what = match step {
            0 => "all connected".into(),
            step if step as u64 > arguments.size.owners => "watchers left".into(),
            step => format!("{step} killed"),
        };
        println!("{what:>16} {:>10.1} MiB {:>16} {:>10.1} MiB {:>16}", mib(ebb), ebb.told, mib(rc), rc.told);
    }
    if let Some(file) = &arguments.plot {
        plot::draw(file, &immediate, &counted).with_context(|| format!("drawing {}", file.display()))?;
        println!("wrote {}", file.display());
    }
    Ok(())
}

fn mib(seen: &Seen) -> f64 {
    seen.held_bytes as f64 / f64::from(1 << 20)
}

/// Runs the scenario: what is seen when all are connected, after each kill, and when the watchers have left too.
fn run<S: Store>(size: Size) -> Result<Vec<Seen>> {
    let keys = size.owners * size.values;
    let calls = usize::try_from(keys + 2)?.clamp(2, Geometry::MAX_CALL_LINES);
    let geometry = Geometry::new(calls, 0)?;
    let mut connections = Vec::new();
    let mut owners = Vec::new();
    for number in 0..size.owners {
        let owned = Owned { first_key: number * size.values, count: size.values, size: size.kib << 10 };
        let (owner, connection) = Owner::start(owned, geometry)?;
        owners.push(owner);
        connections.push(connection);
    }
    let mut ends = Vec::new();
    for _ in 0..size.watchers {
        let (ours, theirs) = thread_pair(geometry);
        connections.push(ours);
        ends.push(theirs);
    }
    let server = std::thread::spawn(|| server::serve::<S>(connections));
    owners.iter_mut().try_for_each(Owner::wait_until_ready)?;
    let watchers: Vec<Watcher> = ends.into_iter().map(|end| Watcher::start(end, 0..keys)).collect();
    watchers.iter().for_each(Watcher::wait_until_ready);

    let mut seen = vec![settled(&watchers)];
    for owner in owners {
        owner.kill()?;
        seen.push(settled(&watchers));
    }
    watchers.into_iter().try_for_each(Watcher::end)?;
    server.join().map_err(|_| anyhow::anyhow!("the server panicked"))?;
    seen.push(Seen { held_bytes: store::held_bytes(), told: seen.last().map_or(0, |last| last.told) });
    Ok(seen)
}

/// What is seen once nothing changes any more.
fn settled(watchers: &[Watcher]) -> Seen {
    const QUIET: Duration = Duration::from_millis(100);
    let look = || Seen { held_bytes: store::held_bytes(), told: watchers.iter().map(Watcher::gone).sum() };
    let (mut last, mut since) = (look(), Instant::now());
    while since.elapsed() < QUIET {
        std::thread::sleep(Duration::from_millis(2));
        let now = look();
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
    last
}
