//! The examples of `cyc yacc` and `cyc lex`: what bison makes with our skeleton, and re2c, compiles and does what its source says.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Has a command make an example's Cyclone, compiles it, and returns what it writes when it reads this.
fn made(command: &str, grammar: &str, input: &str) -> String {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/parsers");
    let directory = tempfile::tempdir().expect("a directory for the test");
    std::fs::copy(examples.join(grammar), directory.path().join(grammar)).expect("a copy of the example");
    let cyc = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cyc"));
        command.current_dir(directory.path());
        command
    };
    let written = cyc().args([command, "-Werror", grammar]).output().expect("cyc starts");
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let parser = Path::new(grammar).with_extension("cyc");
    let built = cyc().args(["build", "--no-gc", "-Werror", "-o", "parser"]).arg(&parser).output().expect("cyc starts");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let mut child = Command::new(directory.path().join("parser"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the parser starts");
    child.stdin.take().expect("it is piped").write_all(input.as_bytes()).expect("it reads");
    String::from_utf8_lossy(&child.wait_with_output().expect("it ends").stdout).into_owned()
}

#[test]
fn a_calculator_follows_precedence_and_goes_on_after_errors() {
    assert_eq!(
        made("yacc", "calculator.y", "1+2*3\n-(4-6)*10\n1/0\n2 2\n8/4/2\n1 +\n7\n"),
        "= 7\n= 20\ndivision by zero\nsyntax error, unexpected number\n= 1\n\
         syntax error, unexpected '\\n', expecting number or '-' or '('\n= 7\n"
    );
}

#[test]
fn json_becomes_a_tree_and_places_are_known() {
    assert_eq!(
        made("yacc", "json.y", "{\"a\": [1, -2.5, true, {\"b\": null}],\n\"c\": [1 2,\n3], \"d\": \"x\"}"),
        "line 2: syntax error, unexpected number, expecting ']'\nline 2 to 3: an array is skipped\na\nb\nc\nd\ndepth 3\n"
    );
    assert_eq!(made("yacc", "json.y", "{\"a\":\n }"), "line 2: syntax error, unexpected '}'\n");
}

#[test]
fn words_are_told_apart_and_lines_counted() {
    assert_eq!(
        made("lex", "words.re", "if x1 // not this\n  4.5 4.\n\"a \\\" b\" \"open"),
        "1 name if\n1 name x1\n2 number 4.5\n2 number 4\n2 other .\n3 string \"a \\\" b\"\n3 other \"\n3 name open\n"
    );
}

#[test]
fn the_stacks_of_a_parser_grow() {
    let deep = 3000;
    assert_eq!(made("yacc", "json.y", &format!("{}{}", "[".repeat(deep), "]".repeat(deep))), format!("depth {deep}\n"));
}
