//! The command: what it prints, how it ends, and when it looks again.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::workspace::{Toolchain, Workspace, diagnostics, said};

const CLEAN: &str = "\
pub struct Cx(());
#[cfg_attr(false, ebb_lint::leaf)]
pub fn park_async(cx: &mut Cx) {
    let _ = cx;
}
";

fn with_a_violation() -> String {
    format!("{CLEAN}pub fn wait(cx: &mut Cx) {{\n    park_async(cx);\n}}\n")
}

/// Two packages: `violating`, and `clean`, which uses it.
fn two_packages(name: &str) -> Workspace {
    let workspace = Workspace::new(name, &["clean", "violating"]);
    workspace.package("violating", "", &with_a_violation());
    let dependency = "[dependencies]\nviolating = { path = \"../violating\" }\n";
    let library = "pub fn twice_async(cx: &mut violating::Cx) {\n    violating::park_async(cx);\n    violating::park_async(cx);\n}\n";
    workspace.package("clean", dependency, library);
    workspace
}

#[test]
fn findings_look_like_the_compilers_and_the_status_is_1() {
    let workspace = two_packages("command-text");
    let output = workspace.lint(&Toolchain::current(), &["--workspace"]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for expected in [
        "error[ebb::call_outside_async]: `park_async` may suspend and is called in `wait`, whose name says that it does not suspend\n",
        " --> violating/src/lib.rs:7:5\n",
        "6 | pub fn wait(cx: &mut Cx) {\n  |        ---- this function's name lacks the suffix `_async`\n",
        "7 |     park_async(cx);\n  |     ^^^^^^^^^^ this call may suspend\n",
        "help: rename it to `wait_async`\n",
        "6 | pub fn wait_async(cx: &mut Cx) {\n  |            ++++++\n",
        "error[ebb::cx_without_suffix]",
        "ebb-lint: 2 findings; checked 2 functions that may suspend and 3 calls of such, in 2 crates\n",
    ] {
        assert!(text.contains(expected), "{expected}\nis not in\n{text}");
    }
    assert!(output.stdout.is_empty());
}

#[test]
fn without_findings_the_status_is_0() {
    let workspace = Workspace::new("command-clean", &["clean"]);
    workspace.package("clean", "", CLEAN);
    let output = workspace.lint(&Toolchain::current(), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(
        said(&output).contains("nothing found; checked 1 function that may suspend and 0 calls of such, in 1 crate\n")
    );
}

#[test]
fn json_has_the_shape_of_the_compilers() {
    let workspace = two_packages("command-json");
    let output = workspace.lint(&Toolchain::current(), &["--json", "--workspace"]);
    let found = diagnostics(&output);
    assert_eq!(found.len(), 2);
    let call = found.iter().find(|message| message["code"]["code"] == "ebb::call_outside_async").unwrap();
    assert_eq!((&call["$message_type"], &call["level"]), (&"diagnostic".into(), &"error".into()));
    let span = &call["spans"][0];
    assert_eq!(span["file_name"], "violating/src/lib.rs");
    assert_eq!((&span["line_start"], &span["column_start"], &span["column_end"]), (&7.into(), &5.into(), &15.into()));
    let text = with_a_violation();
    let range = span["byte_start"].as_u64().unwrap() as usize..span["byte_end"].as_u64().unwrap() as usize;
    assert_eq!(&text[range], "park_async");
    assert_eq!(span["text"][0]["text"], "    park_async(cx);");
    let changes: Vec<_> =
        call["children"].as_array().unwrap().iter().flat_map(|child| child["spans"].as_array().unwrap()).collect();
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0]["suggested_replacement"], "wait_async");
    assert_eq!(changes[0]["suggestion_applicability"], "MaybeIncorrect");
    assert!(call["rendered"].as_str().unwrap().starts_with("error[ebb::call_outside_async]"));
}

#[test]
fn what_did_not_change_is_not_looked_at_again_and_is_reported_again() {
    let workspace = two_packages("command-again");
    let toolchain = Toolchain::current();
    let first = workspace.lint(&toolchain, &["--workspace", "--json"]);
    assert!(said(&first).contains("Checking violating"));
    let second = workspace.lint(&toolchain, &["--workspace", "--json"]);
    assert!(!said(&second).contains("Checking"), "{}", said(&second));
    let sorted = |output| {
        let mut lines: Vec<String> = diagnostics(output).iter().map(|message| message.to_string()).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&first), sorted(&second));
    assert!(said(&second).contains("in 2 crates"));

    // What the package says in its Cargo.toml counts at once.
    let manifest = fs::read_to_string(workspace.folder.join("violating/Cargo.toml")).unwrap();
    let settings = "[package.metadata.ebb-lint]\nroot = [\"wait\"]\nnever-suspends = [\"wait\"]\n";
    workspace.write("violating/Cargo.toml", &format!("{manifest}{settings}"));
    let third = workspace.lint(&toolchain, &["--workspace"]);
    assert_eq!(third.status.code(), Some(0), "{}", said(&third));

    workspace.write("violating/Cargo.toml", &format!("{manifest}[package.metadata.ebb-lint]\nroots = []\n"));
    let fourth = workspace.lint(&toolchain, &["--workspace"]);
    assert_eq!(fourth.status.code(), Some(2));
    assert!(said(&fourth).contains("package.metadata.ebb-lint.roots: there is no such setting"), "{}", said(&fourth));
}

#[test]
fn what_does_not_compile_cannot_be_checked_and_the_status_is_2() {
    let workspace = Workspace::new("command-broken", &["broken"]);
    workspace.package("broken", "", "pub fn wait() { park_async() }\n");
    let output = workspace.lint(&Toolchain::current(), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("error[E0425]"), "{}", said(&output));
}

#[test]
fn tests_are_checked_on_request_and_their_crate_is_counted_once() {
    let workspace = Workspace::new("command-tests", &["tested"]);
    let library = format!("{}#[test]\nfn trial() {{\n    park_async(&mut Cx(()));\n}}\n", with_a_violation());
    workspace.package("tested", "", &library);
    let toolchain = Toolchain::current();
    assert_eq!(diagnostics(&workspace.lint(&toolchain, &["--json"])).len(), 2);
    let found = diagnostics(&workspace.lint(&toolchain, &["--json", "--all-targets"]));
    assert_eq!(found.len(), 3, "{found:#?}");
}

#[test]
fn a_call_that_another_crates_macro_writes_names_the_function_around_it() {
    let workspace = Workspace::new("command-macro", &["macros", "user"]);
    let library =
        "#[macro_export]\nmacro_rules! park {\n    ($cx:expr) => {\n        $crate::park_async($cx)\n    };\n}\n";
    workspace.package("macros", "", &format!("{CLEAN}{library}"));
    let dependency = "[dependencies]\nmacros = { path = \"../macros\" }\n";
    workspace.package("user", dependency, "pub fn wait(cx: &mut macros::Cx) {\n    macros::park!(cx);\n}\n");
    let text = said(&workspace.lint(&Toolchain::current(), &["--workspace"]));
    for expected in [
        " --> macros/src/lib.rs:9:9\n",
        "::: user/src/lib.rs:1:8\n",
        "1 | pub fn wait(cx: &mut macros::Cx) {\n  |        ---- this function's name lacks the suffix `_async`\n",
        "1 | pub fn wait_async(cx: &mut macros::Cx) {\n",
    ] {
        assert!(text.contains(expected), "{expected}\nis not in\n{text}");
    }
}

#[test]
fn without_names_of_the_context_its_rules_are_off() {
    let workspace = Workspace::new("command-context", &["other"]);
    let settings = "[package.metadata.ebb-lint]\ncontext = []\nleaf = [\"switch_async\"]\n";
    let library = "pub fn switch_async() {}\npub fn wait_async() {\n    switch_async();\n}\npub fn outside() {\n    wait_async();\n}\n";
    workspace.package("other", settings, library);
    let found = diagnostics(&workspace.lint(&Toolchain::current(), &["--json"]));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0]["spans"][0]["line_start"], 6);
}

#[test]
fn a_compiler_that_writes_something_else_is_named_in_an_error() {
    let workspace = Workspace::new("command-compiler", &["clean"]);
    workspace.package("clean", "", CLEAN);
    let current = Toolchain::current();
    let rustc = current.rustc.clone().unwrap_or_else(|| "rustc".into());
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *-Zunpretty*) {0} \"$@\" | sed 's/mir::ConstOperand/mir::Constant/; s/+ const_:/+ literal:/' ;; *) exec {0} \"$@\" ;; esac\n",
        rustc.display()
    );
    workspace.write("rustc", &script);
    let path = workspace.folder.join("rustc");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let changed = Toolchain { cargo: current.cargo, rustc: Some(path), version: String::new() };
    let output = workspace.lint(&changed, &[]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let text = said(&output);
    assert!(text.contains("MIR text is not understood") && text.contains(&current.version), "{text}");
}

#[test]
fn cargo_shows_the_findings_itself_if_it_runs_the_linter_for_the_compiler() {
    let workspace = two_packages("command-wrapper");
    let toolchain = Toolchain::current();
    let mut command = Command::new(&toolchain.cargo);
    command.args(["check", "--workspace", "--offline"]).current_dir(&workspace.folder);
    command.env_remove("RUSTFLAGS").env_remove("CARGO_MANIFEST_DIR");
    command.env("CARGO_TARGET_DIR", workspace.folder.join("target"));
    command.env("RUSTC_WORKSPACE_WRAPPER", env!("CARGO_BIN_EXE_cargo-ebb-lint"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("error[ebb::call_outside_async]"), "{}", said(&output));
}

#[test]
fn questions_about_the_command_are_answered() {
    let run = |arguments: &[&str]| Command::new(env!("CARGO_BIN_EXE_cargo-ebb-lint")).args(arguments).output().unwrap();
    let text = |output: &std::process::Output| String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text(&run(&["ebb-lint", "--help"])).contains("Usage: cargo ebb-lint"));
    assert!(text(&run(&["--version"])).starts_with("ebb-lint "));
    assert!(text(&run(&["ebb-lint", "--explain", "ebb::async_as_value"])).contains("ebb_lint::table"));
    let unknown = run(&["--explain", "nonsense"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(said(&unknown).contains("call_outside_async, async_never_suspends"));
    let format = run(&["--message-format=json"]);
    assert_eq!(format.status.code(), Some(2));
}

#[test]
fn a_cargo_that_is_not_there_is_an_error() {
    let workspace = Workspace::new("command-no-cargo", &["clean"]);
    workspace.package("clean", "", CLEAN);
    let toolchain = Toolchain { cargo: "/no/such/cargo".into(), rustc: None, version: String::new() };
    let output = workspace.lint(&toolchain, &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("cannot run /no/such/cargo"));
}
