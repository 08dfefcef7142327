//! Network devices: `/sys/class/net`, as Linux's Documentation/ABI/testing/sysfs-class-net has it. The loopback device and the cards are all on no bus here. The cards are found after sysfs was made, and stay.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use frame::Cx;

use super::{Current, Entry};
use crate::error::{Errno, Result};

/// A network device.
pub struct Network {
    /// Its number.
    pub index: i32,
    /// Its name.
    pub name: &'static str,
    /// The most that it carries at once.
    pub mtu: i32,
    /// `ARPHRD_*`.
    pub hardware: u16,
    /// Its address on its link.
    pub address: [u8; 6],
    /// `IFF_*`, as programs have set them.
    pub flags: u16,
    /// Whether it is up.
    pub is_up: bool,
    /// Whether it reaches this machine alone.
    pub is_loopback: bool,
    /// How many frames wait at most to be sent.
    pub queue_length: i32,
    /// What it has received and sent.
    pub traffic: [Traffic; 2],
}

/// What has gone through a device in one direction.
#[derive(Clone, Copy)]
pub struct Traffic {
    /// Frames.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames that were lost.
    pub dropped: u64,
}

/// Tells which devices there are just now.
pub type List = fn(&Cx) -> Vec<Network>;

/// What a file tells of a device; EINVAL, EOPNOTSUPP: it does not.
type Tell = fn(&Network) -> Result<String>;

const FILES: &[(&str, Tell)] = &[
    ("addr_assign_type", |_| text("0")),
    ("addr_len", |device| text(device.address.len())),
    ("address", |device| text(hexadecimal(device.address))),
    ("broadcast", |device| text(hexadecimal(if device.is_loopback { [0; 6] } else { [0xff; 6] }))),
    ("carrier", |device| if device.is_up { text("1") } else { Err(Errno::EINVAL) }),
    ("carrier_changes", |_| text("0")),
    ("carrier_down_count", |_| text("0")),
    ("carrier_up_count", |_| text("0")),
    ("dev_id", |_| text("0x0")),
    ("dev_port", |_| text("0")),
    ("dormant", |device| if device.is_up { text("0") } else { Err(Errno::EINVAL) }),
    // A card of this kind does not say whether it sends and receives at once, nor how quickly.
    ("duplex", |device| if device.is_loopback || !device.is_up { Err(Errno::EINVAL) } else { text("unknown") }),
    ("speed", |device| if device.is_loopback || !device.is_up { Err(Errno::EINVAL) } else { text("-1") }),
    ("flags", |device| text(format!("{:#x}", device.flags))),
    ("ifindex", |device| text(device.index)),
    ("iflink", |device| text(device.index)),
    ("link_mode", |_| text("0")),
    ("mtu", |device| text(device.mtu)),
    ("name_assign_type", |device| if device.is_loopback { text("2") } else { Err(Errno::EINVAL) }),
    ("netdev_group", |_| text("0")),
    ("operstate", |device| text(operational_state(device))),
    ("phys_port_id", |_| Err(Errno::EOPNOTSUPP)),
    ("phys_port_name", |_| Err(Errno::EOPNOTSUPP)),
    ("phys_switch_id", |_| Err(Errno::EOPNOTSUPP)),
    ("proto_down", |_| text("0")),
    ("testing", |device| if device.is_up { text("0") } else { Err(Errno::EINVAL) }),
    ("tx_queue_len", |device| text(device.queue_length)),
    ("type", |device| text(device.hardware)),
    ("uevent", |device| text(format!("INTERFACE={}\nIFINDEX={}", device.name, device.index))),
];

/// What a file tells of the frames that were received, and of those that were sent.
type Count = fn([Traffic; 2]) -> u64;

/// What is counted of frames. What nothing here counts is 0.
const STATISTICS: &[(&str, Count)] = &[
    ("collisions", |_| 0),
    ("multicast", |_| 0),
    ("rx_bytes", |[received, _]| received.bytes),
    ("rx_compressed", |_| 0),
    ("rx_crc_errors", |_| 0),
    ("rx_dropped", |[received, _]| received.dropped),
    ("rx_errors", |_| 0),
    ("rx_fifo_errors", |_| 0),
    ("rx_frame_errors", |_| 0),
    ("rx_length_errors", |_| 0),
    ("rx_missed_errors", |_| 0),
    ("rx_nohandler", |_| 0),
    ("rx_over_errors", |_| 0),
    ("rx_packets", |[received, _]| received.frames),
    ("tx_aborted_errors", |_| 0),
    ("tx_bytes", |[_, sent]| sent.bytes),
    ("tx_carrier_errors", |_| 0),
    ("tx_compressed", |_| 0),
    ("tx_dropped", |[_, sent]| sent.dropped),
    ("tx_errors", |_| 0),
    ("tx_fifo_errors", |_| 0),
    ("tx_heartbeat_errors", |_| 0),
    ("tx_packets", |[_, sent]| sent.frames),
    ("tx_window_errors", |_| 0),
];

/// The directory of `/sys/class`.
pub fn class(list: List) -> (String, Entry) {
    let link = |name: &str| Entry::Link(format!("../../devices/virtual/net/{name}"));
    ("net".into(), Entry::Changing(Box::new(move |cx| each(list, cx, |device| link(device.name)))))
}

/// The directory of devices that are on no bus.
pub fn devices(list: List) -> (String, Entry) {
    ("net".into(), Entry::Changing(Box::new(move |cx| each(list, cx, |device| directory(device.index, list)))))
}

fn each(list: List, cx: &Cx, entry: impl Fn(&Network) -> Entry) -> Vec<Current> {
    let of = |device: &Network| Current { name: device.name.into(), serial: 0, entry: entry(device) };
    list(cx).iter().map(of).collect()
}

fn directory(index: i32, list: List) -> Entry {
    let find = move |cx: &Cx| list(cx).into_iter().find(|device| device.index == index).ok_or(Errno::EINVAL);
    let files = FILES.iter().map(|&(name, tell)| {
        let live = move |cx: &Cx| tell(&find(cx)?);
        (name.to_string(), Entry::Live(Box::new(live)))
    });
    let statistics = STATISTICS.iter().map(|&(name, count)| {
        let live = move |cx: &Cx| text(count(find(cx)?.traffic));
        (name.to_string(), Entry::Live(Box::new(live)))
    });
    let others = [
        ("statistics".to_string(), Entry::Directory(statistics.collect())),
        ("subsystem".to_string(), Entry::Link("../../../../class/net".into())),
    ];
    Entry::Directory(files.chain(others).collect())
}

fn text(value: impl ToString) -> Result<String> {
    Ok(value.to_string())
}

fn hexadecimal(address: [u8; 6]) -> String {
    let [a, b, c, d, e, f] = address;
    format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
}

/// RFC 2863, section 3.1.14. Nothing is known of the loopback device's link.
fn operational_state(device: &Network) -> &'static str {
    match device.is_up {
        _ if device.is_loopback => "unknown",
        true => "up",
        false => "down",
    }
}
