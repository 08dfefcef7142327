//! The stage of programs: each is compiled and run, and what it leaves is compared with the record.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::passing::Results;
use crate::process::{End, Finished, run};
use crate::programs::{Outcome, Outcomes, Program, Tier};
use crate::{Corpus, Verbosity};

/// Whose standard library a program is compiled with.
#[derive(Clone, Copy, Debug, ValueEnum, PartialEq, Eq)]
pub enum Library {
    Ours,
    /// The checkout's own, compiled with the program.
    Original,
}

impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ours => "ours",
            Self::Original => "original",
        })
    }
}

/// How it went with a program.
enum Verdict {
    Passed,
    /// Why it does not compile.
    NotCompiled(String),
    /// It runs, and leaves something else than recorded.
    Differs(String),
}

/// Compiles and runs the programs, prints a line for each and a summary by tier.
///
/// # Errors
/// The checkout cannot be read, a program has no recorded outcome, or processes cannot be started.
pub fn stage(
    corpus: &Corpus,
    programs: &[Program],
    expected: &Outcomes,
    library: Library,
    results: &mut Results,
) -> Result<()> {
    let programs: Vec<_> = programs.iter().filter(|program| corpus.chosen(&program.name)).collect();
    let verdicts = corpus.each("run", &programs, |program| judge(corpus, program, expected, library));
    println!("programs with {library} library");
    let mut passed = BTreeSet::new();
    for (program, verdict) in programs.iter().zip(verdicts) {
        let name = &program.name;
        match verdict? {
            Verdict::Passed => {
                println!("  pass  {name}");
                results.note(format!("run {library} {name}"), true);
                passed.insert(name.as_str());
                continue;
            }
            Verdict::NotCompiled(why) => println!("  not compiled  {name}: {why}"),
            Verdict::Differs(why) => println!("  differs  {name}: {why}"),
        }
        results.note(format!("run {library} {name}"), false);
    }
    for tier in [Tier::First, Tier::Second, Tier::Third] {
        let of_tier = programs.iter().filter(|program| program.tier == tier);
        let good = of_tier.clone().filter(|program| passed.contains(program.name.as_str())).count();
        println!("tier {tier:<6}  {good:>3} of {:>3}", of_tier.count());
    }
    println!("all          {:>3} of {:>3}\n", passed.len(), programs.len());
    Ok(())
}

fn judge(corpus: &Corpus, program: &Program, expected: &Outcomes, library: Library) -> Result<Verdict> {
    let wanted = expected.get(&program.name).with_context(|| format!("no recorded outcome of {}", program.name))?;
    let folder = tempfile::tempdir()?;
    let binary = folder.path().join("program");
    let mut arguments: Vec<OsString> =
        vec!["build".into(), "-O2".into(), "--plain".into(), "-o".into(), binary.clone().into()];
    arguments.extend(program.include.iter().flat_map(|include| ["-I".into(), corpus.checkout.join(include).into()]));
    arguments.extend(program.options.iter().map(OsString::from));
    arguments.extend(program.sources.iter().map(|source| corpus.checkout.join(source).into()));
    if library == Library::Original {
        arguments.extend(headers_of_the_original(&corpus.checkout));
        arguments.extend(modules(&corpus.checkout, program)?.into_iter().map(OsString::from));
        arguments.push(runtime_of_the_original(corpus, folder.path())?.into());
        // Our library divides the functions among its files in another way: the checkout's come first and win.
        arguments.push("-Wl,--allow-multiple-definition".into());
    }
    arguments.push("-lm".into());
    let compiled = invoke(corpus, &corpus.cyc, &arguments, folder.path())?;
    if compiled.end != End::Exit(0) {
        if corpus.verbosity == Verbosity::All {
            eprintln!("{}", compiled.stderr);
        }
        let why = compiled.first_error().to_owned();
        return Ok(Verdict::NotCompiled(if compiled.end == End::Exit(1) {
            why
        } else {
            format!("{:?} {why}", compiled.end)
        }));
    }
    let finished = start(corpus, program, &binary)?;
    if corpus.verbosity == Verbosity::All {
        print!("{}", String::from_utf8_lossy(&finished.stdout));
        eprint!("{}", finished.stderr);
    }
    Ok(match Outcome::of(program, &finished) {
        Some(outcome) if program.ours.as_ref().is_some_and(|ours| ours.exit == outcome.exit) => Verdict::Passed,
        Some(outcome) if outcome == *wanted => Verdict::Passed,
        Some(outcome) if outcome.exit == wanted.exit => {
            let bytes = |outcome: &Outcome| outcome.output.as_ref().map_or(0, |output| output.bytes);
            Verdict::Differs(format!("other output ({} bytes, not {})", bytes(&outcome), bytes(wanted)))
        }
        Some(outcome) => {
            Verdict::Differs(format!("exit code {}, not {}; {}", outcome.exit, wanted.exit, finished.first_error()))
        }
        None => Verdict::Differs(format!("{:?} {}", finished.end, finished.first_error())),
    })
}

fn invoke(corpus: &Corpus, program: &Path, arguments: &[OsString], folder: &Path) -> Result<Finished> {
    let arguments: Vec<_> = arguments.iter().map(OsString::as_os_str).collect();
    run(program, &arguments, folder, File::open("/dev/null")?, corpus.limits)
}

/// Runs a compiled program in a folder of its own with its input and files.
fn start(corpus: &Corpus, program: &Program, binary: &Path) -> Result<Finished> {
    let folder = tempfile::tempdir()?;
    for file in &program.files {
        let name = file.file_name().with_context(|| format!("{} is no file", file.display()))?;
        fs::copy(corpus.checkout.join(file), folder.path().join(name)).with_context(|| file.display().to_string())?;
    }
    let mut stdin = tempfile::tempfile()?;
    if let Some(path) = &program.stdin {
        let text = fs::read(corpus.checkout.join(path)).with_context(|| path.display().to_string())?;
        for _ in 0..program.times {
            stdin.write_all(&text)?;
        }
        stdin.rewind()?;
    }
    let arguments: Vec<_> = program.args.iter().map(std::ffi::OsStr::new).collect();
    run(binary, &arguments, folder.path(), stdin, corpus.limits)
}

/// The one function of the original's run-time library that a module of its standard library calls, compiled.
///
/// It is compiled apart from the program, whose folders of headers are not for C.
fn runtime_of_the_original(corpus: &Corpus, folder: &Path) -> Result<PathBuf> {
    let (source, object) = (folder.join("original_runtime.c"), folder.join("original_runtime.o"));
    fs::write(
        &source,
        "#include <stddef.h>\n\
         #include <string.h>\n\
         void *GC_malloc(size_t);\n\
         void *GC_realloc_hint(void *old, size_t old_bytes, size_t bytes) {\n\
           void *grown = GC_malloc(bytes);\n\
           if (grown && old) memcpy(grown, old, old_bytes < bytes ? old_bytes : bytes);\n\
           return grown;\n\
         }\n",
    )?;
    let arguments = ["-c".into(), "-o".into(), object.clone().into(), source.into()];
    let compiled = invoke(corpus, Path::new("cc"), &arguments, folder)?;
    if compiled.end != End::Exit(0) {
        bail!("the C compiler failed: {}", compiled.stderr);
    }
    Ok(object)
}

/// The C headers that a header of the checkout, `cycboot.h`, declares parts of, as they were on another machine.
const C_HEADERS: [&str; 10] = [
    "sys/types.h",
    "fcntl.h",
    "math.h",
    "stdio.h",
    "ctype.h",
    "stdlib.h",
    "sys/time.h",
    "sys/stat.h",
    "unistd.h",
    "limits.h",
];

/// What makes the compiler read the checkout's headers before its own, and ours for those of C. That library goes through loopholes.
pub fn headers_of_the_original(checkout: &Path) -> Vec<OsString> {
    let mut options = vec!["-I".into(), checkout.join("include").into(), "-D_CYCBOOT_H_".into(), "--compat=1.0".into()];
    // Two variables of it that stand for macros of C.
    options.extend(["-Dlong_min=LONG_MIN".into(), "-Dlong_max=LONG_MAX".into()]);
    options.extend(C_HEADERS.iter().flat_map(|header| ["-include".into(), header.into()]));
    options
}

/// The modules of the checkout's library that a program needs: those whose headers its sources and these modules include.
fn modules(checkout: &Path, program: &Program) -> Result<BTreeSet<PathBuf>> {
    let mut modules = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut open: Vec<PathBuf> = program.sources.iter().map(|source| checkout.join(source)).collect();
    while let Some(path) = open.pop() {
        let text = fs::read(&path).with_context(|| path.display().to_string())?;
        for header in included(&String::from_utf8_lossy(&text)) {
            let beside =
                program.include.iter().map(|include| checkout.join(include).join(&header)).find(|path| path.is_file());
            let public = checkout.join("include").join(&header);
            let module = checkout.join("lib").join(&header).with_extension("cyc");
            if public.is_file() && module.is_file() && modules.insert(module.clone()) {
                open.push(module);
            }
            let found = beside.or_else(|| public.is_file().then_some(public));
            open.extend(found.filter(|path| seen.insert(path.clone())));
        }
    }
    Ok(modules)
}

/// The names in `#include` lines, whether or not a condition leaves them out.
fn included(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| {
            let name = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?.trim_start();
            let close = if name.starts_with('<') { '>' } else { '"' };
            let name = name.strip_prefix(['<', '"'])?;
            Some(name.split_once(close)?.0.to_owned())
        })
        .collect()
}

/// Compiles the programs with the original compiler, runs each twice, and returns what they left.
///
/// # Errors
/// One does not compile, does not end by itself, or leaves something else the second time.
pub fn record(corpus: &Corpus, programs: &[Program], compiler: &Path) -> Result<Outcomes> {
    let progress = corpus.progress("record", programs.len());
    let mut outcomes = Outcomes::new();
    for program in programs.iter().filter(|program| corpus.chosen(&program.name)) {
        progress.inc(1);
        let folder = tempfile::tempdir()?;
        let binary = folder.path().join("program");
        // That compiler leaves files beside its sources when it fails: it gets copies of them.
        let mut arguments: Vec<OsString> = vec!["-O".into(), "-o".into(), binary.clone().into(), "-lm".into()];
        for source in &program.sources {
            let original = corpus.checkout.join(source);
            let copy = folder.path().join(source.file_name().context("a source is a file")?);
            fs::copy(&original, &copy).with_context(|| source.display().to_string())?;
            arguments.push(copy.into());
            arguments.push(dash_i(original.parent().unwrap_or(&corpus.checkout)));
        }
        arguments.extend(program.include.iter().map(|include| dash_i(&corpus.checkout.join(include))));
        let compiled = invoke(corpus, compiler, &arguments, folder.path())?;
        if compiled.end != End::Exit(0) {
            bail!("{} does not compile: {}", program.name, compiled.stderr);
        }
        let first = start(corpus, program, &binary)?;
        let second = start(corpus, program, &binary)?;
        let outcome = Outcome::of(program, &first).with_context(|| format!("{}: {:?}", program.name, first.end))?;
        if Outcome::of(program, &second).as_ref() != Some(&outcome) {
            bail!("{} leaves something else the second time", program.name);
        }
        if corpus.verbosity == Verbosity::All {
            print!("{}", String::from_utf8_lossy(&first.stdout));
        }
        outcomes.insert(program.name.clone(), outcome);
    }
    progress.finish_and_clear();
    Ok(outcomes)
}

fn dash_i(folder: &Path) -> OsString {
    let mut option = OsString::from("-I");
    option.push(folder);
    option
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn includes_are_found_however_they_are_written() {
        let text = "#include <core.h>\n  #  include \"list.h\" // a list\n#include MACRO\nint include;\n#includeless\n";
        assert_eq!(included(text), ["core.h", "list.h"]);
    }
}
