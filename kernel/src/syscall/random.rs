//! Random bytes.

use frame::Cx;
use linux_raw_sys::general::{__NR_getrandom, GRND_INSECURE, GRND_NONBLOCK, GRND_RANDOM};

use super::{Args, Call, Entry};
use crate::current::Current;
use crate::drivers::random;
use crate::error::Errno;
use crate::step::Step;

/// The calls of this file.
pub const CALLS: &[Entry] = &[Entry::new(__NR_getrandom, "getrandom", Call::Step(getrandom))];

fn getrandom(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let flags = args.int(2) as u32;
    if flags & !(GRND_NONBLOCK | GRND_RANDOM | GRND_INSECURE) != 0
        || flags & (GRND_RANDOM | GRND_INSECURE) == GRND_RANDOM | GRND_INSECURE
    {
        return Err(Errno::EINVAL.into());
    }
    random::fill(&mut me.memory(cx)?.writer(args.output::<u8>(0).slice(args.long(1))), cx)
}
