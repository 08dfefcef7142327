//! Allocation, large collections, deep recursion and the clock through the standard library.

use ebb_user_checks::check;
use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

fn depth(levels: u32) -> u32 {
    let room = black_box([levels; 64]);
    if levels == 0 { 0 } else { depth(levels - 1) + u32::from(room[7] == levels) }
}

fn main() {
    let mut map = HashMap::new();
    for i in 0..100_000u64 {
        map.insert(i.wrapping_mul(2_654_435_761) % 1_000_003, i);
    }
    check("hash-map", map.len());
    let sorted: BTreeMap<_, _> = map.iter().collect();
    check("sorted", sorted.keys().zip(sorted.keys().skip(1)).all(|(a, b)| a < b));
    drop(map);
    let mut large = vec![0u8; 64 << 20];
    large.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    check("large-sum", large.iter().step_by(4096).map(|&b| u64::from(b)).sum::<u64>());
    large.truncate(1 << 20);
    large.shrink_to_fit();
    check("shrunk", large.iter().step_by(4096).map(|&b| u64::from(b)).sum::<u64>());
    let mut growing = Vec::new();
    for i in 0..1_000_000u32 {
        growing.push(i);
    }
    check("grown", growing.iter().map(|&n| u64::from(n)).sum::<u64>());
    check("recursion", depth(10_000));
    let deep = thread::Builder::new().stack_size(64 << 20).spawn(|| depth(150_000)).map(thread::JoinHandle::join);
    check("recursion-in-thread", deep.map_or(0, |r| r.unwrap_or(0)));
    let churn: usize = thread::scope(|scope| {
        let handles: Vec<_> = (0..4)
            .map(|t| {
                scope.spawn(move || {
                    let mut kept: Vec<Box<[u8]>> = Vec::new();
                    for i in 0..2000usize {
                        kept.push(vec![t as u8; (i * 37) % 5000 + 1].into_boxed_slice());
                        if i % 3 == 0 {
                            kept.swap_remove((i * 7) % kept.len());
                        }
                    }
                    kept.iter().filter(|b| b.iter().all(|&byte| byte == t as u8)).count()
                })
            })
            .collect();
        handles.into_iter().map(|h| h.join().unwrap_or(0)).sum()
    });
    check("churn", churn);
    let start = Instant::now();
    thread::sleep(Duration::from_millis(25));
    check("slept", start.elapsed() >= Duration::from_millis(25));
    check(
        "wall-clock",
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).is_ok_and(|d| d.as_secs() > 1_577_836_800),
    );
    check("allocation-refused", Vec::<u8>::new().try_reserve_exact(1 << 60).is_err());
    check("text", format!("{:>8.3}|{:#x}|{:?}", std::f64::consts::PI, 255, "é\n"));
}
