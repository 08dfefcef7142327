//! [`Port`]: one end of a channel, for the tasks of one thread.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::sync::Arc;
use core::any::Any;
use core::cell::{Cell, RefCell};
use core::fmt;

use refs::{Cx, Waker};

use super::cookies::{Cookie, Cookies, State};
use super::sleepers::Sleepers;
use super::waiting::{OnCancel, wait_async};
use crate::{Endpoint, Error, Geometry, Kind, Link, Message, Packet, Patience, call};

/// How many messages one look takes out of the ring at most, so that it ends also if the peer sends for ever.
const BATCH: usize = 256;
/// How many refusals may wait for room in the ring: as many as requests can be outstanding. Who leaves more of them untaken and goes on asking does not
/// want answers but this end's memory.
const MOST_REFUSALS: usize = 1 << 16;
/// How many requests that came over the ring may wait to be polled; then the ring is left alone.
const MOST_REQUESTS: usize = 1024;

/// An end that can be sent to the thread whose tasks will use it.
pub struct Seed {
    endpoint: Endpoint,
    sleepers: Arc<Sleepers>,
    ring_peer: Box<dyn Fn() + Send>,
    kept: Option<Box<dyn Any + Send>>,
}

/// The two ends of a channel between threads of this program.
pub fn pair(geometry: Geometry) -> (Seed, Seed) {
    let (a, b) = crate::pair(geometry);
    let (a_sleepers, b_sleepers) = (Arc::new(Sleepers::new(&a.link)), Arc::new(Sleepers::new(&b.link)));
    let (to_a, to_b) = (a_sleepers.clone(), b_sleepers.clone());
    (Seed::new(a, a_sleepers, move || to_b.ring()), Seed::new(b, b_sleepers, move || to_a.ring()))
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seed").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Port");
        fields.field("is_live", &self.is_live());
        if let Ok(inner) = self.inner.try_borrow() {
            fields.field("outstanding", &inner.cookies.in_use()).field("counts", &inner.counts);
        }
        fields.finish_non_exhaustive()
    }
}

impl Seed {
    /// An end whose peer is rung by `ring_peer`, and which is rung by [`Sleepers::ring`] on `sleepers`: for doorbells of one's
    /// own. Neither may get lost.
    pub fn new(endpoint: Endpoint, sleepers: Arc<Sleepers>, ring_peer: impl Fn() + Send + 'static) -> Seed {
        Seed { endpoint, sleepers, ring_peer: Box::new(ring_peer), kept: None }
    }

    /// Keeps something as long as the port lives.
    #[cfg(all(feature = "std", not(ebb_shuttle)))]
    pub(super) fn keeping(mut self, kept: impl Any + Send) -> Seed {
        self.kept = Some(Box::new(kept));
        self
    }

    /// The port, for the tasks of the calling thread. Requests go over call lines if the channel has any.
    pub fn port(self) -> Rc<Port> {
        let way = if self.endpoint.caller.capacity() > 0 { Way::CallLines } else { Way::Rings };
        self.port_by(way)
    }

    /// The port, with the way that its requests take.
    pub fn port_by(self, way: Way) -> Rc<Port> {
        let link = self.endpoint.link.clone();
        Rc::new(Port {
            inner: RefCell::new(Inner {
                end: self.endpoint,
                cookies: Cookies::default(),
                requests: VecDeque::new(),
                refusals: VecDeque::new(),
                counts: Counts::default(),
                way,
                lines_first: false,
            }),
            link,
            sleepers: self.sleepers,
            ring_peer: self.ring_peer,
            patience: RefCell::new(Patience::default()),
            want_room: Cell::new(0),
            _kept: self.kept,
        })
    }
}

/// The way of requests. Responses come back the way that the request went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// The quickest for up to some 16 requests at a time.
    CallLines,
    /// The best throughput for more.
    Rings,
}

/// What a port has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Responses that came before their owner asked for them or while it was suspended, and were kept for it.
    pub stashed: u64,
    /// Responses that named no outstanding request, and were dropped.
    pub unknown: u64,
    /// Requests that were dropped here without an answer.
    pub refused: u64,
}

/// One end of a channel, for the tasks of one thread.
pub struct Port {
    inner: RefCell<Inner>,
    link: Link,
    sleepers: Arc<Sleepers>,
    ring_peer: Box<dyn Fn() + Send>,
    patience: RefCell<Patience>,
    /// How many tasks of this thread wait for room that another one of them may make.
    want_room: Cell<usize>,
    _kept: Option<Box<dyn Any + Send>>,
}

struct Inner {
    end: Endpoint,
    cookies: Cookies,
    /// What came over the ring and has not been polled.
    requests: VecDeque<Packet>,
    /// Cookies of the peer whose refusal found no room in the ring.
    refusals: VecDeque<u32>,
    counts: Counts,
    way: Way,
    /// Where the next poll for requests looks first: lines and ring take turns.
    lines_first: bool,
}

/// A request that was taken: answer it, or drop it, which tells the one who asked that there will be no answer.
#[derive(Debug)]
pub struct Request {
    port: Rc<Port>,
    origin: Option<Origin>,
    /// What was asked.
    pub message: Message,
}

#[derive(Debug)]
enum Origin {
    Line(call::Request),
    Ring(u32),
}

impl Port {
    /// Sends a request; the cookie is for its response. Suspends while the channel is full.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Corrupt`], [`Error::NoCookie`].
    pub fn send_request_async(&self, cx: &mut Cx, request: &Message) -> Result<Cookie, Error> {
        self.request_async(cx, OnCancel::GoesOn, request)
    }

    /// Sends a request, unless the task's block is asked to end.
    ///
    /// # Errors
    /// [`Error::Canceled`], even if there is room, and then nothing was sent; else as [`send_request_async`](Self::send_request_async).
    pub fn send_request_x_async(&self, cx: &mut Cx, request: &Message) -> Result<Cookie, Error> {
        self.request_async(cx, OnCancel::Ends, request)
    }

    fn request_async(&self, cx: &mut Cx, on_cancel: OnCancel, request: &Message) -> Result<Cookie, Error> {
        let cookie = self.inner.borrow_mut().cookies.reserve()?;
        let mut unsent = Unsent { port: self, cookie: Some(cookie) };
        self.wait_for_room_async(cx, on_cancel, |inner| {
            let sent = match inner.way {
                Way::CallLines => State::Line(inner.end.caller.post(request)?),
                Way::Rings => {
                    let packet = Packet { kind: Kind::Request, cookie: cookie.wire(), message: *request };
                    inner.end.sender.send(&packet)?;
                    State::Ring
                }
            };
            *inner.cookies.state(cookie)? = sent;
            Ok(())
        })?;
        unsent.cookie = None;
        Ok(cookie)
    }

    /// Waits for the response to a request. Whatever else comes meanwhile is kept for whom it belongs to.
    ///
    /// # Errors
    /// [`Error::Stale`] when the request is not outstanding (its response was taken, another task waits for it, or it was
    /// killed meanwhile), [`Error::Refused`], [`Error::Closed`], [`Error::Corrupt`]; the cookie is spent in each case but the first.
    pub fn recv_response_async(&self, cx: &mut Cx, cookie: Cookie) -> Result<Message, Error> {
        self.response_async(cx, OnCancel::GoesOn, cookie)
    }

    /// Waits for the response to a request, unless the task's block is asked to end.
    ///
    /// # Errors
    /// [`Error::Canceled`], even if the response has come: the request is given up, as by
    /// [`kill_request_cookie`](Self::kill_request_cookie). Else as [`recv_response_async`](Self::recv_response_async).
    pub fn recv_response_x_async(&self, cx: &mut Cx, cookie: Cookie) -> Result<Message, Error> {
        self.response_async(cx, OnCancel::Ends, cookie)
    }

    fn response_async(&self, cx: &mut Cx, on_cancel: OnCancel, cookie: Cookie) -> Result<Message, Error> {
        self.inner.borrow_mut().cookies.claim(cookie)?;
        // If the task is ended while it waits, its request is given up.
        let mut given_up = Unsent { port: self, cookie: Some(cookie) };
        let response = wait_async(
            cx,
            on_cancel,
            &self.patience,
            |waker, cx| {
                self.inner.borrow_mut().cookies.set_waker(cookie, waker);
                self.sleepers.enter(waker, &self.link, cx);
            },
            |_| self.take_response(cookie),
        );
        if response != Err(Error::Canceled) {
            given_up.cookie = None;
        }
        response
    }

    /// Sends a request and waits for its response.
    ///
    /// # Errors
    /// Those of [`send_request_async`](Self::send_request_async) and [`recv_response_async`](Self::recv_response_async).
    #[inline]
    pub fn call_async(&self, cx: &mut Cx, request: &Message) -> Result<Message, Error> {
        let cookie = self.send_request_async(cx, request)?;
        self.recv_response_async(cx, cookie)
    }

    /// Sends a request and waits for its response, unless the task's block is asked to end. The response of a call that was canceled
    /// is dropped when it comes; other calls are not affected.
    ///
    /// # Errors
    /// Those of [`send_request_x_async`](Self::send_request_x_async) and [`recv_response_x_async`](Self::recv_response_x_async).
    #[inline]
    pub fn call_x_async(&self, cx: &mut Cx, request: &Message) -> Result<Message, Error> {
        let cookie = self.send_request_x_async(cx, request)?;
        self.recv_response_x_async(cx, cookie)
    }

    /// Sends a message that nobody answers. Suspends while the ring is full.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Corrupt`].
    pub fn send_async(&self, cx: &mut Cx, message: &Message) -> Result<(), Error> {
        let packet = Packet { kind: Kind::Plain, cookie: 0, message: *message };
        self.wait_for_room_async(cx, OnCancel::GoesOn, |inner| inner.end.sender.send(&packet))
    }

    /// Sends a message that nobody answers, unless the task's block is asked to end.
    ///
    /// # Errors
    /// [`Error::Canceled`], even if there is room, and then nothing was sent; else as [`send_async`](Self::send_async).
    pub fn send_x_async(&self, cx: &mut Cx, message: &Message) -> Result<(), Error> {
        let packet = Packet { kind: Kind::Plain, cookie: 0, message: *message };
        self.wait_for_room_async(cx, OnCancel::Ends, |inner| inner.end.sender.send(&packet))
    }

    /// Takes the next request or message, if one has come. Responses that are found on the way go to their owners.
    ///
    /// # Errors
    /// [`Error::Closed`] when the peer is gone and everything that it asked was taken; [`Error::Corrupt`].
    pub fn poll_recv(self: &Rc<Self>, _cx: &Cx) -> Result<Option<Request>, Error> {
        let inner = &mut *self.inner.borrow_mut();
        // Asked before the last look: what came before the end is still taken.
        let state = self.link.check();
        inner.lines_first = !inner.lines_first;
        for lines in [inner.lines_first, !inner.lines_first] {
            let taken = if lines { self.from_lines(inner)? } else { self.from_ring(inner) };
            if taken.is_some() {
                return Ok(taken);
            }
        }
        state.map(|()| None)
    }

    fn from_ring(self: &Rc<Self>, inner: &mut Inner) -> Option<Request> {
        if inner.requests.is_empty() {
            self.pump(inner);
        }
        let packet = inner.requests.pop_front()?;
        let origin = (packet.kind == Kind::Request).then_some(Origin::Ring(packet.cookie));
        Some(Request { port: self.clone(), origin, message: packet.message })
    }

    fn from_lines(self: &Rc<Self>, inner: &mut Inner) -> Result<Option<Request>, Error> {
        match inner.end.callee.poll() {
            Ok(Some(request)) => {
                let message = request.message;
                Ok(Some(Request { port: self.clone(), origin: Some(Origin::Line(request)), message }))
            }
            // Something may be left in the ring.
            Ok(None) | Err(Error::Closed) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits for the next request or message.
    ///
    /// # Errors
    /// As [`poll_recv`](Self::poll_recv).
    pub fn recv_async(self: &Rc<Self>, cx: &mut Cx) -> Result<Request, Error> {
        self.wait_async(cx, OnCancel::GoesOn, |cx| self.poll_recv(cx))
    }

    /// Waits for the next request or message, unless the task's block is asked to end.
    ///
    /// # Errors
    /// [`Error::Canceled`], even if one has come, which stays for the next who looks; else as [`poll_recv`](Self::poll_recv).
    pub fn recv_x_async(self: &Rc<Self>, cx: &mut Cx) -> Result<Request, Error> {
        self.wait_async(cx, OnCancel::Ends, |cx| self.poll_recv(cx))
    }

    /// Gives a request up: whoever waits for its response gets [`Error::Stale`], and the response, when it comes, is dropped.
    ///
    /// # Errors
    /// [`Error::Stale`] when it is not outstanding.
    pub fn kill_request_cookie(&self, cookie: Cookie) -> Result<(), Error> {
        let inner = &mut *self.inner.borrow_mut();
        if let State::Line(call) = inner.cookies.release(cookie)? {
            inner.end.caller.abandon(&call);
        }
        Ok(())
    }

    /// Whether the channel works.
    pub fn is_live(&self) -> bool {
        self.link.check().is_ok()
    }

    /// Whether the peer is gone, broke the protocol, or the channel was closed here.
    pub fn is_dead(&self) -> bool {
        !self.is_live()
    }

    /// Ends the channel for both sides: all that waits on it is woken and fails with [`Error::Closed`].
    pub fn mark_dead(&self) {
        self.link.close();
        (self.ring_peer)();
        self.sleepers.ring();
    }

    /// Sets how long its tasks look again and again before they park.
    pub fn set_patience(&self, patience: Patience) {
        *self.patience.borrow_mut() = patience;
    }

    /// What it has seen.
    pub fn counts(&self) -> Counts {
        self.inner.borrow().counts
    }

    /// How many requests are outstanding: sent, and their response not taken.
    pub fn outstanding(&self) -> usize {
        self.inner.borrow().cookies.in_use()
    }

    /// The connection.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Enters a task among those that the peer wakes.
    pub(super) fn enter(&self, waker: Waker, cx: &Cx) {
        self.sleepers.enter(waker, &self.link, cx);
    }

    /// Takes everything out of the ring; true if it is empty.
    fn pump(&self, inner: &mut Inner) -> bool {
        let mut empty = false;
        let mut taken = 0;
        while taken < BATCH && inner.requests.len() < MOST_REQUESTS {
            let Ok(Some(packet)) = inner.end.receiver.poll() else {
                empty = true;
                break;
            };
            taken += 1;
            let response = match packet.kind {
                Kind::Request => {
                    inner.requests.push_back(packet);
                    continue;
                }
                Kind::Plain if packet.cookie == 0 => {
                    inner.requests.push_back(packet);
                    continue;
                }
                Kind::Response => Ok(packet.message),
                Kind::Plain => Err(Error::Refused),
            };
            if inner.cookies.deliver(packet.cookie, response) {
                inner.counts.stashed += 1;
            } else {
                inner.counts.unknown += 1;
            }
        }
        while let Some(cookie) = inner.refusals.front() {
            if inner.end.sender.send(&refusal(*cookie)) == Err(Error::Full) {
                break;
            }
            inner.refusals.pop_front();
            taken += 1;
        }
        if taken > 0 {
            // There is room in the ring, which the peer may sleep for.
            self.notify();
        }
        empty
    }

    fn take_response(&self, cookie: Cookie) -> Result<Option<Message>, Error> {
        let inner = &mut *self.inner.borrow_mut();
        // Asked before the last look: what came before the end is still taken.
        let state = self.link.check();
        let response = match *inner.cookies.state(cookie)? {
            State::Line(call) => inner.end.caller.poll(&call),
            State::Free | State::Unsent => Err(Error::Stale),
            State::Ring | State::Arrived(_) => {
                let empty = self.pump(inner);
                match inner.cookies.state(cookie)? {
                    State::Arrived(response) => response.map(Some),
                    _ if empty || inner.requests.len() >= MOST_REQUESTS => state.map(|()| None),
                    _ => Ok(None),
                }
            }
        };
        if !matches!(response, Ok(None)) {
            inner.cookies.release(cookie)?;
            if self.want_room.get() > 0 {
                self.sleepers.ring();
            }
        }
        response
    }

    fn notify(&self) {
        if self.link.peer_sleeps() {
            (self.ring_peer)();
        }
    }

    /// Repeats a sending until there is room for it, then rings the peer if need be. Takes what comes meanwhile: the peer may be
    /// waiting for room as well.
    fn wait_for_room_async<T>(
        &self,
        cx: &mut Cx,
        on_cancel: OnCancel,
        mut send: impl FnMut(&mut Inner) -> Result<T, Error>,
    ) -> Result<T, Error> {
        on_cancel.check(cx)?;
        let mut attempt = || {
            let inner = &mut *self.inner.borrow_mut();
            match send(inner) {
                Ok(sent) => Ok(Some(sent)),
                Err(Error::Full) => {
                    self.pump(inner);
                    Ok(None)
                }
                Err(error) => Err(error),
            }
        };
        let sent = match attempt()? {
            Some(sent) => sent,
            None => {
                let _wanting = Wanting::new(&self.want_room);
                self.wait_async(cx, on_cancel, |_| attempt())?
            }
        };
        self.notify();
        Ok(sent)
    }

    fn wait_async<T>(
        &self,
        cx: &mut Cx,
        on_cancel: OnCancel,
        step: impl FnMut(&Cx) -> Result<Option<T>, Error>,
    ) -> Result<T, Error> {
        wait_async(cx, on_cancel, &self.patience, |waker, cx| self.enter(waker, cx), step)
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.link.close();
        (self.ring_peer)();
    }
}

impl Request {
    /// Answers it. Suspends while there is no room for the answer.
    ///
    /// # Errors
    /// [`Error::Stale`] when the message was not a request; [`Error::Closed`], [`Error::Corrupt`].
    pub fn reply_async(mut self, cx: &mut Cx, response: &Message) -> Result<(), Error> {
        let port = self.port.clone();
        match self.origin.take() {
            None => Err(Error::Stale),
            Some(Origin::Line(request)) => {
                port.inner.borrow_mut().end.callee.reply(request, response)?;
                port.notify();
                Ok(())
            }
            Some(Origin::Ring(cookie)) => {
                let packet = Packet { kind: Kind::Response, cookie, message: *response };
                port.wait_for_room_async(cx, OnCancel::GoesOn, |inner| inner.end.sender.send(&packet))
            }
        }
    }

    /// Whether somebody waits for an answer.
    pub fn wants_reply(&self) -> bool {
        self.origin.is_some()
    }

    /// The port that it came through.
    pub fn port(&self) -> &Rc<Port> {
        &self.port
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if let Some(origin) = self.origin.take() {
            self.refuse(origin);
        }
    }
}

impl Request {
    /// Tells the one who asked that there will be no answer. Out of the way of those that are answered, which are dropped, too.
    #[cold]
    #[inline(never)]
    fn refuse(&self, origin: Origin) {
        let inner = &mut *self.port.inner.borrow_mut();
        inner.counts.refused += 1;
        match origin {
            Origin::Line(request) => drop(inner.end.callee.refuse(request)),
            Origin::Ring(cookie) => {
                if inner.end.sender.send(&refusal(cookie)) == Err(Error::Full) {
                    // Sent with the next look at the ring.
                    if inner.refusals.len() < MOST_REFUSALS {
                        inner.refusals.push_back(cookie);
                    } else {
                        self.port.link.corrupt();
                    }
                }
            }
        }
        self.port.notify();
    }
}

/// A message that says that a request gets no answer.
fn refusal(cookie: u32) -> Packet {
    Packet { kind: Kind::Plain, cookie, message: Message::default() }
}

/// A request that is given up unless the cookie is taken out.
struct Unsent<'p> {
    port: &'p Port,
    cookie: Option<Cookie>,
}

impl Drop for Unsent<'_> {
    fn drop(&mut self) {
        if let Some(cookie) = self.cookie {
            // Stale if it has been killed already.
            let _ = self.port.kill_request_cookie(cookie);
        }
    }
}

/// Counts a task that waits for room, also if it is ended while it waits.
struct Wanting<'p>(&'p Cell<usize>);

impl<'p> Wanting<'p> {
    fn new(count: &'p Cell<usize>) -> Self {
        count.set(count.get() + 1);
        Wanting(count)
    }
}

impl Drop for Wanting<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}
