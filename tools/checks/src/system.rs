//! The systems that tasks run on: this host's Linux, and guests.
//!
//! On both the same program, `user/checks/launch.c`, starts each task, so that what a process inherits (signals, limits, umask, open files,
//! session, terminal, capabilities) does not depend on how this command was started or on who the agent is.

use crate::SystemArguments;
use crate::compile;
use crate::task::{Action, Outcome, Task};
use anyhow::{Context, Result, bail};
use ebb_guest::image::busybox;
use ebb_guest::{
    ConsoleUse, Disk, Error, Exit, Guest, Image, Input, Kernel, Machine, OutputStream, Program, artifacts,
};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::fs::Permissions;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Where a guest has BusyBox's applets for tasks.
const GUEST_APPLETS: &str = "/applets";

/// Where a guest has the program that starts tasks.
const GUEST_LAUNCHER: &str = "/checks/launch";

/// A system that runs one task after the other, each in a fresh, empty working directory.
pub trait System {
    /// A name for tables.
    fn name(&self) -> &'static str;
    /// Runs one task; an error means that no task can be run at all.
    fn run(&mut self, task: &Task) -> Result<Outcome>;
}

/// The two systems that are compared.
pub struct Systems {
    /// What is right.
    pub reference: Box<dyn System>,
    /// What is tested, on machines that are alike and are started when the first task comes; none if only the reference was asked for. A machine ends with the thread
    /// that has started it.
    pub ebb: Vec<Box<dyn System + Send>>,
}

/// The systems that the command line asks for, ready for these tasks.
pub fn systems(arguments: &SystemArguments, tasks: &[Task]) -> Result<Systems> {
    let reference: Box<dyn System> = match &arguments.reference {
        None => Box::new(Host::new()?),
        Some(path) => {
            let machine = Machine { cpus: arguments.cpus, ..Machine::new(Kernel::open(path)?) };
            Box::new(GuestSystem::new(machine, tasks, None)?)
        }
    };
    if arguments.reference_only {
        return Ok(Systems { reference, ebb: Vec::new() });
    }
    let mut machine = Machine::new(Kernel::open(&artifacts::KERNEL.find(arguments.kernel.as_deref())?)?);
    machine.cpus = arguments.cpus;
    if arguments.kernel_log {
        machine.console = ConsoleUse::Shown;
    }
    let guest = |_| -> Result<Box<dyn System + Send>> {
        Ok(Box::new(GuestSystem::new(machine.clone(), tasks, arguments.on_disk.as_deref())?))
    };
    // One more for tasks that run alone.
    let count = arguments.machines.max(1).min(tasks.len()) + 1;
    let ebb = (0..count).map(guest).collect::<Result<_>>()?;
    Ok(Systems { reference, ebb })
}

/// What this command may do on the host, as a mask in hexadecimal: a task may do no more on either system.
fn capabilities() -> Result<String> {
    let status = std::fs::read_to_string("/proc/self/status").context("reading /proc/self/status")?;
    let mask =
        status.lines().find_map(|line| line.strip_prefix("CapEff:")).context("no CapEff in /proc/self/status")?;
    Ok(mask.trim().to_owned())
}

/// The hard limits of this command on the host, as the launcher takes them: a task has no higher ones on either system.
fn hard_limits() -> Result<String> {
    // A line for each resource, in the order of their numbers; the hard limit is the second of the columns of 20 characters (proc(5)).
    let text = std::fs::read_to_string("/proc/self/limits").context("reading /proc/self/limits")?;
    let limits = text.lines().skip(1).map(|line| line.get(47..67).map(str::trim).unwrap_or_default());
    Ok(limits.map(|limit| if limit == "unlimited" { "-" } else { limit }).collect::<Vec<_>>().join(","))
}

/// Fails if the launcher did: then nothing was run, on either system, and both would seem to agree.
fn check_launched(task: &Task, outcome: Outcome) -> Result<Outcome> {
    match &outcome {
        Outcome::Ended { stderr, exit: Exit::Code(125), .. } => {
            let words = String::from_utf8_lossy(stderr);
            match words.starts_with("launch: ") || words.starts_with("usage: launch") {
                true => bail!("{}: the launcher failed: {}", task.name, words.trim()),
                false => Ok(outcome),
            }
        }
        _ => Ok(outcome),
    }
}

/// The image of a disk with an empty file system.
struct FormattedDisk {
    kind: String,
    directory: TempDir,
}

impl FormattedDisk {
    /// Makes one, of a type for mount(8).
    fn make(kind: &str) -> Result<Self> {
        let directory = tempfile::tempdir().context("making a directory for a disk")?;
        let made = Self { kind: kind.to_owned(), directory };
        let mut mke2fs = Command::new("/usr/sbin/mke2fs");
        mke2fs.args(["-q", "-F", "-t", kind]).arg(made.disk().path).arg("512M").stdout(Stdio::null());
        match mke2fs.status().context("starting mke2fs (package e2fsprogs)")?.success() {
            true => Ok(made),
            false => bail!("mke2fs cannot make {kind}"),
        }
    }

    fn disk(&self) -> Disk {
        Disk { path: self.directory.path().join("disk.img"), is_read_only: false }
    }
}

/// A working directory, for whoever is on the host, whatever the umask.
fn working_directory() -> Result<TempDir> {
    let directory = tempfile::tempdir().context("making a working directory")?;
    std::fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).context("opening a working directory")?;
    Ok(directory)
}

/// What the launcher is told of a task: the program, its name for itself, and its arguments.
fn launched(task: &Task, program: impl Into<PathBuf>, shell: impl Into<PathBuf>) -> Vec<OsString> {
    match &task.action {
        Action::Program(_) => {
            let program = program.into();
            vec![program.clone().into(), program.into()]
        }
        Action::Shell(text, name) => {
            vec![shell.into().into(), "sh".into(), "-c".into(), text.into(), name.into()]
        }
    }
}

/// The environment of every task, but for `PATH`.
const ENVIRONMENT: [(&str, &str); 4] = [("HOME", "/root"), ("USER", "root"), ("LC_ALL", "C"), ("TZ", "UTC0")];

/// The Linux that this runs on.
struct Host {
    applets: TempDir,
    launcher: PathBuf,
    capabilities: String,
    limits: String,
}

impl Host {
    fn new() -> Result<Self> {
        let applets = tempfile::tempdir().context("making a directory for the applets")?;
        let busybox = busybox::find()?;
        for applet in busybox::applets(&busybox)? {
            if let Some(name) = Path::new(&applet).file_name() {
                // BusyBox lists itself and a few applets twice.
                let _ = symlink(&busybox, applets.path().join(name));
            }
        }
        Ok(Self { applets, launcher: compile::launcher()?, capabilities: capabilities()?, limits: hard_limits()? })
    }

    fn start(&self, task: &Task, directory: &Path) -> Result<Child> {
        let mut command = Command::new(&self.launcher);
        let path = match &task.action {
            Action::Program(path) => path.clone(),
            Action::Shell(..) => PathBuf::new(),
        };
        command.args([&self.capabilities, &self.limits]).args(launched(task, path, self.applets.path().join("sh")));
        command
            .env_clear()
            .envs(ENVIRONMENT)
            .env("PATH", self.applets.path())
            .current_dir(directory)
            .stdin(if task.stdin.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().with_context(|| format!("starting {}", task.name))
    }
}

impl System for Host {
    fn name(&self) -> &'static str {
        "Linux"
    }

    fn run(&mut self, task: &Task) -> Result<Outcome> {
        let directory = working_directory()?;
        let mut child = self.start(task, directory.path())?;
        if let (Some(mut pipe), Some(bytes)) = (child.stdin.take(), task.stdin.clone()) {
            // A program need not read its input.
            std::thread::spawn(move || pipe.write_all(&bytes));
        }
        let stdout = child.stdout.take().map(collect);
        let stderr = child.stderr.take().map(collect);
        let deadline = Instant::now() + task.limit;
        let status = loop {
            match child.try_wait()? {
                Some(status) => break Some(status),
                None if Instant::now() > deadline => break None,
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        if status.is_none() {
            // The launcher kills the program, whose pipes end then.
            let _ = kill_process(Pid::from_child(&child), Signal::TERM);
            let _ = child.wait();
        }
        let taken = |collector: Option<std::thread::JoinHandle<Vec<u8>>>| {
            collector.and_then(|collector| collector.join().ok()).unwrap_or_default()
        };
        let (stdout, stderr) = (taken(stdout), taken(stderr));
        let Some(status) = status else { return Ok(Outcome::TimedOut { stdout }) };
        let exit = match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code as u8),
            (None, signal) => Exit::Signal(signal.unwrap_or(0) as u8),
        };
        check_launched(task, Outcome::Ended { stdout, stderr, exit })
    }
}

fn collect(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What could be read before an error is still worth comparing.
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}

/// A machine; started when the first task comes, and anew after one that it did not survive.
pub struct GuestSystem {
    capabilities: String,
    limits: String,
    machine: Machine,
    image: Image,
    guest: Option<Guest>,
    /// Where the working directories are; else in memory.
    disk: Option<FormattedDisk>,
    runs: usize,
}

impl GuestSystem {
    /// What a line for the shell prints.
    pub fn run_text(&mut self, text: &str) -> Result<String> {
        let action = Action::Shell(text.to_owned(), "sh".to_owned());
        let task = Task { name: text.to_owned(), action, stdin: None, limit: crate::programs::LIMIT };
        match self.run_task(&task)? {
            Outcome::Ended { stdout, .. } => String::from_utf8(stdout).context("the guest's answer"),
            outcome => bail!("{text}: {outcome:?}"),
        }
    }

    /// A machine for these tasks, whose working directories are on a disk with a file system of that type, or in memory.
    ///
    /// # Errors
    /// Something of it cannot be made.
    pub fn new(mut machine: Machine, tasks: &[Task], on_disk: Option<&str>) -> Result<Self> {
        let mut image = Image::base();
        image.add_busybox()?;
        for applet in busybox::applets(&busybox::find()?)? {
            if let Some(name) = Path::new(&applet).file_name() {
                image.add_symlink(Path::new(GUEST_APPLETS).join(name), busybox::GUEST_PATH);
            }
        }
        for task in tasks {
            if let Action::Program(path) = &task.action {
                image.add_file(guest_path(task), path)?;
            }
        }
        image.add_file(GUEST_LAUNCHER, &compile::launcher()?)?;
        let disk = on_disk.map(FormattedDisk::make).transpose()?;
        machine.disks.extend(disk.iter().map(FormattedDisk::disk));
        Ok(Self { capabilities: capabilities()?, limits: hard_limits()?, machine, image, guest: None, disk, runs: 0 })
    }

    fn guest(&mut self) -> Result<&mut Guest> {
        let guest = match self.guest.take() {
            Some(guest) => guest,
            None => {
                let mut guest = Guest::boot(self.machine.clone(), &self.image)?;
                if let Some(disk) = &self.disk {
                    let script = format!("mkdir -p /tmp && mount -t {} /dev/vda /tmp", disk.kind);
                    let shell = Path::new(GUEST_APPLETS).join("sh");
                    let program = Program::new(shell).args(["-c", &script]).env("PATH", GUEST_APPLETS);
                    let output = guest.run(&program, Input::Null, None)?;
                    if output.exit != Exit::Code(0) {
                        bail!("{script}: {}", String::from_utf8_lossy(&output.stderr));
                    }
                }
                guest
            }
        };
        Ok(self.guest.insert(guest))
    }

    /// Runs one task; an error means that no task can be run at all.
    pub fn run_task(&mut self, task: &Task) -> Result<Outcome> {
        self.runs += 1;
        let mut program = Program::new(GUEST_LAUNCHER)
            .args([&self.capabilities, &self.limits].map(OsString::from))
            .args(launched(task, guest_path(task), Path::new(GUEST_APPLETS).join("sh")));
        for (name, value) in ENVIRONMENT {
            program = program.env(name, value);
        }
        let directory = format!("/tmp/{}", self.runs);
        let program = program.env("PATH", GUEST_APPLETS).current_dir(directory);
        let input = task.stdin.clone().map_or(Input::Null, Input::bytes);

        let guest = self.guest().context("starting a guest")?;
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let exit = guest.stream(&program, input, Some(task.limit), |stream, bytes| {
            match stream {
                OutputStream::Stdout => stdout.extend_from_slice(bytes),
                OutputStream::Stderr => stderr.extend_from_slice(bytes),
            }
            Ok(())
        });
        match exit {
            Ok(exit) => check_launched(task, Outcome::Ended { stdout, stderr, exit }),
            Err(Error::TimedOut(_)) => Ok(Outcome::TimedOut { stdout }),
            Err(error @ Error::Spawn { .. }) => {
                Ok(Outcome::Ended { stdout, stderr: error.to_string().into_bytes(), exit: Exit::Code(127) })
            }
            Err(error) => {
                self.guest = None;
                Ok(Outcome::SystemLost(error.to_string()))
            }
        }
    }
}

fn guest_path(task: &Task) -> PathBuf {
    Path::new("/checks").join(&task.name)
}

impl System for GuestSystem {
    fn name(&self) -> &'static str {
        self.machine.kernel.name()
    }

    fn run(&mut self, task: &Task) -> Result<Outcome> {
        self.run_task(task)
    }
}
