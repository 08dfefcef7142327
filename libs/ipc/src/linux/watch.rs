//! Noticing that a peer died.
//!
//! A process that is killed says nothing, so something of the system has to tell: its end of a socket is closed, or its pidfd
//! becomes readable. One thread per process waits for all such signs, so that nothing is spent on it while peers live and no time
//! is lost when one dies; the thread is started with the first watch and then stays.

use std::boxed::Box;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use super::check;
use crate::{Doorbell, Link};

/// By what a peer's death shows.
pub enum Sign {
    /// A socket whose other end only the peer holds.
    HangUp(OwnedFd),
    /// A pidfd of the peer (`pidfd_open(2)`).
    Exit(OwnedFd),
}

/// A watched peer. Dropping it ends the watch and closes the descriptor.
pub struct Watch {
    id: u64,
}

/// Marks `link` dead and wakes its sleeper as soon as the sign shows.
///
/// # Errors
/// What the system says when the watcher cannot be started or the descriptor not be watched.
pub fn watch(sign: Sign, link: &Link, bell: impl Doorbell + Send + 'static) -> io::Result<Watch> {
    let watcher = watcher()?;
    let (fd, events) = match sign {
        Sign::HangUp(fd) => (fd, libc::EPOLLRDHUP),
        Sign::Exit(fd) => (fd, libc::EPOLLIN),
    };
    let link = link.downgrade();
    let died = Box::new(move || {
        if let Some(link) = link.upgrade() {
            link.mark_dead();
            bell.ring_own(&link);
        }
    });
    let mut watched = watcher.watched();
    let id = watched.next_id;
    watched.next_id += 1;
    let mut event = libc::epoll_event { events: (events | libc::EPOLLHUP | libc::EPOLLONESHOT) as u32, u64: id };
    // SAFETY: both descriptors are open, and `event` is valid.
    check(unsafe { libc::epoll_ctl(watcher.epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd.as_raw_fd(), &mut event) })?;
    watched.peers.insert(id, Peer { fd, died: Some(died) });
    Ok(Watch { id })
}

impl Drop for Watch {
    fn drop(&mut self) {
        let Ok(watcher) = watcher() else { return };
        let peer = watcher.watched().peers.remove(&self.id);
        if let Some(peer) = peer {
            // Copies of the descriptor may be left in other processes: closing ours does not end the watch by itself.
            // SAFETY: both descriptors are open.
            unsafe {
                let null = std::ptr::null_mut();
                libc::epoll_ctl(watcher.epoll.as_raw_fd(), libc::EPOLL_CTL_DEL, peer.fd.as_raw_fd(), null);
            }
        }
    }
}

struct Watcher {
    epoll: OwnedFd,
    watched: Mutex<Watched>,
}

#[derive(Default)]
struct Watched {
    next_id: u64,
    peers: HashMap<u64, Peer>,
}

struct Peer {
    fd: OwnedFd,
    died: Option<Box<dyn FnOnce() + Send>>,
}

impl Watcher {
    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn watcher() -> io::Result<&'static Watcher> {
    static WATCHER: OnceLock<Watcher> = OnceLock::new();
    static STARTING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(watcher) = WATCHER.get() {
        return Ok(watcher);
    }
    // SAFETY: a system call that touches no memory.
    let epoll = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
    // SAFETY: the system just gave us this descriptor and nobody else has it.
    let epoll = unsafe { OwnedFd::from_raw_fd(epoll) };
    let epoll_of_thread = epoll.as_raw_fd();
    let (start, started) = std::sync::mpsc::channel::<&'static Watcher>();
    thread::Builder::new().name("ipc-watch".into()).spawn(move || {
        if let Ok(watcher) = started.recv() {
            run(watcher, epoll_of_thread);
        }
    })?;
    let watcher = WATCHER.get_or_init(|| Watcher { epoll, watched: Mutex::default() });
    // The thread waits for it, and nothing else can end it.
    let _ = start.send(watcher);
    Ok(watcher)
}

fn run(watcher: &Watcher, epoll: libc::c_int) {
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; 16];
    loop {
        // SAFETY: `events` has room for as many as are asked for.
        let count = unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), events.len() as libc::c_int, -1) };
        for event in &events[..usize::try_from(count).unwrap_or(0)] {
            let id = event.u64;
            let died = watcher.watched().peers.get_mut(&id).and_then(|peer| peer.died.take());
            if let Some(died) = died {
                died();
            }
        }
    }
}
