//! Changed initial file systems: cpio archives, plain and compressed, with wrong numbers, cut ends and changed bytes.
//!
//! A machine whose archive has lost its `/init` cannot go on; it must say so and switch off, or go on with what there is.
//! A panic, a triple fault or a machine that hangs is a failure.

use crate::random::Random;
use crate::runs::Machines;
use anyhow::{Context, Result};
use ebb_guest::Image;
use ebb_guest::bare::{BareEnd, BareMachine};
use ebb_guest::image::{Kind, Node, elf};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// How long one machine may take; it boots in a fraction of a second, and only one that hangs gets here, however busy the host is.
const LIMIT: Duration = Duration::from_secs(300);

/// What the kernel says where it rightly gives up: without a process 1 there is nothing to do.
const GIVES_UP: [&str; 3] = ["the root file system cannot be unpacked", "the first program,", "process 1 "];

/// `reboot(LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, LINUX_REBOOT_CMD_POWER_OFF)`.
const POWER_OFF: &[u8] = &[
    0xbf, 0xad, 0xde, 0xe1, 0xfe, // mov edi, 0xfee1dead
    0xbe, 0x69, 0x19, 0x12, 0x28, // mov esi, 0x28121969
    0xba, 0xdc, 0xfe, 0x21, 0x43, // mov edx, 0x4321fedc
    0xb8, 0xa9, 0x00, 0x00, 0x00, // mov eax, 169
    0x0f, 0x05, // syscall
    0xeb, 0xfe, // jmp to itself
];

/// Boots `count` machines; how many of them the kernel did not survive.
pub fn boot_all(machines: &Machines, seed: u64, count: u32) -> Result<u32> {
    let plain = original(machines.directory)?;
    let path = machines.directory.join("changed.cpio");
    let mut failures = 0;
    println!("archives {seed} {count}");
    for index in 0..count {
        let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(u64::from(index)));
        std::fs::write(&path, changed(&plain, &mut random)?).context("writing an archive")?;
        let machine = BareMachine {
            kernel: machines.kernel,
            command_line: "quiet norandmaps init=/init",
            cpu: "max,-la57",
            cpus: machines.cpus,
            qemu_options: &[],
            limit: LIMIT,
        };
        let run = machine.run(&path)?;
        let is_orderly = match run.end {
            BareEnd::PoweredOff => true,
            BareEnd::Panicked => GIVES_UP.iter().any(|reason| run.console.contains(reason)),
            BareEnd::TimedOut | BareEnd::Died => false,
        };
        if !is_orderly {
            failures += 1;
            println!("  archive {index} of seed {seed} ({:?}):\n{}", run.end, run.last_lines(30));
        }
    }
    println!("  archives: {count} booted, seed {seed}, done");
    Ok(failures)
}

/// A small file system with one of each kind of file.
fn original(directory: &Path) -> Result<Vec<u8>> {
    let mut image = Image::base();
    image.add_bytes("init", 0o755, elf::tiny_program(POWER_OFF));
    image.add_bytes("data", 0o644, vec![b'd'; 10_000]);
    image.add_symlink("link", "/data");
    image.insert("hard", Node::new(0o644, Kind::HardLink("data".into())));
    image.insert("fifo", Node::new(0o600, Kind::Fifo));
    image.insert("device", Node::new(0o600, Kind::CharDevice(1, 3)));
    image.add_bytes("deep/er/and/deeper", 0o600, b"text".to_vec());
    let path = directory.join("original.cpio");
    image.write_to(&path)?;
    std::fs::read(&path).context("reading the archive")
}

fn changed(plain: &[u8], random: &mut Random) -> Result<Vec<u8>> {
    let mut bytes = plain.to_vec();
    for _ in 0..=random.below(4) {
        match random.below(6) {
            0 => bytes.truncate(random.below(bytes.len()) + 1),
            1 => change_field(&mut bytes, random, "ffffffff"),
            2 => change_field(&mut bytes, random, "7fffffff"),
            3 => {
                let number = format!("{:08x}", random.number() as u32 >> random.below(32));
                change_field(&mut bytes, random, &number);
            }
            4 => {
                let at = random.below(bytes.len());
                bytes[at] = random.number() as u8;
            }
            _ => {
                // A stretch of the archive again at another place.
                let from = random.below(bytes.len());
                let len = random.below(300).min(bytes.len() - from);
                let stretch = bytes[from..from + len].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, stretch);
            }
        }
    }
    if random.below(3) == 0 {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&bytes).context("compressing")?;
        bytes = encoder.finish().context("compressing")?;
        if random.below(2) == 0 {
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
        if random.below(4) == 0 {
            bytes.truncate(random.below(bytes.len()) + 1);
        }
    }
    Ok(bytes)
}

/// Writes a number of eight digits into a field of the header of one entry (cpio(5), "newc").
fn change_field(bytes: &mut [u8], random: &mut Random, number: &str) {
    const MAGIC: &[u8] = b"070701";
    const FIELDS: usize = 13;
    let headers: Vec<usize> =
        bytes.windows(MAGIC.len()).enumerate().filter(|(_, w)| *w == MAGIC).map(|(at, _)| at).collect();
    if headers.is_empty() {
        return;
    }
    let at = headers[random.below(headers.len())] + MAGIC.len() + random.below(FIELDS) * 8;
    if let Some(field) = bytes.get_mut(at..at + 8) {
        field.copy_from_slice(number.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_archive() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let plain = original(directory.path()).expect("an archive");
        let make = |seed| changed(&plain, &mut Random::new(seed)).expect("a changed archive");
        assert_eq!(make(5), make(5));
        assert!((0..20).any(|seed| make(seed) != plain));
    }
}
