//! The language server: errors, types, declarations, and what may be written at a place.

#[path = "shared/editor.rs"]
mod editor;

use editor::{Editor, uri};
use serde_json::{Value, json};

#[test]
fn errors_come_and_go_as_the_text_changes() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let uri = uri(directory.path(), "never saved.cyc").replace(' ', "%20");
    let mut editor = Editor::start(&[]);
    let found = editor.open(&uri, "int main() {\n  /* ä */ int x = y;\n  return x;\n}\n");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["code"], "E0100");
    assert_eq!(found[0]["range"], json!({"start": {"line": 1, "character": 18}, "end": {"line": 1, "character": 19}}));
    let found = editor.change(&uri, "int main() {\n  int y = 1, x = y;\n  return x;\n}\n");
    assert!(found.is_empty(), "{found:?}");
    let found = editor.change(&uri, "int main() {\n  return 1 +;\n}\n");
    assert_eq!(found[0]["code"], "E0003");
    let found = editor.change(&uri, "#include \"not there.h\"\nint main() { return 0; }\n");
    assert_eq!((&found[0]["code"], &found[0]["range"]["start"]["line"]), (&json!("E0001"), &json!(0)));
    editor.stop();
}

#[test]
fn related_places_come_with_an_error() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let uri = uri(directory.path(), "a.cyc");
    let mut editor = Editor::start(&[]);
    let text = "#include <core.h>\nint main() {\n  int *\\U p = Core::unique_qual ? unew 1 : NULL;\n  Core::ufree(p);\n  return *p;\n}\n";
    let text = text.replace("Core::unique_qual ? unew 1 : NULL", "unew 1");
    let found = editor.open(&uri, &text);
    assert_eq!(found[0]["code"], "E0320", "{found:?}");
    assert_eq!(found[0]["relatedInformation"][0]["location"]["uri"], uri);
    assert_eq!(found[0]["relatedInformation"][0]["location"]["range"]["start"]["line"], 3);
    editor.stop();
}

#[test]
fn types_and_declarations_are_shown() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    std::fs::write(directory.path().join("pair.h"), "struct Pair { int first; char *@notnull second; };\n").unwrap();
    let uri = uri(directory.path(), "a.cyc");
    let mut editor = Editor::start(&["-DSIZE=3"]);
    let text =
        "#include \"pair.h\"\nint plus(struct Pair @p, int n) {\n  let q = p;\n  return q->first + n * SIZE;\n}\n";
    assert!(editor.open(&uri, text).is_empty());
    let value = |answer: &Value| answer["contents"]["value"].as_str().unwrap_or_default().to_owned();
    assert_eq!(value(&editor.at("textDocument/hover", &uri, 2, 6)), "q: struct Pair @");
    assert_eq!(value(&editor.at("textDocument/hover", &uri, 3, 9)), "q: struct Pair @");
    assert_eq!(value(&editor.at("textDocument/hover", &uri, 3, 13)), "first: int");
    assert_eq!(value(&editor.at("textDocument/hover", &uri, 3, 20)), "n: int");
    let line_of = |answer: &Value| answer["range"]["start"]["line"].as_u64();
    let place = editor.at("textDocument/definition", &uri, 3, 9);
    assert_eq!((&place["uri"], line_of(&place)), (&json!(uri), Some(2)));
    let place = editor.at("textDocument/definition", &uri, 3, 20);
    assert_eq!(place["range"]["start"], json!({"line": 1, "character": 29}));
    let place = editor.at("textDocument/definition", &uri, 3, 14);
    assert!(place["uri"].as_str().unwrap_or_default().ends_with("/pair.h"), "{place}");
    assert_eq!(place["range"]["start"], json!({"line": 0, "character": 18}));
    assert!(editor.at("textDocument/definition", &uri, 4, 0).is_null());
    editor.stop();
}

#[test]
fn names_of_types_are_shown_and_found() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    std::fs::write(
        directory.path().join("shape.h"),
        "namespace Shape {\nstruct Point { int x; int y; };\ntypedef struct Point @point_t;\n}\n",
    )
    .unwrap();
    let uri = uri(directory.path(), "a.cyc");
    let mut editor = Editor::start(&[]);
    let text = "#include \"shape.h\"\nenum Turn { Left, Right };\ndatatype Move { Go(int), Stay };\nusing Shape;\nint f(point_t p, enum Turn t) {\n  struct Shape::Point q = *p;\n  datatype Move @m = new Go(q.x);\n  return (enum Turn)q.y == t && m != NULL;\n}\n";
    assert!(editor.open(&uri, text).iter().all(|found| found["severity"] != 1));
    let value = |answer: &Value| answer["contents"]["value"].as_str().unwrap_or_default().to_owned();
    let hover = |editor: &mut Editor, line, character| value(&editor.at("textDocument/hover", &uri, line, character));
    assert_eq!(hover(&mut editor, 4, 8), "typedef struct Point @point_t;");
    assert_eq!(hover(&mut editor, 4, 24), "enum Turn { Left, Right }");
    assert_eq!(hover(&mut editor, 5, 18), "struct Point { int x; int y; }");
    assert_eq!(hover(&mut editor, 6, 12), "datatype Move { Go(int), Stay }");
    assert_eq!(hover(&mut editor, 7, 16), "enum Turn { Left, Right }");
    assert_eq!(hover(&mut editor, 7, 20), "q: struct Shape::Point");
    let place = editor.at("textDocument/definition", &uri, 4, 8);
    assert!(place["uri"].as_str().unwrap_or_default().ends_with("/shape.h"), "{place}");
    assert_eq!(place["range"]["start"], json!({"line": 2, "character": 22}));
    let place = editor.at("textDocument/definition", &uri, 6, 12);
    assert_eq!((&place["uri"], &place["range"]["start"]), (&json!(uri), &json!({"line": 2, "character": 9})));
    editor.stop();
}

#[test]
fn members_and_names_are_offered_while_the_text_is_not_whole() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let uri = uri(directory.path(), "a.cyc");
    let mut editor = Editor::start(&[]);
    let offered = |editor: &mut Editor, text: &str| {
        // The cursor is where the bar is.
        let before = text.split('|').next().unwrap_or_default();
        let (line, column) = (before.matches('\n').count(), before.rsplit('\n').next().unwrap_or_default().len());
        editor.open(&uri, &text.replace('|', ""));
        let answer = editor.at("textDocument/completion", &uri, line as u32, column as u32);
        let items = answer.as_array().cloned().unwrap_or_default();
        items.iter().map(|item| item["label"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    let head = "#include <list.h>\nstruct Pair { int first; struct Pair *second; };\nint total;\n";
    let with = |body: &str| format!("{head}int f(struct Pair @p, $(int,char) t) {{\n  int tens = 1;\n  {body}\n}}\n");
    assert_eq!(offered(&mut editor, &with("return p->|")), ["first", "second"]);
    assert_eq!(offered(&mut editor, &with("return tens + p->second->f| + 2;")), ["first"]);
    assert_eq!(offered(&mut editor, &with("if (t.|) return 1;")), ["0", "1"]);
    assert_eq!(offered(&mut editor, &with("return List::fold_l|")), ["fold_left", "fold_left_c"]);
    assert_eq!(
        offered(&mut editor, &with("return t|")),
        ["t", "tag_t", "tagcheck", "tagof", "tens", "throw", "total", "try", "typedef", "typeof"]
    );
    assert_eq!(offered(&mut editor, &with("struct Pa|")), ["Pair"]);
    assert_eq!(offered(&mut editor, &with("Lis|")), ["List"]);
    let using = with("list_|").replace("int total", "using List;\nint total");
    assert_eq!(offered(&mut editor, &using), ["list_cmp", "list_prefix", "list_t"]);
    assert!(offered(&mut editor, &with("tens.|")).is_empty());
    editor.stop();
}
