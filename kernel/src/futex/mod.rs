//! Futexes: waiting until another thread changes a word of user memory. See futex(2), futex(7) and get_robust_list(2).
//!
//! A futex is named by a [`Key`]: the address space and the address, or, in memory that is shared between address spaces, the object that is
//! mapped and the offset in it. Who waits is kept in [`queue`], first come first served.
//!
//! A waiter looks at the word and enters the queue in one, with the queue locked. A waker changes the word before it looks at the queue. So one of the two sees the
//! other, and no wake-up is lost, nor spent on somebody who does not wait. A waiter whose wake-up crosses a signal or a time-out counts as woken.

mod key;
mod queue;
mod robust;

use frame::Cx;
use frame::mm::Access;

pub use key::{Key, Scope};
use queue::Waiter;
pub use queue::{ANY, Progress, start};
pub use robust::{Head, release_robust_async};

use crate::error::{Errno, Result};
use crate::step::{Patience, Step, Stop, complete_async};
use crate::user_memory::{HasMemory, UserInOut};

/// Waits until the futex at `word` is woken for one of the bits of `mask`, if its word is `value`.
///
/// # Errors
/// EAGAIN if the word is another; ETIMEDOUT; RESTART_SYS on a signal; EFAULT, EINVAL for a bad address.
pub fn wait_async(
    cx: &mut Cx,
    me: &mut impl HasMemory,
    word: UserInOut<u32>,
    scope: Scope,
    value: u32,
    mask: u32,
    patience: Patience,
) -> Result<()> {
    if mask == 0 {
        return Err(Errno::EINVAL);
    }
    let mut place: Option<Waiter> = None;
    let result = complete_async(cx, me, patience, |cx, me, waker| {
        if let Some(waiter) = place.take() {
            place = waiter.leave_if_woken();
            if place.is_none() {
                return Ok(());
            }
        }
        // The word is looked at once, when the queue can be entered.
        let Some(waker) = waker else { return Err(Stop::Block) };
        if let Some(place) = &place {
            // It may have been woken since it was asked.
            return if place.wait_on(waker) { Err(Stop::Block) } else { Ok(()) };
        }
        let key = Key::new(me, word, scope, cx)?;
        place = Waiter::enter_if(key, mask, waker, || Ok(load(me, word, cx)? == value), cx)?;
        Err(if place.is_some() { Stop::Block } else { Errno::EAGAIN.into() })
    });
    match place.take().map(Waiter::leave) {
        // Whatever else ended the wait, a wake-up that was taken must not be lost.
        Some(true) => Ok(()),
        _ => result,
    }
}

/// Wakes up to `count` of those that wait at `word` for one of the bits of `mask`; how many. `progress` belongs to the call, however often the step
/// is run.
///
/// # Errors
/// EINVAL for an address that is not aligned or a mask of 0; EFAULT.
pub fn wake(
    me: &impl HasMemory,
    word: UserInOut<u32>,
    scope: Scope,
    count: usize,
    mask: u32,
    progress: &mut Progress,
    cx: &Cx,
) -> Step<usize> {
    if mask == 0 {
        return Err(Errno::EINVAL.into());
    }
    queue::wake(Key::new(me, word, scope, cx)?, count, mask, progress)?;
    Ok(progress.count)
}

/// Wakes one of those that wait at an address in the calling thread's memory privately, and one of those who share it; nothing if it is no futex.
pub fn wake_at(me: &impl HasMemory, word: UserInOut<u32>, cx: &Cx) {
    for scope in [Scope::Private, Scope::Shared] {
        if let Ok(key) = Key::new(me, word, scope, cx) {
            queue::wake_one(key);
        }
    }
}

/// How far a call is that wakes some waiters and then does something to others. It belongs to the call, however often the step is run.
#[derive(Default)]
pub struct TwoParts {
    /// Whether the word was looked at; what the comparison said.
    looked: Option<bool>,
    first: Progress,
    second: Progress,
}

/// Wakes up to `wake` of those that wait at `from` and has up to `requeue` of the others wait at `to` instead; how many were woken or
/// moved. With `expected`, only if the word at `from` is that.
///
/// # Errors
/// EAGAIN if the word is another; EINVAL, EFAULT for a bad address.
pub fn requeue(
    me: &impl HasMemory,
    (from, to): (UserInOut<u32>, UserInOut<u32>),
    scope: Scope,
    (wake, requeue): (usize, usize),
    expected: Option<u32>,
    parts: &mut TwoParts,
    cx: &Cx,
) -> Step<usize> {
    let (source, target) = (Key::new(me, from, scope, cx)?, Key::new(me, to, scope, cx)?);
    if parts.looked.is_none() {
        let progress = [&mut parts.first, &mut parts.second];
        let look = || match expected {
            Some(expected) => Ok(load(me, from, cx)? == expected),
            None => Ok(true),
        };
        let is_expected = queue::look(source, progress, look, cx)?;
        if !is_expected {
            return Err(Errno::EAGAIN.into());
        }
        parts.looked = Some(true);
    }
    queue::wake(source, wake, ANY, &mut parts.first)?;
    queue::requeue(source, target, requeue, &mut parts.second)?;
    Ok(parts.first.count + parts.second.count)
}

/// Changes the word at `second` as the code `operation` says, wakes up to `wake` waiters at `first`, and, if the old word passes the comparison in
/// the code, up to `wake_second` at `second`; how many. See FUTEX_WAKE_OP in futex(2).
///
/// # Errors
/// ENOSYS for an unknown operation or comparison; EINVAL, EFAULT for a bad address.
pub fn wake_operation(
    me: &impl HasMemory,
    (first, second): (UserInOut<u32>, UserInOut<u32>),
    scope: Scope,
    (wake, wake_second): (usize, usize),
    operation: u32,
    parts: &mut TwoParts,
    cx: &Cx,
) -> Step<usize> {
    let (first_key, second_key) = (Key::new(me, first, scope, cx)?, Key::new(me, second, scope, cx)?);
    let passes = match parts.looked {
        Some(passes) => passes,
        None => {
            let progress = [&mut parts.first, &mut parts.second];
            let passes = queue::look(second_key, progress, || change_and_compare(me, second, operation, cx), cx)?;
            *parts.looked.insert(passes)
        }
    };
    queue::wake(first_key, wake, ANY, &mut parts.first)?;
    if passes {
        queue::wake(second_key, wake_second, ANY, &mut parts.second)?;
    }
    Ok(parts.first.count + parts.second.count)
}

/// Changes a word as the code of FUTEX_WAKE_OP says; whether the old word passes the comparison in it.
fn change_and_compare(me: &impl HasMemory, word: UserInOut<u32>, operation: u32, cx: &Cx) -> Step<bool> {
    let sign_extended = |bits: u32| ((bits << 20) as i32 >> 20) as u32;
    let mut operand = sign_extended(operation >> 12 & 0xfff);
    let compared = sign_extended(operation & 0xfff);
    let kind = operation >> 28;
    if kind & 8 != 0 {
        operand = 1 << (operand & 31);
    }
    let compare = operation >> 24 & 0xf;
    if kind & 7 > 4 {
        return Err(Errno::ENOSYS.into());
    }
    let mut old = load(me, word, cx)?;
    loop {
        let new = match kind & 7 {
            0 => operand,
            1 => old.wrapping_add(operand),
            2 => old | operand,
            3 => old & !operand,
            _ => old ^ operand,
        };
        let found = me.memory(cx)?.compare_exchange(word, old, new)?;
        if found == old {
            break;
        }
        old = found;
    }
    let (signed, compared) = (old as i32, compared as i32);
    Ok(match compare {
        0 => signed == compared,
        1 => signed != compared,
        2 => signed < compared,
        3 => signed <= compared,
        4 => signed > compared,
        5 => signed >= compared,
        // As on Linux the word was changed.
        _ => return Err(Errno::ENOSYS.into()),
    })
}

fn load(me: &impl HasMemory, word: UserInOut<u32>, cx: &Cx) -> Step<u32> {
    if !word.address().is_multiple_of(4) {
        return Err(Errno::EINVAL.into());
    }
    Ok(me.memory(cx)?.load(word).map_err(|fault| frame::mm::Fault { access: Access::Read, ..fault })?)
}
