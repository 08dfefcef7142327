//! The state of the connection that all parts of one end share: is the peer there, does anybody sleep.
//!
//! Each end has one *control line* in the region that, but for word 2, only it writes:
//!
//! | word | meaning |
//! | --- | --- |
//! | 0 | 1 once the end has closed the channel |
//! | 1 | bit 0: the end sleeps and wants to be rung; bit 1: it sees to the barrier when it falls asleep |
//! | 2 | the word on which it sleeps, where the doorbell is a futex; this one is written by whoever rings |
//!
//! A peer that died wrote nothing; whoever notices (see `linux::watch`) calls [`Link::mark_dead`], which is private
//! memory, so that no peer can undo it.

//! A sender has to see whether the peer sleeps *after* what it sent can be seen, which takes a full barrier per message, and one
//! that waits for the line that was just written: more than the rest of the sending. So where the system can interrupt other
//! processors for that (`membarrier(2)`), the one who falls asleep pays for both.

use alloc::sync::Arc;
use alloc::sync::Weak;
use core::sync::atomic::compiler_fence;

use crate::Error;
use crate::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use crate::barrier;
use crate::region::Region;

const CLOSED: usize = 0;
const ASLEEP: usize = 1;
const BELL: usize = 2;

const SLEEPS: u64 = 1;
const HAS_BARRIER: u64 = 2;

/// One end's view of the connection. Clones are the same connection.
#[derive(Clone, Debug)]
pub struct Link {
    inner: Arc<Inner>,
}

/// A [`Link`] that does not keep the connection open.
#[derive(Clone, Debug)]
pub struct WeakLink {
    inner: Weak<Inner>,
}

impl WeakLink {
    /// The connection, if a part of this end is left.
    pub fn upgrade(&self) -> Option<Link> {
        self.inner.upgrade().map(|inner| Link { inner })
    }
}

#[derive(Debug)]
struct Inner {
    mine: Region,
    peers: Region,
    /// Whether this process takes part in other processors' barriers, and can make them.
    has_barrier: bool,
    dead: AtomicBool,
    corrupt: AtomicBool,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The last part of this end is gone: nobody here will ever answer.
        self.mine.lines()[0].word(CLOSED).store(1, Ordering::Release);
    }
}

impl Link {
    /// `mine` and `peers` are the two control lines.
    pub(crate) fn new(mine: Region, peers: Region) -> Link {
        let has_barrier = barrier::register();
        let link = Link {
            inner: Arc::new(Inner {
                mine,
                peers,
                has_barrier,
                dead: AtomicBool::new(false),
                corrupt: AtomicBool::new(false),
            }),
        };
        link.is_awake();
        link
    }

    /// The same connection, without keeping it open.
    pub fn downgrade(&self) -> WeakLink {
        WeakLink { inner: Arc::downgrade(&self.inner) }
    }

    /// Ends the connection from this side: the peer's operations fail once it has taken what was sent before.
    pub fn close(&self) {
        self.mine(CLOSED).store(1, Ordering::Release);
        self.mark_dead();
    }

    /// Says that the peer has died, or shall be treated so. Everything on this end fails with [`Error::Closed`] from now on,
    /// but for what already arrived.
    pub fn mark_dead(&self) {
        self.inner.dead.store(true, Ordering::Release);
    }

    /// The connection's state: fine, closed, or broken by the peer.
    #[inline]
    pub fn check(&self) -> Result<(), Error> {
        if self.inner.dead.load(Ordering::Acquire) {
            return Err(if self.inner.corrupt.load(Ordering::Relaxed) { Error::Corrupt } else { Error::Closed });
        }
        if self.peers(CLOSED).load(Ordering::Acquire) != 0 { Err(Error::Closed) } else { Ok(()) }
    }

    /// The peer broke the protocol: there is no telling what anything from it means.
    #[cold]
    pub(crate) fn corrupt(&self) -> Error {
        self.inner.corrupt.store(true, Ordering::Relaxed);
        self.mark_dead();
        Error::Corrupt
    }

    /// Says that this end is about to sleep. It must look once more for what it waits for, then sleep until it is rung.
    pub fn will_sleep(&self) {
        self.mine(ASLEEP).store(SLEEPS | self.barrier_bit(), Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.inner.has_barrier {
            barrier::everywhere();
        }
    }

    /// Says that this end is awake.
    pub fn is_awake(&self) {
        self.mine(ASLEEP).store(self.barrier_bit(), Ordering::Relaxed);
    }

    /// Whether the peer sleeps and has to be rung; to be asked after something was sent.
    ///
    /// The barrier here, or the one that [`will_sleep`](Self::will_sleep) makes everywhere, sees to it that either the sender sees
    /// the sleeper or the sleeper sees what was sent.
    #[inline(always)]
    pub fn peer_sleeps(&self) -> bool {
        // With the peer's barrier it is enough that the compiler keeps the order.
        compiler_fence(Ordering::SeqCst);
        let state = self.peers(ASLEEP).load(Ordering::Relaxed);
        if state & HAS_BARRIER != 0 && self.inner.has_barrier {
            state & SLEEPS != 0
        } else {
            self.peer_sleeps_after_fence()
        }
    }

    #[inline(never)]
    fn peer_sleeps_after_fence(&self) -> bool {
        fence(Ordering::SeqCst);
        self.peers(ASLEEP).load(Ordering::Relaxed) & SLEEPS != 0
    }

    fn barrier_bit(&self) -> u64 {
        if self.inner.has_barrier { HAS_BARRIER } else { 0 }
    }

    /// The word on which this end sleeps.
    pub fn bell_word(&self) -> &AtomicU64 {
        self.mine(BELL)
    }

    /// The word on which the peer sleeps.
    pub fn peers_bell_word(&self) -> &AtomicU64 {
        self.peers(BELL)
    }

    #[inline(always)]
    fn mine(&self, word: usize) -> &AtomicU64 {
        self.inner.mine.lines()[0].word(word)
    }

    #[inline(always)]
    fn peers(&self, word: usize) -> &AtomicU64 {
        self.inner.peers.lines()[0].word(word)
    }
}
