//! Tasks on the host: who runs when, on how many stacks, and what a waker does.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

use refs::reclaim::Core;
use refs::{IdTable, StrongRc, WaitList};
use tasks::{
    Body, Cx, EndOfWait, Fifo, HeapStacks, Hooks, Next, StackSource, Worker, free_all_async, park_async, prepare,
    spawn, yield_async,
};

struct UntilNoTasks;

impl Hooks for UntilNoTasks {
    fn idle(&self, _worker: &Worker) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

struct Once<F>(Option<F>);

impl<F: FnOnce(&mut Cx) + Send> Body for Once<F> {
    fn run_async(&mut self, cx: &mut Cx) -> Next {
        if let Some(body) = self.0.take() {
            body(cx);
        }
        Next::End
    }
}

struct Runtime {
    policy: &'static Fifo,
    stacks: &'static HeapStacks,
    worker: &'static Worker,
}

/// The memory of dead objects is freed by whoever is quiescent next: tests that count it must not overlap.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

impl Runtime {
    fn new() -> Self {
        let policy: &'static Fifo = Box::leak(Box::default());
        let stacks: &'static HeapStacks = Box::leak(Box::new(HeapStacks::new(64 * 1024)));
        let worker: &'static Worker = Box::leak(Box::new(Worker::new(0, policy, stacks, &UntilNoTasks)));
        Runtime { policy, stacks, worker }
    }

    fn spawn(&self, body: impl FnOnce(&mut Cx) + Send + 'static) -> tasks::TaskRef {
        spawn(self.policy, Box::new(Once(Some(body))), |_, _| ())
    }

    fn run(&self) {
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // SAFETY: this thread has no Cx, and runs this worker alone.
        unsafe { self.worker.run() };
    }
}

fn log() -> &'static Mutex<Vec<String>> {
    Box::leak(Box::default())
}

#[test]
fn tasks_run_in_the_order_in_which_they_were_spawned() {
    let (runtime, log) = (Runtime::new(), log());
    for number in 0..5 {
        runtime.spawn(move |_| log.lock().unwrap().push(format!("{number}")));
    }
    runtime.run();
    assert_eq!(*log.lock().unwrap(), ["0", "1", "2", "3", "4"]);
}

#[test]
fn yielding_tasks_take_turns() {
    let (runtime, log) = (Runtime::new(), log());
    for number in 0..3 {
        runtime.spawn(move |cx| {
            for turn in 0..3 {
                log.lock().unwrap().push(format!("{number}{turn}"));
                yield_async(cx);
            }
        });
    }
    runtime.run();
    assert_eq!(*log.lock().unwrap(), ["00", "10", "20", "01", "11", "21", "02", "12", "22"]);
}

#[test]
fn registers_and_locals_survive_a_suspension() {
    let (runtime, log) = (Runtime::new(), log());
    for seed in 1..20_u64 {
        runtime.spawn(move |cx| {
            let mut values: [u64; 16] = core::array::from_fn(|at| seed.wrapping_mul(at as u64 + 1));
            let mut sum = 0.5 * seed as f64;
            for _ in 0..50 {
                yield_async(cx);
                for value in &mut values {
                    *value = value.rotate_left(3) ^ seed;
                }
                sum += 1.0;
            }
            let expected: [u64; 16] = core::array::from_fn(|at| {
                (0..50).fold(seed.wrapping_mul(at as u64 + 1), |value, _| value.rotate_left(3) ^ seed)
            });
            log.lock().unwrap().push(format!("{} {}", values == expected, sum == 0.5 * seed as f64 + 50.0));
        });
    }
    runtime.run();
    assert_eq!(*log.lock().unwrap(), ["true true"; 19]);
}

#[test]
fn a_parked_task_goes_on_when_it_is_woken_and_keeps_its_stack_meanwhile() {
    let (runtime, log) = (Runtime::new(), log());
    let event: &'static WaitList = Box::leak(Box::default());
    runtime.spawn(move |cx| {
        let waker = prepare(cx);
        event.register(waker, cx);
        log.lock().unwrap().push("parks".into());
        park_async(cx);
        log.lock().unwrap().push("woken".into());
    });
    runtime.spawn(move |_| {
        log.lock().unwrap().push("wakes".into());
        assert_eq!(event.wake_all(), 1);
        assert_eq!(event.wake_all(), 0);
    });
    runtime.run();
    assert_eq!(*log.lock().unwrap(), ["parks", "wakes", "woken"]);
}

#[test]
fn a_wake_up_before_the_park_is_not_lost() {
    let (runtime, log) = (Runtime::new(), log());
    runtime.spawn(move |cx| {
        let waker = prepare(cx);
        assert!(waker.wake());
        assert!(!waker.wake());
        park_async(cx);
        log.lock().unwrap().push("went on".into());
        let next = prepare(cx);
        assert!(!waker.wake(), "a waker of an earlier wait must do nothing");
        assert!(next.wake());
        park_async(cx);
    });
    runtime.run();
    assert_eq!(*log.lock().unwrap(), ["went on"]);
}

struct Counted {
    left: usize,
    runs: &'static AtomicUsize,
}

impl Body for Counted {
    fn run_async(&mut self, _cx: &mut Cx) -> Next {
        self.runs.fetch_add(1, Ordering::Relaxed);
        self.left -= 1;
        if self.left == 0 { Next::End } else { Next::Again }
    }
}

#[test]
fn tasks_that_keep_nothing_need_no_stacks() {
    let runtime = Runtime::new();
    let runs: &'static AtomicUsize = Box::leak(Box::default());
    for _ in 0..1000 {
        spawn(runtime.policy, Box::new(Counted { left: 10, runs }), |_, _| ());
    }
    runtime.run();
    assert_eq!(runs.load(Ordering::Relaxed), 10_000);
    assert_eq!(runtime.stacks.pooled(), 0, "no stack was ever taken");
}

#[test]
fn as_many_stacks_as_suspended_tasks_and_all_come_back() {
    let runtime = Runtime::new();
    let event: &'static WaitList = Box::leak(Box::default());
    for _ in 0..100 {
        runtime.spawn(move |cx| {
            let waker = prepare(cx);
            event.register(waker, cx);
            park_async(cx);
        });
    }
    runtime.spawn(move |_| assert_eq!(event.wake_all(), 100));
    runtime.run();
    let pooled = runtime.stacks.pooled();
    assert!((99..=101).contains(&pooled), "{pooled} stacks came back");
}

#[test]
fn the_death_of_an_object_wakes_who_watches_it() {
    let (runtime, log) = (Runtime::new(), log());
    let table: &'static IdTable<String> = Box::leak(Box::default());
    runtime.spawn(move |cx| {
        table.insert(7, StrongRc::new("seven".to_string()), cx);
        let weak = table.weak(7, cx).unwrap();
        let waker = prepare(cx);
        weak.watch(waker, cx);
        log.lock().unwrap().push(weak.upgrade(cx).unwrap().to_string());
        park_async(cx);
        log.lock().unwrap().push(format!("{:?}", weak.upgrade(cx).map(|text| text.len())));
    });
    runtime.spawn(move |cx| table.remove(7, cx).unwrap().destroy(cx));
    runtime.run();
    assert_eq!(*log.lock().unwrap(), ["seven", "Err(Gone)"]);
}

#[test]
fn interrupting_a_task_that_has_ended_does_nothing() {
    let runtime = Runtime::new();
    let ended = runtime.spawn(|_| ());
    runtime.run();
    assert!(!ended.is_alive());
    let event: &'static WaitList = Box::leak(Box::default());
    // The struct of the first task is used again by this one.
    runtime.spawn(move |cx| {
        event.register(prepare(cx), cx);
        park_async(cx);
    });
    runtime.spawn(move |_| {
        assert!(!ended.interrupt());
        assert!(event.wake_one());
    });
    runtime.run();
}

#[test]
fn a_task_can_be_interrupted_in_whatever_wait_it_is() {
    let (runtime, log) = (Runtime::new(), log());
    let waiting = runtime.spawn(move |cx| {
        prepare(cx);
        assert_eq!(park_async(cx), EndOfWait::Interrupted);
        log.lock().unwrap().push("interrupted".into());
        // Another wait of the same task is another matter, also where a waker has come before the interrupt.
        let waker = prepare(cx);
        assert!(waker.wake() && !tasks::current(cx).interrupt());
        assert_eq!(park_async(cx), EndOfWait::Woken);
    });
    runtime.spawn(move |_| assert!(waiting.interrupt()));
    runtime.run();
    assert_eq!(*log.lock().unwrap(), ["interrupted"]);
}

/// The system's allocator, which counts the living allocations of a size that only one test asks for.
struct Counting;

const COUNTED_BYTES: usize = 77_776;
static COUNTED: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: it does what `System` does.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() == COUNTED_BYTES {
            COUNTED.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the caller keeps the same promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if layout.size() == COUNTED_BYTES {
            COUNTED.fetch_sub(1, Ordering::Relaxed);
        }
        // SAFETY: the caller keeps the same promises.
        unsafe { System.dealloc(memory, layout) };
    }
}

#[test]
fn what_happens_when_a_pool_of_heap_stacks_is_dropped() {
    let stacks = HeapStacks::new(COUNTED_BYTES);
    let taken: Vec<_> = (0..3).map(|_| stacks.take().expect("memory")).collect();
    assert_eq!((stacks.pooled(), COUNTED.load(Ordering::Relaxed)), (0, 3));
    assert!(taken.iter().all(|stack| stack.top() - stack.bottom() == COUNTED_BYTES && stack.top() % 16 == 0));
    let last = taken[2].bottom();
    for stack in taken {
        // SAFETY: it came from there, as below.
        unsafe { stacks.give(stack) };
    }
    let again = stacks.take().expect("a pooled stack");
    assert_eq!(again.bottom(), last, "the one that was given back last");
    // SAFETY: as above.
    unsafe { stacks.give(again) };
    assert_eq!((stacks.pooled(), COUNTED.load(Ordering::Relaxed)), (3, 3));
    drop(stacks);
    assert_eq!(COUNTED.load(Ordering::Relaxed), 0, "the stacks of the pool are freed with it");
}

#[test]
fn what_has_died_is_freed_in_steps_at_suspensions_and_all_of_it_when_that_is_asked_for() {
    static FREED: AtomicUsize = AtomicUsize::new(0);
    const OBJECTS: usize = 1000;
    struct Freed;
    impl Drop for Freed {
        fn drop(&mut self) {
            FREED.fetch_add(1, Ordering::Relaxed);
        }
    }
    let runtime = Runtime::new();
    runtime.spawn(|cx| {
        (0..OBJECTS).for_each(|_| drop(StrongRc::new(Freed)));
        assert_eq!(FREED.load(Ordering::Relaxed), 0);
        yield_async(cx);
        let freed = FREED.load(Ordering::Relaxed);
        assert!(0 < freed && freed < OBJECTS / 2, "{freed} at one suspension");
        free_all_async(cx);
        assert_eq!(FREED.load(Ordering::Relaxed), OBJECTS);
    });
    runtime.run();
}

#[test]
fn who_waits_for_what_it_has_let_go_of_waits_for_the_last_of_it() {
    static FREED: AtomicUsize = AtomicUsize::new(0);
    struct Freed;
    impl Drop for Freed {
        fn drop(&mut self) {
            FREED.fetch_add(1, Ordering::Relaxed);
        }
    }
    let runtime = Runtime::new();
    runtime.spawn(|cx| {
        // Another core, which comes in anew whenever it is asked to.
        let (ask, asked) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        let other = thread::spawn(move || {
            // SAFETY: no context is made.
            let mut core = unsafe { Core::register() };
            tell.send(()).unwrap();
            for () in &asked {
                drop(core);
                // SAFETY: as above.
                core = unsafe { Core::register() };
                tell.send(()).unwrap();
            }
            thread::sleep(Duration::from_millis(50));
            drop(core);
        });
        told.recv().unwrap();
        drop(StrongRc::new(Freed));
        // It is known from here on that the first has to wait for the other core.
        yield_async(cx);
        assert_eq!(FREED.load(Ordering::Relaxed), 0);
        ask.send(()).unwrap();
        told.recv().unwrap();
        drop(StrongRc::new(Freed));
        drop(ask);
        free_all_async(cx);
        assert_eq!(FREED.load(Ordering::Relaxed), 2, "the second is not left for later");
        other.join().unwrap();
    });
    runtime.run();
}
