//! Clock, alarm, guard pages, kernel memory.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use refs::{Cx, StrongRc, Waker, WeakRc};
use tasks::StackSource;

use super::{Outcome, Test, yield_until_async};
use crate::arch::machine::{kernel_map, stacks};
use crate::irq::IrqCx;
use crate::{check, serial, time};

pub(super) const TESTS: &[Test] = &[
    ("the clock goes forward", the_clock_goes_forward),
    ("the alarm is never early", the_alarm_is_never_early),
    ("an alarm in the past goes off at once", an_alarm_in_the_past),
    ("an alarm that was taken back is silent", an_alarm_taken_back),
    ("a stack has an unmapped page below it", a_stack_has_a_guard),
    ("the memory of many stacks comes back", stacks_come_back),
    ("the memory of many links comes back, and old names lead nowhere", links_come_back),
    ("kernel text is not writable and the identity mapping is gone", the_map_is_as_described),
    ("heap objects are aligned and zeroed", heap_objects),
    ("the date makes sense", the_date_makes_sense),
    ("what a serial port receives arrives by interrupts", serial_input),
];

static WENT_OFF: AtomicU64 = AtomicU64::new(0);
static WAITER: refs::SpinLock<Option<Waker>> = refs::SpinLock::new(None);

fn wake_waiter(_: &IrqCx) {
    WENT_OFF.fetch_add(1, Ordering::Relaxed);
    if let Some(waker) = WAITER.with(Option::take) {
        waker.wake();
    }
}

/// Parks until the alarm goes off.
fn sleep_until_async(cx: &mut Cx, deadline: u64) {
    time::on_alarm(wake_waiter);
    let waker = tasks::prepare(cx);
    WAITER.with(|waiter| *waiter = Some(waker));
    time::set_alarm(Some(deadline));
    tasks::park_async(cx);
}

fn the_clock_goes_forward(_: &mut Cx) -> Outcome {
    let mut last = time::now();
    for _ in 0..1000 {
        let now = time::now();
        check!(now >= last, "{now} after {last}");
        last = now;
    }
    Ok(())
}

fn the_alarm_is_never_early(cx: &mut Cx) -> Outcome {
    for wait in [50_000, 1_000_000, 5_000_000] {
        let deadline = time::now() + wait;
        sleep_until_async(cx, deadline);
        let now = time::now();
        check!(now >= deadline, "{} ns early", deadline - now);
    }
    Ok(())
}

fn an_alarm_in_the_past(cx: &mut Cx) -> Outcome {
    sleep_until_async(cx, 1);
    Ok(())
}

fn an_alarm_taken_back(cx: &mut Cx) -> Outcome {
    time::on_alarm(wake_waiter);
    // On a busy host it may come before it is taken back: the next one leaves more time.
    for delay_ns in (0..14).map(|round| 300_000_u64 << round) {
        let before = WENT_OFF.load(Ordering::Relaxed);
        let deadline = time::now() + delay_ns;
        time::set_alarm(Some(deadline));
        time::set_alarm(None);
        let was_in_time = time::now() < deadline;
        while time::now() < deadline + delay_ns {
            crate::irq::poll(cx);
        }
        if was_in_time {
            check!(WENT_OFF.load(Ordering::Relaxed) == before, "it went off");
            return Ok(());
        }
    }
    Err("it was never taken back in time".into())
}

fn a_stack_has_a_guard(_: &mut Cx) -> Outcome {
    let stack = stacks::POOL.take().ok_or("no memory for a stack")?;
    let (bottom, top) = (stack.bottom(), stack.top());
    // SAFETY: it came from there.
    unsafe { stacks::POOL.give(stack) };
    check!(kernel_map::is_mapped(bottom) && kernel_map::is_mapped(top - 1), "the stack is not mapped");
    check!(stacks::is_guard(bottom - 1), "the page below is mapped");
    check!(stacks::rest_of(bottom + 100) == Some(bottom + 100..top), "its top is not found");
    Ok(())
}

fn stacks_come_back(cx: &mut Cx) -> Outcome {
    let make_all = || -> Vec<tasks::Stack> { (0..200).map_while(|_| stacks::POOL.take()).collect() };
    // SAFETY: they come from there.
    let give_all = |all: Vec<tasks::Stack>| all.into_iter().for_each(|stack| unsafe { stacks::POOL.give(stack) });
    let take_apart = || while stacks::give_spare_back() {};
    // Once for the tables, which stay.
    give_all(make_all());
    take_apart();
    let before = crate::mm::free_frames();
    let all = make_all();
    check!(all.len() == 200, "only {} stacks", all.len());
    let taken = before - crate::mm::free_frames();
    give_all(all);
    check!(taken > 1200, "200 stacks took {taken} frames");
    // They stay in the pool, and count as free: whoever finds no memory takes them apart.
    let spare = stacks::spare_frames();
    check!(spare > 1000, "of {taken} frames {spare} are spare");
    take_apart();
    check!(stacks::spare_frames() == 0, "{} frames are still spare", stacks::spare_frames());
    frames_come_back_async(cx, before - 64)
}

fn links_come_back(cx: &mut Cx) -> Outcome {
    const OBJECTS: u64 = 20_000;
    let mut names: Vec<WeakRc<u64>> = Vec::with_capacity(2 * OBJECTS as usize);
    let mut make_and_destroy = |cx: &mut Cx| {
        let objects: Vec<StrongRc<u64>> = (0..OBJECTS).map(StrongRc::new).collect();
        names.extend(objects.iter().map(StrongRc::downgrade));
        let frames = crate::mm::free_frames();
        let lived = names.iter().filter(|name| name.upgrade(cx).is_ok()).count() as u64;
        objects.into_iter().for_each(|object| object.destroy(cx));
        (frames, lived, names.iter().all(WeakRc::is_gone))
    };
    // Once for the tables, which stay.
    make_and_destroy(cx);
    let before = crate::mm::free_frames();
    let (meanwhile, lived, all_gone) = make_and_destroy(cx);
    let taken = before.saturating_sub(meanwhile);
    check!(lived == OBJECTS && all_gone, "{lived} names led to an object, all gone: {all_gone}");
    check!(taken > 40, "{OBJECTS} objects took {taken} frames");
    frames_come_back_async(cx, before - 16)
}

/// Waits until as many frames are free: a core that was stopped in the kernel, as by a host that runs another, holds them up.
pub(super) fn frames_come_back_async(cx: &mut Cx, frames: usize) -> Outcome {
    let come_back = yield_until_async(cx, || crate::mm::free_frames() >= frames);
    check!(come_back.is_ok(), "{} frames did not come back", frames - crate::mm::free_frames());
    Ok(())
}

fn the_map_is_as_described(_: &mut Cx) -> Outcome {
    let text = kernel_map::text();
    check!(kernel_map::is_mapped(text.start), "the text is not mapped");
    check!(!kernel_map::is_mapped(text.start - kernel_map::KERNEL_BASE), "the identity mapping is there");
    let second = text.start - kernel_map::KERNEL_BASE + kernel_map::DIRECT_MAP;
    check!(!kernel_map::is_mapped(second), "the text is in the direct map");
    Ok(())
}

fn heap_objects(_: &mut Cx) -> Outcome {
    for size in [1, 8, 24, 64, 100, 700, 2048, 4096, 5000, 100_000] {
        let bytes = vec![0_u8; size];
        check!(bytes.iter().all(|byte| *byte == 0), "{size} bytes are not zero");
    }
    #[repr(align(64))]
    struct Line([u8; 100]);
    let lines: Vec<Box<Line>> = (0..20).map(|number| Box::new(Line([number; 100]))).collect();
    for (number, line) in lines.iter().enumerate() {
        check!(core::ptr::from_ref(&**line).addr() % 64 == 0, "not aligned");
        check!(line.0.iter().all(|byte| usize::from(*byte) == number), "overwritten");
    }
    Ok(())
}

static RECEIVED: refs::SpinLock<Vec<u8>> = refs::SpinLock::new(Vec::new());

fn keep_received(_: &IrqCx, bytes: &[u8]) {
    RECEIVED.with(|received| received.extend_from_slice(bytes));
}

fn serial_input(cx: &mut Cx) -> Outcome {
    let port = serial::port(0).ok_or("there is no console")?;
    port.on_input(keep_received);
    port.set_loopback(true);
    // Fewer than the port's buffer holds: they arrive together, when no more come for a while.
    port.write(b"hello");
    let arrived = yield_until_async(cx, || RECEIVED.with(|received| received.len()) >= 5);
    port.set_loopback(false);
    arrived?;
    let received = RECEIVED.with(core::mem::take);
    check!(received == b"hello", "{received:?}");
    Ok(())
}

fn the_date_makes_sense(_: &mut Cx) -> Outcome {
    const YEAR_2024: u64 = 1_704_067_200;
    let seconds = time::boot_wall_seconds();
    check!(seconds > YEAR_2024 && seconds < YEAR_2024 + 100 * 366 * 86400, "{seconds}");
    Ok(())
}
