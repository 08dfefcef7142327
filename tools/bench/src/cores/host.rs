//! What the host did beside the machines.

use std::time::Instant;

/// The time of the host's processors from some moment on, in clock ticks.
pub struct Load {
    all: u64,
    busy: u64,
    machines: u64,
}

impl Load {
    /// From now on; `None` where procfs does not say.
    pub fn start() -> Option<Self> {
        // proc(5): user, nice, system, idle, iowait, irq, softirq, steal.
        let stat = std::fs::read_to_string("/proc/stat").ok()?;
        let times: Vec<u64> =
            stat.lines().next()?.split_ascii_whitespace().skip(1).take(8).map_while(|time| time.parse().ok()).collect();
        let all: u64 = times.iter().sum();
        let idle = times.get(3)? + times.get(4)?;
        // The times of children that have ended, the machines' among them: fields 16 and 17, counted from the state, which is field 3.
        let own = std::fs::read_to_string("/proc/self/stat").ok()?;
        let fields: Vec<&str> = own.rsplit_once(") ")?.1.split_ascii_whitespace().collect();
        let machines = fields.get(13)?.parse::<u64>().ok()? + fields.get(14)?.parse::<u64>().ok()?;
        Some(Self { all, busy: all - idle, machines })
    }

    /// The share that others than the machines had since then.
    pub fn others(self) -> Option<f64> {
        let now = Self::start()?;
        let others = (now.busy - self.busy).saturating_sub(now.machines - self.machines);
        (now.all > self.all).then(|| others as f64 / (now.all - self.all) as f64)
    }
}

/// For how long threads of QEMU could run and did not, since others had the host's processors.
pub struct Waits {
    at: Instant,
    waited: u64,
}

impl Waits {
    /// From now on.
    pub fn start() -> Self {
        Waits { at: Instant::now(), waited: 0 }
    }

    /// The share of the time since the last call that one of so many threads waited.
    pub fn share(&mut self, pid: u32, threads: usize) -> f64 {
        let (before, waited_before) = (self.at, self.waited);
        *self = Waits { at: Instant::now(), waited: waited(pid) };
        let time = (self.at - before).as_nanos() as f64 * threads.max(1) as f64;
        self.waited.saturating_sub(waited_before) as f64 / time.max(1.0)
    }
}

/// Nanoseconds that a process' threads have waited for a processor: the second field of their `schedstat`. 0 where there is none.
fn waited(pid: u32) -> u64 {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return 0 };
    let of_thread = |path: std::path::PathBuf| {
        std::fs::read_to_string(path.join("schedstat")).ok()?.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()
    };
    threads.flatten().filter_map(|thread| of_thread(thread.path())).sum()
}
