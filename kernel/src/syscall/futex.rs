//! Futexes.

use core::sync::atomic::Ordering;

use frame::Cx;
use linux_raw_sys::general as abi;

use super::{Args, Call, Entry};
use crate::credentials::TraceAs;
use crate::current::{Current, Restart};
use crate::error::{Errno, Result};
use crate::futex::{self, Progress, Scope, TwoParts};
use crate::process;
use crate::step::{Patience, Step, complete_async};
use crate::time::clock::TimeSpec;
use crate::user_memory::{UserIn, UserInOut};

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[
    Entry::partial(
        abi::__NR_futex,
        "futex",
        Call::Async(futex_async),
        "priority inheritance (FUTEX_LOCK_PI and its like), FUTEX_FD",
    ),
    Entry::new(abi::__NR_set_robust_list, "set_robust_list", Call::Step(set_robust_list)),
    Entry::new(abi::__NR_get_robust_list, "get_robust_list", Call::Step(get_robust_list)),
];

/// The size of `struct robust_list_head`.
const ROBUST_LIST_HEAD_BYTES: usize = size_of::<futex::Head>();

fn futex_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let (word, operation, value) = (args.in_out::<u32>(0), args.int(1) as u32, args.int(2) as u32);
    let scope = if operation & abi::FUTEX_PRIVATE_FLAG != 0 { Scope::Private } else { Scope::Shared };
    let command = operation & !(abi::FUTEX_PRIVATE_FLAG | abi::FUTEX_CLOCK_REALTIME);
    // Counts are `int`: a negative one is as good as none.
    let (count, second_count) = (value as i32, args.long(3) as i32);
    let counts = (count.max(0) as usize, second_count.max(0) as usize);
    match command {
        abi::FUTEX_WAIT => wait_relative_async(cx, me, args, scope),
        abi::FUTEX_WAIT_BITSET => {
            let patience = deadline_async(cx, me, args.input::<TimeSpec>(3), operation)?;
            let waited = futex::wait_async(cx, me, word, scope, value, args.int(5) as u32, patience);
            match waited {
                // With a time-out no handler lets it go on, whatever SA_RESTART says: signal(7).
                Err(Errno::RESTART_SYS) if patience != Patience::Forever => Err(Errno::RESTART_NO_HANDLER),
                waited => waited.map(|()| 0),
            }
        }
        abi::FUTEX_WAKE => wake_async(cx, me, word, scope, counts.0.max(1), futex::ANY),
        abi::FUTEX_WAKE_BITSET => wake_async(cx, me, word, scope, counts.0.max(1), args.int(5) as u32),
        abi::FUTEX_REQUEUE | abi::FUTEX_CMP_REQUEUE => {
            if count < 0 || second_count < 0 {
                return Err(Errno::EINVAL);
            }
            let expected = (command == abi::FUTEX_CMP_REQUEUE).then_some(args.int(5) as u32);
            let words = (word, args.in_out::<u32>(4));
            let mut parts = TwoParts::default();
            step_async(cx, me, |cx, me| futex::requeue(me, words, scope, counts, expected, &mut parts, cx))
        }
        abi::FUTEX_WAKE_OP => {
            let words = (word, args.in_out::<u32>(4));
            let operation = args.int(5) as u32;
            let mut parts = TwoParts::default();
            step_async(cx, me, |cx, me| futex::wake_operation(me, words, scope, counts, operation, &mut parts, cx))
        }
        _ => Err(Errno::ENOSYS),
    }
}

fn wake_async(
    cx: &mut Cx,
    me: &mut Current,
    word: UserInOut<u32>,
    scope: Scope,
    count: usize,
    mask: u32,
) -> Result<usize> {
    let mut progress = Progress::default();
    step_async(cx, me, |cx, me| futex::wake(me, word, scope, count, mask, &mut progress, cx))
}

fn step_async<T>(cx: &mut Cx, me: &mut Current, mut step: impl FnMut(&Cx, &Current) -> Step<T>) -> Result<T> {
    complete_async(cx, me, Patience::Forever, |cx, me, _| step(cx, me))
}

fn wait_relative_async(cx: &mut Cx, me: &mut Current, args: &Args, scope: Scope) -> Result<usize> {
    let (word, value) = (args.in_out::<u32>(0), args.int(2) as u32);
    let Some(time_out) = args.input::<TimeSpec>(3).non_null() else {
        return futex::wait_async(cx, me, word, scope, value, futex::ANY, Patience::Forever).map(|()| 0);
    };
    let time = me.read_async(cx, time_out)?.nanoseconds()?;
    let until = frame::time::now().saturating_add(time);
    let private = scope == Scope::Private;
    wait_rest_async(cx, me, Restart::Futex { word, value, until, mask: futex::ANY, private }).map(|()| 0)
}

/// The rest of a wait with a relative time-out that no handler interrupted.
///
/// # Errors
/// As for [`futex::wait_async`]; RESTART_BLOCK on a signal.
pub fn wait_rest_async(cx: &mut Cx, me: &mut Current, rest: Restart) -> Result<()> {
    let Restart::Futex { word, value, until, mask, private } = rest else { return Err(Errno::EINTR) };
    let scope = if private { Scope::Private } else { Scope::Shared };
    match futex::wait_async(cx, me, word, scope, value, mask, Patience::Until(until)) {
        Err(Errno::RESTART_SYS) => {
            me.restart = Some(rest);
            Err(Errno::RESTART_BLOCK)
        }
        other => other,
    }
}

/// The absolute time-out (null: none), by the clock that the operation says.
fn deadline_async(cx: &mut Cx, me: &mut Current, deadline: UserIn<TimeSpec>, operation: u32) -> Result<Patience> {
    if deadline.is_null() {
        return Ok(Patience::Forever);
    }
    let time = me.read_async(cx, deadline)?.nanoseconds()?;
    let real_time = operation & abi::FUTEX_CLOCK_REALTIME != 0;
    Ok(if real_time { Patience::UntilWall(time) } else { Patience::Until(time) })
}

fn set_robust_list(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    if args.long(1) != ROBUST_LIST_HEAD_BYTES {
        return Err(Errno::EINVAL.into());
    }
    me.thread(cx)?.robust_list.store(args.long(0), Ordering::Relaxed);
    Ok(0)
}

fn get_robust_list(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let head = match args.int(0) {
        0 => me.thread(cx)?.robust_list.load(Ordering::Relaxed),
        tid => {
            let tid = u32::try_from(tid).map_err(|_| Errno::ESRCH)?;
            let thread = process::find_thread(tid, cx).ok_or(Errno::ESRCH)?;
            if !me.may_trace(&thread, TraceAs::Real, cx)? {
                return Err(Errno::EPERM.into());
            }
            thread.robust_list.load(Ordering::Relaxed)
        }
    };
    let memory = me.memory(cx)?;
    memory.write(args.output::<usize>(1), &head)?;
    memory.write(args.output::<usize>(2), &ROBUST_LIST_HEAD_BYTES)?;
    Ok(0)
}
