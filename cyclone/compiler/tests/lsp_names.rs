//! The language server: all places of a name, other names, and what calls take.

#[path = "shared/editor.rs"]
mod editor;

use editor::{Editor, uri};
use serde_json::{Value, json};
use std::path::Path;

const SHAPE_H: &str = "#ifndef SHAPE_H\n#define SHAPE_H\nstruct Shape { int size; int kind; };\ntypedef struct Shape shape_t;\nint area(shape_t @shape, int scale);\n#endif\n";
const SHAPE_CYC: &str = "#include \"shape.h\"\nint area(shape_t @shape, int scale) {\n  int size = shape->size;\n  return size * size * scale;\n}\n";
const MAIN_CYC: &str = "#include \"shape.h\"\n/* ä𝄞 area */ enum Kind { Round, Square };\nint f(enum Kind k) { switch (k) { case Round: return 1; default: return 0; } }\nint main() {\n  struct Shape s = {.size = 3, .kind = Round};\n  /* 𝄞 */ return area(&s, s.size) + f(Square);\n}\n";

/// A project of a header and two sources, of which the first is open.
fn project(directory: &Path) -> (Editor, String) {
    for (file, text) in [("shape.h", SHAPE_H), ("shape.cyc", SHAPE_CYC), ("main.cyc", MAIN_CYC)] {
        std::fs::write(directory.join(file), text).expect("the directory is there");
    }
    let mut editor = Editor::start_in(Some(directory), &[]);
    let main = uri(directory, "main.cyc");
    assert!(editor.open(&main, MAIN_CYC).is_empty());
    (editor, main)
}

/// `file:line:column` of each place, counted from 0.
fn places(answer: &Value) -> Vec<String> {
    let place = |place: &Value| {
        let start = &place["range"]["start"];
        let file = place["uri"].as_str().and_then(|uri| uri.rsplit('/').next()).unwrap_or_default();
        format!("{file}:{}:{}", start["line"], start["character"])
    };
    let mut all: Vec<String> = answer.as_array().into_iter().flatten().map(place).collect();
    all.sort();
    all
}

fn references(editor: &mut Editor, uri: &str, line: u32, character: u32) -> Vec<String> {
    let params = json!({
        "textDocument": {"uri": uri}, "position": {"line": line, "character": character}, "context": {"includeDeclaration": true}
    });
    places(&editor.request("textDocument/references", params))
}

fn rename(editor: &mut Editor, uri: &str, (line, character): (u32, u32), name: &str) -> Value {
    let position = json!({"line": line, "character": character});
    editor.answer("textDocument/rename", json!({"textDocument": {"uri": uri}, "position": position, "newName": name}))
}

/// A text after the changes that an answer has for a file.
fn changed(answer: &Value, uri: &str, text: &str) -> String {
    let mut lines: Vec<Vec<u16>> = text.split('\n').map(|line| line.encode_utf16().collect()).collect();
    let mut edits: Vec<&Value> = answer["result"]["changes"][uri].as_array().into_iter().flatten().collect();
    edits.sort_by_key(|edit| std::cmp::Reverse(edit["range"]["start"]["character"].as_u64()));
    for edit in edits {
        let at = |end: &str, of: &str| edit["range"][end][of].as_u64().expect("a number") as usize;
        let new: Vec<u16> = edit["newText"].as_str().expect("a text").encode_utf16().collect();
        lines[at("start", "line")].splice(at("start", "character")..at("end", "character"), new);
    }
    lines.iter().map(|line| String::from_utf16(line).expect("whole characters")).collect::<Vec<_>>().join("\n")
}

#[test]
fn references_are_found_in_the_whole_project() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let (mut editor, main) = project(directory.path());
    assert_eq!(references(&mut editor, &main, 5, 19), ["main.cyc:5:18", "shape.cyc:1:4", "shape.h:4:4"]);
    let size = ["main.cyc:4:21", "main.cyc:5:29", "shape.cyc:2:20", "shape.h:2:19"];
    assert_eq!(references(&mut editor, &main, 5, 30), size);
    assert_eq!(references(&mut editor, &main, 4, 23), size);
    assert_eq!(references(&mut editor, &main, 4, 10), ["main.cyc:4:9", "shape.h:2:7", "shape.h:3:15"]);
    assert_eq!(references(&mut editor, &main, 2, 40), ["main.cyc:1:27", "main.cyc:2:39", "main.cyc:4:39"]);
    assert_eq!(references(&mut editor, &main, 2, 29), ["main.cyc:2:16", "main.cyc:2:29"]);
    assert!(references(&mut editor, &main, 1, 10).is_empty(), "in a comment");
    editor.stop();
}

#[test]
fn a_name_is_changed_wherever_it_stands() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let (mut editor, main) = project(directory.path());
    let at = json!({"textDocument": {"uri": main}, "position": {"line": 5, "character": 29}});
    let prepared = editor.request("textDocument/prepareRename", at);
    assert_eq!((&prepared["placeholder"], &prepared["range"]["start"]["character"]), (&json!("size"), &json!(29)));
    let answer = rename(&mut editor, &main, (5, 29), "width");
    let (header, source) = (uri(directory.path(), "shape.h"), uri(directory.path(), "shape.cyc"));
    assert_eq!(changed(&answer, &main, MAIN_CYC), MAIN_CYC.replace(".size", ".width"), "{answer}");
    assert_eq!(changed(&answer, &header, SHAPE_H), SHAPE_H.replace("size", "width"));
    assert_eq!(changed(&answer, &source, SHAPE_CYC), SHAPE_CYC.replace("->size", "->width"));
    let answer = rename(&mut editor, &main, (5, 20), "surface");
    assert_eq!(changed(&answer, &source, SHAPE_CYC), SHAPE_CYC.replace("area", "surface"), "{answer}");
    assert_eq!(changed(&answer, &main, MAIN_CYC), MAIN_CYC.replace("area(", "surface("));
    editor.stop();
}

#[test]
fn a_name_that_would_mean_something_else_is_refused() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let (mut editor, main) = project(directory.path());
    let mut refused = |at, name: &str, why: &str| {
        let answer = rename(&mut editor, &main, at, name);
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(why), "{name}: {answer}");
    };
    refused((5, 20), "while", "keyword");
    refused((5, 20), "2x", "not a name");
    refused((5, 20), "f", "`f` stands in line 3");
    refused((5, 29), "kind", "there is a member `kind`");
    refused((5, 20), "SHAPE_H", "macro");
    refused((3, 0), "x", "not known");
    refused((1, 9), "x", "not known");
    refused((0, 0), "x", "no name");
    let text = "#include <stdio.h>\n#define TWICE(x) ((x) + total)\nint total;\nint g(int a) {\n  int b = a;\n#if 0\n  b++;\n#endif\n  puts(\"a\");\n  return TWICE(a) + b;\n}\n";
    let other = uri(directory.path(), "other.cyc");
    editor.open(&other, text);
    let mut refused = |at, why: &str| {
        let answer = rename(&mut editor, &other, at, "fresh");
        assert!(answer["error"]["message"].as_str().unwrap_or_default().contains(why), "{answer}");
    };
    refused((2, 5), "in a macro");
    refused((4, 6), "line 7");
    refused((8, 3), "belongs to the compiler");
    let answer = rename(&mut editor, &other, (3, 10), "fresh");
    let expected = text.replace("int a", "int fresh").replace("= a", "= fresh").replace("TWICE(a", "TWICE(fresh");
    assert_eq!(changed(&answer, &other, text), expected, "{answer}");
    assert!(editor.change(&other, &expected).is_empty());
    editor.stop();
}

#[test]
fn a_header_that_is_not_saved_is_seen_by_what_includes_it() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let (mut editor, main) = project(directory.path());
    let header = uri(directory.path(), "shape.h");
    editor.open(&header, SHAPE_H);
    assert!(editor.diagnostics().is_empty(), "of what includes it");
    // Of both, in any order.
    let mut found = editor.change(&header, &SHAPE_H.replace("int size", "int length"));
    found.extend(editor.diagnostics());
    assert!(found.iter().any(|found| found["message"].as_str().unwrap_or_default().contains("no member")), "{found:?}");
    let place = editor.at("textDocument/definition", &main, 4, 10);
    assert_eq!(place["uri"], header);
    editor.stop();
}

#[test]
fn a_call_shows_its_parameters_while_it_is_written() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let uri = uri(directory.path(), "a.cyc");
    let mut editor = Editor::start(&[]);
    let mut help = |body: &str| {
        let text = format!(
            "#include <stdio.h>\nint plus(int first, const char ?text);\nstruct Ops {{ int (@run)(int count); }};\nint f(struct Ops @ops) {{\n{body}\n}}\n"
        );
        let before = text.split('|').next().unwrap_or_default();
        let (line, column) =
            (before.matches('\n').count(), before.rsplit('\n').next().unwrap_or_default().encode_utf16().count());
        editor.open(&uri, &text.replace('|', ""));
        let answer = editor.at("textDocument/signatureHelp", &uri, line as u32, column as u32);
        let signature = &answer["signatures"][0];
        let label = signature["label"].as_str().unwrap_or_default().to_owned();
        let active = answer["activeParameter"].as_u64();
        let range = active.map(|active| &signature["parameters"][active as usize]["label"]);
        let part = range.and_then(|range| label.get(range[0].as_u64()? as usize..range[1].as_u64()? as usize));
        (label.clone(), part.unwrap_or_default().to_owned())
    };
    let plus = "int plus(int first, const char ?text)".to_owned();
    assert_eq!(help("return plus(|"), (plus.clone(), "int first".to_owned()));
    assert_eq!(help("return 3 + plus(1, \"ä,(\"|"), (plus.clone(), "const char ?text".to_owned()));
    assert_eq!(help("int x = plus(plus(1, \"\"), |);\nreturn x;"), (plus.clone(), "const char ?text".to_owned()));
    assert_eq!(help("plus(1, |\nreturn 2;").0, plus);
    assert_eq!(help("return ops->run(|").0, "int run(int count)");
    assert_eq!(help("printf(\"%d\", 1, |").1.get(..3), Some("..."));
    assert_eq!(help("if (|").0, "");
    assert_eq!(help("return 3|").0, "");
    editor.stop();
}
