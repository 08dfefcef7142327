//! Rust futures in a box, polled by hand: what the language itself costs, without any executor.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};

use crate::line::Samples;

fn boxed(future: impl Future<Output = ()> + 'static) -> Pin<Box<dyn Future<Output = ()>>> {
    std::hint::black_box(Box::pin(future))
}

/// Polls a boxed future again and again; per poll.
pub fn switch(s: &mut Samples) {
    let mut future = boxed(async {
        loop {
            futures_lite::future::yield_now().await;
        }
    });
    let mut cx = Context::from_waker(Waker::noop());
    s.each(|| {
        let _ = std::hint::black_box(future.as_mut().poll(&mut cx));
    });
}

/// A future boxed, polled once and freed.
pub fn create_empty(s: &mut Samples) {
    let mut cx = Context::from_waker(Waker::noop());
    s.each(|| {
        let _ = boxed(async {}).as_mut().poll(&mut cx);
    });
}

/// A future boxed, polled to its suspension and to its end, and freed.
pub fn create_suspend(s: &mut Samples) {
    let mut cx = Context::from_waker(Waker::noop());
    s.each(|| {
        let mut future = boxed(futures_lite::future::yield_now());
        let _ = future.as_mut().poll(&mut cx);
        let _ = future.as_mut().poll(&mut cx);
    });
}
