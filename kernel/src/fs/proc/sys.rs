//! `/proc/sys`: what can be set, and what programs ask for before they rely on it.

use frame::Cx;

use super::text::Text;
use super::{Change, Entry, Target, What, directory, setting, sysvipc, text};
use crate::block;
use crate::credentials::Capability;
use crate::current::Current;
use crate::drivers::random;
use crate::error::{Errno, Result};
use crate::event::aio;
use crate::fs::notify::{self, inotify::MAX_QUEUED_EVENTS};
use crate::fs::{FILE_MAX, OpenFile, leases, most_descriptors, set_most_descriptors};
use crate::ipc::mq::limits as mq;
use crate::ipc::{msg, sem, shm};
use crate::memory::overcommit;
use crate::process::core_dump;
use crate::process::exec::RANDOMIZE_VA_SPACE;
use crate::step::{Interruption, Step, Stop, TimeSlice};
use crate::sysctl::Tunable;
use crate::{log, pipe, process, sysctl, utsname};

/// `/proc/sys`.
pub const ENTRIES: &[Entry] = &[
    directory("kernel", KERNEL),
    directory("vm", VM),
    directory("fs", FS),
    directory("net", super::net_settings::ENTRIES),
];

/// A file for a [`Tunable`].
macro_rules! tunable {
    ($name:literal, $tunable:expr) => {
        setting(
            $name,
            |text, _, _, _| number(text, $tunable.get()),
            |bytes, _, me, cx| change(&$tunable, bytes, me, cx),
        )
    };
}

/// A file for the id that the next object of a kind of System V IPC is to have.
macro_rules! next_id {
    ($name:literal, $objects:expr) => {
        setting(
            $name,
            |text, _, _, _| {
                text.add(format_args!("{}\n", $objects.asked_id()));
                Ok(())
            },
            |bytes, _, me, cx| {
                let id = told_number::<u32>(bytes, me, cx)?;
                $objects.ask_for_id(i32::try_from(id).map_err(|_| Errno::EINVAL)?);
                Ok(())
            },
        )
    };
}

const KERNEL: &[Entry] = &[
    setting("hostname", host_name, set_host_name),
    setting("domainname", domain_name, set_domain_name),
    text("ostype", |text, _, _, _| line(text, utsname::NAME)),
    text("osrelease", |text, _, _, _| line(text, utsname::RELEASE)),
    text("version", |text, _, _, _| line(text, utsname::VERSION)),
    setting(
        "pid_max",
        |text, _, _, _| number(text, u64::from(process::pid_max())),
        |bytes, _, me, cx| process::set_pid_max(told_number(bytes, me, cx)?),
    ),
    tunable!("threads-max", process::THREADS_MAX),
    text("ngroups_max", |text, _, _, _| number(text, 65536)),
    text("cap_last_cap", |text, _, _, _| number(text, u64::from(linux_raw_sys::general::CAP_LAST_CAP))),
    tunable!("randomize_va_space", RANDOMIZE_VA_SPACE),
    tunable!("dmesg_restrict", log::DMESG_RESTRICT),
    text("overflowuid", |text, _, _, _| number(text, 65534)),
    text("overflowgid", |text, _, _, _| number(text, 65534)),
    text("panic", |text, _, _, _| number(text, 0)),
    setting("printk", print_levels, set_print_level),
    setting("core_pattern", print_core_pattern, set_core_pattern),
    tunable!("core_uses_pid", core_dump::CORE_USES_PID),
    tunable!("shmmax", shm::MOST_BYTES),
    tunable!("shmall", shm::MOST_PAGES),
    tunable!("shmmni", shm::SEGMENTS.most),
    text("shm_rmid_forced", |text, _, _, _| number(text, 0)),
    setting("sem", sysvipc::show_sem, sysvipc::set_sem),
    tunable!("msgmax", msg::MOST_BYTES),
    tunable!("msgmnb", msg::MOST_IN_QUEUE),
    tunable!("msgmni", msg::QUEUES.most),
    // It does nothing any more, on Linux either.
    setting(
        "auto_msgmni",
        |text, _, _, _| number(text, 0),
        |bytes, _, me, cx| if told_number::<u8>(bytes, me, cx)? <= 1 { Ok(()) } else { Err(Errno::EINVAL) },
    ),
    next_id!("sem_next_id", sem::SETS),
    next_id!("msg_next_id", msg::QUEUES),
    next_id!("shm_next_id", shm::SEGMENTS),
    text("tainted", |text, _, _, _| number(text, 0)),
    directory("random", RANDOM),
    directory("pty", &[text("max", |text, _, _, _| number(text, 4096)), text("nr", ptys)]),
];

const RANDOM: &[Entry] = &[
    text("uuid", |text, _, _, cx| uuid(text, random::bytes(cx))),
    text("boot_id", |text, _, _, cx| uuid(text, boot_id(cx))),
    text("entropy_avail", |text, _, _, _| number(text, random::ENTROPY_BITS)),
    text("poolsize", |text, _, _, _| number(text, random::ENTROPY_BITS)),
];

const VM: &[Entry] = &[
    setting("overcommit_memory", |text, _, _, _| number(text, overcommit::policy() as u64), set_overcommit_policy),
    setting("overcommit_ratio", |text, _, _, _| number(text, overcommit::ratio() as u64), set_overcommit_ratio),
    setting(
        "overcommit_kbytes",
        |text, _, _, _| number(text, overcommit::kibibytes() as u64),
        set_overcommit_kibibytes,
    ),
    tunable!("max_map_count", crate::memory::MAX_AREAS),
    text("mmap_min_addr", |text, _, _, _| number(text, crate::memory::LOWEST as u64)),
    text("swappiness", |text, _, _, _| number(text, 0)),
    Entry {
        name: "drop_caches",
        permissions: 0o200,
        what: What::Setting(|_, _, _, _| Err(Errno::EACCES), Change::InTurns(drop_caches)),
    },
];

const MQUEUE: &[Entry] = &[
    tunable!("queues_max", mq::MOST_QUEUES),
    tunable!("msg_max", mq::MOST_MESSAGES),
    tunable!("msgsize_max", mq::MOST_BYTES),
    tunable!("msg_default", mq::DEFAULT_MESSAGES),
    tunable!("msgsize_default", mq::DEFAULT_BYTES),
];

const FS: &[Entry] = &[
    setting(
        "file-max",
        |text, _, _, _| number(text, OpenFile::most() as u64),
        |bytes, _, me, cx| change(&FILE_MAX, bytes, me, cx),
    ),
    setting(
        "nr_open",
        |text, _, _, _| number(text, most_descriptors() as u64),
        |bytes, _, me, cx| set_most_descriptors(told_number(bytes, me, cx)?),
    ),
    text("file-nr", file_numbers),
    tunable!("lease-break-time", leases::BREAK_TIME),
    tunable!("leases-enable", leases::ENABLED),
    setting(
        "pipe-max-size",
        |text, _, _, _| number(text, pipe::max_capacity() as u64),
        |bytes, _, me, cx| pipe::set_max_capacity(told_number(bytes, me, cx)?),
    ),
    tunable!("pipe-user-pages-soft", pipe::SOFT_LIMIT),
    tunable!("pipe-user-pages-hard", pipe::HARD_LIMIT),
    directory("inotify", INOTIFY),
    directory("mqueue", MQUEUE),
    tunable!("aio-max-nr", aio::MOST_EVENTS),
    text("aio-nr", |text, _, _, _| number(text, aio::events())),
    text("protected_hardlinks", |text, _, _, _| number(text, 0)),
    text("protected_symlinks", |text, _, _, _| number(text, 0)),
    text("suid_dumpable", |text, _, _, _| number(text, 0)),
];

const INOTIFY: &[Entry] = &[
    tunable!("max_queued_events", MAX_QUEUED_EVENTS),
    tunable!("max_user_instances", notify::MAX_USER_INSTANCES),
    setting(
        "max_user_watches",
        |text, _, _, _| number(text, notify::max_user_watches()),
        |bytes, _, me, cx| change(&notify::MAX_USER_WATCHES, bytes, me, cx),
    ),
];

fn set_overcommit_policy(bytes: &[u8], _target: &Target, me: &Current, cx: &Cx) -> Result<()> {
    overcommit::set_policy(match told_number::<u8>(bytes, me, cx)? {
        0 => overcommit::Policy::Heuristic,
        1 => overcommit::Policy::Always,
        2 => overcommit::Policy::Never,
        _ => return Err(Errno::EINVAL),
    });
    Ok(())
}

fn set_overcommit_ratio(bytes: &[u8], _target: &Target, me: &Current, cx: &Cx) -> Result<()> {
    overcommit::set_ratio(told_number::<u32>(bytes, me, cx)? as usize);
    Ok(())
}

fn set_overcommit_kibibytes(bytes: &[u8], _target: &Target, me: &Current, cx: &Cx) -> Result<()> {
    overcommit::set_kibibytes(told_number(bytes, me, cx)?);
    Ok(())
}

/// 1 and 3 throw out what was read of disks and is not needed. Inodes and names (2) are kept only where they are in use, or as few that it does not matter.
fn drop_caches(bytes: &[u8], _target: &Target, me: &Current, cx: &Cx) -> Step<()> {
    let which = told_number::<u32>(bytes, me, cx)?;
    if !(1..=4).contains(&which) {
        return Err(Errno::EINVAL.into());
    }
    let mut time_slice = TimeSlice::default();
    while which & 1 != 0 && block::cache::give_back() {
        if time_slice.is_over() {
            return Err(Stop::Pause(Interruption::KillOnly));
        }
    }
    Ok(())
}

fn number(text: &mut Text, value: u64) -> Result<()> {
    text.add(format_args!("{value}\n"));
    Ok(())
}

fn line(text: &mut Text, line: &str) -> Result<()> {
    text.add(format_args!("{line}\n"));
    Ok(())
}

fn file_numbers(text: &mut Text, _: &Target, _: &Current, _: &Cx) -> Result<()> {
    text.add(format_args!("{}\t0\t{}\n", OpenFile::count(), OpenFile::most()));
    Ok(())
}

fn ptys(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    number(text, crate::drivers::tty::numbers(cx).len() as u64)
}

/// A random UUID: RFC 9562, version 4.
fn uuid(text: &mut Text, random: [u8; 16]) -> Result<()> {
    let mut value = u128::from_be_bytes(random);
    value = value & !(0xf << 76) | 4 << 76;
    value = value & !(3 << 62) | 2 << 62;
    text.add(format_args!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}\n",
        value >> 96,
        value >> 80 & 0xffff,
        value >> 64 & 0xffff,
        value >> 48 & 0xffff,
        value & 0xffff_ffff_ffff
    ));
    Ok(())
}

/// The same since boot, and different at each.
fn boot_id(cx: &Cx) -> [u8; 16] {
    static ID: refs::SpinLock<Option<[u8; 16]>> = refs::SpinLock::new(None);
    *ID.lock(cx).get_or_insert_with(|| random::bytes(cx))
}

fn host_name(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    text.add_bytes(&utsname::host_name(cx));
    text.add_bytes(b"\n");
    Ok(())
}

fn print_core_pattern(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    text.add_bytes(&core_dump::pattern(cx));
    text.add_bytes(b"\n");
    Ok(())
}

fn set_core_pattern(bytes: &[u8], _target: &Target, me: &Current, cx: &Cx) -> Result<()> {
    core_dump::set_pattern(told_name(bytes, me, cx)?, cx)
}

fn domain_name(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    text.add_bytes(&utsname::domain_name(cx));
    text.add_bytes(b"\n");
    Ok(())
}

/// The number that a privileged program wrote.
fn told_number<T: TryFrom<i128>>(bytes: &[u8], me: &Current, cx: &Cx) -> Result<T> {
    me.require(Capability::SysAdmin, cx)?;
    sysctl::number(sysctl::words(bytes).next().unwrap_or_default())
}

fn change(tunable: &Tunable, bytes: &[u8], me: &Current, cx: &Cx) -> Result<()> {
    tunable.set(told_number(bytes, me, cx)?)
}

/// The level below which messages go to the console; that of messages without one, the least and the default console level.
fn print_levels(text: &mut Text, _target: &Target, _me: &Current, _cx: &Cx) -> Result<()> {
    text.add(format_args!("{}\t4\t1\t7\n", log::console_level()));
    Ok(())
}

/// The first number counts; the others stay.
fn set_print_level(bytes: &[u8], _target: &Target, me: &Current, cx: &Cx) -> Result<()> {
    log::set_console_level(told_number(bytes, me, cx)?)
}

/// A name that a privileged program wrote.
fn told_name<'a>(bytes: &'a [u8], me: &Current, cx: &Cx) -> Result<&'a [u8]> {
    me.require(Capability::SysAdmin, cx)?;
    Ok(bytes.split(|&byte| byte == b'\n' || byte == 0).next().unwrap_or(bytes))
}

fn set_host_name(bytes: &[u8], _target: &Target, me: &Current, cx: &Cx) -> Result<()> {
    utsname::set_host_name(told_name(bytes, me, cx)?, cx)
}

fn set_domain_name(bytes: &[u8], _target: &Target, me: &Current, cx: &Cx) -> Result<()> {
    utsname::set_domain_name(told_name(bytes, me, cx)?, cx)
}
