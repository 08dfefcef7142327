//! [`Usage`]: what was used, for wait4(2), getrusage(2) and times(2).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::time::clock::TimeVal;

/// What a thread, a process or its children have used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user mode, in nanoseconds.
    pub user: u64,
    /// CPU time in the kernel, in nanoseconds.
    pub system: u64,
    /// Page faults that needed no device.
    pub minor_faults: u64,
    /// Page faults that waited for a device.
    pub major_faults: u64,
    /// How often it waited.
    pub voluntary_switches: u64,
    /// How often it was made to give way.
    pub involuntary_switches: u64,
    /// The largest resident set, in KiB.
    pub max_resident: u64,
}

/// `struct rusage`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs)]
pub struct RUsage {
    pub user: TimeVal,
    pub system: TimeVal,
    pub max_resident: i64,
    pub unused_memory: [i64; 3],
    pub minor_faults: i64,
    pub major_faults: i64,
    pub unused_io: [i64; 6],
    pub voluntary_switches: i64,
    pub involuntary_switches: i64,
}

impl Usage {
    /// Adds another one's; the largest resident set is the larger one.
    pub fn add(&mut self, other: &Usage) {
        self.user += other.user;
        self.system += other.system;
        self.minor_faults += other.minor_faults;
        self.major_faults += other.major_faults;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
        self.max_resident = self.max_resident.max(other.max_resident);
    }

    /// As a program sees it.
    pub fn encode(&self) -> RUsage {
        RUsage {
            user: TimeVal::from_nanoseconds(self.user),
            system: TimeVal::from_nanoseconds(self.system),
            max_resident: self.max_resident as i64,
            unused_memory: [0; 3],
            minor_faults: self.minor_faults as i64,
            major_faults: self.major_faults as i64,
            unused_io: [0; 6],
            voluntary_switches: self.voluntary_switches as i64,
            involuntary_switches: self.involuntary_switches as i64,
        }
    }
}
