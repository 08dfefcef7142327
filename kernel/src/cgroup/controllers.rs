//! [`Controllers`]: which there are. What one keeps of a group is a field of [`Cgroup`], its files are a row of `FILES` in `fs::cgroup`.

use bitflags::bitflags;

use super::{Cgroup, Cpu, Memory, Reclaim};
use crate::error::Result;

bitflags! {
    /// Some controllers.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Controllers: u32 {
        /// How much of the processor a group gets, and has had.
        const CPU = 1;
        /// How many processes and threads there may be.
        const PIDS = 2;
        /// How much memory there may be.
        const MEMORY = 4;
        /// How long the end of a group may take.
        const RECLAIM = 8;
        /// Those that can tell the threads of one process apart: they bear processes beside groups below them.
        const THREADED = Self::CPU.bits() | Self::PIDS.bits();
    }
}

/// A controller.
pub struct Controller {
    /// Its name in `cgroup.controllers`.
    pub name: &'static str,
    /// Its bit.
    pub bit: Controllers,
    /// It is enabled for a group, by the parent's `cgroup.subtree_control`, or the group was made where it is. The tree is locked. Where that fails (ENOMEM) nothing has changed.
    pub begin: fn(&Cgroup) -> Result<()>,
    /// It is disabled for a group again, or the group was removed. The tree is locked.
    pub end: fn(&Cgroup),
}

/// All of them, in the order in which they are listed.
pub const CONTROLLERS: &[Controller] = &[
    Controller { name: "cpu", bit: Controllers::CPU, begin: Cpu::begin, end: |group| group.cpu.end() },
    Controller { name: "memory", bit: Controllers::MEMORY, begin: Memory::begin, end: |group| group.memory.end() },
    Controller {
        name: "pids",
        bit: Controllers::PIDS,
        begin: |group| {
            group.pids.begin();
            Ok(())
        },
        end: |group| group.pids.reset(),
    },
    Controller { name: "reclaim", bit: Controllers::RECLAIM, begin: Reclaim::begin, end: |group| group.reclaim.end() },
];

impl Controllers {
    /// The controller of that name.
    pub fn named(name: &[u8]) -> Option<Self> {
        CONTROLLERS.iter().find(|controller| controller.name.as_bytes() == name).map(|controller| controller.bit)
    }

    /// Enables them for a group; all or, where there is no memory, none.
    pub(super) fn begin(self, group: &Cgroup) -> Result<()> {
        for (nth, controller) in self.each().enumerate() {
            if let Err(error) = (controller.begin)(group) {
                self.each().take(nth).for_each(|begun| (begun.end)(group));
                return Err(error);
            }
        }
        Ok(())
    }

    /// Disables them for a group.
    pub(super) fn end(self, group: &Cgroup) {
        self.each().for_each(|controller| (controller.end)(group));
    }

    /// Those among them, in the order in which they are listed.
    pub fn each(self) -> impl Iterator<Item = &'static Controller> {
        CONTROLLERS.iter().filter(move |controller| self.contains(controller.bit))
    }
}
