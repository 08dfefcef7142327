//! Handlers that panic: their request is refused, nothing else is lost.
#![cfg(not(any(ebb_loom, ebb_shuttle)))]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use ipc::linux::thread_pair;
use ipc::rpc::{Group, Port, dispatch_async, pair};
use ipc::{Error, Geometry, Message, Tag};
use tasks::rt;

fn word(word: u64) -> Message {
    Message::new(Tag::new(1), &[word])
}

fn double_unless_zero(request: &Message) -> Message {
    if request.words[0] == 0 {
        resume_unwind(Box::new("zero"));
    }
    word(request.words[0] * 2)
}

#[test]
fn a_request_whose_server_panics_is_refused_and_the_connection_goes_on() {
    let (mut client, mut server) = thread_pair(Geometry::default());
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut panics = 0;
            while catch_unwind(AssertUnwindSafe(|| server.serve(double_unless_zero))).is_err() {
                panics += 1;
            }
            assert_eq!(panics, 2);
        });
        let timeout = Some(Duration::from_secs(600));
        assert_eq!(client.call(&word(4), timeout), Ok(word(8)));
        assert_eq!(client.call(&word(0), timeout), Err(Error::Refused));
        assert_eq!(client.call(&word(0), timeout), Err(Error::Refused));
        assert_eq!(client.call(&word(5), timeout), Ok(word(10)));
        drop(client);
    });
}

#[test]
fn a_request_whose_handler_panics_is_refused_and_the_others_are_answered() {
    let (client, server) = pair(Geometry::default());
    thread::scope(|scope| {
        scope.spawn(move || {
            let served = catch_unwind(AssertUnwindSafe(|| {
                rt::run(|cx| {
                    let mut group = Group::new();
                    group.add(server.port());
                    dispatch_async(cx, &mut group, |cx, _, request| {
                        let answer = double_unless_zero(&request.message);
                        request.reply_async(cx, &answer).expect("alive");
                    });
                });
            }));
            assert_eq!(served.unwrap_err().downcast_ref(), Some(&"zero"));
        });
        rt::run(|cx| {
            let port: Rc<Port> = client.port();
            assert_eq!(port.call_async(cx, &word(4)), Ok(word(8)));
            assert_eq!(port.call_async(cx, &word(0)), Err(Error::Refused));
            assert_eq!(port.call_async(cx, &word(5)), Ok(word(10)));
        });
    });
}

#[test]
fn a_time_limit_beyond_all_time_is_none() {
    let (mut client, mut server) = thread_pair(Geometry::default());
    std::thread::scope(|threads| {
        threads.spawn(move || server.serve(|request| *request));
        let answer = client.call(&Message::default(), Some(Duration::MAX));
        assert_eq!(answer, Ok(Message::default()));
        drop(client);
    });
}
