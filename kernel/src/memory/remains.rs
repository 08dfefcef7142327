//! What is left of large address spaces that have ended, of the pages of large objects, and of tables of descriptors: pages, page tables, VMAs, files that nobody can reach any more.
//!
//! The end of a large address space takes the same time however large it is: its objects (files, shared memory) are given up, because others see that; all else is
//! handed over here as a whole. So are the pages of a file or of shared memory that is gone. The memory counts as free from then on ([`owed`]), and is:
//!
//! | who | takes |
//! | --- | --- |
//! | an allocation that finds no free frame ([`recover`]) | some hundred pages at most, and goes on |
//! | a call that makes a kernel object, and whoever would end a program for want of memory ([`settle_some`]) | the lists and VMAs as well, in pieces |
//! | the same, where that does not do ([`end_objects`]) | objects that have destructors, in pieces; their memory is there behind the caller's next suspension |
//! | a task of the lowest class | the rest, a piece at a time |
//!
//! So what an end leaves undone is paid for by who uses the memory next, some ten instructions for each page, as zeroing it is; and nobody waits for more than a piece.
//!
//! Owner: the lists here, and for a piece of what has no pages any more whoever frees it. A piece takes some ten thousand instructions. Nobody waits for the end of remains.
//!
//! Locks: `REMAINS` is taken by allocations, with any lock but the frames' own held. So nothing is allocated, and nothing of the heap's freed, while it is.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicUsize, Ordering};

use frame::Cx;
use frame::mm::{PAGE_SIZE, Recovery};
use refs::{SpinLock, WaitList};
use tasks::{Body, Next};

use crate::block::cache;
use crate::sched::{self, Class, Parameters};

/// So many pieces are taken apart by who finds that there is no memory, before others may have their turn: where the pages are charged to a group, each takes some 80,000
/// instructions.
const PIECES_IN_NEED: usize = 2;

/// While others are ready the task takes a piece apart, then they have so many slices: what it does is needed by nobody who waits for it.
const SLICES_BETWEEN: u64 = 128;

/// What takes time to give back.
pub trait Remainder: Send {
    /// Gives some pages back, up to some hundred; how many, or `None` once there are none. It neither allocates nor frees anything of the heap's: it may be the heap that
    /// asks.
    fn give_back(&mut self) -> Option<usize>;

    /// Frees a piece of what is left without pages: how many bytes, or `None` once there is nothing, or nothing worth a piece.
    fn free_piece(&mut self) -> Option<usize>;
}

/// Whose pages something has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PagesOf {
    /// It maps them, and others may have them as well. They come back first: those of an object are free once no page table has them, and are not owed any more then.
    Others,
    /// They are its own.
    Itself,
}

/// The remains of one thing.
struct Remains<R: ?Sized = dyn Remainder> {
    /// So many frames at least come back with the pages that are left.
    frames: usize,
    /// So many bytes come back behind them.
    bytes: usize,
    next: Option<Box<Remains>>,
    what: R,
}

/// A list, the last first.
#[derive(Default)]
struct List(Option<Box<Remains>>);

impl List {
    fn push(&mut self, mut remains: Box<Remains>) {
        remains.next = self.0.take();
        self.0 = Some(remains);
    }

    fn pop(&mut self) -> Option<Box<Remains>> {
        let mut first = self.0.take()?;
        self.0 = first.next.take();
        Some(first)
    }
}

/// All of them.
struct Lists {
    /// With pages that they map.
    maps: List,
    /// With pages of their own.
    owns: List,
    without_pages: List,
    /// With destructors: what these give back is there only when all cores have passed a suspension.
    objects: List,
}

static REMAINS: SpinLock<Lists> =
    SpinLock::new(Lists { maps: List(None), owns: List(None), without_pages: List(None), objects: List(None) });

/// Frames that come back with pages.
static FRAMES: AtomicUsize = AtomicUsize::new(0);
/// Bytes of the heap that come back behind them.
static BYTES: AtomicUsize = AtomicUsize::new(0);
/// Bytes of the heap that come back with objects.
static OBJECT_BYTES: AtomicUsize = AtomicUsize::new(0);
/// The task waits here.
static WORK: WaitList = WaitList::new();

/// How many frames come back at least.
pub fn owed() -> usize {
    owed_at_once() + OBJECT_BYTES.load(Ordering::Relaxed) / PAGE_SIZE
}

/// How many come back without anybody's suspension.
pub fn owed_at_once() -> usize {
    FRAMES.load(Ordering::Relaxed)
        + BYTES.load(Ordering::Relaxed) / PAGE_SIZE
        + frame::spare_frames()
        + cache::clean_pages()
}

/// Takes something over: of its pages at least so many `frames` come back, and of the rest so many `bytes`.
pub(super) fn leave(what: impl Remainder + 'static, pages: PagesOf, frames: usize, bytes: usize) {
    gather(what, pages, frames, bytes);
    WORK.wake_all();
}

/// The same, of one of many things: who needs memory takes it apart at once, the task when it is [told](announce).
pub(super) fn gather(what: impl Remainder + 'static, pages: PagesOf, frames: usize, bytes: usize) {
    FRAMES.fetch_add(frames, Ordering::Relaxed);
    BYTES.fetch_add(bytes, Ordering::Relaxed);
    let remains: Box<Remains> = Box::new(Remains { frames, bytes, next: None, what });
    REMAINS.with(|lists| match pages {
        PagesOf::Others => lists.maps.push(remains),
        PagesOf::Itself => lists.owns.push(remains),
    });
}

/// Takes over what has neither pages nor destructors that give anything up: so many `bytes` of the heap's.
pub fn leave_heap(what: impl Remainder + 'static, bytes: usize) {
    gather_heap(what, bytes);
    WORK.wake_all();
}

/// The same, of one of many things: who needs memory takes it apart at once, the task when it is [told](announce).
pub fn gather_heap(what: impl Remainder + 'static, bytes: usize) {
    BYTES.fetch_add(bytes, Ordering::Relaxed);
    let remains: Box<Remains> = Box::new(Remains { frames: 0, bytes, next: None, what });
    REMAINS.with(|lists| lists.without_pages.push(remains));
}

/// Takes over objects that have destructors, with which so many `bytes` come back at least.
pub fn leave_objects(what: impl Remainder + 'static, bytes: usize) {
    OBJECT_BYTES.fetch_add(bytes, Ordering::Relaxed);
    push_objects(what, bytes);
    announce();
}

fn push_objects(what: impl Remainder + 'static, bytes: usize) {
    let remains: Box<Remains> = Box::new(Remains { frames: 0, bytes, next: None, what });
    REMAINS.with(|lists| lists.objects.push(remains));
}

/// Takes over objects that come one by one, each with as many bytes as are [owed](owe_objects) with it: who needs memory ends them at once, the task when it is [told](announce).
pub fn gather_objects(what: impl Remainder + 'static) {
    push_objects(what, 0);
}

/// Tells the task that there are remains.
pub fn announce() {
    WORK.wake_all();
}

/// So many bytes more come back with objects that are [gathered](gather_objects).
pub fn owe_objects(bytes: usize) {
    OBJECT_BYTES.fetch_add(bytes, Ordering::Relaxed);
}

/// So many bytes that were [owed](owe_objects) have come back.
pub fn pay_objects(bytes: usize) {
    OBJECT_BYTES.fetch_sub(bytes, Ordering::Relaxed);
}

/// Gives some pages back; whether there were any. The heap is left alone: it may be the one that asks.
fn recover() -> bool {
    recover_kept() || cache::give_back()
}

/// As [`recover`], but leaves the page cache, which is of use where it is.
fn recover_kept() -> bool {
    recover_pages() || frame::give_spare_back()
}

fn recover_pages() -> bool {
    REMAINS.with(|lists| {
        let list = if lists.maps.0.is_some() { &mut lists.maps } else { &mut lists.owns };
        let Some(remains) = &mut list.0 else { return false };
        if let Some(pages) = remains.what.give_back() {
            // What the pages share with others does not come back; so at the end more may be owed than was here.
            pay(&FRAMES, &mut remains.frames, pages);
            return true;
        }
        pay(&FRAMES, &mut remains.frames, usize::MAX);
        if let Some(remains) = list.pop() {
            lists.without_pages.push(remains);
        }
        true
    })
}

/// So much of what is owed has come back, or that was all.
fn pay(all: &AtomicUsize, owed: &mut usize, paid: usize) {
    let paid = paid.min(*owed);
    *owed -= paid;
    all.fetch_sub(paid, Ordering::Relaxed);
}

/// Frees a piece of what has no pages; whether there was one.
fn free_piece() -> bool {
    free_piece_of(|lists| &mut lists.without_pages, &BYTES)
}

/// Ends some objects, where memory is needed and nothing else gives any back; whether there were some. Their memory can be used once the caller has suspended.
#[cold]
pub fn end_objects() -> bool {
    free_piece_of(|lists| &mut lists.objects, &OBJECT_BYTES)
}

fn free_piece_of(list: fn(&mut Lists) -> &mut List, owed: &AtomicUsize) -> bool {
    let Some(mut remains) = REMAINS.with(|lists| list(lists).pop()) else { return false };
    match remains.what.free_piece() {
        Some(bytes) => {
            pay(owed, &mut remains.bytes, bytes);
            REMAINS.with(|lists| list(lists).push(remains));
        }
        None => pay(owed, &mut remains.bytes, usize::MAX),
    }
    true
}

/// Takes a piece apart; whether there was one.
fn settle_piece() -> bool {
    recover_kept() || free_piece()
}

/// Takes some pieces apart, where memory is needed; whether there were any. The caller holds no lock of the heap's.
#[cold]
pub fn settle_some() -> bool {
    (0..PIECES_IN_NEED).take_while(|_| settle_piece() || cache::give_back()).count() > 0
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
            if settle_piece() || end_objects() {
                tasks::finish_wait(cx);
                sched::let_pass(SLICES_BETWEEN, cx);
                return Next::Again;
            }
            tasks::park_async(cx);
        }
    }
}
