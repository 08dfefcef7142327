//! Requests and responses for cooperative tasks (the crate `ebb-tasks`): what waits, waits with its task suspended.
//!
//! A [`Port`] is one end of a channel as the tasks of one thread use it, under the names that Barrelfish's and Quigley's extensions
//! to Asynchronous C gave these operations:
//!
//! | published name | here |
//! | --- | --- |
//! | `thc_ipc_send_request`, `thc_ipc_recv_response`, `thc_ipc_call` | [`Port::send_request_async`], [`Port::recv_response_async`], [`Port::call_async`] |
//! | `thc_ipc_reply` | [`Request::reply_async`] |
//! | `thc_ipc_poll_recv`, `thc_poll_recv_group` | [`Port::poll_recv`], [`Group::poll_recv`] |
//! | `thc_get_request_cookie`, `thc_kill_request_cookie` | the value of `send_request_async`, [`Port::kill_request_cookie`] |
//! | `thc_channel_is_live`, `is_dead`, `mark_dead` | [`Port::is_live`], [`Port::is_dead`], [`Port::mark_dead`] |
//! | the dispatch loop | [`dispatch_async`] |
//! | Flounder's `send_x`, `recv_x`, `recv_any_x`, `call_x` | [`Port::send_x_async`], [`Port::recv_x_async`], [`Group::recv_x_async`], [`Port::call_x_async`] |
//!
//! How a message passes: whoever of the thread's tasks looks (it waits for a response, or polls for requests) takes everything that
//! has come. A response goes into the slot of its cookie, and the task that waits for it is made ready; a request goes into the
//! port's queue; a response that nobody asked for is dropped and counted. So a task can have many requests outstanding and take the
//! responses in any order, and no message stands in the way of another one's owner.
//!
//! How a task waits: for a while it yields and looks again, as long as that has been paying; then it parks, with its waker among the
//! port's [`Sleepers`], and the peer rings. A full channel is waited for in the same way.
//!
//! What a hostile peer can do: a cookie that comes from it is looked up in the port's own table, with a generation, and names only
//! requests that this port sent to this very peer. It names no task.

mod cookies;
mod group;
mod port;
#[cfg(all(feature = "std", target_os = "linux", not(ebb_shuttle)))]
mod process;
mod sleepers;
mod waiting;

pub use cookies::Cookie;
pub use group::{FromMember, Group, dispatch_async};
pub use port::{Counts, Port, Request, Seed, Way, pair};
#[cfg(all(feature = "std", target_os = "linux", not(ebb_shuttle)))]
pub use process::{accept, offer};
pub use sleepers::Sleepers;
