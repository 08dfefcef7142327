//! Words of a tracee's memory: PTRACE_PEEKDATA, PTRACE_POKEDATA and the same for code.

use frame::Cx;
use refs::{StrongRc, WeakRc};

use super::Request;
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::memory::{AddressSpace, RemoteRight};
use crate::process::trace;
use crate::step::{Patience, complete_async};

const WORD: usize = size_of::<u64>();

fn space_of(me: &Current, tid: u32, cx: &Cx) -> Result<WeakRc<AddressSpace>> {
    trace::with_tracee(me, tid, cx, |thread, _| Ok(thread.clone()))?
        .space
        .lock(cx)
        .as_ref()
        .map(StrongRc::downgrade)
        .ok_or(Errno::EIO)
}

/// The word is stored where `data` says.
pub fn peek_async(cx: &mut Cx, me: &mut Current, asked: &Request) -> Result<()> {
    let space = space_of(me, asked.tid, cx)?;
    let mut word = [0; WORD];
    let done = complete_async(cx, me, Patience::Forever, |cx, _, _| {
        space.upgrade(cx)?.read_remote(asked.address.value(), &mut word, RemoteRight::Forced, cx)
    })?;
    if done < WORD {
        return Err(Errno::EIO);
    }
    me.write_async(cx, asked.data.output::<[u8; WORD]>(), &word)
}

/// The word is `data`. What the tracee may not write becomes its own copy.
pub fn poke_async(cx: &mut Cx, me: &mut Current, asked: &Request) -> Result<()> {
    let space = space_of(me, asked.tid, cx)?;
    let word = asked.data.value().to_ne_bytes();
    let done = complete_async(cx, me, Patience::Forever, |cx, _, _| {
        space.upgrade(cx)?.write_remote(asked.address.value(), &word, RemoteRight::Forced, cx)
    })?;
    if done < WORD { Err(Errno::EIO) } else { Ok(()) }
}
