//! Ports to the host: `/sys/class/virtio-ports/vport0p1` with its name. What there is, is what there was when this was mounted.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Entry;
use crate::fs::DeviceNumber;

/// A port that there is.
pub struct Port {
    /// Its file in `/dev`.
    pub file: String,
    /// That file's number.
    pub device: DeviceNumber,
    /// What the host calls it.
    pub name: Box<[u8]>,
}

/// The directory of `/sys/class`.
pub fn class(ports: &[Port]) -> (String, Entry) {
    let link = |port: &Port| (port.file.clone(), Entry::Link(format!("../../devices/virtio-ports/{}", port.file)));
    ("virtio-ports".into(), Entry::Directory(ports.iter().map(link).collect()))
}

/// The directory of `/sys/devices`.
pub fn devices(ports: Vec<Port>) -> (String, Entry) {
    let all = ports.into_iter().map(|port| {
        let DeviceNumber { major, minor } = port.device;
        let mut entries = alloc::vec![("dev".into(), Entry::Text(format!("{major}:{minor}")))];
        // As on Linux, a port without a name has no file for it.
        if !port.name.is_empty() {
            entries.push(("name".into(), Entry::Text(String::from_utf8_lossy(&port.name).into_owned())));
        }
        (port.file, Entry::Directory(entries))
    });
    ("virtio-ports".into(), Entry::Directory(all.collect()))
}
