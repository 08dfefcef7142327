//! What the server holds after each of its clients was killed, and how long that took.

use std::process::Command;

#[test]
fn a_dead_clients_memory_comes_back_at_once_and_its_watchers_learn_of_it() {
    let output = Command::new(env!("CARGO_BIN_EXE_ebb-kv"))
        .args(["--owners", "3", "--watchers", "2", "--values", "4", "--kib", "256"])
        .output()
        .expect("the server's program was built for this test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    // Held by Ebb in MiB, watchers told, held with Rc, watchers told; the words before and between are skipped.
    let rows: Vec<Vec<f64>> = text
        .lines()
        .skip(1)
        .map(|line| line[16..].split_whitespace().filter_map(|word| word.parse().ok()).collect())
        .collect();
    let expected = [
        [3.0, 0.0, 3.0, 0.0],
        [2.0, 8.0, 3.0, 0.0],
        [1.0, 16.0, 3.0, 0.0],
        [0.0, 24.0, 3.0, 0.0],
        [0.0, 24.0, 0.0, 0.0],
    ];
    assert_eq!(rows, expected, "{text}");
}

#[test]
fn a_client_with_many_values_ends_as_soon_as_one_with_few() {
    let output = Command::new(env!("CARGO_BIN_EXE_ebb-kv"))
        .args(["kill", "--most", "1000"])
        .output()
        .expect("the server's program was built for this test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    // Values, watched, and the nanoseconds of the three stores.
    let rows: Vec<Vec<u64>> = text
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().filter_map(|word| word.parse().ok()).collect())
        .collect();
    let of = |values, watched| rows.iter().find(|row| row[..2] == [values, watched]).expect("the row is there")[2];
    assert!(of(1_000, 0) < 10 * of(1, 0), "{text}");
    assert!(of(1_000, 1_000) > of(1_000, 1), "{text}");
}
