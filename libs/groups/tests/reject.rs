//! Programs that must not compile: each file in `reject/examples` names the error that the compiler must give, and no other.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

#[test]
fn the_compiler_rejects_what_would_outlive_a_group_or_never_be_destroyed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reject");
    // Built and not only checked: what an arena demands of its type is found where it is made.
    let output = Command::new(env!("CARGO"))
        .args(["build", "--offline", "--examples", "--keep-going", "--message-format=json", "--manifest-path"])
        .arg(folder.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("reject_groups"))
        .output()
        .expect("cargo runs");
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(message) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        if message["reason"] != "compiler-message" || message["message"]["level"] != "error" {
            continue;
        }
        if let Some(code) = message["message"]["code"]["code"].as_str() {
            let program = message["target"]["name"].as_str().unwrap_or("?").to_string();
            found.entry(program).or_default().push(code.to_string());
        }
    }
    let mut programs = 0;
    for file in std::fs::read_dir(folder.join("examples")).expect("the examples are there") {
        let path = file.expect("a directory entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().to_string();
        let source = std::fs::read_to_string(&path).expect("a readable program");
        let expected =
            source.lines().next().and_then(|line| line.strip_prefix("//@ ")).expect("a first line `//@ CODE`");
        let mut errors = found.remove(&name).unwrap_or_default();
        errors.dedup();
        let expected: &[&str] = if expected == "accepted" { &[] } else { &[expected] };
        assert_eq!(errors, expected, "{name}\n{}", String::from_utf8_lossy(&output.stderr));
        programs += 1;
    }
    assert!(programs >= 10 && found.is_empty(), "{programs} programs; errors elsewhere: {found:?}");
}
