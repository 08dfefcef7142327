//! Contexts of asynchronous input and output: io_setup(2), io_submit(2), io_getevents(2).
//!
//! What is submitted is done by the caller before io_submit(2) returns, as Linux does it for whatever is in its cache; what came of it waits in the context until somebody asks.
//!
//! Owner: the VMA that stands for it, a page that programs may look at (they find no ring there that they know, and ask by io_getevents(2)). Its address is the context's id. So it belongs to an address space: fork(2)
//! does not copy it, and it ends with munmap(2) as with io_destroy(2). Its end frees one block of memory. Who waits for events has its name, and is woken when it ends.

use alloc::collections::VecDeque;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use frame::Cx;
use frame::mm::PAGE_SIZE;
use refs::{SpinLock, WaitList, Waker, WeakRc};
use zerocopy::{Immutable, IntoBytes};

use crate::error::{Errno, Result};
use crate::memory::overcommit::Privilege;
use crate::memory::{AddressSpace, BackingObject, Pages, SharedMemory};
use crate::sysctl::Tunable;

/// For so many events all contexts together may be: `/proc/sys/fs/aio-max-nr`.
pub static MOST_EVENTS: Tunable = Tunable::new(65_536, 0..=u32::MAX as u64);
/// For so many they are: `/proc/sys/fs/aio-nr`.
static EVENTS: AtomicU64 = AtomicU64::new(0);

/// More than anybody gets, whatever the limit.
const HARD_EVENTS: u32 = 0x1000_0000 / size_of::<Done>() as u32 / 2;
/// A context has room for at least so many.
const FEWEST_EVENTS: usize = 64;

/// `struct io_event`: what came of one request.
#[derive(Clone, Copy, Debug, IntoBytes, Immutable)]
#[repr(C)]
pub struct Done {
    /// What the program gave along.
    pub data: u64,
    /// Where its request is.
    pub request: u64,
    /// How many bytes, or an error.
    pub result: i64,
    /// Nothing.
    pub second: i64,
}

/// A context.
pub struct Context {
    /// Where it was made: a child that has its VMA all the same (MADV_DOFORK) has no context there.
    space: WeakRc<AddressSpace>,
    /// What its VMA shows.
    page: SharedMemory,
    share: Share,
    state: SpinLock<State>,
    /// Woken when there is an event more, and when the context ends.
    changed: WaitList,
}

struct State {
    /// Never has to grow.
    done: VecDeque<Done>,
    /// Of the room for events, what is kept for requests that are being done.
    promised: usize,
    /// For so many it has room.
    room: usize,
    /// io_destroy(2) took it away.
    is_destroyed: bool,
}

/// What a context counts for.
struct Share(u64);

impl Share {
    fn take(events: u32) -> Result<Self> {
        let before = EVENTS.fetch_add(events.into(), Relaxed);
        // Given back where it is too much.
        let share = Share(events.into());
        if before + share.0 > MOST_EVENTS.get() { Err(Errno::EAGAIN) } else { Ok(share) }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        EVENTS.fetch_sub(self.0, Relaxed);
    }
}

/// For how many events there are contexts.
pub fn events() -> u64 {
    EVENTS.load(Relaxed)
}

impl BackingObject for Context {
    fn pages<'a>(&'a self, _cx: &'a Cx) -> Option<&'a dyn Pages> {
        Some(&self.page)
    }

    fn name(&self) -> Option<&'static str> {
        Some("/[aio] (deleted)")
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        self.changed.wake_all();
    }
}

impl Context {
    /// How many bytes its VMA has.
    pub const BYTES: usize = PAGE_SIZE;

    /// One for so many requests at a time.
    ///
    /// # Errors
    /// EINVAL: that is none, or far too many; EAGAIN: there is no room for as many; ENOMEM.
    pub fn new(events: u32, space: WeakRc<AddressSpace>) -> Result<Self> {
        if events == 0 || events > HARD_EVENTS {
            return Err(Errno::EINVAL);
        }
        let share = Share::take(events)?;
        let room = FEWEST_EVENTS.max(events as usize * 2);
        let mut done = VecDeque::new();
        done.try_reserve_exact(room).map_err(|_| Errno::ENOMEM)?;
        let page = SharedMemory::new(1, true, Privilege::None)?;
        let state = State { done, promised: 0, room, is_destroyed: false };
        Ok(Context { space, page, share, state: SpinLock::new(state), changed: WaitList::new() })
    }

    /// Whether it is one of this address space.
    pub fn is_of(&self, space: WeakRc<AddressSpace>) -> bool {
        self.space == space
    }

    /// How many requests one call may submit.
    pub fn most_at_once(&self) -> usize {
        FEWEST_EVENTS.max(self.share.0 as usize * 2)
    }

    /// Keeps room for what will come of a request.
    ///
    /// # Errors
    /// EAGAIN: nobody has asked for so many events that there is no more; EINVAL: the context ended.
    pub fn promise(&self, cx: &Cx) -> Result<()> {
        let mut state = self.state.lock(cx);
        if state.is_destroyed {
            return Err(Errno::EINVAL);
        }
        if state.done.len() + state.promised >= state.room {
            return Err(Errno::EAGAIN);
        }
        state.promised += 1;
        Ok(())
    }

    /// A request was not begun after all.
    pub fn take_back(&self, cx: &Cx) {
        self.state.lock(cx).promised -= 1;
    }

    /// A request is done.
    pub fn complete(&self, done: Done, cx: &Cx) {
        let mut state = self.state.lock(cx);
        state.promised -= 1;
        state.done.push_back(done);
        drop(state);
        self.changed.wake_all();
    }

    /// Who waits is to look again.
    pub fn wait(&self, waker: Waker, cx: &Cx) {
        self.changed.register(waker, cx);
    }

    /// Takes some events out, the oldest first: as many as `take` says of those that it is shown. How many those are.
    ///
    /// # Errors
    /// EINVAL: the context ended. What `take` says; then all are still there.
    pub fn take<E: From<Errno>>(
        &self,
        cx: &Cx,
        take: impl FnOnce(&[Done]) -> core::result::Result<usize, E>,
    ) -> core::result::Result<usize, E> {
        let mut state = self.state.lock(cx);
        if state.is_destroyed {
            return Err(Errno::EINVAL.into());
        }
        let (first, _) = state.done.as_slices();
        let count = take(first)?;
        state.done.drain(..count);
        Ok(count)
    }

    /// It ends: who waits is told.
    ///
    /// # Errors
    /// EINVAL: it has ended already.
    pub fn destroy(&self, cx: &Cx) -> Result<()> {
        if core::mem::replace(&mut self.state.lock(cx).is_destroyed, true) {
            return Err(Errno::EINVAL);
        }
        self.changed.wake_all();
        Ok(())
    }
}
