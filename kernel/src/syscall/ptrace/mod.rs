//! ptrace(2).

mod memory;
mod registers;
mod signals;

use frame::Cx;
use linux_raw_sys::general as abi;
use linux_raw_sys::ptrace as request;

use super::{Args, Call, Entry};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::process::THREADS;
use crate::process::trace::{self, Attach, Mode, Options};
use crate::signal::Signal;
use crate::user_memory::Argument;

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[Entry::partial(
    abi::__NR_ptrace,
    "ptrace",
    Call::Async(ptrace_async),
    "hardware breakpoints, SYSEMU, SINGLEBLOCK, seccomp, system-call user dispatch",
)];

/// What a request is about, and its two arguments.
struct Request {
    tid: u32,
    address: Argument,
    data: Argument,
}

fn ptrace_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let kind = u32::try_from(args.long(0)).map_err(|_| Errno::EIO)?;
    if kind == request::PTRACE_TRACEME {
        return trace::trace_me(me, cx).map(|()| 0);
    }
    let tid = u32::try_from(args.int(1)).ok().filter(|&tid| THREADS.get(tid, cx).is_some()).ok_or(Errno::ESRCH)?;
    let asked = Request { tid, address: args.either(2), data: args.either(3) };
    match kind {
        request::PTRACE_ATTACH => trace::attach(me, tid, Attach::Stop, cx)?,
        request::PTRACE_SEIZE => {
            let options = u32::try_from(asked.data.value()).ok().and_then(Options::from_bits).ok_or(Errno::EIO)?;
            if asked.address.value() != 0 {
                return Err(Errno::EIO);
            }
            trace::attach(me, tid, Attach::Seize(options), cx)?;
        }
        request::PTRACE_INTERRUPT => trace::interrupt(me, tid, cx)?,
        request::PTRACE_KILL => trace::kill(me, tid, cx)?,
        // Whatever else is asked, the tracee must stand.
        _ => {
            trace::with_tracee(me, tid, cx, |_, _| Ok(()))?;
            return standing_async(cx, me, kind, &asked);
        }
    }
    Ok(0)
}

/// What is asked of a tracee that stands.
fn standing_async(cx: &mut Cx, me: &mut Current, kind: u32, asked: &Request) -> Result<usize> {
    let (tid, data) = (asked.tid, asked.data);
    match kind {
        request::PTRACE_CONT => trace::resume(me, tid, Mode::Run, signal(data)?, cx)?,
        request::PTRACE_SYSCALL => trace::resume(me, tid, Mode::Calls, signal(data)?, cx)?,
        request::PTRACE_SINGLESTEP => trace::resume(me, tid, Mode::Step, signal(data)?, cx)?,
        request::PTRACE_DETACH => trace::detach(me, tid, signal(data)?, cx)?,
        request::PTRACE_LISTEN => trace::listen(me, tid, cx)?,
        request::PTRACE_SETOPTIONS | request::PTRACE_OLDSETOPTIONS => {
            let options = u32::try_from(data.value()).ok().and_then(Options::from_bits).ok_or(Errno::EINVAL)?;
            trace::with_tracee(me, tid, cx, |_, traced| {
                traced.set_options(options);
                Ok(())
            })?;
        }
        request::PTRACE_GETEVENTMSG => {
            let message = trace::with_tracee(me, tid, cx, |_, traced| Ok(traced.message))?;
            me.write_async(cx, data.output::<u64>(), &message)?;
        }
        request::PTRACE_PEEKTEXT | request::PTRACE_PEEKDATA => memory::peek_async(cx, me, asked)?,
        request::PTRACE_POKETEXT | request::PTRACE_POKEDATA => memory::poke_async(cx, me, asked)?,
        request::PTRACE_PEEKUSR => registers::peek_user_async(cx, me, asked)?,
        request::PTRACE_POKEUSR => registers::poke_user(me, asked, cx)?,
        request::PTRACE_GETREGS => registers::get_async(cx, me, asked)?,
        request::PTRACE_SETREGS => registers::set_async(cx, me, asked)?,
        request::PTRACE_GETFPREGS | request::PTRACE_GETFPXREGS => registers::get_fpu_async(cx, me, asked)?,
        request::PTRACE_SETFPREGS | request::PTRACE_SETFPXREGS => registers::set_fpu_async(cx, me, asked)?,
        request::PTRACE_GETREGSET => registers::get_set_async(cx, me, asked)?,
        request::PTRACE_SETREGSET => registers::set_set_async(cx, me, asked)?,
        request::PTRACE_GET_SYSCALL_INFO => return registers::call_info_async(cx, me, asked),
        request::PTRACE_ARCH_PRCTL => return registers::prctl_async(cx, me, asked),
        request::PTRACE_GET_RSEQ_CONFIGURATION => return registers::rseq_async(cx, me, asked),
        request::PTRACE_GETSIGINFO => signals::get_info_async(cx, me, asked)?,
        request::PTRACE_SETSIGINFO => signals::set_info_async(cx, me, asked)?,
        request::PTRACE_PEEKSIGINFO => return signals::peek_async(cx, me, asked),
        request::PTRACE_GETSIGMASK => signals::get_mask_async(cx, me, asked)?,
        request::PTRACE_SETSIGMASK => signals::set_mask_async(cx, me, asked)?,
        _ => return Err(Errno::EIO),
    }
    Ok(0)
}

/// The signal with which a tracee goes on.
fn signal(data: Argument) -> Result<Option<Signal>> {
    match data.value() {
        0 => Ok(None),
        number => i32::try_from(number).ok().and_then(|number| Signal::new(number).ok()).map(Some).ok_or(Errno::EIO),
    }
}
