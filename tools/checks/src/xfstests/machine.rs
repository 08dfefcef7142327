//! What the tests run in: a machine with a Debian, two disks for tests, and a disk with the suite. What is written to any of them goes with the machine.

use super::suite::{DISK_SIZE, Suite};
use super::verdict;
use crate::SystemArguments;
use crate::debian::recipe;
use crate::suites::batches::{self, Reuse};
use crate::suites::verdict::Verdict;
use anyhow::{Context, Result, ensure};
use ebb_guest::debian::{self, Cached};
use ebb_guest::{ConsoleUse, Disk, Exit, Guest, Image, Input, Kernel, Machine, Mebibytes, Program, RootImage};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// What the image has, a line for each package.
const PACKAGES: &str = "user/xfstests/packages";
/// What a boot begins with.
const PREPARE: &str = "user/xfstests/prepare.sh";
/// How a test starts.
const TEST: &str = "user/xfstests/test.sh";

/// Some tests take much memory in a tmpfs or a file system on a loop device.
const MEMORY: Mebibytes = Mebibytes(2048);
const ROOT_SIZE: Mebibytes = Mebibytes(2048);

/// The settings of the suite: the disks, in the order in which [`Bootable::boot`] gives them to a machine.
const SETTINGS: [(&str, &str); 9] = [
    ("FSTYP", "ext4"),
    ("TEST_DEV", "/dev/vda"),
    ("TEST_DIR", "/mnt/test"),
    ("SCRATCH_DEV", "/dev/vdb"),
    ("SCRATCH_MNT", "/mnt/scratch"),
    ("RESULT_BASE", "/tmp/results"),
    ("HOME", "/root"),
    ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    // There is no log of the system's.
    ("LOGGER_PROG", "true"),
];

/// The built suite, and what its machines boot with.
pub struct Bootable {
    suite: Suite,
    root: PathBuf,
    prepare: String,
    test: String,
}

impl Bootable {
    /// Makes the images, unless they are made.
    pub fn new(suite: Suite, doing: &mut dyn FnMut(&str)) -> Result<Self> {
        let root = recipe(PACKAGES, &release(), ROOT_SIZE)?.image(&debian::cache(), Cached::AsItIs, doing)?;
        let script = |path| fs::read_to_string(path).with_context(|| format!("reading {path}"));
        Ok(Self { suite, root, prepare: script(PREPARE)?, test: script(TEST)? })
    }
}

/// The release of Debian that this machine has, if it is one: the suite is built with its libraries.
fn release() -> String {
    const OTHERWISE: &str = "bookworm";
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let codename = if value("ID") == Some("debian") { value("VERSION_CODENAME") } else { None };
    codename.unwrap_or(OTHERWISE).to_owned()
}

/// What runs a script with the suite's settings.
fn script(text: &str) -> Program {
    let bash = Program::new("/bin/bash").args(["-c", text]);
    SETTINGS.into_iter().fold(bash, |bash, (name, value)| bash.env(name, value))
}

impl batches::Suite for Bootable {
    const TESTS_A_BOOT: usize = 30;
    const LIMIT: Duration = Duration::from_secs(400);
    // What a failed test leaves behind could fail the next.
    const AFTER_A_FAILURE: Reuse = Reuse::Anew;

    fn tests(&self) -> Vec<String> {
        self.suite.tests.clone()
    }

    fn machine(&self, kernel: Kernel, arguments: &SystemArguments) -> Machine {
        let console = if arguments.kernel_log { ConsoleUse::Shown } else { ConsoleUse::Kept };
        let mut machine = Machine { memory: MEMORY, cpus: arguments.cpus, console, ..Machine::new(kernel) };
        // QEMU writes into files of its own, which go with it: all machines share the images.
        machine.qemu_options.push("-snapshot".into());
        machine
    }

    fn boot(&self, mut machine: Machine, _tests: &[String]) -> Result<(Guest, TempDir)> {
        let directory = tempfile::tempdir().context("making a directory for a disk")?;
        let scratch = directory.path().join("scratch.img");
        File::create(&scratch).and_then(|file| file.set_len(DISK_SIZE.bytes())).context("making a disk")?;
        let disk = |path: &Path| Disk { path: path.to_path_buf(), is_read_only: false };
        machine.disks.extend([&self.suite.formatted, &scratch, &self.suite.disk].map(|path| disk(path)));
        RootImage::at(&PathBuf::from(format!("{}:rw", self.root.display())))?
            .context("the image is none")?
            .attach(&mut machine);
        let name = machine.kernel.name();
        let mut guest = Guest::boot(machine, &Image::base()).with_context(|| format!("booting {name}"))?;
        let prepare = script(&self.prepare);
        let prepared = guest.run(&prepare, Input::Null, Some(Self::LIMIT))?;
        ensure!(prepared.exit.is_success(), "{name} cannot begin: {}", String::from_utf8_lossy(&prepared.stderr));
        Ok((guest, directory))
    }

    fn program(&self, test: &str) -> Program {
        script(&self.test).args(["bash", test])
    }

    fn verdict(exit: Exit, output: &str) -> Verdict {
        verdict::of(exit, output)
    }
}
