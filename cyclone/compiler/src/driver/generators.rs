//! `cyc yacc`: a parser in Cyclone from a grammar, by bison with a skeleton of ours (`lib/bison/cyclone.m4`); `cyc lex`: a lexical analyser
//! from rules, by re2c, whose code reads through the macros of `lib/scanner.h`.
//!
//! bison reads the grammar, resolves precedence, reports conflicts and makes the tables; the skeleton says how the parser around them looks
//! in Cyclone. So grammars are what C programmers know, and all of bison's options hold.

use super::home;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    source: PathBuf,
    /// Where the Cyclone goes; a parser's header goes beside it.
    output: PathBuf,
    /// For the program that makes it.
    options: Vec<OsString>,
}

/// Reads a file's name, `-o FILE.cyc` and options for the other program.
fn read(arguments: &[OsString]) -> Result<Request, String> {
    let (mut source, mut output, mut options) = (None, None, Vec::new());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "-o" {
            output = Some(PathBuf::from(rest.next().ok_or("-o needs a value")?));
        } else if argument.to_string_lossy().starts_with('-') {
            options.push(argument.clone());
        } else if source.replace(PathBuf::from(argument)).is_some() {
            return Err("only one file at a time".to_owned());
        }
    }
    let source = source.ok_or("no file given")?;
    let output = output.unwrap_or_else(|| source.with_extension("cyc"));
    if output == source {
        return Err(format!("{} would be overwritten", source.display()));
    }
    Ok(Request { source, output, options })
}

/// Writes a parser and its header.
pub fn parser(arguments: &[OsString]) -> ExitCode {
    finish(read(arguments).and_then(|request| {
        let skeleton = home::directory()?.join("lib/bison/cyclone.m4");
        let mut header = OsString::from("--header=");
        header.push(request.output.with_extension("h"));
        let mut bison = Command::new("bison");
        // A tuple begins with $, which bison would warn of.
        bison.args(["-Wno-other", "-S"]).arg(skeleton).arg(header);
        run(bison, &request)
    }))
}

/// Writes a lexical analyser.
pub fn analyser(arguments: &[OsString]) -> ExitCode {
    finish(read(arguments).and_then(|request| {
        let mut re2c = Command::new("re2c");
        re2c.args(["--input", "custom"]);
        run(re2c, &request)
    }))
}

/// Whether the program made what was asked for.
fn run(mut program: Command, request: &Request) -> Result<bool, String> {
    program.args(&request.options).arg("-o").arg(&request.output).arg("--").arg(&request.source);
    let name = program.get_program().to_string_lossy().into_owned();
    program.status().map(|status| status.success()).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("this needs {name}, which is not installed (apt install {name})"),
        _ => format!("{name}: {error}"),
    })
}

fn finish(made: Result<bool, String>) -> ExitCode {
    match made {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("cyc: {message}");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Request, String> {
        read(&text.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn the_parser_goes_beside_the_grammar_unless_told() {
        assert_eq!(of("a/calc.y").unwrap().output, PathBuf::from("a/calc.cyc"));
        let request = of("-Wcounterexamples calc.y -o out/parse.cyc").unwrap();
        assert_eq!(request.output, PathBuf::from("out/parse.cyc"));
        assert_eq!(request.options, ["-Wcounterexamples"]);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for text in ["-o", "a.y b.y", "-v", "a.cyc"] {
            assert!(of(text).is_err(), "{text}");
        }
    }
}
