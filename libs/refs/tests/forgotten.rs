//! A borrow that is never given back: memory is lost, nothing is used after it was freed. Alone in its file, because from then
//! on nothing is freed any more in the whole process.
#![cfg(not(ebb_loom))]

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};

use refs::StrongRc;
use refs::dynamic::{Gate, checked};

static DROPPED: AtomicUsize = AtomicUsize::new(0);

struct Noted;

impl Drop for Noted {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn an_object_whose_borrow_was_forgotten_is_never_freed() {
    let owner = StrongRc::new(Noted);
    let name = owner.downgrade();
    let mut future = pin!(checked(|lender| async move {
        std::mem::forget(lender.upgrade(&name).unwrap());
    }));
    let poll = || future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
    assert!(std::panic::catch_unwind(AssertUnwindSafe(poll)).is_err(), "also when the future ends");
    drop(owner);
    for _ in 0..3 {
        assert!(Gate::new().open().close().is_ok());
    }
    assert!(name.is_gone());
    assert_eq!(DROPPED.load(Ordering::Relaxed), 0);
}
