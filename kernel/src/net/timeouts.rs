//! [`Timeouts`]: how long calls on a socket wait (SO_RCVTIMEO, SO_SNDTIMEO).

use core::sync::atomic::{AtomicU64, Ordering};

use linux_raw_sys::net;

use crate::error::{Errno, Result};
use crate::fs::Events;
use crate::time::clock::TimeVal;

/// Those of one socket.
#[derive(Default)]
pub struct Timeouts {
    /// Of calls that receive or accept.
    pub receive: Timeout,
    /// Of calls that send or connect.
    pub send: Timeout,
}

impl Timeouts {
    /// How long a call waits for one of `interest`, in nanoseconds; `None`: for ever.
    pub fn limit(&self, interest: Events) -> Option<u64> {
        let timeout = if interest.contains(Events::OUT) { &self.send } else { &self.receive };
        timeout.nanoseconds()
    }

    /// The one that an option of SOL_SOCKET is for, if it is for one.
    pub fn of(&self, option: u32) -> Option<&Timeout> {
        match option {
            net::SO_RCVTIMEO_OLD | net::SO_RCVTIMEO_NEW => Some(&self.receive),
            net::SO_SNDTIMEO_OLD | net::SO_SNDTIMEO_NEW => Some(&self.send),
            _ => None,
        }
    }
}

/// How long a call waits, in ticks: programs read it back so.
pub struct Timeout(AtomicU64);

/// Ticks in a second, as in most distributions' Linux.
const HZ: u64 = 250;
const TICK_NANOSECONDS: u64 = 1_000_000_000 / HZ;
const TICK_MICROSECONDS: u64 = 1_000_000 / HZ;
const FOREVER: u64 = u64::MAX;

impl Timeout {
    /// Changes it. No time at all is for ever; a time before now is none.
    ///
    /// # Errors
    /// EDOM: these are no microseconds of a second.
    pub fn set(&self, time: TimeVal) -> Result<()> {
        if !(0..1_000_000).contains(&time.microseconds) {
            return Err(Errno::EDOM);
        }
        let ticks = (time.microseconds as u64).div_ceil(TICK_MICROSECONDS);
        let ticks = match u64::try_from(time.seconds) {
            Err(_) => 0,
            Ok(0) if ticks == 0 => FOREVER,
            Ok(seconds) if seconds < i64::MAX as u64 / HZ - 1 => seconds * HZ + ticks,
            Ok(_) => FOREVER,
        };
        self.0.store(ticks, Ordering::Relaxed);
        Ok(())
    }

    /// Its time as programs are told; nothing if it is for ever.
    pub fn get(&self) -> TimeVal {
        match self.0.load(Ordering::Relaxed) {
            FOREVER => TimeVal::default(),
            ticks => TimeVal { seconds: (ticks / HZ) as i64, microseconds: (ticks % HZ * TICK_MICROSECONDS) as i64 },
        }
    }

    /// Its time in nanoseconds; `None` if it is for ever.
    pub fn nanoseconds(&self) -> Option<u64> {
        match self.0.load(Ordering::Relaxed) {
            FOREVER => None,
            ticks => Some(ticks.saturating_mul(TICK_NANOSECONDS)),
        }
    }
}

impl Default for Timeout {
    fn default() -> Self {
        Timeout(AtomicU64::new(FOREVER))
    }
}
