//! One run: a receiver, the forwarder and a sender, each a process.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// What one run took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    pub packets: u32,
    pub bytes: u32,
    /// From the first to the last packet, at the receiver.
    pub wall_micros: u64,
    /// The forwarder's.
    pub processor_micros: u64,
    /// The forwarder's.
    pub peak_kib: u64,
}

impl Measured {
    /// This run and another as one result: the least times, which are the least disturbed, and the highest peak.
    pub fn with(self, other: &Measured) -> Measured {
        Measured {
            wall_micros: self.wall_micros.min(other.wall_micros),
            processor_micros: self.processor_micros.min(other.processor_micros),
            peak_kib: self.peak_kib.max(other.peak_kib),
            ..self
        }
    }

    pub fn packets_per_second(&self) -> f64 {
        f64::from(self.packets) * 1e6 / self.wall_micros.max(1) as f64
    }

    pub fn megabytes_per_second(&self) -> f64 {
        self.packets_per_second() * f64::from(self.bytes) / 1e6
    }

    pub fn processor_micros_per_packet(&self) -> f64 {
        self.processor_micros as f64 / f64::from(self.packets.max(1))
    }
}

/// Sends `packets` packets of `bytes` bytes through the forwarder to each of `receivers` receivers. The time is the last
/// receiver's.
pub fn forward(program: &Path, bytes: u32, packets: u32, receivers: u8) -> Result<Measured> {
    let mut receivers: Vec<Role> =
        (0..receivers).map(|_| Role::start(program, &["receive".into()])).collect::<Result<_>>()?;
    let mut arguments = vec!["forward".into()];
    for receiver in &mut receivers {
        arguments.push(receiver.port()?);
    }
    let mut forwarder = Role::start(program, &arguments)?;
    let sender = Role::start(program, &["send".into(), forwarder.port()?, bytes.to_string(), packets.to_string()])?;
    sender.end("sender")?;
    let mut wall_micros = 0;
    for receiver in receivers {
        let received = numbers(&receiver.end("receiver")?);
        let [got, _, micros] = received[..] else { bail!("an unexpected report: {received:?}") };
        ensure!(got == u64::from(packets), "{got} of {packets} packets were received");
        wall_micros = micros.max(wall_micros);
    }
    let forwarded = numbers(&forwarder.end("forwarder")?);
    let [passed, _, processor_micros, peak_kib] = forwarded[..] else {
        bail!("an unexpected report: {forwarded:?}");
    };
    ensure!(passed == u64::from(packets), "{passed} of {packets} packets were forwarded");
    Ok(Measured { packets, bytes, wall_micros, processor_micros, peak_kib })
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
    fn start(program: &Path, arguments: &[String]) -> Result<Role> {
        let mut process = Command::new(program)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let output = process.stdout.take().context("a pipe was asked for")?;
        Ok(Role { process, output: BufReader::new(output) })
    }

    /// The port it listens on, its first line.
    fn port(&mut self) -> Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        ensure!(numbers(&line).len() == 1, "a port was expected, not {line:?}");
        Ok(line.trim().to_owned())
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

    #[test]
    fn rates_are_per_second_and_per_packet() {
        let seen = Measured { packets: 1000, bytes: 500, wall_micros: 2000, processor_micros: 1500, peak_kib: 1 };
        assert_eq!(seen.packets_per_second(), 500_000.0);
        assert_eq!(seen.megabytes_per_second(), 250.0);
        assert_eq!(seen.processor_micros_per_packet(), 1.5);
    }

    #[test]
    fn of_several_runs_the_least_times_and_the_highest_peak_count() {
        let first = Measured { packets: 10, bytes: 8, wall_micros: 50, processor_micros: 30, peak_kib: 100 };
        let second = Measured { wall_micros: 40, processor_micros: 35, peak_kib: 90, ..first };
        assert_eq!(first.with(&second), Measured { wall_micros: 40, ..first });
    }
}
