//! Memory that goes back to the host: at once when a program has ended, and when the host asks for it. These tests start machines: see `command.rs`.

use ebb_guest::artifacts::KERNEL;
use ebb_guest::{Cpus, Guest, Image, Input, Kernel, Machine, Mebibytes, Program};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the host may take until it has memory back, where other work slows everything.
const PATIENCE: Duration = Duration::from_secs(30);
const MIB: u64 = 1 << 10;

/// A guest, and the two ways to look at its emulator.
struct Watched {
    guest: Guest,
    monitor: BufReader<UnixStream>,
    pid: u32,
    _directory: tempfile::TempDir,
}

impl Watched {
    fn boot(change: impl FnOnce(&mut Machine)) -> Self {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let (socket, pid) = (directory.path().join("monitor"), directory.path().join("pid"));
        let kernel = Kernel::open(&KERNEL.find(None).expect("the kernel is built")).expect("it is a kernel");
        let mut machine = Machine {
            cpus: Cpus::TESTED,
            memory: Mebibytes(768),
            has_balloon: true,
            has_rng: true,
            ..Machine::new(kernel)
        };
        let path = |path: &Path| path.to_str().expect("the path is text").to_owned();
        machine.qemu_options =
            vec!["-qmp".into(), format!("unix:{},server=on,wait=off", path(&socket)), "-pidfile".into(), path(&pid)];
        change(&mut machine);
        let mut image = Image::empty();
        image.add_busybox().expect("busybox is installed");
        image.complete();
        image.add_agent(None).expect("the agent is built");
        let guest = Guest::boot(machine, &image).expect("the machine starts");
        let pid = fs::read_to_string(pid).expect("QEMU has written it").trim().parse().expect("a number");
        let monitor = BufReader::new(UnixStream::connect(socket).expect("QEMU listens"));
        let mut watched = Watched { guest, monitor, pid, _directory: directory };
        watched.line();
        watched.ask(r#"{"execute": "qmp_capabilities"}"#);
        watched
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.monitor.read_line(&mut line).expect("QEMU answers");
        line
    }

    /// What QEMU's monitor answers.
    fn ask(&mut self, question: &str) -> String {
        writeln!(self.monitor.get_mut(), "{question}").expect("QEMU listens");
        loop {
            let line = self.line();
            assert!(!line.contains("\"error\""), "{line}");
            // Else it is news.
            if line.contains("\"return\"") {
                return line;
            }
        }
    }

    /// Tells the balloon how much the guest should have left.
    fn leave(&mut self, memory: Mebibytes) {
        self.ask(&format!(r#"{{"execute": "balloon", "arguments": {{"value": {}}}}}"#, memory.bytes()));
    }

    /// What a script says in the guest, and whether it succeeded.
    fn run(&mut self, script: &str) -> (String, bool) {
        let program = Program::new(PathBuf::from("/bin/sh")).args(["-c", script]);
        let output = self.guest.run(&program, Input::Null, None).expect("it runs");
        (String::from_utf8_lossy(&output.stdout).into_owned(), output.exit == ebb_guest::Exit::Code(0))
    }

    /// The guest's free memory, in KiB.
    fn free(&mut self) -> u64 {
        let (text, _) = self.run("grep MemFree /proc/meminfo | tr -dc 0-9");
        text.parse().expect("a number")
    }

    /// A line of `/proc/PID/status` of the emulator, in KiB.
    fn status(&self, name: &str) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.pid)).expect("QEMU runs");
        let line = text.lines().find(|line| line.starts_with(name)).expect("there is such a line");
        line.chars().filter(char::is_ascii_digit).collect::<String>().parse().expect("a number")
    }

    /// Waits until something is so; how long it took.
    #[track_caller]
    fn until(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) -> Duration {
        let begin = Instant::now();
        while !is_so(self) {
            assert!(begin.elapsed() < PATIENCE, "{what}: {} KiB", self.status("VmRSS"));
            std::thread::sleep(Duration::from_millis(20));
        }
        begin.elapsed()
    }
}

#[test]
#[ignore = "starts a machine"]
fn memory_goes_back_to_the_host_when_a_program_has_ended() {
    for has_iommu in [false, true] {
        let mut watched = Watched::boot(|machine| machine.has_iommu = has_iommu);
        let before = watched.status("VmRSS");
        for round in 0..2 {
            let (_, is_fine) = watched.run("dd if=/dev/zero of=/dev/null bs=300M count=1 2>/dev/null");
            assert!(is_fine);
            let most = watched.status("VmHWM");
            assert!(most > before + 280 * MIB, "it has used the memory: {before} then {most} KiB");
            let took = watched.until("the memory does not come back", |it| it.status("VmRSS") < before + 60 * MIB);
            let after = watched.status("VmRSS");
            eprintln!("iommu {has_iommu}, round {round}: {before} KiB, {most} at most, {after} KiB after {took:?}");
        }
        watched.guest.shutdown().expect("it ends in order");
    }
}

#[test]
#[ignore = "starts a machine"]
fn the_host_takes_memory_from_the_guest_and_gives_it_back() {
    let mut watched = Watched::boot(|_| {});
    let before = watched.free();
    watched.leave(Mebibytes(368));
    let took = watched.until("the balloon does not grow", |it| it.free() < before - 390 * MIB);
    let free = watched.free();
    assert!(free > before - 420 * MIB, "{before} then {free} KiB");
    let answer = watched.ask(r#"{"execute": "query-balloon"}"#);
    assert!(answer.contains(&Mebibytes(368).bytes().to_string()), "{answer}");
    eprintln!("{before} KiB free, {free} after {took:?}");
    watched.leave(Mebibytes(768));
    let took = watched.until("the balloon does not shrink", |it| it.free() > before - 10 * MIB);
    eprintln!("{} KiB free after {took:?}", watched.free());
    watched.guest.shutdown().expect("it ends in order");
}

#[test]
#[ignore = "starts a machine"]
fn a_program_that_needs_more_gets_it_from_the_balloon_before_anybody_is_killed() {
    let mut watched = Watched::boot(|_| {});
    let before = watched.free();
    watched.leave(Mebibytes(368));
    watched.until("the balloon does not grow", |it| it.free() < before - 390 * MIB);
    let (_, is_fine) = watched.run("dd if=/dev/zero of=/dev/null bs=500M count=1 2>/dev/null");
    assert!(is_fine, "it was not killed");
    // What it did not agree to it does not give back by itself: the host must want another size first.
    assert!(watched.free() > before - 390 * MIB);
    watched.guest.shutdown().expect("it ends in order");
}

#[test]
#[ignore = "starts a machine"]
fn random_numbers_of_the_host_s_can_be_read() {
    let mut watched = Watched::boot(|_| {});
    let script = "
        ls -l /dev/hwrng | tr -s ' ' | cut -d' ' -f1,5,6
        cat /sys/class/misc/hw_random/rng_available /sys/class/misc/hw_random/rng_current
        head -c 3000 /dev/hwrng | wc -c
        head -c 32 /dev/hwrng | od -An -tx1 | tr -d ' \\n'; echo
        head -c 32 /dev/hwrng | od -An -tx1 | tr -d ' \\n'; echo";
    let (text, is_fine) = watched.run(script);
    let lines: Vec<&str> = text.lines().collect();
    assert!(is_fine, "{text}");
    assert_eq!(lines[..4], ["crw------- 10, 183", "virtio_rng.0", "virtio_rng.0", "3000"]);
    assert!(lines[4].len() == 64 && lines[4] != lines[5], "{text}");
    watched.guest.shutdown().expect("it ends in order");
}
