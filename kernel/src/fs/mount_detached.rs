//! Trees of mounts that are nowhere: what fsmount(2) makes, and open_tree(2) with OPEN_TREE_CLONE.
//!
//! The table of mounts owns the mounts; a description ([`TreeFile`]) has the tree. When its last descriptor is closed while the tree is still nowhere the mounts are taken out of the table, some at a
//! time; nobody waits for it. Where a description ends in another way than by being closed (in a message that nobody received) a task does it. move_mount(2) gives the tree a place, and its end is then that of other
//! mounts.

use alloc::boxed::Box;
use alloc::collections::LinkedList;
use core::sync::atomic::{AtomicBool, Ordering};

use frame::Cx;
use refs::{SpinLock, StrongRc, WaitList, Waker};
use tasks::{Body, Next};

use super::mount_use::MountUse;
use super::{Events, File, FileEnd, Location, MOUNTS, Mount, OpenFile, OpenFlags, Path};
use crate::error::{Errno, Result};
use crate::reclaim::{Held, OfMountTree, Payer};
use crate::sched::{self, Parameters};

/// So many mounts are taken out at a time.
const AT_A_TIME: usize = 32;

/// Trees whose descriptions have ended with mounts in them, by their numbers.
static LEFT: SpinLock<LinkedList<u32>> = SpinLock::new(LinkedList::new());
static WORK: WaitList = WaitList::new();

/// A descriptor that has a tree of mounts; else it is as one that is only a place (O_PATH).
///
/// Owner: its description. Its end takes the mounts out of the table, in steps.
pub struct TreeFile {
    /// The number of the tree.
    number: u32,
    /// What is charged for its mounts.
    held: SpinLock<OfMountTree>,
    /// Nothing is left of the tree.
    is_over: AtomicBool,
}

impl TreeFile {
    /// A description of a mount that is nowhere yet.
    ///
    /// # Errors
    /// ENOSPC: there are too many mounts. ENOMEM.
    pub fn of_mount(mount: StrongRc<Mount>, payer: &Payer, cx: &Cx) -> Result<OpenFile> {
        let mut held = OfMountTree::of(payer);
        let location = Location { mount: MountUse::from(mount.share()), inode: mount.get(cx).root.share() };
        let number = MOUNTS.enter_detached(mount, &mut held, cx)?;
        Ok(Self::open(number, held, location))
    }

    /// A description of a copy of what is mounted at a place, with all that is mounted below it where it `is_recursive`.
    ///
    /// # Errors
    /// EINVAL: its mount cannot be bound or is in no tree. ENOENT: it was removed. ENOSPC: there are too many mounts. ENOMEM.
    pub fn of_copy(from: &Path<'_>, is_recursive: bool, payer: &Payer, cx: &Cx) -> Result<OpenFile> {
        let mut held = OfMountTree::of(payer);
        let first = MOUNTS.copy_detached(from, is_recursive, &mut held, cx)?;
        let location = Location { mount: MountUse::of(&first).ok_or(Errno::ENOENT)?, inode: first.root.share() };
        Ok(Self::open(first.id, held, location))
    }

    fn open(number: u32, held: OfMountTree, location: Location) -> OpenFile {
        start();
        let file = TreeFile { number, held: SpinLock::new(held), is_over: AtomicBool::new(false) };
        OpenFile::at(Box::new(file), OpenFlags::PATH, location)
    }
}

impl File for TreeFile {
    fn end(&self) -> FileEnd {
        FileEnd::Seen
    }

    fn class(&self) -> Held {
        Held::File
    }

    /// To poll(2) it is as if it were not open.
    fn poll(&self, _interest: Events, _waker: Option<Waker>, _cx: &Cx) -> Events {
        Events::INVALID
    }

    fn has_parts(&self) -> bool {
        true
    }

    fn release(&self, cx: &Cx) -> bool {
        let gone = MOUNTS.dissolve(self.number, AT_A_TIME, cx);
        self.held.lock(cx).remove(Held::Mount, gone as u32);
        self.is_over.store(gone < AT_A_TIME, Ordering::Relaxed);
        gone == AT_A_TIME
    }
}

impl Drop for TreeFile {
    fn drop(&mut self) {
        if !*self.is_over.get_mut() {
            LEFT.with(|left| left.push_back(self.number));
            WORK.wake_all();
        }
    }
}

/// Starts the task, the first time there is such a tree.
fn start() {
    static IS_STARTED: AtomicBool = AtomicBool::new(false);
    if IS_STARTED.swap(true, Ordering::Relaxed) {
        return;
    }
    let task = Box::new(Dissolver);
    tasks::spawn(&sched::SCHEDULER, task, |words, _| sched::initialise(words, Parameters::default(), None));
}

/// The task that dissolves what is left.
struct Dissolver;

impl Body for Dissolver {
    fn run_async(&mut self, cx: &mut Cx) -> Next {
        let waker = tasks::prepare(cx);
        WORK.register(waker, cx);
        let first = LEFT.lock(cx).front().copied();
        let Some(number) = first else {
            tasks::park_async(cx);
            return Next::Again;
        };
        tasks::finish_wait(cx);
        if MOUNTS.dissolve(number, AT_A_TIME, cx) < AT_A_TIME {
            LEFT.lock(cx).pop_front();
        }
        Next::Again
    }
}
