//! The command `ebb` as a user runs it. These tests start machines, so they need a kernel and the agent (`make build`, or
//! `EBB_KERNEL` and `EBB_AGENT`), and run only when asked for: `cargo test -p ebb -- --ignored`.

use ebb_guest::artifacts::KERNEL;
use ebb_guest::{Guest, Image, Input, Kernel, Machine, Program};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn ebb() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ebb"));
    command.stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    ebb().args(["run", "--timeout", "600s"]).args(arguments).output().expect("ebb can be started")
}

#[track_caller]
fn assert_fails(output: &Output, code: i32, message: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert!(stderr.contains(message), "`{message}` is not in: {stderr}");
}

fn program_in(directory: &Path, name: &str, bytes: &[u8]) -> String {
    let path = directory.join(name);
    fs::write(&path, bytes).expect("a file can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("and its mode set");
    path.to_str().expect("the path is text").to_owned()
}

#[test]
#[ignore = "starts a machine"]
fn output_errors_and_the_code_come_through_separately() {
    let output = run(&["sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!(output.stdout, b"out\n");
    assert_eq!(output.stderr, b"err\n");
    assert_eq!(output.status.code(), Some(7));
}

#[test]
#[ignore = "starts a machine"]
fn a_program_that_a_signal_ends_is_reported_as_a_shell_does() {
    assert_eq!(run(&["sh", "-c", "kill -SEGV $$"]).status.code(), Some(139));
}

#[test]
#[ignore = "starts a machine"]
fn input_comes_back_unchanged_however_long_it_is() {
    let bytes: Vec<u8> = (0..1_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut child =
        ebb().args(["run", "cat"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("ebb can be started");
    let mut stdin = child.stdin.take().expect("it was piped");
    let sent = bytes.clone();
    let writer = std::thread::spawn(move || stdin.write_all(&sent));
    let output = child.wait_with_output().expect("ebb ends");
    writer.join().expect("the writer does not panic").expect("all is taken");
    assert!(output.stdout == bytes, "{} bytes came back", output.stdout.len());
}

#[test]
#[ignore = "starts a machine"]
fn environment_and_working_directory_are_set() {
    let output = run(&["--env", "TIDE=low water", "--workdir", "/some/where", "sh", "-c", "pwd; echo $TIDE"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "/some/where\nlow water\n");
}

#[test]
#[ignore = "starts a machine"]
fn signals_reach_the_program() {
    let mut child = ebb()
        .args([
            "run",
            "--timeout",
            "600s",
            "sh",
            "-c",
            "trap 'echo caught; exit 3' TERM; echo ready; while :; do :; done",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .expect("ebb can be started");
    let mut stdout = std::io::BufReader::new(child.stdout.take().expect("it was piped"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut stdout, &mut line).expect("it prints");
    assert_eq!(line, "ready\n");
    let kill = Command::new("sh").args(["-c", &format!("kill -TERM {}", child.id())]).status();
    assert!(kill.expect("kill can be started").success());
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut stdout, &mut rest).expect("it ends");
    assert_eq!(rest, "caught\n");
    assert_eq!(child.wait().expect("ebb ends").code(), Some(3));
}

#[test]
#[ignore = "starts a machine"]
fn a_terminal_is_passed_through_with_its_size_and_keys() {
    let master = File::from(openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there are terminals"));
    grantpt(&master).and_then(|()| unlockpt(&master)).expect("it is ours");
    let name = ptsname(&master, Vec::new()).expect("it has a name").into_string().expect("in ASCII");
    let size = Winsize { ws_row: 31, ws_col: 97, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&master, size).expect("it has a size");
    let slave = File::options().read(true).write(true).open(&name).expect("it can be opened");
    let again = || slave.try_clone().expect("it can be shared");
    let mut child = Command::new(env!("CARGO_BIN_EXE_ebb"))
        .args(["run", "--timeout", "600s", "-it", "sh", "-c", "tty; stty size; read a; echo got $a; read b; echo no"])
        .stdin(again())
        .stdout(again())
        .stderr(again())
        .spawn()
        .expect("ebb can be started");
    drop(slave);
    (&master).write_all(b"word\r").expect("keys can be typed");
    let mut shown = String::new();
    let mut bytes = [0; 256];
    while !shown.contains("got word") {
        let count = (&master).read(&mut bytes).expect("more is shown");
        shown.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    assert!(shown.contains("/dev/pts/0\r\n31 97\r\n"), "{shown:?}");
    // Ctrl-C is a key here: the guest's terminal makes a signal of it.
    (&master).write_all(&[3]).expect("keys can be typed");
    assert_eq!(child.wait().expect("ebb ends").code(), Some(130));
}

#[test]
#[ignore = "starts a machine"]
fn a_program_on_a_terminal_can_have_a_group() {
    let master = File::from(openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there are terminals"));
    grantpt(&master).and_then(|()| unlockpt(&master)).expect("it is ours");
    let name = ptsname(&master, Vec::new()).expect("it has a name").into_string().expect("in ASCII");
    let slave = File::options().read(true).write(true).open(&name).expect("it can be opened");
    let (statistics, output) = {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let file = directory.path().join("statistics");
        let output = ebb()
            .args(["run", "--timeout", "600s", "-it", "--reclaim-within", "50ms", "--stats-json"])
            .arg(&file)
            .args(["sh", "-c", "tty; cat /proc/self/cgroup; sleep 1000 & exit 3"])
            .stdin(slave)
            .output()
            .expect("ebb can be started");
        (fs::read_to_string(&file).expect("it was written"), output)
    };
    assert_eq!(String::from_utf8_lossy(&output.stdout), "/dev/pts/0\r\n0::/ebb-run\r\n", "{output:?}");
    assert_eq!(output.status.code(), Some(3));
    assert!(statistics.contains("\"max_us\": 50000"), "{statistics}");
}

#[test]
#[ignore = "starts a machine"]
fn a_terminal_for_a_pipe_is_refused() {
    assert_fails(&run(&["-it", "true"]), 120, "-t needs a terminal");
}

#[test]
#[ignore = "starts a machine"]
fn a_reader_that_goes_away_ends_the_writer() {
    let output = Command::new("sh")
        .args(["-c", "{ \"$EBB\" run --timeout 600s yes; echo $? >&2; } | head -n 1"])
        .env("EBB", env!("CARGO_BIN_EXE_ebb"))
        .stdin(Stdio::null())
        .output()
        .expect("sh can be started");
    assert_eq!(output.stdout, b"y\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "141\n");
}

#[test]
#[ignore = "starts a machine"]
fn a_time_limit_ends_the_machine() {
    let output = ebb().args(["run", "--timeout", "8s", "sleep", "1000"]).output().expect("ebb can be started");
    assert_fails(&output, 124, "timed out after 8 s");
}

#[test]
#[ignore = "starts a machine"]
fn debians_bash_runs_with_its_own_and_other_programs() {
    let script = "a=(one two); for i in {2..1}; do echo ${a[@]} $i; done | sort; [[ foo =~ o+ ]] && echo ${BASH_REMATCH[0]}; \
                  diff <(echo a) <(echo b) >/dev/null; echo $?";
    let output = run(&["bash", "-c", script]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "one two 1\none two 2\noo\n1\n", "{output:?}");
}

#[test]
#[ignore = "starts a machine"]
fn a_root_file_system_is_used_whatever_its_form() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let root = directory.path().join("root");
    fs::create_dir_all(root.join("bin")).expect("a directory can be made");
    fs::copy("/bin/busybox", root.join("bin/busybox")).expect("BusyBox can be copied");
    std::os::unix::fs::symlink("busybox", root.join("bin/sh")).expect("a link can be made");
    fs::write(root.join("message"), "from the root file system\n").expect("a file can be written");
    let archive = directory.path().join("root.tar.gz");
    let tar = Command::new("tar").arg("-czf").arg(&archive).arg("-C").arg(&root).arg(".").status();
    assert!(tar.expect("tar can be started").success());
    for rootfs in [&root, &archive] {
        let rootfs = rootfs.to_str().expect("the path is text");
        let output = run(&["--rootfs", rootfs, "sh", "-c", "busybox cat /message"]);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "from the root file system\n", "{output:?}");
    }
}

/// The statistics of a program that was run with these arguments, and what else came of it.
fn run_for_statistics(arguments: &[&str]) -> (serde_json::Value, Output) {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let file = directory.path().join("statistics");
    let output = run(&[&["--stats-json", file.to_str().expect("the path is text")], arguments].concat());
    let text = fs::read(&file).expect("it was written");
    let statistics = serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (statistics, output)
}

#[test]
#[ignore = "starts a machine"]
fn what_a_program_leaves_is_killed_with_its_group_and_measured() {
    let script = "cat /proc/self/cgroup; sleep 1000 & sleep 1000 & exit 3";
    let (statistics, output) = run_for_statistics(&["--reclaim-within", "50ms", "sh", "-c", script]);
    assert_eq!(output.stdout, b"0::/ebb-run\n", "{output:?}");
    // That it failed is no reason to speak of a bound which was not in its way.
    assert_eq!((output.stderr.as_slice(), output.status.code()), (&b""[..], Some(3)));
    let reclaim = &statistics["reclaim"];
    assert_eq!((&reclaim["max_us"], &reclaim["denied"]), (&50_000.into(), &0.into()), "{statistics}");
    assert_eq!((&statistics["kill"]["processes"], &reclaim["classes"]["process"]["count"]), (&2.into(), &2.into()));
    let number = |value: &serde_json::Value| value.as_u64().unwrap_or_else(|| panic!("{statistics}"));
    let measured = &statistics["kill"]["measured"];
    assert!(number(&measured["charged_us"]) > 30, "{statistics}");
    assert!(number(&measured["measured_us"]) > 0, "{statistics}");
    assert!(number(&reclaim["peak_us"]) >= number(&reclaim["charged_us"]), "{statistics}");
    assert!(number(&statistics["pids_peak"]) >= 3, "{statistics}");
    assert!(number(&statistics["memory"]["peak_bytes"]) >= 4096, "{statistics}");
    assert!(number(&statistics["cpu"]["usage_us"]) > 0, "{statistics}");
}

#[test]
#[ignore = "starts a machine"]
fn a_program_without_a_bound_has_statistics_too() {
    let (statistics, output) = run_for_statistics(&["--stats", "true"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(statistics["reclaim"]["max_us"], serde_json::Value::Null, "{statistics}");
    assert_eq!(statistics["kill"]["processes"], 0);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("\nkill     nothing was left to kill; the empty group: "), "{text}");
    let output = run(&["--stats-json", "-", "echo", "first"]);
    let rest = output.stdout.strip_prefix(b"first\n").expect("what the program wrote comes first");
    assert!(serde_json::from_slice::<serde_json::Value>(rest).is_ok(), "{output:?}");
}

#[test]
#[ignore = "starts a machine"]
fn without_a_group_the_control_groups_are_not_even_mounted() {
    assert_eq!(run(&["sh", "-c", "ls /sys/fs/cgroup"]).stdout, b"");
}

/// A time as it is printed, in microseconds: `166µs`, on a busy host `1.2ms`, and in the first attempt `10us`.
fn microseconds(text: &str) -> f64 {
    let at = text.find(|unit: char| !unit.is_ascii_digit() && unit != '.').expect("a unit");
    let number: f64 = text[..at].parse().expect("a number");
    match &text[at..] {
        "s" => 1e6 * number,
        "ms" => 1e3 * number,
        _ => number,
    }
}

/// Runs a program with the smallest bound with which it starts: that bound, and what came of it. Each machine measures what its objects cost when it boots, and on a busy host one may measure more
/// than the one before: then what that one says is enough.
fn run_with_enough(program: &[&str]) -> (String, Output) {
    let mut bound = String::from("10us");
    loop {
        let output = run(&[&["--reclaim-within", &bound], program].concat());
        let message = String::from_utf8_lossy(&output.stderr);
        let Some((_, more)) = message.rsplit_once("too small for the program to start: it takes at least ") else {
            return (bound, output);
        };
        assert_eq!(output.status.code(), Some(126));
        let more = more.trim_end();
        assert!(microseconds(more) > microseconds(&bound), "{bound}, {more}");
        bound = more.to_owned();
    }
}

#[test]
#[ignore = "starts a machine"]
fn a_bound_that_is_too_small_says_what_is_enough() {
    let (enough, output) = run_with_enough(&["busybox", "true"]);
    assert_eq!(output.status.code(), Some(0), "{enough}");
    assert!(microseconds(&enough) > 10.0, "{enough}");
    // And one process is all that it is enough for, unless the last machine had a quiet host and found that its objects cost less than the one before.
    let run = || run_with_enough(&["busybox", "sh", "-c", "(exit 0); exit 0"]);
    let (mut enough, mut output) = run();
    for _ in 0..20 {
        if output.status.code() != Some(0) {
            break;
        }
        (enough, output) = run();
    }
    assert_ne!(output.status.code(), Some(0));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains(&format!("ebb: the bound of {enough} was in the program's way")), "{message}");
}

#[test]
#[ignore = "starts a machine"]
fn a_time_limit_kills_the_programs_group_and_measures_that() {
    let arguments =
        ["run", "--timeout", "10s", "--stats", "--reclaim-within", "50ms", "sh", "-c", "sleep 1000 & sleep 1000"];
    let output = ebb().args(arguments).output().expect("ebb can be started");
    assert_fails(&output, 124, "\nkill     3 processes: ");
    assert_fails(&output, 124, "\nebb: timed out after 10 s\n");
}

#[test]
#[ignore = "starts a machine"]
fn one_guest_runs_programs_with_groups_and_without_one_after_the_other() {
    let machine = Machine::new(Kernel::open(&KERNEL.find(None).expect("it was built")).expect("it is a kernel"));
    let mut image = Image::empty();
    image.add_busybox().expect("BusyBox is installed");
    let mut guest = Guest::boot(machine, &image).expect("it boots");
    let sh = |script: &str| Program::new("sh").arg("-c").arg(script);
    let mut run = |program: &Program, limit| {
        let output = guest.run(program, Input::Null, limit);
        (output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()), guest.take_statistics())
    };
    let (output, statistics) = run(&sh("cat /proc/self/cgroup"), None);
    assert_eq!(output.expect("it runs"), "0::/\n");
    assert!(statistics.is_none());

    let within = |time| sh("mkdir /sys/fs/cgroup/ebb-run/below; sleep 1000 & sleep 1000 & wait").in_group(Some(time));
    let (output, statistics) = run(&within(Duration::from_millis(50)), Some(Duration::from_secs(3)));
    assert!(matches!(output, Err(ebb_guest::Error::TimedOut(_))), "{output:?}");
    assert_eq!(statistics.map(|statistics| statistics.kill.processes), Some(3));

    let (output, statistics) = run(&within(Duration::from_micros(10)), None);
    assert!(matches!(output, Err(ebb_guest::Error::BoundTooSmall(_))), "{output:?}");
    assert!(statistics.is_none());

    let (output, _) = run(&Program::new("/no/such/program").in_group(None), None);
    assert!(matches!(output, Err(ebb_guest::Error::Spawn { errno: 2, .. })), "{output:?}");

    // Another bound, and a group that counts from nothing.
    let (output, statistics) = run(&sh("ls -d /sys/fs/cgroup/ebb-run/below").in_group(None), None);
    assert_eq!(output.expect("it runs"), "");
    let reclaim = statistics.and_then(|statistics| statistics.reclaim).expect("the kernel has the controller");
    assert_eq!((reclaim.max_us, reclaim.denied), (None, 0));
    let (output, _) = run(&sh("ls -d /sys/fs/cgroup/ebb-run"), None);
    assert_eq!(output.expect("it runs"), "");
}

#[test]
#[ignore = "needs a kernel and the agent"]
fn every_mistake_has_its_message_and_its_code() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let at = directory.path();
    let shell = fs::read("/bin/busybox").expect("BusyBox can be read");
    let mut for_arm = shell.clone();
    for_arm[18..20].copy_from_slice(&[183, 0]);
    let path = |name: &str| at.join(name).to_str().expect("the path is text").to_owned();
    let arm = program_in(at, "arm", &for_arm);
    let cut = program_in(at, "cut", &shell[..shell.len() / 2]);
    let text = program_in(at, "text", b"hello");
    let no_interpreter = program_in(at, "script", b"#!/no/such/interpreter\n");
    fs::write(at.join("archive"), "not an archive").expect("a file can be written");

    assert_fails(&run(&["no-such-program-anywhere"]), 127, "no such program");
    assert_fails(&run(&[&path("missing")]), 127, "no such program");
    assert_fails(&run(&[&arm]), 122, "64-bit Arm");
    assert_fails(&run(&[&cut]), 122, "corrupt ELF file");
    assert_fails(&run(&[&text]), 122, "neither an ELF file nor a script");
    assert_fails(&run(&[&no_interpreter]), 122, "/no/such/interpreter");
    assert_fails(&run(&["--rootfs", &path("archive"), "sh"]), 119, "neither a directory nor a tar or cpio archive");
    assert_fails(&run(&["--rootfs", &path("missing"), "sh"]), 119, "No such file");
    assert_fails(&run(&["--memory", "8M", "true"]), 123, "at least");
    assert_fails(&run(&["--memory", "much", "true"]), 120, "expected a size like 512M");
    assert_fails(&run(&["--cpus", "0", "true"]), 120, "at least one core");
    assert_fails(&run(&["--cpus", "9", "true"]), 120, "at most 8 cores");
    assert_fails(&run(&["--cpus", "all", "true"]), 120, "expected a number of cores, 1 to 8");
    assert_fails(&run(&["--timeout", "soon", "true"]), 120, "expected a time like 30s");
    assert_fails(&run(&["--reclaim-within", "5", "true"]), 120, "expected a time like 5ms");
    assert_fails(&run(&["--stats-json", &path("missing/file"), "true"]), 118, "No such file");
    assert_fails(&run(&["--no-such-option", "true"]), 120, "unexpected argument");
    assert_fails(&run(&[]), 120, "PROGRAM");
    assert_fails(&run(&["--kernel", &path("missing"), "true"]), 121, "Ebb kernel");
    let without_path = ebb().args(["run", "/bin/busybox"]).env("PATH", at).output().expect("ebb can be started");
    assert_fails(&without_path, 121, "qemu-system-x86_64 is not installed");
}

#[test]
#[ignore = "starts a machine"]
fn a_shell_without_a_terminal_ends_with_its_input() {
    let mut child =
        ebb().arg("shell").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("ebb can be started");
    let mut stdin = child.stdin.take().expect("it was piped");
    stdin.write_all(b"echo $((6 * 7)) is the answer\nexit 4\n").expect("it is taken");
    drop(stdin);
    let output = child.wait_with_output().expect("ebb ends");
    assert!(String::from_utf8_lossy(&output.stdout).contains("42 is the answer"));
    assert_eq!(output.status.code(), Some(4));
}
