//! Threads, channels and locks through the standard library.

use ebb_user_checks::check;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Condvar, Mutex, OnceLock, RwLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

thread_local! {
    static LOCAL: Cell<u32> = const { Cell::new(1) };
}

static DROPPED: AtomicUsize = AtomicUsize::new(0);

struct Counted;

impl Drop for Counted {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Ordering::SeqCst);
    }
}

thread_local! {
    static COUNTED: Counted = const { Counted };
}

fn main() {
    let (sender, receiver) = mpsc::channel();
    for worker in 0..8u64 {
        let sender = sender.clone();
        thread::spawn(move || (0..1000).for_each(|i| sender.send(worker * 1000 + i).expect("the receiver lives")));
    }
    drop(sender);
    check("channel-sum", receiver.iter().sum::<u64>());

    let (sender, receiver) = mpsc::sync_channel(2);
    let producer = thread::spawn(move || (0..100).for_each(|i| sender.send(i).expect("the receiver lives")));
    check("bounded-order", receiver.iter().eq(0..100));
    check("joined", producer.join().is_ok());

    let total = Mutex::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..5000).for_each(|_| *total.lock().expect("no thread panicked") += 1));
        }
    });
    check("scoped-total", total.into_inner().expect("no thread panicked"));

    let pair = Arc::new((Mutex::new(false), Condvar::new()));
    let other = Arc::clone(&pair);
    let setter = thread::spawn(move || {
        thread::sleep(Duration::from_millis(20));
        *other.0.lock().expect("no thread panicked") = true;
        other.1.notify_all();
    });
    let ready =
        pair.1.wait_while(pair.0.lock().expect("no thread panicked"), |ready| !*ready).expect("no thread panicked");
    check("condition", *ready);
    drop(ready);
    setter.join().expect("it does not panic");
    let start = Instant::now();
    let (_guard, timeout) = pair
        .1
        .wait_timeout(pair.0.lock().expect("no thread panicked"), Duration::from_millis(20))
        .expect("no thread panicked");
    check("condition-timeout", timeout.timed_out() && start.elapsed() >= Duration::from_millis(19));

    let barrier = Barrier::new(4);
    let leaders = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20 {
                    leaders.fetch_add(usize::from(barrier.wait().is_leader()), Ordering::SeqCst);
                }
            });
        }
    });
    check("barrier-leaders", leaders.into_inner());

    LOCAL.set(5);
    check("thread-local", thread::spawn(|| LOCAL.get()).join().unwrap_or(0) * 10 + LOCAL.get());
    thread::spawn(|| COUNTED.with(|_| ())).join().expect("it does not panic");
    check("thread-local-dropped", DROPPED.load(Ordering::SeqCst));

    std::panic::set_hook(Box::new(|_| ()));
    let failed = thread::spawn(|| panic!("on purpose")).join();
    check("panic-caught", failed.is_err_and(|payload| payload.downcast_ref::<&str>() == Some(&"on purpose")));
    let unwound = std::panic::catch_unwind(|| {
        let _guard = Counted;
        let empty: [u8; 0] = [];
        empty[std::hint::black_box(0)]
    });
    check("unwound", unwound.is_err());
    check("guard-dropped", DROPPED.load(Ordering::SeqCst));

    let cell = OnceLock::new();
    let wins: usize = thread::scope(|scope| {
        let handles: Vec<_> = (0..8)
            .map(|i| {
                scope.spawn({
                    let cell = &cell;
                    move || usize::from(cell.set(i).is_ok())
                })
            })
            .collect();
        handles.into_iter().map(|h| h.join().unwrap_or(0)).sum()
    });
    check("once", wins);
    let lock = RwLock::new(1);
    let both = lock.read().is_ok_and(|_first| lock.try_read().is_ok());
    check("two-readers", both);
    let named = thread::Builder::new()
        .name("worker".into())
        .stack_size(256 * 1024)
        .spawn(|| thread::current().name().map(str::to_owned));
    check("name", named.ok().and_then(|h| h.join().ok()).flatten().unwrap_or_default());
    let parked = thread::spawn(|| thread::park_timeout(Duration::from_secs(5)));
    parked.thread().unpark();
    check("unparked", parked.join().is_ok());
    check("parallelism", thread::available_parallelism().is_ok());
}
