//! Memory that goes back to the host (virtio-balloon, 5.5).
//!
//! | what | who begins | how |
//! | --- | --- | --- |
//! | *reporting* | the guest | the device is told of large blocks that are free; the host takes the memory behind them back until they are used again ([`reporting`]) |
//! | *the balloon* | the host | the driver takes so many frames out of use as the device's configuration says, and names them; it may have them back when the host says so, or when there is no memory and the device has agreed to that ([`inflation`]) |
//! | *statistics* | the host | how much memory is free |
//!
//! The device of QEMU 7.2 has no interrupts that are messages, and answers before the write to its doorbell is over. So the driver looks right after it has told the device, and from time to time besides.
//!
//! Owner: the device lives for ever. Frames in the balloon are the driver's, lent to the device; a block that is reported is the driver's until the device has answered. Of a device that breaks the rules nothing comes back but by the
//! rules of [`frame::dma`]: it is cut off first.
//!
//! Frames are named to the device by addresses that only `frame` makes. With an IOMMU the device reaches what it is told of, and nothing else; but what the host takes back is its own matter.

mod inflation;
mod reporting;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;

use frame::Cx;
use frame::pci::Interrupt;
use refs::{SpinLock, WaitList};
use tasks::StaticRef;

use self::inflation::{Inflation, Statistics};
use self::reporting::Reporting;
use super::pci::{NO_VECTOR, Transport};
use super::queue::Broken;
use super::service::{self, Attached, Bell, Interrupted, Serve};
use crate::memory;
use crate::sched::{Class, Parameters};

/// The type of device, and the number that such devices had before version 1.
const KIND: u16 = 5;
const OLD_NUMBER: u16 = 0x1002;

/// Features (5.5.3).
const STATISTICS: u64 = 1 << 1;
const DEFLATE_WITHOUT_MEMORY: u64 = 1 << 2;
const HINTS: u64 = 1 << 3;
const REPORTING: u64 = 1 << 5;
const WANTED: u64 = STATISTICS | DEFLATE_WITHOUT_MEMORY | REPORTING;

/// Configuration (5.5.4): how many pages the balloon should have, and how many it has.
const WANTED_PAGES: usize = 0;
const ACTUAL_PAGES: usize = 4;

/// How often the driver looks what has changed, in nanoseconds: what was freed is reported so long afterwards, and it is so little work that an idle machine stays so.
const LOOKS_AFTER: u64 = 500_000_000;

/// A device.
struct Balloon {
    attached: Attached,
    inflation: SpinLock<Inflation>,
    statistics: Option<SpinLock<Statistics>>,
    reporting: Option<SpinLock<Reporting>>,
    /// Where the two tasks wait.
    keeping: WaitList,
    reports: WaitList,
    _interrupt: Option<Interrupt>,
}

static BALLOON: StaticRef<Balloon> = StaticRef::none();

/// Claims the first such device, if there is one, and starts its tasks.
pub fn start() {
    let Some(claimed) = Transport::claim(KIND, OLD_NUMBER, WANTED) else { return };
    let balloon = match claimed.and_then(Balloon::new) {
        Ok(balloon) => balloon,
        Err(why) => {
            crate::log!("the virtual balloon cannot be used: {why}");
            return;
        }
    };
    BALLOON.set(Some(balloon));
    memory::ask_for_more_by(give_back_for_want);
    service::start(Keeper(balloon), Parameters::default());
    if balloon.reporting.is_some() {
        service::start(Reporter(balloon), Parameters { class: Class::Idle, ..Parameters::default() });
    }
}

/// There is no memory, and somebody will be ended for it: takes back what the device was told of and has answered, and some frames out of the balloon; whether there was any.
fn give_back_for_want(cx: &Cx) -> bool {
    BALLOON.get().is_some_and(|balloon| balloon.take_back_for_want(cx) || balloon.deflate_for_want(cx))
}

impl Balloon {
    fn new(transport: Transport) -> core::result::Result<&'static Self, &'static str> {
        Self::with_queues(transport).ok_or("it lacks a queue, or there is no memory for them")
    }

    fn with_queues(transport: Transport) -> Option<&'static Self> {
        let bell = Bell::new()?;
        // Interrupts are told of all; with none the tasks look by themselves.
        let interrupt = bell.interrupt(&transport, 0, 0);
        let entry = if interrupt.is_some() { 0 } else { NO_VECTOR };
        transport.tell_of_config(entry);
        let inflation =
            Inflation::new(transport.queue(0, 1, entry)?, transport.queue(1, 1, entry)?, transport.domain())?;
        // Whether there is a queue goes by what is offered (5.5.2).
        let mut next = 2;
        let mut number = |feature| {
            let number = next;
            next += u16::from(transport.offers(feature));
            number
        };
        let (for_statistics, _, for_reporting) = (number(STATISTICS), number(HINTS), number(REPORTING));
        let mut statistics = None;
        if transport.has(STATISTICS) {
            statistics = Some(Statistics::new(transport.queue(for_statistics, 1, entry)?, transport.domain())?);
        }
        let mut reporting = None;
        if transport.has(REPORTING) {
            let queue = transport.queue(for_reporting, reporting::AT_ONCE, entry)?;
            reporting = Some(SpinLock::new(Reporting::new(queue)));
        }
        bell.hear_of_faults(&transport);
        transport.begin();
        if let Some(statistics) = &mut statistics {
            statistics.offer();
        }
        let balloon: &'static Balloon = Box::leak(Box::new(Balloon {
            attached: Attached::new(transport, "the virtual balloon"),
            inflation: SpinLock::new(inflation),
            statistics: statistics.map(SpinLock::new),
            reporting,
            keeping: WaitList::new(),
            reports: WaitList::new(),
            _interrupt: interrupt,
        }));
        bell.lead_to(balloon);
        Some(balloon)
    }

    /// How many pages the balloon should have.
    fn wanted_pages(&self) -> usize {
        self.attached.transport().read_config(|window| window.read::<u32>(WANTED_PAGES)) as usize
    }

    /// Tells the device how many pages the balloon has. Before anybody else changes that, so that what is told last is true.
    fn tell_actual(&self, inflation: &Inflation) {
        self.attached.transport().write_config(ACTUAL_PAGES, inflation.pages() as u32);
    }

    /// Takes back what was reported, which else the task does that runs when nobody else wants to.
    fn take_back_for_want(&self, cx: &Cx) -> bool {
        let Some(mut reporting) = self.reporting.as_ref().and_then(|reporting| reporting.try_lock(cx)) else {
            return false;
        };
        if self.attached.is_gone() {
            return false;
        }
        match reporting.take_back() {
            Ok(has_some) => has_some,
            Err(Broken) => {
                drop(reporting);
                self.give_up(cx);
                false
            }
        }
    }

    fn deflate_for_want(&self, cx: &Cx) -> bool {
        if !self.attached.transport().has(DEFLATE_WITHOUT_MEMORY) {
            return false;
        }
        // Who has the lock is inflating, perhaps, and finds no memory either.
        let Some(mut inflation) = self.inflation.try_lock(cx) else { return false };
        if self.attached.is_gone() {
            return false;
        }
        match inflation.deflate_for_want(self.wanted_pages()) {
            Ok(has_some) => {
                if has_some {
                    self.tell_actual(&inflation);
                }
                has_some
            }
            Err(Broken) => {
                drop(inflation);
                self.give_up(cx);
                false
            }
        }
    }

    fn give_up(&self, cx: &Cx) {
        if !self.attached.cut_off() {
            return;
        }
        // It reaches no memory any more, so what it had is free.
        self.inflation.lock(cx).abandon();
        if let Some(reporting) = &self.reporting {
            reporting.lock(cx).abandon();
        }
    }
}

impl Interrupted for Balloon {
    fn interrupted(&self) {
        self.keeping.wake_all();
        self.reports.wake_all();
    }
}

/// The task that does what the host says.
struct Keeper(&'static Balloon);

impl Serve for Keeper {
    fn attached(&self) -> &Attached {
        &self.0.attached
    }

    fn waiters(&self) -> &WaitList {
        &self.0.keeping
    }

    fn work(&self, cx: &Cx) -> core::result::Result<bool, Broken> {
        if let Some(statistics) = &self.0.statistics {
            statistics.lock(cx).answer()?;
        }
        let wanted = self.0.wanted_pages();
        let mut inflation = self.0.inflation.lock(cx);
        if self.0.attached.is_gone() {
            return Ok(false);
        }
        let before = inflation.pages();
        let goes_on = inflation.approach(wanted)?;
        if inflation.pages() != before {
            self.0.tell_actual(&inflation);
        }
        Ok(goes_on)
    }

    fn give_up(&self, cx: &Cx) {
        self.0.give_up(cx);
    }

    fn looks_again_after(&self) -> Option<u64> {
        Some(LOOKS_AFTER)
    }
}

/// The task that reports what is free.
struct Reporter(&'static Balloon);

impl Serve for Reporter {
    fn attached(&self) -> &Attached {
        &self.0.attached
    }

    fn waiters(&self) -> &WaitList {
        &self.0.reports
    }

    fn work(&self, cx: &Cx) -> core::result::Result<bool, Broken> {
        let Some(reporting) = &self.0.reporting else { return Ok(false) };
        if reporting.lock(cx).must_gather() {
            // A page table that a core keeps at hand is all that is in use of the 2 MiB that it mapped, mostly.
            frame::mm::gather();
        }
        let mut reporting = reporting.lock(cx);
        if self.0.attached.is_gone() {
            return Ok(false);
        }
        reporting.report(&self.0.attached)
    }

    fn give_up(&self, cx: &Cx) {
        self.0.give_up(cx);
    }

    fn looks_again_after(&self) -> Option<u64> {
        Some(LOOKS_AFTER)
    }
}
