//! Restartable sequences (rseq): short stretches of user code that start again from an abort handler when the thread was interrupted in them
//! (preempted, moved to another core, or sent to a signal handler). They let programs have data of each core without atomic operations.
//!
//! A thread registers a small structure in its memory. The kernel keeps the number of the core in it, and the program says in it which sequence it
//! is in. Preemption only sets `Work::RESTARTABLE`; the memory is looked at on the way back to user mode.

use frame::Cx;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::arch;
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::signal::{self, Info, Signal};
use crate::user_memory::{UserIn, UserOut};

/// What a thread has registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RseqRegistration {
    /// Where its structure is.
    pub address: usize,
    /// The length of that, as it was told.
    pub len: u32,
    /// What must stand in front of each abort handler, so that nobody makes the kernel jump anywhere.
    pub signature: u32,
}

/// The first fields of `struct rseq`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Area {
    start_cpu: u32,
    cpu: u32,
    /// The address of the [`Sequence`] that the thread is in; 0: none.
    sequence: u64,
    flags: u32,
    node: u32,
    memory_map_cpu: u32,
    padding: u32,
}

/// The least length of the structure, and what it is aligned to.
pub const MIN_LEN: u32 = size_of::<Area>() as u32;

/// `struct rseq_cs`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Sequence {
    version: u32,
    flags: u32,
    start: u64,
    len: u64,
    abort: u64,
}

/// What the structure says while nobody is registered: `RSEQ_CPU_ID_UNINITIALIZED`.
const NO_CPU: u32 = u32::MAX;

impl Area {
    fn on(cpu: u32, sequence: u64) -> Self {
        Area { start_cpu: cpu, cpu, sequence, flags: 0, node: 0, memory_map_cpu: cpu, padding: 0 }
    }
}

impl Current {
    /// Registers the structure of the calling thread.
    ///
    /// # Errors
    /// EINVAL for a bad place or another registration; EBUSY for the same; EPERM for the same with another signature; EFAULT.
    pub fn register_rseq_async(&mut self, cx: &mut Cx, wanted: RseqRegistration) -> Result<()> {
        match self.restartable {
            Some(old) if old == wanted => return Err(Errno::EBUSY),
            Some(old) if (old.address, old.len) == (wanted.address, wanted.len) => return Err(Errno::EPERM),
            Some(_) => return Err(Errno::EINVAL),
            None => {}
        }
        if !wanted.address.is_multiple_of(MIN_LEN as usize) || wanted.len < MIN_LEN {
            return Err(Errno::EINVAL);
        }
        self.write_async(cx, UserOut::<Area>::new(wanted.address), &Area::on(frame::cpu::current(cx) as u32, 0))?;
        self.restartable = Some(wanted);
        Ok(())
    }

    /// Takes the registration back.
    ///
    /// # Errors
    /// EINVAL if it is another one; EPERM for another signature; EFAULT.
    pub fn unregister_rseq_async(&mut self, cx: &mut Cx, registration: RseqRegistration) -> Result<()> {
        let old = self.restartable.ok_or(Errno::EINVAL)?;
        if (old.address, old.len) != (registration.address, registration.len) {
            return Err(Errno::EINVAL);
        }
        if old.signature != registration.signature {
            return Err(Errno::EPERM);
        }
        self.write_async(cx, UserOut::<Area>::new(old.address), &Area { start_cpu: 0, ..Area::on(NO_CPU, 0) })?;
        self.restartable = None;
        Ok(())
    }
}

/// The thread was interrupted in user mode: if that was in a sequence, it goes on at the abort handler. A program whose structure cannot be
/// read or is wrong gets SIGSEGV.
pub fn abort_sequence_async(cx: &mut Cx, me: &mut Current) {
    let Some(registered) = me.restartable else { return };
    if abort_async(cx, me, registered).is_err() {
        me.restartable = None;
        signal::send::force(me, Info::kernel(Signal::SEGV), cx);
    }
}

fn abort_async(cx: &mut Cx, me: &mut Current, registered: RseqRegistration) -> Result<()> {
    let area = me.read_async(cx, UserIn::<Area>::new(registered.address))?;
    let cpu = frame::cpu::current(cx) as u32;
    if area.sequence != 0 {
        let sequence = me.read_async(cx, UserIn::<Sequence>::new(area.sequence as usize))?;
        if sequence.version != 0 || sequence.flags != 0 {
            return Err(Errno::EINVAL);
        }
        let ip = arch::instruction_pointer(&me.context.registers) as u64;
        if ip.wrapping_sub(sequence.start) < sequence.len {
            let in_front = UserIn::<u32>::new((sequence.abort as usize).wrapping_sub(size_of::<u32>()));
            let in_front = me.read_async(cx, in_front)?;
            let inside = sequence.abort.wrapping_sub(sequence.start) < sequence.len;
            if in_front != registered.signature || inside {
                return Err(Errno::EINVAL);
            }
            arch::set_instruction_pointer(&mut me.context.registers, sequence.abort as usize);
        }
    }
    if area.sequence != 0 || area.cpu != cpu {
        me.write_async(cx, UserOut::<Area>::new(registered.address), &Area::on(cpu, 0))?;
    }
    Ok(())
}
