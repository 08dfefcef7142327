//! What is reported of locks that could have cores wait for each other for ever.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use refs::{Cx, Processor, SpinLock, Wait, lock_order};

/// Each thread is a core.
fn core() -> usize {
    static CORES: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static CORE: Cell<Option<usize>> = const { Cell::new(None) });
    CORE.with(|core| {
        let number = core.get().unwrap_or_else(|| CORES.fetch_add(1, Ordering::Relaxed));
        core.set(Some(number));
        number
    })
}

/// A clock that goes by a hundredth of a second from one look to the next.
fn nanoseconds() -> u64 {
    static LOOKS: AtomicUsize = AtomicUsize::new(1);
    10_000_000 * LOOKS.fetch_add(1, Ordering::Relaxed) as u64
}

/// A context of this thread, which is a core.
fn cx() -> Cx {
    static PROCESSOR: Processor = Processor {
        current_core: core,
        relax: || (),
        nanoseconds,
        stuck: |lock| panic!("stuck: {}", if lock == 0 { "no lock" } else { "a lock" }),
    };
    static ONCE: Once = Once::new();
    ONCE.call_once(|| refs::set_processor(&PROCESSOR));
    // SAFETY: tests suspend nothing.
    unsafe { Cx::new(std::ptr::null()) }
}

/// What `f` panics with.
fn message(f: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(f)).expect_err("it panics");
    payload.downcast_ref::<String>().expect("a formatted message").clone()
}

#[test]
fn the_other_way_round_is_reported_though_nobody_waits() {
    let cx = cx();
    let (one, other, third) = (SpinLock::new(1), SpinLock::new(2), SpinLock::new(3));
    let first = one.lock(&cx);
    drop(other.lock(&cx));
    drop(first);
    let first = other.lock(&cx);
    drop(third.lock(&cx));
    drop(first);
    let message = message(|| {
        let _held = third.lock(&cx);
        let _circle = one.lock(&cx);
    });
    assert!(message.starts_with("lock order: the lock made at libs/refs/tests/lock_order.rs:"), "{message}");
    assert_eq!(message.matches("was taken at").count(), 2, "the way from the first to the last: {message}");
}

#[test]
fn a_lock_that_the_core_holds_already_is_reported() {
    let cx = cx();
    let lock = SpinLock::new(());
    let message = message(|| {
        let _held = lock.lock(&cx);
        lock.with(|_| ());
    });
    assert!(message.contains("by a core that holds it since"), "{message}");
}

#[test]
fn two_locks_of_one_class_need_an_order() {
    let cx = cx();
    let locks = [(); 2].map(|()| SpinLock::new(0));
    let first = locks[0].lock(&cx);
    drop(locks[1].lock_after(&first, &cx));
    drop(first);
    let message = message(|| {
        let _first = locks[0].lock(&cx);
        let _second = locks[1].lock(&cx);
    });
    assert!(message.contains("with no order between them"), "{message}");
}

#[test]
fn a_lock_that_is_held_where_the_core_does_something_else_is_reported() {
    let cx = cx();
    let lock = SpinLock::new(());
    lock_order::check_none_held();
    let message = message(|| {
        let _held = lock.lock(&cx);
        lock_order::check_none_held();
    });
    assert!(message.contains("is still held at"), "{message}");
}

#[test]
fn a_lock_that_was_tried_comes_after_nothing() {
    let cx = cx();
    let (one, other) = (SpinLock::new(1), SpinLock::new(2));
    let first = one.lock(&cx);
    drop(other.lock(&cx));
    drop(first);
    let first = other.lock(&cx);
    assert!(one.try_lock(&cx).is_some());
    drop(first);
}

#[test]
fn the_orders_and_times_can_be_read() {
    let cx = cx();
    let (one, other) = (SpinLock::new(1), SpinLock::new(2));
    let first = one.lock(&cx);
    let line = line!() + 1;
    drop(other.lock(&cx));
    drop(first);
    let order = (0..).map_while(lock_order::order).find(|order| order.taken_at[1].line() == line).expect("the order");
    assert_eq!(order.made_at[0].line(), order.made_at[1].line());
    let class = (0..).map_while(lock_order::class).find(|class| class.made_at == order.made_at[1]).expect("the class");
    assert_eq!(class.taken, 1);
    assert_eq!(class.longest_at.line(), line);
}

#[test]
fn who_holds_a_lock_for_ever_is_known_to_who_waits() {
    let cx = cx();
    static LOCK: SpinLock<u32> = SpinLock::new(0);
    let held = LOCK.lock(&cx);
    let waiter = thread::spawn(|| {
        let message = message(|| {
            LOCK.with(|_| ());
        });
        // The word that is waited for lies somewhere in the lock.
        let start = (&raw const LOCK).addr();
        (message, (start..start + size_of_val(&LOCK)).find_map(lock_order::holder))
    });
    let (message, holder) = waiter.join().expect("the waiter");
    drop(held);
    assert_eq!(message, "stuck: a lock");
    let holder = holder.expect("somebody holds it");
    assert_eq!(holder.core, core());
    assert!(holder.taken_at.line() < line!());
}

#[test]
fn an_answer_that_never_comes_is_reported() {
    let _cx = cx();
    let message = message(|| {
        let mut wait = Wait::new();
        loop {
            wait.spin(0);
        }
    });
    assert_eq!(message, "stuck: no lock");
}
