//! TCP (RFC 9293): one connection's state machine, and what a listener needs before there is one.
//!
//! ```text
//!  packet --Segment::parse--> on_segment --+                     +-- transmit --> packet
//!                                          v                     |
//!  clock ----- on_deadline ---------> Connection ----------------+-- deadline --> when to call again
//!                                          ^                     |
//!  program --- write, read, close ---------+                     +-- readiness, info
//! ```
//!
//! After each call that may make something sendable, `transmit` is to be called until it gives nothing; then `deadline` says when to come back.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `connection` | [`Connection`]: the control block, how it begins and ends |
//! | `settings` | [`Settings`]: the owner's choices; the errors |
//! | `input` | a segment arrives |
//! | `acknowledge` | what its acknowledgment does |
//! | `output` | the next segment to send |
//! | `timer` | the timers |
//! | `owner` | writing, reading, closing, readiness |
//! | `info` | [`Info`]: what can be told of it |
//! | `segment` | [`Segment`]: headers and options as bytes |
//! | `sequence` | places in the sequence space that do not wrap |
//! | `stream`, `assembler` | bytes that are kept, and which of them arrived out of order |
//! | `scoreboard`, `rack` | what was sent, and what of it was lost |
//! | `rtt`, `congestion`, `hystart` | round trips, and how much may be in flight |
//! | `initial`, [`cookie`] | numbers that cannot be guessed |

mod acknowledge;
mod assembler;
mod congestion;
mod connection;
pub mod cookie;
mod hystart;
mod info;
mod initial;
mod input;
mod output;
mod owner;
mod rack;
mod rtt;
mod scoreboard;
mod segment;
mod sequence;
mod settings;
mod stream;
mod timer;

pub use connection::{Connection, Endpoints, Opening, State};
pub use info::Info;
pub use initial::{initial_sequence, timestamp_offset};
pub use input::Verdict;
pub use output::{Offload, Segmentation, Transmission};
pub use owner::Readiness;
pub use segment::{Header, LONGEST_HEADER, Options, SHORTEST_HEADER, Segment, Timestamps};
pub use settings::{Blocked, Error, KeepAlive, Settings};
