//! A program's own control group: made before the program, killed at the program's end, and read for its statistics.
//!
//! The program must be in the group from its first instruction, and what the agent does must not be counted. So this same file is started again, enters the group and becomes the program, as in
//! [`session`](crate::session). It tells what went wrong on its standard error, which is a pipe to the agent, and closes that by becoming the program. The program's standard error it opens by its name
//! in `/proc`.

use crate::mounts::{CONTROL_GROUP_ROOT, mount_control_groups};
use ebb_protocol::{Decoder, GroupFiles, GroupLimits, StartError, ToHost};
use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};

/// The group's name. One program runs at a time, and its group is removed when it has ended.
const NAME: &str = "ebb-run";

/// The controllers that count something for the statistics; where a kernel does not have one, its files are missing.
const CONTROLLERS: [&str; 4] = ["cpu", "memory", "pids", RECLAIM];
const RECLAIM: &str = "reclaim";

/// What the kill changes.
const BEFORE_KILL: [&str; 2] = ["reclaim.current", "reclaim.stat"];
/// What is complete when nobody is left.
const AFTER_KILL: [&str; 8] = [
    "reclaim.max",
    "reclaim.peak",
    "reclaim.events",
    "reclaim.last",
    "memory.peak",
    "memory.events",
    "pids.peak",
    "cpu.stat",
];

/// The group of the program that runs.
pub struct Group {
    directory: PathBuf,
    /// How many processes the kill found, and the files before it; `None` as long as the group was not killed.
    killed: Option<GroupFiles>,
}

impl Group {
    /// Makes the group, with the controllers that there are, and sets its limits. Mounts the control groups first if need be.
    pub fn make(limits: &GroupLimits) -> Result<Self, StartError> {
        let root = Path::new(CONTROL_GROUP_ROOT);
        let doing = |doing: &str| {
            let doing = doing.to_owned();
            move |error: io::Error| start_error(doing, &error)
        };
        mount_control_groups().map_err(doing("mount the control groups"))?;
        let controllers = fs::read_to_string(root.join("cgroup.controllers"))
            .map_err(doing("read the controllers of control groups"))?;
        let is_there = |controller: &str| controllers.split_whitespace().any(|name| name == controller);
        if limits.reclaim_max_us.is_some() && !is_there(RECLAIM) {
            return Err(StartError::NoReclaim);
        }
        for controller in CONTROLLERS.into_iter().filter(|controller| is_there(controller)) {
            fs::write(root.join("cgroup.subtree_control"), format!("+{controller}"))
                .map_err(doing(&format!("enable the controller {controller}")))?;
        }
        let group = Self { directory: root.join(NAME), killed: None };
        // One that an earlier program left, with groups that it had made below.
        remove(&group.directory);
        fs::create_dir(&group.directory).map_err(doing("make a control group"))?;
        if let Some(micros) = limits.reclaim_max_us {
            fs::write(group.directory.join("reclaim.max"), micros.to_string()).map_err(doing("set reclaim.max"))?;
        }
        Ok(group)
    }

    /// The command that enters the group and becomes `program`, with this standard error. Start it by [`spawn`].
    pub fn command(&self, own_path: &OsStr, stderr: BorrowedFd<'_>, program: &OsStr, argv0: &OsStr) -> Command {
        let stderr = format!("/proc/{}/fd/{}", std::process::id(), stderr.as_raw_fd());
        let mut command = Command::new(own_path);
        command.arg("group").arg(&self.directory).arg(stderr).arg(program).arg(argv0);
        command
    }

    /// Kills all who are in the group or below it, and notes how many that were. Once only, so that what is measured stays that kill; who is outside of the group is for [`kill_all_others`](crate::children::kill_all_others).
    pub fn kill(&mut self) {
        if self.killed.is_none() {
            let killed = count_processes(&self.directory);
            let before_kill = read_files(&self.directory, &BEFORE_KILL);
            self.killed = Some(GroupFiles { killed, before_kill, after_kill: Vec::new() });
            // A Linux before 5.14 has no such file; who is left is killed one by one then.
            let _ = fs::write(self.directory.join("cgroup.kill"), "1");
        }
    }

    /// Reads what was counted, once nobody is left, and removes the group.
    pub fn finish(self) -> GroupFiles {
        let after_kill = read_files(&self.directory, &AFTER_KILL);
        remove(&self.directory);
        GroupFiles { after_kill, ..self.killed.unwrap_or_default() }
    }
}

/// Starts a [`Group::command`] for the program and waits until it has become that. The program's standard error must be open until then.
pub fn spawn(mut command: Command, program: &OsStr) -> Result<Child, StartError> {
    let failed = |error: io::Error| start_error(execute(program), &error);
    let (mut report, report_writer) = io::pipe().map_err(failed)?;
    let mut child = command.stderr(report_writer).spawn().map_err(failed)?;
    // With it goes the agent's copy of the pipe's other end.
    drop(command);
    let mut bytes = Vec::new();
    report.read_to_end(&mut bytes).map_err(failed)?;
    if bytes.is_empty() {
        return Ok(child);
    }
    // It has said its last words; only an empty group can be removed.
    child.wait().map_err(failed)?;
    let mut decoder = Decoder::new();
    decoder.push(&bytes);
    match decoder.next_frame().and_then(|frame| frame.as_ref().map(ToHost::from_frame).transpose()) {
        Ok(Some(ToHost::StartError(error))) => Err(error),
        // A panic's text, say.
        _ => Err(StartError::Errno {
            doing: format!("{}: {}", execute(program), String::from_utf8_lossy(&bytes)),
            errno: 0,
        }),
    }
}

/// Enters the group and executes the program; returns only on an error, which it tells the agent.
pub fn enter(arguments: &[OsString]) -> ExitCode {
    // Closed when the program is executed.
    let Ok(report) = io::stderr().as_fd().try_clone_to_owned() else { return ExitCode::FAILURE };
    let Err(error) = become_program(arguments);
    // Where the agent is gone the machine goes, too.
    let _ = File::from(report).write_all(&ToHost::StartError(error).to_frame().encode());
    ExitCode::FAILURE
}

fn become_program(arguments: &[OsString]) -> Result<Infallible, StartError> {
    let [directory, stderr, program, argv0, arguments @ ..] = arguments else {
        let usage = io::Error::other("group DIRECTORY STDERR PROGRAM ARGV0 [ARGS...]");
        return Err(start_error("read the arguments".into(), &usage));
    };
    let failed = |error: io::Error| start_error(execute(program), &error);
    let stderr = OpenOptions::new()
        .write(true)
        .open(stderr)
        .map_err(|error| start_error("open the program's standard error".into(), &error))?;
    enter_group(Path::new(directory))?;
    Err(failed(Command::new(program).arg0(argv0).args(arguments).stderr(stderr).exec()))
}

/// Becomes a member of the group. That is never refused, however small its bound is; what is opened after it may be.
fn enter_group(directory: &Path) -> Result<(), StartError> {
    let failed = |error: io::Error| start_error("enter the control group".into(), &error);
    let bound = read_number(&directory.join("reclaim.max"));
    let charged = bound.map(|_| File::open(directory.join("reclaim.current"))).transpose().map_err(failed)?;
    fs::write(directory.join("cgroup.procs"), "0").map_err(failed)?;
    let (Some(bound), Some(mut charged)) = (bound, charged) else { return Ok(()) };
    let mut text = String::new();
    charged.read_to_string(&mut text).map_err(failed)?;
    match text.trim().parse() {
        Ok(needed_us) if needed_us > bound => Err(StartError::BoundTooSmall { needed_us }),
        _ => Ok(()),
    }
}

/// The number in a file; nothing if there is no such file, or no limit in it.
fn read_number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The files of a group among these that there are.
fn read_files(directory: &Path, names: &[&str]) -> Vec<(String, String)> {
    let text = |name: &str| fs::read_to_string(directory.join(name)).ok();
    names.iter().filter_map(|name| Some(((*name).to_owned(), text(name)?))).collect()
}

/// How many processes are in a group and below it.
fn count_processes(directory: &Path) -> u32 {
    let own = fs::read_to_string(directory.join("cgroup.procs")).map_or(0, |text| text.lines().count() as u32);
    groups_below(directory).map(|below| count_processes(&below)).sum::<u32>() + own
}

/// Removes a group and those below it; what somebody is in stays.
fn remove(directory: &Path) {
    groups_below(directory).for_each(|below| remove(&below));
    let _ = fs::remove_dir(directory);
}

fn groups_below(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path())
}

fn execute(program: &OsStr) -> String {
    format!("execute {}", program.display())
}

/// What was being done, and Linux's number of the error.
pub fn start_error(doing: String, error: &io::Error) -> StartError {
    StartError::Errno { doing, errno: error.raw_os_error().unwrap_or(0) }
}
