//! What a parked task takes: `cargo run --release -p ebb-tasks --example parked [tasks]` (a million by default).

use tasks::rt::{self, Config};

fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux says it");
    let kilobytes = |key: &str| {
        let line = text.lines().find(|line| line.starts_with(key)).expect("a line of it");
        line.split_whitespace().nth(1).expect("a number").parse::<usize>().expect("a number")
    };
    (kilobytes("VmRSS:") + kilobytes("VmPTE:")) * 1024
}

fn main() {
    let tasks: usize = std::env::args().nth(1).map_or(1_000_000, |number| number.parse().expect("a number of tasks"));
    let before = resident_bytes();
    let start = std::time::Instant::now();
    Config { stack_size_bytes: 4096, ..Config::default() }.run(|cx| {
        let mut parked = Vec::with_capacity(tasks);
        let names = std::cell::RefCell::new(&mut parked);
        rt::finish_async(cx, |scope, cx| {
            for _ in 0..tasks {
                scope.spawn_async(cx, |cx| rt::suspend_then_async(cx, |me| names.borrow_mut().push(me)));
            }
            // The list of names is this program's own.
            let bytes = resident_bytes() - before - tasks * size_of::<rt::AweRef>();
            println!("{tasks} parked tasks: {} bytes each, with page tables", bytes / tasks);
            println!("created and parked in {:.2} us each", start.elapsed().as_secs_f64() * 1e6 / tasks as f64);
            let start = std::time::Instant::now();
            for task in names.borrow().iter() {
                task.schedule_back().expect("it is suspended");
            }
            rt::yield_async(cx);
            println!("all resumed and ended in {:.2} us each", start.elapsed().as_secs_f64() * 1e6 / tasks as f64);
        });
    });
}
