//! What a machine is made of, before it is started.

use crate::volume;
use crate::{Accel, Cpus, Disk, InputDevice, Kernel, Network, PublishedPort, Volume};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// An amount of memory in MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mebibytes(pub u64);

impl Mebibytes {
    /// The same amount in bytes.
    pub fn bytes(self) -> u64 {
        self.0.saturating_mul(1 << 20)
    }
}

impl FromStr for Mebibytes {
    type Err = String;

    /// A number with `M` or `G` behind it; a bare number counts MiB.
    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
        let factor = match text[digits.len()..].to_ascii_lowercase().as_str() {
            "" | "m" | "mb" | "mib" => 1,
            "g" | "gb" | "gib" => 1024,
            _ => return Err("expected a size like 512M or 2G".into()),
        };
        let number: u64 = digits.parse().map_err(|_| "expected a size like 512M or 2G".to_owned())?;
        number.checked_mul(factor).filter(|&size| size > 0).map(Self).ok_or_else(|| "no such amount of memory".into())
    }
}

/// Who gets the kernel's console, the first serial port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ConsoleUse {
    /// It is kept for messages about a panic.
    #[default]
    Kept,
    /// The same, and copied to this process's standard error as it comes.
    Shown,
    /// The caller reads and writes it: [`crate::Guest::take_console`].
    Interactive,
}

/// A machine that can be started with [`crate::Guest::boot`].
#[derive(Debug, Clone)]
pub struct Machine {
    /// What it boots.
    pub kernel: Kernel,
    /// Its memory.
    pub memory: Mebibytes,
    /// Its cores.
    pub cpus: Cpus,
    /// Its disks.
    pub disks: Vec<Disk>,
    /// Directories of the host that it has.
    pub volumes: Vec<Volume>,
    /// What the agent is told of a root on a disk.
    pub root_words: Vec<String>,
    /// A directory of the host that is its root, of which nothing is written.
    pub root_directory: Option<PathBuf>,
    /// Whether it has an IOMMU, which keeps its devices from memory that they were not given.
    pub has_iommu: bool,
    /// Whether it has a source of the host's random numbers.
    pub has_rng: bool,
    /// The network that it has a card at.
    pub network: Network,
    /// Ports of the host that lead to ports of its.
    pub published_ports: Vec<PublishedPort>,
    /// Whether memory that it does not use goes back to the host, and the host can ask for more by a balloon.
    pub has_balloon: bool,
    /// Its keyboards, mice and tablets.
    pub input: Vec<InputDevice>,
    /// Who executes its instructions.
    pub accel: Accel,
    /// QEMU's processor model.
    pub cpu: String,
    /// More words for the kernel's command line.
    pub kernel_options: String,
    /// More arguments for QEMU.
    pub qemu_options: Vec<String>,
    /// What becomes of the console.
    pub console: ConsoleUse,
    /// Arguments of the agent, process 1; see `user/agent`.
    pub agent_arguments: Vec<String>,
    /// How long the way to the agent's first message may take.
    pub boot_limit: Duration,
}

impl Machine {
    /// A machine with one core and 512 MiB that serves programs.
    pub fn new(kernel: Kernel) -> Self {
        Self {
            kernel,
            memory: Mebibytes(512),
            cpus: Cpus::ONE,
            disks: Vec::new(),
            volumes: Vec::new(),
            root_words: Vec::new(),
            root_directory: None,
            has_iommu: false,
            has_rng: false,
            network: Network::None,
            published_ports: Vec::new(),
            has_balloon: false,
            input: Vec::new(),
            accel: Accel::Auto,
            cpu: "max,-la57".into(),
            kernel_options: String::new(),
            qemu_options: Vec::new(),
            console: ConsoleUse::Kept,
            agent_arguments: vec!["serve".into()],
            boot_limit: Duration::from_secs(600),
        }
    }

    /// What the agent is told: which directories of the host to mount, then the rest.
    pub(crate) fn agent_words(&self) -> Vec<String> {
        let root = self.root_directory.iter().flat_map(|_| volume::agent_words_of_root(self.volumes.len()));
        let volumes = self.volumes.iter().enumerate().flat_map(|(number, it)| volume::agent_words(number, it));
        self.root_words.iter().cloned().chain(root).chain(volumes).chain(self.agent_arguments.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_with_its_unit() {
        assert_eq!("512M".parse(), Ok(Mebibytes(512)));
        assert_eq!("2G".parse(), Ok(Mebibytes(2048)));
        assert_eq!("64".parse(), Ok(Mebibytes(64)));
        for bad in ["", "M", "0", "12K", "-5M", "5 5", "99999999999999999999", "99999999999999999G"] {
            assert!(bad.parse::<Mebibytes>().is_err(), "{bad}");
        }
    }
}
