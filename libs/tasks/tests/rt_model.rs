//! Random trees of tasks (spawned, eagerly spawned, in blocks of their own; which yield, suspend, resume each other, cancel and are
//! aborted), beside a model that says after each operation which task runs. The model is the documentation's sentences as code.
//!
//! `EBB_SEEDS=FIRST..END` says which.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use tasks::rt::{self, AweRef, Canceled, Cx, Scope, Waker};

mod random;
use random::{Random, abort_on_failure, seeds};

/// What the model knows of a task.
#[derive(Clone, Debug)]
struct Task {
    state: State,
    /// Who called it, as long as it is attached.
    caller: Option<usize>,
    /// The block that it was started in.
    home: usize,
    /// The block that it is in.
    block: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It runs, or has called a task that has not suspended.
    Active,
    Queued,
    /// It waits for its name; a request ends that if it `hears`.
    Suspended {
        hears: bool,
    },
    /// It waits for its waker.
    Parked {
        hears: bool,
    },
    /// It waits for the tasks of a block.
    Finishing,
    Ended,
}

#[derive(Debug)]
struct Block {
    outer: Option<usize>,
    shielded: bool,
    requested: bool,
    /// Tasks that were detached and have not ended.
    detached: usize,
    waiter: Option<usize>,
    /// Waits that a request is to end, latest last.
    items: Vec<usize>,
    /// Blocks inside that are linked, latest last.
    inner: Vec<usize>,
    linked: bool,
}

/// Who may run next.
struct Model {
    tasks: Vec<Task>,
    blocks: Vec<Block>,
    queue: VecDeque<usize>,
    running: usize,
}

impl Model {
    fn new() -> Self {
        let mut model = Model { tasks: Vec::new(), blocks: Vec::new(), queue: VecDeque::new(), running: 0 };
        model.blocks.push(Block::inside(None, false));
        model.tasks.push(Task { state: State::Active, caller: None, home: 0, block: 0 });
        model
    }

    fn me(&mut self) -> &mut Task {
        &mut self.tasks[self.running]
    }

    /// The running task leaves its caller: that goes on as if its call had returned.
    fn detach(&mut self, task: usize) -> Option<usize> {
        let caller = self.tasks[task].caller.take()?;
        self.blocks[self.tasks[task].home].detached += 1;
        Some(caller)
    }

    /// All who have called it are queued, those further out further in front.
    fn detach_all(&mut self, task: usize, except: Option<usize>) {
        let mut task = task;
        while let Some(caller) = self.detach(task) {
            if Some(caller) != except {
                self.push_front(caller);
            }
            task = caller;
        }
    }

    fn push_front(&mut self, task: usize) {
        self.tasks[task].state = State::Queued;
        self.queue.push_front(task);
    }

    fn push_back(&mut self, task: usize) {
        self.tasks[task].state = State::Queued;
        self.queue.push_back(task);
    }

    fn run(&mut self, task: usize) {
        self.tasks[task].state = State::Active;
        self.running = task;
    }

    /// The running task has got another state: who called it goes on, or else the first in the queue.
    fn next(&mut self) {
        let next = self.detach(self.running).or_else(|| self.queue.pop_front());
        self.run(next.expect("somebody can run"));
    }

    fn spawn(&mut self, block: usize, eager: bool) -> usize {
        let (child, me) = (self.tasks.len(), self.running);
        self.tasks.push(Task { state: State::Active, caller: (!eager).then_some(me), home: block, block });
        if eager {
            self.blocks[block].detached += 1;
            self.detach_all(me, None);
            self.push_front(me);
        }
        self.running = child;
        child
    }

    fn end(&mut self) {
        let me = self.running;
        self.me().state = State::Ended;
        if let Some(caller) = self.tasks[me].caller {
            return self.run(caller);
        }
        let block = &mut self.blocks[self.tasks[me].home];
        block.detached -= 1;
        let waiter = if block.detached == 0 { block.waiter.take() } else { None };
        let next = waiter.or_else(|| self.queue.pop_front());
        self.run(next.expect("somebody can run"));
    }

    fn yield_now(&mut self) {
        let me = self.running;
        match self.detach(me) {
            Some(caller) => {
                self.push_back(me);
                self.run(caller);
            }
            None => {
                self.push_back(me);
                let next = self.queue.pop_front().expect("at least this one");
                self.run(next);
            }
        }
    }

    fn wait(&mut self, state: State) {
        self.me().state = state;
        self.next();
    }

    /// Whether it was suspended.
    fn schedule(&mut self, task: usize, front: bool) -> bool {
        let suspended = matches!(self.tasks[task].state, State::Suspended { .. });
        if suspended && front {
            self.push_front(task);
        } else if suspended {
            self.push_back(task);
        }
        suspended
    }

    fn wake(&mut self, task: usize) {
        assert!(matches!(self.tasks[task].state, State::Parked { .. }), "the waker says that it waits");
        self.push_back(task);
    }

    /// Whether it could be taken; the running task is then queued, or suspended.
    fn switch_to(&mut self, task: usize, queued: bool) -> bool {
        let me = self.running;
        let calls = match self.tasks[task].state {
            State::Suspended { .. } => false,
            State::Queued => {
                self.queue.retain(|other| *other != task);
                false
            }
            State::Active if task != me => true,
            _ => return false,
        };
        if queued {
            self.push_back(me);
        } else {
            self.me().state = State::Suspended { hears: false };
        }
        self.detach_all(me, calls.then_some(task));
        self.run(task);
        true
    }

    fn begin_block(&mut self, shielded: bool) -> usize {
        let (outer, block) = (self.me().block, self.blocks.len());
        self.blocks.push(Block::inside(Some(outer), shielded));
        self.me().block = block;
        block
    }

    /// The body of the running task's block has ended.
    fn end_block(&mut self, block: usize) {
        if self.blocks[block].detached != 0 {
            self.blocks[block].waiter = Some(self.running);
            self.wait(State::Finishing);
        }
    }

    /// The running task has left its block.
    fn leave_block(&mut self, block: usize) {
        assert_eq!(self.blocks[block].detached, 0, "a block ends when all in it has ended");
        let outer = self.blocks[block].outer.expect("the outermost is left by nobody");
        self.me().block = outer;
        self.blocks[outer].inner.retain(|inner| *inner != block);
    }

    fn is_requested(&self, block: usize) -> bool {
        let mut at = Some(block);
        while let Some(block) = at {
            let Block { requested, shielded, outer, .. } = &self.blocks[block];
            if *requested || *shielded {
                return *requested;
            }
            at = *outer;
        }
        false
    }

    /// The running task's wait is to be ended by a request.
    fn link_item(&mut self) {
        let (me, mut block) = (self.running, self.me().block);
        self.blocks[block].items.push(me);
        while !self.blocks[block].linked && !self.blocks[block].shielded {
            self.blocks[block].linked = true;
            let Some(outer) = self.blocks[block].outer else { break };
            self.blocks[outer].inner.push(block);
            block = outer;
        }
    }

    fn unlink_item(&mut self, task: usize) {
        for block in &mut self.blocks {
            block.items.retain(|item| *item != task);
        }
    }

    /// Ends the waits inside a block that hear of it: inner blocks before outer ones, of each the latest first.
    fn cancel(&mut self, block: usize) {
        self.blocks[block].requested = true;
        self.end_waits(block);
    }

    fn end_waits(&mut self, block: usize) {
        while let Some(inner) = self.blocks[block].inner.pop() {
            self.end_waits(inner);
            self.blocks[inner].linked = false;
        }
        while let Some(task) = self.blocks[block].items.pop() {
            if matches!(self.tasks[task].state, State::Suspended { hears: true } | State::Parked { hears: true }) {
                self.push_back(task);
            }
        }
    }

    /// The task is resumed at once, to unwind; the running one is queued behind all. False if it waits for a block, or has ended.
    fn abort(&mut self, task: usize) -> bool {
        let me = self.running;
        match self.tasks[task].state {
            State::Ended | State::Finishing => return false,
            State::Queued => self.queue.retain(|other| *other != task),
            State::Active => {
                self.detach_all(me, None);
                self.queue.retain(|other| *other != task);
            }
            State::Suspended { .. } | State::Parked { .. } => {}
        }
        self.detach_all(me, None);
        self.push_back(me);
        self.run(task);
        true
    }
}

impl Block {
    fn inside(outer: Option<usize>, shielded: bool) -> Self {
        Block {
            outer,
            shielded,
            requested: false,
            detached: 0,
            waiter: None,
            items: Vec::new(),
            inner: Vec::new(),
            linked: false,
        }
    }
}

/// What a program's tasks have in common.
struct World {
    random: Random,
    model: RefCell<Model>,
    /// By the model's numbers.
    names: RefCell<Vec<Option<AweRef>>>,
    wakers: RefCell<Vec<(usize, Waker)>>,
    budget: Cell<u32>,
    ending: Cell<bool>,
    steps: Cell<u64>,
    seed: u64,
}

impl World {
    fn below(&self, limit: u64) -> u64 {
        self.random.below(limit)
    }

    /// The model is told what the running task does.
    fn tell<R>(&self, what: impl FnOnce(&mut Model) -> R) -> R {
        what(&mut self.model.borrow_mut())
    }

    /// The task `me` runs now: so says the model too.
    fn runs(&self, me: usize, after: &str) {
        self.steps.set(self.steps.get() + 1);
        let model = self.model.borrow();
        assert_eq!(
            (model.running, model.tasks[me].state),
            (me, State::Active),
            "seed {}: after {after} of {me}",
            self.seed
        );
    }

    fn may_start(&self) -> bool {
        let may = self.budget.get() > 0 && !self.ending.get();
        self.budget.set(self.budget.get() - u32::from(may));
        may
    }

    /// Some task that has begun.
    fn other(&self) -> (usize, AweRef) {
        let names = self.names.borrow();
        loop {
            let task = self.below(names.len() as u64) as usize;
            if let Some(name) = names[task] {
                return (task, name);
            }
        }
    }
}

/// Tells the model that a task has ended, however it does.
struct Ends<'a>(&'a World, usize);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        // It may unwind from a wait.
        self.0.tell(|model| model.unlink_item(self.1));
        self.0.runs(self.1, "the end");
        self.0.tell(Model::end);
    }
}

/// Tells the model that a block was left.
struct Leaves<'a>(&'a World, usize, usize);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.0.tell(|model| model.unlink_item(self.1));
        self.0.runs(self.1, "a block");
        self.0.tell(|model| model.leave_block(self.2));
    }
}

/// Tells the model that the body of a block has ended.
struct BodyEnds<'a>(&'a World, usize, usize);

impl Drop for BodyEnds<'_> {
    fn drop(&mut self) {
        self.0.tell(|model| model.unlink_item(self.1));
        self.0.runs(self.1, "the body of a block");
        self.0.tell(|model| model.end_block(self.2));
    }
}

fn spawn_async<'s, 'w: 's>(world: &'w World, scope: &'s Scope<'s, '_>, block: usize, depth: u32, cx: &mut Cx) {
    let me = world.tell(|model| model.running);
    let eager = world.below(3) == 0;
    let child = world.tell(|model| model.spawn(block, eager));
    let body = move |cx: &mut Cx| {
        let _ends = Ends(world, child);
        world.runs(child, "the beginning");
        let mut names = world.names.borrow_mut();
        let known = names.len().max(child + 1);
        names.resize(known, None);
        names[child] = Some(rt::current(cx));
        drop(names);
        let canary = [child as u64; 8];
        for _ in 0..world.below(10) {
            step_async(world, scope, block, depth, child, cx);
            assert_eq!(canary, [child as u64; 8]);
        }
    };
    if eager {
        scope.spawn_eager_async(cx, body)
    } else {
        scope.spawn_async(cx, body)
    }
    world.runs(me, "a spawn");
}

fn step_async<'s, 'w: 's>(
    world: &'w World,
    scope: &'s Scope<'s, '_>,
    block: usize,
    depth: u32,
    me: usize,
    cx: &mut Cx,
) {
    match world.below(17) {
        0..=2 => {
            world.tell(Model::yield_now);
            rt::yield_async(cx);
            world.runs(me, "a yield");
        }
        3..=5 if world.may_start() => spawn_async(world, scope, block, depth + 1, cx),
        6 if !world.ending.get() => {
            world.tell(|model| model.wait(State::Suspended { hears: false }));
            rt::suspend_async(cx);
            world.runs(me, "a suspension");
        }
        7 | 8 => {
            let (task, name) = world.other();
            let front = world.below(2) == 0;
            let expected = world.tell(|model| model.schedule(task, front));
            let result = if front { name.schedule() } else { name.schedule_back() };
            assert_eq!(result.is_ok(), expected, "{me} schedules {task}");
        }
        9 | 10 => {
            let (task, name) = world.other();
            let queued = world.ending.get() || world.below(2) == 0;
            let expected = world.tell(|model| model.switch_to(task, queued));
            let switched =
                if queued { rt::yield_to_async(cx, name).is_ok() } else { rt::hand_over_async(cx, name).is_ok() };
            assert_eq!(switched, expected, "{me} goes to {task}");
            world.runs(me, "a switch to another");
        }
        11 if depth < 5 => block_async(world, depth, me, cx),
        12 if !world.ending.get() => {
            // Suspends, and hears of requests.
            if world.tell(|model| model.is_requested(model.tasks[me].block)) {
                assert_eq!(rt::suspend_x_async(cx), Err(Canceled));
            } else {
                world.tell(|model| {
                    model.link_item();
                    model.wait(State::Suspended { hears: true });
                });
                let _ = rt::suspend_x_async(cx);
                world.tell(|model| model.unlink_item(me));
                world.runs(me, "a suspension that hears");
            }
        }
        13 if !world.ending.get() => {
            let waker = rt::prepare(cx);
            world.wakers.borrow_mut().push((me, waker));
            let requested = world.tell(|model| model.is_requested(model.tasks[me].block));
            if world.below(2) == 0 {
                world.tell(|model| model.wait(State::Parked { hears: false }));
                rt::park_async(cx);
            } else if requested {
                assert_eq!(rt::park_x_async(cx), Err(Canceled));
            } else {
                world.tell(|model| {
                    model.link_item();
                    model.wait(State::Parked { hears: true });
                });
                let _ = rt::park_x_async(cx);
                world.tell(|model| model.unlink_item(me));
            }
            world.runs(me, "a wait");
        }
        14 => {
            let waker = world.wakers.borrow_mut().pop();
            if let Some((task, waker)) = waker
                && waker.is_waiting()
            {
                assert!(waker.wake());
                world.tell(|model| model.wake(task));
            }
        }
        15 if world.below(2) == 0 => {
            world.tell(|model| model.cancel(block));
            scope.cancel_async(cx);
            world.runs(me, "a request");
        }
        16 if world.below(3) == 0 => {
            let (task, name) = world.other();
            if task != me && task != 0 && task != 1 {
                let alive = world.tell(|model| model.tasks[task].state != State::Ended);
                world.tell(|model| model.abort(task));
                assert_eq!(rt::abort_async(cx, name).is_ok(), alive);
                world.runs(me, "an abort of another");
            }
        }
        _ => {}
    }
}

fn block_async(world: &World, depth: u32, me: usize, cx: &mut Cx) {
    let shielded = world.below(3) == 0;
    let block = world.tell(|model| model.begin_block(shielded));
    let _leaves = Leaves(world, me, block);
    macro_rules! with_tasks {
        ($finish_async:path) => {
            $finish_async(cx, |scope, cx| {
                let _body_ends = BodyEnds(world, me, block);
                for _ in 0..world.below(4) {
                    if world.may_start() {
                        spawn_async(world, scope, block, depth + 1, cx);
                    }
                    step_async(world, scope, block, depth + 1, me, cx);
                }
            })
        };
    }
    if shielded { with_tasks!(rt::finish_shielded_async) } else { with_tasks!(rt::finish_async) }
}

/// Lets the others run for a while, then sees to it that all end.
fn reap_async(world: &World, me: usize, cx: &mut Cx) {
    for round in 0..5_000 {
        world.tell(Model::yield_now);
        rt::yield_async(cx);
        world.runs(me, "a yield of the reaper");
        if round < 60 {
            continue;
        }
        world.ending.set(true);
        for (task, name) in world.names.borrow().clone().into_iter().enumerate() {
            let expected = world.tell(|model| model.schedule(task, false));
            assert_eq!(name.is_some_and(|name| name.schedule_back().is_ok()), expected);
        }
        for (task, waker) in world.wakers.take() {
            if waker.wake() {
                world.tell(|model| model.wake(task));
            }
        }
        if world.tell(|model| model.tasks[2..].iter().all(|task| task.state == State::Ended)) {
            return;
        }
    }
    panic!("tasks do not end");
}

fn run(seed: u64) -> u64 {
    let world = World {
        random: Random::new(seed),
        model: RefCell::new(Model::new()),
        names: RefCell::default(),
        wakers: RefCell::default(),
        budget: Cell::new(40),
        ending: Cell::new(false),
        steps: Cell::new(0),
        seed,
    };
    rt::run(|cx| {
        let block = world.tell(|model| model.begin_block(false));
        world.names.borrow_mut().push(Some(rt::current(cx)));
        rt::finish_async(cx, |scope, cx| {
            let world = &world;
            let reaper = world.tell(|model| model.spawn(block, false));
            scope.spawn_async(cx, move |cx| {
                let _ends = Ends(world, reaper);
                world.names.borrow_mut().push(Some(rt::current(cx)));
                reap_async(world, reaper, cx);
            });
            for _ in 0..3 {
                spawn_async(world, scope, block, 0, cx);
            }
            world.tell(|model| model.end_block(block));
        });
        world.runs(0, "the outermost block");
    });
    world.steps.get()
}

#[test]
fn who_runs_next_is_who_the_model_says() {
    abort_on_failure();
    let steps: u64 = seeds(1..3_001).map(run).sum();
    println!("{steps} times somebody ran");
}
