//! poll(2): one look at several descriptors.

use frame::Cx;
use refs::{TempRc, Waker};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::fs::{Events, FileTable, OpenFile, OpenFlags};

/// What poll(2) exchanges for each descriptor.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct PollFd {
    /// The descriptor; negative ones are passed over.
    pub fd: i32,
    /// What is asked for.
    pub events: u16,
    /// What is ready.
    pub ready: u16,
}

/// Looks at all descriptors and notes what is ready; how many have anything. With a waker: it is woken when that may
/// have changed. It is taken away where something is ready, since then nobody will wait.
pub fn poll_step(fds: &mut [PollFd], waker: &mut Option<Waker>, files: &FileTable, cx: &Cx) -> usize {
    let handles = files.handles.lock(cx);
    let mut count = 0;
    for entry in fds {
        entry.ready = 0;
        let Ok(fd) = usize::try_from(entry.fd) else { continue };
        let open = handles.get(fd, cx).filter(|open| !open.flags().contains(OpenFlags::PATH));
        let events = match open {
            Some(open) => {
                if let Some(waker) = *waker {
                    watch(&open, waker, cx);
                }
                open.file.poll(Events::from_bits_retain(u32::from(entry.events)), *waker, cx)
            }
            None => Events::INVALID,
        };
        if !events.is_empty() {
            entry.ready = events.bits() as u16;
            count += 1;
            *waker = None;
        }
    }
    count
}

/// Has `waker` woken when the description is closed. Not inlined: a look without a waker is quicker for it.
#[inline(never)]
fn watch(open: &TempRc<'_, OpenFile>, waker: Waker, cx: &Cx) {
    open.downgrade().watch(waker, cx);
}
