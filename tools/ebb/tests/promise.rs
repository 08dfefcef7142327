//! What Ebb promises and Linux does not: programs of `user/promise`, which run on Ebb only. They need a kernel and the agent, and are run only
//! when asked for: `cargo test -p ebb -- --ignored`.

use std::path::Path;
use std::process::Command;

/// What a program of `user/promise` prints on Ebb.
fn run(name: &str) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../user/promise").join(name).with_extension("c");
    let directory = tempfile::tempdir().expect("a directory can be made");
    let program = directory.path().join(name);
    let compiled = Command::new("musl-gcc")
        .args(["-static", "-O1", "-pthread", "-o"])
        .args([&program, &source])
        .status()
        .expect("musl-gcc is installed (`make setup`)");
    assert!(compiled.success());
    let output = Command::new(env!("CARGO_BIN_EXE_ebb"))
        .args(["run", "--timeout", "60s"])
        .arg(&program)
        .output()
        .expect("ebb can be started");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
#[ignore = "starts a machine"]
fn closing_the_last_descriptor_wakes_who_is_blocked_on_it() {
    let expected = "pipe: EBADF\neventfd: EBADF\nsocket: EBADF\nduplicated: blocked\nwritten: 3\n";
    assert_eq!(run("close_wakes"), expected);
}

#[test]
#[ignore = "starts a machine"]
fn a_timer_that_is_gone_leaves_nothing() {
    let expected = "descriptors: nothing left\ntimers: nothing left\nprocesses: nothing left\n";
    assert_eq!(run("timers_leave_nothing"), expected);
}

#[test]
#[ignore = "starts a machine"]
fn settings_of_the_system_take_a_capability_and_keep_within_bounds() {
    let expected = "\
kernel/pid_max 40000: done, now 40000
kernel/pid_max 5: EINVAL, now 40000
kernel/pid_max many: EINVAL, now 40000
kernel/randomize_va_space 1: done, now 1
kernel/randomize_va_space 3: EINVAL, now 1
kernel/dmesg_restrict 1: done, now 1
kernel/printk 4 4 1 7: done, now 4
kernel/printk 9: EINVAL, now 4
fs/file-max 20000: done, now 20000
fs/nr_open 2048: done, now 2048
fs/nr_open 1: EINVAL, now 2048
fs/pipe-max-size 100000: done, now 131072
fs/pipe-max-size -1: EINVAL, now 131072
kernel/threads-max 3: EINVAL, now 32768
kernel/pid_max 32768: EPERM, now 40000
fs/nr_open 4096: EPERM, now 2048
kernel/hostname x: EPERM, now ebb
kernel/pid_max 32768: EACCES, now 40000
log: -1
kernel/threads-max 20: done, now 20
more threads than that: no
";
    assert_eq!(run("tunables"), expected);
}

#[test]
#[ignore = "starts a machine"]
fn there_are_4096_mounts_at_most_and_trees_that_are_nowhere_count_until_they_are_closed() {
    let expected = "\
doubled 11 times, then no room
all there are: 2047
a copy: no room
unmounted: 0
left: 1023
copies until there is no room: some
and again, when those are closed: as many
";
    assert_eq!(run("many_mounts"), expected);
}

/// Linux 6.1 prints the same in a machine of its own.
#[test]
#[ignore = "starts a machine"]
fn the_wall_clock_can_be_set_and_steered() {
    let expected = "\
no time before 1970: yes
nor what is none: yes
nor before the machine was started in 1970: yes
sleep until a time that comes sooner: early 0, set 1, status 0
futex until a time that comes sooner: early 0, set 1, status 0
timer until a time that comes sooner: early 0, set 1, status 0
the clock shows it: yes
a timer descriptor is not ready: yes
who waits for it is woken when the clock is set: yes
reading it is ECANCELED: yes
once: yes
relative time goes on by itself: yes
a time zone is kept: yes
if there is such a one: yes
adjtimex: 5
frequency 6553600, tick 10500, errors 1000 and 500, constant 6
its seconds are longer by a twentieth: yes
a step: yes
no such step: yes
states of the leap second: 0x1b, tai 1
a second comes twice: yes
";
    assert_eq!(run("wall_clock"), expected);
}
