//! Ports to the host: `/sys/class/virtio-ports/vport0p1` with its name. What there is, is what there was when this was mounted.

use alloc::format;
use alloc::string::String;

use frame::Cx;

use super::Entry;
use crate::drivers::vport::{MAJOR, ports};

/// The directory of `/sys/class`.
pub fn class(cx: &Cx) -> (String, Entry) {
    let link = |file: String| {
        let target = Entry::Link(format!("../../devices/virtio-ports/{file}"));
        (file, target)
    };
    ("virtio-ports".into(), Entry::Directory(ports(cx).into_iter().map(|port| link(port.file)).collect()))
}

/// The directory of `/sys/devices`.
pub fn devices(cx: &Cx) -> (String, Entry) {
    let all = ports(cx).into_iter().map(|port| {
        let mut entries = alloc::vec![("dev".into(), Entry::Text(format!("{MAJOR}:{}", port.minor)))];
        // As on Linux, a port without a name has no file for it.
        if !port.name.is_empty() {
            entries.push(("name".into(), Entry::Text(String::from_utf8_lossy(&port.name).into_owned())));
        }
        (port.file, Entry::Directory(entries))
    });
    ("virtio-ports".into(), Entry::Directory(all.collect()))
}
