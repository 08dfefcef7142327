//! The IOMMU (Intel Virtualization Technology for Directed I/O, architecture specification 4.1): a device reaches the memory that it was given, and no other (invariant 6).
//!
//! | file | what it holds |
//! | --- | --- |
//! | `tables` | [`Tables`]: which frames one device may reach |
//! | `unit` | a remapping unit: its registers, its queue of invalidations, the faults that it records |
//! | `interrupts` | the table through which interrupts go |
//! | `machine` | all units of the machine, the table that says which device has which tables, and what becomes of a fault |
//! | this one | [`Translation`]: what a device's [`Domain`](crate::dma::Domain) asks of all that |
//!
//! *Addresses.* A frame has the same address for a device that may reach it as it has for a processor. So nothing has to be allocated to lend a frame, and a frame that is lent to a device twice has one
//! entry, which counts how often. Devices may write where they may read.
//!
//! *When.* The units are set up when the first driver claims a device, so a machine without drivers pays nothing. From then on whatever no driver has claimed reaches no memory.
//! A frame is forgotten by the units before its owner has it back: [`Translation::unmap`] returns when they say so.
//!
//! *All units are told the same*: one table of devices, one number for each domain. A unit sees its own devices only, so it does not matter which those are, and the firmware's list of them is not needed.
//! A device behind a conventional bridge shares its number with its neighbours there; it gets no translation, and so no driver.
//!
//! *Interrupts.* Where all units can, a device's messages and the lines of the machine's controller go through a table (`interrupts`). The units' own messages, of faults, do not.

// Nobody has an IOMMU on a host.
#![cfg_attr(not(target_os = "none"), allow(dead_code))]

#[cfg(target_os = "none")]
mod interrupts;
#[cfg(target_os = "none")]
mod machine;
mod tables;
#[cfg(target_os = "none")]
mod unit;

use refs::SpinLock;

use crate::mm::FrameNumber;

#[cfg(target_os = "none")]
pub(crate) use machine::{attach, cut_off, forget_message, init, is_on, message};
pub(crate) use tables::Tables;

/// So many pages are forgotten one by one; of more, all of the device's.
const MOST_PAGES: usize = 8;

/// What the units must forget of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forget<'a> {
    /// These pages.
    Pages(&'a [FrameNumber]),
    /// All.
    All,
}

/// What came of lending frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lending {
    /// The device reaches all of them.
    All,
    /// It reaches none: there is no memory for a table, or they are out of its reach.
    Nothing,
    /// The same, but it reached some for a moment, and the units do not say that they have forgotten that. They must not be used for anything else.
    Unknown,
}

/// What one device may reach. It lives for ever.
pub(crate) struct Translation {
    id: u16,
    tables: SpinLock<Tables>,
    /// Whether units may remember that there was nothing.
    remembers_absence: bool,
    /// Has all units forget something of the domain of that number; whether they say that they have.
    forget: fn(u16, Forget<'_>) -> bool,
}

impl Translation {
    pub(crate) const fn new(
        id: u16,
        tables: Tables,
        remembers_absence: bool,
        forget: fn(u16, Forget<'_>) -> bool,
    ) -> Self {
        Translation { id, tables: SpinLock::new(tables), remembers_absence, forget }
    }

    /// Lets the device reach frames, all of them or none.
    pub(crate) fn map(&self, frames: impl Iterator<Item = FrameNumber> + Clone + Send + Sync) -> Lending {
        let (mapped, is_all) = self.tables.with(|tables| {
            let mapped = frames.clone().take_while(|frame| tables.map(*frame)).count();
            let is_all = frames.clone().nth(mapped).is_none();
            if !is_all {
                frames.take(mapped).for_each(|frame| _ = tables.unmap(frame));
            }
            (mapped, is_all)
        });
        if is_all {
            if self.remembers_absence {
                // What they do not forget the device does not reach, which is all that comes of it.
                (self.forget)(self.id, Forget::All);
            }
            return Lending::All;
        }
        // Entries that were there for a moment may be remembered.
        let is_forgotten = mapped == 0 || (self.forget)(self.id, Forget::All);
        if is_forgotten { Lending::Nothing } else { Lending::Unknown }
    }

    /// Takes frames from the device that it was let to; whether the units have forgotten them. If not, they must not be used for anything else.
    pub(crate) fn unmap(&self, frames: impl Iterator<Item = FrameNumber> + Send) -> bool {
        let (mut pages, mut count) = ([FrameNumber(0); MOST_PAGES], 0);
        self.tables.with(|tables| {
            for frame in frames.filter(|frame| tables.unmap(*frame)) {
                if let Some(page) = pages.get_mut(count) {
                    *page = frame;
                }
                count += 1;
            }
        });
        match pages.get(..count) {
            Some([]) => true,
            Some(pages) => (self.forget)(self.id, Forget::Pages(pages)),
            None => (self.forget)(self.id, Forget::All),
        }
    }
}
