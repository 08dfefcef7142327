//! `ebb tour`: what `make run` shows.

use crate::machine::MachineArguments;
use crate::signals;
use clap::Args;
use ebb_guest::image::elf;
use ebb_guest::{Error, Exit, Guest, Image, Input, Program, Result};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// What `ebb tour` takes.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    machine: MachineArguments,
}

/// `xor eax, eax; mov eax, [rax]`: reads what a null pointer points to.
const READ_NULL: [u8; 4] = [0x31, 0xc0, 0x8b, 0x00];

/// How long one stop of the tour may take.
const STOP_LIMIT: Duration = Duration::from_secs(60);

struct Stop {
    title: &'static str,
    script: &'static str,
    /// What the output must contain for the stop to have gone well.
    shows: &'static str,
}

const STOPS: [Stop; 7] = [
    Stop { title: "Which system is this?", script: "uname -a", shows: "x86_64" },
    Stop {
        title: "A pipeline: the sum of the numbers to 1000 that contain a 7",
        script: "seq 1000 | grep 7 | awk '{ sum += $1 } END { print NR \" numbers, sum \" sum }'",
        shows: "271 numbers",
    },
    Stop {
        title: "A background job that is killed",
        script: "sleep 1000 & kill $!; wait $!; echo \"the job ended with status $?\"",
        shows: "status 143",
    },
    Stop { title: "Processes", script: "ps", shows: "agent" },
    Stop {
        title: "Files in /tmp",
        script: "cd /tmp && echo 'low tide' > ebb && ln -s ebb link && cat link && ls -l",
        shows: "low tide",
    },
    Stop {
        title: "A program that reads through a null pointer",
        script: "/bin/read-null; echo \"it ended with status $?, the system goes on\"",
        shows: "status 139",
    },
    Stop { title: "And the system is well", script: "free && uptime", shows: "Mem:" },
];

/// Shows the tour; returns the code to exit with: 0 if every stop went well.
pub fn tour(arguments: &Arguments) -> Result<u8> {
    let started = Instant::now();
    let machine = arguments.machine.machine()?;
    let name = machine.kernel.name();
    let mut image = Image::base();
    image.add_busybox()?;
    image.add_bytes("/bin/read-null", 0o755, elf::tiny_program(&READ_NULL));
    println!("Booting {name} in QEMU ({} MiB of memory).", machine.memory.0);
    let mut guest = Guest::boot_with(machine, &image, signals::forward_to)?;

    let (bold, plain) = if std::io::stdout().is_terminal() { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
    let mut wrong = 0;
    for Stop { title, script, shows } in STOPS {
        println!("\n{bold}{title}{plain}\n$ {script}");
        let program = Program::new("/bin/sh").args(["-c", script]);
        let mut seen = Vec::new();
        let exit = guest.stream(&program, Input::Null, Some(STOP_LIMIT), |_, bytes| {
            seen.extend_from_slice(bytes);
            let mut stdout = std::io::stdout().lock();
            stdout.write_all(bytes)?;
            stdout.flush()
        });
        let exit = match exit {
            Err(Error::TimedOut(limit)) => {
                println!("(it did not end within {} s)", limit.as_secs());
                Exit::Signal(9)
            }
            other => other?,
        };
        if !exit.is_success() || !String::from_utf8_lossy(&seen).contains(shows) {
            wrong += 1;
            println!("(this went wrong: {exit}, and \"{shows}\" was expected in what it prints)");
        }
    }

    let (boot, kernel_boot) = (guest.boot_time(), guest.kernel_boot_time());
    guest.shutdown()?;
    println!(
        "\n{name} booted in {:.3} s on its own clock, {:.2} s from the start of QEMU; the tour took {:.1} s.",
        kernel_boot.as_secs_f64(),
        boot.as_secs_f64(),
        started.elapsed().as_secs_f64()
    );
    match wrong {
        0 => Ok(0),
        _ => {
            println!("{wrong} of {} stops went wrong.", STOPS.len());
            Ok(1)
        }
    }
}
