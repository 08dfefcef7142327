//! Doorbells of Linux: a futex in the shared region, or a pair of eventfds.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{check, clock};
use crate::{Doorbell, Link};

/// Sleeps on a word of the end's own control line (`futex(2)`): one system call to sleep, one to wake, no descriptors.
///
/// The word is in the peer's reach: it can wake this end without reason, or not at all; both it could do anyway.
#[derive(Clone, Copy, Debug, Default)]
pub struct Futex;

/// The kernel looks at the lower half of the word.
fn futex(word: &AtomicU64, operation: libc::c_int, value: u32, timeout: Option<Duration>) {
    #[cfg(target_endian = "big")]
    compile_error!("the lower half of a word is not at its address");
    let timeout = timeout.map(|time| libc::timespec {
        tv_sec: time.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: time.subsec_nanos().into(),
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `word` is mapped, aligned memory that the kernel only reads; `timeout` is null or a valid time. Whether it
    // succeeds does not matter: a sleep may end early, a ring may find nobody.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, timeout) };
}

impl Doorbell for Futex {
    fn now(&self) -> Duration {
        clock()
    }

    fn arm(&self, link: &Link) -> u64 {
        link.bell_word().load(Ordering::Acquire)
    }

    fn sleep(&self, link: &Link, armed: u64, deadline: Option<Duration>) {
        let timeout = deadline.map(|deadline| deadline.saturating_sub(clock()));
        futex(link.bell_word(), libc::FUTEX_WAIT, armed as u32, timeout);
    }

    fn ring(&self, link: &Link) {
        link.peers_bell_word().fetch_add(1, Ordering::Release);
        futex(link.peers_bell_word(), libc::FUTEX_WAKE, 1, None);
    }

    fn ring_own(&self, link: &Link) {
        link.bell_word().fetch_add(1, Ordering::Release);
        futex(link.bell_word(), libc::FUTEX_WAKE, 1, None);
    }
}

/// Sleeps on an eventfd (`eventfd(2)`): slower than a futex, but can be waited for beside other descriptors.
#[derive(Debug)]
pub struct EventFd {
    mine: OwnedFd,
    peers: OwnedFd,
}

impl EventFd {
    /// The doorbells of the two ends of a channel. Each holds both descriptors; a peer in another process gets copies of them.
    ///
    /// # Errors
    /// What the system says.
    pub fn pair() -> io::Result<(EventFd, EventFd)> {
        let (a, b) = (Self::new_fd()?, Self::new_fd()?);
        let other = EventFd { mine: b.try_clone()?, peers: a.try_clone()? };
        Ok((EventFd { mine: a, peers: b }, other))
    }

    /// A doorbell of eventfds that came from the peer. They need to be non-blocking: use it with descriptors of a trusted peer.
    pub fn from_fds(mine: OwnedFd, peers: OwnedFd) -> EventFd {
        EventFd { mine, peers }
    }

    /// The descriptor that is readable when this end was rung.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.mine.as_fd()
    }

    /// The descriptor that rings the peer.
    pub fn peers_fd(&self) -> BorrowedFd<'_> {
        self.peers.as_fd()
    }

    fn new_fd() -> io::Result<OwnedFd> {
        // SAFETY: a system call that touches no memory.
        let fd = check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        // SAFETY: the system just gave us this descriptor and nobody else has it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    fn add(fd: &OwnedFd) {
        let one = 1u64;
        // SAFETY: `one` is eight readable bytes. It can only fail when the counter is full, that is, rung.
        unsafe { libc::write(fd.as_raw_fd(), (&raw const one).cast(), 8) };
    }
}

impl Doorbell for EventFd {
    fn now(&self) -> Duration {
        clock()
    }

    fn arm(&self, _: &Link) -> u64 {
        0
    }

    fn sleep(&self, _: &Link, _: u64, deadline: Option<Duration>) {
        let timeout = deadline.map_or(-1, |deadline| {
            let left = deadline.saturating_sub(clock());
            left.as_micros().div_ceil(1000).try_into().unwrap_or(libc::c_int::MAX)
        });
        let mut poll = libc::pollfd { fd: self.mine.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let mut count = 0u64;
        // SAFETY: `poll` is one valid entry and `count` eight writable bytes. What the calls say does not matter: a sleep
        // may end early, and a descriptor that has nothing to read blocks nobody.
        unsafe {
            libc::poll(&mut poll, 1, timeout);
            libc::read(self.mine.as_raw_fd(), (&raw mut count).cast(), 8);
        }
    }

    fn ring(&self, _: &Link) {
        EventFd::add(&self.peers);
    }

    fn ring_own(&self, _: &Link) {
        EventFd::add(&self.mine);
    }
}
