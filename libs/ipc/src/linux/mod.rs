//! Channels between processes on Linux.
//!
//! One process offers, the other accepts, over a Unix socket that stays open as long as the channel does:
//!
//! ```text
//!   offer                              accept
//!     make a memfd, seal its size
//!     create the channel in it
//!     send the descriptor  ---------->   check seals, size and geometry, open the channel
//!     watch the socket                   watch the socket
//! ```
//!
//! When a process dies, however, the system closes its end of the socket; the other's watcher marks the channel dead and wakes
//! whoever sleeps on it.

mod bell;
mod memory;
mod passing;
mod watch;

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use bell::{EventFd, Futex};
pub use memory::{create_memory, map_memory};
pub use passing::{receive_fd, send_fd};
pub use watch::{Notice, Sign, Watch, ring_over, watch};

use crate::{Callee, Doorbell, Endpoint, Geometry, Link, Message, Patience, Request, Waiter};

/// One end of a channel to another process, with what is needed to wait on it.
#[derive(Debug)]
pub struct Connection {
    /// The end of the channel.
    pub endpoint: Endpoint,
    /// Waits on it.
    pub waiter: Waiter<Futex>,
    _closer: Closer,
    _watch: Option<Watch>,
}

/// Closes its end when it goes, also by a panic, and wakes the peer.
#[derive(Debug)]
struct Closer(Link);

impl Drop for Closer {
    fn drop(&mut self) {
        self.0.close();
        Futex.ring(&self.0);
    }
}

/// A channel between two threads of this process.
pub fn thread_pair(geometry: Geometry) -> (Connection, Connection) {
    let (a, b) = crate::pair(geometry);
    (Connection::new(a, None), Connection::new(b, None))
}

/// Makes a channel and offers its other end over the socket. `stream` is used for nothing else from here on.
///
/// # Errors
/// What the system says; nothing is left behind then.
pub fn offer(stream: UnixStream, geometry: Geometry) -> io::Result<Connection> {
    Connection::watched(offered(&stream, geometry)?, stream)
}

/// Takes a channel that the process at the other end of the socket offers. Waits for it.
///
/// # Errors
/// What the system says; `InvalidData` when what comes is no channel, or its size could be changed while it is used.
pub fn accept(stream: UnixStream) -> io::Result<Connection> {
    Connection::watched(accepted(&stream)?, stream)
}

/// Makes a channel and sends its memory to the peer.
pub(crate) fn offered(stream: &UnixStream, geometry: Geometry) -> io::Result<Endpoint> {
    let (memory, fd) = create_memory(geometry.len_lines())?;
    let endpoint = Endpoint::create(&memory, geometry).map_err(io::Error::other)?;
    send_fd(stream, fd.as_fd())?;
    Ok(endpoint)
}

/// Receives the memory of a channel, and checks it.
pub(crate) fn accepted(stream: &UnixStream) -> io::Result<Endpoint> {
    let memory = map_memory(receive_fd(stream)?.as_fd())?;
    Endpoint::open(&memory).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

impl Connection {
    fn watched(endpoint: Endpoint, stream: UnixStream) -> io::Result<Connection> {
        let link = endpoint.link.downgrade();
        let watch = watch(Sign::Socket(Arc::new(stream)), move |notice| {
            if let (Notice::Died, Some(link)) = (notice, link.upgrade()) {
                link.mark_dead();
                Futex.ring_own(&link);
            }
        })?;
        Ok(Connection::new(endpoint, Some(watch)))
    }

    fn new(endpoint: Endpoint, watch: Option<Watch>) -> Connection {
        let closer = Closer(endpoint.link.clone());
        Connection { endpoint, waiter: Waiter::new(Futex, Patience::default()), _closer: closer, _watch: watch }
    }

    /// Asks and waits for the answer, at most for `timeout`. One that ends later than any time there is counts as none.
    ///
    /// # Errors
    /// Those of [`Caller::post`](crate::Caller::post) and [`Caller::poll`](crate::Caller::poll), and
    /// [`Error::TimedOut`](crate::Error::TimedOut), after which the call is given up.
    pub fn call(&mut self, request: &Message, timeout: Option<Duration>) -> Result<Message, crate::Error> {
        let Endpoint { caller, link, .. } = &mut self.endpoint;
        let deadline = timeout.and_then(|timeout| clock().checked_add(timeout));
        // A full channel empties only when abandoned calls are answered.
        let call = self.waiter.wait(link, deadline, || match caller.post(request) {
            Ok(call) => Ok(Some(call)),
            Err(crate::Error::Full) => Ok(None),
            Err(error) => Err(error),
        })?;
        self.waiter.notify(link);
        let answer = self.waiter.wait(link, deadline, || caller.poll(&call));
        if answer.is_err() {
            caller.abandon(&call);
        }
        answer
    }

    /// Answers requests until the peer closes the channel or dies. If `answer` panics its request is refused, and the panic goes on.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) when it broke the protocol.
    pub fn serve(&mut self, mut answer: impl FnMut(&Message) -> Message) -> Result<(), crate::Error> {
        let Endpoint { callee, link, .. } = &mut self.endpoint;
        loop {
            match self.waiter.wait(link, None, || callee.poll()) {
                Ok(request) => {
                    let message = request.message;
                    let taken = Taken { callee, request: Some(request), waiter: &self.waiter, link };
                    taken.reply(&answer(&message))?;
                }
                Err(crate::Error::Closed) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

/// A request that is being served: refused, if that panics.
struct Taken<'a> {
    callee: &'a mut Callee,
    /// None once it is answered.
    request: Option<Request>,
    waiter: &'a Waiter<Futex>,
    link: &'a Link,
}

impl Taken<'_> {
    fn reply(mut self, response: &Message) -> Result<(), crate::Error> {
        let request = self.request.take().ok_or(crate::Error::Stale)?;
        self.callee.reply(request, response)?;
        self.waiter.notify(self.link);
        Ok(())
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if let Some(request) = self.request.take() {
            // It was taken here just now, so it is not stale.
            let _ = self.callee.refuse(request);
            self.waiter.notify(self.link);
        }
    }
}

/// The clock of this module's doorbells: time since this process first asked.
pub fn clock() -> Duration {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

/// What a system call said: `-1` is the error in `errno`.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
