//! The command `ebb` as a user runs it. These tests start machines, so they need a kernel and the agent (`make build`, or
//! `EBB_KERNEL` and `EBB_AGENT`), and run only when asked for: `cargo test -p ebb -- --ignored`.

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

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
