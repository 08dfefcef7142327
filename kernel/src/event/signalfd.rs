//! signalfd(2): signals that are read.

use core::sync::atomic::{AtomicU64, Ordering};

use frame::Cx;
use frame::mm::Writer;
use refs::{Waker, WeakRc};
use zerocopy::{Immutable, IntoBytes};

use crate::current::Current;
use crate::error::Errno;
use crate::fs::{AskerMatters, Events, File, FileEnd, Lseek, VfsCaller};
use crate::heap::slot_bytes;
use crate::process::Process;
use crate::reclaim::Held;
use crate::signal::{Info, Signal, SignalSet};
use crate::step::{Step, Stop};

/// Reads take the signals of a set that are pending for whoever reads.
pub struct SignalFd {
    set: AtomicU64,
    /// Who made it: for whom nobody in particular waits, such as a set of epoll(7) in another one.
    process: WeakRc<Process>,
    _asker: AskerMatters,
}

/// `struct signalfd_siginfo`.
#[derive(Default, IntoBytes, Immutable)]
#[repr(C)]
struct SignalFdInfo {
    signal: u32,
    errno: i32,
    code: i32,
    pid: u32,
    uid: u32,
    fd: i32,
    timer: u32,
    band: u32,
    overrun: u32,
    trap: u32,
    status: i32,
    int: i32,
    pointer: u64,
    user_time: u64,
    system_time: u64,
    address: u64,
    reserved: [u64; 6],
}

const SIZE: usize = 128;
const _: () = assert!(size_of::<SignalFdInfo>() == SIZE);

impl SignalFdInfo {
    fn new(info: &Info) -> Self {
        let [first, second, third, fourth] = info.fields;
        let (low, high) = (first as u32, (first >> 32) as u32);
        let mut record = SignalFdInfo {
            signal: info.signal.number(),
            errno: info.errno,
            code: info.code,
            ..SignalFdInfo::default()
        };
        match info.signal {
            Signal::SEGV | Signal::BUS | Signal::ILL | Signal::FPE | Signal::TRAP if info.code > 0 => {
                record.address = first;
            }
            Signal::CHLD => {
                (record.pid, record.uid, record.status) = (low, high, second as i32);
                (record.user_time, record.system_time) = (third, fourth);
            }
            _ if info.code == linux_raw_sys::general::SI_TIMER => {
                (record.timer, record.overrun, record.int, record.pointer) = (low, high, second as i32, second);
            }
            _ if let Some((events, fd)) = info.events_and_fd() => (record.band, record.fd) = (events, fd),
            _ => (record.pid, record.uid, record.int, record.pointer) = (low, high, second as i32, second),
        }
        record
    }
}

impl SignalFd {
    /// Takes the signals of `set`.
    pub fn new(set: SignalSet, process: WeakRc<Process>) -> Self {
        let fd = SignalFd { set: AtomicU64::new(0), process, _asker: AskerMatters::default() };
        fd.change(set);
        fd
    }

    /// Takes the signals of `set` from now on.
    pub fn change(&self, set: SignalSet) {
        self.set.store(set.without(SignalSet::UNBLOCKABLE).0, Ordering::Relaxed);
    }

    fn set(&self) -> SignalSet {
        SignalSet(self.set.load(Ordering::Relaxed))
    }

    /// What is ready for one of the process' threads, which has these signals of its own.
    fn look(
        &self,
        process: &Process,
        own: impl FnOnce() -> SignalSet,
        interest: Events,
        waker: Option<Waker>,
        cx: &Cx,
    ) -> Events {
        if let Some(waker) = waker {
            process.signal_arrived.register(waker, cx);
        }
        if process.pending.set().union(own()).intersection(self.set()).is_empty() {
            Events::empty()
        } else {
            interest & (Events::IN | Events::READ_NORMAL)
        }
    }
}

impl File for SignalFd {
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

    fn read(&self, _offset: u64, to: &mut Writer<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        if to.remaining() < SIZE {
            return Err(Errno::EINVAL.into());
        }
        let me = Current::of(me)?;
        let (thread, process) = (me.thread(cx)?, me.process(cx)?);
        let mut count = 0;
        while to.remaining() >= SIZE {
            let mut give = |info: &Info| to.write(SignalFdInfo::new(info).as_bytes()).map(|_| ());
            let taken = match thread.signals.pending.take_if(self.set(), &mut give, cx) {
                Ok(false) => process.pending.take_if(self.set(), give, cx),
                taken => taken,
            };
            match taken {
                Ok(true) => count += SIZE,
                Ok(false) => break,
                Err(fault) if count == 0 => return Err(fault.into()),
                Err(_) => break,
            }
        }
        thread.signals.look_again(&process.pending);
        if count == 0 { Err(Stop::Block) } else { Ok(count) }
    }

    fn poll(&self, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        // Nobody is known to ask, so it is for whoever made it, and for any of his threads.
        let Ok(process) = self.process.upgrade(cx) else { return Events::empty() };
        let own = || {
            let mut pending = SignalSet::default();
            process.each_thread(cx, |thread| pending = pending.union(thread.signals.pending.set()));
            pending
        };
        self.look(&process, own, interest, waker, cx)
    }

    fn poll_for(&self, me: &dyn VfsCaller, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        let me = Current::of(me).ok().and_then(|me| Some((me.process(cx).ok()?, me.thread(cx).ok()?)));
        let Some((process, thread)) = me else { return Events::empty() };
        self.look(&process, || thread.signals.pending.set(), interest, waker, cx)
    }
}
