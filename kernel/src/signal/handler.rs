//! Entering a handler, and coming back: writes and reads the frame that [`arch::signal_frame`] lays out.

use frame::Cx;
use linux_raw_sys::general as abi;
use zerocopy::FromZeros;

use super::deliver::change_mask;
use super::{Action, AltStack, Info, SignalSet};
use crate::arch;
use crate::arch::signal_frame::{FP_MAGIC2, Layout, RtSigFrame, SigInfoHead, UContext, decode_fpu, fpu_software};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::step::{Patience, Step, access_async, complete_async};
use crate::user_memory::{UserIn, UserOut};

/// Makes the thread go on in the handler of `info`'s signal.
///
/// # Errors
/// EFAULT if the frame cannot be written; the registers are unchanged.
pub fn enter_handler_async(cx: &mut Cx, me: &mut Current, action: Action, info: Info) -> Result<()> {
    if !action.has(abi::SA_RESTORER) {
        return Err(Errno::EFAULT);
    }
    let (alt_stack, mask, blocked) = {
        let thread = me.thread(cx)?;
        let alt_stack = *thread.signals.alt_stack.lock(cx);
        (alt_stack, thread.signals.take_saved_mask(), thread.signals.blocked())
    };
    let registers = &me.context.registers;
    let sp = arch::stack_pointer(registers);
    let nested = alt_stack.contains(sp);
    let switches = action.has(abi::SA_ONSTACK) && alt_stack.size != 0 && !nested;
    let layout = if switches {
        Layout::below(alt_stack.base.wrapping_add(alt_stack.size) as usize)
    } else {
        Layout::on_stack(registers)
    };
    if (nested || switches) && !alt_stack.contains(layout.frame.wrapping_add(1)) {
        return Err(Errno::EFAULT);
    }
    let fault = core::mem::take(&mut me.fault);
    let head = SigInfoHead {
        signo: info.signal.number() as i32,
        errno: info.errno,
        code: info.code,
        padding: 0,
        fields: info.fields,
    };
    let stack = alt_stack.encode(sp);
    let contents = RtSigFrame::new(layout, action.restorer, head, registers, stack, mask.0, fault);
    access_async(cx, me, |cx, me| write_frame(cx, me, layout, &contents))?;
    let handler = action.handler as usize;
    arch::signal_frame::enter(&mut me.context.registers, layout, handler, info.signal.number());
    let (thread, process) = (me.thread(cx)?, me.process(cx)?);
    let own = if action.has(abi::SA_NODEFER) { SignalSet::EMPTY } else { info.signal.set() };
    change_mask(&process, &thread, blocked.union(SignalSet(action.mask)).union(own), cx);
    if alt_stack.auto_disarm && switches {
        *thread.signals.alt_stack.lock(cx) = AltStack::default();
    }
    Ok(())
}

/// Writes a handler's frame, with the floating-point state.
fn write_frame(cx: &Cx, me: &mut Current, layout: Layout, contents: &RtSigFrame) -> Step<()> {
    let memory = me.memory(cx)?;
    let state = me.context.fpu_state(&fpu_software(), cx);
    memory.write_slice(UserOut::<u8>::new(layout.fpu).slice(state.len()), state)?;
    memory.write(UserOut::<u32>::new(layout.fpu.wrapping_add(state.len())), &FP_MAGIC2)?;
    Ok(memory.write(UserOut::<RtSigFrame>::new(layout.frame), contents)?)
}

/// rt_sigreturn(2): the registers, mask and alternate stack become what the frame says. The result is that of the interrupted call.
///
/// # Errors
/// EFAULT if the frame is not there or not well-formed: the caller sends SIGSEGV.
pub fn return_from_handler_async(cx: &mut Cx, me: &mut Current) -> Result<usize> {
    let at = arch::signal_frame::returned_context(&me.context.registers);
    let at = UserIn::<UContext>::new(at).slice(1);
    let mut saved = [UContext::new_zeroed()];
    complete_async(cx, me, Patience::Forever, |cx, me, _| Ok(me.memory(cx)?.read_into(at, &mut saved)?))?;
    let [saved] = &saved;
    if !saved.has_user_segments() {
        return Err(Errno::EFAULT);
    }
    match saved.fpu() {
        None => me.context.reset_fpu(cx),
        Some(at) => access_async(cx, me, |cx, me| read_fpu(cx, me, at))?,
    }
    saved.restore(&mut me.context.registers);
    let (thread, process) = (me.thread(cx)?, me.process(cx)?);
    change_mask(&process, &thread, SignalSet(saved.mask()), cx);
    if let Ok(stack) = AltStack::decode(saved.stack())
        && !thread.signals.alt_stack.lock(cx).contains(arch::stack_pointer(&me.context.registers))
    {
        *thread.signals.alt_stack.lock(cx) = stack;
    }
    Ok(arch::call_result(&me.context.registers))
}

/// The floating-point state becomes what a frame has of it.
fn read_fpu(cx: &Cx, me: &mut Current, at: usize) -> Step<()> {
    let memory = me.memory(cx)?;
    let mut reader = memory.reader(UserIn::<u8>::new(at).slice(frame::user::fpu_size().0));
    let taken = me.context.set_fpu_state(cx, |state| decode_fpu(state, |bytes| reader.read(bytes).map(drop)))?;
    Ok(taken.map_err(|_| Errno::EFAULT)?)
}
