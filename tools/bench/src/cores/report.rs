//! The table of what two cores reach, for the terminal and for the book.

use super::Rates;
use super::rows::{CEILING, ROWS, Sharing};
use crate::report::{Style, columns, markdown, number};
use std::fmt::Write;

/// What two independent workers have to reach, beside one.
pub const GOAL: f64 = 1.85;

/// What two ratios may differ by and count as the same: machines that run the same program again differ by about that.
const NOISE: f64 = 0.02;

const HEAD: [&str; 9] =
    ["row", "Ebb, 1 core", "2 cores", "ratio", "Linux, 1 core", "2 cores", "ratio", "Ebb / Linux, 2 cores", "goal"];

/// A line per row that was measured; what is not known is shown as a dash.
pub fn table(ebb: &Rates, linux: Option<&Rates>, style: Style) -> String {
    let (mut met, mut judged) = (0, 0);
    let ceiling = ebb.ratio(CEILING).unwrap_or(f64::INFINITY);
    let mut lines = vec![HEAD.map(str::to_owned)];
    for row in ROWS {
        let figures = |rates: Option<&Rates>| {
            let rate = |workers| number(rates.and_then(|rates| rates.most(row.key, workers)));
            let ratio = rates.and_then(|rates| rates.ratio(row.key));
            [rate(1), rate(2), ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"))]
        };
        let ([one, two, ratio], [linux_one, linux_two, linux_ratio]) = (figures(Some(ebb)), figures(linux));
        if one == "-" && linux_one == "-" {
            continue;
        }
        // More than computation reaches is chance, and is not asked for.
        let asked = linux.and_then(|rates| rates.ratio(row.key)).map(|ratio| ratio.min(ceiling));
        let reached = linux.and_then(|linux| Some(ebb.most(row.key, 2)? / linux.most(row.key, 2)?));
        let verdict = verdict(row.sharing, ebb.ratio(row.key), asked, reached);
        judged += usize::from(verdict.is_some());
        met += usize::from(verdict.is_some_and(|verdict| verdict.starts_with("met")));
        let goal = verdict.unwrap_or("-").to_owned();
        let reached = reached.map_or("-".to_owned(), |reached| format!("{reached:.2}"));
        lines.push([row.title.to_owned(), one, two, ratio, linux_one, linux_two, linux_ratio, reached, goal]);
    }
    let mut text = match style {
        Style::Terminal => columns(&lines),
        Style::Page => markdown(&lines),
    };
    if judged > 0 {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{met} of {judged} goals met.\n");
    }
    text
}

/// Whether a row's goal is met, and if not, what it misses; `linux` is the ratio that Linux asks for, and `reached` what Ebb reaches on two cores beside what Linux does. `None` where it
/// has no goal or two cores were not measured.
fn verdict(sharing: Sharing, ebb: Option<f64>, linux: Option<f64>, reached: Option<f64>) -> Option<&'static str> {
    let ebb = ebb?;
    let below_linux = linux.is_some_and(|linux| ebb < linux * (1.0 - NOISE));
    match sharing {
        Sharing::Nothing => None,
        Sharing::Kernel if ebb < GOAL && below_linux => Some("below 1.85 and Linux"),
        Sharing::Kernel if ebb < GOAL => Some("below 1.85"),
        Sharing::Kernel if below_linux => Some("below Linux"),
        Sharing::Kernel => Some("met"),
        Sharing::State => match reached? {
            reached if reached < 1.0 => Some("below Linux"),
            _ if below_linux => Some("met, with a lower ratio"),
            _ => Some("met"),
        },
    }
}

/// The page of the book; `reuse` is the table of how soon memory comes back, `load` the share of the host's time that went to other things.
pub fn page(ebb: &Rates, linux: Option<&Rates>, reuse: &str, load: Option<f64>) -> String {
    let load = load.map_or(String::new(), |load| {
        format!("Meanwhile the host spent {:.0} % of its processors' time on other things.\n", load * 100.0)
    });
    format!(
        "# Figures of two cores\n\n\
         Written by `make bench-cores WRITE=1` (`ebb-bench cores`). The same static program (`user/bench/cores.c`) ran on both kernels, in machines with \
         two cores under QEMU with a thread for each. The unit is **operations per second** of the host's time, which is no time of hardware; what counts \
         is the ratio: what two workers reach at the same time, pinned to a core each, beside what one reaches.\n\n\
         - *User computation* calls no kernel. Its ratio is the ceiling of what the emulator and the host give.\n\
         - The rows up to *mmap + munmap* are two processes with files, pipes and memory of their own. Their goal is a ratio of {GOAL}, and not less than Linux's.\n\
         - The others are two threads of one process on the same file, directory, address space, word, pipe or descriptors. Their goal is to do as much \
         on two cores as Linux does. Where the second core brings less than it brings Linux, that is said, too.\n\
         - Two ratios within {:.0} % count as the same, and no more is asked for than user computation reached.\n\
         - Each figure is the fastest measurement of the half from which other work of the host took least (what only the owner of a virtual host sees makes others slower, and none faster); the machines of the two kernels take turns.\n\n{}\n{load}\n\
         ## How soon memory comes back\n\n\
         From the return of the call that destroys an object on one core until the system says that its memory is free (`user/bench/reuse.c`), while the \
         other core is busy: medians, and the longest of some hundred. A host that gives a core of the machine to others for a while shows in the longest. \
         The goal is 100 us.\n\n{reuse}",
        NOISE * 100.0,
        table(ebb, linux, Style::Page)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_says_what_is_missed() {
        assert_eq!(verdict(Sharing::Kernel, Some(1.9), Some(1.92), Some(3.0)), Some("met"));
        assert_eq!(verdict(Sharing::Kernel, Some(1.9), Some(1.99), Some(3.0)), Some("below Linux"));
        assert_eq!(verdict(Sharing::Kernel, Some(1.8), Some(1.7), Some(3.0)), Some("below 1.85"));
        assert_eq!(verdict(Sharing::Kernel, Some(1.5), Some(1.7), Some(3.0)), Some("below 1.85 and Linux"));
        assert_eq!(verdict(Sharing::Kernel, None, Some(1.7), None), None);
        assert_eq!(verdict(Sharing::State, Some(0.8), Some(0.7), Some(1.0)), Some("met"));
        assert_eq!(verdict(Sharing::State, Some(1.2), Some(1.7), Some(1.1)), Some("met, with a lower ratio"));
        assert_eq!(verdict(Sharing::State, Some(1.8), Some(1.7), Some(0.9)), Some("below Linux"));
        assert_eq!(verdict(Sharing::State, Some(0.8), None, None), None);
        assert_eq!(verdict(Sharing::Nothing, Some(1.0), Some(2.0), None), None);
    }

    #[test]
    fn a_kernel_with_one_core_has_half_a_line() {
        let mut rates = Rates::default();
        rates.read("cores\t1", |_| 0.0);
        rates.read("null\t1\t2000000", |_| 0.0);
        let text = table(&rates, None, Style::Page);
        assert!(text.contains("| null system call (getppid) | 2,000,000 | - | - | - | - | - | - | - |"), "{text}");
    }
}
