//! Several messages in one call: sendmmsg(2), recvmmsg(2). Each is sent or received as sendmsg(2) and recvmsg(2) do.

use frame::Cx;
use linux_raw_sys::general as abi;
use linux_raw_sys::net::MSG_DONTWAIT;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::messages::{MessageHeader, recvmsg_async, sendmsg_async};
use super::sockets::FAMILIES;
use super::{Args, Call, Entry};
use crate::current::Current;
use crate::error::Result;
use crate::step::{Caller, Interruption, TimeSlice, access_async};
use crate::time::clock::TimeSpec;
use crate::user_memory::UserInOut;

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[
    Entry::partial(abi::__NR_sendmmsg, "sendmmsg", Call::Async(sendmmsg_async), FAMILIES),
    Entry::partial(abi::__NR_recvmmsg, "recvmmsg", Call::Async(recvmmsg_async), FAMILIES),
];

/// Waits for the first message only.
const MSG_WAITFORONE: u32 = 0x10000;

/// `struct mmsghdr`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct CountedHeader {
    header: MessageHeader,
    len: u32,
    padding: u32,
}

/// Where the length of message number `index` is written.
fn length_at(headers: usize, index: usize) -> UserInOut<u32> {
    let at = headers.wrapping_add(index * size_of::<CountedHeader>() + core::mem::offset_of!(CountedHeader, len));
    UserInOut::<u32>::new(at)
}

/// Tells how long a message was.
fn tell_length_async(cx: &mut Cx, me: &mut Current, at: UserInOut<u32>, len: usize) -> Result<()> {
    access_async(cx, me, |cx, me| Ok(me.memory(cx)?.write(at, &(len as u32))?))
}

/// Does with each of the messages what `each` does, until that fails or says that it is the last: how many there were. `each` gives what the call for one message returns.
///
/// # Errors
/// That of the first.
fn for_each_async(
    cx: &mut Cx,
    me: &mut Current,
    args: &Args,
    mut each: impl FnMut(&mut Cx, &mut Current, &Args, usize) -> Result<(usize, bool)>,
) -> Result<usize> {
    let (headers, count) = (args.long(1), args.int(2) as u32 as usize);
    let mut slice = TimeSlice::default();
    let mut done = 0;
    while done < count.min(abi::UIO_MAXIOV as usize) {
        let header = headers.wrapping_add(done * size_of::<CountedHeader>());
        let one = Args([args.long(0), header, args.long(3), 0, 0, 0]);
        let outcome = match each(cx, me, &one, done) {
            Ok((len, is_last)) => tell_length_async(cx, me, length_at(headers, done), len).map(|()| is_last),
            Err(error) => Err(error),
        };
        let is_last = match outcome {
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
            Ok(is_last) => is_last,
        };
        done += 1;
        if is_last || (slice.is_over() && me.pause_async(cx, Interruption::Signals).is_err()) {
            break;
        }
    }
    Ok(done)
}

fn sendmmsg_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    for_each_async(cx, me, args, |cx, me, one, _| Ok((sendmsg_async(cx, me, one)?, false)))
}

fn recvmmsg_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let flags = args.int(3) as u32;
    let limit_at = args.in_out::<TimeSpec>(4).non_null();
    let end = match limit_at {
        None => None,
        Some(at) => {
            let limit = access_async(cx, me, |cx, me| Ok(me.memory(cx)?.read(at)?))?.nanoseconds()?;
            Some(frame::time::now().saturating_add(limit))
        }
    };
    let count = for_each_async(cx, me, args, |cx, me, one, done| {
        let waits_no_more = flags & MSG_WAITFORONE != 0 && done > 0;
        let flags = flags & !MSG_WAITFORONE | if waits_no_more { MSG_DONTWAIT } else { 0 };
        let Args([fd, header, ..]) = *one;
        let received = recvmsg_async(cx, me, &Args([fd, header, flags as usize, 0, 0, 0]))?;
        Ok((received, end.is_some_and(|end| frame::time::now() >= end)))
    })?;
    if let (Some(end), Some(at)) = (end, limit_at) {
        let left = TimeSpec::from_nanoseconds(end.saturating_sub(frame::time::now()));
        access_async(cx, me, |cx, me| Ok(me.memory(cx)?.write(at, &left)?))?;
    }
    Ok(count)
}
