//! A run-time from parts: other stacks, another way to idle; also without `std` (`--no-default-features`).

use std::cell::{Cell, RefCell};
use std::sync::Mutex;

use refs::WaitList;
use tasks::HeapStacks;
use tasks::rt::{self, Cx, Idle, Parts, Runtime};

/// Gives the processor to other threads instead of sleeping.
struct Spin;

impl Idle for Spin {
    fn wait(&self, _runtime: &'static Runtime) {
        std::thread::yield_now();
    }

    fn wake(&self, _runtime: &'static Runtime) {}
}

/// Only one test at a time is core 0.
static CORE_0: Mutex<()> = Mutex::new(());

fn run<R>(stacks: &'static HeapStacks, keep_stacks: usize, f: impl FnOnce(&mut Cx) -> R) -> R {
    let _core = CORE_0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    // SAFETY: the test's thread has no Cx; `HeapStacks` gives out what it should; no other scheduler runs.
    unsafe { Parts { stacks, idle: &Spin, keep_stacks }.run(0, f) }
}

#[test]
fn tasks_run_on_stacks_from_the_heap_which_all_come_back() {
    static STACKS: HeapStacks = HeapStacks::new(64 * 1024);
    let order = RefCell::new(Vec::new());
    run(&STACKS, 1, |cx| {
        rt::finish_async(cx, |scope, cx| {
            for number in 0..4 {
                let order = &order;
                scope.spawn_async(cx, move |cx| {
                    for step in 0..2 {
                        order.borrow_mut().push((step, number));
                        rt::yield_async(cx);
                    }
                });
            }
        });
        assert_eq!(rt::count(cx), 1);
    });
    let expected: Vec<_> = (0..2).flat_map(|step| (0..4).map(move |number| (step, number))).collect();
    assert_eq!(*order.borrow(), expected);
    assert_eq!(STACKS.pooled(), 4);
}

#[test]
fn suspended_tasks_are_resumed_by_their_names_and_wakers_from_wherever() {
    static STACKS: HeapStacks = HeapStacks::new(64 * 1024);
    static LIST: WaitList = WaitList::new();
    let resumed = Cell::new(0);
    run(&STACKS, 10, |cx| {
        rt::finish_async(cx, |scope, cx| {
            let (send, receive) = std::sync::mpsc::channel();
            for _ in 0..10 {
                let (send, resumed) = (send.clone(), &resumed);
                scope.spawn_async(cx, move |cx| {
                    rt::suspend_then_async(cx, |me| send.send(me).expect("a receiver"));
                    LIST.register(rt::prepare(cx), cx);
                    rt::park_async(cx);
                    resumed.set(resumed.get() + 1);
                });
            }
            // Half of them from here, half from elsewhere.
            for name in receive.iter().take(5) {
                name.schedule().expect("it is suspended");
            }
            std::thread::spawn(move || {
                for name in receive.iter().take(5) {
                    name.schedule().expect("it is suspended");
                }
            });
            let mut woken = 0;
            while woken < 10 {
                rt::yield_async(cx);
                std::thread::yield_now();
                woken += LIST.wake_all();
            }
        });
    });
    assert_eq!(resumed.get(), 10);
}

#[test]
fn a_source_without_memory_gives_the_task_back() {
    struct None;
    impl tasks::StackSource for None {
        fn take(&self) -> Option<tasks::Stack> {
            Option::None
        }
        unsafe fn give(&self, _stack: tasks::Stack) {}
    }
    let _core = CORE_0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    // SAFETY: as in `run`.
    unsafe {
        Parts { stacks: &None, idle: &Spin, keep_stacks: 0 }.run(0, |cx| {
            rt::finish_async(cx, |scope, cx| {
                let rt::NoStack(_task) =
                    scope.try_spawn_async(cx, |_| unreachable!("it has no stack")).expect_err("no memory");
            });
        })
    };
}
