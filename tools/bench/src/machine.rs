//! Boots a program as process 1, in a machine whose time is counted in instructions or in one with two cores.
//!
//! QEMU runs with `-icount shift=0,sleep=off`: each guest instruction takes one nanosecond of the guest's time and the
//! time stamp counter runs at 1 GHz, so it counts instructions; an idle machine skips to its next event. Both kernels get
//! the same processor model, without the fast string instructions: the emulator counts those once per repetition.

use crate::Figures;
use crate::programs::Programs;
use crate::rows::{BOOT, MANY, ROWS, WATCHED};
use anyhow::{Context, Error, Result, bail};
use clap::Args;
use ebb_guest::bare::{BareEnd, BareMachine, BareRun};
use ebb_guest::image::{Kind, Node};
use ebb_guest::{Cpus, Image, Kernel};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The kernels that a command measures.
#[derive(Args)]
pub struct Kernels {
    /// The Ebb kernel [default: EBB_KERNEL, or the one that was built with this command].
    #[arg(id = "kernel", long = "kernel", value_name = "FILE")]
    pub ebb: Option<PathBuf>,

    /// The Linux kernel (a bzImage; its modules, where any are needed, in ../lib/modules) to compare with; without one, Ebb is measured alone.
    #[arg(long, value_name = "FILE")]
    pub linux: Option<PathBuf>,
}

/// How long one machine may run: there to end what hangs, and far above what a slow machine needs.
const LIMIT: Duration = Duration::from_secs(3600);

/// Memory of the machine that runs `bench`, and of the one that runs `many`: Linux needs that for 10,000 processes.
const MEMORY: &str = "512M";
const MEMORY_FOR_MANY: &str = "2G";

/// Memory of the machine with a disk.
const MEMORY_FOR_DISKS: &str = "1G";

/// Memory of the machine that ends workloads: Linux needs that for 1,000,000 pages, and for 100,000 threads.
const MEMORY_FOR_GROUPS: &str = "6G";

/// What QEMU makes of a drive of that name.
const DISK: &str = "virtio-blk-pci,drive=disk,disable-legacy=on,num-queues=1";

/// The modules that a Linux needs for such a disk with an ext4 file system; Debian loads what its processors have for checksums, too.
pub const DISK_MODULES: [&str; 5] = ["virtio_pci", "virtio_blk", "crc32c_generic", "crc32c_intel", "ext4"];

/// A kernel and how it is told what to do.
pub struct Measured {
    kernel: Kernel,
    command_line: &'static str,
    /// Whether `bench` runs in a control group.
    in_group: bool,
}

impl Measured {
    /// The kernel's name.
    pub fn name(&self) -> &'static str {
        self.kernel.name()
    }

    /// Ebb's ELF file.
    pub fn ebb(path: PathBuf) -> Self {
        Self { kernel: Kernel::Ebb(path), command_line: "quiet norandmaps init=/init", in_group: false }
    }

    /// The same, where the program `bench` runs in a control group with all controllers.
    pub fn in_group(self) -> Self {
        Self { in_group: true, ..self }
    }

    /// Linux from a bzImage. The ELF file inside is booted directly, as Ebb is, so that neither firmware nor
    /// decompression counts as boot time; where `xz` cannot unpack it, the bzImage is used.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn linux(image: &Path, directory: &Path) -> Result<Self> {
        let bytes = std::fs::read(image).with_context(|| format!("reading {}", image.display()))?;
        let path = match unpack(&bytes, directory)? {
            Some(unpacked) => unpacked,
            None => {
                eprintln!("note: {} is not unpacked; its boot time includes decompression", image.display());
                image.to_owned()
            }
        };
        Ok(Self {
            kernel: Kernel::Linux(path),
            command_line: "console=ttyS0 quiet panic=-1 nokaslr norandmaps mitigations=off \
                           transparent_hugepage=never tsc=reliable clocksource=tsc nowatchdog audit=0 apparmor=0 \
                           random.trust_cpu=on rdinit=/init",
            in_group: false,
        })
    }
}

/// The ELF file in a bzImage that was compressed with xz.
fn unpack(image: &[u8], directory: &Path) -> Result<Option<PathBuf>> {
    const XZ: &[u8] = b"\xfd7zXZ\0";
    let Some(start) = image.windows(XZ.len()).position(|window| window == XZ) else { return Ok(None) };
    let packed = directory.join("vmlinux.xz");
    let unpacked = directory.join("vmlinux");
    std::fs::write(&packed, &image[start..]).context("unpacking the Linux kernel")?;
    let output = std::fs::File::create(&unpacked).context("unpacking the Linux kernel")?;
    let input = std::fs::File::open(&packed).context("unpacking the Linux kernel")?;
    // What follows the stream is not ours; xz complains about it or not, but the first stream is written.
    let ran = Command::new("xz")
        .args(["--decompress", "--single-stream", "--stdout", "--quiet"])
        .stdin(input)
        .stdout(output)
        .stderr(Stdio::null())
        .status();
    let head = std::fs::read(&unpacked).unwrap_or_default();
    Ok((ran.is_ok() && head.starts_with(b"\x7fELF")).then_some(unpacked))
}

/// Runs the programs on a kernel: those with a row of `only`, or all if that is empty.
///
/// # Errors
/// A machine did not start or end, or a program did not print its figures.
pub fn measure(kernel: &Measured, programs: &Programs, only: &[String], directory: &Path) -> Result<Figures> {
    let mut figures = Figures::new();
    let is_wanted = |key: &str| only.is_empty() || only.iter().any(|name| name == key);
    if is_wanted(BOOT) {
        let run = boot(kernel, &programs.boot, MEMORY, only, directory)?;
        figures.extend(figures_in(&run.console));
        if figures.is_empty() {
            bail!("the boot program printed no figure; the console's last lines:\n{}", run.last_lines(20));
        }
    }
    let has_row = ROWS.iter().any(|row| row.key != BOOT && is_wanted(row.key));
    let has_row_of_many = MANY.iter().any(|row| is_wanted(row.key));
    let has_watched = WATCHED.iter().any(|(key, _)| is_wanted(key));
    for (program, memory, runs) in [
        (&programs.bench, MEMORY, has_row),
        (&programs.many, MEMORY_FOR_MANY, has_row_of_many),
        (&programs.watch, MEMORY_FOR_MANY, has_watched),
    ] {
        if !runs {
            continue;
        }
        let run = boot(kernel, program, memory, only, directory)?;
        figures.extend(figures_in(&run.console));
        if run.end == BareEnd::TimedOut || !run.console.contains("bench: done") {
            bail!("the measurements ended early ({:?}); the console's last lines:\n{}", run.end, run.last_lines(20));
        }
    }
    Ok(figures)
}

/// Runs a program that measures cores, on two, and tells `each_line` what it prints as it comes, with QEMU's process number. The host's time is the
/// machine's.
///
/// # Errors
/// The machine did not start or end, or the program failed.
pub fn measure_cores(
    kernel: &Measured,
    program: &Path,
    settings: &str,
    only: &[String],
    directory: &Path,
    each_line: &mut (dyn FnMut(u32, &str) + Send),
) -> Result<()> {
    let mut image = image(program, only)?;
    image.add_bytes("settings", 0o644, settings);
    let archive = write(&image, directory)?;
    let cpus = "2".parse().map_err(Error::msg)?;
    let run = machine(kernel, cpus, &["-m", MEMORY]).run_watched(&archive, each_line)?;
    if run.end == BareEnd::TimedOut || !run.console.contains("bench: done") {
        bail!("the measurements ended early ({:?}); the console's last lines:\n{}", run.end, run.last_lines(20));
    }
    Ok(())
}

/// Runs the program that ends workloads, tells `each_line` what it prints as it comes, and gives what the machine did.
///
/// # Errors
/// The machine did not start.
pub fn measure_groups(
    kernel: &Measured,
    program: &Path,
    cells: &[String],
    directory: &Path,
    each_line: &mut (dyn FnMut(u32, &str) + Send),
) -> Result<BareRun> {
    let archive = write(&image(program, cells)?, directory)?;
    let options = ["-m", MEMORY_FOR_GROUPS, "-icount", "shift=0,sleep=off"];
    Ok(machine(kernel, Cpus::ONE, &options).run_watched(&archive, each_line)?)
}

/// Runs the program that measures programs with files on a disk, with this image as the disk, and tells `each_line` what it prints as it comes.
///
/// # Errors
/// The machine did not start.
pub fn measure_disks(
    kernel: &Measured,
    image: Image,
    disk: &Path,
    options: &[&str],
    directory: &Path,
    each_line: &mut (dyn FnMut(u32, &str) + Send),
) -> Result<BareRun> {
    let archive = write(&image, directory)?;
    // The host's own disk is not measured: it has nothing to keep for good.
    let drive = format!("if=none,id=disk,format=raw,cache=unsafe,file={}", disk.display());
    let options = [&["-m", MEMORY_FOR_DISKS, "-drive", &drive, "-device", DISK], options].concat();
    Ok(machine(kernel, Cpus::ONE, &options).run_watched(&archive, each_line)?)
}

/// Runs the program whose sockets talk to each other, with a plugin of QEMU's and with this image as a disk that is not written, if there is one, and tells `each_line` what it prints as it comes.
///
/// # Errors
/// The machine did not start.
pub fn measure_network(
    kernel: &Measured,
    image: Image,
    disk: Option<&Path>,
    plugin: &str,
    directory: &Path,
    each_line: &mut (dyn FnMut(u32, &str) + Send),
) -> Result<BareRun> {
    let archive = write(&image, directory)?;
    let drive = disk.map(|disk| format!("if=none,id=disk,format=raw,cache=unsafe,readonly=on,file={}", disk.display()));
    let mut options = vec!["-m", MEMORY, "-plugin", plugin, "-icount"];
    match &drive {
        // A processor that waits for the disk lets the guest's clock run with the host's.
        Some(drive) => options.extend(["shift=0", "-drive", drive, "-device", DISK]),
        None => options.push("shift=0,sleep=off"),
    }
    Ok(machine(kernel, Cpus::ONE, &options).run_watched(&archive, each_line)?)
}

/// Runs one program as process 1, and counts its instructions.
fn boot(measured: &Measured, program: &Path, memory: &str, only: &[String], directory: &Path) -> Result<BareRun> {
    let options = ["-m", memory, "-icount", "shift=0,sleep=off"];
    let mut image = image(program, only)?;
    if measured.in_group {
        image.add_bytes("in-group", 0o644, "");
    }
    Ok(machine(measured, Cpus::ONE, &options).run(&write(&image, directory)?)?)
}

/// A file system with a program as process 1, and the rows that it is to measure.
///
/// # Errors
/// The program cannot be read.
pub fn image(program: &Path, only: &[String]) -> Result<Image> {
    let mut image = Image::base();
    image.insert("dev/console", Node::new(0o600, Kind::CharDevice(5, 1)));
    image.add_file("init", program)?;
    if !only.is_empty() {
        image.add_bytes("rows", 0o644, only.join("\n"));
    }
    Ok(image)
}

fn write(image: &Image, directory: &Path) -> Result<PathBuf> {
    let archive = directory.join("initramfs");
    image.write_to(&archive)?;
    Ok(archive)
}

fn machine<'a>(measured: &'a Measured, cpus: Cpus, qemu_options: &'a [&'a str]) -> BareMachine<'a> {
    BareMachine {
        kernel: &measured.kernel,
        command_line: measured.command_line,
        cpu: "max,-la57,-erms,-fsrm",
        cpus,
        qemu_options,
        limit: LIMIT,
    }
}

/// The lines `row<TAB>median...` of a console's text.
fn figures_in(text: &str) -> Figures {
    text.lines()
        .filter_map(|line| {
            let mut fields = line.split('\t');
            Some((fields.next()?.to_owned(), fields.next()?.trim().parse().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_told_from_other_text() {
        let text = "[    1.0] Linux says hello\nnull\t325\t320\nfork-exit-wait\t106279.5\t1\nno\tnumber\nbench: done\n";
        let figures = figures_in(text);
        assert_eq!(figures.len(), 2);
        assert_eq!(figures["null"], 325.0);
        assert_eq!(figures["fork-exit-wait"], 106279.5);
    }

    #[test]
    fn an_image_without_an_xz_stream_is_left_alone() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        assert!(unpack(b"no kernel", directory.path()).expect("no error").is_none());
    }
}
