//! The table of programs whose files are on a disk, for the terminal and for the book.

use super::machines::Figures;
use super::rows::ROWS;
use crate::counting::Count;
use crate::report::{Style, number, ratio, with_goals};

const HEAD: [&str; 10] = [
    "row",
    "Ebb",
    "Linux",
    "ratio",
    "Ebb, in the kernel",
    "Linux, in the kernel",
    "Ebb, time",
    "Linux, time",
    "ratio",
    "goal",
];

/// A line per row that was measured; what is not known is shown as a dash.
pub fn table(ebb: &Figures, linux: Option<&Figures>, style: Style) -> String {
    let (mut met, mut judged) = (0, 0);
    let mut lines = vec![HEAD.map(str::to_owned)];
    for row in ROWS {
        let counts = [Some(ebb), linux].map(|figures| figures.and_then(|figures| figures.counts.get(row.key)));
        let times = [Some(ebb), linux].map(|figures| figures.and_then(|figures| figures.times.get(row.key)).copied());
        if counts.iter().all(Option::is_none) && times.iter().all(Option::is_none) {
            continue;
        }
        let [here, there] = counts.map(|count| count.map(Count::total));
        let verdict = here.zip(there).map(|(ours, theirs)| ours < theirs);
        judged += usize::from(verdict.is_some());
        met += usize::from(verdict == Some(true));
        let [kernel, their_kernel] = counts.map(|count| number(count.map(|count| count.kernel)));
        let [time, their_time] = times.map(|time| time.map_or("-".to_owned(), |time| format!("{:.1} ms", time / 1e6)));
        lines.push([
            row.title.to_owned(),
            number(here),
            number(there),
            ratio(here, there),
            kernel,
            their_kernel,
            time,
            their_time,
            ratio(times[0], times[1]),
            verdict.map_or("-", |met| if met { "met" } else { "not met" }).to_owned(),
        ]);
    }
    with_goals(&lines, met, judged, style)
}

/// The page of the book; `load` is the share of the host's time that went to other things while time was measured.
pub fn page(ebb: &Figures, linux: Option<&Figures>, load: Option<f64>) -> String {
    let load = load.map_or(String::new(), |load| {
        format!(
            "\nWhile time was measured the host spent {:.0} % of its processors' time on other things.\n",
            load * 100.0
        )
    });
    format!(
        "# Figures of disks\n\n\
         Written by `make bench-disks WRITE=1` (`ebb-bench disks`). Programs ran on both kernels with their files on a disk, in machines of the same kind with one core and 1 GiB of memory. \
         The disk is a virtio block device with an ext4 file system of 1 GiB, which mke2fs made of the same files each time; each machine had a fresh copy.\n\n\
         - The first rows are a static program (`user/bench/disks`) that reads and writes a file of 64 MiB as fio does, one request at a time. The others are Debian's programs; they lie in memory, but for Python, which lies on the disk.\n\
         - The unit is the **guest instruction**, in programs and in the kernel together: a plugin of QEMU's (`tools/bench/plugin`) counts them between two marks. A processor that waits for a device runs none. \
         They say nothing about cache misses, TLB misses or how many instructions a real processor does at once.\n\
         - *In the kernel* is the part that programs have no share in.\n\
         - *Time* is the host's, under software emulation, in other machines than those in which instructions were counted: the fastest of several runs. It includes waiting for QEMU's disk, whose content the host has in memory, and it depends on what else the host does. It is no time of hardware.\n\
         - Before each row the disk is mounted, after it unmounted. *Not in memory*, and all reads and writes but those that are done *again*: nothing of the disk was in memory but what mounting reads. Rows that write end when the disk has everything: with fsync(2) or syncfs(2).\n\
         - `git status` and `grep -r` work on a source tree of 5,000 files in 250 directories, `tar x` unpacks and `rm -r` deletes a copy of it.\n\
         - The *goal* of each row is to need fewer instructions than Linux, which is Debian's.\n\n{}{load}",
        table(ebb, linux, Style::Page)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_with_fewer_instructions_in_all() {
        let figures = |user, kernel, time| {
            let mut figures = Figures::default();
            figures.counts.insert("tar-x".to_owned(), Count { user, kernel });
            figures.times.insert("tar-x".to_owned(), time);
            figures
        };
        let text = table(&figures(100.0, 50.0, 2e6), Some(&figures(100.0, 100.0, 1e6)), Style::Page);
        assert!(text.contains("| 150 | 200 | 0.75 | 50 | 100 | 2.0 ms | 1.0 ms | 2.00 | met |"), "{text}");
        assert!(text.ends_with("1 of 1 goals met.\n"), "{text}");
        let text = table(&figures(100.0, 100.0, 2e6), Some(&figures(100.0, 100.0, 1e6)), Style::Page);
        assert!(text.contains("| not met |"), "{text}");
    }
}
