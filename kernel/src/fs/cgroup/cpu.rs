//! The files of the controller cpu. (`cpu.stat`, which each group has, is among [`core_files`](super::core_files).)

use super::{Entry, number};
use crate::cgroup::Controllers;
use crate::error::Errno;

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
        .changes(|writing, group, _| match number::parse(writing.text)? {
            weight @ 1..=10_000 => {
                group.cpu.set_weight(weight as u64);
                Ok(())
            }
            _ => Err(Errno::ERANGE.into()),
        }),
    file("cpu.weight.nice")
        .shows(|text, group, _| {
            text.add(format_args!("{}\n", group.cpu.nice()));
            Ok(())
        })
        .changes(|writing, group, _| match number::parse(writing.text)? {
            nice @ -20..=19 => {
                group.cpu.set_nice(nice);
                Ok(())
            }
            _ => Err(Errno::ERANGE.into()),
        }),
];
