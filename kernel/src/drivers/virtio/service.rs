//! What all drivers of virtual devices do alike: which interrupt wakes whom, the task that takes out what a device has done, and the end of a device that breaks the rules.
//!
//! ```text
//!   interrupt --number--> INTERRUPTED --> a wait list, or a driver's own Interrupted --> Service's task --> Serve::work
//! ```
//!
//! An interrupt's handler is told a number. [`Bell`] is such a number, and what is woken by it stands in one table for all drivers. Whatever takes longer than a wake-up is done by a task, which [`start`] makes of a [`Serve`]:
//! it works until there is nothing to do, a bounded piece at a time, and waits for the next interrupt.
//!
//! Owner: devices live for ever, and with them their bells, what these lead to, and their tasks. A device that says what cannot be, or that an IOMMU has stopped, is [cut off](Attached::cut_off) once; its task sleeps from then on.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use frame::Cx;
use frame::dma::Domain;
use frame::irq::IrqCx;
use frame::pci::Interrupt;
use refs::{SpinLock, WaitList};
use tasks::{Body, Next, StaticRef};

use super::pci::Transport;
use super::queue::{Broken, Queue};
use crate::sched::{self, Parameters};
use crate::time::{self, Timeline};

/// So many requests are taken out of a queue before others have their turn.
pub const AT_ONCE: usize = 16;

/// What an interrupt leads to. It only wakes.
pub trait Interrupted: Sync {
    /// The device has done something, or an IOMMU has stopped it; at times nothing has happened.
    fn interrupted(&self);
}

impl Interrupted for WaitList {
    fn interrupted(&self) {
        self.wake_all();
    }
}

/// So many interrupts all virtual devices have together. (Those of all tests are in one process.)
const MOST_BELLS: usize = if cfg!(test) { 2048 } else { 512 };

/// What is woken, on the heap: a name for it has two words, and it is found by one.
struct Target(&'static dyn Interrupted);

static INTERRUPTED: [StaticRef<Target>; MOST_BELLS] = [const { StaticRef::none() }; MOST_BELLS];
static BELLS: AtomicUsize = AtomicUsize::new(0);

fn interrupted(_irq: &IrqCx, number: usize) {
    if let Some(target) = INTERRUPTED.get(number).and_then(StaticRef::get) {
        target.0.interrupted();
    }
}

/// A number for interrupts, and what they lead to.
#[derive(Debug)]
pub struct Bell {
    number: usize,
}

impl Bell {
    /// One that leads to nothing yet; `None` if there are too many. It is never given back.
    pub fn new() -> Option<Self> {
        let number = BELLS.fetch_add(1, Ordering::Relaxed);
        (number < MOST_BELLS).then_some(Bell { number })
    }

    /// One that wakes who waits in a list, which lives for ever.
    pub fn with_waiters() -> Option<(Self, &'static WaitList)> {
        let bell = Self::new()?;
        let waiters: &'static WaitList = Box::leak(Box::new(WaitList::new()));
        bell.lead_to(waiters);
        Some((bell, waiters))
    }

    /// From now on it leads there.
    pub fn lead_to(&self, target: &'static dyn Interrupted) {
        INTERRUPTED[self.number].set(Some(Box::leak(Box::new(Target(target)))));
    }

    /// Has the device's interrupt of entry `entry` ring it, on a core. `None` if the device has no such interrupt, it is in use, or there are no vectors left.
    pub fn interrupt(&self, transport: &Transport, entry: u16, core: usize) -> Option<Interrupt> {
        transport.interrupt(entry, core, interrupted, self.number)
    }

    /// Has it rung when an IOMMU has stopped the device.
    pub fn hear_of_faults(&self, transport: &Transport) {
        transport.on_fault(interrupted, self.number);
    }
}

/// A device that a driver uses, until it is cut off.
pub struct Attached {
    transport: Transport,
    /// What the kernel's log calls it.
    what: &'static str,
    is_gone: AtomicBool,
}

impl Attached {
    /// A device that can be used.
    pub fn new(transport: Transport, what: &'static str) -> Self {
        Attached { transport, what, is_gone: AtomicBool::new(false) }
    }

    /// The way to its registers.
    pub fn transport(&self) -> &Transport {
        &self.transport
    }

    /// What it reaches in memory.
    pub fn domain(&self) -> &'static Domain {
        self.transport.domain()
    }

    /// Whether it was cut off. Who asks this with a queue's lock held, and then adds to the queue, has nothing forgotten there: its rest is taken out afterwards, under the same lock.
    pub fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::SeqCst)
    }

    /// The device has said what cannot be: it does not reach memory any more, which the log says. Whether this is the first time: then the caller sees to it that all that is under way fails.
    pub fn cut_off(&self) -> bool {
        if self.is_gone.swap(true, Ordering::SeqCst) {
            return false;
        }
        crate::log!("{} at {} breaks the rules: it is cut off", self.what, self.transport.place());
        self.transport.fail();
        true
    }

    /// Whether what the device says is worth nothing, because an IOMMU has stopped it. One that was stopped may say that all went well.
    pub fn has_faulted(&self) -> bool {
        self.domain().has_faulted()
    }
}

/// What a task does for a device, or for one of its queues.
pub trait Serve: Send + 'static {
    /// The device.
    fn attached(&self) -> &Attached;

    /// Where the task waits: it is woken when there may be something to do.
    fn waiters(&self) -> &WaitList;

    /// Does what there is to do, or a piece of it; whether there was anything. If not, whatever happens next wakes the task.
    ///
    /// # Errors
    /// The device says what cannot be.
    fn work(&self, cx: &Cx) -> Result<bool, Broken>;

    /// Cuts the device off. All that it had to do fails, and so does what comes.
    fn give_up(&self, cx: &Cx);

    /// When the task looks again though nobody has woken it, in nanoseconds from now; `None`: never. For devices that have no interrupts, and for what no interrupt tells.
    fn looks_again_after(&self) -> Option<u64> {
        None
    }
}

/// Starts a task that serves.
pub fn start(serve: impl Serve, parameters: Parameters) {
    tasks::spawn(&sched::SCHEDULER, Box::new(Service(serve)), |words, _| sched::initialise(words, parameters, None));
}

/// One turn of a task that serves: whether there was anything to do.
pub fn serve(serve: &impl Serve, cx: &Cx) -> bool {
    if serve.attached().is_gone() {
        return false;
    }
    let outcome = if serve.attached().has_faulted() { Err(Broken) } else { serve.work(cx) };
    outcome.unwrap_or_else(|Broken| {
        serve.give_up(cx);
        false
    })
}

struct Service<S>(S);

impl<S: Serve> Body for Service<S> {
    fn run_async(&mut self, cx: &mut Cx) -> Next {
        loop {
            let waker = tasks::prepare(cx);
            self.0.waiters().register(waker, cx);
            if serve(&self.0, cx) {
                tasks::finish_wait(cx);
                return Next::Again;
            }
            let after = if self.0.attached().is_gone() { None } else { self.0.looks_again_after() };
            let alarm = after.map(|after| time::wake_at(Timeline::Boot, Timeline::Boot.now() + after, waker, cx));
            tasks::park_async(cx);
            drop(alarm);
        }
    }
}

/// What a queue of requests has beside it, all of it under one lock.
pub trait Ring: Send {
    /// What the device works on.
    type Request: Send;

    /// The queue.
    fn queue(&mut self) -> &mut Queue<Self::Request>;
}

/// Takes out requests that the device has done, [some](AT_ONCE) at most; whether there were any. `judge` is told a request, its slot, and how many bytes the device says that it wrote (`u32::MAX`: more than it was
/// given), with the lock held; `tell` passes on what comes of that, with no lock held.
///
/// # Errors
/// The device says what cannot be.
pub fn take_done<R: Ring, D>(
    attached: &Attached,
    ring: &SpinLock<R>,
    judge: impl Fn(&R, R::Request, usize, u32) -> D,
    mut tell: impl FnMut(D),
    cx: &Cx,
) -> Result<bool, Broken> {
    let mut was_busy = false;
    for _ in 0..AT_ONCE {
        let mut guard = ring.lock(cx);
        if attached.is_gone() {
            break;
        }
        match guard.queue().pop()? {
            Some((request, slot, written)) => {
                let done = judge(&guard, request, slot, written);
                drop(guard);
                was_busy = true;
                tell(done);
            }
            None if !guard.queue().ask_to_be_told() => break,
            None => was_busy = true,
        }
    }
    Ok(was_busy)
}
