//! The files of the controller cpu. (`cpu.stat`, which each group has, is among [`core_files`](super::core_files).)

use frame::Cx;
use refs::TempRc;

use super::file::Writing;
use super::{Entry, number, procs};
use crate::cgroup::{Cgroup, Controllers};
use crate::error::{Errno, Result};
use crate::process::GroupWalk;
use crate::sched::{Quota, UNLIMITED};
use crate::step::Step;

const fn file(name: &'static str) -> Entry {
    Entry::new(name, Controllers::CPU)
}

/// The files.
pub const FILES: &[Entry] = &[
    file("cpu.weight")
        .shows(|text, group, _| {
            text.add(format_args!("{}\n", group.cpu.weight()));
            Ok(())
        })
        .changes(|writing, group, cx| match number::parse(writing.text)? {
            weight @ 1..=10_000 => {
                group.cpu.set_weight(weight as u64);
                tell_members(writing, group, cx)
            }
            _ => Err(Errno::ERANGE.into()),
        }),
    file("cpu.weight.nice")
        .shows(|text, group, _| {
            text.add(format_args!("{}\n", group.cpu.nice()));
            Ok(())
        })
        .changes(|writing, group, cx| match number::parse(writing.text)? {
            nice @ -20..=19 => {
                group.cpu.set_nice(nice);
                tell_members(writing, group, cx)
            }
            _ => Err(Errno::ERANGE.into()),
        }),
    file("cpu.max")
        .shows(|text, group, _| {
            let Quota { runtime, period, .. } = group.cpu.quota()?;
            match runtime {
                UNLIMITED => text.add(format_args!("max {}\n", period / MICROSECOND)),
                runtime => text.add(format_args!("{} {}\n", runtime / MICROSECOND, period / MICROSECOND)),
            }
            Ok(())
        })
        .changes(|writing, group, _| {
            let quota = parse_max(writing.text, group.cpu.quota()?).and_then(check)?;
            Ok(group.cpu.set_quota(quota)?)
        }),
    file("cpu.max.burst")
        .shows(|text, group, _| {
            text.add(format_args!("{}\n", group.cpu.quota()?.burst / MICROSECOND));
            Ok(())
        })
        .changes(|writing, group, _| {
            let micros = u64::try_from(number::parse(writing.text)?).map_err(|_| Errno::EINVAL)?;
            let burst = micros.checked_mul(MICROSECOND).ok_or(Errno::EINVAL)?;
            let quota = check(Quota { burst, ..group.cpu.quota()? })?;
            Ok(group.cpu.set_quota(quota)?)
        }),
];

/// Nanoseconds in a microsecond.
const MICROSECOND: u64 = 1000;
/// Neither a quota nor a period is shorter, in nanoseconds.
const SHORTEST: u64 = 1_000_000;
/// No period is longer.
const LONGEST_PERIOD: u64 = 1_000_000_000;
/// No quota is longer, with its burst: what Linux can shift by 20 bits.
const LONGEST_QUOTA: u64 = ((1 << 44) - 1) * MICROSECOND;

/// The group has another weight: those who are in it or below it and wait for their turn do not wait by the old one.
fn tell_members(writing: &mut Writing<'_>, group: &TempRc<'_, Cgroup>, cx: &Cx) -> Step<()> {
    if writing.work.walk.is_none() {
        writing.work.walk = Some(GroupWalk::new(group, true));
    }
    procs::tell_moved(writing, cx)
}

/// What `cpu.max` is to be: a number of microseconds or `max`, and the period if it is to change. As on Linux, what stands behind either number is not looked at.
///
/// # Errors
/// EINVAL: neither a number nor `max`.
fn parse_max(text: &[u8], now: Quota) -> Result<Quota> {
    /// The longest first word.
    const WORD: usize = 20;
    let len = text.iter().take(WORD).take_while(|byte| !byte.is_ascii_whitespace()).count();
    let (first, rest) = text.split_at(len);
    let runtime = match leading_micros(first) {
        Some(runtime) => runtime,
        None if first == b"max" => UNLIMITED,
        None => return Err(Errno::EINVAL),
    };
    Ok(Quota { runtime, period: leading_micros(rest.trim_ascii_start()).unwrap_or(now.period), ..now })
}

/// The number that a text begins with, as nanoseconds. One that is too large is refused for that later.
fn leading_micros(text: &[u8]) -> Option<u64> {
    let len = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let digits = text[..len].iter().map(|digit| u64::from(digit - b'0'));
    let number = digits.reduce(|number, digit| number.saturating_mul(10).saturating_add(digit))?;
    Some(number.saturating_mul(MICROSECOND).min(UNLIMITED - 1))
}

/// # Errors
/// EINVAL: too short or too long.
fn check(quota: Quota) -> Result<Quota> {
    let Quota { runtime, period, burst } = quota;
    let is_too_long = runtime != UNLIMITED && (burst > runtime || runtime.saturating_add(burst) > LONGEST_QUOTA);
    if runtime < SHORTEST || !(SHORTEST..=LONGEST_PERIOD).contains(&period) || is_too_long {
        return Err(Errno::EINVAL);
    }
    Ok(quota)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_and_a_period_are_microseconds_and_the_period_may_be_left_out() {
        let now = Quota { runtime: UNLIMITED, period: 100_000_000, burst: 7 };
        for (text, runtime, period) in [
            (&b"50000 200000"[..], 50_000_000, 200_000_000),
            (b"50000", 50_000_000, 100_000_000),
            (b"max", UNLIMITED, 100_000_000),
            (b"max 50000", UNLIMITED, 50_000_000),
            (b"50000  200000 3", 50_000_000, 200_000_000),
            (b"50000 long", 50_000_000, 100_000_000),
            (b"50000us", 50_000_000, 100_000_000),
        ] {
            let parsed = parse_max(text, now).and_then(check);
            assert_eq!(parsed, Ok(Quota { runtime, period, burst: now.burst }), "{text:?}");
        }
    }

    #[test]
    fn what_is_no_quota_or_no_period_is_refused() {
        let now = Quota { runtime: UNLIMITED, period: 100_000_000, burst: 0 };
        for text in [
            &b""[..],
            b"-1",
            b"+1000",
            b"maximum",
            b"few",
            b"999",
            b"1000 999",
            b"max 999",
            b"max 1000001",
            b"max 0",
            b"17592186044416",
            b"99999999999999999999 100000",
        ] {
            assert_eq!(parse_max(text, now).and_then(check), Err(Errno::EINVAL), "{text:?}");
        }
        assert!(parse_max(b"17592186044415 1000000", now).and_then(check).is_ok());
        assert_eq!(check(Quota { runtime: 2_000_000, burst: 2_000_001, ..now }), Err(Errno::EINVAL));
        assert!(check(Quota { burst: u64::MAX, ..now }).is_ok());
    }
}
