//! poll(2): one look at several descriptors.

use frame::Cx;
use refs::Waker;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::fs::{Descriptors, Events, FileTable, VfsCaller, asker_matters};

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
#[inline]
pub fn poll_step(
    fds: &mut [PollFd],
    waker: &mut Option<Waker>,
    files: &FileTable,
    me: &dyn VfsCaller,
    cx: &Cx,
) -> usize {
    if asker_matters() { look::<true>(fds, waker, files, me, cx) } else { look::<false>(fds, waker, files, me, cx) }
}

/// As [`poll_step`]; whether there may be files to which it matters who asks.
#[inline(always)]
fn look<const FOR_CALLER: bool>(
    fds: &mut [PollFd],
    waker: &mut Option<Waker>,
    files: &FileTable,
    me: &dyn VfsCaller,
    cx: &Cx,
) -> usize {
    let handles = files.handles.lock(cx);
    let mut ready = 0;
    let mut rest = fds.iter_mut();
    if waker.is_some() {
        ready += enter(&mut rest, waker, &handles, me, cx);
    }
    for entry in rest {
        let Ok(fd) = usize::try_from(entry.fd) else {
            entry.ready = 0;
            continue;
        };
        let events = handles.get(fd, cx).map_or(Events::INVALID, |open| match FOR_CALLER {
            true => open.file.poll_for(me, entry.interest(), None, cx),
            false => open.file.poll(entry.interest(), None, cx),
        });
        entry.ready = events.bits() as u16;
        ready += usize::from(!events.is_empty());
    }
    ready
}

/// Enters the waker until one is ready, and takes it away then; how many are. Apart from the look without a waker, which is quicker for it.
#[inline(never)]
fn enter(
    rest: &mut core::slice::IterMut<'_, PollFd>,
    waker: &mut Option<Waker>,
    handles: &Descriptors,
    me: &dyn VfsCaller,
    cx: &Cx,
) -> usize {
    for entry in rest {
        entry.ready = 0;
        let Ok(fd) = usize::try_from(entry.fd) else { continue };
        let events = handles.get(fd, cx).map_or(Events::INVALID, |open| {
            if let Some(waker) = *waker {
                open.downgrade().watch(waker, cx);
            }
            open.poll_for(me, entry.interest(), *waker, cx)
        });
        if !events.is_empty() {
            entry.ready = events.bits() as u16;
            *waker = None;
            return 1;
        }
    }
    0
}

/// What was found so did not get to the program.
#[cold]
pub fn poll_was_lost(fds: &[PollFd], files: &FileTable, cx: &Cx) {
    let handles = files.handles.lock(cx);
    for entry in fds.iter().filter(|entry| entry.ready != 0) {
        if let Some(open) = usize::try_from(entry.fd).ok().and_then(|fd| handles.get(fd, cx)) {
            open.file.poll_was_lost(Events::from_bits_retain(entry.ready.into()));
        }
    }
}

impl PollFd {
    #[inline(always)]
    fn interest(&self) -> Events {
        Events::from_bits_retain(u32::from(self.events))
    }
}
