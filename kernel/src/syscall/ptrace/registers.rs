//! A tracee's registers, in each of the forms in which debuggers want them.

use alloc::vec;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::ops::Range;

use frame::Cx;
use frame::user::UserContext;
use linux_raw_sys::ptrace as abi;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::Request;
use crate::arch::signal_frame::fpu_software;
use crate::arch::{self, CoreRegisters, Prctl};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::process::trace::{self, At};
use crate::step::{Patience, complete_async};
use crate::syscall::read_write::IoVec;
use crate::user_memory::Argument;

const WORD: usize = size_of::<u64>();
/// `struct user`: the registers come first, the debug registers near the end.
const USER_SIZE: usize = 928;
const DEBUG_REGISTERS: Range<usize> = 848..912;
/// The state of x87 and SSE: `struct user_fpregs_struct`.
const LEGACY_SIZE: usize = 512;
/// Where an XSAVE area says which parts of it are in use, and the parts that are the legacy state.
const FEATURES_AT: usize = 512;
const LEGACY_FEATURES: u8 = 3;
/// Where Linux says which parts the processor has, in the bytes that are left to software.
const KNOWN_FEATURES_AT: usize = 464;
const SOFTWARE_SIZE: usize = 48;

/// Sets of registers: NT_*.
const NT_PRSTATUS: usize = 1;
const NT_PRFPREG: usize = 2;
const NT_X86_XSTATE: usize = 0x202;

fn registers(me: &Current, tid: u32, cx: &Cx) -> Result<CoreRegisters> {
    trace::with_tracee(me, tid, cx, |_, traced| Ok(traced.registers()))
}

fn set_registers(me: &Current, tid: u32, new: &CoreRegisters, cx: &Cx) -> Result<()> {
    trace::with_tracee(me, tid, cx, |_, traced| traced.set_registers(new, cx))
}

/// The index of a word of `struct user`.
fn user_word(address: Argument) -> Result<usize> {
    let at = address.value();
    if at.is_multiple_of(WORD) && at < USER_SIZE { Ok(at / WORD) } else { Err(Errno::EIO) }
}

pub fn peek_user_async(cx: &mut Cx, me: &mut Current, asked: &Request) -> Result<()> {
    let index = user_word(asked.address)?;
    // What is behind the registers means nothing, or stands for no breakpoints.
    let word = registers(me, asked.tid, cx)?.get(index).copied().unwrap_or(0);
    me.write_async(cx, asked.data.output::<u64>(), &word)
}

pub fn poke_user(me: &Current, asked: &Request, cx: &Cx) -> Result<()> {
    let index = user_word(asked.address)?;
    let mut all = registers(me, asked.tid, cx)?;
    match all.get_mut(index) {
        Some(word) => *word = asked.data.value() as u64,
        // There are no hardware breakpoints: they can only be left off.
        None if DEBUG_REGISTERS.contains(&(index * WORD)) && asked.data.value() == 0 => return Ok(()),
        None => return Err(Errno::EIO),
    }
    set_registers(me, asked.tid, &all, cx)
}

pub fn get_async(cx: &mut Cx, me: &mut Current, asked: &Request) -> Result<()> {
    let all = registers(me, asked.tid, cx)?;
    me.write_async(cx, asked.data.output::<CoreRegisters>(), &all)
}

pub fn set_async(cx: &mut Cx, me: &mut Current, asked: &Request) -> Result<()> {
    let new = me.read_async(cx, asked.data.input::<CoreRegisters>())?;
    set_registers(me, asked.tid, &new, cx)
}

/// The floating-point state as XSAVE lays it out.
fn fpu_state(me: &Current, tid: u32, cx: &Cx) -> Result<Vec<u8>> {
    let mut software = [0; SOFTWARE_SIZE];
    let (_, features) = frame::user::fpu_size();
    software[..WORD].copy_from_slice(&features.to_ne_bytes());
    trace::with_tracee(me, tid, cx, |_, traced| Ok(traced.context.fpu_state(&software, cx).to_vec()))
}

fn legacy_state(me: &Current, tid: u32, cx: &Cx) -> Result<Vec<u8>> {
    let mut state = fpu_state(me, tid, cx)?;
    state.truncate(LEGACY_SIZE);
    state[KNOWN_FEATURES_AT..].fill(0);
    Ok(state)
}

fn replace_fpu(context: &mut UserContext, new: &[u8], cx: &Cx) -> Result<()> {
    let replaced = context.set_fpu_state(cx, |state| {
        let len = new.len().min(state.len());
        state[..len].copy_from_slice(&new[..len]);
        Ok::<_, Infallible>(len)
    });
    match replaced {
        Ok(Ok(())) => Ok(()),
        _ => Err(Errno::EINVAL),
    }
}

fn set_fpu(me: &Current, tid: u32, new: &[u8], cx: &Cx) -> Result<()> {
    let (size, features) = frame::user::fpu_size();
    let mut state = match new.len() {
        len if len == size => new.to_vec(),
        LEGACY_SIZE => {
            let mut state = fpu_state(me, tid, cx)?;
            state[..LEGACY_SIZE].copy_from_slice(new);
            if let Some(used) = state.get_mut(FEATURES_AT) {
                *used |= LEGACY_FEATURES;
            }
            state
        }
        _ => return Err(Errno::EFAULT),
    };
    if let Some(word) = state.get_mut(FEATURES_AT..FEATURES_AT + WORD) {
        let wanted = u64::from_ne_bytes(word.try_into().unwrap_or_default());
        if wanted & !features != 0 {
            return Err(Errno::EINVAL);
        }
        word.copy_from_slice(&wanted.to_ne_bytes());
    }
    trace::with_tracee(me, tid, cx, |_, traced| {
        let old = traced.context.fpu_state(&fpu_software(), cx).to_vec();
        replace_fpu(&mut traced.context, &state, cx).inspect_err(|_| {
            // What was there was well-formed.
            let _ = replace_fpu(&mut traced.context, &old, cx);
        })
    })
}

pub fn get_fpu_async(cx: &mut Cx, me: &mut Current, asked: &Request) -> Result<()> {
    let state = legacy_state(me, asked.tid, cx)?;
    me.write_bytes_async(cx, asked.data.output::<u8>().slice(state.len()), &state)
}

pub fn set_fpu_async(cx: &mut Cx, me: &mut Current, asked: &Request) -> Result<()> {
    let new = read_async(cx, me, asked.data, LEGACY_SIZE)?;
    set_fpu(me, asked.tid, &new, cx)
}

fn read_async(cx: &mut Cx, me: &mut Current, from: Argument, len: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    complete_async(cx, me, Patience::Forever, |cx, me, _| {
        Ok(me.memory(cx)?.read_into(from.input::<u8>().slice(len), &mut bytes)?)
    })?;
    Ok(bytes)
}

/// The bytes of a set of registers.
fn register_set(me: &Current, tid: u32, kind: usize, cx: &Cx) -> Result<Vec<u8>> {
    match kind {
        NT_PRSTATUS => Ok(registers(me, tid, cx)?.as_bytes().to_vec()),
        NT_PRFPREG => legacy_state(me, tid, cx),
        NT_X86_XSTATE => fpu_state(me, tid, cx),
        _ => Err(Errno::EINVAL),
    }
}

/// The range that a request about a set names. Its length becomes that of the set, if it is more.
fn range_of_set(vector: &IoVec, set: &[u8]) -> Result<usize> {
    if vector.len.is_multiple_of(WORD) { Ok(vector.len.min(set.len())) } else { Err(Errno::EINVAL) }
}

fn write_len_async(cx: &mut Cx, me: &mut Current, vector: Argument, len: usize) -> Result<()> {
    let field = Argument::new(vector.value().wrapping_add(size_of::<usize>()));
    me.write_async(cx, field.output::<usize>(), &len)
}

pub fn get_set_async(cx: &mut Cx, me: &mut Current, asked: &Request) -> Result<()> {
    let vector = me.read_async(cx, asked.data.input::<IoVec>())?;
    let set = register_set(me, asked.tid, asked.address.value(), cx)?;
    let len = range_of_set(&vector, &set)?;
    me.write_bytes_async(cx, Argument::new(vector.base).output::<u8>().slice(len), &set[..len])?;
    write_len_async(cx, me, asked.data, len)
}

pub fn set_set_async(cx: &mut Cx, me: &mut Current, asked: &Request) -> Result<()> {
    let vector = me.read_async(cx, asked.data.input::<IoVec>())?;
    let kind = asked.address.value();
    let mut set = register_set(me, asked.tid, kind, cx)?;
    let len = range_of_set(&vector, &set)?;
    let new = read_async(cx, me, Argument::new(vector.base), len)?;
    match kind {
        NT_PRSTATUS => {
            set[..len].copy_from_slice(&new);
            let words = CoreRegisters::read_from_bytes(&set).map_err(|_| Errno::EINVAL)?;
            set_registers(me, asked.tid, &words, cx)?;
        }
        NT_PRFPREG if len != LEGACY_SIZE => return Err(Errno::EINVAL),
        _ if len != set.len() => return Err(Errno::EFAULT),
        _ => set_fpu(me, asked.tid, &new, cx)?,
    }
    write_len_async(cx, me, asked.data, len)
}

/// `struct ptrace_syscall_info`, at the start of a call and at its end.
#[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct CallInfo {
    operation: u8,
    padding: [u8; 3],
    arch: u32,
    instruction_pointer: u64,
    stack_pointer: u64,
    /// The number and the arguments; or the result, and in a byte whether it is an error.
    fields: [u64; 7],
}

/// How much of it means something where the tracee is in no call, and behind that at the end of one.
const PLAIN_SIZE: usize = 24;
const EXIT_SIZE: usize = PLAIN_SIZE + WORD + 1;

/// Writes as much as there is room for; how much there is.
pub fn call_info_async(cx: &mut Cx, me: &mut Current, asked: &Request) -> Result<usize> {
    let (info, len) = trace::with_tracee(me, asked.tid, cx, |_, traced| {
        let Ok(stand) = traced.stand() else { return Err(Errno::ESRCH) };
        let (at, call) = (stand.at, stand.call);
        let registers = &traced.context.registers;
        let mut info = CallInfo {
            arch: arch::AUDIT_ARCH,
            instruction_pointer: arch::instruction_pointer(registers) as u64,
            stack_pointer: arch::stack_pointer(registers) as u64,
            ..CallInfo::default()
        };
        let len = match at {
            At::CallEntry => {
                info.operation = abi::PTRACE_SYSCALL_INFO_ENTRY as u8;
                info.fields[0] = call;
                for (to, from) in info.fields[1..].iter_mut().zip(arch::call_arguments(registers)) {
                    *to = *from as u64;
                }
                size_of::<CallInfo>()
            }
            At::CallExit => {
                const MAX_ERRNO: u64 = 4095;
                let result = arch::call_result(registers) as u64;
                info.operation = abi::PTRACE_SYSCALL_INFO_EXIT as u8;
                info.fields[0] = result;
                info.fields[1] = u64::from(result > u64::MAX - MAX_ERRNO);
                EXIT_SIZE
            }
            _ => PLAIN_SIZE,
        };
        Ok((info, len))
    })?;
    let room = len.min(asked.address.value());
    me.write_bytes_async(cx, asked.data.output::<u8>().slice(room), &info.as_bytes()[..room])?;
    Ok(len)
}

/// As arch_prctl(2) of the tracee's own: `data` is the operation, `address` its argument.
pub fn prctl_async(cx: &mut Cx, me: &mut Current, asked: &Request) -> Result<usize> {
    let (operation, argument) = (asked.data.value() as i32, asked.address);
    let outcome = trace::with_tracee(me, asked.tid, cx, |_, traced| {
        arch::prctl(&mut traced.context, operation, argument.value(), cx)
    })?;
    match outcome {
        Prctl::Done => Ok(0),
        Prctl::Store(value) => me.write_async(cx, argument.output::<usize>(), &value).map(|()| 0),
        Prctl::Return(value) => Ok(value),
    }
}

/// `struct ptrace_rseq_configuration`.
#[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct RseqConfiguration {
    address: u64,
    len: u32,
    signature: u32,
    flags: u32,
    padding: u32,
}

pub fn rseq_async(cx: &mut Cx, me: &mut Current, asked: &Request) -> Result<usize> {
    let registered = trace::with_tracee(me, asked.tid, cx, |_, traced| Ok(traced.stand()?.rseq))?;
    let configuration = registered.map_or(RseqConfiguration::default(), |rseq| RseqConfiguration {
        address: rseq.address as u64,
        len: rseq.len,
        signature: rseq.signature,
        ..RseqConfiguration::default()
    });
    let size = size_of::<RseqConfiguration>();
    let room = size.min(asked.address.value());
    me.write_bytes_async(cx, asked.data.output::<u8>().slice(room), &configuration.as_bytes()[..room])?;
    Ok(size)
}
