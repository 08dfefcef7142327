//! This process's terminal, lent to a program in a guest: its keys, its mode and its size.

use ebb_guest::{Interrupt, Remote};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{self, Read};

/// The key that makes the next one a command to this program, as in `screen` and QEMU.
const ESCAPE: u8 = 0x01;
const SIGTERM: u8 = 15;

/// What is typed. Ctrl-A x ends the machine at once; Ctrl-A twice is one Ctrl-A for the program.
pub struct Keys {
    remote: Remote,
    escaped: bool,
}

impl Keys {
    /// Standard input; the remote is told of the end that was asked for.
    pub fn new(remote: Remote) -> Self {
        Self { remote, escaped: false }
    }

    /// Takes the commands out of what was typed; at most as many bytes as came remain, and one for a key that waited.
    fn filter(&mut self, typed: &[u8]) -> Vec<u8> {
        let mut keys = Vec::with_capacity(typed.len() + 1);
        for &key in typed {
            match (self.escaped, key) {
                (false, ESCAPE) => {
                    self.escaped = true;
                    continue;
                }
                (true, b'x' | b'X') => self.remote.send(Interrupt::Abandon(SIGTERM)),
                (true, ESCAPE) | (false, _) => keys.push(key),
                (true, _) => keys.extend([ESCAPE, key]),
            }
            self.escaped = false;
        }
        keys
    }
}

impl Read for Keys {
    /// Reads standard input; 0 only at its end. The buffer must have room for two bytes.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = buffer.len() - 1;
        loop {
            let count = io::stdin().read(&mut buffer[..room])?;
            let keys = self.filter(&buffer[..count]);
            buffer[..keys.len()].copy_from_slice(&keys);
            if count == 0 || !keys.is_empty() {
                return Ok(keys.len());
            }
        }
    }
}

/// Lines and characters in a line of the terminal on standard input, if it is one.
pub fn size() -> Option<(u16, u16)> {
    tcgetwinsize(io::stdin()).ok().map(|size| (size.ws_row, size.ws_col))
}

/// The terminal passes every key on as it is; dropping this puts it back as it was.
pub struct RawTerminal {
    before: Option<Termios>,
}

impl RawTerminal {
    /// Switches the terminal on standard input over.
    pub fn enter() -> Self {
        let before = tcgetattr(io::stdin()).ok();
        if let Some(before) = &before {
            let mut raw = before.clone();
            raw.make_raw();
            // A terminal that cannot be raw still works, line by line.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &raw);
        }
        Self { before }
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}
