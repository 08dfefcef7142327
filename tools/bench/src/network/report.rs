//! The table of what sockets cost, for the terminal and for the book.

use super::machines::{Figure, Figures};
use super::rows::{ROUND_TRIP, ROWS, Row, Talk};
use crate::report::{Style, number, ratio, with_goals};

const HEAD: [&str; 8] = ["row", "unit", "Ebb", "Linux", "ratio", "Ebb, in the kernel", "Linux, in the kernel", "goal"];

/// A line per row that was measured; what is not known is shown as a dash.
pub fn table(ebb: &Figures, linux: Option<&Figures>, style: Style) -> String {
    let (mut met, mut judged) = (0, 0);
    let mut lines = vec![HEAD.map(str::to_owned)];
    for row in ROWS {
        let figures = [Some(ebb), linux].map(|figures| figures.and_then(|figures| figures.get(row.key)));
        if figures.iter().all(Option::is_none) {
            continue;
        }
        let [here, there] = figures.map(|figure| figure.map(Figure::total));
        let [kernel, their_kernel] = figures.map(|figure| number(figure.and_then(Figure::in_kernel)));
        let verdict = verdict(row, here, there);
        judged += usize::from(verdict.is_some());
        met += usize::from(verdict == Some("met"));
        lines.push([
            row.title.to_owned(),
            row.unit.name().to_owned(),
            number(here),
            number(there),
            ratio(here, there),
            kernel,
            their_kernel,
            verdict.unwrap_or("-").to_owned(),
        ]);
    }
    with_goals(&lines, met, judged, style)
}

/// Whether a row's goal is met, and if not, what it misses; `None` where Linux was not measured.
fn verdict(row: &Row, ebb: Option<f64>, linux: Option<f64>) -> Option<&'static str> {
    let (ebb, linux) = (ebb?, linux?);
    Some(match row.bound {
        _ if ebb > linux => "above Linux",
        Some(bound) if ebb >= bound => "not below 10,000",
        _ => "met",
    })
}

/// The page of the book.
pub fn page(ebb: &Figures, linux: Option<&Figures>) -> String {
    let has_servers = ROWS.iter().any(|row| row.talk == Talk::Servers && ebb.contains_key(row.key));
    let servers = if has_servers {
        "- *redis* and *nginx* (`SERVERS=1`) are Debian's, on a disk from which they are read before it counts. What `redis-benchmark` and `ab` need, which ask them, counts as well: a figure is for a request and its answer.\n"
    } else {
        ""
    };
    format!(
        "# Figures of the network\n\n\
         Written by `make bench-network WRITE=1` (`ebb-bench network`). The same static program (`user/bench/network`) ran as process 1 on both kernels, in machines of the same kind with \
         one core and 512 MiB of memory. All sockets talk to each other over the loopback device.\n\n\
         - The unit is the **guest instruction**, in programs and in the kernel together: a plugin of QEMU's (`tools/bench/plugin`) counts them between two marks. A processor that waits runs none. \
         They say nothing about cache misses, TLB misses or how many instructions a real processor does at once.\n\
         - *In the kernel* is the part that programs have no share in.\n\
         - Round trips and bytes over TCP go from one process to another; messages of UDP are sent and received by one process, 32 at a time. The receiver of bytes reads up to 64 KiB at once. \
         Connections have `TCP_NODELAY` where they carry more than nothing, but for those in the epoll set.\n\
         - *Memory* is what `MemFree` is less with 2,000 connections, both ends of which are in this machine.\n\
         {servers}\
         - The *goal* of each row is to need no more than Linux, which is Debian's; that of the first two also to stay below {} instructions.\n\n{}",
        number(Some(ROUND_TRIP)),
        table(ebb, linux, Style::Page)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::Count;

    fn figures(key: &'static str, kernel: f64) -> Figures {
        Figures::from([(key, Figure::Instructions(Count { user: 100.0, kernel }))])
    }

    #[test]
    fn a_goal_is_met_with_no_more_than_linux_needs() {
        let table =
            |ours, theirs| table(&figures("tcp-connect", ours), Some(&figures("tcp-connect", theirs)), Style::Page);
        let text = table(900.0, 900.0);
        assert!(text.contains("| instructions | 1,000 | 1,000 | 1.00 | 900 | 900 | met |"), "{text}");
        assert!(text.ends_with("1 of 1 goals met.\n"), "{text}");
        assert!(table(1000.0, 900.0).contains("| above Linux |"));
    }

    #[test]
    fn a_round_trip_has_to_stay_below_a_bound_as_well() {
        let table =
            |ours| table(&figures("udp-round-trip", ours), Some(&figures("udp-round-trip", 20_000.0)), Style::Page);
        assert!(table(9_000.0).contains("| met |"));
        assert!(table(9_900.0).contains("| not below 10,000 |"));
    }

    #[test]
    fn without_linux_nothing_is_judged() {
        let text = table(&Figures::from([("memory-new", Figure::Bytes(3000.0))]), None, Style::Page);
        assert!(text.ends_with("| bytes | 3,000 | - | - | - | - | - |\n"), "{text}");
    }
}
