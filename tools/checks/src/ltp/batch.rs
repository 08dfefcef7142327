//! What the tests run in: a machine with BusyBox, the programs that tests call, and a disk for tests, which is new and empty at each boot.

use super::suite::Suite;
use super::verdict;
use crate::SystemArguments;
use crate::suites::batches::{self, Reuse};
use crate::suites::verdict::Verdict;
use anyhow::{Context, Result};
use ebb_guest::image::{elf, host_program};
use ebb_guest::{ConsoleUse, Disk, Exit, Guest, Image, Input, Kernel, Machine, Mebibytes, Program};
use std::collections::HashSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

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

/// The built suite, and what every boot has of it.
pub struct Bootable {
    suite: Suite,
    /// The programs of a boot's tests are added, since all of them together are 350 MB.
    image: Image,
}

impl Bootable {
    /// Gathers what every boot has.
    pub fn new(suite: Suite) -> Result<Self> {
        let image = base_image(&suite)?;
        Ok(Self { suite, image })
    }

    /// The words of a test: its program, then arguments.
    fn words(&self, test: &str) -> (PathBuf, &[String]) {
        match self.suite.test(test) {
            Some(found) => (self.suite.program(found.program()), found.words.get(1..).unwrap_or_default()),
            None => (self.suite.program(test), &[]),
        }
    }
}

impl batches::Suite for Bootable {
    const TESTS_A_BOOT: usize = 60;
    // The suite's own limits are shorter.
    const LIMIT: Duration = Duration::from_secs(400);
    const AFTER_A_FAILURE: Reuse = Reuse::Kept;

    fn tests(&self) -> Vec<String> {
        self.suite.tests.iter().map(|test| test.name.clone()).collect()
    }

    fn machine(&self, kernel: Kernel, arguments: &SystemArguments) -> Machine {
        let console = if arguments.kernel_log { ConsoleUse::Shown } else { ConsoleUse::Kept };
        Machine { memory: MEMORY, cpus: arguments.cpus, console, ..Machine::new(kernel) }
    }

    fn boot(&self, mut machine: Machine, tests: &[String]) -> Result<(Guest, TempDir)> {
        let mut image = self.image.clone();
        for test in tests {
            add(&mut image, &self.words(test).0)?;
        }
        let directory = tempfile::tempdir().context("making a directory for a disk")?;
        let path = directory.path().join("disk.img");
        File::create(&path).and_then(|file| file.set_len(DISK_SIZE.bytes())).context("making a disk")?;
        machine.disks.push(Disk { path, is_read_only: false });
        let name = machine.kernel.name();
        let mut guest = Guest::boot(machine, &image).with_context(|| format!("booting {name}"))?;
        guest.run(&Program::new("/bin/sh").args(["-ec", PREPARE]), Input::Null, Some(Self::LIMIT))?;
        Ok((guest, directory))
    }

    fn program(&self, test: &str) -> Program {
        let (program, arguments) = self.words(test);
        Program::new("/bin/sh")
            .args(["-c", START, "sh"])
            .arg(program)
            .args(arguments)
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
            .current_dir(Path::new("/tmp/ltp").join(test))
    }

    fn verdict(exit: Exit, output: &str) -> Verdict {
        verdict::of(exit, output)
    }
}

/// BusyBox, the programs that tests call, and what the suite has beside its tests, with the libraries that all of them take.
fn base_image(suite: &Suite) -> Result<Image> {
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
