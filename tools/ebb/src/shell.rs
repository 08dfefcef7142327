//! `ebb shell`: a shell on the machine's console, and this terminal for it: BusyBox's, or root's login shell of a root file system.

use crate::machine::MachineArguments;
use crate::signals;
use crate::terminal::{Keys, RawTerminal};
use clap::Args;
use ebb_guest::{ConsoleUse, Error, Guest, Image, Remote, Result, RootImage};
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// What `ebb shell` takes.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    machine: MachineArguments,

    /// The guest's root file system: a directory, or a tar or cpio archive, plain or gzipped, to which BusyBox is added; or an image of EROFS, squashfs, ext2, ext3 or ext4, with a shell of its own; with :rw behind an image of ext2, ext3 or ext4 the guest writes to it.
    #[arg(long, value_name = "DIR|TAR|CPIO|IMAGE[:rw]")]
    rootfs: Option<PathBuf>,
}

/// What the shell reads first.
const PROFILE: &str =
    "export PS1='ebb:\\w\\$ '\nexport PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n";

const CTRL_D: u8 = 0x04;
/// How often the shell is told that its input has ended.
const END_INTERVAL: Duration = Duration::from_millis(500);

/// Runs the shell to its end; returns its exit code.
pub fn shell(arguments: &Arguments) -> Result<u8> {
    let mut machine = arguments.machine.machine()?;
    machine.console = ConsoleUse::Interactive;
    machine.kernel_options = "quiet".into();
    let term = std::env::var("TERM").ok().filter(|term| term.chars().all(|c| c.is_ascii_graphic()));
    machine.agent_arguments = vec![
        "shell".into(),
        format!("TERM={}", term.as_deref().unwrap_or("vt100")),
        "HOME=/root".into(),
        "USER=root".into(),
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into(),
    ];
    let root = arguments.rootfs.as_deref().map(RootImage::at).transpose()?.flatten();
    let has_shell = |rootfs: &PathBuf| rootfs.is_dir() && rootfs.join("bin/sh").symlink_metadata().is_ok();
    machine.root_directory = arguments.rootfs.clone().filter(|it| machine.kernel.has_volumes() && has_shell(it));
    let is_mounted = root.is_some() || machine.root_directory.is_some();
    let mut image = match &arguments.rootfs {
        Some(rootfs) if !is_mounted => Image::from_rootfs(rootfs)?,
        _ => Image::empty(),
    };
    image.complete();
    if let Some(root) = root {
        root.attach(&mut machine);
    }
    if !is_mounted {
        image.add_busybox()?;
        if image.lookup("/etc/profile".as_ref()).is_none() {
            image.add_bytes("/etc/profile", 0o644, PROFILE);
        }
    }

    let at_terminal = io::stdin().is_terminal();
    if at_terminal {
        eprintln!("Booting. `exit` or Ctrl-D ends the shell and the machine; Ctrl-A x ends the machine at once.");
    }
    let mut guest = Guest::boot_with(machine, &image, signals::forward_to)?;
    let Some(console) = guest.take_console() else {
        return Err(Error::Died { why: "the machine has no console".into(), log: None });
    };
    let remote = guest.remote();
    signals::send_window_size(&remote);
    let _raw = at_terminal.then(RawTerminal::enter);
    let failed = |error| Error::Io { doing: "connecting to the console".into(), error };
    let to_console = console.try_clone().map_err(failed)?;
    std::thread::spawn(move || pass_keys_on(to_console, remote));
    let printer = std::thread::spawn(move || show(console));

    let exit = guest.wait_for_exit()?;
    guest.wait_for_power_off()?;
    // With the machine gone its console has ended, so what it printed last is shown.
    let _ = printer.join();
    Ok(exit.shell_code())
}

/// Copies the console to standard output until it ends.
fn show(mut console: UnixStream) {
    let mut bytes = [0; 4096];
    let mut stdout = io::stdout();
    while let Ok(count @ 1..) = console.read(&mut bytes) {
        if stdout.write_all(&bytes[..count]).and_then(|()| stdout.flush()).is_err() {
            return;
        }
    }
}

/// Copies standard input to the console; its end becomes a Ctrl-D.
fn pass_keys_on(mut console: UnixStream, remote: Remote) {
    let mut keys = Keys::new(remote);
    let mut bytes = [0; 256];
    while let Ok(count @ 1..) = keys.read(&mut bytes) {
        if console.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
    // A terminal that changes its mode drops a Ctrl-D that came too early: so again and again, until the console is gone.
    while console.write_all(&[CTRL_D]).is_ok() {
        std::thread::sleep(END_INTERVAL);
    }
}
