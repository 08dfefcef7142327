//! tee(2): what is in one pipe also goes into another.

use alloc::vec;

use frame::Cx;
use frame::mm::{Reader, Writer};
use refs::WeakRc;

use super::PipeEnd;
use crate::error::{Errno, Result};
use crate::fs::{Events, OpenFile, VfsCaller};
use crate::step::{Patience, complete_async};

/// How many bytes are copied at most.
const TEE_BYTES: usize = 16384;

/// Copies what is in one pipe to another and leaves it there: tee(2).
///
/// # Errors
/// EINVAL where they are not two pipes; EBADF; EAGAIN with `no_wait`; EPIPE.
pub fn tee_async(
    cx: &mut Cx,
    me: &mut impl VfsCaller,
    from: WeakRc<OpenFile>,
    to: WeakRc<OpenFile>,
    len: usize,
    no_wait: bool,
) -> Result<usize> {
    let patience = if no_wait { Patience::None } else { Patience::Forever };
    complete_async(cx, me, patience, |cx, me, waker| {
        let source = from.upgrade(cx).map_err(|_| Errno::EBADF)?;
        let target = to.upgrade(cx).map_err(|_| Errno::EBADF)?;
        let (Some(input), Some(output)) = (source.kind::<PipeEnd>(), target.kind::<PipeEnd>()) else {
            return Err(Errno::EINVAL.into());
        };
        if input.is_same_pipe(output) {
            return Err(Errno::EINVAL.into());
        }
        if let Some(waker) = waker {
            from.watch(waker, cx);
            to.watch(waker, cx);
            source.file.poll(Events::IN, Some(waker), cx);
            target.file.poll(Events::OUT, Some(waker), cx);
        }
        let mut bytes = vec![0; len.min(TEE_BYTES)];
        let count = input.peek(&mut Writer::from(bytes.as_mut_slice()), cx)?;
        if count == 0 {
            return Ok(0);
        }
        target.file.write(0, &mut Reader::from(bytes.get(..count).unwrap_or_default()), me, cx)
    })
}
