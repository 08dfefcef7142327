//! Control groups, version 2: the tree, who is counted where, and what controllers keep. See cgroups(7).
//!
//! ```text
//!   root  --owns-->  Cgroup  --owns-->  Cgroup          by the numbers in `Children`, and by name
//!                      ^  \__ owns a share in its parent
//!                      |
//!            each process that is a member (the room above), until it is waited for
//! ```
//!
//! A group is in the tree until rmdir(2) and lives on as long as somebody has a share: a zombie, a group below it. Its destruction gives its memory back and counts it
//! out of its ancestors' dying descendants: some ten instructions for each level. Nobody waits for a group; who waits for what
//! changes in one waits at an [`Event`], and is woken by the change.
//!
//! This room knows no processes. Who joins or leaves says for how many threads, and each level above is counted up or down by that, but for the root, which has no limits: so nothing is
//! counted for who is in no other group. The root's own members are all processes that are in no other group.
//!
//! Locks: `TREE` for every change of the tree and of what it allows (which controllers are enabled, who may be where), then the children of one group at a time.

mod controllers;
mod cpu;
mod event;
mod group;
mod memory;
mod pids;
mod population;
mod reclaim;
mod tree;

pub use controllers::{CONTROLLERS, Controllers};
pub use cpu::Cpu;
pub use event::Event;
pub use group::{Cgroup, Limit, Moved};
pub use memory::Memory;
pub use pids::Pids;
pub use reclaim::{Measured, MemberEnd, Reclaim};
pub use tree::{Kill, Tree, any_freezes, any_is_killed, common_ancestor, lock_tree, next_below, root, start};
