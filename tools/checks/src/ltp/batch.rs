//! Running tests in machines, some tests a boot.
//!
//! A boot's disk for tests is new and empty. A test that does not end within its limit, or that takes the system down, costs only itself: the next runs in a machine that was booted anew.

use super::suite::{Suite, Test};
use super::verdict::{Kept, Verdict};
use crate::SystemArguments;
use anyhow::{Context, Result};
use ebb_guest::image::{elf, host_program};
use ebb_guest::{ConsoleUse, Disk, Error, Guest, Image, Input, Kernel, Machine, Mebibytes, Program};
use indicatif::ProgressBar;
use std::collections::HashSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::Sender;
use std::time::Duration;
use tempfile::TempDir;

/// So many tests run in a machine before the next is booted.
const TESTS_A_BOOT: usize = 60;
/// Far more than any test needs that ends by itself; the suite's own limits are shorter.
const LIMIT: Duration = Duration::from_secs(400);
/// What the suite asks for at least is less.
const MEMORY: Mebibytes = Mebibytes(2048);
/// The disk that tests may do with as they like.
const DISK: &str = "/dev/vda";
const DISK_SIZE: Mebibytes = Mebibytes(1024);

/// Programs that tests call, beside BusyBox's. What this machine lacks is left out, and its tests say that they do not apply.
const PROGRAMS: [&str; 12] = [
    "/usr/sbin/mkfs.ext2",
    "/usr/sbin/mkfs.ext3",
    "/usr/sbin/mkfs.ext4",
    "/usr/sbin/mkfs.exfat",
    "/usr/sbin/e2fsck",
    "/usr/sbin/tune2fs",
    "/usr/sbin/debugfs",
    "/usr/sbin/quotacheck",
    "/usr/bin/chattr",
    "/usr/bin/lsattr",
    "/bin/true",
    "/bin/ls",
];

/// Files that programs read. Tests want these users and groups to be there.
const FILES: [(&str, &str); 4] = [
    (
        "etc/passwd",
        "root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/usr/sbin:/bin/sh\nbin:x:2:2:bin:/bin:/bin/sh\n\
         nobody:x:65534:65534:nobody:/nonexistent:/bin/sh\n",
    ),
    (
        "etc/group",
        "root:x:0:\ndaemon:x:1:\nbin:x:2:\nsys:x:3:\ntty:x:5:\nusers:x:100:\nnobody:x:65533:\nnogroup:x:65534:\n",
    ),
    ("etc/shells", "/bin/sh\n"),
    ("etc/fstab", ""),
];

/// What a boot begins with, and how a test starts: in a session of its own.
const PREPARE: &str = "mount -t tmpfs -o mode=1777 tmpfs /tmp";
const START: &str = "setsid \"$@\"; exit $?";

/// A kernel, and what its machines have.
pub struct Batches<'a> {
    suite: &'a Suite,
    machine: Machine,
    /// What every boot has; the programs of its tests are added, since all of them together are 350 MB.
    image: Image,
    kept: &'a Kept,
}

impl<'a> Batches<'a> {
    /// Machines of this kernel; results go to `kept`.
    pub fn new(suite: &'a Suite, kernel: Kernel, arguments: &SystemArguments, kept: &'a Kept) -> Result<Self> {
        let console = if arguments.kernel_log { ConsoleUse::Shown } else { ConsoleUse::Kept };
        let machine = Machine { memory: MEMORY, cpus: arguments.cpus, console, ..Machine::new(kernel) };
        Ok(Self { suite, machine, image: image(suite)?, kept })
    }

    /// Runs these tests on so many machines at a time; `done` is told each one's name and verdict.
    pub fn run(
        &self,
        tests: &[&Test],
        jobs: usize,
        progress: &ProgressBar,
        done: &Sender<(String, Verdict)>,
    ) -> Result<()> {
        let batches = Mutex::new(tests.chunks(TESTS_A_BOOT));
        let next = || batches.lock().ok().and_then(|mut batches| batches.next());
        let work = || -> Result<()> {
            while let Some(batch) = next() {
                self.run_batch(batch, progress, done)?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..jobs.max(1)).map(|_| scope.spawn(work)).collect();
            workers
                .into_iter()
                .try_for_each(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }

    fn run_batch(&self, tests: &[&Test], progress: &ProgressBar, done: &Sender<(String, Verdict)>) -> Result<()> {
        let mut image = self.image.clone();
        for test in tests {
            add(&mut image, &self.suite.program(test.program()))?;
        }
        let mut running = None;
        for test in tests {
            progress.set_message(format!("{} on {}", test.name, self.machine.kernel.name()));
            let (guest, disk) = match running.take() {
                Some(running) => running,
                None => self.boot(&image)?,
            };
            let (verdict, output, guest) = self.run_test(test, guest)?;
            running = guest.map(|guest| (guest, disk));
            self.kept.put(&test.name, verdict, &output)?;
            // Nobody may listen any more.
            let _ = done.send((test.name.clone(), verdict));
            progress.inc(1);
        }
        Ok(())
    }

    /// A machine, and the directory with its disk.
    fn boot(&self, image: &Image) -> Result<(Guest, TempDir)> {
        let directory = tempfile::tempdir().context("making a directory for a disk")?;
        let path = directory.path().join("disk.img");
        File::create(&path).and_then(|file| file.set_len(DISK_SIZE.bytes())).context("making a disk")?;
        let mut machine = self.machine.clone();
        machine.disks.push(Disk { path, is_read_only: false });
        let name = machine.kernel.name();
        let mut guest = Guest::boot(machine, image).with_context(|| format!("booting {name}"))?;
        guest.run(&Program::new("/bin/sh").args(["-ec", PREPARE]), Input::Null, Some(LIMIT))?;
        Ok((guest, directory))
    }

    /// Runs a test; the machine is given back if it can be used further.
    fn run_test(&self, test: &Test, mut guest: Guest) -> Result<(Verdict, String, Option<Guest>)> {
        let program = Program::new("/bin/sh")
            .args(["-c", START, "sh"])
            .arg(self.suite.program(test.program()))
            .args(&test.words[1..])
            .env("PATH", format!("/usr/sbin:/usr/bin:/sbin:/bin:{}", self.suite.programs().display()))
            .env("LTPROOT", &self.suite.root)
            .env("TMPDIR", "/tmp")
            .env("LTP_DEV", DISK)
            .env("LTP_COLORIZE_OUTPUT", "n")
            // An emulator is slow, and tests whose length is a time need not take it all.
            .env("LTP_TIMEOUT_MUL", "4")
            .env("LTP_RUNTIME_MUL", "0.2")
            // Ebb has no kernel configuration to be read.
            .env("KCONFIG_SKIP_CHECK", "1")
            .current_dir(Path::new("/tmp/ltp").join(&test.name));
        let mut output = Vec::new();
        let ended = guest.stream(&program, Input::Null, Some(LIMIT), |_, bytes| {
            output.extend_from_slice(bytes);
            Ok(())
        });
        let mut output = String::from_utf8_lossy(&output).into_owned();
        Ok(match ended {
            Ok(exit) => (Verdict::of(exit, &output), output, Some(guest)),
            Err(error @ (Error::TimedOut(_) | Error::Panicked(_) | Error::Died { .. })) => {
                let verdict = if matches!(error, Error::TimedOut(_)) { Verdict::TimedOut } else { Verdict::SystemLost };
                output.push_str(&format!("\n{error}\n"));
                (verdict, output, None)
            }
            Err(error) => return Err(error).with_context(|| format!("running {}", test.name)),
        })
    }
}

/// BusyBox, the programs that tests call, and what the suite has beside its tests, with the libraries that all of them take.
fn image(suite: &Suite) -> Result<Image> {
    let mut image = Image::empty();
    for (path, text) in FILES {
        image.add_bytes(path, 0o644, text);
    }
    image.complete();
    image.add_directory("var/tmp", 0o1777);
    for program in PROGRAMS.into_iter().filter_map(|program| host_program::find(program).ok()) {
        image.add_host_program(&program)?;
    }
    image.add_busybox()?;
    let tests: HashSet<_> = suite.tests.iter().map(|test| suite.program(test.program())).collect();
    add_tree(&mut image, &suite.root, &tests)?;
    Ok(image)
}

/// Adds a directory of the host under its own path, with what is below it but for some files.
fn add_tree(image: &mut Image, directory: &Path, without: &HashSet<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(directory).with_context(|| format!("reading {}", directory.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            image.add_directory(&path, 0o755);
            add_tree(image, &path, without)?;
        } else if !without.contains(&path) {
            add(image, &path)?;
        }
    }
    Ok(())
}

/// Adds a file of the host under its own path; with its libraries, if it is a program. Nothing, if it is not there: what is not built cannot be run, and its test says so.
fn add(image: &mut Image, path: &Path) -> Result<()> {
    let Ok(bytes) = fs::read(path) else { return Ok(()) };
    if elf::is_elf(&bytes) && elf::read(&bytes).is_ok() {
        image.add_host_program(path)?;
    } else {
        image.add_file(path, path)?;
    }
    Ok(())
}
