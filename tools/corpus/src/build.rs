//! The stage of the checkout's own tools, library and compiler: each is built, run on stored inputs, and compared.
//!
//! An output is compared with a file of the checkout where one is stored, else with the record of what the original's binaries made.
//! What a makefile generates, the programs generate that were built before.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use similar::{Algorithm, ChangeTag, TextDiff};

use crate::builds::{Build, Run};
use crate::passing::Results;
use crate::process::{End, Finished, run};
use crate::programs::{Outcome, Outcomes};
use crate::{Corpus, Verbosity};

/// Which compiler builds.
#[derive(Clone, Copy)]
enum Compiler<'a> {
    Ours,
    /// A binary of the original.
    Original(&'a Path),
}

/// How it went with a run.
enum Verdict {
    /// As stored or recorded.
    Same,
    /// Lines that differ from the stored file, and what it says of itself.
    Differs(Option<usize>, String),
}

/// A build that was made, with its runs.
struct Made<'a> {
    build: &'a Build,
    runs: Vec<(Run, Verdict)>,
}

/// Where builds are made: a folder for each, and one for all programs.
struct Workshop<'a> {
    corpus: &'a Corpus,
    folder: &'a Path,
    compiler: Compiler<'a>,
}

/// Builds all in the table, runs and compares them, and prints a line for each.
///
/// # Errors
/// The checkout cannot be read, an output has no record, or processes cannot be started.
pub fn stage(corpus: &Corpus, builds: &[Build], expected: &Outcomes, results: &mut Results) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let workshop = Workshop { corpus, folder: folder.path(), compiler: Compiler::Ours };
    println!("the checkout's own programs       builds  outputs  alike");
    let mut made = BTreeSet::new();
    for level in levels(builds, &chosen(corpus, builds)) {
        let finished = corpus.each("build", &level, |build| {
            if let Some(missing) = build.needs.iter().find(|need| !made.contains(need.as_str())) {
                return Ok(Err(format!("needs {missing}")));
            }
            workshop.make(build)
        });
        for (build, finished) in level.into_iter().zip(finished) {
            let finished = finished?;
            results.note(format!("build {}", build.name), finished.is_ok());
            if let Err(why) = finished {
                println!("  {:<30}  no: {why}", build.name);
                continue;
            }
            made.insert(build.name.as_str());
            let runs = build.runs();
            let verdicts = corpus.each("compare", &runs, |run| workshop.compare(build, run, expected));
            let runs =
                runs.into_iter().zip(verdicts).map(|(run, verdict)| Ok((run, verdict?))).collect::<Result<_>>()?;
            report(&Made { build, runs }, results);
        }
    }
    println!();
    Ok(())
}

fn report(made: &Made, results: &mut Results) {
    let same = made.runs.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Same)).count();
    println!("  {:<30}     yes  {:>7}  {same:>5}", made.build.name, made.runs.len());
    for (run, verdict) in &made.runs {
        results.note(format!("output {} {}", made.build.name, run.name), matches!(verdict, Verdict::Same));
        if let Verdict::Differs(lines, why) = verdict {
            let lines = lines.map_or(String::new(), |lines| format!("{lines} lines differ "));
            println!("    {}: {lines}{why}", run.name);
        }
    }
}

/// Builds all with the original compiler and returns what the programs made where nothing is stored.
///
/// # Errors
/// One does not compile or does not end as the table says.
pub fn record(corpus: &Corpus, builds: &[Build], compiler: &Path) -> Result<Outcomes> {
    let folder = tempfile::tempdir()?;
    let workshop = Workshop { corpus, folder: folder.path(), compiler: Compiler::Original(compiler) };
    let mut outcomes = Outcomes::new();
    for build in levels(builds, &chosen(corpus, builds)).into_iter().flatten() {
        if let Err(why) = workshop.make(build)? {
            bail!("{} does not compile: {why}", build.name);
        }
        for run in build.runs().iter().filter(|run| run.stored.is_none()) {
            match workshop.output(build, run)? {
                Ok(output) => outcomes.insert(build.recorded(run), Outcome::new(run.exit, &output)),
                Err(why) => bail!("{} {}: {why}", build.name, run.name),
            };
        }
    }
    Ok(outcomes)
}

/// The builds that the user wants, and those that they need.
fn chosen(corpus: &Corpus, builds: &[Build]) -> BTreeSet<String> {
    let mut chosen = BTreeSet::new();
    for build in builds.iter().rev() {
        if corpus.chosen(&build.name) || chosen.contains(&build.name) {
            chosen.insert(build.name.clone());
            chosen.extend(build.needs.iter().cloned());
        }
    }
    chosen
}

/// The chosen builds in groups: each needs only those of groups before its own.
fn levels<'a>(builds: &'a [Build], chosen: &BTreeSet<String>) -> Vec<Vec<&'a Build>> {
    let mut level_of = BTreeMap::new();
    let mut levels: Vec<Vec<&Build>> = Vec::new();
    for build in builds.iter().filter(|build| chosen.contains(&build.name)) {
        let level = build.needs.iter().map(|need| level_of[need.as_str()] + 1).max().unwrap_or(0);
        level_of.insert(build.name.as_str(), level);
        if levels.len() <= level {
            levels.push(Vec::new());
        }
        levels[level].push(build);
    }
    levels
}

impl Workshop<'_> {
    fn folder_of(&self, build: &Build) -> PathBuf {
        self.folder.join(&build.name)
    }

    fn bin(&self) -> PathBuf {
        self.folder.join("bin")
    }

    /// Fills the build's folder, makes its sources and compiles them; says why where that fails.
    fn make(&self, build: &Build) -> Result<std::result::Result<(), String>> {
        let folder = self.folder_of(build);
        fs::create_dir_all(self.bin())?;
        fs::create_dir_all(&folder)?;
        for (to, sources) in &build.files {
            let to = folder.join(to);
            fs::create_dir_all(&to)?;
            for source in sources {
                copy(&self.corpus.checkout.join(source), &to)?;
            }
        }
        for (name, text) in &build.texts {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
            fs::write(path, text)?;
        }
        for step in &build.make {
            let finished = self.start(&folder, &step.command)?;
            if finished.end != End::Exit(0) {
                return Ok(Err(format!("{}: {:?} {}", step.command.join(" "), finished.end, finished.first_error())));
            }
            if let Some(name) = &step.stdout {
                fs::write(folder.join(name), &finished.stdout)?;
            }
        }
        let binary = self.bin().join(&build.name);
        let mut arguments: Vec<OsString> = match self.compiler {
            Compiler::Ours => ["build", "-O1", "--plain"].map(OsString::from).into(),
            // Not optimised: what its C keeps over a setjmp is not volatile.
            Compiler::Original(_) => Vec::new(),
        };
        arguments.extend(["-o".into(), binary.into(), "-I".into(), ".".into()]);
        arguments.extend(build.options.iter().map(OsString::from));
        let compiler = match self.compiler {
            Compiler::Ours => {
                arguments.extend(build.ours.iter().map(OsString::from));
                &self.corpus.cyc
            }
            Compiler::Original(compiler) => compiler,
        };
        arguments.extend(build.sources.iter().map(OsString::from));
        arguments.push("-lm".into());
        let arguments: Vec<_> = arguments.iter().map(OsString::as_os_str).collect();
        let compiled = run(compiler, &arguments, &folder, File::open("/dev/null")?, self.corpus.limits)?;
        self.show(&compiled);
        Ok(match compiled.end {
            End::Exit(0) => Ok(()),
            End::Exit(_) => Err(compiled.first_error().to_owned()),
            end => Err(format!("{end:?} {}", compiled.first_error())),
        })
    }

    /// Runs the program of a build, or of the system, whose name is the command's first word.
    fn start(&self, folder: &Path, command: &[String]) -> Result<Finished> {
        let (program, arguments) = command.split_first().context("a command has a name")?;
        let bin = self.bin();
        let built = bin.join(program);
        let program = if built.exists() { built } else { program.into() };
        let arguments: Vec<OsString> =
            arguments.iter().map(|word| word.replace("{bin}", &bin.to_string_lossy()).into()).collect();
        let arguments: Vec<_> = arguments.iter().map(OsString::as_os_str).collect();
        run(&program, &arguments, folder, File::open("/dev/null")?, self.corpus.limits)
    }

    /// What a run makes, or why it makes nothing.
    fn output(&self, build: &Build, run: &Run) -> Result<std::result::Result<Vec<u8>, String>> {
        let folder = self.folder_of(build);
        if let Some(parent) = run.made.as_ref().and_then(|made| made.parent()) {
            fs::create_dir_all(folder.join(parent))?;
        }
        let finished = self.start(&folder, &run.command)?;
        if finished.end != End::Exit(run.exit) {
            self.show(&finished);
            return Ok(Err(format!("{:?} {}", finished.end, finished.first_error())));
        }
        Ok(match &run.made {
            None => Ok(finished.stdout),
            Some(made) => fs::read(folder.join(made)).map_err(|error| format!("{}: {error}", made.display())),
        })
    }

    fn compare(&self, build: &Build, run: &Run, expected: &Outcomes) -> Result<Verdict> {
        let output = match self.output(build, run)? {
            Ok(output) => output,
            Err(why) => return Ok(Verdict::Differs(None, why)),
        };
        let Some(stored) = &run.stored else {
            let name = build.recorded(run);
            let wanted = expected.get(&name).with_context(|| format!("no recorded outcome of {name}"))?;
            let outcome = Outcome::new(run.exit, &output);
            let bytes = |outcome: &Outcome| outcome.output.as_ref().map_or(0, |output| output.bytes);
            let same = outcome == *wanted;
            if !same && self.corpus.verbosity == Verbosity::All {
                print!("{}", String::from_utf8_lossy(&output));
            }
            let why = || format!("other output ({} bytes, not {})", bytes(&outcome), bytes(wanted));
            return Ok(if same { Verdict::Same } else { Verdict::Differs(None, why()) });
        };
        let path = self.corpus.checkout.join(stored);
        let stored = fs::read(&path).with_context(|| path.display().to_string())?;
        let lines = lines_that_differ(&output, &stored);
        let allowed = run.differs.as_ref().map_or(0, |differs| differs.lines);
        Ok(if lines == allowed { Verdict::Same } else { Verdict::Differs(Some(lines), String::new()) })
    }

    fn show(&self, finished: &Finished) {
        if self.corpus.verbosity == Verbosity::All {
            eprint!("{}", finished.stderr);
        }
    }
}

/// Copies a file, or the files of a folder.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let from_one = |file: &Path| -> Result<()> {
        let name = file.file_name().with_context(|| format!("{} is no file", file.display()))?;
        fs::copy(file, to.join(name)).with_context(|| file.display().to_string())?;
        Ok(())
    };
    if !from.is_dir() {
        return from_one(from);
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            from_one(&entry.path())?;
        }
    }
    Ok(())
}

/// How many lines only one of the two has.
fn lines_that_differ(ours: &[u8], stored: &[u8]) -> usize {
    if ours == stored {
        return 0;
    }
    let (ours, stored) = (String::from_utf8_lossy(ours), String::from_utf8_lossy(stored));
    let diff = TextDiff::configure().algorithm(Algorithm::Myers).diff_lines(ours.as_ref(), stored.as_ref());
    diff.iter_all_changes().filter(|change| change.tag() != ChangeTag::Equal).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(name: &str, needs: &[&str]) -> Build {
        Build {
            name: name.to_owned(),
            needs: needs.iter().map(|need| (*need).to_owned()).collect(),
            files: BTreeMap::new(),
            texts: BTreeMap::new(),
            make: Vec::new(),
            sources: Vec::new(),
            options: Vec::new(),
            ours: Vec::new(),
            run: Vec::new(),
        }
    }

    #[test]
    fn a_build_comes_after_all_that_it_needs() {
        let builds = [build("a", &[]), build("b", &["a"]), build("c", &[]), build("d", &["b", "c"])];
        let names = |chosen: &[&str]| -> Vec<Vec<String>> {
            let chosen = chosen.iter().map(|name| (*name).to_owned()).collect();
            let name = |build: &&Build| build.name.clone();
            levels(&builds, &chosen).iter().map(|level| level.iter().map(name).collect()).collect()
        };
        assert_eq!(names(&["a", "b", "c", "d"]), [vec!["a", "c"], vec!["b"], vec!["d"]]);
        assert_eq!(names(&["a", "c"]), [["a", "c"]]);
    }

    #[test]
    fn lines_that_only_one_has_are_counted() {
        assert_eq!(lines_that_differ(b"a\nb\n", b"a\nb\n"), 0);
        assert_eq!(lines_that_differ(b"a\nx\nb\n", b"a\nb\n"), 1);
        assert_eq!(lines_that_differ(b"a\n\xff\n", b"a\nb\n"), 2);
    }
}
