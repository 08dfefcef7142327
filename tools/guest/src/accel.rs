//! How QEMU executes the guest's instructions.

use crate::{Cpus, Error, Result};
use std::fs;
use std::str::FromStr;

/// The accelerator a caller asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Accel {
    /// KVM where the processor has virtualisation and `/dev/kvm` opens, software emulation elsewhere.
    #[default]
    Auto,
    /// Software emulation.
    Tcg,
    /// The processor's virtualisation, or an error.
    Kvm,
}

impl FromStr for Accel {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "tcg" => Ok(Self::Tcg),
            "kvm" => Ok(Self::Kvm),
            _ => Err("expected auto, tcg or kvm".into()),
        }
    }
}

impl Accel {
    /// What QEMU is told of the accelerator on this machine.
    pub(crate) fn choose(self, cpus: Cpus) -> Result<&'static str> {
        match (self, kvm_obstacle()) {
            (Self::Tcg, _) | (Self::Auto, Some(_)) => Ok(emulation(cpus)),
            (Self::Kvm, Some(obstacle)) => Err(Error::KvmUnusable(obstacle)),
            (Self::Auto | Self::Kvm, None) => Ok("kvm"),
        }
    }

    /// Why KVM cannot be used on this machine; `None` if it can.
    pub fn kvm_obstacle() -> Option<String> {
        kvm_obstacle()
    }
}

/// What QEMU is told of software emulation: several cores run at the same time, each in a thread of its own.
pub(crate) fn emulation(cpus: Cpus) -> &'static str {
    if cpus == Cpus::ONE { "tcg" } else { "tcg,thread=multi" }
}

fn kvm_obstacle() -> Option<String> {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    if !shows_virtualisation(&cpuinfo) {
        // A /dev/kvm may exist all the same, in containers; it proves nothing.
        return Some("the processor shows neither vmx nor svm".into());
    }
    fs::OpenOptions::new().read(true).write(true).open("/dev/kvm").err().map(|error| format!("/dev/kvm: {error}"))
}

fn shows_virtualisation(cpuinfo: &str) -> bool {
    cpuinfo
        .lines()
        .filter(|line| line.starts_with("flags"))
        .any(|line| line.split_ascii_whitespace().any(|flag| flag == "vmx" || flag == "svm"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtualisation_is_a_flag_of_the_processor_not_a_part_of_another() {
        assert!(shows_virtualisation("processor: 0\nflags\t\t: fpu vmx sse\n"));
        assert!(shows_virtualisation("flags : svm"));
        assert!(!shows_virtualisation("flags : fpu svm_lock\nbugs : vmx\n"));
        assert!(!shows_virtualisation(""));
    }
}
