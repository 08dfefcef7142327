//! Robust futexes: the locks that a thread holds when it ends are marked, and one waiter of each is woken. See get_robust_list(2).

use frame::Cx;
use linux_raw_sys::general as abi;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::error::{Errno, Result};
use crate::step::{Patience, complete_async};
use crate::user_memory::{HasMemory, UserIn, UserInOut};

/// The list may be a loop: no more than this many entries are looked at.
const LIMIT: usize = 2048;

/// And no more than this many where the end of a thread is charged to a budget of time: what a thread is charged covers them.
const CHARGED_LIMIT: usize = 32;

/// `struct robust_list_head`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Head {
    first: usize,
    /// From an entry to its futex.
    offset: usize,
    /// An entry that is being entered or taken out just now.
    pending: usize,
}

/// Releases the robust futexes of the calling thread `tid`, which ends: those of its list, or where its end `is_charged` the first of them.
///
/// # Errors
/// EFAULT, EINVAL: the list is not as it should be.
pub fn release_robust_async(
    cx: &mut Cx,
    me: &mut impl HasMemory,
    list: UserIn<Head>,
    tid: u32,
    is_charged: bool,
) -> Result<()> {
    let head = read_async(cx, me, list)?;
    let mut entry = head.first;
    for _ in 0..if is_charged { CHARGED_LIMIT } else { LIMIT } {
        // The lowest bit marks a priority-inheriting futex.
        let at = entry & !1;
        if at == list.address() {
            break;
        }
        // Read before the futex is released: its new owner may change the list.
        let next = read_async(cx, me, UserIn::<usize>::new(at))?;
        if at != head.pending & !1 {
            release_async(cx, me, UserInOut::<u32>::new(at.wrapping_add(head.offset)), tid, Listed::Entered)?;
        }
        entry = next;
    }
    if head.pending != 0 {
        let word = UserInOut::<u32>::new((head.pending & !1).wrapping_add(head.offset));
        release_async(cx, me, word, tid, Listed::Pending)?;
    }
    Ok(())
}

fn read_async<T: FromBytes + IntoBytes>(cx: &mut Cx, me: &mut impl HasMemory, from: UserIn<T>) -> Result<T> {
    complete_async(cx, me, Patience::Forever, |cx, me, _| Ok(me.memory(cx)?.read(from)?))
}

/// How the list says that the thread has a futex.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listed {
    Entered,
    /// The thread was about to enter it or to take it out.
    Pending,
}

/// Marks a futex whose owner has ended, if that is `tid`, and wakes one waiter. One that was pending and is free may have been released before its waiter was woken.
fn release_async(cx: &mut Cx, me: &mut impl HasMemory, word: UserInOut<u32>, tid: u32, listed: Listed) -> Result<()> {
    if !word.address().is_multiple_of(4) {
        return Err(Errno::EINVAL);
    }
    let had_waiters = complete_async(cx, me, Patience::Forever, |cx, me, _| {
        loop {
            let memory = me.memory(cx)?;
            let value = memory.load(word)?;
            if value == 0 && listed == Listed::Pending {
                return Ok(true);
            }
            if value & abi::FUTEX_TID_MASK != tid {
                return Ok(false);
            }
            let marked = value & abi::FUTEX_WAITERS | abi::FUTEX_OWNER_DIED;
            if memory.compare_exchange(word, value, marked)? == value {
                return Ok(value & abi::FUTEX_WAITERS != 0);
            }
        }
    })?;
    if had_waiters {
        super::wake_at(me, word, cx);
    }
    Ok(())
}
