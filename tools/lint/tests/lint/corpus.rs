//! Small programs, accepted and rejected. What is to be found in a program stands at the end of the line where it is to be found:
//! `//~ rule`. All programs are modules of one crate, so that they cost one run of cargo for each compiler.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::workspace::{Toolchain, Workspace, diagnostics, said};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus");

/// File, line and rule.
type Place = (String, u64, String);

fn programs(kind: &str) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(Path::new(FOLDER).join(kind))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .map(|file| format!("{kind}/{file}"))
        .collect();
    names.sort();
    names
}

fn expected(program: &str) -> Vec<Place> {
    let text = fs::read_to_string(Path::new(FOLDER).join(program)).unwrap();
    let mut places = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if let Some((_, rules)) = line.split_once("//~ ") {
            places.extend(rules.split(' ').map(|rule| (program.to_owned(), number, rule.to_owned())));
        }
    }
    places
}

fn corpus(name: &str, programs: &[String]) -> Workspace {
    let workspace = Workspace::new(name, &["context", "other", "built", "corpus"]);
    let support = |file: &str| fs::read_to_string(Path::new(FOLDER).join(file)).unwrap();
    workspace.package("context", "", &support("context.rs"));
    workspace.package("other", "[dependencies]\ncontext = { path = \"../context\" }\n", &support("other.rs"));
    // What runs while something is built is no concern of the rules.
    let violation = "struct Cx;\nfn nothing_async(_cx: &mut Cx) {}\n";
    workspace.package("built", "[lib]\nproc-macro = true\n", &format!("#![allow(dead_code)]\n{violation}"));
    let dependencies = ["context", "other", "built"].map(|name| format!("{name} = {{ path = \"../{name}\" }}\n"));
    let mut library = "#![allow(warnings)]\n".to_owned();
    for program in programs {
        let module = program.replace(['/', '.'], "_");
        library += &format!("#[path = \"{FOLDER}/{program}\"]\nmod {module};\n");
    }
    workspace.package("corpus", &format!("[dependencies]\n{}", dependencies.concat()), &library);
    workspace.write("corpus/build.rs", &format!("{violation}fn main() {{}}\n"));
    workspace
}

#[test]
fn findings_are_where_the_programs_say_with_every_compiler() {
    let mut names = programs("accepted");
    names.extend(programs("rejected"));
    assert!(names.len() >= 60);
    let expected: BTreeSet<Place> = names.iter().flat_map(|program| expected(program)).collect();
    for (number, toolchain) in Toolchain::all().iter().enumerate() {
        println!("{}", toolchain.version);
        let workspace = corpus(&format!("corpus-{number}"), &names);
        let output = workspace.lint(toolchain, &["--workspace", "--json"]);
        let found: BTreeSet<Place> = diagnostics(&output)
            .iter()
            .map(|diagnostic| {
                let span = &diagnostic["spans"][0];
                let file = span["file_name"].as_str().unwrap();
                let file = file.strip_prefix(FOLDER).map_or(file, |file| &file[1..]).to_owned();
                let code = diagnostic["code"]["code"].as_str().unwrap_or("no code");
                let rule = code.strip_prefix("ebb::").unwrap_or(code).to_owned();
                (file, span["line_start"].as_u64().unwrap(), rule)
            })
            .collect();
        let missed: Vec<_> = expected.difference(&found).collect();
        let too_much: Vec<_> = found.difference(&expected).collect();
        assert!(missed.is_empty(), "{}: not found: {missed:#?}\n{}", toolchain.version, said(&output));
        assert!(too_much.is_empty(), "{}: found besides: {too_much:#?}\n{}", toolchain.version, said(&output));
        assert_eq!(output.status.code(), Some(1));
    }
}

#[test]
fn every_rejected_program_expects_something_and_no_accepted_one_does() {
    for program in programs("rejected") {
        assert!(!expected(&program).is_empty(), "{program}");
    }
    for program in programs("accepted") {
        assert!(expected(&program).is_empty(), "{program}");
    }
}
