//! `/sys/class/net`: the loopback device, which is the only network device.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::Entry;

const NAME: &str = "lo";

/// What is told of it, as sockets tell it by ioctl(2).
const FILES: [(&str, &str); 14] = [
    ("address", "00:00:00:00:00:00"),
    ("addr_len", "6"),
    ("broadcast", "00:00:00:00:00:00"),
    ("carrier", "1"),
    ("dev_id", "0x0"),
    ("dormant", "0"),
    ("flags", "0x9"),
    ("ifindex", "1"),
    ("iflink", "1"),
    ("link_mode", "0"),
    ("mtu", "65536"),
    ("operstate", "unknown"),
    ("tx_queue_len", "1000"),
    ("type", "772"),
];

/// The class.
pub fn class() -> (String, Entry) {
    let link = Entry::Link(alloc::format!("../../devices/virtual/net/{NAME}"));
    ("net".into(), Entry::Directory(Vec::from([(NAME.into(), link)])))
}

/// The devices that are on no bus.
pub fn devices() -> (String, Entry) {
    let files = FILES.iter().map(|&(name, text)| (name.to_string(), Entry::Text(text.to_string())));
    let subsystem = ("subsystem".to_string(), Entry::Link("../../../../class/net".into()));
    let device = Entry::Directory(files.chain([subsystem]).collect());
    ("net".into(), Entry::Directory(Vec::from([(NAME.into(), device)])))
}
