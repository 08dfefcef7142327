//! Disks: `/sys/devices/virtioN/block/vda` with its partitions, and the links to them in `/sys/block`, `/sys/class/block` and `/sys/dev/block` (Linux, Documentation/ABI/stable/sysfs-block). What there is, is what
//! there was when this was mounted.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use frame::Cx;

use super::Entry;
use crate::block::{Disk, Limits, MAJOR, Volume, disks};

type Entries = Vec<(String, Entry)>;

fn text(name: &str, text: impl core::fmt::Display) -> (String, Entry) {
    (name.into(), Entry::Text(format!("{text}")))
}

fn directory(name: &str, entries: impl Into<Entries>) -> (String, Entry) {
    (name.into(), Entry::Directory(entries.into()))
}

/// What is in `/sys` of them, beside [`devices`]. `others`: more classes.
pub fn directories(others: Entries, cx: &Cx) -> Entries {
    let all: Vec<(usize, Volume)> = volumes(cx).collect();
    let whole: Entries = all
        .iter()
        .filter(|(_, volume)| volume.partition == 0)
        .map(|(number, volume)| (volume.name(), Entry::Link(format!("../{}", path(*number, volume)))))
        .collect();
    let by_name: Entries = all
        .iter()
        .map(|(number, volume)| (volume.name(), Entry::Link(format!("../../{}", path(*number, volume)))))
        .collect();
    let by_number: Entries = all
        .iter()
        .map(|(number, volume)| {
            (format!("{MAJOR}:{}", volume.minor()), Entry::Link(format!("../../{}", path(*number, volume))))
        })
        .collect();
    let none = || directory("char", Vec::new());
    [
        directory("block", whole),
        directory("class", core::iter::once(directory("block", by_name)).chain(others).collect::<Entries>()),
        directory("dev", [directory("block", by_number), none()]),
    ]
    .into()
}

/// What is in `/sys/devices`.
pub fn devices(cx: &Cx) -> Entries {
    let device = |(number, disk): (usize, &'static Disk)| {
        let block = directory("block", [directory(&disk.name, entries(number, disk, cx))]);
        directory(&format!("virtio{number}"), [block])
    };
    known(cx).enumerate().map(device).collect()
}

/// The disks that were there at the start.
fn known(cx: &Cx) -> impl Iterator<Item = &'static Disk> {
    disks(cx).into_iter().filter(|disk| disk.major == MAJOR)
}

fn volumes(cx: &Cx) -> impl Iterator<Item = (usize, Volume)> {
    let of = |(number, disk): (usize, &'static Disk)| disk.volumes(cx).into_iter().map(move |volume| (number, volume));
    known(cx).enumerate().flat_map(of)
}

/// Where a disk or partition is, below `/sys`.
fn path(number: usize, volume: &Volume) -> String {
    let disk = format!("devices/virtio{number}/block/{}", volume.disk.name);
    if volume.partition == 0 { disk } else { format!("{disk}/{}", volume.name()) }
}

/// What disks and partitions have in common.
fn shared(volume: Volume) -> Entries {
    let limits = volume.disk.device.limits();
    let stat = move |_: &Cx| volume.statistics().map(|figure| format!("{figure:>8}")).join(" ");
    [
        text("dev", format_args!("{MAJOR}:{}", volume.minor())),
        text("size", volume.sectors()),
        text("ro", u8::from(limits.is_read_only)),
        text("alignment_offset", limits.alignment_offset),
        text("discard_alignment", 0),
        ("stat".into(), Entry::Live(Box::new(stat))),
        text("inflight", format_args!("{:>8} {:>8}", 0, 0)),
        directory("holders", Vec::new()),
    ]
    .into()
}

fn entries(number: usize, disk: &'static Disk, cx: &Cx) -> Entries {
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
                directory("queue", queue(disk.device.limits())),
                directory("slaves", Vec::new()),
                ("device".into(), Entry::Link(format!("../../../virtio{number}"))),
            ]);
            all.extend(own);
        } else {
            own.extend([text("partition", volume.partition), text("start", volume.start)]);
            all.push(directory(&volume.name(), own));
        }
    }
    all
}

fn queue(limits: &Limits) -> Entries {
    let bytes = |sectors: u32| u64::from(sectors) * 512;
    [
        text("logical_block_size", limits.logical_block),
        text("hw_sector_size", limits.logical_block),
        text("physical_block_size", limits.physical_block),
        text("minimum_io_size", limits.smallest_io),
        text("optimal_io_size", limits.best_io),
        text("max_sectors_kb", limits.most_frames * 4),
        text("max_hw_sectors_kb", limits.most_frames * 4),
        text("max_segments", limits.most_frames),
        text("nr_requests", limits.depth),
        text("read_ahead_kb", 1024),
        text("rotational", 0),
        text("add_random", 0),
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
