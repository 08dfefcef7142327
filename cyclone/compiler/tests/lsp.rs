//! The language server, spoken to as an editor does: over its standard input and output.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

struct Editor {
    server: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    requests: i64,
}

impl Editor {
    fn start(arguments: &[&str]) -> Editor {
        let mut server = Command::new(env!("CARGO_BIN_EXE_cyc"))
            .arg("lsp")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let to = server.stdin.take().expect("it is piped");
        let from = BufReader::new(server.stdout.take().expect("it is piped"));
        let mut editor = Editor { server, to, from, requests: 0 };
        let answer = editor.request("initialize", json!({"capabilities": {}}));
        assert_eq!(answer["capabilities"]["hoverProvider"], true);
        editor.notify("initialized", json!({}));
        editor
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        write!(self.to, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("the server listens");
        self.to.flush().expect("the server listens");
    }

    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.from.read_line(&mut line).expect("the server speaks");
            match line.trim_end().split_once(": ") {
                Some(("Content-Length", number)) => length = number.parse().expect("a number"),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.from.read_exact(&mut body).expect("the server speaks");
        serde_json::from_slice(&body).expect("it speaks JSON")
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.requests += 1;
        let id = self.requests;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.receive();
            if message["id"] == id {
                assert!(message["error"].is_null(), "{message}");
                return message["result"].clone();
            }
        }
    }

    /// The diagnostics that come next.
    fn diagnostics(&mut self) -> Vec<Value> {
        loop {
            let message = self.receive();
            if message["method"] == "textDocument/publishDiagnostics" {
                return message["params"]["diagnostics"].as_array().expect("a list").clone();
            }
        }
    }

    fn open(&mut self, uri: &str, text: &str) -> Vec<Value> {
        let document = json!({"uri": uri, "languageId": "cyclone", "version": 1, "text": text});
        self.notify("textDocument/didOpen", json!({"textDocument": document}));
        self.diagnostics()
    }

    fn change(&mut self, uri: &str, text: &str) -> Vec<Value> {
        let document = json!({"uri": uri, "version": 2});
        let changes = json!([{"text": text}]);
        self.notify("textDocument/didChange", json!({"textDocument": document, "contentChanges": changes}));
        self.diagnostics()
    }

    fn at(&mut self, method: &str, uri: &str, line: u32, character: u32) -> Value {
        let position = json!({"line": line, "character": character});
        self.request(method, json!({"textDocument": {"uri": uri}, "position": position}))
    }

    fn stop(mut self) {
        self.request("shutdown", Value::Null);
        self.notify("exit", Value::Null);
        assert!(self.server.wait().expect("it ends").success());
    }
}

fn uri(directory: &Path, file: &str) -> String {
    format!("file://{}/{file}", directory.display())
}

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
