//! Signals of the host, passed on to the guest.

use crate::terminal;
use ebb_guest::{Interrupt, Remote};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::iterator::Signals;
use std::time::{Duration, Instant};

/// This many SIGINT within [`IMPATIENCE`] end the machine, whatever the program in it does about them.
const IMPATIENT_COUNT: usize = 3;
const IMPATIENCE: Duration = Duration::from_secs(2);

/// From here on this process's signals go to the guest. SIGKILL and SIGSTOP cannot, and stopping at the terminal stops
/// this process, not the machine's program.
pub fn forward_to(remote: Remote) {
    // Without signals everything else still works.
    let Ok(mut signals) = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH]) else {
        return;
    };
    std::thread::spawn(move || {
        let mut interrupts: Vec<Instant> = Vec::new();
        for signal in signals.forever() {
            if signal == SIGWINCH {
                send_window_size(&remote);
                continue;
            }
            remote.send(Interrupt::Signal(signal as u8));
            if signal == SIGINT {
                interrupts.retain(|at| at.elapsed() < IMPATIENCE);
                interrupts.push(Instant::now());
                if interrupts.len() >= IMPATIENT_COUNT {
                    remote.send(Interrupt::Abandon(signal as u8));
                }
            }
        }
    });
}

/// Tells the guest how large the terminal is, if there is one.
pub fn send_window_size(remote: &Remote) {
    if let Some((rows, columns)) = terminal::size() {
        remote.send(Interrupt::WindowSize(rows, columns));
    }
}
