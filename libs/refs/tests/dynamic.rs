//! The dynamic mode: under tokio with one thread and with several, and under embassy's executor for embedded systems.
#![cfg(not(ebb_loom))]

use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use embassy_executor::{Executor, Spawner};
use refs::dynamic::{Gate, Lender, checked};
use refs::{Gone, Group, IdTable, StrongRc, WeakRc};

/// Objects are freed by whoever is quiescent next: tests that count them must not overlap.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
static DROPPED: AtomicUsize = AtomicUsize::new(0);

struct Noted(u32);

impl Drop for Noted {
    fn drop(&mut self) {
        self.0 = u32::MAX;
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

fn alone() -> MutexGuard<'static, ()> {
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    // What the test before left is freed.
    assert!(Gate::new().open().close().is_ok());
    DROPPED.store(0, Ordering::Relaxed);
    guard
}

fn dropped() -> usize {
    DROPPED.load(Ordering::Relaxed)
}

/// Gives way once, under any executor.
async fn give_way() {
    let mut given = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut given, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn message(panic: Box<dyn std::any::Any + Send>) -> String {
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

/// The message of a future that panics when it is polled.
fn panic_of(future: impl Future) -> String {
    let mut future = pin!(future);
    let poll = || future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
    message(std::panic::catch_unwind(AssertUnwindSafe(poll)).expect_err("it panics"))
}

fn current_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

fn multi_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(3).build().unwrap()
}

/// Takes and gives back in each round; how often the object was there.
async fn look(lender: &Lender, name: WeakRc<Noted>, rounds: u32) -> u32 {
    let mut seen = 0;
    for _ in 0..rounds {
        if let Ok(object) = lender.upgrade(&name) {
            assert!(object.0 < 1000, "never a freed object");
            seen += 1;
        }
        give_way().await;
    }
    seen
}

#[test]
fn a_future_that_lets_go_before_it_suspends_runs_under_tokio_on_one_thread() {
    let _alone = alone();
    let owner = StrongRc::new(Noted(1));
    let name = owner.downgrade();
    current_thread().block_on(async {
        let watching = checked(|lender| async move {
            assert_eq!(look(&lender, name, 10).await, 10);
            while !name.is_gone() {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
            lender.upgrade(&name).err()
        });
        let destroying = checked(|lender| async move {
            for _ in 0..20 {
                give_way().await;
            }
            lender.with(|cx| assert_eq!(owner.get(cx).0, 1));
            drop(owner);
        });
        let (gone, ()) = tokio::task::LocalSet::new()
            .run_until(async {
                let watching = tokio::task::spawn_local(watching);
                let destroying = tokio::task::spawn_local(destroying);
                (watching.await.unwrap(), destroying.await.unwrap())
            })
            .await;
        assert_eq!(gone, Some(Gone));
    });
    assert_eq!(dropped(), 1, "freed when the poll that dropped it ended, or the next");
}

#[test]
fn a_borrow_across_an_await_is_reported_with_its_type_and_place_under_tokio_on_one_thread() {
    let _alone = alone();
    let owner = StrongRc::new(Noted(1));
    let name = owner.downgrade();
    let mut line = 0;
    let result = std::panic::catch_unwind(AssertUnwindSafe(|| {
        current_thread().block_on(checked(|lender| {
            let line = &mut line;
            async move {
                let first = lender.upgrade(&name).unwrap();
                drop(first);
                *line = line!() + 1;
                let second = lender.upgrade(&name).unwrap();
                give_way().await;
                unreachable!("{}", second.0)
            }
        }))
    }));
    let text = message(result.map(|()| unreachable!()).unwrap_err());
    assert!(text.contains("suspends") && text.contains("Noted>"), "{text}");
    assert!(text.contains(&format!("tests/dynamic.rs:{line}:")), "{text}, not line {line}");
    drop(owner);
    assert!(Gate::new().open().close().is_ok());
    assert_eq!(dropped(), 1, "the future was dropped, so nothing holds the object back");
}

#[test]
fn futures_that_migrate_between_threads_see_an_object_or_that_it_is_gone_and_never_freed_memory() {
    let _alone = alone();
    let runtime = multi_thread();
    let owners: Vec<_> = (0..50).map(|number| StrongRc::new(Noted(number))).collect();
    let names: Vec<_> = owners.iter().map(StrongRc::downgrade).collect();
    runtime.block_on(async {
        let looking: Vec<_> = names
            .iter()
            .map(|name| {
                let name = *name;
                tokio::spawn(checked(move |lender| async move { look(&lender, name, 300).await }))
            })
            .collect();
        let ending = tokio::spawn(checked(|_lender| async move {
            for owner in owners {
                give_way().await;
                drop(owner);
            }
        }));
        ending.await.unwrap();
        for look in looking {
            assert!(look.await.unwrap() <= 300);
        }
    });
    drop(runtime);
    assert!(names.iter().all(|name| name.is_gone()));
    assert!(Gate::new().open().close().is_ok());
    assert_eq!((dropped(), refs::reclaim::waiting()), (50, 0));
}

/// Holds something across an await in a way that the compiler does not see.
struct Smuggled<T>(T);
// SAFETY: none; the test shows that the dynamic mode finds out. What is in it is used by one thread at a time.
unsafe impl<T> Send for Smuggled<T> {}

#[test]
fn a_borrow_across_an_await_is_reported_under_tokio_on_several_threads_and_the_others_go_on() {
    let _alone = alone();
    let runtime = multi_thread();
    let owner = StrongRc::new(Noted(1));
    let name = owner.downgrade();
    runtime.block_on(async {
        let good: Vec<_> = (0..20)
            .map(|_| tokio::spawn(checked(move |lender| async move { look(&lender, name, 100).await })))
            .collect();
        let bad = tokio::spawn(checked(move |lender| async move {
            // Good for a while, on whichever thread.
            look(&lender, name, 50).await;
            let held = Smuggled(lender.upgrade(&name).unwrap());
            give_way().await;
            let whole = &held;
            unreachable!("{}", whole.0.0)
        }));
        let text = message(bad.await.unwrap_err().into_panic());
        assert!(text.contains("Noted>") && text.contains("tests/dynamic.rs:"), "{text}");
        for look in good {
            assert_eq!(look.await.unwrap(), 100);
        }
    });
    drop(runtime);
    drop(owner);
    assert!(Gate::new().open().close().is_ok());
    assert_eq!(dropped(), 1);
}

#[test]
fn a_future_is_not_blamed_for_what_the_one_that_polls_it_holds() {
    let _alone = alone();
    let owner = StrongRc::new(Noted(1));
    let name = owner.downgrade();
    let outer = checked(|lender| async move {
        let held = lender.upgrade(&name).unwrap();
        let mut inner = Box::pin(checked(|lender| async move { look(&lender, name, 1).await }));
        let mut context = Context::from_waker(Waker::noop());
        assert!(inner.as_mut().poll(&mut context).is_pending());
        assert!(inner.as_mut().poll(&mut context).is_ready());
        assert_eq!(held.0, 1);
        drop(held);
        give_way().await;
    });
    current_thread().block_on(outer);
    drop(owner);
}

#[test]
fn what_a_poll_borrows_is_not_freed_by_another_thread_before_the_poll_ends() {
    let _alone = alone();
    let owner = StrongRc::new(Noted(7));
    let name = owner.downgrade();
    let (borrowed, is_borrowed) = std::sync::mpsc::channel();
    let (destroyed, is_destroyed) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        current_thread().block_on(checked(|lender| async move {
            let object = lender.upgrade(&name).unwrap();
            borrowed.send(()).unwrap();
            is_destroyed.recv().unwrap();
            assert_eq!((object.0, object.downgrade().is_gone(), dropped()), (7, true, 0));
        }));
    });
    is_borrowed.recv().unwrap();
    current_thread().block_on(checked(|lender| async move {
        drop(owner);
        assert_eq!(lender.upgrade(&name).err(), Some(Gone));
    }));
    destroyed.send(()).unwrap();
    reader.join().unwrap();
    assert_eq!(dropped(), 1);
}

#[test]
fn a_lender_that_got_out_of_its_future_borrows_nothing_while_that_is_not_polled() {
    let _alone = alone();
    let owner = StrongRc::new(Noted(1));
    let name = owner.downgrade();
    let gate = Gate::new();
    let lender = gate.lender();
    let outside = std::panic::catch_unwind(AssertUnwindSafe(|| lender.upgrade(&name).map(|object| object.0)));
    assert!(outside.is_err());
    assert!(std::panic::catch_unwind(AssertUnwindSafe(|| lender.with(|_| ()))).is_err());
    let open = gate.open();
    assert_eq!(lender.upgrade(&name).unwrap().0, 1);
    assert!(open.close().is_ok());
    drop(owner);
}

#[test]
fn a_gate_stays_open_as_long_as_something_is_borrowed_and_says_what() {
    let _alone = alone();
    let group = Group::new();
    let owner = StrongRc::new_in(Noted(3), &group);
    let gate = Gate::new();
    let lender = gate.lender();
    let open = gate.open();
    let object = lender.upgrade(&owner.downgrade()).unwrap();
    let Err((open, held)) = open.close() else { panic!("closed while something is borrowed") };
    assert!(held.type_name().ends_with("Noted") && held.place().file().ends_with("dynamic.rs"));
    drop(owner);
    assert_eq!((object.0, dropped()), (3, 0));
    drop(object);
    assert!(open.close().is_ok());
    assert_eq!(dropped(), 1);
}

#[test]
fn a_future_that_is_dropped_halfway_holds_nothing_back() {
    let _alone = alone();
    let owner = StrongRc::new(Noted(1));
    let name = owner.downgrade();
    struct AtTheEnd(Lender, WeakRc<Noted>);
    impl Drop for AtTheEnd {
        fn drop(&mut self) {
            assert_eq!(self.0.upgrade(&self.1).map(|object| object.0), Ok(1), "a destructor may borrow too");
        }
    }
    let mut future = Box::pin(checked(|lender| async move {
        let _end = AtTheEnd(lender, name);
        give_way().await;
    }));
    assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(future);
    drop(owner);
    assert!(Gate::new().open().close().is_ok());
    assert_eq!(dropped(), 1);
}

#[test]
fn a_future_that_panics_while_another_one_inside_it_holds_something_frees_nothing_too_early() {
    let _alone = alone();
    let owner = StrongRc::new(Noted(5));
    let name = owner.downgrade();
    struct Looks<'a>(refs::dynamic::NotedRc<'a, Noted>);
    impl Drop for Looks<'_> {
        fn drop(&mut self) {
            assert_eq!((self.0.0, dropped()), (5, 0));
        }
    }
    let mut owner = Some(owner);
    let text = panic_of(checked(|lender| async move {
        let mut holding = pin!(async {
            let _looks = Looks(lender.upgrade(&name).unwrap());
            give_way().await;
        });
        poll_fn(|cx| {
            assert!(holding.as_mut().poll(cx).is_pending());
            drop(owner.take());
            std::panic::panic_any("on purpose".to_string());
            #[allow(unreachable_code)]
            Poll::<()>::Pending
        })
        .await
    }));
    assert_eq!(text, "on purpose");
    assert_eq!(dropped(), 1);
}

// embassy: static tasks, one thread, no allocation for a task.

/// Runs embassy's executor on the calling thread until so many tasks have ended.
fn run_embassy(tasks: usize, spawn: impl FnOnce(Spawner)) {
    ENDED.store(0, Ordering::SeqCst);
    let executor = Box::leak(Box::new(Executor::new()));
    executor.run_until(spawn, || ENDED.load(Ordering::SeqCst) == tasks);
}

/// How many of embassy's tasks have ended.
static ENDED: AtomicUsize = AtomicUsize::new(0);

static TABLE: IdTable<Noted> = IdTable::new();

#[embassy_executor::task]
async fn write_to_the_table() {
    checked(|lender| async move {
        for id in 0..10 {
            lender.with(|cx| drop(TABLE.insert(id % 3, StrongRc::new(Noted(id)), cx)));
            give_way().await;
        }
        lender.with(|cx| (0..3).for_each(|id| drop(TABLE.remove(id, cx))));
    })
    .await;
    ENDED.fetch_add(1, Ordering::SeqCst);
}

#[embassy_executor::task(pool_size = 2)]
async fn read_from_the_table() {
    checked(|lender| async move {
        let mut seen = 0;
        for _ in 0..20 {
            let name = lender.with(|cx| TABLE.weak(1, cx));
            give_way().await;
            if let Some(object) = name.and_then(|name| lender.upgrade(&name).ok()) {
                assert_eq!(object.0 % 3, 1);
                seen += 1;
            }
            give_way().await;
        }
        assert!(seen > 0);
    })
    .await;
    ENDED.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn static_tasks_of_embassy_share_a_table() {
    let _alone = alone();
    run_embassy(3, |spawner| {
        spawner.spawn(read_from_the_table().expect("one of two"));
        spawner.spawn(write_to_the_table().expect("the only one"));
        spawner.spawn(read_from_the_table().expect("the other one"));
    });
    assert_eq!(dropped(), 10);
}

#[embassy_executor::task]
async fn hold_across_an_await(name: WeakRc<Noted>) {
    checked(|lender| async move {
        let held = lender.upgrade(&name).unwrap();
        give_way().await;
        drop(held);
    })
    .await;
}

#[test]
fn embassy_stops_at_a_borrow_across_an_await() {
    let _alone = alone();
    let owner = StrongRc::new(Noted(1));
    let name = owner.downgrade();
    let run = || run_embassy(1, |spawner| spawner.spawn(hold_across_an_await(name).expect("the only one")));
    let text = message(std::panic::catch_unwind(AssertUnwindSafe(run)).unwrap_err());
    assert!(text.contains("Noted>") && text.contains("tests/dynamic.rs:"), "{text}");
    drop(owner);
}
