//! What a tracee is about to take, what is pending for it, and what it blocks.

use frame::Cx;
use linux_raw_sys::ptrace::PTRACE_PEEKSIGINFO_SHARED;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::Request;
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::process::trace;
use crate::signal::{Info, SigInfo, Signal, SignalSet, deliver};
use crate::step::{Caller, Interruption, TimeSlice};

pub fn get_info_async(cx: &mut Cx, me: &mut Current, asked: &Request) -> Result<()> {
    let info = trace::with_tracee(me, asked.tid, cx, |_, traced| traced.stand()?.info.ok_or(Errno::EINVAL))?;
    me.write_async(cx, asked.data.output::<SigInfo>(), &info.encode())
}

pub fn set_info_async(cx: &mut Cx, me: &mut Current, asked: &Request) -> Result<()> {
    let raw = me.read_async(cx, asked.data.input::<SigInfo>())?;
    trace::with_tracee(me, asked.tid, cx, |_, traced| {
        let info = traced.stand()?.info.as_mut().ok_or(Errno::EINVAL)?;
        // What is no signal leaves that as it is.
        *info = Info::decode(Signal::new(raw.signo).unwrap_or(info.signal), &raw);
        Ok(())
    })
}

/// `struct ptrace_peeksiginfo_args`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct PeekArgs {
    first: u64,
    flags: u32,
    count: i32,
}

/// Signals that are pending, for the thread or for its process, from one on: how many.
pub fn peek_async(cx: &mut Cx, me: &mut Current, asked: &Request) -> Result<usize> {
    let PeekArgs { first, flags, count } = me.read_async(cx, asked.address.input::<PeekArgs>())?;
    let count = u64::try_from(count).map_err(|_| Errno::EINVAL)?;
    if flags & !PTRACE_PEEKSIGINFO_SHARED != 0 {
        return Err(Errno::EINVAL);
    }
    let to = asked.data.output::<SigInfo>().slice(count as usize);
    let mut time_slice = TimeSlice::default();
    for done in 0..count {
        let info = trace::with_tracee(me, asked.tid, cx, |thread, _| {
            let at = usize::try_from(first).ok().and_then(|first| first.checked_add(done as usize));
            let Some(at) = at else { return Ok(None) };
            Ok(match flags & PTRACE_PEEKSIGINFO_SHARED {
                0 => thread.signals.pending.peek(at, cx),
                _ => thread.process(cx)?.pending.peek(at, cx),
            })
        })?;
        let Some(info) = info else { return Ok(done as usize) };
        let written = me.write_async(cx, to.behind(done as usize).start(), &info.encode());
        match written {
            Err(_) if done > 0 => return Ok(done as usize),
            outcome => outcome?,
        }
        if time_slice.is_over() {
            me.pause_async(cx, Interruption::Signals)?;
            time_slice = TimeSlice::default();
        }
    }
    Ok(count as usize)
}

pub fn get_mask_async(cx: &mut Cx, me: &mut Current, asked: &Request) -> Result<()> {
    check_size(asked)?;
    let mask = trace::with_tracee(me, asked.tid, cx, |thread, _| Ok(thread.signals.blocked()))?;
    me.write_async(cx, asked.data.output::<u64>(), &mask.0)
}

pub fn set_mask_async(cx: &mut Cx, me: &mut Current, asked: &Request) -> Result<()> {
    check_size(asked)?;
    let mask = SignalSet(me.read_async(cx, asked.data.input::<u64>())?);
    let thread = trace::with_tracee(me, asked.tid, cx, |thread, _| Ok(thread.clone()))?;
    deliver::change_mask(&*thread.process(cx)?, &thread, mask, cx);
    Ok(())
}

fn check_size(asked: &Request) -> Result<()> {
    if asked.address.value() == size_of::<u64>() { Ok(()) } else { Err(Errno::EINVAL) }
}
