//! The functions that C calls, called by tasks of Rust: so the sanitizers see them. (What C inlines is tested in `c/tests`.)

use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr::{null, null_mut};

use tasks::rt::c::{cancel, ids, life, report, scheduling, sync};
use tasks::rt::{self, Awe};

/// What a function of C gets for "whatever this points to".
fn pointer<T>(to: &T) -> *mut c_void {
    core::ptr::from_ref(to).cast_mut().cast()
}

unsafe extern "C" fn count_up(counter: *mut c_void) {
    // SAFETY: each test passes a counter that lives on.
    let counter = unsafe { &*counter.cast::<Cell<u32>>() };
    counter.set(counter.get() + 1);
}

#[test]
fn a_thread_is_initialised_once_at_a_time_and_again_after_its_end() {
    for _ in 0..3 {
        // SAFETY: no configuration; the thread runs no tasks, and nothing else is on its stack.
        unsafe {
            assert_eq!(life::ac_init(null()), 0);
            assert_eq!(life::ac_init(null()), -libc::EBUSY);
            assert_eq!(life::ac_is_running(), 1);
            assert_eq!(report::ac_task_count(), 1);
            life::ac_stop_all();
            assert_eq!(life::ac_should_stop(), 1);
        }
        life::ac_done();
        assert_eq!(life::ac_is_running(), 0);
    }
}

#[test]
fn whoever_waits_at_a_primitive_of_c_goes_on_in_order() {
    let order = std::cell::RefCell::new(Vec::new());
    rt::run(|cx| {
        let mut memory = (MaybeUninit::uninit(), MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: here and below a task calls what suspends it, with no `Cx` in use meanwhile; all are made before they are used.
        let (sem, lock, condvar) = unsafe {
            sync::ac_sem_init(&mut memory.0, 1);
            sync::ac_lock_init(&mut memory.1);
            sync::ac_condvar_init(&mut memory.2);
            (memory.0.assume_init_ref(), memory.1.assume_init_ref(), memory.2.assume_init_ref())
        };
        rt::finish_async(cx, |scope, cx| {
            for name in 0..3 {
                let order = &order;
                // SAFETY: as above.
                scope.spawn_async(cx, move |_| unsafe {
                    sync::ac_sem_p(sem);
                    order.borrow_mut().push(name);
                    sync::ac_lock_acquire(lock);
                    sync::ac_condvar_wait(condvar, lock);
                    sync::ac_lock_release(lock);
                    order.borrow_mut().push(10 + name);
                    sync::ac_sem_v(sem);
                });
            }
            for _ in 0..3 {
                rt::yield_async(cx);
                // SAFETY: as above.
                unsafe {
                    sync::ac_lock_acquire(lock);
                    assert_eq!(sync::ac_condvar_signal(condvar), 1);
                    // A second one finds nobody, and blocks nobody.
                    assert_eq!(sync::ac_condvar_signal(condvar), 0);
                    sync::ac_lock_release(lock);
                }
                rt::yield_async(cx);
                rt::yield_async(cx);
            }
        });
        // SAFETY: as above; nobody waits.
        unsafe {
            assert_eq!(sync::ac_sem_try_p(sem), 1);
            assert_eq!(sync::ac_condvar_broadcast(condvar), 0);
            sync::ac_sem_destroy(&mut memory.0);
            sync::ac_lock_destroy(&mut memory.1);
            sync::ac_condvar_destroy(&mut memory.2);
        }
    });
    assert_eq!(*order.borrow(), [0, 10, 1, 11, 2, 12]);
}

#[test]
fn events_and_places_in_a_line_are_waited_for() {
    rt::run(|cx| {
        let mut memory = (MaybeUninit::uninit(), MaybeUninit::uninit(), Box::leak(Box::new(MaybeUninit::uninit())));
        // SAFETY: as in the test above. The queue is never freed.
        let (events, sequencer) = unsafe {
            sync::ac_ec_init(&mut memory.0);
            sync::ac_seq_init(&mut memory.1);
            sync::ac_queue_init(memory.2);
            (memory.0.assume_init_ref(), memory.1.assume_init_ref())
        };
        // SAFETY: as above.
        let queue = unsafe { memory.2.assume_init_ref() };
        let served = Cell::new(0);
        rt::finish_async(cx, |scope, cx| {
            for _ in 0..3 {
                // SAFETY: as above.
                scope.spawn_async(cx, |_| unsafe {
                    let mut turn = MaybeUninit::uninit();
                    sync::ac_queue_enter(queue, &mut turn);
                    let turn = turn.assume_init_mut();
                    let ticket = sync::ac_seq_ticket(sequencer);
                    assert_eq!(sync::ac_ec_await(events, ticket + 1), ticket + 1);
                    sync::ac_queue_await_turn(turn);
                    served.set(served.get() + 1);
                    assert_eq!(sync::ac_queue_leave(turn), 0);
                });
            }
            for _ in 0..3 {
                // SAFETY: as above.
                unsafe { sync::ac_ec_advance(events, 1) };
                rt::yield_async(cx);
            }
        });
        assert_eq!(served.get(), 3);
        // SAFETY: as above.
        unsafe {
            assert_eq!(sync::ac_ec_read(events), 3);
            assert_eq!(sync::ac_seq_read(sequencer), 3);
            sync::ac_ec_destroy(&mut memory.0);
        }
    });
}

#[test]
fn a_request_runs_items_and_ends_waits() {
    rt::run(|cx| {
        let mut memory = MaybeUninit::uninit();
        // SAFETY: as in the tests above.
        let sem = unsafe {
            sync::ac_sem_init(&mut memory, 0);
            memory.assume_init_ref()
        };
        let counter = Cell::new(0);
        let results = std::cell::RefCell::new(Vec::new());
        rt::finish_async(cx, |scope, cx| {
            // SAFETY: an item stays where it is until it is removed, here in the memory of the test, which is never given back.
            let items: [&'static mut MaybeUninit<cancel::CancelItem>; 2] =
                [(); 2].map(|()| &mut *Box::leak(Box::new(MaybeUninit::uninit())));
            let [first, second] = items.map(|item| {
                let address = &raw const *item;
                // SAFETY: as above; the counter outlives the block.
                unsafe {
                    cancel::ac_cancel_item_add(item, count_up, pointer(&counter));
                    &*address.cast::<cancel::CancelItem>()
                }
            });
            // SAFETY: as above.
            scope.spawn_async(cx, |_| unsafe {
                results.borrow_mut().push(sync::ac_sem_p_x(sem));
                results.borrow_mut().push(cancel::ac_yield_x());
                let mut name: Option<&'static Awe> = None;
                results.borrow_mut().push(cancel::ac_suspend_then_x(&mut name, None, null_mut()));
            });
            // SAFETY: as above.
            unsafe {
                assert_eq!(cancel::ac_is_cancel_requested(), 0);
                assert_eq!(cancel::ac_cancel_item_remove(second), 0);
            }
            scope.cancel_async(cx);
            // SAFETY: as above.
            unsafe {
                assert_eq!(cancel::ac_is_cancel_requested(), 1);
                assert_eq!(cancel::ac_cancel_item_ran(first), 1);
                assert_eq!(cancel::ac_cancel_item_remove(first), 1);
                assert_eq!(cancel::ac_cancel_item_ran(second), 0);
            }
        });
        assert_eq!(counter.get(), 1);
        assert_eq!(*results.borrow(), [-libc::ECANCELED; 3]);
        // SAFETY: nobody waits.
        unsafe { sync::ac_sem_destroy(&mut memory) };
    });
}

#[test]
fn a_task_that_suspends_with_a_publication_is_found_and_resumed() {
    rt::run(|cx| {
        let counter = Cell::new(0);
        let name: Cell<Option<&'static Awe>> = Cell::new(None);
        rt::finish_async(cx, |scope, cx| {
            // SAFETY: as in the tests above.
            scope.spawn_async(cx, |_| unsafe {
                let mut own = None;
                // The name is stored before the publication, and the publication is done before anybody else runs.
                let resumed = cancel::ac_suspend_then_x(&mut own, Some(count_up), pointer(&counter));
                assert_eq!(resumed, -libc::ECANCELED);
                name.set(own);
            });
            assert_eq!(counter.get(), 1);
            let mut id = 0;
            // SAFETY: as above.
            unsafe {
                assert_eq!(ids::ac_id_create(&mut id), 0);
                assert!(ids::ac_id_get(id).is_none());
                assert_eq!(ids::ac_id_remove(id), 0);
                assert_eq!(ids::ac_id_remove(id), -libc::EINVAL);
                assert_eq!(report::ac_task_count(), 2);
                assert!(report::ac_stack_count() >= 1);
            }
            scope.cancel_async(cx);
        });
        let ended = name.get().expect("it has gone on");
        // SAFETY: the name is of this library, and its task has ended: that is an error, and nothing else.
        let refused: [c_int; 2] = unsafe { [scheduling::ac_yield_to_(ended), scheduling::ac_hand_over_(ended)] };
        assert_eq!(refused, [-1, -1]);
    });
}

#[test]
fn a_task_ends_in_the_middle_of_its_own_block() {
    rt::run(|cx| {
        let ended = Cell::new(0);
        rt::finish_async(cx, |scope, cx| {
            for yields in 0..2 {
                let ended = &ended;
                scope.spawn_async(cx, move |cx| {
                    for _ in 0..yields {
                        rt::yield_async(cx);
                    }
                    ended.set(ended.get() + 1);
                    // SAFETY: the task holds nothing that a destructor would have to give back.
                    unsafe { life::ac_end_task() }
                });
            }
        });
        assert_eq!(ended.get(), 2);
    });
}
