//! A child process that cannot outlive its limits: time, memory and the size of what it writes.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use wait_timeout::ChildExt;

/// What a child may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Until it is killed.
    pub time: Duration,
    /// Its address space.
    pub memory_kib: u64,
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Exit(i32),
    /// A signal; a crash for us.
    Signal,
    /// Killed: it took longer than its limit.
    Late,
}

/// How a child ended and all it wrote.
#[derive(Debug)]
pub struct Finished {
    pub end: End,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Finished {
    /// The first line it wrote to stderr that says anything about an error, or the first that is not empty.
    pub fn first_error(&self) -> &str {
        let mut lines = self.stderr.lines().filter(|line| !line.trim().is_empty());
        let first = lines.clone().next().unwrap_or("");
        lines.find(|line| line.contains("error")).unwrap_or(first)
    }
}

/// Files of 64 MiB are enough for any output that is compared.
const OUTPUT_BLOCKS: u64 = (64 << 20) / 512;

/// Runs a program in a folder with `stdin` as its input.
///
/// # Errors
/// The program cannot be started, or the temporary files cannot be used.
pub fn run(program: &Path, arguments: &[&OsStr], folder: &Path, stdin: File, limits: Limits) -> Result<Finished> {
    let mut stdout = tempfile::tempfile()?;
    let mut stderr = tempfile::tempfile()?;
    // The shell sets the limits, which safe Rust cannot do for a child, and becomes the program.
    let script = format!("ulimit -v {} && ulimit -f {OUTPUT_BLOCKS} && exec \"$0\" \"$@\"", limits.memory_kib);
    let mut child = Command::new("sh")
        .arg("-c")
        .arg(script)
        .arg(program)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::from(stdout.try_clone()?))
        .stderr(Stdio::from(stderr.try_clone()?))
        .spawn()
        .with_context(|| format!("starting {}", program.display()))?;
    let end = match child.wait_timeout(limits.time)? {
        Some(status) => status.code().map_or(End::Signal, End::Exit),
        None => {
            child.kill()?;
            child.wait()?;
            End::Late
        }
    };
    let mut written = Vec::new();
    stdout.rewind()?;
    stdout.read_to_end(&mut written)?;
    let mut errors = Vec::new();
    stderr.rewind()?;
    stderr.read_to_end(&mut errors)?;
    Ok(Finished { end, stdout: written, stderr: String::from_utf8_lossy(&errors).into_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn shell(script: &str, seconds: u64) -> Finished {
        let limits = Limits { time: Duration::from_secs(seconds), memory_kib: 1 << 20 };
        let arguments = [OsStr::new("-c"), OsStr::new(script)];
        let nothing = File::open("/dev/null").expect("/dev/null exists");
        run(&PathBuf::from("/bin/sh"), &arguments, Path::new("/"), nothing, limits).expect("sh starts")
    }

    #[test]
    fn output_and_exit_code_are_kept() {
        let finished = shell("echo out; echo 'an error' >&2; exit 3", 60);
        assert_eq!(finished.end, End::Exit(3));
        assert_eq!(finished.stdout, b"out\n");
        assert_eq!(finished.first_error(), "an error");
    }

    #[test]
    fn what_takes_too_long_is_killed() {
        assert_eq!(shell("exec sleep 600", 1).end, End::Late);
    }

    #[test]
    fn a_crash_is_no_exit_code() {
        assert_eq!(shell("kill -SEGV $$", 60).end, End::Signal);
    }
}
