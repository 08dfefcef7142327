//! Signal-driven I/O: O_ASYNC, F_SETOWN, F_SETSIG; see fcntl(2), "Managing signals".
//!
//! ```text
//!   what becomes ready: FasyncList --WeakRc--> OpenFile --StrongRc--> SignalTarget --> a thread, a process, a group
//!                       (fd, interest)         (F_SETSIG)             (F_SETOWN, and the rights of who said so)
//! ```
//!
//! A description owns what was said about its signals; what becomes ready knows the description by name only. So an entry is dead when the last descriptor
//! is closed, whoever has it after dup(2), fork(2) or SCM_RIGHTS, and is thrown out when somebody next enters or is told. execve(2) changes nothing. Nobody waits
//! on any of this, and destroying it frees one small object.
//!
//! Locks: a list's entries, a description's owner: each alone. Signals are sent with none of them.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use core::any::Any;
use core::ops::Bound;
use core::sync::atomic::{AtomicBool, Ordering};

use frame::Cx;
use linux_raw_sys::general as abi;
use refs::{SpinLock, StrongRc, TempRc, WeakRc};

use super::{Events, OpenFile, OpenFlags, VfsCaller};
use crate::error::Result;
use crate::signal::{Info, Signal};

/// What has happened to a file: `si_code` and `si_band` of its signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Band {
    /// It can be read (POLL_IN).
    In,
    /// It can be written (POLL_OUT).
    Out,
    /// A directory has changed (POLL_MSG).
    Message,
    /// The other end is closed (POLL_HUP).
    HangUp,
}

impl Band {
    fn code_and_events(self) -> (u32, u32) {
        match self {
            Band::In => (abi::POLL_IN, abi::POLLIN | abi::POLLRDNORM),
            Band::Out => (abi::POLL_OUT, abi::POLLOUT | abi::POLLWRNORM | abi::POLLWRBAND),
            Band::Message => (abi::POLL_MSG, abi::POLLIN | abi::POLLRDNORM | abi::POLLMSG),
            Band::HangUp => (abi::POLL_HUP, abi::POLLHUP | abi::POLLERR),
        }
    }
}

/// Whom a file's signals go to. The room that has processes implements it.
pub trait SignalTarget: Any + Send + Sync {
    /// Sends it to all whom the one who named the target may signal. Where the queue of real-time signals is full, SIGIO goes instead.
    fn send(&self, info: Info, cx: &Cx);
}

/// The descriptions that ask for signals when something becomes ready. It belongs to that.
#[derive(Default)]
pub struct FasyncList {
    has_any: AtomicBool,
    /// `None` until somebody asks: most lists end without one, and that costs nothing.
    entries: SpinLock<Option<Box<Entries>>>,
}

#[derive(Default)]
struct Entries {
    by_file: BTreeMap<WeakRc<OpenFile>, Entry>,
    /// The last one that was looked at for being dead.
    swept: Option<WeakRc<OpenFile>>,
}

/// So many entries are looked at for dead descriptions when one comes: more than come, so that what was closed does not pile up.
const SWEPT_AT_A_TIME: usize = 2;

#[derive(Clone, Copy)]
struct Entry {
    /// The descriptor by which O_ASYNC was set, for `si_fd`.
    fd: i32,
    interest: Events,
}

/// A change of O_ASYNC, for [`File::fasync`](super::File::fasync).
pub struct Registration<'a> {
    file: WeakRc<OpenFile>,
    /// By which descriptor it is set, and by whom; `None` where it is taken away.
    begins: Option<(i32, &'a dyn VfsCaller)>,
}

impl<'a> Registration<'a> {
    /// Enters the description in a list, or takes it out: for signals when one of `interest` happens.
    pub fn apply(&self, list: &FasyncList, interest: Events, cx: &Cx) {
        let mut entries = list.entries.lock(cx);
        let entries = entries.get_or_insert_default();
        entries.sweep();
        match self.begins {
            Some((fd, _)) => entries.by_file.insert(self.file, Entry { fd, interest }),
            None => entries.by_file.remove(&self.file),
        };
        list.has_any.store(!entries.by_file.is_empty(), Ordering::Relaxed);
    }

    /// The description and who sets O_ASYNC, if it is set.
    pub fn begins<'cx>(&self, cx: &'cx Cx) -> Option<(TempRc<'cx, OpenFile>, &'a dyn VfsCaller)> {
        let (_, me) = self.begins?;
        Some((self.file.upgrade(cx).ok()?, me))
    }
}

impl FasyncList {
    /// Whether anybody may ask for signals.
    #[inline(always)]
    pub fn has_any(&self) -> bool {
        self.has_any.load(Ordering::Relaxed)
    }

    /// Sends signals to those whose interest includes `event`.
    #[inline(always)]
    pub fn signal(&self, event: Events, band: Band, cx: &Cx) {
        if self.has_any() {
            self.signal_each(event, band, cx);
        }
    }

    #[cold]
    fn signal_each(&self, event: Events, band: Band, cx: &Cx) {
        let mut last = None;
        loop {
            let mut list = self.entries.lock(cx);
            let Some(entries) = &mut *list else { return };
            let Some((name, Entry { fd, interest })) = entries.behind(last) else { return };
            last = Some(name);
            let Ok(file) = name.upgrade(cx) else {
                entries.by_file.remove(&name);
                self.has_any.store(!entries.by_file.is_empty(), Ordering::Relaxed);
                continue;
            };
            drop(list);
            if interest.intersects(event) {
                file.signal_owner(fd, band, cx);
            }
        }
    }
}

impl Entries {
    /// The entry behind that of `last`; the first, if there is no last one.
    fn behind(&self, last: Option<WeakRc<OpenFile>>) -> Option<(WeakRc<OpenFile>, Entry)> {
        let from = last.map_or(Bound::Unbounded, Bound::Excluded);
        self.by_file.range((from, Bound::Unbounded)).next().map(|(file, entry)| (*file, *entry))
    }

    /// Throws out some of those whose description is dead, where it stopped the last time.
    fn sweep(&mut self) {
        for _ in 0..SWEPT_AT_A_TIME {
            self.swept = self.behind(self.swept).map(|(file, _)| file);
            if let Some(file) = self.swept.filter(WeakRc::is_gone) {
                self.by_file.remove(&file);
            }
        }
    }
}

impl OpenFile {
    /// Whom its signals go to, if anybody.
    pub fn owner<'cx>(&self, cx: &'cx Cx) -> Option<TempRc<'cx, dyn SignalTarget>> {
        self.owner.lock(cx).as_ref().map(|owner| owner.get(cx))
    }

    /// Says whom its signals go to.
    pub fn set_owner(&self, owner: Option<StrongRc<dyn SignalTarget>>, cx: &Cx) {
        let old = core::mem::replace(&mut *self.owner.lock(cx), owner);
        drop(old);
    }

    /// The number of the signal that is sent (F_GETSIG); 0: SIGIO, with nothing told.
    pub fn io_signal(&self) -> u8 {
        self.io_signal.load(Ordering::Relaxed)
    }

    /// Says which signal is sent (F_SETSIG).
    ///
    /// # Errors
    /// EINVAL: there is no such signal.
    pub fn set_io_signal(&self, number: i32) -> Result<()> {
        if number != 0 {
            Signal::new(number)?;
        }
        self.io_signal.store(number as u8, Ordering::Relaxed);
        Ok(())
    }

    /// Tells its owner, if it has one, what happened. `fd` is told as the descriptor.
    pub fn signal_owner(&self, fd: i32, band: Band, cx: &Cx) {
        /// These tell other things by `si_code`.
        const WITH_CODES: [Signal; 6] =
            [Signal::ILL, Signal::TRAP, Signal::BUS, Signal::FPE, Signal::SEGV, Signal::CHLD];
        let Some(owner) = self.owner(cx) else { return };
        let info = match Signal::new(i32::from(self.io_signal())) {
            Err(_) => Info::kernel(Signal::IO),
            Ok(signal) => {
                let (code, events) = band.code_and_events();
                let has_codes = WITH_CODES.contains(&signal) || signal == Signal::SYS;
                Info::io(signal, if has_codes { abi::SI_SIGIO } else { code as i32 }, events, fd)
            }
        };
        owner.send(info, cx);
    }
}

/// Sets or takes away O_ASYNC, by descriptor `fd`; false if the file is of a kind that sends no signals.
///
/// # Errors
/// ENOMEM.
pub fn set_signal_driven(open: &TempRc<'_, OpenFile>, fd: i32, on: bool, me: &dyn VfsCaller, cx: &Cx) -> Result<bool> {
    if on {
        crate::memory::admit()?;
    }
    Ok(register(open, open.downgrade(), on.then_some((fd, me)), cx))
}

/// The description `file` is about to go: what happens to what it is open on from here on is not told.
#[inline(always)]
pub fn end(open: &OpenFile, file: WeakRc<OpenFile>, cx: &Cx) {
    if open.flags().contains(OpenFlags::ASYNC) {
        register(open, file, None, cx);
    }
}

fn register(open: &OpenFile, file: WeakRc<OpenFile>, begins: Option<(i32, &dyn VfsCaller)>, cx: &Cx) -> bool {
    let is_supported = open.file.fasync(&Registration { file, begins }, cx);
    if is_supported {
        let mut flags = open.flags();
        flags.set(OpenFlags::ASYNC, begins.is_some());
        open.set_flags(flags);
    }
    is_supported
}
