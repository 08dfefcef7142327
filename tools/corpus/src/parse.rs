//! The stage of the syntax: every `.cyc` and `.h` of `tests/` and `lib/` in the checkout.
//!
//! Headers are ours, and the checkout's where we have none: the parser has to know which names are types. Those that neither has (of
//! other libraries, or made when a program is configured) are replaced by empty files, made on demand; where a program names
//! one by an absolute path, a copy of the program without that line is parsed.

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
    for include in [folder, &folder.join(".."), &corpus.checkout.join("tests/shootout/include")] {
        arguments.extend(["-I".into(), include.into()]);
    }
    // Two headers of C include setjmp.h, which refuses to be included in Cyclone.
    arguments.push("-D_SETJMP_H_".into());
    // After our own library.
    arguments.extend(["-isystem".into(), corpus.checkout.join("include").into()]);
    if suite {
        // The suites are made of macros and names of these.
        for header in ["tests/cyctest.h", "tests/cyctests/support.h"] {
            arguments.extend(["-include".into(), corpus.checkout.join(header).into()]);
        }
    }
    arguments.extend(["-isystem".into(), stubs.into()]);
    let copy = stubs.join("copy.cyc");
    let mut parsed = file.to_owned();
    loop {
        let arguments: Vec<_> = arguments.iter().map(OsString::as_os_str).chain([parsed.as_os_str()]).collect();
        let finished = run(&corpus.cyc, &arguments, folder, File::open("/dev/null")?, corpus.limits)?;
        if finished.end == End::Exit(0) {
            return Ok(finished);
        }
        match missing_header(&finished.stderr) {
            Some(Missing::Relative(header)) if !stubs.join(header).exists() => {
                let stub = stubs.join(header);
                fs::create_dir_all(stub.parent().unwrap_or(stubs))?;
                fs::write(stub, "")?;
            }
            Some(Missing::Absolute(header)) if parsed != copy => {
                let text = String::from_utf8_lossy(&fs::read(file)?).into_owned();
                fs::write(&copy, without_include(&text, header))?;
                parsed = copy.clone();
            }
            _ => return Ok(finished),
        }
    }
}

/// A header that is not there.
#[derive(Debug, PartialEq, Eq)]
enum Missing<'a> {
    /// An empty file can stand for it.
    Relative(&'a Path),
    /// Only without the line that names it the file can be read.
    Absolute(&'a str),
}

/// The header that the preprocessor says is missing.
fn missing_header(messages: &str) -> Option<Missing<'_>> {
    let (before, _) = messages.split_once(": No such file")?;
    let name = before.rsplit_once("error: ")?.1;
    let header = Path::new(name);
    if header.is_absolute() {
        return Some(Missing::Absolute(name));
    }
    header.components().all(|part| matches!(part, Component::Normal(_))).then_some(Missing::Relative(header))
}

/// The text with an empty line in the place of one that includes a header.
fn without_include(text: &str, header: &str) -> String {
    let includes = |line: &&str| line.trim_start().starts_with('#') && line.contains(header);
    text.split_inclusive('\n').map(|line| if includes(&line) { "\n" } else { line }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_header_is_found_in_the_preprocessor_s_words() {
        let messages = "b.h:1: error: sys/x.h: No such file or directory\n";
        assert_eq!(missing_header(messages), Some(Missing::Relative(Path::new("sys/x.h"))));
    }

    #[test]
    fn no_file_is_made_outside_the_folder_of_stubs() {
        for path in ["../x.h", "a/../../x.h"] {
            let message = format!("a.cyc:1: error: {path}: No such file or directory");
            assert_eq!(missing_header(&message), None, "{path}");
        }
    }

    #[test]
    fn a_program_is_read_without_a_header_that_has_an_absolute_path() {
        let message = "a.cyc:2: error: /usr/include/x.h: No such file or directory";
        assert_eq!(missing_header(message), Some(Missing::Absolute("/usr/include/x.h")));
        let text = "int a;\n#include </usr/include/x.h>\nint b;\n";
        assert_eq!(without_include(text, "/usr/include/x.h"), "int a;\n\nint b;\n");
    }
}
