//! Random bytes.

use frame::Cx;
use linux_raw_sys::general::{__NR_getrandom, GRND_INSECURE, GRND_NONBLOCK, GRND_RANDOM};

use super::{Args, Call, Entry};
use crate::current::Current;
use crate::drivers::random;
use crate::error::{Errno, Result};
use crate::step::{Interruption, Patience, Stop, TimeSlice, complete_async};

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[Entry::new(__NR_getrandom, "getrandom", Call::Async(getrandom_async))];

/// How much one call gives at most.
const MOST: usize = (1 << 25) - 1;

fn getrandom_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let flags = args.int(2) as u32;
    if flags & !(GRND_NONBLOCK | GRND_RANDOM | GRND_INSECURE) != 0
        || flags & (GRND_RANDOM | GRND_INSECURE) == GRND_RANDOM | GRND_INSECURE
    {
        return Err(Errno::EINVAL);
    }
    let to = args.output::<u8>(0).buffer(args.long(1).min(MOST))?;
    let mut done = 0;
    let outcome = complete_async(cx, me, Patience::Forever, |cx, me, _| {
        let mut time_slice = TimeSlice::default();
        while done < to.len() {
            done += random::fill(&mut me.memory(cx)?.writer(to.behind(done).slice()), cx)?;
            if done < to.len() && time_slice.is_over() {
                return Err(Stop::Pause(Interruption::Signals));
            }
        }
        Ok(done)
    });
    // What a signal or a bad address ends has given what there is by then.
    if done > 0 { Ok(done) } else { outcome }
}
