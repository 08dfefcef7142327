//! Files that are events: epoll, eventfd, timerfd, signalfd; what poll(2) and select(2) do; and contexts of asynchronous input and output.

pub mod aio;
mod epoll;
mod eventfd;
pub mod late_wakes;
pub mod mq_notify;
mod poll;
mod relay;
pub mod signalfd;
mod timerfd;

pub use epoll::{Change, Epoll, EpollEvent};
pub use eventfd::EventFd;
pub use poll::{PollFd, poll_step, poll_was_lost};
pub use timerfd::{Setting, TimerFd};
