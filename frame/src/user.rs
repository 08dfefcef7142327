//! Running user code: registers in, trap out.
//!
//! The floating-point state and the segment bases of a context are in the processor (it is *loaded*) from its first run until
//! its task leaves the core, which saves them. Invariant: a context is loaded on at most one core, which its `loaded_on` names
//! and whose block points to it; while it is loaded, the saved state in it is stale.
//!
//! A [`UserContext`] has no size known to the compiler, because the floating-point state has not; so nobody can move it away
//! from under a core's pointer.

use alloc::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use alloc::boxed::Box;
use core::sync::atomic::{AtomicUsize, Ordering};

use refs::Cx;

use crate::arch::machine::core_block::{self, core_block};
use crate::arch::machine::fpu::{self, Chunk};
use crate::arch::machine::{instructions, traps, user_mode};
use crate::mm::Access;
pub use crate::trap::{BadFpuState, BadSegmentBase, Registers, Trap};

/// What a user thread has in the processor while it runs: registers and floating-point state.
#[repr(C, align(64))]
pub struct UserContext {
    /// The general registers. Whatever is written here, user code runs unprivileged: `rflags`' system bits are masked, and running
    /// with a non-canonical `rip` is a general protection fault of the user's (invariant 2).
    pub registers: Registers,
    /// The number of the core on which the context is loaded, plus 1; 0 if it is not.
    loaded_on: AtomicUsize,
    /// The segment bases, which are canonical.
    fs_base: usize,
    gs_base: usize,
    /// The floating-point state, while not loaded.
    fpu: [Chunk],
}

/// What a core's block points to: a context without its length, which all have in common.
pub(crate) type UserState = Registers;

const fn is_canonical(address: usize) -> bool {
    let high = address as isize >> 47;
    high == 0 || high == -1
}

impl UserContext {
    /// All registers zero, floating-point state as after reset.
    pub fn new() -> Box<Self> {
        let mut context = Self::allocate();
        fpu::reset(&mut context.fpu);
        context
    }

    /// All zero.
    fn allocate() -> Box<Self> {
        let chunks = fpu::chunks();
        let bytes = Self::HEADER_BYTES + chunks * size_of::<Chunk>();
        let layout = Layout::from_size_align(bytes, align_of::<Chunk>()).expect("a few kilobytes");
        // SAFETY: the layout is that of a context with so many chunks, and zeros are a valid one.
        unsafe {
            let memory = alloc_zeroed(layout);
            if memory.is_null() {
                handle_alloc_error(layout);
            }
            Box::from_raw(Self::with_length(memory.cast(), chunks))
        }
    }

    /// Where the floating-point state begins: the first multiple of 64 behind the other fields.
    const HEADER_BYTES: usize = 192;

    fn with_length(context: *mut UserState, chunks: usize) -> *mut UserContext {
        core::ptr::slice_from_raw_parts_mut(context.cast::<Chunk>(), chunks) as *mut UserContext
    }

    fn state(&mut self) -> *mut UserState {
        core::ptr::from_mut(self).cast()
    }

    /// Makes sure that the saved floating-point state is the context's: it may be in the processor.
    fn save(&mut self) {
        if core::ptr::eq(core_block::loaded(), self.state()) {
            // SAFETY: the state in the processor is this context's, and the area is as long as all are.
            unsafe { fpu::save(self.fpu.as_mut_ptr()) };
        } else {
            self.wait_until_left();
        }
    }

    /// Forgets the state in the processor, if it is this context's: the saved one is what counts.
    fn discard(&mut self) {
        if core::ptr::eq(core_block::loaded(), self.state()) {
            core_block().loaded.set(core::ptr::null());
            *self.loaded_on.get_mut() = 0;
        } else {
            self.wait_until_left();
        }
    }

    /// Another core may still be leaving the context: a task that gave it away keeps it loaded until it suspends.
    fn wait_until_left(&self) {
        while self.loaded_on.load(Ordering::Acquire) != 0 {
            core::hint::spin_loop();
        }
    }

    /// A copy, with its floating-point state and segment bases, for `fork`.
    pub fn duplicate(&mut self, _cx: &Cx) -> Box<Self> {
        self.save();
        let mut copy = Self::allocate();
        copy.registers = self.registers;
        (copy.fs_base, copy.gs_base) = (self.fs_base, self.gs_base);
        copy.fpu.copy_from_slice(&self.fpu);
        copy
    }

    /// The bases of the segments `fs` and `gs`.
    pub fn segment_bases(&self) -> (usize, usize) {
        (self.fs_base, self.gs_base)
    }

    /// Sets the bases of the segments `fs` and `gs` (thread-local storage).
    ///
    /// # Errors
    /// One of them is not canonical; nothing was changed.
    pub fn set_segment_bases(&mut self, fs: usize, gs: usize, _cx: &Cx) -> Result<(), BadSegmentBase> {
        if !is_canonical(fs) || !is_canonical(gs) {
            return Err(BadSegmentBase);
        }
        (self.fs_base, self.gs_base) = (fs, gs);
        if core::ptr::eq(core_block::loaded(), self.state()) {
            // SAFETY: both are canonical.
            unsafe { user_mode::load_bases(fs, gs) };
        } else {
            self.wait_until_left();
        }
        Ok(())
    }

    /// Floating-point state as after reset, for `execve`.
    pub fn reset_fpu(&mut self, _cx: &Cx) {
        self.discard();
        fpu::reset(&mut self.fpu);
    }

    /// The floating-point state in the XSAVE layout (standard form), as it belongs into a signal frame; its size is
    /// [`fpu_size`].
    pub fn fpu_state(&mut self, _cx: &Cx) -> &[u8] {
        self.save();
        &fpu::bytes(&self.fpu)[..fpu_size().0]
    }

    /// Replaces the floating-point state by one that a user program may have forged: either all of it ([`fpu_size`] bytes), or
    /// its first 512 bytes (x87 and SSE; the rest is then as after reset).
    ///
    /// # Errors
    /// The state is malformed; nothing was changed.
    pub fn set_fpu_state(&mut self, state: &[u8], _cx: &Cx) -> Result<(), BadFpuState> {
        self.save();
        fpu::replace(&mut self.fpu, state)?;
        self.discard();
        Ok(())
    }

    /// Runs user code in the currently active address space until it traps. Interrupts are handled meanwhile. It is a
    /// suspension: nothing borrowed from shared state is held while user code runs.
    #[inline(always)]
    #[cfg_attr(false, ebb_lint::leaf)]
    pub fn run_async(&mut self, cx: &mut Cx) -> Trap {
        loop {
            tasks::quiescent(cx);
            if tasks::must_yield(cx) {
                return Trap::Preempted;
            }
            if !core::ptr::eq(core_block::loaded(), self.state()) {
                self.load();
            }
            if self.registers.rip >> 47 != 0 {
                return Trap::Exception { vector: traps::GENERAL_PROTECTION as u8, code: 0 };
            }
            #[cfg(feature = "stretch")]
            crate::stretch::end();
            // SAFETY: loaded, with a canonical `rip`, as just checked; the active address space is what the caller wants.
            let came = unsafe { user_mode::enter(self.state()) };
            #[cfg(feature = "stretch")]
            crate::stretch::begin(match came {
                user_mode::Came::Syscall => crate::stretch::Cause::Call(self.registers.rax),
                user_mode::Came::Trap { vector, .. } => crate::stretch::Cause::Trap(vector),
            });
            match came {
                user_mode::Came::Syscall => return Trap::Syscall,
                user_mode::Came::Trap { vector, error } => {
                    if let Some(trap) = handle(vector, error) {
                        return trap;
                    }
                }
            }
        }
    }

    /// Brings the floating-point state and the segment bases into the processor.
    #[cold]
    fn load(&mut self) {
        unload();
        self.wait_until_left();
        // SAFETY: the area is filled in by `fpu` only, and the bases are canonical.
        unsafe {
            fpu::restore(self.fpu.as_ptr());
            user_mode::load_bases(self.fs_base, self.gs_base);
        }
        *self.loaded_on.get_mut() = core_block::core_number() + 1;
        let state = self.state();
        core_block().loaded.set(state);
    }
}

impl Drop for UserContext {
    fn drop(&mut self) {
        self.discard();
    }
}

/// Saves what is loaded on this core, because its task leaves or another context comes.
#[inline]
pub(crate) fn unload() {
    let state = core_block::loaded();
    if state.is_null() {
        return;
    }
    core_block().loaded.set(core::ptr::null());
    // SAFETY: what a core's block points to is a context (a dropped one takes itself out), and its state is this core's as
    // long as it is loaded.
    unsafe {
        let context = UserContext::with_length(state.cast_mut(), fpu::chunks());
        fpu::save((&raw mut (*context).fpu).cast());
        (*context).loaded_on.store(0, Ordering::Release);
    }
}

/// Handles an exception or interrupt of user code, or says what the caller has to handle.
fn handle(vector: usize, error: usize) -> Option<Trap> {
    const PRESENT: usize = 1;
    const WRITE: usize = 1 << 1;
    const FETCH: usize = 1 << 4;
    match vector {
        traps::FIRST_INTERRUPT.. => {
            crate::irq::dispatch(vector);
            None
        }
        traps::PAGE_FAULT => Some(Trap::PageFault {
            address: instructions::read_cr2(),
            access: match error {
                _ if error & FETCH != 0 => Access::Execute,
                _ if error & WRITE != 0 => Access::Write,
                _ => Access::Read,
            },
            present: error & PRESENT != 0,
        }),
        traps::DEBUG => Some(Trap::Exception { vector: vector as u8, code: instructions::take_dr6() }),
        _ => Some(Trap::Exception { vector: vector as u8, code: error }),
    }
}

/// The size in bytes of the XSAVE area, and the mask of state components (XCR0).
pub fn fpu_size() -> (usize, u64) {
    fpu::size()
}
