//! The language server, spoken to as an editor does: over its standard input and output.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub struct Editor {
    server: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    requests: i64,
}

impl Editor {
    pub fn start(arguments: &[&str]) -> Editor {
        Editor::start_in(None, arguments)
    }

    /// In a project.
    pub fn start_in(root: Option<&Path>, arguments: &[&str]) -> Editor {
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
        let root = root.map(|root| format!("file://{}", root.display()));
        let answer = editor.request("initialize", json!({"capabilities": {}, "rootUri": root}));
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

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let message = self.answer(method, params);
        assert!(message["error"].is_null(), "{message}");
        message["result"].clone()
    }

    /// The answer to a request, which may be an error.
    pub fn answer(&mut self, method: &str, params: Value) -> Value {
        self.requests += 1;
        let id = self.requests;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.receive();
            if message["id"] == id {
                return message;
            }
        }
    }

    /// The diagnostics that come next.
    pub fn diagnostics(&mut self) -> Vec<Value> {
        loop {
            let message = self.receive();
            if message["method"] == "textDocument/publishDiagnostics" {
                return message["params"]["diagnostics"].as_array().expect("a list").clone();
            }
        }
    }

    pub fn open(&mut self, uri: &str, text: &str) -> Vec<Value> {
        let document = json!({"uri": uri, "languageId": "cyclone", "version": 1, "text": text});
        self.notify("textDocument/didOpen", json!({"textDocument": document}));
        self.diagnostics()
    }

    pub fn change(&mut self, uri: &str, text: &str) -> Vec<Value> {
        let document = json!({"uri": uri, "version": 2});
        let changes = json!([{"text": text}]);
        self.notify("textDocument/didChange", json!({"textDocument": document, "contentChanges": changes}));
        self.diagnostics()
    }

    pub fn at(&mut self, method: &str, uri: &str, line: u32, character: u32) -> Value {
        let position = json!({"line": line, "character": character});
        self.request(method, json!({"textDocument": {"uri": uri}, "position": position}))
    }

    pub fn stop(mut self) {
        self.request("shutdown", Value::Null);
        self.notify("exit", Value::Null);
        assert!(self.server.wait().expect("it ends").success());
    }
}

/// The URI of a file in a directory.
pub fn uri(directory: &Path, file: &str) -> String {
    format!("file://{}/{file}", directory.display())
}
