//! The stage of the syntax: every `.cyc` and `.h` of `tests/` and `lib/` in the checkout.
//!
//! C headers are ours: the parser has to know which names are types. Those that we do not have (of other libraries, or made when a
//! program is configured) are replaced by empty files, made on demand.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Component, Path, PathBuf};

use anyhow::{Result, bail};
use walkdir::WalkDir;

use crate::passing::Results;
use crate::process::{End, Finished, run};
use crate::{Corpus, Verbosity};

/// Parses all of them, prints those that do not parse with their first error, then the count.
///
/// # Errors
/// The checkout cannot be read, or the compiler itself fails.
pub fn stage(corpus: &Corpus, results: &mut Results) -> Result<()> {
    let files = files(&corpus.checkout)?;
    let progress = corpus.progress("parse", files.len());
    let stubs = tempfile::tempdir()?;
    let (mut parsed, mut chosen) = (0, 0);
    for file in files {
        progress.inc(1);
        let name = file.strip_prefix(&corpus.checkout)?.display().to_string();
        if !corpus.chosen(&name) {
            continue;
        }
        chosen += 1;
        let finished = parse(corpus, &file, stubs.path())?;
        let holds = match finished.end {
            End::Exit(0) => true,
            End::Exit(1) => false,
            end => bail!("the compiler failed on {name}: {end:?}\n{}", finished.stderr),
        };
        parsed += usize::from(holds);
        if !holds {
            let shown =
                if corpus.verbosity == Verbosity::All { finished.stderr.trim_end() } else { finished.first_error() };
            progress.suspend(|| println!("{name}: {shown}"));
        }
        results.note(format!("parse {name}"), holds);
    }
    progress.finish_and_clear();
    println!("{parsed} of {chosen} files parse\n");
    Ok(())
}

/// The programs and headers, in an order that does not depend on the file system.
fn files(checkout: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for folder in ["tests", "lib"] {
        for entry in WalkDir::new(checkout.join(folder)).sort_by_file_name() {
            let entry = entry?;
            let known = entry.path().extension().is_some_and(|extension| extension == "cyc" || extension == "h");
            if entry.file_type().is_file() && known {
                files.push(entry.into_path());
            }
        }
    }
    Ok(files)
}

/// Runs the parser until no header is missing.
fn parse(corpus: &Corpus, file: &Path, stubs: &Path) -> Result<Finished> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let suite = folder.ends_with("cyctests") && file.to_string_lossy().ends_with("_suite.h");
    let mut arguments: Vec<OsString> = ["check", "--parse-only", "--plain"].map(OsString::from).into();
    for include in
        [folder, &folder.join(".."), &corpus.checkout.join("include"), &corpus.checkout.join("tests/shootout/include")]
    {
        arguments.extend(["-I".into(), include.into()]);
    }
    if suite {
        // The suites are made of macros and names of these.
        for header in ["tests/cyctest.h", "tests/cyctests/support.h"] {
            arguments.extend(["-include".into(), corpus.checkout.join(header).into()]);
        }
    }
    arguments.extend(["-isystem".into(), stubs.into(), file.into()]);
    let arguments: Vec<_> = arguments.iter().map(OsString::as_os_str).collect();
    loop {
        let finished = run(&corpus.cyc, &arguments, folder, File::open("/dev/null")?, corpus.limits)?;
        let missing = missing_header(&finished.stderr).map(|header| stubs.join(header));
        match missing {
            Some(stub) if finished.end != End::Exit(0) && !stub.exists() => {
                fs::create_dir_all(stub.parent().unwrap_or(stubs))?;
                fs::write(stub, "")?;
            }
            _ => return Ok(finished),
        }
    }
}

/// The header that the preprocessor says is missing, if an empty file can stand for it.
fn missing_header(messages: &str) -> Option<&Path> {
    let (before, _) = messages.split_once(": No such file")?;
    let header = Path::new(before.rsplit_once("error: ")?.1);
    header.components().all(|part| matches!(part, Component::Normal(_))).then_some(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_header_is_found_in_the_preprocessor_s_words() {
        let messages = "b.h:1: error: sys/x.h: No such file or directory\n";
        assert_eq!(missing_header(messages), Some(Path::new("sys/x.h")));
    }

    #[test]
    fn no_file_is_made_outside_the_folder_of_stubs() {
        for path in ["/usr/include/x.h", "../x.h", "a/../../x.h"] {
            let message = format!("a.cyc:1: error: {path}: No such file or directory");
            assert_eq!(missing_header(&message), None, "{path}");
        }
    }
}
