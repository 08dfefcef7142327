//! Tests that run in the kernel itself, at boot, in an image with the feature `selftest`.
//!
//! A test is a function with a name; it has a task of its own and the whole machine. It says `Err` with what was
//! wrong; a panic ends the run.

mod crash;
mod devices;
mod in_turn;
mod machine;
mod memory;
mod scheduling;
pub(crate) mod single_step;
mod user_code;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use refs::Cx;
use tasks::{Body, Next};

pub use in_turn::POLICY;

use crate::power::{self, PowerOff};
use crate::{println, time};

/// What a test says.
pub type Outcome = Result<(), String>;

/// A test: its name, and what it does.
pub type Test = (&'static str, fn(&mut Cx) -> Outcome);

/// The tests of `frame`.
pub fn tests() -> impl Iterator<Item = Test> {
    [machine::TESTS, devices::TESTS, memory::TESTS, single_step::TESTS, user_code::TESTS, scheduling::TESTS]
        .into_iter()
        .flatten()
        .copied()
}

/// Fails the test with a message unless the condition holds.
#[macro_export]
macro_rules! check {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(alloc::format!($($message)+));
        }
    };
}

/// Gives way until it holds; a minute is more than any of it takes where the host is busy, too.
fn yield_until_async(cx: &mut Cx, condition: impl Fn() -> bool) -> Outcome {
    let limit = time::now() + 60_000_000_000;
    while time::now() < limit {
        if condition() {
            return Ok(());
        }
        tasks::yield_async(cx);
    }
    Err("it never happened".into())
}

struct Run<Tests>(Tests);

impl<Tests: Iterator<Item = Test> + Send> Body for Run<Tests> {
    fn run_async(&mut self, cx: &mut Cx) -> Next {
        let (mut passed, mut failures) = (0, Vec::new());
        for (name, test) in &mut self.0 {
            match test(cx) {
                Ok(()) => {
                    passed += 1;
                    println!("selftest {name}: ok");
                }
                Err(why) => {
                    println!("selftest {name}: FAILED: {why}");
                    failures.push((name, why));
                }
            }
        }
        // Once more, where the last lines of the output show them.
        for (name, why) in &failures {
            println!("FAILED: {name}: {why}");
        }
        println!("{passed} passed, {} failed", failures.len());
        power::off(if failures.is_empty() { PowerOff::Orderly } else { PowerOff::Panic })
    }
}

/// Spawns a task under [`POLICY`], which the image was configured with, that runs the tests, says how many passed, and powers off; or, if the command line says
/// `crash=KIND`, one that ends in a panic of that kind, for tests of what is reported then.
pub fn spawn(tests: impl Iterator<Item = Test> + Send + 'static, command_line: &'static str) {
    let crash = command_line.split_whitespace().find_map(|word| word.strip_prefix("crash="));
    let body: Box<dyn Body> = match crash {
        Some(kind) => Box::new(crash::Crash(kind)),
        None => Box::new(Run(tests)),
    };
    tasks::spawn(&POLICY, body, |_, _| ());
}
