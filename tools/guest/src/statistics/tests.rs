//! Files as Ebb and Linux showed them, and what is made of them.

use super::*;

fn files(files: &[(&str, &str)]) -> Vec<(String, String)> {
    files.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect()
}

const CPU_STAT: &str =
    "usage_usec 3413\nuser_usec 3400\nsystem_usec 13\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n";

/// A shell that left two processes, on Ebb.
fn of_ebb() -> GroupFiles {
    let stat = "group 1 30000\nsubgroup 0 0\nprocess 2 120000\nthread 2 24000\nmapping 0 0\npipe 8 24000\n";
    GroupFiles {
        killed: 2,
        before_kill: files(&[("reclaim.current", "226\n"), ("reclaim.stat", stat)]),
        after_kill: files(&[
            ("reclaim.max", "5000\n"),
            ("reclaim.peak", "289\n"),
            ("reclaim.events", "denied 1\noverrun 1\n"),
            ("reclaim.last", "charged_us 226\nmeasured_us 769\nelapsed_us 2315\n"),
            ("memory.peak", "393216\n"),
            ("memory.events", "low 0\nhigh 0\nmax 2\noom 0\noom_kill 0\noom_group_kill 0\n"),
            ("pids.peak", "3\n"),
            ("cpu.stat", CPU_STAT),
        ]),
    }
}

/// The same on Linux 6.1.
fn of_linux() -> GroupFiles {
    GroupFiles {
        killed: 2,
        before_kill: Vec::new(),
        after_kill: files(&[
            ("memory.peak", "733184\n"),
            ("memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n"),
            ("pids.peak", "4\n"),
            ("cpu.stat", CPU_STAT),
        ]),
    }
}

#[test]
fn a_summary_says_what_was_charged_and_what_the_kill_took() {
    assert_eq!(
        Statistics::of(&of_ebb()).to_string(),
        "\
reclaim  at most 289µs charged of 5ms; refused once, overrun once
at end   226µs charged: 1 group 30µs, 8 pipe 24µs, 2 process 120µs, 2 thread 24µs
kill     2 processes: 769µs of processor time, 226µs charged, 2.315ms elapsed; more than was charged
memory   at most 384 KiB; max 2 times
threads  at most 3
cpu      3.413ms: user 3.4ms, system 13µs
"
    );
}

#[test]
fn a_kill_that_took_too_long_is_called_that() {
    let verdict = |max: &str, measured_us: u64| {
        let mut files = of_ebb();
        for (name, text) in &mut files.after_kill {
            match name.as_str() {
                "reclaim.last" => *text = format!("charged_us 226\nmeasured_us {measured_us}\nelapsed_us 9000\n"),
                "reclaim.max" => *text = max.into(),
                _ => {}
            }
        }
        Statistics::of(&files).verdict()
    };
    assert_eq!(verdict("5000\n", 226), "");
    assert_eq!(verdict("5000\n", 227), "; more than was charged");
    assert_eq!(verdict("max\n", 6000), "; more than was charged");
    assert_eq!(verdict("5000\n", 5001), "; beyond the bound");
}

#[test]
fn a_summary_leaves_out_what_a_kernel_does_not_count() {
    let expected = "\
kill     2 processes
memory   at most 716 KiB
threads  at most 4
cpu      3.413ms: user 3.4ms, system 13µs
";
    assert_eq!(Statistics::of(&of_linux()).to_string(), expected);
    assert_eq!(Statistics::of(&GroupFiles::default()).to_string(), "kill     nothing was left to kill\n");
}

#[test]
fn the_kill_of_an_empty_group_is_called_that() {
    let mut files = of_ebb();
    files.killed = 0;
    for (name, text) in &mut files.after_kill {
        match name.as_str() {
            "reclaim.last" => *text = "charged_us 30\nmeasured_us 18\nelapsed_us 16\n".into(),
            "reclaim.max" => *text = "max\n".into(),
            _ => {}
        }
    }
    let summary = Statistics::of(&files).to_string();
    let kill =
        "kill     nothing was left to kill; the empty group: 18µs of processor time, 30µs charged, 16µs elapsed\n";
    assert!(summary.contains(kill), "{summary}");
    assert!(summary.starts_with("reclaim  at most 289µs charged, without a bound; "), "{summary}");
}

#[test]
fn the_json_has_a_unit_in_each_name_and_null_for_what_is_not_counted() {
    let json = |files| serde_json::to_value(Statistics::of(&files)).expect("it can be written");
    let ebb = json(of_ebb());
    assert_eq!(ebb["reclaim"]["max_us"], 5000);
    assert_eq!(ebb["reclaim"]["peak_us"], 289);
    assert_eq!(ebb["reclaim"]["denied"], 1);
    assert_eq!(ebb["reclaim"]["overrun"], 1);
    assert_eq!(ebb["reclaim"]["charged_us"], 226);
    assert_eq!(ebb["reclaim"]["classes"]["process"], serde_json::json!({ "count": 2, "charged_ns": 120_000 }));
    let kill = serde_json::json!({ "processes": 2, "measured": { "charged_us": 226, "measured_us": 769, "elapsed_us": 2315 } });
    assert_eq!(ebb["kill"], kill);
    assert_eq!(ebb["memory"]["peak_bytes"], 393_216);
    assert_eq!(ebb["memory"]["events"]["max"], 2);
    assert_eq!(ebb["pids_peak"], 3);
    assert_eq!(ebb["cpu"], serde_json::json!({ "usage_us": 3413, "user_us": 3400, "system_us": 13 }));
    let linux = json(of_linux());
    assert_eq!(linux["reclaim"], serde_json::Value::Null);
    assert_eq!(linux["kill"], serde_json::json!({ "processes": 2, "measured": null }));
}

#[test]
fn a_file_that_says_something_else_counts_as_not_there() {
    let after_kill = files(&[("memory.events", "none\n"), ("pids.peak", "many\n"), ("cpu.stat", "usage_usec 1\n")]);
    let statistics = Statistics::of(&GroupFiles { after_kill, ..GroupFiles::default() });
    assert_eq!((statistics.pids_peak, statistics.cpu), (None, None));
    let memory = statistics.memory.expect("the file is there");
    assert_eq!((memory.peak_bytes, memory.events.len()), (None, 0));
}
