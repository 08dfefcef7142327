//! Builds the forwarder in all ways and sends some packets through each: the receivers check what arrives.

use std::process::{Command, Output};

fn forwarder(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ebb-forwarder")).args(arguments).output().expect("the program runs")
}

/// The table that it prints, as words.
fn table(arguments: &[&str]) -> Vec<Vec<String>> {
    let output = forwarder(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text =
        String::from_utf8_lossy(&output.stdout).replace("counted, no collector", "neither").replace("by default", "");
    text.lines().skip(1).map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

#[test]
fn packets_of_all_sizes_reach_all_receivers_whole_and_in_order_and_are_counted_by_routes() {
    let sizes = ["--sizes", "8,9,64,5000,65536", "--batch", "1,4096,262144", "--routes", "0,1000"];
    let rows = table(&[&sizes[..], &["--packets", "300", "--receivers", "3", "--rounds", "1"]].concat());
    for (build, times) in [("collected", 2), ("counted", 1), ("neither", 1)] {
        assert_eq!(rows.iter().filter(|row| row[1] == build).count(), times * 5 * 3 * 2, "{build}:\n{rows:?}");
    }
    for (column, values) in [(0, ["8", "65536"]), (8, ["0", "1000"]), (9, ["1", "262144"])] {
        for value in values {
            assert!(rows.iter().any(|row| row[column] == value), "{value}:\n{rows:?}");
        }
    }
}

#[test]
fn packets_add_hardly_more_than_a_batch_to_memory_without_a_collector() {
    let rows = table(&["--sizes", "2048", "--batch", "1,16384", "--packets", "3000", "--rounds", "1"]);
    for (batch, most) in [("1", 12), ("16384", 28)] {
        let row = rows.iter().find(|row| row[1] == "neither" && row[9] == batch).expect("a row for each batch");
        let above_idle: u64 = row[7].parse().expect("a number");
        assert!(above_idle <= most, "{above_idle} KiB above idle with batches of {batch} bytes");
    }
}

#[test]
fn packets_at_a_rate_tell_how_late_they_are() {
    let rows = table(&["--sizes", "12,2000", "--packets", "300", "--rounds", "1", "--rate", "10000"]);
    assert_eq!(rows.len(), 8);
    for row in rows {
        let late: Vec<u64> = row[10..].iter().map(|word| word.parse().expect("a number")).collect();
        assert!(late.len() == 3 && late.is_sorted(), "{row:?}");
    }
}

#[test]
fn packets_that_cannot_hold_what_they_must_are_refused() {
    for arguments in [&["--sizes", "7"][..], &["--sizes", "11", "--rate", "1000"]] {
        let output = forwarder(&[arguments, &["--packets", "1", "--rounds", "1"]].concat());
        assert_eq!(output.status.code(), Some(1));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(&format!("packets of {} bytes", arguments[1])), "{errors}");
    }
}
