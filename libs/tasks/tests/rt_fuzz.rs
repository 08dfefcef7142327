//! Random programs over the safe API of `tasks::rt`: names, ids, aborts, cancellation, nested blocks, locks, handles, panics; memory that tasks
//! borrow has canaries in it. (`rt_model.rs` has fewer operations and says of each who runs next.)
//!
//! `EBB_SEEDS=FIRST..END` says which; `EBB_TRACE=1` says what each does.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use tasks::rt::sync::{Condvar, Lock, Semaphore};
use tasks::rt::{self, AweRef, Cx, Id, Scope, Waker};

mod random;
use random::{Random, abort_on_failure, seeds};

const ON_PURPOSE: &str = "on purpose";
const CANARY: u64 = 0x00c0_ffee;

/// What a program's tasks have in common.
struct World {
    random: Random,
    names: RefCell<Vec<AweRef>>,
    wakers: RefCell<Vec<Waker>>,
    ids: RefCell<Vec<Id>>,
    semaphore: Semaphore,
    lock: Lock<u64>,
    condvar: Condvar,
    /// Whether a task has the lock.
    locked: Cell<bool>,
    /// How many tasks may still be started.
    budget: Cell<i64>,
    /// How many bodies have begun and not ended.
    inside: Cell<i64>,
    /// All are to end: nobody waits for ever from here on.
    ending: Cell<bool>,
    traces: bool,
}

impl World {
    fn new(seed: u64) -> Self {
        World {
            random: Random::new(seed),
            names: RefCell::default(),
            wakers: RefCell::default(),
            ids: RefCell::default(),
            semaphore: Semaphore::new(1),
            lock: Lock::new(0),
            condvar: Condvar::new(),
            locked: Cell::new(false),
            budget: Cell::new(60),
            inside: Cell::new(0),
            ending: Cell::new(false),
            traces: std::env::var_os("EBB_TRACE").is_some(),
        }
    }

    fn below(&self, limit: u64) -> u64 {
        self.random.below(limit)
    }

    fn one_in(&self, chances: u64) -> bool {
        self.below(chances) == 0
    }

    fn any<T: Copy>(&self, of: &RefCell<Vec<T>>) -> Option<T> {
        let of = of.borrow();
        if of.is_empty() { None } else { Some(of[self.below(of.len() as u64) as usize]) }
    }

    fn name(&self) -> Option<AweRef> {
        self.any(&self.names)
    }

    fn id(&self) -> Option<Id> {
        self.any(&self.ids)
    }

    /// Something that may wait for ever is allowed.
    fn may_wait(&self) -> bool {
        !self.ending.get()
    }

    fn may_start(&self) -> bool {
        let may = self.budget.get() > 0 && !self.ending.get();
        self.budget.set(self.budget.get() - i64::from(may));
        may
    }
}

fn is_whole(canary: &[u64; 8]) {
    assert!(canary.iter().all(|word| *word == CANARY), "a canary has died: {canary:x?}");
}

/// Suspends in its destructor.
struct Suspends<'a>(&'a mut Cx, &'a [u64; 8]);

impl Drop for Suspends<'_> {
    fn drop(&mut self) {
        rt::yield_async(self.0);
        is_whole(self.1);
    }
}

/// Calls what it holds when it is dropped, by unwinding too.
struct AtEnd<F: FnMut()>(F);

impl<F: FnMut()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Counts a body as long as it is there, and lets others name its task.
fn enter<'a>(world: &'a World, cx: &Cx) -> AtEnd<impl FnMut() + 'a> {
    world.inside.set(world.inside.get() + 1);
    world.names.borrow_mut().push(rt::current(cx));
    AtEnd(|| world.inside.set(world.inside.get() - 1))
}

fn body_async<'s, 'w: 's>(world: &'w World, scope: &'s Scope<'s, '_>, depth: u32, cx: &mut Cx) {
    let _inside = enter(world, cx);
    let canary = [CANARY; 8];
    for _ in 0..world.below(12) {
        step_async(world, scope, depth, &canary, cx);
    }
    is_whole(&canary);
}

fn step_async<'s, 'w: 's>(world: &'w World, scope: &'s Scope<'s, '_>, depth: u32, canary: &[u64; 8], cx: &mut Cx) {
    is_whole(canary);
    let step = world.below(31);
    if world.traces {
        eprintln!("{:?} step {step}", rt::current(cx));
    }
    match step {
        0 | 1 => rt::yield_async(cx),
        2 if world.may_wait() => rt::suspend_async(cx),
        3 => _ = world.name().map(AweRef::schedule),
        4 => _ = world.name().map(AweRef::schedule_back),
        5 => _ = world.name().map(|name| rt::yield_to_async(cx, name)),
        6 if world.may_wait() => _ = world.name().map(|name| rt::hand_over_async(cx, name)),
        7 if world.one_in(3) => _ = world.name().map(|name| rt::abort_async(cx, name)),
        8 => {
            world.wakers.borrow_mut().push(rt::prepare(cx));
            if world.may_wait() {
                rt::park_async(cx);
            } else {
                rt::finish_wait(cx);
            }
        }
        9 => {
            let waker = world.wakers.borrow_mut().pop();
            waker.map(Waker::wake);
        }
        10 => world.semaphore.v(),
        11 if world.may_wait() => _ = world.semaphore.p_x_async(cx),
        12 => lock_async(world, cx),
        13 => _ = world.condvar.signal(),
        14 => world.ids.borrow_mut().push(Id::create(cx).expect("fewer than 65,536")),
        15 => _ = world.id().map(|id| rt::yield_and_save_async(cx, id)),
        16 if world.may_wait() => _ = world.id().map(|id| rt::yield_and_save_no_dispatch_async(cx, id)),
        17 => _ = world.id().map(|id| rt::yield_to_id_async(cx, id)),
        18 if world.may_wait() => {
            if let (Some(to), Some(from)) = (world.id(), world.id()) {
                let _ = rt::yield_to_id_and_save_no_dispatch_async(cx, to, from);
            }
        }
        19 => _ = world.id().map(|id| id.set(cx, world.name())),
        20 if world.one_in(4) => {
            if let Some(id) = world.id() {
                let _ = id.remove(cx);
                world.ids.borrow_mut().retain(|other| *other != id);
            }
        }
        21..=23 if world.may_start() => match world.below(3) {
            0 => scope.spawn_eager_async(cx, move |cx| body_async(world, scope, depth + 1, cx)),
            _ => scope.spawn_async(cx, move |cx| body_async(world, scope, depth + 1, cx)),
        },
        24 | 25 if depth < 6 && world.may_start() => block_async(world, depth, cx),
        26 => item_async(world, cx),
        27 => scope.cancel_async(cx),
        28 => {
            let local = [CANARY; 8];
            let suspends = Suspends(cx, &local);
            rt::yield_async(suspends.0);
        }
        29 if world.may_start() => {
            let mut handle = scope.spawn_with_handle_async(cx, move |cx| {
                body_async(world, scope, depth + 1, cx);
                [CANARY; 8]
            });
            if world.may_wait()
                && let Ok(Ok(value)) = handle.join_x_async(cx)
            {
                is_whole(&value);
            }
        }
        30 if world.one_in(20) => resume_unwind(Box::new(ON_PURPOSE)),
        _ => {}
    }
}

fn lock_async(world: &World, cx: &mut Cx) {
    let mut guard = world.lock.lock_async(cx);
    assert!(!world.locked.replace(true), "two tasks have the lock");
    *guard += 1;
    let unlocked = AtEnd(|| world.locked.set(false));
    if world.one_in(2) {
        rt::yield_async(cx);
    }
    drop(unlocked);
    if world.one_in(4) && world.may_wait() {
        let _ = world.condvar.wait_x_async(cx, &mut guard);
    }
}

fn block_async(world: &World, depth: u32, cx: &mut Cx) {
    let local = [CANARY; 8];
    let shielded = world.one_in(3);
    let inside = |cx: &mut Cx| {
        let body = |scope: &Scope<'_, '_>, cx: &mut Cx| {
            if world.one_in(3) {
                scope.cancel_async(cx);
            }
            if world.one_in(6) {
                resume_unwind(Box::new(ON_PURPOSE));
            }
        };
        macro_rules! with_tasks {
            ($finish_async:path) => {
                $finish_async(cx, |scope, cx| {
                    for _ in 0..world.below(3) {
                        let local = &local;
                        scope.spawn_async(cx, move |cx| {
                            let _inside = enter(world, cx);
                            for _ in 0..world.below(6) {
                                step_async(world, scope, depth + 2, local, cx);
                            }
                        });
                    }
                    body(scope, cx);
                })
            };
        }
        if shielded { with_tasks!(rt::finish_shielded_async) } else { with_tasks!(rt::finish_async) }
    };
    let result = catch_unwind(AssertUnwindSafe(|| inside(cx)));
    is_whole(&local);
    if let Err(payload) = result
        && payload.is::<rt::Aborted>()
    {
        resume_unwind(payload);
    }
}

fn item_async(world: &World, cx: &mut Cx) {
    let local = [CANARY; 8];
    let begun = Cell::new(false);
    let ended = Cell::new(false);
    let action = |cx: &mut Cx| {
        is_whole(&local);
        begun.set(true);
        let _ended = AtEnd(|| ended.set(true));
        rt::yield_async(cx);
        is_whole(&local);
    };
    rt::on_cancel_async(cx, action, |item, cx| {
        let _ = rt::yield_x_async(cx);
        if world.one_in(3) {
            item.remove();
        }
        if world.may_wait() {
            let _ = rt::suspend_x_async(cx);
        }
    });
    assert_eq!(begun.get(), ended.get(), "whoever made an item goes on behind it while it runs");
}

/// Lets the others run for a while, then sees to it that all end.
fn reap_async(world: &World, cx: &mut Cx) {
    for _ in 0..200 {
        rt::yield_async(cx);
    }
    world.ending.set(true);
    for _ in 0..20_000 {
        rt::yield_async(cx);
        for name in world.names.borrow().clone() {
            let _ = name.schedule_back();
        }
        for waker in world.wakers.take() {
            waker.wake();
        }
        world.semaphore.v();
        world.condvar.broadcast();
        if world.inside.get() == 0 {
            return;
        }
    }
    panic!("{} tasks do not end", world.inside.get());
}

fn run(seed: u64) {
    let world = World::new(seed);
    let result = catch_unwind(AssertUnwindSafe(|| {
        rt::run(|cx| {
            rt::finish_async(cx, |scope, cx| {
                let world = &world;
                scope.spawn_async(cx, |cx| reap_async(world, cx));
                for _ in 0..4 {
                    scope.spawn_async(cx, move |cx| body_async(world, scope, 0, cx));
                }
            });
        });
    }));
    if let Err(payload) = result
        && !payload.is::<rt::Aborted>()
        && payload.downcast_ref() != Some(&ON_PURPOSE)
    {
        resume_unwind(payload);
    }
}

#[test]
fn random_programs_leave_what_their_tasks_borrow_alone_and_end() {
    abort_on_failure();
    for seed in seeds(1..2_001) {
        run(seed);
    }
}
