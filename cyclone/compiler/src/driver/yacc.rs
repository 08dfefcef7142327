//! `cyc yacc`: a parser in Cyclone from a grammar, by bison with a skeleton of ours (`lib/bison/cyclone.m4`).
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
    grammar: PathBuf,
    /// Where the parser goes; its header goes beside it.
    parser: PathBuf,
    /// For bison.
    options: Vec<OsString>,
}

/// Reads `FILE.y`, `-o FILE.cyc` and options for bison.
fn read(arguments: &[OsString]) -> Result<Request, String> {
    let (mut grammar, mut parser, mut options) = (None, None, Vec::new());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "-o" {
            parser = Some(PathBuf::from(rest.next().ok_or("-o needs a value")?));
        } else if argument.to_string_lossy().starts_with('-') {
            options.push(argument.clone());
        } else if grammar.replace(PathBuf::from(argument)).is_some() {
            return Err("yacc takes one grammar".to_owned());
        }
    }
    let grammar = grammar.ok_or("yacc takes a grammar, such as calc.y")?;
    let parser = parser.unwrap_or_else(|| grammar.with_extension("cyc"));
    if parser == grammar {
        return Err(format!("{} would be overwritten", grammar.display()));
    }
    Ok(Request { grammar, parser, options })
}

/// Writes the parser and its header.
pub fn generate(arguments: &[OsString]) -> ExitCode {
    let made = read(arguments).and_then(|request| {
        let skeleton = home::directory()?.join("lib/bison/cyclone.m4");
        let mut header = OsString::from("--header=");
        header.push(request.parser.with_extension("h"));
        let mut bison = Command::new("bison");
        // A tuple begins with $, which bison would warn of.
        bison.args(["-Wno-other", "-S"]).arg(skeleton).arg("-o").arg(&request.parser).arg(header);
        bison.args(&request.options).arg("--").arg(&request.grammar).status().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => "yacc needs bison, which is not installed (apt install bison)".to_owned(),
            _ => format!("bison: {error}"),
        })
    });
    match made {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
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
        assert_eq!(of("a/calc.y").unwrap().parser, PathBuf::from("a/calc.cyc"));
        let request = of("-Wcounterexamples calc.y -o out/parse.cyc").unwrap();
        assert_eq!(request.parser, PathBuf::from("out/parse.cyc"));
        assert_eq!(request.options, ["-Wcounterexamples"]);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for text in ["-o", "a.y b.y", "-v", "a.cyc"] {
            assert!(of(text).is_err(), "{text}");
        }
    }
}
