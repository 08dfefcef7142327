//! Objects whose end nobody sees, on the cores of a kernel: dead at once for all, and kept at hand by the core on which they died while others may borrow them.
#![cfg(not(any(ebb_loom, ebb_shuttle)))]

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use refs::reclaim::{self, Core, Report};
use refs::{Cx, Processor, StrongRc, UnseenRc, set_processor};

/// How many are looked at together.
const MANY: usize = 16;

static DROPPED: AtomicUsize = AtomicUsize::new(0);

struct Noted;

impl Drop for Noted {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Owns another one, as fields do.
struct Outer {
    _inner: UnseenRc<Noted>,
}

fn dropped() -> usize {
    DROPPED.load(Ordering::Relaxed)
}

thread_local! {
    static CORE: Cell<usize> = const { Cell::new(0) };
}

static PROCESSOR: Processor = Processor {
    current_core: || CORE.get(),
    relax: || {},
    nanoseconds: || 0,
    stuck: |lock| panic!("the lock at {lock:#x} is never given back"),
};

fn as_core<R>(number: usize, f: impl FnOnce(&mut Cx, &Core) -> R) -> R {
    CORE.set(number);
    let report = Box::leak(Box::new(Report::new()));
    // SAFETY: the only context of this thread ends before it; nobody else has the report.
    let core = unsafe { Core::register_as(number, report) };
    // SAFETY: this thread has no other Cx, and it is registered.
    let mut cx = unsafe { Cx::new(core::ptr::null()) };
    f(&mut cx, &core)
}

/// The other core passes a suspension each time it is asked to, and is there in between.
fn beside_another(test: impl FnOnce(&mut Cx, &Core, &dyn Fn())) {
    set_processor(&PROCESSOR);
    as_core(0, |cx, core| {
        std::thread::scope(|scope| {
            let (ask, asked) = channel::<()>();
            let (say, said) = channel();
            scope.spawn(move || {
                as_core(1, |cx, core| {
                    say.send(()).unwrap();
                    while asked.recv().is_ok() {
                        core.while_idle(cx, || ());
                        say.send(()).unwrap();
                    }
                });
            });
            said.recv().unwrap();
            let pass = move || {
                ask.send(()).unwrap();
                said.recv().unwrap();
            };
            test(cx, core, &pass);
        });
    });
}

#[test]
fn what_ends_unseen_is_kept_at_hand_until_there_are_many_or_somebody_asks() {
    beside_another(|cx, core, pass| {
        let is_to_look = || reclaim::waiting_flag(0).load(Ordering::Relaxed);
        // Now the core knows that the other one is there.
        StrongRc::new(Noted).destroy(cx);
        assert_eq!((dropped(), is_to_look()), (0, true));
        pass();
        core.quiescent(cx);
        assert_eq!((dropped(), is_to_look()), (1, false));

        let awaited = reclaim::awaited(0);
        for _ in 1..MANY {
            let owner = StrongRc::new(Noted);
            let name = owner.downgrade();
            owner.end_unseen();
            assert!(name.upgrade(cx).is_err(), "it is dead at once");
        }
        pass();
        core.quiescent(cx);
        assert_eq!((dropped(), is_to_look(), reclaim::awaited(0)), (1, false, awaited), "nobody looked, nobody waits");
        let epoch = reclaim::begin_epoch();
        assert!(reclaim::waits_since_before(0, epoch) && !reclaim::awaits_since_before(0, epoch));

        StrongRc::new(Noted).end_unseen();
        assert!(is_to_look(), "there are many");
        core.quiescent(cx);
        let others = dropped() - 1;
        assert!(others < MANY, "the other core may borrow the last one");
        assert!(!is_to_look(), "what is left is kept at hand");
        pass();
        assert!(reclaim::look(0));
        core.quiescent(cx);
        assert_eq!(dropped(), 1 + MANY);
        assert!(!reclaim::look(0) && !reclaim::waits_since_before(0, reclaim::begin_epoch()));

        // The last of several owners ends it, and what it owns in its turn.
        let outer = StrongRc::new(Outer { _inner: StrongRc::new(Noted).into() });
        let other = outer.share();
        outer.end_unseen_if(|_| true);
        let name = other.downgrade();
        assert!(name.upgrade(cx).is_ok() && !reclaim::look(0));
        let read = other.destroy_unseen_async(cx, |_, _| 7);
        assert!(read == Some(7) && name.upgrade(cx).is_err());
        pass();
        // A core that idles looks at all that it has. What the destructor has let go of died in the epoch that the second look ends.
        for _ in 0..3 {
            core.while_idle(cx, || ());
            pass();
        }
        assert_eq!(dropped(), 2 + MANY);

        // Whether it is the last one or not: what is not unseen is waited for.
        let awaited = reclaim::awaited(0);
        StrongRc::new(Noted).end_unseen_if(|_| false);
        StrongRc::new(Noted).destroy_unseen(cx, |_| false);
        assert_eq!(reclaim::awaited(0), awaited + 2);
        pass();
        core.quiescent(cx);
        assert_eq!(dropped(), 4 + MANY);
    });
}
