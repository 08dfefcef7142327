//! Waiting for several descriptors: poll and select.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use frame::Cx;
use linux_raw_sys::general as abi;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Args, Call, Entry};
use crate::current::{Current, Restart};
use crate::error::{Errno, Result};
use crate::event::{PollFd, late_wakes, poll_step, poll_was_lost};
use crate::fs::{Events, OpenFlags};
use crate::signal::{self, SignalSet};
use crate::step::{Interruption, Patience, Step, Stop, complete_async};
use crate::time::clock::{TimeSpec, TimeVal};
use crate::user_memory::{self, InOut, Readable, UserIn, UserInOut, UserPtr, UserSlice};

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[
    Entry::new(abi::__NR_poll, "poll", Call::Async(poll_async)),
    Entry::new(abi::__NR_ppoll, "ppoll", Call::Async(ppoll_async)),
    Entry::new(abi::__NR_select, "select", Call::Async(select_async)),
    Entry::new(abi::__NR_pselect6, "pselect6", Call::Async(pselect6_async)),
];

/// So many descriptors are copied at a time.
const CHUNK: usize = 32;
/// So many are looked at before others may have their turn.
const AT_ONCE: usize = 32 * CHUNK;
/// No process has a descriptor with this number or a higher one.
const MAX_DESCRIPTORS: usize = 1 << 20;

fn poll_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let patience = patience_of_milliseconds(args.int(2));
    let fds = args.in_out::<PollFd>(0).slice(args.int(1) as u32 as usize);
    let result = look_async(cx, me, fds, patience);
    if result != Err(Errno::RESTART_SYS) {
        return result;
    }
    match patience {
        Patience::Until(until) => {
            me.restart = Some(Restart::Poll { fds, until });
            Err(Errno::RESTART_BLOCK)
        }
        _ => Err(Errno::RESTART_NO_HANDLER),
    }
}

/// Goes on with a `poll` that was interrupted.
///
/// # Errors
/// As for poll(2).
pub fn resume_poll_async(cx: &mut Cx, me: &mut Current, fds: UserSlice<PollFd, InOut>, until: u64) -> Result<usize> {
    let result = look_async(cx, me, fds, Patience::Until(until));
    if result != Err(Errno::RESTART_SYS) {
        return result;
    }
    me.restart = Some(Restart::Poll { fds, until });
    Err(Errno::RESTART_BLOCK)
}

fn ppoll_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let timeout = args.in_out::<TimeSpec>(2);
    let patience = patience_of_timespec_async(cx, me, timeout)?;
    set_mask_async(cx, me, args.input::<u64>(3), args.long(4))?;
    let fds = args.in_out::<PollFd>(0).slice(args.int(1) as u32 as usize);
    let result = look_async(cx, me, fds, patience);
    tell_rest_async(cx, me, timeout, patience, TimeSpec::from_nanoseconds);
    result.map_err(restart_without_handler)
}

/// `until` the milliseconds of poll(2) and epoll_wait(2) have passed.
pub(super) fn patience_of_milliseconds(timeout: i32) -> Patience {
    match u64::try_from(timeout) {
        Ok(0) => Patience::None,
        Ok(milliseconds) => Patience::Until(frame::time::now() + milliseconds * 1_000_000),
        Err(_) => Patience::Forever,
    }
}

/// Until the time of a `struct timespec` has passed; an address of 0 means for ever.
pub(super) fn patience_of_timespec_async(
    cx: &mut Cx,
    me: &mut Current,
    timeout: UserPtr<TimeSpec, impl Readable>,
) -> Result<Patience> {
    if timeout.is_null() {
        return Ok(Patience::Forever);
    }
    Ok(patience_of_nanoseconds(me.read_async(cx, timeout)?.nanoseconds()?))
}

fn patience_of_nanoseconds(timeout: u64) -> Patience {
    match timeout {
        0 => Patience::None,
        timeout => Patience::Until(frame::time::now().saturating_add(timeout)),
    }
}

/// Has the mask of signals at an address instead of the thread's own until the call has ended; an address of 0 leaves that.
pub(super) fn set_mask_async(cx: &mut Cx, me: &mut Current, mask: UserIn<u64>, size: usize) -> Result<()> {
    if mask.is_null() {
        return Ok(());
    }
    if size != size_of::<u64>() {
        return Err(Errno::EINVAL);
    }
    let mask = me.read_async(cx, mask)?;
    signal::deliver::set_temporary_mask(me, SignalSet(mask), cx);
    Ok(())
}

/// Of personality(2): a time-out stays as it was given.
const STICKY_TIMEOUTS: u32 = 0x400_0000;

/// Writes how much of a time-out is left where it came from, unless the thread's personality leaves that alone. That it cannot be written is no error.
fn tell_rest_async<T: IntoBytes + Immutable>(
    cx: &mut Cx,
    me: &mut Current,
    timeout: UserInOut<T>,
    patience: Patience,
    encode: fn(u64) -> T,
) {
    let is_sticky = me.thread(cx).is_ok_and(|thread| thread.personality.load(Ordering::Relaxed) & STICKY_TIMEOUTS != 0);
    if let Patience::Until(until) = patience
        && !is_sticky
    {
        let rest = encode(until.saturating_sub(frame::time::now()));
        let _ = me.write_async(cx, timeout, &rest);
    }
}

fn restart_without_handler(error: Errno) -> Errno {
    if error == Errno::RESTART_SYS { Errno::RESTART_NO_HANDLER } else { error }
}

/// Waits until something is ready of the descriptions of descriptors: how many.
fn look_async(cx: &mut Cx, me: &mut Current, fds: UserSlice<PollFd, InOut>, patience: Patience) -> Result<usize> {
    let count = fds.len();
    if count as u64 > me.thread(cx)?.limit(abi::RLIMIT_NOFILE, cx).0 || count > MAX_DESCRIPTORS {
        return Err(Errno::EINVAL);
    }
    let fds = fds.checked()?.slice();
    // How far the look has come, and how many were ready before that.
    let (mut first, mut ready) = (0, 0);
    let result = complete_async(cx, me, patience, |cx, me, waker| {
        let (memory, files) = (me.memory(cx)?, me.files(cx)?);
        if first == 0 {
            late_wakes::catch_up()?;
        }
        let mut left = waker.filter(|_| ready == 0);
        let mut chunk = [PollFd::default(); CHUNK];
        let pause_at = first + AT_ONCE;
        while first < count {
            if first == pause_at {
                // Who waits already goes on waiting; and signals count only where nothing is ready.
                return Err(if waker.is_some() { Stop::Again } else { Stop::Pause(Interruption::KillOnly) });
            }
            let chunk = &mut chunk[..CHUNK.min(count - first)];
            let at = fds.behind(first);
            memory.read_into(at, chunk)?;
            let found = poll_step(chunk, &mut left, &files, me, cx);
            if let Err(stop) = memory.write_slice(at, chunk) {
                poll_was_lost(chunk, &files, cx);
                return Err(stop.into());
            }
            ready += found;
            first += CHUNK;
        }
        first = 0;
        if ready == 0 { Err(Stop::Block) } else { Ok(ready) }
    });
    nothing_in_time(result)
}

/// A time-out is no error for calls that say how many are ready.
pub(super) fn nothing_in_time(result: Result<usize>) -> Result<usize> {
    match result {
        Err(Errno::ETIMEDOUT | Errno::EAGAIN) => Ok(0),
        result => result,
    }
}

fn select_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let at = args.in_out::<TimeVal>(4);
    let patience = match at.non_null() {
        None => Patience::Forever,
        Some(timeout) => {
            let timeout = me.read_async(cx, timeout)?;
            // More than a second of microseconds is normalised, not refused.
            let extra = timeout.microseconds.div_euclid(1_000_000);
            let timeout = TimeVal {
                seconds: timeout.seconds.saturating_add(extra),
                microseconds: timeout.microseconds.rem_euclid(1_000_000),
            };
            patience_of_nanoseconds(timeout.nanoseconds()?)
        }
    };
    let result = select_sets_async(cx, me, args, patience);
    tell_rest_async(cx, me, at, patience, TimeVal::from_nanoseconds);
    result.map_err(restart_without_handler)
}

/// The sixth argument of pselect6: where the mask is, and its size.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct MaskAt {
    mask: UserIn<u64>,
    size: usize,
}

fn pselect6_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let timeout = args.in_out::<TimeSpec>(4);
    let patience = patience_of_timespec_async(cx, me, timeout)?;
    if let Some(mask) = args.input::<MaskAt>(5).non_null() {
        let mask = me.read_async(cx, mask)?;
        set_mask_async(cx, me, mask.mask, mask.size)?;
    }
    let result = select_sets_async(cx, me, args, patience);
    tell_rest_async(cx, me, timeout, patience, TimeSpec::from_nanoseconds);
    result.map_err(restart_without_handler)
}

/// Waits until something is ready in the three sets of select(2).
fn select_sets_async(cx: &mut Cx, me: &mut Current, args: &Args, patience: Patience) -> Result<usize> {
    let limit = me.thread(cx)?.limit(abi::RLIMIT_NOFILE, cx).0.min(MAX_DESCRIPTORS as u64) as usize;
    let count = usize::try_from(args.int(0)).map_err(|_| Errno::EINVAL)?.min(limit);
    let places = [args.in_out::<u64>(1), args.in_out::<u64>(2), args.in_out::<u64>(3)];
    let result = complete_async(cx, me, patience, |cx, me, waker| {
        let mut sets = Sets::read(count, places, me, cx)?;
        match sets.look(waker, me, cx)? {
            0 => Err(Stop::Block),
            ready => Ok((sets, ready)),
        }
    });
    let (sets, ready) = match result {
        Err(Errno::ETIMEDOUT | Errno::EAGAIN) => (Sets::empty(count)?, 0),
        found => found?,
    };
    // Apart: what is read must not be what was written by half, and some files say a thing once.
    complete_async(cx, me, Patience::Forever, |cx, me, _| sets.write(places, me, cx))?;
    Ok(ready)
}

/// The sets of select(2): readable, writable, exceptional; one behind the other.
struct Sets {
    words: Vec<u64>,
    each: usize,
    count: usize,
}

/// What makes a descriptor a member, by set: see select(2), "Correspondence between select() and poll() notifications".
const MEMBERSHIP: [Events; 3] = [
    Events::IN.union(Events::READ_NORMAL).union(Events::HANG_UP).union(Events::ERROR),
    Events::OUT.union(Events::WRITE_NORMAL).union(Events::ERROR),
    Events::PRIORITY,
];

impl Sets {
    /// # Errors
    /// ENOMEM.
    fn empty(count: usize) -> Result<Self> {
        let each = count.div_ceil(64);
        Ok(Sets { words: user_memory::zeroed(each * 3)?, each, count })
    }

    fn read(count: usize, places: [UserInOut<u64>; 3], me: &Current, cx: &Cx) -> Step<Self> {
        let mut sets = Sets::empty(count)?;
        let memory = me.memory(cx)?;
        for (index, place) in places.into_iter().enumerate() {
            if !place.is_null() {
                let words = &mut sets.words[index * sets.each..(index + 1) * sets.each];
                memory.read_into(place.slice(sets.each), words)?;
            }
        }
        Ok(sets)
    }

    fn write(&self, places: [UserInOut<u64>; 3], me: &Current, cx: &Cx) -> Step<()> {
        let memory = me.memory(cx)?;
        for (index, place) in places.into_iter().enumerate() {
            if !place.is_null() {
                let words = &self.words[index * self.each..(index + 1) * self.each];
                memory.write_slice(place.slice(self.each), words)?;
            }
        }
        Ok(())
    }

    /// Leaves in the sets what is ready; how many memberships that are.
    fn look(&mut self, mut waker: Option<refs::Waker>, me: &Current, cx: &Cx) -> Step<usize> {
        let files = me.files(cx)?;
        let handles = files.handles.lock(cx);
        let mut ready = 0;
        for word in 0..self.each {
            let asked = [0, 1, 2].map(|set| self.words[set * self.each + word]);
            let mut found = [0; 3];
            let mut left = asked[0] | asked[1] | asked[2];
            while left != 0 {
                let bit = left.trailing_zeros() as usize;
                left &= left - 1;
                let fd = word * 64 + bit;
                if fd >= self.count {
                    break;
                }
                let open = handles.get(fd, cx).filter(|open| !open.flags().contains(OpenFlags::PATH));
                let open = open.ok_or(Errno::EBADF)?;
                if let Some(waker) = waker {
                    open.downgrade().watch(waker, cx);
                }
                let mut interest = Events::empty();
                for set in 0..3 {
                    if asked[set] >> bit & 1 != 0 {
                        interest |= MEMBERSHIP[set];
                    }
                }
                let events = open.poll_for(me, interest, waker, cx);
                for set in 0..3 {
                    if asked[set] >> bit & 1 != 0 && events.intersects(MEMBERSHIP[set]) {
                        found[set] |= 1 << bit;
                        ready += 1;
                        waker = None;
                    }
                }
            }
            for (set, found) in found.into_iter().enumerate() {
                self.words[set * self.each + word] = found;
            }
        }
        Ok(ready)
    }
}
