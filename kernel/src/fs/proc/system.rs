//! What procfs tells about the machine: `/proc/meminfo` and the like.

use alloc::vec::Vec;

use frame::Cx;
use frame::mm::PAGE_SIZE;
use refs::SpinLock;

use super::text::{Line, Text};
use super::{Entry, Target, What, directory, net, sys, sysvipc, text};
use crate::current::Current;
use crate::drivers::input;
use crate::error::{Errno, Result};
use crate::fs::path::UNREACHABLE;
use crate::fs::types::{self, Origin};
use crate::fs::{Inode, MOUNTS, Mount, MountFlags, Path};
use crate::memory::overcommit;
use crate::process::THREADS;
use crate::sched::load_average;
use crate::time::{SECOND, clock};
use crate::{arch, block, cgroup, process, sched, utsname};

/// The entries of the root that are no processes.
pub const ENTRIES: &[Entry] = &[
    Entry {
        name: "self",
        permissions: 0o777,
        what: What::Link(|_, me, cx| Ok(alloc::format!("{}", me.process(cx)?.pid).into_bytes())),
    },
    Entry { name: "thread-self", permissions: 0o777, what: What::Link(thread_self) },
    Entry { name: "mounts", permissions: 0o777, what: What::Link(|_, _, _| Ok(b"self/mounts".to_vec())) },
    directory("net", net::ENTRIES),
    text("meminfo", meminfo),
    text("stat", stat),
    text("uptime", uptime),
    text("loadavg", loadavg),
    text("version", version),
    text("cpuinfo", cpuinfo),
    text("filesystems", filesystems),
    text("cgroups", cgroups),
    text("cmdline", cmdline),
    text("devices", devices),
    text("partitions", partitions),
    text("swaps", |text, _, _, _| add(text, "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n")),
    text("diskstats", diskstats),
    text("modules", |_, _, _, _| Ok(())),
    text("interrupts", interrupts),
    text("vmstat", vmstat),
    directory("sys", sys::ENTRIES),
    directory("sysvipc", sysvipc::ENTRIES),
    directory("bus", &[directory("input", &[text("devices", input_devices)])]),
    directory("tty", &[text("drivers", drivers)]),
    #[cfg(any(feature = "stretch", feature = "check-locks"))]
    directory(
        "ebb",
        &[
            #[cfg(feature = "stretch")]
            super::stretch::ENTRY,
            #[cfg(feature = "check-locks")]
            super::locks::ENTRY,
        ],
    ),
];

static COMMAND_LINE: SpinLock<&'static str> = SpinLock::new("");

/// Tells procfs the kernel's command line.
pub fn set_command_line(line: &'static str) {
    COMMAND_LINE.with(|kept| *kept = line);
}

fn add(text: &mut Text, line: &str) -> Result<()> {
    text.add_bytes(line.as_bytes());
    Ok(())
}

fn thread_self(_target: &Target, me: &Current, cx: &Cx) -> Result<alloc::vec::Vec<u8>> {
    Ok(alloc::format!("{}/task/{}", me.process(cx)?.pid, me.thread(cx)?.tid()).into_bytes())
}

/// The controllers of control groups, all in the one hierarchy that there is.
fn cgroups(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    let count = cgroup::root(cx)?.descendants() + 1;
    text.add(format_args!("#subsys_name\thierarchy\tnum_cgroups\tenabled\n"));
    for controller in cgroup::CONTROLLERS {
        text.add(format_args!("{}\t0\t{count}\t1\n", controller.name));
    }
    Ok(())
}

fn meminfo(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    let kib = |pages: usize| pages * (PAGE_SIZE / 1024);
    let (total, free) = (frame::mm::frame_count(), frame::mm::free_frames());
    // What file systems in memory hold is what Linux calls cached and shared.
    let mut stored = 0;
    for mount in MOUNTS.all(cx) {
        let file_system = mount.file_system.get(cx);
        stored += file_system.capacity.used_pages.load(core::sync::atomic::Ordering::Relaxed) as usize;
    }
    let stored = stored.min(total.saturating_sub(free));
    // The page cache of devices: what is clean counts as free.
    let cached = block::cache::clean_pages() + block::cache::dirty_pages();
    for (name, value) in [
        ("MemTotal", kib(total)),
        ("MemFree", kib(free.saturating_sub(block::cache::clean_pages()))),
        ("MemAvailable", kib(free)),
        ("Buffers", 0),
        ("Cached", kib(stored + cached)),
        ("SwapCached", 0),
        ("Active", kib(total.saturating_sub(free))),
        ("Inactive", 0),
        ("SwapTotal", 0),
        ("SwapFree", 0),
        ("Dirty", kib(block::cache::dirty_pages())),
        ("Writeback", 0),
        ("AnonPages", kib(total.saturating_sub(free + stored + block::cache::dirty_pages()))),
        ("Mapped", 0),
        ("Shmem", kib(stored)),
        ("Slab", 0),
        ("SReclaimable", 0),
        ("SUnreclaim", 0),
        ("PageTables", 0),
        ("CommitLimit", kib(overcommit::limit())),
        ("Committed_AS", kib(overcommit::committed() + stored)),
        ("HugePages_Total", 0),
        ("Hugepagesize", 2048),
    ] {
        let unit = if name.starts_with("HugePages_") { "" } else { " kB" };
        text.add(format_args!("{:<16}{value:8}{unit}\n", alloc::format!("{name}:")));
    }
    Ok(())
}

/// All disks and partitions.
fn volumes(cx: &Cx) -> impl Iterator<Item = block::Volume> {
    block::disks(cx).into_iter().flat_map(|disk| disk.volumes(cx))
}

fn partitions(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    add(text, "major minor  #blocks  name\n\n")?;
    for volume in volumes(cx).filter(|volume| volume.sectors() > 0) {
        let (kib, minor) = (volume.sectors() / 2, volume.minor());
        text.add(format_args!("{:4}  {minor:7} {kib:10} {}\n", volume.major(), volume.name()));
    }
    Ok(())
}

fn diskstats(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    for volume in volumes(cx) {
        text.add(format_args!("{:4} {:7} {}", volume.major(), volume.minor(), volume.name()));
        for figure in volume.statistics() {
            text.add(format_args!(" {figure}"));
        }
        text.add(format_args!("\n"));
    }
    Ok(())
}

/// For how long a core had nothing to do until now, in nanoseconds, if it ran programs for so long.
fn idle(ran: u64) -> u64 {
    frame::time::now().saturating_sub(ran)
}

/// What Linux' `cpu` lines say, in nanoseconds.
#[derive(Default)]
struct CpuTimes {
    user: u64,
    system: u64,
    idle: u64,
}

impl CpuTimes {
    /// One line; that of all cores if `core` is `None`.
    fn line(&self, text: &mut Text, core: Option<usize>) {
        const TICK: u64 = SECOND / 100;
        let mut line = Line::new();
        line.add(*b"cpu");
        match core {
            Some(core) => line.add_decimal(core as u64),
            // Two spaces, as Linux has them.
            None => line.add(*b" "),
        }
        line.add(*b" ");
        line.add_decimal(self.user / TICK);
        line.add(*b" 0 ");
        line.add_decimal(self.system / TICK);
        line.add(*b" ");
        line.add_decimal(self.idle / TICK);
        line.add(*b" 0 0 0 0 0 0\n");
        text.add_bytes(line.bytes());
    }
}

fn stat(text: &mut Text, _target: &Target, _me: &Current, _cx: &Cx) -> Result<()> {
    let (mut all, mut cores, mut switches) = (CpuTimes::default(), Vec::new(), 0);
    cores.try_reserve_exact(frame::cpu::count()).map_err(|_| Errno::ENOMEM)?;
    for done in sched::done_by_cores() {
        let times = CpuTimes { user: done.ran - done.system, system: done.system, idle: idle(done.ran) };
        all.user += times.user;
        all.system += times.system;
        all.idle += times.idle;
        switches += done.switches;
        cores.push(times);
    }
    all.line(text, None);
    for (core, times) in cores.iter().enumerate() {
        times.line(text, Some(core));
    }
    text.add(format_args!(
        "intr 0\nctxt {switches}\nbtime {}\nprocesses {}\nprocs_running {}\nprocs_blocked 0\n",
        clock::boot_time() / SECOND,
        process::last_pid(),
        sched::load().max(1)
    ));
    Ok(())
}

fn uptime(text: &mut Text, _target: &Target, _me: &Current, _cx: &Cx) -> Result<()> {
    const HUNDREDTH: u64 = SECOND / 100;
    let idle: u64 = sched::done_by_cores().map(|done| idle(done.ran)).sum();
    let (up, idle) = (frame::time::now() / HUNDREDTH, idle / HUNDREDTH);
    text.add(format_args!("{}.{:02} {}.{:02}\n", up / 100, up % 100, idle / 100, idle % 100));
    Ok(())
}

fn loadavg(text: &mut Text, _target: &Target, _me: &Current, _cx: &Cx) -> Result<()> {
    for average in load_average::averages() {
        // Rounded to hundredths.
        let hundredths = (average * 100 + (1 << (load_average::SHIFT - 1))) >> load_average::SHIFT;
        text.add(format_args!("{}.{:02} ", hundredths / 100, hundredths % 100));
    }
    text.add(format_args!("{}/{} {}\n", sched::load().max(1), THREADS.len(), process::last_pid()));
    Ok(())
}

fn version(text: &mut Text, _target: &Target, _me: &Current, _cx: &Cx) -> Result<()> {
    text.add(format_args!("{} version {} {}\n", utsname::NAME, utsname::RELEASE, utsname::VERSION));
    Ok(())
}

fn cpuinfo(text: &mut Text, _target: &Target, _me: &Current, _cx: &Cx) -> Result<()> {
    let kilohertz = frame::time::tsc_hertz() / 1000;
    let count = frame::cpu::count();
    for core in 0..count {
        text.add(format_args!(
            "processor\t: {core}\nvendor_id\t: unknown\nmodel name\t: {}\ncpu MHz\t\t: {}.{:03}\nphysical id\t: 0\nsiblings\t: {count}\ncore id\t\t: {core}\n\
             cpu cores\t: {count}\nfpu\t\t: yes\nflags\t\t: fpu tsc msr cx8 apic sep cmov mmx fxsr sse sse2 syscall nx lm\n\
             clflush size\t: 64\naddress sizes\t: 40 bits physical, 48 bits virtual\n\n",
            arch::MACHINE,
            kilohertz / 1000,
            kilohertz % 1000,
        ));
    }
    Ok(())
}

/// A column for each core; only of those that cores send to each other to forget page tables is said how often they came.
fn interrupts(text: &mut Text, _target: &Target, _me: &Current, _cx: &Cx) -> Result<()> {
    text.add_bytes(b"    ");
    for core in 0..frame::cpu::count() {
        text.add(format_args!("       CPU{core}"));
    }
    text.add_bytes(b"\nTLB:");
    for core in 0..frame::cpu::count() {
        text.add(format_args!(" {:10}", frame::cpu::shootdowns(core)));
    }
    add(text, "   TLB shootdowns\n")
}

fn filesystems(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    for kind in types::types(cx) {
        let device = if matches!(kind.origin, Origin::Memory(_)) { "nodev" } else { "" };
        text.add(format_args!("{device}\t{}\n", kind.name));
    }
    Ok(())
}

fn cmdline(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    let line = *COMMAND_LINE.lock(cx);
    text.add(format_args!("{line}\n"));
    Ok(())
}

fn devices(text: &mut Text, _target: &Target, _me: &Current, _cx: &Cx) -> Result<()> {
    let lines = "Character devices:\n  1 mem\n  4 ttyS\n  5 /dev/tty\n  5 /dev/console\n  5 /dev/ptmx\n 13 input\n136 pts\n\nBlock devices:\n";
    add(text, lines)
}

fn input_devices(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    add(text, &input::show::list(cx))
}

fn drivers(text: &mut Text, _target: &Target, _me: &Current, _cx: &Cx) -> Result<()> {
    for (name, path, major, minors, kind) in [
        ("/dev/tty", "/dev/tty", 5, "0", "system:/dev/tty"),
        ("/dev/console", "/dev/console", 5, "1", "system:console"),
        ("/dev/ptmx", "/dev/ptmx", 5, "2", "system"),
        ("serial", "/dev/ttyS", 4, "64-67", "serial"),
        ("pty_slave", "/dev/pts", 136, "0-1048575", "pty:slave"),
    ] {
        text.add(format_args!("{name:<20} {path:<13} {major:3} {minors} {kind}\n"));
    }
    Ok(())
}

fn vmstat(text: &mut Text, _target: &Target, _me: &Current, _cx: &Cx) -> Result<()> {
    text.add(format_args!("nr_free_pages {}\npgpgin 0\npgpgout 0\npswpin 0\npswpout 0\n", frame::mm::free_frames()));
    Ok(())
}

/// The options of a mount, as mount(8) shows them.
fn add_options(text: &mut Text, mount: &Mount) {
    const OPTIONS: [(MountFlags, &str); 7] = [
        (MountFlags::NO_SUID, ",nosuid"),
        (MountFlags::NO_DEVICES, ",nodev"),
        (MountFlags::NO_EXEC, ",noexec"),
        (MountFlags::NO_ATIME, ",noatime"),
        (MountFlags::NO_DIRECTORY_ATIME, ",nodiratime"),
        (MountFlags::RELATIVE_ATIME, ",relatime"),
        (MountFlags::NO_SYMLINK_FOLLOW, ",nosymfollow"),
    ];
    let flags = mount.flags();
    text.add(format_args!("{}", if flags.contains(MountFlags::READ_ONLY) { "ro" } else { "rw" }));
    for (flag, name) in OPTIONS {
        if flags.contains(flag) {
            text.add(format_args!("{name}"));
        }
    }
}

/// Calls `each` with each mount that the caller can reach, and the name of its mount point as the caller sees it, until the text's part is over.
fn each_mount(text: &mut Text, me: &Current, cx: &Cx, mut each: impl FnMut(&mut Text, &Mount, &[u8])) -> Result<()> {
    let places = me.fs(cx)?;
    let root = places.root(cx)?;
    for (number, mount) in (1..).zip(MOUNTS.of_namespace(cx)).skip(text.part() as usize) {
        let Ok(inode) = mount.root.downgrade().upgrade(cx) else { continue };
        // One that is nested too deep for a name is left out.
        let Ok(name) = (Path { mount: mount.clone(), inode }).name(&root, cx) else { continue };
        if !name.starts_with(UNREACHABLE) {
            each(text, &mount, &name);
        }
        if text.ends_part(number) {
            break;
        }
    }
    Ok(())
}

/// `/proc/PID/mounts`.
pub fn mounts(text: &mut Text, _target: &Target, me: &Current, cx: &Cx) -> Result<()> {
    each_mount(text, me, cx, |text, mount, point| {
        let file_system = mount.file_system.get(cx);
        text.add_name(if mount.source.is_empty() { b"none" } else { &mount.source });
        text.add(format_args!(" "));
        text.add_name(point);
        text.add(format_args!(" {} ", file_system.name));
        add_options(text, mount);
        text.add_bytes(&file_system.options.lock(cx));
        text.add(format_args!(" 0 0\n"));
    })
}

/// The optional fields of `/proc/PID/mountinfo`.
fn add_propagation(text: &mut Text, mount: &Mount, cx: &Cx) {
    let propagation = mount.propagation(cx);
    for (name, group) in [("shared", propagation.group), ("master", propagation.master)] {
        if let Some(group) = group {
            text.add(format_args!(" {name}:{}", group.0));
        }
    }
    if propagation.is_unbindable {
        text.add(format_args!(" unbindable"));
    }
}

/// `/proc/PID/mountinfo`.
pub fn mountinfo(text: &mut Text, _target: &Target, me: &Current, cx: &Cx) -> Result<()> {
    each_mount(text, me, cx, |text, mount, point| {
        let file_system = mount.file_system.get(cx);
        let parent = mount.point(cx).map_or(mount.id, |point| point.mount.id);
        text.add(format_args!("{} {parent} 0:{} ", mount.id, file_system.device));
        text.add_name(&Inode::name_in_file_system(&mount.root.get(cx), cx));
        text.add(format_args!(" "));
        text.add_name(point);
        text.add(format_args!(" "));
        add_options(text, mount);
        add_propagation(text, mount, cx);
        text.add(format_args!(" - {} ", file_system.name));
        text.add_name(if mount.source.is_empty() { b"none" } else { &mount.source });
        text.add(format_args!(" rw"));
        text.add_bytes(&file_system.options.lock(cx));
        text.add(format_args!("\n"));
    })
}
