//! [`Left`]: what belongs to no socket, and so to no group: half-open connections that a listener may get, those whose socket was closed and that still send, and those in TIME-WAIT. Nobody is charged for them, so there is a bounded number of each.
//!
//! What orphans have to send takes memory of nobody's as well: all of it together a part of the machine's ([`MOST_ORPHAN_PART`]).
//!
//! Of half-open ones beyond the bound nothing is kept: SYN cookies take their place. A connection that would be one orphan too many is reset when its socket is closed, as by Linux (`tcp_max_orphans`), and one too many in TIME-WAIT is
//! forgotten (`tcp_max_tw_buckets`).

use core::sync::atomic::{AtomicUsize, Ordering};

use frame::Cx;
use frame::mm::{self, PAGE_SIZE};
use tcpip::Duration;
use tcpip::tcp::State;

use super::{Remote, Stage};

/// How long another machine may take nothing of what is left of a connection that nobody uses.
const ORPHAN_PATIENCE: Duration = Duration::from_secs(60);

/// Those that wait for the last part of their beginning.
pub(super) static HALF_OPEN: Bound = Bound::new(1024);
/// Those that no socket has, and that are not over.
static ORPHANS: Bound = Bound::new(4096);
/// What waits to go of those takes at most this part of the machine's memory. It is counted as what waited when the socket was closed, until the connection is over.
const MOST_ORPHAN_PART: usize = 64;
static ORPHAN_BYTES: AtomicUsize = AtomicUsize::new(0);
/// Those of which old segments may still come, and whose socket has all that came before. Their buffers are empty.
static TIME_WAITS: Bound = Bound::new(16_384);

/// How many there may be.
pub(super) struct Bound {
    count: AtomicUsize,
    most: usize,
}

impl Bound {
    const fn new(most: usize) -> Self {
        Bound { count: AtomicUsize::new(0), most }
    }

    /// One more; `None` if there are too many.
    pub(super) fn one_more(&'static self) -> Option<Left> {
        let one_more = Left { bound: self, bytes: 0 };
        (self.count.fetch_add(1, Ordering::Relaxed) < self.most).then_some(one_more)
    }
}

/// One of those that are counted.
pub(super) struct Left {
    bound: &'static Bound,
    /// What waits to go, of an orphan.
    bytes: usize,
}

impl Left {
    /// An orphan that has so much to send; `None` if there are too many, or they have too much.
    fn orphan(bytes: usize) -> Option<Left> {
        let mut left = ORPHANS.one_more()?;
        left.bytes = bytes;
        let all = ORPHAN_BYTES.fetch_add(bytes, Ordering::Relaxed) + bytes;
        (all <= mm::frame_count() * PAGE_SIZE / MOST_ORPHAN_PART).then_some(left)
    }

    fn is_of(&self, bound: &'static Bound) -> bool {
        core::ptr::eq(self.bound, bound)
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        self.bound.count.fetch_sub(1, Ordering::Relaxed);
        ORPHAN_BYTES.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Remote {
    /// No socket has it any more: it closes in order, or is reset where there are too many such.
    pub(super) fn close(&self, cx: &Cx) {
        let mut state = self.state.lock(cx);
        state.held.end();
        if state.left.is_some() {
            return;
        }
        state.left = Left::orphan(state.connection.unacknowledged_bytes());
        if state.left.is_none() {
            return state.connection.abort();
        }
        // Nobody else would end it where the other machine takes nothing more.
        state.connection.settings_mut().user_timeout = Some(ORPHAN_PATIENCE);
        state.connection.close(super::now());
    }

    /// No socket has it any more, and nothing of it may go on.
    pub(super) fn reset(&self, cx: &Cx) {
        let mut state = self.state.lock(cx);
        state.held.end();
        state.connection.abort();
    }

    /// Whether a socket has it that was not told of the peer's end yet, nor of any other: it gets what has come before.
    pub(super) fn owes_socket(&self, cx: &Cx) -> bool {
        let has_told = {
            let state = self.state.lock(cx);
            !matches!(state.stage, Stage::Open) || state.has_told_end
        };
        !has_told && self.proxy.get(cx).connected_peer(cx).is_some_and(|peer| peer.is_used(cx))
    }

    /// Whether nothing more is to be done with it.
    pub(super) fn is_over(&self, cx: &Cx) -> bool {
        let may_be = {
            let state = self.state.lock(cx);
            state.connection.state() == State::TimeWait || state.connection.is_finished()
        };
        if !may_be || self.owes_socket(cx) {
            return false;
        }
        let mut state = self.state.lock(cx);
        let is_waiting = state.connection.state() == State::TimeWait;
        if is_waiting {
            state.held.end();
        }
        if is_waiting && !state.left.as_ref().is_some_and(|left| left.is_of(&TIME_WAITS)) {
            state.left = TIME_WAITS.one_more();
            return state.left.is_none();
        }
        state.connection.is_finished()
    }
}
