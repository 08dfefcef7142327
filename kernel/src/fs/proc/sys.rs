//! `/proc/sys`: what can be set, and what programs ask for before they rely on it.

use frame::Cx;

use super::text::Text;
use super::{Entry, Target, directory, setting, text};
use crate::credentials::Capability;
use crate::current::Current;
use crate::drivers::random;
use crate::error::{Errno, Result};
use crate::fs::{OpenFile, most_descriptors, set_most_descriptors};
use crate::memory::overcommit;
use crate::pipe;
use crate::process;
use crate::utsname;

/// `/proc/sys`.
pub const ENTRIES: &[Entry] = &[
    directory("kernel", KERNEL),
    directory("vm", VM),
    directory("fs", FS),
    directory("net", &[directory("core", &[text("somaxconn", |text, _, _, _| number(text, 4096))])]),
];

const KERNEL: &[Entry] = &[
    setting("hostname", host_name, set_host_name),
    setting("domainname", domain_name, set_domain_name),
    text("ostype", |text, _, _, _| line(text, utsname::NAME)),
    text("osrelease", |text, _, _, _| line(text, utsname::RELEASE)),
    text("version", |text, _, _, _| line(text, utsname::VERSION)),
    setting(
        "pid_max",
        |text, _, _, _| number(text, u64::from(process::pid_max())),
        |bytes, _, _, _| process::set_pid_max(parse(bytes)?),
    ),
    text("threads-max", |text, _, _, _| number(text, u64::from(process::pid_max()))),
    text("ngroups_max", |text, _, _, _| number(text, 65536)),
    text("cap_last_cap", |text, _, _, _| number(text, u64::from(linux_raw_sys::general::CAP_LAST_CAP))),
    text("randomize_va_space", |text, _, _, _| number(text, 0)),
    text("overflowuid", |text, _, _, _| number(text, 65534)),
    text("overflowgid", |text, _, _, _| number(text, 65534)),
    text("panic", |text, _, _, _| number(text, 0)),
    text("printk", |text, _, _, _| line(text, "4\t4\t1\t7")),
    text("core_pattern", |text, _, _, _| line(text, "core")),
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
    text("max_map_count", |text, _, _, _| number(text, crate::memory::MAX_AREAS as u64)),
    text("mmap_min_addr", |text, _, _, _| number(text, crate::memory::LOWEST as u64)),
    text("swappiness", |text, _, _, _| number(text, 0)),
];

const FS: &[Entry] = &[
    text("file-max", |text, _, _, _| number(text, OpenFile::most() as u64)),
    setting(
        "nr_open",
        |text, _, _, _| number(text, most_descriptors() as u64),
        |bytes, _, _, _| set_most_descriptors(parse(bytes)?),
    ),
    text("file-nr", file_numbers),
    setting(
        "pipe-max-size",
        |text, _, _, _| number(text, pipe::max_capacity() as u64),
        |bytes, _, _, _| pipe::set_max_capacity(parse(bytes)?),
    ),
    text("protected_hardlinks", |text, _, _, _| number(text, 0)),
    text("protected_symlinks", |text, _, _, _| number(text, 0)),
    text("suid_dumpable", |text, _, _, _| number(text, 0)),
];

fn set_overcommit_policy(bytes: &[u8], _target: &Target, _me: &Current, _cx: &Cx) -> Result<()> {
    overcommit::set_policy(match parse::<u8>(bytes)? {
        0 => overcommit::Policy::Heuristic,
        1 => overcommit::Policy::Always,
        2 => overcommit::Policy::Never,
        _ => return Err(Errno::EINVAL),
    });
    Ok(())
}

fn set_overcommit_ratio(bytes: &[u8], _target: &Target, _me: &Current, _cx: &Cx) -> Result<()> {
    overcommit::set_ratio(parse::<u32>(bytes)? as usize);
    Ok(())
}

fn set_overcommit_kibibytes(bytes: &[u8], _target: &Target, _me: &Current, _cx: &Cx) -> Result<()> {
    overcommit::set_kibibytes(parse(bytes)?);
    Ok(())
}

fn number(text: &mut Text, value: u64) -> Result<()> {
    text.add(format_args!("{value}\n"));
    Ok(())
}

/// The number that a program wrote, with white space around it.
fn parse<T: core::str::FromStr>(bytes: &[u8]) -> Result<T> {
    let text = core::str::from_utf8(bytes).map_err(|_| Errno::EINVAL)?;
    text.trim_matches(|char: char| char.is_ascii_whitespace() || char == '\0').parse().map_err(|_| Errno::EINVAL)
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

fn domain_name(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    text.add_bytes(&utsname::domain_name(cx));
    text.add_bytes(b"\n");
    Ok(())
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
