//! Unused frames. Each core keeps a stack of single frames in front of the policy, so that taking one and giving one back are
//! a few instructions; frames go between the stacks and the policy in batches.
//!
//! Where memory ends while other cores have frames at hand, they are asked to give them back: what one core is refused, all are.
//!
//! *The reserve*: memory for user programs is refused while no more than a certain number of frames is left; the kernel's own
//! page tables and heap may use them. So a program that takes all memory is told so, and the kernel goes on.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::core_local::{self, CoreLocal};
use super::metadata::{FrameNumber, Kind, Metadata, end_of_memory, frame_count};
use super::{machine, owner, tlb};
use crate::cpu::Named;

/// Which unused frames are handed out. Blocks are `1 << order` frames, aligned to their size. Frames that come back are
/// checked (invariant 1): handing out one that is in use is a bug in the policy and stops the kernel. The word
/// [`previous`](super::FrameLink) of a frame that is handed out is 0: else it counts as somebody's that it is not.
pub trait FramePolicy: Sync {
    /// Takes in frames that were not usable before: at boot, and those that the boot loader had filled.
    fn add(&self, first: FrameNumber, count: usize);
    /// A free block; `None` if there is none.
    fn allocate(&self, order: u8) -> Option<FrameNumber>;
    /// Takes a block back.
    fn free(&self, first: FrameNumber, order: u8);
    /// How many frames are free.
    fn available(&self) -> usize;

    /// Fills `frames` from the front with single free frames; how many.
    fn allocate_many(&self, frames: &mut [FrameNumber]) -> usize {
        let mut count = 0;
        for place in frames {
            let Some(frame) = self.allocate(0) else { break };
            *place = frame;
            count += 1;
        }
        count
    }

    /// Takes single frames back.
    fn free_many(&self, frames: &[FrameNumber]) {
        for frame in frames {
            self.free(*frame, 0);
        }
    }
}

/// The largest block: 4 MiB.
pub(super) const MAX_ORDER: u8 = 10;

/// Frames that are kept for nothing, such as the pages of a program that has ended, and can be had back when they are needed.
#[derive(Clone, Copy)]
pub struct Recovery {
    /// How many frames they are at least. They count as free.
    pub owed: fn() -> usize,
    /// Gives some of them back; whether there were any. It is called before memory is refused or the reserve is used, on a core that may hold any lock but the frame
    /// policy's.
    pub recover: fn() -> bool,
}

static OWED: Named<fn() -> usize> = Named::none();
static RECOVER: Named<fn() -> bool> = Named::none();

/// Says where frames can be had back. Called once, at boot.
pub fn recover_by(recovery: Recovery) {
    OWED.set(recovery.owed);
    RECOVER.set(recovery.recover);
}

fn owed() -> usize {
    OWED.get().map_or(0, |owed| owed())
}

fn recover() -> bool {
    RECOVER.get().is_some_and(|recover| recover())
}

/// What frames are taken for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// For a user program; the reserve is not for it.
    User,
    /// For the kernel itself.
    Kernel,
}

/// Frames that a core keeps at hand: a MiB that one program gives back and the next takes stays with the core, whose cache has it.
const STACK: usize = 511;
/// Frames that go between a stack and the policy at a time.
const BATCH: usize = 64;
/// So often frames are [recovered](Recovery) for a block: a MiB or more mostly, of which some lie together.
const BLOCK_TRIES: usize = 16;

/// Free frames that a core keeps at hand: the first word says how many, the others are they. So it has the size of a power of
/// two, and is quick to find; and a core's are on lines of their own.
#[repr(align(64))]
pub(super) struct Stack([AtomicU32; STACK + 1]);

impl Stack {
    pub(super) const fn new() -> Self {
        Stack([const { AtomicU32::new(0) }; STACK + 1])
    }

    #[inline(always)]
    fn pop(&self) -> Option<FrameNumber> {
        let len = self.0[0].load(Ordering::Relaxed);
        if len == 0 {
            return None;
        }
        self.0[0].store(len - 1, Ordering::Relaxed);
        // The remainder changes nothing; it is there so that this cannot panic.
        Some(FrameNumber(self.0[len as usize % (STACK + 1)].load(Ordering::Relaxed)))
    }

    /// Those that are there, what is taken next first, until `f` says false.
    #[inline(always)]
    fn each(&self, mut f: impl FnMut(&'static Metadata) -> bool) {
        let len = self.len().min(STACK);
        for frame in self.0[1..=len].iter().rev() {
            // SAFETY: frames on the stack have numbers in range.
            if !f(unsafe { Metadata::of(FrameNumber(frame.load(Ordering::Relaxed))) }) {
                break;
            }
        }
    }

    /// Adds a frame; whether the stack is full now. It must not be full before.
    #[inline(always)]
    fn push(&self, frame: FrameNumber) -> bool {
        let len = self.0[0].load(Ordering::Relaxed) + 1;
        self.0[len as usize % (STACK + 1)].store(frame.0, Ordering::Relaxed);
        self.0[0].store(len, Ordering::Relaxed);
        len as usize == STACK
    }

    fn len(&self) -> usize {
        self.0[0].load(Ordering::Relaxed) as usize
    }
}

/// The reserve on a machine with much memory: 4 MiB.
const MAX_RESERVE: usize = 1024;
static RESERVE: AtomicUsize = AtomicUsize::new(0);
static POLICY: PolicyCell = PolicyCell(UnsafeCell::new(None));

struct PolicyCell(UnsafeCell<Option<&'static dyn FramePolicy>>);

// SAFETY: written once by `init`, before any other core runs.
unsafe impl Sync for PolicyCell {}

/// Sets the policy, and a reserve that goes with the size of memory. Called once, at boot.
pub(super) fn init(policy: &'static dyn FramePolicy) {
    set_reserve((frame_count() / 64).min(MAX_RESERVE));
    // SAFETY: the boot core alone runs, and nobody has asked for a frame yet.
    unsafe { *POLICY.0.get() = Some(policy) };
}

#[inline(always)]
fn policy() -> Option<&'static dyn FramePolicy> {
    // SAFETY: only `init` writes it, before others read.
    unsafe { *POLICY.0.get() }
}

/// Sets how many frames are kept for the kernel itself (at boot: a 64th of all, at most 1024). User memory is refused while no
/// more than these are left.
pub fn set_reserve(frames: usize) {
    RESERVE.store(frames, Ordering::Relaxed);
}

/// How many frames are unused or kept for nothing, those in the reserve and those that cores keep at hand included.
pub fn free_frames() -> usize {
    policy().map_or(0, |policy| policy.available()) + owed() + stacked()
}

/// How many frames all cores keep at hand.
fn stacked() -> usize {
    core_local::all().map(|core| core.frames.len()).sum()
}

/// Whether there are `frames` for something large of the kernel's and still half of the reserve afterwards. What is large can be
/// refused (or ends the kernel if whoever asked cannot be); what is small must be served for as long as possible.
pub(super) fn can_spare(frames: usize) -> bool {
    free_frames() > frames.saturating_add(RESERVE.load(Ordering::Relaxed) / 2)
}

/// An unused frame, now of `kind` with one reference. Its content is whatever it was.
#[inline]
pub(super) fn take(kind: Kind, purpose: Purpose) -> Option<FrameNumber> {
    let frame = next(&core_local::here().frames, purpose)?;
    // SAFETY: `refill` lets only numbers in range onto the stack, and those that come back are.
    let record = unsafe { Metadata::of(frame) };
    if owner::is_any(record) {
        owner::discharge(record);
    }
    Some(claim(frame, record, kind))
}

#[inline(always)]
fn next(stack: &Stack, purpose: Purpose) -> Option<FrameNumber> {
    match stack.pop() {
        Some(frame) => Some(frame),
        None => refill(purpose, &mut owner::Ahead::none()),
    }
}

/// As [`next`], and whom the core works for is charged for what comes to hand; `None` also where that may not have a frame.
#[inline(always)]
fn next_charged(stack: &Stack, purpose: Purpose) -> Option<FrameNumber> {
    match stack.pop() {
        Some(frame) => Some(frame),
        None => refill_charged(purpose),
    }
}

#[cold]
#[inline(never)]
fn refill_charged(purpose: Purpose) -> Option<FrameNumber> {
    refill(purpose, &mut owner::Ahead::charge(purpose)?)
}

#[inline(always)]
fn claim(frame: FrameNumber, record: &Metadata, kind: Kind) -> FrameNumber {
    machine::provide(frame, 1);
    record.claim(kind);
    frame
}

/// A frame for a kernel stack.
#[cfg(target_os = "none")]
pub(crate) fn take_stack_page() -> Option<FrameNumber> {
    take(Kind::Block, Purpose::Kernel)
}

/// Takes a frame of a kernel stack back.
///
/// # Safety
/// It came from [`take_stack_page`], and nobody refers to it any more.
#[cfg(target_os = "none")]
pub(crate) unsafe fn give_stack_page(frame: FrameNumber) {
    // SAFETY: the caller's promise.
    unsafe { give(frame) };
}

/// As [`take`], and whom the core works for is charged for the frame; `None` also where that may not have it.
#[inline]
pub(super) fn take_charged(kind: Kind, purpose: Purpose) -> Option<FrameNumber> {
    let core = core_local::here();
    let frame = next_charged(&core.frames, purpose)?;
    // SAFETY: as for `take`.
    let record = unsafe { Metadata::of(frame) };
    if !core.payer.pays_for(record) && !charge(frame, purpose) {
        return None;
    }
    Some(claim(frame, record, kind))
}

/// As [`take`], for a table: whom the core works for goes on paying for the frame, if that does. Whether it has an owner.
#[inline]
pub(super) fn take_for_table() -> Option<(FrameNumber, bool)> {
    let core = core_local::here();
    let frame = next_charged(&core.frames, Purpose::Kernel)?;
    // SAFETY: as for `take`.
    let record = unsafe { Metadata::of(frame) };
    let mut is_paid_for = owner::is_any(record);
    if is_paid_for && !core.payer.pays_for(record) {
        owner::discharge(record);
        is_paid_for = false;
    }
    Some((claim(frame, record, Kind::Table), is_paid_for))
}

/// Charges whom the core works for for a frame that it is about to have; false if it may not have that, which is at hand again then.
#[cold]
#[inline(never)]
fn charge(frame: FrameNumber, purpose: Purpose) -> bool {
    let stack = &core_local::here().frames;
    // SAFETY: as for `take`.
    let record = unsafe { Metadata::of(frame) };
    if owner::is_any(record) {
        let mut returned = owner::Returned::new();
        returned.add(record, |_| true);
        // Those that come next are the same one's, mostly.
        let mut left = BATCH;
        stack.each(|record| {
            returned.add(record, |_| false);
            left -= 1;
            left > 0 && !owner::is_any(record)
        });
    }
    let Some(owner) = owner::charge(record, purpose) else {
        // SAFETY: nobody has got it.
        unsafe { here().put(frame) };
        return false;
    };
    owner::spread(owner, |most| {
        let mut count = 0;
        stack.each(|record| {
            let is_free = count < most && !owner::is_any(record);
            if is_free {
                owner::word(record).store(owner, Ordering::Relaxed);
                count += 1;
            }
            is_free
        });
        count
    });
    true
}

/// Runs `f` on the records of the frames that a core has at hand.
pub(super) fn each_at_hand(core: &CoreLocal, mut f: impl FnMut(&Metadata)) {
    core.frames.each(|record| {
        f(record);
        true
    });
}

/// Takes a frame back that was [charged](take_charged).
///
/// # Safety
/// As for [`give`].
#[inline(always)]
pub(super) unsafe fn give_charged(frame: FrameNumber) {
    // SAFETY: the caller's promise; a frame in use has a number in range.
    unsafe { here().give_charged(frame, Metadata::of(frame)) };
}

/// Takes a frame back whose last reference is gone.
///
/// # Safety
/// Nobody refers to the frame any more, and its state still names its kind, with a count of at most 1.
#[inline(always)]
pub(super) unsafe fn give(frame: FrameNumber) {
    // SAFETY: the caller's promise; a frame in use has a number in range.
    unsafe { here().give(frame, Metadata::of(frame)) };
}

/// This core's stack, for loops that give many frames back.
#[derive(Clone, Copy)]
pub(super) struct Here(&'static Stack);

/// This core's stack.
#[inline(always)]
pub(super) fn here() -> Here {
    Here(&core_local::here().frames)
}

impl Here {
    /// As [`give_charged`], with the frame's record at hand.
    ///
    /// # Safety
    /// As for [`give`].
    #[inline(always)]
    pub(super) unsafe fn give_charged(self, frame: FrameNumber, record: &Metadata) {
        if owner::is_shared(record) {
            owner::end_shared(record);
        }
        // SAFETY: the caller's promise.
        unsafe { self.give(frame, record) };
    }

    /// As [`give`], with the frame's record at hand.
    ///
    /// # Safety
    /// As for [`give`].
    #[inline(always)]
    pub(super) unsafe fn give(self, frame: FrameNumber, record: &Metadata) {
        debug_assert!(record.references() <= 1, "a frame in use was given back");
        machine::withdraw(frame, 1);
        record.state.store(0, Ordering::Release);
        // SAFETY: nobody refers to it any more.
        unsafe { self.put(frame) };
    }

    /// Has a frame at hand.
    ///
    /// # Safety
    /// It is unused.
    #[inline(always)]
    unsafe fn put(self, frame: FrameNumber) {
        if self.0.push(frame) {
            drain(BATCH);
        }
    }
}

/// Has other cores give the frames and tables back that they keep at hand, if these are at least so many; whether they were asked. The caller, as they, may hold
/// any lock but the frame policy's.
#[cold]
pub(super) fn gather(least: usize) -> bool {
    if machine::core_count() == 1 {
        return false;
    }
    let here = core_local::here();
    let others = core_local::all().filter(|core| !core::ptr::eq(*core, here));
    let is_worth_it =
        others.map(|core| core.frames.len() + core.tables.len() + core.roots.len()).sum::<usize>() >= least;
    if is_worth_it {
        tlb::ask_for_frames();
    }
    is_worth_it
}

/// Gives the frames that this core keeps at hand back to the policy.
pub(super) fn trim() {
    drain(STACK);
}

/// A block of `1 << order` contiguous frames, each of `kind` with one reference, for the kernel itself.
pub(super) fn take_block(order: u8, kind: Kind) -> Option<FrameNumber> {
    if order == 0 {
        return take(kind, Purpose::Kernel);
    }
    if order > MAX_ORDER {
        return None;
    }
    let policy = policy()?;
    let first = policy.allocate(order).or_else(|| {
        drain(STACK);
        let mut tries = 0..BLOCK_TRIES;
        let mut found = policy.allocate(order);
        while found.is_none() && tries.next().is_some() && recover() {
            drain(STACK);
            found = policy.allocate(order);
        }
        found
    })?;
    claim_block(first, order, kind);
    Some(first)
}

/// Makes each frame of a block that the policy has given one of `kind` with one reference.
///
/// # Panics
/// There is no such block, or it is in use.
fn claim_block(first: FrameNumber, order: u8, kind: Kind) {
    check(first, order);
    machine::provide(first, 1 << order);
    for number in first.0..first.0 + (1 << order) {
        // SAFETY: `check` found all of them in range.
        unsafe { Metadata::of(FrameNumber(number)) }.claim(kind);
    }
}

/// Makes a block that the policy has given one of untyped memory.
///
/// # Panics
/// There is no such block, or it is in use.
pub(crate) fn claim_idle(first: FrameNumber, order: u8) {
    claim_block(first, order, Kind::Untyped);
}

/// Takes back a block that [`take_block`] gave, or [`claim_idle`].
///
/// # Safety
/// As for [`give`], for each of the frames.
pub(crate) unsafe fn give_block(first: FrameNumber, order: u8) {
    // SAFETY: the caller's promise.
    unsafe { release_block(first, order) };
    if let Some(policy) = policy() {
        policy.free(first, order);
    }
}

/// Makes the frames of a block unused, which the policy is told by the caller.
///
/// # Safety
/// As for [`give`], for each of the frames.
pub(crate) unsafe fn release_block(first: FrameNumber, order: u8) {
    machine::withdraw(first, 1 << order);
    for number in first.0..first.0 + (1 << order) {
        // SAFETY: frames in use have numbers in range.
        unsafe { Metadata::of(FrameNumber(number)) }.state.store(0, Ordering::Release);
    }
}

/// Hands frames to the policy that were reserved so far.
///
/// # Safety
/// They are memory, and nobody uses them.
pub(super) unsafe fn give_reserved(first: FrameNumber, count: usize) {
    machine::withdraw(first, count);
    for number in first.0..first.0 + count as u32 {
        // SAFETY: frames of the machine's memory have numbers in range.
        let record = unsafe { Metadata::of(FrameNumber(number)) };
        debug_assert!(record.is(Kind::Reserved), "a frame in use was given back");
        record.state.store(0, Ordering::Release);
    }
    if let Some(policy) = policy()
        && count > 0
    {
        policy.add(first, count);
    }
}

/// Checks that a block which the policy gave exists, and is aligned to its size, which whoever asked for it relies on. That its frames are
/// unused is checked when they are claimed.
///
/// # Panics
/// It does not, or is not.
pub(super) fn check(first: FrameNumber, order: u8) {
    if order > MAX_ORDER || first.0 as usize + (1 << order) > end_of_memory() {
        panic!("the frame policy handed out a frame that does not exist");
    }
    if !first.0.is_multiple_of(1 << order) {
        panic!("the frame policy handed out a block that is not aligned to its size");
    }
}

/// A frame from the policy, and some more for the stack. Those that are taken first have the owner who was charged `ahead`.
#[cold]
fn refill(purpose: Purpose, ahead: &mut owner::Ahead) -> Option<FrameNumber> {
    let policy = policy()?;
    let beyond_reserve = || policy.available().saturating_sub(RESERVE.load(Ordering::Relaxed));
    // What is kept for nothing comes to this core's stack.
    while beyond_reserve() == 0 && recover() {
        // Where pages are shared with others, what comes back is tables, which the core keeps at hand.
        super::table::trim();
        if let Some(frame) = core_local::here().frames.pop() {
            return Some(frame);
        }
    }
    // The kernel is not refused; so it does not ask others each time.
    let worth_asking = if purpose == Purpose::User { 1 } else { BATCH };
    let beyond_reserve = match beyond_reserve() {
        0 if gather(worth_asking) => beyond_reserve(),
        some => some,
    };
    let batch = match (beyond_reserve, purpose) {
        (0, Purpose::User) => return None,
        // One at a time, so that nothing of the reserve is left on the stack, where user memory would find it.
        (0, Purpose::Kernel) => 1,
        (some, _) => some.min(BATCH),
    };
    let mut frames = [FrameNumber(0); BATCH];
    let count = policy.allocate_many(&mut frames[..batch]).min(batch);
    let (last, rest) = frames[..count].split_last()?;
    for frame in &frames[..count] {
        check(*frame, 0);
    }
    // SAFETY: `check` found all of them in range.
    unsafe { ahead.pay_for(&frames[..count]) };
    for frame in rest {
        core_local::here().frames.push(*frame);
    }
    Some(*last)
}

/// Gives up to `count` frames of this core's stack back to the policy.
#[cold]
fn drain(count: usize) {
    let Some(policy) = policy() else { return };
    let stack = &core_local::here().frames;
    let mut left = count;
    while left > 0 {
        let mut frames = [FrameNumber(0); BATCH];
        let mut len = 0;
        while len < left.min(BATCH) {
            let Some(frame) = stack.pop() else { break };
            frames[len] = frame;
            len += 1;
        }
        if len == 0 {
            return;
        }
        if owner::is_used() {
            let mut returned = owner::Returned::new();
            for frame in &frames[..len] {
                // SAFETY: as for `take`.
                returned.add(unsafe { Metadata::of(*frame) }, |_| true);
            }
        }
        policy.free_many(&frames[..len]);
        left -= len;
    }
}
