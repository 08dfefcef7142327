//! `ac/layout.h` asserts of each field what `libs/tasks/src/rt/layout.rs` asserts of it; the compilers check both.

use std::path::Path;

const NAMES: &[(&str, &str)] =
    &[("Awe", "ac_awe"), ("Finish", "ac_finish"), ("Runtime", "ac_runtime"), ("IdEntry", "ac_id_entry")];

#[test]
fn c_asserts_the_same_of_each_field_as_rust() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Ok(rust) = std::fs::read_to_string(here.join("../src/rt/layout.rs")) else {
        eprintln!("this is a package by itself: left out");
        return;
    };
    let c = std::fs::read_to_string(here.join("include/ac/layout.h")).expect("a header");
    let mut fields = 0;
    for line in rust.lines() {
        let Some((name, rest)) = line.split_once("offset_of!(").and_then(|(_, rest)| rest.split_once(", ")) else {
            continue;
        };
        let (field, rest) = rest.split_once(") == ").expect("an assertion of an offset");
        let offset: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let (_, c_name) = NAMES.iter().find(|(rust, _)| *rust == name).expect("a struct that C knows");
        let expected = format!("AC_ASSERT_(offsetof(struct {c_name}, {field}) == {offset});");
        assert!(c.contains(&expected), "ac/layout.h lacks: {expected}");
        fields += 1;
    }
    assert!(fields > 30, "{fields} assertions were found");
}
