//! `/sys/devices/system/cpu`: which processors there are and what they share. All are there from the start to the end, in one package, each a core with one
//! thread. See Linux, Documentation/admin-guide/cputopology.rst.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use frame::core_set::CoreSet;
use frame::cpu::MAX_CORES;

use super::Entry;
use crate::fs::core_text::{CoreList, CoreMask};

/// The directory for so many processors.
pub fn directory(count: usize) -> Entry {
    let all = || format!("{}", CoreList(CoreSet::below(count)));
    let text = |name: &str, text: String| (name.into(), Entry::Text(text));
    let mut entries: Vec<_> = (0..count).map(|core| (format!("cpu{core}"), processor(core, count))).collect();
    entries.extend([
        text("possible", all()),
        text("present", all()),
        text("online", all()),
        text("offline", String::new()),
        text("isolated", String::new()),
        text("kernel_max", format!("{}", MAX_CORES - 1)),
    ]);
    Entry::Directory(entries)
}

fn processor(core: usize, count: usize) -> Entry {
    let (own, all) = (CoreSet::from_iter([core]), CoreSet::below(count));
    let mut topology: Vec<_> = [("core_id", core), ("die_id", 0), ("physical_package_id", 0)]
        .map(|(name, number)| (name.into(), Entry::Text(format!("{number}"))))
        .into();
    for (name, cores) in
        [("thread_siblings", own), ("core_cpus", own), ("core_siblings", all), ("die_cpus", all), ("package_cpus", all)]
    {
        topology.push((name.into(), Entry::Text(format!("{}", CoreMask(cores, count)))));
        topology.push((format!("{name}_list"), Entry::Text(format!("{}", CoreList(cores)))));
    }
    Entry::Directory([("topology".into(), Entry::Directory(topology))].into())
}
