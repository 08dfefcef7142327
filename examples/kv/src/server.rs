//! The server: one thread, a task for each client, and one for each request that is being served.
//!
//! A task that finds nothing to do yields; when all have found nothing the thread rests for a moment. When a client goes away,
//! for whatever reason, its channel says so: its session is closed, which ends the requests that it was waiting for, and then
//! its task ends.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use ipc::linux::Connection;
use ipc::{Callee, Link};
use tasks::rt::{self, Cx};

use crate::protocol::{Answer, Request};
use crate::store::{Payload, Store, Stored, Watched};

/// The largest value that is stored.
const LARGEST: u64 = 64 << 20;
/// How long the server rests when there is nothing to do.
const REST: Duration = Duration::from_micros(200);

/// Serves the clients at the other ends of `connections` until all have gone.
pub fn serve<S: Store>(connections: Vec<Connection>) {
    rt::run(|cx| {
        let store = S::default();
        let round = Round { busy: Cell::new(false), clients: Cell::new(connections.len()) };
        rt::finish_async(cx, |scope, cx| {
            for connection in connections {
                let (store, round) = (&store, &round);
                scope.spawn_async(cx, move |cx| client_async(store, connection, round, cx));
            }
            while round.clients.get() > 0 {
                rt::yield_async(cx);
                if !round.busy.take() {
                    std::thread::sleep(REST);
                }
            }
        });
    });
}

/// One turn of all tasks.
struct Round {
    /// Whether any of them did something.
    busy: Cell<bool>,
    /// How many clients are left.
    clients: Cell<usize>,
}

/// The end of a channel that is asked. No borrow of it lasts across a suspension.
struct Answering<'a> {
    callee: RefCell<&'a mut Callee>,
    waiter: &'a ipc::Waiter<ipc::linux::Futex>,
    link: &'a Link,
}

impl Answering<'_> {
    fn answer(&self, request: ipc::Request, answer: Answer) {
        // The client may have gone: then nobody wants the answer.
        let _ = self.callee.borrow_mut().reply(request, &answer.to_message());
        self.waiter.notify(self.link);
    }
}

/// Serves one client until it goes away.
fn client_async<S: Store>(store: &S, mut connection: Connection, round: &Round, cx: &mut Cx) {
    let waiter = connection.waiter.clone();
    let link = connection.endpoint.link.clone();
    let answering = Answering { callee: RefCell::new(&mut connection.endpoint.callee), waiter: &waiter, link: &link };
    let session = store.open(cx);
    rt::finish_async(cx, |scope, cx| {
        loop {
            let next = answering.callee.borrow_mut().poll();
            match next {
                Ok(Some(request)) => {
                    round.busy.set(true);
                    let (session, answering) = (session.clone(), &answering);
                    scope.spawn_async(cx, move |cx| answer_async(store, &session, request, answering, round, cx));
                }
                Ok(None) => rt::yield_async(cx),
                // It has closed its end, was killed, or broke the protocol.
                Err(_) => break,
            }
        }
        store.close(session.clone(), cx);
    });
    round.clients.set(round.clients.get() - 1);
    round.busy.set(true);
}

fn answer_async<S: Store>(
    store: &S,
    session: &S::Session,
    request: ipc::Request,
    answering: &Answering<'_>,
    round: &Round,
    cx: &mut Cx,
) {
    let answer = match Request::of_message(&request.message) {
        Some(Request::Put { size, .. }) if size > LARGEST => Answer::Refused,
        Some(Request::Put { key, size }) => match store.put(session, key, Payload::new(size as usize), cx) {
            Stored::Done => Answer::Done(size),
            Stored::Refused => Answer::Refused,
        },
        Some(Request::Get { key }) => store.get(key, cx).map_or(Answer::Gone, |size| Answer::Done(size as u64)),
        Some(Request::Watch { key }) => match store.watch_async(session, key, cx) {
            Watched::Changed => Answer::Changed,
            Watched::Gone => Answer::Gone,
            Watched::Refused => Answer::Refused,
            Watched::Unwanted => return,
        },
        None => Answer::Refused,
    };
    round.busy.set(true);
    answering.answer(request, answer);
}
