//! Calls, sends and receives that are called off.
#![cfg(not(ebb_loom))]

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::thread;

use ipc::rpc::{Group, Port, Way, pair};
use ipc::{Error, Geometry, Message, Patience, Tag};
use tasks::{Cx, rt};

const WAYS: [Way; 2] = [Way::CallLines, Way::Rings];

fn word(word: u64) -> Message {
    Message::new(Tag::new(1), &[word])
}

/// Runs both ends, each on a thread of its own.
fn both(way: Way, a: impl FnOnce(&mut Cx, Rc<Port>) + Send, b: impl FnOnce(&mut Cx, Rc<Port>) + Send) {
    let (seed_a, seed_b) = pair(Geometry::new(4, 8).expect("fits"));
    thread::scope(|scope| {
        scope.spawn(move || rt::run(|cx| a(cx, seed_a.port_by(way))));
        scope.spawn(move || rt::run(|cx| b(cx, seed_b.port_by(way))));
    });
}

/// What `wait` gives if its block is canceled while it waits: parked at once, or still looking.
fn canceled(cx: &mut Cx, port: &Port, wait: &dyn Fn(&mut Cx) -> Result<(), Error>) -> [Result<(), Error>; 2] {
    [Patience::new(0), Patience::new(1 << 30)].map(|patience| {
        port.set_patience(patience);
        let result = Cell::new(Ok(()));
        rt::finish_async(cx, |scope, cx| {
            scope.spawn_async(cx, |cx| result.set(wait(cx)));
            rt::yield_async(cx);
            scope.cancel_async(cx);
        });
        result.get()
    })
}

#[test]
fn what_never_comes_is_waited_for_until_the_block_is_canceled() {
    for way in WAYS {
        both(
            way,
            |cx, port| {
                let mut group = Group::new();
                group.add(port.clone());
                let group = RefCell::new(group);
                let both_canceled = [Err(Error::Canceled); 2];
                assert_eq!(canceled(cx, &port, &|cx| port.recv_x_async(cx).map(|_| ())), both_canceled);
                assert_eq!(canceled(cx, &port, &|cx| port.call_x_async(cx, &word(1)).map(|_| ())), both_canceled);
                assert_eq!(
                    canceled(cx, &port, &|cx| {
                        let mut group = group.borrow_mut();
                        group.recv_x_async(cx).map(|_| ())
                    }),
                    both_canceled
                );
                // The ring is full after 8.
                let sent = Cell::new(0);
                let send = |cx: &mut Cx| {
                    loop {
                        port.send_x_async(cx, &word(2))?;
                        sent.set(sent.get() + 1);
                    }
                };
                assert_eq!(canceled(cx, &port, &send), both_canceled);
                assert!(sent.get() <= 8);
                assert_eq!(port.outstanding(), 0);
                port.mark_dead();
            },
            |cx, port| {
                // Looks at nothing while the other end lives.
                while port.is_live() {
                    thread::yield_now();
                    rt::yield_async(cx);
                }
            },
        );
    }
}

#[test]
fn a_canceled_block_sends_and_takes_nothing() {
    for way in WAYS {
        both(
            way,
            |cx, port| {
                rt::finish_async(cx, |scope, cx| {
                    let cookie = port.send_request_async(cx, &word(5)).expect("there is room");
                    scope.cancel_async(cx);
                    assert_eq!(port.send_request_x_async(cx, &word(6)).err(), Some(Error::Canceled));
                    assert_eq!(port.send_x_async(cx, &word(7)), Err(Error::Canceled));
                    assert_eq!(port.recv_x_async(cx).err(), Some(Error::Canceled));
                    // A shield keeps the request out, and what is not cancellable does not hear it.
                    rt::finish_shielded_async(cx, |_, cx| {
                        assert_eq!(port.recv_response_x_async(cx, cookie), Ok(word(50)));
                    });
                    assert_eq!(port.call_async(cx, &word(8)), Ok(word(80)));
                    assert_eq!(port.outstanding(), 0);
                });
            },
            |cx, port| {
                for expected in [5, 8] {
                    let request = port.recv_async(cx).expect("a request");
                    assert_eq!(request.message, word(expected));
                    request.reply_async(cx, &word(expected * 10)).expect("the peer waits");
                }
            },
        );
    }
}

#[test]
fn calls_that_race_with_their_cancelation_keep_requests_and_replies_paired() {
    const CALLS: u64 = 64;
    const ROUNDS: u64 = 30;
    for way in WAYS {
        both(
            way,
            |cx, port| {
                let (answered, called_off) = (Cell::new(0), Cell::new(0));
                for round in 0..ROUNDS {
                    rt::finish_async(cx, |scope, cx| {
                        for call in 0..CALLS {
                            let (port, answered, called_off) = (&port, &answered, &called_off);
                            scope.spawn_async(cx, move |cx| {
                                // Every other one is called off at some time.
                                rt::finish_async(cx, |own, cx| {
                                    if call % 2 == 0 {
                                        own.spawn_async(cx, move |cx| {
                                            for _ in 0..(call + round) % 9 {
                                                rt::yield_async(cx);
                                            }
                                            own.cancel_async(cx);
                                        });
                                    }
                                    let number = round * CALLS + call;
                                    match port.call_x_async(cx, &word(number)) {
                                        Ok(answer) => {
                                            assert_eq!(answer, word(number * 3));
                                            answered.set(answered.get() + 1);
                                        }
                                        Err(error) => {
                                            assert_eq!((error, call % 2), (Error::Canceled, 0));
                                            called_off.set(called_off.get() + 1);
                                        }
                                    }
                                });
                            });
                        }
                    });
                }
                assert_eq!(answered.get() + called_off.get(), CALLS * ROUNDS);
                assert!(called_off.get() > 0);
                assert_eq!(port.outstanding(), 0);
                // Nothing stray is left for the calls that come after.
                for number in 0..20 {
                    assert_eq!(port.call_async(cx, &word(number)), Ok(word(number * 3)));
                }
            },
            |cx, port| {
                while let Ok(request) = port.recv_async(cx) {
                    let answer = word(request.message.words[0] * 3);
                    // Whoever asked may have given it up.
                    let _ = request.reply_async(cx, &answer);
                }
            },
        );
    }
}
