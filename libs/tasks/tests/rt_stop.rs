//! Stopping, aborting and reporting.

use std::cell::{Cell, RefCell};

use refs::WaitList;
use tasks::rt::{self, AweRef, NotSuspended};

/// Counts how often it is dropped.
struct Dropped<'a>(&'a Cell<u32>);

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn all_tasks_are_asked_to_stop() {
    let stopped = Cell::new(0);
    rt::run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            for _ in 0..5 {
                scope.spawn_async(cx, |cx| {
                    while !rt::should_stop(cx) {
                        rt::yield_async(cx);
                    }
                    stopped.set(stopped.get() + 1);
                });
            }
            rt::yield_async(cx);
            assert_eq!(stopped.get(), 0);
            rt::stop_all(cx);
        });
    });
    assert_eq!(stopped.get(), 5);
    rt::run(|cx| assert!(!rt::should_stop(cx), "the next run-time is not asked"));
}

#[test]
fn an_aborted_task_unwinds_wherever_it_is_suspended() {
    let list = WaitList::new();
    let dropped = Cell::new(0);
    let beyond = Cell::new(false);
    let release = Cell::new(false);
    let targets: RefCell<Vec<AweRef>> = RefCell::default();
    rt::run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            for way in 0..4 {
                let (list, dropped, beyond, release, targets) = (&list, &dropped, &beyond, &release, &targets);
                scope.spawn_async(cx, move |cx| {
                    let _guard = Dropped(dropped);
                    targets.borrow_mut().push(rt::current(cx));
                    match way {
                        0 => rt::yield_async(cx),
                        1 => rt::suspend_async(cx),
                        2 => {
                            list.register(rt::prepare(cx), cx);
                            rt::park_async(cx);
                        }
                        // It waits for its block.
                        _ => rt::finish_async(cx, |scope, cx| {
                            scope.spawn_async(cx, |cx| {
                                while !release.get() {
                                    rt::yield_async(cx);
                                }
                            });
                        }),
                    }
                    beyond.set(true);
                });
            }
            for (number, &target) in targets.borrow().iter().enumerate() {
                assert_eq!(rt::abort_async(cx, target), Ok(()));
                if number < 3 {
                    assert_eq!(dropped.get(), number as u32 + 1);
                    assert_eq!(rt::abort_async(cx, target), Err(NotSuspended));
                }
            }
            list.wake_all();
            release.set(true);
        });
        assert_eq!(dropped.get(), 4);
        assert!(!beyond.get());
    });
}

#[test]
fn a_task_can_abort_itself_and_those_that_called_it() {
    let dropped = &Cell::new(0);
    rt::run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, |cx| {
                let _guard = Dropped(dropped);
                let parent = rt::current(cx);
                scope.spawn_async(cx, move |cx| {
                    let _guard = Dropped(dropped);
                    rt::abort_async(cx, parent).expect("it has not ended");
                    let me = rt::current(cx);
                    let _ = rt::abort_async(cx, me);
                    unreachable!("the task has ended");
                });
                unreachable!("the parent was aborted in its call");
            });
        });
    });
    assert_eq!(dropped.get(), 2);
}

#[test]
fn a_task_that_waits_for_its_block_is_aborted_when_the_block_is_empty() {
    let order = RefCell::new(Vec::new());
    rt::run(|cx| {
        let target: Cell<Option<AweRef>> = Cell::new(None);
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, |cx| {
                target.set(Some(rt::current(cx)));
                rt::finish_async(cx, |scope, cx| {
                    scope.spawn_async(cx, |cx| {
                        rt::yield_async(cx);
                        order.borrow_mut().push("the block's task ends");
                    });
                });
                order.borrow_mut().push("beyond");
            });
            assert_eq!(rt::abort_async(cx, target.get().expect("it has run")), Ok(()));
            assert!(order.borrow().is_empty());
        });
    });
    assert_eq!(*order.borrow(), ["the block's task ends"]);
}

#[test]
fn a_report_names_every_task_and_what_it_waits_for() {
    let list = WaitList::new();
    let mut text = String::new();
    rt::run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, |cx| {
                rt::set_name(cx, "reader");
                list.register(rt::prepare(cx), cx);
                rt::park_async(cx);
            });
            scope.spawn_async(cx, |cx| {
                rt::set_name(cx, "writer");
                rt::yield_async(cx);
                rt::dump(cx, &mut text).expect("a string takes everything");
                list.wake_all();
            });
            scope.spawn_async(cx, |cx| {
                scope.spawn_async(cx, |cx| {
                    assert_eq!(rt::count(cx), 5);
                });
                rt::set_name(cx, "third");
                rt::yield_async(cx);
            });
        });
        assert_eq!(rt::count(cx), 1);
    });
    let line = |name: &str| {
        let found: Vec<&str> = text.lines().filter(|line| line.contains(&format!("\"{name}\""))).collect();
        assert_eq!(found.len(), 1, "{text}");
        found[0]
    };
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(line("main").ends_with("waits for the tasks of a block"), "{text}");
    assert!(line("reader").contains("waits for its waker; "), "{text}");
    assert!(line("reader").ends_with(" bytes of stack"), "{text}");
    assert!(line("writer").ends_with("running"), "{text}");
    assert!(line("third").contains("queued; "), "{text}");
}

#[test]
fn a_panic_in_the_block_of_an_aborted_task_is_not_lost() {
    let result = std::panic::catch_unwind(|| {
        rt::run(|cx| {
            let target: Cell<Option<AweRef>> = Cell::new(None);
            rt::finish_async(cx, |scope, cx| {
                scope.spawn_async(cx, |cx| {
                    target.set(Some(rt::current(cx)));
                    rt::finish_async(cx, |scope, cx| {
                        scope.spawn_async(cx, |cx| {
                            rt::yield_async(cx);
                            panic!("in the block");
                        });
                    });
                });
                rt::abort_async(cx, target.get().expect("it has run")).expect("it waits for its block");
            });
        });
    });
    assert_eq!(*result.expect_err("the panic").downcast::<&str>().expect("a text"), "in the block");
}

#[test]
fn a_report_whose_reader_panics_leaves_no_mark() {
    struct Reader;
    impl std::fmt::Write for Reader {
        fn write_str(&mut self, _: &str) -> std::fmt::Result {
            panic!("no more")
        }
    }
    rt::run(|cx| {
        let start = |cx: &mut rt::Cx| {
            rt::finish_async(cx, |scope, cx| {
                for _ in 0..4 {
                    scope.spawn_async(cx, rt::yield_async);
                }
                rt::count(cx)
            })
        };
        // Whoever begins with what is in the pool now is counted as before.
        assert_eq!(start(cx), 5);
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| rt::dump(cx, &mut Reader))).is_err());
        assert_eq!(start(cx), 5);
    });
}
