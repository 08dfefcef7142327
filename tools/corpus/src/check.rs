//! The stage of accepted programs: the sources of the programs that are run, and the modules of the checkout's library.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Result;
use walkdir::WalkDir;

use crate::execute::{Library, headers_of_the_original};
use crate::passing::Results;
use crate::process::{End, run};
use crate::programs::Program;
use crate::{Corpus, Verbosity};

/// A file that the original compiler accepts, and the folders of its headers, relative to the checkout.
struct Source {
    path: PathBuf,
    include: Vec<PathBuf>,
    options: Vec<String>,
}

/// Checks them with the headers of one library, prints those that are not accepted with their first error, then the count.
///
/// # Errors
/// The checkout cannot be read, or the compiler cannot be started.
pub fn stage(corpus: &Corpus, programs: &[Program], library: Library, results: &mut Results) -> Result<()> {
    let sources: Vec<_> = sources(&corpus.checkout, programs, library)?
        .into_iter()
        .filter(|source| corpus.chosen(&source.path.display().to_string()))
        .collect();
    let checked = corpus.each("check", &sources, |source| {
        let mut arguments: Vec<OsString> = vec!["check".into(), "--plain".into()];
        arguments.extend(source.include.iter().flat_map(|include| ["-I".into(), corpus.checkout.join(include).into()]));
        arguments.extend(source.options.iter().map(OsString::from));
        if library == Library::Original {
            arguments.extend(headers_of_the_original(&corpus.checkout));
        }
        arguments.push(corpus.checkout.join(&source.path).into());
        let arguments: Vec<_> = arguments.iter().map(OsString::as_os_str).collect();
        run(&corpus.cyc, &arguments, &corpus.checkout, File::open("/dev/null")?, corpus.limits)
    });
    println!("sources with the headers of {library} library");
    let mut accepted = 0;
    for (source, finished) in sources.iter().zip(checked) {
        let finished = finished?;
        let name = source.path.display();
        let holds = finished.end == End::Exit(0);
        accepted += usize::from(holds);
        results.note(format!("check {library} {name}"), holds);
        if corpus.verbosity == Verbosity::All {
            eprint!("{}", finished.stderr);
        }
        if !holds {
            let failed = if finished.end == End::Exit(1) { String::new() } else { format!("{:?} ", finished.end) };
            println!("  {name}: {failed}{}", finished.first_error());
        }
    }
    println!("{accepted} of {} accepted\n", sources.len());
    Ok(())
}

fn sources(checkout: &Path, programs: &[Program], library: Library) -> Result<Vec<Source>> {
    let of_programs = programs.iter().flat_map(|program| {
        let (include, options) = (&program.include, &program.options);
        program.sources.iter().map(|path| Source {
            path: path.clone(),
            include: include.clone(),
            options: options.clone(),
        })
    });
    let mut sources: Vec<_> = of_programs.collect();
    if library == Library::Original {
        for entry in WalkDir::new(checkout.join("lib")).max_depth(1).sort_by_file_name() {
            let entry = entry?;
            if entry.path().extension().is_some_and(|extension| extension == "cyc") {
                let path = entry.path().strip_prefix(checkout)?.to_owned();
                sources.push(Source { path, include: Vec::new(), options: Vec::new() });
            }
        }
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    sources.dedup_by(|a, b| a.path == b.path);
    Ok(sources)
}
