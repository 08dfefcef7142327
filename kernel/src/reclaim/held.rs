//! [`Held`]: the classes of what a workload can hold whose end takes time, each with what it costs.

use core::fmt::{self, Write};

use groups::{Class, Cost, classes};

classes! {
    /// What a workload can hold whose end takes time.
    ///
    /// Each costs what the end of one may take at most, in nanoseconds of a processor that executes an instruction in each: at least half as much again as the most that was measured, of objects
    /// of the class as full as they can be (`make bench-groups`, `ebb-fuzz kills`). A [calibration](super::Calibration) says how much slower this machine is.
    ///
    /// The classes of a [container](super::Holdings) follow each other.
    pub enum Held {
        /// The kill of a group: finding its processes, and telling who waits.
        Group = Cost::eager(60_000),
        /// A group below another one.
        Subgroup = Cost::eager(1_500),
        /// A process, without its threads; an address space of up to 256 pages and 64 VMAs, and [`FREE_MAPPINGS`](crate::memory::FREE_MAPPINGS) mappings of objects.
        Process = Cost::eager(60_000),
        /// A thread.
        Thread = Cost::eager(12_000),
        /// A POSIX timer; some semaphores that get something back (SEM_UNDO).
        Timer = Cost::eager(3_000),
        /// A VMA that shows a file or shared memory, which may go with it.
        Mapping = Cost::eager(3_000),
        /// A descriptor that a call has reserved for a file which it has not made yet. It becomes one of the next classes, none of which costs more.
        Reserved = Cost::eager(8_000),
        /// 64 numbers of a table of descriptors, whether they are in use or not.
        Table = Cost::eager(100),
        /// A descriptor of a file, a directory, a device or a place in the tree; the file may go with it.
        File = Cost::eager(4_000),
        /// A descriptor of an eventfd, a signalfd, a timerfd, a pidfd.
        Event = Cost::eager(3_000),
        /// A descriptor of one end of a pipe, which may be full.
        Pipe = Cost::eager(5_000),
        /// A descriptor of a port to the host.
        Port = Cost::eager(8_000),
        /// A descriptor of an input device, with the events that nobody has read.
        Input = Cost::eager(6_000),
        /// A descriptor of an end of a terminal.
        Terminal = Cost::eager(5_000),
        /// A descriptor of an epoll set.
        EpollSet = Cost::eager(3_000),
        /// A descriptor of a socket, or a connection that waits to be accepted.
        Socket = Cost::eager(8_000),
        /// A message in a socket that nobody has received, or a piece of a stream.
        Message = Cost::eager(600),
        /// A descriptor in a message that nobody has received.
        InFlight = Cost::eager(8_000),
        /// A file in an epoll set.
        EpollItem = Cost::eager(300),
        /// What an inotify instance watches.
        Watch = Cost::eager(1_200),
        /// Up to 64 events of an inotify instance that nobody has read.
        Unread = Cost::eager(9_000),
        /// A mount of a tree that is nowhere, which a descriptor has.
        Mount = Cost::eager(6_000),
        /// A connection with another machine, with full buffers: it is reset.
        Connection = Cost::eager(60_000),
    }
}

/// What a class is called in `reclaim.stat`: its name, as words in lower case with `_` between them.
pub struct Name(pub Held);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.name().chars().enumerate().try_for_each(|(at, letter)| {
            if at > 0 && letter.is_ascii_uppercase() {
                f.write_char('_')?;
            }
            f.write_char(letter.to_ascii_lowercase())
        })
    }
}

/// What an object of a class is assumed to cost as long as nothing was measured, in nanoseconds.
pub fn assumed(class: Held) -> u64 {
    class.assumed().eager
}

/// Whether a class is one that [`Held::Reserved`] may become.
#[cfg(test)]
fn is_descriptor(class: Held) -> bool {
    use Held::*;
    matches!(class, File | Event | Pipe | Port | Input | Socket | Terminal | EpollSet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_called_as_it_is_named() {
        let names = [Held::Process, Held::EpollSet, Held::InFlight].map(|class| alloc::format!("{}", Name(class)));
        assert_eq!(names, ["process", "epoll_set", "in_flight"]);
    }

    #[test]
    fn a_reserved_descriptor_costs_as_much_as_any_that_it_may_become() {
        for &class in Held::ALL.iter().filter(|&&class| is_descriptor(class)) {
            assert!(assumed(class) <= assumed(Held::Reserved), "{class:?}");
            // A table of descriptors can hold it.
            assert!((Held::Reserved as usize..=Held::Socket as usize).contains(&(class as usize)), "{class:?}");
        }
    }
}
