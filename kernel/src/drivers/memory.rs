//! The devices behind which there is no device: null, zero, full, random, urandom, kmsg.

use alloc::boxed::Box;

use frame::Cx;
use frame::mm::{Reader, Writer};
use linux_raw_sys::ioctl::RNDGETENTCNT;

use super::kernel_log::KernelLog;
use super::random;
use crate::error::{Errno, Result};
use crate::fs::{File, FileEnd, Lseek, VfsCaller};
use crate::memory::Mappable;
use crate::reclaim::Held;
use crate::step::Step;
use crate::user_memory::Argument;

/// Opens the memory device of that minor number.
///
/// # Errors
/// ENXIO: there is none.
pub fn open(minor: u32) -> Result<Box<dyn File>> {
    Ok(match minor {
        3 => Box::new(Null),
        5 => Box::new(Zero),
        7 => Box::new(Full),
        8 => Box::new(Random { is_pollable: true }),
        9 => Box::new(Random { is_pollable: false }),
        11 => Box::new(KernelLog::new()),
        _ => return Err(Errno::ENXIO),
    })
}

/// Takes everything, has nothing.
pub struct Null;

impl File for Null {
    fn end(&self) -> FileEnd {
        FileEnd::Seen
    }

    fn class(&self) -> Held {
        Held::File
    }

    fn is_pollable(&self) -> bool {
        false
    }

    fn read(&self, _offset: u64, _to: &mut Writer<'_>, _me: &dyn VfsCaller, _cx: &Cx) -> Step<usize> {
        Ok(0)
    }

    fn write(&self, _offset: u64, from: &mut Reader<'_>, _me: &dyn VfsCaller, _cx: &Cx) -> Step<usize> {
        let len = from.remaining();
        from.skip(len);
        Ok(len)
    }

    fn is_seekable(&self) -> bool {
        // An offset is allowed and means nothing.
        true
    }

    fn seek(&self, _to: Lseek, _now: u64, _cx: &Cx) -> Step<u64> {
        Ok(0)
    }
}

/// Takes everything, has zeros without end.
pub struct Zero;

impl File for Zero {
    fn end(&self) -> FileEnd {
        FileEnd::Seen
    }

    fn class(&self) -> Held {
        Held::File
    }

    fn is_pollable(&self) -> bool {
        false
    }

    fn read(&self, _offset: u64, to: &mut Writer<'_>, _me: &dyn VfsCaller, _cx: &Cx) -> Step<usize> {
        let room = to.remaining();
        match to.zero(room) {
            Err(fault) if to.remaining() == room => Err(fault.into()),
            _ => Ok(room - to.remaining()),
        }
    }

    fn write(&self, offset: u64, from: &mut Reader<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        Null.write(offset, from, me, cx)
    }

    fn mappable<'a>(&'a self, _cx: &'a Cx) -> Mappable<'a> {
        Mappable::Zeros
    }

    fn is_seekable(&self) -> bool {
        // An offset is allowed and means nothing.
        true
    }

    fn seek(&self, _to: Lseek, _now: u64, _cx: &Cx) -> Step<u64> {
        Ok(0)
    }
}

/// Has zeros, takes nothing: a disk that is full.
struct Full;

impl File for Full {
    fn end(&self) -> FileEnd {
        FileEnd::Seen
    }

    fn class(&self) -> Held {
        Held::File
    }

    fn is_pollable(&self) -> bool {
        false
    }

    fn read(&self, offset: u64, to: &mut Writer<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        Zero.read(offset, to, me, cx)
    }

    fn write(&self, _offset: u64, _from: &mut Reader<'_>, _me: &dyn VfsCaller, _cx: &Cx) -> Step<usize> {
        Err(Errno::ENOSPC.into())
    }

    fn is_seekable(&self) -> bool {
        // An offset is allowed and means nothing.
        true
    }

    fn seek(&self, _to: Lseek, _now: u64, _cx: &Cx) -> Step<u64> {
        Ok(0)
    }
}

/// Random bytes; what is written is mixed in. As on Linux, only `/dev/random` can be waited for.
struct Random {
    is_pollable: bool,
}

impl File for Random {
    fn end(&self) -> FileEnd {
        FileEnd::Seen
    }

    fn class(&self) -> Held {
        Held::File
    }

    fn is_pollable(&self) -> bool {
        self.is_pollable
    }

    fn is_seekable(&self) -> bool {
        // An offset is allowed and means nothing.
        true
    }

    fn reads_slowly(&self) -> bool {
        true
    }

    fn seek(&self, _to: Lseek, _now: u64, _cx: &Cx) -> Step<u64> {
        Ok(0)
    }

    fn ioctl(&self, request: u32, argument: Argument, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        if request != RNDGETENTCNT {
            return Err(Errno::ENOTTY.into());
        }
        me.memory(cx)?.write(argument.output::<i32>(), &(random::ENTROPY_BITS as i32))?;
        Ok(0)
    }

    fn read(&self, _offset: u64, to: &mut Writer<'_>, _me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        random::fill(to, cx)
    }

    fn write(&self, _offset: u64, from: &mut Reader<'_>, _me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
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
