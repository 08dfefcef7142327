//! The peers, each behind the same few functions: a ring of tasks that yield, a task made and run empty, and one that
//! suspends once in between. Each does one run of a line, in the way its own documents recommend for speed.

pub mod boost;
pub mod coroutines;
pub mod embassy;
pub mod fipc;
pub mod futures;
pub mod libco;
pub mod may;
pub mod smol;
pub mod tokio;

/// How many rounds of a ring of `tasks` make a batch of about [`BATCH`](crate::line::BATCH) yields.
pub fn rounds(tasks: usize) -> usize {
    (crate::line::BATCH / tasks).max(1)
}
