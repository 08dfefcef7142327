//! eventfd(2): a counter that can be waited for.

use frame::Cx;
use frame::mm::{Reader, Writer};
use refs::{SpinLock, WaitList, Waker};

use crate::error::Errno;
use crate::fs::{Events, File, FileEnd, Lseek, VfsCaller};
use crate::heap::slot_bytes;
use crate::reclaim::Held;
use crate::step::{Step, Stop};

/// Writes leave the counter below this.
const FULL: u64 = u64::MAX;

/// A counter: reads take, writes add.
pub struct EventFd {
    count: SpinLock<u64>,
    /// A read takes 1 rather than all (EFD_SEMAPHORE).
    is_semaphore: bool,
    readable: WaitList,
    writable: WaitList,
}

impl EventFd {
    /// A counter that starts at `count`.
    pub fn new(count: u32, is_semaphore: bool) -> Self {
        EventFd {
            count: SpinLock::new(u64::from(count)),
            is_semaphore,
            readable: WaitList::new(),
            writable: WaitList::new(),
        }
    }
}

impl EventFd {
    /// The kernel adds to the counter, as far as it goes: then it has overflowed, which poll(2) tells as an error.
    pub fn add(&self, more: u64, cx: &Cx) {
        let mut count = self.count.lock(cx);
        *count = count.saturating_add(more);
        drop(count);
        self.readable.wake();
    }
}

impl File for EventFd {
    fn end(&self) -> FileEnd {
        FileEnd::Unseen { bytes: slot_bytes(size_of::<Self>()) }
    }

    fn class(&self) -> Held {
        Held::Event
    }

    fn seek(&self, _to: Lseek, now: u64, _cx: &Cx) -> Step<u64> {
        // It has no offset, and Linux does not say so.
        Ok(now)
    }

    fn read(&self, _offset: u64, to: &mut Writer<'_>, _me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        if to.remaining() < 8 {
            return Err(Errno::EINVAL.into());
        }
        let mut count = self.count.lock(cx);
        if *count == 0 {
            return Err(Stop::Block);
        }
        let taken = if self.is_semaphore { 1 } else { *count };
        to.write(&taken.to_ne_bytes())?;
        *count -= taken;
        drop(count);
        self.writable.wake();
        Ok(8)
    }

    fn write(&self, _offset: u64, from: &mut Reader<'_>, _me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        if from.remaining() < 8 {
            return Err(Errno::EINVAL.into());
        }
        let mut bytes = [0; 8];
        from.read(&mut bytes)?;
        let added = u64::from_ne_bytes(bytes);
        if added == FULL {
            return Err(Errno::EINVAL.into());
        }
        let mut count = self.count.lock(cx);
        if FULL - *count <= added {
            return Err(Stop::Block);
        }
        *count += added;
        drop(count);
        self.readable.wake();
        Ok(8)
    }

    fn poll(&self, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        if let Some(waker) = waker {
            if interest.contains(Events::IN) {
                self.readable.register(waker, cx);
            }
            if interest.contains(Events::OUT) {
                self.writable.register(waker, cx);
            }
        }
        let count = *self.count.lock(cx);
        let mut events = Events::empty();
        if count > 0 {
            events |= Events::IN | Events::READ_NORMAL;
        }
        if count < FULL - 1 {
            events |= Events::OUT | Events::WRITE_NORMAL;
        }
        if count == FULL {
            events |= Events::ERROR;
        }
        events & (interest | Events::ERROR)
    }
}
