//! Disks: `/sys/devices/virtioN/block/vda` with its partitions, and the links to them in `/sys/block`, `/sys/class/block` and `/sys/dev/block` (Linux, Documentation/ABI/stable/sysfs-block). The disks of the machine are those that
//! there were when this was mounted, and their partitions too; what programs make (loop devices) is in `/sys/devices/virtual/block`.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use frame::Cx;

use super::{Current, Entry};
use crate::block::{Disk, MAJOR, Volume, disks};

type Entries = Vec<(String, Entry)>;

fn text(name: &str, text: impl core::fmt::Display) -> (String, Entry) {
    (name.into(), Entry::Text(format!("{text}")))
}

fn directory(name: &str, entries: impl Into<Entries>) -> (String, Entry) {
    (name.into(), Entry::Directory(entries.into()))
}

/// What is in `/sys` of them, beside [`devices`]. `others`: more classes.
pub fn directories(others: Entries) -> Entries {
    let whole = |cx: &Cx| links(cx, "..", |volume| (volume.partition == 0).then(|| volume.name()));
    let by_name = |cx: &Cx| links(cx, "../..", |volume| Some(volume.name()));
    let by_number = |cx: &Cx| links(cx, "../..", |volume| Some(format!("{}:{}", volume.major(), volume.minor())));
    let none = || directory("char", Vec::new());
    let classes = core::iter::once(("block".into(), Entry::Changing(Box::new(by_name)))).chain(others);
    [
        ("block".into(), Entry::Changing(Box::new(whole))),
        directory("class", classes.collect::<Entries>()),
        directory("dev", [("block".into(), Entry::Changing(Box::new(by_number))), none()]),
    ]
    .into()
}

/// Links to all disks and partitions that have such a name, from a directory from which `/sys` is `up`.
fn links(cx: &Cx, up: &str, name: impl Fn(&Volume) -> Option<String>) -> Vec<Current> {
    let link = |(place, volume): (String, Volume)| {
        let entry = Entry::Link(format!("{up}/{}", path(&place, &volume)));
        Some(Current { name: name(&volume)?, serial: 0, entry })
    };
    volumes(cx).filter_map(link).collect()
}

/// What is in `/sys/devices`.
pub fn devices(cx: &Cx) -> Entries {
    let device = |(number, disk): (usize, &'static Disk)| {
        let block = directory("block", [directory(&disk.name, entries(disk, Some(number), cx))]);
        directory(&format!("virtio{number}"), [block])
    };
    known(cx).enumerate().map(device).collect()
}

/// What is in `/sys/devices/virtual` of the disks that programs make.
pub fn made_by_programs() -> (String, Entry) {
    let later = |cx: &Cx| {
        let of = |disk: &'static Disk| Current {
            name: disk.name.clone(),
            serial: 0,
            entry: Entry::Directory(entries(disk, None, cx)),
        };
        all(cx).filter(|disk| disk.major != MAJOR).map(of).collect()
    };
    ("block".into(), Entry::Changing(Box::new(later)))
}

fn all(cx: &Cx) -> impl Iterator<Item = &'static Disk> {
    disks(cx).into_iter()
}

/// The disks that were there at the start. All others are made by programs.
fn known(cx: &Cx) -> impl Iterator<Item = &'static Disk> {
    all(cx).filter(|disk| disk.major == MAJOR)
}

/// All disks and partitions, with where the disk's device is below `/sys/devices`.
fn volumes(cx: &Cx) -> impl Iterator<Item = (String, Volume)> {
    let places = known(cx).enumerate().map(|(number, disk)| (format!("virtio{number}"), disk));
    let places = places.chain(all(cx).filter(|disk| disk.major != MAJOR).map(|disk| ("virtual".into(), disk)));
    places.flat_map(|(place, disk)| disk.volumes(cx).into_iter().map(move |volume| (place.clone(), volume)))
}

/// Where a disk or partition is, below `/sys`.
fn path(place: &str, volume: &Volume) -> String {
    let disk = format!("devices/{place}/block/{}", volume.disk.name);
    if volume.partition == 0 { disk } else { format!("{disk}/{}", volume.name()) }
}

/// A file whose text is made when it is read.
fn live<T: core::fmt::Display>(name: &str, text: impl Fn(&Cx) -> T + Send + Sync + 'static) -> (String, Entry) {
    (name.into(), Entry::Live(Box::new(move |cx| Ok(format!("{}", text(cx))))))
}

/// What disks and partitions have in common.
fn shared(volume: Volume) -> Entries {
    let limits = volume.disk.device.limits();
    [
        text("dev", format_args!("{}:{}", volume.major(), volume.minor())),
        live("size", move |_| volume.sectors()),
        live("ro", move |_| u8::from(volume.is_read_only())),
        text("alignment_offset", limits.alignment_offset),
        text("discard_alignment", 0),
        live("stat", move |_| volume.statistics().map(|figure| format!("{figure:>8}")).join(" ")),
        text("inflight", format_args!("{:>8} {:>8}", 0, 0)),
        directory("holders", Vec::new()),
    ]
    .into()
}

/// What is in the directory of a disk. `number`: that of the device which it is on.
fn entries(disk: &'static Disk, number: Option<usize>, cx: &Cx) -> Entries {
    let mut all = Vec::new();
    for volume in disk.volumes(cx) {
        let mut own = shared(volume);
        if volume.partition == 0 {
            own.extend([
                text("removable", 0),
                text("range", 16),
                text("ext_range", 16),
                text("capability", 0),
                text("hidden", 0),
                text("serial", &disk.serial),
                directory("queue", queue(disk)),
                directory("slaves", Vec::new()),
            ]);
            own.extend(number.map(|number| ("device".into(), Entry::Link(format!("../../../virtio{number}")))));
            own.extend(details(disk, cx));
            all.extend(own);
        } else {
            own.extend([text("partition", volume.partition), text("start", volume.start)]);
            all.push(directory(&volume.name(), own));
        }
    }
    all
}

/// The directory with what its device tells of itself.
fn details(disk: &'static Disk, cx: &Cx) -> Option<(String, Entry)> {
    let (name, files) = disk.device.details(cx)?;
    let file = |(name, _): (&'static str, String)| {
        live(name, move |cx| {
            let files = disk.device.details(cx).map(|(_, files)| files).unwrap_or_default();
            files.into_iter().find(|(own, _)| *own == name).map(|(_, text)| text).unwrap_or_default()
        })
    };
    Some(directory(name, files.into_iter().map(file).collect::<Entries>()))
}

fn queue(disk: &'static Disk) -> Entries {
    let limits = disk.device.limits();
    let bytes = |sectors: u32| u64::from(sectors) * 512;
    [
        live("logical_block_size", |_| disk.device.geometry().logical_block),
        text("hw_sector_size", limits.logical_block),
        text("physical_block_size", limits.physical_block),
        text("minimum_io_size", limits.smallest_io),
        text("optimal_io_size", limits.best_io),
        text("max_sectors_kb", limits.most_frames * 4),
        text("max_hw_sectors_kb", limits.most_frames * 4),
        text("max_segments", limits.most_frames),
        text("nr_requests", limits.depth),
        live("read_ahead_kb", |_| disk.read_ahead_sectors() / 2),
        text("rotational", 0),
        text("add_random", 0),
        // Memory may be aligned as it likes: one less than the least.
        text("dma_alignment", 0),
        text("nomerges", 0),
        text("scheduler", "[none]"),
        text("write_cache", if limits.has_cache { "write back" } else { "write through" }),
        text("discard_granularity", if limits.most_discard > 0 { limits.logical_block } else { 0 }),
        text("discard_max_bytes", bytes(limits.most_discard)),
        text("discard_zeroes_data", 0),
        text("write_zeroes_max_bytes", bytes(limits.most_zeroes)),
        text("zoned", "none"),
        text("fua", 0),
        text("dax", 0),
    ]
    .into()
}
