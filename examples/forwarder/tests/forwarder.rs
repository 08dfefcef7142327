//! Builds the forwarder in all ways and sends some packets through each: the receivers check what arrives.

use std::process::{Command, Output};

fn forwarder(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ebb-forwarder")).args(arguments).output().expect("the program runs")
}

#[test]
fn packets_of_all_sizes_reach_all_receivers_whole_and_in_order() {
    let output = forwarder(&["--sizes", "8,9,64,5000,65536", "--packets", "300", "--receivers", "3", "--rounds", "1"]);
    let (table, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{errors}");
    for build in ["collected ", "counted ", "counted, no collector "] {
        let rows = table.lines().filter(|line| line.split_at(10.min(line.len())).1.starts_with(build));
        assert_eq!(rows.count(), 5, "{build}:\n{table}");
    }
}

#[test]
fn packets_that_cannot_hold_their_header_are_refused() {
    let output = forwarder(&["--sizes", "7", "--packets", "1", "--rounds", "1"]);
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("packets of 7 bytes"), "{errors}");
}
