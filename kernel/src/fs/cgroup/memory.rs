//! The files of the controller memory.
//!
//! Numbers are bytes, kept as frames. `memory.min` and `memory.low` are kept and nothing looks at them: no page is taken from who uses it. There is no swap.

use core::sync::atomic::{AtomicUsize, Ordering};

use frame::Cx;
use frame::mm::PAGE_SIZE;
use refs::TempRc;

use super::file::{Showing, Writing};
use super::{Entry, limits, number};
use crate::cgroup::{Cgroup, Controllers};
use crate::error::{Errno, Result};
use crate::memory::account::{Account, EVENTS, UNLIMITED};
use crate::memory::remains;
use crate::process::oom_group;
use crate::step::{Interruption, Step, Stop};

const fn file(name: &'static str) -> Entry {
    Entry::new(name, Controllers::MEMORY)
}

/// The files.
pub const FILES: &[Entry] = &[
    file("memory.current").shows(|text, group, _| {
        settle(text, group)?;
        text.add(format_args!("{}\n", group.memory.account().map_or(0, |account| account.current()) * PAGE_SIZE));
        Ok(())
    }),
    file("memory.min")
        .shows(|text, group, _| show(text, group, |account| &account.min))
        .changes(|writing, group, _| set(writing, group, |account| &account.min)),
    file("memory.low")
        .shows(|text, group, _| show(text, group, |account| &account.low))
        .changes(|writing, group, _| set(writing, group, |account| &account.low)),
    // Who is beyond it when it is set waits when it takes more.
    file("memory.high")
        .shows(|text, group, _| show(text, group, |account| &account.high))
        .changes(|writing, group, _| set(writing, group, |account| &account.high)),
    file("memory.max").shows(|text, group, _| show(text, group, |account| &account.max)).changes(set_max),
    file("memory.peak").shows(|text, group, _| {
        text.add(format_args!("{}\n", group.memory.account().map_or(0, |account| account.peak()) * PAGE_SIZE));
        Ok(())
    }),
    file("memory.events")
        .shows(|text, group, cx| {
            group.tell_memory_events(cx);
            show_events(text, group, Whose::AllBelow)
        })
        .tells(|group| &group.memory.event),
    file("memory.events.local")
        .shows(|text, group, _| show_events(text, group, Whose::Own))
        .tells(|group| &group.memory.local_event),
    file("memory.stat").shows(|text, group, _| {
        settle(text, group)?;
        show_parts(text, group);
        Ok(())
    }),
    file("memory.oom.group")
        .shows(|text, group, _| {
            text.add(format_args!("{}\n", u8::from(group.memory.kills_all.load(Ordering::Relaxed))));
            Ok(())
        })
        .changes(|writing, group, _| {
            let kills_all = match number::parse_int(writing.text)? {
                0 => false,
                1 => true,
                _ => return Err(Errno::EINVAL.into()),
            };
            group.memory.kills_all.store(kills_all, Ordering::Relaxed);
            Ok(())
        }),
    file("memory.swap.current").shows(|text, _, _| {
        text.add(format_args!("0\n"));
        Ok(())
    }),
    file("memory.swap.max")
        .shows(|text, group, _| {
            limits::show(text, &group.memory.swap_max);
            Ok(())
        })
        .changes(|writing, group, _| {
            let frames = limits::written(writing, parse)?;
            group.memory.swap_max.set(frames.saturating_mul(PAGE_SIZE));
            Ok(())
        }),
    file("memory.swap.events").shows(|text, _, _| {
        text.add(format_args!("high 0\nmax 0\nfail 0\n"));
        Ok(())
    }),
];

/// Takes apart what address spaces have left that have ended: some of it may be charged to the group.
fn settle(text: &mut Showing, group: &Cgroup) -> Step<()> {
    while group.memory.account().is_some_and(|account| account.current() > 0) && remains::settle_some() {
        text.check_time()?;
    }
    Ok(())
}

/// A number of bytes, as frames: digits of a base as in C, and a unit from `K` to `E`. Nothing at all is 0.
fn parse(text: &[u8]) -> Result<usize> {
    const UNITS: &[u8] = b"KMGTPE";
    let unit = text.last().and_then(|last| UNITS.iter().position(|unit| last.eq_ignore_ascii_case(unit)));
    // In base 16 an E is a digit.
    let unit = unit.filter(|&unit| UNITS[unit] != b'E' || !text.starts_with(b"0x"));
    let digits = if unit.is_some() { &text[..text.len() - 1] } else { text };
    if digits.is_empty() {
        return if unit.is_some() { Err(Errno::EINVAL) } else { Ok(0) };
    }
    if !digits[0].is_ascii_digit() {
        return Err(Errno::EINVAL);
    }
    let number = match number::parse(digits) {
        Ok(number) => number as u64,
        Err(Errno::ERANGE) => return Ok(UNLIMITED),
        Err(error) => return Err(error),
    };
    let shift = unit.map_or(0, |unit| 10 * (unit as u32 + 1));
    let bytes = u128::from(number) << shift;
    let frames = bytes / PAGE_SIZE as u128;
    // That many are no limit.
    Ok(if frames >= (i64::MAX as u128) / PAGE_SIZE as u128 { UNLIMITED } else { frames as usize })
}

fn show(text: &mut Showing, group: &Cgroup, of: fn(&Account) -> &AtomicUsize) -> Step<()> {
    let account = group.memory.account().ok_or(Errno::ENODEV)?;
    match of(&account).load(Ordering::Relaxed) {
        UNLIMITED => text.add(format_args!("max\n")),
        frames => text.add(format_args!("{}\n", frames * PAGE_SIZE)),
    }
    Ok(())
}

fn set(writing: &mut Writing<'_>, group: &Cgroup, of: fn(&Account) -> &AtomicUsize) -> Step<()> {
    let frames = limits::written(writing, parse)?;
    Ok(group.memory.change(|account| of(account).store(frames, Ordering::Relaxed))?)
}

/// Sets `memory.max`. If the group has more, what its dead have left is given back, then members are ended one after the other until it has no more than that.
fn set_max(writing: &mut Writing<'_>, group: &TempRc<'_, Cgroup>, cx: &Cx) -> Step<()> {
    set(writing, group, |account| &account.max)?;
    let is_over = group.memory.account().is_some_and(|account| account.excess() > 0);
    if is_over && oom_group::make_room_in(group, None, cx).is_ok() {
        return Err(Stop::Pause(Interruption::Signals));
    }
    Ok(())
}

/// Whose events are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// The group's.
    Own,
    /// And those of all below it.
    AllBelow,
}

fn show_events(text: &mut Showing, group: &Cgroup, whose: Whose) -> Step<()> {
    let account = group.memory.account().ok_or(Errno::ENODEV)?;
    for (event, name) in EVENTS {
        let count = if whose == Whose::Own { account.own_event_count(event) } else { account.event_count(event) };
        text.add(format_args!("{name} {count}\n"));
    }
    Ok(())
}

/// `memory.stat`: what is known of the frames that the group has.
fn show_parts(text: &mut Showing, group: &Cgroup) {
    let Some(account) = group.memory.account() else { return };
    let ((tables, shared), all) = (account.parts(), account.current());
    let anonymous = all.saturating_sub(tables + shared);
    let parts = [("anon", anonymous), ("file", shared), ("kernel", tables), ("pagetables", tables), ("shmem", shared)];
    for (name, frames) in parts {
        text.add(format_args!("{name} {}\n", frames * PAGE_SIZE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_bytes_with_a_unit_and_are_rounded_down_to_frames() {
        for (text, frames) in [
            (&b"0"[..], 0),
            (b"4095", 0),
            (b"4096", 1),
            (b"8K", 2),
            (b"1m", 256),
            (b"1G", 262_144),
            (b"0x2000", 2),
            (b"", 0),
            (b"9223372036854775807", UNLIMITED),
            (b"99999999999999999999", UNLIMITED),
            (b"8E", UNLIMITED),
        ] {
            assert_eq!(parse(text), Ok(frames), "{text:?}");
        }
        for text in [&b"-1"[..], b"K", b"1 K", b"1KB", b"few", b"+1"] {
            assert_eq!(parse(text), Err(Errno::EINVAL), "{text:?}");
        }
    }
}
