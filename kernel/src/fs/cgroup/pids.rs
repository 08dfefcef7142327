//! The files of the controller pids.

use core::sync::atomic::Ordering;

use super::{Entry, limits, number};
use crate::cgroup::Controllers;
use crate::error::Errno;

const fn file(name: &'static str) -> Entry {
    Entry::new(name, Controllers::PIDS)
}

/// There are no more ids than this (`PID_MAX_LIMIT`).
const MOST: i64 = 4 * 1024 * 1024;

/// The files.
pub const FILES: &[Entry] = &[
    file("pids.current").shows(|text, group, _| {
        text.add(format_args!("{}\n", group.pids.count()));
        Ok(())
    }),
    file("pids.events")
        .shows(|text, group, _| {
            text.add(format_args!("max {}\n", group.pids.denied.load(Ordering::Relaxed)));
            Ok(())
        })
        .tells(|group| &group.pids.event),
    file("pids.events.local")
        .shows(|text, group, _| {
            text.add(format_args!("max {}\n", group.pids.denied_here.load(Ordering::Relaxed)));
            Ok(())
        })
        .tells(|group| &group.pids.local_event),
    file("pids.max")
        .shows(|text, group, _| {
            limits::show(text, &group.pids.max);
            Ok(())
        })
        .changes(|writing, group, _| {
            let limit = limits::written(writing, |text| match number::parse(text)? {
                limit @ 0..=MOST => Ok(limit as usize),
                _ => Err(Errno::EINVAL),
            })?;
            group.pids.max.set(limit);
            Ok(())
        }),
    file("pids.peak").shows(|text, group, _| {
        text.add(format_args!("{}\n", group.pids.peak()));
        Ok(())
    }),
];
