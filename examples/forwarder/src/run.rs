//! One run: a receiver, the forwarder and a sender, each a process.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::cores::Cores;

/// What one run took, or the median of several.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    pub packets: u32,
    pub bytes: u32,
    /// From the first to the last packet, at the receiver.
    pub wall_micros: u64,
    /// The forwarder's.
    pub processor_micros: u64,
    /// What the forwarder spent in system calls, of `processor_micros`.
    pub system_micros: u64,
    /// The forwarder's, without what it has of its program and libraries.
    pub memory_kib: u64,
}

impl Measured {
    /// The median of each figure of runs with the same packets; None of no runs.
    pub fn median(runs: &[Measured]) -> Option<Measured> {
        let first = runs.first()?;
        let median = |figure: fn(&Measured) -> u64| {
            let mut figures: Vec<u64> = runs.iter().map(figure).collect();
            figures.sort_unstable();
            figures[figures.len() / 2]
        };
        Some(Measured {
            wall_micros: median(|run| run.wall_micros),
            processor_micros: median(|run| run.processor_micros),
            system_micros: median(|run| run.system_micros),
            memory_kib: median(|run| run.memory_kib),
            ..*first
        })
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

    pub fn system_micros_per_packet(&self) -> f64 {
        self.system_micros as f64 / f64::from(self.packets.max(1))
    }
}

/// Sends `packets` packets of `bytes` bytes through the forwarder to each of `receivers` receivers. The time is the last
/// receiver's.
pub fn forward(program: &Path, bytes: u32, packets: u32, receivers: u8, cores: &Cores) -> Result<Measured> {
    let mut receivers: Vec<Role> =
        (0..receivers).map(|_| Role::start(program, &["receive".into()])).collect::<Result<_>>()?;
    let mut arguments = vec!["forward".into()];
    for receiver in &mut receivers {
        arguments.push(receiver.port()?);
    }
    let mut forwarder = cores.alone(|| Role::start(program, &arguments))?;
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
    let [passed, _, processor_micros, system_micros, memory_kib] = forwarded[..] else {
        bail!("an unexpected report: {forwarded:?}");
    };
    ensure!(passed == u64::from(packets), "{passed} of {packets} packets were forwarded");
    Ok(Measured { packets, bytes, wall_micros, processor_micros, system_micros, memory_kib })
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

    const RUN: Measured = Measured {
        packets: 1000,
        bytes: 500,
        wall_micros: 2000,
        processor_micros: 1500,
        system_micros: 1000,
        memory_kib: 1,
    };

    #[test]
    fn rates_are_per_second_and_per_packet() {
        assert_eq!(RUN.packets_per_second(), 500_000.0);
        assert_eq!(RUN.megabytes_per_second(), 250.0);
        assert_eq!(RUN.processor_micros_per_packet(), 1.5);
        assert_eq!(RUN.system_micros_per_packet(), 1.0);
    }

    #[test]
    fn of_several_runs_each_figure_has_its_median() {
        let runs = [
            Measured { wall_micros: 1, memory_kib: 9, ..RUN },
            RUN,
            Measured { wall_micros: 7000, memory_kib: 5, ..RUN },
        ];
        assert_eq!(Measured::median(&runs), Some(Measured { memory_kib: 5, ..RUN }));
        assert_eq!(Measured::median(&[]), None);
    }
}
