//! Noticing that a peer died, or rings.
//!
//! A process that is killed says nothing, so something of the system has to tell: its end of a socket is closed, or its pidfd
//! becomes readable. One thread per process waits for all such signs, so that nothing is spent on it while peers live and no time
//! is lost when one dies; the thread is started with the first watch and then stays.
//!
//! A socket can be the doorbell too ([`ring_over`]): a byte over it wakes the thread, which passes the ring on. What the peer does
//! to its end cannot hold the thread up: nothing here waits for a socket but `epoll_wait`.

use std::boxed::Box;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use super::check;

/// By what a peer shows itself.
#[derive(Debug)]
pub enum Sign {
    /// A socket whose other end only the peer holds: it hangs up when the peer dies, and rings by sending bytes.
    Socket(Arc<UnixStream>),
    /// A pidfd of the peer (`pidfd_open(2)`).
    Exit(OwnedFd),
}

impl Sign {
    fn fd(&self) -> libc::c_int {
        match self {
            Sign::Socket(socket) => socket.as_raw_fd(),
            Sign::Exit(fd) => fd.as_raw_fd(),
        }
    }
}

/// What a watched peer did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// It died, or closed its end; nothing more comes.
    Died,
    /// It rang, once or several times.
    Rung,
}

/// A watched peer. Dropping it ends the watch.
#[derive(Debug)]
pub struct Watch {
    id: u64,
}

/// Has `notice` called, on the watching thread, for what the peer does. It must not block. If it panics it is not called again; other
/// peers are watched as before, also if its destructor panics, which may run on that thread.
///
/// # Errors
/// What the system says when the watcher cannot be started or the descriptor not be watched.
pub fn watch(sign: Sign, notice: impl FnMut(Notice) + Send + 'static) -> io::Result<Watch> {
    let watcher = watcher()?;
    let events = match sign {
        Sign::Socket(_) => libc::EPOLLIN | libc::EPOLLRDHUP,
        Sign::Exit(_) => libc::EPOLLIN,
    };
    let mut watched = watcher.watched();
    let id = watched.next_id;
    watched.next_id += 1;
    let mut event = libc::epoll_event { events: events as u32, u64: id };
    // SAFETY: both descriptors are open, and `event` is valid.
    check(unsafe { libc::epoll_ctl(watcher.epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, sign.fd(), &mut event) })?;
    watched.peers.insert(id, Peer { sign, notice: Arc::new(Mutex::new(Some(Box::new(notice)))) });
    Ok(Watch { id })
}

/// Rings whoever watches the other end of the socket. Never blocks: a socket that is full has rung already.
pub fn ring_over(socket: &UnixStream) {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: one readable byte. An error means that the peer is gone, which its watch tells.
    unsafe { libc::send(socket.as_raw_fd(), [1u8].as_ptr().cast(), 1, flags) };
}

impl Drop for Watch {
    fn drop(&mut self) {
        let Ok(watcher) = watcher() else { return };
        let mut watched = watcher.watched();
        watcher.forget(&watched, self.id);
        let peer = watched.peers.remove(&self.id);
        drop(watched);
        // Here, because what the notice holds may lock as well.
        drop(peer);
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

type OnNotice = Box<dyn FnMut(Notice) + Send>;

struct Peer {
    sign: Sign,
    /// None while it is called, and after it panicked.
    notice: Arc<Mutex<Option<OnNotice>>>,
}

impl Watcher {
    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a peer's descriptor out of the set. (Closing it does not: copies of it may be left in other processes.)
    fn forget(&self, watched: &Watched, id: u64) {
        if let Some(peer) = watched.peers.get(&id) {
            // SAFETY: both descriptors are open. It fails only when it was taken out before.
            unsafe {
                let null = std::ptr::null_mut();
                libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_DEL, peer.sign.fd(), null);
            }
        }
    }

    fn notice(&self, id: u64, events: u32) {
        let watched = self.watched();
        let Some(peer) = watched.peers.get(&id) else { return };
        let ended = (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32;
        let what = match &peer.sign {
            Sign::Socket(socket) if events & ended == 0 => {
                let mut bytes = [0u8; 64];
                // SAFETY: as many writable bytes as it says.
                unsafe {
                    let into = bytes.as_mut_ptr().cast();
                    libc::recv(socket.as_raw_fd(), into, bytes.len(), libc::MSG_DONTWAIT);
                }
                Notice::Rung
            }
            _ => {
                self.forget(&watched, id);
                Notice::Died
            }
        };
        let notice = peer.notice.clone();
        drop(watched);
        let called = catch_unwind(AssertUnwindSafe(move || {
            // Declared first: where the watch has ended meanwhile, the notice ends here, and its destructor may panic as well.
            let place = notice;
            let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(mut notice) = place.take() else { return };
            notice(what);
            *place = Some(notice);
        }));
        if let Err(panic) = called {
            // The panic was reported when it began. What it carries could panic in its turn.
            std::mem::forget(panic);
        }
    }
}

fn watcher() -> io::Result<&'static Watcher> {
    static WATCHER: OnceLock<Watcher> = OnceLock::new();
    static STARTING: Mutex<()> = Mutex::new(());
    if let Some(watcher) = WATCHER.get() {
        return Ok(watcher);
    }
    let _one_at_a_time = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(watcher) = WATCHER.get() {
        return Ok(watcher);
    }
    // SAFETY: a system call that touches no memory.
    let epoll = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
    // SAFETY: the system just gave us this descriptor and nobody else has it.
    let epoll = unsafe { OwnedFd::from_raw_fd(epoll) };
    let (start, started) = std::sync::mpsc::channel::<&'static Watcher>();
    thread::Builder::new().name("ipc-watch".into()).spawn(move || {
        if let Ok(watcher) = started.recv() {
            run(watcher);
        }
    })?;
    let watcher = WATCHER.get_or_init(|| Watcher { epoll, watched: Mutex::default() });
    // The thread waits for it, and nothing else can end it.
    let _ = start.send(watcher);
    Ok(watcher)
}

fn run(watcher: &Watcher) {
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; 16];
    loop {
        let room = events.len() as libc::c_int;
        // SAFETY: `events` has room for as many as are asked for.
        let count = unsafe { libc::epoll_wait(watcher.epoll.as_raw_fd(), events.as_mut_ptr(), room, -1) };
        for event in &events[..usize::try_from(count).unwrap_or(0)] {
            watcher.notice(event.u64, event.events);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_notice_whose_destructor_panics_on_the_watching_thread_leaves_others_watched() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                std::panic::resume_unwind(Box::new(()));
            }
        }
        let ((bad, bad_peer), (good, good_peer)) =
            (UnixStream::pair().expect("sockets"), UnixStream::pair().expect("sockets"));
        let (say, said) = channel();
        let (go_on, may_go_on) = channel::<()>();
        let (bomb, again) = (Bomb, say.clone());
        let ends_while_it_is_called = watch(Sign::Socket(Arc::new(bad)), move |_| {
            let _bomb = &bomb;
            again.send("bad").expect("heard");
            may_go_on.recv().expect("told");
        })
        .expect("watched");
        let _good = watch(Sign::Socket(Arc::new(good)), move |_| say.send("good").expect("heard")).expect("watched");
        ring_over(&bad_peer);
        assert_eq!(said.recv(), Ok("bad"));
        drop(ends_while_it_is_called);
        go_on.send(()).expect("heard");
        ring_over(&good_peer);
        assert_eq!(said.recv(), Ok("good"));
    }

    #[test]
    fn a_notice_that_panics_is_not_called_again_and_others_are_watched_as_before() {
        let ((bad, bad_peer), (good, good_peer)) =
            (UnixStream::pair().expect("sockets"), UnixStream::pair().expect("sockets"));
        let (say, said) = channel();
        let again = say.clone();
        let _bad = watch(Sign::Socket(Arc::new(bad)), move |notice| {
            again.send(("bad", notice)).expect("heard");
            std::panic::resume_unwind(Box::new(()));
        })
        .expect("watched");
        let _good = watch(Sign::Socket(Arc::new(good)), move |notice| say.send(("good", notice)).expect("heard"));
        ring_over(&bad_peer);
        assert_eq!(said.recv(), Ok(("bad", Notice::Rung)));
        drop(bad_peer);
        ring_over(&good_peer);
        assert_eq!(said.recv(), Ok(("good", Notice::Rung)));
        drop(good_peer);
        assert_eq!(said.recv(), Ok(("good", Notice::Died)));
    }
}
