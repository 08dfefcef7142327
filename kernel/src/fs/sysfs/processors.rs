//! `/sys/devices/system/cpu`: which processors there are and what they share. All are there from the start to the end, in one package, each a core with one
//! thread. See Linux, Documentation/admin-guide/cputopology.rst.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use core::ops::Range;

use frame::cpu::MAX_CORES;

use super::Entry;

/// The directory for so many processors.
pub fn directory(count: usize) -> Entry {
    let all = || list(&(0..count));
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
    let mut topology: Vec<_> = [("core_id", core), ("die_id", 0), ("physical_package_id", 0)]
        .map(|(name, number)| (name.into(), Entry::Text(format!("{number}"))))
        .into();
    for (name, cores) in [
        ("thread_siblings", core..core + 1),
        ("core_cpus", core..core + 1),
        ("core_siblings", 0..count),
        ("die_cpus", 0..count),
        ("package_cpus", 0..count),
    ] {
        topology.push((name.into(), Entry::Text(mask(&cores, count))));
        topology.push((format!("{name}_list"), Entry::Text(list(&cores))));
    }
    Entry::Directory([("topology".into(), Entry::Directory(topology))].into())
}

/// As in `0-3`.
fn list(cores: &Range<usize>) -> String {
    if cores.len() == 1 { format!("{}", cores.start) } else { format!("{}-{}", cores.start, cores.end - 1) }
}

/// A bit for each of `count` cores in hexadecimal digits, in groups of eight with commas between.
fn mask(cores: &Range<usize>, count: usize) -> String {
    let digits = count.div_ceil(4);
    let mut text = String::new();
    for digit in (0..digits).rev() {
        let bits = (0..4).filter(|bit| cores.contains(&(4 * digit + bit))).map(|bit| 1 << bit).sum::<u32>();
        // Writing to a string cannot fail.
        let _ = write!(text, "{bits:x}");
        if digit > 0 && digit % 8 == 0 {
            text.push(',');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_cores_are_written_as_linux_writes_them() {
        assert_eq!(list(&(0..1)), "0");
        assert_eq!(list(&(0..8)), "0-7");
        assert_eq!(mask(&(0..1), 1), "1");
        assert_eq!(mask(&(1..2), 2), "2");
        assert_eq!(mask(&(0..8), 8), "ff");
        assert_eq!(mask(&(32..33), 33), "1,00000000");
        assert_eq!(mask(&(0..64), 64), "ffffffff,ffffffff");
    }
}
