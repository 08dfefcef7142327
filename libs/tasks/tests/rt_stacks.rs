//! Stacks: guards, the pool, and what goes back to the system.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};

use tasks::rt::{self, Config, MappedStacks};

#[inline(never)]
fn deep(levels: usize) -> usize {
    let frame = std::hint::black_box([levels; 64]);
    if levels == 0 { frame[1] } else { deep(levels - 1) + frame[levels % 64] - levels + 1 }
}

const CHILD: &str = "EBB_TASKS_OVERFLOW";

/// Runs the named test of this program in a process of its own, and says how it ended and what it wrote to its standard error.
fn in_a_child(test: &str) -> (ExitStatus, String) {
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", test, "--nocapture", "--test-threads", "1"])
        .env(CHILD, "1")
        .output()
        .expect("a child process");
    (output.status, String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn an_overflow_ends_the_program_with_the_name_of_the_task() {
    if std::env::var_os(CHILD).is_some() {
        rt::run(|cx| {
            rt::finish_async(cx, |scope, cx| {
                scope.spawn_async(cx, |cx| {
                    rt::yield_async(cx);
                    rt::set_name(cx, "glutton");
                    deep(1_000_000);
                });
            });
        });
        return;
    }
    let (status, text) = in_a_child("an_overflow_ends_the_program_with_the_name_of_the_task");
    assert_eq!(status.signal(), Some(libc::SIGABRT), "{text}");
    assert!(text.contains("task glutton has overflowed its stack of 65536 bytes"), "{text}");
}

#[test]
fn other_faults_are_not_taken_for_overflows() {
    if std::env::var_os(CHILD).is_some() {
        rt::run(|cx| {
            rt::finish_async(cx, |scope, cx| {
                scope.spawn_async(cx, |_| {
                    // SAFETY: none: it is meant to fault.
                    unsafe { std::ptr::without_provenance::<u64>(4096).read_volatile() };
                });
            });
        });
        return;
    }
    let (status, text) = in_a_child("other_faults_are_not_taken_for_overflows");
    assert!(!status.success());
    assert!(!text.contains("overflowed"), "{text}");
}

#[test]
fn a_fault_that_nobody_handles_ends_the_program_as_if_there_were_no_tasks() {
    if std::env::var_os(CHILD).is_some() {
        // SAFETY: nothing in this process relies on another handler.
        unsafe { libc::signal(libc::SIGSEGV, libc::SIG_DFL) };
        // SAFETY: none: it is meant to fault.
        rt::run(|_| unsafe { std::ptr::without_provenance::<u64>(4096).read_volatile() });
        return;
    }
    let (status, text) = in_a_child("a_fault_that_nobody_handles_ends_the_program_as_if_there_were_no_tasks");
    assert_eq!(status.signal(), Some(libc::SIGSEGV), "{text}");
    assert!(!text.contains("overflowed"), "{text}");
}

#[test]
fn a_fault_that_the_program_itself_mends_goes_on_in_the_task() {
    static PAGE: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn mend(_signal: i32, _info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
        let page = std::ptr::with_exposed_provenance_mut(PAGE.load(Ordering::SeqCst));
        // SAFETY: the test's own page.
        unsafe { libc::mprotect(page, 4096, libc::PROT_READ | libc::PROT_WRITE) };
    }
    // A process of its own: its handler comes before all others.
    if std::env::var_os(CHILD).is_some() {
        // SAFETY: a page that nobody else has; a handler with the signature that SA_SIGINFO asks for.
        let page = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = mend as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            assert_eq!(libc::sigaction(libc::SIGSEGV, &raw const action, std::ptr::null_mut()), 0);
            libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
        };
        assert_ne!(page, libc::MAP_FAILED);
        PAGE.store(page.expose_provenance(), Ordering::SeqCst);
        rt::run(|cx| {
            rt::finish_async(cx, |scope, cx| {
                scope.spawn_async(cx, |_| {
                    let word = std::ptr::with_exposed_provenance_mut::<u64>(PAGE.load(Ordering::SeqCst));
                    // SAFETY: the handler makes it accessible, and the write is done again.
                    unsafe { word.write_volatile(7) };
                    // SAFETY: it was written just now.
                    assert_eq!(unsafe { word.read_volatile() }, 7);
                });
            });
        });
        return;
    }
    let (status, text) = in_a_child("a_fault_that_the_program_itself_mends_goes_on_in_the_task");
    assert!(status.success(), "{text}");
}

#[test]
fn a_thread_without_a_stack_for_signals_has_one_while_it_runs_tasks() {
    fn has_one() -> bool {
        // SAFETY: asks; all zeroes are a valid `stack_t`.
        unsafe {
            let mut now: libc::stack_t = std::mem::zeroed();
            assert_eq!(libc::sigaltstack(std::ptr::null(), &raw mut now), 0);
            now.ss_flags & libc::SS_DISABLE == 0
        }
    }
    std::thread::spawn(|| {
        let none = libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
        let mut before = none;
        // SAFETY: this thread's own, which nothing uses now; it is set again below.
        assert_eq!(unsafe { libc::sigaltstack(&raw const none, &raw mut before) }, 0);
        assert!(!has_one());
        rt::run(|_| assert!(has_one()));
        assert!(!has_one());
        // SAFETY: it was the thread's before.
        unsafe { libc::sigaltstack(&raw const before, std::ptr::null_mut()) };
    })
    .join()
    .expect("no panic");
}

#[test]
fn a_task_has_the_stack_that_was_asked_for() {
    let config = Config { stack_size_bytes: 8 << 20, ..Config::default() };
    config.run(|cx| {
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, |cx| {
                rt::yield_async(cx);
                assert_eq!(deep(3000), 3000);
            });
        });
    });
}

#[test]
fn unused_stacks_beyond_the_mark_go_back_to_their_source() {
    // A size that no other test uses.
    let stacks = MappedStacks::of_size(20 * 4096);
    let config = Config { stack_size_bytes: stacks.size_bytes(), keep_stacks: 10 };
    config.run(|cx| {
        for _ in 0..3 {
            rt::finish_async(cx, |scope, cx| {
                for _ in 0..200 {
                    scope.spawn_async(cx, rt::yield_async);
                }
            });
            assert!(stacks.unused() >= 170, "{} of 200 came back", stacks.unused());
        }
    });
    assert_eq!(stacks.unused(), 200, "all came back, and were used again");
}

#[test]
fn memory_of_stacks_that_went_back_is_free() {
    // Other tests would count in the same process.
    if std::env::var_os(CHILD).is_none() {
        let (status, text) = in_a_child("memory_of_stacks_that_went_back_is_free");
        assert!(status.success(), "{text}");
        return;
    }
    let stacks = MappedStacks::of_size(24 * 4096);
    let config = Config { stack_size_bytes: stacks.size_bytes(), keep_stacks: 0 };
    config.run(|cx| {
        let before = resident_bytes();
        rt::finish_async(cx, |scope, cx| {
            for _ in 0..500 {
                scope.spawn_async(cx, |cx| {
                    deep(40);
                    rt::yield_async(cx);
                });
            }
            assert!(resident_bytes() > before + 500 * 4 * 4096);
        });
        assert!(resident_bytes() < before + 500 * 2 * 4096);
    });
}

fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").expect("Linux says it");
    let line = text.lines().find(|line| line.starts_with("Anonymous:")).expect("a line of it");
    line.split_whitespace().nth(1).expect("a number").parse::<usize>().expect("a number") * 1024
}

#[test]
fn as_many_tasks_as_the_system_has_stacks_for_can_be_parked_at_once() {
    // Nothing else is to need mappings meanwhile.
    if std::env::var_os(CHILD).is_none() {
        let (status, text) = in_a_child("as_many_tasks_as_the_system_has_stacks_for_can_be_parked_at_once");
        assert!(status.success(), "{text}");
        return;
    }
    let config = Config { stack_size_bytes: 4 * 4096, ..Config::default() };
    config.run(|cx| {
        let mut parked = Vec::new();
        let names = std::cell::RefCell::new(&mut parked);
        let mut counted = 0;
        let started = rt::finish_async(cx, |scope, cx| {
            let started = (0..50_000)
                .take_while(|_| {
                    let task = |cx: &mut rt::Cx| rt::suspend_then_async(cx, |me| names.borrow_mut().push(me));
                    scope.try_spawn_async(cx, task).is_ok()
                })
                .count();
            counted = rt::count(cx);
            for task in names.borrow().iter() {
                task.schedule_back().expect("it is suspended");
            }
            started
        });
        // Before Linux 6.13 each stack takes two of the 65,530 mappings that a process may have as a rule.
        assert!(started == 50_000 || (started > 20_000 && !has_light_guards()), "{started} tasks");
        assert_eq!(counted, started + 1);
    });
}

/// Whether the system's release is at least 6.13.
fn has_light_guards() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("Linux says it");
    let mut numbers = release.split(|byte: char| !byte.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(6), Some(13))
}
