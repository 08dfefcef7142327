//! One run: a receiver, the forwarder and a sender, each a process.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::build::Build;
use crate::cores::Cores;
use crate::measured::{Late, Load, Measured};

/// Sends packets through the forwarder to the receivers. The times are the slowest receiver's.
pub fn forward(build: &Build, load: Load, cores: &Cores) -> Result<Measured> {
    let words = |role: &str, numbers: &[u32]| -> Vec<String> {
        [role.to_owned()].into_iter().chain(numbers.iter().map(u32::to_string)).collect()
    };
    let mut receivers: Vec<Role> =
        (0..load.receivers).map(|_| Role::start(build, &words("receive", &[]))).collect::<Result<_>>()?;
    let mut arguments = words("forward", &[load.batch, load.routes]);
    for receiver in &mut receivers {
        arguments.push(receiver.port()?.to_string());
    }
    let mut forwarder = cores.alone(|| Role::start(build, &arguments))?;
    let sender = Role::start(build, &words("send", &[forwarder.port()?, load.bytes, load.packets, load.rate]))?;
    sender.end("sender")?;
    let (mut wall_micros, mut lates) = (0, Vec::new());
    for receiver in receivers {
        let received = numbers(&receiver.end("receiver")?);
        let [got, _, micros, ref late @ ..] = received[..] else { bail!("an unexpected report: {received:?}") };
        ensure!(got == u64::from(load.packets), "{got} of {} packets were received", load.packets);
        wall_micros = micros.max(wall_micros);
        if let [half, most, all] = *late {
            lates.push(Late { half, most, all });
        }
    }
    let forwarded = numbers(&forwarder.end("forwarder")?);
    let [passed, _, processor_micros, system_micros, memory_kib, idle_kib] = forwarded[..] else {
        bail!("an unexpected report: {forwarded:?}");
    };
    ensure!(passed == u64::from(load.packets), "{passed} of {} packets were forwarded", load.packets);
    let late = Late::highest(&lates);
    Ok(Measured { load, wall_micros, processor_micros, system_micros, memory_kib, idle_kib, late })
}

/// The numbers in a line of text.
fn numbers(line: &str) -> Vec<u64> {
    line.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect()
}

/// A process of the forwarder's program. It is killed when a run fails before its end.
struct Role {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Role {
    fn start(build: &Build, arguments: &[String]) -> Result<Role> {
        let mut process = Command::new(&build.program)
            .args(arguments)
            .envs(build.environment.iter().copied())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", build.program.display()))?;
        let output = process.stdout.take().context("a pipe was asked for")?;
        Ok(Role { process, output: BufReader::new(output) })
    }

    /// The port it listens on, its first line.
    fn port(&mut self) -> Result<u32> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        line.trim().parse().with_context(|| format!("a port was expected, not {line:?}"))
    }

    /// Waits for its end, and gives the rest of what it printed.
    fn end(mut self, name: &str) -> Result<String> {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest)?;
        let status = self.process.wait()?;
        ensure!(status.success(), "the {name} failed: {status}");
        Ok(rest)
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        // Errors mean that it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_read_as_their_numbers() {
        assert_eq!(numbers("100 packets of 64 bytes in 2500 us\n"), [100, 64, 2500]);
        assert_eq!(numbers("no digits\n"), [0; 0]);
    }
}
