//! The files of the controller reclaim. Times are in microseconds, but for those of single objects, which are in nanoseconds.

use frame::Cx;
use groups::Class;
use refs::TempRc;

use super::file::Showing;
use super::{Entry, limits, number};
use crate::cgroup::{Cgroup, Controllers};
use crate::error::{Errno, Result};
use crate::reclaim::{self, Held};
use crate::step::Step;

const fn file(name: &'static str) -> Entry {
    Entry::new(name, Controllers::RECLAIM)
}

const NANOSECONDS: u64 = 1000;

/// The longest time that can be agreed: an hour.
const MOST: i64 = 3_600_000_000;

/// The files.
pub const FILES: &[Entry] = &[
    file("reclaim.calibrate").only_in_root().changes(|writing, _, _| {
        if number::parse_int(writing.text)? != 1 {
            return Err(Errno::ERANGE.into());
        }
        writing.work.calibrate()
    }),
    file("reclaim.costs").only_in_root().shows(|text, _, _| {
        let tree = reclaim::tree().ok_or(Errno::ENODEV)?;
        for &class in Held::ALL {
            text.add(format_args!("{} {}\n", reclaim::Name(class), tree.cost(class).eager));
        }
        Ok(())
    }),
    file("reclaim.current").shows(|text, group, cx| {
        // What is charged is never told as less than it is.
        text.add(format_args!("{}\n", usage(group, cx)?.current.div_ceil(NANOSECONDS)));
        Ok(())
    }),
    file("reclaim.events")
        .shows(|text, group, cx| {
            let denied = usage(group, cx)?.denied;
            text.add(format_args!("denied {denied}\noverrun {}\n", group.reclaim.overruns()));
            Ok(())
        })
        .tells(|group| &group.reclaim.event)
        // Who refuses knows a budget and no group: all who wait look.
        .also_tells(reclaim::denials),
    file("reclaim.last").shows(show_last),
    file("reclaim.max")
        .shows(|text, group, _| {
            match group.reclaim.max() {
                None => text.add(format_args!("max\n")),
                Some(max) => text.add(format_args!("{}\n", max / NANOSECONDS)),
            }
            Ok(())
        })
        .changes(|writing, group, cx| {
            let max = limits::written(writing, |text| match number::parse(text)? {
                max @ 0..=MOST => Ok(max as usize),
                _ => Err(Errno::EINVAL),
            })?;
            let max = (max != usize::MAX).then(|| max as u64 * NANOSECONDS);
            Ok(group.reclaim.set_max(max, cx)?)
        }),
    file("reclaim.peak").shows(|text, group, cx| {
        text.add(format_args!("{}\n", usage(group, cx)?.peak.div_ceil(NANOSECONDS)));
        Ok(())
    }),
    file("reclaim.stat").shows(|text, group, cx| {
        let usage = usage(group, cx)?;
        for &class in Held::ALL {
            text.add(format_args!("{} {} {}\n", reclaim::Name(class), usage.count(class), usage.eager(class)));
        }
        Ok(())
    }),
];

fn usage(group: &Cgroup, cx: &Cx) -> Result<groups::Usage<Held>> {
    group.reclaim.usage(cx).ok_or(Errno::ENODEV)
}

/// What was charged for the last kill of the group, and what it took; nothing if there was none.
fn show_last(text: &mut Showing, group: &TempRc<'_, Cgroup>, cx: &Cx) -> Step<()> {
    if let Some(last) = group.reclaim.last(cx) {
        text.add(format_args!("charged_us {}\n", last.charged / NANOSECONDS));
        text.add(format_args!("measured_us {}\n", last.worked.div_ceil(NANOSECONDS)));
        text.add(format_args!("elapsed_us {}\n", last.elapsed.div_ceil(NANOSECONDS)));
    }
    Ok(())
}
