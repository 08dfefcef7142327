//! The source of random numbers: `/sys/class/misc/hw_random` (Linux, Documentation/ABI/testing/sysfs-class-misc hw_random). There is one at most, which cannot be changed for another.

use alloc::format;
use alloc::string::String;
use alloc::vec;

use super::Entry;
use crate::fs::DeviceNumber;

/// A source of random numbers.
pub struct Hwrng {
    /// What Linux calls it.
    pub name: &'static str,
    /// The number of `/dev/hwrng`.
    pub device: DeviceNumber,
}

/// The directory of `/sys/class`.
pub fn class(source: Option<&Hwrng>) -> (String, Entry) {
    let link = source.map(|_| ("hw_random".into(), Entry::Link("../../devices/virtual/misc/hw_random".into())));
    ("misc".into(), Entry::Directory(link.into_iter().collect()))
}

/// The directory of `/sys/devices/virtual`.
pub fn devices(source: Option<&Hwrng>) -> (String, Entry) {
    let of = |source: &Hwrng| {
        let DeviceNumber { major, minor } = source.device;
        let text = |name: &str, text: String| (name.into(), Entry::Text(text));
        let entries = vec![
            text("dev", format!("{major}:{minor}")),
            text("rng_available", source.name.into()),
            text("rng_current", source.name.into()),
            text("rng_selected", "0".into()),
        ];
        ("hw_random".into(), Entry::Directory(entries))
    };
    ("misc".into(), Entry::Directory(source.map(of).into_iter().collect()))
}
