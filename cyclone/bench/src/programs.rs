//! The programs, and the ways of building them.

use crate::Options;
use crate::measure::Run;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program in Cyclone and in C.
pub struct Program {
    pub name: &'static str,
    /// With this one the C version takes some tenths of a second.
    pub argument: &'static str,
    /// With this one its instructions are counted, which takes fifty times as long.
    pub small_argument: &'static str,
    pub heap: Heap,
}

/// How the Cyclone program allocates.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Heap {
    /// Hardly at all, or a few arrays: the C program has them from `malloc`.
    Plain,
    /// In regions: the C program has an arena, and a version with `malloc` and `free`.
    Regions,
    /// Many objects for the collector: so has the C program, and it has a version with `malloc`.
    Collected,
}

const fn program(name: &'static str, argument: &'static str, small_argument: &'static str, heap: Heap) -> Program {
    Program { name, argument, small_argument, heap }
}

/// All programs.
pub const PROGRAMS: &[Program] = &[
    program("ackermann", "11", "8", Heap::Plain),
    program("ary", "100000", "10000", Heap::Plain),
    program("binarytrees", "16", "12", Heap::Regions),
    program("except", "10000000", "100000", Heap::Plain),
    program("fib", "41", "30", Heap::Plain),
    program("hash", "1000000", "100000", Heap::Collected),
    program("heapsort", "3000000", "300000", Heap::Plain),
    program("lists", "600", "60", Heap::Regions),
    program("matrix", "20000", "500", Heap::Plain),
    program("nestedloop", "30", "12", Heap::Plain),
    program("nsieve", "9", "7", Heap::Plain),
    program("random", "60000000", "1000000", Heap::Plain),
    program("sieve", "12000", "500", Heap::Plain),
    program("spellcheck", "6000000", "600000", Heap::Plain),
    program("strcat", "30000000", "3000000", Heap::Plain),
    program("wc", "3000", "100", Heap::Plain),
];

/// One way of building a program.
pub struct Way {
    pub name: &'static str,
    pub program: PathBuf,
    /// The run that took least time.
    pub best: Option<Run>,
}

/// All ways of building a program.
pub struct Ways {
    /// C with the same allocation.
    pub c: Way,
    pub cyclone: Way,
    /// C with `malloc` and `free`, where that is not the same.
    pub malloc: Option<Way>,
    pub original: Option<Way>,
}

impl Ways {
    /// Builds a program in all of them.
    ///
    /// # Errors
    /// If a compiler fails.
    pub fn build(options: &Options, program: &Program, directory: &Path) -> Result<Ways> {
        let name = program.name;
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
        let (c_source, source) = (sources.join(format!("{name}.c")), sources.join(format!("{name}.cyc")));
        let output = |suffix: &str| directory.join(format!("{name}-{suffix}"));
        let c = |way: &'static str, suffix: &str| {
            let mut command = Command::new(&options.cc);
            command.arg("-O2").arg(&c_source).arg("-o").arg(output(suffix));
            (way, output(suffix), command)
        };
        let mut same = c("the C compiler", "c");
        same.2.arg("-DSAME_ALLOCATION");
        if program.heap == Heap::Collected {
            same.2.arg("-lgc");
        }
        let mut cyclone = Command::new(&options.cyc);
        cyclone.env("CC", &options.cc).args(["build", "-O2"]).args(&options.cyc_options);
        cyclone.arg(&source).arg("-o").arg(output("cyc"));
        let malloc = match program.heap {
            Heap::Plain => None,
            Heap::Regions | Heap::Collected => Some(built(c("the C compiler, with malloc", "malloc"))?),
        };
        let original = match &options.original {
            None => None,
            Some(original) => {
                // It writes its C beside its input: it gets a copy.
                let copy = directory.join(format!("{name}.cyc"));
                std::fs::copy(&source, &copy)?;
                let mut command = Command::new(original);
                command.arg(copy).arg("-O2").arg("-o").arg(output("original"));
                Some(built(("the original compiler", output("original"), command))?)
            }
        };
        Ok(Ways { c: built(same)?, cyclone: built(("cyc", output("cyc"), cyclone))?, malloc, original })
    }

    /// Each of them.
    pub fn all(&mut self) -> impl Iterator<Item = &mut Way> {
        [&mut self.c, &mut self.cyclone].into_iter().chain(&mut self.malloc).chain(&mut self.original)
    }
}

fn built((name, program, mut command): (&'static str, PathBuf, Command)) -> Result<Way> {
    let output = command.output().with_context(|| format!("cannot start {name}"))?;
    if !output.status.success() {
        bail!("{name} does not build {}:\n{}", program.display(), String::from_utf8_lossy(&output.stderr));
    }
    Ok(Way { name, program, best: None })
}
