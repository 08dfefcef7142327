//! User code of a few instructions: what it can and cannot do, and what comes back.

use alloc::format;
use core::sync::atomic::{AtomicPtr, Ordering};

use refs::Cx;
use tasks::Worker;

use super::{Outcome, Test};
use crate::irq::IrqCx;
use crate::mm::{Access, Prot, UFrame, USER_END, VmSpace};
use crate::user::{Trap, UserContext, fpu_size};
use crate::{check, time};

pub(super) const TESTS: &[Test] = &[
    ("a system call keeps all registers", a_system_call),
    ("registers that were changed are loaded exactly", registers_are_exact),
    ("exceptions are told apart", exceptions),
    ("page faults tell address, access and presence", page_faults),
    ("privileged instructions and ports are refused", privileged),
    ("a non-canonical rip or segment base is the user's fault", non_canonical),
    ("system flags cannot be set", system_flags),
    ("segment bases are loaded", segment_bases),
    ("floating-point state belongs to its context", floating_point),
    ("a forged floating-point state is refused", forged_state),
    ("an endless loop is preempted by the alarm", preemption),
    ("a request to yield that came early is not lost", early_request),
    ("copies from and to user memory stop at the byte that faults", copies_fault),
    ("user code goes on in its own address space after a copy from another", own_space_after_copy),
    ("a context that is loaded can be dropped", dropped_while_loaded),
    ("how many instructions a null system call takes", null_system_call),
];

const CODE: usize = 0x40_0000;
const DATA: usize = 0x50_0000;
const READ_ONLY: usize = 0x50_1000;
const UNMAPPED: usize = 0x60_0000;
const SYSCALL: [u8; 2] = [0x0f, 0x05];

struct Program {
    space: VmSpace,
    context: UserContext,
}

impl Program {
    fn new(code: &[u8], cx: &Cx) -> Result<Self, &'static str> {
        let space = VmSpace::new().ok_or("no memory")?;
        let page = UFrame::zeroed().ok_or("no memory")?;
        page.writer(0..4096).write(code).map_err(|_| "a fault in a frame")?;
        let map = |at, frame, prot| space.map(at, frame, prot, cx).map_err(|_| "no memory");
        map(CODE, page, Prot::READ | Prot::EXECUTE)?;
        map(DATA, UFrame::zeroed().ok_or("no memory")?, Prot::READ | Prot::WRITE)?;
        map(READ_ONLY, UFrame::zeroed().ok_or("no memory")?, Prot::READ)?;
        let mut context = UserContext::new();
        context.registers.rip = CODE;
        context.registers.rsp = DATA + 4096;
        Ok(Program { space, context })
    }

    /// Runs it until it traps; where it was asked to give way, which with several cores can be at any time, it goes on.
    fn run_async(&mut self, cx: &mut Cx) -> Trap {
        for _ in 0..1000 {
            let trap = self.run_once_async(cx);
            if trap != Trap::Preempted {
                return trap;
            }
            tasks::yield_async(cx);
        }
        Trap::Preempted
    }

    /// Runs it until it traps or is asked to give way.
    fn run_once_async(&mut self, cx: &mut Cx) -> Trap {
        let space = &self.space;
        self.context.run_async(cx, |cx| {
            space.activate(cx);
            true
        })
    }
}

/// Runs a program that does nothing for ever, until it is interrupted.
pub(super) fn loop_async(cx: &mut Cx) {
    /// `jmp` to itself.
    const LOOP: [u8; 2] = [0xeb, 0xfe];
    if let Ok(mut program) = Program::new(&LOOP, cx) {
        program.run_once_async(cx);
    }
}

/// Runs code and expects a trap; a failure names both.
fn expect_async(cx: &mut Cx, code: &[u8], expected: Trap) -> Outcome {
    let trap = Program::new(code, cx)?.run_async(cx);
    check!(trap == expected, "{code:02x?}: {trap:?} instead of {expected:?}");
    Ok(())
}

fn a_system_call(cx: &mut Cx) -> Outcome {
    let mut program = Program::new(&SYSCALL, cx)?;
    let registers = &mut program.context.registers;
    (registers.rax, registers.rbx, registers.rdx, registers.rsi, registers.rdi) = (1, 2, 3, 4, 5);
    (registers.rbp, registers.r8, registers.r9, registers.r10, registers.r12) = (6, 7, 8, 9, 10);
    (registers.r13, registers.r14, registers.r15) = (11, 12, 13);
    let mut expected = *registers;
    for _ in 0..3 {
        check!(program.run_async(cx) == Trap::Syscall, "not a system call");
        expected.rip = CODE + 2;
        expected.rcx = CODE + 2;
        expected.rflags = 0x202;
        expected.r11 = 0x202;
        check!(program.context.registers == expected, "{:x?}", program.context.registers);
        program.context.registers.rip = CODE;
        program.context.registers.rax += 1;
        expected.rax += 1;
    }
    Ok(())
}

fn registers_are_exact(cx: &mut Cx) -> Outcome {
    let mut program = Program::new(&[0xcc], cx)?;
    let registers = &mut program.context.registers;
    (registers.rcx, registers.r11, registers.rflags) = (0x1234, 0x5678, 0x202 | 0x400 | 1);
    let expected = *registers;
    let trap = program.run_async(cx);
    check!(trap == Trap::Exception { vector: 3, code: 0 }, "{trap:?}");
    let found = program.context.registers;
    check!((found.rcx, found.r11) == (0x1234, 0x5678), "rcx {:#x}, r11 {:#x}", found.rcx, found.r11);
    check!(found.rflags == expected.rflags, "flags {:#x}", found.rflags);
    check!(found.rip == CODE + 1, "rip {:#x}", found.rip);
    Ok(())
}

fn exceptions(cx: &mut Cx) -> Outcome {
    expect_async(cx, &[0x31, 0xc9, 0xf7, 0xf1], Trap::Exception { vector: 0, code: 0 })?;
    expect_async(cx, &[0x0f, 0x0b], Trap::Exception { vector: 6, code: 0 })?;
    expect_async(cx, &[0xcd, 0x03], Trap::Exception { vector: 3, code: 0 })?;
    // int 0x80: the interrupt table's entry is not the user's.
    let trap = Program::new(&[0xcd, 0x80], cx)?.run_async(cx);
    check!(matches!(trap, Trap::Exception { vector: 13, .. }), "int 0x80: {trap:?}");
    // One step, by the trap flag.
    let mut program = Program::new(&[0x90, 0x90], cx)?;
    program.context.registers.rflags = 0x100;
    let trap = program.run_async(cx);
    check!(matches!(trap, Trap::Exception { vector: 1, code } if code & 0x4000 != 0), "{trap:?}");
    check!(program.context.registers.rip == CODE + 1, "more than one step");
    // The kernel goes on as if nothing had been: a system call with the trap flag.
    let mut program = Program::new(&SYSCALL, cx)?;
    program.context.registers.rflags = 0x100;
    check!(program.run_async(cx) == Trap::Syscall, "the system call was not made");
    check!(program.context.registers.rflags & 0x100 != 0, "the trap flag is lost");
    Ok(())
}

fn page_faults(cx: &mut Cx) -> Outcome {
    let fault = |address, access, present| Trap::PageFault { address, access, present };
    let at = |address: usize, tail: &[u8]| {
        // mov rax, address; then the tail.
        let mut code = alloc::vec![0x48, 0xb8];
        code.extend_from_slice(&address.to_le_bytes());
        code.extend_from_slice(tail);
        code
    };
    let (load, store, jump): (&[u8], &[u8], &[u8]) = (&[0x48, 0x8b, 0x00], &[0x48, 0x89, 0x00], &[0xff, 0xe0]);
    expect_async(cx, &at(UNMAPPED, load), fault(UNMAPPED, Access::Read, false))?;
    expect_async(cx, &at(UNMAPPED, store), fault(UNMAPPED, Access::Write, false))?;
    expect_async(cx, &at(UNMAPPED, jump), fault(UNMAPPED, Access::Execute, false))?;
    expect_async(cx, &at(READ_ONLY, store), fault(READ_ONLY, Access::Write, true))?;
    expect_async(cx, &at(DATA, jump), fault(DATA, Access::Execute, true))?;
    // The kernel's memory is present, and none of the user's business.
    let kernel = crate::arch::machine::kernel_map::text().start;
    expect_async(cx, &at(kernel, load), fault(kernel, Access::Read, true))?;
    Ok(())
}

fn privileged(cx: &mut Cx) -> Outcome {
    let refused = Trap::Exception { vector: 13, code: 0 };
    for code in [
        &[0xf4][..],
        &[0xfa],
        &[0xe4, 0x60],
        &[0xe6, 0xf4],
        &[0x0f, 0x20, 0xd8],
        &[0x0f, 0x32],
        &[0x0f, 0x01, 0xf8],
        &[0x0f, 0x06],
    ] {
        expect_async(cx, code, refused)?;
    }
    // sysret and the segment base instructions, which are switched off.
    let mut program = Program::new(&[0xf3, 0x48, 0x0f, 0xae, 0xd0], cx)?;
    check!(program.run_async(cx) == Trap::Exception { vector: 6, code: 0 }, "wrfsbase works");
    Ok(())
}

fn non_canonical(cx: &mut Cx) -> Outcome {
    for rip in [1 << 47, 1 << 63, usize::MAX] {
        let mut program = Program::new(&SYSCALL, cx)?;
        program.context.registers.rip = rip;
        program.context.registers.rcx = rip;
        let trap = program.run_async(cx);
        check!(trap == Trap::Exception { vector: 13, code: 0 }, "{trap:?} with {rip:#x}");
        program.context.registers.rip = CODE;
        check!(program.context.set_segment_bases(1 << 60, 0, cx).is_err(), "a bad base was taken");
        check!(program.run_async(cx) == Trap::Syscall, "it does not run afterwards");
    }
    // A stack pointer may be anything: it faults where it is used.
    let mut program = Program::new(&[0x50], cx)?;
    program.context.registers.rsp = 1 << 60;
    let trap = program.run_async(cx);
    check!(matches!(trap, Trap::Exception { vector: 12 | 13, .. }), "{trap:?}");
    Ok(())
}

fn system_flags(cx: &mut Cx) -> Outcome {
    // Interrupt flag off, I/O privilege, nested task, virtual interrupts: by both ways into user mode.
    for r11 in [0x3_7000, 0] {
        let mut program = Program::new(&[0xfa], cx)?;
        program.context.registers.rcx = CODE;
        program.context.registers.rflags = 0x3_7000;
        program.context.registers.r11 = r11;
        let trap = program.run_async(cx);
        check!(trap == Trap::Exception { vector: 13, code: 0 }, "cli was allowed: {trap:?}");
        let flags = program.context.registers.rflags;
        check!(flags & 0x3_7200 & !0x1_0000 == 0x200, "flags are {flags:#x}");
    }
    Ok(())
}

fn segment_bases(cx: &mut Cx) -> Outcome {
    // mov rax, fs:[0]; mov rbx, gs:[8]; syscall
    let code = [0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0, 0x65, 0x48, 0x8b, 0x1c, 0x25, 8, 0, 0, 0, 0x0f, 0x05];
    let mut program = Program::new(&code, cx)?;
    for (index, word) in [111_u64, 222, 333].into_iter().enumerate() {
        let written = program.space.writer(DATA + index * 8, 8, cx).write(&word.to_le_bytes());
        check!(written == Ok(8), "{written:?}");
    }
    for (fs, gs, expected) in [(DATA, DATA, (111, 222)), (DATA + 8, DATA, (222, 222)), (DATA + 8, DATA + 8, (222, 333))]
    {
        program.context.registers.rip = CODE;
        check!(program.context.set_segment_bases(fs, gs, cx).is_ok(), "refused");
        check!(program.context.duplicate(cx).segment_bases() == (fs, gs), "a duplicate has others");
        let trap = program.run_async(cx);
        check!(trap == Trap::Syscall, "{trap:?}");
        let found = (program.context.registers.rax, program.context.registers.rbx);
        check!(found == expected, "{found:?} instead of {expected:?}");
    }
    Ok(())
}

/// movq xmm0, rax; syscall; movq rax, xmm0; syscall
const KEEP_IN_XMM: [u8; 14] = [0x66, 0x48, 0x0f, 0x6e, 0xc0, 0x0f, 0x05, 0x66, 0x48, 0x0f, 0x7e, 0xc0, 0x0f, 0x05];

fn floating_point(cx: &mut Cx) -> Outcome {
    let mut first = Program::new(&KEEP_IN_XMM, cx)?;
    let mut second = Program::new(&KEEP_IN_XMM, cx)?;
    first.context.registers.rax = 0x1111;
    second.context.registers.rax = 0x2222;
    check!(first.run_async(cx) == Trap::Syscall && second.run_async(cx) == Trap::Syscall, "no system call");
    let mut third = Program { space: VmSpace::new().ok_or("no memory")?, context: second.context.duplicate(cx) };
    core::mem::swap(&mut third.space, &mut second.space);
    // Away and back: the worker leaves the context.
    tasks::yield_async(cx);
    check!(first.run_async(cx) == Trap::Syscall && third.run_async(cx) == Trap::Syscall, "no system call");
    check!(first.context.registers.rax == 0x1111, "{:#x}", first.context.registers.rax);
    check!(third.context.registers.rax == 0x2222, "a duplicate has {:#x}", third.context.registers.rax);

    // A state that is taken out, changed and put back; then reset.
    let state = {
        let state = third.context.fpu_state(&[0x5a; 48], cx);
        check!(state.len() == fpu_size().0, "{} bytes", state.len());
        let mut state = state.to_vec();
        check!(state[464..512] == [0x5a; 48], "the software's bytes are not where they should be");
        check!(state[160..162] == [0x22, 0x22], "xmm0 is not where it should be");
        state[160] = 0x33;
        state
    };
    check!(load_state(&mut third.context, &state, cx), "refused");
    third.context.registers.rip = CODE + 7;
    check!(third.run_async(cx) == Trap::Syscall && third.context.registers.rax == 0x2233, "not replaced");
    third.context.reset_fpu(cx);
    third.context.registers.rip = CODE + 7;
    check!(third.run_async(cx) == Trap::Syscall && third.context.registers.rax == 0, "not reset");
    Ok(())
}

/// Replaces a context's floating-point state; whether it was taken.
fn load_state(context: &mut UserContext, state: &[u8], cx: &Cx) -> bool {
    let fill = |to: &mut [u8]| {
        to[..state.len()].copy_from_slice(state);
        Ok::<usize, core::convert::Infallible>(state.len())
    };
    matches!(context.set_fpu_state(cx, fill), Ok(Ok(())))
}

fn forged_state(cx: &mut Cx) -> Outcome {
    let mut program = Program::new(&SYSCALL, cx)?;
    let good = program.context.fpu_state(&[0; 48], cx).to_vec();
    for (at, value) in [(24, 0xff_u8), (27, 0xff), (519, 0x80), (520, 1), (527, 0x80), (575, 1)] {
        let mut forged = good.clone();
        if at + 1 < 512 || good.len() > 576 {
            forged[at] = value;
            // A mask that is not this processor's says nothing: only reserved bits of MXCSR are refused.
            let refused = !load_state(&mut program.context, &forged, cx);
            check!(refused || at == 24, "byte {at} = {value:#x} was taken");
        }
    }
    for len in [0, 100, 511, 513, 575] {
        let taken = good.get(..len).is_some_and(|state| load_state(&mut program.context, state, cx));
        check!(!taken, "{len} bytes were taken");
    }
    check!(load_state(&mut program.context, &good[..512], cx), "512 bytes were refused");
    check!(program.run_async(cx) == Trap::Syscall, "it does not run afterwards");
    Ok(())
}

static WORKER: AtomicPtr<Worker> = AtomicPtr::new(core::ptr::null_mut());

fn ask_to_yield(_: &IrqCx) {
    // SAFETY: the test stored a 'static worker.
    if let Some(worker) = unsafe { WORKER.load(Ordering::Acquire).as_ref() } {
        worker.request_yield();
    }
}

fn preemption(cx: &mut Cx) -> Outcome {
    time::on_alarm(ask_to_yield);
    // inc rax; jmp back
    let mut program = Program::new(&[0x48, 0xff, 0xc0, 0xeb, 0xfb], cx)?;
    let mut delay_ns = 200_000;
    // On a slow machine an alarm may come before the first instruction: the next one leaves more time.
    for round in 0.. {
        if round >= 3 && program.context.registers.rax > 0 {
            break;
        }
        // The core it is on since it gave way.
        WORKER.store(core::ptr::from_ref(tasks::worker(cx)).cast_mut(), Ordering::Release);
        time::set_alarm(Some(time::now() + delay_ns));
        delay_ns *= 2;
        let trap = program.run_once_async(cx);
        check!(trap == Trap::Preempted, "{trap:?}");
        tasks::yield_async(cx);
        check!(round < 20, "it does not run");
    }
    Ok(())
}

fn early_request(cx: &mut Cx) -> Outcome {
    let mut program = Program::new(&SYSCALL, cx)?;
    tasks::request_yield(cx);
    check!(program.run_once_async(cx) == Trap::Preempted, "the request was lost");
    tasks::yield_async(cx);
    check!(program.run_async(cx) == Trap::Syscall, "the request was not over");
    Ok(())
}

fn copies_fault(cx: &mut Cx) -> Outcome {
    let program = Program::new(&SYSCALL, cx)?;
    let space = &program.space;
    let pattern: [u8; 300] = core::array::from_fn(|index| index as u8 ^ 0x5a);
    let end = READ_ONLY + 4096;
    for len in (0..80).chain([100, 128, 200, 257, 300]) {
        // Wholly inside.
        let written = space.writer(DATA + 3, len, cx).write(&pattern[..len]);
        check!(written == Ok(len), "write of {len}: {written:?}");
        let mut back = [0; 300];
        let read = space.reader(DATA + 3, len, cx).read(&mut back[..len]);
        check!(read == Ok(len) && back[..len] == pattern[..len], "read of {len}: {read:?}");
        // The end of mapped memory after each possible number of bytes.
        for inside in 0..len {
            let mut reader = space.reader(end - inside, len, cx);
            let fault = reader.read(&mut back[..len]);
            check!(fault.is_err_and(|fault| fault.address == end), "read of {len}, {inside} inside: {fault:?}");
            check!(reader.remaining() == len - inside, "{} left instead of {}", reader.remaining(), len - inside);
            let mut writer = space.writer(READ_ONLY - inside, len, cx);
            let fault = writer.write(&pattern[..len]);
            check!(fault.is_err_and(|fault| fault.address == READ_ONLY), "write of {len}, {inside} inside: {fault:?}");
            check!(writer.remaining() == len - inside, "{} left", writer.remaining());
            let mut landed = [0; 300];
            let read = space.reader(READ_ONLY - inside, inside, cx).read(&mut landed[..inside]);
            check!(read == Ok(inside) && landed[..inside] == pattern[..inside], "{inside} of {len} did not land");
            let mut writer = space.writer(READ_ONLY - inside, len, cx);
            let fault = writer.zero(len);
            check!(fault.is_err_and(|fault| fault.address == READ_ONLY), "zeros, {inside} inside: {fault:?}");
            check!(writer.remaining() == len - inside, "{} left", writer.remaining());
        }
    }
    check!(space.load_u32(UNMAPPED, cx).is_err(), "a word was read");
    check!(space.load_u32(READ_ONLY, cx) == Ok(0), "the word is not 0");
    check!(space.compare_exchange_u32(READ_ONLY, 0, 1, cx).is_err(), "a word was written");
    check!(space.compare_exchange_u32(DATA + 8, 5, 1, cx).is_ok_and(|found| found != 5), "found what is not there");
    let mut byte = [0; 1];
    for address in [USER_END, 1 << 47, usize::MAX - 4096, crate::arch::machine::kernel_map::DIRECT_MAP] {
        check!(space.reader(address, 1, cx).read(&mut byte).is_err(), "{address:#x} was read");
    }
    Ok(())
}

fn own_space_after_copy(cx: &mut Cx) -> Outcome {
    // Twice: mov rax, [rdi]; syscall.
    const CODE_BYTES: [u8; 10] = [0x48, 0x8b, 0x07, 0x0f, 0x05, 0x48, 0x8b, 0x07, 0x0f, 0x05];
    let (mut program, other) = (Program::new(&CODE_BYTES, cx)?, Program::new(&CODE_BYTES, cx)?);
    program.context.registers.rdi = DATA;
    let write = |space: &VmSpace, value: usize| space.writer(DATA, 8, cx).write(&value.to_ne_bytes()).is_ok();
    check!(write(&program.space, 1) && write(&other.space, 2), "both have data");
    for _ in 0..2 {
        check!(program.run_async(cx) == Trap::Syscall, "a system call");
        let mut seen = [0; 8];
        let is_read = other.space.reader(DATA, 8, cx).read(&mut seen).is_ok();
        check!(is_read && seen[0] == 2, "the other's data");
        check!(program.context.registers.rax == 1, "the program sees its own data");
    }
    Ok(())
}

fn dropped_while_loaded(cx: &mut Cx) -> Outcome {
    for _ in 0..10 {
        let mut program = Program::new(&SYSCALL, cx)?;
        check!(program.run_async(cx) == Trap::Syscall, "no system call");
    }
    tasks::yield_async(cx);
    Ok(())
}

fn null_system_call(cx: &mut Cx) -> Outcome {
    // syscall; jmp back
    let mut program = Program::new(&[0x0f, 0x05, 0xeb, 0xfc], cx)?;
    const ROUNDS: u64 = 10_000;
    program.run_async(cx);
    let start = time::now();
    for _ in 0..ROUNDS {
        program.run_async(cx);
    }
    let each = (time::now() - start) / ROUNDS;
    // Under -icount shift=0 a nanosecond is an instruction.
    crate::println!("{}", format!("selftest: a null system call takes {each} ns"));
    Ok(())
}
