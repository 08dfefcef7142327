//! A program on the console, with job control: the console is the terminal of its session.

use crate::children::{self, ChildNotice};
use crate::line::Line;
use crate::session;
use ebb_protocol::{ToGuest, ToHost};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Pid;
use rustix::termios::{Winsize, tcsetwinsize};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The terminal behind `/dev/console`; a console itself cannot be a session's terminal on Linux.
const TERMINAL: &str = "/dev/ttyS0";

/// Runs a program in a session of its own on the console, keeps the terminal's size that of the host's, and returns
/// when the program has ended.
pub fn run_on_console(own_path: &OsStr, arguments: &[OsString], boot_ns: u64) -> io::Result<()> {
    let is_variable = |argument: &&OsString| argument.as_bytes().contains(&b'=');
    let variables: Vec<_> = arguments.iter().take_while(is_variable).collect();
    let program = &arguments[variables.len()..];

    let mut notice = ChildNotice::install()?;
    let mut line = Line::open()?;
    let terminal = session::open_terminal(Path::new(TERMINAL))?;
    let login = [login_shell(), OsString::from("-l")];
    let program = if program.is_empty() { &login } else { program };
    let (program, program_arguments) = (&program[0], &program[1..]);
    line.send(&ToHost::Ready { boot_ns })?;

    let child = session::command(own_path, Path::new(TERMINAL), program, program)
        .args(program_arguments)
        .current_dir(if Path::new("/root").is_dir() { "/root" } else { "/" })
        .envs(variables.iter().filter_map(|variable| split_variable(variable)))
        .spawn()?;
    let pid = Pid::from_child(&child);
    let exit = loop {
        if let Some(exit) = children::reap(pid).exit {
            break exit;
        }
        let mut descriptors = [PollFd::new(&line, PollFlags::IN), PollFd::new(&notice, PollFlags::IN)];
        let line_ready = match poll(&mut descriptors, None) {
            Ok(_) => !descriptors[0].revents().is_empty(),
            Err(_) => false,
        };
        notice.clear();
        if !line_ready {
            continue;
        }
        for message in line.receive()? {
            match message {
                ToGuest::WindowSize { rows, columns } => {
                    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
                    // A console without a size is usable, if less pleasant.
                    let _ = tcsetwinsize(&terminal, size);
                }
                ToGuest::Shutdown => return Ok(()),
                _ => {}
            }
        }
    };
    children::kill_all_others();
    line.send(&ToHost::Exited(exit))
}

/// The shell that root's line in `/etc/passwd` names, if it is there.
fn login_shell() -> OsString {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let named = users.lines().find(|line| line.starts_with("root:")).and_then(|line| line.rsplit(':').next());
    named.filter(|shell| Path::new(shell).is_file()).unwrap_or("/bin/sh").into()
}

fn split_variable(variable: &OsStr) -> Option<(&OsStr, &OsStr)> {
    let at = variable.as_bytes().iter().position(|&byte| byte == b'=')?;
    let (name, rest) = variable.as_bytes().split_at(at);
    Some((OsStr::from_bytes(name), OsStr::from_bytes(&rest[1..])))
}
