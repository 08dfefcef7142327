//! What is left of address spaces that have ended: pages, page tables and VMAs that nobody can reach any more.
//!
//! The end of a large address space takes the same time however large it is: its objects (files, shared memory) are given up, because others see that; all else is
//! handed over here as a whole. The memory counts as free from then on ([`owed`]), and is:
//!
//! | who | takes |
//! | --- | --- |
//! | an allocation that finds no free frame ([`recover`]) | the pages of one table, at most 512, and goes on |
//! | a call that makes a kernel object, and whoever would end a program for want of memory ([`settle_some`]) | pieces of VMAs as well |
//! | a task of the lowest class | the rest, a few pieces at a time |
//!
//! So what an end leaves undone is paid for by who uses the memory next, some ten instructions for each page, as zeroing it is; and nobody waits for more than a piece.
//!
//! Owner: the lists here, and for a piece of VMAs whoever frees it. Each piece takes some thousand instructions. Nobody waits for the end of remains.
//!
//! Locks: `REMAINS` is taken by allocations, with any lock but the frames' own held. So nothing is allocated, and nothing of the heap's freed, while it is.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicUsize, Ordering};

use frame::Cx;
use frame::mm::{DetachedPages, PAGE_SIZE, Recovery};
use refs::{SpinLock, WaitList};
use tasks::{Body, Next};

use super::backing::Backing;
use super::vma::{Vma, VmaMap};
use crate::sched::{self, Class, Parameters};

/// So many pieces are taken apart before others have their turn: some ten thousand instructions.
const PIECES_AT_A_TIME: usize = 4;
/// So many chunks of VMAs are a piece.
const CHUNKS_AT_A_TIME: usize = 16;
/// So many pieces are taken apart by who finds that there is no memory.
const PIECES_IN_NEED: usize = 64;

/// The remains of one address space.
struct Remains {
    pages: Option<DetachedPages>,
    /// So many frames at least come back with the pages that are left.
    owed: usize,
    vmas: VmaMap<Backing>,
    next: Option<Box<Remains>>,
}

/// All of them, the last first.
struct Lists {
    with_pages: Option<Box<Remains>>,
    without_pages: Option<Box<Remains>>,
}

static REMAINS: SpinLock<Lists> = SpinLock::new(Lists { with_pages: None, without_pages: None });

/// Frames that come back with pages.
static OWED: AtomicUsize = AtomicUsize::new(0);
/// VMAs whose memory comes back.
static VMAS: AtomicUsize = AtomicUsize::new(0);
/// The task waits here.
static WORK: WaitList = WaitList::new();

/// How many frames come back at least, pages and VMAs.
pub fn owed() -> usize {
    OWED.load(Ordering::Relaxed) + VMAS.load(Ordering::Relaxed) * size_of::<Vma<Backing>>() / PAGE_SIZE
}

/// Takes over what is left of an address space: of its pages at least `owed` frames come back. None of the VMAs shows an object.
pub(super) fn leave(pages: DetachedPages, owed: usize, vmas: VmaMap<Backing>) {
    OWED.fetch_add(owed, Ordering::Relaxed);
    VMAS.fetch_add(vmas.len(), Ordering::Relaxed);
    let mut remains = Box::new(Remains { pages: Some(pages), owed, vmas, next: None });
    REMAINS.with(|lists| {
        remains.next = lists.with_pages.take();
        lists.with_pages = Some(remains);
    });
    WORK.wake_all();
}

/// Gives back the pages of one table; whether there were any. The heap is left alone: it may be the one that asks.
fn recover() -> bool {
    REMAINS.with(|lists| {
        let Some(remains) = &mut lists.with_pages else { return false };
        if let Some(pages) = remains.pages.as_mut().and_then(DetachedPages::give_back) {
            // And the table itself. What the pages share with others does not come back; so at the end more may be owed than was here.
            let paid = (pages + 1).min(remains.owed);
            remains.owed -= paid;
            OWED.fetch_sub(paid, Ordering::Relaxed);
            return true;
        }
        remains.pages = None;
        OWED.fetch_sub(core::mem::take(&mut remains.owed), Ordering::Relaxed);
        if let Some(mut remains) = lists.with_pages.take() {
            lists.with_pages = remains.next.take();
            remains.next = lists.without_pages.take();
            lists.without_pages = Some(remains);
        }
        true
    })
}

/// Frees some VMAs; whether there were any.
fn free_vmas() -> bool {
    let first = REMAINS.with(|lists| {
        let mut first = lists.without_pages.take()?;
        lists.without_pages = first.next.take();
        Some(first)
    });
    let Some(mut remains) = first else { return false };
    for _ in 0..CHUNKS_AT_A_TIME {
        let Some(chunk) = remains.vmas.pop_chunk() else { return true };
        VMAS.fetch_sub(chunk.len(), Ordering::Relaxed);
    }
    REMAINS.with(|lists| {
        remains.next = lists.without_pages.take();
        lists.without_pages = Some(remains);
    });
    true
}

/// Takes a piece apart; whether there was one.
fn settle_piece() -> bool {
    recover() || free_vmas()
}

/// Takes some pieces apart, where memory is needed; whether there were any. The caller holds no lock of the heap's.
#[cold]
pub fn settle_some() -> bool {
    (0..PIECES_IN_NEED).take_while(|_| settle_piece()).count() > 0
}

/// Has allocations ask here, and starts the task that takes the rest apart. Called once, before the first process.
pub fn start() {
    frame::mm::recover_by(Recovery { owed, recover });
    let parameters = Parameters { class: Class::Idle, ..Parameters::default() };
    tasks::spawn(&sched::SCHEDULER, Box::new(Settler), |words, _| sched::initialise(words, parameters, None));
}

/// The task.
struct Settler;

impl Body for Settler {
    fn run_async(&mut self, cx: &mut Cx) -> Next {
        loop {
            let waker = tasks::prepare(cx);
            WORK.register(waker, cx);
            if settle_piece() {
                tasks::finish_wait(cx);
                (1..PIECES_AT_A_TIME).take_while(|_| settle_piece()).count();
                return Next::Again;
            }
            tasks::park_async(cx);
        }
    }
}
