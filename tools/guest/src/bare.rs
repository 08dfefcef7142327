//! Machines without the agent: a kernel that boots whatever archive it is given, and what its console showed.
//!
//! For programs that are process 1 themselves, and for archives that are meant to be broken.

use crate::error::Doing;
use crate::kernel::PowerState;
use crate::{Cpus, Error, Kernel, Result, accel, qemu};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How a bare machine ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BareEnd {
    /// The kernel switched the machine off, or reset it if it is Linux.
    PoweredOff,
    /// The kernel panicked.
    Panicked,
    /// It did neither within the limit.
    TimedOut,
    /// QEMU ended in another way, such as after a triple fault.
    Died,
}

/// What a bare machine did.
#[derive(Debug, Clone)]
pub struct BareRun {
    /// How it ended.
    pub end: BareEnd,
    /// The text of its console.
    pub console: String,
}

impl BareRun {
    /// The last lines of the console that are not empty, at most `count`.
    pub fn last_lines(&self, count: usize) -> String {
        let lines: Vec<&str> = self.console.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(count)..].join("\n")
    }
}

/// A machine with 512 MiB, a console and nothing else.
#[derive(Debug, Clone)]
pub struct BareMachine<'a> {
    /// What it boots.
    pub kernel: &'a Kernel,
    /// The whole command line of the kernel.
    pub command_line: &'a str,
    /// QEMU's processor model.
    pub cpu: &'a str,
    /// Its cores.
    pub cpus: Cpus,
    /// More arguments for QEMU.
    pub qemu_options: &'a [&'a str],
    /// How long it may run.
    pub limit: Duration,
}

/// Ends QEMU in every case.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl BareMachine<'_> {
    /// Boots the kernel with this archive as its initial file system, and waits for the end.
    ///
    /// # Errors
    /// QEMU cannot be started. How the guest ends is no error.
    pub fn run(&self, archive: &Path) -> Result<BareRun> {
        self.run_watched(archive, &mut |_, _| {})
    }

    /// The same, and tells `each_line` what the console shows, line by line as it comes, with QEMU's process number.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_watched(&self, archive: &Path, each_line: &mut (dyn FnMut(u32, &str) + Send)) -> Result<BareRun> {
        let program = qemu::find_qemu().ok_or(Error::QemuMissing(qemu::QEMU))?;
        let child = Command::new(&program)
            .args(["-M", "q35", "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"])
            .args([
                "-accel",
                accel::emulation(self.cpus),
                "-cpu",
                self.cpu,
                "-smp",
                &self.cpus.to_string(),
                "-m",
                "512M",
            ])
            .args(qemu::firmware(&program))
            .arg("-kernel")
            .arg(self.kernel.path())
            .arg("-initrd")
            .arg(archive)
            .args(["-append", self.command_line, "-serial", "stdio"])
            .args(["-device", "isa-debug-exit,iobase=0xf4,iosize=0x04"])
            .args(self.qemu_options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .doing(|| "starting QEMU".into())?;
        let mut running = Running(child);
        let Some(output) = running.0.stdout.take() else {
            return Ok(BareRun { end: BareEnd::Died, console: String::new() });
        };
        let pid = running.0.id();
        let (sender, receiver) = mpsc::channel();
        let (in_time, status, bytes) = thread::scope(|scope| {
            let reader = scope.spawn(move || {
                let (mut output, mut text) = (BufReader::new(output), Vec::new());
                // A read that fails ends the text; what there is will be judged.
                let mut start = 0;
                while let Ok(1..) = output.read_until(b'\n', &mut text) {
                    each_line(pid, String::from_utf8_lossy(&text[start..]).trim_end());
                    start = text.len();
                }
                // Nobody waits for it any more after the limit.
                let _ = sender.send(());
                text
            });
            let in_time = receiver.recv_timeout(self.limit).is_ok();
            if !in_time {
                // It may have ended just now.
                let _ = running.0.kill();
            }
            (in_time, running.0.wait(), reader.join().unwrap_or_default())
        });
        let status = status.doing(|| "waiting for QEMU".into())?;
        let end = match self.kernel.power_state(status.code()) {
            _ if !in_time => BareEnd::TimedOut,
            PowerState::Off => BareEnd::PoweredOff,
            PowerState::Panicked => BareEnd::Panicked,
            PowerState::Reset | PowerState::Failed => BareEnd::Died,
        };
        Ok(BareRun { end, console: String::from_utf8_lossy(&bytes).replace('\r', "") })
    }
}
