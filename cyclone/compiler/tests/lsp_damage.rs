//! The language server, when what comes to it is not what an editor sends: it goes on, or says why it ends. It never panics.

use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;
use wait_timeout::ChildExt;

/// Far more than any of them takes.
const TIME_LIMIT: Duration = Duration::from_secs(60);

fn framed(body: &[u8]) -> Vec<u8> {
    [format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

fn message(value: &Value) -> Vec<u8> {
    framed(value.to_string().as_bytes())
}

fn notification(method: &str, params: &Value) -> Vec<u8> {
    message(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
}

fn request(id: i64, method: &str, params: &Value) -> Vec<u8> {
    message(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

fn begin() -> Vec<u8> {
    [request(1, "initialize", &json!({"capabilities": {}})), notification("initialized", &json!({}))].concat()
}

fn end() -> Vec<u8> {
    [request(2, "shutdown", &Value::Null), notification("exit", &Value::Null)].concat()
}

fn open(uri: &str, text: &str) -> Vec<u8> {
    let document = json!({"uri": uri, "languageId": "cyclone", "version": 1, "text": text});
    notification("textDocument/didOpen", &json!({"textDocument": document}))
}

fn hover(uri: &str, line: u32, character: u32) -> Vec<u8> {
    let position = json!({"line": line, "character": character});
    request(3, "textDocument/hover", &json!({"textDocument": {"uri": uri}, "position": position}))
}

/// What the server writes to this, and whether it ends as it should.
#[track_caller]
fn served(stream: &[u8]) -> (String, bool) {
    let mut server = Command::new(env!("CARGO_BIN_EXE_cyc"))
        .arg("lsp")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the server starts");
    let mut to = server.stdin.take().expect("it is piped");
    // It may have ended before it has read all.
    let _ = to.write_all(stream);
    drop(to);
    if server.wait_timeout(TIME_LIMIT).expect("it can be waited for").is_none() {
        let _ = server.kill();
        panic!("the server does not end");
    }
    let output = server.wait_with_output().expect("it has ended");
    let says = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)) && !says.contains("panicked"), "{}: {says}", output.status);
    (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.success())
}

#[test]
fn streams_without_messages_end_it() {
    let streams: &[&[u8]] = &[
        b"",
        b"hello\r\n\r\n",
        b"Content-Length: 18446744073709551615\r\n\r\n{}",
        b"Content-Length: 400000000000\r\n\r\n{}",
        b"Content-Length: -5\r\n\r\n{}",
        b"Content-Length: 500\r\n\r\n{}",
        b"Content-\xff: 3\r\n\r\n{}",
    ];
    for stream in streams {
        assert!(!served(stream).1, "{:?}", String::from_utf8_lossy(stream));
        assert!(!served(&[&begin(), *stream].concat()).1 || stream.is_empty());
    }
}

#[test]
fn what_is_no_message_is_left_out() {
    let uri = "file:///nowhere/a.cyc";
    let good = [open(uri, "int f(int x) { return x; }\n"), hover(uri, 0, 22)].concat();
    let nested = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
    let wrong = [
        framed(b"}{"),
        framed(b"null"),
        framed(b"\xff\xfe"),
        framed(&nested),
        message(&json!({"jsonrpc": "2.0", "id": 99, "result": null})),
        message(&json!({"jsonrpc": "2.0", "id": {"a": 1}, "method": "textDocument/hover"})),
        request(4, "textDocument/hover", &json!({"textDocument": 1})),
        request(5, "no/such", &json!([])),
        notification("textDocument/didOpen", &json!([1, 2])),
        notification("textDocument/didOpen", &Value::Null),
        open("::::no uri", "int x;"),
        open("file:///%ff%0", "int x;"),
        open("file:///%00", "int x;"),
        notification("textDocument/didClose", &json!({"textDocument": {"uri": "file:///nowhere/b.cyc"}})),
        hover("file:///nowhere/b.cyc", 0, 0),
        hover(uri, u32::MAX, u32::MAX),
        open(uri, "#line 4294967295\nint x = y;\nint \0z = w;\n# 1 \"a\nint q = r;\n"),
    ];
    for stream in &wrong {
        let (says, is_well) = served(&[begin(), stream.clone(), good.clone(), end()].concat());
        assert!(
            is_well && says.contains("x: int"),
            "after {}: {says}",
            String::from_utf8_lossy(&stream[..stream.len().min(200)])
        );
    }
}

#[test]
fn requests_in_the_wrong_order_are_refused() {
    let uri = "file:///nowhere/a.cyc";
    let orders: &[&[&[u8]]] = &[
        &[&end()],
        &[&notification("exit", &Value::Null)],
        &[&open(uri, "int x;"), &hover(uri, 0, 4), &end()],
        &[&begin(), &begin(), &end()],
        &[&begin(), &request(2, "shutdown", &Value::Null), &hover(uri, 0, 4)],
        &[&begin(), &request(2, "shutdown", &Value::Null)],
    ];
    for order in orders {
        served(&order.concat());
    }
}

#[test]
fn any_place_of_any_text_is_answered() {
    let uri = "file:///nowhere/a.cyc";
    let texts = [
        "",
        "\n\n",
        "int f(int x) { return f(x, \u{e4}\u{1d11e} g(\"(\\",
        "#define M(a) a##a\nint M(x); `a f(`a x) { /* ( */ return M(x) ? x : x; }",
        "struct S { int s; } s = {.s = 3}; int g() { return s.s + S::s(",
    ];
    for text in texts {
        let mut stream = [begin(), open(uri, text)].concat();
        let mut id = 10;
        for line in 0..3 {
            for character in [0, 1, 5, 12, 26, 27, 28, 40, u32::MAX] {
                let at = json!({"textDocument": {"uri": uri}, "position": {"line": line, "character": character},
                    "context": {"includeDeclaration": true}, "newName": "fresh"});
                for method in ["references", "rename", "prepareRename", "signatureHelp", "completion", "definition"] {
                    id += 1;
                    stream.extend(request(id, &format!("textDocument/{method}"), &at));
                }
            }
        }
        let (says, is_well) = served(&[stream, end()].concat());
        assert!(is_well && says.contains(&format!("\"id\":{id}")), "{text}");
    }
}
