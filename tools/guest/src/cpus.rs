//! How many cores a machine has.

use std::fmt;
use std::num::NonZero;
use std::str::FromStr;

/// The most cores of a machine: as many as Ebb is tested with.
const MAX: usize = 8;

/// A number of cores, from 1 to 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cpus(usize);

impl Cpus {
    /// One core: the only number with which QEMU counts instructions (`-icount`).
    pub const ONE: Self = Self(1);

    /// What the machines of `make test` have unless the command line says otherwise.
    pub const TESTED: Self = Self(2);

    /// As many as this process may use of the host's, at most 8.
    pub fn of_host() -> Self {
        Self(std::thread::available_parallelism().map_or(1, NonZero::get).min(MAX))
    }

    /// The number.
    pub fn count(self) -> usize {
        self.0
    }
}

impl FromStr for Cpus {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A number that is too large for `usize` is a number all the same.
        match text.parse::<usize>() {
            Ok(0) => Err("a machine has at least one core".into()),
            Ok(count @ 1..=MAX) => Ok(Self(count)),
            Err(_) if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) => {
                Err(format!("expected a number of cores, 1 to {MAX}"))
            }
            Ok(_) | Err(_) => Err(format!("a machine has at most {MAX} cores")),
        }
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wrong_number_of_cores_has_its_message() {
        assert_eq!("1".parse(), Ok(Cpus::ONE));
        assert_eq!("8".parse(), Ok(Cpus(8)));
        for (bad, message) in [
            ("0", "at least one core"),
            ("9", "at most 8 cores"),
            ("99999999999999999999", "at most 8 cores"),
            ("", "expected a number of cores, 1 to 8"),
            ("two", "expected a number of cores, 1 to 8"),
            ("-1", "expected a number of cores, 1 to 8"),
            ("1.5", "expected a number of cores, 1 to 8"),
        ] {
            let error = bad.parse::<Cpus>().expect_err(bad);
            assert!(error.contains(message), "{bad}: {error}");
        }
    }

    #[test]
    fn a_host_has_at_least_one_core() {
        assert!(Cpus::of_host() >= Cpus::ONE);
    }
}
