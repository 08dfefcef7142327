//! prctl(2): what a thread or process is told about itself.

use core::sync::atomic::Ordering;

use frame::Cx;
use linux_raw_sys::general as abi;
use linux_raw_sys::prctl as option;

use super::{Args, Call, Entry};
use crate::arch;
use crate::credentials::{Ambient, Capability, SecureBits};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::process::{Name, Thread};
use crate::signal::Signal;
use crate::step::{Patience, Step, complete_async};
use crate::user_memory::{UserIn, UserMemory};

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[Entry::partial(
    abi::__NR_prctl,
    "prctl",
    Call::Async(prctl_async),
    "names, parent-death signal, dumpable, capabilities, securebits, subreaper, no_new_privs, timer slack, time-stamp counter; no others",
)];

/// An option that is on or off.
fn flag(value: usize) -> Result<bool> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Errno::EINVAL),
    }
}

/// Checks that arguments that mean nothing are 0.
fn check_unused(unused: &[usize]) -> Result<()> {
    if unused.iter().all(|&argument| argument == 0) { Ok(()) } else { Err(Errno::EINVAL) }
}

fn prctl_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    if args.int(0) as u32 == option::PR_SET_TSC {
        arch::set_cycle_counter(&mut me.context, args.int(1) as u32, cx)?;
        return Ok(0);
    }
    complete_async(cx, me, Patience::None, |cx, me, _| prctl(cx, me, args))
}

/// All but what changes the thread's context.
fn prctl(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let (option, argument) = (args.int(0) as u32, args.either(1));
    let value = argument.value();
    let (thread, process, memory) = (me.thread(cx)?, me.process(cx)?, me.memory(cx)?);
    match option {
        option::PR_SET_NAME => {
            let name = read_name(&memory, argument.input::<u8>())?;
            thread.set_name(name, cx);
        }
        option::PR_GET_NAME => memory.write(argument.output::<[u8; 16]>(), &thread.name(cx).padded())?,
        option::PR_SET_PDEATHSIG => {
            if value != 0 {
                Signal::new(i32::try_from(value).map_err(|_| Errno::EINVAL)?)?;
            }
            thread.parent_death_signal.store(value as u32, Ordering::Relaxed);
            me.process(cx)?.has_parent_death_signal.store(true, Ordering::Relaxed);
        }
        option::PR_GET_PDEATHSIG => {
            memory.write(argument.output::<u32>(), &thread.parent_death_signal.load(Ordering::Relaxed))?;
        }
        option::PR_SET_DUMPABLE => process.dumpable.store(u32::from(flag(value)?), Ordering::Relaxed),
        option::PR_GET_DUMPABLE => return Ok(process.dumpable.load(Ordering::Relaxed) as usize),
        // Whoever may look into another process may trace it: there is nothing to allow.
        option::PR_SET_PTRACER => {}
        option::PR_SET_KEEPCAPS => {
            let keep = flag(value)?;
            thread.change_credentials(cx, |who| who.set_keep_capabilities(keep))?;
        }
        option::PR_GET_KEEPCAPS => {
            let bits = thread.credentials.lock(cx).secure_bits();
            return Ok(usize::from(bits.contains(SecureBits::KEEP_CAPS)));
        }
        option::PR_SET_NO_NEW_PRIVS => {
            if !flag(value)? {
                return Err(Errno::EINVAL.into());
            }
            check_unused(&args.0[2..5])?;
            thread.no_new_privileges.store(true, Ordering::Relaxed);
        }
        option::PR_GET_NO_NEW_PRIVS => {
            check_unused(&args.0[1..5])?;
            return Ok(usize::from(thread.no_new_privileges.load(Ordering::Relaxed)));
        }
        option::PR_SET_CHILD_SUBREAPER => process.is_subreaper.store(value != 0, Ordering::Relaxed),
        option::PR_GET_CHILD_SUBREAPER => {
            memory.write(argument.output::<u32>(), &u32::from(process.is_subreaper.load(Ordering::Relaxed)))?;
        }
        option::PR_SET_TIMERSLACK => thread.timer_slack.set(value as u64),
        option::PR_GET_TIMERSLACK => return Ok(thread.timer_slack.get() as usize),
        option::PR_CAPBSET_READ => {
            let capability = Capability::new(value)?;
            return Ok(usize::from(thread.credentials.lock(cx).capabilities().bounding.contains(capability)));
        }
        option::PR_CAPBSET_DROP => {
            me.require(Capability::Setpcap, cx)?;
            let capability = Capability::new(value)?;
            thread.credentials.lock(cx).drop_bounding(capability);
        }
        option::PR_GET_SECUREBITS => return Ok(thread.credentials.lock(cx).secure_bits().bits() as usize),
        option::PR_SET_SECUREBITS => thread.change_credentials(cx, |who| who.set_secure_bits(value))?,
        option::PR_CAP_AMBIENT => return Ok(change_ambient(&thread, args, cx)?),
        option::PR_GET_TID_ADDRESS => {
            memory.write(argument.output::<usize>(), &thread.clear_tid.load(Ordering::Relaxed))?
        }
        option::PR_GET_THP_DISABLE => check_unused(&args.0[1..5])?,
        option::PR_GET_SECCOMP | option::PR_GET_TIMING => {}
        option::PR_SET_TIMING => check_unused(&args.0[1..2])?,
        option::PR_GET_TSC => memory.write(argument.output::<u32>(), &arch::cycle_counter(&me.context))?,
        _ => return Err(Errno::EINVAL.into()),
    }
    Ok(0)
}

fn change_ambient(thread: &Thread, args: &Args, cx: &Cx) -> Result<usize> {
    let (action, value) = (args.long(1) as u32, args.long(2));
    if action == option::PR_CAP_AMBIENT_CLEAR_ALL {
        check_unused(&args.0[2..5])?;
        thread.credentials.lock(cx).clear_ambient();
        return Ok(0);
    }
    let capability = Capability::new(value)?;
    check_unused(&args.0[3..5])?;
    match action {
        option::PR_CAP_AMBIENT_IS_SET => {
            return Ok(usize::from(thread.credentials.lock(cx).capabilities().ambient.contains(capability)));
        }
        option::PR_CAP_AMBIENT_RAISE => thread.credentials.lock(cx).set_ambient(capability, Ambient::Raise)?,
        option::PR_CAP_AMBIENT_LOWER => thread.credentials.lock(cx).set_ambient(capability, Ambient::Lower)?,
        _ => return Err(Errno::EINVAL),
    }
    Ok(0)
}

/// A name, at most 15 bytes of it; what lies behind its end need not be there.
fn read_name(memory: &UserMemory<'_>, from: UserIn<u8>) -> Step<Name> {
    let mut name = [0; 15];
    for (index, byte) in name.iter_mut().enumerate() {
        *byte = memory.read(from.add(index))?;
        if *byte == 0 {
            break;
        }
    }
    Ok(Name::new(&name))
}
