//! Frames for the protocols of the network (`formats/tcpip`): whole ones, changed ones and noise. None may make the code panic, which runs in this process.

#[path = "../../../formats/tcpip/tests/host/mod.rs"]
mod host;

use crate::random::Random;
use host::{Host, feed, whole_frames};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Frames after which a host is new.
const FRAMES_EACH: u32 = 1000;

/// Feeds `count` frames; how many hosts did not survive.
pub fn feed_all(seed: u64, count: u32) -> u32 {
    println!("packets {seed} {count}");
    let frames = whole_frames(&mut Host::new());
    let mut failures = 0;
    let mut understood = 0;
    for index in 0..count.div_ceil(FRAMES_EACH) {
        let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(u64::from(index)));
        let mut below = |limit: u64| random.below(limit as usize) as u64;
        let mut fed = 0;
        let life = catch_unwind(AssertUnwindSafe(|| {
            let mut host = Host::new();
            while fed < FRAMES_EACH {
                feed(&mut host, &frames, &mut below);
                fed += 1;
            }
            host.has_understood() == [true; 5]
        }));
        match life {
            Ok(is_understood) => understood += u32::from(is_understood),
            Err(_) => {
                failures += 1;
                println!("  host {index} of seed {seed}: frame {fed}");
            }
        }
    }
    println!("  packets: {count} fed, seed {seed}, {understood} hosts found something of each kind right, done");
    failures
}
