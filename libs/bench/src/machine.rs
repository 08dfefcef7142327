//! Where the measuring happens: cores, priority, and the words that describe both in the report.

use std::process::Command;

use anyhow::{Result, ensure};

/// The cores that this process may use, ascending.
pub fn cores() -> Vec<usize> {
    // SAFETY: a cpu_set_t is plain bits, and the kernel fills in as many as we say there are.
    let set = unsafe {
        let mut set: libc::cpu_set_t = core::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set);
        set
    };
    // SAFETY: the number is below the set's size.
    (0..libc::CPU_SETSIZE as usize).filter(|&core| unsafe { libc::CPU_ISSET(core, &set) }).collect()
}

/// Keeps this thread, and the threads that it starts from here on, on one core.
pub fn pin(core: usize) -> Result<()> {
    // SAFETY: as in `cores`.
    let error = unsafe {
        let mut set: libc::cpu_set_t = core::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    ensure!(error == 0, "this thread cannot be kept on core {core}: {}", std::io::Error::last_os_error());
    Ok(())
}

/// Asks for SCHED_FIFO, so that nothing ordinary interrupts a batch; false where that is not allowed.
pub fn real_time() -> bool {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: the parameters outlive the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) == 0 }
}

/// Runs `other` in a second thread, on another core than this one's, while `here` runs.
pub fn beside<R>(other: impl FnOnce() + Send, here: impl FnOnce() -> R) -> R {
    let (arrived, has_arrived) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if let Some(&core) = ALL_CORES.get().and_then(|cores| cores.get(1)) {
                let _ = pin(core);
            }
            let _ = arrived.send(());
            other();
        });
        // It is born on this core, which `here` may never give up.
        let _ = has_arrived.recv();
        here()
    })
}

static ALL_CORES: std::sync::OnceLock<Vec<usize>> = std::sync::OnceLock::new();

/// Pins this thread to the first core and remembers the second for [`beside`]. Says how many there are.
pub fn settle() -> Result<usize> {
    let cores = ALL_CORES.get_or_init(cores);
    ensure!(!cores.is_empty(), "there is no core to run on");
    pin(cores[0])?;
    Ok(cores.len())
}

/// The first line of what a command prints, or nothing.
fn says(command: &str, arguments: &[&str]) -> String {
    let output = Command::new(command).args(arguments).output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).lines().next().unwrap_or_default().to_owned()
}

/// The processor, as it calls itself.
pub fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name));
        line.and_then(|line| line.split(':').nth(1)).unwrap_or("?").trim().to_owned()
    };
    let guest = if text.contains("hypervisor") { ", a virtual machine" } else { "" };
    format!("{} (family {}, model {}{guest})", field("model name"), field("cpu family"), field("model"))
}

/// The operating system and its version, as far as that says anything about speed.
pub fn system() -> String {
    let release = says("uname", &["-r"]);
    let version: Vec<&str> = release.splitn(3, '.').take(2).collect();
    format!("{} {}", says("uname", &["-s"]), version.join("."))
}

/// Today, in UTC.
pub fn date() -> String {
    says("date", &["-u", "+%Y-%m-%d"])
}

/// How many processes wanted to run, on average, in the last minute.
pub fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("?").to_owned()
}

/// Memory that this process really has, page tables included, in bytes.
pub fn memory_bytes() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let kib = |name: &str| -> Result<f64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        Ok(line.trim().trim_end_matches("kB").trim().parse()?)
    };
    Ok((kib("VmRSS:")? + kib("VmPTE:")?) * 1024.0)
}
