//! `ebb run`: one program of the host, or of a root file system, in a fresh machine.

use crate::group::GroupArguments;
use crate::machine::MachineArguments;
use crate::signals;
use crate::terminal::{self, Keys, RawTerminal};
use crate::time::parse_time;
use clap::Args;
use ebb_guest::image::{busybox, host_program};
use ebb_guest::{Error, Guest, Image, Input, OutputStream, Program, Result, RootImage};
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What `ebb run` takes.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    machine: MachineArguments,

    /// Give the program a terminal, which must be this one: for shells, editors, debuggers. Ctrl-A x ends the machine at once.
    #[arg(short = 't', long)]
    tty: bool,

    /// Keep standard input open, as always; with -t as in `docker run -it`.
    #[arg(short = 'i', long)]
    interactive: bool,

    /// Stop after this time, boot included: 30s, 500ms, 2m.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    timeout: Option<Duration>,

    #[command(flatten)]
    group: GroupArguments,

    /// Set a variable of the program's environment; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_variable)]
    env: Vec<(String, String)>,

    /// The program's working directory in the guest; made if it is missing.
    #[arg(long, value_name = "DIRECTORY", default_value = "/")]
    workdir: String,

    /// The guest's root file system: a directory, a tar or cpio archive, plain or gzipped, or an image of EROFS, squashfs, ext2, ext3 or ext4, which stays as it is; with :rw behind an image of ext2, ext3 or ext4 the guest writes to it.
    #[arg(long, value_name = "DIR|TAR|CPIO|IMAGE[:rw]")]
    rootfs: Option<PathBuf>,

    /// The program: a path or a name in PATH, in the root file system or else on this machine.
    program: String,

    /// The program's arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// The size of a terminal that has none: a serial line, say.
const DEFAULT_SIZE: (u16, u16) = (24, 80);

/// Runs the program; returns the code to exit with.
pub fn run(arguments: Arguments) -> Result<u8> {
    if arguments.tty && !std::io::stdin().is_terminal() {
        return Err(Error::NoTerminal);
    }
    let started = Instant::now();
    let mut machine = arguments.machine.machine()?;
    if let Some(limit) = arguments.timeout {
        machine.boot_limit = limit;
    }
    let root = arguments.rootfs.as_deref().map(RootImage::at).transpose()?.flatten();
    let in_volume = machine.volumes.iter().find_map(|volume| volume.host_path(&arguments.program));
    let (image, program_path) = match (root, arguments.rootfs.as_deref()) {
        (Some(root), _) => {
            root.attach(&mut machine);
            // The guest looks the program up.
            (agent_alone()?, PathBuf::from(&arguments.program))
        }
        (None, Some(directory))
            if machine.kernel.has_volumes() && (in_volume.is_some() || has_program(directory, &arguments.program)) =>
        {
            machine.root_directory = Some(directory.to_path_buf());
            (agent_alone()?, PathBuf::from(&arguments.program))
        }
        _ => image_with_program(&arguments, in_volume)?,
    };
    let report = arguments.group.report()?;

    let mut program = Program::new(program_path).arg0(&arguments.program).args(&arguments.arguments);
    if let Some(term) = std::env::var_os("TERM") {
        program = program.env("TERM", term);
    }
    for (name, value) in &arguments.env {
        program = program.env(name, value);
    }
    program = arguments.group.give(program.current_dir(&arguments.workdir));

    let timed_out = |error| match (error, arguments.timeout) {
        (Error::Died { .. }, Some(limit)) if started.elapsed() >= limit => Error::TimedOut(limit),
        (Error::TimedOut(_), Some(limit)) => Error::TimedOut(limit),
        (error, _) => error,
    };
    let mut guest = Guest::boot_with(machine, &image, signals::forward_to).map_err(timed_out)?;
    let left = arguments.timeout.map(|limit| limit.saturating_sub(started.elapsed()));
    let raw = arguments.tty.then(RawTerminal::enter);
    let input = if arguments.tty {
        let (rows, columns) = terminal::size().unwrap_or(DEFAULT_SIZE);
        Input::Terminal { keys: Box::new(Keys::new(guest.remote())), rows, columns }
    } else {
        Input::Stream(Box::new(std::io::stdin()))
    };
    let exit = guest
        .stream(&program, input, left, |stream, bytes| match stream {
            OutputStream::Stdout => {
                let mut stdout = std::io::stdout().lock();
                stdout.write_all(bytes)?;
                stdout.flush()
            }
            OutputStream::Stderr => std::io::stderr().write_all(bytes),
        })
        .map_err(timed_out);
    drop(raw);
    if let Some(statistics) = guest.take_statistics() {
        report.write(&statistics, exit.as_ref().is_ok_and(|exit| exit.is_success()))?;
    }
    let exit = exit?;
    // The program has ended; how the machine ends is of no interest, unless the kernel panics on the way.
    match guest.shutdown() {
        Err(error @ Error::Panicked(_)) => Err(error),
        _ => Ok(exit.shell_code()),
    }
}

/// What a guest starts from whose root is on a disk.
fn agent_alone() -> Result<Image> {
    let mut image = Image::empty();
    image.complete();
    image.add_agent(None)?;
    Ok(image)
}

/// The guest's file system, and the program's path in it. One that is in a volume is at this machine's `in_volume`.
fn image_with_program(arguments: &Arguments, in_volume: Option<PathBuf>) -> Result<(Image, PathBuf)> {
    let name = &arguments.program;
    let mut image = match &arguments.rootfs {
        Some(rootfs) => Image::from_rootfs(rootfs)?,
        None => Image::empty(),
    };
    let path = if let Some(at_host) = in_volume {
        if arguments.rootfs.is_none() {
            // For the libraries that it needs.
            image.add_host_program(&at_host)?;
        }
        name.into()
    } else if let Some(path) = find_in_image(&image, name) {
        path
    } else {
        let path = host_program::find(name)?;
        image.add_host_program(&path)?;
        path
    };
    if arguments.rootfs.is_none() && busybox::find().is_ok() {
        image.add_busybox()?;
    }
    image.complete();
    image.add_agent(None)?;
    Ok((image, path))
}

/// The directories that a program without a slash is looked for in.
const PLACES: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Whether there is something of a program's name in a root file system that is a directory. (Where links in it lead, only the guest knows.)
fn has_program(directory: &Path, name: &str) -> bool {
    let is_there = |path: &Path| directory.join(path.strip_prefix("/").unwrap_or(path)).symlink_metadata().is_ok();
    let is_directory = directory.is_dir();
    let mut places = PLACES.iter().map(|place| Path::new(place).join(name));
    is_directory && if name.contains('/') { is_there(Path::new(name)) } else { places.any(|path| is_there(&path)) }
}

fn find_in_image(image: &Image, name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        let path = Path::new("/").join(name);
        return image.has_program(&path).then_some(path);
    }
    PLACES.iter().map(|directory| Path::new(directory).join(name)).find(|path| image.has_program(path))
}

fn parse_variable(text: &str) -> std::result::Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("expected NAME=VALUE".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variables_value_may_hold_anything() {
        assert_eq!(parse_variable("A=b=c"), Ok(("A".into(), "b=c".into())));
        assert_eq!(parse_variable("A="), Ok(("A".into(), String::new())));
        assert!(parse_variable("A").is_err());
        assert!(parse_variable("=b").is_err());
    }
}
