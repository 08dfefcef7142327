//! What everything costs when it must go: classes of kernel objects, and who is charged for those that a container holds.
//!
//! Whoever is killed with a control group gives back what it held in a time that was agreed before. For that each object is charged when it is made with what its end takes,
//! and is refused where that would exceed the budget of a group ([`groups::Tree`] does the arithmetic). This room says what the classes are ([`Held`]), and keeps for
//! each container what is in it and what of that is charged ([`Holdings`]):
//!
//! | container | holds | its owner's lock |
//! | --- | --- | --- |
//! | a process's membership of its group | the process, its threads, its POSIX timers | `membership` |
//! | a table of descriptors | its descriptors, by the kind of file | `handles` |
//! | an address space | mappings of objects (files, shared memory) | `layout` |
//! | an epoll set | what it watches | `set` |
//! | an inotify instance | what it watches, what nobody has read | `state` |
//! | a socket's inbox | messages, descriptors in them, connections that were not accepted | `inbox` |
//! | a connection with another machine | itself | `state` |
//!
//! What has no class takes the same time however much it is: pages, page tables, anonymous VMAs, and the pages of files (see [`crate::memory::remains`]).
//!
//! A container is charged to one [`Payer`], the budget of the group of the process that it was made for; where no group above has a budget that is nobody, and then nothing is asked.
//! It holds up to two charges more than objects of a class (one in eight, if that is more), so that who opens and closes in turn does not ask the tree each time.
//!
//! Two ways of charging: what may be refused is charged before it is made ([`Holdings::add`]); what was there before it came under a budget (a process that is moved) is charged whatever the
//! bound is ([`Holdings::move_to`]), and then nothing more is admitted until less is in use.
//!
//! Locks: the tree's own, which is taken with the container's held; nothing is called under it.

mod held;
mod holdings;
mod payer;
mod speed;

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU64, Ordering};

use frame::Cx;
use groups::{Budget, Denied, Tree};
use refs::{WaitList, Waker};
use tasks::StaticRef;

pub use held::{Held, Name, assumed};
pub use holdings::Holdings;
pub use payer::{Keeper, Payer, give_all_kept_back};
pub use speed::{Calibration, is_calibrated};

/// A process, its threads and its POSIX timers.
pub type OfProcess = Holdings<{ Held::Process as usize }, 3>;
/// Mappings of objects.
pub type OfMemory = Holdings<{ Held::Mapping as usize }, 1>;
/// Descriptors, and what a table of them has room for.
pub type OfDescriptors = Holdings<{ Held::Reserved as usize }, { holdings::DESCRIPTORS }>;
/// Connections, messages, and descriptors in them.
pub type OfInbox = Holdings<{ Held::Socket as usize }, 3>;
/// What an inotify instance watches, and what nobody has read of it.
pub type OfInotify = Holdings<{ Held::Watch as usize }, 2>;
/// What an epoll set watches.
pub type OfEpollSet = Holdings<{ Held::EpollItem as usize }, 1>;
/// A connection with another machine.
pub type OfConnection = Holdings<{ Held::Connection as usize }, 1>;
/// The mounts of a tree that is nowhere.
pub type OfMountTree = Holdings<{ Held::Mount as usize }, 1>;

static TREE: StaticRef<Tree<Held>> = StaticRef::none();

/// All budgets; `None` before the start.
pub fn tree() -> Option<&'static Tree<Held>> {
    TREE.get()
}

/// How often something was refused, by any budget.
static DENIALS: AtomicU64 = AtomicU64::new(0);
/// Who waits for the next time.
static WATCHERS: WaitList = WaitList::new();

/// Something was refused for good: all that could be given back for it was.
#[cold]
pub fn note_denied(budget: Option<Budget<'static, Held>>, denied: Denied) {
    if let Some(budget) = budget {
        budget.count_refusal(denied);
    }
    DENIALS.fetch_add(1, Ordering::SeqCst);
    WATCHERS.wake_all();
}

/// How often something was refused, by any budget. With a waker: it is woken the next time.
pub fn denials(waker: Option<Waker>, cx: &Cx) -> u64 {
    if let Some(waker) = waker {
        WATCHERS.register(waker, cx);
    }
    DENIALS.load(Ordering::SeqCst)
}

/// Makes the tree of budgets. At boot.
pub fn start() {
    TREE.set(Some(Box::leak(Box::new(Tree::new()))));
}
