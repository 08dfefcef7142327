//! [`Info`]: what is told of a signal, and how a program sees it (`siginfo_t`).

use linux_raw_sys::general as abi;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::Signal;

/// What is told of one signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Which signal.
    pub signal: Signal,
    /// `si_code`: where it comes from.
    pub code: i32,
    /// `si_errno`.
    pub errno: i32,
    /// The fields of the union from `si_pid`/`si_addr` on, in their layout.
    pub fields: [u64; 4],
}

/// `siginfo_t` of x86-64: 128 bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs)]
pub struct SigInfo {
    pub signo: i32,
    pub errno: i32,
    pub code: i32,
    pub padding: i32,
    pub fields: [u64; 14],
}

impl Info {
    /// From the kernel itself, with nothing to tell (`SI_KERNEL`).
    pub fn kernel(signal: Signal) -> Self {
        Info { signal, code: abi::SI_KERNEL as i32, errno: 0, fields: [0; 4] }
    }

    /// From a process (`SI_USER`, `SI_TKILL`): its id and real user.
    pub fn from_process(signal: Signal, code: i32, pid: u32, uid: u32) -> Self {
        Info { signal, code, errno: 0, fields: [u64::from(pid) | u64::from(uid) << 32, 0, 0, 0] }
    }

    /// A fault at an address.
    pub fn fault(signal: Signal, code: u32, address: usize) -> Self {
        Info { signal, code: code as i32, errno: 0, fields: [address as u64, 0, 0, 0] }
    }

    /// A child changed (`CLD_*`): its id, user, status, and CPU times in clock ticks.
    pub fn child(signal: Signal, code: u32, pid: u32, uid: u32, status: u32, user: u64, system: u64) -> Self {
        let first = u64::from(pid) | u64::from(uid) << 32;
        Info { signal, code: code as i32, errno: 0, fields: [first, u64::from(status), user, system] }
    }

    /// A file became ready: `si_code`, what poll(2) would say of it, and its descriptor.
    pub fn io(signal: Signal, code: i32, events: u32, fd: i32) -> Self {
        Info { signal, code, errno: 0, fields: [events.into(), u64::from(fd as u32), 0, 0] }
    }

    /// What poll(2) would say of a file that became ready, and its descriptor, if that is what it tells.
    pub fn events_and_fd(&self) -> Option<(u32, i32)> {
        let is_io =
            self.code == abi::SI_SIGIO || (self.code >= abi::POLL_IN as i32 && self.code <= abi::POLL_HUP as i32);
        is_io.then_some((self.fields[0] as u32, self.fields[1] as i32))
    }

    /// A timer expired (`SI_TIMER`): its id, how often more than once, and what its maker gave along.
    pub fn timer(signal: Signal, id: u32, overrun: u32, value: u64) -> Self {
        let first = u64::from(id) | u64::from(overrun) << 32;
        Info { signal, code: abi::SI_TIMER, errno: 0, fields: [first, value, 0, 0] }
    }

    /// A message came to a queue that was empty (`SI_MESGQ`): from which process and real user, and what who asked for it gave along.
    pub fn message(signal: Signal, pid: u32, uid: u32, value: u64) -> Self {
        Info { signal, code: abi::SI_MESGQ, errno: 0, fields: [u64::from(pid) | u64::from(uid) << 32, value, 0, 0] }
    }

    /// The timer that it comes from, if it comes from one.
    pub fn timer_id(&self) -> Option<u32> {
        (self.code == abi::SI_TIMER).then_some(self.fields[0] as u32)
    }

    /// The timer that it comes from has expired again.
    pub fn add_overrun(&mut self, times: u32) {
        let overrun = ((self.fields[0] >> 32) as u32).saturating_add(times).min(i32::MAX as u32);
        self.fields[0] = self.fields[0] & 0xffff_ffff | u64::from(overrun) << 32;
    }

    /// As a program sees it.
    pub fn encode(&self) -> SigInfo {
        let mut fields = [0; 14];
        fields[..4].copy_from_slice(&self.fields);
        SigInfo { signo: self.signal.number() as i32, errno: self.errno, code: self.code, padding: 0, fields }
    }

    /// As a program told it (rt_sigqueueinfo).
    pub fn decode(signal: Signal, raw: &SigInfo) -> Self {
        let mut fields = [0; 4];
        fields.copy_from_slice(&raw.fields[..4]);
        Info { signal, code: raw.code, errno: raw.errno, fields }
    }
}
