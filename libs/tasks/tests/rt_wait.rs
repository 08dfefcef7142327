//! Waiting by wakers: wait lists, and objects that die meanwhile.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};

use refs::{Gone, IdTable, StrongRc, WaitList};
use tasks::rt;

#[test]
fn a_wake_up_before_the_park_is_not_lost() {
    rt::run(|cx| {
        let waker = rt::prepare(cx);
        assert!(waker.wake());
        assert!(!waker.wake());
        rt::park_async(cx);
    });
}

#[test]
fn waiters_go_on_in_the_order_in_which_they_came() {
    let list = WaitList::new();
    let order = Cell::new(0);
    rt::run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            for number in 0..10 {
                let (list, order) = (&list, &order);
                scope.spawn_async(cx, move |cx| {
                    list.register(rt::prepare(cx), cx);
                    rt::park_async(cx);
                    assert_eq!(order.replace(number + 1), number);
                });
            }
            assert_eq!(order.get(), 0);
            assert!(list.wake_one());
            rt::yield_async(cx);
            assert_eq!(order.get(), 1);
            assert_eq!(list.wake_all(), 9);
        });
    });
    assert_eq!(order.get(), 10);
}

#[test]
fn no_wake_up_from_another_thread_is_lost() {
    const ROUNDS: usize = 20_000;
    static LIST: WaitList = WaitList::new();
    static TURN: AtomicUsize = AtomicUsize::new(0);
    static DONE: AtomicBool = AtomicBool::new(false);
    let other = std::thread::spawn(|| {
        for turn in 1..=ROUNDS {
            TURN.store(turn, Ordering::SeqCst);
            LIST.wake_one();
            while TURN.load(Ordering::SeqCst) == turn {
                std::thread::yield_now();
            }
        }
        DONE.store(true, Ordering::SeqCst);
        LIST.wake_all();
    });
    let mut seen = 0;
    rt::run(|cx| {
        loop {
            let step = |cx: &rt::Cx, waker| {
                LIST.register(waker, cx);
                let turn = TURN.load(Ordering::SeqCst);
                (turn != 0 || DONE.load(Ordering::SeqCst)).then_some(turn)
            };
            let turn = rt::wait_async(cx, step, &[]).expect("nothing can die");
            if turn == 0 {
                break;
            }
            seen += 1;
            TURN.store(0, Ordering::SeqCst);
        }
    });
    other.join().expect("no panic");
    assert_eq!(seen, ROUNDS);
}

#[test]
fn a_wait_ends_with_gone_when_what_it_needs_is_destroyed() {
    struct Session;
    let table: IdTable<Session> = IdTable::new();
    let events = WaitList::new();
    let happened = Cell::new(false);
    let results = Cell::new((0, 0));
    rt::run(|cx| {
        for id in 0..4 {
            table.insert(id, StrongRc::new(Session), cx);
        }
        rt::finish_async(cx, |scope, cx| {
            for id in 0..4 {
                let (table, events, happened, results) = (&table, &events, &happened, &results);
                scope.spawn_async(cx, move |cx| {
                    let session = table.weak(id, cx).expect("it lives");
                    let result = rt::wait_async(
                        cx,
                        |cx, waker| {
                            events.register(waker, cx);
                            happened.get().then_some(id)
                        },
                        &[&session],
                    );
                    let (ok, gone) = results.get();
                    match result {
                        Ok(which) => {
                            assert_eq!(which, id);
                            results.set((ok + 1, gone));
                        }
                        Err(Gone) => results.set((ok, gone + 1)),
                    }
                });
            }
            // Early wake-ups change nothing.
            events.wake_all();
            rt::yield_async(cx);
            rt::yield_async(cx);
            assert_eq!(results.get(), (0, 0));
            table.remove(1, cx).expect("it lives").destroy(cx);
            rt::yield_async(cx);
            assert_eq!(results.get(), (0, 1));
            happened.set(true);
            drop(table.remove(2, cx));
            events.wake_all();
        });
    });
    assert_eq!(results.get(), (2, 2));
}

#[test]
fn what_dies_on_one_thread_is_freed_when_the_other_has_suspended_or_sleeps() {
    static FREED: AtomicUsize = AtomicUsize::new(0);
    struct Counted;
    impl Drop for Counted {
        fn drop(&mut self) {
            FREED.fetch_add(1, Ordering::SeqCst);
        }
    }
    let (send, receive) = std::sync::mpsc::channel();
    let sleeper =
        std::thread::spawn(move || rt::run(|cx| rt::suspend_then_async(cx, |me| send.send(me).expect("sent"))));
    let task = receive.recv().expect("a task");
    rt::run(|cx| {
        drop(StrongRc::new(Counted));
        // The other thread goes to sleep sooner or later; it never runs a task meanwhile.
        while FREED.load(Ordering::SeqCst) == 0 {
            rt::yield_async(cx);
            std::thread::yield_now();
        }
    });
    task.schedule().expect("it is suspended");
    sleeper.join().expect("no panic");
}

#[test]
fn a_thread_that_idles_in_its_own_way_is_woken_by_other_threads() {
    /// Waits in a condition variable of its own, and for nothing else.
    struct OwnWay;
    static WOKEN: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());
    static LIST: WaitList = WaitList::new();
    static IDLE: AtomicUsize = AtomicUsize::new(0);
    impl rt::Idle for OwnWay {
        fn wait(&self, _runtime: &'static rt::Runtime) {
            IDLE.fetch_add(1, Ordering::SeqCst);
            let woken = WOKEN.1.wait_while(WOKEN.0.lock().unwrap(), |woken| !*woken);
            *woken.unwrap() = false;
        }

        fn wake(&self, _runtime: &'static rt::Runtime) {
            *WOKEN.0.lock().unwrap() = true;
            WOKEN.1.notify_one();
        }
    }
    let other = std::thread::spawn(|| {
        for round in 1..=3 {
            while IDLE.load(Ordering::SeqCst) < round {
                std::thread::yield_now();
            }
            assert_eq!(LIST.wake_all(), 1);
        }
    });
    rt::Config::default().run_with_idle(&OwnWay, |cx| {
        for _ in 0..3 {
            LIST.register(rt::prepare(cx), cx);
            rt::park_async(cx);
        }
    });
    other.join().expect("no panic");
}

#[test]
fn what_is_done_when_nothing_is_ready_can_make_a_task_ready() {
    struct Events;
    static LIST: WaitList = WaitList::new();
    static IDLE: AtomicUsize = AtomicUsize::new(0);
    impl rt::Idle for Events {
        fn wait(&self, runtime: &'static rt::Runtime) {
            // The first time nothing has happened; the second time it is woken for nothing.
            match IDLE.fetch_add(1, Ordering::SeqCst) {
                0 => {}
                1 => {
                    let other = std::thread::spawn(|| rt::run(|_| ()));
                    other.join().expect("no panic");
                }
                _ => {
                    if LIST.wake_all() == 0 {
                        rt::Idle::wait(&rt::Sleep, runtime);
                    }
                }
            }
        }

        fn wake(&self, runtime: &'static rt::Runtime) {
            rt::Idle::wake(&rt::Sleep, runtime);
        }
    }
    rt::Config::default().run_with_idle(&Events, |cx| {
        for _ in 0..3 {
            LIST.register(rt::prepare(cx), cx);
            rt::park_async(cx);
        }
    });
    assert_eq!(IDLE.load(Ordering::SeqCst), 5);
}
