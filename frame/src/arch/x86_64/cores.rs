//! The other cores: how they start, and what cores ask of each other.
//!
//! *Start.* The boot core finds the others in the firmware's tables ([`crate::acpi`]) and starts them one after the other: reset, then the address of a page of
//! low memory with their first instructions ([`super::entry`]), which lead to the boot tables, to the kernel's tables, and with a stack of the pool to
//! [`start_other`]. That sets up what each core has of its own and waits until the kernel has begun. A core that does not come up, or whose clock
//! is not the boot core's, is reported and left out; one that wakes up too late finds no stack and stays where it is.
//!
//! *Requests.* A core that changes what others may remember of page tables asks them to forget it and waits until all have. It writes the request into its own
//! block, marks it in the [inbox](Requests) of each of the others, and interrupts them. A core that runs user code or idles is interrupted at
//! once. One that runs kernel code has interrupts off; it answers where it lets interrupts in, and wherever it waits for another core ([`answer`] is what
//! [`refs::spin_loop`] calls): for a lock, and for the answers to a request of its own. So no two cores wait for each other, and the longest stretch
//! of kernel code bounds the wait.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use tasks::{StackSource, Worker};

use super::core_block::{self, CoreBlock, block_of, core_block, core_number, count};
use super::kernel_map::{self, DIRECT_MAP, NO_EXECUTE, WRITABLE};
use super::memory_map::LoaderInfo;
use super::{apic, descriptors, features, fpu, instructions, stacks, tsc, user_mode};
use crate::acpi::{self, ApicId, Physical};
use crate::boot::{CoreHooks, config};
use crate::core_set::{self, CoreSet, SharedCoreSet};
use crate::cpu::MAX_CORES;
use crate::mm::{self, Forget};

/// The kernel's top-level table, for a core that starts.
pub(super) static ROOT: AtomicUsize = AtomicUsize::new(0);
/// The top of the stack of the core that is being started; it takes it.
pub(super) static STACK: AtomicUsize = AtomicUsize::new(0);
/// Its block.
static BLOCK: AtomicPtr<CoreBlock> = AtomicPtr::new(core::ptr::null_mut());
/// How far it is: its number, when it has set itself up.
static READY: AtomicUsize = AtomicUsize::new(0);
/// The kernel has begun: cores may run tasks.
static BEGUN: AtomicBool = AtomicBool::new(false);

/// How long a core may take to come up, in nanoseconds.
const PATIENCE: u64 = 1_000_000_000;
/// How long a core needs to be reset (the manual's 10 ms are for processors of another age), and until it is told a second time to start.
const RESET_TIME: u64 = 20_000;
const START_TIME: u64 = 200_000;
/// The controllers of xAPIC have smaller numbers.
const XAPIC_END: u32 = 0xff;

const PAGE: usize = 4096;

unsafe extern "C" {
    static ebb_core_first: u8;
    static ebb_core_first_end: u8;
}

/// Physical memory through the direct map, into which pages of the firmware's are entered as they are needed.
pub(super) struct DirectMap;

impl Physical for DirectMap {
    fn read(&self, at: u64, len: usize) -> Option<Vec<u8>> {
        /// Physical addresses have fewer bits, and the direct map has room for them.
        const LIMIT: usize = 1 << 46;
        let at = usize::try_from(at).ok()?;
        let end = at.checked_add(len).filter(|end| *end <= LIMIT)?;
        for page in (at & !(PAGE - 1)..end).step_by(PAGE) {
            if kernel_map::is_mapped(DIRECT_MAP + page) {
                continue;
            }
            // SAFETY: where nothing is mapped yet is no memory of the kernel's, and it is only read.
            if !unsafe { kernel_map::map_page(DIRECT_MAP + page, page, NO_EXECUTE) } {
                return None;
            }
        }
        // SAFETY: mapped, just now or before; firmware does not change its tables.
        Some((at..end).map(|at| unsafe { ((DIRECT_MAP + at) as *const u8).read_volatile() }).collect())
    }
}

/// Starts all other cores, which wait then for [`begin`]. To be called once, on the boot core, with its clock and controller set up.
pub fn start_others(info: &LoaderInfo) {
    core_block().apic_id.set(apic::id());
    let (Some(root_pointer), Some(page)) = (info.root_pointer, info.start_page) else { return };
    let Some(all) = acpi::processors(&DirectMap, root_pointer) else {
        crate::println!("ebb: the firmware's tables say nothing of other processors");
        return;
    };
    let own = core_block().apic_id.get();
    let others = all.into_iter().filter(|ApicId(id)| *id != own);
    ROOT.store(kernel_map::root(), Ordering::Release);
    let (first, end) = (&raw const ebb_core_first, &raw const ebb_core_first_end);
    let mut is_ready = false;
    for ApicId(id) in others {
        if !is_ready {
            // SAFETY: the page is nobody's, and not in the direct map, which begins behind low memory.
            is_ready = unsafe { kernel_map::map_page(DIRECT_MAP + page, page, WRITABLE | NO_EXECUTE) };
            if !is_ready {
                return;
            }
            // SAFETY: mapped just now; the code is shorter than a page.
            unsafe { core::ptr::copy_nonoverlapping(first, (DIRECT_MAP + page) as *mut u8, end.addr() - first.addr()) };
        }
        if count() == MAX_CORES || id >= XAPIC_END && !features::has_x2apic() {
            crate::println!("ebb: processor {id} is one too many: it is left out");
            continue;
        }
        match start(id, page) {
            Start::Done => {}
            Start::Failed => crate::println!("ebb: processor {id} does not start: it is left out"),
            Start::Lost => {
                // It may go on at any time with what would be the next one's.
                crate::println!("ebb: processor {id} does not come up: it is left out, and so are those behind it");
                break;
            }
        }
    }
    if is_ready {
        // SAFETY: all others have left the page; a late one is in real mode and does not use this mapping. Nothing else is ever mapped there.
        unsafe { kernel_map::unmap_page(DIRECT_MAP + page) };
    }
}

/// Waits for at most so many nanoseconds; whether it happened.
fn wait_for(nanoseconds: u64, happened: impl Fn() -> bool) -> bool {
    let end = tsc::nanoseconds() + nanoseconds;
    while !happened() {
        if tsc::nanoseconds() > end {
            return false;
        }
        core::hint::spin_loop();
    }
    true
}

/// What became of a core that was started.
enum Start {
    /// It runs.
    Done,
    /// It does not run, and never will.
    Failed,
    /// It took its stack, and was not heard of again.
    Lost,
}

/// Starts a core.
fn start(id: u32, page: usize) -> Start {
    let number = count();
    let Some(stack) = stacks::POOL.take() else { return Start::Failed };
    let block: &'static CoreBlock = Box::leak(Box::write(Box::new_uninit(), CoreBlock::new()));
    block.number.set(number);
    block.apic_id.set(id);
    BLOCK.store(core::ptr::from_ref(block).cast_mut(), Ordering::Release);
    STACK.store(stack.top(), Ordering::Release);
    let has_come = || STACK.load(Ordering::Acquire) == 0;
    // SAFETY: the core runs nothing yet; the page holds its first instructions.
    unsafe {
        apic::reset(id);
        wait_for(RESET_TIME, || false);
        apic::start(id, page);
        if !wait_for(START_TIME, has_come) {
            apic::start(id, page);
        }
    }
    if !wait_for(PATIENCE, has_come) && STACK.swap(0, Ordering::AcqRel) != 0 {
        // It never took the stack, and will not. (The block is left: firmware that says there is a core may be right later.)
        // SAFETY: nothing has run on it.
        unsafe { stacks::POOL.give(stack) };
        return Start::Failed;
    }
    // From here on the stack is the other core's, for ever.
    if !wait_for(PATIENCE, || READY.load(Ordering::Acquire) == number) {
        return Start::Lost;
    }
    if !tsc::agrees_with_other() {
        return Start::Failed;
    }
    core_block::enter(block);
    Start::Done
}

/// Another core, on its own stack.
pub(super) extern "C" fn start_other() -> ! {
    // SAFETY: the boot core has made the block for this core; the rest is what the boot core did for itself, in the same order.
    unsafe {
        let block = &*BLOCK.load(Ordering::Acquire);
        core_block::install(block);
        descriptors::load(block);
        features::enable();
    }
    features::set_core_number(core_number());
    apic::init_other();
    fpu::init();
    user_mode::init();
    READY.store(core_number(), Ordering::Release);
    tsc::compare();
    while !BEGUN.load(Ordering::Acquire) {
        instructions::wait_for_interrupt();
    }
    // One that was left out has no number of its own.
    match block_of(core_number()) {
        Some(block) if core::ptr::eq(block, core_block()) => run(),
        _ => instructions::halt_for_ever(),
    }
}

/// The kernel has begun: the other cores run tasks from now on.
pub fn begin() {
    BEGUN.store(true, Ordering::Release);
    for core in 1..count() {
        interrupt(core);
    }
}

/// Runs tasks on this core, for ever.
pub fn run() -> ! {
    // What a core writes with each task is on lines of its own.
    #[repr(align(64))]
    struct Apart(Worker);
    let stacks: &'static stacks::OfCore = Box::leak(Box::new(stacks::OfCore::new()));
    let worker: &'static Apart =
        Box::leak(Box::new(Apart(Worker::new(core_number(), config().tasks, stacks, &CoreHooks))));
    // SAFETY: the only call on this core; no Cx is on this stack.
    unsafe { worker.0.run() };
    // `CoreHooks::idle` never lets the loop end.
    unreachable!("the dispatch loop of a core ended")
}

/// Interrupts another core, which looks then what it has to run; false if it is this one.
pub fn interrupt(core: usize) -> bool {
    if core == core_number() {
        return false;
    }
    if let Some(block) = block_of(core) {
        apic::interrupt(block.apic_id.get(), apic::RESCHEDULE_VECTOR);
    }
    true
}

/// What a core asks of others, and others of it.
#[repr(align(64))]
pub struct Requests {
    /// The cores that have asked for something that was not done yet.
    inbox: SharedCoreSet,
    /// What this core asks: see [`Forget`].
    root: AtomicU32,
    generation: AtomicU64,
    start: AtomicUsize,
    end: AtomicUsize,
    /// The cores that have not done it yet.
    pending: SharedCoreSet,
    /// How often this core has done what others asked.
    answered: AtomicU64,
}

const _: () = assert!(MAX_CORES <= core_set::LIMIT, "a set has room for each core");

impl Requests {
    pub(super) const fn new() -> Self {
        Requests {
            inbox: SharedCoreSet::new(),
            root: AtomicU32::new(0),
            generation: AtomicU64::new(0),
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            pending: SharedCoreSet::new(),
            answered: AtomicU64::new(0),
        }
    }
}

/// Has other cores forget something, and waits until all have. This core is not among them.
pub fn ask(cores: CoreSet, what: Forget) {
    let own = &core_block().requests;
    own.root.store(what.root, Ordering::Relaxed);
    own.generation.store(what.generation, Ordering::Relaxed);
    own.start.store(what.start, Ordering::Relaxed);
    own.end.store(what.end, Ordering::Relaxed);
    own.pending.set(cores);
    let me = core_number();
    for core in cores.iter() {
        match block_of(core) {
            Some(block) => {
                block.requests.inbox.insert(me);
                apic::interrupt(block.apic_id.get(), apic::REQUEST_VECTOR);
            }
            None => own.pending.remove(core),
        }
    }
    let mut wait = refs::Wait::new();
    while !own.pending.is_empty() {
        wait.spin(0);
    }
}

/// How often a core has forgotten what others asked it to.
pub fn answered(core: usize) -> u64 {
    block_of(core).map_or(0, |block| block.requests.answered.load(Ordering::Relaxed))
}

/// Does what other cores ask of this one.
pub fn answer() {
    let inbox = &core_block().requests.inbox;
    if inbox.is_empty() {
        return;
    }
    let me = core_number();
    for core in inbox.take().iter() {
        let Some(block) = block_of(core) else { continue };
        let asked = &block.requests;
        let what = Forget {
            root: asked.root.load(Ordering::Relaxed),
            generation: asked.generation.load(Ordering::Relaxed),
            start: asked.start.load(Ordering::Relaxed),
            end: asked.end.load(Ordering::Relaxed),
        };
        mm::forget(what, core_block().idles.get());
        let answered = &core_block().requests.answered;
        answered.store(answered.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        asked.pending.remove(me);
    }
}
