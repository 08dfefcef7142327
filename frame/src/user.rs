//! Running user code: registers in, trap out.
//!
//! The floating-point state and the segment bases of a context are in the processor (it is *loaded*) from its first run until
//! its task leaves the core, which saves them. Invariant: a context is loaded on at most one core, which its `loaded_on` names
//! and whose block points to it; while it is loaded, the saved state in it is stale.
//!
//! A context is an allocation of its own, whose size depends on the processor, and [`UserContext`] is a handle to it: moving the handle moves
//! nothing from under a core's pointer. The core that has a context loaded writes to it through that pointer: the registers when user code
//! traps, the floating-point state when the task leaves the core. So there is never a reference to a context as a whole. A reference to its
//! registers is borrowed from the handle, which running user code borrows as well. The floating-point state is lent to who holds a `&Cx`, so not across a
//! suspension. All else is done through the pointer.

use alloc::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

use refs::Cx;

use crate::arch::machine::core_block::{self, core_block};
use crate::arch::machine::fpu::{self, Chunk};
use crate::arch::machine::registers::SegmentBases;
use crate::arch::machine::{traps, user_mode};
pub use crate::trap::{BadFpuState, BadSegmentBase, CycleCounter, Registers, Trap};

/// What a user thread has in the processor while it runs: registers and floating-point state.
pub struct UserContext {
    // This is the only handle, and the allocation is its own.
    area: NonNull<Area>,
}

// SAFETY: whoever has the handle has what it stands for; a core that still has it loaded is waited for.
unsafe impl Send for UserContext {}
// SAFETY: what a shared handle gives is a shared reference to the registers, and plain numbers.
unsafe impl Sync for UserContext {}

/// The part of a context that everybody may see.
#[repr(C)]
pub struct UserState {
    /// The general registers. Whatever is written here, user code runs unprivileged: `rflags`' system bits are masked, and running
    /// with a non-canonical `rip` is a general protection fault of the user's (invariant 2).
    pub registers: Registers,
    /// Whether the registers may be others, but for the result, than those that the processor saved at a system call. If not, they can be loaded as
    /// they are: `rip` and the flags come from user mode.
    pub(crate) is_changed: bool,
}

impl Default for UserState {
    fn default() -> Self {
        UserState { registers: Registers::default(), is_changed: true }
    }
}

/// What a context's allocation begins with; the floating-point state comes behind it.
#[derive(Default)]
#[repr(C, align(64))]
struct Area {
    state: UserState,
    /// The number of the core on which the context is loaded, plus 1; 0 if it is not.
    loaded_on: AtomicUsize,
    bases: SegmentBases,
    cycle_counter: CycleCounter,
}

/// Waits until another core has stored 0. (Not inlined, so that who need not wait keeps nothing on the stack for it.)
#[cold]
#[inline(never)]
fn wait_for_zero(word: &AtomicUsize) {
    let mut wait = refs::Wait::new();
    while word.load(Ordering::Acquire) != 0 {
        wait.spin(0);
    }
}

impl UserContext {
    /// All registers zero, floating-point state as after reset.
    pub fn new() -> Self {
        let area = Self::allocate();
        // SAFETY: `allocate` made room for both, and zeros are valid chunks.
        let context = unsafe {
            area.write(Area::default());
            area.add(1).cast::<Chunk>().write_bytes(0, fpu::chunks());
            UserContext { area }
        };
        // SAFETY: nobody else knows of the context.
        fpu::reset(unsafe { context.saved_fpu() });
        context
    }

    /// Memory for a context, which holds nothing valid yet.
    fn allocate() -> NonNull<Area> {
        // SAFETY: the layout is not empty.
        let memory = unsafe { alloc(Self::layout()) };
        NonNull::new(memory.cast()).unwrap_or_else(|| handle_alloc_error(Self::layout()))
    }

    fn layout() -> Layout {
        Layout::from_size_align(size_of::<Area>() + fpu::chunks() * size_of::<Chunk>(), align_of::<Area>())
            .expect("a few kilobytes")
    }

    #[inline(always)]
    fn state(&self) -> *mut UserState {
        self.area.as_ptr().cast()
    }

    #[inline(always)]
    fn loaded_on(&self) -> &AtomicUsize {
        // SAFETY: the area is this handle's, and the field is used as an atomic only.
        unsafe { &(*self.area.as_ptr()).loaded_on }
    }

    #[inline(always)]
    fn is_loaded_here(&self) -> bool {
        core::ptr::eq(core_block::loaded(), self.state())
    }

    /// The saved floating-point state, to read and write.
    ///
    /// # Safety
    /// The context is not loaded on a core, or the task does not leave this one while the reference lives; and it is the only one.
    #[expect(clippy::mut_from_ref)]
    unsafe fn saved_fpu(&self) -> &mut [Chunk] {
        // SAFETY: `layout` has room for so many behind the area; zeros are valid, and so is what is written there.
        unsafe { core::slice::from_raw_parts_mut(self.area.as_ptr().add(1).cast(), fpu::chunks()) }
    }

    /// Makes sure that the saved floating-point state is the context's: it may be in the processor.
    fn save(&mut self) {
        if self.is_loaded_here() {
            // SAFETY: the state in the processor is this context's, and the area is as long as all are.
            unsafe { fpu::save(self.area.as_ptr().add(1).cast()) };
        } else {
            self.wait_until_left();
        }
    }

    /// Forgets the state in the processor, if it is this context's: the saved one is what counts.
    fn discard(&mut self) {
        if self.is_loaded_here() {
            core_block().loaded.set(core::ptr::null());
            core_block().enterable.set(core::ptr::null());
            self.loaded_on().store(0, Ordering::Relaxed);
        } else {
            self.wait_until_left();
        }
    }

    /// Another core may still be leaving the context: a task that gave it away keeps it loaded until it suspends.
    #[inline(always)]
    fn wait_until_left(&self) {
        if self.loaded_on().load(Ordering::Acquire) != 0 {
            wait_for_zero(self.loaded_on());
        }
    }

    /// A copy, with its floating-point state and segment bases, for `fork`.
    pub fn duplicate(&mut self, cx: &Cx) -> Self {
        self.save();
        let (state, bases) = (UserState { registers: self.registers, is_changed: true }, self.bases());
        let cycle_counter = self.cycle_counter();
        let copy = Self::allocate();
        // SAFETY: `allocate` made room for both parts, which are filled here. `save` has waited for other cores, and the borrowed `Cx` keeps the
        // task on this one.
        unsafe {
            copy.write(Area { state, loaded_on: AtomicUsize::new(0), bases, cycle_counter });
            let from = self.lent_fpu(cx);
            copy.add(1).cast::<Chunk>().copy_from_nonoverlapping(NonNull::from(from).cast(), from.len());
        }
        UserContext { area: copy }
    }

    /// The saved floating-point state, for as long as the task stays on this core.
    ///
    /// # Safety
    /// [`save`](Self::save) was just called.
    unsafe fn lent_fpu<'a>(&'a mut self, _cx: &'a Cx) -> &'a [Chunk] {
        // SAFETY: no other core has the context loaded, and this one saves it only when the task leaves, for which the borrow has to end.
        unsafe { self.saved_fpu() }
    }

    /// Takes the context out of the processor, if this core has it loaded: who gets it next on another core waits for nobody.
    pub fn take_out(&mut self, _cx: &Cx) {
        self.save();
        self.discard();
    }

    /// The bases of the segments `fs` and `gs`.
    pub fn segment_bases(&self) -> (usize, usize) {
        let bases = self.bases();
        (bases.fs(), bases.gs())
    }

    fn bases(&self) -> SegmentBases {
        // SAFETY: the area is this handle's, and cores do not write this field.
        unsafe { (*self.area.as_ptr()).bases }
    }

    /// Sets the bases of the segments `fs` and `gs` (thread-local storage).
    ///
    /// # Errors
    /// One of them is not canonical; nothing was changed.
    pub fn set_segment_bases(&mut self, fs: usize, gs: usize, _cx: &Cx) -> Result<(), BadSegmentBase> {
        let bases = SegmentBases::new(fs, gs)?;
        // SAFETY: as for `bases`, and the handle is borrowed mutably.
        unsafe { (*self.area.as_ptr()).bases = bases };
        if self.is_loaded_here() {
            user_mode::load_bases(bases);
        } else {
            self.wait_until_left();
        }
        Ok(())
    }

    /// Whether user code may read the processor's time-stamp counter.
    pub fn cycle_counter(&self) -> CycleCounter {
        // SAFETY: as for `bases`.
        unsafe { (*self.area.as_ptr()).cycle_counter }
    }

    /// Says whether user code may read the processor's time-stamp counter.
    pub fn set_cycle_counter(&mut self, cycle_counter: CycleCounter, _cx: &Cx) {
        // SAFETY: as for `bases`, and the handle is borrowed mutably.
        unsafe { (*self.area.as_ptr()).cycle_counter = cycle_counter };
        if self.is_loaded_here() {
            user_mode::set_cycle_counter(cycle_counter);
        } else {
            self.wait_until_left();
        }
    }

    /// Floating-point state as after reset, for `execve`.
    pub fn reset_fpu(&mut self, _cx: &Cx) {
        self.discard();
        // SAFETY: the context is not loaded any more, and borrowed mutably.
        fpu::reset(unsafe { self.saved_fpu() });
    }

    /// The floating-point state in the XSAVE layout (standard form), as it belongs into a signal frame; its size is
    /// [`fpu_size`]. `software` is what stands in the bytes that the layout leaves to software, from 464 on.
    pub fn fpu_state<'a>(&'a mut self, software: &[u8; 48], cx: &'a Cx) -> &'a [u8] {
        self.save();
        // SAFETY: just saved; the processor neither writes nor reads these bytes.
        fpu::set_software_bytes(unsafe { self.saved_fpu() }, software);
        // SAFETY: just saved.
        &fpu::bytes(unsafe { self.lent_fpu(cx) })[..fpu_size().0]
    }

    /// Replaces the floating-point state by one that a user program may have forged. `fill` writes it where it is kept: either all of it ([`fpu_size`]
    /// bytes), or its first 512 bytes (x87 and SSE; the rest is then as after reset). It says how many.
    ///
    /// # Errors
    /// The outer one is `fill`'s own, the inner one says that the state is malformed. The floating-point state is then as after reset.
    pub fn set_fpu_state<E>(
        &mut self,
        _cx: &Cx,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<Result<(), BadFpuState>, E> {
        self.discard();
        // SAFETY: the context is not loaded any more, and borrowed mutably.
        fpu::replace(unsafe { self.saved_fpu() }, fill)
    }

    /// Sets the result of a system call, which user code goes on with as it made it otherwise.
    #[inline(always)]
    pub fn set_call_result(&mut self, result: usize) {
        // SAFETY: the area is this handle's, which is borrowed mutably.
        unsafe { (*self.state()).registers.rax = result };
    }

    /// Runs user code until it traps. Interrupts are handled meanwhile. It is a suspension: nothing borrowed from shared state is held while user
    /// code runs.
    ///
    /// `activate` makes the address space of the user code the active one. It is called at first, and again where the task has left this core or
    /// whatever code has activated another address space, be it only to read from it; if it says false there is no address space any more,
    /// and this returns `Preempted`.
    #[inline(always)]
    #[cfg_attr(false, ebb_lint::leaf)]
    pub fn run_async(&mut self, cx: &mut Cx, activate: impl Fn(&Cx) -> bool) -> Trap {
        loop {
            if tasks::quiescent(cx) == tasks::Dead::Own {
                // What the task closed is closed before it goes on.
                tasks::free_all_async(cx);
                return Trap::Preempted;
            }
            if tasks::must_yield(cx) {
                return Trap::Preempted;
            }
            if !self.is_enterable() && !self.make_enterable(cx, &activate) {
                return Trap::Preempted;
            }
            if self.is_changed
                && let Some(trap) = self.registers.trap_on_entry()
            {
                return trap;
            }
            #[cfg(feature = "check-locks")]
            refs::lock_order::check_none_held();
            #[cfg(feature = "stretch")]
            {
                crate::stretch::end();
                crate::stretch::quiescent_from_here();
                crate::stretch::user_code_runs();
            }
            // SAFETY: loaded, with registers that can be loaded, as just checked; the active address space is what the caller wants.
            let came = unsafe { user_mode::enter(self.state()) };
            #[cfg(feature = "stretch")]
            crate::stretch::begin(match came {
                user_mode::Came::Syscall => crate::stretch::Cause::Call(self.registers.rax),
                user_mode::Came::Trap { vector, .. } => crate::stretch::Cause::Trap(vector),
            });
            match came {
                user_mode::Came::Syscall => return Trap::Syscall,
                user_mode::Came::Trap { vector, error } => {
                    if let Some(trap) = traps::handle_user(vector, error) {
                        return trap;
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn is_enterable(&self) -> bool {
        core::ptr::eq(core_block::enterable(), self.state())
    }

    /// Activates the address space and loads what is not loaded; false if there is no address space.
    #[cold]
    fn make_enterable(&mut self, cx: &Cx, activate: &impl Fn(&Cx) -> bool) -> bool {
        if !activate(cx) {
            return false;
        }
        if !self.is_loaded_here() {
            self.load();
        }
        core_block().enterable.set(self.state());
        true
    }

    /// Brings the floating-point state and the segment bases into the processor, and whether the time-stamp counter may be read.
    #[cold]
    fn load(&mut self) {
        unload();
        self.wait_until_left();
        // SAFETY: the floating-point state is filled in by `fpu` only.
        unsafe { fpu::restore(self.area.as_ptr().add(1).cast()) };
        user_mode::load_bases(self.bases());
        if self.cycle_counter() != core_block().cycle_counter.get() {
            user_mode::set_cycle_counter(self.cycle_counter());
        }
        self.loaded_on().store(core_block::core_number() + 1, Ordering::Relaxed);
        core_block().loaded.set(self.state());
    }
}

impl Default for UserContext {
    fn default() -> Self {
        Self::new()
    }
}

impl Deref for UserContext {
    type Target = UserState;

    #[inline(always)]
    fn deref(&self) -> &UserState {
        // SAFETY: the area is this handle's. A core writes the registers only while user code runs, for which the handle is borrowed mutably.
        unsafe { &*self.state() }
    }
}

impl DerefMut for UserContext {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut UserState {
        // SAFETY: as above.
        let state = unsafe { &mut *self.state() };
        state.is_changed = true;
        state
    }
}

impl Drop for UserContext {
    fn drop(&mut self) {
        self.discard();
        // SAFETY: allocated with this layout, and no core has it loaded any more.
        unsafe { dealloc(self.area.as_ptr().cast(), Self::layout()) };
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
    core_block().enterable.set(core::ptr::null());
    let area = state.cast_mut().cast::<Area>();
    // SAFETY: what a core's block points to is the start of a context (a dropped one takes itself out), from the pointer that all its
    // accesses come from. Its floating-point state is this core's as long as it is loaded, and not lent to anybody now: the task leaves, or
    // another's context is loaded.
    unsafe {
        fpu::save(area.add(1).cast());
        (*area).loaded_on.store(0, Ordering::Release);
    }
}

/// The size in bytes of the XSAVE area, and the mask of state components (XCR0).
pub fn fpu_size() -> (usize, u64) {
    fpu::size()
}
