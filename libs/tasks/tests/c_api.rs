//! The functions that C calls, called by tasks of Rust: so the sanitizers see them. (What C inlines is tested in `c/tests`.)

use core::cell::{Cell, RefCell};
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr::{null, null_mut};
use std::io::{PipeReader, Read, pipe};
use std::os::fd::AsRawFd;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use refs::StrongRc;
use tasks::rt::c::{cancel, ids, life, report, scheduling, sync};
use tasks::rt::{self, Awe, AweRef, Cx, Finish, Id, Scope};

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

/// What C calls `ac_finish`.
fn block_of<'a>(scope: &'a Scope<'_, '_>) -> &'a Finish {
    // SAFETY: a scope is its block and nothing else (`repr(transparent)`).
    unsafe { &*core::ptr::from_ref(scope).cast() }
}

/// The running task's memory, as C names it.
fn own_awe(cx: &Cx) -> &'static Awe {
    let id = Id::create(cx).unwrap();
    id.set(cx, Some(rt::current(cx))).unwrap();
    // SAFETY: a task asks.
    let own = unsafe { ids::ac_id_get(id.to_bits()) };
    id.remove(cx).unwrap();
    own.expect("the running task has not ended")
}

/// Suspends the running task until somebody resumes it by its name, which is stored in `name` before.
fn suspend_as(cx: &mut Cx, name: &Cell<Option<&'static Awe>>) {
    name.set(Some(own_awe(cx)));
    rt::suspend_async(cx);
}

/// A field of what C sees too (`ac/layout.h`).
///
/// # Safety
/// There is a `Cell<T>` so many bytes behind the start of `of`.
unsafe fn field<T, U>(of: &'static T, offset: usize) -> &'static Cell<U> {
    // SAFETY: by this function's contract.
    unsafe { &*core::ptr::from_ref(of).byte_add(offset).cast() }
}

/// The run-time of a task, in words.
fn runtime_of(awe: &'static Awe) -> &'static [Cell<u64>; 8] {
    // SAFETY: `awe_t.rt`, and `ac_runtime` begins with these words; this thread is the one that uses them.
    unsafe { &*(*core::ptr::from_ref(awe).byte_add(72).cast::<*const [Cell<u64>; 8]>()) }
}

#[test]
fn what_happens_when_a_block_is_canceled_by_its_name() {
    rt::run(|cx| {
        let seen = Cell::new(None);
        rt::finish_async(cx, |scope, cx| {
            // SAFETY: here and in all tests below a task calls, with no `Cx` in use meanwhile.
            scope.spawn_async(cx, |_| unsafe {
                seen.set(Some([cancel::ac_yield_x(), cancel::ac_is_cancel_requested()]));
            });
            // SAFETY: as above.
            unsafe { cancel::ac_cancel(block_of(scope)) };
            assert!(rt::is_cancel_requested(cx));
            assert_eq!(seen.get(), None);
        });
        assert!(!rt::is_cancel_requested(cx));
        assert_eq!(seen.get(), Some([-libc::ECANCELED, 1]));
    });
}

#[test]
fn what_happens_when_a_task_is_entered_under_an_id_and_goes_on() {
    rt::run(|cx| {
        let name = Cell::new(None);
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, |cx| suspend_as(cx, &name));
            let task: &'static Awe = name.get().unwrap();
            let mut bits = 0;
            // SAFETY: as above.
            unsafe {
                assert_eq!(ids::ac_id_create(&mut bits), 0);
                assert_eq!(ids::ac_id_set(bits, task), 0);
                assert!(ids::ac_id_get(bits).is_some_and(|there| core::ptr::eq(there, task)));
                assert_eq!(ids::ac_id_set(bits, null()), 0);
                assert!(ids::ac_id_get(bits).is_none());
                assert_eq!(ids::ac_id_set(bits, task), 0);
                assert_eq!(scheduling::ac_yield_to_(task), 0);
                // It has ended.
                assert!(ids::ac_id_get(bits).is_none());
                assert_eq!(ids::ac_id_remove(bits), 0);
                assert_eq!(ids::ac_id_set(bits, null()), -libc::EINVAL);
            }
        });
    });
}

#[test]
fn what_happens_when_a_task_takes_itself_out_of_the_id_table() {
    rt::run(|cx| {
        let id = Id::create(cx).unwrap();
        let other = Id::create(cx).unwrap();
        let me = own_awe(cx);
        other.set(cx, Some(rt::current(cx))).unwrap();
        // SAFETY: `awe_t.saved_under` and the run-time's entries, as `ac_yield_and_save` writes them.
        unsafe {
            id.set(cx, Some(rt::current(cx))).unwrap();
            field::<_, u32>(me, 92).set(id.to_bits());
            ids::ac_id_unsave_(me);
            assert_eq!(field::<_, u32>(me, 92).get(), 0);
            assert!(ids::ac_id_get(id.to_bits()).is_none());
            // Only the entry under which it was saved is emptied.
            assert!(ids::ac_id_get(other.to_bits()).is_some_and(|there| core::ptr::eq(there, me)));
        }
        id.remove(cx).unwrap();
        other.remove(cx).unwrap();
    });
}

/// What a thread's own way to idle has.
struct Waiting {
    waits: Cell<u32>,
    begun: Sender<()>,
    over: Receiver<()>,
    /// For the thread that wakes.
    end: Mutex<Sender<()>>,
}

unsafe extern "C" fn idle_wait(waiting: *mut c_void) {
    // SAFETY: the test passes one that lives on.
    let waiting = unsafe { &*waiting.cast::<Waiting>() };
    waiting.waits.set(waiting.waits.get() + 1);
    waiting.begun.send(()).unwrap();
    waiting.over.recv().unwrap();
}

unsafe extern "C" fn idle_wake(waiting: *mut c_void) {
    // SAFETY: as above; of the fields only this one, which any thread may use.
    let end = unsafe { &(*waiting.cast::<Waiting>()).end };
    end.lock().unwrap().send(()).unwrap();
}

#[test]
fn what_happens_when_nothing_is_ready_on_a_thread_with_its_own_way_to_idle() {
    /// A name on its way to another thread, which only schedules it.
    struct Sent(*const Awe);
    // SAFETY: as said.
    unsafe impl Send for Sent {}

    let (begun, waits) = channel();
    let (end, over) = channel();
    let waiting: &'static Waiting =
        Box::leak(Box::new(Waiting { waits: Cell::new(0), begun, over, end: Mutex::new(end) }));
    let (send, names) = channel::<Sent>();
    let other = std::thread::spawn(move || {
        let Sent(name) = names.recv().unwrap();
        waits.recv().unwrap();
        // SAFETY: the name of a task of this library.
        unsafe { scheduling::ac_schedule_remote_(name) }
    });
    let config = life::AcConfig {
        stack_size_bytes: 0,
        keep_stacks: 0,
        idle_wait: Some(idle_wait),
        idle_wake: Some(idle_wake),
        idle_argument: pointer(waiting),
    };
    // SAFETY: nothing else is on this thread's stack; `waiting` lives for ever.
    unsafe {
        assert_eq!(life::ac_init(&config), 0);
        unsafe extern "C" fn publish(published: *mut c_void) {
            // SAFETY: the caller's pair, in which the name is by now.
            let (send, name) = unsafe { &*published.cast::<(Sender<Sent>, Option<&'static Awe>)>() };
            send.send(Sent(core::ptr::from_ref(name.unwrap()))).unwrap();
        }
        let published = &raw mut *Box::leak(Box::new((send, None)));
        let resumed = cancel::ac_suspend_then_x(&mut (*published).1, Some(publish), published.cast());
        assert_eq!(resumed, 0);
    }
    assert_eq!(waiting.waits.get(), 1);
    assert_eq!(other.join().unwrap(), 0);
    life::ac_done();
}

#[test]
fn what_happens_when_a_task_ends_inside_a_block_of_its_own() {
    // AddressSanitizer takes small frames from the heap, where `ac_end_task` does not see the task's blocks. This one is too large for that.
    const LARGE: usize = 128 * 1024;
    rt::Config { stack_size_bytes: 16 * LARGE, ..rt::Config::default() }.run(|cx| {
        let order = RefCell::new(Vec::new());
        let name: Cell<Option<AweRef>> = Cell::new(None);
        let (order, name) = (&order, &name);
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, move |cx| {
                core::hint::black_box(&mut [0_u8; LARGE]);
                name.set(Some(rt::current(cx)));
                rt::finish_async(cx, |inner, cx| {
                    inner.spawn_async(cx, move |cx| {
                        rt::yield_async(cx);
                        // Its block is still waited for.
                        order.borrow_mut().push(("inner", name.get().unwrap().is_alive()));
                    });
                    order.borrow_mut().push(("ends", true));
                    // SAFETY: the task holds nothing that a destructor would have to give back.
                    unsafe { life::ac_end_task() }
                });
            });
        });
        assert!(!name.get().unwrap().is_alive());
        assert_eq!(*order.borrow(), [("ends", true), ("inner", true)]);
    });
}

fn read_all(mut from: PipeReader) -> String {
    let mut text = String::new();
    from.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn what_happens_when_tasks_are_reported() {
    rt::run(|cx| {
        let name = Cell::new(None);
        let (reader, writer) = pipe().unwrap();
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, |cx| {
                rt::set_name(cx, "the one that waits");
                suspend_as(cx, &name);
            });
            // SAFETY: as above.
            unsafe {
                assert_eq!(report::ac_dump(writer.as_raw_fd()), 0);
                // Nobody can write there.
                assert_eq!(report::ac_dump(reader.as_raw_fd()), -1);
                assert_eq!(scheduling::ac_yield_to_(name.get().unwrap()), 0);
            }
        });
        drop(writer);
        let text = read_all(reader);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains("\"main\": running\n"), "{text}");
        assert!(text.contains("\"the one that waits\": waits for its name; "), "{text}");
    });
}

#[test]
fn what_happens_when_counters_are_reported_and_cleared() {
    rt::run(|_| {
        let (reader, writer) = pipe().unwrap();
        report::ac_count_send();
        report::ac_count_send();
        report::ac_count_receive();
        // SAFETY: as above.
        unsafe {
            assert_eq!(report::ac_dump_stats(writer.as_raw_fd(), 1), 0);
            assert_eq!(report::ac_dump_stats(writer.as_raw_fd(), 0), 0);
            assert_eq!(report::ac_dump_stats(reader.as_raw_fd(), 0), -1);
        }
        drop(writer);
        let text = read_all(reader);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[0].starts_with("1 tasks, ") && lines[0].ends_with(" stacks, 2 sent, 1 received"), "{text}");
        assert!(lines[1].ends_with(" stacks, 0 sent, 0 received"), "{text}");
    });
}

#[test]
fn what_happens_when_the_pool_is_refilled() {
    rt::run(|cx| {
        // SAFETY: as above; then the task goes to the pool as `ac_returned_` puts it there: `awe_t.next`, `ac_runtime.free`.
        let refilled = unsafe {
            let before = report::ac_stack_count();
            let refilled = scheduling::ac_refill_().unwrap();
            assert_eq!(report::ac_stack_count(), before + 1);
            let free = &runtime_of(refilled)[5];
            field::<_, u64>(refilled, 96).set(free.get());
            free.set(core::ptr::from_ref(refilled).expose_provenance() as u64);
            refilled
        };
        let own = Cell::new(None);
        rt::finish_async(cx, |scope, cx| scope.spawn_async(cx, |cx| own.set(Some(own_awe(cx)))));
        // The next task has its memory, and its stack.
        assert!(core::ptr::eq(own.get().unwrap(), refilled));
    });
}

#[test]
fn what_happens_when_a_task_is_retired() {
    rt::run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, |cx| {
                let name = rt::current(cx);
                assert!(name.is_alive());
                // SAFETY: as above; the task does nothing more under this name.
                unsafe { scheduling::ac_retire_(own_awe(cx)) };
                assert!(!name.is_alive());
                assert_eq!(name.schedule(), Err(rt::NotSuspended));
            });
        });
    });
}

/// Has another thread ask for a task, and waits until it has asked.
fn request_from_another_thread(name: AweRef) {
    std::thread::spawn(move || name.schedule().unwrap()).join().unwrap();
}

/// Suspends until somebody schedules the running task, and then says so.
fn wait_to_be_asked(cx: &mut Cx, name: &Cell<Option<(&'static Awe, AweRef)>>, done: &Cell<bool>) {
    name.set(Some((own_awe(cx), rt::current(cx))));
    rt::suspend_async(cx);
    done.set(true);
}

#[test]
fn what_happens_when_requests_of_other_threads_are_taken_in() {
    rt::run(|cx| {
        let (name, done) = (Cell::new(None), Cell::new(false));
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, |cx| wait_to_be_asked(cx, &name, &done));
            let (awe, name) = name.get().unwrap();
            request_from_another_thread(name);
            let queue = &runtime_of(awe)[1..3];
            assert_eq!(queue[0], queue[1]);
            // SAFETY: as above.
            unsafe {
                scheduling::ac_take_in_();
                assert_eq!(queue[1].get() - queue[0].get(), 1);
                // It is queued, so it cannot be scheduled again.
                assert_eq!(scheduling::ac_schedule_remote_(awe), -1);
            }
            assert!(!done.get());
            rt::yield_async(cx);
            assert!(done.get());
        });
    });
}

#[test]
fn what_happens_when_the_next_task_is_waited_for() {
    rt::run(|cx| {
        let (name, done) = (Cell::new(None), Cell::new(false));
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, |cx| wait_to_be_asked(cx, &name, &done));
            let (awe, name) = name.get().unwrap();
            let other = std::thread::spawn(move || name.schedule().unwrap());
            // SAFETY: as above.
            let next = unsafe { scheduling::ac_wait_for_next_() };
            other.join().unwrap();
            assert!(core::ptr::eq(next, awe));
            assert!(!done.get());
            // It is out of the queue, and whoever has it switches to it.
            let queue = &runtime_of(awe)[1..3];
            assert_eq!(queue[0], queue[1]);
            assert_eq!(rt::yield_to_async(cx, name), Ok(rt::Yielded::Switched));
            assert!(done.get());
        });
    });
}

#[test]
fn what_happens_when_the_queue_closes_its_ranks() {
    rt::run(|cx| {
        let order = RefCell::new(Vec::new());
        let name = Cell::new(None);
        let (order, name) = (&order, &name);
        rt::finish_async(cx, |scope, cx| {
            for number in 0..40 {
                scope.spawn_async(cx, move |cx| {
                    if number != 20 {
                        rt::yield_async(cx);
                    } else {
                        let own = own_awe(cx);
                        name.set(Some(own));
                        rt::yield_async(cx);
                        let queue = &runtime_of(own)[1..3];
                        // The others, the first task, and a hole where this one was.
                        assert_eq!(queue[1].get() - queue[0].get(), 41);
                        // SAFETY: as above.
                        unsafe { scheduling::ac_close_ranks_() };
                        assert_eq!(queue[1].get() - queue[0].get(), 40);
                        // The ring is at most half full, or twice as large as before.
                        assert!(runtime_of(own)[4].get() >= 127);
                    }
                    order.borrow_mut().push(number);
                });
            }
            // SAFETY: as above.
            assert_eq!(unsafe { scheduling::ac_yield_to_(name.get().unwrap()) }, 0);
        });
        let expected: Vec<i32> = [20].into_iter().chain(0..20).chain(21..40).collect();
        assert_eq!(*order.borrow(), expected);
    });
}

#[test]
fn what_happens_when_a_thread_reports_that_it_borrows_nothing() {
    struct Says(std::sync::Arc<std::sync::atomic::AtomicBool>);
    impl Drop for Says {
        fn drop(&mut self) {
            self.0.store(true, std::sync::atomic::Ordering::Release);
        }
    }
    rt::run(|cx| {
        let freed = std::sync::Arc::default();
        let object: StrongRc<Says> = StrongRc::new(Says(std::sync::Arc::clone(&freed)));
        let is_freed = || freed.load(std::sync::atomic::Ordering::Acquire);
        let name = object.downgrade();
        {
            let borrowed = name.upgrade(cx).unwrap();
            drop(object);
            // Dead, but this thread has it still.
            assert!(!is_freed());
            assert!(!borrowed.0.load(std::sync::atomic::Ordering::Acquire));
        }
        assert!(!is_freed());
        // The threads of other tests have to report too, or to end.
        while !is_freed() {
            // SAFETY: as above; nothing is borrowed.
            unsafe { scheduling::ac_quiescent_() };
            std::thread::yield_now();
        }
        assert!(name.upgrade(cx).is_err());
    });
}

#[test]
fn what_happens_when_a_detached_task_ends_and_its_block_is_waited_for() {
    rt::run(|cx| {
        let (order, name) = (RefCell::new(Vec::new()), Cell::new(None));
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, |cx| {
                name.set(Some(rt::current(cx)));
                rt::yield_async(cx);
                order.borrow_mut().push("detached");
                // SAFETY: as above; nothing on the stack is needed.
                unsafe { scheduling::ac_end_detached_() }
            });
            order.borrow_mut().push("waits");
            // SAFETY: as above; the task is in the block.
            unsafe { scheduling::ac_wait_for_tasks_(block_of(scope)) };
            order.borrow_mut().push("has waited");
            assert!(!name.get().unwrap().is_alive());
            // An empty block is not waited for.
            // SAFETY: as above.
            unsafe { scheduling::ac_wait_for_tasks_(block_of(scope)) };
        });
        assert_eq!(*order.borrow(), ["waits", "detached", "has waited"]);
    });
}

#[test]
fn what_happens_when_waits_at_all_primitives_are_canceled() {
    rt::run(|cx| {
        let mut memory = (MaybeUninit::uninit(), MaybeUninit::uninit(), MaybeUninit::uninit());
        let line = Box::leak(Box::new(MaybeUninit::uninit()));
        let line_address = &raw mut *line;
        // SAFETY: as above; all are made before they are used.
        let (lock, condvar, events, queue) = unsafe {
            sync::ac_lock_init(&mut memory.0);
            sync::ac_condvar_init(&mut memory.1);
            sync::ac_ec_init(&mut memory.2);
            sync::ac_queue_init(&mut *line_address);
            let queue: &'static rt::sync::Queue = &*line_address.cast();
            (memory.0.assume_init_ref(), memory.1.assume_init_ref(), memory.2.assume_init_ref(), queue)
        };
        let results = RefCell::new(Vec::new());
        let note = |what, result| results.borrow_mut().push((what, result));
        rt::finish_async(cx, |scope, cx| {
            // SAFETY: as above.
            unsafe {
                let mut first = MaybeUninit::uninit();
                sync::ac_queue_enter(queue, &mut first);
                assert_eq!(sync::ac_queue_await_turn_x(first.assume_init_mut()), 0);
                assert_eq!(sync::ac_ec_await_x(events, 0), 0);
                assert_eq!(sync::ac_lock_acquire_x(lock), 0);
                scope.spawn_async(cx, |_| note("lock", sync::ac_lock_acquire_x(lock)));
                scope.spawn_async(cx, |_| note("events", sync::ac_ec_await_x(events, 1)));
                scope.spawn_async(cx, |_| {
                    let mut turn = MaybeUninit::uninit();
                    sync::ac_queue_enter(queue, &mut turn);
                    note("queue", sync::ac_queue_await_turn_x(turn.assume_init_mut()));
                    assert_eq!(sync::ac_queue_leave(turn.assume_init_mut()), 0);
                });
                cancel::ac_cancel(block_of(scope));
                rt::yield_async(cx);
                assert_eq!(results.borrow().len(), 3);
                sync::ac_lock_release(lock);
                // The one behind it gave up.
                assert_eq!(sync::ac_queue_leave(first.assume_init_mut()), 1);
            }
        });
        rt::finish_async(cx, |scope, cx| {
            // SAFETY: as above.
            scope.spawn_async(cx, |_| unsafe {
                assert_eq!(sync::ac_lock_acquire_x(lock), 0);
                let result = sync::ac_condvar_wait_x(condvar, lock);
                // It has the lock all the same.
                assert_eq!(sync::ac_lock_try_acquire(lock), 0);
                sync::ac_lock_release(lock);
                note("condvar", result);
            });
            // SAFETY: as above.
            unsafe {
                assert_eq!(sync::ac_lock_try_acquire(lock), 1);
                sync::ac_lock_release(lock);
                cancel::ac_cancel(block_of(scope));
            }
        });
        let mut results = results.into_inner();
        results.sort_unstable();
        assert_eq!(results, ["condvar", "events", "lock", "queue"].map(|name| (name, -libc::ECANCELED)));
        // SAFETY: nobody waits, and nobody uses them from here on.
        unsafe {
            sync::ac_lock_destroy(&mut memory.0);
            sync::ac_condvar_destroy(&mut memory.1);
            sync::ac_ec_destroy(&mut memory.2);
            sync::ac_queue_destroy(&mut *line_address);
        }
    });
}
