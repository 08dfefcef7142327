//! Input devices: `/sys/devices/input/input0` with its `event0`, and the links to both in `/sys/class/input`. They come and go.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use frame::Cx;
use refs::{NoSuspend, SpinLock};

use super::{Current, Entry};
use crate::fs::DeviceNumber;

/// A device that there is.
pub struct Input {
    /// What its names end with.
    pub number: usize,
    /// Another device of that number has another one.
    pub serial: u64,
    /// The number of its file in `/dev/input`.
    pub device: DeviceNumber,
    /// Files with texts.
    pub texts: [(&'static str, String); 3],
    /// Files with its numbers.
    pub id: [(&'static str, u16); 4],
    /// Files with the bits of what it can have.
    pub capabilities: [(String, String); 9],
}

/// Tells which devices there are just now.
pub type List = fn(&Cx) -> Vec<Input>;

static LIST: SpinLock<Option<List>> = SpinLock::new(None);

/// Says who knows the devices.
pub fn register(list: List, cx: &impl NoSuspend) {
    *LIST.lock(cx) = Some(list);
}

fn all(cx: &Cx) -> Vec<Input> {
    let list = *LIST.lock(cx);
    list.map_or_else(Vec::new, |list| list(cx))
}

/// The directory of `/sys/class`.
pub fn class() -> (String, Entry) {
    let links = |cx: &Cx| {
        let of = |input: Input| {
            let (number, serial) = (input.number, input.serial);
            let link = |name: String, path: String| Current { name, serial, entry: Entry::Link(path) };
            [
                link(format!("input{number}"), format!("../../devices/input/input{number}")),
                link(format!("event{number}"), format!("../../devices/input/input{number}/event{number}")),
            ]
        };
        all(cx).into_iter().flat_map(of).collect()
    };
    ("input".into(), Entry::Changing(Box::new(links)))
}

/// The directory of `/sys/devices`.
pub fn devices() -> (String, Entry) {
    let directories = |cx: &Cx| {
        let of = |input: Input| Current {
            name: format!("input{}", input.number),
            serial: input.serial,
            entry: Entry::Directory(entries(input)),
        };
        all(cx).into_iter().map(of).collect()
    };
    ("input".into(), Entry::Changing(Box::new(directories)))
}

fn entries(input: Input) -> Vec<(String, Entry)> {
    let Input { number, device, texts, id, capabilities, .. } = input;
    let text = |name: &str, text: String| (String::from(name), Entry::Text(text));
    let DeviceNumber { major, minor } = device;
    let uevent = format!("MAJOR={major}\nMINOR={minor}\nDEVNAME=input/event{number}");
    let event = vec![
        text("dev", format!("{major}:{minor}")),
        text("uevent", uevent),
        ("device".into(), Entry::Link(format!("../../input{number}"))),
    ];
    let mut all: Vec<(String, Entry)> = texts.into_iter().map(|(name, value)| text(name, value)).collect();
    all.push(text("properties", "0".into()));
    let id = id.map(|(name, value)| text(name, format!("{value:04x}")));
    all.push(("id".into(), Entry::Directory(id.into())));
    let capabilities = capabilities.map(|(name, bits)| text(&name, bits));
    all.push(("capabilities".into(), Entry::Directory(capabilities.into())));
    all.push((format!("event{number}"), Entry::Directory(event)));
    all
}
