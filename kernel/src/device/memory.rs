//! The devices behind which there is no device: null, zero, full, random, urandom, kmsg.

use alloc::boxed::Box;

use frame::Cx;
use frame::mm::{Reader, Writer};

use super::random;
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::{Events, File, Lseek};
use crate::step::Step;

/// Opens the memory device of that minor number.
///
/// # Errors
/// ENXIO: there is none.
pub fn open(minor: u32) -> Result<Box<dyn File>> {
    Ok(match minor {
        3 => Box::new(Null),
        5 => Box::new(Zero),
        7 => Box::new(Full),
        8 | 9 => Box::new(Random),
        11 => Box::new(KernelLog),
        _ => return Err(Errno::ENXIO),
    })
}

/// Takes everything, has nothing.
pub struct Null;

impl File for Null {
    fn is_pollable(&self) -> bool {
        false
    }

    fn read(&self, _offset: u64, _to: &mut Writer<'_>, _me: &Current, _cx: &Cx) -> Step<usize> {
        Ok(0)
    }

    fn write(&self, _offset: u64, from: &mut Reader<'_>, _me: &Current, _cx: &Cx) -> Step<usize> {
        let len = from.remaining();
        from.skip(len);
        Ok(len)
    }

    fn seek(&self, _to: Lseek, _now: u64, _cx: &Cx) -> Step<u64> {
        Ok(0)
    }
}

/// Takes everything, has zeros without end.
pub struct Zero;

/// So much is read in one go, so that a huge read of an endless device stays bounded.
const AT_ONCE: usize = 1 << 20;

impl File for Zero {
    fn is_pollable(&self) -> bool {
        false
    }

    fn read(&self, _offset: u64, to: &mut Writer<'_>, _me: &Current, _cx: &Cx) -> Step<usize> {
        Ok(to.zero(to.remaining().min(AT_ONCE))?)
    }

    fn write(&self, offset: u64, from: &mut Reader<'_>, me: &Current, cx: &Cx) -> Step<usize> {
        Null.write(offset, from, me, cx)
    }

    fn seek(&self, _to: Lseek, _now: u64, _cx: &Cx) -> Step<u64> {
        Ok(0)
    }
}

/// Has zeros, takes nothing: a disk that is full.
struct Full;

impl File for Full {
    fn is_pollable(&self) -> bool {
        false
    }

    fn read(&self, offset: u64, to: &mut Writer<'_>, me: &Current, cx: &Cx) -> Step<usize> {
        Zero.read(offset, to, me, cx)
    }

    fn write(&self, _offset: u64, _from: &mut Reader<'_>, _me: &Current, _cx: &Cx) -> Step<usize> {
        Err(Errno::ENOSPC.into())
    }

    fn seek(&self, _to: Lseek, _now: u64, _cx: &Cx) -> Step<u64> {
        Ok(0)
    }
}

/// Random bytes; what is written is mixed in.
struct Random;

impl File for Random {
    fn read(&self, _offset: u64, to: &mut Writer<'_>, _me: &Current, cx: &Cx) -> Step<usize> {
        random::fill(to, cx)
    }

    fn write(&self, _offset: u64, from: &mut Reader<'_>, _me: &Current, cx: &Cx) -> Step<usize> {
        let mut bytes = [0; 32];
        let mut count = 0;
        while from.remaining() > 0 && count < 4096 {
            let len = from.read(&mut bytes)?;
            random::mix(&bytes[..len], cx);
            count += len;
        }
        Ok(count)
    }
}

/// The kernel's log: what is written becomes a line of it.
struct KernelLog;

impl File for KernelLog {
    fn write(&self, _offset: u64, from: &mut Reader<'_>, _me: &Current, _cx: &Cx) -> Step<usize> {
        let mut line = [0; 960];
        let len = from.remaining();
        let count = from.read(&mut line)?;
        let text = core::str::from_utf8(line[..count].trim_ascii_end()).map_err(|_| Errno::EINVAL)?;
        // A priority such as `<6>` is for the log's reader, not part of the text.
        let text = match text.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
            Some((priority, rest)) if priority.bytes().all(|byte| byte.is_ascii_digit()) => rest,
            _ => text,
        };
        crate::log!("{text}");
        Ok(len)
    }

    fn poll(&self, interest: Events, _waker: Option<refs::Waker>, _cx: &Cx) -> Events {
        interest & (Events::OUT | Events::WRITE_NORMAL)
    }
}
