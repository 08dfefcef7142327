//! `ebb-ipc`, its two ways to send: call lines, whose answers come back in place, and rings.

use std::cell::{Cell, RefCell};
use std::hint::{black_box, spin_loop};

use ipc::rpc::{self, Group, Way};
use ipc::{Call, Caller, Endpoint, Error, Geometry, Kind, Message, Packet, Tag, pair};
use tasks::rt::{self, Cx};

use crate::line::Samples;
use crate::machine::beside;

const GEOMETRY: Geometry = match Geometry::new(128, 128) {
    Ok(geometry) => geometry,
    Err(_) => panic!("128 lines and 128 slots are allowed"),
};

#[inline(always)]
fn message() -> Message {
    Message { tag: Tag::default(), words: [1; 7] }
}

/// Runs `here` at one end while the other end, on another core, answers calls until the channel is closed.
fn with_server(here: impl FnOnce(&mut Endpoint)) {
    let (mut near, mut far) = pair(GEOMETRY);
    let server = move || {
        loop {
            match far.callee.poll() {
                Ok(Some(request)) => {
                    let answer = request.message;
                    let _ = far.callee.reply(request, &answer);
                }
                Ok(None) => spin_loop(),
                Err(_) => return,
            }
        }
    };
    beside(server, move || here(&mut near));
}

#[inline(always)]
fn post(caller: &mut Caller) -> Call {
    caller.post(&message()).expect("fewer calls are outstanding than there are lines")
}

#[inline(always)]
fn answer(caller: &mut Caller, call: &Call) -> Message {
    loop {
        if let Some(answer) = caller.poll(call).expect("the server answers until the channel is closed") {
            return answer;
        }
        spin_loop();
    }
}

/// Calls on call lines, so many in flight at a time; per call.
pub fn calls(s: &mut Samples, in_flight: usize, batch: usize) {
    with_server(|end| {
        let caller = &mut end.caller;
        s.batches(batch, || {
            let mut calls: [Option<Call>; 64] = [None; 64];
            for slot in &mut calls[..in_flight] {
                *slot = Some(post(caller));
            }
            let mut oldest = 0;
            for number in in_flight..batch + in_flight {
                let slot = &mut calls[oldest];
                if let Some(call) = slot.take() {
                    black_box(answer(caller, &call));
                }
                if number < batch {
                    *slot = Some(post(caller));
                }
                oldest = if oldest + 1 == in_flight { 0 } else { oldest + 1 };
            }
        });
    });
}

#[inline(always)]
fn send(end: &mut Endpoint, kind: Kind, message: Message) {
    let packet = Packet { kind, cookie: 0, message };
    while end.sender.send(&packet) == Err(Error::Full) {
        spin_loop();
    }
}

#[inline(always)]
fn receive(end: &mut Endpoint) -> Packet {
    loop {
        if let Some(packet) = end.receiver.poll().expect("the other end is open") {
            return packet;
        }
        spin_loop();
    }
}

/// Requests and responses on a pair of rings, so many in flight at a time; per request.
pub fn ring_calls(s: &mut Samples, in_flight: usize, batch: usize) {
    let (mut near, mut far) = pair(GEOMETRY);
    let server = move || {
        loop {
            match far.receiver.poll() {
                Ok(Some(request)) => send(&mut far, Kind::Response, request.message),
                Ok(None) => spin_loop(),
                Err(_) => return,
            }
        }
    };
    beside(server, move || {
        let end = &mut near;
        s.batches(batch, || {
            (0..in_flight).for_each(|_| send(end, Kind::Request, message()));
            for _ in in_flight..batch {
                black_box(receive(end).message);
                send(end, Kind::Request, message());
            }
            (0..in_flight).for_each(|_| _ = black_box(receive(end).message));
        });
        drop(near);
    });
}

/// A stream on a ring, with one response at the end of each batch; per message.
pub fn stream(s: &mut Samples, batch: usize) {
    let (mut near, mut far) = pair(GEOMETRY);
    let server = move || {
        let mut count = 0;
        loop {
            match far.receiver.poll() {
                Ok(Some(packet)) => {
                    let message = black_box(packet.message);
                    count += 1;
                    if count % batch == 0 {
                        send(&mut far, Kind::Response, message);
                    }
                }
                Ok(None) => spin_loop(),
                Err(_) => return,
            }
        }
    };
    beside(server, move || {
        let end = &mut near;
        s.batches(batch, || {
            (0..batch).for_each(|_| send(end, Kind::Plain, message()));
            black_box(receive(end).message);
        });
        drop(near);
    });
}

/// A message sent and taken on one core.
pub fn alone(s: &mut Samples) {
    let (mut near, mut far) = pair(GEOMETRY);
    s.each(|| {
        send(&mut near, Kind::Plain, message());
        black_box(receive(&mut far).message);
    });
}

/// Calls made by so many tasks at once, which are served by the dispatch loop on the other core; per call.
pub fn rpc_of_tasks(s: &mut Samples, tasks: usize, batch: usize, way: Way) {
    let (near, far) = rpc::pair(GEOMETRY);
    let server = move || {
        rt::run(|cx| {
            let mut group = Group::new();
            group.add(far.port_by(way));
            rpc::dispatch_async(cx, &mut group, |cx, _, request| {
                let answer = request.message;
                // It fails when the client has gone: then nobody waits for it.
                let _ = request.reply_async(cx, &answer);
            });
        });
    };
    beside(server, move || {
        rt::run(|cx| {
            let port = near.port_by(way);
            s.batches(batch, || {
                by_tasks(cx, tasks, batch, &|cx: &mut Cx| {
                    let answer = port.call_async(cx, &message());
                    black_box(answer.expect("the server answers until the channel is closed"));
                });
            });
        });
    });
}

/// Has `tasks` tasks make `calls` calls.
#[inline(always)]
fn by_tasks(cx: &mut Cx, tasks: usize, calls: usize, call: &impl Fn(&mut Cx)) {
    let left = Cell::new(calls);
    rt::finish_async(cx, |scope, cx| {
        for _ in 0..tasks {
            scope.spawn_async(cx, |cx| {
                while left.get() > 0 {
                    left.set(left.get() - 1);
                    call(cx);
                }
            });
        }
    });
}

/// Calls made by so many tasks at once, each of which looks at its own line and lets the others run meanwhile; per call.
pub fn lines_of_tasks(s: &mut Samples, tasks: usize, batch: usize) {
    fn call_async(cx: &mut Cx, caller: &RefCell<&mut Caller>) {
        let call = post(&mut caller.borrow_mut());
        loop {
            let answer = caller.borrow_mut().poll(&call).expect("the server answers until the channel is closed");
            if let Some(answer) = answer {
                black_box(answer);
                return;
            }
            rt::yield_async(cx);
        }
    }
    with_server(|end| {
        let caller = &RefCell::new(&mut end.caller);
        rt::run(|cx| {
            s.batches(batch, || by_tasks(cx, tasks, batch, &|cx: &mut Cx| call_async(cx, caller)));
        });
    });
}
