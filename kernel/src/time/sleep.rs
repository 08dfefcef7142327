//! Sleeping.

use frame::Cx;

use super::clock::TimeSpec;
use crate::current::{Current, Restart};
use crate::error::{Errno, Result};
use crate::step::{Patience, Stop, complete_async};
use crate::user_memory::UserOut;

/// Sleeps until patience ends.
///
/// # Errors
/// RESTART_SYS on a signal.
pub fn sleep_until_async(cx: &mut Cx, me: &mut Current, until: Patience) -> Result<()> {
    match complete_async(cx, me, until, |_, _, _| Err::<(), _>(Stop::Block)) {
        Err(Errno::ETIMEDOUT) => Ok(()),
        other => other,
    }
}

/// Sleeps until a time; where a signal ends it, writes what is left of it to `remainder` (unless that is 0), and the sleep goes on if no handler runs.
///
/// # Errors
/// RESTART_BLOCK on a signal; EFAULT.
pub fn sleep_rest_async(cx: &mut Cx, me: &mut Current, until: u64, remainder: UserOut<TimeSpec>) -> Result<()> {
    match sleep_until_async(cx, me, Patience::Until(until)) {
        Err(Errno::RESTART_SYS) => {
            if !remainder.is_null() {
                let rest = TimeSpec::from_nanoseconds(until.saturating_sub(frame::time::now()));
                me.write_async(cx, remainder, &rest)?;
            }
            me.restart = Some(Restart::Sleep { until, remainder });
            Err(Errno::RESTART_BLOCK)
        }
        other => other,
    }
}
