//! The kernel's console as the host sees it.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// The most bytes of the console's text that are kept; older ones go first.
const KEPT_BYTES: usize = 256 * 1024;

/// What the kernel has printed, its last part.
#[derive(Debug, Clone, Default)]
pub struct Log {
    text: Arc<Mutex<Vec<u8>>>,
}

impl Log {
    /// Reads the console until it ends, in a thread of its own; copies it to standard error if `shown`.
    pub(crate) fn keep(&self, mut console: UnixStream, shown: bool) -> JoinHandle<()> {
        let log = self.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = console.read(&mut bytes) {
                log.append(&bytes[..count]);
                if shown {
                    // Nothing can be done for a log that nobody takes.
                    let _ = std::io::stderr().write_all(&bytes[..count]);
                }
            }
        })
    }

    fn append(&self, bytes: &[u8]) {
        let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        text.extend_from_slice(bytes);
        let excess = text.len().saturating_sub(KEPT_BYTES);
        text.drain(..excess);
    }

    /// The text so far, with what a terminal would not show removed.
    pub fn text(&self) -> String {
        let bytes = self.text.lock().unwrap_or_else(PoisonError::into_inner).clone();
        String::from_utf8_lossy(&bytes).chars().filter(|&c| c == '\n' || c == '\t' || !c.is_control()).collect()
    }

    /// The last lines, at most `count`; `None` if nothing was printed.
    pub fn last_lines(&self, count: usize) -> Option<String> {
        let text = self.text();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let tail = lines[lines.len().saturating_sub(count)..].join("\n");
        (!tail.is_empty()).then_some(tail)
    }
}
